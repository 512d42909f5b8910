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
    """Raise `InputError` for a negative price, for outcomes without costs, and for costs of several runs of a system."""
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
    found = {system: _Found.of([run[rel] for run in counts.runs]) for system, counts in counted.items()}
    quantities: list[_Quantity] = []
    if costs is not None:
        quantities += _list_ratios(found, costs, outcomes)
    for system, found_of_system in found.items():
        quantities += _list_stops(system, found_of_system, price)
    systems = [*found]
    quantities.sort(key=lambda quantity: systems.index(quantity.system))
    if per_query:
        return _drop_infinite(pl.concat(_list_values(quantity, found) for quantity in quantities))

    rows = []
    for quantity, interval in zip(quantities, _resample(quantities, settings), strict=True):
        queries = int(quantity.counted.sum())
        rows.append((quantity.system, quantity.name, quantity.total, *interval, queries, quantity.better))
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
        """Average the runs of a system. After its last iteration a query keeps its gain."""
        pools = runs[0].pools.select("query_id", "N").with_row_index("query")
        lengths = np.stack([run.pools.get_column("N").cast(pl.Float64).to_numpy() for run in runs])

        rows = pl.concat([run.ledger.select("query_id", "iteration", "G", "GR") for run in runs])
        rows = rows.join(pools.drop("N"), on="query_id")
        query = rows.get_column("query").to_numpy()
        iteration = rows.get_column("iteration").to_numpy()
        gains = np.zeros((len(pools), int(iteration.max(initial=1)) + 1))  # a row per query, a column per iteration
        np.add.at(gains, (query, iteration), rows.get_column("G").to_numpy())
        good = np.bincount(query, rows.get_column("GR").to_numpy(), minlength=len(pools)).astype(np.float64)
        return cls(pools.drop("query"), good / len(runs), gains.cumsum(axis=1) / len(runs), lengths)


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


def _list_values(quantity: _Quantity, found: Mapping[str, _Found]) -> pl.DataFrame:
    """Return the value of a quantity in each query; NaN where the query does not count."""
    values = np.where(quantity.counted, quantity.evaluate(quantity.columns), np.nan)
    return pl.select(
        system=pl.lit(quantity.system),
        query_id=found[quantity.system].pools["query_id"],
        quantity=pl.lit(quantity.name),
        value=pl.Series(values),
    )


def _divide(sums: Matrix) -> Vector:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Vector = sums[:, 0] / sums[:, 1]
    return ratio


def _find_enough(sums: Matrix) -> Vector:
    return _find_first(sums >= ENOUGH * sums[:, -1:] * (1 - RESIDUE))


def _find_first(holds: NDArray[np.bool_]) -> Vector:
    """Return the number of searches from which a condition holds. Column 0 is before the first search."""
    first: Vector = holds.argmax(axis=1).astype(np.float64)
    return first


def _list_stops(system: str, found: _Found, price: float | None) -> Iterator[_Quantity]:
    """Yield the numbers of searches after which a system could stop: SearchesFor95 and, with a price, SearchesWorthPrice."""
    yield _Quantity(system, "SearchesFor95", None, found.gains[:, -1] > 0, found.gains, _find_enough)
    if price is None:
        return
    number = found.gains.shape[1]
    searches = np.mean([np.minimum(np.arange(number), lengths[:, None]) for lengths in found.lengths], axis=0)

    def find_best(sums: Matrix) -> Vector:
        gains, paid = sums[:, :number], price * sums[:, number:]
        worth = gains - paid
        # differences that are only rounding errors count as equal
        rounding = RESIDUE * (gains + paid).max(axis=1, keepdims=True)
        most = worth.max(axis=1, keepdims=True) - rounding
        return _find_first(worth >= most)

    everyone = np.ones(len(found.pools), dtype=bool)
    yield _Quantity(system, "SearchesWorthPrice", None, everyone, np.hstack([found.gains, searches]), find_best)


def _list_ratios(
    found: Mapping[str, _Found], costs: pl.DataFrame, outcomes: pl.DataFrame | None
) -> Iterator[_Quantity]:
    """Yield the quantities of `_RATIOS` for the systems with such costs. TokensPerSolved needs outcomes."""
    ids = next(iter(found.values())).pools.get_column("query_id")
    solved = {} if outcomes is None else _arrange_solved(outcomes, ids, [*found])
    for what, name, better in _RATIOS:
        sums = sum_costs(costs, what, [*found])
        if not sums or (what == "tokens" and not solved):
            continue
        if lacking := ", ".join(system for system in found if system not in sums):
            notice(
                "systems_without_costs",
                f"{spell('costs')} has no {what} of {lacking}. {name} is computed for the other systems.",
            )

        known = choose_known(what, {system: found[system].pools for system in sums}, sums)
        counted = ids.is_in(known.implode()).to_numpy()
        if what == "tokens":
            counted = _drop_unknown(name, ids, counted, solved)
        for system, sums_of_system in sums.items():
            total = ids.to_frame().join(sums_of_system, on="query_id", how="left", maintain_order="left")
            paid = total.get_column(what).fill_null(0.0).to_numpy()
            parts: Any = {
                "cost": (paid, found[system].good),
                "calls": (found[system].gains[:, -1], paid),
                "tokens": (paid, solved.get(system)),
            }
            yield _Quantity(system, name, better, counted, np.stack(parts[what], axis=1), _divide)


def _arrange_solved(table: pl.DataFrame, ids: pl.Series, systems: Sequence[str]) -> dict[str, Vector]:
    """Return outcomes by system, from the column `solved` or, without that column, from the only outcome. Unknown outcomes: NaN."""
    names = [name for name in table.columns[2:] if name != COMPLETED] or [COMPLETED]
    if "solved" not in names and len(names) > 1:
        fault = f"{spell('outcomes')}: has the columns {', '.join(names)}"
        raise InputError(f"{fault}. Rename the column of solved tasks to 'solved'.")
    name = "solved" if "solved" in names else names[0]
    stacked = stack_outcomes(table.select("query_id", "system", name), None, systems, [])
    return dict(zip(systems, arrange_values(stacked, [name], systems, ids)[name], strict=True))


def _drop_unknown(
    name: str, ids: pl.Series, counted: NDArray[np.bool_], solved: Mapping[str, Vector]
) -> NDArray[np.bool_]:
    """Return the queries of `counted` that have an outcome in all systems. A notice names the others."""
    has_outcome = np.isfinite([*solved.values()]).all(axis=0)
    if not (counted & has_outcome).any():
        fault = f"{spell('outcomes')} has no query with costs that has an outcome in all systems"
        raise InputError(f"{fault}. Check query ids.")
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
    groups: dict[bytes, list[int]] = {}  # the queries that count -> places of quantities
    for k, quantity in enumerate(quantities):
        groups.setdefault(quantity.counted.tobytes(), []).append(k)
    for places in groups.values():
        counted = quantities[places[0]].counted
        number = int(counted.sum())
        if not number:
            continue
        columns = {k: quantities[k].columns[counted] for k in places}
        for times in draw_queries(number, settings.seed, settings.resamples):  # how often each query is drawn
            for k, summands in columns.items():
                values[k] = np.append(values[k], quantities[k].evaluate(times @ summands))

    tails = [settings.alpha / 2, 1 - settings.alpha / 2]
    intervals = []
    for values_of_quantity in values:
        known = values_of_quantity[~np.isnan(values_of_quantity)]  # 0 / 0 says nothing
        low, high = math.nan, math.nan
        if len(known):  # infinite values have no mean, so each end is one of the values
            low, high = np.quantile(known, tails, method="inverted_cdf")
        intervals.append((float(low), float(high)))
    return intervals


def _drop_infinite(rows: pl.DataFrame) -> pl.DataFrame:
    numbers = cs.float()
    return rows.with_columns(pl.when(numbers.is_finite()).then(numbers))
