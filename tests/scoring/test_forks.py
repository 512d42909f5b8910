"""A process that was forked after goodgain had been used says so; it does not wait for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.counts import how_many

BEFORE = """
import multiprocessing, sys, warnings
import goodgain as gg
warnings.simplefilter("ignore")
QRELS, RUN = {"q": {"a": 2}}, {"q": {"a": 1.0}}
def work(number):
    return gg.evaluate(QRELS, RUN, "CG nDCG")["CG"]
"""
#: What a process may do before it forks, and what the child answers then.
CASES = {
    "evaluate": ("gg.evaluate(QRELS, RUN, 'CG nDCG')", "spawn"),
    "read_run": ("gg.read_run(RUN)", "spawn"),
    "read_qrels": ("gg.read_qrels(QRELS)", "spawn"),
    "deduplicate": ("gg.deduplicate(gg.read_results('RESULTS'))", "spawn"),
    "nothing": ("pass", "2.0"),
}
FORK = """
if __name__ == "__main__":
    {before}
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        try:
            print(pool.map(work, range(2)))
        except gg.InputError as error:
            print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
@pytest.mark.parametrize("name", list(CASES)[: how_many(1, full=len(CASES))])
def test_a_fork_after_the_first_use_is_one_sentence(name: str) -> None:
    before, answer = CASES[name]
    if "RESULTS" in before:
        before = before.replace("'RESULTS'", "'docs/web_search.jsonl'")
    code = BEFORE + FORK.format(before=before, method="fork")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert answer in done.stdout, done.stderr
    assert ("2.0" in done.stdout) == (name == "nothing")


@pytest.mark.slow
def test_spawned_processes_work(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(BEFORE + FORK.format(before=CASES["evaluate"][0], method="spawn"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "[2.0, 2.0]\n", done.stderr
