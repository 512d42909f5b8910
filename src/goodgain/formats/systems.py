"""The systems of a call: name -> run, or name -> several runs of one system (replicates)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.escaping import check_name


def check_systems(systems: Mapping[str, Any], *, least: int = 1) -> dict[str, Any]:
    """Return name -> run, names as text; raise `InputError` for missing or equal names, and for too few runs."""
    if not isinstance(systems, Mapping):
        raise InputError(f"systems is a {type(systems).__name__}; give each run a name: {{'old': run, 'new': other}}")
    named = {check_name(str(name), "system"): run for name, run in systems.items()}
    if len(named) < len(systems):
        raise InputError("two systems have the same name when written as text; give each its own name")
    if len(named) < least:
        if least == 1:
            raise InputError("no run was given; give one with its name: {'agent': run}")
        told = f"a comparison needs two systems or more, and got only {', '.join(named) or 'none'}"
        raise InputError(f"{told}; add another run, or score this one with evaluate")
    return named


def is_replicates(source: Any) -> bool:
    """Return whether a source is a list of runs of one system, not a run or a list of rows (tuples)."""
    return isinstance(source, list) and bool(source) and not isinstance(source[0], tuple)


def list_runs(source: Any) -> list[Any]:
    """Return the runs of a system, one or several; or the files of an argument."""
    return source if is_replicates(source) else [source]


def stack_systems(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Concatenate the frames of all systems, with the name of the system in the first column."""
    return pl.concat(of.select(pl.lit(name).alias("system"), pl.all()) for name, of in frames.items())


def find_likely_replicates(names: Iterable[str]) -> dict[str, list[str]]:
    """Return system -> names of runs, for two or more runs with names as `convert` writes them: agent.1, agent.2."""
    found: dict[str, list[str]] = {}
    for name in names:
        front, _, number = name.rpartition(".")
        if front and number.isdecimal():
            found.setdefault(front, []).append(name)
    return {front: several for front, several in found.items() if len(several) > 1}


def number_repeats(names: Sequence[str]) -> list[str]:
    """Return the names; a repeated name gets a number.

    >>> number_repeats(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    times: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
    return [f"{name} ({time})" if (time := next(times[name])) > 1 else name for name in names]


def name_runs(systems: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return name of run -> run, and system -> names of runs.

    >>> name_runs({"old": "a.run", "new": ["b.run", "c.run"]})[0]
    {'old': 'a.run', 'new (run 1)': 'b.run', 'new (run 2)': 'c.run'}
    """
    named: dict[str, Any] = {}
    names: dict[str, list[str]] = {}
    for system, source in systems.items():
        runs = list_runs(source)
        numbered = [f"{system} (run {k})" if system else f"run {k}" for k in range(1, len(runs) + 1)]
        names[system] = numbered if len(runs) > 1 else [system]
        if taken := sorted(named.keys() & names[system]):
            raise InputError(f"a system and a run of another are both called {taken[0]}; rename the system")
        named |= dict(zip(names[system], runs, strict=True))
    return named, names
