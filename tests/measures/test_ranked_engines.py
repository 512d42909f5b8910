"""The rows of a ranking are summed where they are: in DuckDB, in parts, and with or without unjudged documents."""

from __future__ import annotations

import itertools
from random import Random

import narwhals as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from goodgain.measures.ranking_values import plan_measures, score_ranking
from goodgain.ranking.ranking_table import number_judgments, tabulate_ranking
from tests.support.counts import some_of
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


@pytest.mark.parametrize(
    ("engine", "unjudged"), some_of(itertools.product(["polars", "duckdb", "lazy polars"], [False, True]), every=3)
)
def test_rows_are_summed_on_any_engine(engine: str, unjudged: bool) -> None:
    plan, judgments = plan_measures(ALL), number_judgments(CASE.qrels)
    judged = judgments.count_judged(plan.sums.rels)
    table = tabulate_ranking(CASE.ranking, judgments, positions=plan.positions, unjudged=unjudged)
    rows, counts = table.rows, judged
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        connection.register("arrow_rows", rows.to_arrow())
        connection.register("arrow_counts", counts.to_arrow())
        found = plan.sum_rows(
            nw.from_native(connection.table("arrow_rows")), nw.from_native(connection.table("arrow_counts"))
        )
        sums = found.collect("polars").to_native()
    elif engine == "polars":
        sums = plan.sum_rows(nw.from_native(rows), nw.from_native(counts)).to_native()
    else:
        sums = plan.sum_rows(nw.from_native(rows.lazy()), nw.from_native(counts.lazy())).collect().to_native()
    sums = sums.with_columns(pl.col("query").cast(pl.UInt32))
    values = plan.finish_values(judged, table.retrieved, sums, plan.sum_ideals(judgments))
    assert_frame_equal(values, score_ranking(ALL, CASE.ranking, CASE.qrels), check_exact=False, abs_tol=1e-12)


@pytest.mark.slow
def test_parts_of_whole_queries_give_what_the_whole_gives() -> None:
    plan, judgments = plan_measures(ALL), number_judgments(CASE.qrels)
    judged = judgments.count_judged(plan.sums.rels)
    tables = [
        tabulate_ranking(part, judgments, positions=plan.positions)
        for part in CASE.ranking.partition_by("query_id", maintain_order=True)
    ]
    counts = nw.from_native(judged)
    sums = pl.concat([plan.sum_rows(nw.from_native(table.rows), counts).to_native() for table in tables])
    retrieved = pl.concat([table.retrieved for table in tables])
    values = plan.finish_values(judged, retrieved, sums, plan.sum_ideals(judgments))
    assert_frame_equal(values, score_ranking(ALL, CASE.ranking, CASE.qrels), check_exact=False, abs_tol=1e-12)
