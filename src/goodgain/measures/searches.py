"""The results of whole queries, for measures of iterations that need more than the ledger (counts per iteration)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from goodgain.counting.ledger import Counts
    from goodgain.formats import Qrels  # narwhals takes long to import, and waits


@dataclass(frozen=True)
class Searches:
    """The results of judged queries.

    `rows` has the columns `query_id`, `iteration` (1..N), `number` (the iteration in the run file), `doc_id` and `score`, in the
    order of ranks. `iterations` has `query_id`, `iteration` and `number`. Iterations without results have a row too.
    `tables["results"]` has one row per search: `query_id`, `iteration`, `search_query` and `arguments`. `tables["costs"]` has
    `query_id`, `iteration`, `over` ("tokens", "cost" or "seconds") and `spend` (the sum up to this iteration). `tables["lengths"]`
    has `doc_id` and `length`.
    """

    rows: pl.DataFrame
    iterations: pl.DataFrame
    qrels: Qrels
    upto: int | None  # the iteration after @; None: the last iteration of each query
    parameters: dict[str, Any]  # the parameters of the measure that are given or have a default value
    tables: Mapping[str, pl.DataFrame]

    @cached_property
    def lengths(self) -> pl.DataFrame:
        """A frame with `query_id`, `T` (number of iterations up to `upto`) and `K` (`upto`, or `T` if `upto` is None)."""
        last = pl.col("iteration").max()
        lengths = self.iterations.group_by("query_id", maintain_order=True).agg(T=last, K=last)
        if self.upto is None:
            return lengths
        upto = pl.lit(self.upto, pl.Int64)
        return lengths.with_columns(T=pl.min_horizontal("T", upto), K=upto)

    def count(self, rel: float) -> Counts:
        """Return ledger and pools of the queries, with the smallest good label `rel`. Iterations are those of `iterations`."""
        from goodgain.counting.ledger import count  # what counts is imported when something is scored
        from goodgain.schema import EMPTY_DOC

        key = ["query_id", "iteration"]
        results = self.rows.select(*key, "doc_id")
        rows = self.iterations.join(results, on=key, how="left")
        run = rows.select("query_id", pl.col("doc_id").fill_null(EMPTY_DOC), iteration="number")
        qrels = self.qrels.frame.join(self.lengths, on="query_id", how="semi")
        query_ids = self.lengths.get_column("query_id")
        counts = count(qrels, run, rels=[rel], labels=self.qrels.labels, query_ids=query_ids)
        return counts[rel]

    def find_positive(self, *, add_subtopics: bool = False, by_subtopic: bool = False) -> pl.DataFrame:
        """Return the labels above 0, with the columns `query_id`, `K`, `doc_id` and `relevance`.

        A document with several subtopics has its largest label, or with `add_subtopics` the sum of its labels. With
        `by_subtopic`, each label has its own row, with a column `subtopic` (empty texts if the qrels have no subtopics).
        """
        has_subtopics = self.qrels.has_subtopics
        rows = self.qrels.rows if has_subtopics else self.qrels.largest
        positive = rows.filter(pl.col("relevance") > 0)
        positive = positive.join(self.lengths, on="query_id", maintain_order="left")

        key = ["query_id", "K", "doc_id"]
        relevance = pl.col("relevance").cast(pl.Float64)
        if by_subtopic:
            subtopic = "iteration" if has_subtopics else pl.lit("")
            return positive.select(*key, relevance, subtopic=subtopic)
        label = relevance.sum() if add_subtopics else relevance.max()
        return positive.group_by(key, maintain_order=True).agg(label)

    def label_rows(self, *, add_subtopics: bool = False) -> pl.DataFrame:
        """Return `rows` up to iteration `upto`, with `rank` in the iteration, `is_new` and `relevance`.

        `is_new` is true where the query returns the document for the first time. A negative or missing label counts as 0.
        """
        rows = self.rows
        if self.upto is not None:
            rows = rows.filter(pl.col("iteration") <= self.upto)
        rank = pl.int_range(1, pl.len() + 1).over("query_id", "iteration")
        rows = rows.with_columns(rank=rank, is_new=pl.struct("query_id", "doc_id").is_first_distinct())
        if self.qrels.labels is None:
            labels = self.find_positive(add_subtopics=add_subtopics)
            key = ["query_id", "doc_id"]
        else:
            labels = self.label()
            key = ["query_id", "number", "doc_id"]
        labels = labels.select(*key, "relevance")
        labelled = rows.join(labels, on=key, how="left", maintain_order="left")
        label = pl.col("relevance").cast(pl.Float64).clip(0)
        return labelled.with_columns(label.fill_null(0.0))

    def label(self) -> pl.DataFrame:
        """Return a label per iteration and document, with query_id, iteration and number (as in `rows`), doc_id and relevance.

        If the qrels have labels per iteration, a label for one iteration takes precedence over a label for all iterations.
        """
        labels = self.qrels.frame.select("query_id", "doc_id", "relevance", at="iteration")
        joined = self.iterations.join(labels, on="query_id")
        if self.qrels.labels is None:
            return joined
        is_here = pl.col("at").is_null() | (pl.col("at") == pl.col("number"))
        here = joined.filter(is_here).sort("at", nulls_last=True)
        return here.unique(["query_id", "number", "doc_id"], keep="first")
