"""A block of plain TREC text into its tally, and its first occurrences, without a column of all its rows."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from goodgain.batches.kernels.compiling import kernels
from goodgain.formats.text import RUN_TEXT, separator_of

if TYPE_CHECKING:
    from goodgain.batches.kernels.documents import Documents
    from goodgain.batches.kernels.judgments import Judgments
    from goodgain.batches.kernels.scan import Firsts, Found, Queries, Tally

__all__ = ["Scan", "judgments_of", "scanned"]

_PIECE = 2**20
_NOT_ASCII = 128
_ROOM = 1024  # for the documents of a query, at first


class Scan(NamedTuple):
    """What a block of text came down to.

    Attributes:
        tally: as `counting.tally` makes it.
        queries: query_id, results (how many, repeats among them), iterations (how many), rising (whether a score is above
            that of the rank before it); in order of appearance. With `firsts` only.
        firsts: the first row of each document of a query, in the order of the file: query (its position in `queries`),
            row, iteration, rank, score, relevance (null where the query has no label for the document), doc_start and
            doc_length (where the doc id is in `text`). None where no ranking was asked for, or the rows of a query are not
            in order.
        text: the bytes of the block, as an array, where there are `firsts`.
    """

    queries: pl.DataFrame
    tally: pl.DataFrame
    firsts: pl.DataFrame | None
    text: Any

    def doc_ids(self, firsts: pl.DataFrame) -> pl.Series:
        """The doc ids of some rows of `firsts`."""
        return _texts_at(self.text, *(firsts.get_column(name).to_numpy() for name in ("doc_start", "doc_length")))

    def with_doc_ids(self) -> Scan:
        """The same with doc_id in `firsts`, so that the bytes of the block can go."""
        if self.firsts is None:
            return self
        ids = self.doc_ids(self.firsts)
        return self._replace(firsts=self.firsts.drop("doc_start", "doc_length").with_columns(doc_id=ids), text=None)


def judgments_of(qrels: pl.DataFrame) -> Judgments:
    """Labels as the loop looks them up, from columns query_id, doc_id, relevance with one row per (query, document).

    Raises:
        ImportError: numba cannot be loaded, or does not compile the loop.
    """
    compiled = kernels()
    from goodgain.batches.kernels.judgments import Judgments  # loads numba

    rows = qrels.height
    query_text, query_offsets = _layout(qrels.get_column("query_id"))
    doc_text, doc_offsets = _layout(qrels.get_column("doc_id"))
    numbers, query_rows = np.empty(rows, np.int64), np.empty(rows, np.int64)
    about: int = qrels.select(pl.col("query_id").approx_n_unique()).item()
    room, count = 1 << (2 * about).bit_length(), -1
    while count < 0:
        room *= 2
        query_slots = np.full(room, -1, np.int64)
        count = compiled.number_ids(query_text, query_offsets, query_slots, numbers, query_rows)
    judgments = Judgments(
        query_text, query_offsets, query_rows, query_slots, np.zeros(count + 2, np.int64), doc_text,
        starts=np.empty(rows, np.int64), lengths=np.empty(rows, np.int64),
        hashes=np.empty(rows, np.uint64), labels=np.empty(rows),
    )  # fmt: skip
    compiled.sort_judgments(numbers, doc_offsets, qrels.get_column("relevance").cast(pl.Float64).to_numpy(), judgments)
    return judgments


def _layout(ids: pl.Series) -> tuple[Any, Any]:
    """The bytes of all texts, and where each begins."""
    array = ids.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, text = array.buffers()
    layout = np.frombuffer(text or b"", np.uint8), np.frombuffer(offsets, np.int64)[: len(array) + 1]
    for part in layout:
        part.flags.writeable = False
    return layout


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
    found = _scan_lines(data, ord(separator), first, judgments, np.array(rels, np.float64), scores)
    if found is None:
        return None
    queries, tally, firsts, in_order = found
    query_ids = _texts_at(data, queries.start, queries.length)
    if not query_ids.is_unique().all():
        return None
    tallied = _tally_frame(tally, in_order=in_order)
    rows = _firsts_frame(firsts, scores) if with_ranking and in_order else None
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
    )


def _scan_lines(
    data: Any, separator: int, first: int, judgments: Judgments, rels: Any, scores: Any
) -> tuple[Queries, Tally, Firsts, bool] | None:
    """The tables that `scan_lines` fills, and whether all rows are in order; None where it refuses the text."""
    from goodgain.batches.kernels.scan import FULL, Firsts, Queries, Tally

    found = _tables(kernels().count_lines(data), len(rels), with_firsts=len(scores) > 0)
    room, rows = _ROOM, FULL
    while rows == FULL:
        rows = kernels().scan_lines(data, separator, first, judgments, rels, scores, _documents(room), found)
        room *= 8
    if rows < 0 or (len(scores) > 0 and rows != len(scores)):
        return None
    query_count, tally_count, first_count, in_order = found.filled.tolist()
    # copies: Polars would take the arrays as they are, and keep all that has room in `found`
    queries = Queries(*(column[:query_count].copy() for column in found.queries))
    tally = Tally(*(column[:tally_count].copy() for column in found.tally))
    firsts = Firsts(*(column[:first_count].copy() for column in found.firsts))
    return queries, tally, firsts, bool(in_order)


def _tables(lines: int, rels: int, *, with_firsts: bool) -> Found:
    """Room for what so many lines can fill.

    It is one piece, which the machine gives only where something is written, and gets back as a whole. Smaller pieces, free
    again, would be kept for later blocks with all that was ever written to them: half as much memory again.
    """
    from goodgain.batches.kernels.scan import Firsts, Found, Queries, Tally

    widths = len(Queries._fields), len(Tally._fields) - 2, len(Firsts._fields), rels, rels
    space = np.empty((sum(widths), lines), np.int64)
    queries, counts, firsts, good, gains = np.split(space, np.cumsum(widths)[:-1])
    tally = Tally(*[*counts, good.reshape(lines, rels), gains.view(np.float64).reshape(lines, rels)])
    columns = dict(zip(Firsts._fields, firsts[:, : lines if with_firsts else 0], strict=True))
    columns["relevance"] = columns["relevance"].view(np.float64)
    return Found(Queries(*queries), tally, Firsts(**columns), np.zeros(4, np.int64))


def _documents(room: int) -> Documents:
    """An empty table for so many documents."""
    from goodgain.batches.kernels.documents import Documents

    starts, lengths, judgments, rows = (np.empty(room, np.int64) for _ in range(4))
    slots = np.full(2 * room, -1, np.int64)
    return Documents(slots, np.empty(room, np.uint64), starts, lengths, judgments, rows)


def _tally_frame(tally: Tally, *, in_order: bool) -> pl.DataFrame:
    """As `counting.tally` makes it, with query instead of query_id."""
    columns = tally._asdict()
    for name in ("GR", "G"):  # a column for each threshold
        columns |= {f"{name}{k}": column for k, column in enumerate(columns.pop(name).T)}
    frame = pl.DataFrame(columns)
    if in_order:
        return frame
    return frame.group_by("query", "iteration", maintain_order=True).agg(pl.all().sum())


def _firsts_frame(firsts: Firsts, scores: Any) -> pl.DataFrame:
    frame = pl.DataFrame(firsts._asdict() | {"score": scores[firsts.row]})
    return frame.with_columns(pl.col("relevance").fill_nan(None))


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


def _texts_at(data: Any, starts: Any, lengths: Any) -> pl.Series:
    """The texts that stand at these places of a block.

    Args:
        data: the bytes of the block.
        starts, lengths: whole numbers, as arrays.
    """
    import pyarrow as pa  # large files alone need it

    begins = np.concatenate([[0], np.cumsum(lengths)])
    copied = np.empty(begins[-1], np.uint8)
    kernels().copy_texts(data, starts, lengths, begins, copied)
    return pl.Series(pa.LargeStringArray.from_buffers(len(begins) - 1, pa.py_buffer(begins), pa.py_buffer(copied)))
