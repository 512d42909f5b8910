"""The values of CSV and TSV files with a header, as text."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from goodgain.errors import InputError
from goodgain.files.content import Content
from goodgain.files.row_origins import SkippedRows, quote
from goodgain.schema import BLANKS

__all__ = ["Cells", "read_cells", "read_names"]

_BOM = b"\xef\xbb\xbf"
#: A header with more names is not that of a table: each column costs time, whether it is used or not.
_MOST_COLUMNS = 10_000
#: A value in quotes, which begins where a value begins; a quote that is never closed goes on to the end.
_QUOTED = re.compile(rb'(?<![^,\n])"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')
_BLANK_LINES = re.compile(rb"(?:[ \t\r\v\f]*+\n)*+\r*")
_HIDE = bytes.maketrans(b",\n", b"xx")


class Cells(NamedTuple):
    """The values of a file with a header, as text.

    Attributes:
        names: of the columns, as the header has them, without white space around.
        frame: the values without ASCII blanks around, null where there is none; a column `0`, `1`, ... for each name.
        rows: how many rows stand between the header and each row; None where all rows are there, in order.
    """

    names: list[str]
    frame: pl.DataFrame
    rows: Sequence[int] | None


def read_names(line: str, separator: str, path: Path) -> list[str]:
    """Return the names of a header."""
    try:
        found = next(csv.reader([line], delimiter=separator)) if separator == "," else line.split(separator)
    except csv.Error as error:  # a carriage return in a name, a name of more than 128 KiB
        raise InputError(f"{path}: the header cannot be read ({error}); write the names of the columns again") from None
    if len(found) > _MOST_COLUMNS:
        raise InputError(
            f"{path}: the first line has {len(found):,} values, so it is not a header (at most {_MOST_COLUMNS:,} names); "
            "write the names of the columns on a line of their own"
        )
    return [name.strip() for name in found]


def read_cells(content: Content, separator: str, path: Path, *, errors: str | None) -> Cells:
    """Read the values of a CSV or TSV file. ASCII blanks around values do not belong to them, and TSV has no quotes.

    A line with fewer or more values than the header raises, or is left out and reported with `errors="skip"` (None where the
    caller has no such option). Rows without any value are left out.

    Raises:
        InputError: the file cannot be read.
    """
    whole = content.data.removeprefix(_BOM)
    text = whole[_BLANK_LINES.match(whole).end() :]  # type: ignore[union-attr]  # it matches everything
    before = whole.count(b"\n", 0, len(whole) - len(text))
    end = text.find(b"\n")
    line = text if end < 0 else text[:end]
    names = read_names(line.strip(b"\r").decode("utf-8", "replace"), separator, path)
    has_quotes = separator == "," and b'"' in text
    # Polars fills short rows with null, and refuses long ones: so as many separators as there should be are right.
    lacking = (len(names) - 1) * (text.count(b"\n") + (not text.endswith(b"\n"))) - text.count(separator.encode())
    if lacking > 0 or (not has_quotes and lacking):
        text = _check_widths(text, separator, len(names), path, before, errors)
    frame = _read_text(text, separator)
    may_be_short = has_quotes and lacking <= 0  # where separators stand inside quotes
    is_filled = isinstance(frame, pl.DataFrame) and not (
        may_be_short and frame.width and frame.to_series(-1).null_count()
    )
    if not is_filled:
        frame = _read_text(_check_widths(text, separator, len(names), path, before, errors), separator)
    if isinstance(frame, str):
        raise InputError(
            f"{path}: is not readable by its header ({frame}); give every line as many values as the header has names, in UTF-8, "
            "and write a quote inside a value twice, the value in quotes"
        )
    if frame.width != len(names):
        raise InputError(
            f"{path}, line {before + 1}: the header has a line feed in a name; write the names of the columns on one line"
        )
    frame.columns = [str(place) for place in range(frame.width)]
    values = pl.all().str.strip_chars(BLANKS)
    frame = frame.with_columns(pl.when(values != "").then(values))
    is_blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if not is_blank.any():
        return Cells(names, frame, None)
    return Cells(names, frame.filter(~is_blank), (~is_blank).arg_true().to_list())


def _read_text(text: bytes, separator: str) -> pl.DataFrame | str:
    """Return the values of a text, or what is wrong with it."""
    try:
        return pl.read_csv(text, separator=separator, quote_char='"' if separator == "," else None, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        return str(error).splitlines()[0]


def _check_widths(text: bytes, separator: str, width: int, path: Path, before: int, errors: str | None) -> bytes:
    """Return the text without the lines that have not as many values as the header.

    Args:
        text: the file, from its header on.
        separator: what stands between values.
        width: how many names the header has.
        path: the file.
        before: how many lines stand before the header.
        errors: `raise`, or `skip` to leave such lines out; None where the caller has no such option.

    Raises:
        InputError: there is such a line, and `errors` is not `skip`.
    """
    skipped = SkippedRows()
    kept: list[bytes] = []
    start = 0
    for first, last, found in _find_ragged(text, separator, width):
        number = before + text.count(b"\n", 0, first) + 1 if skipped.count < 5 else 0
        wrong = f"has {found} value{'s' * (found != 1)}, the header has {width} names"
        if errors != "skip":
            option = "" if errors is None else ", or leave such lines out with errors='skip'"
            line = text[first:last].decode("utf-8", "replace").strip()
            raise InputError(
                f"{path}, line {number}: {quote(line)} {wrong}; correct the line (was the file cut short?){option}"
            )
        skipped.add(f"line {number} ({wrong})")
        kept.append(text[start:first])
        start = last
    skipped.report(str(path))
    return b"".join([*kept, text[start:]]) if skipped.count else text


def _find_ragged(text: bytes, separator: str, width: int) -> Iterator[tuple[int, int, int]]:
    """Yield where lines begin and end that have more or fewer values than the header, and how many they have."""
    plain = text  # with the separators and line feeds between quotes hidden
    if separator == "," and b'"' in text:
        plain = _QUOTED.sub(lambda found: found.group().translate(_HIDE), text)
    between = separator.encode()
    start = 0
    while start < len(plain):
        end = plain.find(b"\n", start) + 1 or len(plain)
        found = plain.count(between, start, end) + 1
        if found != width and plain[start:end].strip():
            yield start, end, found
        start = end
