"""What a job may cost: a trial first, hard limits for all it sends, and the cost before it is paid."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from goodgain.judgments.labelling.answers_and_journal import Journal
from tests.judgments.labelling.endpoint import Call, completion, good, serve
from tests.judgments.labelling.test_calls import number_of
from tests.judgments.labelling.test_kill import write_job
from tests.support.command import run_command

pytestmark = pytest.mark.usefixtures("in_its_own_folder")


def test_the_command_that_goes_on_goes_on(tmp_path: Path) -> None:
    is_well = False
    with serve(lambda call: good() if is_well or number_of(call) % 2 else completion("3")) as server:
        done = run_command(*write_job(tmp_path, 6)[3:], "--base-url", server.url)
        is_well = True
        command = done.stderr.splitlines()[-1].removeprefix("To go on: goodgain ").split()
        again = run_command(*command)
        assert again.returncode == 0
        assert server.count == 9
    assert [json.loads(line)["grade"] for line in Path("grades.jsonl").read_text().splitlines()] == [3] * 6


def test_the_cost_stands_before_the_run_and_after_it(tmp_path: Path) -> None:
    with serve(lambda call: good()) as server:
        command = [*write_job(tmp_path, 10)[3:], "--base-url", server.url, "--price", "1", "10"]
        done = run_command(*command)
    before, after = (line for line in done.stderr.splitlines() if "cost:" in line)
    assert before.startswith("longest answer: 2,000 tokens, thinking included; cost: about 0.0")
    usual, most = (float(before.split(word)[1].split()[0].strip(",")) for word in ("about ", "at most "))
    paid = float(after.split("cost: ")[1])
    assert usual < paid * 10
    assert paid <= most
    assert most == pytest.approx(10 * 2_000 * 10 / 1e6, rel=0.2)


@pytest.mark.slow
def test_two_processes_do_not_share_a_journal(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def script(call: Call) -> Any:
        begun.set()
        go_on.wait(20)
        return good()

    command = write_job(tmp_path, 3)
    with serve(script) as server:
        first = subprocess.Popen([*command, "--base-url", server.url], stderr=subprocess.PIPE)
        assert begun.wait(20)
        second = run_command(*command[3:], "--base-url", server.url)
        go_on.set()
        first.communicate(timeout=30)
        assert server.count == 3
    assert first.returncode == 0
    assert second.returncode == 2
    assert (
        "grades.jsonl.journal: another process uses this journal. Wait until it ends, or give another file"
        in second.stderr
    )


def write_old_journal(path: Path, grades: dict[str, int]) -> None:
    """Write a journal as the first versions did: seven columns."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id=1734831153")
    connection.execute(
        "CREATE TABLE answers (key TEXT PRIMARY KEY, grade INTEGER, reason TEXT, status TEXT NOT NULL, raw TEXT, "
        "input_tokens INTEGER, output_tokens INTEGER) WITHOUT ROWID"
    )
    rows = [(key, grade, None, "ok", None, 100, 10) for key, grade in grades.items()]
    connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()


#: The key that the first versions made for the query "who", the text "text 0" and the model "judge".
FIRST_KEY = "3fbcb10fcb1392c8adf016447c2e492b27405f59e2cd579d2483d5a711c29538"


def test_answers_by_the_first_prompt_are_counted_and_not_graded_again_without_a_yes(tmp_path: Path) -> None:
    command = [word for word in write_job(tmp_path, 1)[3:] if word != "--yes"]
    write_old_journal(tmp_path / "grades.jsonl.journal", {FIRST_KEY: 2})
    with serve(lambda call: good(4)) as server:
        done = run_command(*command, "--base-url", server.url)
        assert (done.returncode, server.count) == (2, 0)
        assert "the journal has 1 unused answer to the older prompt good-gain-1" in done.stderr
        assert "Give --yes to send them" in done.stderr

        old = run_command(*command, "--base-url", server.url, "--prompt", "good-gain-1")
        assert (old.returncode, server.count) == (0, 0)
        assert json.loads(Path("grades.jsonl").read_text())["grade"] == 2

        new = run_command(*command, "--base-url", server.url, "--yes")
        assert (new.returncode, server.count) == (0, 1)
        assert json.loads(Path("grades.jsonl").read_text())["grade"] == 4


def test_a_journal_is_free_again_after_its_job(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "j"):
        pass
    program = (
        "import sys; from goodgain.judgments.labelling.answers_and_journal import Journal; from pathlib import Path\n"
    )
    program += "with Journal.open(Path(sys.argv[1])): pass"
    began = time.monotonic()
    assert subprocess.run([sys.executable, "-c", program, tmp_path / "j"], check=False).returncode == 0
    assert time.monotonic() - began < 30
