"""Writing TREC text: fields with one blank between them, ids without white space."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.writing import escaped, written_whole

__all__ = ["write_trec"]


def write_trec(frame: pl.DataFrame, path: Path) -> None:
    """Write the columns of a frame, in their order, as the fields of TREC text; whole or not at all.

    White space and control characters in ids become %XX (UTF-8 bytes), with one notice and the count.

    Raises:
        InputError: an id is empty (there is no way to write it), or the file cannot be written.
    """
    for name, dtype in frame.schema.items():
        if dtype == pl.String and frame.get_column(name).eq("").any():
            raise InputError(f"{path}: an empty {name} cannot be written as TREC text; write Parquet or JSON Lines")
    safe, changed = escaped(frame)
    if changed:
        notice(
            f"{path}: white space and control characters in {changed} id{'s' * (changed != 1)} were written as %XX; "
            "write Parquet or JSON Lines to keep ids as they are"
        )
    with written_whole(path) as out:
        safe.write_csv(out, separator=" ", include_header=False, quote_style="never")
