"""Hashes the content of records; the hashes are equal in every process, on every machine, in every frame."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import polars as pl

from goodgain.dedup.attributes import ITEM_IDS, USED_NAMES

__all__ = ["CONTENT_COLUMNS", "hash_contents", "name_by_text"]

#: The columns of content: title, snippet and fields; not the ids and URLs under which it is found.
CONTENT_COLUMNS = ("title", "snippet", "parent", *sorted(USED_NAMES - {*ITEM_IDS, "parent_url"}), "rest")
_ALL_COLUMNS = ("type", "doc_id", "item", *ITEM_IDS, *CONTENT_COLUMNS)


def hash_contents(frame: pl.DataFrame) -> pl.Series:
    """Return a hash of all columns of each record."""
    return _hash_columns(frame, _ALL_COLUMNS, 16)


def name_by_text(frame: pl.DataFrame) -> pl.Series:
    """Return `text:` and a hash of the content of each record, the name of a record without an id or URL."""
    return "text:" + _hash_columns(frame, CONTENT_COLUMNS, 8)


def _hash_columns(frame: pl.DataFrame, names: Iterable[str], size: int) -> pl.Series:
    # Nulls are left out with their names: a column that only other rows fill must not change the hash of this one.
    values = [pl.lit(f"{name}=") + pl.col(name) for name in names if name in frame.columns]
    lines = frame.select(pl.concat_str(values, separator="\x1e", ignore_nulls=True)).to_series()
    digests = [hashlib.blake2b(line.encode(), digest_size=size).hexdigest() for line in lines.to_list()]
    return pl.Series(digests, dtype=pl.String)
