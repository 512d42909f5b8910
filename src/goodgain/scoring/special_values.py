"""Gives notices on values that mark a special case: the best value for nothing, and ends of a scale."""

from collections.abc import Iterable, Mapping

import ir_measures
import polars as pl

from goodgain.errors import OfSeveral, count_of, notice
from goodgain.measures.changed_scores import find_values, leave_out_empty
from goodgain.measures.good_gain import NEVER
from goodgain.measures.names import needs_results
from goodgain.measures.scores import Scores

#: The largest number of measures in a notice on queries without results.
_MOST_SHARES = 3


def warn_of_ends(
    scores: Scores, measures: Iterable[ir_measures.Measure], *, missing: str, without_good: Mapping[str, pl.Series]
) -> None:
    """Give a notice if IterationsForAllGoodResults is 0 or 100 for some queries, because 0 and 100 mark special cases.

    With `missing="absent"`, queries that the run lacks do not count. `without_good` maps measures to further queries that do not.
    """
    for measure in measures:
        if measure.NAME != "IterationsForAllGoodResults":
            continue
        counted = find_values(scores, missing).filter(measure=str(measure))
        if str(measure) in without_good:
            counted = counted.filter(~pl.col("query_id").is_in(without_good[str(measure)].implode()))
        values = counted.get_column("value")
        best, worst = int((values == 0).sum()), int((values == NEVER).sum())
        ends, figures = [], []
        if best:
            queries = count_of(best, "query", "queries")
            ends.append(f"0, the best value, in {queries} without good documents")
            figures.append(f"0 in {queries}")
        if worst:
            queries = count_of(worst, "query", "queries")
            ends.append(f"{NEVER}, the worst, in {queries}")
            figures.append(f"{NEVER} in {queries}")
        if ends:
            remedy = "Report AllGood too: the share of queries for which all good documents were found."
            rule = f"{measure} is 0, the best value, without good documents, and {NEVER}, the worst, for a failure. {remedy}"
            of_several = OfSeveral(rule, ", ".join(figures))
            notice("special_values", f"{measure} is {', and '.join(ends)}. {remedy}", minor=True, of_several=of_several)


def warn_of_empty_queries(scores: Scores, measures: Iterable[ir_measures.Measure]) -> None:
    """Give a notice if queries without results count as 0, the best value, in shares such as SRR."""
    shares = [measure for measure in measures if needs_results(measure) and scores.means[str(measure)] is not None]
    if not shares:
        return
    scores = scores.select(shares)
    others = leave_out_empty(scores, shares)
    counts, counts_of_others = scores.num_queries, others.num_queries
    figures = []
    without_means = []
    for name in map(str, shares):
        empty = counts[name] - counts_of_others[name]
        if empty:
            mean = others.means[name]
            rest = "no other query has a value" if mean is None else f"mean of the others {mean:.4f}"
            queries = count_of(empty, "query", "queries")
            figures.append(f"{name} in {queries} ({rest})")
            without_means.append(f"{name} in {queries}")
    if figures:
        rule = "queries without results count as 0, the best value"
        more = f" and {len(figures) - _MOST_SHARES} more" if len(figures) > _MOST_SHARES else ""
        shown = ", ".join(figures[:_MOST_SHARES]) + more
        brief = ", ".join(without_means[:_MOST_SHARES]) + more
        of_several = OfSeveral(f"{rule}.", shown, brief)
        notice("queries_without_results", f"{rule}: {shown}. Report the mean of the others too.", of_several=of_several)
