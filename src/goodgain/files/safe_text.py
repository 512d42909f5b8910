"""Texts of users made safe for where they are shown: ids and names may hold what steers a terminal or a spreadsheet."""

from __future__ import annotations

import polars as pl

__all__ = ["escape_columns", "escape_controls", "guard_formulas"]

#: Signs with which Excel and its like take a cell for a formula, also behind a tab or a line feed.
_FORMULA = r"^[=+\-@\t\r\n]"


def escape_controls(text: str, *, keep: str = "") -> str:
    r"""Return a text with control characters, and those that turn the direction of writing, as Python writes them.

    >>> print(escape_controls("\x1b[31mred\u202e"))
    \x1b[31mred\u202e
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in keep else repr(sign)[1:-1] for sign in text)


def escape_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame whose texts, and the names of whose columns, can be printed on a terminal."""
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    shown = frame.with_columns(frame[name].map_elements(escape_controls, pl.String) for name in texts)
    return shown.rename({name: escape_controls(name) for name in frame.columns})


def guard_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame in which texts that a spreadsheet takes for formulas begin with an apostrophe, which makes them text.

    >>> guard_formulas(pl.DataFrame({"doc_id": ["=1+1", "d1"], "score": [-1.0, 2.0]})).rows()
    [("'=1+1", -1.0), ('d1', 2.0)]
    """
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    guarded = [pl.when(pl.col(name).str.contains(_FORMULA)).then("'" + pl.col(name)).otherwise(name) for name in texts]
    return frame.with_columns(value.alias(name) for name, value in zip(texts, guarded, strict=True))
