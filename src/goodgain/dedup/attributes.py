"""Turns the ids and fields of the rows, which are pairs of name and value, into a column for each name in use."""

from __future__ import annotations

import polars as pl

from goodgain.dedup.types import TYPES, canonical_name
from goodgain.dedup.values import SEVERAL, normalise_values

__all__ = ["ITEM_IDS", "USED_NAMES", "read_attributes"]

#: The names that are item ids of some type.
ITEM_IDS = tuple(dict.fromkeys(name for row in TYPES.values() for name in row.item_ids))

#: All names of ids and fields that some type uses; title and snippet have columns of their own.
USED_NAMES = (
    frozenset(
        name
        for row in TYPES.values()
        for name in (
            *row.item_ids, row.title, *row.required, *row.reject, *row.weights,
            *(part for key in row.further_keys for part in key),
        )
    )
    | {"parent_url"}
) - {"title", "snippet"}  # fmt: skip

_SCHEMA = {"row": pl.get_index_type(), "name": pl.String(), "value": pl.String()}
_URL = "^[A-Za-z][A-Za-z0-9+.-]*://"


def read_attributes(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two frames: the ids and fields that some type uses, a column each, and all others in a column `rest`."""
    bags = [_to_long_table(rows, name) for name in ("ids", "fields")]
    pairs = pl.concat(bags).drop_nulls()
    names = {raw: canonical_name(raw) for raw in pairs["name"].unique().to_list()}
    pairs = pairs.with_columns(
        name=pairs["name"].replace_strict(names, return_dtype=pl.String) if names else pl.col("name")
    )
    pairs = pairs.with_columns(  # a parent given by its URL is compared as a URL
        name=pl.when((pl.col("name") == "parent") & pl.col("value").str.contains(_URL))
        .then(pl.lit("parent_url"))
        .otherwise("name")
    )
    pairs = pairs.with_columns(value=normalise_values(pairs["name"], pairs["value"])).drop_nulls().unique()
    used = pl.col("name").is_in(USED_NAMES)
    one_a_name = (
        pairs.filter(used)
        .group_by("row", "name")
        .agg(pl.col("value").sort().str.join(SEVERAL))
        .with_columns(pl.col("name").cast(pl.String))
    )
    present = sorted(one_a_name["name"].unique().to_list())
    columns = (
        one_a_name.pivot("name", index="row", values="value", on_columns=present)
        if present
        else rows.clear().select("row")
    )
    rest = (
        pairs.filter(~used)
        .select("row", pair=pl.col("name") + "=" + pl.col("value"))
        .group_by("row")
        .agg(rest=pl.col("pair").sort().str.join(SEVERAL))
    )
    return columns, rest


def _to_long_table(rows: pl.DataFrame, bag: str) -> pl.DataFrame:
    """Return row, name and value of each pair in a column of ids or fields, which holds lists of pairs or structs."""
    kind = rows.schema[bag]
    bags = rows.select("row", bag).filter(pl.col(bag).is_not_null())
    if isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct):
        long = bags.explode(bag).select(
            "row",
            name=pl.col(bag).struct.field("name").cast(pl.String),
            value=pl.col(bag).struct.field("value").cast(pl.String),
        )
        return long.select([pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items()])
    if isinstance(kind, pl.Struct) and kind.fields:
        wide = bags.select("row", pl.col(bag).struct.unnest().cast(pl.String))
        return wide.unpivot(index="row", variable_name="name", value_name="value").cast(_SCHEMA)  # type: ignore[arg-type] # a dict is a mapping of columns to types
    return pl.DataFrame(schema=_SCHEMA)
