"""Gathers the data of a report with relevance labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.use_of_documents import Funnel, check_uses, find_urls, funnel, read_uses_of
from goodgain.analysis.explaining.causes import Searched
from goodgain.analysis.explaining.explanation import Explanation, explain_systems
from goodgain.analysis.explaining.iterations_table import tabulate_iterations
from goodgain.analysis.explaining.pairs_of_runs import select_broken
from goodgain.analysis.reporting.page_data import Evidence
from goodgain.analysis.reporting.page_opening import Opening
from goodgain.analysis.reporting.page_sentences import describe_words
from goodgain.analysis.reporting.page_tables import add_measures
from goodgain.analysis.reporting.report_plan import Plan
from goodgain.analysis.reporting.spends import average_costs, tabulate_searches
from goodgain.counting.results_of_systems import Results, read_results_of
from goodgain.counting.spends import check_costs_of_runs
from goodgain.errors import GoodgainNotice, collect_notices, give
from goodgain.experiments.compare_systems import compare_systems
from goodgain.experiments.curves import draw_curve, draw_recalls
from goodgain.experiments.explanations import apply_options, find_broken, find_searched, spell_results_as
from goodgain.experiments.report_without_labels import read_texts, refuse_outcomes_of_one_system
from goodgain.formats import Qrels
from goodgain.formats.query_tables import read_costs, read_groups
from goodgain.measures.ledger_values import tabulate_ledger
from goodgain.measures.names import Measures, find_direction, parse_measures
from goodgain.measures.scores import Scores
from goodgain.options import check_whole_number
from goodgain.scoring.scoring import Scoring

#: Argument names of `gg.report`, and the given tables.
Tables = Mapping[str, Any]


def gather_with_labels(x: Scoring, measures: Measures, tables: Tables, *, details: int, command: str) -> Evidence:
    """Return the data of the report. `tables` maps argument names of `gg.report` to the given tables."""
    check_costs_of_runs(tables["costs"], x.sources[1])
    opened = x.opened
    qrels = opened.qrels
    plan = Plan.of(measures, x.options["rel"])
    first_runs = {system: runs[0] for system, runs in opened.names.items()}

    searched = find_searched(x, [plan.explained], first_runs)
    counts = x.count_runs([plan.good])
    comparison = _compare(x, plan, tables)
    lengths = pl.concat(counts_of_run[plan.good].pools.get_column("N") for counts_of_run in counts.values())
    opening, with_tiles = _open_report(x, plan, tables, comparison, lengths)

    counts_of_first = {system: counts[run][plan.good] for system, run in first_runs.items()}
    costs = None
    if tables["costs"] is not None:
        costs = read_costs(tables["costs"])
        opening = opening._replace(spent=average_costs(counts_of_first, costs))
    recalls = _draw_recalls_of_systems(x, plan, first_runs)
    scores = x.score_systems(plan.measured) if comparison is None else dict(comparison.scores)

    check_uses(qrels, tables["uses"])
    check_whole_number("details", details, 0)
    results = spell_results_as(read_results_of([*scores], tables["results"]), searched)
    uses = None if tables["uses"] is None else read_uses_of([*scores], tables["uses"])
    explanations = _explain_all(x, plan, searched, tables, results, uses)
    groups = tables["groups"]
    return Evidence(
        qrels=qrels,
        opening=opening,
        scores=scores,
        comparison=comparison,
        with_tiles=with_tiles,
        measures={str(measure): find_direction(measure) for measure in plan.measured},
        explained=plan.explained,
        explanations=explanations,
        searched=searched,
        iterations=tabulate_iterations(searched, results),
        curves=draw_curve(x, plan.curves),
        recalls=recalls,
        ledgers={system: tabulate_ledger(counts[run], plan.good) for system, run in first_runs.items()},
        searches=tabulate_searches(counts_of_first, plan.good, costs),
        results=results,
        uses=uses,
        funnel=_follow_uses(qrels, uses, plan, [*scores]),
        texts=read_texts(tables),
        groups=None if groups is None else read_groups(groups, qrels.query_ids),
        details=min(details, len(qrels.query_ids)),
        words=dict(describe_words(parse_measures([*plan.measured, *opening.measures]), plan.good)),
        command=command,
    )


def _compare(x: Scoring, plan: Plan, tables: Tables) -> Comparison | None:
    """Compare all systems with the first; None if there is one system."""
    if len(x.systems) == 1:
        refuse_outcomes_of_one_system(tables)
        return None
    arguments = {"baseline": x.systems[0], "groups": tables["groups"], "outcomes": tables["outcomes"]}
    return compare_systems(x, plan.measured, arguments)


def _open_report(
    x: Scoring, plan: Plan, tables: Tables, comparison: Comparison | None, lengths: pl.Series
) -> tuple[Opening, Comparison | None]:
    """Return the data of the headline and tiles, without costs, and the comparison with the measures of the tiles.

    `lengths` has the number of iterations of each query in each run.
    """
    cutoff, tiles = plan.list_tiles(lengths)
    scores, with_tiles = _score_tiles(x, plan, tables, comparison, tiles)
    opening = Opening(
        cutoff=cutoff,
        measures=tiles,
        scores=scores,
        pairs=None if with_tiles is None else with_tiles.pairs,
        broke_off={} if comparison is None else comparison.broke_off,
    )
    return opening, with_tiles


def _score_tiles(
    x: Scoring, plan: Plan, tables: Tables, comparison: Comparison | None, tiles: Sequence[Any]
) -> tuple[dict[str, Scores], Comparison | None]:
    """Return the scores of the tiles by system, and the comparison with the measures of the tiles.

    Of the notices, only those that name a measure of the tiles are given: the comparison gave the others.
    """
    added = [tile for tile in tiles if tile not in plan.measured]
    with_tiles = comparison
    notices: list[GoodgainNotice] = []
    with collect_notices(notices.append):
        scores = x.score_systems(tiles)
        if comparison is not None and added:
            arguments = {"baseline": x.systems[0]}
            if x.options["incomplete"] != "keep":  # outcomes say which traces broke off
                arguments["outcomes"] = tables["outcomes"]
            with_tiles = add_measures(comparison, compare_systems(x, added, arguments), [str(tile) for tile in added])

    for notice in notices:
        if any(str(tile) in str(notice) for tile in added):
            give(notice)
    return scores, with_tiles


def _draw_recalls_of_systems(x: Scoring, plan: Plan, first_runs: Mapping[str, str]) -> pl.DataFrame:
    """Return precision over recall of each system's first run: the columns are system, recall and precision."""
    # `draw_recalls` calls a run a system
    names = pl.DataFrame({"system": [*first_runs.values()], "name": [*first_runs]})
    recalls = draw_recalls(x, plan.good).join(names, on="system", maintain_order="left")
    return recalls.select(pl.col("name").alias("system"), "recall", "precision")


def _explain_all(
    x: Scoring, plan: Plan, searched: Mapping[str, Searched], tables: Tables, results: Results, uses: Any
) -> dict[str, Explanation]:
    """Explain the difference of each system from the first one, by the first run of each."""
    systems = x.opened.names
    base, *others = systems
    broken = {}  # run -> queries
    if others:
        broken = find_broken(x, systems, tables["outcomes"])
    broke_off = select_broken(broken, {system: [runs[0]] for system, runs in systems.items()}, None)

    explained = {str(plan.explained.measure): plan.explained}
    explanations = {}
    for system in others:
        pair = apply_options(x, {name: searched[name] for name in (base, system)}, broke_off)
        explanations[system] = explain_systems(x.opened.qrels, pair, explained, results, uses=uses, top=1)
    return explanations


def _follow_uses(qrels: Qrels, uses: Any, plan: Plan, systems: Sequence[str]) -> Funnel | None:
    """Return the funnel of the systems; None without uses."""
    if uses is None:
        return None
    return funnel(qrels, uses, plan.good, urls=find_urls(qrels)).in_order(systems)
