"""Writes how to make a report again: a command, or a call in Python."""

import os
import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from goodgain.counting.run_opening import list_runs
from goodgain.formats.no_labels import NO_LABELS
from goodgain.measures.names import Measures, parse_measures
from goodgain.options import DOCUMENTS, READING

#: The sentence in place of a command if an input is not a file.
_IN_MEMORY = "Made in Python from data in memory."
#: A list with at most so many texts, such as the ids of `only`, is written out.
_MOST_WRITTEN = 20
#: The options of an experiment that the command `report` has too.
_OF_COMMAND = [option.name for option in (*READING, *DOCUMENTS)] + ["rel", "order", "provider"]


def write_command(
    qrels: Any,
    runs: Mapping[str, Any],
    path: Any,
    measures: Measures,
    files: Mapping[str, Any],
    options: Mapping[str, Any],
    own: Mapping[str, Any],
) -> str:
    """Return how to make the report again: a command, or a call in Python if the command lacks an option.

    `options` are the options of the experiment that are not defaults, and `order`. `own` are arguments of `report`.
    """
    runs_of = {system: list_runs(runs_of_system) for system, runs_of_system in runs.items()}
    tables = {name: list_runs(table) for name, table in files.items() if table is not None}

    sources = [*chain(*runs_of.values()), *chain(*tables.values())]
    if qrels is not NO_LABELS:
        sources.append(qrels)
    are_files = all(isinstance(source, (str, os.PathLike)) for source in sources)
    if not are_files or not all(map(_is_written, options.values())):
        return _IN_MEMORY

    names = " ".join(map(str, parse_measures(measures, rel=options.get("rel"))))
    report = _Report(qrels, runs_of, path, names, tables, options, own)
    for option, value in options.items():
        if option not in _OF_COMMAND or isinstance(value, (list, tuple)):
            return _write_call(report)
    return _write_shell_command(report)


class _Report(NamedTuple):
    """What a report is made from, all in files. The fields are as in `write_command`."""

    qrels: Any
    runs: Mapping[str, Sequence[Any]]  # system -> files of its runs
    path: Any
    measures: str
    tables: Mapping[str, Any]  # argument -> files
    options: Mapping[str, Any]
    own: Mapping[str, Any]


def _is_written(value: Any) -> bool:
    """Return whether a command or call can have an option with this value: text, numbers, paths, and short lists of texts."""
    if isinstance(value, (list, tuple)):
        return len(value) <= _MOST_WRITTEN and all(isinstance(item, str) for item in value)
    values = value.values() if isinstance(value, Mapping) else [value]
    return all(item is None or isinstance(item, (str, int, float, os.PathLike)) for item in values)


def _write_shell_command(report: _Report) -> str:
    """Return the command `goodgain report`, with all words quoted for a shell."""
    words = ["report"]
    words.append("--no-labels" if report.qrels is NO_LABELS else report.qrels)
    for system, files in report.runs.items():
        words.append(f"{system}={','.join(map(str, files))}")
    words += ["-m", report.measures]

    options = report.options
    in_order = {
        **report.tables,
        "rel": options.get("rel"),
        "details": report.own["details"],
        "order": options.get("order"),
        "provider": options.get("provider"),
        "format": report.own["format"],
        **{name: value for name, value in options.items() if name not in ("rel", "order", "provider")},
    }
    for name, value in in_order.items():
        for text in _write_values(value):
            words += [f"--{name.replace('_', '-')}", text]
    return shlex.join(["goodgain", *map(str, words), "-o", str(report.path)])


def _write_values(value: Any) -> list[Any]:
    """Return the values of an option on the command line, one for each time that the option is given."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        return [value]
    pairs = [f"{key}={part}" for key, part in value.items()]
    is_of_systems = all(isinstance(part, int) for part in value.values())  # page=, given once for each system
    return pairs if is_of_systems else [",".join(pairs)]


def _write_call(report: _Report) -> str:
    """Return the call in Python: of `Experiment` with all options, then of its method `report`."""
    systems = ", ".join(f"{system!r}: {_write_argument(files)}" for system, files in report.runs.items())
    of_experiment = "".join(f", {name}={_write_option(value)}" for name, value in report.options.items())
    experiment = f"goodgain.Experiment({_write_argument(report.qrels)}, {{{systems}}}{of_experiment})"

    own = {**report.tables, **report.own}
    of_report = "".join(f", {name}={_write_argument(value)}" for name, value in own.items() if value is not None)
    return f"{experiment}.report({_write_argument(report.path)}, {report.measures!r}{of_report})"


def _write_option(value: Any) -> str:
    return repr([*value]) if isinstance(value, (list, tuple)) else _write_argument(value)


def _write_argument(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return repr(os.fspath(value))
    if isinstance(value, list) and len(value) == 1:
        return _write_argument(value[0])
    if isinstance(value, list):
        return f"[{', '.join(map(_write_argument, value))}]"
    return repr(value)
