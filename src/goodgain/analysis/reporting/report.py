"""Writes a report on one or more systems: an HTML page that needs no network, or the same in Markdown, CSV or JSON."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.analysis.comparing.comparison_sentences import build_legend
from goodgain.analysis.comparing.comparison_tables import Layout, build_brief_tables, build_tables
from goodgain.analysis.comparing.rendering import count_queries, format_number
from goodgain.analysis.explaining.causes import Parts, divide_measure
from goodgain.analysis.explaining.explanation_screens import build_screen
from goodgain.analysis.explaining.explanation_sentences import describe_whole
from goodgain.analysis.reporting import page_sentences
from goodgain.analysis.reporting.page_data import Evidence, build_data
from goodgain.analysis.reporting.page_pictures import draw_all
from goodgain.analysis.reporting.page_without_labels import EvidenceWithoutLabels, write_report_without_labels
from goodgain.analysis.reporting.spends import build_cost_table, build_search_tables
from goodgain.counting.run_opening import list_runs
from goodgain.errors import InputError, MeasureError
from goodgain.files.escaping import guard_formulas
from goodgain.files.pages import render_page
from goodgain.files.tables import Line, Table, write_markdown
from goodgain.formats.no_labels import NO_LABELS
from goodgain.measures.declaration import GoodGainMeasure, IterationMeasure, add_arrow
from goodgain.measures.good_gain import NumDup
from goodgain.measures.names import Measures, parse_measure, parse_measures
from goodgain.options import DOCUMENTS, READING, spell
from goodgain.providers import pause_garbage_collection

#: Format -> the endings of its files.
FORMATS = {"html": (".html", ".htm"), "markdown": (".md",), "csv": (".csv",), "json": (".json",)}
#: The largest number of curves.
_MOST_CURVES = 4
#: The largest number of systems with a table of their searches.
_MOST_SYSTEMS = 6
#: How many reasons for doubt, and explanations, the page shows; the others are folded.
_MOST_SHOWN = 5
_PAGE = Path(__file__).parent / "page"


def choose_format(path: Path, given: str | None) -> str:
    """Return the given format, or else the format for the suffix of the file. Raise `InputError` for an unknown format."""
    found = given or next((form for form, ends in FORMATS.items() if path.suffix.lower() in ends), None)
    if found not in FORMATS:
        ends = ", ".join(end for ends in FORMATS.values() for end in ends)
        known = f"{spell('format', given)} is not a format of reports. Give one of {', '.join(FORMATS)}."
        raise InputError(
            known if given else f"{path}: the file name of a report ends in one of {ends}. Rename the file."
        )
    return found


#: The sentence in place of a command if an input is not a file.
_IN_MEMORY = "Made in Python from data in memory."
#: A list with at most so many texts, such as the ids of `only`, is written out.
_MOST_WRITTEN = 20
#: The options of an experiment that the command `report` has too.
_OF_COMMAND = [option.name for option in (*READING, *DOCUMENTS)] + ["rel", "order", "provider"]


def write_command(
    qrels: Any,
    runs: Mapping[str, Any],
    path: Any,
    measures: Measures,
    files: Mapping[str, Any],
    options: Mapping[str, Any],
    own: Mapping[str, Any],
) -> str:
    """Return how to make the report again: a command, or a call in Python if the command lacks an option.

    `options` are the options of the experiment that are not defaults, and `order`. `own` are arguments of `report`.
    """
    several = {name: list_runs(of) for name, of in runs.items()}
    named = {name: list_runs(of) for name, of in files.items() if of is not None}
    sources = [*([] if qrels is NO_LABELS else [qrels]), *chain(*several.values()), *chain(*named.values())]
    if not all(isinstance(one, (str, os.PathLike)) for one in sources) or not all(map(_is_written, options.values())):
        return _IN_MEMORY
    asked = " ".join(map(str, parse_measures(measures, rel=options.get("rel"))))
    if any(name not in _OF_COMMAND or isinstance(value, (list, tuple)) for name, value in options.items()):
        return _write_call(qrels, several, path, asked, options, {**named, **own})
    systems = [f"{name}={','.join(map(str, of))}" for name, of in several.items()]
    first = {name: options.get(name) for name in ("rel", "order", "provider")}
    others = {name: value for name, value in options.items() if name not in first}
    given = {"rel": first["rel"], "details": own["details"], **first, "format": own["format"], **others}
    words = ["report", "--no-labels" if qrels is NO_LABELS else qrels, *systems, "-m", asked]
    for name, value in {**named, **given}.items():
        for part in _write_values(value):
            words += [f"--{name.replace('_', '-')}", part]
    return shlex.join(["goodgain", *map(str, words), "-o", str(path)])


def _is_written(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) <= _MOST_WRITTEN and all(isinstance(one, str) for one in value)
    values = value.values() if isinstance(value, Mapping) else [value]
    return all(one is None or isinstance(one, (str, int, float, os.PathLike)) for one in values)


def _write_values(value: Any) -> list[Any]:
    """Return the values of an option on the command line, one for each time that the option is given."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        return list(value) if isinstance(value, list) else [value]
    pairs = [f"{key}={of}" for key, of in value.items()]
    is_of_systems = all(isinstance(of, int) for of in value.values())  # page=, given once for each system
    return pairs if is_of_systems else [",".join(pairs)]


def _write_call(
    qrels: Any,
    runs: Mapping[str, Sequence[Any]],
    path: Any,
    measures: str,
    options: Mapping[str, Any],
    own: Mapping[str, Any],
) -> str:
    def write(value: Any) -> str:
        if isinstance(value, os.PathLike):
            return repr(os.fspath(value))
        if isinstance(value, list):
            return write(value[0]) if len(value) == 1 else f"[{', '.join(map(write, value))}]"
        return repr(value)

    def write_option(value: Any) -> str:
        return repr([*value]) if isinstance(value, (list, tuple)) else write(value)

    systems = ", ".join(f"{name!r}: {write(of)}" for name, of in runs.items())
    of_experiment = "".join(f", {name}={write_option(value)}" for name, value in options.items())
    of_report = "".join(f", {name}={write(value)}" for name, value in own.items() if value is not None)
    experiment = f"goodgain.Experiment({write(qrels)}, {{{systems}}}{of_experiment})"
    return f"{experiment}.report({write(path)}, {measures!r}{of_report})"


def list_curves(measures: Iterable[Any]) -> list[Any]:
    """Return the measures to draw over iterations: good-gain measures and counts, without their cutoffs."""
    along = [
        type(measure)(**{name: value for name, value in measure.params.items() if name != "cutoff"})
        for measure in measures
        if isinstance(measure, GoodGainMeasure) and measure.declaration.cutoff != "none"
    ]
    return parse_measures(along, complete=False)[:_MOST_CURVES] if along else []


class Plan(NamedTuple):
    """The measures that a report compares, explains and draws."""

    explained: Parts  # the measure whose differences are explained
    measured: list[Any]  # the measures to compare
    curves: list[Any]  # the measures to draw over iterations
    cutoff: int | None  # the largest cutoff of the measures
    rel: float | None  # the option of the call

    @classmethod
    def of(cls, measures: Measures, rel: float | None) -> Plan:
        asked = parse_measures(measures, rel=rel)
        explained = _choose_explained(asked, rel)
        cutoffs = [one.cutoff for one in asked if isinstance(one, IterationMeasure) and one.cutoff is not None]
        curves = list_curves(asked) or parse_measures("nCG", complete=False, rel=rel)
        measured = parse_measures([*asked, explained.measure])
        return cls(explained, measured, curves, max(cutoffs, default=None), rel)

    @property
    def good(self) -> float:
        return self.explained.measure.rel

    def list_tiles(self, lengths: pl.Series) -> tuple[int, list[Any]]:
        """Return the cutoff and the measures of the tiles on the page. The default cutoff is the median number of iterations."""
        cutoff = self.cutoff or max(1, math.ceil(lengths.median() or 1))  # type: ignore[arg-type]  # of numbers
        named = " ".join(page_sentences.TILES).format(i=cutoff)
        tiles = parse_measures(named, rel=self.rel)  # not self.good: a threshold that nobody named has its own notice
        return cutoff, tiles if tiles[0].params.get("rel", self.good) == self.good else parse_measures(
            named, rel=self.good
        )


def _choose_explained(measures: list[Any], rel: float | None) -> Parts:
    for measure in measures:
        with suppress(MeasureError):
            parts = divide_measure(measure)
            if parts.numerator.NAME != NumDup.NAME:
                return parts
    return divide_measure(parse_measure("CG", rel=rel))


def _summarise(of: Evidence) -> tuple[list[str], list[str]]:
    """Return two lists of sentences: on verdicts, and on causes. For one system, the first list is empty."""
    (base, scores), *_ = of.scores.items()
    if of.comparison is None:
        said = [*page_sentences.describe_one(base, scores, of.measures, str(of.explained.measure), of.iterations)]
        return [], said if of.funnel is None else [*said, *page_sentences.describe_funnel(base, of.funnel)]
    # the main cause, and the query to look at first
    firsts = [next(build_screen(one)) for one in of.explanations.values()]
    whys = [of.tell_cause(first.text) for first in firsts if isinstance(first, Line)]
    return [*page_sentences.describe_comparison(of.comparison)], whys


def _build_tables(of: Evidence) -> list[Table]:
    opening, grids = of.opening, list[Table]()
    if opening.spent is not None:
        first = str(opening.measures[0])
        means = {name: scores.means[first] for name, scores in opening.scores.items()}
        grids = [build_cost_table(opening.spent, add_arrow(first, "up"), means, page_sentences.PLACES)]
    if of.comparison is not None:
        return [*build_brief_tables(of.comparison, Layout()), *grids]
    (name, scores), *_ = of.scores.items()
    rows = [
        [add_arrow(measure, better), format_number(scores.means[measure], page_sentences.PLACES)]
        for measure, better in of.measures.items()
    ]
    return [Table.of(f"Means over {count_queries(scores.signature['queries'])}", ["measure", name], 1, rows), *grids]


def write_report(of: Evidence | EvidenceWithoutLabels, form: str, *, spreadsheet: bool = False) -> str:
    if isinstance(of, EvidenceWithoutLabels):
        return write_report_without_labels(of, form, spreadsheet=spreadsheet)
    if form == "csv":
        table = of.queries
        return (guard_formulas(table) if spreadsheet else table).write_csv()
    comparison = of.comparison
    verdicts, why = _summarise(of)
    said = {
        "title": f"{', '.join(of.systems)}: {count_queries(len(of.qrels.query_ids))}",
        "headline": [
            *(f"{one[0].upper()}{one[1:].removesuffix('.')}." for one in of.reasons),
            *page_sentences.describe_headline(of.opening),
        ],
        "look_first": of.describe_query(),
        "summary": [*filter(None, chain.from_iterable(zip_longest(verdicts, why)))],
        "method": None if comparison is None else page_sentences.describe_method(comparison),
        "doubts": [*of.doubts],
        "signature": of.scores[of.systems[0]].signature if comparison is None else comparison.signature,
        "command": of.command,
    }
    if form == "json":
        compared = {} if comparison is None else {"means": comparison.means, "pairs": comparison.pairs}
        compared |= {"queries": of.queries, "searches": of.searches}
        rows = {name: frame.to_dicts() for name, frame in compared.items()}
        return json.dumps(said | rows, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    if form == "markdown":
        return _write_markdown(of, said)
    with pause_garbage_collection():
        return _write_page(of, said | {"verdicts": verdicts, "why": why})


def _write_markdown(of: Evidence, said: Mapping[str, Any]) -> str:
    opening = " ".join([*said["headline"], said["look_first"] or ""]).strip()
    paragraphs = filter(None, [opening, *said["summary"], said["method"]])
    parts: list[Table | Line] = [Line(said["title"], -1), *map(Line, paragraphs), *_build_tables(of)]
    parts += [Line("What to distrust", -1), *(Line(doubt, 1) for doubt in said["doubts"])]
    for name, explanation in of.explanations.items():
        title = of.tell_cause(f"Why {name} differs from {explanation.base}")
        parts += [Line(title, -1), *list(build_screen(explanation))[1:]]
    return write_markdown([*parts, Line("How to make this again", -1), Line(of.command)])


def _write_page(of: Evidence, said: Mapping[str, Any]) -> str:
    from markupsafe import Markup  # comes with Jinja2

    comparison, explanations = of.comparison, of.explanations.values()
    legend = [] if comparison is None else build_legend(comparison)
    return render_page(
        _PAGE,
        "report",
        data=build_data(of),
        **said,
        has_labels=True,
        tables=_build_tables(of),
        searched=[*dict.fromkeys(map(of.tell_cause, chain.from_iterable(map(describe_whole, explanations))))],
        words=of.words,
        more=[] if comparison is None else build_tables(comparison, Layout()),
        legend=legend,
        most_shown=_MOST_SHOWN,
        searches=[*build_search_tables(of.searches, _MOST_SYSTEMS)],
        systems=of.systems,
        explained=str(of.explained.measure),
        number=len(of.qrels.query_ids),
        details=of.details,
        tiles=[*page_sentences.build_tiles(of.opening)],
        pictures=[one | {"svg": Markup(one["svg"])} for one in draw_all(of)],
    )
