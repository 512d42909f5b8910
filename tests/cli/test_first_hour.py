"""What a newcomer types: forms of output and files, options by either sign, few words first, messages that name options."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import chain
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import goodgain as gg
from goodgain.cli.program import program
from goodgain.counting import run_opening
from tests.cli.test_terminals import run_on_terminal, show_screen
from tests.support import make_two_logs
from tests.support.command import run_command
from tests.support.tables import ROOT

TWO = ROOT / "qrels_examples" / "two_agents"
QRELS, LATE, QUICK = TWO / "qrels.txt", TWO / "late.run", TWO / "quick.run"
FORMS = {"tsv": "tsv", "csv": "csv", "jsonl": "jsonl", "json": "json", "markdown": "md", "latex": "tex"}
COMMANDS = {
    "evaluate": ("evaluate", QRELS, LATE, "nDCG@10 SRR@6"),
    "ledger": ("ledger", QRELS, LATE),
    "curve": ("curve", QRELS, LATE, QUICK, "-m", "nCG", "--resamples", "0"),
    "compare": ("compare", QRELS, LATE, QUICK, "-m", "nCG@6", "--resamples", "100"),
}


def goodgain(*arguments: object, cwd: Path | None = None) -> tuple[str, str]:
    done = run_command(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_has_what_the_form_of_its_ending_prints(tmp_path: Path, command: str, form: str) -> None:
    printed, _ = goodgain(*COMMANDS[command], "-o", form)
    path = tmp_path / f"scores.{FORMS[form]}"
    out, err = goodgain(*COMMANDS[command], "-o", path)
    assert out == "" and f"written: {path}" in err
    assert path.read_text() == printed and printed.count("\n") > 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_parquet_file_has_the_rows_of_the_csv(tmp_path: Path, command: str) -> None:
    goodgain(*COMMANDS[command], "-o", tmp_path / "scores.parquet")
    rows = pl.read_parquet(tmp_path / "scores.parquet")
    printed, _ = goodgain(*COMMANDS[command], "-o", "csv")
    listed = list(csv.DictReader(io.StringIO(printed)))
    assert len(listed) == rows.height and list(listed[0]) == rows.columns


def test_values_are_the_same_in_every_form() -> None:
    scores = gg.evaluate(QRELS, LATE, "nDCG@10 SRR@6").mean()
    assert {
        row["measure"]: row["value"] for row in json.loads(goodgain(*COMMANDS["evaluate"], "-o", "json")[0])
    } == scores
    lines = csv.DictReader(io.StringIO(goodgain(*COMMANDS["evaluate"], "-o", "csv")[0]))
    assert {row["measure"]: float(row["value"]) for row in lines} == scores
    tabular = goodgain(*COMMANDS["evaluate"], "-o", "latex")[0]
    assert r"nDCG@10 & 0.1872 \\" in tabular and r"\begin{tabular}{lr}" in tabular
    assert "| nDCG@10 | 0.1872 |" in goodgain(*COMMANDS["evaluate"], "-o", "markdown")[0]


HEADINGS = {
    "Score": ["evaluate", "ledger", "curve", "pr", "measures"],
    "Compare": ["compare", "explain", "report"],
    "From logs": ["convert", "dedup", "funnel", "annotate"],
    "Judge": ["pool", "label", "judge"],
    "Files": ["example", "validate", "flatten"],
}


def test_help_lists_the_commands_under_five_headings_with_whole_summaries() -> None:
    text = goodgain("--help")[0]
    values: dict[str, list[str]] = {}
    for heading, name in re.findall(r"^(?:(\S[\w ]*):|  ([a-z]+)  .*)$", text, flags=re.MULTILINE):
        if heading:
            values[heading] = []
        else:
            values[[*values][-1]].append(name)
    assert {heading: names for heading, names in values.items() if names} == HEADINGS
    assert sorted(chain(*HEADINGS.values())) == sorted(program.commands)
    assert "..." not in text.partition("Score:")[2]
    for command in program.commands.values():
        assert " ".join(command.get_short_help_str(1_000).split()) in " ".join(text.split())


def _without_queries_needed(shown: str) -> str:
    """Leave out the one sentence on how many queries an unclear difference takes."""
    return re.sub(r"\d+ queries can show a difference .*?\(power\s+0\.8\)\.", "", shown, flags=re.DOTALL)


def test_an_error_made_in_another_thread_names_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_opening, "LARGE", 1)  # read in blocks, which threads count
    command = ["evaluate", str(QRELS), str(LATE), "CG", "--gaps", "empty", "--first", "5"]
    told = CliRunner().invoke(program, command, standalone_mode=False).exception
    assert "is below --first 5. Set --first to" in str(told)
    with pytest.raises(gg.InputError, match=r"is below first=5\. Set first= to"):  # a command leaves Python as it was
        gg.read_run(LATE, gaps="empty", first=5)


@pytest.mark.slow
def test_compare_prints_at_most_120_words_and_one_line_a_measure() -> None:
    plain = show_screen(run_on_terminal("compare", QRELS, LATE, QUICK, "-m", "nDCG@10 nCG@6 SRR@6"))
    assert len(_without_queries_needed(plain).split()) <= 120
    line = next(line for line in plain.splitlines() if line.startswith("nDCG@10"))
    assert re.fullmatch(
        r"nDCG@10 ↑ +0\.6083 +0\.1872 +\+0\.4212 +\[\+0\.\d{4}, \+0\.\d{4}\] +25/0 +better", line.strip()
    )
    assert "while another system searched on" in " ".join(plain.split()) and "signature" not in plain


@pytest.mark.slow
def test_minor_notices_the_tests_and_the_signature_come_with_full() -> None:
    command = ("compare", QRELS, LATE, QUICK, "-m", "nCG nCG@6")  # both at the own last iteration and at a fixed one
    brief, whole = (show_screen(run_on_terminal(*command, *more)) for more in ([], ["--full"]))
    assert "1 more notice: --full" in brief and "more notice" not in whole
    for part in ("the systems stop at different iterations", "signature: ", "randomisation"):
        assert part not in brief and part in whole


@pytest.mark.slow
def test_a_query_that_a_run_lacks_is_named_after_the_table(tmp_path: Path) -> None:
    short = tmp_path / "short.run"
    short.write_text("".join(line for line in LATE.read_text().splitlines(True) if not line.startswith("q07 ")))
    shown = show_screen(run_on_terminal("compare", QRELS, short, QUICK, "-m", "nCG@6"))
    assert shown.index("nCG@6") < shown.index("1 query is absent from short")
    alone = show_screen(run_on_terminal("evaluate", QRELS, short, "nCG@6"))
    assert alone.index("nCG@6") < alone.index("1 of them absent from the run")


def test_example_writes_what_the_commands_need_and_nothing_over_a_folder(tmp_path: Path) -> None:
    out, _ = goodgain("example", "runs_here", cwd=tmp_path)
    assert (tmp_path / "runs_here" / "guideline" / "agent.run").read_bytes()
    assert out.startswith("goodgain evaluate runs_here/two_agents/qrels.txt")
    command = re.findall(r"'[^']*'|\S+", out)[1:]
    assert goodgain(*(word.strip("'") for word in command), cwd=tmp_path)[0].startswith("nDCG@10\t0.1872\n")
    done = run_command("example", "runs_here", cwd=tmp_path)
    assert done.returncode == 2 and "exists already" in done.stderr


def test_two_logs_become_a_verdict_in_the_two_commands_of_the_readme(tmp_path: Path) -> None:
    logs = ROOT / "qrels_examples" / "two_logs"
    for name, text in make_two_logs.logs().items():
        assert (logs / name).read_text() == text
    _, err = goodgain(
        "convert", f"old={logs}/old.json", f"new={logs}/new.jsonl", "-o", "runs/{system}.run", cwd=tmp_path
    )
    assert "12 joined by question" in err and "old 1 of 12" in err

    runs = (tmp_path / "runs" / "old.run", tmp_path / "runs" / "new.run")
    plain = show_screen(run_on_terminal("compare", logs / "judgments.qrels", *runs, "-m", "nDCG@10 nCG@3 SRR@3"))
    # By hand: the good gain of every query is 4 + 3 + 2 + 2.
    gains = {f"case-{q:02d}": {f"doc-{q:02d}-{k}": label for k, label in enumerate((4, 3, 2, 2))} for q in range(12)}
    means = []

    for path in reversed(runs):
        found: dict[str, set[str]] = {query: set() for query in gains}
        for line in path.read_text().splitlines():
            query, iteration, doc, *_ = line.split()
            if iteration in "123":
                found[query].add(doc)
        means.append(sum(sum(gains[q].get(d, 0) for d in docs) / 11 for q, docs in found.items()) / 12)

    assert re.search(rf"nCG@3 ↑ +{means[0]:.4f} +{means[1]:.4f} .*better", plain)
    assert "1 query never searched in old: case-06" in plain
    assert len(_without_queries_needed(plain).split()) <= 120
