"""Lays out what systems share: tables of pairs and of searches, and the sentences below them."""

from collections.abc import Iterator

import polars as pl

from goodgain.analysis.comparing.comparison_frames import ComparisonFrames
from goodgain.analysis.comparing.rendering import count_queries
from goodgain.analysis.comparing.shared_results import PERSISTENCE
from goodgain.errors import count_of
from goodgain.files.tables import ABSENT, Cell, Table, format_number

#: The names of the tables, for labels in LaTeX.
SHARED, SEARCHES = "shared", "searches"
#: The number of searches of each system in short tables.
_FIRST_SEARCHES = 10


def build_shared_tables(frames: ComparisonFrames, places: int, *, brief: bool) -> list[Table]:
    """Return the tables of pairs and of searches; none with labels."""
    if frames.shared is None:
        return []
    pairs = _build_pairs(frames.shared.pairs, places)
    searches = _build_searches(frames.shared.searches, brief=brief)
    return [pairs, searches]


def _build_pairs(pairs: pl.DataFrame, places: int) -> Table:
    """Return the table of documents that both systems of a pair found, or only one, and of both overlaps."""
    rows = []
    for row in pairs.iter_rows(named=True):
        alone = row["documents"] - row["both"], row["documents_against"] - row["both"]
        counts = [write_count(number) for number in (row["both"], *alone)]
        overlaps = [format_number(row[name], places) for name in ("jaccard", "rbo")]
        names = [row["system"], row["against"], str(row["queries"])]
        rows.append([*names, *counts, *overlaps])
    alone_in = ["system", "against"]
    if pairs.height == 1:
        alone_in = [pairs.item(0, "system"), pairs.item(0, "against")]
    only = [f"only {name}" for name in alone_in]
    header = ["system", "against", "queries", "documents of both", *only, "Jaccard", "RBO"]
    return Table.of("What the systems share", header, 2, rows, SHARED)


def _build_searches(searches: pl.DataFrame, *, brief: bool) -> Table:
    """Return a row per system and search; only the first ten searches if `brief`."""
    title = "Results of each search"
    first = searches.filter(pl.col("iteration") <= _FIRST_SEARCHES) if brief else searches
    if first.height < searches.height:
        title = f"{title}, first {_FIRST_SEARCHES} of {searches.select('iteration').max().item()}"

    rows = []
    for row in first.iter_rows(named=True):
        apart = ABSENT
        if row["compared"]:
            apart = f"{write_count(row['apart'])} of {write_count(row['compared'])}"
        counts = [write_count(row[name]) for name in ("searches", "results", "new")]
        texts = [row["system"], str(row["iteration"]), *counts, apart]
        rows.append([Cell(text) for text in texts])
    header = ["system", "search", "queries", "results", "new results", "share nothing with search 1"]
    return Table(title, header, 1, rows, SEARCHES)


def describe_shared(frames: ComparisonFrames) -> Iterator[str]:
    """Yield sentences on results that two systems do not share; none with labels."""
    if frames.shared is None:
        return
    for row in frames.shared.pairs.iter_rows(named=True):
        if not row["queries"]:
            yield f"{row['system']} and {row['against']}: no query has results in both."
            continue
        apart = []
        for column, finder, other_system in (
            ("searches_apart", row["system"], row["against"]),
            ("searches_apart_against", row["against"], row["system"]),
        ):
            if row[column]:
                searches = count_of_mean(row[column], "search", "searches")
                apart.append(f"{searches} of {finder} found no document that {other_system} found")
        if row["queries_apart"]:
            apart.append(f"{count_queries(row['queries_apart'])} of {row['queries']:,} share no document")
        if apart:
            yield f"{'; '.join(apart)}."


def explain_shared(frames: ComparisonFrames) -> list[str]:
    """Return the meaning of the columns; an empty list with labels."""
    if frames.shared is None:
        return []
    return [
        "Jaccard: the documents of both / the documents of either. RBO: rank-biased overlap of the joined rankings, "
        f"extrapolated, p = {PERSISTENCE}; 1 is the same order. Both are means over the queries in which both systems have "
        "results."
    ]


def count_of_mean(number: float, noun: str, plural: str) -> str:
    """Write a count with its noun; a mean over runs may have a decimal."""
    if number.is_integer():
        return count_of(int(number), noun, plural)
    return f"{number:,.1f} {plural}"


def write_count(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"
