"""Commands that take several runs: evaluate -m, curve, compare; names of systems, and tables turned."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import goodgain as gg
from goodgain.cli.named_runs import find_single_runs
from goodgain.cli.program import program
from tests.support.command import run_command
from tests.support.tables import ROOT

REDUNDANCY = ROOT / "qrels_examples" / "redundancy"
QRELS, LEAN, REPEATING = (str(REDUNDANCY / name) for name in ("qrels.txt", "lean.run", "repeating.run"))


def goodgain(*arguments: str) -> str:
    done = CliRunner().invoke(program, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_json_lines_name_the_system_and_hold_each_value_of_evaluate() -> None:
    names = "nDCG@10 SRR CG@1-2"
    lines = goodgain("evaluate", QRELS, LEAN, REPEATING, "-m", names, "-q", "-o", "jsonl").splitlines()
    found = {(row["system"], row["query_id"], row["measure"]): row["value"] for row in map(json.loads, lines)}
    assert len(found) == len(lines) == 2 * 3 * 4
    for system, run in (("lean", LEAN), ("repeating", REPEATING)):
        scores = gg.evaluate(QRELS, run, names)
        for query_id, measure, value in scores.per_query.iter_rows():
            assert found[system, query_id, measure] == value
        for measure, value in scores.mean().items():
            assert found[system, "all", measure] == value


def test_a_system_is_named_before_the_first_equals_sign() -> None:
    runs = find_single_runs(["old=runs/a=b.run", "new.run", "x=new.run"])
    assert runs == {"old": "runs/a=b.run", "new": "new.run", "x": "new.run"}


def test_a_file_of_the_whole_name_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(LEAN, "beta=1.run")
    assert find_single_runs(["beta=1.run", "beta=2.run"]) == {"beta=1": "beta=1.run", "beta": "2.run"}
    assert find_single_runs([f"x={'y' * 10_000}"]) == {"x": "y" * 10_000}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("a=x.run a=y.run", "two systems have the name"),
        ("x.run x=y.run", "two systems have the name"),
        ("=x.run", "write NAME=FILE"),
        ("x=", "write NAME=FILE"),
    ],
)
@pytest.mark.each
def test_a_name_that_is_given_twice_or_half_is_an_error(given: str, said: str) -> None:
    with pytest.raises(gg.InputError, match=said):
        find_single_runs(given.split())


def test_curve_prints_the_frame() -> None:
    lines = goodgain("curve", QRELS, LEAN, REPEATING, "-m", "CG SRE", "--upto", "4", "-o", "jsonl").splitlines()
    wanted = gg.curve(QRELS, {"lean": LEAN, "repeating": REPEATING}, "CG SRE", upto=4)
    assert [json.loads(line) for line in lines] == wanted.to_dicts()


@pytest.mark.slow
def test_curve_averages_several_runs_of_a_system() -> None:
    folder = ROOT / "qrels_examples" / "repeated_runs"
    qrels = str(folder / "qrels.txt")
    named = (f"old={folder}/old.*.run", f"new={folder}/new.1.run,{folder}/new.2.run")
    lines = goodgain("curve", qrels, *named, "-m", "nCG", "-o", "jsonl").splitlines()
    runs = {name: [folder / f"{name}.{k}.run" for k in of] for name, of in (("old", (1, 2, 3)), ("new", (1, 2)))}
    assert [json.loads(line) for line in lines] == gg.curve(qrels, runs, "nCG").to_dicts()
    table = goodgain("curve", qrels, *named, "-m", "nCG", "-o", "table")
    assert "old: 95 % of its gain is there after 3 searches" in table


# --- Costs ------------------------------------------------------------------------------------------------------------

FOLDER = ROOT / "qrels_examples" / "two_agents"
CURVE = ("curve", FOLDER / "qrels.txt", FOLDER / "quick.run", FOLDER / "late.run", "-m", "CG")
COSTS = ("--costs", FOLDER / "costs.csv")


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


def make_runs(folder: Path, number: int) -> list[str]:
    """Write runs of which run k lacks its first k queries, and return their names. Half of their documents are unjudged."""
    queries = [f"q{k}" for k in range(1, 21)]
    (folder / "qrels").write_text("".join(f"{query} 0 a 2\n" for query in queries))
    names = [f"r{k}.run" for k in range(number)]
    for k, name in enumerate(names):
        lines = (f"{query} 1 {doc} 1 1 t\n" for query in queries[k:] for doc in "ax")
        (folder / name).write_text("".join(lines))
    return names


@pytest.mark.parametrize("number", [5, 12])
def test_notices_on_many_runs_are_a_line_a_kind(number: int, tmp_path: Path) -> None:
    names = make_runs(tmp_path, number)
    for command, lines in (("evaluate", 6), ("compare", 9)):
        done = run_command(command, "qrels", *names, "-m", "CG SRR", "-o", "csv", cwd=tmp_path)
        said = done.stderr.splitlines()
        assert done.returncode == 0 and len(said) <= lines, done.stderr
        coverage = next(k for k, line in enumerate(said) if "coverage is low" in line)
        assert said[coverage + 1] == "  " + "; ".join(f"r{k} 0.50" for k in range(number))

        between, kind = (", ", "absent from the run: ") if command == "evaluate" else ("; ", "  ")
        absent = between.join(f"r{k} {k}" for k in range(1, number))
        assert any(line.endswith(kind + absent) or f"{kind}{absent};" in line for line in said), done.stderr


def test_few_runs_have_a_line_each_and_what_holds_for_all_is_said_once(tmp_path: Path) -> None:
    names = make_runs(tmp_path, 2)
    said = run_command("evaluate", "qrels", *names, "-m", "CG", cwd=tmp_path).stderr
    assert "\n  r0: 0.50 of 40 (by iteration 0.50)\n  r1: 0.50 of 38 (by iteration 0.50)\n" in said
    assert "\nr1: queries: 20 scored, 1 of them absent from the run (q1);" in said
    assert said.count("qrels=") == 1 and " absent_from_run=r0:0,r1:1 " in said and " unjudged=0.5000\n" in said

    same = run_command("evaluate", "qrels", names[0], "again=r0.run", "-m", "CG", cwd=tmp_path).stderr
    assert "\nqueries: 20 scored, 0 of them absent from the run; 0 of the run lack judgments and are left out\n" in same
    assert same.count("20 scored") == 1


def test_many_systems_that_stopped_are_listed_with_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("".join(f"q{k} 0 a 2\n" for k in range(8)))
    names = [f"r{k}.run" for k in range(5)]
    for k, name in enumerate(names):  # run k stops after its first search in k queries
        rows = [f"q{query} {i} d{i} 1 1 t\n" for query in range(8) for i in ((1,) if query < k else (1, 2))]
        (tmp_path / name).write_text("".join(rows))
    said = run_command("compare", "qrels", *names, "-m", "CG@2", "-o", "csv", cwd=tmp_path).stderr
    stopped = "Before iteration 2 some queries of 4 systems stopped (r1 1, r2 2, r3 3, r4 4), while another system searched on."
    assert f"notice: {stopped}\n" in said
