"""The logs in a file: the file itself, each file of a zip archive, or the answer that a stream of events makes."""

from __future__ import annotations

import gzip
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import orjson
import zstandard

from goodgain.errors import InputError
from goodgain.files.opening import COMPRESSED, ZstdReader, compression_of, open_stream
from goodgain.traces.input.event_streams import assemble_stream
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import ENDINGS, ZIP_ZSTD, Opener, read_at_most, read_head, read_member

__all__ = ["Log", "find_logs"]

#: A stream of events, or a compressed file in an archive, is held in memory, so that it may not be larger; the logs in
#: an archive may unpack to 1 GiB, or to this many times the size of the archive.
_MAX_STREAM, _MAX_UNPACKED, _MAX_TIMES = 256 << 20, 1 << 30, 100
_MAX_MEMBERS = 1_000_000
#: The folder in which macOS keeps what it knows of the files in an archive.
_MACOS = "__MACOSX/"
#: What zipfile raises for damaged, encrypted and unknown content.
_ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, zstandard.ZstdError, EOFError, OSError, RuntimeError, ValueError),
    *(NotImplementedError, struct.error),
)
#: What kinds of content a file in an archive may have; others are read from disk.
_KINDS_IN_ARCHIVES = {"json", "jsonl", "text", "events"}


class Log(NamedTuple):
    """A log as formats read it.

    Attributes:
        path: its path, as messages name it: `logs.zip/a.json` for a file in an archive.
        head: its first bytes.
        open: opens its bytes.
        ends: whether it has its end, as far as this can be seen: a stream of events may lack it.
    """

    path: Path
    head: FileHead
    open: Opener
    ends: bool = True


def find_logs(path: Path, is_claimed: Callable[[FileHead], bool]) -> Iterator[Callable[[], Log]]:
    """Yield what opens each log in a file. An archive that a format claims as a whole is one log.

    Raises:
        InputError: the file cannot be read, or is an archive that is damaged, holds no log or too many. What is yielded
            raises it for a single log.
    """
    head = read_head(path)
    if head.kind == "zip" and not is_claimed(head):
        yield from _find_in_archive(path)
    else:
        yield lambda: _assemble(Log(path, head, partial(open_stream, path)))


def _assemble(log: Log) -> Log:
    """Return a log with the answer that a stream of events makes; other logs are returned as they are."""
    if log.head.kind != "events":
        return log
    with log.open() as file:
        content = read_at_most(file, _MAX_STREAM + 1)
    if len(content) > _MAX_STREAM:
        raise InputError(f"{log.path}: the stream of events is larger than 256 MiB; write an answer a file")
    assembled = assemble_stream(content.decode("utf-8", "replace"))
    if assembled is None:
        return log
    whole = orjson.dumps(assembled.value)
    return Log(log.path, FileHead("answer.json", whole, whole=True), lambda: BytesIO(whole), assembled.is_whole)


def _find_in_archive(path: Path) -> Iterator[Callable[[], Log]]:
    """Yield what opens each log in a zip archive, in the order of their names: the files that a folder is searched for."""
    with _explain_errors(path), zipfile.ZipFile(path) as archive:
        infos = [info for info in archive.infolist() if _is_log(info)]
        if not infos:
            raise InputError(
                f"{path}: the archive holds no file that ends in {', '.join((*ENDINGS, *COMPRESSED))}; unpack it, and "
                "name the files"
            )
        total = sum(info.file_size for info in infos)
        if len(infos) > _MAX_MEMBERS or total > max(_MAX_UNPACKED, _MAX_TIMES * path.stat().st_size):
            raise InputError(
                f"{path}: the archive holds {len(infos):,} logs of {total >> 20:,} MiB in all, more than {_MAX_MEMBERS:,} or "
                f"over {_MAX_TIMES} times its size, as hostile files do; if it is meant so, unpack it, and read its files"
            )
        for info in sorted(infos, key=lambda info: info.filename):
            yield partial(_open_member_log, archive, info, Path(f"{path}/{info.filename}"))


def _open_member_log(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Log:
    opener = partial(_open_member, archive, info, path)
    head = read_head(path, opener)
    if head.kind not in _KINDS_IN_ARCHIVES or head.is_binary:
        raise InputError(f"{path}: is {head.description}, which is not read inside an archive; unpack it")
    return _assemble(Log(path, head, opener))


def _is_log(info: zipfile.ZipInfo) -> bool:
    name = info.filename
    hidden = name.startswith(_MACOS) or name.rpartition("/")[2].startswith(".")
    return not info.is_dir() and not hidden and name.lower().endswith((*ENDINGS, *COMPRESSED))


@contextmanager
def _open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Iterator[IO[bytes]]:
    """Open a file in an archive, decompressed: by the archive's own method, and `.gz` or `.zst` inside."""
    with _explain_errors(path):
        member: IO[bytes] = (
            BytesIO(read_member(archive, info)) if info.compress_type == ZIP_ZSTD else archive.open(info)
        )
        with BufferedReader(member) as file:  # type: ignore[type-var]  # streams in all but their declared type
            kind = compression_of(file.peek(4))
            if kind is None:
                yield file
                return
            content = gzip.GzipFile(fileobj=file) if kind == "gz" else ZstdReader(file)
            with BufferedReader(content) as packed:
                unpacked = read_at_most(packed, _MAX_STREAM + 1)
        if len(unpacked) > _MAX_STREAM:
            raise InputError(f"{path}: unpacks to more than 256 MiB inside an archive; unpack it, and read its files")
        yield BytesIO(unpacked)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except _ARCHIVE_ERRORS as error:
        raise InputError(f"{path}: cannot be read from its archive ({error}); write the archive again") from None
