"""Phase 1, first half: the keys of each record. Two records that share a key are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import polars as pl

from goodgain.dedup.records import MIN_SNIPPET, Records
from goodgain.dedup.texts import text_length
from goodgain.dedup.types import TYPES, list_comparable_types
from goodgain.dedup.values import SEVERAL

__all__ = ["STRONG_KINDS", "Policy", "make_keys"]

Policy = Literal["standard", "id", "strict", "content"]

#: Shorter titles (`Home`, `Login`) are shared by pages that have nothing in common.
_MIN_TITLE = 12
#: The characters of a snippet that make a key: engines that cut snippets at different lengths agree on the beginning.
_SNIPPET_START = 500
#: Kinds of key that nearly prove sameness: however many records share one, each is compared with a neighbour.
STRONG_KINDS = ("id", "doc_id", "url")


def make_keys(records: Records, policy: Policy) -> pl.DataFrame:
    """Return kind, key (a hash with scope and kind) and record, for each key that at least two records share."""
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
    """Yield kind and name of each sort of key, the condition for records to have it, and its value."""
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
    # All messages found in a mail or chat application have the URL of its start page.
    names_item = pl.col("type").is_in([name for name, row in TYPES.items() if row.url == "item"])
    yield "url", "", names_item | pl.col("beyond_start"), pl.col("page")
    if policy == "id":
        return
    head = pl.col("snippet").str.head(_SNIPPET_START)
    yield "text", "", pl.col("snippet_length") >= MIN_SNIPPET, head
    yield "title", "", text_length(pl.col("title")) >= _MIN_TITLE, pl.col("title")
    yield from _list_further_keys(records)


def _list_further_keys(records: Records) -> Iterator[tuple[str, str, pl.Expr, pl.Expr]]:
    """Yield the further keys of the types, named by their fields, so that types with the same fields share keys."""
    holders: dict[tuple[str, ...], pl.Expr] = {}
    for name in TYPES:
        for row in list_comparable_types(name):
            for key in row.further_keys:
                holders[key] = holders.get(key, pl.lit(False)) | (pl.col("type") == name)
    for key, holds in holders.items():
        # A parent is known by its doc_id or its URL, and each makes a key.
        for parent in ("parent", "page") if "parent" in key else ("",):
            fields = [parent if field == "parent" else field for field in key]
            if set(fields) <= set(records.attributes) | {"title", "snippet", "page"}:
                value = pl.struct(pl.col("snippet").str.head(_SNIPPET_START) if f == "snippet" else f for f in fields)
                yield "fields", "+".join(fields), holds & pl.all_horizontal(pl.col(fields).is_not_null()), value
