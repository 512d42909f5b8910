"""Writes the report of an experiment: gathers the data of the page, and writes the file."""

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison_sentences import list_unknown
from goodgain.analysis.comparing.use_of_documents import check_uses, find_urls, funnel, read_uses_of
from goodgain.analysis.explaining.explanation import explain_systems
from goodgain.analysis.explaining.iterations_table import tabulate_iterations
from goodgain.analysis.explaining.pairs_of_runs import select_broken
from goodgain.analysis.reporting.page_data import Evidence
from goodgain.analysis.reporting.page_opening import Opening, describe_choice
from goodgain.analysis.reporting.page_sentences import describe_words, list_doubts
from goodgain.analysis.reporting.page_tables import add_measures
from goodgain.analysis.reporting.page_without_labels import TILES, WORDS_OF_LABELS, EvidenceWithoutLabels
from goodgain.analysis.reporting.report import choose_format, write_report
from goodgain.analysis.reporting.report_command import write_command
from goodgain.analysis.reporting.report_plan import Plan, list_curves
from goodgain.analysis.reporting.spends import average_costs, tabulate_searches
from goodgain.counting.results_of_systems import read_results_of
from goodgain.counting.spends import check_costs_of_runs
from goodgain.errors import REASONS, GoodgainNotice, InputError, collect_notices, give, without_notices
from goodgain.experiments.compare_systems import compare_systems
from goodgain.experiments.curves import draw_curve, draw_recalls
from goodgain.experiments.explanations import find_broken, find_searched, spell_results_as
from goodgain.files.opening import make_path
from goodgain.files.writing import atomic_write
from goodgain.formats.query_tables import read_costs, read_groups, read_queries
from goodgain.measures.declaration import DEFAULT_REL
from goodgain.measures.ledger_values import tabulate_ledger
from goodgain.measures.names import Measures, find_direction, parse_measures
from goodgain.options import check_whole_number, spell
from goodgain.scoring.scoring import DEFAULTS, Scoring
from goodgain.scoring.shared_arguments import OF_REPORTS


def save_report(
    x: Scoring,
    path: str | os.PathLike[str],
    measures: Measures,
    *,
    details: int,
    format: str | None,  # noqa: A002  # as in gg.report
    spreadsheet: bool,
    **beside: Any,
) -> Path:
    """Write a report. Arguments, result and errors are those of `gg.report`."""
    target = make_path(path, "the file of the report")
    form = choose_format(target, format)
    options = {
        name: value
        for name, value in x.options.items()
        if name == "order" or type(value) is not type(DEFAULTS[name]) or value != DEFAULTS[name]
    }
    own = {"details": details, "format": format}
    written = x.choose_measures(None) if not x.has_labels and _is_default(measures) else measures
    command = write_command(*x.sources, path, written, beside, options, own)
    made = gather_evidence(x, measures, beside, details=details, command=command)
    text = write_report(made, form, spreadsheet=spreadsheet)
    with atomic_write(target) as out:
        out.write(text.encode())
    return target


def gather_evidence(
    x: Scoring, measures: Measures, beside: Mapping[str, Any], *, details: int, command: str
) -> Evidence | EvidenceWithoutLabels:
    """Return the data of a report. `beside` maps argument names of `gg.report` to the given tables."""
    tables: Any = {name: beside[name] for name in ("results", "costs", "lengths") if beside[name] is not None}
    with_tables = x.with_(**tables) if tables else x  # some measures need these tables
    with x.tell() as notices:
        made: Evidence | EvidenceWithoutLabels
        if x.has_labels:
            made = _gather(with_tables, measures, beside, details, command)
        else:
            made = _gather_without_labels(with_tables, measures, beside, command)
    texts = [str(notice) for notice in notices]
    reasons = [str(notice) for notice in notices if notice.kind in REASONS]
    choice = ""
    if isinstance(made, Evidence):
        choice = describe_choice(made.opening)
    doubts = list_doubts(made.comparison, texts, has_replicates=made.has_replicates, choice=choice)
    if isinstance(made, EvidenceWithoutLabels):
        in_headline = [] if made.comparison is None else list_unknown(made.comparison)
        return replace(made, doubts=tuple(doubt for doubt in doubts if doubt not in in_headline))
    return replace(made, reasons=tuple(reasons), doubts=tuple(doubt for doubt in doubts if doubt not in reasons))


def _is_default(measures: Measures) -> bool:
    return measures in (OF_REPORTS, [OF_REPORTS])


def _gather_without_labels(
    x: Scoring, measures: Measures, beside: Mapping[str, Any], command: str
) -> EvidenceWithoutLabels:
    if beside["uses"] is not None:
        x.refuse_without_labels(spell("uses"))
    named = None if _is_default(measures) else measures
    parsed = parse_measures(x.choose_measures(named), rel=x.options["rel"])
    x.check_labels(parsed)
    base, *others = x.systems

    lengths = pl.concat([of_run[DEFAULT_REL].pools.get_column("N") for of_run in x.count_runs([DEFAULT_REL]).values()])
    middle: Any = lengths.median()
    cutoff = max(1, math.ceil(middle or 1))
    tiles = parse_measures(" ".join(TILES).format(i=cutoff))
    comparison, with_tiles = None, None
    if others:
        tables = {"groups": beside["groups"], "outcomes": beside["outcomes"]}
        comparison = compare_systems(x, named, {"baseline": base, **tables})
        with without_notices():  # they are those of the comparison
            of_tiles = compare_systems(x, tiles, {"baseline": base})
        added = [str(tile) for tile in tiles if tile not in parsed]
        with_tiles = add_measures(comparison, of_tiles, added)
    elif beside["outcomes"] is not None:
        raise InputError("outcomes are compared, and there is one system. Give a second run, or leave out the outcomes")
    scores = x.score_systems(parsed) if comparison is None else dict(comparison.scores)
    with without_notices():
        scores_of_tiles = x.score_systems(tiles)

    curves: list[Any] = list_curves(parsed) or parse_measures("NumUnique")
    texts = None if beside["queries"] is None else read_queries(beside["queries"])
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
        texts={} if texts is None else dict(texts.select("query_id", "text").iter_rows()),
        words={word: meaning for word, meaning in words.items() if word not in WORDS_OF_LABELS},
        command=command,
    )


def _gather(x: Scoring, measures: Measures, beside: Mapping[str, Any], details: int, command: str) -> Evidence:
    groups, queries, uses, costs, outcomes = (
        beside[name] for name in ("groups", "queries", "uses", "costs", "outcomes")
    )
    check_costs_of_runs(costs, x.sources[1])
    opened = x.opened
    qrels = opened.qrels
    plan = Plan.of(measures, x.options["rel"])
    base = x.systems[0]
    first_runs = {system: names[0] for system, names in opened.names.items()}

    searched = find_searched(x, [plan.explained], first_runs)
    counts = x.count_runs([plan.good])
    lengths = pl.concat([of_run[plan.good].pools.get_column("N") for of_run in counts.values()])
    cutoff, tiles = plan.list_tiles(lengths)

    comparison, with_tiles = None, None
    if len(x.systems) > 1:
        comparison = compare_systems(x, plan.measured, {"baseline": base, "groups": groups, "outcomes": outcomes})
    elif outcomes is not None:
        raise InputError("outcomes are compared, and there is one system. Give a second run, or leave out the outcomes")
    others = [tile for tile in tiles if tile not in plan.measured]  # not in x.compare
    notices: list[GoodgainNotice] = []
    with collect_notices(notices.append):
        shown = x.score_systems(tiles)
        if comparison is not None:
            with_tiles = comparison
            if others:
                arguments = {"baseline": base}
                if x.options["incomplete"] != "keep":
                    arguments["outcomes"] = outcomes
                of_tiles = compare_systems(x, others, arguments)
                with_tiles = add_measures(comparison, of_tiles, [str(tile) for tile in others])
    for notice in notices:  # the notices about all measures were given
        if any(str(tile) in str(notice) for tile in others):
            give(notice)

    counts_of_first = {system: counts[run][plan.good] for system, run in first_runs.items()}
    paid = None if costs is None else read_costs(costs)
    spent = None if paid is None else average_costs(counts_of_first, paid)
    names = pl.DataFrame({"system": [*first_runs.values()], "name": [*first_runs]})
    recalls = draw_recalls(x, plan.good).join(names, on="system", maintain_order="left")
    scores = x.score_systems(plan.measured) if comparison is None else dict(comparison.scores)

    check_uses(qrels, uses)
    check_whole_number("details", details, 0)
    explained = {str(plan.explained.measure): plan.explained}
    results = spell_results_as(read_results_of([*scores], beside["results"]), searched)
    uses = None if uses is None else read_uses_of([*scores], uses)
    runs_of = {system: [run] for system, run in first_runs.items()}
    broken = find_broken(x, opened.names, outcomes) if comparison is not None else {}
    broke_off = select_broken(broken, runs_of, None)
    explanations = {}
    for system in [*scores][1:]:
        pair = {}
        for name in (base, system):
            pair[name] = searched[name].apply_options(x.options["missing"], x.options["incomplete"], broke_off[name])
        explanations[system] = explain_systems(qrels, pair, explained, results, uses=uses, top=1)
    used = None
    if uses is not None:
        used = funnel(qrels, uses, plan.good, urls=find_urls(qrels)).in_order([*scores])
    texts = None if queries is None else read_queries(queries)
    return Evidence(
        qrels=qrels,
        opening=Opening(
            cutoff=cutoff,
            measures=tiles,
            scores=shown,
            pairs=None if with_tiles is None else with_tiles.pairs,
            spent=spent,
            broke_off={} if comparison is None else comparison.broke_off,
        ),
        scores=scores,
        comparison=comparison,
        with_tiles=with_tiles,
        measures={str(measure): find_direction(measure) for measure in plan.measured},
        explained=plan.explained,
        explanations=explanations,
        searched=searched,
        iterations=tabulate_iterations(searched, results),
        curves=draw_curve(x, plan.curves),
        recalls=recalls.select(pl.col("name").alias("system"), "recall", "precision"),
        ledgers={system: tabulate_ledger(counts[run], plan.good) for system, run in first_runs.items()},
        searches=tabulate_searches(counts_of_first, plan.good, paid),
        results=results,
        uses=uses,
        funnel=used,
        texts={} if texts is None else dict(texts.select("query_id", "text").iter_rows()),
        groups=None if groups is None else read_groups(groups, qrels.query_ids),
        details=min(details, len(qrels.query_ids)),
        words=dict(describe_words(parse_measures([*plan.measured, *tiles]), plan.good)),
        command=command,
    )
