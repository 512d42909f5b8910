"""Finds the files to read, and splits them into pieces, so that memory is bounded and processes can share the work."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from goodgain.errors import InputError
from goodgain.files.opening import COMPRESSED, compression, explain_read_errors, make_path, open_plain
from goodgain.files.safe_text import check_name
from goodgain.traces.input.sources import ENDINGS, read_head
from goodgain.traces.reading.detection import detect_format
from goodgain.traces.reading.known_formats import formats, get_format

__all__ = ["Paths", "Piece", "Task", "TraceFile", "find_trace_files", "plan_tasks"]

PathsOfSystem = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
#: The traces of one system, or those of each system by its name.
Paths = PathsOfSystem | Mapping[str, PathsOfSystem]

#: Bytes of a task: large enough that starting it costs little, small enough for several in memory.
_TASK_SIZE = 16 << 20
_ENDINGS = (*ENDINGS, *COMPRESSED)


class TraceFile(NamedTuple):
    """A file of traces, and the name of their system where the caller gave one."""

    path: Path
    system: str | None = None


class Piece(NamedTuple):
    """A file, or the lines in a range of bytes of a JSON Lines file; the traces in it are of one system if that is named."""

    path: Path
    system: str | None
    size: int
    span: tuple[int, int] | None = None
    first_line: int = 1
    first_number: int = 1
    format: str = "auto"


class Task(NamedTuple):
    """Pieces that are read one after the other by one process."""

    pieces: list[Piece]


def find_trace_files(paths: Paths) -> list[TraceFile]:
    """Return the files that paths name; a directory stands for the files in it with an ending of traces.

    Raises:
        InputError: there are no files, a path does not exist, one file is named twice, or a system has no name.
    """
    if isinstance(paths, Mapping):
        for name in paths:
            if not isinstance(name, str) or not name:
                raise InputError(
                    f"{name!r} is not the name of a system; give a text for each, as in {{'old': 'old.jsonl'}}"
                )
            check_name(name, "system")
        found = [TraceFile(path, name) for name, of_system in paths.items() for path in _list_files(of_system)]
    else:
        found = [TraceFile(path) for path in _list_files(paths)]
    if not found:
        raise InputError("no trace was given; name at least one file")
    seen: set[Path] = set()
    for file in found:
        if file.path in seen:
            raise InputError(f"{file.path}: is given twice; name each file once")
        seen.add(file.path)
    return found


def _list_files(paths: PathsOfSystem) -> list[Path]:
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(given, Iterable):
        raise InputError(
            f"the traces are a {type(given).__name__}; give the path of a file or folder, or a list of them"
        )
    found: list[Path] = []
    for path in (make_path(one, "one of the traces") for one in given):
        with explain_read_errors(path):  # a log that was given itself is too long for a name
            found += _list_files_at(path)
    return found


def _list_files_at(path: Path) -> list[Path]:
    if path.is_dir():
        if whole := [file for known in formats().values() for file in known.find(path)]:
            return whole
        inside = sorted(file for file in path.iterdir() if file.name.lower().endswith(_ENDINGS) and file.is_file())
        if not inside:
            raise InputError(f"{path}: the directory holds no file that ends in {', '.join(_ENDINGS)}; name the files")
        return inside
    if not path.exists():
        raise InputError(f"{path}: no such file; give the path of a trace")
    if not path.is_file():
        raise InputError(
            f"{path}: is a pipe or a device, which can be read only once, and a log is looked into first; write it to a file"
        )
    return [path]


def plan_tasks(files: list[TraceFile], format_name: str, *, apart: bool) -> Iterator[Task]:
    """Yield the tasks: small files together, large ones alone and, if pieces are read `apart`, in pieces."""
    pieces: list[Piece] = []
    waiting = 0
    for file in files:
        size = file.path.stat().st_size
        # A file of less than two tasks is not worth the reading it takes to split it.
        if apart and size > 2 * _TASK_SIZE and (parts := _split_file(file, format_name)):
            if pieces:
                yield Task(pieces)
                pieces, waiting = [], 0
            yield from (Task([part]) for part in parts)
            continue
        pieces.append(Piece(*file, size))
        waiting += size
        if waiting >= _TASK_SIZE:
            yield Task(pieces)
            pieces, waiting = [], 0
    if pieces:
        yield Task(pieces)


def _split_file(file: TraceFile, format_name: str) -> Iterator[Piece] | None:
    """Return the pieces of a file whose lines are traces; None if one process has to read all of it."""
    if compression(file.path) is not None:  # a compressed file has no place at which reading could begin in the middle
        return None
    head = read_head(file.path)
    if head.kind != "jsonl" or head.lines_are_messages:
        return None
    found = detect_format(file.path, head) if format_name == "auto" else get_format(format_name)
    if not found.independent(head):
        return None
    return _split_lines(file, found.name)


def _split_lines(file: TraceFile, format_name: str) -> Iterator[Piece]:
    """Yield ranges of whole lines with the numbers of their first line and first trace; blank lines are not traces."""
    start, first_line, first_number, size, traces = 0, 1, 1, 0, 0
    with open_plain(file.path) as lines:
        for line_number, line in enumerate(lines, start=1):
            size += len(line)
            traces += not line.isspace()
            if size >= _TASK_SIZE:
                yield Piece(*file, size, (start, start + size), first_line, first_number, format_name)
                start, first_line, first_number = start + size, line_number + 1, first_number + traces
                size = traces = 0
    if size:
        yield Piece(*file, size, (start, start + size), first_line, first_number, format_name)
