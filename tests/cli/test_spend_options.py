"""`goodgain curve` with costs: from a log to its costs, what a table says about stopping, and what standard error says."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.tables import ROOT

FOLDER = ROOT / "qrels_examples" / "two_agents"
CURVE = ("curve", FOLDER / "qrels.txt", FOLDER / "quick.run", FOLDER / "late.run", "-m", "CG")
COSTS = ("--costs", FOLDER / "costs.csv")


def test_a_table_says_after_how_many_searches_nothing_improves() -> None:
    done = run_command(*CURVE, "-o", "table", "--resamples", 200)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-2:]
    assert [line.partition(" [")[0] for line in last] == [
        f"{name}: 95 % of its gain is there after {n} searches" for name, n in (("quick", 3), ("late", 5))
    ]
    assert all("95 % of its gain is there after" in line for line in last)
    csv = run_command(*CURVE, "-o", "csv", "--resamples", 0)
    assert "of its gain" not in csv.stdout + csv.stderr


def test_costs_outcomes_and_price_are_lines_below_the_table_or_on_standard_error() -> None:
    asked = (*COSTS, "--outcomes", FOLDER / "outcomes.csv", "--price-per-search", "1", "--resamples", 0)
    wanted = gg.spend(
        FOLDER / "qrels.txt", {"late": FOLDER / "late.run"}, FOLDER / "costs.csv", outcomes=FOLDER / "outcomes.csv",
        price_per_search=1, resamples=0,
    )  # fmt: skip
    value = dict(wanted.select("quantity", "value").iter_rows())
    lines = [
        f"late: CostPerGood ↓ {value['CostPerGood']:.4g}",
        f"late: GainPerCall ↑ {value['GainPerCall']:.4g}",
        f"late: TokensPerSolved ↓ {value['TokensPerSolved']:,.0f}",
        "late: 95 % of its gain is there after 5 searches",
        "late: at a price of 1 each, 5 searches are worth it",
    ]
    assert run_command(*CURVE, *asked, "-o", "table").stdout.splitlines()[-5:] == lines
    in_csv = run_command(*CURVE, *asked, "-o", "csv")
    assert in_csv.stderr.splitlines()[-5:] == lines
    assert in_csv.stdout == run_command(*CURVE, "-o", "csv", "--resamples", 0).stdout


def test_over_tokens_prints_the_frame_of_curve() -> None:
    done = run_command(*CURVE, *COSTS, "--over", "tokens", "--at", "5000,20000", "-o", "csv")
    runs = {name: FOLDER / f"{name}.run" for name in ("quick", "late")}
    wanted = gg.curve(FOLDER / "qrels.txt", runs, "CG", over="tokens", costs=FOLDER / "costs.csv", at=[5_000, 20_000])
    assert done.stdout == wanted.write_csv()
    table = run_command(*CURVE, *COSTS, "--over", "tokens", "--at", "5000,20000", "-o", "table").stdout
    assert "│ 5,000: CG " in table
    assert "where each query has spent at most 5,000 tokens" in table


def test_over_results_needs_no_costs_and_is_drawn(tmp_path: Path) -> None:
    done = run_command(*CURVE, "--over", "results", "--resamples", 0, "--plot", tmp_path / "a.svg")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")


def test_from_logs_with_replicates_to_a_curve_over_cost(tmp_path: Path) -> None:
    for name, price in (("old", 0.5), ("new", 0.25)):
        steps = [
            {"searches": [{"query": "x", "results": [{"doc_id": doc}]}] * calls, "cost": price * calls}
            for doc, calls in (("a", 2), ("b", 1))
        ]
        logs = [{"goodgain_trace": 1, "query_id": "q1", "repeat": k, "steps": steps} for k in (1, 2)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(log) + "\n" for log in logs))
    out = ("-o", "{system}.run", "--costs", "costs.parquet")
    done = run_command("convert", "old=old.jsonl", "new=new.jsonl", *out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    spent = pl.read_parquet(tmp_path / "costs.parquet").select("system", "replicate", "iteration", "calls", "cost")
    assert spent.rows()[:2] == [("old", "1", 1, 2, 1.0), ("old", "1", 2, 1, 0.5)]
    (tmp_path / "qrels.txt").write_text("q1 0 a 2\nq1 0 b 2\n")
    asked = ("-m", "NumGood", "--over", "cost", "--costs", "costs.parquet", "--resamples", 0, "-o", "csv")
    done = run_command("curve", "qrels.txt", "old.1.run", "new.2.run", *asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split(",")[:5] for line in done.stdout.splitlines()[1:]]
    assert [[row[0], float(row[3]), float(row[4])] for row in rows] == [
        ["old.1", 0.5, 0.0], ["old.1", 0.75, 0.0], ["old.1", 1.0, 1.0], ["old.1", 1.5, 2.0],
        ["new.2", 0.5, 1.0], ["new.2", 0.75, 2.0], ["new.2", 1.0, 2.0], ["new.2", 1.5, 2.0],
    ]  # fmt: skip
    assert "new.2: GainPerCall ↑ 1.333" in done.stderr
    # Costs of two conversions, one after the other.
    for name in ("old", "new"):
        run_command(
            "convert",
            f"{name}.jsonl",
            "-o",
            f"{name}.run",
            "--system",
            "1",
            "--costs",
            f"{name}_costs.jsonl",
            cwd=tmp_path,
        )
    asked = ("--costs", "old_costs.jsonl", "--costs", "new_costs.jsonl", "--resamples", 0, "-o", "table")
    done = run_command("curve", "qrels.txt", "old.run", "new.run", "-m", "CG", *asked, cwd=tmp_path)
    assert "old: CostPerGood ↓ 0.75" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--over", "tokens"), "--over tokens: needs --costs, the file that goodgain convert --costs writes"),
        (("--over", "results", "--at", "x"), "--at x: write numbers with commas between, such as 1000,5000"),
        (("--over", "results", "--at", "-1"), "--at -1.0: give numbers from 0"),
        (
            ("--over", "results", "--upto", "3"),
            "--upto: is for a curve over iterations. With --over, give the spends with --at",
        ),
        (("--outcomes", "x.csv"), "--outcomes: needs --costs"),
        (("--price-per-search", "-1"), "--price-per-search -1: give a number from 0"),
        (("--costs", FOLDER / "groups.csv"), "has no column of calls, input_tokens"),
    ],
)
def test_options_that_do_not_fit_are_an_error_with_its_remedy(options: tuple[str, ...], message: str) -> None:
    done = run_command(*CURVE, *options, "-o", "csv", "--resamples", 0)
    assert done.returncode == 2
    assert message in done.stderr
