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
from goodgain.analysis.comparing.comparison_tables import Layout, build_brief_tables, build_tables
from goodgain.analysis.comparing.lost_queries import count_unsearched
from goodgain.analysis.comparing.rendering import count_queries, format_number, format_signed
from goodgain.analysis.reporting import page_sentences
from goodgain.analysis.reporting.page_pictures import draw_curves
from goodgain.analysis.reporting.page_sentences import PLACES, VERDICTS, Tile, build_tile_of_lost_queries, join_words
from goodgain.counting.run_opening import stack_systems
from goodgain.files.escaping import guard_formulas
from goodgain.files.pages import render_page
from goodgain.files.tables import Line, Table, write_markdown
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
#: How many reasons for doubt the page shows; the others are folded.
_MOST_SHOWN = 5
_PAGE = Path(__file__).parent / "page"


@dataclass(frozen=True)
class EvidenceWithoutLabels:
    """The data of a report without labels. The first system is the base."""

    scores: Mapping[str, Scores]
    comparison: Comparison | None  # of the other systems with the first system
    tiles: Sequence[ir_measures.Measure]
    scores_of_tiles: Mapping[str, Scores]
    pairs_of_tiles: pl.DataFrame | None  # the rows of `Comparison.pairs` for the tiles; None for one system
    curves: pl.DataFrame
    measures: Mapping[str, str | None]  # name -> better direction
    next_step: str  # the command or call that draws queries to judge
    texts: Mapping[str, str]  # query_id -> text
    words: Mapping[str, str]  # word -> its meaning
    command: str  # how to make the report again
    doubts: tuple[str, ...] = ()

    @property
    def systems(self) -> list[str]:
        return [*self.scores]

    @property
    def has_replicates(self) -> bool:
        return any(scores.replicates for scores in self.scores.values())

    @property
    def number(self) -> int:
        return int(self.scores[self.systems[0]].signature["queries"])

    @cached_property
    def queries(self) -> pl.DataFrame:
        """A row per query, measure and system: query_id, query_text, measure, system, value."""
        values = stack_systems({name: scores.per_query for name, scores in self.scores.items()})
        values = values.filter(pl.col("measure").is_in([*self.measures]))
        texts = pl.col("query_id").replace_strict(
            [*self.texts], [*self.texts.values()], default=None, return_dtype=pl.String
        )
        return values.select("query_id", texts.alias("query_text"), "measure", "system", "value")


def write_report_without_labels(of: EvidenceWithoutLabels, form: str, *, spreadsheet: bool) -> str:
    if form == "csv":
        return (guard_formulas(of.queries) if spreadsheet else of.queries).write_csv()
    comparison = of.comparison
    said: dict[str, Any] = {
        "title": f"{', '.join(of.systems)}: {count_queries(of.number)}, no labels",
        "headline": [*_describe_headline(of)],
        "summary": [] if comparison is None else [*page_sentences.describe_comparison(comparison)],
        "method": None if comparison is None else page_sentences.describe_method(comparison),
        "doubts": [*of.doubts],
        "signature": of.scores[of.systems[0]].signature if comparison is None else comparison.signature,
        "command": of.command,
    }
    if form == "json":
        frames = {"queries": of.queries}
        if comparison is not None:
            frames |= {"means": comparison.means, "pairs": comparison.pairs}
        if comparison is not None and comparison.shared is not None:
            frames |= {"shared": comparison.shared.pairs, "searches": comparison.shared.searches}
        rows = {name: frame.to_dicts() for name, frame in frames.items()}
        return json.dumps(said | rows, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    if form == "markdown":
        return _write_markdown(of, said)
    return _write_page(of, said)


def _describe_headline(of: EvidenceWithoutLabels) -> Iterator[str]:
    """Yield the headline: what is unknown and what to do, then the verdicts on the second system."""
    unknown, next_step = describe_unknown(of.next_step, len(of.scores)).split(". ", 1)
    yield f"{unknown}."
    if of.comparison is not None:
        system = of.systems[1]
        verdicts = of.comparison.pairs.filter(system=system, against=of.systems[0])
        said = []
        for verdict in ("better", "worse"):
            if measures := verdicts.filter(verdict=verdict).get_column("measure").to_list():
                said.append(f"{verdict} in {join_words(measures)}")
        if said:
            yield f"Beyond chance, {system} is {', but '.join(said)}."
    yield next_step  # without a full stop: the command is copied


def _build_tables(of: EvidenceWithoutLabels) -> list[Table]:
    if of.comparison is not None:
        return build_brief_tables(of.comparison, Layout())
    (name, scores), *_ = of.scores.items()
    rows = [
        [add_arrow(measure, better), format_number(scores.means[measure], PLACES)]
        for measure, better in of.measures.items()
    ]
    return [Table.of(f"Means over {count_queries(of.number)}", ["measure", name], 1, rows)]


def _build_tiles(of: EvidenceWithoutLabels) -> Iterator[Tile]:
    base, *others = of.systems
    for title, measure in zip(TILES.values(), of.tiles, strict=True):
        name = str(measure)
        shown = add_arrow(name, find_direction(measure))
        if of.pairs_of_tiles is None:
            yield Tile(title, shown, [(base, format_number(of.scores_of_tiles[base].means[name], PLACES))])
            continue
        row = of.pairs_of_tiles.filter(measure=name, system=others[0], against=base).row(0, named=True)
        values = [(base, format_number(row["mean_against"], PLACES)), (others[0], format_number(row["mean"], PLACES))]
        verdict = row["verdict"]
        said = VERDICTS.get(verdict, verdict)
        yield Tile(title, shown, values, format_signed(row["difference"], PLACES), verdict or "", said)

    if of.comparison is not None and of.comparison.shared is not None:
        (pair, *_) = of.comparison.shared.pairs.filter(system=others[0], against=base).to_dicts()
        values = [("Jaccard", format_number(pair["jaccard"], PLACES)), ("RBO", format_number(pair["rbo"], PLACES))]
        yield Tile("Documents that both found", "", values, "", "", f"{others[0]} and {base}")
    lost = {system: count_unsearched(scores) for system, scores in of.scores.items()}
    if any(map(any, lost.values())):
        yield build_tile_of_lost_queries(lost, of.systems[:2])


def _write_markdown(of: EvidenceWithoutLabels, said: Mapping[str, Any]) -> str:
    paragraphs = filter(None, [" ".join(said["headline"]), *said["summary"], said["method"]])
    parts: list[Table | Line] = [Line(said["title"], -1), *map(Line, paragraphs), *_build_tables(of)]
    parts += [Line("What to distrust", -1), *(Line(doubt, 1) for doubt in said["doubts"])]
    return write_markdown([*parts, Line("How to make this again", -1), Line(of.command)])


def _write_page(of: EvidenceWithoutLabels, said: Mapping[str, Any]) -> str:
    from markupsafe import Markup  # comes with Jinja2

    comparison = of.comparison
    return render_page(
        _PAGE,
        "report",
        data={},
        **said,
        has_labels=False,
        look_first=None,
        verdicts=said["summary"],
        tables=_build_tables(of),
        words=of.words,
        more=[] if comparison is None else build_tables(comparison, Layout()),
        legend=[] if comparison is None else build_legend(comparison),
        most_shown=_MOST_SHOWN,
        systems=of.systems,
        tiles=[*_build_tiles(of)],
        pictures=[picture | {"svg": Markup(picture["svg"])} for picture in draw_curves(of.curves)],
    )
