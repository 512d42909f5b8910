"""Builds the table of iterations: what each system searched for in an iteration, and what it found."""

from collections.abc import Mapping

import polars as pl

from goodgain.analysis.explaining.causes import Searched
from goodgain.counting.results_of_systems import Results
from goodgain.errors import InputError, notice
from goodgain.logs.dedup.document_types import normalise_texts

_ITERATION_KEY = ["query_id", "iteration"]
#: Column of an iteration that needs results -> its type.
_COLUMNS_FROM_RESULTS = {"query_text": pl.String, **dict.fromkeys(("searches", "failed", "repeated_queries"), pl.Int64)}


def tabulate_iterations(systems: Mapping[str, Searched], results: Results) -> pl.DataFrame:
    """Return `Explanation.iterations`: a row for each system, iteration and threshold (`rel`)."""
    tables = []
    for system, searched in systems.items():
        ledgers = []
        for rel, counts in searched.counts.items():
            # The ledger counts results (R), new results (UR), new good ones (GR), repeats (Dup), and new unjudged ones (Unjudged).
            good_pools = counts.pools.select("query_id", "GoodPool", rel=pl.lit(rel))
            ledgers.append(counts.ledger.join(good_pools, on="query_id").sort(_ITERATION_KEY))
        rows = pl.concat(ledgers)
        if results.searches:
            searches = _describe_searches(system, results.searches[system], searched.numbers)
            rows = rows.join(searches, on=_ITERATION_KEY, how="left", maintain_order="left")
        else:
            nulls = [pl.lit(None, kind).alias(column) for column, kind in _COLUMNS_FROM_RESULTS.items()]
            is_empty = pl.col("R") == 0
            rows = rows.with_columns(*nulls, empty=is_empty.cast(pl.Int64))

        found_before = pl.col("GR").cum_sum() - pl.col("GR")
        found_before = found_before.over("query_id", "rel")
        numbers = {
            "searches": pl.col("searches").fill_null(1),
            "new_good": pl.col("GR"),
            "new_other": pl.col("UR") - pl.col("GR") - pl.col("Unjudged"),
            "repeated": pl.col("Dup"),
            "unjudged": pl.col("Unjudged"),
            "failed": pl.col("failed"),
            "empty": pl.col("empty"),
            "repeated_queries": pl.col("repeated_queries"),
        }
        table = rows.select(
            pl.lit(system).alias("system"),
            *_ITERATION_KEY,
            "query_text",
            *(number.cast(pl.Int64).alias(column) for column, number in numbers.items()),
            is_repeated_query=pl.col("repeated_queries") > 0,
            brought_nothing_good=(pl.col("GR") == 0) & (found_before < pl.col("GoodPool")),
            rel="rel",
        )
        tables.append(table)
    return pl.concat(tables)


def _describe_searches(system: str, searches: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """Return the searches of a system by iteration: query_id, iteration, their texts, and numbers of searches."""
    failed: pl.Expr = pl.lit(None, pl.Boolean)
    if searches.get_column("status").count():
        failed = pl.col("status") == "error"
    normalised = normalise_queries(searches.get_column("search_query")).alias("normalised")
    is_first = pl.struct("query_id", "normalised", "arguments").is_first_distinct()
    repeated = pl.col("normalised").is_not_null() & ~is_first
    rows = searches.with_columns(normalised).with_columns(repeated=repeated, failed=failed)

    texts = pl.col("search_query").drop_nulls().unique(maintain_order=True)
    is_empty = (pl.col("results") == 0) & ~pl.col("failed").fill_null(False)
    by_iteration = rows.group_by(_ITERATION_KEY, maintain_order=True).agg(
        query_text=texts.str.join("; ").replace("", None),
        searches=pl.len(),
        failed=pl.when(pl.col("failed").count() > 0).then(pl.col("failed").sum()),
        repeated_queries=pl.col("repeated").sum(),
        empty=is_empty.sum(),
    )
    numbers = _shift_numbers(system, numbers, by_iteration)
    in_run = numbers.join(by_iteration, left_on=["query_id", "number"], right_on=_ITERATION_KEY, how="inner")
    if numbers.height and in_run.is_empty():
        notice(
            "results_of_other_queries",
            f"{system}: the results and the run share no query. Give the results that the run was made from.",
        )
    return in_run.drop("number")


def _shift_numbers(system: str, numbers: pl.DataFrame, searches: pl.DataFrame) -> pl.DataFrame:
    """Renumber the iterations of a run to match its results, for example if the run begins with 0 and the results with 1."""
    run, results = pl.col("run").list, pl.col("results").list
    in_run = numbers.group_by("query_id").agg(run="number")
    in_results = searches.group_by("query_id").agg(results="iteration")
    queries = in_run.join(in_results, on="query_id").sort("query_id")  # two lists of iterations for each query
    at_start = queries.select(results.min() - run.min()).to_series()
    at_end = queries.select(results.max() - run.max()).to_series()
    shifts = {*at_start, *at_end}
    if len(shifts) == 1:
        return numbers.with_columns(pl.col("number") + shifts.pop())

    has_more_in_run = run.set_difference("results").list.len() > 0
    has_more_in_results = results.set_difference("run").list.len() > 0
    apart = queries.filter(has_more_in_run, has_more_in_results)
    for row in apart.head(1).iter_rows(named=True):
        span_of_run = f"iterations {min(row['run'])} to {max(row['run'])}"
        span_of_results = f"iterations {min(row['results'])} to {max(row['results'])}"
        raise InputError(
            f"{system}: query {row['query_id']} has {span_of_run} in the run and {span_of_results} in the results. Give the "
            "results that the run was made from, or leave out the results."
        )
    return numbers


def normalise_queries(texts: pl.Series) -> pl.Series:
    """Return search strings in lower case, without punctuation and extra blanks. Empty strings become null.

    >>> normalise_queries(pl.Series(["  River-Dam,  COST? ", "river dam cost", "?"])).to_list()
    ['river dam cost', 'river dam cost', None]
    """
    bare = normalise_texts(texts).str.replace_all(r"[\p{P}\s]+", " ").str.strip_chars()
    return bare.replace("", None)
