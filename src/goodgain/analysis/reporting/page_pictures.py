"""Draws the pictures of a report: SVG plots that take colours and fonts from the page."""

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from goodgain.analysis.comparing.rendering import count_queries
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.page_data import Evidence
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
#: With more systems, the page has no pictures of single systems.
_MOST_SYSTEMS = 6
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


def draw_all(of: Evidence) -> list[dict[str, str]]:
    """Return a list with a dict per picture of a report: title, text (a sentence on what the picture shows) and svg."""
    return _draw_in_own_style(lambda: _draw(of))


def draw_curves(curves: pl.DataFrame) -> list[dict[str, str]]:
    """Return a picture of each measure over iterations, as `draw_all` does."""
    return _draw_in_own_style(lambda: _draw_curves(curves))


def _draw_in_own_style(draw: Callable[[], Iterator[tuple[str, str, Any]]]) -> list[dict[str, str]]:
    from matplotlib import style

    with style.context(["default", _LOOK]):  # not the style of the user
        pictures, places = [], dict[Any, Any]()
        for number, (title, text, ax) in enumerate(draw()):
            tell_progress(f"drawing picture {number + 1}", number, None)
            ax.set_title("", loc="left")  # the page writes it above the picture
            pictures.append({"title": title, "text": text, "svg": _to_svg(ax, number, title, text, places)})
        return pictures


def _draw(of: Evidence) -> Iterator[tuple[str, str, Any]]:
    from goodgain.analysis.reporting.plots.canvas import share_scales

    comparison, explained = of.comparison, str(of.explained.measure)
    yield from _draw_curves(of.curves)
    if comparison is not None and comparison.signature["queries"] <= _MOST_QUERIES:
        rows = comparison.pairs.filter(measure=explained).rows(named=True)
        pairs = [(row["system"], row["against"]) for row in rows]
        differences = [plots.per_query(comparison, explained, system=one, against=other) for one, other in pairs]
        share_scales(differences, "x")
        for row, (system, against), ax in zip(rows, pairs, differences, strict=True):
            text = f"{system} minus {against} in {explained}, {count_queries(row['queries'])}"
            if row["wins"] is not None:
                text += f": better in {row['wins']}, worse in {row['losses']}, equal in {row['ties']}"
            if row["difference"] is not None:
                text += f"; mean {row['difference']:+.3g}"
            yield f"{system} against {against}, query by query", f"{text}.", ax
    shown = of.ledgers if len(of.ledgers) <= _MOST_SYSTEMS else {}
    bars = [plots.what_came_back(ledger) for ledger in shown.values()]
    last = [plots.iterations_used(ledger, qrels=of.qrels) for ledger in shown.values()]
    for compared in (bars, last):
        share_scales(compared, "x", "y")
    for (name, ledger), plot in zip(shown.items(), bars, strict=True):
        totals = prepare_what_came_back(ledger).sum().row(0, named=True)
        said = [f"{totals[kind]:,} {look.label}" for kind, look in KINDS.items()]
        nothing = count_of(totals["nothing"], "iteration")
        text = f"All results of {name}: {'; '.join(said)}. {nothing} got no result."
        yield f"What came back in {name}, by iteration", text, plot
    for name, plot in zip(shown, last, strict=True):
        title = f"When {name} stopped, and when it last found something good"
        text = "At 0: queries that found no good document, or never searched. Searches after the last good document are wasted."
        yield title, text, plot
    text = (
        "At each recall, the highest precision at this recall or a higher one. The ranking joins all iterations. Relevant "
        f"are the good documents: labels of {of.explained.measure.rel:g} or higher."
    )
    yield "Precision and recall", text, plots.precision_recall(of.recalls)
    if of.funnel is not None:
        text = "Good documents that were returned and not opened, or opened and not cited, were lost on the way."
        yield "Returned, opened, cited", text, plots.funnel(of.funnel)


def _draw_curves(curves: pl.DataFrame) -> Iterator[tuple[str, str, Any]]:
    for (measure,), points in curves.group_by("measure", maintain_order=True):
        ends = points.group_by("system", maintain_order=True).agg(pl.col("iteration", "mean").gather([0, -1]))
        said = [
            f"{name}: {_show(first)} after iteration {start}, {_show(last)} after {end}"
            for name, (start, end), (first, last) in ends.iter_rows()
        ]
        title = f"{add_arrow(str(measure), find_direction(parse_measure(str(measure))))} by iteration"
        text = " ".join([f"{'; '.join(said)}.", *describe_without_results(points)])
        yield title, text, plots.curve(curves, str(measure))


def _show(value: float | None) -> str:
    return "no value" if value is None else f"{value:.4f}"


def _to_svg(ax: Any, number: int, title: str, text: str, places: dict[Any, Any]) -> str:
    """Return a plot as an SVG element with a text alternative, and with attributes in place of styles.

    `places` caches the position of the axes, which is the same for plots with the same scales, labels and legend.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    content, figure = io.StringIO(), ax.figure
    texts = [one.get_text() for legend in figure.legends for one in legend.get_texts()]
    texts += [one.get_text() for one in (*ax.get_xticklabels(), *ax.get_yticklabels())]
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
    tag = _STYLE.sub(lambda found: _write_attributes(_FONT.sub(r"font-size: \1", found[1])), tag)
    tag = _ID.sub(lambda found: found[0] if found[1] in used else "", tag)
    tag = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), tag)
    tag = _PATH.sub(lambda found: re.sub(r"\s*([A-Za-z])\s*", r"\1", found[0]), tag)
    for drawn, shown in ((_INK, "currentColor"), ("#000000", "currentColor"), ("xlink:href", "href")):
        tag = tag.replace(drawn, shown)
    # The mark of a tick has its own look.
    return re.sub(r'^(<use .*?) fill="currentColor" stroke="currentColor".*/>', r"\1/>", tag)


def _write_attributes(style: str) -> str:
    pairs = (map(str.strip, one.split(":", 1)) for one in style.split(";") if ":" in one)
    return "".join(f' {name}="{value}"' for name, value in pairs if name not in _OF_PAGE)
