"""Reads and writes the Arrow batches of Spark's workers. Workers import this module; the driver does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

#: Rows of a part on a worker. A query with more rows is a part of its own.
_ROWS = 2**19


def cut_between_queries(batches: Any) -> Iterator[pl.DataFrame]:
    """Yield the rows of Arrow batches, which are sorted by query, in parts of whole queries."""
    waiting: list[pl.DataFrame] = []
    for batch in batches:
        waiting.append(pl.DataFrame(batch))
        if sum(map(len, waiting)) < _ROWS:
            continue

        rows = pl.concat(waiting)
        query_ids = rows.get_column("query_id")
        earlier_queries = (query_ids != query_ids[-1]).arg_true()
        end = int(earlier_queries[-1]) + 1 if len(earlier_queries) else 0
        waiting = [rows[end:]]
        if end:
            yield rows[:end].rechunk()
    if any(map(len, waiting)):
        yield pl.concat(waiting, rechunk=True)


def spell_for_spark(rows: pl.DataFrame) -> Iterator[Any]:
    """Yield rows as Arrow batches with the types of Spark, which knows no large strings."""
    import pyarrow as pa

    table = rows.to_arrow()
    fields = []
    for field in table.schema:
        kind = pa.string() if pa.types.is_large_string(field.type) else field.type
        fields.append(pa.field(field.name, kind))
    yield from table.cast(pa.schema(fields)).to_batches()
