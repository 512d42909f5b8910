"""What each search adds and costs is recomputed from the ledger and the table of costs; the page shows these numbers."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.tables import ROOT

AGENTS = ROOT / "qrels_examples" / "two_agents"
RUNS = {name: AGENTS / f"{name}.run" for name in ("quick", "late")}
QUERIES = [f"q{k:02}" for k in range(1, 26)]
pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")


def read_rows() -> list[dict[str, Any]]:
    with (AGENTS / "costs.csv").open(newline="") as file:
        return [{**row, "tokens": int(row["input_tokens"]) + int(row["output_tokens"])} for row in csv.DictReader(file)]


def write(path: Path, costs: Any, runs: Any = RUNS) -> str:
    return gg.report(AGENTS / "qrels.txt", runs, path, "nCG@6", costs=costs, details=1).read_text()


def test_each_search_has_what_it_added_and_cost(tmp_path: Path) -> None:
    data = json.loads(write(tmp_path / "a.json", AGENTS / "costs.csv"))
    paid = {(row["system"], row["query_id"], int(row["iteration"])): row for row in read_rows()}
    for name, path in RUNS.items():
        ledger = gg.ledger(AGENTS / "qrels.txt", path)
        rows = [row for row in data["searches"] if row["system"] == name and row["search"] is not None]
        assert [row["search"] for row in rows] == sorted(ledger["iteration"].unique())

        for row in rows:
            of = ledger.filter(iteration=row["search"])
            assert row["searching"] == of.height
            for column, counted in (("new_good", "GR"), ("gain", "G"), ("repeats", "Dup")):
                assert row[column] == pytest.approx(mean(of[counted]))
            for what in ("tokens", "cost", "seconds"):
                of_search = [float(paid[name, query, row["search"]][what]) for query in of["query_id"]]
                assert row[what] == pytest.approx(mean(of_search))


@pytest.mark.slow
def test_the_last_row_has_what_was_spent_after_the_last_search(tmp_path: Path) -> None:
    data = json.loads(write(tmp_path / "a.json", AGENTS / "costs.csv"))
    for name in RUNS:
        (last,) = [row for row in data["searches"] if row["system"] == name and row["search"] is None]
        of_answers = [row for row in read_rows() if row["system"] == name and row["iteration"] == "0"]
        assert (last["searching"], last["new_good"], last["gain"], last["repeats"]) == (
            len(of_answers),
            None,
            None,
            None,
        )
        for what in ("tokens", "cost", "seconds"):
            assert last[what] == pytest.approx(mean(float(row[what]) for row in of_answers))

    assert "after the last search" in write(tmp_path / "a.html", AGENTS / "costs.csv")
    searches_alone = pl.DataFrame(read_rows()).filter(pl.col("iteration") != "0")
    searches_alone.select("query_id", "system", "iteration", "cost").write_csv(tmp_path / "costs.csv")
    data = json.loads(write(tmp_path / "b.json", tmp_path / "costs.csv"))
    assert all(row["search"] is not None for row in data["searches"])


def test_costs_of_queries_without_judgments_or_searches_are_not_in_the_last_row(tmp_path: Path) -> None:
    run = pl.DataFrame(
        {"query_id": ["q", "q", "unjudged", "idle"], "iteration": [1, 2, 1, 1], "doc_id": ["a", "b", "z", "-"]}
    )
    paid = {"q": (1.0, 2.0, 4.0), "unjudged": (10.0, 100.0), "never searched": (50.0,)}
    rows = [(query, "s", k % len(of), of[k - 1]) for query, of in paid.items() for k in range(1, len(of) + 1)]
    costs = pl.DataFrame(rows, schema=["query_id", "system", "iteration", "cost"], orient="row")
    path = gg.report({"q": {"a": 3}, "never searched": {"a": 3}}, {"s": run}, tmp_path / "a.json", "CG", costs=costs)
    found = [(row["search"], row["searching"], row["cost"]) for row in json.loads(path.read_text())["searches"]]
    assert found == [(1, 1, 1.0), (2, 1, 2.0), (None, 1, 4.0)]


def test_quality_stands_beside_tokens_price_and_seconds(tmp_path: Path) -> None:
    text = write(tmp_path / "a.md", AGENTS / "costs.csv")
    scores = {name: gg.evaluate(AGENTS / "qrels.txt", path, "nCG@6 NumIter") for name, path in RUNS.items()}
    for name in RUNS:
        total = {
            what: sum(float(row[what]) for row in read_rows() if row["system"] == name and row["query_id"] in QUERIES)
            / 25
            for what in ("tokens", "cost", "seconds")
        }
        shown = [
            f"{scores[name]['nCG@6']:.4f}", f"{scores[name]['NumIter']:.2f}", f"{total['tokens']:,.0f}",
            f"{total['cost']:.4g}", f"{total['seconds']:.4g}",
        ]  # fmt: skip
        assert f"| {name} | {' | '.join(shown)} |" in text


@pytest.mark.slow
def test_a_tile_shows_tokens_in_place_of_searches(tmp_path: Path) -> None:
    page = write(tmp_path / "a.html", AGENTS / "costs.csv")
    tokens, costs = (
        {name: sum(float(row[what]) for row in read_rows() if row["system"] == name) / 25 for name in RUNS}
        for what in ("tokens", "cost")
    )
    prices = [costs[name] for name in ("quick", "late")]
    (tile,) = re.findall(r'<div class="tile"><p><b>Tokens per query</b></p>(.*?)</div>', page, flags=re.DOTALL)
    values = re.findall(r"<dd>(.*?)</dd>", tile)
    quick, late = (round(tokens[name]) for name in ("quick", "late"))
    assert values == [f"{quick:,}", f"{late:,}", f"{late - quick:+,}"] and "not tested" in tile
    assert f"cost per query: quick {prices[0]:.3g}, late {prices[1]:.3g}; not tested" in tile
    assert "Searches per query" not in page


@pytest.mark.slow
def test_costs_of_whole_queries_have_no_place_in_the_table_of_searches(tmp_path: Path) -> None:
    costs = pl.DataFrame(
        {"query_id": QUERIES * 2, "system": ["quick"] * 25 + ["late"] * 25, "cost": [1.0] * 25 + [3.0] * 25}
    )
    data = json.loads(write(tmp_path / "a.json", costs))
    assert "cost" not in data["searches"][0]
    text = write(tmp_path / "a.md", costs)
    assert "| quick | 0.7198 | 5.68 | 1 |" in text and "| late | 0.7326 | 5.92 | 3 |" in text
    assert "Searches per query" in write(tmp_path / "a.html", costs)  # there are no tokens


def test_costs_need_one_run_of_each_system(tmp_path: Path) -> None:
    with pytest.raises(gg.InputError, match="quick has 2 runs"):
        write(tmp_path / "a.html", AGENTS / "costs.csv", {"quick": [RUNS["quick"], RUNS["late"]], "late": RUNS["late"]})


@pytest.mark.slow
def test_the_command_takes_costs_and_writes_itself_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    done = run_command(
        "report", AGENTS / "qrels.txt", *RUNS.values(), "-m", "nCG@6", "--costs", AGENTS / "costs.csv", "-o", path
    )
    assert done.returncode == 0 and "tokens" in path.read_text() and "--costs" in path.read_text()
    called = write(tmp_path / "b.md", [AGENTS / "costs.csv"])
    assert f"--costs {AGENTS / 'costs.csv'}".replace("_", r"\_") in called
