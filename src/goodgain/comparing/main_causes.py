"""The main cause of a difference: the documents, or the part of a rate, that moved it most in its own direction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from goodgain.comparing.causes import Parts, add_up
from goodgain.comparing.rendering import count_queries, show
from goodgain.comparing.statistical_tests import RESIDUE
from goodgain.errors import count_of
from goodgain.measures.good_gain import NumDup

if TYPE_CHECKING:
    from goodgain.comparing.explanation_screens import Account

#: Part of a rate -> what it adds to the difference of a query. Where a denominator is 0, the difference has no other parts.
_PARTS = {
    "numerator": pl.col("from_numerator"),
    "denominator": pl.col("from_denominator"),
    "none": pl.when(pl.col("from_numerator").is_null()).then("difference"),
}


def add_parts(queries: pl.DataFrame) -> dict[str, float]:
    """Return the sums of what numerator and denominator of a rate add to the differences, and of undivided differences."""
    return {part: math.fsum(queries.select(amount).to_series().drop_nulls()) for part, amount in _PARTS.items()}


def describe_main_cause(account: Account, parts: Parts, queries: pl.DataFrame, total: float) -> str | None:
    """Return the cause that moves the mean most in the direction of `total`; None if the mean stays the same."""
    of, number = account.of, queries.height
    if abs(total) <= RESIDUE * math.fsum(queries.get_column("difference").abs()):
        return None
    documents = of.documents.filter(pl.col("measure") == str(parts.numerator), pl.col("cause").is_not_null())
    if parts.denominator is not None:
        added = add_parts(queries)
        part = max(added, key=lambda one: added[one] * total)
        moved = queries.filter(_PARTS[part] * total > 0)
        where = f"in {count_queries(moved.height)} ({show(add_parts(moved)[part] / number, '+')} in the mean)"
        if part == "none":
            return f"{of.new if total < 0 else of.base} {parts.idle} {where}"
        if part == "denominator" or parts.numerator.NAME == NumDup.NAME:
            before, after = sum_sides(moved, f"{part}_")
            return f"{getattr(parts, part)} {show(before)} → {show(after)} {where}"
        weight = (1 / pl.col("denominator_base") + 1 / pl.col("denominator_new")) / 2 / number
        weights = queries.drop_nulls("from_numerator").select("query_id", weight=weight)
        documents = documents.join(weights, on="query_id").with_columns(pl.col("amount") * pl.col("weight"))
    causes = add_up(documents, ["counted_by", "cause"]).filter(pl.col("amount") * total > 0)
    for main in causes.sort(pl.col("amount").abs(), maintain_order=True).tail(1).iter_rows(named=True):
        cause = account.describe_cause(parts, main, count_of(main["documents"], "good document"))
        return f"{cause} ({show(main['amount'], '+')}{' in the mean' * (parts.denominator is not None)})"
    return None


def sum_sides(queries: pl.DataFrame, part: str) -> list[float]:
    return [math.fsum(queries.get_column(f"{part}{side}")) for side in ("base", "new")]


def find_main_causes(account: Account, parts: Parts) -> pl.DataFrame:
    """Return query_id and cause (null: none) of each query: in words, without names and numbers of documents."""
    change = pl.col("difference")
    by_numerator, by_denominator = (_PARTS[part] * change for part in ("numerator", "denominator"))
    queries = account.of.queries.filter(measure=str(parts.measure))
    causes = account.of.causes.filter(measure=str(parts.numerator)).drop("measure")
    causes = causes.join(queries, on="query_id").filter(pl.col("amount") * change > 0)
    if parts.denominator is not None:
        causes = causes.filter(by_numerator >= by_denominator)
    causes = causes.sort(pl.col("amount").abs(), "counted_by", "cause", descending=[True, False, False])
    main = causes.unique("query_id", keep="first", maintain_order=True)
    said = [account.describe_cause(parts, row, "good documents") for row in main.iter_rows(named=True)]
    main = main.select("query_id", cause=pl.Series(said, dtype=pl.String))
    found = queries.join(main, on="query_id", how="left", maintain_order="left")
    if parts.denominator is not None:
        base, new, more, fewer = map(
            pl.lit,
            (
                *(f"{name} {parts.idle}" for name in account.names),
                *(f"{sign} {parts.denominator}" for sign in ("more", "fewer")),
            ),
        )
        idle = pl.when(change < 0).then(new).when(change > 0).then(base)
        other = pl.when(pl.col("denominator_new") > pl.col("denominator_base")).then(more).otherwise(fewer)
        of_rate = pl.when(pl.col("from_numerator").is_null()).then(idle).when(by_denominator > by_numerator).then(other)
        found = found.with_columns(cause=pl.coalesce("cause", of_rate))
    return found.select("query_id", "cause")
