"""The runs that a command names: RUN, NAME=RUN, and NAME=RUN,RUN or a pattern for several runs of a system."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from goodgain.counting.run_opening import find_likely_replicates, number_repeats
from goodgain.errors import InputError, MeasureError, notice
from goodgain.files.opening import as_text, stem
from goodgain.formats.any_source import exists
from goodgain.measures.names import parse_measures


def find_systems(runs: Sequence[str]) -> dict[str, list[str]]:
    """Return {name: paths} for runs given as PATH or NAME=PATH. NAME=PATH,PATH gives several runs of one system.

    >>> find_systems(["old=main/agent.run", "new/agent.run"])
    {'old': ['main/agent.run'], 'agent': ['new/agent.run']}
    """
    for run in runs:
        _refuse_measures(run)
    named_paths = [split_name(run) for run in runs]
    names_of_files = iter(name_systems([path for name, path in named_paths if not name]))

    systems: dict[str, list[str]] = {}
    for name, path in named_paths:
        system = as_text(name) or next(names_of_files)
        if system in systems:
            fault = f"two systems have the name {system}: {systems[system][0]} and {path}"
            raise InputError(f"{fault}; write NAME=FILE to rename one of the two")
        systems[system] = find_replicates(path) if name else [path]

    _suggest_replicates(systems)
    return systems


def _refuse_measures(run: str) -> None:
    """Raise `InputError` if a measure stands where a run is expected."""
    if exists(run):
        return
    try:
        parse_measures(run, complete=False)
    except MeasureError:
        if re.search(r"@\d", run) is None:
            return
    option = f"-m {shlex.quote(run)}"
    raise InputError(f"{run}: there is no such run. To name a measure, write {option} behind the runs")


def find_files(runs: Sequence[str]) -> list[str]:
    return [path for paths in find_systems(runs).values() for path in paths]


def find_single_runs(runs: Sequence[str]) -> dict[str, str]:
    """Return {name: path} for runs given as PATH or NAME=PATH. Raise `InputError` if a system has several runs."""
    systems = find_systems(runs)
    for name, paths in systems.items():
        if len(paths) > 1:
            raise InputError(
                f"{name}= names {len(paths)} runs of one system. Give one run. Several runs of a system are "
                "averaged only by evaluate, curve, compare, report and explain."
            )
    return {name: path for name, (path,) in systems.items()}


def find_replicates(paths: str) -> list[str]:
    """Return the files in `paths`, a comma-separated list of file names and patterns. The name of an existing file is not split."""
    if exists(paths):
        return [paths]
    files: list[str] = []
    for path in paths.split(","):
        if not path:
            raise InputError(f"{paths}: has no file before or after a comma. Write NAME=FILE,FILE.")
        if exists(path) or not glob.has_magic(path):
            files.append(path)
            continue

        matches = sorted(glob.glob(path), key=_number_parts)  # noqa: PTH207  # any text
        if not matches:
            raise InputError(f"{path}: no file matches this pattern")
        files += matches

    for path in files:
        if files.count(path) > 1:
            raise InputError(f"{paths}: has {path} twice. Name each run of a system once.")
    return files


def _number_parts(path: str) -> list[tuple[int, str]]:
    """Return a sort key in which run2 stands before run10."""
    parts = re.split(r"(\d+)", path)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _suggest_replicates(systems: Mapping[str, Sequence[str]]) -> None:
    """Give a notice if names of single runs, such as agent.1 and agent.2, look like several runs of one system."""
    singles = [system for system, paths in systems.items() if len(paths) == 1]
    for front, alike in find_likely_replicates(singles).items():
        name = Path(front).name
        path = Path(systems[alike[0]][0])
        pattern = path.with_name(f"{name}.*{path.suffix}")
        notice(
            "likely_replicates",
            f"{', '.join(alike)} look like runs of one system. If they are, write '{name}={pattern}': their values "
            "are averaged query by query.",
        )


def split_name(argument: str) -> tuple[str, str]:
    """Split NAME=PATH into (name, path). If the argument has no = or is the path of an existing file, return ("", argument)."""
    name, sign, path = argument.partition("=")
    if not sign or exists(argument):
        return "", argument
    if not name or not path:
        raise InputError(f"{argument}: write NAME=FILE, with the name of a system and its file, or just FILE")
    return name, path


def name_systems(runs: Sequence[str]) -> list[str]:
    """Return a distinct name for each file: its stem, preceded by as many folders as needed. Repeated files get a number.

    >>> name_systems(["main/agent.run", "new/agent.run"])
    ['main/agent', 'new/agent']
    """
    paths = [Path(run) for run in runs]
    name_of = {path: str(path) for path in paths}  # for files with the same stem and folder, such as a.run and a.jsonl
    most_folders = max((len(path.parts) for path in paths), default=0)
    for folders in range(most_folders):
        short_name_of = {path: _name_with_folders(path, folders) for path in paths}
        if len({*short_name_of.values()}) == len(short_name_of):
            name_of = short_name_of
            break
    return number_repeats([as_text(name_of[path]) for path in paths])


def _name_with_folders(path: Path, number: int) -> str:
    """Return the stem of a file after the last `number` of its folders."""
    folders = path.parts[:-1]
    return "/".join([*folders[max(0, len(folders) - number) :], stem(path)])
