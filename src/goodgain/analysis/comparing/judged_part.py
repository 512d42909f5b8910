"""Says what a part of the queries can show if only some are judged: the differences, and the queries that a difference takes."""

from collections.abc import Iterator, Mapping

import polars as pl

from goodgain.analysis.comparing.comparison_frames import ComparisonFrames
from goodgain.analysis.comparing.rendering import count_queries
from goodgain.analysis.comparing.replicate_tables import tabulate_detectable
from goodgain.analysis.comparing.replicates import POWER
from goodgain.errors import count_of
from goodgain.measures.scores import Scores

#: The difference in a share that is asked about if `detect` is not given.
_DIFFERENCE = 0.05


def count_unjudged(scores: Mapping[str, Scores]) -> int:
    """Count the queries of all systems that have no judgment."""
    query_ids = [of_system.queries.only_searched for of_system in scores.values()]
    return pl.concat(query_ids).n_unique() if query_ids else 0


def describe_judged_part(frames: ComparisonFrames, *, most: int) -> Iterator[str]:
    """Yield a sentence on each of the first `most` pairs. `frames` are of a comparison in which only some queries are judged."""
    question = frames.question
    detect = _DIFFERENCE if question.detect is None else question.detect
    detectable = tabulate_detectable(question, frames.pairs, frames.matrices, frames.replicates, detect)
    rows = detectable.rows(named=True)
    ranges = question.find_ranges(frames.matrices, frames.largest_label)

    # A pair has two rows: the smallest difference that the queries can show, and the queries that `detect` takes.
    # The default of `detect` says something only for shares, so they come first, and other measures get no advice.
    pairs = [*zip(rows[::2], rows[1::2], strict=True)]
    with_advice = [pair for pair in pairs if question.detect is not None or ranges[pair[0]["measure"]].is_share]
    for smallest, goal in (with_advice or pairs)[:most]:
        between = f", {smallest['system']} against {smallest['against']}" if len(question.pairs) > 1 else ""
        difference = "no difference"
        if smallest["difference"] is not None:
            difference = f"a difference of {smallest['difference']:.4f} or more"
        queries = smallest["queries"]
        text = f"{count_queries(queries)} can show {difference} in {smallest['measure']}{between} (power {POWER:g})"
        if with_advice:
            text += f"; {_advise_judging(goal['queries'], queries, detect, count_unjudged(frames.scores))}"
        yield f"{text}."


def _advise_judging(queries_of_goal: int | None, queries: int, detect: float, unjudged: int) -> str:
    """Say how many more queries to judge, if a difference of `detect` takes `queries_of_goal`, and `queries` have values."""
    if queries_of_goal is None:
        return f"no number of queries suffices for {detect:g}"
    missing = queries_of_goal - queries
    if missing <= 0:
        return f"they suffice for a difference of {detect:g}"
    text = f"for {detect:g} judge {count_of(missing, 'more query', 'more queries')}"
    if missing > unjudged:
        text += f", but only {count_of(unjudged, 'is', 'are')} left"
    return text
