"""Finds first occurrences (the rows of a run in which a document is new to the query), and makes the classic ranking of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from goodgain.options import OPTIONS, ORDER, check_choice
from goodgain.schema import EMPTY_DOC, RUN

ORDERS = OPTIONS["order"].choices
_SEEN = ("iteration", "rank")
#: Order -> the columns that sort the first occurrences of a query. `position` counts the results of an iteration; `last`
#: has only the results of the last iteration.
PLACED_BY: dict[str, tuple[str, ...]] = {"seen": _SEEN, "interleaved": ("position", "iteration"), "last": _SEEN}


class Orders(NamedTuple):
    """Counts of queries: those whose ranks and scores give different orders, and those with several iterations."""

    contradicting: int = 0  # ranked by rank, although a better rank has a lower score within an iteration
    by_score: int = 0  # ranked by score (ties by doc_id), although the ranks have another order
    several: int = 0  # queries with several iterations
    against_ranks: int = 0  # of `by_score`, the queries whose scores are all equal, or rise at a worse rank


@dataclass(frozen=True)
class FirstOccurrences:
    """The first occurrence of each document in a run, in the order of a ranking.

    Queries and iterations are identified by their positions in `queries` and `iterations`.
    """

    #: query, the other columns of the run, line (the row in the run), group (the number of the iteration). Sorted by query,
    #: then in the order of the ranking.
    rows: pl.DataFrame
    #: query_id, results (with repeats; of the last iteration with the order `last`), length (the number of all iterations),
    #: rising (whether a better rank has a lower score within an iteration), by_score (whether scores and doc_ids order an
    #: iteration differently), level (whether all neighbours within an iteration have the same score, at different ranks), in
    #: order of appearance.
    queries: pl.DataFrame
    iterations: pl.DataFrame  # query, iteration (the number in the run), R (its results); sorted by query and iteration
    equal_rows: int = 0  # results that equal an earlier result of the query in iteration, doc_id and rank

    @property
    def has_rankings(self) -> bool:
        """Whether an iteration has several results."""
        return bool((self.iterations.get_column("R") > 1).any())

    @property
    def documents(self) -> Any:
        """For each query, the number of documents in `rows`."""
        return np.bincount(self.rows.get_column("query"), minlength=self.queries.height)

    @property
    def keep_scores(self) -> Any:
        """For each query, whether it has one iteration and no repeats. Such a query keeps its rows, ranks and scores.

        Any other query gets the scores n, n-1, ..., 1.
        """
        length = self.queries.get_column("length").to_numpy()
        results = self.queries.get_column("results").to_numpy()
        return (length == 1) & (results == self.documents)

    @property
    def orders(self) -> Orders:
        keeps_scores = self.keep_scores
        # one value per query
        rising = self.queries.get_column("rising").to_numpy()
        level = self.queries.get_column("level").to_numpy()
        length = self.queries.get_column("length").to_numpy()
        sorted_by_score = self.queries.get_column("by_score").to_numpy() & keeps_scores
        return Orders(
            contradicting=int((rising & ~keeps_scores).sum()),
            by_score=int(sorted_by_score.sum()),
            several=int((length > 1).sum()),
            against_ranks=int((sorted_by_score & (rising | level)).sum()),
        )

    @property
    def has_repeats(self) -> bool:
        """Whether any query returned a document twice."""
        return bool((self.queries.get_column("results").to_numpy() > self.documents).any())


def find_first_occurrences(run: pl.DataFrame, order: str = ORDER) -> FirstOccurrences:
    """Find the first occurrence of each document of a run (query_id, iteration, doc_id, and possibly rank, score and more).

    The order is `seen` (iteration, then rank, then row), `interleaved` (position in the iteration, then iteration) or `last`
    (only the last iteration, even if it is empty).

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 1, 2, 2, 2], "doc_id": list("abcade")})
    >>> {order: "".join(find_first_occurrences(run, order).rows["doc_id"]) for order in ORDERS}
    {'seen': 'abcde', 'interleaved': 'abdce', 'last': 'ade'}
    """
    check_choice("order", order)
    query, query_ids = number_queries(run.get_column("query_id"))
    others = [run.get_column(name) for name in run.columns if name != "query_id"]
    rows = pl.DataFrame([query, *others]).with_row_index("line")
    key = ["query", *(name for name in PLACED_BY["seen"] if name in run.columns)]
    is_sorted, equals_next = compare_neighbours(rows, key)
    if not is_sorted:
        rows = rows.sort(key, maintain_order=True)
        _, equals_next = compare_neighbours(rows, key)
    equal_rows = _count_equal_rows(rows, equals_next) if "rank" in key else 0

    # `group` of a result is the row of its iteration in `iterations`
    results, iterations = _number_iterations(rows)
    ranked_iterations = iterations
    if order == "last":
        ends_query = (pl.col("query") != pl.col("query").shift(-1)).fill_null(True)
        is_last = iterations.select(ends_query).to_series()
        results = results.filter(is_last.gather(results.get_column("group")))
        ranked_iterations = iterations.filter(is_last)

    number = len(query_ids)
    results_of_query = np.bincount(ranked_iterations.get_column("query"), ranked_iterations.get_column("R"), number)
    queries = pl.DataFrame(
        {
            "query_id": query_ids,
            "results": results_of_query.astype(np.int64),
            "length": np.bincount(iterations.get_column("query"), minlength=number),
            **_compare_with_scores(results, number),
        }
    )

    if order == "interleaved":
        results = results.with_columns(position=count_in_query(results.get_column("group")))
        results = results.sort("query", *PLACED_BY[order]).drop("position")
    # Grouping the documents query by query takes Polars a third of the time of grouping all at once.
    is_first = pl.col("doc_id").is_first_distinct().over(pl.col("query").set_sorted())
    firsts = results.filter(results.select(is_first).to_series())  # a lazy filter takes a third longer
    return FirstOccurrences(firsts, queries, iterations, equal_rows)


def number_queries(query_ids: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Number the queries in order of appearance. Return the query number of each row, and the query ids by number."""
    stretches = query_ids.rle().struct.unnest()  # one row per stretch of equal ids
    names = stretches.get_column("value")
    lengths = stretches.get_column("len").to_numpy()
    queries = names.unique(maintain_order=True)
    numbers = np.arange(len(names), dtype=np.uint32)
    if len(queries) < len(names):  # the rows of some query do not stand together
        numbered = pl.DataFrame({"value": queries}).with_row_index("query")
        joined = stretches.join(numbered, on="value", how="left", maintain_order="left", nulls_equal=True)
        numbers = joined.get_column("query").to_numpy()
    return pl.Series("query", np.repeat(numbers, lengths)), queries


def count_in_query(queries: pl.Series) -> pl.Series:
    """Return 1, 2, 3 ... for the rows of each query, whose number is in `queries`. All rows of a query must be adjacent."""
    number = queries.to_numpy()
    starts = _find_starts(number[1:] != number[:-1], len(number))
    lengths = np.diff(starts, append=len(number))
    return pl.Series("k", np.arange(1, len(number) + 1) - np.repeat(starts, lengths), dtype=pl.Int64)


def _find_starts(differs: Any, height: int) -> Any:
    """Return the first row of each group. `differs` says of each row but the first whether it begins another group."""
    return np.flatnonzero(np.concatenate([np.ones(min(height, 1), bool), differs]))


def compare_neighbours(rows: pl.DataFrame, key: Sequence[str]) -> tuple[bool, Any]:
    """Return whether rows are sorted by `key`, and for each row but the last whether it equals the next row in `key`.

    Most files are sorted, and this check is faster than sorting.
    """
    falls = np.zeros(max(rows.height - 1, 0), bool)
    equal = ~falls
    for name in key:
        column = rows.get_column(name).to_numpy()
        falls |= equal & (column[1:] < column[:-1])
        equal &= column[1:] == column[:-1]
    return not falls.any(), equal


def _count_equal_rows(rows: pl.DataFrame, equals_next: Any) -> int:
    """Count the results that equal an earlier one in iteration, doc_id and rank. `rows` is sorted by these but doc_id."""
    if not equals_next.any():  # as in most files
        return 0
    is_tied = np.append(equals_next, False) | np.append(False, equals_next)
    tied = rows.filter(is_tied).filter(pl.col("doc_id") != EMPTY_DOC)
    return tied.height - tied.n_unique(["query", "iteration", "rank", "doc_id"])


def _number_iterations(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the results with the number of their iteration (`group`), and the iterations (query, iteration, R)."""
    query = rows.get_column("query").to_numpy()
    iteration = rows.get_column("iteration").to_numpy()
    starts = _find_starts((query[1:] != query[:-1]) | (iteration[1:] != iteration[:-1]), rows.height)
    counts = np.diff(starts, append=rows.height)
    iterations = {"query": query[starts], "iteration": rows.get_column("iteration")[starts]}

    results = rows.hstack([pl.Series("group", np.repeat(np.arange(len(starts)), counts))])
    is_result = rows.get_column("doc_id") != EMPTY_DOC
    if not is_result.all():
        results = results.filter(is_result)
        counts = np.bincount(results.get_column("group"), minlength=len(starts))
    return results, pl.DataFrame({**iterations, "R": counts})


def _compare_with_scores(results: pl.DataFrame, queries: int) -> dict[str, Any]:
    """Return the columns `rising`, `by_score` and `level` of `FirstOccurrences.queries`, one value per query."""
    rising = np.zeros(queries, bool)
    level = np.ones(queries, bool)
    if "score" not in results.columns:
        return {"rising": rising, "by_score": rising.copy(), "level": level}

    query = results.get_column("query").to_numpy()
    group = results.get_column("group").to_numpy()
    score = results.get_column("score").to_numpy()
    # one value per pair of neighbours: result k and result k + 1
    in_one_group = group[1:] == group[:-1]
    rises = np.flatnonzero(in_one_group & (score[1:] > score[:-1]))
    rising[query[rises]] = True
    differs = score[1:] != score[:-1]
    if "rank" in results.columns:  # tied ranks do not say another order than tied scores
        rank = results.get_column("rank").to_numpy()
        differs |= rank[1:] == rank[:-1]
    steps = np.flatnonzero(in_one_group & differs)
    level[query[steps]] = False

    tied = np.flatnonzero(in_one_group & (score[1:] == score[:-1]))
    by_score = rising.copy()
    if len(tied):
        before = results.get_column("doc_id")[tied]
        after = results.get_column("doc_id")[tied + 1]
        by_score[query[tied[(after > before).to_numpy()]]] = True  # ties are ordered by descending doc_id
    return {"rising": rising, "by_score": by_score, "level": level}


def make_ranking(firsts: FirstOccurrences, columns: Sequence[str]) -> pl.DataFrame:
    """Return the classic ranking of each query, with the given columns of the run. The run needs ranks and scores.

    Queries are in the order of their first appearance. A query with one iteration and no repeats keeps its rows and scores.
    Any other query gets the ranks 1, 2, ..., n and the scores n, n-1, ..., 1.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 1, 2, 2, 2], "doc_id": list("abcade"),
    ...                     "rank": [1, 2, 3, 1, 2, 3], "score": 0.0})
    >>> make_ranking(find_first_occurrences(run, "interleaved"), ["doc_id", "score"]).rows()
    [('a', 5.0), ('b', 4.0), ('d', 3.0), ('c', 2.0), ('e', 1.0)]
    """
    query = firsts.rows.get_column("query")
    keeps_scores = pl.Series("keeps_scores", firsts.keep_scores).gather(query)
    place = count_in_query(query).alias("place")
    documents = pl.Series("documents", firsts.documents).gather(query)
    query_ids = firsts.queries.get_column("query_id").gather(query)
    ranking = firsts.rows.with_columns(query_ids, keeps_scores, place, documents)

    new_score = (pl.col("documents") + 1 - pl.col("place")).cast(pl.Float64)
    ranking = ranking.with_columns(
        rank=pl.when("keeps_scores").then("rank").otherwise("place"),
        score=pl.when("keeps_scores").then("score").otherwise(new_score),
        iteration=pl.when("keeps_scores").then("iteration").otherwise(1).cast(pl.Int64),
    )

    if keeps_scores.any():  # a query that keeps its scores keeps the order of its rows too
        places = ranking.select("query", place=pl.when("keeps_scores").then("line").otherwise("place"))
        is_same_query = pl.col("query") == pl.col("query").shift(1)
        goes_back = is_same_query & (pl.col("place") < pl.col("place").shift(1))
        if places.select(goes_back.any()).item():
            ranking = ranking.with_columns(places.get_column("place")).sort("query", "place")
    return ranking.select(columns)


def add_ranks(frame: pl.DataFrame) -> pl.DataFrame:
    """Add missing ranks and scores.

    Missing ranks follow descending scores, then descending doc_ids, as in trec_eval. Without scores, missing ranks follow
    the order of the rows. A missing score is minus the rank.
    """
    if "rank" not in frame.columns:
        rows = frame.with_row_index("row")
        if "score" in frame.columns:
            rows = rows.sort("score", "doc_id", descending=True)
        rank = pl.int_range(1, pl.len() + 1).over("query_id", "iteration")
        frame = rows.with_columns(rank=rank).sort("row").drop("row")

    ranks = frame.get_column("rank")
    if ranks.dtype.is_float():
        is_whole = (ranks == ranks.round()) & (ranks.abs() < 2**53)
        if is_whole.all():
            frame = frame.with_columns(ranks.cast(pl.Int64))  # write whole ranks as whole numbers

    if "score" not in frame.columns:
        frame = frame.with_columns(score=-pl.col("rank").cast(pl.Float64))
    return frame.select(name for name in RUN.columns if name in frame.columns)
