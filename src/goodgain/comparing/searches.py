"""The searches of a system, iteration by iteration: what it asked, what came back, and which searches were wasted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from goodgain.comparing.causes import Searched
from goodgain.dedup.normalisation import normalise_texts
from goodgain.errors import InputError, notice
from goodgain.files.results import open_results
from goodgain.files.table_reading import read_frame
from goodgain.traces.output.results_to_run import list_searches, name_results

_KEY = ["query_id", "iteration"]


class Results:
    """The results of two systems, opened; `sources` has one frame of both, or one for each."""

    def __init__(self, results: Any) -> None:
        given = results if isinstance(results, (list, tuple)) else [results]
        if len(given) not in (1, 2):
            raise InputError(f"results=: {len(given)} files were given. Give one of both systems, or one for each.")
        opened = (open_results(one) for one in given)
        self.sources = [read_frame(getattr(one, "frame", one), "the results") for one in opened]
        named = pl.concat(name_results(one).select("query_id", "name", "title", "url") for one in self.sources)
        title = pl.coalesce("title", "url").drop_nulls().first()
        self.titles = named.group_by("query_id", doc_id="name").agg(title=title)

    def describe_searches(self, name: str, position: int, numbers: pl.DataFrame) -> pl.DataFrame:
        """Return the searches of a system: query_id, iteration (1..N), query_text, failed, empty, is_repeated_query, searches.

        Args:
            name: the system.
            position: 0 for the first system, 1 for the second.
            numbers: the iterations of the run, as in `Searched`.
        """
        are_apart = len(self.sources) == 2
        source = self.sources[position if are_apart else 0]
        known = source.get_column("system").to_list() if "system" in source.columns else []
        if name not in known and not are_apart:
            names = ", ".join(sorted({repr(one) for one in known if one is not None})) or "none with a name"
            raise InputError(
                f"the results hold no system {name!r}, only {names}. Name the runs as the results do, or give results= for each."
            )
        searches = list_searches(source, system=name if name in known else None)
        failed = pl.col("status") == "error" if searches.get_column("status").count() else pl.lit(None, pl.Boolean)
        asked = normalise_queries(searches.get_column("search_query")).alias("asked")
        repeated = pl.col("asked").is_not_null() & ~pl.struct("query_id", "asked").is_first_distinct()
        searches = searches.with_columns(asked).with_columns(repeated=repeated, failed=failed)
        described = searches.group_by(_KEY, maintain_order=True)
        rows = described.agg(
            query_text=pl.col("search_query").drop_nulls().unique(maintain_order=True).str.join("; ").replace("", None),
            failed=pl.when(pl.col("failed").count() > 0).then(pl.col("failed").sum()),
            empty=((pl.col("results") == 0) & ~pl.col("failed").fill_null(False)).sum(),
            repeated_queries=pl.col("repeated").sum(),
            searches=pl.len(),
        )
        found = numbers.join(rows, left_on=["query_id", "number"], right_on=_KEY, how="inner")
        if numbers.height and not found.height:
            notice(f"{name}: the results share no query with its run. Give the results that the run was made of.")
        return found.drop("number")


def normalise_queries(texts: pl.Series) -> pl.Series:
    """Return search strings in lower case, with one blank in place of blanks and punctuation; null if nothing is left.

    >>> normalise_queries(pl.Series(["  River-Dam,  COST? ", "river dam cost", "?"])).to_list()
    ['river dam cost', 'river dam cost', None]
    """
    bare = normalise_texts(texts).str.replace_all(r"[\p{P}\s]+", " ").str.strip_chars()
    return bare.replace("", None)


def tabulate_iterations(systems: Mapping[str, Searched], rel: float, results: Results | None) -> pl.DataFrame:
    """Return the columns of `Explanation.iterations`, for the queries of the qrels."""
    tables = []
    for position, (name, searched) in enumerate(systems.items()):
        ledger, pools = searched.counts[rel][:2]
        rows = ledger.join(pools.select("query_id", "GoodPool"), on="query_id").sort(_KEY)
        nothing = {"query_text": pl.String, **dict.fromkeys(("failed", "repeated_queries", "searches"), pl.Int64)}
        if results is None:
            rows = rows.with_columns(*(pl.lit(None, kind).alias(column) for column, kind in nothing.items()))
            rows = rows.with_columns(empty=(pl.col("R") == 0).cast(pl.Int64))
        else:
            described = results.describe_searches(name, position, searched.numbers)
            rows = rows.join(described, on=_KEY, how="left", maintain_order="left")
        found_before = (pl.col("GR").cum_sum() - pl.col("GR")).over("query_id")
        tables.append(
            rows.select(
                pl.lit(name).alias("system"),
                *_KEY,
                "query_text",
                pl.col("searches").cast(pl.Int64).fill_null(1),
                new_good="GR",
                new_other=pl.col("UR") - pl.col("GR") - pl.col("Unjudged"),
                repeated="Dup",
                unjudged="Unjudged",
                failed=pl.col("failed").cast(pl.Int64),
                empty=pl.col("empty").cast(pl.Int64),
                repeated_queries=pl.col("repeated_queries").cast(pl.Int64),
                is_repeated_query=pl.col("repeated_queries") > 0,
                brought_nothing_good=(pl.col("GR") == 0) & (found_before < pl.col("GoodPool")),
            )
        )
    return pl.concat(tables)


def find_wasted(iterations: pl.DataFrame, has_good: pl.Series) -> pl.DataFrame:
    """Return system, query_id, iterations, last_good_iteration (0: none), wasted; only queries with a good document.

    Args:
        iterations: the columns of `Explanation.iterations`.
        has_good: the queries of the qrels with a good document.
    """
    number, good = pl.col("iteration"), pl.col("new_good") > 0
    searched = iterations.filter(pl.col("query_id").is_in(has_good.implode()))
    ends = searched.group_by("system", "query_id", maintain_order=True).agg(
        iterations=number.max(), last_good_iteration=number.filter(good).max().fill_null(0)
    )
    return ends.with_columns(wasted=pl.col("iterations") - pl.col("last_good_iteration"))
