"""Reports on a deduplication: counts, agreement with given groups, and why results are one document or two."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from goodgain.errors import InputError, count_of
from goodgain.logs.dedup.candidates import SkippedPairs
from goodgain.logs.dedup.rows_and_trusted_ids import Records
from goodgain.logs.dedup.verification import RULE_NAMES, SAID, UNDECIDED, split_by_type, verify_rows


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
        lines = [
            f"{count_of(self.results, 'result')}, {count_of(self.documents, 'document')}, "
            f"{count_of(self.duplicates, 'repeat')} within a run",
            f"{count_of(self.records, 'different record')}, {count_of(self.pairs, 'pair')} compared: "
            f"{sum(self.same.values()):,} the same, "
            f"{sum(self.different.values()):,} different, {self.undecided:,} undecided (kept apart)",
        ]
        for verdict, rules in (("same", self.same), ("different", self.different)):
            lines += [f"  {verdict}{_give_rule(name)}: {count:,}" for name, count in rules.items()]
        if self.refused:
            lines.append(
                f"{count_of(self.refused, 'join')} refused: they would have put two different results into one document"
            )
        lines += [str(pairs) for pairs in self.skipped]
        if self.earlier:
            lines += [
                f"{self.earlier:,} earlier results keep their documents; {count_of(self.bridges, 'bridge')} between them"
            ]
        return "\n".join(lines)


#: The beginning of the rule name of a pair that the user gave; the file follows.
_SAID_BY = "said by "


def _give_rule(name: str) -> str:
    return f", {name}" if name.startswith(_SAID_BY) else f" by {name}"


def name_rules(records: Records) -> pl.Expr:
    """Return an expression that names the rule of each pair. For a user's pair, the name is `said by` and the source."""
    names = pl.col("rule").replace_strict(dict(enumerate(RULE_NAMES)), return_dtype=pl.String)
    if records.said is None:
        return names
    same, different = (f"{_SAID_BY}{pairs.source}" for pairs in (records.said.same, records.said.different))
    said = pl.when("same").then(pl.lit(same)).otherwise(pl.lit(different))
    return pl.when(pl.col("rule") == SAID).then(said).otherwise(names).alias("rule")


def summarise(documents: pl.DataFrame, records: Records, pairs: pl.DataFrame, **further: Any) -> Summary:
    counts = pairs.filter(pl.col("rule") != UNDECIDED).group_by("same", "rule").len().sort("rule")
    same, different = (
        dict(counts.filter(pl.col("same") == wanted).select(name_rules(records), "len").iter_rows())
        for wanted in (True, False)
    )
    return Summary(
        results=documents.height,
        documents=documents.select("scope", "document").n_unique(),
        duplicates=documents["duplicate_of"].count(),
        records=records.frame.height,
        pairs=pairs.height,
        same=same,
        different=different,
        undecided=pairs.filter(pl.col("rule") == UNDECIDED).height,
        **further,
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
    size = pl.col("len").cast(pl.Float64)
    joined, related, right = (
        float(counted.group_by("scope", *names).len().select((size * (size - 1) / 2).sum()).item())
        for names in (["document"], ["gold"], ["document", "gold"])
    )
    pairwise = _add_f1(right / joined if joined else 1.0, right / related if related else 1.0)
    results = counted.height
    both, found, given = (pl.len().over("scope", *names) for names in (["document", "gold"], ["document"], ["gold"]))
    shares = counted.select(precision=both / found, recall=both / given)
    bcubed = _add_f1(*(math.fsum(share) / results if results else 1.0 for share in shares))
    return Agreement(*pairwise, *bcubed, results)


def _add_f1(precision: float, recall: float) -> tuple[float, float, float]:
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


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
        lines = [head]
        for pair in self.pairs.iter_rows(named=True):
            verdict = f"same ({pair['confidence']:g})" if pair["same"] else "different"
            if not pair["same"] and self.other is None:
                verdict += ", joined through others"
            lines.append(
                f"  rows {pair['row']} and {pair['other_row']} of query {pair['query_id']}: {verdict}"
                f"{_give_rule(pair['rule'])}, as {pair['type']}; agreed: {', '.join(pair['agreed']) or 'nothing'}; "
                f"differed: {', '.join(pair['differed']) or 'nothing'}"
            )
        if self.left_out:
            lines.append(f"  and {count_of(self.left_out, 'further pair')}")
        return "\n".join(lines)


def explain(rows: pl.DataFrame, records: Records, first: str, other: str | None, query_id: str | None) -> Explanation:
    if query_id is not None:
        rows = rows.filter(pl.col("query_id") == query_id)
    chosen = []
    for name in (first, first if other is None else other):
        chosen.append(rows.filter(pl.col("document") == name))
        if chosen[-1].is_empty():
            where = f" in query {query_id}" if query_id is not None else ""
            raise InputError(f"the results{where} have no document {name!r}; choose a value of the column document")
    one, two = chosen
    pairs = one.join(two, on="scope", suffix="_b")
    if other is None:
        pairs = pairs.filter(pl.col("row") < pl.col("row_b"))
    pairs = pairs.sort("row", "row_b")
    shown = pairs.head(_MAX_PAIRS)
    results = (one if other is None else pl.concat([one, two])).select("row", "query_id", "system", "document")
    return Explanation(first, other, results, _explain_pairs(shown, records), pairs.height - shown.height)


def _explain_pairs(pairs: pl.DataFrame, records: Records) -> pl.DataFrame:
    pairs = verify_rows(records, pairs.rename({"record": "left", "record_b": "right"}))
    types = np.full(pairs.height, "incompatible", dtype=np.object_)
    found: dict[str, list[list[str]]] = {name: [[] for _ in types] for name in ("agreed", "differed")}
    for places, evidence in split_by_type(records, pairs["left"].to_numpy(), pairs["right"].to_numpy()):
        kind = evidence.kind
        for name in dict.fromkeys(("doc_id", "url", *kind.item_ids, *kind.reject, *kind.weights, "title")):
            for names, mask in zip(found.values(), evidence.compare(name), strict=True):
                for place in places[mask].tolist():
                    names[place].append(name)
        if evidence.compatible:
            types[places] = kind.name
    return pairs.select(
        *("query_id", "row", pl.col("row_b").alias("other_row"), "same"),
        name_rules(records),
        "confidence",
        type=pl.Series(types.tolist(), dtype=pl.String),
        **{name: pl.Series(names, dtype=pl.List(pl.String)) for name, names in found.items()},
    )
