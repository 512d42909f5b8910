"""Computes the costs of searches: the cumulative spend of queries by iteration, and the tables of costs in a report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from goodgain.analysis.comparing.rendering import format_number
from goodgain.counting.coverage import join_examples
from goodgain.counting.ledger import Counts
from goodgain.counting.run_opening import check_systems, is_replicates
from goodgain.errors import InputError, count_of, notice
from goodgain.files.tables import Table
from goodgain.formats.query_tables import select_costs
from goodgain.measures.parameters import is_number
from goodgain.options import spell

#: What can be spent -> the amount in a row of the ledger; None: the amount is in the costs.
OVER: dict[str, pl.Expr | None] = {
    "searches": pl.lit(1.0),
    "results": pl.col("R").cast(pl.Float64),
    "tokens": None,
    "cost": None,
    "seconds": None,
}
#: The largest number of observed spends on a curve.
_MOST_SPENDS = 50
_NUMBER = ["query_id", "number"]
#: The share of the gain after which more searches bring little.
ENOUGH = 0.95
#: Columns of the costs that a report shows.
_AMOUNTS = [name for name, amount in OVER.items() if amount is None]
_ADDED = {"new_good": "GR", "gain": "G", "repeats": "Dup"}


class Spends(NamedTuple):
    """What a system has spent up to each iteration of each query."""

    query_ids: pl.Series  # the judged queries whose costs are known
    rows: pl.DataFrame  # query_id, iteration and spend (cumulative), sorted


def check_costs_of_runs(costs: Any, runs: Mapping[str, Any]) -> None:
    """Raise InputError for costs of a system with several runs: nothing says which run a cost belongs to."""
    for name, run in check_systems(runs).items() if costs is not None else ():
        if is_replicates(run) and len(run) > 1:
            told = f"{spell('costs')}: {name} has {len(run)} runs"
            raise InputError(f"{told}, but costs need one run of each system. Give one run.")


def find_spends(
    over: str, counts: Mapping[str, Sequence[Mapping[float, Counts]]], costs: pl.DataFrame | None
) -> dict[str, list[Spends]]:
    """Return what each run of each system spent. A judged query with unknown costs in any system is left out for all systems."""
    of_runs = {name: [next(iter(of.values())) for of in runs] for name, runs in counts.items()}
    amount = OVER[over]
    if amount is not None or costs is None:
        return {
            name: [_add_up(of.pools.get_column("query_id"), of.ledger.with_columns(spend=amount)) for of in runs]
            for name, runs in of_runs.items()
        }
    ledgers = {name: of for name, (of,) in of_runs.items()}
    given, rows, known = {}, {}, {}
    for name, of in ledgers.items():
        listed = select_costs(costs, name, [*ledgers])
        listed = listed.select("query_id", number=pl.col("iteration").cast(pl.Int64), spend=over)
        # the ledger numbers iterations 1..N
        numbered = of.ledger.with_columns(number=of.numbers)
        numbered = numbered.with_columns(pl.col("number") + _find_shift(name, numbered, listed))
        here = given[name] = listed.drop_nulls("spend")
        rows[name] = numbered.join(here, on=_NUMBER, how="left", maintain_order="left")
        known[name] = rows[name].filter(pl.col("spend").is_not_null())
        without = rows[name].filter(pl.col("spend").is_null()).join(here, on="query_id", how="semi")
        if len(without) and not (here.get_column("number") > 0).any():
            raise InputError(
                f"{spell('costs')}: the {over} of {name} are per query, and a curve needs them per iteration. Use gg.spend."
            )
    ids = choose_known(over, {name: of.pools for name, of in ledgers.items()}, known)
    for name, here in given.items():
        of_run = here.filter(pl.col("number") > 0).join(rows[name], on="query_id", how="semi")
        others = of_run.join(rows[name], on=_NUMBER, how="anti").sort(_NUMBER)
        for query_id, number in others.select(_NUMBER).head(1).rows():
            lacking = count_of(len(others), "iteration")
            notice(
                f"{spell('costs')} has {over} for {lacking} that {name} lacks, such as iteration {number} of query {query_id}. "
                "The curve leaves these costs out. Number iterations as in the run."
            )
    return {name: [_add_up(ids, of)] for name, of in rows.items()}


def _find_shift(system: str, run: pl.DataFrame, costs: pl.DataFrame) -> int:
    """Return 1 if the run numbers iterations from 0 and the costs number them from 1, else 0.

    The costs are numbered from 1 if the costs of every query go beyond the last iteration of the query in the run. Rows
    without an amount also count. Raise `InputError` if both numberings are possible.
    """
    if run.get_column("number").min() != 0:
        return 0
    ends = run.group_by("query_id").agg(end=pl.col("number").max()).join(costs.drop_nulls("number"), on="query_id")
    passes = ends.group_by("query_id").agg((pl.col("number") > pl.col("end")).any()).get_column("number")
    if passes.any() and (not passes.all() or (costs.get_column("number") == 0).any()):
        raise InputError(
            f"{spell('costs')}: the run of {system} begins with iteration 0, and the costs may begin with 0 or 1. Number the "
            "searches in run and costs from 1. Iteration 0 of costs is then the query as a whole."
        )
    return int(passes.any())


def choose_known(what: str, pools: Mapping[str, pl.DataFrame], known: Mapping[str, pl.DataFrame]) -> pl.Series:
    """Return the judged queries whose costs are known in all systems. If queries are left out, a notice says so.

    The costs of a query without searches (N = 0) count as known. `known` maps systems to frames of the queries with known costs.
    """
    kept = next(iter(pools.values())).get_column("query_id")
    lacking: set[str] = set()
    for name, of in pools.items():
        without = of.filter((pl.col("N") > 0) & ~pl.col("query_id").is_in(known[name]["query_id"].implode()))
        if len(without) and len(without) == (of.get_column("N") > 0).sum():
            raise InputError(
                f"{spell('costs')} has no {what} for any judged query of {name}. Write query ids and iterations as in the run."
            )
        lacking.update(without.get_column("query_id"))
    is_lacking = kept.is_in(sorted(lacking))
    if lacking and is_lacking.all():
        told = f"{spell('costs')}: no judged query has {what} in all systems"
        raise InputError(f"{told}. Give costs of the same queries for all systems.")
    if lacking:
        notice(
            f"{spell('costs')} has no {what} for {len(lacking):,} of {len(kept):,} judged queries: "
            f"{join_examples(kept.filter(is_lacking))}. They are left out in all systems."
        )
    return kept.filter(~is_lacking)


def sum_costs(costs: pl.DataFrame, what: str, systems: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Return a frame for each system, with query_id and the sum of the column `what`. Systems without values are left out."""
    listed = {name: select_costs(costs, name, systems).drop_nulls(what) for name in systems}
    return {name: of.group_by("query_id").agg(pl.col(what).sum()) for name, of in listed.items() if len(of)}


def format_amount(value: float) -> str:
    """Format an amount: without decimals if it is whole or at least 1000, else with four significant digits.

    >>> format_amount(12_345.6), format_amount(3.0), format_amount(0.01234)
    ('12,346', '3', '0.01234')
    """
    return f"{value:,.0f}" if value >= 1000 or value == round(value) else f"{value:.4g}"


def _add_up(query_ids: pl.Series, rows: pl.DataFrame) -> Spends:
    of = rows.filter(pl.col("query_id").is_in(query_ids.implode())).sort("query_id", "iteration")
    spend = pl.col("spend").fill_null(0.0).cum_sum().over("query_id")
    return Spends(query_ids, of.select("query_id", "iteration", spend=spend))


def choose_spends(spends: Iterable[Spends], at: Sequence[float] | None) -> list[float]:
    """Return the amounts `at` in ascending order. Without `at`, choose at most 50 observed amounts, evenly spaced in rank."""
    if at is not None:
        given = list(at) if isinstance(at, Iterable) and not isinstance(at, str) else []
        if not given or not all(is_number(x) and x >= 0 for x in given):
            raise InputError(f"{spell('at', at)}: give numbers of 0 or more, such as [1000, 5000].")
        return sorted({float(x) for x in given})
    seen = np.unique(np.concatenate([of.rows.get_column("spend").to_numpy() for of in spends]))
    ranks = np.linspace(0, len(seen) - 1, min(len(seen), _MOST_SPENDS)).round().astype(int)
    return [float(x) for x in seen[ranks]] or [0.0]


def average_costs(counts: Mapping[str, Counts], costs: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each system: the mean number of searches per judged query, and the mean of each amount, such as tokens.

    An amount is left out if a system lacks it. The mean of an amount is over the queries whose amounts are known in all systems.
    A query without searches and without recorded costs counts as 0.
    """
    table = pl.DataFrame({"system": [*counts], "searches": [of.pools.get_column("N").mean() for of in counts.values()]})
    pools = {name: of.pools for name, of in counts.items()}
    for what in _AMOUNTS:
        sums = sum_costs(costs, what, [*counts])
        if len(sums) < len(counts):
            continue
        ids = choose_known(what, pools, sums)
        means = [ids.to_frame().join(of, on="query_id", how="left")[what].fill_null(0).mean() for of in sums.values()]
        table = table.with_columns(pl.Series(what, means, dtype=pl.Float64))
    return table


def tabulate_searches(counts: Mapping[str, Counts], rel: float, costs: pl.DataFrame | None) -> pl.DataFrame:
    """Return what the first, second, ... search adds, averaged over the queries with this search; a row per system and search.

    The columns are system, search, searching (number of queries with this search), new_good, gain and repeats. The columns
    `tokens`, `cost` and `seconds` exist if every system records them per iteration. Costs are means over queries with known costs.
    """
    rows = {name: of.ledger.join(of.pools.select("query_id"), on="query_id", how="semi") for name, of in counts.items()}
    listed = [] if costs is None else [select_costs(costs, name, [*counts]) for name in counts]
    amounts = [
        what
        for what in _AMOUNTS
        if listed and all(of.filter(pl.col("iteration") > 0, pl.col(what).is_not_null()).height for of in listed)
    ]
    for what in amounts:
        paid = pl.col("spend") - pl.col("spend").shift(fill_value=0.0).over("query_id")
        for name, (spent,) in find_spends(what, {name: [{rel: of}] for name, of in counts.items()}, costs).items():
            of_one = spent.rows.select("query_id", "iteration", paid.alias(what))
            rows[name] = rows[name].join(of_one, on=["query_id", "iteration"], how="left")
    columns = _ADDED | {what: what for what in amounts}
    means = {name: pl.col(column).cast(pl.Float64).mean() for name, column in columns.items()}
    return pl.concat(
        of.group_by(search="iteration")
        .agg(searching=pl.len().cast(pl.Int64), **means)
        .select(pl.lit(name).alias("system"), pl.all())
        .sort("search")
        for name, of in rows.items()
    )


def build_cost_table(spent: pl.DataFrame, measure: str, means: Mapping[str, float | None], places: int) -> Table:
    amounts = [name for name in _AMOUNTS if name in spent.columns]
    rows = []
    for row in spent.iter_rows(named=True):
        found, paid = format_number(means[row["system"]], places), (format_amount(row[name]) for name in amounts)
        rows.append([row["system"], found, format_number(row["searches"], 2), *paid])
    return Table.of("Quality and what a query costs, means", ["system", measure, "searches", *amounts], 1, rows)


def build_search_tables(searches: pl.DataFrame, most: int) -> Iterator[Table]:
    """Yield a table for each of the first `most` systems, with a row per search: what the search adds on average."""
    amounts = [name for name in _AMOUNTS if name in searches.columns]
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
