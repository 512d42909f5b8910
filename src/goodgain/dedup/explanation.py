"""Explains pair by pair why results are, or are not, the same document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from goodgain.dedup.candidates import Policy
from goodgain.dedup.records import Records
from goodgain.dedup.rules import RULE_NAMES, split_by_type, verify_rows
from goodgain.errors import InputError

#: A document with many results has millions of pairs; nobody reads more than these.
_MAX_PAIRS = 10_000


@dataclass(frozen=True)
class Explanation:
    """The results of a document, and the verdict on each pair of them.

    `results`: row, query_id, system, document. `pairs`: query_id, row and other_row, same, rule, confidence, type (the
    row of the table of types that was used), agreed and differed (names of fields). A pair of one document that is not
    `same` by itself was joined through other results. `left_out` counts the pairs beyond the 10,000 shown.
    """

    document: str
    other: str | None
    results: pl.DataFrame
    pairs: pl.DataFrame
    left_out: int = 0

    def __str__(self) -> str:
        head = f"{self.document}: {self.results.height:,} results"
        if self.other is not None:
            head = f"{self.document} and {self.other}"
        lines = [head]
        for pair in self.pairs.iter_rows(named=True):
            verdict = f"same ({pair['confidence']:g})" if pair["same"] else "different"
            if not pair["same"] and self.other is None:
                verdict += ", joined by way of others"
            lines.append(
                f"  rows {pair['row']} and {pair['other_row']} of query {pair['query_id']}: {verdict} "
                f"by {pair['rule']}, as {pair['type']}; agreed: {', '.join(pair['agreed']) or 'nothing'}; "
                f"differed: {', '.join(pair['differed']) or 'nothing'}"
            )
        if self.left_out:
            lines.append(f"  and {self.left_out:,} further pairs")
        return "\n".join(lines)


def explain(
    rows: pl.DataFrame, records: Records, policy: Policy, document: str, other: str | None, query_id: str | None
) -> Explanation:
    """Compare the results of a document again with each other, or with those of another document."""
    if query_id is not None:
        rows = rows.filter(pl.col("query_id") == query_id)
    first = _select_results(rows, document, query_id)
    second = _select_results(rows, other, query_id) if other is not None else first
    pairs = first.join(second, on="scope", suffix="_b")
    if other is None:
        pairs = pairs.filter(pl.col("row") < pl.col("row_b"))
    pairs = pairs.sort("row", "row_b")
    shown = pairs.head(_MAX_PAIRS)
    results = (first if other is None else pl.concat([first, second])).select("row", "query_id", "system", "document")
    return Explanation(document, other, results, _explain_pairs(shown, records, policy), pairs.height - shown.height)


def _select_results(rows: pl.DataFrame, document: str, query_id: str | None) -> pl.DataFrame:
    found = rows.filter(pl.col("document") == document)
    if found.is_empty():
        where = f" in query {query_id}" if query_id is not None else ""
        raise InputError(f"There is no document {document!r}{where}: take a name from the column document.")
    return found


def _explain_pairs(pairs: pl.DataFrame, records: Records, policy: Policy) -> pl.DataFrame:
    left, right = pairs["record"].to_numpy(), pairs["record_b"].to_numpy()
    verdicts = verify_rows(records, left, right, policy)
    types = np.full(len(left), "incompatible", dtype=np.object_)
    fields: tuple[list[list[str]], list[list[str]]] = ([[] for _ in left], [[] for _ in left])  # agreed, differed
    for places, evidence in split_by_type(records, left, right):
        kind = evidence.kind
        for name in dict.fromkeys(("doc_id", "url", *kind.item_ids, *kind.reject, *kind.weights, "title")):
            for names, mask in zip(fields, evidence.compare(name), strict=True):
                for place in places[mask].tolist():
                    names[place].append(name)
        if evidence.compatible:
            types[places] = kind.name
    return pairs.select("query_id", "row", other_row="row_b").with_columns(
        same=pl.Series(verdicts.same),
        rule=pl.Series([RULE_NAMES[place] for place in verdicts.rule.tolist()], dtype=pl.String),
        confidence=pl.Series(verdicts.confidence),
        type=pl.Series(types.tolist(), dtype=pl.String),
        agreed=pl.Series(fields[0], dtype=pl.List(pl.String)),
        differed=pl.Series(fields[1], dtype=pl.List(pl.String)),
    )
