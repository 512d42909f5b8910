"""The searches of a system, iteration by iteration: what it asked, what came back, and which searches were wasted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import polars as pl

from goodgain.analysis.comparing.causes import Searched
from goodgain.counting.joined_addresses import spell_like
from goodgain.errors import InputError, notice
from goodgain.files.table_reading import open_results, read_frame
from goodgain.logs.dedup.document_types import normalise_texts
from goodgain.logs.traces.output.results_to_run import list_searches, name_results
from goodgain.options import spell

_KEY = ["query_id", "iteration"]
#: What only results know of an iteration.
_FROM_RESULTS = {"query_text": pl.String, **dict.fromkeys(("searches", "failed", "repeated_queries"), pl.Int64)}


class Results(NamedTuple):
    searches: dict[str, pl.DataFrame]  # system -> what `list_searches` returns; empty without results
    titles: pl.DataFrame  # query_id, doc_id, title (else the URL), url

    def spell_as(self, systems: Mapping[str, Searched]) -> Results:
        """Return the results with the ids of documents and queries as the runs have them."""
        known = pl.concat(one.documents.select("query_id", "doc_id") for one in systems.values())
        queries = pl.concat(one.numbers.select("query_id") for one in systems.values())
        searches = {name: spell_like(of, queries) for name, of in self.searches.items()}
        titles = spell_like(self.titles, known).unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        return Results(searches, titles)


def read_results_of(names: Sequence[str], results: Any) -> Results:
    """Return the results of systems: one frame or file of all, or one for each; None has no searches and titles."""
    if results is None:
        return Results({}, pl.DataFrame(schema=dict.fromkeys(("query_id", "doc_id", "title", "url"), pl.String)))
    given = results if isinstance(results, (list, tuple)) else [results]
    if len(given) not in (1, len(names)):
        told = f"{spell('results')}: {len(given)} files were given"
        raise InputError(f"{told}. Give one of all systems, or one for each.")
    opened = [read_frame(getattr(one, "frame", one), "the results") for one in map(open_results, given)]
    systems = [of.get_column("system").unique().to_list() if "system" in of.columns else [] for of in opened]
    searches, times = {}, len(names) // len(opened)
    for name, source, known in zip(names, opened * times, systems * times, strict=True):
        # Results of one system, given for one run, are those of this run: convert -o names the run, and not the results.
        # If another file has its name, the files are in the wrong order.
        if name not in known and (len(known) > 1 or len(opened) < len(names) or name in chain(*systems)):
            others = ", ".join(sorted({repr(one) for one in known if one is not None})) or "none with a name"
            raise InputError(
                f"the results hold no system {name!r}, only {others}. Name the runs as the results do, or give "
                f"{spell('results')} for each, in their order."
            )
        of_run = source.filter(system=name) if name in known else source
        if "replicate" in source.columns and (number := of_run.get_column("replicate").n_unique()) > 1:
            told = spell("results")
            raise InputError(
                f"{told} has {number} runs of {name}. Give a file with the rows of one replicate, or leave out {told}."
            )
        searches[name] = list_searches(of_run)
    named = pl.concat(name_results(one).select("query_id", "title", "url", doc_id="name") for one in opened)
    titles = named.group_by("query_id", "doc_id").agg(
        title=pl.coalesce("title", "url").drop_nulls().first(), url=pl.col("url").drop_nulls().first()
    )
    return Results(searches, titles)


def normalise_queries(texts: pl.Series) -> pl.Series:
    """Return search strings in lower case, with one blank in place of blanks and punctuation; null if nothing is left.

    >>> normalise_queries(pl.Series(["  River-Dam,  COST? ", "river dam cost", "?"])).to_list()
    ['river dam cost', 'river dam cost', None]
    """
    bare = normalise_texts(texts).str.replace_all(r"[\p{P}\s]+", " ").str.strip_chars()
    return bare.replace("", None)


def _describe_searches(name: str, searches: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, iteration (1..N) and what only results know of it, and how many searches were empty."""
    failed = pl.col("status") == "error" if searches.get_column("status").count() else pl.lit(None, pl.Boolean)
    asked = normalise_queries(searches.get_column("search_query")).alias("asked")
    repeated = pl.col("asked").is_not_null() & ~pl.struct("query_id", "asked").is_first_distinct()
    rows = searches.with_columns(asked).with_columns(repeated=repeated, failed=failed)
    described = rows.group_by(_KEY, maintain_order=True).agg(
        query_text=pl.col("search_query").drop_nulls().unique(maintain_order=True).str.join("; ").replace("", None),
        searches=pl.len(),
        failed=pl.when(pl.col("failed").count() > 0).then(pl.col("failed").sum()),
        repeated_queries=pl.col("repeated").sum(),
        empty=((pl.col("results") == 0) & ~pl.col("failed").fill_null(False)).sum(),
    )
    numbers = _shift_numbers(name, numbers, described)
    found = numbers.join(described, left_on=["query_id", "number"], right_on=_KEY, how="inner")
    if numbers.height and not found.height:
        notice(f"{name}: the results share no query with its run. Give the results that the run was made of.")
    return found.drop("number")


def _shift_numbers(name: str, numbers: pl.DataFrame, described: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers of a run's iterations as the results have them: a run can begin at 0, and its results at 1."""
    run, results = pl.col("run").list, pl.col("results").list
    given = described.group_by("query_id").agg(results="iteration")
    both = numbers.group_by("query_id").agg(run="number").join(given, on="query_id").sort("query_id")
    ends = both.select(low=results.min() - run.min(), high=results.max() - run.max())
    shifts = {shift for row in ends.iter_rows() for shift in row}
    if len(shifts) == 1:
        return numbers.with_columns(pl.col("number") + shifts.pop())
    apart = both.filter(run.set_difference("results").list.len() > 0, results.set_difference("run").list.len() > 0)
    for row in apart.head(1).iter_rows(named=True):
        ranges = [f"iterations {min(row[side])} to {max(row[side])}" for side in ("run", "results")]
        raise InputError(
            f"{name}: query {row['query_id']} has {ranges[0]} in the run and {ranges[1]} in the results. Give the results "
            "that the run was made of, or leave out the results."
        )
    return numbers


def tabulate_iterations(systems: Mapping[str, Searched], results: Results) -> pl.DataFrame:
    """Return the columns of `Explanation.iterations`, for the queries of the qrels."""
    tables = []
    for name, searched in systems.items():
        rows = pl.concat(
            ledger.join(pools.select("query_id", "GoodPool", rel=pl.lit(rel)), on="query_id").sort(_KEY)
            for rel, (ledger, pools, *_) in searched.counts.items()
        )
        if not results.searches:
            nothing = (pl.lit(None, kind).alias(column) for column, kind in _FROM_RESULTS.items())
            rows = rows.with_columns(*nothing, empty=(pl.col("R") == 0).cast(pl.Int64))
        else:
            described = _describe_searches(name, results.searches[name], searched.numbers)
            rows = rows.join(described, on=_KEY, how="left", maintain_order="left")
        found_before = (pl.col("GR").cum_sum() - pl.col("GR")).over("query_id", "rel")
        columns = {
            "searches": pl.col("searches").fill_null(1),
            "new_good": pl.col("GR"),
            "new_other": pl.col("UR") - pl.col("GR") - pl.col("Unjudged"),
            "repeated": pl.col("Dup"),
            "unjudged": pl.col("Unjudged"),
            **{column: pl.col(column) for column in ("failed", "empty", "repeated_queries")},
        }
        tables.append(
            rows.select(
                pl.lit(name).alias("system"),
                *_KEY,
                "query_text",
                *(column.cast(pl.Int64).alias(title) for title, column in columns.items()),
                is_repeated_query=pl.col("repeated_queries") > 0,
                brought_nothing_good=(pl.col("GR") == 0) & (found_before < pl.col("GoodPool")),
            ).with_columns(rows.get_column("rel"))
        )
    return pl.concat(tables)
