"""Writing TREC text: fields with one blank between them, ids without white space."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.formats.files import written_whole

__all__ = ["write_trec"]

#: White space and control characters of Unicode, that some reader would take for the end of a field or line.
_UNSAFE = r"[\s\p{Cc}\x{1c}-\x{1f}\x{85}]"


def write_trec(frame: pl.DataFrame, path: Path) -> None:
    """Write the columns of a frame, in their order, as the fields of TREC text; whole or not at all.

    White space and control characters in ids become %XX (UTF-8 bytes), with one notice and the count.

    Raises:
        InputError: an id is empty (there is no way to write it), or the file cannot be written.
    """
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    for name in texts:
        if frame.get_column(name).eq("").any():
            raise InputError(f"{path}: an empty {name} cannot be written as TREC text; write Parquet or JSON Lines")
    unsafe = [frame.get_column(name).str.contains(_UNSAFE) for name in texts]
    changed = sum(int(column.sum()) for column in unsafe)
    if changed:
        for name in texts:
            column = frame.get_column(name)
            ids = column.filter(column.str.contains(_UNSAFE)).unique()
            safe = pl.Series([re.sub(r"[\s\x00-\x1f\x7f-\x9f]", _percent, text) for text in ids], dtype=pl.String)
            frame = frame.with_columns(column.replace(ids, safe).alias(name))
        notice(
            f"{path}: white space and control characters in {changed} id{'s' * (changed != 1)} were written as %XX; "
            "write Parquet or JSON Lines to keep ids as they are"
        )
    with written_whole(path) as out:
        frame.write_csv(out, separator=" ", include_header=False, quote_style="never")


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found.group().encode())
