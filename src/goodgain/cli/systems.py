"""What commands that take several runs share: the argument, the names of the systems, and how runs and qrels are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from goodgain.batches.run_file import RunFile, open_run
from goodgain.comparing.grids import ROWS
from goodgain.errors import InputError
from goodgain.files.opening import stem
from goodgain.files.writing import Outputs
from goodgain.formats import Qrels, Run
from goodgain.formats.qrels import load_qrels

__all__ = [
    "Reading",
    "bounds_option",
    "check_plot",
    "find_systems",
    "name_systems",
    "open_systems",
    "path_exists",
    "reading_of",
    "rows_option",
    "runs_argument",
]

runs_argument = click.argument("runs", metavar="RUN...", nargs=-1, required=True)
rows_option = click.option(
    "--rows",
    type=click.Choice(ROWS),
    default=ROWS[0],
    show_default=True,
    help="What the rows of the table of means are.",
)
bounds_option = click.option(
    "--bounds",
    is_flag=True,
    help="Also print how far results without a judgment could move a value, with labels from 0 to the largest one.",
)


@dataclass(frozen=True)
class Reading:
    """The options that say how runs and qrels are read; those of `read_run` and `read_qrels`."""

    gaps: str
    first: int
    columns: dict[str, str]
    errors: str
    labels: str | None = None


def reading_of(options: dict[str, Any]) -> Reading:
    """Take the options of reading out of the options of a command."""
    names = [name for name in Reading.__dataclass_fields__ if name in options]
    return Reading(**{name: options.pop(name) for name in names})


def open_systems(qrels: str | None, runs: Sequence[str], reading: Reading) -> tuple[Any, dict[str, Run | RunFile]]:
    """Read the qrels, if there are any, and open runs, each under the name of its system."""
    judged: Qrels | None = None
    if qrels is not None:
        judged = load_qrels(qrels, labels=reading.labels, errors=reading.errors, columns=reading.columns)
    opened = {
        name: open_run(path, gaps=reading.gaps, first=reading.first, errors=reading.errors, columns=reading.columns)
        for name, path in find_systems(runs).items()
    }
    return judged, opened


def check_plot(plot: Path | None, qrels: str, runs: Sequence[str]) -> None:
    """Check that a picture is not written over an input.

    Raises:
        InputError: it would be.
    """
    if plot is not None:
        Outputs(map(Path, [qrels, *find_systems(runs).values()])).add(plot)


def find_systems(runs: Sequence[str]) -> dict[str, str]:
    """Return name -> path for runs given as PATH or NAME=PATH; a file that has the whole text as its name is a path.

    Raises:
        InputError: two systems have the same name.

    >>> find_systems(["old=main/agent.run", "new/agent.run"])
    {'old': 'main/agent.run', 'agent': 'new/agent.run'}
    """
    divided = [run.partition("=") if "=" in run and not path_exists(run) else ("", "", run) for run in runs]
    own = iter(name_systems([path for _, sign, path in divided if not sign]))
    named: dict[str, str] = {}
    for name, sign, path in divided:
        system = name if sign else next(own)
        if not system or not path:
            raise InputError(f"{name}={path}: write NAME=FILE, the name of a system and its run, or the file alone")
        if system in named:
            raise InputError(
                f"two systems are called {system}: {named[system]} and {path}; write NAME=FILE to name one"
            )
        named[system] = path
    return named


def path_exists(run: str) -> bool:
    """Return whether a file has this name; a text that is too long for a name has none."""
    return os.path.exists(run)  # noqa: PTH110  # Path.exists raises an error for such a text


def name_systems(runs: Sequence[str]) -> list[str]:
    """Return a name for each file: its stem, with as many folders as distinguish it; a file given twice gets a number.

    >>> name_systems(["main/agent.run", "new/agent.run"])
    ['main/agent', 'new/agent']
    """
    paths = [Path(run) for run in runs]
    if not paths:
        return []
    named = _find_distinct_names(list(dict.fromkeys(paths)))
    times = [paths[:k].count(path) + 1 for k, path in enumerate(paths)]
    return [named[path] + (f" ({time})" if time > 1 else "") for path, time in zip(paths, times, strict=True)]


def _find_distinct_names(paths: Sequence[Path]) -> dict[Path, str]:
    """Return names with as few folders as make them distinct."""
    for folders in range(max(len(path.parts) for path in paths)):
        named = {path: "/".join([*path.parts[:-1][::-1][:folders][::-1], stem(path)]) for path in paths}
        if len(set(named.values())) == len(named):
            return named
    return {path: str(path) for path in paths}  # a.run and a.jsonl have the same stem and folder
