"""Escapes texts for display: ids and names may contain commands to a terminal, a spreadsheet or a browser."""

import html
import re
from collections.abc import Sequence

import polars as pl

from goodgain.errors import InputError, count_of, escape_controls, notice

#: Patterns of the text before a spreadsheet formula, and of the beginning of the formula. Some spreadsheets split CSV at
#: `;`: then a formula may follow each `;` or line end. Japanese spreadsheets also accept full-width signs.
_FORMULAS = ((r"(^|[;\t\r\n])", r"('*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}])"), ("(^)", r"('*[\t\r\n])"))

#: The beginning of what GitHub links or notifies, up to where the next sign decides: `@name`, `#123`, `GH-123`, `https://`, `www.`.
#: `CG@3` is none of them: letters stand before the @. A cutoff after parameters, `nCG(rel=1)@3`, could be a name of digits.
_CUTOFF = r"(?<=\)@)[0-9]+(?![a-z0-9-])"
_LINKED = rf"(?<![a-z0-9])@(?!{_CUTOFF})(?=[a-z0-9])|#(?=[0-9])|\bgh-(?=[0-9])|:(?=//)|\bwww(?=\.)"
_LINKED_BY_GITHUB = re.compile(_LINKED, re.ASCII | re.IGNORECASE)


def check_name(name: str, subject: str) -> str:
    """Return a name given by the user; raise `InputError` for a lone surrogate, which frames cannot hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        problem = f"the {subject} '{escape_controls(name)}' is not valid Unicode (it has a lone surrogate)"
        raise InputError(f"{problem}; rename it") from None
    return name


def escape_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Escape control characters in the texts and column names of a frame."""
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    escaped = frame.with_columns(frame[name].map_elements(escape_controls, pl.String) for name in texts)
    return escaped.rename({name: escape_controls(name) for name in frame.columns})


def guard_formulas(frame: pl.DataFrame, *, again: bool = False) -> pl.DataFrame:
    """Put an apostrophe before each part of a text that a spreadsheet would run as a formula.

    `unguard_ids` removes the apostrophe. With `again`, only texts that already have this apostrophe get a second apostrophe.

    >>> guard_formulas(pl.DataFrame({"doc_id": ["=1+1", "d1", "a;=2"], "score": [-1.0, 2.0, 3.0]})).rows()
    [("'=1+1", -1.0), ('d1', 2.0), ("a;'=2", 3.0)]
    """
    apostrophe = "'" if again else ""
    texts = pl.col(pl.String)
    for before, formula in _FORMULAS:
        texts = texts.str.replace_all(f"{before}{apostrophe}{formula}", f"${{1}}'{apostrophe}${{2}}")
    return frame.with_columns(texts)


def unguard_ids(frame: pl.DataFrame, columns: Sequence[str], label: str) -> pl.DataFrame:
    """In the ids in `columns`, remove the apostrophe that `guard_formulas` puts before formulas. A notice counts the changed ids.

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
        fact = f"removed the apostrophe before = + - or @ in {count_of(changed, 'id')}"
        source = "goodgain pool --spreadsheet adds it, because = starts a formula"
        notice("escaped_formulas", f"{label}: {fact}; {source}. If the apostrophe belongs to an id, write it twice.")
    return frame.with_columns(texts)


def escape_html(text: str) -> str:
    """Escape a text for HTML, with � for each control character.

    >>> escape_html("<b>\u202e")
    '&lt;b&gt;�'
    """
    return html.escape(show_controls(text))


def show_controls(text: str) -> str:
    """Replace control characters by �: they could end a line or change the direction of text."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)


def break_github_links(markup: str) -> str:
    r"""Put a zero-width space into each name, issue number and address that GitHub would notify or link.

    `markup` is escaped Markdown or HTML. A backslash does not help: GitHub looks for names after it has read the Markdown.
    Names of measures stay as they are, because people copy them; `break_cutoffs` breaks these too.

    >>> print(break_github_links(r"CG@3 of @octocat, \#123"))
    CG@3 of @&#8203;octocat, \#&#8203;123
    """
    return _LINKED_BY_GITHUB.sub(r"\g<0>&#8203;", markup)


def break_cutoffs(markup: str) -> str:
    """Put a zero-width space into each cutoff after parameters, `nCG(rel=1)@3`: GitHub would notify a user named 3.

    >>> break_cutoffs("nCG(rel=1)@3, CG@3")
    'nCG(rel=1)@&#8203;3, CG@3'
    """
    return re.sub(r"\)@(?=[0-9])", ")@&#8203;", markup)
