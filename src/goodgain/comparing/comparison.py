"""Compares systems: means, differences, tests, and the cost of each system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ir_measures
import numpy as np
import polars as pl

from goodgain.comparing.comparison_notes import Note, describe_shared_queries, list_notes
from goodgain.comparing.difference_bounds import Reach, add_bounds, add_bounds_of_means, find_reach
from goodgain.comparing.pairs_table import average_rows, compare_pairs
from goodgain.comparing.rendering import render_html, render_on_terminal, write_comparison
from goodgain.comparing.statistical_tests import Matrix, Settings, check_settings
from goodgain.comparing.table_cells import Findings, Layout
from goodgain.counting.coverage import LOW_COVERAGE
from goodgain.counting.run_opening import map_documents, open_qrels_and_run
from goodgain.errors import InputError, NoticesOfSystems, check_whole_number, notice
from goodgain.evaluation import score_run
from goodgain.formats import Qrels
from goodgain.formats.column_names import Columns
from goodgain.formats.qrels import load_qrels
from goodgain.formats.run import check_systems
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import NumIter, NumResults
from goodgain.measures.names import Measures, find_direction, parse_measures
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import warn_of_labels

#: Limit of `iterations=`, which makes a measure for each iteration.
_MOST_ITERATIONS = 1_000


class Comparison(Findings):
    """The comparison of systems on the same queries.

    Attributes:
        systems: system, queries, absent_from_run, without_judgments, iterations, results (means per query), coverage
            (judged share of unique results; null without results).
        coverage: system, iteration (null: all), judged, unique, coverage: the judged share of the unique results, overall
            and of those that each iteration found first; null if it found none.
        means: measure, better (`up`, `down`, null), system, mean, queries. With `bounds` also least, most.
        pairs: one row per measure and pair: measure, better, system, against, queries, mean, mean_against, difference
            (system minus against), low, high (bootstrap interval), p_t, p_t_holm, p_randomisation,
            p_randomisation_holm, p_tukey (three systems or more), effect (d_z), wins, ties, losses (of system, by
            direction), verdict, significant (p_randomisation_holm <= alpha), low_coverage, more_iterations,
            more_results (per query, system minus against). A p that does not exist is null.
            The verdict on system is `better` or `worse` (by direction) if the difference is significant, else `unclear`.
            It is `equal` if all differences are zero, and null without queries. A measure without a better direction has
            no verdict, wins, ties and losses.
            With `bounds` also least, most (of the difference), and can_turn: whether some labels of the unjudged
            documents reverse the sign of the difference, or give a difference of 0 a sign; null for a measure without
            bounds.
        values: query_id, measure, system, value: the tested values.
        baseline: the system that all others are compared with; None if all pairs are compared.
        notes: the caveats of this comparison, a sentence each.
        signature: the versions and settings behind the numbers.
    """

    def to_text(
        self, form: str = "markdown", *, places: int = 4, rows: str = "measures", spreadsheet: bool = False
    ) -> str:
        """Return the comparison as `markdown`, `latex` (booktabs), `csv` (pairs, full precision) or `json` (all but values).

        Args:
            form: one of the four.
            places: the number of decimals, at most 100; -1 for full precision.
            rows: the rows of the table of means: `measures` or `systems`.
            spreadsheet: put an apostrophe before texts in CSV that a spreadsheet would read as formulas.

        Raises:
            InputError: form, places or rows has an unknown value.
        """
        return write_comparison(self, form, Layout(places, rows, spreadsheet))

    def __repr__(self) -> str:
        measures = self.means.get_column("measure").n_unique()
        return f"Comparison({self.systems.height} systems, {measures} measures, {self.signature['queries']:,} queries)"

    def __str__(self) -> str:
        return self.to_text("markdown")

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Yield coloured tables for a terminal: `rich.print(comparison)`."""
        yield from render_on_terminal(self, options.max_width, Layout())

    def _repr_markdown_(self) -> str:
        return self.to_text("markdown")

    def _repr_html_(self) -> str:
        return render_html(self)


def compare(
    qrels: Any,
    systems: Mapping[str, Any],
    measures: Measures,
    *,
    rel: float | None = None,
    baseline: str | None = None,
    against: str | None = None,
    iterations: int | None = None,
    seed: int = 42,
    resamples: int = 9_999,
    alpha: float = 0.05,
    order: str = "seen",
    provider: str | None = None,
    bounds: bool = False,
    columns: Columns | None = None,
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
) -> Comparison:
    """Compare two or more systems on any measures, ours and those of ir_measures.

    Args:
        qrels: what `read_qrels` takes.
        systems: name -> what `read_run` takes; two or more.
        measures: names, measure objects or both. `goodgain measures` shows the better direction of each. For a measure
            that only a provider of ir_measures knows, higher is better.
        rel: the smallest good label, for measures of ours that name none; None is 2.
        baseline: the system to compare all others with; None compares all pairs, a later system with an earlier one.
        against: `previous` compares each system only with the one before it, for the stages of a pipeline. Holm's
            method then corrects over these pairs only.
        iterations: also compare measures of ours without @ at each fixed iteration 1..iterations.
        seed: the seed of the randomisation test and the bootstrap; the same seed gives the same numbers.
        resamples: number of resamples of the test and of the bootstrap; at most 1,000,000.
        alpha: a difference is significant if the Holm-corrected p of the randomisation test is at most alpha. The level
            of the interval is 1 - alpha.
        order: how several iterations become one ranking for classic measures: `seen`, `interleaved` or `last`.
        provider: the provider of ir_measures for the classic measures.
        bounds: also return the range of means and differences once unjudged documents are labelled, each from 0 to the
            largest label of the qrels and alike for all systems. Measures that a provider computes, or that can fall
            when a label rises, have no bounds. Runs are read into memory.
        columns: name in the source -> name here, for columns of runs or qrels with other names: {"step": "iteration"}.
        documents, documents_of, chunks: as in `evaluate`.

    Returns:
        A `Comparison` on all queries of the qrels. A query that a run lacks counts as one without a search (N = 0).
        A measure leaves out queries for which a system has no value. Every mean is over queries.

    Raises:
        InputError: fewer than two systems, an unknown baseline, a baseline together with `against`, unreadable input, or
            two systems that share no judged query.
        MeasureError: a measure is unknown, or cannot be computed from this input.

    Source: Smucker, Allan and Carterette, CIKM 2007 (tests); Carterette, TOIS 30(1), 2012 (many systems).

    >>> qrels = {f"q{number}": {"a": 3, "b": 0} for number in range(6)}
    >>> old, new = ({query_id: {doc_id: 1.0} for query_id in qrels} for doc_id in "ba")
    >>> found = compare(qrels, {"old": old, "new": new}, "RR")
    >>> found.pairs.select("system", "against", "difference", "wins", "p_randomisation_holm", "verdict").rows()
    [('new', 'old', 1.0, 6, 0.03125, 'better')]
    """
    runs = check_systems(systems, least=2)
    names = list(runs)
    pairs = _choose_pairs(names, baseline, against)
    settings = check_settings(seed, resamples, alpha)
    asked = _add_fixed_iterations(parse_measures(measures, rel=rel), iterations)
    judged = load_qrels(qrels, columns=columns)
    judged, runs = map_documents(judged, runs, documents, documents_of, chunks, columns=columns)
    warn_of_labels(judged.frame, asked, rel=rel)
    needed = parse_measures([*asked, NumIter, NumResults])
    unasked = [measure for measure in needed if measure not in asked]
    options = {"order": order, "provider": provider, "bounds": bounds, "unasked": unasked}
    scores, reaches = _score_systems(judged, runs, needed, columns, options)
    queries = {name: of.queries for name, of in scores.items()}
    few_shared = describe_shared_queries(queries)
    values = _build_matrices(scores, needed)
    better = {str(measure): find_direction(measure) for measure in asked}
    complete = {name: np.isfinite(values[name]).all(axis=0) for name in better}
    matched = {name: np.ascontiguousarray(values[name][:, complete[name]]) for name in better}
    about = _tabulate_systems(scores, values)
    means = _tabulate_means(matched, better, names)
    found = _add_costs(compare_pairs(matched, better, names, pairs, settings), about)
    if bounds:
        means, found = add_bounds_of_means(means, reaches), add_bounds(found, asked, reaches)
    coverage = _stack_systems({name: of.coverage for name, of in scores.items()})
    notes = [*([Note(few_shared)] if few_shared else []), *list_notes(asked, values, about, queries)]
    for note in notes:
        notice(note.text, minor=note.minor)
    tested = _stack_systems({name: of.per_query for name, of in scores.items()})
    return Comparison(
        systems=about,
        coverage=coverage,
        means=means,
        pairs=found,
        values=tested.filter(pl.col("measure").is_in(list(better))).select("query_id", "measure", "system", "value"),
        baseline=baseline,
        notes=tuple(note.text for note in notes),
        signature=_build_signature(scores, settings) | ({"against": against} if against else {}),
    )


def _score_systems(
    qrels: Qrels,
    runs: Mapping[str, Any],
    measures: Sequence[ir_measures.Measure],
    columns: Columns | None,
    options: dict[str, Any],
) -> tuple[dict[str, Scores], dict[str, Reach]]:
    """Return the scores of each system and, with bounds, its `Reach`; options as in `score_run`."""
    scores: dict[str, Scores] = {}
    reaches: dict[str, Reach] = {}
    with NoticesOfSystems() as notices:
        for name, run in runs.items():
            with notices.of(name):
                _, searched = open_qrels_and_run(qrels, run, columns=columns)
                scores[name] = score_run(qrels, searched, measures, low=False, **options)
                if options["bounds"]:
                    reaches[name] = find_reach(scores[name], qrels, searched, measures, order=options["order"])
    return scores, reaches


def _choose_pairs(names: list[str], baseline: str | None, against: str | None) -> list[tuple[int, int]]:
    """Return the pairs (system, against) to compare, by position."""
    if baseline is not None and baseline not in names:
        raise InputError(f"baseline {baseline!r} is not one of the systems; they are {', '.join(names)}")
    if against not in (None, "previous"):
        raise InputError(f"against={against!r}: give 'previous', or name a baseline for all systems with baseline=")
    if against is not None and baseline is not None:
        raise InputError(
            f"against='previous' and baseline={baseline!r} name two systems to compare with; give one of them"
        )
    every = range(len(names))
    if against is not None:
        return [(system, system - 1) for system in every[1:]]
    if baseline is not None:
        return [(system, names.index(baseline)) for system in every if names[system] != baseline]
    return [(system, other) for other in every for system in every[other + 1 :]]


def _add_fixed_iterations(measures: Iterable[ir_measures.Measure], last: int | None) -> list[ir_measures.Measure]:
    """Return the measures; before each of ours without @, insert it at iterations 1..last."""
    if last is None:
        return list(measures)
    if check_whole_number("iterations", last, 1) > _MOST_ITERATIONS:
        raise InputError(
            f"iterations={last}: that is more than {_MOST_ITERATIONS:,} measures; name the cutoffs you need"
        )
    found: list[ir_measures.Measure] = []
    for measure in measures:
        if isinstance(measure, GoodGainMeasure) and measure.cutoff is None and measure.declaration.cutoff == "optional":
            found += [measure @ i for i in range(1, last + 1)]
        found.append(measure)
    return parse_measures(found)


def _build_matrices(scores: Mapping[str, Scores], measures: Iterable[ir_measures.Measure]) -> dict[str, Matrix]:
    """Return measure -> matrix: a row per system, a column per query for which any system has a value.

    A missing value is NaN.
    """
    columns = [str(k) for k in range(len(scores))]
    numbered = zip(columns, scores.values(), strict=True)
    long = pl.concat(of.per_query.with_columns(system=pl.lit(column)) for column, of in numbered)
    by_measure = long.partition_by("measure", as_dict=True)
    found: dict[str, Matrix] = {}
    for name in map(str, measures):
        values = by_measure.get((name,), long.clear())
        wide = values.pivot("system", on_columns=columns, index="query_id", values="value").sort("query_id")
        found[name] = wide.select(pl.col(columns).cast(pl.Float64).fill_null(float("nan"))).to_numpy().T
    return found


def _tabulate_systems(scores: Mapping[str, Scores], full: Mapping[str, Matrix]) -> pl.DataFrame:
    """Return a row per system: its queries, its cost, and the judged share of its results."""
    signed = [of.signature for of in scores.values()]
    results = average_rows(full[str(NumResults)])
    counts = ("queries", "absent_from_run", "without_judgments")
    return pl.DataFrame(
        {
            "system": list(scores),
            **{name: [signature[name] for signature in signed] for name in counts},
            "iterations": average_rows(full[str(NumIter)]),
            "results": results,
            "coverage": [1 - of["unjudged"] if some else None for of, some in zip(signed, results, strict=True)],
        },
        schema_overrides={"coverage": pl.Float64},
    )


def _stack_systems(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Concatenate the frames of all systems, with the name of the system in the first column."""
    return pl.concat(of.select(pl.lit(name).alias("system"), pl.all()) for name, of in frames.items())


def _tabulate_means(matched: Mapping[str, Matrix], better: Mapping[str, str | None], names: list[str]) -> pl.DataFrame:
    rows = [
        (measure, better[measure], system, mean, of.shape[1])
        for measure, of in matched.items()
        for system, mean in zip(names, average_rows(of), strict=True)
    ]
    types = {"measure": pl.String, "better": pl.String, "system": pl.String, "mean": pl.Float64, "queries": pl.Int64}
    return pl.DataFrame(rows, schema=types, orient="row").with_columns(pl.col("mean").fill_nan(None))


def _add_costs(pairs: pl.DataFrame, systems: pl.DataFrame) -> pl.DataFrame:
    """Add to the pairs low_coverage and the difference in cost (more_iterations, more_results)."""
    names = systems.get_column("system")
    unsure = (systems.get_column("coverage") < LOW_COVERAGE).fill_null(False)
    iterations, results = (systems.get_column(name) for name in ("iterations", "results"))
    system, against = pl.col("system"), pl.col("against")
    return pairs.with_columns(
        low_coverage=system.replace_strict(names, unsure) | against.replace_strict(names, unsure),
        more_iterations=system.replace_strict(names, iterations) - against.replace_strict(names, iterations),
        more_results=system.replace_strict(names, results) - against.replace_strict(names, results),
    )


def _build_signature(scores: Mapping[str, Scores], settings: Settings) -> dict[str, Any]:
    of_run = ("absent_from_run", "without_judgments", "without_value", "unjudged")
    first = next(iter(scores.values())).signature
    return {name: value for name, value in first.items() if name not in of_run} | settings._asdict()
