"""The rows of a ranking are summed where they are: in DuckDB, in parts, and with or without unjudged documents."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from goodgain.measures.ranking_values import RankedScores, score_ranking
from goodgain.ranking.ranking_table import RankingTable, number_judgments, tabulate_ranking
from tests.support.ranking_cases import (
    BY_GDEVAL,
    FRACTIONAL,
    GRADED,
    HOSTLESS,
    JUDGED_ONLY,
    WHOLE,
    WITH_PROVIDER,
    WITHOUT_PROVIDER,
    make_case,
)

ALL = [*WITH_PROVIDER, *JUDGED_ONLY, *BY_GDEVAL, *WITHOUT_PROVIDER, *HOSTLESS, *GRADED]
CASE = make_case(Random(17), queries=40, labels=(*WHOLE, -1, *FRACTIONAL))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "unjudged"), [("polars", False), ("polars", True), ("duckdb", True), ("lazy polars", True)]
)
def test_rows_are_summed_on_any_engine(engine: str, unjudged: bool) -> None:
    scores = RankedScores(ALL, number_judgments(CASE.qrels))
    table = tabulate_ranking(CASE.ranking, scores.judgments, positions=scores.plan.positions, unjudged=unjudged)
    rows = table.rows.with_columns(pl.col("query").cast(pl.Int64))
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        table = RankingTable(duckdb.connect().from_arrow(rows.to_arrow()), None)
    elif engine == "lazy polars":
        table = RankingTable(rows.lazy(), None)
    scores.add(table)
    assert_frame_equal(scores.finish(), score_ranking(ALL, CASE.ranking, CASE.qrels), check_exact=False, abs_tol=1e-12)


@pytest.mark.slow
def test_parts_of_whole_queries_give_what_the_whole_gives() -> None:
    scores = RankedScores(ALL, number_judgments(CASE.qrels))
    for part in CASE.ranking.partition_by("query_id", maintain_order=True):
        scores.add(tabulate_ranking(part, scores.judgments, positions=scores.plan.positions))
    assert_frame_equal(scores.finish(), score_ranking(ALL, CASE.ranking, CASE.qrels), check_exact=False, abs_tol=1e-12)
