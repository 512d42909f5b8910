"""Writes a report on systems without relevance labels: the parts of a report that need none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ir_measures
import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_sentences import build_legend
from goodgain.analysis.comparing.lost_queries import count_unsearched
from goodgain.analysis.comparing.rendering import count_queries
from goodgain.analysis.reporting.page_opening import (
    MOST_SHOWN,
    PLACES,
    Tile,
    build_tile_of_lost_queries,
    build_tile_of_pair,
    build_tile_of_system,
    choose_first,
    describe_decided_measures,
    name_systems,
)
from goodgain.analysis.reporting.page_pictures import draw_curves
from goodgain.analysis.reporting.page_sentences import (
    describe_comparison,
    describe_method,
    describe_tables,
    explain_marks,
)
from goodgain.analysis.reporting.page_tables import build_comparison_tables, build_full_tables, build_means_of_system
from goodgain.counting.run_opening import stack_systems
from goodgain.files.escaping import guard_formulas
from goodgain.files.pages import render_page
from goodgain.files.tables import Line, Table, format_number, write_markdown
from goodgain.measures.declaration import add_arrow
from goodgain.measures.names import find_direction
from goodgain.measures.scores import Scores
from goodgain.measures.without_labels import describe_unknown

#: Measure of a tile, up to the iteration i -> title of the tile.
TILES = {
    "NumUnique@{i}": "Different documents found",
    "SRR@{i}": "Share of repeated results",
    "NumIter": "Searches per query",
}
#: The words of `describe_words` that are about labels.
WORDS_OF_LABELS = ("good", "R, Dup, GR, G")
_PAGE = Path(__file__).parent / "page"


@dataclass(frozen=True)
class EvidenceWithoutLabels:
    """The data of a report without labels. The first system is the base."""

    scores: Mapping[str, Scores]
    comparison: Comparison | None  # of the other systems with the first system
    with_tiles: Comparison | None  # `comparison`, with the measures of the tiles
    cutoff: int  # the iteration of the tiles
    tiles: Sequence[ir_measures.Measure]
    scores_of_tiles: Mapping[str, Scores]
    curves: pl.DataFrame
    measures: Mapping[str, str | None]  # name -> better direction
    next_step: str  # the command or call that lists what to judge
    texts: Mapping[str, str]  # query_id -> text
    words: Mapping[str, str]  # word -> its meaning
    command: str  # how to make the report again
    doubts: tuple[str, ...] = ()

    @property
    def systems(self) -> list[str]:
        return [*self.scores]

    @property
    def base(self) -> str:
        return self.systems[0]

    @property
    def number(self) -> int:
        return int(self.scores[self.base].signature["queries"])

    @cached_property
    def queries(self) -> pl.DataFrame:
        """A row per query, measure and system: query_id, query_text, measure, system, value."""
        values = stack_systems({name: scores.per_query for name, scores in self.scores.items()})
        values = values.filter(pl.col("measure").is_in([*self.measures]))
        texts = pl.col("query_id").replace_strict(
            [*self.texts], [*self.texts.values()], default=None, return_dtype=pl.String
        )
        return values.select("query_id", texts.alias("query_text"), "measure", "system", "value")


def write_report_without_labels(evidence: EvidenceWithoutLabels, form: str, *, spreadsheet: bool) -> str:
    """Return the text of a report in one of the formats of `write_report`."""
    if form == "csv":
        table = evidence.queries
        return (guard_formulas(table) if spreadsheet else table).write_csv()
    texts = _collect_texts(evidence)
    if form == "json":
        return _write_json(evidence, texts)
    if form == "markdown":
        return _write_markdown(evidence, texts)
    return _write_page(evidence, texts)


def _collect_texts(evidence: EvidenceWithoutLabels) -> dict[str, Any]:
    """Return what all forms of a report say, by the names of JSON."""
    comparison = evidence.comparison
    signature = evidence.scores[evidence.base].signature
    if comparison is not None:
        signature = comparison.signature
    return {
        "title": f"{name_systems(evidence.systems)}: {count_queries(evidence.number)}, no labels",
        "headline": [*_describe_headline(evidence)],
        "summary": [] if comparison is None else [*describe_comparison(comparison)],
        "method": None if comparison is None else describe_method(comparison),
        "doubts": [*evidence.doubts],
        "signature": signature,
        "command": evidence.command,
    }


def _describe_headline(evidence: EvidenceWithoutLabels) -> Iterator[str]:
    """Yield the headline: what is unknown and what to do, then the verdicts on the second system."""
    unknown, next_step = describe_unknown(evidence.next_step, len(evidence.scores)).split(". ", 1)
    yield f"{unknown}."
    if evidence.comparison is not None:
        yield from _describe_verdicts(evidence.comparison, evidence.base, evidence.systems[1])
    yield next_step  # without a full stop: the command is copied


def _describe_verdicts(comparison: Comparison, base: str, system: str) -> Iterator[str]:
    """Yield a sentence on the measures in which a system differs from the base beyond chance, if there are such measures."""
    pairs = comparison.pairs.filter(system=system, against=base)
    if decided := describe_decided_measures(system, base, pairs.to_dicts()):
        yield decided


def _write_json(evidence: EvidenceWithoutLabels, texts: Mapping[str, Any]) -> str:
    frames = {"queries": evidence.queries}
    comparison = evidence.comparison
    if comparison is not None:
        frames |= {"means": comparison.means, "pairs": comparison.pairs}
    if comparison is not None and comparison.shared is not None:
        frames |= {"shared": comparison.shared.pairs, "searches": comparison.shared.searches}
    rows = {name: frame.to_dicts() for name, frame in frames.items()}
    return json.dumps({**texts, **rows}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _write_markdown(evidence: EvidenceWithoutLabels, texts: Mapping[str, Any]) -> str:
    paragraphs = filter(None, [" ".join(texts["headline"]), *texts["summary"], texts["method"]])
    parts: list[Table | Line] = [Line(texts["title"], -1), *map(Line, paragraphs), *_build_tables(evidence)]
    parts += [Line("What to distrust", -1), *(Line(doubt, 1) for doubt in texts["doubts"])]
    return write_markdown([*parts, Line("How to make this again", -1), Line(evidence.command)])


def _build_tables(evidence: EvidenceWithoutLabels) -> list[Table]:
    if evidence.comparison is not None and evidence.with_tiles is not None:
        return build_comparison_tables(evidence.comparison, evidence.with_tiles)
    base = evidence.base
    return [build_means_of_system(base, evidence.scores[base], evidence.scores_of_tiles[base])]


def _write_page(evidence: EvidenceWithoutLabels, texts: Mapping[str, Any]) -> str:
    from markupsafe import Markup  # comes with Jinja2

    comparison = evidence.comparison
    highlights = choose_first(evidence.systems)
    pictures = [picture | {"svg": Markup(picture["svg"])} for picture in draw_curves(evidence.curves, highlights)]
    tables = _build_tables(evidence)
    more = [] if comparison is None else build_full_tables(comparison)
    return render_page(
        _PAGE,
        "report",
        data={},
        **texts,
        has_labels=False,
        has_iterations=False,  # of the section on searches, which needs labels
        look_first=None,
        verdicts=texts["summary"],
        tables=tables,
        about_tables=describe_tables(evidence.measures, map(str, evidence.tiles), explain_marks(tables, comparison)),
        words={**evidence.words, **explain_marks([*tables, *more], comparison)},
        more=more,
        legend=[] if comparison is None else build_legend(comparison),
        most_shown=MOST_SHOWN,
        systems=evidence.systems,
        highlights=highlights,
        tiles=[*_build_tiles(evidence)],
        about_tiles=_describe_tiles(evidence),
        pictures=pictures,
    )


def _build_tiles(evidence: EvidenceWithoutLabels) -> Iterator[Tile]:
    """Yield the tiles on the first two systems: measures, shared documents, and lost queries if there are any."""
    base, comparison = evidence.base, evidence.comparison
    for title, measure in zip(TILES.values(), evidence.tiles, strict=True):
        name = str(measure)
        shown = add_arrow(name, find_direction(measure))
        if evidence.with_tiles is None:
            yield build_tile_of_system(title, shown, base, name, evidence.scores_of_tiles[base].means[name])
            continue
        pairs = evidence.with_tiles.pairs.filter(measure=name, system=evidence.systems[1], against=base)
        yield build_tile_of_pair(title, shown, pairs.row(0, named=True))

    if comparison is not None and comparison.shared is not None:
        system = evidence.systems[1]
        (pair, *_) = comparison.shared.pairs.filter(system=system, against=base).to_dicts()
        values = [("Jaccard", format_number(pair["jaccard"], PLACES)), ("RBO", format_number(pair["rbo"], PLACES))]
        yield Tile("Documents that both found", "", values, "", "", f"{system} and {base}")
    lost = {system: count_unsearched(scores) for system, scores in evidence.scores.items()}
    if any(map(any, lost.values())):
        yield build_tile_of_lost_queries(lost, evidence.systems[:2])


def _describe_tiles(evidence: EvidenceWithoutLabels) -> str:
    text = f"Means over {count_queries(evidence.number)}; @{evidence.cutoff}: up to search {evidence.cutoff}."
    if len(evidence.systems) > 2:
        text += f" Of {len(evidence.systems):,} systems, the tiles have the first two."
    return text
