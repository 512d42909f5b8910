"""Which files are read, in what order, and in which pieces, so that memory stays bounded and pieces are read apart."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from goodgain.errors import InputError
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import read_head
from goodgain.traces.reading.known_formats import Format, detect_format, get_format

__all__ = ["Paths", "Piece", "Task", "find_trace_files", "plan_tasks", "read_head_and_format"]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_TASK_SIZE, _READ_SIZE = 16 << 20, 256 << 10
_ENDINGS = (".json", ".jsonl", ".ndjson", ".txt", ".log", ".eval", ".gz", ".zst")


class Piece(NamedTuple):
    """A file, or of a file of JSON Lines the lines in a range of bytes."""

    path: Path
    size: int
    span: tuple[int, int] | None = None
    first_line: int = 1
    first_number: int = 1
    format: str = "auto"


class Task(NamedTuple):
    """Pieces that are read in one go."""

    pieces: list[Piece]


def find_trace_files(paths: Paths) -> list[Path]:
    """Return the files that paths name: themselves, and of a directory those in it whose names end as traces do.

    Raises:
        InputError: there is none, a path does not exist, or one file is named twice.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: list[Path] = []
    for path in map(Path, given):
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.name.lower().endswith(_ENDINGS) and file.is_file())
            if not inside:
                raise InputError(
                    f"{path}: the directory holds no file that ends in {', '.join(_ENDINGS)}; name the files"
                )
            found += inside
        elif not path.exists():
            raise InputError(f"{path}: no such file; give the path of a trace")
        else:
            found.append(path)
    if not found:
        raise InputError("no trace was given; name at least one file")
    seen: set[Path] = set()
    for path in found:
        if path in seen:
            raise InputError(f"{path}: is given twice; name each file once")
        seen.add(path)
    return found


def read_head_and_format(path: Path, name: str) -> tuple[FileHead, Format]:
    """Return the head of a file, and its format: the one named, or the one that claims it."""
    head = read_head(path)
    return head, detect_format(path, head) if name == "auto" else get_format(name)


def plan_tasks(files: list[Path], format_name: str, *, apart: bool) -> Iterator[Task]:
    """Yield what there is to read: small files together, and to be read `apart` large files of JSON Lines in pieces."""
    pieces: list[Piece] = []
    waiting = 0
    for path in files:
        size = path.stat().st_size
        if apart and size > 2 * _TASK_SIZE and (parts := _split_file(path, format_name)):
            if pieces:
                yield Task(pieces)
                pieces, waiting = [], 0
            yield from (Task([part]) for part in parts)
            continue
        pieces.append(Piece(path, size))
        waiting += size
        if waiting >= _TASK_SIZE:
            yield Task(pieces)
            pieces, waiting = [], 0
    if pieces:
        yield Task(pieces)


def _split_file(path: Path, format_name: str) -> Iterator[Piece] | None:
    """Yield the pieces of a file whose lines are traces, or None if it has to be read in one go."""
    with path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b" or path.suffix.lower() == ".zst":
            return None
    head, found = read_head_and_format(path, format_name)
    if head.kind != "jsonl" or not found.independent(head):
        return None
    return _split_lines(path, found.name)


def _split_lines(path: Path, format_name: str) -> Iterator[Piece]:
    """Yield ranges of whole lines, with the numbers of their first line and first trace; blank lines hold no trace."""
    start, first_line, first_number, size, traces = 0, 1, 1, 0, 0
    with path.open("rb", buffering=_READ_SIZE) as file:
        for line_number, line in enumerate(file, start=1):
            size += len(line)
            traces += not line.isspace()
            if size >= _TASK_SIZE:
                yield Piece(path, size, (start, start + size), first_line, first_number, format_name)
                start, first_line, first_number = start + size, line_number + 1, first_number + traces
                size = traces = 0
    if size:
        yield Piece(path, size, (start, start + size), first_line, first_number, format_name)
