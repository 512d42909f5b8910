"""Explains the difference between two systems of an experiment."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison_notes import describe_incomplete, describe_shared_queries
from goodgain.analysis.comparing.outcomes import check_completed, find_incomplete
from goodgain.analysis.comparing.use_of_documents import check_uses
from goodgain.analysis.explaining.causes import Parts, Searched, divide_measure, find_documents
from goodgain.analysis.explaining.explanation import Explanation, explain_systems
from goodgain.analysis.explaining.pairs_of_runs import list_pairs, pair_runs, select_broken
from goodgain.counting.coverage import measure_coverage
from goodgain.counting.ledger import Counts
from goodgain.counting.results_of_systems import Results, read_results_of
from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.errors import InputError, give, notice, without_notices
from goodgain.formats import Qrels, Run
from goodgain.formats.query_tables import read_outcomes_of_runs
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.thresholds import find_thresholds
from goodgain.options import check_whole_number, spell
from goodgain.scoring.opened import find_name
from goodgain.scoring.score_run import count_run
from goodgain.scoring.scoring import Scoring


def explain_pair(
    x: Scoring,
    names: Sequence[str],
    measures: Measures,
    *,
    results: Any = None,
    uses: Any = None,
    outcomes: Any = None,
    top: int = 5,
) -> Explanation:
    """Explain the difference of two systems. The arguments are those of `gg.explain`."""
    opened = x.opened
    runs_of = {name: opened.names[name] for name in names}
    is_paired = any(len(runs) > 1 for runs in runs_of.values())
    if is_paired and (results is not None or uses is not None):
        option = spell("uses") if results is None else spell("results")
        raise InputError(f"{option} needs one run of each system. Give one run each, or leave out {option}.")
    check_uses(opened.qrels, uses)
    check_whole_number("top", top, 0)

    parts = {str(measure): divide_measure(measure) for measure in parse_measures(measures, rel=x.options["rel"])}
    x.check_labels([part.measure for part in parts.values()])
    tables = read_results_of(names, results)
    x.warn_of_counts(x.count_runs(find_rels([*parts.values()])))
    broken = find_broken(x, runs_of, outcomes)
    for notice_on_run in describe_incomplete(broken, x.options["incomplete"]):
        give(notice_on_run)

    qrels, pairs = opened.qrels, None
    if is_paired:
        pairs = list_pairs(qrels.query_ids, *runs_of.values())
        qrels, searched = _pair_and_search(x, runs_of, [*parts.values()])
    else:
        searched = find_searched(x, [*parts.values()], {name: runs[0] for name, runs in runs_of.items()})
    _warn_of_few_shared(searched)

    results_as_in_runs = spell_results_as(tables, searched)
    searched = apply_options(x, searched, select_broken(broken, runs_of, pairs))
    return explain_systems(qrels, searched, parts, results_as_in_runs, uses=uses, top=top, pairs=pairs)


def _pair_and_search(
    x: Scoring, runs_of: Mapping[str, Sequence[str]], parts: Sequence[Parts]
) -> tuple[Qrels, dict[str, Searched]]:
    """Pair the runs of the systems. Return qrels with a query for each pair of runs, and the documents of each system."""
    opened = x.opened
    runs = {system: [opened.runs[name] for name in names] for system, names in runs_of.items()}
    qrels, paired = pair_runs(opened.qrels, runs)
    rels = find_rels(parts)

    searched = {}
    with without_notices():  # the notices on each run were given before
        for system, run in paired.items():
            searched[system] = _find_documents(qrels, run, count_run(qrels, run, rels))
    return qrels, searched


def _warn_of_few_shared(searched: Mapping[str, Searched]) -> None:
    queries = {name: measure_coverage(system.counts).queries for name, system in searched.items()}
    if few_shared := describe_shared_queries(queries):
        notice("few_shared_queries", few_shared)


def apply_options(x: Scoring, searched: Mapping[str, Searched], broke_off: Mapping[str, Any]) -> dict[str, Searched]:
    """Leave out the queries that `missing` and `incomplete` leave out, or count them as not searched.

    `broke_off` maps systems to the queries whose traces broke off.
    """
    missing, incomplete = x.options["missing"], x.options["incomplete"]
    return {name: system.apply_options(missing, incomplete, broke_off[name]) for name, system in searched.items()}


def find_broken(x: Scoring, runs_of: Mapping[str, Sequence[str]], outcomes: Any) -> dict[str, pl.Series]:
    """Map runs to the queries whose traces broke off; an empty dict if their results count (`incomplete="keep"`)."""
    incomplete = x.options["incomplete"]
    if incomplete == "keep":
        return {}
    rows = None if outcomes is None else read_outcomes_of_runs(outcomes)
    check_completed(rows, incomplete)
    other_names = {run: find_name(x.opened.runs[run]) for runs in runs_of.values() for run in runs}
    return find_incomplete(rows, runs_of, other_names, x.opened.qrels.query_ids, incomplete)


def find_rels(parts: Sequence[Parts]) -> list[float]:
    return find_thresholds([measure for part in parts for measure in (part.measure, part.numerator)])


def find_searched(x: Scoring, parts: Sequence[Parts], runs: Mapping[str, str]) -> dict[str, Searched]:
    """Return the documents found by one run of each system. `runs` maps names of systems to names of runs."""
    opened = x.opened
    counts = x.count_runs(find_rels(parts))
    return {
        name: x.kept.call(_find_documents, opened.qrels, opened.runs[run], counts[run]) for name, run in runs.items()
    }


def _find_documents(qrels: Qrels, run: Run | RunFile, counts: dict[float, Counts]) -> Searched:
    return find_documents(qrels, read_whole(run), counts)


def spell_results_as(results: Results, searched: Mapping[str, Searched]) -> Results:
    """Return the results with ids spelled as in the runs."""
    query_ids = pl.concat(system.numbers.select("query_id") for system in searched.values())
    documents = pl.concat(system.documents.select("query_id", "doc_id") for system in searched.values())
    return results.spell_as(query_ids, documents)
