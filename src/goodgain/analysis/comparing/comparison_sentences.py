"""Writes the sentences of a comparison: its notes, the detectable differences, and the legend of columns and signs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison_frames import ComparisonFrames
from goodgain.analysis.comparing.comparison_question import Question
from goodgain.analysis.comparing.judged_part import count_unjudged, describe_judged_part
from goodgain.analysis.comparing.rendering import count_queries, format_level, name_methods
from goodgain.analysis.comparing.replicates import POWER
from goodgain.analysis.comparing.shared_tables import SHARED, describe_shared, explain_shared
from goodgain.errors import count_of
from goodgain.files.tables import Table, format_number
from goodgain.measures.without_labels import describe_unknown
from goodgain.options import spell
from goodgain.statistics.statistical_tests import count_least_queries

#: The largest number of pairs in a note on detectable differences.
_EXAMPLES = 3
#: With more pairs, the note gives the range of their detectable differences.
_MANY_PAIRS = 24
#: With so many measures, a note gives the chance that equal systems differ significantly in at least one of them.
_MANY_MEASURES = 4
#: Two rows of `Comparison.detectable`: the smallest difference that a pair can show, and the requested one.
_Detectable = tuple[Mapping[str, Any], Mapping[str, Any]]
#: Names of the tables after the table of means: `--label` gets such a name after a hyphen.
DIFFERENCES, GROUPS, CORRELATIONS = "differences", "groups", "correlations"
#: The reason for a dash in place of an interval.
NO_INTERVAL = "A pair has no interval if its queries or random signs are too few to reject any difference."


def list_notes(frames: ComparisonFrames) -> tuple[str, ...]:
    """Return `Comparison.notes`: the notices of the comparison and of its runs, and remarks that were not given as notices."""
    return (*list_unknown(frames), *frames.warnings, *list_remarks(frames), *frames.warnings_of_runs)


def list_unknown(frames: ComparisonFrames) -> list[str]:
    """Return a sentence on what is not known without labels; an empty list with labels."""
    if frames.question.has_labels:
        return []
    return [describe_unknown(frames.next_step, len(frames.scores))]


def list_remarks(frames: ComparisonFrames) -> Iterator[str]:
    """Yield the notes that were not given as notices: on reruns, many measures, what the queries can show, and shared results."""
    if not any(scores.replicates for scores in frames.scores.values()):
        yield "Each system has one run, so the noise of a rerun is unknown. Give several: NAME=a.run,b.run, or a list of runs."
    yield from describe_many_measures(frames)
    yield from describe_power(frames)
    yield from describe_reruns(frames)
    yield from describe_shared(frames)


def describe_many_measures(frames: ComparisonFrames) -> Iterator[str]:
    """Yield the chance that equal systems differ in some measure, if there are four tested measures or more."""
    measures = frames.pairs.drop_nulls("p_randomisation").get_column("measure").n_unique()
    if measures < _MANY_MEASURES or not frames.question.uses_holm or not frames.chance_of_decision:
        return
    among = "two equal systems" if frames.systems.height == 2 else "equal systems"
    asked = "" if frames.question.with_searched else " asked for"  # a page can show further measures
    yield (
        f"Verdicts are not corrected over the {measures} measures{asked}: {among} differ significantly in at least one of them "
        f"with a chance of {100 * frames.chance_of_decision:.2g} %. "
        f"With {spell('correct_over', 'measures')}, compare corrects over all measures."
    )


def describe_power(frames: ComparisonFrames, *, most: int = _EXAMPLES) -> Iterator[str]:
    """Yield sentences on what the queries can show. If only some are judged, they say how many more a difference takes."""
    if count_unjudged(frames.scores):
        yield from describe_judged_part(frames, most=most)
    elif frames.detectable.height:
        yield describe_detectable(frames, most=most)


def describe_detectable(frames: ComparisonFrames, *, most: int = _EXAMPLES) -> str:
    """Return a sentence on the smallest difference that the queries can show and, with `detect`, on the queries it needs."""
    rows = frames.detectable.rows(named=True)
    # A pair has two rows: the smallest difference, and the requested one.
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    if len(pairs) > _MANY_PAIRS:
        shown = pairs
        parts = _list_ranges(frames, pairs, most=most)
    else:
        shown = pairs[:most]
        parts = _list_differences(frames, shown)
        if parts and len(pairs) > most > 1:
            parts[-1] += f"; {count_of(len(pairs) - most, 'more difference')}"

    sentences = [*_describe_few_queries(frames, shown)]
    if parts:
        corrected = max(smallest["pairs"] for smallest, _ in shown)
        holm = f", {_name_divisor(frames, corrected)}" if corrected > 1 else ""
        sentence = f"{'; '.join(parts)} (power {POWER:g}{holm})."
        sentences.append(sentence[0].upper() + sentence[1:])
    return " ".join(sentences)


def _list_differences(frames: ComparisonFrames, pairs: Sequence[_Detectable]) -> list[str]:
    """Return the smallest difference that each pair can show and, with `detect`, the queries that this difference takes."""
    question = frames.question
    parts = []
    queries_before = None
    for smallest, goal in pairs:  # pairs can have different queries
        measure, pair = smallest["measure"], f"{smallest['system']} against {smallest['against']}"
        if smallest["difference"] is not None:
            queries = smallest["queries"]
            number = "" if queries == queries_before else f"{count_queries(queries)} can show "
            between = f" of {pair}" if len(question.pairs) > 1 else ""
            parts.append(f"{number}a difference of {smallest['difference']:.4f} or more in {measure}{between}")
            queries_before = queries
        if question.detect is not None:  # the observed difference would only say its p-value again
            in_measure = "" if smallest["difference"] is not None else f" in {measure}"
            parts.append(_describe_goal(goal, f"the {goal['difference']:.4f} of {pair}{in_measure}"))
    return parts


def _list_ranges(frames: ComparisonFrames, pairs: Sequence[_Detectable], *, most: int) -> list[str]:
    """Return the range of the smallest differences that the pairs can show, for each of the first `most` measures."""
    pairs_of: dict[str, list[_Detectable]] = {}  # by measure
    for smallest, goal in pairs:
        if smallest["difference"] is not None:
            pairs_of.setdefault(smallest["measure"], []).append((smallest, goal))

    parts = []
    for measure, of_measure in [*pairs_of.items()][:most]:
        queries = _write_range([smallest["queries"] for smallest, _ in of_measure], ",d")
        differences = _write_range([smallest["difference"] for smallest, _ in of_measure], ".4f")
        pairs_of_measure = count_of(len(of_measure), "pair")
        by_pair = f"depending on the pair ({pairs_of_measure})"
        parts.append(f"{queries} queries can show differences of {differences} or more in {measure}, {by_pair}")
        if frames.question.detect is not None:
            parts.append(_describe_goals([goal for _, goal in of_measure]))
    if parts and len(pairs_of) > most > 1:
        parts.append(count_of(len(pairs_of) - most, "more measure"))
    return parts


def _describe_goals(goals: Sequence[Mapping[str, Any]]) -> str:
    """Say how many queries one difference takes, as a range over pairs. `goals` are rows of `Comparison.detectable`."""
    known = [goal["queries"] for goal in goals if goal["queries"] is not None]
    difference = f"a difference of {goals[0]['difference']:.4f}"
    if not known:
        return f"no number of queries suffices for {difference}"
    beyond = ""
    if len(known) < len(goals):
        beyond = f", and no number suffices in {count_of(len(goals) - len(known), 'pair')}"
    return f"{difference} takes {_write_range(known, ',d')} queries{beyond}"


def _write_range(numbers: Sequence[float], form: str) -> str:
    ends = dict.fromkeys(f"{number:{form}}" for number in (min(numbers), max(numbers)))
    return " to ".join(ends)


def _describe_few_queries(frames: ComparisonFrames, pairs: Sequence[_Detectable]) -> Iterator[str]:
    """Yield a sentence if the queries of a pair are too few for any significant difference."""
    pairs_with_few_queries = [smallest["pairs"] for smallest, _ in pairs if smallest["difference"] is None]
    if pairs_with_few_queries:
        number_of_pairs = pairs_with_few_queries[0]
        in_each = f" in each of {number_of_pairs} pairs" if number_of_pairs > 1 else ""
        alpha = frames.question.settings.alpha
        least = count_least_queries(alpha, number_of_pairs)
        yield f"With fewer than {least} queries{in_each} no difference can be significant at {alpha:g}."


def _name_divisor(frames: ComparisonFrames, tests: int) -> str:
    if frames.question.uses_holm:
        return f"Holm's correction over {tests} pairs"
    return f"{frames.question.settings.alpha:g} / {tests} as the level"


def describe_reruns(frames: ComparisonFrames, *, most: int = _EXAMPLES) -> Iterator[str]:
    """Yield a sentence on the share of rerun noise in each difference, and on what twice the runs or queries would bring."""
    rows = frames.noise.drop_nulls("share_of_reruns").head(most)
    columns = rows.select("system", "against", "measure", "share_of_reruns")
    for system, against, measure, share in columns.iter_rows():
        with_more_runs = math.sqrt(1 - share / 2)
        with_more_queries = math.sqrt(1 / 2)
        yield (
            f"Reruns explain {100 * share:.0f} % of the variance of the difference in {measure}, {system} against {against}. "
            f"Twice the runs can show differences of {100 * with_more_runs:.0f} % of the present size, twice the queries of "
            f"{100 * with_more_queries:.0f} %."
        )


def _describe_goal(goal: Mapping[str, Any], difference: str) -> str:
    if goal["queries"] is None:
        return f"no number of queries suffices for {difference}"
    runs = ""
    if goal["replicates"] is not None:
        runs = f", or {count_of(goal['replicates'], 'run')} of each system"
    return f"{difference} takes {count_queries(goal['queries'])}{runs}"


def describe_correction(frames: ComparisonFrames) -> str:
    """Say by which method and over which tests the verdicts were corrected, or `uncorrected` if nothing was tested."""
    tested = frames.pairs.drop_nulls("p_randomisation").group_by("measure").len()
    if tested.is_empty():
        return "uncorrected"
    pairs: int = tested.get_column("len").max()  # type: ignore[assignment]  # a count
    has_measures = tested.height > 1

    if frames.question.correct_over == "measures":
        tests = int(tested.get_column("len").sum())
        return f"corrected by Westfall and Young's method over {count_of(tests, 'test')}: all pairs and measures"
    if frames.question.correction == "tukey":
        over_pairs = "corrected by the randomised Tukey test over all pairs of a measure"
        return f"{over_pairs}; not over measures" if has_measures else over_pairs
    if pairs > 1:
        over_pairs = f"corrected by Holm's method over the {pairs} pairs of a measure"
        return f"{over_pairs}; not over measures" if has_measures else over_pairs
    return "uncorrected over measures" if has_measures else "uncorrected"


def describe_costs(frames: ComparisonFrames) -> str:
    """Return a sentence on the iterations per query of each system and, with labels, one on the judged share of its results."""
    systems = frames.systems.select("system", "iterations", "coverage").rows()
    iterations = ", ".join(f"{name} {number:.2f}" for name, number, _ in systems)
    if not frames.question.has_labels:
        return f"Iterations per query: {iterations}."
    judged = ", ".join(format_number(share, 2) for _, _, share in systems)
    return f"Iterations per query: {iterations}. Judged share of their results: {judged}."


def name_test(frames: ComparisonFrames, *, of_groups: bool = False) -> str:
    """Return the end of a caption: the test, its level, and what its p-values are corrected over."""
    correction = describe_correction(frames)
    if of_groups:
        correction = "corrected by Holm's method over all groups and pairs of a measure"
        if frames.question.correct_over == "measures":
            correction = "corrected by Westfall and Young's method over all groups, pairs and measures"
        elif frames.question.correction == "tukey":
            over_pairs = "corrected by the randomised Tukey test over all pairs of a measure"
            correction = f"{over_pairs}, and by Bonferroni's method over groups"
    return f"Significance: p <= {frames.signature['alpha']:g}, randomisation test, {correction}"


def build_legend(frames: ComparisonFrames) -> list[str]:
    """Return the sentences that explain the columns of all tables, and signs such as * and †."""
    return [_explain_columns(frames), *explain_shared(frames), *_explain_bounds(frames.signature)]


def _explain_columns(frames: ComparisonFrames) -> str:
    """Explain intervals, p-values, signs and effect sizes in the full table of pairs."""
    signature = frames.signature
    alpha = signature["alpha"]
    last = "Tukey" if frames.pairs.get_column("p_tukey").count() else "Holm"
    if frames.question.uses_holm:
        p, deciding = "Holm", f"Holm is the p of the randomisation test, {describe_correction(frames)}."
    else:
        last = p = "corrected"
        deciding = f"Corrected is the p of the randomisation test, {describe_correction(frames)}."
    return (
        f"{explain_intervals(frames.pairs, frames.question)} t-test to {last} are p-values. {deciding} * marks a significant "
        f"difference ({p} <= {alpha:g}); only these have the verdict better or worse. {_explain_dagger(frames.pairs)}Effect is "
        f"d_z, the mean of the differences divided by their standard deviation. {_explain_draws(signature)}, seed "
        f"{signature['seed']}."
    )


def _explain_draws(signature: Mapping[str, Any]) -> str:
    signs = signature.get("signs", signature["resamples"])
    return "Randomisation: all signs" if signs == "exact" else f"Randomisation: {signs:,} random signs"


def explain_table(frames: ComparisonFrames, table: Table, *, in_column: bool) -> Iterator[str]:
    """Explain the columns and symbols of a LaTeX table. `in_column` says if the table of differences fits a page column."""
    signature = frames.signature
    if table.name == DIFFERENCES and in_column:
        dagger = _explain_dagger(frames.pairs)
        yield f"{explain_intervals(frames.pairs, frames.question)} * marks p <= {signature['alpha']:g}. {dagger}".strip()
    elif table.name == DIFFERENCES:
        yield _explain_columns(frames)
    elif table.name == GROUPS and frames.groups is not None:
        yield f"{explain_intervals(frames.groups, frames.question)} * marks p <= {signature['alpha']:g}."
    elif table.name == SHARED:
        yield from explain_shared(frames)
    elif table.name == CORRELATIONS:
        yield f"Intervals: bootstrap, {format_level(1 - signature['alpha'])}."

    if marks := _explain_marks(table):
        yield f"Marks: {', '.join(marks)}."
    if table.name in ("", DIFFERENCES):
        yield from _explain_bounds(signature)


def _explain_marks(table: Table) -> list[str]:
    cells = [cell for row in table.rows for cell in row]
    text = "".join([*table.header, *(cell.text for cell in cells)])
    marks = []
    if "↑" in text:
        marks.append("↑ higher is better")
    if "↓" in text:
        marks.append("↓ lower is better")
    if any(cell.best for cell in cells):
        marks.append("bold is best")
    return marks


def explain_letters(frames: ComparisonFrames, kind: str) -> str:
    sentence = f"Raised {kind} name the systems that a system is significantly better than."
    if frames.signature.get("against"):
        return f"{sentence} Each system is compared only with the one before it."
    return sentence


def _explain_bounds(signature: Mapping[str, Any]) -> list[str]:
    """Return the meaning of the ranges that `bounds=True` adds; an empty list without bounds."""
    if "bounds" not in signature:
        return []
    return [
        "Unjudged: the range of a mean or a difference if each unjudged document gets a label from "
        f"{signature['bounds'].replace('..', ' to ')}, the same one for all systems. A verdict can turn if some of these "
        "labels reverse the sign of the difference, or give a difference of 0 a sign."
    ]


def list_levels(pairs: pl.DataFrame) -> list[str]:
    """Return the different levels of intervals, in the order of the pairs."""
    levels = pairs.get_column("level").drop_nulls().unique(maintain_order=True)
    return list(dict.fromkeys(map(format_level, levels)))


def explain_intervals_of_means(alpha: float, methods: str) -> str:
    return f"[low, high]: the {format_level(1 - alpha)} interval of the mean, {name_methods(methods)}."


def explain_intervals(pairs: pl.DataFrame, question: Question) -> str:
    """Return what the intervals of pairs are, and why a pair has none."""
    has_test, has_interval = pl.col("p_randomisation").is_not_null(), pl.col("low").is_not_null()
    without_interval = pairs.filter(has_test & ~has_interval)
    levels = list_levels(pairs)
    if not levels:
        return NO_INTERVAL if without_interval.height else ""

    level = f", {levels[0]}"
    if question.correction == "tukey":
        sentence = (
            f"Intervals: all differences that the randomised Tukey test does not reject{level} for all pairs together."
        )
    else:
        method = "Holm's method" if question.uses_holm else "Westfall and Young's method"
        if len(levels) > 1:
            level = f"; each has the level at which {method} decides its pair"
        sentence = f"Intervals: all differences that the randomisation test does not reject{level}."
    return f"{sentence} {NO_INTERVAL}" if without_interval.height else sentence


def _explain_dagger(pairs: pl.DataFrame) -> str:
    return "† marks p-values under low coverage. " if pairs.get_column("low_coverage").any() else ""
