"""Opens the qrels and the runs of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from goodgain.counting.run_in_blocks import RunFile
from goodgain.counting.run_opening import name_runs, open_systems
from goodgain.errors import Subject
from goodgain.formats import Qrels, Run

#: The first occurrences of a larger run are not cached: they take as much memory as the run.
_MOST_ROWS = 2_000_000


class Sources:
    """The qrels and the systems as they were given. Two experiments that share this object share what they read."""

    def __init__(self, qrels: Any, systems: Mapping[str, Any]) -> None:
        self.qrels = qrels
        self.systems = systems


@dataclass(frozen=True, eq=False)
class Opened:
    """The qrels and runs, after reading. `runs` maps names to runs; `names` maps each system to the names of its runs."""

    qrels: Qrels
    runs: Mapping[str, Run | RunFile]
    names: Mapping[str, list[str]]

    @property
    def has_replicates(self) -> bool:
        return any(len(names) > 1 for names in self.names.values())

    def list_runs(self) -> Iterator[tuple[str, Run | RunFile, Subject]]:
        """Yield the name of each run, the run, and what a notice on the run is about."""
        for name, run in self.runs.items():
            yield name, run, self.find_subject(name)

    def find_subject(self, name: str) -> Subject:
        """Return what a notice on a run is about: its system, and the number of the run if the system has several."""
        return self._subjects_of_replicates.get(name, Subject(name))

    @cached_property
    def _subjects_of_replicates(self) -> dict[str, Subject]:
        return {
            name: Subject(system, number)
            for system, names in self.names.items()
            for number, name in enumerate(names, 1)
            if len(names) > 1
        }


def open_inputs(sources: Sources, **options: Any) -> Opened:
    """Read the qrels and open each run. `options` are the options of reading and of documents."""
    runs, names = name_runs(sources.systems)
    if isinstance(page := options["page"], Mapping):  # sizes by system become sizes by run
        options["page"] = {run: size for system, size in page.items() for run in names.get(system, [system])}

    qrels, opened = open_systems(sources.qrels, runs, **options)
    copies = {name: copy(run) for name, run in opened.items()}
    for run in copies.values():
        if isinstance(run, Run) and isinstance(run.frame, pl.DataFrame) and run.frame.height <= _MOST_ROWS:
            run.firsts = {}  # a cache, by order
    return Opened(qrels, copies, names)


def rename_systems(opened: Opened, names: Mapping[str, str]) -> Opened:
    """Return the same runs under other names. `names` maps each system, which has a single run, to its new name."""
    runs = {new: opened.runs[old] for old, new in names.items()}
    return Opened(opened.qrels, runs, {name: [name] for name in runs})


def find_name(run: Run | RunFile) -> str:
    """Return the name of a run's file, else the run's only tag, else empty text."""
    if run.name or isinstance(run, RunFile) or "tag" not in run.rows.columns:
        return run.name or ""
    tags = run.rows.get_column("tag").unique().drop_nulls().to_list()
    return tags[0] if len(tags) == 1 else ""
