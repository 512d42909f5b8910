"""Computes measures over one ranking, from a `RankingTable` and the judgments."""

import math
from collections.abc import Iterable, Sequence

import ir_measures
import polars as pl

from goodgain.errors import MeasureError
from goodgain.measures.declaration import find_declaration
from goodgain.measures.ledger_values import average_queries
from goodgain.measures.names import find_null_rule
from goodgain.measures.parameters import read_parameters
from goodgain.measures.terms import Ranks, Sums
from goodgain.ranking.ranking_table import Judgments, RankingTable, name_relevant, number_judgments, tabulate_ranking

_Gains = tuple[tuple[float, float], ...]


class RankedScores:
    """Computes measures over one ranking, batch by batch. Each measure must be one that goodgain computes (`is_computed_here`)."""

    def __init__(self, measures: Sequence[ir_measures.Measure], judgments: Judgments) -> None:
        self.judgments = judgments
        self.positions = find_positions(measures)
        self._values: dict[str, pl.Expr] = {}  # by the names of the measures, over the columns that `finish` joins
        self._of_rows = Sums()
        self._of_ideals: dict[_Gains, Sums] = {}
        for measure in measures:
            self._plan(measure)
        self._judged = judgments.count_judged(self._of_rows.rels)
        self._sums: list[pl.DataFrame] = []
        self._retrieved: list[pl.DataFrame] = []

    def _plan(self, measure: ir_measures.Measure) -> None:
        declared, parameters = find_declaration(measure), read_parameters(measure)
        if declared is None:
            raise MeasureError(f"{measure} is not computed by goodgain; compute it with its provider")
        declared.check_scale(measure, self.judgments.labels.get_column("relevance"))
        of_ideal = self._of_ideals.setdefault(tuple(sorted(parameters.get("gains", {}).items())), Sums())
        ideal = Ranks(measure, "k", sums=of_ideal, prefix="ideal ")
        value = declared.formula(Ranks(measure, declared.position(parameters), sums=self._of_rows, ideal=ideal))
        if declared.family == "classic":  # as in ir_measures, for a query that the run lacks
            value = pl.when(pl.col("NumRet") > 0).then(value).otherwise(pl.lit(0.0))
        self._values[str(measure)] = value

    def add(self, table: RankingTable) -> None:
        """Add the ranking table of some queries; each query is in only one table."""
        # Not lazy: a lazy plan is a sixth faster, but its order of rows varies, and with it the last digit of sums.
        rows = table.rows.drop_nulls("relevance")
        same_as_k = [pl.col("k").alias(name) for name in self.positions if name not in rows.columns]
        rows = rows.with_columns(same_as_k)
        if self._of_rows.rels:
            counts = self._judged.select("query", *(name_relevant(rel) for rel in sorted(self._of_rows.rels)))
            rows = rows.join(counts, on="query", how="left", maintain_order="left")
        self._sums.append(self._of_rows.aggregate(rows))
        self._retrieved.append(table.retrieved)

    def finish(self) -> pl.DataFrame:
        """Return a frame with the column `query_id` (all judged queries, sorted), and a Float64 column per measure."""
        columns = [pl.concat(self._retrieved), pl.concat(self._sums)]
        for gains, sums in self._of_ideals.items():
            if sums.summed or sums.highest:
                columns.append(sums.aggregate(self.judgments.rank_ideally(dict(gains))))
        joined = self._judged
        for found in columns:  # a query without a row has an empty ranking
            joined = joined.join(found, on="query", how="left", maintain_order="left")
        queries = joined.fill_null(0)
        values = queries.select("query_id", **{name: value.cast(pl.Float64) for name, value in self._values.items()})
        for name in values.columns[1:]:
            odd = values.get_column("query_id").filter(~values.get_column(name).is_finite())
            if len(odd):
                raise MeasureError(
                    f"{name}: the labels of query {odd[0]!r} are too large to add up; map the labels to a smaller scale"
                )
        return values


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
    return {of.position(read_parameters(one)) for one in measures if (of := find_declaration(one)) is not None}


def aggregate_values(measures: Iterable[ir_measures.Measure], values: pl.DataFrame) -> dict[str, float | None]:
    """Return a dict from each measure to its mean over queries, or to its sum if it is a count such as `NumRet`."""
    return {
        str(one): math.fsum(values.get_column(str(one)).drop_nulls())
        if isinstance(one.aggregator(), ir_measures.SumAgg)
        else average_queries(values.get_column(str(one)), null_if=find_null_rule(one))
        for one in measures
    }
