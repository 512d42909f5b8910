"""Which labels go with the ranking of a part to a host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from goodgain.batches.query_batches import Part
from goodgain.formats import Qrels

__all__ = ["labelled"]


def labelled(parts: Iterable[Part], qrels: Qrels) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Labels and ranking of each part that has one; with the last come the labels of all queries that the run lacks.

    What such queries count is the host's to say.

    Yields:
        query_id, doc_id, relevance, iteration: one label a document (a row for each subtopic of it); and the ranking.
    """
    judgments, subtopics = _ByQuery(qrels.frame), _ByQuery(qrels.rows)
    before: tuple[Part, pl.DataFrame] | None = None
    for part in parts:
        if part.ranking is None:
            continue
        if before is not None:
            query_ids = before[0].tally.get_column("query_id").unique().to_list()
            rows = judgments.taken(query_ids)
            with_subtopics = rows if qrels.rows is qrels.frame else subtopics.taken(query_ids)
            yield _labels(before[0], rows, with_subtopics, qrels.labels), before[1]
        before = part, part.ranking
    if before is not None:
        rows = judgments.rest()
        yield _labels(before[0], rows, rows if qrels.rows is qrels.frame else subtopics.rest(), qrels.labels), before[1]


def _labels(part: Part, judgments: pl.DataFrame, subtopics: pl.DataFrame, by: str | None) -> pl.DataFrame:
    if by is not None and part.run is not None:
        return _of_first_occurrence(judgments, part.run.first_iterations)
    return subtopics


class _ByQuery:
    """Judgments that are taken out query by query, each once."""

    def __init__(self, judgments: pl.DataFrame) -> None:
        self._all = judgments
        self._frame = judgments
        self._places: dict[str, tuple[int, int]] | None = None

    def taken(self, query_ids: Iterable[str]) -> pl.DataFrame:
        """The rows of these queries."""
        places = self._placed()
        found = np.array([places.pop(query_id) for query_id in query_ids if query_id in places], dtype=np.int64)
        if not len(found):
            return self._frame.clear()
        starts, lengths = found[:, 0], found[:, 1]
        before = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return self._frame[before + np.arange(lengths.sum())]

    def rest(self) -> pl.DataFrame:
        """The rows that have not been taken."""
        return self._all if self._places is None else self.taken(list(self._places))

    def _placed(self) -> dict[str, tuple[int, int]]:
        if self._places is None:
            blocks = self._frame.get_column("query_id").rle().struct.unnest()
            if not blocks.get_column("value").is_unique().all():
                self._frame = self._frame.sort("query_id", maintain_order=True)
                blocks = self._frame.get_column("query_id").rle().struct.unnest()
            lengths = blocks.get_column("len").to_list()
            ends = blocks.get_column("len").cum_sum().to_list()
            queries = zip(blocks.get_column("value"), ends, lengths, strict=True)
            self._places = {query_id: (end - length, length) for query_id, end, length in queries}
        return self._places


def _of_first_occurrence(judgments: pl.DataFrame, firsts: pl.DataFrame) -> pl.DataFrame:
    """Labels by iteration: a retrieved document has the label of its first occurrence, or none if that is unjudged (a
    later label never counts); any other has the largest."""
    key = ["query_id", "doc_id"]
    of_any = judgments.filter(pl.col("iteration").is_null()).select(*key, of_any="relevance")
    of_iteration = judgments.select(*key, "iteration", of_iteration="relevance")
    found = firsts.join(of_iteration, on=[*key, "iteration"], how="left").join(of_any, on=key, how="left")
    retrieved = found.select(*key, relevance=pl.coalesce("of_iteration", "of_any")).drop_nulls()
    largest = judgments.group_by(key, maintain_order=True).agg(pl.col("relevance").max())
    return (
        pl.concat([retrieved, largest.join(firsts, on=key, how="anti")]).sort(key).with_columns(iteration=pl.lit("0"))
    )
