"""What each search adds and what it costs: the tables of a report on good documents, repeats, tokens, price and seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from goodgain.comparing.rendering import format_number
from goodgain.counting.ledger import Counts
from goodgain.files.tables import Table
from goodgain.formats.query_tables import select_costs
from goodgain.reporting.spends import choose_known, find_spends, format_amount

#: The amounts of a report, as columns of costs.
AMOUNTS = ("tokens", "cost", "seconds")
_ADDED = {"new_good": "GR", "gain": "G", "repeats": "Dup"}


def average_costs(counts: Mapping[str, Counts], costs: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each system: searches and amounts of a query, means over the judged queries.

    An amount is left out if a system has none of it. Its mean is over the queries whose costs are known in all systems; a query
    that never searched costs nothing.
    """
    table = pl.DataFrame({"system": [*counts], "searches": [of.pools.get_column("N").mean() for of in counts.values()]})
    listed = {name: select_costs(costs, name, [*counts]) for name in counts}
    for what in AMOUNTS:
        sums = {
            name: rows.drop_nulls(what).group_by("query_id").agg(pl.col(what).sum()) for name, rows in listed.items()
        }
        if not all(map(len, sums.values())):
            continue
        pools = {name: of.pools for name, of in counts.items()}
        ids = choose_known(what, pools, {name: of.get_column("query_id") for name, of in sums.items()})
        means = [ids.to_frame().join(of, on="query_id", how="left")[what].fill_null(0).mean() for of in sums.values()]
        table = table.with_columns(pl.Series(what, means, dtype=pl.Float64))
    return table


def tabulate_searches(counts: Mapping[str, Counts], rel: float, costs: pl.DataFrame | None) -> pl.DataFrame:
    """Return a row for each system and search: what it adds on average to a query that makes it.

    Returns:
        system, search, searching (queries that make it), new_good, gain, repeats; with costs of iterations also tokens, cost and
        seconds, where all systems have them, means over the queries with known costs.
    """
    rows = {name: of.ledger.join(of.pools.select("query_id"), on="query_id", how="semi") for name, of in counts.items()}
    listed = [] if costs is None else [select_costs(costs, name, [*counts]) for name in counts]
    amounts = [
        what
        for what in AMOUNTS
        if listed and all(of.filter(pl.col("iteration") > 0, pl.col(what).is_not_null()).height for of in listed)
    ]
    for what in amounts:
        paid = pl.col("spend") - pl.col("spend").shift(fill_value=0.0).over("query")
        for name, (spent,) in find_spends(what, {name: [{rel: of}] for name, of in counts.items()}, costs).items():
            of_one = spent.rows.select("query_id", "iteration", paid.alias(what))
            rows[name] = rows[name].join(of_one, on=["query_id", "iteration"], how="left")
    columns = {**_ADDED, **{what: what for what in amounts}}
    means = {name: pl.col(column).cast(pl.Float64).mean() for name, column in columns.items()}
    return pl.concat(
        of.group_by(search="iteration")
        .agg(searching=pl.len().cast(pl.Int64), **means)
        .select(pl.lit(name).alias("system"), pl.all())
        .sort("search")
        for name, of in rows.items()
    )


def build_cost_table(spent: pl.DataFrame, measure: str, means: Mapping[str, float | None], places: int) -> Table:
    """Return the table of quality beside what a query costs."""
    amounts = [name for name in AMOUNTS if name in spent.columns]
    rows = []
    for row in spent.iter_rows(named=True):
        found, paid = format_number(means[row["system"]], places), (format_amount(row[name]) for name in amounts)
        rows.append([row["system"], found, format_number(row["searches"], 2), *paid])
    return Table.of("Quality and what a query costs, means", ["system", measure, "searches", *amounts], 1, rows)


def build_search_tables(searches: pl.DataFrame, most: int) -> Iterator[Table]:
    """Yield for each of the first systems what its searches add."""
    amounts = [name for name in AMOUNTS if name in searches.columns]
    header = ["search", "queries still searching", "new good documents", "gain", "repeats", *amounts]
    for (name,), of in [*searches.group_by("system", maintain_order=True)][:most]:
        rows = [
            [
                f"search {row['search']}",
                f"{row['searching']:,}",
                *(f"{row[column]:.2f}" for column in _ADDED),
                *("–" if row[amount] is None else format_amount(row[amount]) for amount in amounts),
            ]
            for row in of.iter_rows(named=True)
        ]
        yield Table.of(str(name), header, 1, rows)
