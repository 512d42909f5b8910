"""Selects the labels that go to a host with the ranking of a batch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from goodgain.batches.query_batches import QueryBatch
from goodgain.formats import Qrels

__all__ = ["QrelsByQuery"]


class QrelsByQuery:
    """The judgments of a run's queries for a host, each query once: one label per document and subtopic."""

    def __init__(self, qrels: Qrels) -> None:
        self._by_iteration = qrels.labels is not None
        self._judgments = _Judgments(qrels.frame)
        self._subtopics = self._judgments if qrels.rows is qrels.frame else _Judgments(qrels.rows)

    def take(self, batch: QueryBatch) -> pl.DataFrame:
        """Return the labels of a batch's queries: query_id, doc_id, relevance, iteration (column 2 of the qrels)."""
        query_ids = batch.tally.get_column("query_id").unique().to_list()
        if self._by_iteration and batch.run is not None:
            return _label_first_occurrences(self._judgments.take(query_ids), batch.run.first_iterations)
        return self._subtopics.take(query_ids)

    def take_rest(self) -> pl.DataFrame:
        """Return the labels of the queries that no batch had."""
        if self._by_iteration:
            rest = self._judgments.take_rest()
            return _label_first_occurrences(rest, rest.select("query_id", "doc_id", "iteration").clear())
        return self._subtopics.take_rest()


class _Judgments:
    """Rows of judgments, from which the rows of each query can be taken once."""

    def __init__(self, judgments: pl.DataFrame) -> None:
        self._frame = judgments
        self._places: dict[str, tuple[int, int]] | None = None

    def take(self, query_ids: Iterable[str]) -> pl.DataFrame:
        """Return the rows of these queries."""
        places = self._place_queries()
        found = np.array([places.pop(query_id) for query_id in query_ids if query_id in places], dtype=np.int64)
        if not len(found):
            return self._frame.clear()
        starts, lengths = found[:, 0], found[:, 1]
        before = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return self._frame[before + np.arange(lengths.sum())]

    def take_rest(self) -> pl.DataFrame:
        """Return the rows that have not been taken."""
        return self.take(list(self._place_queries()))

    def _place_queries(self) -> dict[str, tuple[int, int]]:
        """Return query_id -> the position of its first row, and the number of its rows."""
        if self._places is None:
            blocks = self._frame.get_column("query_id").rle().struct.unnest()
            if not blocks.get_column("value").is_unique().all():  # rows of a query are apart: bring them together
                self._frame = self._frame.sort("query_id", maintain_order=True)
                blocks = self._frame.get_column("query_id").rle().struct.unnest()
            lengths = blocks.get_column("len").to_list()
            ends = blocks.get_column("len").cum_sum().to_list()
            queries = zip(blocks.get_column("value"), ends, lengths, strict=True)
            self._places = {query_id: (end - length, length) for query_id, end, length in queries}
        return self._places


def _label_first_occurrences(judgments: pl.DataFrame, firsts: pl.DataFrame) -> pl.DataFrame:
    """Return one label per document, from labels by iteration.

    A retrieved document has the label of its first occurrence, and none if that occurrence is unjudged: a label of a later
    iteration does not count. A document that was not retrieved has its largest label.
    """
    key = ["query_id", "doc_id"]
    of_any = judgments.filter(pl.col("iteration").is_null()).select(*key, of_any="relevance")
    of_iteration = judgments.select(*key, "iteration", of_iteration="relevance")
    found = firsts.join(of_iteration, on=[*key, "iteration"], how="left").join(of_any, on=key, how="left")
    retrieved = found.select(*key, relevance=pl.coalesce("of_iteration", "of_any")).drop_nulls()
    largest = judgments.group_by(key, maintain_order=True).agg(pl.col("relevance").max())
    return (
        pl.concat([retrieved, largest.join(firsts, on=key, how="anti")]).sort(key).with_columns(iteration=pl.lit("0"))
    )
