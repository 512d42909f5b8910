"""Long work shows a bar on a terminal, which leaves nothing behind; a pipe gets none."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_terminals import read_terminal, run_on_terminal, show_screen
from tests.judgments.labelling.endpoint import Call, good, serve
from tests.judgments.labelling.test_kill import write_job
from tests.support.command import COMMAND, run_command
from tests.support.tables import ROOT

FOLDER = ROOT / "qrels_examples" / "two_agents"
FILES = [str(FOLDER / name) for name in ("qrels.txt", "quick.run", "late.run")]
#: The command with a bar from the beginning on, and with a bar after more seconds than a busy machine takes for short work.
AT_ONCE, LATE = (
    [
        sys.executable,
        "-c",
        f"from goodgain.cli import messages_and_exit_status as bar, program; bar._AFTER = {after}; program.main()",
    ]
    for after in (0.0, 50.0)
)
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
_STEPS = "working|reading|counting|scoring"
CALLS = {
    "evaluate": (["evaluate", *FILES[:2], "nDCG@10"], _STEPS),
    "compare": (["compare", *FILES, "-m", "nCG@6", "--resamples", "300000"], "resampling"),
    "curve": (["curve", *FILES, "-m", "nCG SRR", "-o", "csv"], _STEPS),
    "explain": (["explain", *FILES, "-m", "CG@6"], _STEPS),
    "report": (["report", *FILES, "-m", "CG@6", "--format", "csv"], "resampling"),
    "convert": (["convert", "tests/logs/traces/fixtures/langchain/state.json", "-o"], "working"),
    "dedup": (["dedup", "docs/web_search.jsonl", "-o"], "working"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_bar_leaves_nothing_on_the_screen(tmp_path: Path, name: str) -> None:
    call, wanted = CALLS[name]
    call = [*call, str(tmp_path / "out.jsonl")] if call[-1] == "-o" else call
    printed = run_on_terminal(*call, command=AT_ONCE)
    assert re.search(wanted, printed) and printed.count(HIDE) == printed.count(SHOW) == 1
    assert show_screen(printed) == show_screen(run_on_terminal(*call))


def test_a_notice_stands_below_the_output_and_not_in_the_bar(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.0 t\n")
    (tmp_path / "a.qrels").write_text("q1 0 d1 2\n")
    call = ("curve", tmp_path / "a.qrels", tmp_path / "a.run", "-m", "CG", "-o", "csv")
    printed = run_on_terminal(*call, command=AT_ONCE)
    assert HIDE in printed and "notice: " not in printed[: printed.index(SHOW)]
    assert "\nnotice: " in show_screen(printed) or show_screen(printed).startswith("notice: ")


@pytest.mark.slow
def test_short_work_and_pipes_get_no_bar(tmp_path: Path) -> None:
    assert HIDE not in run_on_terminal(*CALLS["evaluate"][0], command=LATE)
    piped = subprocess.run([*AT_ONCE, *CALLS["compare"][0]], capture_output=True, text=True, timeout=120, check=True)
    plain = run_command(*CALLS["compare"][0])
    assert (piped.stdout, piped.stderr) == (plain.stdout, plain.stderr)
    assert "\x1b" not in plain.stdout + plain.stderr


@pytest.mark.slow
def test_a_bar_never_goes_to_standard_output(tmp_path: Path) -> None:
    with (tmp_path / "out.csv").open("wb") as out:
        printed = run_on_terminal(*CALLS["compare"][0], command=AT_ONCE, stdout=out)
    assert "resampling" in printed
    assert (tmp_path / "out.csv").read_text() == run_command(*CALLS["compare"][0]).stdout


@pytest.mark.slow
def test_a_terminal_without_cursor_control_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert run_on_terminal(*CALLS["curve"][0], command=AT_ONCE) == run_on_terminal(*CALLS["curve"][0])


@pytest.mark.slow
def test_the_bar_comes_after_two_seconds_and_an_interrupt_removes_it() -> None:
    leader, follower = os.openpty()
    many = " ".join(f"P@{i} R@{i} nDCG@{i}" for i in range(1, 31))  # also a fast machine takes seconds for them
    call = [*COMMAND, "compare", *FILES, "-m", many, "--resamples", "1000000"]
    process = subprocess.Popen(call, stdout=follower, stderr=follower, close_fds=True)
    os.close(follower)
    begun, printed = time.monotonic(), ""
    while "resampling" not in printed:
        printed += os.read(leader, 65_536).decode("utf-8", "replace")
    assert time.monotonic() - begun > 2

    process.send_signal(signal.SIGINT)
    printed += read_terminal(leader)
    assert process.wait(timeout=60) == 130
    assert SHOW in printed and show_screen(printed).strip() == "goodgain: interrupted"


@pytest.mark.slow
def test_the_bar_of_label_shows_the_grades_of_its_threads(tmp_path: Path) -> None:
    def answer(_call: Call) -> Any:
        time.sleep(0.1)
        return good()

    with serve(answer) as server:
        call = [*write_job(tmp_path, 40)[3:], "--base-url", server.url]
        printed = run_on_terminal(*call, command=AT_ONCE, cwd=tmp_path)
    assert re.search(r"3: \d+; tokens: [\d,]+ \d+%", printed)
    screen = show_screen(printed)
    assert "3: 40" in screen and "━" not in screen


@pytest.mark.slow
def test_a_first_error_of_an_endpoint_is_shown_above_the_bar_while_label_goes_on(tmp_path: Path) -> None:
    begun: list[float] = []

    def answer(call: Call) -> Any:
        begun.append(call.at)
        if call.at - begun[0] < 8:
            return 503, {"error": {"message": "the model is loading"}}, {"Retry-After": "1"}
        return good()

    with serve(answer) as server:
        call = [*write_job(tmp_path, 2)[3:], "--base-url", server.url, "--tries", "30"]
        printed = run_on_terminal(*call, command=AT_ONCE, cwd=tmp_path)
    told = printed.index("notice: no call has succeeded yet:")
    assert "(the model is loading)" in " ".join(printed[told:].split())
    assert told < printed.index(SHOW)  # while the bar is there
    assert "3: 2" in show_screen(printed)


@pytest.mark.slow
def test_the_bar_of_label_says_that_it_waits_for_a_retry(tmp_path: Path) -> None:
    def answer(call: Call) -> Any:
        return (429, {"error": {"message": "slow down"}}, {"retry-after": "2"}) if call.before == 0 else good()

    with serve(answer) as server:
        call = [*write_job(tmp_path, 2)[3:], "--base-url", server.url, "--jobs", "1"]
        printed = run_on_terminal(*call, command=AT_ONCE, cwd=tmp_path)
    assert "answered with status 429: try 2 of" in printed and "in 2 seconds" in printed
    assert "3: 2" in show_screen(printed)


@pytest.mark.slow
def test_a_report_says_which_picture_it_draws(tmp_path: Path) -> None:
    call = ["report", *FILES, "-m", "CG@6", "-o", str(tmp_path / "page.html")]
    assert "drawing picture" in run_on_terminal(*call, command=AT_ONCE)
