"""The steps that the analyses of an experiment share: functions of what they need. An experiment keeps their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ir_measures
import polars as pl

from goodgain.counting.coverage import measure_coverage, warn_of_first_iterations, warn_of_run
from goodgain.counting.joined_addresses import spell_like
from goodgain.counting.ledger import Counts
from goodgain.counting.results_of_systems import read_results_of
from goodgain.counting.run_opening import stack_systems
from goodgain.counting.spends import find_spends
from goodgain.errors import InputError, notices_about, tell_progress
from goodgain.formats.digest import digest_rows
from goodgain.formats.document_lengths import read_lengths
from goodgain.formats.query_tables import read_costs, select_costs
from goodgain.measures.declaration import SessionMeasure
from goodgain.measures.scores import Scores
from goodgain.options import spell
from goodgain.scoring.opened import Opened
from goodgain.scoring.score_run import count_run, score_run

#: Option -> name of a run -> the table that some measures need beside the run.
TablesOfRuns = Mapping[str, Mapping[str, pl.DataFrame]]


def count_runs(opened: Opened, rels: Sequence[float]) -> dict[str, dict[float, Counts]]:
    """Return the counts of each run at each threshold, with the notices on the run."""
    counts = {}

    for number, (name, run, subject) in enumerate(opened.list_runs()):
        tell_progress(f"counting {name}", number, len(opened.runs))
        with notices_about(subject):
            counts[name] = count_run(opened.qrels, run, rels)

    first_iterations = {}
    for name, run, subject in opened.list_runs():
        coverage = measure_coverage(counts[name])
        with notices_about(subject):
            warn_of_run(opened.qrels, run, coverage)
        first_iterations[name] = coverage.find_first_iteration(run)
    warn_of_first_iterations(first_iterations)
    return counts


def score_runs(
    opened: Opened, measures: Sequence[ir_measures.Measure], tables: TablesOfRuns, **options: Any
) -> dict[str, Scores]:
    """Return the scores of each run. `options` are those of `score_run`."""
    digests = {option: _digest_tables(of_runs) for option, of_runs in tables.items()}
    scores = {}

    for number, (name, run, subject) in enumerate(opened.list_runs()):
        tell_progress(f"scoring {name}", number, len(opened.runs))
        tables_of_run = {option: of_runs[name] for option, of_runs in tables.items()}
        with notices_about(subject):
            scored = score_run(opened.qrels, run, measures, **options, tables=tables_of_run)
        scores[name] = replace(scored, signature=scored.signature | digests)
    return scores


def _digest_tables(of_runs: Mapping[str, pl.DataFrame]) -> str:
    first = next(iter(of_runs.values()))
    is_of_documents = "query_id" not in first.columns  # then all runs have the same table
    return digest_rows(first if is_of_documents else stack_systems(of_runs).fill_null(""))


def list_table_options(measures: Sequence[ir_measures.Measure]) -> list[str]:
    """Return the names of the options whose tables the measures need, such as `costs`."""
    needed = {measure.table for measure in measures if isinstance(measure, SessionMeasure)}
    return sorted(option for option in needed if option)


def read_tables(
    opened: Opened,
    measures: Sequence[ir_measures.Measure],
    counts: Mapping[str, Mapping[float, Counts]],
    *,
    results: Any = None,
    costs: Any = None,
    lengths: Any = None,
) -> TablesOfRuns:
    """Read the tables that the measures need beside each run. `counts` are needed for `costs` only."""
    for option, table in (("results", results), ("costs", costs)):
        if table is not None and opened.has_replicates:
            raise InputError(f"{spell(option)} needs one run of each system. Give one run each.")

    # A single run has no name in a call, but may have the name of a file.
    names = {name or run.name or "": name for name, run in opened.runs.items()}
    tables: dict[str, Mapping[str, pl.DataFrame]] = {}
    if costs is not None:
        tables["costs"] = _tabulate_spends(measures, counts, names, costs)
    if results is not None:
        query_ids = opened.qrels.query_ids.to_frame("query_id")
        searches = read_results_of([*names], results).searches
        tables["results"] = {names[system]: spell_like(rows, query_ids) for system, rows in searches.items()}
    if lengths is not None:
        tables["lengths"] = dict.fromkeys(opened.runs, read_lengths(lengths))
    return tables


def _tabulate_spends(
    measures: Sequence[ir_measures.Measure],
    counts: Mapping[str, Mapping[float, Counts]],
    names: Mapping[str, str],
    costs: Any,
) -> dict[str, pl.DataFrame]:
    """Return a frame for each run: query_id, iteration, over (such as `tokens`) and spend (the sum up to this iteration).

    Measures of whole queries, such as Tokens, have the rows of `_sum_costs`.
    """
    counts_of_systems = {system: [counts[name]] for system, name in names.items()}
    paid = read_costs(costs)

    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in names.values()}
    spend_names = [name for measure in measures if isinstance(measure, SessionMeasure) for name in measure.spends]
    for over in dict.fromkeys(spend_names):
        for system, (spends,) in find_spends(over, counts_of_systems, paid).items():
            rows[names[system]].append(spends.rows.with_columns(over=pl.lit(over)))
    totals = [measure.declaration.total for measure in measures if isinstance(measure, SessionMeasure)]
    for column in dict.fromkeys(filter(None, totals)):
        for system, name in names.items():
            rows[name].append(_sum_costs(column, select_costs(paid, system, [*names]), name))
    return {name: pl.concat(frames) for name, frames in rows.items()}


def _sum_costs(column: str, costs: pl.DataFrame, system: str) -> pl.DataFrame:
    """Return a row for each query with known costs: query_id, iteration (null), spend (the sum), over (`total tokens`)."""
    rows = costs.drop_nulls(column)
    if rows.is_empty():
        raise InputError(
            f"{spell('costs')} has no {column} of {system or 'the run'}. Leave out the measure, or add them."
        )
    sums = rows.group_by("query_id", maintain_order=True).agg(spend=pl.col(column).sum().cast(pl.Float64))
    return sums.select("query_id", pl.lit(None, pl.Int64).alias("iteration"), "spend", over=pl.lit(f"total {column}"))
