"""Opens the logs in a file: the file itself, each file of a zip archive, or the response in a stream of events.

A log may also be wrapped: in a HAR recording, in HTTP exchanges, or as one Python dict per line. This module also
limits the size to which a file may unpack.
"""

import re
import struct
import zipfile
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson
import zstandard

from goodgain.errors import InputError
from goodgain.files import opening
from goodgain.files.json_text import NotJSONError, loads, parse_if_json
from goodgain.files.opening import COMPRESSED, JSON_LINES
from goodgain.files.table_reading import read_container
from goodgain.logs.traces.expected_values import object_or_empty, objects_in
from goodgain.logs.traces.input.event_streams import assemble_stream
from goodgain.logs.traces.input.file_head import HEAD_SIZE, MAX_HEAD, FileHead
from goodgain.logs.traces.tool_outputs.values_in_text import read_python

Opener = Callable[[], AbstractContextManager[IO[bytes]]]

#: Endings of files of traces, before `.gz` and `.zst`.
ENDINGS = (".json", *JSON_LINES, ".txt", ".log", ".sse", ".eval", ".zip", ".har", ".parquet", ".db", ".sqlite")
LOG_ENDINGS = (*ENDINGS, *COMPRESSED)
#: The first bytes of a Parquet file, and how many of its rows are used to recognise a format.
_PARQUET, _HEAD_ROWS = b"PAR1", 200
_PIECE = 1 << 20
#: The limit of what is in memory at once: a stream of events, or a file in an archive.
_MAX_STREAM = 256 << 20
#: The logs in an archive may unpack to 1 GiB, or to this many times the size of the archive.
_MAX_UNPACKED, _MAX_TIMES = 1 << 30, 100
_FIRST_EVENTS = (("type", "response.created"), ("type", "message_start"), ("object", "chat.completion.chunk"))
#: From the ZIP specification: the method number of Zstandard, and the size of the header before a member.
_ZIP_ZSTD, _ZIP_HEADER = 93, 30
#: What zipfile raises for damaged, encrypted and unknown content.
_ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, zstandard.ZstdError, EOFError, OSError, RuntimeError, ValueError),
    *(NotImplementedError, struct.error),
)
_KINDS_IN_ARCHIVES = {"json", "jsonl", "text", "events"}
#: The beginning of a dict that Python printed.
_PYTHON = re.compile(rb"\s*\{\s*'")
_OF_HTTP = {"url", "method", "headers", "status", "status_code"}


class Log(NamedTuple):
    path: Path  # as messages name it: `logs.zip/a.json` for a file in an archive
    head: FileHead
    open: Opener
    ends: bool = True  # False for a stream of events that is incomplete


def list_logs(directory: Path) -> list[Path]:
    paths = [path for path in directory.iterdir() if path.name.lower().endswith(LOG_ENDINGS)]
    return sorted(path for path in paths if path.is_file())


def base_name(path: Path) -> str:
    """Return the file's name without the endings of its compression and type: `q12.json.gz` -> `q12`."""
    name = opening.plain_name(opening.as_text(path.name))
    ending = next((ending for ending in ENDINGS if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)] or name


def find_logs(path: Path, is_claimed: Callable[[FileHead], bool]) -> Iterator[Callable[[], Log]]:
    """For each log in a file, yield a function that opens the log. An archive is a single log if a format reads it as a whole."""
    head = read_head(path)
    if head.kind != "zip" or is_claimed(head):
        yield lambda: _assemble(Log(path, head, partial(opening.open_stream, path)))
        return
    with _open_archive(path, _is_log) as (archive, infos):
        if not infos:
            raise InputError(
                f"{path}: holds no file that ends in {', '.join(LOG_ENDINGS)}; unpack the archive, and give the paths of its logs"
            )
        for info in infos:
            yield partial(_open_member_log, archive, info, Path(f"{path}/{info.filename}"))


def read_at_most(file: IO[bytes], most: int) -> bytes:
    """Read up to `most` bytes, in pieces: some decompressors allocate the whole requested size first."""
    content = bytearray()
    while len(content) < most:
        piece = file.read(min(_PIECE, most - len(content)))
        if not piece:
            break
        content += piece
    return bytes(content)


def read_head(path: Path, opener: Opener | None = None) -> FileHead:
    """Read enough of a file's beginning to recognise its format. `opener` opens the file if it is inside an archive."""
    name = opening.plain_name(path.name)
    size = HEAD_SIZE
    with opening.open_stream(path) if opener is None else opener() as file:
        raw = read_at_most(file, size + 1)
        if raw.startswith(_PARQUET):
            return FileHead(path.name, raw[:size], whole=False, rows=read_rows(path, _HEAD_ROWS))

        while True:
            head = FileHead(name, raw[:size], whole=len(raw) <= size)
            if head.whole or size >= MAX_HEAD or head.is_enough:
                break
            size *= 2
            raw += read_at_most(file, size + 1 - len(raw))

        # So far there is one line, which is the whole file or one of several records.
        if head.kind == "json" and not head.whole and b"\n" not in raw.lstrip():
            further = raw + read_at_most(file, MAX_HEAD - len(raw))
            if FileHead(name, further, whole=False).kind == "jsonl":
                head = FileHead(name, head.raw, whole=False, in_lines=True)
    return head


def read_rows(path: Path, count: int | None = None) -> list[dict[str, Any]]:
    return read_container(opening.read_bytes(path), path, "parquet", rows=count).to_dicts()


@contextmanager
def _open_archive(
    path: Path, is_wanted: Callable[[str], bool]
) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]]:
    """Open a zip archive, and give its files with wanted names, sorted by name. Refuse an archive that unpacks to too much."""
    with _explain_errors(path), zipfile.ZipFile(path) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir() and is_wanted(info.filename)]
        total = sum(info.file_size for info in infos)
        if total > max(_MAX_UNPACKED, _MAX_TIMES * path.stat().st_size):
            raise InputError(
                f"{path}: unpacks to {total >> 20:,} MiB, over {_MAX_TIMES} times its size, like a decompression bomb; if "
                "you trust the archive, unpack it, and read its files"
            )
        yield archive, sorted(infos, key=lambda info: info.filename)


def read_json_members(path: Path) -> Iterator[tuple[Any, str]]:
    """Yield the value and the name of each JSON file in an archive, in the order of names."""
    with _open_archive(path, lambda name: name.endswith(".json")) as (archive, infos):
        for info in infos:
            try:
                value = loads(_read_member(archive, info))
            except NotJSONError as error:
                raise InputError(f"{path}: {info.filename} in it is not JSON ({error}); write the log again") from None
            yield value, info.filename


def _is_log(name: str) -> bool:
    """Return whether a file in an archive may be a log, judged by its name. Hidden files, which macOS adds, are not logs."""
    hidden = name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")
    return not hidden and name.lower().endswith(LOG_ENDINGS)


def _open_member_log(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Log:
    opener = partial(_open_member, archive, info, path)
    head = read_head(path, opener)
    if head.kind not in _KINDS_IN_ARCHIVES or head.is_binary:
        raise InputError(f"{path}: is {head.description}, which is not read inside an archive; unpack the archive")
    return _assemble(Log(path, head, opener))


@contextmanager
def _open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Iterator[IO[bytes]]:
    """Open a file in an archive, and decompress the file if it is itself compressed (`.gz`, `.zst`)."""
    with _explain_errors(path):
        is_zstd = info.compress_type == _ZIP_ZSTD
        member: IO[bytes] = BytesIO(_read_member(archive, info)) if is_zstd else archive.open(info)
        with BufferedReader(member) as file:  # type: ignore[type-var]  # streams in all but their declared type
            kind = opening.compression_of(file.peek(4))
            if kind is None:
                yield file
                return
            with opening.unpack(file, kind, path, None) as stream:  # of any size: the limit is below
                unpacked = read_at_most(stream, _MAX_STREAM + 1)
        if len(unpacked) > _MAX_STREAM:
            raise InputError(
                f"{path}: this file of an archive unpacks to more than 256 MiB. Unpack the archive, and read its files"
            )
        yield BytesIO(unpacked)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except _ARCHIVE_ERRORS as error:
        raise InputError(f"{path}: cannot be read from its archive ({error}); write the archive again") from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Read a file in an archive, also if it is compressed by Zstandard, which zipfile reads only from Python 3.14 on."""
    if info.file_size > _MAX_STREAM:
        raise InputError(f"{archive.filename}: {info.filename} in it is larger than 256 MiB; split the log")
    if info.compress_type != _ZIP_ZSTD or archive.fp is None:
        return archive.read(info)

    archive.fp.seek(info.header_offset)
    header = archive.fp.read(_ZIP_HEADER)
    if len(header) < _ZIP_HEADER or not header.startswith(b"PK\x03\x04"):
        raise zipfile.BadZipFile(f"no file begins where {info.filename} should")
    # Bytes 26 to 29 hold the lengths of the name and of the extra field, which are between header and data.
    name_length = int.from_bytes(header[26:28], "little")
    extra_length = int.from_bytes(header[28:30], "little")
    archive.fp.seek(name_length + extra_length, 1)

    packed = archive.fp.read(info.compress_size)
    with zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        content = stream.read(info.file_size + 1)  # stop a decompression bomb one byte after the declared size
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{info.filename} is damaged")
    return content


def _assemble(log: Log) -> Log:
    """Replace a stream of events by the response in it, and a wrapped log by the log inside. Return any other log unchanged."""
    is_stream = _is_stream(log.head)
    is_python = log.head.kind in ("json", "jsonl", "text") and _PYTHON.match(log.head.raw) is not None
    if not (is_stream or is_python or any(_unwrap(record) is not record for record in log.head.records)):
        return log

    with log.open() as file:
        content = read_at_most(file, _MAX_STREAM + 1)
    if len(content) > _MAX_STREAM:
        kind = "stream of events" if is_stream else "recording"
        raise InputError(f"{log.path}: the {kind} is larger than 256 MiB; write the model's answers to several files")

    if not is_stream:
        is_in_lines = log.head.kind == "jsonl" or _PYTHON.match(content)
        parts = content.splitlines() if is_in_lines else [content]
        inside = b"\n".join(map(_rewrite, parts))
        head = FileHead(log.head.name, inside[:MAX_HEAD], whole=len(inside) <= MAX_HEAD)
        return Log(log.path, head, lambda: BytesIO(inside))

    assembled = assemble_stream(content.decode("utf-8", "replace"))
    if assembled is None:
        return log
    response, is_complete = assembled
    answer = orjson.dumps(response)
    return Log(log.path, FileHead("answer.json", answer, whole=True), lambda: BytesIO(answer), is_complete)


def _is_stream(head: FileHead) -> bool:
    """Return whether a file holds the events of one response, as a stream or, without `data:`, as JSON Lines."""
    if head.kind == "events":
        return True
    first = next(iter(head.records), None) if head.kind == "jsonl" else None
    return isinstance(first, dict) and any(first.get(key) == value for key, value in _FIRST_EVENTS)


def _rewrite(part: bytes) -> bytes:
    """Return one value of a wrapped log as JSON without its wrapping. Text that is no such value stays as it is."""
    with suppress(NotJSONError, TypeError):  # TypeError: nested too deep to be written
        value = loads(part)
        unwrapped = list(map(_unwrap, value)) if isinstance(value, list) else _unwrap(value)
        return orjson.dumps(unwrapped)
    value_and_rest = read_python(part.decode("utf-8", "replace").strip())
    return part if value_and_rest is None else orjson.dumps(value_and_rest[0])


def _unwrap(record: Any) -> Any:
    """Return the exchanges of a HAR recording, or an HTTP exchange reduced to its bodies; any other value unchanged."""
    entries = objects_in(object_or_empty(object_or_empty(record).get("log")).get("entries"))
    if any("request" in entry for entry in entries):
        return list(map(_read_entry, entries))
    if not isinstance(record, dict) or not {"request", "response"} <= record.keys():
        return record

    bodies = {}
    for key in ("request", "response"):
        message = record[key]
        is_http = isinstance(message, dict) and "body" in message and not _OF_HTTP.isdisjoint(message)
        bodies[key] = parse_if_json(message["body"] if is_http else message)
    is_changed = any(body is not record[key] for key, body in bodies.items())
    return {**record, **bodies} if is_changed and isinstance(bodies["request"], dict) else record


def _read_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of a HAR recording as an exchange. A request without a JSON body becomes an object with its URL."""
    request = object_or_empty(entry.get("request"))
    body = parse_if_json(object_or_empty(request.get("postData")).get("text"))

    response = object_or_empty(entry.get("response"))
    content = object_or_empty(response.get("content"))
    text = content.get("text")
    if content.get("encoding") == "base64" and isinstance(text, str):
        with suppress(ValueError):
            text = b64decode(text).decode("utf-8", "replace")
    return {
        "request": body if isinstance(body, dict) else {"url": request.get("url")},
        "response": parse_if_json(text),
    }
