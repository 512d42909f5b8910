"""Selects the labels that go to a host with the ranking of a batch."""

from __future__ import annotations

import polars as pl

from goodgain.counting.ledger import label_by_iteration
from goodgain.counting.query_batches import QueryBatch
from goodgain.formats import Qrels


class QrelsByQuery:
    """The judgments of a run's queries for a host, each query once: one label per document and subtopic."""

    def __init__(self, qrels: Qrels) -> None:
        self._by_iteration = qrels.labels is not None
        self._rest = qrels.frame if self._by_iteration else qrels.rows

    def take(self, batch: QueryBatch) -> pl.DataFrame:
        """Return the labels of a batch's queries: query_id, doc_id, relevance, iteration (column 2 of the qrels)."""
        queries = batch.tally.select("query_id").unique()
        taken = self._rest.join(queries, on="query_id", how="semi", maintain_order="left")
        self._rest = self._rest.join(queries, on="query_id", how="anti", maintain_order="left")
        if batch.first_iterations is not None:
            return _label_first_occurrences(taken, batch.first_iterations)
        return taken

    def take_rest(self) -> pl.DataFrame:
        """Return the labels of the queries that no batch had."""
        if self._by_iteration:
            return _label_first_occurrences(self._rest, self._rest.select("query_id", "doc_id", "iteration").clear())
        return self._rest


def _label_first_occurrences(judgments: pl.DataFrame, firsts: pl.DataFrame) -> pl.DataFrame:
    """Return one label per document, from labels by iteration.

    A retrieved document has the label of its first occurrence, and none if that occurrence is unjudged: a label of a later
    iteration does not count. A document that was not retrieved has its largest label.
    """
    key = ["query_id", "doc_id"]
    retrieved = firsts.select(*key, label_by_iteration(firsts, judgments)).drop_nulls()
    largest = judgments.group_by(key, maintain_order=True).agg(pl.col("relevance").max().cast(pl.Float64))
    return (
        pl.concat([retrieved, largest.join(firsts, on=key, how="anti")]).sort(key).with_columns(iteration=pl.lit("0"))
    )
