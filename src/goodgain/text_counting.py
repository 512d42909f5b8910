"""A block of clean TREC text into first occurrences with their labels, without a column of all its rows."""

from __future__ import annotations

import codecs
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from goodgain.formats.text import RUN_TEXT
from goodgain.scanning import FIRSTS, QUERIES, SEGMENTS, copy_texts, fill_slots, scan_lines

__all__ = ["Judgments", "Scan", "judgments_of", "load", "scanned"]

_PIECE = 2**20
_NOT_ASCII = 128
_ROOM = 1024  # documents of a query, at first


class Judgments(NamedTuple):
    """Labels as the loop takes them: bytes of queries and, query by query, of documents, and where each begins."""

    query_text: Any
    query_offsets: Any
    doc_text: Any
    doc_offsets: Any
    starts: Any
    slots: Any
    relevance: Any


class Scan(NamedTuple):
    """What a block of text came down to; queries are named by their position in `queries`.

    Attributes:
        queries: query_id, rising (whether a score is above that of the rank before it); in order of appearance.
        returned: query, iteration, R.
        firsts: query, row, iteration, rank, relevance (null where unjudged): the first occurrences, in the order of the
            file; with scores also doc_id and score.
        in_order: whether the rows of every query stand in order of iteration and rank, so that `firsts` is the ranking.
    """

    queries: pl.DataFrame
    returned: pl.DataFrame
    firsts: pl.DataFrame
    in_order: bool


def load() -> None:
    """Load what is compiled, which takes half a second when a process first needs it."""
    line = {"query_id": ["q"], "doc_id": ["d"], "relevance": [0.0]}
    scanned(b"q 1 d 1 1 t\n", judgments_of(pl.DataFrame(line)), first=1)


def judgments_of(qrels: pl.DataFrame) -> Judgments:
    """Labels as the loop takes them, from columns query_id, doc_id, relevance with one row per (query, document)."""
    query_ids = qrels.get_column("query_id")
    codes = query_ids.cast(pl.Categorical).to_physical().to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes[order])) + 1, [len(codes)]])
    query_offsets, query_text = _layout(query_ids.gather(order[starts[:-1]]))
    documents = qrels.select("doc_id", "relevance")[order]
    doc_offsets, doc_text = _layout(documents.get_column("doc_id"))
    slots = np.full(1 << int(2 * len(starts)).bit_length(), -1, np.int64)
    fill_slots(query_text, query_offsets, slots)
    relevance = documents.get_column("relevance").to_numpy()
    return Judgments(query_text, query_offsets, doc_text, doc_offsets, starts, slots, relevance)


def _layout(ids: pl.Series) -> tuple[Any, Any]:
    """Where each text begins, and the bytes of all."""
    array = ids.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, text = array.buffers()
    return np.frombuffer(offsets, np.int64)[: len(array) + 1], np.frombuffer(text, np.uint8)


def scanned(text: bytes, judgments: Judgments, *, first: int, with_ranking: bool = False) -> Scan | None:
    """First occurrences and results per iteration of a block of text; None where a line of it is not plain.

    Args:
        text: whole lines.
        judgments: the labels.
        first: the number of the one iteration of a query that has a word in column 2.
        with_ranking: whether doc_id and score are wanted.
    """
    separator = "\t" if b"\t" in text[: text.find(b"\n") + 1 or None] else " "
    scores = _scores(text, separator) if with_ranking else np.empty(0)
    if scores is None or not _is_utf8(memoryview(text)):
        return None
    data = np.frombuffer(text, np.uint8)
    lines = np.count_nonzero(data == ord("\n")) + 1
    filled = [np.empty((lines, len(names)), np.int64) for names in (QUERIES, SEGMENTS, FIRSTS)]
    room, rows = _ROOM, -2
    while rows == -2:
        known, hashes, table = np.empty((room, 4), np.int64), np.empty(room, np.uint64), np.full(2 * room, -1, np.int64)
        rows, *counts, in_order = scan_lines(
            data, ord(separator), first, *judgments[:-1], scores, *filled, known, hashes, table
        )
        room *= 8
    if rows < 0 or (with_ranking and rows != len(scores)):
        return None
    queries, returned, firsts = (
        dict(zip(names, table[:count].T, strict=True))
        for table, count, names in zip(filled, counts, (QUERIES, SEGMENTS, FIRSTS), strict=True)
    )
    unjudged = firsts["judgment"] < 0
    relevance = np.where(unjudged, np.nan, judgments.relevance[firsts["judgment"]])
    columns = {"query": firsts["query"], "iteration": firsts["iteration"], "relevance": relevance}
    if with_ranking:
        columns |= {name: firsts[name] for name in ("row", "rank")} | {"score": scores[firsts["row"]]}
    found = pl.DataFrame(columns).with_columns(pl.col("relevance").fill_nan(None))
    return Scan(
        pl.DataFrame([_texts(data, queries).alias("query_id"), pl.Series("rising", queries["rising"])]),
        pl.DataFrame(returned),
        found.with_columns(doc_id=_texts(data, firsts)) if with_ranking else found,
        in_order,
    )


def _scores(text: bytes, separator: str) -> Any:
    """The score of every row, as every reader of text here has it; None where Polars cannot read them."""
    schema = {name: pl.Float64 if name == "score" else pl.String for name in RUN_TEXT.fields}
    column = RUN_TEXT.fields.index("score")
    try:
        frame = pl.read_csv(
            text, separator=separator, has_header=False, quote_char=None, schema=schema, columns=[column]
        )
    except pl.exceptions.PolarsError:
        return None
    scores = frame.to_series()
    return None if scores.null_count() else scores.to_numpy()


def _is_utf8(text: memoryview) -> bool:
    if np.frombuffer(text, np.uint8).max(initial=0) < _NOT_ASCII:
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(text), _PIECE):
            decoder.decode(text[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _texts(data: Any, places: dict[str, Any]) -> pl.Series:
    """The texts that stand at places (offset, length) of a block."""
    begins = np.concatenate([[0], np.cumsum(places["length"])])
    copied = np.empty(begins[-1], np.uint8)
    copy_texts(data, places["offset"], places["length"], begins, copied)
    return pl.Series(pa.LargeStringArray.from_buffers(len(begins) - 1, pa.py_buffer(begins), pa.py_buffer(copied)))
