"""Adds up what each query has spent by each iteration: searches, results, tokens, money or seconds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.counting.coverage import join_examples
from goodgain.counting.ledger import Counts
from goodgain.counting.run_opening import check_systems, is_replicates
from goodgain.errors import InputError, count_of, notice
from goodgain.formats.query_tables import select_costs
from goodgain.options import spell

#: What can be spent -> the amount in a row of the ledger; None: the amount is in the costs.
OVER: dict[str, pl.Expr | None] = {
    "searches": pl.lit(1.0),
    "results": pl.col("R").cast(pl.Float64),
    "tokens": None,
    "cost": None,
    "seconds": None,
}
_NUMBER = ["query_id", "number"]


class Spends(NamedTuple):
    """What a system has spent up to each iteration of each query."""

    query_ids: pl.Series  # the judged queries whose costs are known
    rows: pl.DataFrame  # query_id, iteration and spend (cumulative), sorted


def check_costs_of_runs(costs: Any, runs: Mapping[str, Any]) -> None:
    """Raise InputError for costs of a system with several runs: nothing says which run a cost belongs to."""
    if costs is None:
        return
    for name, run in check_systems(runs).items():
        if is_replicates(run) and len(run) > 1:
            problem = f"{spell('costs')}: {name} has {len(run)} runs"
            raise InputError(f"{problem}, but costs need one run of each system. Give one run.")


def find_spends(
    over: str, counts: Mapping[str, Sequence[Mapping[float, Counts]]], costs: pl.DataFrame | None
) -> dict[str, list[Spends]]:
    """Return what each run of each system spent. A judged query with unknown costs in any system is left out for all systems."""
    # the counts at any threshold: searches and results do not depend on it
    counts_of = {}
    for name, runs in counts.items():
        counts_of[name] = [next(iter(by_rel.values())) for by_rel in runs]
    amount = OVER[over]
    if amount is None and costs is not None:
        first_runs = {name: counts_of_runs[0] for name, counts_of_runs in counts_of.items()}
        return _find_costs(over, first_runs, costs)

    spends: dict[str, list[Spends]] = {}
    for name, counts_of_runs in counts_of.items():
        spends[name] = []
        for run in counts_of_runs:
            rows = run.ledger.with_columns(spend=amount)
            spends[name].append(_add_up(run.pools.get_column("query_id"), rows))
    return spends


def _find_costs(over: str, counts: Mapping[str, Counts], costs: pl.DataFrame) -> dict[str, list[Spends]]:
    """Return the costs of each system up to each iteration. Each system has one run."""
    # per system: its costs (query_id, number, spend), and the rows of its ledger with their cost
    costs_of: dict[str, pl.DataFrame] = {}
    rows_of: dict[str, pl.DataFrame] = {}
    # per system: the iterations without a row of costs, of queries with costs
    without_row: dict[str, pl.DataFrame] = {}
    for name, run in counts.items():
        of_system = select_costs(costs, name, [*counts])
        of_system = of_system.select("query_id", number=pl.col("iteration").cast(pl.Int64), spend=over)
        # the ledger numbers iterations 1..N
        rows = run.ledger.with_columns(number=run.numbers)
        rows = rows.with_columns(pl.col("number") + _find_shift(name, rows, of_system))
        costs_of[name] = of_system.drop_nulls("spend")
        rows_of[name] = rows.join(costs_of[name], on=_NUMBER, how="left", maintain_order="left")
        _check_costs_by_iteration(over, name, rows_of[name], costs_of[name])
        with_costs = rows.join(costs_of[name], on="query_id", how="semi")
        without_row[name] = with_costs.join(of_system, on=_NUMBER, how="anti").sort(_NUMBER)

    with_cost = {name: rows.filter(pl.col("spend").is_not_null()) for name, rows in rows_of.items()}
    pools = {name: run.pools for name, run in counts.items()}
    query_ids = choose_known(over, pools, with_cost)
    for name, rows in rows_of.items():
        _warn_of_other_iterations(over, name, rows, costs_of[name])
        is_included = pl.col("query_id").is_in(query_ids.implode())
        _warn_of_iterations_without_row(over, name, without_row[name].filter(is_included))
    return {name: [_add_up(query_ids, rows)] for name, rows in rows_of.items()}


def _check_costs_by_iteration(over: str, system: str, rows: pl.DataFrame, costs: pl.DataFrame) -> None:
    """Raise `InputError` if all costs of a system are of whole queries (number 0), and an iteration of such a query has none."""
    without_cost = rows.filter(pl.col("spend").is_null())
    without_cost = without_cost.join(costs, on="query_id", how="semi")
    if len(without_cost) and not (costs.get_column("number") > 0).any():
        needed = f"of {system} are per query, and a curve needs them" if system else "are per query, and are needed"
        raise InputError(f"{spell('costs')}: the {over} {needed} per iteration. Use gg.spend.")


def _warn_of_other_iterations(over: str, system: str, rows: pl.DataFrame, costs: pl.DataFrame) -> None:
    """Give a notice of costs of iterations that the run does not have."""
    of_iterations = costs.filter(pl.col("number") > 0)
    of_queries = of_iterations.join(rows, on="query_id", how="semi")
    not_in_run = of_queries.join(rows, on=_NUMBER, how="anti").sort(_NUMBER)
    if len(not_in_run):
        query_id, number = not_in_run.select(_NUMBER).row(0)
        notice(
            "costs_of_other_iterations",
            f"{spell('costs')} has {over} for {count_of(len(not_in_run), 'iteration')} that {system or 'the run'} lacks, such as "
            f"iteration {number} of query {query_id}. These costs are left out. Number iterations as in the run.",
        )


def _warn_of_iterations_without_row(over: str, system: str, iterations: pl.DataFrame) -> None:
    """Give a notice of iterations of the run that the costs leave out, although the costs have other rows of the query."""
    if len(iterations):
        query_id, number = iterations.select(_NUMBER).row(0)
        subject = count_of(len(iterations), "iteration")
        notice(
            "iterations_without_costs",
            f"{spell('costs')} has no row for {subject} of {system or 'the run'}, such as iteration {number} of query {query_id}. "
            f"An iteration without a row has 0 {over}. Write a row for each iteration of the run.",
        )


def _find_shift(system: str, run: pl.DataFrame, costs: pl.DataFrame) -> int:
    """Return 1 if the run numbers iterations from 0 and the costs number them from 1, else 0.

    The costs are numbered from 1 if the costs of every query go beyond the last iteration of the query in the run. Rows
    without an amount also count. Raise `InputError` if both numberings are possible.
    """
    if run.get_column("number").min() != 0:
        return 0
    ends = run.group_by("query_id").agg(end=pl.col("number").max())
    numbers = ends.join(costs.drop_nulls("number"), on="query_id")
    # one value per query: whether its costs go beyond its last iteration
    goes_beyond = (pl.col("number") > pl.col("end")).any()
    passes = numbers.group_by("query_id").agg(goes_beyond).get_column("number")
    has_iteration_0 = (costs.get_column("number") == 0).any()
    if passes.any() and (has_iteration_0 or not passes.all()):
        raise InputError(
            f"{spell('costs')}: the run of {system} begins with iteration 0, and the costs may begin with 0 or 1. Number the "
            "searches in run and costs from 1. Iteration 0 of costs is then the query as a whole."
        )
    return int(passes.any())


def choose_known(quantity: str, pools: Mapping[str, pl.DataFrame], with_cost: Mapping[str, pl.DataFrame]) -> pl.Series:
    """Return the judged queries whose costs are known in all systems. If queries are left out, a notice says so.

    The costs of a query without searches (N = 0) count as known. `with_cost` maps systems to frames of their queries with costs.
    """
    query_ids = next(iter(pools.values())).get_column("query_id")
    without_costs: set[str] = set()
    for name, pool in pools.items():
        with_search = pool.filter(pl.col("N") > 0)
        is_known = pl.col("query_id").is_in(with_cost[name]["query_id"].implode())
        unknown = with_search.filter(~is_known)
        if len(unknown) and len(unknown) == len(with_search):
            fact = f"has no {quantity} for any judged query of {name or 'the run'}"
            raise InputError(f"{spell('costs')} {fact}. Write query ids and iterations as in the run.")
        without_costs.update(unknown.get_column("query_id"))
    if not without_costs:
        return query_ids

    is_left_out = query_ids.is_in(sorted(without_costs))
    if is_left_out.all():
        problem = f"{spell('costs')}: no judged query has {quantity} in all systems"
        raise InputError(f"{problem}. Give costs of the same queries for all systems.")
    notice(
        "queries_without_costs",
        f"{spell('costs')} has no {quantity} for {len(without_costs):,} of {len(query_ids):,} judged queries: "
        f"{join_examples(query_ids.filter(is_left_out))}. They are left out in all systems.",
    )
    return query_ids.filter(~is_left_out)


def _add_up(query_ids: pl.Series, rows: pl.DataFrame) -> Spends:
    """Return the spends of some queries. `rows` have the `spend` of each iteration alone; null counts as 0."""
    is_included = pl.col("query_id").is_in(query_ids.implode())
    rows = rows.filter(is_included).sort("query_id", "iteration")
    spend = pl.col("spend").fill_null(0.0).cum_sum().over("query_id")
    return Spends(query_ids, rows.select("query_id", "iteration", spend=spend))
