"""Costs are compared with a test: `Tokens`, `Cost`, `Seconds` and `Calls` of a query are measures, lower is better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from tests.analysis.comparing.test_comparison import quietly
from tests.support.command import run_command

QUERIES = [f"q{k:02}" for k in range(12)]
QRELS = {query: {"a": 3} for query in QUERIES}


def make_run(queries: list[str]) -> pl.DataFrame:
    rows = [(query, iteration, doc) for query in queries for iteration, doc in ((1, "b"), (2, "a"))]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")


def make_costs(system: str, tokens: int, queries: list[str] = QUERIES) -> pl.DataFrame:
    """Two searches and the answer (no iteration) of each query. The sum of a query is 3 * tokens + its number."""
    rows = [
        (query, system, iteration, 1.0, float(tokens), float(number if iteration is None else 0), 0.5, 0.25)
        for number, query in enumerate(queries)
        for iteration in (1, 2, None)
    ]
    names = ["query_id", "system", "iteration", "calls", "input_tokens", "output_tokens", "seconds", "cost"]
    return pl.DataFrame(rows, schema=names, orient="row")


SYSTEMS = {"old": make_run(QUERIES), "new": make_run(QUERIES)}
COSTS = [make_costs("old", 100), make_costs("new", 90)]


def test_the_value_is_the_sum_of_all_rows_of_the_query() -> None:
    scores = quietly_evaluated(costs=COSTS[0].drop("system"))
    wanted = {"Tokens": 300 + sum(range(12)) / 12, "Cost": 0.75, "Seconds": 1.5, "Calls": 3.0}
    assert scores.mean() == pytest.approx(wanted)


def quietly_evaluated(**options: Any) -> gg.Scores:
    return gg.evaluate(QRELS, SYSTEMS["old"], "Tokens Cost Seconds Calls", **options)


def test_a_system_that_spends_less_is_better() -> None:
    (pair,) = quietly(QRELS, SYSTEMS, "Tokens", costs=COSTS).pairs.iter_rows(named=True)
    assert (pair["better"], pair["difference"], pair["verdict"]) == ("down", -30, "better")


def test_queries_that_broke_off_never_searched_or_lack_costs_are_left_out_of_the_pair() -> None:
    """A crash is cheap: `new` would win by its broken queries."""
    systems = {"old": make_run(QUERIES), "new": make_run(QUERIES[1:])}  # q00 was never searched by `new`
    costs = [make_costs("old", 100), make_costs("new", 100, QUERIES[:-1])]  # q11 has no costs
    completed = [
        (query, name, float(not (name == "new" and query in ("q05", "q06")))) for query in QUERIES for name in systems
    ]
    outcomes = pl.DataFrame(completed, schema=["query_id", "system", "completed"], orient="row")
    found = quietly(QRELS, systems, "Tokens nCG", costs=costs, outcomes=outcomes)
    by_query = found.values.filter(measure="Tokens", system="new").drop_nulls("value")["query_id"]
    assert sorted(by_query) == [query for query in QUERIES if query not in ("q00", "q05", "q06", "q11")]
    assert dict(found.pairs.select("measure", "queries").iter_rows()) == {"Tokens": 8, "nCG": 12}
    assert "Tokens ↓ (8 queries)" in str(found)
    assert sum(note.startswith("Tokens leaves out") for note in found.notes) >= 1


@pytest.mark.parametrize(
    ("measures", "incomplete", "said"),
    [
        ("Tokens", "keep", "(left out)."),
        ("Tokens CG", "keep", "(counted as they are; in costs left out). incomplete='absent' leaves them out."),
        ("CG", "keep", "(counted as they are). incomplete='absent' leaves them out."),
        ("Tokens CG", "zero", "(counted as having no results; in costs left out)."),
        ("Tokens CG", "absent", "(left out)."),
    ],
)
def test_the_notice_says_that_costs_leave_out_queries_that_broke_off(measures: str, incomplete: str, said: str) -> None:
    outcomes = pl.DataFrame({"query_id": QUERIES, "system": "new", "completed": [0.0, *[1.0] * 11]})
    outcomes = outcomes.vstack(outcomes.with_columns(system=pl.lit("old"), completed=pl.lit(1.0)))
    compared = quietly(QRELS, SYSTEMS, measures, costs=COSTS, outcomes=outcomes, incomplete=incomplete)
    (note,) = [note for note in compared.notes if "broke off in new" in note]
    assert note.endswith(said)


def test_costs_that_lack_the_column_are_an_error() -> None:
    with pytest.raises(gg.InputError, match="has no cost of"):
        gg.evaluate(QRELS, SYSTEMS["old"], "Cost", costs=COSTS[0].drop("system", "cost"))
    with pytest.raises(gg.InputError, match="Tokens needs costs="):
        gg.evaluate(QRELS, SYSTEMS["old"], "Tokens")
    with pytest.raises(gg.MeasureError, match="Tokens is of the whole query, and a curve shows iterations"):
        gg.curve(QRELS, SYSTEMS, "Tokens")


def test_compare_takes_costs_on_the_command_line(tmp_path: Path) -> None:
    for name, run in SYSTEMS.items():
        run.with_columns(rank=pl.lit(1), score=pl.lit(1.0)).write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "qrels.txt").write_text("".join(f"{query} 0 a 3\n" for query in QUERIES))
    pl.concat(COSTS).write_csv(tmp_path / "costs.csv")
    done = run_command(
        "compare",
        "qrels.txt",
        "old.csv",
        "new.csv",
        "-m",
        "Tokens nCG",
        "--costs",
        "costs.csv",
        "-o",
        "csv",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr

    verdicts = {line.split(",")[0]: line for line in done.stdout.splitlines()}
    assert "better" in verdicts["Tokens"] and "equal" in verdicts["nCG"]


@pytest.mark.parametrize(
    ("name", "wanted"), [("tokens", "worse"), ("latency:down", "worse"), ("solved", "better"), ("seconds:up", "better")]
)
def test_an_outcome_has_the_direction_of_its_name(name: str, wanted: str) -> None:
    rows = [(query, system, value) for query in QUERIES for system, value in (("old", 1.0), ("new", 2.0))]
    outcomes = pl.DataFrame(rows, schema=["query_id", "system", name], orient="row")
    found = quietly(QRELS, SYSTEMS, "nCG", outcomes=outcomes).pairs.filter(measure=name)
    assert found["verdict"].to_list() == [wanted]
