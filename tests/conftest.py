"""How the tests run: what is left out unless everything is asked for, and how this is said.

Property tests have no time limit each, because a busy machine is no fault of the code.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings

from tests.support.counts import EVERYTHING, how_many
from tests.support.definitions import ForgetDefinitions

# pytest imports readline, which gives COLUMNS to all programs that are started: a pipe would have the width of a terminal.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

settings.register_profile("goodgain", deadline=None, max_examples=how_many(6, full=40))
settings.load_profile("goodgain")

#: How many tests of each marker were deselected here.
_DESELECTED = pytest.StashKey[dict[str, int]]()
_COMMANDS = {"slow": "make test-all", "spark": "make test-spark"}
#: Of a test with more cases, `make test` tries every second, third, ... one, so that at most so many are tried.
MOST_CASES = 2


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_DESELECTED] = {}
    config.pluginmanager.register(ForgetDefinitions())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs behind it; programs inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _find_group(nodeid: str) -> str:
    """Return what a test shares a process with: its file, or all tests with ranx in their name.

    ranx compiles for half a minute in each process that calls it.
    """
    return "ranx" if "ranx" in nodeid.partition("[")[0] else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: Sequence[Any]) -> None:
    """Give the first process one thread of Polars, and leave the others as many as there are cores.

    So both are tried; processes of several threads each stand in each other's way.
    """
    specs[0].env.setdefault("POLARS_MAX_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give whole groups to the processes."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _find_group(nodeid)

    return Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest group first, and leave out what only `make test-all` tries."""
    items.sort(key=lambda item: _find_group(item.nodeid) != "ranx")
    if EVERYTHING:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for test in cases.values() for item in test[:: -(-len(test) // MOST_CASES)]}
    kept |= {item for item in items if item.get_closest_marker("each")}
    left_out = [item for item in items if item not in kept or item.get_closest_marker("slow")]
    if left_out:
        items[:] = [item for item in items if item in kept and not item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=left_out)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        counts = item.config.stash[_DESELECTED]
        marker = next((name for name in _COMMANDS if item.get_closest_marker(name)), "further")
        counts[marker] = counts.get(marker, 0) + 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a process of pytest-xdist, which collects for the one that prints
        session.config.workeroutput["deselected"] = session.config.stash[_DESELECTED]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep what one process of pytest-xdist deselected: each of them collects all tests."""
    node.config.stash[_DESELECTED] = getattr(node, "workeroutput", {}).get("deselected", {})


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say which tests were left out, and what runs them."""
    for marker, count in sorted(config.stash[_DESELECTED].items()):
        which = f"tests marked {marker}" if marker in _COMMANDS else "further cases of tests with many"
        command = _COMMANDS.get(marker, "make test-all")
        terminalreporter.write_line(f"DESELECTED [{count}] {which}: {command} runs them")
