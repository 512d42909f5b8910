"""Counts ties and equal rows of a run, part by part, and gives the notices for the whole run."""

from collections.abc import Iterable
from operator import add
from typing import NamedTuple

import polars as pl

from goodgain.errors import count_of, notice
from goodgain.ranking.first_occurrences_and_flattening import FirstOccurrences, Orders
from goodgain.schema import EMPTY_DOC


class OrderFacts(NamedTuple):
    """Ties, equal rows and missing ranks of some queries, which the notices on a run need."""

    orders: Orders = Orders()
    equal_rows: int = 0  # as in `FirstOccurrences`
    in_row_order: bool = False  # whether a ranking follows the order of the rows, because there are no ranks and scores
    tied: int = 0  # results that are ordered by doc_id, because the frame does not keep the order of rows


def add_up_facts(parts: Iterable[OrderFacts]) -> OrderFacts:
    """Return the facts of a whole run from those of its parts, which share no query."""
    facts = list(parts)
    orders = Orders()
    for part in facts:
        orders = Orders(*map(add, orders, part.orders))
    return OrderFacts(
        orders,
        equal_rows=sum(part.equal_rows for part in facts),
        in_row_order=any(part.in_row_order for part in facts),
        tied=sum(part.tied for part in facts),
    )


def count_ties(rows: pl.DataFrame, firsts: FirstOccurrences | None, *, order: str, lacks_order: bool) -> int:
    """Count the results that share a rank within an iteration, or all of several results if the run `lacks_order`.

    `rows` is sorted by query_id and iteration. If `firsts` is given, results of queries that keep their scores do not count:
    they are sorted by score.
    """
    if order == "last":
        rows = rows.filter(pl.col("iteration") == pl.col("iteration").max().over("query_id"))
    results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    places = results.select("query_id", "iteration") if lacks_order else results.select("query_id", "iteration", "rank")

    equals_row_before = pl.all_horizontal(pl.all() == pl.all().shift(1)).fill_null(False)
    is_tied = equals_row_before | equals_row_before.shift(-1, fill_value=False)
    tied = places.filter(places.select(is_tied).to_series())
    if firsts is not None and not lacks_order and not tied.is_empty():
        keeping = firsts.queries.get_column("query_id").filter(pl.Series(firsts.keep_scores))
        tied = tied.filter(~pl.col("query_id").is_in(keeping.implode()))
    return tied.height


def warn_of_facts(facts: OrderFacts, *, about: str | None, lacks_order: bool = False, paged: bool = False) -> None:
    """Give the notices on a run. `about` is its name. For `paged`, see `warn_of_orders`, for `lacks_order`, see `count_ties`."""
    warn_of_equal_rows(facts.equal_rows, about=about)
    if facts.in_row_order:
        warn_of_row_order()
    warn_of_orders(facts.orders, paged=paged)
    warn_of_ties(facts.tied, lacks_order=lacks_order)


def warn_of_ties(results: int, *, lacks_order: bool) -> None:
    """Give a notice on the results that `count_ties` counted."""
    if results:
        reason = "neither rank nor score" if lacks_order else "ties in rank"
        number = count_of(results, "result has", "results have")
        notice(
            "order_by_doc_id",
            f"{number} {reason}: they are ordered by doc_id, because the frame does not keep the order of rows",
            minor=True,
        )


def warn_of_equal_rows(number: int, *, about: str | None) -> None:
    """Give a notice about the equal rows of a run. `about` is the name of the run."""
    if number:
        rows = count_of(number, "row equals", "rows equal")
        notice(
            "equal_rows",
            f"{rows} an earlier row in query, iteration, doc_id and rank. They count as repeats: right if a step made the "
            "same call twice. If rows were written twice, remove the copies.",
            about=about,
        )


def warn_of_orders(orders: Orders, *, paged: bool = False) -> None:
    """Give a notice if ranks contradict scores, and another if some queries' results are sorted by score and others' by rank.

    A run of single searches gets a notice only if its scores are all equal, or rise at a worse rank: some ties are usual.
    `paged` says whether the ranking of the run was cut into pages.
    """
    if queries := orders.contradicting:
        notice(
            "ranks_contradict_scores",
            f"ranks contradict scores within an iteration in {queries} {'query' if queries == 1 else 'queries'}: "
            "their ranking follows the ranks. If the scores are right, renumber the ranks by score. Queries with one search "
            "and no repeats keep their scores.",
        )
    if orders.by_score and orders.several:
        notice(
            "order_by_score",
            f"in {count_of(orders.by_score, 'query', 'queries')} with one search, classic measures sort by score, not by rank "
            "(ties by doc_id, as in trec_eval). Queries with several searches follow the ranks. To sort all queries alike, "
            "make scores fall as ranks rise.",
        )
    elif orders.against_ranks:
        subject = "pages and classic measures" if paged else "classic measures"
        notice(
            "order_by_score",
            f"in {count_of(orders.against_ranks, 'query', 'queries')} with one search, {subject} sort by score, not by rank "
            "(ties by doc_id, as in trec_eval). If the ranks are right, make scores fall as ranks rise.",
        )


def warn_of_row_order() -> None:
    """Say that rows are ranked in their order. This matters for classic measures and pages of iterations with several results."""
    notice(
        "row_order",
        "the run has no column rank or score, so results are ranked in the order of its rows. If this is another order, add ranks "
        "or scores.",
        minor=True,
    )
