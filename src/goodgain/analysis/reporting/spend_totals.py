"""Computes costs per good document, costs per solved task, and the number of searches for 95 % of the gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from goodgain.analysis.comparing.outcomes import stack_outcomes
from goodgain.analysis.comparing.pairs_table import arrange_values
from goodgain.analysis.reporting.curves import SystemCounts
from goodgain.analysis.reporting.spends import ENOUGH, sum_costs
from goodgain.counting.coverage import join_examples
from goodgain.counting.ledger import Counts
from goodgain.counting.spends import check_costs_of_runs, choose_known
from goodgain.errors import InputError, count_of, notice
from goodgain.measures.parameters import is_number
from goodgain.options import spell
from goodgain.schema import COMPLETED
from goodgain.statistics.statistical_tests import RESIDUE, Matrix, Settings, Vector, draw_queries

_COLUMNS = {
    **dict.fromkeys(("system", "quantity"), pl.String),
    **dict.fromkeys(("value", "low", "high"), pl.Float64),
    "queries": pl.Int64,
    "better": pl.String,
}


def check_spend_options(runs: Mapping[str, Any], price: float | None, costs: Any, outcomes: Any) -> None:
    if price is not None and not (is_number(price) and price >= 0):
        raise InputError(f"{spell('price_per_search', price)}: give a number of 0 or more, in units of CG.")
    if outcomes is not None and costs is None:
        raise InputError(f"{spell('outcomes')}: needs {spell('costs')}, the file that goodgain convert --costs writes.")
    check_costs_of_runs(costs, runs)


def tabulate_spend(
    counted: Mapping[str, SystemCounts],
    rel: float,
    settings: Settings,
    *,
    costs: pl.DataFrame | None = None,
    outcomes: pl.DataFrame | None = None,
    price: float | None = None,
    per_query: bool = False,
) -> pl.DataFrame:
    """Return the table of `gg.spend`. `costs` is what `read_costs` returns, and `outcomes` what `read_outcomes` returns."""
    found = {name: _Found.of([run[rel] for run in counts.runs]) for name, counts in counted.items()}
    ratios = [] if costs is None else list(_list_ratios(found, costs, outcomes))
    quantities = [*ratios, *(one for name, of in found.items() for one in _list_stops(name, of, price))]
    quantities.sort(key=lambda one: [*found].index(one.system))
    if per_query:
        values = [
            pl.select(
                system=pl.lit(one.system),
                query_id=found[one.system].pools["query_id"],
                quantity=pl.lit(one.name),
                value=pl.Series(np.where(one.counted, one.evaluate(one.columns), np.nan)),
            )
            for one in quantities
        ]
        return _drop_infinite(pl.concat(values))
    rows = [
        (one.system, one.name, one.total, *ends, int(one.counted.sum()), one.better)
        for one, ends in zip(quantities, _resample(quantities, settings), strict=True)
    ]
    return _drop_infinite(pl.DataFrame(rows, schema=_COLUMNS, orient="row"))


#: Column of the costs, the quantity that needs this column, and the better direction of the quantity.
_RATIOS = (("cost", "CostPerGood", "down"), ("calls", "GainPerCall", "up"), ("tokens", "TokensPerSolved", "down"))


class _Found(NamedTuple):
    """What a system found in each judged query: means over the runs of the system."""

    pools: pl.DataFrame  # query_id, N of the first run
    good: Vector  # the number of good documents
    gains: Matrix  # CG at the iterations 0, 1, ... in columns
    lengths: Matrix  # the number of iterations: a row per run

    @classmethod
    def of(cls, runs: Sequence[Counts]) -> _Found:
        pools = runs[0].pools.select("query_id", "N").with_row_index("query")
        lengths = np.stack([run.pools.get_column("N").cast(pl.Float64).to_numpy() for run in runs])
        rows = pl.concat([run.ledger.select("query_id", "iteration", "G", "GR") for run in runs])
        rows = rows.join(pools.drop("N"), on="query_id")
        query, iteration = rows.get_column("query").to_numpy(), rows.get_column("iteration").to_numpy()
        new = np.zeros((len(pools), int(iteration.max(initial=1)) + 1))
        np.add.at(new, (query, iteration), rows.get_column("G").to_numpy())
        good = np.bincount(query, rows.get_column("GR").to_numpy(), minlength=len(pools)).astype(np.float64)
        return cls(pools.drop("query"), good / len(runs), new.cumsum(axis=1) / len(runs), lengths)


class _Quantity(NamedTuple):
    system: str
    name: str
    better: str | None
    counted: NDArray[np.bool_]  # which queries count
    columns: Matrix  # the summands: a row per query
    evaluate: Callable[[Matrix], Vector]  # takes rows of sums, and returns a value for each

    @property
    def total(self) -> float:
        """The value of the quantity over all queries in `counted`, or NaN if there are none."""
        sums = self.columns[self.counted].sum(axis=0, keepdims=True)
        return float(self.evaluate(sums)[0]) if self.counted.any() else math.nan


def _divide(sums: Matrix) -> Vector:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Vector = sums[:, 0] / sums[:, 1]
    return ratio


def _find_enough(sums: Matrix) -> Vector:
    return _find_first(sums >= ENOUGH * sums[:, -1:] * (1 - RESIDUE))


def _find_first(holds: NDArray[np.bool_]) -> Vector:
    first: Vector = holds.argmax(axis=1).astype(np.float64)
    return first


def _list_stops(system: str, found: _Found, price: float | None) -> Iterator[_Quantity]:
    yield _Quantity(system, "SearchesFor95", None, found.gains[:, -1] > 0, found.gains, _find_enough)
    if price is None:
        return
    number = found.gains.shape[1]
    searches = np.mean([np.minimum(np.arange(number), of_run[:, None]) for of_run in found.lengths], axis=0)

    def find_best(sums: Matrix) -> Vector:
        paid = price * sums[:, number:]
        worth = sums[:, :number] - paid  # differences that are only rounding errors count as equal
        most = worth.max(axis=1, keepdims=True) - RESIDUE * (sums[:, :number] + paid).max(axis=1, keepdims=True)
        return _find_first(worth >= most)

    everyone = np.ones(len(found.pools), dtype=bool)
    yield _Quantity(system, "SearchesWorthPrice", None, everyone, np.hstack([found.gains, searches]), find_best)


def _list_ratios(
    found: Mapping[str, _Found], costs: pl.DataFrame, outcomes: pl.DataFrame | None
) -> Iterator[_Quantity]:
    ids = next(iter(found.values())).pools.get_column("query_id")
    solved = {} if outcomes is None else _arrange_solved(outcomes, ids, [*found])
    for what, name, better in _RATIOS:
        having = sum_costs(costs, what, [*found])
        if not having or (what == "tokens" and not solved):
            continue
        if lacking := ", ".join(system for system in found if system not in having):
            notice(
                "systems_without_costs",
                f"{spell('costs')} has no {what} of {lacking}. {name} is computed for the other systems.",
            )
        kept = choose_known(what, {system: found[system].pools for system in having}, having)
        counted = ids.is_in(kept.implode()).to_numpy()
        if what == "tokens":
            counted = _drop_unknown(name, ids, counted, solved)
        for system, rows in having.items():
            total = ids.to_frame().join(rows, on="query_id", how="left", maintain_order="left")
            paid, of = total.get_column(what).fill_null(0.0).to_numpy(), found[system]
            parts = {"cost": (paid, of.good), "calls": (of.gains[:, -1], paid), "tokens": (paid, solved.get(system))}
            yield _Quantity(system, name, better, counted, np.stack(parts[what], axis=1), _divide)  # type: ignore[arg-type]


def _arrange_solved(table: pl.DataFrame, ids: pl.Series, systems: Sequence[str]) -> dict[str, Vector]:
    """Return outcomes by system, from the column `solved` or, without that column, from the only outcome. Unknown outcomes: NaN."""
    names = [name for name in table.columns[2:] if name != COMPLETED] or [COMPLETED]
    if "solved" not in names and len(names) > 1:
        told = f"{spell('outcomes')}: has the columns {', '.join(names)}"
        raise InputError(f"{told}. Rename the column of solved tasks to 'solved'.")
    name = "solved" if "solved" in names else names[0]
    stacked = stack_outcomes(table.select("query_id", "system", name), None, systems, [])
    return dict(zip(systems, arrange_values(stacked, [name], systems, ids)[name], strict=True))


def _drop_unknown(
    name: str, ids: pl.Series, counted: NDArray[np.bool_], solved: Mapping[str, Vector]
) -> NDArray[np.bool_]:
    has_outcome = np.isfinite([*solved.values()]).all(axis=0)
    if not (counted & has_outcome).any():
        told = f"{spell('outcomes')} has no query with costs that has an outcome in all systems"
        raise InputError(f"{told}. Check query ids.")
    lacking = ids.filter(counted & ~has_outcome)
    if len(lacking):
        left_out = count_of(len(lacking), "query", "queries")
        notice(
            "queries_without_outcomes",
            f"{name} leaves out {left_out} for which a system has no outcome: {join_examples(lacking)}.",
        )
    return counted & has_outcome


def _resample(quantities: Sequence[_Quantity], settings: Settings) -> list[tuple[float, float]]:
    """Return a bootstrap percentile interval for each quantity (NaN if unknown). Quantities over the same queries share samples."""
    values = [np.empty(0)] * len(quantities)
    groups: dict[bytes, list[int]] = {}
    for k, one in enumerate(quantities):
        groups.setdefault(one.counted.tobytes(), []).append(k)
    for group in groups.values():
        counted = quantities[group[0]].counted
        columns = {k: quantities[k].columns[counted] for k in group}
        number = int(counted.sum())
        for times in draw_queries(number, settings.seed, settings.resamples) if number else ():
            for k, of in columns.items():
                values[k] = np.append(values[k], quantities[k].evaluate(times @ of))
    ends, tails = [], [settings.alpha / 2, 1 - settings.alpha / 2]
    for of in values:
        known = of[~np.isnan(of)]  # 0 / 0 says nothing
        # infinite values have no mean, so each end is one of the values
        low, high = np.quantile(known, tails, method="inverted_cdf") if len(known) else (math.nan, math.nan)
        ends.append((float(low), float(high)))
    return ends


def _drop_infinite(rows: pl.DataFrame) -> pl.DataFrame:
    numbers = cs.float()
    return rows.with_columns(pl.when(numbers.is_finite()).then(numbers))
