"""Defines measures over iterations from Python functions of users."""

from __future__ import annotations

import hashlib
import inspect
import keyword
import re
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import ir_measures
import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import MeasureError, notice
from goodgain.measures.declaration import DECLARATIONS, NOT_SEARCHED, DeclaredMeasure
from goodgain.measures.families import HOST_NAMES
from goodgain.measures.good_gain import GOOD
from goodgain.measures.names_elsewhere import READ_AS
from goodgain.measures.parameters import Rule, is_number
from goodgain.measures.searches import Searches
from goodgain.measures.users_values import Definition, value_at_cutoff

#: The kinds of costs that a function can read, one column each.
COSTS = ("tokens", "cost", "seconds")
#: The largest cutoff: a function gets a row for each iteration up to it.
_MOST_ITERATIONS = 10_000
_CUTOFF = Rule(
    f"a number of iterations, from 1 to {_MOST_ITERATIONS:,}",
    lambda value: type(value) is int and 1 <= value <= _MOST_ITERATIONS,
)
_KEY = ["query_id", "iteration"]
_NAME = re.compile("[A-Za-z][A-Za-z0-9_]*")


@checks_kinds
def define(
    name: str,
    function: Callable[[pl.DataFrame], Any],
    *,
    better: Literal["up", "down"] | None,
    title: str | None = None,
    bounds: tuple[float, float] | None = None,
    costs: str | Sequence[str] = (),
) -> Any:
    """Define a measure over iterations by a function, and return the measure.

    After the call, the name works like the names of goodgain's measures: `evaluate(qrels, run, "FirstGood(rel=1)@3")`. `@i` is
    a cutoff in iterations, and `rel` the smallest good label (2 unless given).

    Args:
        name: a new name of letters, digits and _, such as "FirstGood". A second definition replaces the first, with a notice
            if the source differs.
        function: takes the ledger's rows of one query (a Polars frame), and returns a number, or None for no value.
        better: `up` if higher values are better, `down` if lower values are, None if neither.
        title: the full name, for tables and reports.
        bounds: the smallest and the largest value; None without bounds. A value outside the bounds is an error. They contain 0 if a
            query that was not searched has the value 0.
        costs: `tokens`, `cost` or `seconds`, or a list of them. Each is one more column of the rows. The measure then needs
            the table of costs (`evaluate(..., costs=)`), and works in evaluate, compare, check and report only.

    Returns:
        The measure, with the type of ir_measures' measures: `FirstGood @ 3`, `FirstGood(rel=1)`.

    Raises:
        MeasureError: the name is not free, or an argument is wrong. Scoring raises it if the function fails.

    The function gets one row per iteration, in order:

    - `query_id`, `iteration`: 1, 2, ... up to the cutoff, else up to the last iteration of the query
    - `R`, `UR`, `Dup`: results of the iteration, new documents, repeats
    - `GR`, `G`, `Unjudged`: new good documents, the sum of their labels, new documents without a label
    - `N`: iterations of the query; `GoodPool`, `GainPool`: good documents in the qrels, the sum of their labels
    - `tokens`, `cost`, `seconds`: what the iteration cost, if `costs` names the column

    With a cutoff after the last iteration, the added rows have 0 in place of counts and costs. The function is not called for
    a query that was not searched: its value is 0, or null if lower is better or the measure needs costs. A mean is over all
    queries with a value.

    Source: the Retrieved Good Gain guideline, for the columns R to G.

    >>> def find_first_good(rows):
    ...     return rows.filter(pl.col("GR") > 0)["iteration"].min()
    >>> FirstGood = define("FirstGood", find_first_good, better="down", title="First good iteration")
    >>> from goodgain import evaluate
    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
    >>> evaluate({"q": {"b": 3}}, run, "FirstGood").mean()
    {'FirstGood': 2.0}
    """
    _check_name(name)
    definition = _make_definition(name, function, better, title, bounds, costs)
    _warn_of_other_source(definition)
    return _register(definition)


def _make_definition(
    name: str, function: Any, better: Any, title: str | None, bounds: Any, costs: str | Sequence[str]
) -> Definition:
    """Check the arguments of `define`, and return the declaration of the measure. `costs` are names of costs it needs."""
    columns = _check_costs(name, costs)
    if not callable(function):
        raise MeasureError(f"{name}: {function!r} is not a function. Give a function of the rows of a query.")
    if not isinstance(title, str | None):
        raise MeasureError(f"{name}: title={title!r} is not a text. Give the full name of the measure.")
    if better not in ("up", "down", None):
        raise MeasureError(f"{name}: better={better!r} is not 'up', 'down' or None. Choose one of them.")

    texts_of_bounds = _write_bounds(name, bounds)
    nulls = ["its function returns None"]
    if better == "down" or columns:
        nulls.append(NOT_SEARCHED)
    if columns:
        nulls.append("costs= lacks the query")
    if NOT_SEARCHED not in nulls and bounds is not None and not bounds[0] <= 0 <= bounds[1]:
        raise MeasureError(
            f"{name}: 0, the value of a query that was not searched, is outside the bounds {bounds!r}. Widen them."
        )

    definition = Definition(
        name,
        title or name,
        _describe(function),
        function,
        source=f"your function {_name(function)}",
        family="defined",
        better=better,
        bounds=texts_of_bounds,
        own=GOOD,
        rules={"cutoff": _CUTOFF},
        null_if=", or ".join(nulls),
        table=lambda _parameters: "costs" if columns else "",
        by_iteration=True,
        by_repeats=True,
        function=function,
        costs=columns,
        digest=_digest(function),
        maker=_make_again,
        arguments=(name, function, better, title, bounds, costs),
    )

    if not columns:
        return definition
    return replace(definition, formula=partial(_score_with_costs, definition))


def _make_again(parameters: dict[str, Any], name: str, *arguments: Any) -> Any:
    """Return a measure with `parameters` in a process that may lack its definition."""
    definition = _make_definition(name, *arguments)
    _register(definition)
    return definition.measure(**parameters)


def _check_name(name: Any) -> None:
    """Raise `MeasureError` for a name that is not an identifier, or that another measure has. A user may define one again."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise MeasureError(
            f"{name!r} cannot be the name of a measure: write letters, digits and _, such as 'FirstGood'"
        )
    registry = ir_measures.measures.registry
    in_ir_measures = [other for other, measure in registry.items() if not _is_users(measure)]
    declared = [other for other, facts in DECLARATIONS.items() if not isinstance(facts, Definition)]
    taken = {*in_ir_measures, *declared, *READ_AS, "DCG"}

    is_equal = [other for other in taken if _simplify(other) == _simplify(name)]
    if is_equal:
        raise MeasureError(f"{name}: there is a measure {min(is_equal)} already. Choose another name.")


def _simplify(name: str) -> str:
    """Return the letters that tell names apart: hosts write names in lower case, with or without _."""
    return name.replace("_", "").lower()


def _is_users(measure: Any) -> bool:
    return isinstance(getattr(measure, "declaration", None), Definition)


def _check_costs(name: str, costs: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of costs as a tuple. Raise `MeasureError` for an unknown one."""
    columns = (costs,) if isinstance(costs, str) else tuple(costs)
    for column in columns:
        if column not in COSTS:
            raise MeasureError(f"{name}: the costs {column!r} are not one of {', '.join(COSTS)}. Choose from them.")
    return columns


def _write_bounds(name: str, bounds: tuple[float, float] | None) -> tuple[str, str]:
    """Return the smallest and the largest value as texts, as `Declaration.bounds` has them. None: any number is allowed."""
    if bounds is None:
        return "-inf", ""
    is_pair = isinstance(bounds, (tuple, list)) and len(bounds) == 2
    if not is_pair or not all(map(is_number, bounds)) or bounds[0] >= bounds[1]:
        raise MeasureError(
            f"{name}: the bounds {bounds!r} are not a smaller and a larger number. Write (0, 1), or None."
        )
    return _write_exactly(bounds[0]), _write_exactly(bounds[1])


def _write_exactly(number: float) -> str:
    """Return a short text whose number is `number`: 1, 0.5, 1234567.5."""
    text = f"{number:g}"
    return text if float(text) == number else repr(float(number))


def _describe(function: Callable[..., Any]) -> str:
    """Return the first line of the docstring of a function, or the name of the function."""
    docstring = inspect.getdoc(function) if inspect.isfunction(function) else None
    lines = (docstring or "").splitlines()
    return lines[0].rstrip(".") if lines else f"the value of {_name(function)}"


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _digest(function: Callable[..., Any]) -> str:
    """Return a short digest of the source of a function, or of its code if no file has the source."""
    target: Any = function if inspect.isfunction(function) else type(function)
    try:
        text = inspect.cleandoc(inspect.getsource(target))
    except (OSError, TypeError):
        text = repr(_list_code(target.__code__)) if inspect.isfunction(target) else repr(target)
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _list_code(code: types.CodeType) -> list[Any]:
    constants = []
    for constant in code.co_consts:
        constants.append(_list_code(constant) if inspect.iscode(constant) else constant)
    return [code.co_code, code.co_names, code.co_varnames, constants]


def _warn_of_other_source(definition: Definition) -> None:
    """Give a notice if the same name was defined with another function or other settings."""
    before = DECLARATIONS.get(definition.name)
    if not isinstance(before, Definition):
        return
    old = before.digest, before.better, before.bounds, before.costs
    if old != (definition.digest, definition.better, definition.bounds, definition.costs):
        notice(
            "defined_again", f"{definition.name} was defined differently before. From now on the new definition counts."
        )


def _register(definition: Definition) -> DeclaredMeasure:
    """Make the name known to goodgain, ir_measures and the hosts that write names in lower case."""
    name, measure = definition.name, definition.measure
    if not isinstance(measure, DeclaredMeasure):
        raise TypeError(f"{name} is not a measure")
    DECLARATIONS[name] = definition
    ir_measures.measures.registry[name] = measure
    HOST_NAMES.pop(definition.host_name, None)
    if not definition.costs:
        HOST_NAMES[definition.host_name] = measure  # type: ignore[assignment]  # over the ledger
    return measure


def _score_with_costs(definition: Definition, searches: Searches) -> pl.DataFrame:
    """Return query_id and value of each query whose costs are known."""
    measure: Any = definition.measure
    measure = measure(**searches.parameters)
    counts = searches.count(measure.rel)

    # the table has sums, the function gets the amount of each iteration
    costs = counts.ledger.select(_KEY)
    before = pl.col("spend").shift(fill_value=0.0).over("query_id")
    for name in definition.costs:
        spends = searches.tables["costs"].filter(over=name).sort(_KEY)
        amounts = spends.select(*_KEY, (pl.col("spend") - before).alias(name))
        costs = costs.join(amounts, on=_KEY)

    pools = counts.pools.join(costs, on="query_id", how="semi", maintain_order="left")
    values = value_at_cutoff(measure, counts._replace(pools=pools), costs)
    return pools.select("query_id", value=values)
