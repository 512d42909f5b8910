"""Writes a report on one or more systems: an HTML page that needs no network, or the same in Markdown, CSV or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from goodgain.analysis.comparing.comparison_sentences import build_legend
from goodgain.analysis.comparing.rendering import count_queries
from goodgain.analysis.explaining.explanation_screens import build_screen
from goodgain.analysis.explaining.explanation_sentences import describe_whole
from goodgain.analysis.reporting import page_sentences
from goodgain.analysis.reporting.page_data import Evidence, build_data
from goodgain.analysis.reporting.page_opening import (
    MOST_SHOWN,
    PLACES,
    build_tiles,
    describe_headline,
    describe_tiles,
    name_systems,
)
from goodgain.analysis.reporting.page_pictures import draw_all
from goodgain.analysis.reporting.page_tables import build_comparison_tables, build_full_tables, build_means_of_system
from goodgain.analysis.reporting.page_without_labels import EvidenceWithoutLabels, write_report_without_labels
from goodgain.analysis.reporting.spends import build_cost_table, build_search_tables
from goodgain.errors import InputError
from goodgain.files.escaping import guard_formulas
from goodgain.files.pages import render_page
from goodgain.files.tables import Line, Table, write_markdown
from goodgain.measures.declaration import add_arrow
from goodgain.options import spell
from goodgain.providers import pause_garbage_collection

#: Format -> the endings of its files.
FORMATS = {"html": (".html", ".htm"), "markdown": (".md",), "csv": (".csv",), "json": (".json",)}
_PAGE = Path(__file__).parent / "page"


def choose_format(path: Path, named: str | None) -> str:
    """Return the named format, or else the format for the suffix of the file. Raise `InputError` for an unknown format."""
    if named and named not in FORMATS:
        raise InputError(f"{spell('format', named)} is not a format of reports. Give one of {', '.join(FORMATS)}.")
    if named:
        return named
    for form, suffixes in FORMATS.items():
        if path.suffix.lower() in suffixes:
            return form
    suffixes_of_all = ", ".join(chain.from_iterable(FORMATS.values()))
    raise InputError(f"{path}: the file name of a report ends in one of {suffixes_of_all}. Rename the file.")


def write_report(evidence: Evidence | EvidenceWithoutLabels, form: str, *, spreadsheet: bool = False) -> str:
    """Return the text of a report in one of `FORMATS`. CSV has only the values of the queries."""
    if isinstance(evidence, EvidenceWithoutLabels):
        return write_report_without_labels(evidence, form, spreadsheet=spreadsheet)
    if form == "csv":
        table = evidence.queries
        return (guard_formulas(table) if spreadsheet else table).write_csv()

    summary = _summarise(evidence)
    texts = _collect_texts(evidence, summary)
    if form == "json":
        return _write_json(evidence, texts)
    if form == "markdown":
        return _write_markdown(evidence, texts)
    with pause_garbage_collection():
        return _write_page(evidence, texts, summary)


class _Summary(NamedTuple):
    """Sentences on the pairs of systems, in the same order."""

    verdicts: list[str]  # empty for one system
    causes: list[str]  # the main cause of a difference, and the query to look at first; for one system, all sentences

    @property
    def both(self) -> list[str]:
        in_turns = chain.from_iterable(zip_longest(self.verdicts, self.causes))
        return [sentence for sentence in in_turns if sentence]


def _summarise(evidence: Evidence) -> _Summary:
    """Write the sentences on each pair or, for one system, on its means, searches and uses."""
    comparison = evidence.comparison
    if comparison is None:
        (system,) = evidence.systems
        scores = evidence.scores[system]
        measure = str(evidence.explained.measure)
        sentences = [*page_sentences.describe_system(system, scores, evidence.measures, measure, evidence.iterations)]
        if evidence.funnel is not None:
            sentences += page_sentences.describe_funnel(system, evidence.funnel)
        return _Summary(verdicts=[], causes=sentences)

    causes = []
    for explanation in evidence.explanations.values():
        line_on_difference = next(build_screen(explanation))
        if isinstance(line_on_difference, Line):  # never a table
            causes.append(evidence.tell_cause(line_on_difference.text))
    return _Summary(verdicts=[*page_sentences.describe_comparison(comparison)], causes=causes)


def _collect_texts(evidence: Evidence, summary: _Summary) -> dict[str, Any]:
    """Return what all forms of a report say, by the names of JSON."""
    comparison = evidence.comparison
    reasons = [f"{reason[0].upper()}{reason[1:].removesuffix('.')}." for reason in evidence.reasons]
    signature = evidence.scores[evidence.opening.base].signature
    if comparison is not None:
        signature = comparison.signature
    return {
        "title": f"{name_systems(evidence.systems)}: {count_queries(len(evidence.query_ids))}",
        "headline": [*reasons, *describe_headline(evidence.opening)],
        "look_first": evidence.describe_first_query(),
        "summary": summary.both,
        "method": None if comparison is None else page_sentences.describe_method(comparison),
        "doubts": [*evidence.doubts],
        "signature": signature,
        "command": evidence.command,
    }


def _write_json(evidence: Evidence, texts: Mapping[str, Any]) -> str:
    frames = {}
    if evidence.comparison is not None:
        frames = {"means": evidence.comparison.means, "pairs": evidence.comparison.pairs}
    frames |= {"queries": evidence.queries, "searches": evidence.searches}
    rows = {name: frame.to_dicts() for name, frame in frames.items()}
    return json.dumps({**texts, **rows}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _write_markdown(evidence: Evidence, texts: Mapping[str, Any]) -> str:
    opening = " ".join([*texts["headline"], texts["look_first"] or ""]).strip()
    paragraphs = filter(None, [opening, *texts["summary"], texts["method"]])
    parts: list[Table | Line] = [Line(texts["title"], -1), *map(Line, paragraphs), *_build_tables(evidence)]
    parts += [Line("What to distrust", -1), *(Line(doubt, 1) for doubt in texts["doubts"])]
    for system, explanation in evidence.explanations.items():
        _, *screen = build_screen(explanation)  # its first line stands in the summary
        title = evidence.tell_cause(f"Why {system} differs from {explanation.base}")
        parts += [Line(title, -1), *screen]
    return write_markdown([*parts, Line("How to make this again", -1), Line(texts["command"])])


def _build_tables(evidence: Evidence) -> list[Table]:
    """Return the tables of means and differences, and of costs if they are given."""
    opening = evidence.opening
    if evidence.comparison is not None and evidence.with_tiles is not None:
        tables = build_comparison_tables(evidence.comparison, evidence.with_tiles)
    else:
        tables = [build_means_of_system(opening.base, evidence.scores[opening.base], opening.scores[opening.base])]
    if opening.spent is not None:
        means = {system: scores.means[opening.first] for system, scores in opening.scores.items()}
        tables.append(build_cost_table(opening.spent, add_arrow(opening.first, "up"), means, PLACES))
    return tables


def _write_page(evidence: Evidence, texts: Mapping[str, Any], summary: _Summary) -> str:
    from markupsafe import Markup  # comes with Jinja2

    comparison, opening = evidence.comparison, evidence.opening
    explanations = evidence.explanations.values()
    whole = chain.from_iterable(map(describe_whole, explanations))
    pictures = [picture | {"svg": Markup(picture["svg"])} for picture in draw_all(evidence)]
    tables = _build_tables(evidence)
    more = [] if comparison is None else build_full_tables(comparison)
    marks = page_sentences.explain_marks(tables, comparison)
    return render_page(
        _PAGE,
        "report",
        data=build_data(evidence),
        **texts,
        has_labels=True,
        has_iterations=evidence.has_iterations,
        verdicts=summary.verdicts,
        why=_sort_causes(evidence, summary.causes),
        searched=[*dict.fromkeys(map(evidence.tell_cause, whole))],
        tables=tables,
        about_tables=page_sentences.describe_tables(evidence.measures, map(str, opening.measures), marks),
        more=more,
        legend=[] if comparison is None else build_legend(comparison),
        words={**evidence.words, **page_sentences.explain_marks([*tables, *more], comparison)},
        most_shown=MOST_SHOWN,
        searches=[*build_search_tables(evidence.searches, opening.highlights)],
        systems=evidence.systems,
        highlights=opening.highlights,
        explained=str(evidence.explained.measure),
        is_decided=_is_decided(evidence),
        number=len(evidence.query_ids),
        details=evidence.details,
        tiles=[*build_tiles(opening)],
        about_tiles=describe_tiles(opening, len(evidence.query_ids)),
        pictures=pictures,
    )


def _sort_causes(evidence: Evidence, causes: list[str]) -> list[str]:
    """Put the causes of the headline's system first. A report on one system keeps its sentences."""
    lead = evidence.opening.lead
    if evidence.comparison is None or len(causes) != len(evidence.explanations):
        return causes
    cause_of = dict(zip(evidence.explanations, causes, strict=True))
    return [cause_of.pop(lead), *cause_of.values()]


def _is_decided(evidence: Evidence) -> bool:
    """Whether a difference in the explained measure is beyond chance."""
    if evidence.comparison is None:
        return True
    pairs = evidence.comparison.pairs.filter(measure=str(evidence.explained.measure))
    return bool(pairs.get_column("verdict").is_in(["better", "worse"]).any())
