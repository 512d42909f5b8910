"""Ids and names never reach a terminal as they are, nor become markup or formulas."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import COMMAND, run_command
from tests.support.counts import how_many
from tests.support.tables import ROOT, no_notices

#: Turns text red, clears the screen, sets the title, writes from right to left, goes up a line; and signs of C1.
HOSTILE = "\x1b[31mq\x1b[2J\x1b]0;title\x07\u202e\x9b1A\x08\x7f"
SHOWN = r"\x1b[31mq\x1b[2J"


def write_inputs(folder: Path) -> tuple[Path, Path]:
    """Write a run and qrels whose ids are hostile."""
    run, qrels = folder / "a.jsonl", folder / "q.jsonl"
    row = {"query_id": HOSTILE, "doc_id": HOSTILE}
    run.write_text(json.dumps(row | {"iteration": 1, "rank": 1, "score": 1.0, "tag": HOSTILE}) + "\n")
    qrels.write_text(json.dumps(row | {"relevance": 2}) + "\n")
    return run, qrels


def run_on_terminal(
    *arguments: object, command: Sequence[str] = COMMAND, stdout: IO[bytes] | None = None, cwd: Path = ROOT
) -> str:
    """Run the command with a terminal as its standard error, and as its standard output if this is not a file."""
    leader, follower = pty.openpty()
    call = [*command, *map(str, arguments)]
    process = subprocess.Popen(call, stdout=stdout or follower, stderr=follower, close_fds=True, cwd=cwd)
    os.close(follower)
    printed = read_terminal(leader)
    process.wait(timeout=60)
    return printed


def read_terminal(leader: int) -> str:
    """Return what a program prints to a terminal until its end."""
    printed = b""
    while True:
        try:
            piece = os.read(leader, 65_536)
        except OSError:  # the other end was closed
            break
        if not piece:
            break
        printed += piece
    os.close(leader)
    return printed.decode("utf-8", "replace")


def show_screen(printed: str) -> str:
    """What a terminal shows after it has printed a text: lines can be erased and written again."""
    lines, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", printed):
        if piece == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif piece == "\r":
            column = 0
        elif piece == "\x1b[1A":
            row -= 1
        elif piece == "\x1b[2K":
            lines[row] = ""
        elif not piece.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + piece + lines[row][column + len(piece) :]
            column += len(piece)

    return "\n".join(lines)


CALLS = [
    ("evaluate", "-q"),
    ("evaluate", "-q", "-o", "tsv"),
    ("ledger",),
    ("ledger", "-o", "csv"),
    ("ledger", "-o", "jsonl"),
    ("curve",),
    ("compare",),
    ("compare", "-o", "csv"),
    ("validate",),
]


@pytest.mark.parametrize("call", CALLS[: how_many(2, full=len(CALLS))], ids=" ".join)
def test_a_terminal_gets_no_control_character_of_an_id_or_a_name(tmp_path: Path, call: tuple[str, ...]) -> None:
    run, qrels = write_inputs(tmp_path)
    named = [f"{HOSTILE}={run}"]
    arguments = {
        "evaluate": [qrels, *named, "-m", "SRE"],
        "ledger": [qrels, run],
        "curve": [qrels, *named, "-m", "SRE"],
        "compare": [qrels, *named, f"b={run}", "-m", "SRE"],
        "validate": [run],
    }[call[0]]
    printed = run_on_terminal(call[0], *arguments, *call[1:])
    for hostile in ("\x1b[2J", "\x1b]0;", "\x07", "\u202e", "\x9b", "\x08", "\x7f", "\x1b[31mq"):
        assert hostile not in printed, printed

    assert "Traceback" not in printed


def test_standard_error_is_escaped_also_in_a_pipe_and_data_in_a_pipe_are_not(tmp_path: Path) -> None:
    run, qrels = write_inputs(tmp_path)
    other = tmp_path / "other.jsonl"
    rows = [json.loads(run.read_text()) | {"doc_id": doc_id} for doc_id in (HOSTILE, "unjudged")]
    other.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = run_command("evaluate", qrels, f"{HOSTILE}={run}", f"b={other}", "-m", "SRE", "-q", "-o", "tsv")
    assert "\x1b" not in done.stderr and SHOWN in done.stderr
    assert done.stdout.splitlines()[1].startswith(HOSTILE)


def test_a_dollar_in_a_name_is_no_formula_of_markdown() -> None:
    runs = {"a$x$": {"q": {"a": 1.0}}, "b": {"q": {"b": 1.0}}}
    with no_notices():
        text = gg.compare({"q": {"a": 2}, "r": {"a": 2}}, runs, "SRE").to_text("markdown")
    assert r"a\$x\$" in text and "a$" not in text


FORMULAS = ["=1+1", "+1", "-1+1", "@a", "\t=1", "d1"]
#: A tab may end a cell, so what follows it has an apostrophe too.
GUARDED = ["'=1+1", "'+1", "'-1+1", "'@a", "'\t'=1", "d1"]


def test_formulas_are_guarded_in_csv_where_it_is_asked_for(tmp_path: Path) -> None:
    queries = pl.DataFrame({"query_id": FORMULAS, "doc_id": "d", "relevance": 2})
    queries.write_parquet(tmp_path / "q.parquet")
    run = queries.drop("relevance").with_columns(iteration=1, rank=1, score=1.0)
    run.write_parquet(tmp_path / "a.parquet")
    files = [tmp_path / "q.parquet", tmp_path / "a.parquet"]

    for options, wanted in (([], FORMULAS), (["--spreadsheet"], GUARDED)):
        done = run_command("ledger", *files, "-o", "csv", *options)
        found = pl.read_csv(done.stdout.encode())["query_id"].to_list()
        assert sorted(found) == sorted(wanted)
        sheet = tmp_path / f"sheet{len(options)}.csv"
        ids = [
            formula for formula in FORMULAS if options or formula == formula.strip()
        ]  # without an apostrophe CSV cannot hold a tab before an id
        pool = pl.DataFrame({"query_id": "q", "doc_id": ids, "iteration": 1, "rank": 1, "score": 1.0})
        pool.write_parquet(tmp_path / "p.parquet")
        assert run_command("pool", tmp_path / "p.parquet", "-o", sheet, *options).returncode == 0
        assert sorted(pl.read_csv(sheet)["doc_id"].to_list()) == sorted(wanted if options else ids)

    with no_notices():
        compared = gg.compare({"q": {"a": 2}, "r": {"a": 2}}, {"=a": {"q": {"a": 1.0}}, "b": {"q": {"b": 1.0}}}, "SRE")
    assert ",=a," in compared.to_text("csv") and ",'=a," in compared.to_text("csv", spreadsheet=True)


@pytest.mark.slow
def test_a_table_is_printed_where_the_console_is_said_to_have_no_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.run").write_text("q1 1 d1 1 2.0 t\n")
    (tmp_path / "a.qrels").write_text("q1 0 d1 2\n")
    for columns in ("0", "1"):
        monkeypatch.setenv("COLUMNS", columns)
        arguments = ("evaluate", tmp_path / "a.qrels", tmp_path / "a.run", "CG", "-o", "table")
        shown = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=True, timeout=60)
        assert "CG" in shown.stdout


def test_a_table_that_is_wider_than_the_console_keeps_its_numbers_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    folder = ROOT / "qrels_examples" / "redundancy"
    files = [folder / "qrels.txt", folder / "lean.run", folder / "repeating.run"]
    measures = "CG RG DCGG DRG RAG DRAG SRE SRR nCG nDCGG"
    done = run_command("evaluate", *files, "-m", measures, "--rows", "systems", "-o", "table")
    assert "repeating" in done.stdout and "5.8928" in done.stdout and "…" not in done.stdout


def test_a_table_in_a_pipe_is_whole() -> None:
    folder = ROOT / "qrels_examples" / "two_agents"
    names = [f"{'a system with a long name' * 3} {number}={folder / 'late.run'}" for number in range(3)]
    shown = run_command("compare", folder / "qrels.txt", *names, "-m", "nCG@6 SRR@6", "-o", "table").stdout
    assert all(name.split("=")[0] in shown for name in names)
    assert "interval" in shown and "Left out because" not in shown


def test_a_value_that_does_not_exist_is_an_empty_field(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("a 0 x 2\nb 0 x 2\n")
    (tmp_path / "r").write_text("a 1 x 1 1 t\n")
    done = run_command("evaluate", "q", "r", "NoProgress nDCG@10", "--bounds", "-o", "tsv", cwd=tmp_path)
    assert done.stdout.splitlines() == ["NoProgress\t0.0000\t\t", "nDCG@10\t0.5000\t\t"]
