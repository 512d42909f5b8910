"""A job that is killed goes on where it was: no answer of the journal is asked for again."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.judgments.labelling.endpoint import Call, Server, content_of, good, serve
from tests.support.counts import how_many, some_of

JOBS = 8


def write_job(folder: Path, count: int) -> list[str]:
    """Write a run, queries and texts, and return the command that labels them."""
    (folder / "agent.run").write_text("".join(f"q 1 d{k} {k + 1} {-k} agent\n" for k in range(count)))
    (folder / "queries.tsv").write_text("q\twho\n")
    texts = ({"doc_id": f"d{k}", "text": f"text {k}"} for k in range(count))
    (folder / "texts.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    files = ["agent.run", "--queries", "queries.tsv", "--texts", "texts.jsonl", "-o", "grades.jsonl"]
    return [sys.executable, "-m", "goodgain", "label", *files, "--model", "judge", "--jobs", str(JOBS), "--yes"]


def kept(folder: Path) -> int:
    path = folder / "grades.jsonl.journal"
    if not path.exists():
        return 0
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])
    except sqlite3.OperationalError:  # the table is not made yet
        return 0
    finally:
        connection.close()


def start(command: list[str], folder: Path, server: Server) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command, "--base-url", server.url], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def wait_for(server: Server, count: int) -> None:
    end = time.monotonic() + 60
    while server.count < count:
        assert time.monotonic() < end, f"{server.count} of {count} calls came"
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("kill", some_of([signal.SIGKILL, signal.SIGINT], every=2))
def test_a_job_that_is_killed_at_any_moment_goes_on_where_it_was(tmp_path: Path, kill: signal.Signals) -> None:
    count, most = how_many(120, full=600), how_many(1, full=3)
    random, lock = Random(kill), threading.Lock()
    answered: Counter[str] = Counter()

    def script(call: Call) -> Any:
        time.sleep(0.002)
        with lock:
            answered[content_of(call)] += 1
        return good(2)

    command = write_job(tmp_path, count)
    with serve(script) as server:
        for kills in range(1, 1 + most):
            before = server.count
            process = start(command, tmp_path, server)
            wait_for(server, before + random.randint(1, count // (5 if most == 1 else 15)))
            os.kill(process.pid, kill)
            process.communicate(timeout=30)
            assert process.returncode == (130 if kill == signal.SIGINT else -kill)
            assert not (tmp_path / "grades.jsonl").exists()
            assert kept(tmp_path) >= server.count - JOBS * kills
        in_journal, calls = kept(tmp_path), server.count
        process = start(command, tmp_path, server)
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert server.count - calls == count - in_journal  # no answer that was kept is asked for again
        lost = sum(answered.values()) - count
        assert lost <= JOBS * most  # those in flight
    grades = [json.loads(line)["grade"] for line in (tmp_path / "grades.jsonl").read_text().splitlines()]
    assert grades == [2] * count


WRITE_UNTIL_CLOSED = """
import threading
from pathlib import Path
from goodgain import InputError
from goodgain.judgments.labelling.answers_and_journal import Answer, Journal

def write(journal, name, ended):
    answer = Answer(grade=1, reason="", status="ok", raw="text " * 4000, input_tokens=1, output_tokens=1)
    try:
        for k in range(100_000):
            journal.add(f"{name} {k}", answer, query_id="q", doc_id="d", host="h", question="", judge="")
    except InputError as error:
        ended.append(str(error))

for k in range(10):
    ended = []
    with Journal.open(Path(f"{k}.journal")) as journal:
        threads = [threading.Thread(target=write, args=(journal, n, ended)) for n in range(8)]
        for thread in threads:
            thread.start()
        threads[0].join(0.02)
    for thread in threads:
        thread.join()
    assert len(ended) == 8 and all("closed" in one for one in ended), ended
"""


def test_a_journal_that_closes_while_threads_write_ends_them_with_an_error(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", WRITE_UNTIL_CLOSED], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
