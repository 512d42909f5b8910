"""Computes the amounts of a curve over spends, and the tables of costs in a report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from goodgain.counting.ledger import Counts
from goodgain.counting.spends import OVER, Spends, choose_known, find_spends
from goodgain.errors import InputError
from goodgain.files.tables import Table, format_number
from goodgain.formats.query_tables import select_costs
from goodgain.measures.parameters import is_number
from goodgain.options import spell

#: The largest number of observed spends on a curve.
_MOST_SPENDS = 50
#: The share of the gain after which more searches bring little.
ENOUGH = 0.95
#: Columns of the costs that a report shows.
_AMOUNTS = [name for name, amount in OVER.items() if amount is None]
_ADDED = {"new_good": "GR", "gain": "G", "repeats": "Dup"}
#: A rest of a sum that is a smaller share of the sum is 0 up to rounding.
_ROUNDING = 1e-9


def sum_costs(costs: pl.DataFrame, what: str, systems: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Return a frame for each system, with query_id and the sum of the column `what`. Systems without values are left out."""
    sums = {}
    for system in systems:
        rows = select_costs(costs, system, systems).drop_nulls(what)
        if len(rows):
            sums[system] = rows.group_by("query_id").agg(pl.col(what).sum())
    return sums


def format_amount(value: float) -> str:
    """Format an amount: without decimals if it is whole or at least 1000, else with four significant digits.

    >>> format_amount(12_345.6), format_amount(3.0), format_amount(0.01234)
    ('12,346', '3', '0.01234')
    """
    return f"{value:,.0f}" if value >= 1000 or value == round(value) else f"{value:.4g}"


def choose_spends(spends: Iterable[Spends], at: Sequence[float] | None) -> list[float]:
    """Return the amounts `at` in ascending order. Without `at`, choose at most 50 observed amounts, evenly spaced in rank."""
    if at is not None:
        amounts = list(at) if isinstance(at, Iterable) and not isinstance(at, str) else []
        if not amounts or not all(is_number(amount) and amount >= 0 for amount in amounts):
            raise InputError(f"{spell('at', at)}: give numbers of 0 or more, such as [1000, 5000].")
        return sorted({float(amount) for amount in amounts})
    seen = np.unique(np.concatenate([spends_of_run.rows.get_column("spend").to_numpy() for spends_of_run in spends]))
    ranks = np.linspace(0, len(seen) - 1, min(len(seen), _MOST_SPENDS)).round().astype(int)
    return [float(x) for x in seen[ranks]] or [0.0]


def average_costs(counts: Mapping[str, Counts], costs: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each system: the mean number of searches per judged query, and the mean of each amount, such as tokens.

    An amount is left out if a system lacks it. The mean of an amount is over the queries whose amounts are known in all systems.
    A query without searches and without recorded costs counts as 0.
    """
    pools = {system: counts_of_system.pools for system, counts_of_system in counts.items()}
    searches = [pools_of_system.get_column("N").mean() for pools_of_system in pools.values()]
    table = pl.DataFrame({"system": [*counts], "searches": searches})
    for what in _AMOUNTS:
        sums = sum_costs(costs, what, [*counts])
        if len(sums) < len(counts):
            continue
        ids = choose_known(what, pools, sums)
        means = []
        for sums_of_system in sums.values():
            amounts = ids.to_frame().join(sums_of_system, on="query_id", how="left").get_column(what)
            means.append(amounts.fill_null(0).mean())
        table = table.with_columns(pl.Series(what, means, dtype=pl.Float64))
    return table


def tabulate_searches(counts: Mapping[str, Counts], rel: float, costs: pl.DataFrame | None) -> pl.DataFrame:
    """Return what the first, second, ... search adds, averaged over the queries with this search; a row per system and search.

    The columns are system, search, searching (number of queries with this search), new_good, gain and repeats. The columns
    `tokens`, `cost` and `seconds` exist if every system records them per iteration. Costs are means over queries with known costs.
    If a query has costs after its last search, such as those of the answer, each system has one more row. Its search, new_good,
    gain and repeats are null, and `searching` is the number of queries that searched and have known costs. Costs of iterations
    that the run lacks count here too: a notice names them.
    """
    judged = {}  # the rows of the ledger of judged queries
    for name, counts_of_system in counts.items():
        query_ids = counts_of_system.pools.select("query_id")
        judged[name] = counts_of_system.ledger.join(query_ids, on="query_id", how="semi")
    amounts = [] if costs is None else _find_amounts_of_iterations(costs, [*counts])
    spends = {what: find_spends(what, {name: [{rel: of}] for name, of in counts.items()}, costs) for what in amounts}
    means = [pl.col(column).cast(pl.Float64).mean().alias(name) for name, column in _ADDED.items()]

    parts = []
    for name, rows in judged.items():
        for what in amounts:
            (spent,) = spends[what][name]
            paid = pl.col("spend") - pl.col("spend").shift(fill_value=0.0).over("query_id")
            of_searches = spent.rows.select("query_id", "iteration", paid.alias(what))
            rows = rows.join(of_searches, on=["query_id", "iteration"], how="left")
        of_each = rows.group_by(search="iteration").agg(
            pl.len().cast(pl.Int64).alias("searching"), *means, pl.col(amounts).mean()
        )
        parts.append(of_each.select(pl.lit(name).alias("system"), pl.all()).sort("search"))
    if costs is None or not amounts:
        return pl.concat(parts)

    rests = [_average_rest(name, costs, spends, [*counts]) for name in counts]
    if not any(rest.select(pl.any_horizontal(pl.col(amounts) > 0)).item() for rest in rests):
        return pl.concat(parts)
    both = [part for pair in zip(parts, rests, strict=True) for part in pair]
    return pl.concat(both, how="diagonal")


def _find_amounts_of_iterations(costs: pl.DataFrame, systems: Sequence[str]) -> list[str]:
    """Return the amounts, such as tokens, that every system records per iteration."""
    listed = [select_costs(costs, name, systems) for name in systems]
    of_iterations = [of.filter(pl.col("iteration") > 0) for of in listed]
    return [what for what in _AMOUNTS if all(of.get_column(what).count() for of in of_iterations)]


def _average_rest(
    system: str, costs: pl.DataFrame, spends: Mapping[str, Mapping[str, Sequence[Spends]]], systems: Sequence[str]
) -> pl.DataFrame:
    """Return a row with the mean of each amount after the last search: the total of a query, minus the spend at its last search."""
    rests: list[pl.DataFrame] = []
    for what, spends_of in spends.items():
        (spent,) = spends_of[system]
        at_last = spent.rows.group_by("query_id").agg(pl.col("spend").max())
        total = sum_costs(costs, what, systems)[system].join(at_last, on="query_id")
        rest = pl.col(what) - pl.col("spend")
        is_rounding = rest < pl.col(what) * _ROUNDING
        rests.append(total.select("query_id", pl.when(is_rounding).then(0.0).otherwise(rest).alias(what)))

    found = rests[0]
    for rest_of_amount in rests[1:]:
        found = found.join(rest_of_amount, on="query_id", how="full", coalesce=True)
    searching = pl.len().cast(pl.Int64).alias("searching")
    return found.select(pl.lit(system).alias("system"), searching, pl.col([*spends]).mean())


def build_cost_table(spent: pl.DataFrame, measure: str, means: Mapping[str, float | None], places: int) -> Table:
    """Return the mean of a measure, the searches and the amounts per query of each system. `spent` is from `average_costs`."""
    amounts = [name for name in _AMOUNTS if name in spent.columns]
    rows = []
    for row in spent.iter_rows(named=True):
        mean = format_number(means[row["system"]], places)
        searches = format_number(row["searches"], 2)
        rows.append([row["system"], mean, searches, *(format_amount(row[name]) for name in amounts)])
    return Table.of("Quality and what a query costs, means", ["system", measure, "searches", *amounts], 1, rows)


def build_search_tables(searches: pl.DataFrame, systems: Sequence[str]) -> Iterator[Table]:
    """Yield a table for each of the systems, with a row per search: what the search adds on average."""
    amounts = [name for name in _AMOUNTS if name in searches.columns]
    header = ["search", "queries still searching", "new good documents", "gain", "repeats", *amounts]
    for system in systems:
        rows = []
        for row in searches.filter(system=system).iter_rows(named=True):
            name, searching = "after the last search", "–"
            if row["search"] is not None:
                name, searching = f"search {row['search']}", f"{row['searching']:,}"
            added = ["–" if row[column] is None else f"{row[column]:.2f}" for column in _ADDED]
            paid = ["–" if row[amount] is None else format_amount(row[amount]) for amount in amounts]
            rows.append([name, searching, *added, *paid])
        if rows:
            yield Table.of(system, header, 1, rows)
