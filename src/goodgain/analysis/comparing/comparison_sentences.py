"""Writes the sentences of a comparison, such as warnings of misleading numbers, and the legend of columns and signs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodgain.analysis.comparing.pairs_table import DECIDED, NOT_COMPARABLE, NOT_COMPARABLE_PAGES
from goodgain.analysis.comparing.rendering import count_queries, format_number, list_some
from goodgain.analysis.comparing.replicates import LEAST_QUERIES, NOISE_LEVEL, POWER, measure_noise
from goodgain.analysis.comparing.required_lines import is_equal
from goodgain.counting.coverage import LOW_SHARE, SharedQueries, join_examples, list_examples, share_of_smaller
from goodgain.errors import GoodgainNotice, InputError, count_of
from goodgain.files.tables import Table
from goodgain.measures.declaration import GoodGainMeasure
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
    count_least_queries,
    count_signs,
    lacks_signs,
)

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison
    from goodgain.analysis.comparing.requirements import Outcome

#: The largest number of pairs, verdicts or differences in a note.
_EXAMPLES = 3
_COUNTED = {"keep": "counted as they are", "zero": "counted as having no results", "absent": "left out"}
#: Names of the tables after the table of means: `--label` gets such a name after a hyphen.
DIFFERENCES, GROUPS, CORRELATIONS = "differences", "groups", "correlations"


def describe_shared_queries(
    systems: Mapping[str, SharedQueries], pairs: Collection[tuple[str, str]] | None = None
) -> str | None:
    """Return a sentence on the pairs of systems that share few judged queries, or None if no pair does.

    Few means fewer than half of the judged queries of each of the two systems. `pairs` has the pairs to check; None: all pairs.
    Raise `InputError` if two systems share no judged query.
    """
    few = []
    judged_of = {name: set(queries.both) for name, queries in systems.items() if queries.searched}
    for one, other in combinations(judged_of, 2):
        if pairs is not None and not {(one, other), (other, one)} & {*pairs}:
            continue
        both, sizes = len(judged_of[one] & judged_of[other]), [len(judged_of[name]) for name in (one, other)]
        if not both:
            of_one, of_other = systems[one], systems[other]
            if not any(sizes) and of_one.only_searched.is_in(of_other.only_searched.implode()).any():
                raise InputError(
                    f"no query of {one} and {other} is in the qrels: the runs have {_quote(of_one.only_searched)}, the qrels "
                    f"have {_quote(of_one.only_judged)}. Use the same query ids in the runs and in the qrels."
                )
            shown, other_shown = (_quote(of.both if len(of.both) else of.only_searched) for of in (of_one, of_other))
            raise InputError(
                f"{one} and {other} share no judged query: {one} has {shown}, {other} has {other_shown}. Give both the "
                "same query ids, or leave one out. One call of goodgain convert for all logs writes the same ids."
            )
        if share_of_smaller(both, *sizes) < LOW_SHARE:
            few.append(f"{one} and {other} share {both:,} of {min(sizes):,} judged queries")
    if not few:
        return None
    more = f", and {len(few) - _EXAMPLES:,} more pairs do" if len(few) > _EXAMPLES else ""
    return (
        f"{'; '.join(few[:_EXAMPLES])}{more}. Check that both use the same query ids: a query that a run "
        "lacks counts as a query without a search."
    )


def _quote(query_ids: pl.Series) -> str:
    return ", ".join(map(repr, list_examples(query_ids)))


def describe_absent(
    name: str, of: SharedQueries, missing: str, unread_file: str, unread: Collection[str]
) -> Iterator[GoodgainNotice]:
    """Yield notes on judged queries that never searched, or have no row in a run. `unread`: ids that `convert` could not read."""
    if idle := len(of.never_searched):
        shown = join_examples(of.never_searched)
        yield GoodgainNotice(
            "never_searched", f"{count_queries(idle)} never searched in {name}: {shown} ({_COUNTED['zero']})."
        )
    if number := len(of.only_judged):
        lost = int(of.only_judged.is_in([*unread]).sum())
        told = f" convert could not read {lost:,} of them ({unread_file})." if lost else ""
        if unread and not lost:
            told = f" convert could not read {count_queries(len(unread))} with other ids ({unread_file})."
        verb, them = ("is", "it") if number == 1 else ("are", "them")
        yield GoodgainNotice(
            "absent_queries",
            f"{count_queries(number)} {verb} absent from {name}, whose run has no row of {them}: "
            f"{join_examples(of.only_judged)} ({_COUNTED[missing]}).{told}",
        )


def describe_incomplete(incomplete: Mapping[str, pl.Series], how: str) -> Iterator[GoodgainNotice]:
    other = f" {spell('incomplete', 'absent')} leaves them out." if how == "keep" else ""
    for run, query_ids in incomplete.items():
        counted = f"{join_examples(query_ids)} ({_COUNTED[how]})"
        yield GoodgainNotice("broken_off", f"{count_queries(len(query_ids))} broke off in {run}: {counted}.{other}")


def describe_verdicts(pairs: pl.DataFrame, without: pl.DataFrame) -> GoodgainNotice:
    """Return a note on verdicts that rest on queries absent from a run. `without` has the pairs computed without absent queries."""
    key = ["measure", "system", "against"]
    both = pairs.select(*key, "verdict").join(without.select(*key, other="verdict"), on=key, maintain_order="left")
    changed = both.filter(pl.col("verdict").ne_missing(pl.col("other")))
    if changed.is_empty():
        same = "With and without the queries absent from a run, no verdict is better or worse."
        if {*both.get_column("verdict")} & {*DECIDED}:
            same = "No verdict rests on the queries absent from a run: without them each verdict stays the same."
        return GoodgainNotice("verdicts_on_absent_queries", same, minor=True)
    shown = [
        f"{measure} of {system} against {against} is {verdict or 'without a verdict'}, without them {other or 'none'}"
        for measure, system, against, verdict, other in changed.head(_EXAMPLES).rows()
    ]
    shown += [f"and {changed.height - _EXAMPLES:,} more"] * (changed.height > _EXAMPLES)
    remedy = f"{spell('missing', 'absent')} leaves such queries out."
    return GoodgainNotice(
        "verdicts_on_absent_queries", f"Verdicts that rest on queries absent from a run: {'; '.join(shown)}. {remedy}"
    )


def describe_few_signs(found: Comparison) -> Iterator[GoodgainNotice]:
    """Yield a sentence if the random signs are too few to find any difference of a measure, or of its groups, significant."""
    settings = found.question.settings
    pairs_of = dict(
        found.pairs.drop_nulls("p_randomisation").group_by("measure", maintain_order=True).len().iter_rows()
    )
    undecided = [measure for measure, pairs in pairs_of.items() if lacks_signs(settings, pairs)]
    if undecided:
        pairs = max(pairs_of[measure] for measure in undecided)
        yield GoodgainNotice("few_signs", f"{list_some(undecided)}: {explain_few_signs(settings, pairs)}.")
        return
    groups = 0 if found.members is None else found.members.get_column("group").n_unique()
    pairs = groups * max(pairs_of.values(), default=0)
    if pairs and lacks_signs(settings, pairs):
        yield GoodgainNotice("few_signs", f"{count_of(groups, 'group')}: {explain_few_signs(settings, pairs)}.")


def explain_few_signs(settings: Settings, pairs: int) -> str:
    """Say that no difference can be significant if Holm's method corrects so many pairs, and what to do."""
    signs = count_signs(settings, pairs)
    remedy = f"Leave out {spell('resamples')}: then enough are drawn"
    if signs == MOST_RESAMPLES:
        remedy = f"Compare fewer pairs, or raise {spell('alpha')}"
    among = count_of(pairs, "pair")
    return f"with {signs:,} random signs no difference among {among} can be significant at {settings.alpha:g}. {remedy}"


def describe_incomparable(
    pairs: pl.DataFrame, scores: Mapping[str, Scores], of_file: str | None
) -> Iterator[GoodgainNotice]:
    """Yield a sentence on pairs with a system without iterations, and one on pairs with pages of one ranking.

    `of_file` is the system of a baseline file.
    """
    paged = pairs.filter(verdict=NOT_COMPARABLE_PAGES)
    if not paged.is_empty():
        compared = {*paged.get_column("system"), *paged.get_column("against")}
        systems = [name for name, of in scores.items() if name in compared and "page" in of.signature]
        pages = f"pages of one ranking ({list_some(systems)}) cannot repeat a result"
        remedy = f"Leave out {spell('page')} or these measures"
        yield GoodgainNotice("not_comparable", f"{_list_measures(paged)}: not comparable, because {pages}. {remedy}.")
    found = pairs.filter(verdict=NOT_COMPARABLE)
    if found.is_empty():
        return
    compared = {*found.get_column("system"), *found.get_column("against")}
    lacking, others = (
        [name for name, of in scores.items() if name in compared and of.lacks_iterations == lacks]
        for lacks in (True, False)
    )
    measures = _list_measures(found)
    remedy = f"Cut the ranking into pages of N results: {spell('page', {lacking[0]: 'N'})}."
    if lacking[0] == of_file:
        remedy = f"Write the baseline file again with {spell('page', 'N')}."
    between = f"between {list_some(lacking)} (no iterations) and {list_some(others)}"
    yield GoodgainNotice("not_comparable", f"{measures}: not comparable {between}. {remedy}")


def _list_measures(pairs: pl.DataFrame) -> str:
    return list_some(pairs.get_column("measure").unique(maintain_order=True).to_list())


def describe_left_out(
    measure: ir_measures.Measure | str, lacks: NDArray[np.bool_], searched: NDArray[np.bool_], names: Sequence[str]
) -> Iterator[GoodgainNotice]:
    """Yield notices on the queries that lack a value of a measure. A notice is minor unless a system returned nothing.

    `lacks` and `searched` have a row per system and a column per query.
    """
    if isinstance(measure, str) or needs_results(measure) or not is_null_without_search(measure):
        why = describe_lack(measure)
        causes = [(lacks, why, why == NO_VALUE)]
    else:
        causes = [(lacks & ~searched, NO_SEARCH, False), (lacks & searched, NO_VALUE, True)]
    for lacking, why, minor in causes:
        listed = ", ".join(f"{name} {n:,}" for name, n in zip(names, lacking.sum(axis=1), strict=True) if n)
        if listed:
            queries = count_queries(int(lacking.any(axis=0).sum()))
            others = (
                " A pair leaves out only queries that lack a value in one of both systems." if len(names) > 2 else ""
            )
            text = f"{measure} leaves out {queries} where {why} ({listed}).{others}"
            yield GoodgainNotice("queries_without_value", text, minor=minor)


def describe_stops(
    ours: Sequence[GoodGainMeasure], values: Mapping[str, Matrix], iterations: Mapping[str, Matrix]
) -> Iterator[GoodgainNotice]:
    """Yield notices on measures that are hard to compare because the systems stop at different iterations.

    `iterations` has the number of iterations of each system: a row per run, a column per query. A system searches at an
    iteration if one of its runs does. It has stopped before the iteration if none of its runs searches there any more.
    """
    at_own_end = [m for m in ours if m.cutoff is None and m.declaration.cutoff != "none"]
    of_all_runs = np.vstack([*iterations.values()])
    differing = int((np.nanmin(of_all_runs, axis=0) != np.nanmax(of_all_runs, axis=0)).sum())
    if at_own_end and differing:
        fixed = {m.NAME for m in ours if m.cutoff is not None}
        who = "the systems" if len(of_all_runs) == len(iterations) else "the runs of the systems"
        yield GoodgainNotice(
            "different_ends",
            f"{', '.join(map(str, at_own_end))}: {who} stop at different iterations in {count_queries(differing)}. Rates "
            "then tend to favour stopping early, and sums searching on. Compare at a fixed iteration too: @i, or "
            f"{spell('iterations')}.",
            minor=all(m.NAME in fixed for m in at_own_end),
        )

    cutoff = max((m.cutoff or 0 for m in ours), default=0)
    in_every_run, in_some_runs = _find_stops(iterations, cutoff)
    has_stopped = in_every_run | in_some_runs
    if has_stopped.any():
        counts = zip(iterations, in_every_run.sum(axis=1), in_some_runs.sum(axis=1), strict=True)
        early = ", ".join(
            _describe_stop(name, every, some, has_runs=len(iterations[name]) > 1)
            for name, every, some in counts
            if every or some
        )
        kept = [str(m) for m in ours if m.cutoff is not None and m.NAME in ("SRE", "SRR", "SearchPrecision")]
        kept = [name for name in kept if np.isfinite(values[name])[has_stopped].any()]
        told = f" {' and '.join(kept)} keep{'s its' if len(kept) == 1 else ' their'} last value there." if kept else ""
        yield GoodgainNotice(
            "early_stops", f"Before iteration {cutoff} {early}, while another system searched on.{told}"
        )


def _find_stops(iterations: Mapping[str, Matrix], cutoff: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return where a system stopped before another one, up to the cutoff: in every run, and in some runs only.

    Both matrices have a row per system and a column per query. A run that never searched has not stopped.
    """
    last = np.array([np.where(runs > 0, runs, 0).max(axis=0) for runs in iterations.values()])
    first = np.array([np.where(runs > 0, runs, np.inf).min(axis=0) for runs in iterations.values()])
    of_others = np.array([np.delete(last, k, axis=0).max(axis=0, initial=0) for k in range(len(last))])
    searched_on = np.minimum(of_others, cutoff)
    in_every_run = (last > 0) & (last < searched_on)
    return in_every_run, (first < searched_on) & ~in_every_run


def _describe_stop(name: str, every: int, some: int, *, has_runs: bool) -> str:
    if not has_runs:
        return f"{name} stopped in {count_queries(every)}"
    if not some:
        return f"{name} stopped in {count_queries(every)} in every run"
    if not every:
        return f"{name} stopped in {count_queries(some)} in some runs"
    return f"{name} stopped in {count_queries(every)} in every run and in {some:,} more in some runs"


def describe_unjudged_queries(systems: pl.DataFrame) -> Iterator[GoodgainNotice]:
    unknown = systems.filter(pl.col("without_judgments") > 0).select("system", "without_judgments").iter_rows()
    if listed := ", ".join(f"{name} {number:,}" for name, number in unknown):
        yield GoodgainNotice("queries_without_judgments", f"Queries without judgments are left out: {listed}.")


def describe_own_ideal(ours: Sequence[GoodGainMeasure]) -> Iterator[GoodgainNotice]:
    for measure in ours:
        if measure.params.get("pool") == "retrieved":
            ideal = "its ideal is only the good documents that the system found"
            yield GoodgainNotice("own_ideal", f"{measure} is not comparable between systems: {ideal}.")


def describe_low_counts(
    measures: Sequence[ir_measures.Measure], values: Mapping[str, Matrix], names: Sequence[str]
) -> Iterator[GoodgainNotice]:
    for measure, results in find_results_counts(one for one in measures if not needs_results(one)).items():
        counts = values[measure]
        is_less = (counts == 0) & (values[results] == 0) & (counts.max(axis=0) > 0)
        by = results.removeprefix(str(NumResults)).replace("@", " by iteration ")
        for name, n in zip(names, is_less.sum(axis=1), strict=True):
            if n:
                text = f"{measure} of {name}: less because it has no results{by} in {count_queries(n)}."
                yield GoodgainNotice("low_counts", text)


def describe_replicates(
    scores: Mapping[str, Scores], runs: Mapping[str, Mapping[str, Matrix]], queries: int
) -> Iterator[GoodgainNotice]:
    several = {name: of for name, of in scores.items() if of.replicates}
    if several and queries < LEAST_QUERIES:
        text = f"Intervals over {count_queries(queries)} are too narrow: few queries do not show how much values vary."
        yield GoodgainNotice("narrow_intervals", text)
    for name, of in several.items():
        lacking = [run.queries.only_judged for run in of.replicates]
        left_out = sum(int((~ids.is_in(of.queries.only_judged.implode())).sum()) for ids in lacking)
        if left_out and "missing" in of.signature:
            text = f"{name}: a run lacks a query that another run has, {left_out:,} times. There the mean is over fewer runs."
            yield GoodgainNotice("absent_queries", text)
    yield from describe_dependence({name: runs[name] for name in several})


def describe_dependence(runs: Mapping[str, Mapping[str, Matrix]]) -> Iterator[GoodgainNotice]:
    """Yield a sentence on each system whose runs seem to differ on many queries at once.

    Holm's method corrects over all measures and systems: such a sentence comes by chance in 5 % of comparisons at most.
    """
    noises = {
        (name, measure): noise
        for name, of_system in runs.items()
        for measure, values in of_system.items()
        if (noise := measure_noise(values, np.isfinite(values).sum(axis=0).astype(float))) is not None
    }
    corrected = correct_by_holm(np.array([noise.p_independent for noise in noises.values()], dtype=float))
    dependent: dict[str, list[str]] = {}
    for (name, measure), p in zip(noises, corrected, strict=True):
        if p <= NOISE_LEVEL:
            dependent.setdefault(name, []).append(measure)
    for name, measures in dependent.items():
        yield GoodgainNotice(
            "dependent_queries",
            f"The runs of {name} may differ on many queries at once ({', '.join(measures)}; p <= {NOISE_LEVEL:g}). Their noise "
            "may then be larger than the noise floor, which assumes independent queries.",
        )


def list_remarks(found: Comparison) -> Iterator[str]:
    """Yield the notes that were not given as notices: on the noise of reruns, and on detectable differences."""
    if not any(of.replicates for of in found.scores.values()):
        yield "Each system has one run, so the noise of a rerun is unknown. Give several: NAME=a.run,b.run, or a list of runs."
    if found.detectable.height:
        yield describe_detectable(found)


def describe_detectable(found: Comparison, *, most: int = _EXAMPLES) -> str:
    """Return a sentence on the smallest detectable difference, and on the queries needed for the observed difference."""
    rows, question = found.detectable.rows(named=True), found.question
    pairs = [*zip(rows[::2], rows[1::2], strict=True)]
    what = "the " if question.detect is not None else "the observed "
    shown, before = [], None
    for known, needed in pairs[:most]:  # pairs can have different queries
        asked = f"{what}{needed['difference']:.4f}"
        of_pair = f" of {known['system']} against {known['against']}"
        if known["difference"] is None:
            shown.append(_describe_needed(needed, f"{asked}{of_pair} in {known['measure']}"))
            continue
        number = "" if known["queries"] == before else f"{count_queries(known['queries'])} can show "
        can_show = f"{number}a difference of {known['difference']:.4f} or more in {known['measure']}"
        shown.append(f"{can_show}; {_describe_needed(needed, f'{asked}{of_pair}')}")
        before = known["queries"]
    more = f"; {count_of(len(pairs) - most, 'more difference')}" if len(pairs) > most and most > 1 else ""
    corrected = max(known["pairs"] for known, _ in pairs[:most])
    holm = f", Holm's correction over {corrected} pairs" if corrected > 1 else ""
    said = f"{'; '.join(shown)}{more} (power {POWER:g}{holm})."
    if few := [known["pairs"] for known, _ in pairs[:most] if known["difference"] is None]:
        in_each = f" in each of {few[0]} pairs" if few[0] > 1 else ""
        alpha = question.settings.alpha
        least = count_least_queries(alpha, few[0])
        said = f"{said[0].upper()}{said[1:]}"
        return f"With fewer than {least} queries{in_each} no difference can be significant at {alpha:g}. {said}"
    return said


def _describe_needed(needed: Mapping[str, Any], asked: str) -> str:
    runs = f", or {count_of(needed['replicates'], 'run')} of each system" if needed["replicates"] is not None else ""
    if needed["queries"] is None:
        return f"no number of queries suffices for {asked}"
    return f"{asked} takes {count_queries(needed['queries'])}{runs}"


def describe_costs(found: Comparison) -> str:
    spent = found.systems.select("system", "iterations", "coverage").rows()
    iterations = ", ".join(f"{name} {number:.2f}" for name, number, _ in spent)
    judged = ", ".join(format_number(share, 2) for _, _, share in spent)
    return f"Iterations per query: {iterations}. Judged share of their results: {judged}."


def name_test(found: Comparison, corrected: str) -> str:
    alpha = found.signature["alpha"]
    return f"p <= {alpha:g}, randomisation test, corrected by Holm's method over all {corrected} of a measure"


def build_legend(found: Comparison) -> list[str]:
    """Return the sentences that explain the columns of all tables, and signs such as * and †."""
    return [_explain_columns(found), *_explain_bounds(found.signature)]


def _explain_columns(found: Comparison) -> str:
    made, pairs = found.signature, found.pairs
    last = "Tukey" if pairs.get_column("p_tukey").count() else "Holm"
    return (
        f"{_explain_intervals(made)} t-test to {last} are p-values. Holm is the p of the randomisation test, corrected over "
        f"the pairs of a measure. * marks a significant difference (Holm <= {made['alpha']:g}); only these have the verdict "
        f"better or worse. {_explain_dagger(pairs)}Effect is the mean of the differences divided by their standard deviation. "
        f"{_explain_draws(made)}, seed {made['seed']}."
    )


def _explain_draws(signature: Mapping[str, Any]) -> str:
    resamples = f"{signature['resamples']:,} resamples"
    if "signs" not in signature:
        return f"Randomisation and bootstrap: {resamples}"
    return f"Randomisation: {signature['signs']:,} random signs. Bootstrap: {resamples}"


def explain_table(found: Comparison, table: Table, *, in_column: bool) -> Iterator[str]:
    """Explain the columns and symbols of a LaTeX table. `in_column` says if the table of differences fits a page column."""
    made, cells = found.signature, [cell for row in table.rows for cell in row]
    interval = _explain_intervals(made)
    if table.name == DIFFERENCES and in_column:
        told = f"{interval} p: randomisation test, corrected by Holm's method; * marks p <= {made['alpha']:g}."
        yield f"{told} {_explain_dagger(found.pairs)}".strip()
    elif table.name == DIFFERENCES:
        yield _explain_columns(found)
    elif table.name == GROUPS:
        yield f"{interval} * marks a significant difference ({name_test(found, 'groups and pairs')})."
    elif table.name == CORRELATIONS:
        yield interval
    shown = "".join([*table.header, *(cell.text for cell in cells)])
    marks = [f"{sign} {word} is better" for sign, word in (("↑", "higher"), ("↓", "lower")) if sign in shown]
    marks += ["bold is best"] * any(cell.best for cell in cells)
    yield from [f"Marks: {', '.join(marks)}."] * bool(marks)
    if table.name in ("", DIFFERENCES):
        yield from _explain_bounds(made)


def explain_letters(found: Comparison, kind: str) -> str:
    told = f"Raised {kind} name the systems that a system is significantly better than ({name_test(found, 'pairs')})."
    return told + " Each system is compared only with the one before it." * bool(found.signature.get("against"))


def _explain_bounds(signature: Mapping[str, Any]) -> list[str]:
    if "bounds" not in signature:
        return []
    return [
        "Unjudged: the range of a mean or a difference if each unjudged document gets a label from "
        f"{signature['bounds'].replace('..', ' to ')}, the same one for all systems. A verdict can turn if some of these "
        "labels reverse the sign of the difference, or give a difference of 0 a sign."
    ]


def _explain_intervals(signature: Mapping[str, Any]) -> str:
    return f"Intervals: bootstrap, {100 * (1 - signature['alpha']):g} %."


def _explain_dagger(pairs: pl.DataFrame) -> str:
    return "† marks p-values under low coverage. " if pairs.get_column("low_coverage").any() else ""


def describe_line(of: Outcome) -> str:
    """Describe the outcome of a requirement: the value, its distance from the bound, the test, and queries left out."""
    if of.value is None or of.bound is None:
        return "has no value: a system returned no result of a judged query, or no query has a value in every system"
    way = f"{abs(of.value - of.bound):.4g} {'above' if of.value > of.bound else 'below'}"
    way = "equal to" if is_equal(of.value, of.bound) else way
    if of.baseline is None:
        bound = "the bound"
    elif of.bound == of.baseline:
        bound = f"the baseline {of.baseline:.4f}"
    else:
        bound = f"the bound {of.bound:.4f} (baseline {of.baseline:.4f})"
    test = "t-test" if of.requirement.bound is not None else "randomisation test"
    test = "noise of reruns" if of.requirement.is_tested_by_noise else test
    belief = "p does not exist" if of.p is None else f"{test}, p = {of.p:.4g}"
    belief += ", low coverage" * of.low_coverage
    said = f"has {of.value:.4f}, {way} {bound}; {'not ' * (not of.significant)}significant ({belief})"
    if of.left_out:
        why = describe_lack(of.requirement.measure)
        if why == NO_VALUE and of.not_searched:
            some = f" ({of.not_searched:,} of these), or has no value" if of.not_searched < of.left_out else ""
            why = f"{NO_SEARCH}{some}"
        said += f"; {of.left_out:,} of {count_queries(of.queries + of.left_out)} left out because {why}"
        said += ": more than half, so the line fails" * of.leaves_out_most
        if of.evaluated is not None:
            these = "these" if of.counted_as_0 == of.left_out else f"{of.counted_as_0:,} of these"
            said += f"; with 0 for {these} the mean is {of.evaluated:.4f}, as evaluate prints it"
    if not of.holds and of.bound != of.baseline and of.verdict in ("better", "unclear", "equal"):
        said += f"; the table says {of.verdict}, because it compares with the baseline, and the line with its bound"
    return said
