"""Reads tables from data frames and files (the file extension gives the format)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import FindColumns, Frame, FrameRows, ReadTable
from goodgain.files.delimited import pick_columns, read_cells
from goodgain.files.json_rows import read_json_lines
from goodgain.files.json_text import begins_json
from goodgain.files.opening import Content, container, read_bytes, read_lines, separator_by_name
from goodgain.schema import IDS


def read_table(
    path: Path,
    types: Mapping[str, Any],
    *,
    find: FindColumns | None = None,
    required: Sequence[str] = (),
    errors: str | None = None,
    content: Content | None = None,
    paths: Sequence[str] | None = None,
) -> ReadTable:
    """Read a table from a file, which may be compressed (.gz, .zst).

    CSV and TSV are known by the name of the file, JSON (lines or an array) by the name or by its beginning. Other files are Parquet
    or Arrow: their columns keep their types, and `required`, `errors` and `paths` have no effect.

    Args:
        types: the columns to read, each with its Polars type.
        find: called with the column names of the file, or with the names in one object of JSON Lines; returns a dict from these
            names to names in `types`. By default, columns keep their names.
        required: the columns that every line of JSON Lines must have.
        errors: `raise` an error for a bad line, or `skip` bad lines with a notice. None raises an error that does not mention
            `skip`.
        content: the content of the file, if the caller has already read it.
        paths: columns inside nested JSON, as in `read_json_lines`.
    """
    find = find or (lambda names: {name: name for name in types if name in names})
    separator = separator_by_name(path)
    if separator is not None:
        cells = read_cells(content or read_lines(path), separator, path, errors=errors)
        return pick_columns(cells, types, find, errors=errors)

    kind = container(path)
    if kind in ("jsonl", "text"):  # .json is "text" too
        content = content or read_lines(path)
        if kind == "text" and not begins_json(content):
            endings = ".tsv, .csv, .jsonl, .json, .parquet or .arrow"
            raise InputError(f"{path}: the file name of a table must end in {endings}; rename or convert the file")
        return read_json_lines(content, path, types, find, required=required, errors=errors, paths=paths)

    frame = read_container(content or read_bytes(path), path, kind)
    columns = [pl.col(name).alias(our_name) for name, our_name in find(frame.columns).items()]
    return ReadTable(frame.select(columns), FrameRows(str(path)), frame.columns)


@contextmanager
def explain_container_errors(path: Path, kind: str) -> Iterator[None]:
    """Turn any error in decoding Parquet or Arrow into an `InputError` with the file's name."""
    try:
        yield
    except InputError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # many classes, one of them for lack of memory
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise InputError(f"{path}: is not a readable {kind} file ({reason}); write it again") from error


def read_container(content: Content, path: Path, kind: str, *, rows: int | None = None) -> pl.DataFrame:
    """Read the bytes of a `parquet` or `arrow` file. `rows` limits the number of rows read from Parquet.

    pyarrow reads the file, because it raises an error for damaged data. For such data, Polars may request so much
    memory that the process is killed.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with explain_container_errors(path, kind):
        source = pa.BufferReader(content.data)
        if kind == "arrow":
            return frame_of(pa.ipc.open_file(source).read_all())
        file = pq.ParquetFile(source, page_checksum_verification=True)
        if rows is None:
            return frame_of(file.read())

        batches = []
        for batch in file.iter_batches(batch_size=rows):  # row groups may have fewer
            batches.append(batch)
            if sum(map(len, batches)) >= rows:
                break
        table = pa.Table.from_batches(batches, schema=file.schema_arrow)
        return frame_of(table.slice(0, rows))


def frame_of(table: Any) -> pl.DataFrame:
    """Validate a pyarrow table or batch, and return it as a Polars frame.

    Metadata is left out, because Polars panics if metadata is not valid UTF-8.
    """
    import pyarrow as pa

    table.validate(full=True)
    plain = pa.schema([field.remove_metadata() for field in table.schema])
    without_metadata = type(table).from_arrays(table.columns, schema=plain)
    return pl.from_arrow(without_metadata)  # type: ignore[return-value]  # a frame, as it is a table


def read_frame(source: Any, label: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Convert a frame of any engine to Polars, with all columns or only `columns`."""
    frame = wrap_frame(source, label)
    if frame is None:
        raise InputError(f"{label}: found a {type(source).__name__}; give a file, or a data frame")
    if columns is not None:
        names = frame.collect_schema().names()
        frame = frame.select(name for name in names if name in columns)
    return to_polars(frame, label)


def wrap_frame(source: Any, label: str) -> Any:
    """Wrap a frame of any engine in narwhals; return None for anything else."""
    try:
        frame = nw.from_native(source, pass_through=True)
        if isinstance(frame, (nw.LazyFrame, nw.DataFrame)):
            frame.collect_schema()
            return frame
    except Exception as error:  # narwhals' own, for duplicate names of columns
        problem = f"cannot be used ({_shorten_reason(error)})"
        raise InputError(f"{label}: {problem}; give each column a name of its own") from error
    return None


def to_polars(frame: Frame, label: str) -> pl.DataFrame:
    """Collect a frame of any engine as a Polars frame. Raise an InputError if a column mixes types."""
    try:
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect("polars")
        return frame.to_polars()
    except (Exception, pl.exceptions.PanicException) as error:  # Arrow's or Polars' own
        problem = f"values mix types in a column ({_shorten_reason(error)})"
        raise InputError(f"{label}: {problem}; give each column one type") from error


def _shorten_reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def cast_texts(frame: pl.DataFrame, columns: Sequence[str], label: str) -> pl.DataFrame:
    cast: pl.DataFrame = cast_columns(nw.from_native(frame), dict.fromkeys(columns, nw.String()), label).to_native()
    return cast


def cast_columns(frame: Any, types: Mapping[str, Any], label: str) -> Any:
    """Cast the columns of a frame, in memory or lazy, to the types in `types`.

    Floats are not cast to integers: the caller checks them row by row.
    """
    casts = []
    for name, dtype in frame.collect_schema().items():
        wanted = types.get(name, dtype)
        if dtype == wanted or (wanted.is_integer() and dtype.is_numeric()) or wanted.is_nested():
            continue
        has_only_nulls = dtype == nw.Unknown and not _count_values(frame, name)
        if not has_only_nulls:
            _check_castable(name, dtype, wanted, label)
        casts.append(nw.col(name).cast(wanted))
    return frame.with_columns(*casts) if casts else frame


def _count_values(frame: Any, name: str) -> int:
    count: int = frame.select(nw.col(name).count()).lazy().collect("polars").item()
    return count


def _check_castable(name: str, dtype: Any, wanted: Any, label: str) -> None:
    """Raise `InputError` if values of `dtype` are not what the column needs: texts, ids or numbers."""
    if wanted != nw.String:  # a number is needed
        if not dtype.is_numeric():
            raise InputError(f"{label}: has {dtype} in {name}, which is not a number; convert the column to numbers")
        return
    can_be_text = not dtype.is_nested() and dtype not in (nw.Object, nw.Binary, nw.Duration)
    can_be_id = dtype.is_integer() or isinstance(dtype, (nw.String, nw.Categorical, nw.Enum))
    # a float with an id may have lost digits (see `IDS`)
    is_castable = can_be_id if name in IDS else can_be_text
    if not is_castable:
        need = "each row needs a text or a whole number"
        raise InputError(f"{label}: has {dtype} in {name}, but {need}; convert the column to text")
