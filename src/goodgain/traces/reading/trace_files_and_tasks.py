"""Finds the files to read, and divides them into tasks: small files together, large ones in parts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from goodgain.errors import InputError
from goodgain.files.escaping import check_name
from goodgain.files.opening import compression, explain_read_errors, make_path, open_plain
from goodgain.traces.input.logs_and_archives import LOG_ENDINGS, list_logs, read_head
from goodgain.traces.reading.known_formats import detect_format, formats, get_format

PathsOfSystem = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
#: The traces of one system, or those of each system by its name.
Paths = PathsOfSystem | Mapping[str, PathsOfSystem]

#: Bytes of a task: large enough that starting it costs little, small enough for several in memory.
_TASK_SIZE = 16 << 20


class TraceFile(NamedTuple):
    """A file of traces, or the lines in a range of its bytes.

    Attributes:
        system: the name of its system, if the caller gave one.
        size: how many bytes are read.
        span: the range; `first_line` and `first_number` are the numbers of the first line and of the first trace in it.
        format: the name of its format, if known.
    """

    path: Path
    system: str | None
    size: int
    span: tuple[int, int] | None = None
    first_line: int = 1
    first_number: int = 1
    format: str = "auto"


def find_trace_files(paths: Paths) -> list[TraceFile]:
    """Return the files that paths name; a directory stands for the files in it with an ending of traces.

    Raises:
        InputError: there are no files, a path does not exist, one file is named twice, or a system has no name.
    """
    if isinstance(paths, Mapping):
        for name in paths:
            if not isinstance(name, str) or not name:
                raise InputError(f"{name!r} is not the name of a system; give a text, as in {{'old': 'old.jsonl'}}")
            check_name(name, "system")
        named = [(path, name) for name, of_system in paths.items() for path in _list_files(of_system)]
    else:
        named = [(path, None) for path in _list_files(paths)]
    if not named:
        raise InputError("no trace was given; name at least one file")
    files: dict[Path, TraceFile] = {}
    for path, system in named:
        if path in files:
            raise InputError(f"{path}: is given twice; name each file once")
        files[path] = TraceFile(path, system, path.stat().st_size)
    return list(files.values())


def _list_files(paths: PathsOfSystem) -> list[Path]:
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(given, Iterable):
        raise InputError(
            f"the traces are a {type(given).__name__}; give the path of a file or folder, or a list of them"
        )
    files: list[Path] = []
    for path in (make_path(one, "one of the traces") for one in given):
        with explain_read_errors(path):  # a log passed as text is too long for a name
            files += _list_files_at(path)
    return files


def _list_files_at(path: Path) -> list[Path]:
    if path.is_dir():
        if whole := [file for known in formats().values() for file in known.find(path)]:
            return whole
        if inside := list_logs(path):
            return inside
        raise InputError(f"{path}: the directory holds no file that ends in {', '.join(LOG_ENDINGS)}; name the files")
    if not path.exists():
        raise InputError(f"{path}: no such file; give the path of a trace")
    if not path.is_file():
        raise InputError(
            f"{path}: is a pipe or a device, which can be read only once, but a log is read twice; write it to a file"
        )
    return [path]


def plan_tasks(files: list[TraceFile], format_name: str, *, apart: bool) -> Iterator[list[TraceFile]]:
    """Yield the files of each task, which one process reads: small files together, large ones alone.

    If tasks are read `apart`, large files of JSON Lines are split.
    """
    task: list[TraceFile] = []
    size = 0
    for file in files:
        # Splitting a file of less than two tasks takes longer than it saves.
        parts = _split_file(file, format_name) if apart and file.size > 2 * _TASK_SIZE else None
        if parts is None:
            task.append(file)
            size += file.size
        if task and (parts is not None or size >= _TASK_SIZE):
            yield task
            task, size = [], 0
        yield from ([part] for part in parts or ())
    if task:
        yield task


def _split_file(file: TraceFile, format_name: str) -> Iterator[TraceFile] | None:
    """Return the parts of a file whose lines are traces; None if one process has to read all of it."""
    if compression(file.path) is not None:  # cannot be read from the middle
        return None
    head = read_head(file.path)
    if head.kind != "jsonl" or head.lines_are_messages:
        return None
    trace_format = detect_format(file.path, head) if format_name == "auto" else get_format(format_name)
    return _split_lines(file._replace(format=trace_format.name)) if trace_format.independent(head) else None


def _split_lines(file: TraceFile) -> Iterator[TraceFile]:
    """Yield ranges of whole lines with the numbers of their first line and first trace; blank lines are not traces."""
    start = end = traces = 0
    part = file
    with open_plain(file.path) as lines:
        for line_number, line in enumerate(lines, start=1):
            end += len(line)
            traces += not line.isspace()
            if end - start >= _TASK_SIZE:
                yield part._replace(size=end - start, span=(start, end))
                start, part = end, file._replace(first_line=line_number + 1, first_number=1 + traces)
    if end > start:
        yield part._replace(size=end - start, span=(start, end))
