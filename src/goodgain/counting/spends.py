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
                "costs_of_other_iterations",
                f"{spell('costs')} has {over} for {lacking} that {name} lacks, such as iteration {number} of query {query_id}. "
                "The curve leaves these costs out. Number iterations as in the run.",
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
            "queries_without_costs",
            f"{spell('costs')} has no {what} for {len(lacking):,} of {len(kept):,} judged queries: "
            f"{join_examples(kept.filter(is_lacking))}. They are left out in all systems.",
        )
    return kept.filter(~is_lacking)


def _add_up(query_ids: pl.Series, rows: pl.DataFrame) -> Spends:
    of = rows.filter(pl.col("query_id").is_in(query_ids.implode())).sort("query_id", "iteration")
    spend = pl.col("spend").fill_null(0.0).cum_sum().over("query_id")
    return Spends(query_ids, of.select("query_id", "iteration", spend=spend))
