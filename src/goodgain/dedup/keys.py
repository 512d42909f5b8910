"""Phase 1: the keys of a record. Two records that share one are worth comparing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import polars as pl

from goodgain.dedup.records import MIN_SNIPPET, Records
from goodgain.dedup.texts import text_length
from goodgain.dedup.types import TYPES, list_comparable_types
from goodgain.dedup.values import SEVERAL

__all__ = ["STRONG_KINDS", "Policy", "candidate_keys"]

Policy = Literal["id", "standard", "content"]

_MIN_TITLE = 12
_SNIPPET_START = 500
#: Kinds of key that nearly prove sameness: however many records share one, each is compared with a neighbour.
STRONG_KINDS = ("id", "doc_id", "url")


def candidate_keys(records: Records, policy: Policy) -> pl.DataFrame:
    """kind, key (hashed with its scope and kind) and record, for each key of each record that another one shares."""
    found = []
    for kind, name, condition, value in _list_keys(records, policy):
        has = records.frame.lazy().filter(condition & value.is_not_null()).select("scope", "record", value=value)
        if kind == "id":  # each value of an id is a key
            has = has.with_columns(pl.col("value").str.split(SEVERAL)).explode("value")
        key = pl.struct("scope", pl.lit(kind + name).alias("name"), "value").hash()
        found.append(has.select(kind=pl.lit(kind), key=key, record=pl.col("record")))
    keys = pl.concat(pl.collect_all(found))
    return keys.filter(keys["key"].is_duplicated())


def _list_keys(records: Records, policy: Policy) -> Iterator[tuple[str, str, pl.Expr, pl.Expr]]:
    """Kind, name, who has it, and value of each sort of key."""
    own_ids = pl.lit(False)
    ids: dict[str, pl.Expr] = {}
    for name, kind in TYPES.items():
        for row in list_comparable_types(name):
            for item_id in set(row.item_ids) & set(records.attributes):
                ids[item_id] = ids.get(item_id, pl.lit(False)) | (pl.col("type") == name)
        own = [item_id for item_id in kind.item_ids if item_id in records.attributes]
        if own:
            own_ids = own_ids | ((pl.col("type") == name) & pl.any_horizontal(pl.col(own).is_not_null()))
    for item_id, has in ids.items():
        yield "id", item_id, has, pl.col(item_id)
    yield "doc_id", "", pl.lit(records.trusted) | ~(own_ids | pl.col("reissued")), pl.col("doc_id")
    # The start page of a mail or chat application is the address of all that is found there.
    names_item = pl.col("type").is_in([name for name, row in TYPES.items() if row.url == "item"])
    yield "url", "", names_item | pl.col("beyond_start"), pl.col("page")
    if policy == "id":
        return
    head = pl.col("snippet").str.head(_SNIPPET_START)
    yield "text", "", pl.col("snippet_length") >= MIN_SNIPPET, head
    yield "title", "", text_length(pl.col("title")) >= _MIN_TITLE, pl.col("title")
    yield from _list_further_keys(records)


def _list_further_keys(records: Records) -> Iterator[tuple[str, str, pl.Expr, pl.Expr]]:
    """Yield the further keys of the types; they bear their fields' names, so that types with the same one meet."""
    holders: dict[tuple[str, ...], pl.Expr] = {}
    for name in TYPES:
        for row in list_comparable_types(name):
            for key in row.further_keys:
                holders[key] = holders.get(key, pl.lit(False)) | (pl.col("type") == name)
    for key, holds in holders.items():
        # A parent has two names, its doc_id and its URL: like meets like.
        for parent in ("parent", "page") if "parent" in key else ("",):
            fields = [parent if field == "parent" else field for field in key]
            if set(fields) <= set(records.attributes) | {"title", "snippet", "page"}:
                value = pl.struct(pl.col("snippet").str.head(_SNIPPET_START) if f == "snippet" else f for f in fields)
                yield "fields", "+".join(fields), holds & pl.all_horizontal(pl.col(fields).is_not_null()), value
