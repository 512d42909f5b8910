"""Draws the pictures of a report: SVG plots that take colours and fonts from the page."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.rendering import count_queries, format_signed
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.page_data import Evidence
from goodgain.analysis.reporting.page_opening import PLACES, join_words
from goodgain.analysis.reporting.plots.plot_data import (
    KINDS,
    describe_without_results,
    prepare_what_came_back,
)
from goodgain.errors import count_of, tell_progress
from goodgain.files.escaping import escape_html
from goodgain.measures.declaration import add_arrow
from goodgain.measures.names import find_direction, parse_measure

#: The colour of drawings. On the page it becomes the colour of text.
_INK = "#0b0b0c"
_LOOK = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor"), "none"),
}
#: With more bars the picture of each query takes megabytes, and says less than the table.
_MOST_QUERIES = 300
#: Parts of matplotlib's SVG to remove: header, comments, metadata, style sheet, rotations by 0.
_LEFT_OUT = re.compile(
    r'^.*?(?=<svg)|<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>| transform="rotate\(-0 [^"]*"', re.DOTALL
)
_TAG = re.compile(r"<[^>]*>")
_STYLE = re.compile(r' style="([^"]*)"')
_FONT = re.compile(r"font: (?:\w+ )*?([\d.]+)px [^;]*")
#: Properties that the style of the page sets for all pictures.
_OF_PAGE = ("font-family", "stroke-linejoin", "stroke-linecap")
_PATH = re.compile(r'(?<= d=")[^"]*')
#: A group of one element, without attributes.
_GROUP = re.compile(r"<g>(<(?:use|path|rect) [^>]*/>|<text[^>]*>[^<]*</text>)</g>")
_ID = re.compile(r' id="([^"]*)"')


class _Plot(NamedTuple):
    """A plot with its title and a sentence on what it shows."""

    title: str
    text: str
    ax: Any


def draw_all(evidence: Evidence) -> list[dict[str, str]]:
    """Return a list with a dict per picture of a report: title, text (a sentence on what the picture shows) and svg."""
    return _write_pictures(_draw_all(evidence))


def draw_curves(curves: pl.DataFrame, highlights: Sequence[str]) -> list[dict[str, str]]:
    """Return a picture of each measure over iterations, as `draw_all` does. Systems that are not in `highlights` are grey."""
    return _write_pictures(_draw_curves(curves, highlights))


def _write_pictures(plots_of_page: Iterator[_Plot]) -> list[dict[str, str]]:
    """Return title, text and svg of each plot. The title is not in the drawing: the page writes it above."""
    from matplotlib import style

    with style.context(["default", _LOOK]):  # not the style of the user; plots are drawn in this loop
        pictures = []
        places = dict[Any, Any]()
        for number, (title, text, ax) in enumerate(plots_of_page):
            tell_progress(f"drawing picture {number + 1}", number, None)
            ax.set_title("", loc="left")  # the page writes it above the picture
            pictures.append({"title": title, "text": text, "svg": _to_svg(ax, number, title, text, places)})
        return pictures


def _draw_all(evidence: Evidence) -> Iterator[_Plot]:
    """Draw the plots of a report one after the other, so that each can be written before the next is drawn."""
    highlights = evidence.opening.highlights
    if evidence.has_iterations:
        yield from _draw_curves(evidence.curves, highlights)
    if evidence.comparison is not None and evidence.comparison.signature["queries"] <= _MOST_QUERIES:
        yield from _draw_differences(evidence.comparison, str(evidence.explained.measure), highlights)
    yield from _draw_systems(evidence, {system: evidence.ledgers[system] for system in highlights})

    text = (
        "At each recall, the highest precision at this recall or a higher one. The ranking joins all iterations. Relevant "
        f"are the good documents: labels of {evidence.explained.measure.rel:g} or higher."
    )
    grey = _describe_grey(evidence.recalls, highlights)
    ax = plots.precision_recall(evidence.recalls, highlight=highlights)
    yield _Plot("Precision and recall", " ".join([text, *grey]), ax)
    if evidence.funnel is not None:
        text = (
            "Above each bar: the part of it that is good. Unjudged documents count as not good. Good documents that were "
            "returned and not opened, or opened and not cited, were lost on the way."
        )
        of_highlights = evidence.funnel.frame.filter(pl.col("system").is_in(highlights))
        ax = plots.funnel(replace(evidence.funnel, frame=of_highlights))
        yield _Plot("Returned, opened, cited", text, ax)


def _draw_curves(curves: pl.DataFrame, highlights: Sequence[str]) -> Iterator[_Plot]:
    for (measure,), points in curves.group_by("measure", maintain_order=True):
        name = str(measure)
        title = f"{add_arrow(name, find_direction(parse_measure(name)))} by iteration"
        grey = _describe_grey(points, highlights)
        text = " ".join([_describe_curve(points, highlights), *grey, *describe_without_results(points)])
        yield _Plot(title, text, plots.curve(curves, name, highlight=highlights))


def _describe_curve(points: pl.DataFrame, highlights: Sequence[str]) -> str:
    """Return a sentence on the first and last values, such as `From iteration 1 to 6, quick goes from 0.3 to 0.7.`"""
    changes: dict[tuple[int, int], list[str]] = {}  # (first iteration, last iteration) -> what systems do between them
    for system in highlights:
        of_system = points.filter(system=system).sort("iteration")
        first, last = of_system.row(0, named=True), of_system.row(-1, named=True)
        change = f"{system} goes from {_show(first['mean'])} to {_show(last['mean'])}"
        if first["iteration"] == last["iteration"]:
            change = f"{system} has {_show(first['mean'])}"
        changes.setdefault((first["iteration"], last["iteration"]), []).append(change)

    sentences = []
    for (start, end), said in changes.items():
        span = f"After iteration {start}" if start == end else f"From iteration {start} to {end}"
        sentences.append(f"{span}, {join_words(said)}.")
    return " ".join(sentences)


def _describe_grey(points: pl.DataFrame, highlights: Sequence[str]) -> list[str]:
    """Return a sentence on the systems without a colour; none if all have one."""
    grey = points.get_column("system").n_unique() - len(highlights)
    if not grey:
        return []
    return [f"The {grey:,} other systems are grey lines."]


def _draw_differences(comparison: Comparison, measure: str, highlights: Sequence[str]) -> Iterator[_Plot]:
    """Yield a picture of the differences of each highlighted system from the base, query by query, with one scale."""
    from goodgain.analysis.reporting.plots.canvas import share_scales

    row_of = comparison.pairs.filter(measure=measure).rows_by_key("system", named=True, include_key=True, unique=True)
    rows = [row_of[system] for system in highlights if system in row_of]
    axes = [plots.per_query(comparison, measure, system=row["system"], against=row["against"]) for row in rows]
    share_scales(axes, "x")
    for row, ax in zip(rows, axes, strict=True):
        system, against = row["system"], row["against"]
        text = f"{system} minus {against} in {measure}, {count_queries(row['queries'])}"
        if row["wins"] is not None:
            text += f": better in {row['wins']}, worse in {row['losses']}, equal in {row['ties']}"
        if row["difference"] is not None:
            text += f"; mean {format_signed(row['difference'], PLACES)}"
        yield _Plot(f"{system} against {against}, query by query", f"{text}.", ax)


def _draw_systems(evidence: Evidence, ledgers: Mapping[str, pl.DataFrame]) -> Iterator[_Plot]:
    """Yield two pictures of each system. The pictures of a kind have the same scales."""
    from goodgain.analysis.reporting.plots.canvas import share_scales

    came_back = {system: plots.what_came_back(ledger) for system, ledger in ledgers.items()}
    share_scales(came_back.values(), "x", "y")
    for system, ax in came_back.items():
        totals = prepare_what_came_back(ledgers[system]).sum().row(0, named=True)
        said = [f"{totals[kind]:,} {look.label}" for kind, look in KINDS.items()]
        nothing = count_of(totals["nothing"], "iteration")
        text = f"All results of {system}: {'; '.join(said)}. {nothing} got no result."
        yield _Plot(f"What came back in {system}, by iteration", text, ax)

    if not evidence.has_iterations:
        return
    stopped = {system: plots.iterations_used(ledger, qrels=evidence.qrels) for system, ledger in ledgers.items()}
    share_scales(stopped.values(), "x", "y")
    for system, ax in stopped.items():
        title = f"When {system} stopped, and when it last found something good"
        text = "At 0: queries that found no good document, or never searched. Searches after the last good document are wasted."
        yield _Plot(title, text, ax)


def _show(value: float | None) -> str:
    return "no value" if value is None else f"{value:.4f}"


def _to_svg(ax: Any, number: int, title: str, text: str, places: dict[Any, Any]) -> str:
    """Return a plot as an SVG element with a text alternative, and with attributes in place of styles.

    `places` caches the position of the axes, which is the same for plots with the same scales, labels and legend.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    content, figure = io.StringIO(), ax.figure
    labels = [*ax.get_xticklabels(), *ax.get_yticklabels()]
    for legend in figure.legends:
        labels += legend.get_texts()
    texts = [label.get_text() for label in labels]
    look = (ax.get_xlim(), ax.get_ylim(), ax.get_xlabel(), ax.get_ylabel(), *figure.get_size_inches(), *texts)
    # Texts stay texts. Ids differ between the pictures of a page.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": f"goodgain {number}"}):
        canvas: Any = FigureCanvasSVG(figure)
        figure.dpi = canvas.fixed_dpi
        if look not in places or ax.texts:
            figure.get_layout_engine().execute(figure)
            places[look] = ax.get_position()
        ax.set_position(places[look])
        figure.set_layout_engine("none")  # `savefig` would draw the whole figure once more for its layout
        canvas.print_svg(content, metadata={"Date": None})
    svg = _LEFT_OUT.sub("", content.getvalue())
    used = set(re.findall(r"#([\w-]+)", svg))
    svg = _TAG.sub(lambda tag: _rewrite_tag(tag[0], used), svg)
    _, view, body = re.split(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', svg, maxsplit=1)
    body = re.sub(r"\s*\n\s*| (?=<)", " ", body).replace("> <", "><")
    body = _GROUP.sub(r"\1", _GROUP.sub(r"\1", body))
    label, description = f"picture-{number}-title", f"picture-{number}-text"
    return (
        f'<svg role="img" {view} aria-labelledby="{label} {description}"><title id="{label}">{escape_html(title)}</title>'
        f'<desc id="{description}">{escape_html(text)}</desc>{body}'
    )


def _rewrite_tag(tag: str, used: set[str]) -> str:
    """Shorten a tag: attributes for styles, no id that nothing refers to (`used`), one decimal, and the colour of the page."""
    tag = _STYLE.sub(lambda found: _write_attributes(_FONT.sub(r"font-size: \1", found[1])), tag)
    tag = _ID.sub(lambda found: found[0] if found[1] in used else "", tag)
    tag = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), tag)
    tag = _PATH.sub(lambda found: re.sub(r"\s*([A-Za-z])\s*", r"\1", found[0]), tag)
    for drawn, shown in ((_INK, "currentColor"), ("#000000", "currentColor"), ("xlink:href", "href")):
        tag = tag.replace(drawn, shown)
    # The mark of a tick has its own look.
    return re.sub(r'^(<use .*?) fill="currentColor" stroke="currentColor".*/>', r"\1/>", tag)


def _write_attributes(style: str) -> str:
    pairs = (map(str.strip, property_.split(":", 1)) for property_ in style.split(";") if ":" in property_)
    return "".join(f' {name}="{value}"' for name, value in pairs if name not in _OF_PAGE)
