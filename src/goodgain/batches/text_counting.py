"""Counts a block of plain TREC text into its tally and first occurrences, without making columns of all rows."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from goodgain.batches.kernels.compiling import kernels
from goodgain.counting.ledger import add_rests, find_unit
from goodgain.formats.text import RUN_TEXT, separator_of

if TYPE_CHECKING:
    from goodgain.batches.kernels.documents import Documents
    from goodgain.batches.kernels.judgments import Judgments
    from goodgain.batches.kernels.scan import Found, Queries, Tally

__all__ = ["Scan", "index_judgments", "scan_text"]

#: Bytes that are decoded at a time to check UTF-8, so that the whole block is never in memory as text.
_PIECE = 2**20
#: The smallest byte that is not ASCII.
_NOT_ASCII = 128
#: Documents of a query that there is room for at first; the room grows when a query has more.
_ROOM = 1024


class Scan(NamedTuple):
    """The counts of a block of text.

    Attributes:
        tally: as `counting.ledger.tally` returns it.
        queries: query_id, results (how many, repeats among them), iterations (how many), rising (whether a score is above
            that of the rank before it); in order of appearance. With `firsts` only.
        firsts: the first row of each document of a query, in the order of the file: query (its position in `queries`),
            row, iteration, rank, score, relevance (null where the query has no label for the document), doc_start and
            doc_length (the place of the doc id in `text`). None where no ranking was asked for, or where the rows of a
            query are not in order.
        text: the bytes of the block, as an array, where there are `firsts`.
        has_numbers: whether column 2 of some query has numbers.
    """

    queries: pl.DataFrame
    tally: pl.DataFrame
    firsts: pl.DataFrame | None
    text: Any
    has_numbers: bool

    def read_doc_ids(self, firsts: pl.DataFrame) -> pl.Series:
        """Return the doc ids of some rows of `firsts`."""
        return _copy_texts(self.text, *(firsts.get_column(name).to_numpy() for name in ("doc_start", "doc_length")))


def index_judgments(qrels: pl.DataFrame) -> Judgments:
    """Return labels in the form in which the loop looks them up.

    Args:
        qrels: query_id, doc_id, relevance: one row per (query, document).

    Raises:
        ImportError: numba cannot be loaded, or cannot compile the loop.
    """
    queries = qrels.lazy().group_by("query_id").agg("doc_id", pl.col("relevance").cast(pl.Float64)).collect()
    query_starts = np.concatenate([[0], queries.get_column("doc_id").list.len().cum_sum()]).astype(np.int64)
    query_slots = np.full(1 << (2 * queries.height).bit_length(), -1, np.int64)
    query_ids, doc_ids = _lay_out(queries.get_column("query_id")), _lay_out(queries.get_column("doc_id").explode())
    labels = queries.get_column("relevance").explode().to_numpy(writable=True)
    compiled = kernels()  # waits while another thread loads numba
    from goodgain.batches.kernels.judgments import Judgments  # loads numba

    hashes = np.empty(qrels.height, np.uint64)
    unit = np.array([find_unit(qrels.get_column("relevance"))])
    judgments = Judgments(*query_ids, query_slots, query_starts, *doc_ids, hashes, labels, unit)
    compiled.hash_ids(judgments)
    return judgments


def _lay_out(ids: pl.Series) -> tuple[Any, Any]:
    """Return the bytes of all texts, and the position where each begins."""
    array = ids.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, text = array.buffers()
    layout = np.frombuffer(text or b"", np.uint8), np.frombuffer(offsets, np.int64)[: len(array) + 1]
    for array in layout:
        array.flags.writeable = False
    return layout


def scan_text(
    text: bytes, judgments: Judgments, *, rels: Sequence[float], first: int, with_ranking: bool = False
) -> Scan | None:
    """Return the tally of a block of text and its first occurrences; None where a line is not plain.

    Args:
        text: whole lines.
        judgments: the labels.
        rels: the thresholds of the tally.
        first: the iteration number of a query that has a word (Q0) in column 2.
        with_ranking: whether first occurrences are needed.
    """
    if not text.endswith(b"\n"):
        text += b"\n"
    if not _is_utf8(text):
        return None
    data = np.frombuffer(text, np.uint8)
    found = _scan_lines(text, data, first, judgments, np.array(rels, np.float64), with_ranking=with_ranking)
    if found is None:
        return None
    queries, tally, firsts, scores, in_order, has_numbers = found
    query_ids = _copy_texts(data, queries.start, queries.length)
    if not query_ids.is_unique().all():
        return None
    tallied = _build_tally(tally, in_order=in_order)
    rows = _build_firsts(firsts, judgments, scores) if with_ranking and in_order else None
    return Scan(
        pl.DataFrame(
            {
                "query_id": query_ids,
                "results": np.bincount(tally.query, tally.R, len(query_ids)).astype(np.int64),
                "iterations": np.bincount(tally.query, minlength=len(query_ids)),
                "rising": queries.rising == 1,
            }
        ),
        tallied.select(query_ids.gather(tallied.get_column("query")).alias("query_id"), pl.exclude("query")),
        rows,
        None if rows is None else data,
        has_numbers,
    )


def _scan_lines(
    text: bytes, data: Any, first: int, judgments: Judgments, rels: Any, *, with_ranking: bool
) -> tuple[Queries, Tally, Any, Any, bool, bool] | None:
    """Return the tables that `scan_lines` fills, scores, whether all rows are in order, and whether column 2 has numbers.

    None where it refuses the text.
    """
    from goodgain.batches.kernels.scan import FULL, INEXACT, Queries, Tally

    separator, lines = separator_of(text), kernels().count_lines(data)
    found = _allocate_tables(lines, len(rels), with_firsts=with_ranking)
    scores, room, rows = np.full(lines if with_ranking else 0, np.nan), _ROOM, FULL
    while rows in (FULL, INEXACT):  # each time from the first line
        documents = _allocate_documents(room)
        rows = kernels().scan_lines(data, ord(separator), first, judgments, rels, scores, documents, found)
        if rows == FULL:
            room *= 8
        elif rows == INEXACT:
            scores = _read_scores(text, separator)
            if scores is None or len(scores) != lines:
                return None
    if rows < 0:
        return None
    query_count, tally_count, first_count, in_order, has_numbers = found.filled.tolist()
    # Copies, because Polars would use the arrays as they are and keep all of `found` in memory.
    queries = Queries(*(column[:query_count].copy() for column in found.queries))
    tally = Tally(*(column[:tally_count].copy() for column in found.tally))
    return queries, tally, found.firsts[:first_count], scores, bool(in_order), bool(has_numbers)


def _allocate_tables(lines: int, rels: int, *, with_firsts: bool) -> Found:
    """Return empty tables with room for this number of lines.

    Queries and tally are columns of one large array, of which few rows are filled: a row for an iteration, not for a line. The
    operating system provides and clears memory only for the pages that are written, and gets all of it back at once. With an
    array for each column, pages of every one would be written; and the allocator would keep smaller arrays for later blocks.
    """
    from goodgain.batches.kernels.scan import FIRSTS, Found, Queries, Tally

    widths = len(Queries._fields), len(Tally._fields) - 3, rels, rels, rels
    space = np.empty((max(lines, 2), sum(widths)), np.int64)  # of one row, the columns would have another type
    queries, counts, good, *gains = np.split(space, np.cumsum(widths)[:-1], axis=1)
    tally = Tally(*[*counts.T, good, *(columns.view(np.float64) for columns in gains)])
    firsts = np.empty((lines if with_firsts else 0, len(FIRSTS)), np.int64)
    return Found(Queries(*queries.T), tally, firsts, np.zeros(5, np.int64))


def _allocate_documents(room: int) -> Documents:
    """Return an empty table with room for this number of documents."""
    from goodgain.batches.kernels.documents import Documents

    starts, lengths, judgments, rows = (np.empty(room, np.int64) for _ in range(4))
    slots = np.full(2 * room, -1, np.int64)
    return Documents(slots, np.empty(room, np.uint64), starts, lengths, judgments, rows)


def _build_tally(tally: Tally, *, in_order: bool) -> pl.DataFrame:
    """Return the tally as `counting.ledger.tally` returns it, with query instead of query_id."""
    columns = tally._asdict()
    for name in ("GR", "G", "rest"):  # a column for each threshold
        columns |= {f"{name}{k}": column for k, column in enumerate(columns.pop(name).T)}
    frame = pl.DataFrame(columns)
    if not in_order:
        frame = frame.group_by("query", "iteration", maintain_order=True).agg(pl.all().sum())
    return add_rests(frame)


def _build_firsts(firsts: Any, judgments: Judgments, scores: Any) -> pl.DataFrame:
    from goodgain.batches.kernels.scan import FIRSTS

    columns = dict(zip(FIRSTS, firsts.T, strict=True))
    judgment = columns.pop("judgment")
    is_judged = judgment >= 0
    relevance = np.full(len(firsts), np.nan)
    relevance[is_judged] = judgments.labels[judgment[is_judged]]
    columns |= {"score": scores[columns["row"]], "relevance": relevance}
    return pl.DataFrame(columns).with_columns(pl.col("relevance").fill_nan(None))


def _read_scores(text: bytes, separator: str) -> Any:
    """Return the score of every row, read by Polars as in all readers of text; None where Polars cannot read them."""
    schema = {name: pl.Float64 if name == "score" else pl.String for name in RUN_TEXT.fields}
    column = RUN_TEXT.fields.index("score")
    try:
        frame = pl.read_csv(
            text, separator=separator, has_header=False, quote_char=None, schema=schema, columns=[column]
        )
    except pl.exceptions.PolarsError:
        return None
    scores = frame.to_series()
    return None if scores.null_count() else scores.to_numpy(writable=True)


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


def _copy_texts(data: Any, starts: Any, lengths: Any) -> pl.Series:
    """Return the texts at these places of a block.

    Args:
        data: the bytes of the block.
        starts, lengths: whole numbers, as arrays.
    """
    import pyarrow as pa  # needed for large files only

    begins = np.concatenate([[0], np.cumsum(lengths)])
    copied = np.empty(begins[-1], np.uint8)
    kernels().copy_texts(data, starts, lengths, begins, copied)
    return pl.Series(pa.LargeStringArray.from_buffers(len(begins) - 1, pa.py_buffer(begins), pa.py_buffer(copied)))
