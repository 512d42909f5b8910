"""Runs tests in forks of a process that has imported the packages, and remembers which test calls which function.

A fork imports goodgain and the tests from a copy of the checkout, so it has the change that is tried, and starts in a second.
Polars is imported before, and not used: its threads do not survive a fork.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.metadata
import inspect
import json
import os
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

PACKAGES = (
    "polars", "numpy", "pandas", "narwhals", "pyarrow", "scipy.stats", "ir_measures", "numba", "ranx", "duckdb", "click",
    "orjson", "msgspec", "zstandard", "hypothesis", "matplotlib.pyplot", "asyncio", "email", "sqlite3",
)  # fmt: skip
#: A run has no end if it takes so many times the seconds of the tests, so many for each unknown file, and some for its start.
SLOWER, UNKNOWN, START = 10, 60, 20
#: All cases of a test, against those of `make test`, and seconds of a file's slow tests, which `make test` leaves out.
MORE_CASES, SLOW = 10, 300
#: A busy machine waits so many times the seconds of the processor.
WAITING = 20
MOST_MEMORY = 8 * 2**30
NOTHING = re.compile(r"(?!)")


class Outcome(NamedTuple):
    """How a run ended: the first test that failed, and what each test that passed took and called."""

    ended: bool
    failed: str
    passed: dict[str, tuple[float, list[str]]]


class Place(NamedTuple):
    """Where a change is, and the words that a test of it may have in its text."""

    module: str
    function: str
    words: re.Pattern[str]


def weigh_words(words: re.Pattern[str], text: str) -> int:
    """Return how much a text is about the words: a sentence counts ten times."""
    return sum(10 if " " in word else 1 for word in words.findall(text))


class Recorder:
    """Chooses the tests of a run, those with the words of the change first, and writes down what each takes and calls.

    `known` has what earlier runs found: the seconds of tests that call the changed code, and None for other tests.
    """

    def __init__(
        self,
        known: dict[str, float | None],
        words: re.Pattern[str] = NOTHING,
        *,
        only: str = "",
        everything: bool = False,
    ) -> None:
        self.known, self.words, self.only, self.everything = known, words, only, everything
        self.seen: dict[int, CodeType] = {}
        self.passed: dict[str, tuple[float, list[str]]] = {}
        self.failed = ""

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings

        known = settings.get_profile(settings.get_current_profile_name())
        settings.register_profile("mutants", known, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")  # a failing example is not made smaller

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if self._is_wanted(item.nodeid)]
        files = list(dict.fromkeys(item.nodeid.partition("::")[0] for item in chosen))
        weights = {item: weigh_words(self.words, self._read(item)) for item in chosen}
        seconds = {item: self.known.get(item.nodeid) or 1.0 for item in chosen}
        items[:] = sorted(chosen, key=lambda x: (files.index(x.nodeid.partition("::")[0]), -weights[x], seconds[x]))

    def _read(self, item: pytest.Item) -> str:
        return inspect.getsource(item.function) if isinstance(item, pytest.Function) else ""

    def _is_wanted(self, name: str) -> bool:
        if self.only:
            return name == self.only
        compiles = "ranx" in name.partition("[")[0]  # for half a minute
        return self.known.get(name, 0.0) is not None and not (compiles and not self.everything)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if item.nodeid in self.known or self.everything:
            yield
            return
        self.seen.clear()
        before = find_seconds()
        threading.settrace(self._see)
        sys.settrace(self._see)
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]  # typeshed: None ends it
        names = {_name_function(code) for code in self.seen.values() if "/src/goodgain/" in code.co_filename}
        if not self.failed:
            self.passed[item.nodeid] = find_seconds() - before, sorted(names)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        self.seen.setdefault(id(frame.f_code), frame.f_code)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def _name_function(code: CodeType) -> str:
    return f"{code.co_filename.rpartition('/src/goodgain/')[2]}:{code.co_qualname.partition('.<locals>')[0]}"


def find_seconds() -> float:
    """Return the processor's seconds of this process and its children."""
    return sum(os.times()[:4])


def import_packages() -> None:
    os.environ |= {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for name in PACKAGES:
        importlib.import_module(name)
    for plugin in importlib.metadata.entry_points(group="pytest11"):
        plugin.load()
    gc.freeze()  # pytest collects garbage in every fork; what is here is none


def run_tests(copy: Path, files: list[str], recorder: Recorder, limit: float) -> Outcome:
    """Run tests in a fork, up to the first that fails."""
    answer = copy / "outcome.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        try:
            _run(copy, files, recorder, int(limit))
            answer.write_text(json.dumps({"ended": True, "failed": recorder.failed, "passed": recorder.passed}))
        finally:
            os._exit(0)
    end = time.monotonic() + WAITING * limit
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    return Outcome(**json.loads(answer.read_text())) if answer.exists() else Outcome(ended=False, failed="", passed={})


def _run(copy: Path, files: list[str], recorder: Recorder, limit: int) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.chdir(copy)
    os.environ["PYTHONPATH"] = f"{copy / 'src'}{os.pathsep}{copy}"
    os.environ["GOODGAIN_TESTS"] = "all" if recorder.everything else ""
    sys.path[:0] = [str(copy / "src"), str(copy)]
    with Path(os.devnull).open("r+b") as nothing:
        for stream in (0, 1, 2):
            os.dup2(nothing.fileno(), stream)
    options = ["-x", "-q", "-n", "0", "-m", "not spark", "-p", "no:cacheprovider", "--tb=no"]
    ended = pytest.main([*options, *files], plugins=[recorder])
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        recorder.failed = recorder.failed or files[0]  # conftest.py cannot be imported


class Calls:
    """What the tests take and call, as runs find it. It is kept in a file; a test file that changed is unknown again."""

    def __init__(self, copy: Path, kept: Path) -> None:
        self.copy, self.kept = copy, kept
        self.files: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else {}
        self.digests: dict[str, str] = {}

    def of(self, file: str) -> dict[str, Any]:
        """Return `tests`: seconds and functions by the name of a test; `whole`: whether these are all tests of the file."""
        if file not in self.digests:
            digest = self.digests[file] = hashlib.sha256((self.copy / file).read_bytes()).hexdigest()
            if self.files.get(file, {}).get("digest") != digest:
                self.files[file] = {"digest": digest, "tests": {}, "whole": False}
        return self.files[file]

    def find_known(self, file: str, module: str, function: str) -> dict[str, float | None]:
        """Return the seconds of known tests that call a function, None for others. What runs on import may concern any test."""
        tests = self.of(file)["tests"].items()
        place = f"{module}:{function}"
        return {name: seconds if place in functions or not function else None for name, (seconds, functions) in tests}

    def add(self, files: list[str], outcome: Outcome) -> None:
        for name, found in outcome.passed.items():
            self.of(name.partition("::")[0])["tests"][name] = found
        if outcome.ended and not outcome.failed:
            for file in files:
                self.of(file)["whole"] = True
        self.kept.parent.mkdir(exist_ok=True)
        self.kept.write_text(json.dumps(self.files))


def try_tests(copy: Path, calls: Calls, files: list[str], place: Place, *, everything: bool) -> Outcome:
    """Run the tests of files that call the function at `place`, or that no run has seen yet."""
    known = {name: x for file in files for name, x in calls.find_known(file, place.module, place.function).items()}
    seconds = sum(x or 0.0 for x in known.values()) * (MORE_CASES if everything else 1)
    limit = START + SLOWER * seconds + UNKNOWN * sum(not calls.of(file)["whole"] for file in files)
    if everything:
        limit += SLOW * len(files)
        bases = {name.partition("[")[0] for name, x in known.items() if x is not None}
        known = {name: x for name, x in known.items() if name.partition("[")[0] not in bases}
    outcome = run_tests(copy, files, Recorder(known, place.words, everything=everything), limit)
    if not everything:
        calls.add(files, outcome)
    return outcome
