"""Escapes texts for display: ids and names may contain commands to a terminal, a spreadsheet or a browser."""

import html
from collections.abc import Sequence

import polars as pl

from goodgain.errors import InputError, count_of, notice

#: The place before a possible formula of a spreadsheet, and the beginning of the formula. If `;` separates the columns of
#: CSV, each `;` and line end may precede a formula. Japanese spreadsheets know full-width signs.
_FORMULAS = ((r"(^|[;\t\r\n])", r"('*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}])"), ("(^)", r"('*[\t\r\n])"))


def escape_controls(text: str, *, keep: str = "") -> str:
    r"""Return a text with Python's escapes for control characters, also for those that set the direction of writing.

    >>> print(escape_controls("\x1b[31mred\u202e"))
    \x1b[31mred\u202e
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in keep else repr(sign)[1:-1] for sign in text)


def check_name(name: str, what: str) -> str:
    """Return a user's name of `what`; raise `InputError` for a lone surrogate: frames change or refuse it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        wrong = f"the {what} '{escape_controls(name)}' is not valid Unicode (it has a lone surrogate)"
        raise InputError(f"{wrong}; rename it") from None
    return name


def escape_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with texts and column names that are safe to print on a terminal."""
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    shown = frame.with_columns(frame[name].map_elements(escape_controls, pl.String) for name in texts)
    return shown.rename({name: escape_controls(name) for name in frame.columns})


def guard_formulas(frame: pl.DataFrame, *, again: bool = False) -> pl.DataFrame:
    """Return a frame with an apostrophe before each part of a text that a spreadsheet would take for a formula.

    `unguard_ids` removes it. With `again`, only texts that look guarded already get one.

    >>> guard_formulas(pl.DataFrame({"doc_id": ["=1+1", "d1", "a;=2"], "score": [-1.0, 2.0, 3.0]})).rows()
    [("'=1+1", -1.0), ('d1', 2.0), ("a;'=2", 3.0)]
    """
    texts = pl.col(pl.String)
    for before, formula in _FORMULAS:
        texts = texts.str.replace_all(before + "'" * again + formula, "${1}'" + "'" * again + "${2}")
    return frame.with_columns(texts)


def unguard_ids(frame: pl.DataFrame, columns: Sequence[str], label: str) -> pl.DataFrame:
    """Undo `guard_formulas` for the ids in these columns; a notice counts those that changed.

    >>> frame = pl.DataFrame({"doc_id": ["d1", "'d2"]})
    >>> unguard_ids(frame, ["doc_id"], "sheet.csv").rows()
    [('d1',), ("'d2",)]
    """
    guarded = pl.col(columns)
    for before, formula in reversed(_FORMULAS):
        guarded = guarded.str.replace_all(f"{before}'{formula}", "${1}${2}")
    texts = frame.select(guarded)
    changed = sum(int((texts[name] != frame[name]).sum()) for name in columns)
    if changed:
        found = f"{count_of(changed, 'id')} with an apostrophe before = + - or @"
        source = "goodgain pool --spreadsheet writes against formulas; read without it"
        notice(f"{label}: {found}, which {source}. Begin an id of your own like this with two apostrophes.")
    return frame.with_columns(texts)


def escape_html(text: str) -> str:
    """Return a text as HTML shows it, with control characters made visible.

    >>> escape_html("<b>\u202e")
    '&lt;b&gt;�'
    """
    return html.escape(show_controls(text))


def show_controls(text: str) -> str:
    """Return a text with � for each control character: such a sign could end a line or change the direction of writing."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)
