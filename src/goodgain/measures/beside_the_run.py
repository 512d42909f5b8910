"""Declares measures of iterations that need a table beside run and qrels, with search strings or costs.

For formulas, see `session_measures.py`.
"""

import math
import unicodedata
from collections.abc import Iterable
from functools import partial
from typing import Any

import polars as pl
from ir_measures.measures import ParamInfo

from goodgain.measures.declaration import DECLARATIONS, NOT_SEARCHED, Declaration, GoodGainMeasure, declare
from goodgain.measures.good_gain import AT_I, GOOD
from goodgain.measures.names import parse_if_measure, parse_inner
from goodgain.measures.parameters import Rule
from goodgain.measures.searches import Searches

_KEY = ["query_id", "iteration"]
#: A spend that is larger than the budget by this share is equal to it up to rounding.
_ROUNDING = 1e-12
#: The most searches in a budget: the measure is computed after each search.
_MOST_SEARCHES = 1_000


def _share_repeated(searches: Searches) -> pl.DataFrame:
    """Return the value of RepeatedQueries. A call without a text repeats none; without any text, a query has no value."""
    searched = searches.lengths
    rows = searches.tables["results"].join(searched, on="query_id", how="semi", maintain_order="left")
    if searches.upto:
        number = pl.col("iteration").rank("dense").over("query_id")
        rows = rows.filter(number <= searches.upto)
    rows = rows.with_columns(text=pl.col("search_query").map_elements(_normalise, pl.String))

    is_first = pl.struct("query_id", "text", "arguments").is_first_distinct()
    is_repeated = pl.col("text").is_not_null() & ~is_first
    has_texts = pl.col("text").count() > 0
    by_query = rows.with_columns(repeated=is_repeated).group_by("query_id", maintain_order=True)
    return by_query.agg(value=pl.when(has_texts).then(pl.col("repeated").mean()))


def _normalise(text: str) -> str | None:
    """Return a search string in NFKC, case-folded and with white space collapsed; None if nothing is left."""
    normal = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(normal.split()) or None


def _find_area(searches: Searches) -> pl.DataFrame:
    """Return the value of AreaOver: NaN for a query with an iteration whose spend is unknown."""
    over, budget = searches.parameters["over"], searches.parameters["budget"]
    inner: Any = parse_inner(AreaOver(**searches.parameters))
    if over == "searches":
        at_iterations = _score_at(inner, range(1, budget + 1), searches)
        return at_iterations.select("query_id", value=pl.mean_horizontal(pl.exclude("query_id")))

    values = _score_by_spend(inner, over, searches)
    begin = pl.col("spend")
    end = begin.shift(-1).over("query_id").fill_null(budget)
    width = end.clip(0, budget) - begin.clip(0, budget)
    steps = values.with_columns(step=pl.col("value") * width)

    is_known = begin.is_not_null().all()
    area = pl.when(is_known).then(pl.col("step").sum() / budget).otherwise(math.nan)
    return steps.group_by("query_id", maintain_order=True).agg(value=area)


def _find_value_at(searches: Searches) -> pl.DataFrame:
    """Return the value of ValueAt: NaN for a query with an iteration whose spend is unknown."""
    over, budget = searches.parameters["over"], searches.parameters["budget"]
    inner: Any = parse_inner(ValueAt(**searches.parameters))
    if over == "searches":
        at_budget = str(inner(cutoff=budget))
        return _score_at(inner, [budget], searches).rename({at_budget: "value"})

    values = _score_by_spend(inner, over, searches)
    is_known = pl.col("spend").is_not_null().all()
    is_paid = pl.col("spend") <= budget * (1 + _ROUNDING)  # a sum of costs is rounded
    value = pl.col("value").filter(is_paid).last().fill_null(0.0)
    reached = pl.when(is_known).then(value).otherwise(math.nan)
    return values.group_by("query_id", maintain_order=True).agg(value=reached)


def _score_at(inner: Any, iterations: Iterable[int], searches: Searches) -> pl.DataFrame:
    """Return the value of `inner` at each of the iterations: a row per query, a column per iteration."""
    from goodgain.measures.ledger_values import final_values  # imported when something is scored

    measures = [inner(cutoff=iteration) for iteration in iterations]
    return final_values(measures, {inner.rel: searches.count(inner.rel)})


def _score_by_spend(inner: Any, over: str, searches: Searches) -> pl.DataFrame:
    """Return a row per iteration: query_id, iteration, the `value` of `inner`, and the `spend` so far (null if unknown)."""
    from goodgain.measures.ledger_values import running_values  # imported when something is scored

    counts = searches.count(inner.rel)
    if over == "results":
        results = pl.col("R").cum_sum().over("query_id")
        spends = counts.ledger.select(*_KEY, spend=results.cast(pl.Float64))
    else:
        spends = searches.tables["costs"].filter(over=over).select(*_KEY, "spend")

    values = running_values([inner], {inner.rel: counts}).rename({str(inner): "value"})
    return values.join(spends, on=_KEY, how="left").sort(_KEY)


def _is_along_iterations(name: Any) -> bool:
    measure = parse_if_measure(name)
    if not isinstance(measure, GoodGainMeasure) or measure.cutoff is not None:
        return False
    return _always_has_value(measure.declaration)


def _always_has_value(declared: Declaration) -> bool:
    """Return whether a measure of iterations has a value at each iteration, also of a query without results."""
    return not (declared.cutoff == "none" or declared.null_if or declared.needs_results)


_NOT_ALONG_ITERATIONS = ", ".join(
    name
    for name, declared in DECLARATIONS.items()
    if isinstance(declared.measure, GoodGainMeasure) and not _always_has_value(declared)
)


_declare = partial(declare, {"family": "session", "by_iteration": True})
RepeatedQueries = _declare(
    "RepeatedQueries",
    "Repeated Queries",
    "search calls up to iteration i that repeat an earlier one of the query / search calls up to i; a call repeats another if its "
    "search string is equal in NFKC, case-folded, with white space collapsed, and all other arguments are equal",
    _share_repeated,
    better="down",
    source="searches that repeat a search, as in the loop detection of agents",
    own=AT_I,
    example=("RepeatedQueries@2", 0.5),
    needs_labels=False,
    counts_repeats=True,
    null_if=f"{NOT_SEARCHED}, or its searches have no strings",
    table=lambda _parameters: "results",
    remark="it needs results=, and labels and rel have no effect on it",
)


def _sum_costs(searches: Searches, column: str) -> pl.DataFrame:
    totals = searches.tables["costs"].filter(over=f"total {column}")
    of_searched = totals.join(searches.lengths, on="query_id", how="semi")
    return of_searched.select("query_id", value="spend")


_OF_QUERIES = {
    "bounds": ("0", ""),
    "better": "down",
    "own": {},
    "by_iteration": False,
    "needs_labels": False,
    "null_if": f"{NOT_SEARCHED}, costs= lacks the query, or in `compare` the query broke off",
    "table": lambda _parameters: "costs",
    "remark": "it needs costs=, and sums all rows of the query, also those of the query as a whole",
}
Tokens = _declare(
    "Tokens",
    "Tokens",
    "input and output tokens of the query",
    lambda searches: _sum_costs(searches, "tokens"),
    source="the costs of convert --costs",
    total="tokens",
    example=("Tokens", 600.0),
    **_OF_QUERIES,
)
Cost = _declare(
    "Cost",
    "Cost",
    "cost of the query, in the currency of costs=",
    lambda searches: _sum_costs(searches, "cost"),
    source="the costs of convert --costs",
    total="cost",
    example=("Cost", 0.5),
    **_OF_QUERIES,
)
Seconds = _declare(
    "Seconds",
    "Seconds",
    "seconds of the query",
    lambda searches: _sum_costs(searches, "seconds"),
    source="the costs of convert --costs",
    total="seconds",
    example=("Seconds", 6.0),
    **_OF_QUERIES,
)
Calls = _declare(
    "Calls",
    "Search Calls",
    "search calls of the query; NumIter counts parallel calls once",
    lambda searches: _sum_costs(searches, "calls"),
    source="the costs of convert --costs",
    total="calls",
    example=("Calls", 2.0),
    **_OF_QUERIES,
)
_OF_BUDGETS = {
    "bounds": ("0", ""),
    "own": {
        "measure": ParamInfo(dtype=str, default="nCG", desc="a good-gain measure or count without @"),
        "over": ParamInfo(
            dtype=str,
            choices=["searches", "results", "tokens", "cost", "seconds"],
            default="searches",
            desc="what is spent; tokens, cost and seconds need costs=",
        ),
        "budget": ParamInfo(dtype=(int, float), required=True, desc="the most that is spent"),
        "rel": ParamInfo(dtype=(int, float), desc=GOOD["rel"].desc),
    },
    "rules": {
        "measure": Rule(
            f"a good-gain measure or count without @, such as 'nCG', but not {_NOT_ALONG_ITERATIONS} or a measure of your own",
            _is_along_iterations,
        )
    },
    "inner": parse_inner,
    "takes": lambda given: (
        given["over"] != "searches" or (type(given["budget"]) is int and given["budget"] <= _MOST_SEARCHES)
    ),
    "null_if": f"costs= is needed and {NOT_SEARCHED}, or costs= lacks the query",
    "table": lambda given: "" if given["over"] in ("searches", "results") else "costs",
}
_LOWER = "the better direction is that of the measure; if lower is better, a query that was not searched has no value"
_WHOLE = "a budget of searches is a whole number up to 1,000"
AreaOver = _declare(
    "AreaOver",
    "Area Over a Budget",
    "with over='searches' the mean of the measure at iterations 1..budget; else (1/budget) * the integral of the measure over "
    "spends from 0 to budget: its value at the last iteration that is paid, 0 before the first",
    _find_area,
    source="the area under `curve` with over=, as anytime evaluation takes it",
    example=("AreaOver(measure='CG',budget=2)", 4.0),
    remark=f"{_LOWER}; {_WHOLE}",
    **_OF_BUDGETS,
)
ValueAt = _declare(
    "ValueAt",
    "Value at a Budget",
    "the measure when the budget is spent: with over='searches' at iteration `budget`, else at the last iteration whose spend so "
    "far is at most the budget; 0 if the first iteration costs more",
    _find_value_at,
    source="a point of `curve` with over=",
    example=("ValueAt(measure='CG',over='results',budget=5)", 3.0),
    remark=f"@ always counts iterations, so nCG@20000 is not a budget; {_LOWER}; {_WHOLE}",
    **_OF_BUDGETS,
)
