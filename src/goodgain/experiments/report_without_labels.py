"""Gathers the data of a report without relevance labels."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.reporting.page_sentences import describe_words
from goodgain.analysis.reporting.page_tables import add_measures
from goodgain.analysis.reporting.page_without_labels import TILES, WORDS_OF_LABELS, EvidenceWithoutLabels
from goodgain.analysis.reporting.report_plan import find_largest_cutoff, find_usual_cutoff, list_curves
from goodgain.errors import InputError, without_notices
from goodgain.experiments.compare_systems import compare_systems
from goodgain.experiments.curves import draw_curve
from goodgain.formats.query_tables import read_queries
from goodgain.measures.declaration import DEFAULT_REL
from goodgain.measures.names import Measures, find_direction, parse_measures
from goodgain.options import spell
from goodgain.scoring.scoring import Scoring
from goodgain.scoring.shared_arguments import OF_REPORTS


def are_default(measures: Measures) -> bool:
    """Whether the measures are the default of `gg.report`."""
    return measures in (OF_REPORTS, [OF_REPORTS])


def gather_without_labels(
    x: Scoring, measures: Measures, tables: Mapping[str, Any], *, command: str
) -> EvidenceWithoutLabels:
    """Return the data of the report. `tables` maps argument names of `gg.report` to the given tables."""
    if tables["uses"] is not None:
        x.refuse_without_labels(spell("uses"))
    named = None if are_default(measures) else measures
    parsed = parse_measures(x.choose_measures(named), rel=x.options["rel"])
    x.check_labels(parsed)

    cutoff = find_largest_cutoff(parsed) or _find_usual_cutoff(x)
    tiles = parse_measures(" ".join(TILES).format(i=cutoff))
    comparison, with_tiles = None, None
    if len(x.systems) > 1:
        comparison = _compare(x, named, tables)
        with_tiles = _add_tiles(x, comparison, tiles, parsed)
    else:
        refuse_outcomes_of_one_system(tables)
    scores = x.score_systems(parsed) if comparison is None else dict(comparison.scores)
    with without_notices():
        scores_of_tiles = x.score_systems(tiles)

    curves: list[Any] = list_curves(parsed) or parse_measures("NumUnique")
    words = dict(describe_words(parse_measures([*parsed, *tiles]), DEFAULT_REL))
    return EvidenceWithoutLabels(
        scores=scores,
        comparison=comparison,
        with_tiles=with_tiles,
        cutoff=cutoff,
        tiles=tiles,
        scores_of_tiles=scores_of_tiles,
        curves=draw_curve(x, curves),
        measures={str(measure): find_direction(measure) for measure in parsed},
        next_step=x.next_step,
        texts=read_texts(tables),
        words={word: meaning for word, meaning in words.items() if word not in WORDS_OF_LABELS},
        command=command,
    )


def _find_usual_cutoff(x: Scoring) -> int:
    counts = x.count_runs([DEFAULT_REL])
    lengths = pl.concat(counts_of_run[DEFAULT_REL].pools.get_column("N") for counts_of_run in counts.values())
    return find_usual_cutoff(lengths)


def _compare(x: Scoring, named: Measures | None, tables: Mapping[str, Any]) -> Comparison:
    arguments = {"baseline": x.systems[0], "groups": tables["groups"], "outcomes": tables["outcomes"]}
    return compare_systems(x, named, arguments)


def _add_tiles(x: Scoring, comparison: Comparison, tiles: list[Any], parsed: list[Any]) -> Comparison:
    """Return the comparison with the measures of the tiles."""
    with without_notices():  # they are those of the comparison
        comparison_of_tiles = compare_systems(x, tiles, {"baseline": x.systems[0]})
    added = [str(tile) for tile in tiles if tile not in parsed]
    return add_measures(comparison, comparison_of_tiles, added)


def refuse_outcomes_of_one_system(tables: Mapping[str, Any]) -> None:
    """Raise `InputError` if there are outcomes."""
    if tables["outcomes"] is not None:
        raise InputError("outcomes are compared, and there is one system. Give a second run, or leave out the outcomes")


def read_texts(tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each query, if `queries` are given."""
    if tables["queries"] is None:
        return {}
    return dict(read_queries(tables["queries"]).select("query_id", "text").iter_rows())
