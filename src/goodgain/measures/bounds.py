"""How far results without a judgment could raise a value: the values with each of them at the largest label.

Bounds exist for measures to which such a result is one of label 0, and whose value only rises with a label. The least that
they could have is then the value itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import ir_measures
import narwhals as nw
import polars as pl

from goodgain.measures.batch_scores import BatchScores
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.ranked import find_declaration
from goodgain.measures.ranked_values import RankedScores
from goodgain.ranking.ranking_table import Judgments, RankingTable

__all__ = ["RaisedScores", "find_largest_label", "find_rule", "raise_tally", "tabulate_unjudged"]


def find_rule(measure: ir_measures.Measure) -> Literal["sum", "highest"] | None:
    """Return how the value of a measure is made of the labels of documents; None for a measure without bounds.

    >>> find_rule(ir_measures.P @ 10), find_rule(ir_measures.RR), find_rule(ir_measures.nDCG @ 10)
    ('sum', 'highest', None)
    """
    if isinstance(measure, GoodGainMeasure):
        return measure.declaration.from_labels
    declared = find_declaration(measure)
    if declared is None or measure.params.get("judged_only"):  # a judgment would move the documents after it
        return None
    return declared.from_labels


def find_largest_label(qrels: pl.DataFrame) -> float:
    """Return the largest label of qrels, at least 0: what a result without a judgment could have."""
    largest: Any = qrels.get_column("relevance").max()
    return max(float(largest), 0.0)


class RaisedScores:
    """The values of measures with every unjudged result at the largest label, for a run that comes in batches.

    Args:
        good_gain: measures of the ledger that have bounds.
        ranked: measures of the ranking table that have bounds.
        pools: what `count_pools` returns.
        rels: the thresholds of the tallies.
        judgments: the labels.
    """

    def __init__(
        self,
        good_gain: Sequence[GoodGainMeasure],
        ranked: Sequence[ir_measures.Measure],
        pools: pl.DataFrame,
        rels: Sequence[float],
        judgments: Judgments,
    ) -> None:
        self._label = find_largest_label(judgments.labels)
        self._rels = rels
        self._good_gain = BatchScores(good_gain, pools, rels)
        self._ranked = RankedScores(ranked, judgments) if ranked else None

    def add(self, tallied: pl.DataFrame, table: RankingTable | None) -> None:
        """Add the tally and the ranking table of a batch, which shares no query with any other batch."""
        self._good_gain.add(raise_tally(tallied, self._rels, self._label))
        if self._ranked is not None and table is not None:
            self._ranked.add(_raise_table(table, self._label))

    def finish(self) -> pl.DataFrame:
        """Return query_id (sorted), and a Float64 column for each measure by its name."""
        values, _ = self._good_gain.finish()
        if self._ranked is None:
            return values
        return values.join(self._ranked.finish(), on="query_id", how="left", maintain_order="left")


def raise_tally(tallied: pl.DataFrame, rels: Sequence[float], label: float) -> pl.DataFrame:
    """Return a tally in which every new result without a judgment has this label."""
    raised = {}
    for k, rel in enumerate(rels):
        if label >= rel:
            raised[f"GR{k}"] = pl.col(f"GR{k}") + pl.col("Unjudged")
            raised[f"G{k}"] = pl.col(f"G{k}") + pl.col("Unjudged") * label
    return tallied.with_columns(**raised)


def _raise_table(table: RankingTable, label: float) -> RankingTable:
    """Return a ranking table in which every document without a label has this one."""
    if table.retrieved is None:
        rows = nw.from_native(table.rows)
        return RankingTable(rows.with_columns(nw.col("relevance").fill_null(label)).to_native(), None)
    judged = table.rows.drop("doc_id", strict=False).filter(pl.col("relevance").is_not_null())
    raised = tabulate_unjudged(judged, table.retrieved).with_columns(relevance=pl.lit(label))
    return RankingTable(pl.concat([judged, raised.select(judged.columns).cast(dict(judged.schema))]), table.retrieved)


def tabulate_unjudged(judged: pl.DataFrame, retrieved: pl.DataFrame) -> pl.DataFrame:
    """Return query and the columns of positions of the documents without a label: all places that are not taken.

    In each column the places of a query ascend: a row is a document by one column only, as a measure uses one.

    Args:
        judged: query, columns of positions, relevance: the documents with a label.
        retrieved: query, NumRet.
    """
    places = retrieved.select("query", place=pl.int_ranges(1, pl.col("NumRet") + 1)).explode("place")
    columns: list[pl.Series] = []
    for name in judged.columns:
        if name in ("query", "relevance"):
            continue
        taken = judged.select("query", place=pl.col(name).cast(pl.Int64))
        free = places.join(taken, on=["query", "place"], how="anti", maintain_order="left")
        columns = columns or [free.get_column("query")]
        columns.append(free.get_column("place").alias(name))
    return pl.DataFrame(columns)
