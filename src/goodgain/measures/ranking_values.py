"""Computes measures over one ranking, from a `RankingTable` and the judgments."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import ir_measures
import numpy as np
import polars as pl

from goodgain.errors import MeasureError
from goodgain.measures.declaration import Declaration, find_declaration
from goodgain.measures.ledger_values import average_queries
from goodgain.measures.names import find_null_rule
from goodgain.measures.parameters import read_parameters
from goodgain.measures.rows_of_queries import Array
from goodgain.measures.terms import Documents, Ranks
from goodgain.ranking.ranking_table import POSITIONS, Gains, Judgments, RankingTable, number_judgments, tabulate_ranking


class RankedScores:
    """Computes measures over one ranking, batch by batch. Each measure must be one that goodgain computes (`is_computed_here`)."""

    def __init__(self, measures: Sequence[ir_measures.Measure], judgments: Judgments) -> None:
        self.judgments = judgments
        self.positions = find_positions(measures)
        self._declared: dict[str, tuple[Declaration, dict[str, Any]]] = {}
        for measure in measures:
            declared = find_declaration(measure)
            if declared is None:
                raise MeasureError(f"{measure} is not computed by goodgain; compute it with its provider")
            declared.check_scale(measure, judgments.labels.get_column("relevance"))
            self._declared[str(measure)] = declared, read_parameters(measure)
        queries = len(judgments.query_ids)
        self._values = {name: np.zeros(queries) for name in self._declared}
        self._is_ranked = np.zeros(queries, bool)  # whether the ranking of the query was added

    def add(self, table: RankingTable) -> None:
        """Add the ranking table of some queries; each query is in only one table."""
        queries = table.retrieved.get_column("query").to_numpy()
        num_ret = table.retrieved.get_column("NumRet").to_numpy()
        order = np.argsort(queries)
        self._score(queries[order], num_ret[order], table.rows)
        self._is_ranked[queries] = True

    def finish(self) -> pl.DataFrame:
        """Return a frame with the column `query_id` (all judged queries, sorted), and a Float64 column per measure."""
        not_ranked = np.flatnonzero(~self._is_ranked)
        if len(not_ranked):
            self._score_empty_rankings(not_ranked)

        query_ids = self.judgments.query_ids
        for name, values in self._values.items():
            infinite = np.flatnonzero(np.isinf(values))
            if len(infinite):
                query_id = query_ids[int(infinite[0])]
                raise MeasureError(
                    f"{name}: the labels of query {query_id!r} are too large to add up; map the labels to a smaller scale"
                )
        columns = [pl.Series(name, values, nan_to_null=True) for name, values in self._values.items()]
        return pl.DataFrame([query_ids.alias("query_id"), *columns])

    def _score_empty_rankings(self, queries: Array) -> None:
        no_rows = pl.DataFrame(schema={"query": pl.Int64, "k": pl.Int64, "relevance": pl.Float64})
        self._score(queries, np.zeros(len(queries)), no_rows)
        for name, (declared, _) in self._declared.items():
            if declared.family == "classic":  # as in ir_measures
                self._values[name][queries] = 0.0

    def _score(self, queries: Array, num_ret: Array, rows: pl.DataFrame) -> None:
        """Compute the values of some queries, whose numbers are sorted. `rows` are those of a `RankingTable`."""
        documents = self._take_documents(queries, num_ret, rows)
        ideals: dict[Gains, Documents] = {}

        with np.errstate(all="ignore"):  # `finish` raises an error for labels that are too large
            for name, (declared, parameters) in self._declared.items():
                gains: Gains = tuple(sorted(parameters.get("gains", {}).items()))
                if gains not in ideals:
                    ideals[gains] = self._take_ideal(queries, gains, documents)
                ideal = Ranks(ideals[gains], parameters, "k")
                values = declared.formula(Ranks(documents, parameters, declared.position(parameters), ideal=ideal))
                if not declared.null_if:  # infinite labels divided by infinite labels
                    values = np.where(np.isnan(values), np.inf, values)
                self._values[name][queries] = values

    def _take_documents(self, queries: Array, num_ret: Array, rows: pl.DataFrame) -> Documents:
        """Return the judged documents of some queries, which are numbered from 0 there."""
        label = rows.get_column("relevance").to_numpy()
        columns = {name: rows.get_column(name).to_numpy() for name in POSITIONS if name in rows.columns}
        number_of = np.zeros(len(self.judgments.query_ids), np.int64)
        number_of[queries] = np.arange(len(queries))
        number = number_of[rows.get_column("query").to_numpy()]

        is_judged = ~np.isnan(label)
        if not is_judged.all():
            number, label = number[is_judged], label[is_judged]
            columns = {name: column[is_judged] for name, column in columns.items()}

        k = columns["k"]
        is_next_query = number[1:] > number[:-1]
        is_next_rank = (number[1:] == number[:-1]) & (k[1:] > k[:-1])
        if not (is_next_query | is_next_rank).all():
            order = np.lexsort((k, number))
            number, label = number[order], label[order]
            columns = {name: column[order] for name, column in columns.items()}
        positions = {}
        for name in POSITIONS:
            positions[name] = columns.get(name, columns["k"]).astype(np.float64)

        return Documents(
            np.bincount(number, minlength=len(queries)),
            positions,
            label,
            num_ret=num_ret.astype(np.float64),
            num_judged=self.judgments.num_judged[queries],
            count_relevant=lambda rel: self.judgments.count_relevant(rel)[queries],
        )

    def _take_ideal(self, queries: Array, gains: Gains, documents: Documents) -> Documents:
        """Return the ideal rankings of some queries: the labels above 0, largest first."""
        label, lengths = self.judgments.rank_ideally(gains)
        if len(queries) < len(lengths):
            is_needed = np.zeros(len(lengths), bool)
            is_needed[queries] = True
            label = label[np.repeat(is_needed, lengths)]
            lengths = lengths[queries]

        starts = np.cumsum(lengths) - lengths
        k = np.arange(1.0, len(label) + 1) - np.repeat(starts, lengths)
        return Documents(
            lengths,
            {"k": k},
            label,
            num_ret=documents.num_ret,
            num_judged=documents.num_judged,
            count_relevant=documents.count_relevant,
        )


def score_ranking(
    measures: Sequence[ir_measures.Measure],
    ranking: pl.DataFrame,
    qrels: pl.DataFrame,
    query_ids: pl.Series | None = None,
) -> pl.DataFrame:
    """Return a frame with the value of each measure for every judged query, sorted by query.

    `query_ids` are the judged queries; by default, the queries of `qrels`. For a judged query that the ranking lacks,
    a classic measure is 0, as in ir_measures, and any other measure has its value for an empty ranking.

    >>> ranking = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> qrels = pl.DataFrame({"query_id": "q", "doc_id": ["b", "c"], "relevance": [1.0, 3.0]})
    >>> score_ranking([ir_measures.P @ 2, ir_measures.RR], ranking, qrels).rows()
    [('q', 0.5, 0.5)]
    """
    scores = RankedScores(measures, number_judgments(qrels, query_ids))
    scores.add(tabulate_ranking(ranking, scores.judgments, positions=scores.positions))
    return scores.finish()


def find_positions(measures: Iterable[ir_measures.Measure]) -> set[str]:
    """Return the names of the rank columns that measures need. Rank columns (see `POSITIONS`) differ in the order of ties."""
    positions = set()
    for measure in measures:
        declared = find_declaration(measure)
        if declared is not None:
            positions.add(declared.position(read_parameters(measure)))
    return positions


def aggregate_values(measures: Iterable[ir_measures.Measure], values: pl.DataFrame) -> dict[str, float | None]:
    """Return a dict from each measure to its mean over queries, or to its sum if it is a count such as `NumRet`."""
    aggregated: dict[str, float | None] = {}
    for measure in measures:
        column = values.get_column(str(measure))
        if isinstance(measure.aggregator(), ir_measures.SumAgg):
            aggregated[str(measure)] = math.fsum(column.drop_nulls())
        else:
            aggregated[str(measure)] = average_queries(column, null_if=find_null_rule(measure))
    return aggregated
