"""Commands that take several runs: evaluate -m, curve, compare; names of systems, and tables turned."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import goodgain as gg
from goodgain.cli.program import program
from goodgain.cli.shared_options import find_single_runs
from tests.support.tables import ROOT

REDUNDANCY = ROOT / "qrels_examples" / "redundancy"
QRELS, LEAN, REPEATING = (str(REDUNDANCY / name) for name in ("qrels.txt", "lean.run", "repeating.run"))


def goodgain(*arguments: str) -> str:
    done = CliRunner().invoke(program, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def error(*arguments: str) -> str:
    done = CliRunner().invoke(program, arguments, standalone_mode=False)
    assert isinstance(done.exception, (gg.GoodgainError, click.UsageError))
    return str(getattr(done.exception, "message", done.exception))


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_evaluate_has_one_column_a_run() -> None:
    assert rows(goodgain("evaluate", QRELS, LEAN, REPEATING, "-m", "CG SRR", "-m", "SRE@3")) == [
        ["measure", "lean", "repeating"],
        ["CG", "7.5000", "7.5000"],
        ["SRR", "0.0000", "0.4643"],
        ["SRE@3", "0.5833", "0.3095"],
    ]


def test_systems_as_rows_hold_the_same_values() -> None:
    assert rows(goodgain("evaluate", QRELS, LEAN, REPEATING, "-m", "CG SRR", "--rows", "systems", "-p", "2")) == [
        ["system", "CG", "SRR"],
        ["lean", "7.50", "0.00"],
        ["repeating", "7.50", "0.46"],
    ]
    turned = goodgain("evaluate", QRELS, LEAN, "CG", "--rows", "systems", "-o", "table")
    assert "system" in turned
    assert "CG ↑" in turned
    assert "lean" in turned


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


@pytest.mark.parametrize("turned", ["measures", "systems"])
def test_a_query_called_all_is_not_taken_for_the_mean(turned: str, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("all 0 a 3\nb 0 a 2\n")
    (tmp_path / "x.run").write_text("all 1 a 1 1 t\n")
    files = [str(tmp_path / name) for name in ("qrels", "x.run")]
    found = rows(goodgain("evaluate", *files, "-m", "CG", "-q", "--rows", turned))
    assert [row[-1] for row in found[1:]] == ["3.0000", "0.0000", "1.5000"]
    assert [row[0] for row in found[1:]] == ["all", "b", "all"]


def test_one_run_without_m_prints_as_before_and_with_m_with_a_header() -> None:
    assert goodgain("evaluate", QRELS, LEAN, "CG", "SRR") == "CG\t7.5000\nSRR\t0.0000\n"
    assert goodgain("evaluate", QRELS, LEAN, "-m", "CG") == "measure\tlean\nCG\t7.5000\n"
    assert "Missing argument 'MEASURE...'" in error("evaluate", QRELS, LEAN)


def test_signatures_on_stderr_say_whose_they_are() -> None:
    done = CliRunner().invoke(program, ["evaluate", QRELS, f"a={LEAN}", f"b={REPEATING}", "-m", "CG"])
    lines = done.stderr.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["a", "queries"],
        ["a", "signature"],
        ["b", "queries"],
        ["b", "signature"],
    ]


def test_a_notice_is_given_once_with_the_names_of_the_runs_it_is_about(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    (tmp_path / "x.run").write_text("other 1 a 1 1 t\n")
    files = [str(tmp_path / "qrels"), f"x={tmp_path / 'x.run'}", f"y={tmp_path / 'x.run'}"]
    with pytest.warns(gg.GoodgainNotice) as given:
        goodgain("evaluate", *files, "-m", "CG")
    texts = [str(one.message) for one in given]
    assert sum("no label of the qrels reaches" in text for text in texts) == 1
    assert [text[:15] for text in texts if "no query of the run" in text] == ["x, y: no query "]


def test_a_system_is_named_before_the_first_equals_sign() -> None:
    found = find_single_runs(["old=runs/a=b.run", "new.run", "x=new.run"])
    assert found == {"old": "runs/a=b.run", "new": "new.run", "x": "new.run"}


def test_a_file_of_the_whole_name_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(LEAN, "beta=1.run")
    assert find_single_runs(["beta=1.run", "beta=2.run"]) == {"beta=1": "beta=1.run", "beta": "2.run"}
    assert rows(goodgain("evaluate", QRELS, "beta=1.run", "-m", "CG"))[0] == ["measure", "beta=1"]
    assert find_single_runs([f"x={'y' * 10_000}"]) == {"x": "y" * 10_000}


@pytest.mark.parametrize("given", [["a=x.run", "a=y.run"], ["x.run", "x=y.run"]])
def test_two_systems_of_one_name_are_an_error(given: list[str]) -> None:
    with pytest.raises(gg.InputError, match="two systems have the name"):
        find_single_runs(given)


@pytest.mark.parametrize("given", ["=x.run", "x="])
def test_half_a_name_is_an_error(given: str) -> None:
    with pytest.raises(gg.InputError, match="write NAME=FILE"):
        find_single_runs([given])


def test_every_command_of_several_runs_takes_names(tmp_path: Path) -> None:
    named = [f"old={REPEATING}", f"new={LEAN}"]
    assert "old,CG,1," in goodgain("curve", QRELS, *named, "-m", "CG", "-o", "csv")
    assert "new,old,2," in goodgain("compare", QRELS, *named, "-m", "CG", "-o", "csv")
    assert "| new | old |" in goodgain("compare", QRELS, *named, "-m", "CG", "-o", "markdown", "--baseline", "old")
    goodgain("pool", *named, "-o", str(tmp_path / "sheet.csv"))
    assert ",2,1," in (tmp_path / "sheet.csv").read_text()


@pytest.mark.parametrize("places", ["3000000000", "101", "-2"])
@pytest.mark.parametrize("command", ["evaluate", "compare", "curve"])
def test_decimals_have_one_range_in_every_command(command: str, places: str) -> None:
    said = error(command, QRELS, LEAN, REPEATING, "-m", "CG", "-p", places)
    assert f"{places} is not in the range -1<=x<=100" in said


@pytest.mark.parametrize("command", ["compare", "curve"])
def test_more_resamples_than_the_limit_are_refused(command: str) -> None:
    said = error(command, QRELS, LEAN, REPEATING, "-m", "CG", "--resamples", "99999999999999")
    assert said.startswith("--resamples 99999999999999: give a whole number from ") and said.endswith(" to 1,000,000")


def test_curve_prints_the_frame_and_a_table_in_both_directions() -> None:
    lines = goodgain("curve", QRELS, LEAN, REPEATING, "-m", "CG SRE", "--upto", "4", "-o", "jsonl").splitlines()
    wanted = gg.curve(QRELS, {"lean": LEAN, "repeating": REPEATING}, "CG SRE", upto=4)
    assert [json.loads(line) for line in lines] == wanted.to_dicts()
    table = goodgain("curve", QRELS, LEAN, REPEATING, "-m", "CG", "-o", "table", "-p", "1")
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in table.splitlines() if "│" in line]
    assert shown == [
        ["CG@1 ↑", "3.5", "3.5"],
        ["CG@2 ↑", "6.5", "6.5"],
        ["CG@3 ↑", "7.5", "7.5"],
        ["searching@1", "2", "2"],
        ["searching@2", "2", "2"],
        ["searching@3", "1", "1"],
        *([f"coverage@{i}", "1.0", "1.0"] for i in (1, 2, 3)),
    ]
    turned = goodgain("curve", QRELS, LEAN, REPEATING, "-m", "CG", "--upto", "1", "-o", "table", "--rows", "systems")
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in turned.splitlines() if "│" in line]
    assert shown == [["lean", "3.5000", "2", "1.0000"], ["repeating", "3.5000", "2", "1.0000"]]


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


def test_compare_turns_its_table_of_means() -> None:
    text = goodgain("compare", QRELS, LEAN, REPEATING, "-m", "SRE@3 SRR@3", "-o", "markdown", "--rows", "systems")
    assert "| system | SRE@3 ↑ | SRR@3 ↓ |\n" in text
    assert "| lean | **0.5833** | **0.0000** |\n" in text
    assert "| repeating | 0.3095 | 0.4643 |\n" in text
    latex = goodgain("compare", QRELS, LEAN, REPEATING, "-m", "SRE@3", "-o", "latex", "--rows", "systems")
    assert r"a & lean & \textbf{0.5833} \\" in latex
    table = goodgain("compare", QRELS, LEAN, REPEATING, "-m", "SRE@3", "-o", "table", "--full", "--rows", "systems")
    assert "SRE@3 ↑" in table
    assert "│ repeating " in table
