"""A block of plain TREC text into its tally, and its first occurrences, without a column of all its rows."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from goodgain.batches.compiled_kernels import COUNT_COLUMNS, FIRST_COLUMNS, QUERY_COLUMNS, kernels
from goodgain.formats.text import RUN_TEXT, separator_of

__all__ = ["Judgments", "Scan", "judgments_of", "scanned"]

_PIECE = 2**20
_NOT_ASCII = 128
_ROOM = 1024  # for the documents of a query, at first


class Judgments(NamedTuple):
    """Labels as the loop takes them, query by query."""

    query_text: Any
    query_offsets: Any
    query_rows: Any
    slots: Any
    doc_text: Any
    starts: Any
    hashes: Any
    places: Any
    labels: Any


class Scan(NamedTuple):
    """What a block of text came down to.

    Attributes:
        tally: as `tally` makes it.
        queries: query_id, results (how many, repeats among them), iterations (how many), rising (whether a score is above
            that of the rank before it); in order of appearance. With `firsts` only.
        firsts: query (its position in `queries`), row, iteration, rank, doc_id, score: the first row of each document, in
            the order of the file; None where no ranking was asked for, or the rows of a query are not in order.
    """

    queries: pl.DataFrame
    tally: pl.DataFrame
    firsts: pl.DataFrame | None


def judgments_of(qrels: pl.DataFrame) -> Judgments:
    """Labels as the loop takes them, from columns query_id, doc_id, relevance with one row per (query, document)."""
    rows = qrels.height
    query_text, query_offsets = _layout(qrels.get_column("query_id"))
    numbers, query_rows = np.empty(rows, np.int64), np.empty(rows, np.int64)
    about: int = qrels.select(pl.col("query_id").approx_n_unique()).item()
    room, count = 1 << (2 * about).bit_length(), -1
    while count < 0:
        room *= 2
        slots = np.full(room, -1, np.int64)
        count = kernels()["number_ids"](query_text, query_offsets, rows, slots, room, numbers, query_rows)
    doc_text, doc_offsets = _layout(qrels.get_column("doc_id"))
    relevance = qrels.get_column("relevance").cast(pl.Float64).to_numpy()
    starts, hashes = np.zeros(count + 2, np.int64), np.empty(rows, np.uint64)
    places, labels = np.empty((rows, 2), np.int64), np.empty(rows)
    kernels()["sort_judgments"](numbers, rows, count, doc_text, doc_offsets, relevance, starts, hashes, places, labels)
    return Judgments(query_text, query_offsets, query_rows, slots, doc_text, starts, hashes, places, labels)


def _layout(ids: pl.Series) -> tuple[Any, Any]:
    """The bytes of all texts, and where each begins."""
    array = ids.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, text = array.buffers()
    return np.frombuffer(text or b"", np.uint8), np.frombuffer(offsets, np.int64)[: len(array) + 1]


def scanned(
    text: bytes, judgments: Judgments, *, rels: Sequence[float], first: int, with_ranking: bool = False
) -> Scan | None:
    """The tally of a block of text, and its first occurrences; None where a line of it is not plain.

    Args:
        text: whole lines.
        judgments: the labels.
        rels: the thresholds of the tally.
        first: the number of the one iteration of a query that has a word in column 2.
        with_ranking: whether first occurrences are wanted.
    """
    if not text.endswith(b"\n"):
        text += b"\n"
    separator = separator_of(text)
    scores = _scores(text, separator) if with_ranking else np.empty(0)
    if scores is None or not _is_utf8(text):
        return None
    data = np.frombuffer(text, np.uint8)
    lines = kernels()["count_lines"](data, len(data))
    queries, counts = (
        np.empty((lines, len(QUERY_COLUMNS)), np.int64),
        np.empty((lines, len(COUNT_COLUMNS) + len(rels)), np.int64),
    )
    firsts, gains = np.empty((lines, len(FIRST_COLUMNS)), np.int64), np.empty((lines, len(rels)))
    filled = np.zeros(4, np.int64)
    room, rows = _ROOM, -2
    while rows == -2:
        known, hashes, table = np.empty((room, 4), np.int64), np.empty(room, np.uint64), np.full(2 * room, -1, np.int64)
        rows = kernels()["scan_lines"](
            data, len(data), ord(separator), first,
            judgments.query_text, judgments.query_offsets, judgments.query_rows, judgments.slots, len(judgments.slots),
            judgments.doc_text, judgments.starts, judgments.hashes, judgments.places, judgments.labels,
            np.array(rels, np.float64), len(rels), scores, len(scores),
            queries, counts, gains, firsts, known, hashes, table, room, filled,
        )  # fmt: skip
        room *= 8
    if rows < 0 or (with_ranking and rows != len(scores)):
        return None
    query_count, segments, first_count, in_order = filled.tolist()
    query_ids = _texts(data, *queries[:query_count, :2].T)
    if not query_ids.is_unique().all():
        return None
    counts, gains = counts[:segments], gains[:segments]
    names = (*COUNT_COLUMNS, *(f"GR{k}" for k in range(len(rels))))
    tallied = pl.DataFrame(dict(zip(names, counts.T, strict=True)) | {f"G{k}": g for k, g in enumerate(gains.T)})
    if not in_order:
        tallied = tallied.group_by("query", "iteration", maintain_order=True).agg(pl.all().sum())
    return Scan(
        pl.DataFrame(
            {
                "query_id": query_ids,
                "results": np.bincount(counts[:, 0], counts[:, 2], query_count).astype(np.int64),
                "iterations": np.bincount(counts[:, 0], minlength=query_count),
                "rising": queries[:query_count, 2] == 1,
            }
        ),
        tallied.select(query_ids.gather(tallied.get_column("query")).alias("query_id"), pl.exclude("query")),
        _firsts(data, firsts[:first_count], scores) if with_ranking and in_order else None,
    )


def _firsts(data: Any, firsts: Any, scores: Any) -> pl.DataFrame:
    columns = dict(zip(FIRST_COLUMNS, firsts.T, strict=True))
    doc_ids = _texts(data, columns.pop("offset"), columns.pop("length"))
    return pl.DataFrame(columns | {"doc_id": doc_ids, "score": scores[columns["row"]]})


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


def _is_utf8(text: bytes) -> bool:
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


def _texts(data: Any, offsets: Any, lengths: Any) -> pl.Series:
    """The texts that stand at these places of a block."""
    import pyarrow as pa  # large files alone need it

    begins = np.concatenate([[0], np.cumsum(lengths)])
    copied = np.empty(begins[-1], np.uint8)
    offsets, lengths = np.ascontiguousarray(offsets), np.ascontiguousarray(lengths)
    kernels()["copy_texts"](data, offsets, lengths, len(offsets), begins, copied)
    return pl.Series(pa.LargeStringArray.from_buffers(len(begins) - 1, pa.py_buffer(begins), pa.py_buffer(copied)))
