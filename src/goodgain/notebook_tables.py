"""Tables in HTML, as a notebook shows them. Every text is escaped: names of systems and ids of documents come from users."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["HtmlCell", "escape_html", "show_controls", "write_table"]


class HtmlCell(NamedTuple):
    """A cell: its text, whether it is in bold, and a picture in SVG before the text, which is not escaped."""

    text: str
    bold: bool = False
    picture: str = ""


def write_table(title: str, header: Sequence[str], rows: Iterable[Sequence[HtmlCell]], *, words: int) -> str:
    """Return an HTML table; its first `words` columns are words, and the others are aligned as numbers.

    >>> write_table("", ["measure", "a<b"], [[HtmlCell("CG"), HtmlCell("1.0", bold=True)]], words=1).count("&lt;")
    1
    """
    sides = ["left" if k < words else "right" for k in range(len(header))]
    caption = f'<caption style="text-align:left">{escape_html(title)}</caption>' if title else ""
    head = "".join(
        f'<th style="text-align:{side}">{escape_html(name)}</th>' for name, side in zip(header, sides, strict=True)
    )
    body = "".join("<tr>" + "".join(map(_write_cell, row, sides)) + "</tr>" for row in rows)
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _write_cell(cell: HtmlCell, side: str) -> str:
    text = escape_html(cell.text)
    return f'<td style="text-align:{side}">{cell.picture}{f"<b>{text}</b>" if cell.bold else text}</td>'


def escape_html(text: str) -> str:
    """Return a text as HTML shows it, with control characters made visible.

    >>> escape_html("<b>\u202e")
    '&lt;b&gt;�'
    """
    return html.escape(show_controls(text))


def show_controls(text: str) -> str:
    """Return a text with a sign in place of each control character, which could turn the writing direction or end a line."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)
