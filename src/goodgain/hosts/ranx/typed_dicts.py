"""The typed dicts in which ranx keeps runs and qrels: from a table, and back with the ids as they are.

ranx makes them from arrays of fixed-width text, and compiles again (for 10 s and more) for every new width of the
longest id; and it reads them in Python at 0.1 ms an id. Here ids cross over as one array of code points, both ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numba import njit
from numba.typed import Dict as TypedDict
from numba.typed import List as TypedList

__all__ = ["table", "typed_dict"]

Codes = np.ndarray[Any, np.dtype[np.uint32]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def typed_dict(rows: pl.DataFrame, query_ids: list[str]) -> Any:
    """{query_id: {doc_id: value}} as ranx keeps it.

    Args:
        rows: query_id, doc_id and a number, each (query, document) once; whole numbers stay whole.
        query_ids: every query, those without a row too; at least one.
    """
    query, doc, value = rows.columns
    queries = pl.DataFrame({query: query_ids}, schema={query: pl.String})
    sizes = queries.join(rows.group_by(query).len("size"), on=query, how="left", maintain_order="left")
    ordered = queries.join(rows, on=query, maintain_order="left_right")
    docs, values = ordered.get_column(doc), ordered.get_column(value)
    codes = np.frombuffer("".join(docs).encode("utf-32-le"), dtype=np.uint32)
    counts = sizes.get_column("size").fill_null(0).cast(pl.Int64).to_numpy()
    lengths = docs.str.len_chars().cast(pl.Int64).to_numpy()
    return _filled(TypedList(query_ids), counts, codes, lengths, values.to_numpy())


def table(of_queries: Any, value: str) -> pl.DataFrame:
    """query_id, doc_id and the number (`value`, Float64) of every entry of a typed dict."""
    codes, lengths, values, sizes = _flat(of_queries)
    queries = pl.Series("query_id", list(of_queries), dtype=pl.String)
    query_ids = queries.gather(np.repeat(np.arange(len(sizes)), sizes))
    return pl.DataFrame([query_ids, _texts(codes, lengths).alias("doc_id"), pl.Series(value, values)])


def _texts(codes: Codes, lengths: Numbers) -> pl.Series:
    """Texts of these lengths from their code points one after the other, all at once."""
    characters = codes.tobytes().decode("utf-32-le").encode()
    sizes = 1 + (codes > 0x7F) + (codes > 0x7FF) + (codes > 0xFFFF)  # of a character in UTF-8
    starts = np.concatenate([[0], np.cumsum(sizes)])
    offsets = starts[np.concatenate([[0], np.cumsum(lengths)])].astype(np.int64)
    array = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(characters))
    return pl.Series(pl.from_arrow(array), dtype=pl.String)


@njit(cache=True)
def _filled(query_ids, sizes, codes, lengths, values):  # type: ignore[no-untyped-def]  # numba infers the types
    filled = TypedDict()
    row = 0
    start = 0
    for query in range(len(query_ids)):
        docs = TypedDict()
        for _ in range(sizes[query]):
            end = start + lengths[row]
            docs["".join([chr(code) for code in codes[start:end]])] = values[row]
            start = end
            row += 1
        filled[query_ids[query]] = docs
    return filled


@njit(cache=True)
def _flat(of_queries):  # type: ignore[no-untyped-def]  # numba infers the types
    rows = 0
    characters = 0
    for docs in of_queries.values():
        for doc in docs:
            rows += 1
            characters += len(doc)
    codes = np.empty(characters, np.uint32)
    lengths = np.empty(rows, np.int64)
    values = np.empty(rows, np.float64)
    sizes = np.empty(len(of_queries), np.int64)
    row = 0
    at = 0
    for query, docs in enumerate(of_queries.values()):
        sizes[query] = len(docs)
        for doc, value in docs.items():
            lengths[row] = len(doc)
            values[row] = value
            row += 1
            for character in str(doc):
                codes[at] = ord(character)
                at += 1
    return codes, lengths, values, sizes
