"""The notes of a comparison: warnings where its numbers can mislead."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import ir_measures
import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodgain.analysis.comparing.pairs_table import NOT_COMPARABLE
from goodgain.analysis.comparing.rendering import count_queries, list_some
from goodgain.analysis.comparing.statistical_tests import Matrix
from goodgain.counting.coverage import LOW_SHARE, SharedQueries, list_examples, share_of_smaller
from goodgain.errors import InputError
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import NumIter, NumResults
from goodgain.measures.names import describe_lack, find_results_counts, needs_results
from goodgain.measures.scores import Scores
from goodgain.options import spell

#: Pairs of systems that a note lists.
_EXAMPLES = 3


def describe_shared_queries(
    systems: Mapping[str, SharedQueries], pairs: Sequence[tuple[str, str]] | None = None
) -> str | None:
    """Return a sentence on the pairs of systems that share less than half the judged queries of the smaller one.

    `pairs` has the pairs that are compared; None: all. A pair that shares no judged query raises `InputError`.
    """
    few = []
    judged_of = {name: set(queries.both) for name, queries in systems.items() if queries.searched}
    for (name, judged), (other_name, other_judged) in combinations(judged_of.items(), 2):
        if pairs is not None and (name, other_name) not in pairs and (other_name, name) not in pairs:
            continue
        both = len(judged & other_judged)
        if not both:
            runs, other_runs = systems[name], systems[other_name]
            if not judged and not other_judged and runs.only_searched.is_in(other_runs.only_searched.implode()).any():
                sides = (runs.only_searched, runs.only_judged)
                shown, other_shown = (", ".join(map(repr, list_examples(query_ids))) for query_ids in sides)
                raise InputError(
                    f"no query of {name} and {other_name} is in the qrels: the runs have {shown}, the qrels have "
                    f"{other_shown}. Name the queries alike in the runs and in the qrels."
                )
            found = [systems[one].both if judged_of[one] else systems[one].only_searched for one in (name, other_name)]
            shown, other_shown = (", ".join(map(repr, list_examples(query_ids))) for query_ids in found)
            raise InputError(
                f"{name} and {other_name} share no judged query: {name} has {shown}, {other_name} has {other_shown}. Give both "
                "the same query ids (goodgain convert does so if it converts all logs in one call), or leave one out."
            )
        if share_of_smaller(both, len(judged), len(other_judged)) < LOW_SHARE:
            few.append(
                f"{name} and {other_name} share {both:,} of {min(len(judged), len(other_judged)):,} judged queries"
            )
    if not few:
        return None
    more = f", and {len(few) - _EXAMPLES:,} more pairs do" if len(few) > _EXAMPLES else ""
    return (
        f"{'; '.join(few[:_EXAMPLES])}{more}. Check that both use the same query ids: a query that a run "
        "lacks counts as one without a search."
    )


class Note(NamedTuple):
    """A sentence; a minor one does not change what the numbers mean."""

    text: str
    minor: bool = False


def list_notes(
    measures: Sequence[ir_measures.Measure],
    values: Mapping[str, Matrix],
    systems: pl.DataFrame,
    absent: NDArray[np.bool_],
    left_out: NDArray[np.bool_],
    *,
    outcomes: Sequence[str] = (),
    iterated: Sequence[int],
) -> Iterator[Note]:
    """Yield the notes on a comparison.

    `values` maps each measure and outcome by name, and NumIter, to its values. `absent` has a row for each system: whether its
    run has no row of the query; `left_out`: whether its means leave out the query. `iterated` are the positions of the systems
    with iterations: no other stops at one.
    """
    ours = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
    names = systems.get_column("system").to_list()
    unknown = systems.filter(pl.col("without_judgments") > 0).select("system", "without_judgments").iter_rows()
    if listed := ", ".join(f"{name} {number:,}" for name, number in unknown):
        yield Note(f"Queries without judgments are left out: {listed}.")
    for measure in measures:
        yield from _describe_left_out(measure, ~np.isfinite(values[str(measure)]) & ~left_out, names)
    for outcome in outcomes:
        yield from _describe_left_out(outcome, ~np.isfinite(values[outcome]), names)
    if iterated:
        is_whole = ~(absent | left_out)[iterated].any(axis=0)  # such a query says nothing of stops
        searching = {name: of[iterated][:, is_whole] for name, of in values.items()}
        yield from _describe_stops(ours, searching, [names[k] for k in iterated])
    yield from _describe_low_counts(measures, values, names)
    for measure in ours:
        if measure.params.get("pool") == "retrieved":
            yield Note(
                f"{measure} is not comparable between systems: its ideal is only the good documents that the system found."
            )


def _describe_stops(
    ours: Sequence[GoodGainMeasure], values: Mapping[str, Matrix], names: Sequence[str]
) -> Iterator[Note]:
    """Warn where systems stop at different iterations: of values at the last iteration, and of values after it."""
    iterations = values[str(NumIter)]
    at_own_end = [str(m) for m in ours if m.cutoff is None and m.declaration.cutoff != "none"]
    differing = int((iterations.min(axis=0) != iterations.max(axis=0)).sum())
    if at_own_end and differing:
        fixed = {m.NAME for m in ours if m.cutoff is not None}
        yield Note(
            f"{', '.join(at_own_end)}: the systems stop at different iterations in {count_queries(differing)}. Rates then "
            f"tend to favour stopping early, and sums going on. Compare at a fixed iteration too: @i, or {spell('iterations')}.",
            minor=all(m.NAME in fixed for m in ours if m.cutoff is None and m.declaration.cutoff != "none"),
        )
    cutoff = max((m.cutoff or 0 for m in ours), default=0)
    searched_on = np.minimum(iterations.max(axis=0), cutoff)
    # of several runs it is their mean, not a whole number
    has_stopped = (np.ceil(iterations) < searched_on) & (iterations > 0)
    if has_stopped.any():
        counts = zip(names, has_stopped.sum(axis=1), strict=True)
        early = ", ".join(f"{name} stopped in {count_queries(number)}" for name, number in counts if number)
        kept = [str(m) for m in ours if m.cutoff is not None and m.NAME in ("SRE", "SRR", "SearchPrecision")]
        kept = [name for name in kept if np.isfinite(values[name])[has_stopped].any()]
        told = f" {' and '.join(kept)} keep{'s its' if len(kept) == 1 else ' their'} last value there." if kept else ""
        yield Note(f"Before iteration {cutoff} {early}, while another system searched on.{told}")


def _describe_left_out(
    measure: ir_measures.Measure | str, lacks: NDArray[np.bool_], names: Sequence[str]
) -> Iterator[Note]:
    """Say in how many queries each system has no value; a minor note unless the system returned nothing."""
    listed = ", ".join(f"{name} {n:,}" for name, n in zip(names, lacks.sum(axis=1), strict=True) if n)
    if listed:
        queries = count_queries(int(lacks.any(axis=0).sum()))
        others = " A pair leaves out only those of its two systems." if len(names) > 2 else ""
        why = describe_lack(measure)
        yield Note(f"{measure} leaves out {queries} where {why} ({listed}).{others}", minor=why.endswith("value"))


def _describe_low_counts(
    measures: Sequence[ir_measures.Measure], values: Mapping[str, Matrix], names: Sequence[str]
) -> Iterator[Note]:
    """Warn where a system has fewer results, repeats or iterations only because it returned nothing."""
    for measure, results in find_results_counts(one for one in measures if not needs_results(one)).items():
        counts = values[measure]
        is_less = (counts == 0) & (values[results] == 0) & (counts.max(axis=0) > 0)
        by = results.removeprefix(str(NumResults)).replace("@", " by iteration ")
        for name, n in zip(names, is_less.sum(axis=1), strict=True):
            if n:
                yield Note(f"{measure} of {name}: less because it has no results{by} in {count_queries(n)}.")


def describe_incomparable(pairs: pl.DataFrame, scores: Mapping[str, Scores], of_file: str | None) -> str | None:
    """Return a sentence on pairs that are not comparable because a system lacks iterations; `of_file`: that of a baseline file."""
    found = pairs.filter(verdict=NOT_COMPARABLE)
    if found.is_empty():
        return None
    compared = {*found.get_column("system"), *found.get_column("against")}
    lacking, others = (
        [name for name, of in scores.items() if name in compared and of.lacks_iterations == lacks]
        for lacks in (True, False)
    )
    measures = found.get_column("measure").unique(maintain_order=True).to_list()
    remedy = f"Cut the ranking into pages of N results: {spell('page', {lacking[0]: 'N'})}."
    if lacking[0] == of_file:
        remedy = f"Write the baseline file again with {spell('page', 'N')}."
    without, having = list_some(lacking), list_some(others)
    return f"{list_some(measures)}: not comparable between {without} (no iterations) and {having}. {remedy}"
