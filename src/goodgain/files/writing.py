"""Writes files atomically, and never over an input or another output. Writes tables at once or in batches.

A file that cannot be written raises `InputError`.
"""

import errno
import fcntl
import gzip
import io
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson
import polars as pl
import zstandard

from goodgain.errors import InputError, notice
from goodgain.files.opening import container, error_reason
from goodgain.schema import COMMENT, EMPTY_DOC

#: The number of an operating system's error, as Rust writes it.
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
#: Names of files that the process already has open.
_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/([0-9]{1,9})")
_PART_ENDING = re.compile(r"[0-9a-f]{8}\.part")
#: White space and control characters of Unicode: for some readers they end a field or a line.
_UNSAFE = r"[\s\p{Cc}\x{1c}-\x{1f}\x{85}\x{feff}]"
_UNSAFE_SIGN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufeff]")


class Outputs:
    """The files that a command writes: none may be an input or another output.

    Files are compared by device and inode: a link equals its target. Pipes and devices are not compared, because writing to
    them overwrites nothing.
    """

    def __init__(self, inputs: Iterable[Path]) -> None:
        self._inputs = {_identify(path): path for path in inputs}
        self._outputs: dict[Any, Path] = {}

    def add(self, path: Path) -> None:
        """Register a file before it is written. Raise `InputError` if the command reads or already writes this file."""
        identity = _identify(path)
        if identity is None:  # a pipe or device: writing to it overwrites nothing
            return
        # A missing input cannot be overwritten. Reading the input reports that it is missing.
        if identity in self._inputs and path.exists():
            input_path = self._inputs[identity]
            raise InputError(
                f"the output {path} is the same file as the input {input_path}; give the output another name"
            )
        if identity in self._outputs:
            earlier_path = self._outputs[identity]
            raise InputError(f"the outputs {earlier_path} and {path} are the same file; give each a name of its own")
        self._outputs[identity] = path


def _identify(path: Path) -> tuple[int, int] | Path | None:
    """Return the device and inode of a file, the full path of a missing file, or None for a pipe or device."""
    with suppress(OSError, ValueError):  # opening the file raises the error
        try:
            status = path.stat()
        except FileNotFoundError:
            return path.resolve()
        return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
    return None


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing, compressed if the name ends in .gz or .zst. The file appears only after success.

    An error, or a signal that raises an error, leaves an existing file unchanged. A killed process leaves a file
    .NAME.*.part; the next process that writes NAME removes this file.
    """
    try:
        number = _number_of_descriptor(path)
        if number is not None:
            # Opening the name again would empty a file that the shell appends to.
            with os.fdopen(os.dup(number), "wb") as out:
                yield out
            return

        target = _resolve(path)
        if path.exists() and (not path.is_file() or path.is_relative_to("/dev")):
            with path.open("wb") as out:  # a pipe or a terminal has no content to protect
                yield out
            return

        with _replace_file(target) as out:
            yield out
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        problem = f"{str(path)[:200]!r}: cannot be written ({error_reason(error)}); choose another place"
        if not path.parent.exists():
            problem = f"{str(path)[:200]}: the folder {str(path.parent)[:200]} does not exist. Create it."
        raise InputError(problem) from error


@contextmanager
def _replace_file(target: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file in the folder of `target`. After success, it takes the place of `target`, with the same mode."""
    old_mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    opened = _open_part(target, 0o666 if old_mode is None else old_mode)  # the kernel applies the umask
    part = Path(opened.name)

    try:
        with opened as raw, _compress(raw, target.suffix.lower()) as out:
            yield out
        if old_mode is not None:
            part.chmod(old_mode)
        part.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder. The new folder appears only after all files are copied; an error leaves nothing of it."""
    part = target.with_name(f".{target.name[:60]}.{secrets.token_hex(4)}.part")
    try:
        try:
            part.mkdir(parents=True)
            for path in sorted(source.rglob("*")):
                copy = part / path.relative_to(source)
                if path.is_dir():
                    copy.mkdir()
                else:
                    shutil.copyfile(path, copy)
            part.rename(target)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    except OSError as error:
        raise InputError(
            f"{str(target)[:200]!r}: cannot be written ({error_reason(error)}); choose another place"
        ) from error


def _open_part(target: Path, mode: int) -> IO[bytes]:
    """Open a new temporary file in the target's folder. First remove temporary files of the target if their process has ended.

    Each process locks the file that it writes. The kernel releases the lock when the process ends.
    """
    beginning = f".{target.name[:60]}."
    with suppress(OSError):  # a folder that cannot be listed
        for path in target.parent.iterdir():
            if path.name.startswith(beginning) and _PART_ENDING.fullmatch(path.name, len(beginning)):
                with suppress(OSError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while the writer lives
                    path.unlink()

    while True:
        part = target.with_name(f"{beginning}{secrets.token_hex(4)}.part")
        opened = open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115  # the caller's
        with suppress(OSError):  # a file system without locks
            fcntl.flock(opened, fcntl.LOCK_EX)
        if os.fstat(opened.fileno()).st_nlink:
            return opened
        opened.close()  # another process removed the file before it was locked


def _number_of_descriptor(path: Path) -> int | None:
    """Return the file descriptor that a name such as /dev/stdout stands for; None for any other name."""
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None:
        return None
    number = {"stdout": 1, "stderr": 2}.get(match[1] or "") or int(match[2])
    is_closed = {1: sys.__stdout__, 2: sys.__stderr__}.get(number, ...) is None
    if is_closed:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return number


def _resolve(path: Path) -> Path:
    """Return the file that a path leads to through links. Raise an OSError for a folder, and for links in a circle."""
    try:
        target = path.resolve()
        is_folder = path.is_dir()
    except (RuntimeError, ValueError) as error:  # circular links (by Python's version); a NUL
        raise OSError(errno.EINVAL, str(error)) from error
    if is_folder:
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


@contextmanager
def write_with_polars() -> Iterator[None]:
    """Replace an error of Polars by the `OSError` that caused it. Errors with another cause are raised unchanged."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        match = _OS_ERROR.search(str(error))
        if match is None:
            raise
        number = int(match[1])
        raise OSError(number, os.strerror(number)) from error


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder for temporary files. The folder is removed even after an error or a signal."""
    try:
        with tempfile.TemporaryDirectory(prefix="goodgain-") as folder:
            yield Path(folder)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        remedy = "set the variable TMPDIR to a folder with more room"
        raise InputError(f"temporary files cannot be written ({error_reason(error)}); {remedy}") from error


@contextmanager
def _compress(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    """Yield the file to write to: one that compresses for .gz and .zst, else `raw` itself."""
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:  # no time stamp: same data, same file
            yield out  # type: ignore[misc]  # GzipFile is a binary file in all but its declared type
    elif suffix == ".zst":
        with zstandard.ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False) as out:
            yield out
    else:
        yield raw


class EncodedRows(NamedTuple):
    """Encoded rows. `escaped` counts the ids changed for TREC text. For Parquet and Arrow, `content` is a frame."""

    content: bytes | pl.DataFrame
    rows: int
    escaped: int = 0


Append = Callable[[EncodedRows], object]


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame atomically. The ending of the file gives the format.

    TREC text has a line per row, with the columns in order. White space and control characters in ids become %XX (UTF-8 bytes),
    as does a `#` at the beginning of a line. A notice gives the number of changed ids.
    """
    kind = container(path)
    if kind == "text":
        for name, dtype in frame.schema.items():
            if dtype == pl.String and frame.get_column(name).eq("").any():
                raise InputError(f"{path}: an empty {name} cannot be written as TREC text; write Parquet or JSON Lines")
        frame, changed = escape_ids(frame)
        warn_of_escaped_ids(changed, path)

    with atomic_write(path) as file, write_with_polars():
        if kind == "parquet":
            frame.write_parquet(file)
        elif kind == "arrow":
            frame.write_ipc(file)
        else:
            _write_lines(frame, file, kind)


def warn_of_escaped_ids(count: int, path: Path) -> None:
    if count:
        signs = "white space, control characters or a leading '#'"
        remedy = "write Parquet or JSON Lines to keep ids as they are"
        notice("encoded_ids", f"{path}: {signs} in {count} id{'s' * (count != 1)} were written as %XX; {remedy}")


def encode_rows(frame: pl.DataFrame, path: Path) -> EncodedRows:
    """Encode rows as TREC text or JSON Lines, by the ending of the file. For Parquet and Arrow, keep the frame.

    Encoding is the slow part of writing, so several processes can encode rows while one process writes them.
    """
    kind = container(path)
    if kind in ("parquet", "arrow"):
        return EncodedRows(frame, frame.height)
    changed = 0
    if kind == "text":
        frame, changed = escape_ids(frame)
    content = io.BytesIO()
    _write_lines(frame, content, kind)
    return EncodedRows(content.getvalue(), frame.height, changed)


@contextmanager
def append_rows(path: Path) -> Iterator[Append]:
    """Yield a function that appends encoded rows to the file that `atomic_write(path)` opens."""
    kind = container(path)
    with atomic_write(path) as file, ExitStack() as stack:
        if kind not in ("parquet", "arrow"):
            yield lambda rows: file.write(rows.content)  # type: ignore[arg-type]  # bytes, by the same name
            return

        import pyarrow as pa
        import pyarrow.parquet as pq

        open_writer: Any = pa.ipc.new_file if kind == "arrow" else partial(pq.ParquetWriter, compression="zstd")
        writers: list[Any] = []

        def append(rows: EncodedRows) -> None:
            """Append a frame with pyarrow: Polars cannot append row groups to Parquet, or batches to Arrow."""
            table = pl.DataFrame(rows.content).to_arrow(compat_level=pl.CompatLevel.oldest())
            if not writers:
                writers.append(stack.enter_context(open_writer(file, table.schema)))
            writers[0].write_table(table)

        yield append


def _write_lines(frame: pl.DataFrame, file: IO[bytes], kind: str) -> None:
    """Write TREC text or JSON Lines. In JSON Lines, a list of name-value pairs becomes an object."""
    if kind == "text":
        frame.write_csv(file, separator=" ", include_header=False, quote_style="never", null_value=EMPTY_DOC)
        return
    pairs = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    if all(frame[name].null_count() == frame.height for name in pairs):
        frame.write_ndjson(file)
        return
    for row in frame.iter_rows(named=True):
        for name in pairs:
            if row[name] is not None:
                row[name] = {pair["name"]: pair["value"] for pair in row[name]}
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def escape_ids(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Percent-encode white space, control characters and a `#` that begins a line. Return a frame and a count of changed texts."""
    changed = 0
    for name in frame.select(pl.col(pl.String)).columns:
        column = frame.get_column(name)
        ids, safe = _escape_unsafe(column, begins_line=name == frame.columns[0])
        if len(ids):
            changed += int(column.is_in(ids.implode()).sum())
            if safe.is_duplicated().any() or column.is_in(safe.implode()).any():
                problem = f"two values of {name} would become one when white space in them is written as %XX"
                raise InputError(f"{problem}; write Parquet or JSON Lines, or rename the ids")
            frame = frame.with_columns(column.replace(ids, safe))
    return frame, changed


def spell_as_known(frame: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Escape each query_id and doc_id that `known` has only in escaped form, unless the frame has the escaped form too.

    Tables that are read from a log keep white space in ids. Runs and qrels in TREC text have %XX instead (see `escape_ids`).

    >>> frame = pl.DataFrame({"query_id": "q", "doc_id": ["New York", "The Hague"]})
    >>> known = pl.DataFrame({"query_id": "q", "doc_id": ["New%20York", "The Hague"]})
    >>> spell_as_known(frame, known)["doc_id"].to_list()
    ['New%20York', 'The Hague']
    """
    for name in ("query_id", "doc_id"):
        if name in known.columns:
            column = frame.get_column(name)
            known_ids = known.get_column(name).unique().implode()
            ids, safe = _escape_unsafe(column.filter(~column.is_in(known_ids)), begins_line=name == "query_id")
            is_known = safe.is_in(known_ids) & ~safe.is_in(column.implode())
            frame = frame.with_columns(pl.col(name).replace(ids.filter(is_known), safe.filter(is_known)))
    return frame


def _escape_unsafe(column: pl.Series, *, begins_line: bool) -> tuple[pl.Series, pl.Series]:
    """Return the distinct ids that cannot be written as TREC text, and the escaped form of each."""

    def escape(text: str) -> str:
        escaped = _UNSAFE_SIGN.sub(lambda match: _write_bytes(match.group()), text)
        is_comment = begins_line and escaped.startswith(COMMENT)
        return _write_bytes(COMMENT) + escaped[1:] if is_comment else escaped

    unsafe = f"^{COMMENT}|{_UNSAFE}" if begins_line else _UNSAFE
    ids = column.filter(column.str.contains(unsafe)).unique()
    return ids, pl.Series(map(escape, ids), dtype=pl.String)


def _write_bytes(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())
