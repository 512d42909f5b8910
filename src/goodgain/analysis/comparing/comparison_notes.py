"""Writes the notices of a comparison: on queries that systems lack, on verdicts, and on numbers that may mislead."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NoReturn

import ir_measures
import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodgain.analysis.comparing.pairs_table import DECIDED, NOT_COMPARABLE, NOT_COMPARABLE_PAGES
from goodgain.analysis.comparing.rendering import count_queries, list_some
from goodgain.analysis.comparing.replicates import NOISE_LEVEL, measure_noise
from goodgain.counting.coverage import LOW_SHARE, SharedQueries, join_examples, list_examples, share_of_smaller
from goodgain.errors import GoodgainNotice, InputError, OfSeveral, count_of
from goodgain.measures.declaration import GoodGainMeasure, find_meaning
from goodgain.measures.good_gain import NumResults
from goodgain.measures.names import (
    NO_SEARCH,
    NO_VALUE,
    describe_lack,
    find_results_counts,
    is_null_without_search,
    needs_results,
)
from goodgain.measures.scores import Scores
from goodgain.options import spell
from goodgain.statistics.statistical_tests import (
    MOST_RESAMPLES,
    Matrix,
    Settings,
    correct_by_holm,
    count_signs,
    lacks_signs,
)

#: The largest number of pairs or verdicts in a note.
_EXAMPLES = 3
_COUNTED = {"keep": "counted as they are", "zero": "counted as having no results", "absent": "left out"}
#: Measures that keep their last value after a query has stopped.
_KEEP_LAST_VALUE = ("SRE", "SRR", "SearchPrecision")


def describe_shared_queries(
    systems: Mapping[str, SharedQueries], pairs: Collection[tuple[str, str]] | None = None
) -> str | None:
    """Return a sentence on the pairs of systems that share few judged queries, or None if no pair does.

    Few means fewer than half of the judged queries of each of the two systems. `pairs` has the pairs to check; None: all pairs.
    Raise `InputError` if two systems share no judged query.
    """
    judged_of = {name: set(queries.both) for name, queries in systems.items() if queries.searched}
    parts = []
    for system, against in _list_pairs(judged_of, pairs):
        shared = len(judged_of[system] & judged_of[against])
        sizes = [len(judged_of[system]), len(judged_of[against])]
        if not shared:
            _refuse_unshared_queries(system, systems[system], against, systems[against])
        if share_of_smaller(shared, *sizes) < LOW_SHARE:
            parts.append(f"{system} and {against} share {shared:,} of {min(sizes):,} judged queries")
    if not parts:
        return None

    examples = "; ".join(parts[:_EXAMPLES])
    if len(parts) > _EXAMPLES:
        examples += f", and {len(parts) - _EXAMPLES:,} more pairs do"
    return f"{examples}. Check that both use the same query ids: a query that a run lacks counts as a query without a search."


def _list_pairs(systems: Collection[str], pairs: Collection[tuple[str, str]] | None) -> Iterable[tuple[str, str]]:
    """Return the pairs of `systems`, or those of them that `pairs` has, in the order of the systems."""
    if pairs is None:
        return combinations(systems, 2)
    names = list(systems)
    position = {name: k for k, name in enumerate(names)}
    places = set()
    for system, against in pairs:
        if system in position and against in position:
            ends = (position[system], position[against])
            places.add((min(ends), max(ends)))
    return [(names[first], names[second]) for first, second in sorted(places)]


def _refuse_unshared_queries(
    system: str, queries: SharedQueries, against: str, queries_of_against: SharedQueries
) -> NoReturn:
    """Raise `InputError`. The message shows query ids of the two systems, or of runs and qrels if these share none."""
    has_judged = len(queries.both) or len(queries_of_against.both)
    if not has_judged and queries.only_searched.is_in(queries_of_against.only_searched.implode()).any():
        raise InputError(
            f"no query of {system} and {against} is in the qrels: the runs have {_quote(queries.only_searched)}, the qrels "
            f"have {_quote(queries.only_judged)}. Use the same query ids in the runs and in the qrels."
        )
    examples, examples_of_against = (
        _quote(sides.both if len(sides.both) else sides.only_searched) for sides in (queries, queries_of_against)
    )
    raise InputError(
        f"{system} and {against} share no judged query: {system} has {examples}, {against} has {examples_of_against}. Give both "
        "the same query ids, or leave one out. One call of goodgain convert for all logs writes the same ids."
    )


def _quote(query_ids: pl.Series) -> str:
    return ", ".join(map(repr, list_examples(query_ids)))


def describe_absent(
    name: str, queries: SharedQueries, missing: str, unread_file: str, unread: Collection[str]
) -> Iterator[GoodgainNotice]:
    """Yield notes on judged queries that never searched, or have no row in a run. `unread`: ids that `convert` could not read."""
    if idle := len(queries.never_searched):
        examples = join_examples(queries.never_searched)
        yield GoodgainNotice(
            "never_searched",
            f"{count_queries(idle)} never searched in {name}: {examples} ({_COUNTED['zero']}).",
            of_several=OfSeveral(f"Queries never searched ({_COUNTED['zero']}).", f"{idle:,}", system=name),
        )

    if absent := len(queries.only_judged):
        lost = int(queries.only_judged.is_in([*unread]).sum())
        cause = ""
        if lost:
            cause = f" convert could not read {lost:,} of them ({unread_file})."
        elif unread:
            cause = f" convert could not read {count_queries(len(unread))} with other ids ({unread_file})."

        verb, pronoun = ("is", "it") if absent == 1 else ("are", "them")
        numbers = f"{absent:,}"
        if lost:
            numbers += f", not read by convert: {lost:,}"
        rule = f"Queries are absent from runs, which have no row of them ({_COUNTED[missing]})."
        yield GoodgainNotice(
            "absent_queries",
            f"{count_queries(absent)} {verb} absent from {name}, whose run has no row of {pronoun}: "
            f"{join_examples(queries.only_judged)} ({_COUNTED[missing]}).{cause}",
            of_several=OfSeveral(rule, numbers, system=name),
        )


def describe_incomplete(
    incomplete: Mapping[str, pl.Series], option: str, measures: Sequence[ir_measures.Measure] = ()
) -> Iterator[GoodgainNotice]:
    """Yield a note on the queries of each run that broke off. `option` is the value of `incomplete=`.

    Measures of costs leave these queries out with each value of the option.
    """
    of_costs = [find_meaning(measure).total for measure in measures]
    counted, remedy = _COUNTED[option], ""
    if of_costs and all(of_costs):
        counted = _COUNTED["absent"]
    elif option != "absent" and any(of_costs):
        counted += "; in costs left out"
    if option == "keep" and counted != _COUNTED["absent"]:
        remedy = f" {spell('incomplete', 'absent')} leaves them out."

    rule = f"Queries broke off ({counted}).{remedy}"
    for run, query_ids in incomplete.items():
        examples = f"{join_examples(query_ids)} ({counted})"
        yield GoodgainNotice(
            "broken_off",
            f"{count_queries(len(query_ids))} broke off in {run}: {examples}.{remedy}",
            of_several=OfSeveral(rule, f"{len(query_ids):,}", system=run),
        )


def describe_verdicts(pairs: pl.DataFrame, without: pl.DataFrame) -> GoodgainNotice:
    """Return a note on verdicts that rest on queries absent from a run. `without` has the pairs computed without absent queries."""
    changed = _find_changed(pairs, without)
    if changed.is_empty():
        text = "With and without the queries absent from a run, no verdict is better or worse."
        if {*pairs.get_column("verdict")} & {*DECIDED}:
            text = "No verdict rests on the queries absent from a run: without them each verdict stays the same."
        return GoodgainNotice("verdicts_on_absent_queries", text, minor=True)

    remedy = f"{spell('missing', 'absent')} leaves such queries out."
    return GoodgainNotice(
        "verdicts_on_absent_queries",
        f"Verdicts that rest on queries absent from a run: {_list_changed(changed, 'without')}. {remedy}",
    )


def describe_verdicts_on_no_good(
    pairs: pl.DataFrame, pairs_of_option: pl.DataFrame, no_good: str
) -> Iterator[GoodgainNotice]:
    """Yield a notice if verdicts depend on queries without a good document.

    `pairs_of_option` has the pairs with the other value of `no_good`.
    """
    changed = _find_changed(pairs, pairs_of_option)
    if changed.is_empty():
        return
    remedy = f"{spell('no_good', 'absent')} leaves such queries out."
    if no_good == "absent":
        remedy = f"{spell('no_good', 'keep')} counts such queries."
    examples = _list_changed(changed, "without" if no_good == "keep" else "with")
    text = f"Verdicts that depend on queries without a good document: {examples}. {remedy}"
    yield GoodgainNotice("verdicts_on_queries_without_good", text)


def _find_changed(pairs: pl.DataFrame, new_pairs: pl.DataFrame) -> pl.DataFrame:
    """Return measure, system, against, verdict and new verdict of the pairs in which the two differ.

    Measures that `new_pairs` lacks are left out.
    """
    key = ["measure", "system", "against"]
    new = new_pairs.select(*key, new="verdict")
    joined = pairs.select(*key, "verdict").join(new, on=key, maintain_order="left")
    has_new = pl.col("measure").is_in([*new_pairs["measure"]])
    return joined.filter(has_new, pl.col("verdict").ne_missing(pl.col("new")))


def _list_changed(changed: pl.DataFrame, preposition: str) -> str:
    """Write the first changed verdicts, with the new ones `with` or `without` some queries. `changed` is from `_find_changed`."""
    examples = []
    for measure, system, against, verdict, new in changed.head(_EXAMPLES).rows():
        verdict = verdict or "without a verdict"
        examples.append(f"{measure} of {system} against {against} is {verdict}, {preposition} them {new or 'none'}")
    if changed.height > _EXAMPLES:
        examples.append(f"and {changed.height - _EXAMPLES:,} more")
    return "; ".join(examples)


def describe_few_signs(
    settings: Settings, pairs: pl.DataFrame, members: pl.DataFrame | None
) -> Iterator[GoodgainNotice]:
    """Yield a sentence if the random signs are too few to find any difference of a measure, or of its groups, significant."""
    tested = pairs.drop_nulls("p_randomisation").group_by("measure", maintain_order=True).len()
    pairs_of = dict(tested.iter_rows())
    undecided = [measure for measure, number in pairs_of.items() if lacks_signs(settings, number)]
    if undecided:
        most = max(pairs_of[measure] for measure in undecided)
        yield GoodgainNotice("few_signs", f"{list_some(undecided)}: {explain_few_signs(settings, most)}.")
        return

    groups = 0 if members is None else members.get_column("group").n_unique()
    pairs_of_groups = groups * max(pairs_of.values(), default=0)
    if pairs_of_groups and lacks_signs(settings, pairs_of_groups):
        reason = explain_few_signs(settings, pairs_of_groups)
        yield GoodgainNotice("few_signs", f"{count_of(groups, 'group')}: {reason}.")


def explain_few_signs(settings: Settings, pairs: int) -> str:
    """Say that no difference can be significant if Holm's method corrects so many pairs, and what to do."""
    signs = count_signs(settings, pairs)
    remedy = f"Leave out {spell('resamples')}: then enough are drawn"
    if signs == MOST_RESAMPLES:
        remedy = f"Compare fewer pairs, or raise {spell('alpha')}"
    among = count_of(pairs, "pair")
    return f"with {signs:,} random signs no difference among {among} can be significant at {settings.alpha:g}. {remedy}"


def describe_lack_of_intervals(pairs: int, most: int) -> GoodgainNotice:
    fact = f"{pairs:,} pairs are too many for intervals (at most {most:,})"
    return GoodgainNotice(
        "no_intervals", f"{fact}. Name a baseline with {spell('baseline')}, or compare fewer systems."
    )


def describe_incomparable(
    pairs: pl.DataFrame, scores: Mapping[str, Scores], baseline_of_file: str | None
) -> Iterator[GoodgainNotice]:
    """Yield a sentence on pairs with a system without iterations, and one on pairs with pages of one ranking.

    `baseline_of_file` is the system of a baseline file.
    """
    paged = pairs.filter(verdict=NOT_COMPARABLE_PAGES)
    if not paged.is_empty():
        systems = [name for name in _list_compared(paged, scores) if "page" in scores[name].signature]
        pages = f"pages of one ranking ({list_some(systems)}) cannot repeat a result"
        remedy = f"Leave out {spell('page')} or these measures"
        yield GoodgainNotice("not_comparable", f"{_list_measures(paged)}: not comparable, because {pages}. {remedy}.")

    incomparable = pairs.filter(verdict=NOT_COMPARABLE)
    if incomparable.is_empty():
        return
    ranked: list[str] = []
    with_iterations: list[str] = []
    for name in _list_compared(incomparable, scores):
        if scores[name].lacks_iterations:
            ranked.append(name)
        else:
            with_iterations.append(name)
    measures = _list_measures(incomparable)
    remedy = f"Cut the ranking into pages of N results: {spell('page', {ranked[0]: 'N'})}."
    if ranked[0] == baseline_of_file:
        remedy = f"Write the baseline file again with {spell('page', 'N')}."
    between = f"between {list_some(ranked)} (no iterations) and {list_some(with_iterations)}"
    yield GoodgainNotice("not_comparable", f"{measures}: not comparable {between}. {remedy}")


def _list_compared(pairs: pl.DataFrame, scores: Mapping[str, Scores]) -> list[str]:
    """Return the systems that occur in pairs, in the order of `scores`."""
    compared = {*pairs.get_column("system"), *pairs.get_column("against")}
    return [name for name in scores if name in compared]


def _list_measures(pairs: pl.DataFrame) -> str:
    return list_some(pairs.get_column("measure").unique(maintain_order=True).to_list())


def describe_left_out(
    measure: ir_measures.Measure | str,
    lacks_value: NDArray[np.bool_],
    with_search: NDArray[np.bool_],
    names: Sequence[str],
) -> Iterator[GoodgainNotice]:
    """Yield notices on the queries that lack a value of a measure. A notice is minor unless a system returned nothing.

    `lacks_value` and `with_search` have a row per system and a column per query.
    """
    if isinstance(measure, str) or needs_results(measure) or not is_null_without_search(measure):
        reason = describe_lack(measure)
        causes = [(lacks_value, reason, reason == NO_VALUE)]
    else:
        causes = [(lacks_value & ~with_search, NO_SEARCH, False), (lacks_value & with_search, NO_VALUE, True)]
    rule = ""
    if len(names) > 2:
        rule = " A pair leaves out only queries that lack a value in one of both systems."

    for is_left_out, reason, minor in causes:
        numbers = zip(names, is_left_out.sum(axis=1), strict=True)
        systems = ", ".join(f"{name} {number:,}" for name, number in numbers if number)
        if systems:
            queries = count_queries(int(is_left_out.any(axis=0).sum()))
            text = f"{measure} leaves out {queries} where {reason} ({systems}).{rule}"
            yield GoodgainNotice("queries_without_value", text, minor=minor)


def describe_stops(
    measures: Sequence[GoodGainMeasure], values: Mapping[str, Matrix], iterations: Mapping[str, Matrix]
) -> Iterator[GoodgainNotice]:
    """Yield notices on measures that are hard to compare because the systems stop at different iterations.

    `iterations` has the number of iterations of each system: a row per run, a column per query. A system searches at an
    iteration if one of its runs does. It has stopped before the iteration if none of its runs searches there any more.
    """
    yield from _describe_different_ends(measures, iterations)

    cutoff = max((measure.cutoff or 0 for measure in measures), default=0)
    in_every_run, in_some_runs = _find_stops(iterations, cutoff)
    has_stopped = in_every_run | in_some_runs
    if not has_stopped.any():
        return
    stops = {}  # system -> queries in every run, in some runs only
    counts_in_every_run, counts_in_some_runs = in_every_run.sum(axis=1), in_some_runs.sum(axis=1)
    for name, *counts in zip(iterations, counts_in_every_run, counts_in_some_runs, strict=True):
        if any(counts):
            stops[name] = tuple(counts)

    names = []
    for measure in measures:
        if measure.cutoff is not None and measure.NAME in _KEEP_LAST_VALUE:
            has_value = np.isfinite(values[str(measure)])
            if has_value[has_stopped].any():
                names.append(str(measure))
    effect = ""
    if names:
        effect = f" {' and '.join(names)} {'keeps its' if len(names) == 1 else 'keep their'} last value there."
    yield GoodgainNotice(
        "early_stops",
        f"Before iteration {cutoff} {_describe_stops(stops, iterations)}, while another system searched on.{effect}",
    )


def _describe_different_ends(
    measures: Sequence[GoodGainMeasure], iterations: Mapping[str, Matrix]
) -> Iterator[GoodgainNotice]:
    """Yield a notice on measures without @. It is minor if each of them is also compared at a fixed iteration."""
    at_own_end = [measure for measure in measures if measure.cutoff is None and measure.declaration.cutoff != "none"]
    of_all_runs = np.vstack([*iterations.values()])  # a row per run of any system
    first_end, last_end = np.nanmin(of_all_runs, axis=0), np.nanmax(of_all_runs, axis=0)
    differing = int((first_end != last_end).sum())
    if at_own_end and differing:
        fixed = {measure.NAME for measure in measures if measure.cutoff is not None}
        stopping = "the systems" if len(of_all_runs) == len(iterations) else "the runs of the systems"
        yield GoodgainNotice(
            "different_ends",
            f"{', '.join(map(str, at_own_end))}: {stopping} stop at different iterations in {count_queries(differing)}. Rates "
            "then tend to favour stopping early, and sums searching on. Also run compare at a fixed iteration: @i, or "
            f"{spell('iterations')}.",
            minor=all(measure.NAME in fixed for measure in at_own_end),
        )


def _find_stops(iterations: Mapping[str, Matrix], cutoff: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return where a system stopped before another one, up to the cutoff: in every run, and in some runs only.

    Both matrices have a row per system and a column per query. A run that never searched has not stopped.
    """
    # a row per system, a column per query: the iteration at which the first and the last run stopped
    first = np.array([np.where(runs > 0, runs, np.inf).min(axis=0) for runs in iterations.values()])
    last = np.array([np.where(runs > 0, runs, 0).max(axis=0) for runs in iterations.values()])

    last_of_others = np.zeros_like(last)
    for system in range(len(last)):
        last_of_others[system] = np.delete(last, system, axis=0).max(axis=0, initial=0)
    searched_on = np.minimum(last_of_others, cutoff)
    in_every_run = (last > 0) & (last < searched_on)
    in_some_runs = (first < searched_on) & ~in_every_run
    return in_every_run, in_some_runs


def _describe_stops(stops: Mapping[str, tuple[int, int]], iterations: Mapping[str, Matrix]) -> str:
    """Say in how many queries each system stopped. `stops` has two numbers: stopped in every run, and only in some runs."""
    if len(stops) > _EXAMPLES:
        numbers = ", ".join(f"{name} {sum(counts):,}" for name, counts in stops.items())
        return f"some queries of {len(stops)} systems stopped ({numbers})"
    parts = []
    for name, (in_every_run, in_some_runs) in stops.items():
        has_runs = len(iterations[name]) > 1
        parts.append(_describe_stop(name, in_every_run, in_some_runs, has_runs=has_runs))
    return ", ".join(parts)


def _describe_stop(name: str, in_every_run: int, in_some_runs: int, *, has_runs: bool) -> str:
    """`in_every_run` and `in_some_runs` are numbers of queries."""
    if not has_runs:
        return f"{name} stopped in {count_queries(in_every_run)}"
    if not in_some_runs:
        return f"{name} stopped in {count_queries(in_every_run)} in every run"
    if not in_every_run:
        return f"{name} stopped in {count_queries(in_some_runs)} in some runs"
    return f"{name} stopped in {count_queries(in_every_run)} in every run and in {in_some_runs:,} more in some runs"


def describe_unjudged_queries(systems: pl.DataFrame, judged: int, total: int) -> Iterator[GoodgainNotice]:
    """Yield a sentence on queries without judgments. `judged` of the `total` queries of qrels and runs have judgments."""
    unjudged = systems.filter(pl.col("without_judgments") > 0).select("system", "without_judgments")
    if not unjudged.is_empty():
        numbers = ", ".join(f"{name} {number:,}" for name, number in unjudged.iter_rows())
        yield GoodgainNotice(
            "queries_without_judgments",
            f"{judged:,} of {count_queries(total)} judged; the others are left out ({numbers}). p holds only for a number of "
            "queries that was fixed before judging.",
        )


def describe_own_ideal(measures: Sequence[GoodGainMeasure]) -> Iterator[GoodgainNotice]:
    for measure in measures:
        if measure.params.get("pool") == "retrieved":
            ideal = "its ideal is only the good documents that the system found"
            yield GoodgainNotice("own_ideal", f"{measure} is not comparable between systems: {ideal}.")


def describe_low_counts(
    measures: Sequence[ir_measures.Measure], values: Mapping[str, Matrix], names: Sequence[str]
) -> Iterator[GoodgainNotice]:
    """Yield notices on counts for which lower is better, such as NumDup, that are 0 because a system has no results of a query."""
    counted = [measure for measure in measures if not needs_results(measure)]
    for measure, results in find_results_counts(counted).items():
        counts = values[measure]
        has_results_elsewhere = counts.max(axis=0) > 0
        is_less = (counts == 0) & (values[results] == 0) & has_results_elsewhere
        by = results.removeprefix(str(NumResults)).replace("@", " by iteration ")
        for name, queries in zip(names, is_less.sum(axis=1), strict=True):
            if queries:
                reason = f"less because it has no results{by} in"
                text = f"{measure} of {name}: {reason} {count_queries(queries)}."
                rule = f"{measure}: {reason} some queries."
                of_several = OfSeveral(rule, f"in {count_queries(queries)}", f"{queries:,}", name)
                yield GoodgainNotice("low_counts", text, of_several=of_several)


def describe_replicates(
    scores: Mapping[str, Scores], runs: Mapping[str, Mapping[str, Matrix]]
) -> Iterator[GoodgainNotice]:
    """Yield notices on systems of several runs: on queries that only some runs lack, and on runs that depend on each other."""
    repeated = {name: scores_of_system for name, scores_of_system in scores.items() if scores_of_system.replicates}
    for name, scores_of_system in repeated.items():
        lacked_by_all = scores_of_system.queries.only_judged.implode()
        left_out = 0
        for run in scores_of_system.replicates:
            is_lacked_by_all = run.queries.only_judged.is_in(lacked_by_all)
            left_out += int((~is_lacked_by_all).sum())
        if left_out and "missing" in scores_of_system.signature:
            fact = "a run lacks a query that another run has"
            effect = "There the mean is over fewer runs."
            times = count_of(left_out, "time")
            text = f"{name}: {fact}, {times}. {effect}"
            of_several = OfSeveral(f"{fact.capitalize()}. {effect}", times, system=name)
            yield GoodgainNotice("absent_queries", text, of_several=of_several)
    yield from describe_dependence({name: runs[name] for name in repeated})


def describe_dependence(runs: Mapping[str, Mapping[str, Matrix]]) -> Iterator[GoodgainNotice]:
    """Yield a sentence on each system whose runs seem to differ on many queries at once.

    Holm's method corrects over all measures and systems: such a sentence comes by chance in 5 % of comparisons at most.
    """
    p_values = {}  # of each (system, measure)
    for name, runs_of_system in runs.items():
        for measure, values in runs_of_system.items():
            noise = measure_noise(values, np.isfinite(values).sum(axis=0).astype(float))
            if noise is not None:
                p_values[name, measure] = noise.p_independent
    corrected = correct_by_holm(np.array([*p_values.values()], dtype=float))

    dependent: dict[str, list[str]] = {}
    for (name, measure), p in zip(p_values, corrected, strict=True):
        if p <= NOISE_LEVEL:
            dependent.setdefault(name, []).append(measure)
    for name, measures in dependent.items():
        yield GoodgainNotice(
            "dependent_queries",
            f"The runs of {name} may differ on many queries at once ({', '.join(measures)}; p <= {NOISE_LEVEL:g}). Their noise "
            "may then be larger than the noise floor, which assumes independent queries.",
        )
