"""Converts tables to the numba typed dicts in which ranx keeps runs and qrels, and back.

ranx makes them from arrays of fixed-width text, for which numba compiles again (for 10 s and more) whenever the longest id
has another width, and reads them in Python at 0.1 ms per id. Here ids are passed as one array of code points both ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numba import njit
from numba.typed import Dict as TypedDict
from numba.typed import List as TypedList

__all__ = ["build_typed_dict", "read_typed_dict"]

Codes = np.ndarray[Any, np.dtype[np.uint32]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def build_typed_dict(rows: pl.DataFrame, query_ids: list[str]) -> Any:
    """Return {query_id: {doc_id: value}} as the typed dict that ranx keeps.

    Args:
        rows: query_id, doc_id and a number, each (query, document) once; whole numbers stay integers.
        query_ids: all queries, also those without a row; at least one.
    """
    query, doc, value = rows.columns
    queries = pl.DataFrame({query: query_ids}, schema={query: pl.String})
    sizes = queries.join(rows.group_by(query).len("size"), on=query, how="left", maintain_order="left")
    ordered = queries.join(rows, on=query, maintain_order="left_right")
    docs, values = ordered.get_column(doc), ordered.get_column(value)
    codes = np.frombuffer("".join(docs).encode("utf-32-le"), dtype=np.uint32)
    counts = sizes.get_column("size").fill_null(0).cast(pl.Int64).to_numpy()
    lengths = docs.str.len_chars().cast(pl.Int64).to_numpy()
    return _fill_typed_dict(TypedList(query_ids), counts, codes, lengths, values.to_numpy())


def read_typed_dict(of_queries: Any, value: str) -> pl.DataFrame:
    """Return query_id, doc_id and the number (a Float64 column named `value`) of every entry of a typed dict."""
    codes, lengths, values, sizes = _unpack_typed_dict(of_queries)
    queries = pl.Series("query_id", list(of_queries), dtype=pl.String)
    query_ids = queries.gather(np.repeat(np.arange(len(sizes)), sizes))
    return pl.DataFrame([query_ids, _decode_texts(codes, lengths).alias("doc_id"), pl.Series(value, values)])


def _decode_texts(codes: Codes, lengths: Numbers) -> pl.Series:
    """Return texts from their lengths and the code points of all of them."""
    characters = codes.tobytes().decode("utf-32-le").encode()
    sizes = 1 + (codes > 0x7F) + (codes > 0x7FF) + (codes > 0xFFFF)  # bytes of each character in UTF-8
    starts = np.concatenate([[0], np.cumsum(sizes)])
    offsets = starts[np.concatenate([[0], np.cumsum(lengths)])].astype(np.int64)
    array = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(characters))
    return pl.Series(pl.from_arrow(array), dtype=pl.String)


@njit(cache=True)
def _fill_typed_dict(query_ids, sizes, codes, lengths, values):  # type: ignore[no-untyped-def]  # numba infers the types
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
def _unpack_typed_dict(of_queries):  # type: ignore[no-untyped-def]  # numba infers the types
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
