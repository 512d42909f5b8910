"""Writes a comparison in Markdown, LaTeX, CSV and JSON, in HTML for a notebook, and on a terminal."""

import json
from collections.abc import Callable, Iterator
from string import ascii_lowercase
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison_frames import ComparisonFrames
from goodgain.analysis.comparing.comparison_sentences import (
    DIFFERENCES,
    GROUPS,
    build_legend,
    describe_correction,
    describe_costs,
    describe_many_measures,
    describe_power,
    describe_reruns,
    explain_letters,
    explain_table,
    list_notes,
    list_remarks,
    list_unknown,
    name_test,
)
from goodgain.analysis.comparing.comparison_tables import (
    Layout,
    build_brief_tables,
    build_column_table,
    build_tables,
)
from goodgain.analysis.comparing.pairs_table import DECIDED
from goodgain.analysis.comparing.rendering import VERDICT_COLOURS
from goodgain.analysis.comparing.shared_tables import describe_shared, explain_shared
from goodgain.errors import InputError, escape_controls
from goodgain.files.escaping import escape_html, guard_formulas
from goodgain.files.notebooks import mark_shown
from goodgain.files.tables import (
    BOOKTABS,
    Cell,
    Line,
    Table,
    write_float,
    write_html,
    write_latex_comment,
    write_markdown,
)
from goodgain.files.terminal_tables import draw_table
from goodgain.options import PLACES, ROWS, check_whole_number, spell

#: Width and height of a picture of an interval.
_WIDTH, _HEIGHT = 90, 12


def write_comparison(frames: ComparisonFrames, form: str, layout: Layout) -> str:
    """Return `Comparison.to_text`. LaTeX without a baseline has systems as rows by default."""
    if form not in FORMS:
        raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
    if layout.rows is None and form == "latex" and frames.baseline is None:
        layout = layout._replace(rows="systems")
    if layout.rows not in (None, *ROWS):
        raise InputError(f"{spell('rows', layout.rows)} is not one of {', '.join(ROWS)}")
    check_whole_number("places", layout.places, *PLACES)
    return FORMS[form](frames, layout)


def _write_markdown(frames: ComparisonFrames, layout: Layout) -> str:
    sentences = [*build_legend(frames), *list_notes(frames)]
    lines = [Line(sentence, 1) for sentence in sentences]
    return write_markdown([*build_tables(frames, layout), *lines])


def _write_latex(frames: ComparisonFrames, layout: Layout) -> str:
    """Write each table as a float. With systems as rows, tables fit a column; without a baseline, letters replace differences."""
    means, pairs, *further_tables = build_tables(frames, layout)
    by_system = layout.rows == "systems"
    size = "\\footnotesize\n\\setlength{\\tabcolsep}{3pt}\n" if by_system else ""
    if by_system and frames.groups is not None:
        of_groups = build_column_table(frames, layout.places, of_groups=True)
        further_tables = [of_groups if table.name == GROUPS else table for table in further_tables]
    if by_system and frames.baseline is None:
        tables = [_add_letters(means, frames), *further_tables]  # letters replace the table of pairs
    elif by_system:
        tables = [means, build_column_table(frames, layout.places), *further_tables]
    else:
        tables = [means, pairs, *further_tables]

    floats = []
    for table in tables:
        label = "-".join(filter(None, [layout.label or "tab:comparison", table.name]))
        notes = [*table.notes, *explain_table(frames, table, in_column=by_system)]
        title = table.title
        if table.name == DIFFERENCES:
            title += f". {name_test(frames)}"
        floats.append(write_float(table._replace(title=title, notes=notes), label, size))
    notices = [write_latex_comment(f"notice: {note}") for note in list_notes(frames)]
    return "\n\n".join(["\n".join([BOOKTABS, *notices]), *floats]) + "\n"


def _add_letters(means: Table, frames: ComparisonFrames) -> Table:
    """Mark each mean with the letters of the systems that are significantly worse; numbers if there are too many systems."""
    systems = frames.systems.get_column("system").to_list()
    measures = frames.means.get_column("measure").unique(maintain_order=True).to_list()
    if len(systems) <= len(ascii_lowercase):
        kind, separator, signs = "letters", "", list(ascii_lowercase[: len(systems)])
    else:
        numbers = range(1, len(systems) + 1)
        kind, separator, signs = "numbers", ",", list(map(str, numbers))
    sign_of = dict(zip(systems, signs, strict=True))
    wins = _find_wins(frames.pairs)

    rows = []
    for system, (head, *cells) in zip(systems, means.rows, strict=True):
        row = [Cell(sign_of[system]), head]
        for measure, cell in zip(measures, cells, strict=True):
            beaten = [sign_of[worse] for worse in systems if (measure, system, worse) in wins]
            row.append(cell._replace(marks=separator.join(beaten)))
        rows.append(row)

    title = f"{means.title}. {name_test(frames)}"
    notes = [*means.notes, explain_letters(frames, kind)]
    header = ["", *means.header]
    return means._replace(title=title, header=header, words=means.words + 1, rows=rows, notes=notes)


def _find_wins(pairs: pl.DataFrame) -> set[tuple[str, str, str]]:
    """Return tuples (measure, better system, worse system) of the significant differences."""
    better, worse = (pairs.filter(verdict=verdict) for verdict in DECIDED)
    wins = {*better.select("measure", "system", "against").iter_rows()}
    return wins | {*worse.select("measure", "against", "system").iter_rows()}


def _write_csv(frames: ComparisonFrames, layout: Layout) -> str:
    rows = stack_groups(frames)
    return (guard_formulas(rows) if layout.spreadsheet else rows).write_csv()


def stack_groups(frames: ComparisonFrames) -> pl.DataFrame:
    """Return the frame `pairs`. If there are groups, append the frame `groups`; the rows of `pairs` then have the group `all`."""
    if frames.groups is None:
        return frames.pairs
    all_queries = frames.pairs.select(pl.lit("all").alias("group"), pl.all())
    return pl.concat([all_queries, frames.groups], how="diagonal")


def _write_json(frames: ComparisonFrames, layout: Layout) -> str:
    means, method = frames.means_with_intervals if layout.intervals else (frames.means, "")
    signature = dict(frames.signature)
    if method:
        signature["interval"] = method
    tables: dict[str, pl.DataFrame | None] = {
        "systems": frames.systems,
        "coverage": frames.coverage,
        "means": means,
        "pairs": frames.pairs,
        "groups": frames.groups,
        "correlations": frames.correlations,
    }
    tables_of_runs = {
        "replicates": frames.replicates,
        "flips": frames.flips,
        "noise": frames.noise,
        "detectable": frames.detectable,
    }
    tables |= {name: frame for name, frame in tables_of_runs.items() if frame.height}
    if frames.shared is not None:
        tables |= {"shared": frames.shared.pairs, "searches": frames.shared.searches}

    content: dict[str, Any] = {"baseline": frames.baseline}
    for name, frame in tables.items():
        if frame is not None:
            content[name] = frame.to_dicts()
    content |= {"notes": [*list_notes(frames)], "signature": signature}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


#: The forms of `Comparison.to_text`.
FORMS: dict[str, Callable[[ComparisonFrames, Layout], str]] = {
    "csv": _write_csv,
    "markdown": _write_markdown,
    "latex": _write_latex,
    "json": _write_json,
}


def render_html(frames: ComparisonFrames) -> str:
    """Return all tables for a notebook, with a picture of each interval, and the legend and notes as a list."""
    means, pairs, *further_tables = build_tables(frames, Layout())
    at = pairs.header.index("interval")
    rows = []
    for row, picture in zip(pairs.rows, _draw_intervals(frames.pairs), strict=True):
        cells = list(row)
        cells[at] = cells[at]._replace(picture=picture)
        rows.append(cells)
    tables = write_html([means, pairs._replace(rows=rows), *further_tables])

    notes = list_notes(frames)
    mark_shown(notes)
    sentences = [*build_legend(frames), *notes]
    items = "".join(f"<li>{escape_html(sentence)}</li>" for sentence in sentences)
    return f"{tables}<ul><small>{items}</small></ul>"


def _draw_intervals(pairs: pl.DataFrame) -> Iterator[str]:
    """Yield an SVG of each pair's difference, interval and zero line; an empty text without these. A measure has one scale."""
    size = pl.max_horizontal(pl.col("difference", "low", "high").abs())
    rows = pairs.select("difference", "low", "high", "verdict", scale=size.max().over("measure"))
    for difference, low, high, verdict, scale in rows.iter_rows():
        if difference is None or not scale:
            yield ""
            continue

        middle = _HEIGHT / 2
        colour = VERDICT_COLOURS.get(verdict, "#8C8C8C")
        label, bar = "difference", ""
        if low is not None:
            left, right = _place(low, scale), _place(high, scale)
            label = "difference and interval"
            bar = f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}" stroke="{colour}" stroke-width="3"/>'
        x = _place(difference, scale)
        yield (
            f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label} around zero">'
            f'<line x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="{_HEIGHT}" stroke="currentColor" stroke-width="0.7"/>{bar}'
            f'<circle cx="{x:.1f}" cy="{middle}" r="3.5" fill="{colour}"/></svg> '
        )


def _place(value: float, scale: float) -> float:
    return _WIDTH / 2 * (1 + 0.94 * value / scale)


def render_on_terminal(frames: ComparisonFrames, width: int, layout: Layout) -> Iterator[Any]:
    """Yield the tables, the legend and the remarks for printing with rich. The notices are on stderr."""
    from rich.text import Text

    for table in build_tables(frames, layout):
        yield from draw_table(table, width)
    for sentence in (*build_legend(frames), *list_remarks(frames), *list_unknown(frames)):
        yield Text(escape_controls(sentence))


def render_briefly(frames: ComparisonFrames, width: int, layout: Layout, *, more: str = "--full") -> Iterator[Any]:
    """Yield short tables for printing with rich. If the comparison has bounds, yield the full tables."""
    from rich.text import Text

    if "most" in frames.pairs.columns:
        yield from render_on_terminal(frames, width, layout)
        return
    for table in build_brief_tables(frames, layout):
        yield from draw_table(table, width, brief=True)
        yield Text("")
    yield Text(escape_controls(describe_costs(frames)))
    sentences = [*describe_power(frames, most=1), *describe_reruns(frames, most=1)]
    for sentence in (*sentences, *describe_shared(frames), *explain_shared(frames)):
        yield Text(escape_controls(sentence))
    alpha, correction = frames.signature["alpha"], describe_correction(frames)
    yield Text(f"Better or worse: p <= {alpha:g}, {correction}. {more} adds tests.")
    for sentence in (*describe_many_measures(frames), *list_unknown(frames)):
        yield Text(escape_controls(sentence))
