"""Reports on a deduplication: counts, agreement with given groups, and why results are one document or two."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from goodgain.errors import InputError, count_of
from goodgain.logs.dedup.candidates import SkippedPairs
from goodgain.logs.dedup.evidence import split_by_type
from goodgain.logs.dedup.rows_and_trusted_ids import Records
from goodgain.logs.dedup.verification import RULE_NAMES, SAID, UNDECIDED, verify_rows


@dataclass(frozen=True)
class Summary:
    """The counts of a deduplication.

    Attributes:
        results, documents, duplicates: counted per query. A duplicate repeats a document that the same run returned before.
        records: the number of distinct results.
        pairs: the number of pairs of records that were compared.
        same, different: the number of pairs that each rule found to be one document (`same`) or two documents (`different`).
            The rule `said by FILE` stands for the pairs of the user.
        undecided: the number of pairs that no rule decided. These pairs are not joined.
        refused: the number of joins refused because they would put two different results into one document.
        skipped: counts of the pairs that were not compared, because a key or a group has too many pairs.
        earlier: the number of results that already had documents.
        bridges: the number of conflicts with earlier documents: new results connect two earlier documents, or an
            earlier document proves to be several documents.
    """

    results: int
    documents: int
    duplicates: int
    records: int
    pairs: int
    same: Mapping[str, int]
    different: Mapping[str, int]
    undecided: int
    refused: int
    skipped: Sequence[SkippedPairs]
    earlier: int = 0
    bridges: int = 0

    def __str__(self) -> str:
        results = f"{count_of(self.results, 'result')}, {count_of(self.documents, 'document')}"
        lines = [f"{results}, {count_of(self.duplicates, 'repeat')} within a run"]
        pairs = f"{count_of(self.records, 'different record')}, {count_of(self.pairs, 'pair')} compared"
        same, different = sum(self.same.values()), sum(self.different.values())
        lines.append(f"{pairs}: {same:,} the same, {different:,} different, {self.undecided:,} undecided (kept apart)")
        for verdict, rules in (("same", self.same), ("different", self.different)):
            lines += [f"  {verdict}{_cite_rule(name)}: {count:,}" for name, count in rules.items()]
        if self.refused:
            lines.append(
                f"{count_of(self.refused, 'join')} refused: they would have put two different results into one document"
            )
        lines += [str(pairs) for pairs in self.skipped]
        if self.earlier:
            bridges = count_of(self.bridges, "bridge")
            lines.append(f"{self.earlier:,} earlier results keep their documents; {bridges} between them")
        return "\n".join(lines)


#: The beginning of the rule name of a pair that the user gave; the file follows.
_SAID_BY = "said by "


def _cite_rule(name: str) -> str:
    return f", {name}" if name.startswith(_SAID_BY) else f" by {name}"


def name_rules(records: Records) -> pl.Expr:
    """Return an expression that names the rule of each pair. For a user's pair, the name is `said by` and the source."""
    names = pl.col("rule").replace_strict(dict(enumerate(RULE_NAMES)), return_dtype=pl.String)
    user_pairs = records.user_pairs
    if user_pairs is None:
        return names
    same = pl.lit(_SAID_BY + user_pairs.same.source)
    different = pl.lit(_SAID_BY + user_pairs.different.source)
    user_names = pl.when("same").then(same).otherwise(different)
    is_users = pl.col("rule") == SAID
    return pl.when(is_users).then(user_names).otherwise(names).alias("rule")


def summarise(
    documents: pl.DataFrame,
    records: Records,
    pairs: pl.DataFrame,
    *,
    refused: int,
    skipped: Sequence[SkippedPairs],
    earlier: int,
    bridges: int,
) -> Summary:
    """Count the documents of all results, and the verdicts on pairs of records by rule."""
    decided = pairs.filter(pl.col("rule") != UNDECIDED)
    counts = decided.group_by("same", "rule").len().sort("rule")
    counts_of: dict[bool, dict[str, int]] = {}
    for verdict in (True, False):
        of_verdict = counts.filter(pl.col("same") == verdict)
        counts_of[verdict] = dict(of_verdict.select(name_rules(records), "len").iter_rows())

    return Summary(
        results=documents.height,
        documents=documents.select("scope", "document").n_unique(),
        duplicates=documents["duplicate_of"].count(),
        records=records.frame.height,
        pairs=pairs.height,
        same=counts_of[True],
        different=counts_of[False],
        undecided=pairs.filter(pl.col("rule") == UNDECIDED).height,
        refused=refused,
        skipped=skipped,
        earlier=earlier,
        bridges=bridges,
    )


@dataclass(frozen=True)
class Agreement:
    """Pairwise and B-cubed precision, recall and F1 of the documents against given groups.

    Pairwise precision is the share of joined pairs that are also in one given group. Pairwise recall is the share of pairs in
    one given group that are joined. B-cubed computes both shares for each result, and averages them over the results. A share
    of zero pairs is 1.

    Source: Bagga and Baldwin, Algorithms for scoring coreference chains (LREC 1998), for B-cubed.
    """

    precision: float
    recall: float
    f1: float
    bcubed_precision: float
    bcubed_recall: float
    bcubed_f1: float
    results: int


def score_agreement(rows: pl.DataFrame, gold: Sequence[object] | pl.Series) -> Agreement:
    """Score how well documents of rows agree with the groups `gold`. Only rows that were deduplicated together are compared."""
    groups = gold if isinstance(gold, pl.Series) else pl.Series(list(gold), strict=False)
    if len(groups) != rows.height:
        numbers = f"{count_of(len(groups), 'group')} for {count_of(rows.height, 'row')} of results"
        raise InputError(f"{numbers}: give one for each row.")
    counted = rows.select("scope", "document", gold=groups).drop_nulls()

    joined = _count_pairs(counted, "document")
    related = _count_pairs(counted, "gold")
    right = _count_pairs(counted, "document", "gold")
    precision = right / joined if joined else 1.0
    recall = right / related if related else 1.0

    # For each result: the results that share its document and group, and those that share its document, or its group.
    size_of_both = pl.len().over("scope", "document", "gold")
    of_document = size_of_both / pl.len().over("scope", "document")
    of_group = size_of_both / pl.len().over("scope", "gold")
    shares = counted.select(precision=of_document, recall=of_group)
    bcubed_precision, bcubed_recall = (_average(share) for share in shares)
    return Agreement(
        precision,
        recall,
        _compute_f1(precision, recall),
        bcubed_precision,
        bcubed_recall,
        _compute_f1(bcubed_precision, bcubed_recall),
        counted.height,
    )


def _count_pairs(rows: pl.DataFrame, *names: str) -> float:
    """Return the number of pairs of rows that are equal in scope and in the columns `names`."""
    size = pl.col("len").cast(pl.Float64)
    pairs = (size * (size - 1) / 2).sum()
    counts = rows.group_by("scope", *names).len()
    return float(counts.select(pairs).item())


def _average(shares: pl.Series) -> float:
    return math.fsum(shares) / len(shares) if len(shares) else 1.0


def _compute_f1(precision: float, recall: float) -> float:
    if not precision + recall:
        return 0.0
    return 2 * precision * recall / (precision + recall)


#: The most pairs shown: a document with many results has millions.
_MAX_PAIRS = 10_000


@dataclass(frozen=True)
class Explanation:
    """The results of a document, and the verdict on each pair of results.

    `results` has the columns row, query_id, system and document. `pairs` has the columns query_id, row, other_row, same, rule,
    confidence, type, agreed and differed. `type` is the document type whose rules were used, or `incompatible` for types that
    do not match. `agreed` and `differed` list names of fields. Two results of one document may have `same` false: they were
    joined through other results. `pairs` has at most 10,000 rows; `left_out` is the number of further pairs.
    """

    document: str
    other: str | None
    results: pl.DataFrame
    pairs: pl.DataFrame
    left_out: int = 0

    def __str__(self) -> str:
        head = f"{self.document}: {count_of(self.results.height, 'result')}"
        if self.other is not None:
            head = f"{self.document} and {self.other}"
        lines = [head, *map(self._write_pair, self.pairs.iter_rows(named=True))]
        if self.left_out:
            lines.append(f"  and {count_of(self.left_out, 'further pair')}")
        return "\n".join(lines)

    def _write_pair(self, pair: Mapping[str, Any]) -> str:
        verdict = f"same ({pair['confidence']:g})" if pair["same"] else "different"
        if not pair["same"] and self.other is None:
            verdict += ", joined through others"
        verdict += _cite_rule(pair["rule"])
        agreed = ", ".join(pair["agreed"]) or "nothing"
        differed = ", ".join(pair["differed"]) or "nothing"
        rows = f"rows {pair['row']} and {pair['other_row']} of query {pair['query_id']}"
        return f"  {rows}: {verdict}, as {pair['type']}; agreed: {agreed}; differed: {differed}"


def explain(
    rows: pl.DataFrame, records: Records, document: str, other: str | None, query_id: str | None
) -> Explanation:
    """Compare the results of a document with each other or, with `other`, with those of another document, in each scope."""
    if query_id is not None:
        rows = rows.filter(pl.col("query_id") == query_id)
    results = _find_results(rows, document, query_id)
    if other is None:
        pairs = results.join(results, on="scope", suffix="_b")
        pairs = pairs.filter(pl.col("row") < pl.col("row_b"))
    else:
        other_results = _find_results(rows, other, query_id)
        pairs = results.join(other_results, on="scope", suffix="_b")
        results = pl.concat([results, other_results])

    pairs = pairs.sort("row", "row_b")
    first_pairs = pairs.head(_MAX_PAIRS)
    left_out = pairs.height - first_pairs.height
    results = results.select("row", "query_id", "system", "document")
    return Explanation(document, other, results, _explain_pairs(first_pairs, records), left_out=left_out)


def _find_results(rows: pl.DataFrame, document: str, query_id: str | None) -> pl.DataFrame:
    results = rows.filter(pl.col("document") == document)
    if results.is_empty():
        place = "" if query_id is None else f" in query {query_id}"
        raise InputError(f"the results{place} have no document {document!r}; choose a value of the column document")
    return results


def _explain_pairs(pairs: pl.DataFrame, records: Records) -> pl.DataFrame:
    """Return a row per pair of results: the verdict of the rules, and the fields that agree and differ."""
    pairs = verify_rows(records, pairs.rename({"record": "left", "record_b": "right"}))
    types = ["incompatible"] * pairs.height
    # one list of field names per pair
    agreed: list[list[str]] = [[] for _ in types]
    differed: list[list[str]] = [[] for _ in types]
    left, right = pairs["left"].to_numpy(), pairs["right"].to_numpy()
    for places, evidence in split_by_type(records, left, right):
        kind = evidence.kind
        names = ("doc_id", "url", *kind.item_ids, *kind.reject, *kind.weights, "title")
        for name in dict.fromkeys(names):
            agree, differ = evidence.compare(name)
            for place in places[agree].tolist():
                agreed[place].append(name)
            for place in places[differ].tolist():
                differed[place].append(name)
        if evidence.compatible:
            for place in places.tolist():
                types[place] = kind.name

    return pairs.select(
        "query_id",
        "row",
        pl.col("row_b").alias("other_row"),
        "same",
        name_rules(records),
        "confidence",
        type=pl.Series(types, dtype=pl.String),
        agreed=pl.Series(agreed, dtype=pl.List(pl.String)),
        differed=pl.Series(differed, dtype=pl.List(pl.String)),
    )
