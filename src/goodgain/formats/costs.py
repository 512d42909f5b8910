"""What queries cost: reads the costs that `convert --costs` writes, or a table made by hand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import FrameRows, check_rows, lacks
from goodgain.files.opening import make_path
from goodgain.files.table_reading import cast_columns, read_frame, read_table
from goodgain.schema import COSTS

#: The columns of numbers; whole ones may be written 12.0.
AMOUNTS = ("calls", "input_tokens", "output_tokens", "seconds", "cost")
_NUMBERS = ("iteration", *AMOUNTS)
_TYPES = {name: pl.Float64() if name in _NUMBERS else dtype for name, dtype in COSTS.polars.items()}
_KEY = ["query_id", "system", "replicate", "iteration"]


def read_costs(source: Any) -> pl.DataFrame:
    """Read what queries cost.

    Args:
        source: a file, a frame, or a list of them: query_id[, system][, replicate][, iteration], and any of calls,
            input_tokens, output_tokens, seconds and cost. Without a system, rows are of the only run; without an iteration
            (or with iteration 0), of the query as a whole.

    Returns:
        The columns of `COSTS` and `tokens` (input and output); amounts are Float64, and null where unknown.

    Raises:
        InputError: a table cannot be read, has no amounts, has one that is negative or not a number, or two rows of the
            same iteration.
    """
    sources = source if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise InputError("costs=: is empty. Give a file or a frame.")
    frame = pl.concat([pl.DataFrame(schema=_TYPES), *map(_read_table, sources)], how="diagonal")
    twice = frame.filter(frame.select(_KEY).is_duplicated())
    if len(twice):
        query_id, system, _, iteration = twice.select(_KEY).row(0)
        of = "" if system is None else f" of {system}"
        place = "" if iteration is None else f", iteration {iteration:g}"
        raise InputError(f"costs=: two rows have query {query_id}{of}{place}. Write one row with the sum.")
    tokens = pl.sum_horizontal("input_tokens", "output_tokens", ignore_nulls=True)
    known = pl.any_horizontal(pl.col("input_tokens", "output_tokens").is_not_null())
    return frame.with_columns(tokens=pl.when(known).then(tokens))


def _read_table(source: Any) -> pl.DataFrame:
    if isinstance(source, (str, os.PathLike)):
        path = make_path(source, "costs=")
        read, rows, names = read_table(path, _TYPES)
    else:
        read = read_frame(source, "costs=")
        rows, names = FrameRows("costs="), read.columns
        read = read.select(name for name in _TYPES if name in names)
    if "query_id" not in names or not set(AMOUNTS) & set(names):
        lacking = "query_id" if "query_id" not in names else f"of {', '.join(AMOUNTS)}"
        raise InputError(
            f"{rows.label}: has no column {lacking} (it has {', '.join(names) or 'none'}). Rename its columns."
        )
    types = {name: COSTS.columns[name] if dtype == pl.String else nw.Float64() for name, dtype in _TYPES.items()}
    frame: pl.DataFrame = cast_columns(nw.from_native(read), types, rows.label).to_native()
    frame = frame.with_columns(pl.col(name).fill_nan(None) for name in _NUMBERS if name in frame.columns)
    checked: pl.DataFrame = check_rows(nw.from_native(frame), rows, _list_problems(frame.columns))[0].to_native()
    return checked


def _list_problems(names: Sequence[str]) -> list[tuple[nw.Expr, str]]:
    problems = [lacks("query_id")]
    for name in (name for name in _NUMBERS if name in names):
        number = nw.col(name)
        problems.append((~number.is_finite() | (number < 0), f"has the {name} {{{name}}}, which cannot be"))
    if "iteration" in names:
        number = nw.col("iteration")
        problems.append((number != number.round(), "has the iteration {iteration}, which is not a whole number"))
    return problems


def select_costs(costs: pl.DataFrame, system: str, systems: Sequence[str]) -> pl.DataFrame:
    """Return the costs of one of the systems: rows of its name, or of the name and replicate that `convert` gives its run.

    Raises:
        InputError: it has none, or those of several replicates; or rows name no system, and there are several runs.
    """
    without = costs.get_column("system").null_count()
    if without and (len(systems) > 1 or without < len(costs)):
        there = "several runs" if len(systems) > 1 else "rows that have one"
        raise InputError(f"costs=: rows have no system, and there are {there}. Add a column system with their names.")
    of = costs.filter(pl.col("system").fill_null(system) == system)
    if of.is_empty():
        of = costs.filter(pl.concat_str("system", "replicate", separator=".") == system)
    if of.is_empty():
        known = costs.get_column("system").unique().sort().to_list()
        raise InputError(f"costs= has no rows of the system {system}; it has {', '.join(known[:10])}. Rename one.")
    replicates = of.get_column("replicate").unique().sort(nulls_last=True).to_list()
    if len(replicates) > 1:
        first = f"{system}.{replicates[0]}"
        raise InputError(f"costs= has {len(replicates)} replicates of {system}. Name the run of one of them {first}.")
    return of
