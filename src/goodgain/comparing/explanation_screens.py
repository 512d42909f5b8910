"""Writes an explanation: the first screen and one query side by side, as Markdown, JSON, HTML and for a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from goodgain.comparing.causes import Parts
from goodgain.comparing.explanation_sentences import (
    QueryRows,
    describe_cause,
    describe_change,
    describe_outcome,
    describe_values,
    describe_whole,
    find_most_changed,
    name_documents,
    shorten,
    show,
    show_signed,
    summarise,
    total_causes,
)
from goodgain.comparing.rendering import build_rich_table, escape_markdown, write_grid
from goodgain.comparing.table_cells import Cell, Grid
from goodgain.counting.coverage import list_examples
from goodgain.errors import InputError
from goodgain.files.escaping import HtmlCell, escape_controls, escape_html, write_table

if TYPE_CHECKING:
    from goodgain.comparing.explanation import Explanation

#: The forms of `Explanation.to_text`.
FORMS = ("markdown", "json")
_FRAMES = ("queries", "causes", "documents", "iterations", "wasted")


class Lines(NamedTuple):
    """Sentences below a title, each with its level: 0 a paragraph, 1 an item, 2 an item of the one above."""

    title: str
    lines: list[tuple[int, str]]


Part = Grid | Lines


def build_first_screen(of: Explanation) -> Iterator[Part]:
    """Yield for each measure a sentence, the table of causes and the queries that changed most; then wasted searches."""
    rows = QueryRows(of)
    for measure in of.measures:
        queries = of.queries.filter(measure=measure)
        yield Lines("", [(0, summarise(of, rows, measure, queries))])
        if of.parts[measure].denominator is not None:
            yield _build_rate_grid(of, measure, queries)
        grid = _build_causes_grid(of, of.parts[measure], queries.height)
        if grid.rows:
            yield grid
        for word, changed in zip(("Lower", "Higher"), find_most_changed(queries, of.top), strict=True):
            lines = []
            for row in changed.iter_rows(named=True):
                at = row["first_differing_iteration"]
                lines.append((1, describe_values(row) + (f"; they part at iteration {at}" if at is not None else "")))
                lines += [(2, line) for line in describe_change(of, rows, row, named=True)]
            if lines:
                yield Lines(f"{word} in {of.new}", lines)
    yield Lines("", [(0, line) for line in describe_whole(of)])


def _build_causes_grid(of: Explanation, parts: Parts, queries: int) -> Grid:
    """Return the causes with their amounts in total and a query; the last row is the difference."""
    measure = str(parts.numerator)
    causes = total_causes(of, measure)
    header = ["cause", "good documents", "queries", measure, "per query"]
    rows = [
        (describe_cause(of, parts, counted_by, cause, "them"), f"{documents:,}", f"{number:,}", amount)
        for counted_by, cause, documents, amount, number in causes.iter_rows()
    ]
    if rows:
        rows.append((f"{of.new} minus {of.base}", "", "", math.fsum(causes.get_column("amount"))))
    cells = [
        [*map(Cell, words), Cell(show_signed(amount)), Cell(show_signed(amount / queries))] for *words, amount in rows
    ]
    return Grid(f"Causes of the difference in {measure}", header, 1, cells)


def _build_rate_grid(of: Explanation, measure: str, queries: pl.DataFrame) -> Grid:
    """Return the sums of numerator and denominator over all queries."""
    parts, rows = of.parts[measure], []
    for part, name in (("numerator", str(parts.numerator)), ("denominator", str(parts.denominator))):
        base, new = (math.fsum(queries.get_column(f"{part}_{side}")) for side in ("base", "new"))
        rows.append([Cell(f"{part}: {name}"), Cell(show(base)), Cell(show(new)), Cell(show_signed(new - base))])
    return Grid(f"Sums over queries, {measure}", ["part", of.base, of.new, "difference"], 1, rows)


def take_query(of: Explanation, query_id: str) -> Explanation:
    """Return the rows of an explanation about one query.

    Raises:
        InputError: the qrels lack the query.
    """
    taken = {name: getattr(of, name).filter(query_id=query_id) for name in _FRAMES}
    if not taken["queries"].height:
        known = ", ".join(list_examples(of.queries.get_column("query_id").unique()))
        raise InputError(f"query {query_id!r} is not in the qrels. They have {known}, for example.")
    return replace(of, **taken)


def build_side_by_side(of: Explanation, query_id: str) -> Iterator[Part]:
    """Yield one query: its values, both agents iteration by iteration, and its good documents."""
    of = take_query(of, query_id)
    sides = (("base", of.base), ("new", of.new))
    said = (f"{describe_values(row)}. {row['sentence'] or ''}".strip() for row in of.queries.iter_rows(named=True))
    yield Lines("", [(0, one) for one in said])
    for number, (measure, parts) in enumerate({str(one.numerator): one for one in of.parts.values()}.items()):
        documents = of.documents.filter(measure=measure)
        if number == 0:
            yield _build_iterations_grid(of, query_id, sides, documents)
            if of.iterations.get_column("brought_nothing_good").any():
                yield Lines("", [(0, "! the iteration brought nothing good while good documents were missing")])
        header = ["good document", "cause", "label", *(f"{name} found it at" for _, name in sides), "adds"]
        cells = [
            [
                shorten(row["title"] or row["doc_id"]),
                "" if row["cause"] is None else describe_cause(of, parts, row["counted_by"], row["cause"], "it"),
                *(show(row[column]) for column in ("relevance", "iteration_base", "iteration_new")),
                show_signed(row["amount"]),
            ]
            for row in documents.iter_rows(named=True)
        ]
        yield Grid(f"Good documents, {measure}", header, 2, [[*map(Cell, row)] for row in cells])


def _build_iterations_grid(
    of: Explanation, query_id: str, sides: Iterable[tuple[str, str]], documents: pl.DataFrame
) -> Grid:
    columns: list[list[str]] = []
    header = ["iteration"]
    for side, name in sides:
        searched = of.iterations.filter(system=name).to_dicts()
        texts = [f"{row['query_text'] or ''}{' (repeated)' * bool(row['is_repeated_query'])}" for row in searched]
        found = [documents.filter(pl.col(f"iteration_{side}") == row["iteration"]) for row in searched]
        brought = [_describe_row(row, good) for row, good in zip(searched, found, strict=True)]
        if any(texts):
            header.append(f"{name} searched")
            columns.append(texts)
        header.append(f"{name} found")
        columns.append(brought)
    last = max(map(len, columns), default=0)
    cells = [[str(k + 1), *(column[k] if k < len(column) else "–" for column in columns)] for k in range(last)]
    return Grid(f"Query {query_id}", header, len(header), [[*map(Cell, row)] for row in cells])


def _describe_row(row: Mapping[str, Any], good: pl.DataFrame) -> str:
    words = {"new_other": "not good", "repeated": "repeated", "unjudged": "unjudged"}
    others = ", ".join(f"{row[name]:,} {said}" for name, said in words.items() if row[name])
    head = name_documents(good) if row["new_good"] and good.height else describe_outcome(row)
    mark = "! " if row["brought_nothing_good"] else ""
    return f"{mark}{head}" + (f"; {others}" if others else "")


def write_explanation(of: Explanation, form: str, query: str | None) -> str:
    """Return an explanation as text in one of `FORMS`."""
    if form not in FORMS:
        raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
    if form == "json":
        shown = of if query is None else take_query(of, query)
        frames = {name: getattr(shown, name).to_dicts() for name in _FRAMES}
        content = {"base": of.base, "new": of.new, "measures": of.measures, **frames}
        return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    return "\n\n".join(map(_write_markdown, build_parts(of, query))) + "\n"


def build_parts(of: Explanation, query: str | None) -> Iterator[Part]:
    """Yield the first screen, or with a query both agents side by side."""
    return build_first_screen(of) if query is None else build_side_by_side(of, query)


def _write_markdown(part: Part) -> str:
    title = f"**{escape_markdown(part.title)}**\n\n" if part.title else ""
    if isinstance(part, Grid):
        return title + write_grid(part, "markdown").rstrip("\n")
    marks = ("", "- ", "  - ")
    lines = [marks[level] + escape_markdown(text) for level, text in part.lines]
    return title + ("\n" if any(level for level, _ in part.lines) else "\n\n").join(lines)


def render_html(of: Explanation) -> str:
    """Return the first screen as HTML, with every text escaped."""
    shown = []
    for part in build_first_screen(of):
        if isinstance(part, Grid):
            cells = [[HtmlCell(cell.text) for cell in row] for row in part.rows]
            shown.append(write_table(part.title, part.header, cells, words=part.words))
        else:
            shown += [f"<p><b>{escape_html(part.title)}</b></p>"] if part.title else []
            shown += [f'<div style="margin-left:{level}em">{escape_html(text)}</div>' for level, text in part.lines]
    return "".join(shown)


def render_on_terminal(of: Explanation, query: str | None) -> Iterator[Any]:
    """Yield the first screen, or one query, for rich."""
    from rich.padding import Padding
    from rich.text import Text

    for part in build_parts(of, query):
        if isinstance(part, Grid):
            yield build_rich_table(part)
            continue
        if part.title:
            yield Text(escape_controls(part.title), style="bold")
        for level, text in part.lines:
            yield Padding(Text(escape_controls(text)), (0, 0, 0, 2 * level))
        yield Text("")
