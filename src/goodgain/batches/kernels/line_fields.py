"""A line of a run: its six fields, or that it is not plain.

A plain line is not a comment. It has one separator between its fields, a whole number as rank, a finite score, and no white
space around. Column 2 has a whole number, or one word for all lines of the query; the tag is one for all lines of the query.
Anything else is not wrong: it is for the readers in `formats` to judge, which know every form and every message.
"""

from typing import Any, NamedTuple

import numpy as np

from goodgain.batches.kernels.arguments import step
from goodgain.batches.kernels.bytes_of_fields import (
    COMMENT,
    MINUS,
    NEWLINE,
    NINE,
    PLUS,
    ZERO,
    byte_at,
    digits,
    field,
    number,
    repeated,
)

__all__ = ["NO_LINE", "Line", "is_empty", "read_line"]

_NO_HASH = np.uint64(0)
_DIGITS = 15  # a longer whole number may not fit into 64 bits


class Line(NamedTuple):
    """The fields of a line; places are positions in the text.

    Attributes:
        end: where the next line starts; -1: the line is not plain.
        is_new: whether its query is another than that of the line before.
        query, query_length, query_hash: the query id. The hash is that of the line where the query was new, and 0 after.
        column2, column2_length, is_word, iteration: what column 2 has, whether that is a word, and the iteration.
        doc, doc_length, doc_hash: the doc id.
        rank: column 4.
        score: column 5; NaN where it has more digits than `number` reads.
        tag, tag_length: column 6.
    """

    end: int
    is_new: bool
    query: int
    query_length: int
    query_hash: Any
    column2: int
    column2_length: int
    is_word: bool
    iteration: int
    doc: int
    doc_length: int
    doc_hash: Any
    rank: int
    score: float
    tag: int
    tag_length: int


NO_LINE = Line(-1, False, 0, 0, _NO_HASH, 0, 0, False, 0, 0, 0, _NO_HASH, 0, 0.0, 0, 0)


@step
def read_line(text: Any, start: int, separator: int, before: Any, first_iteration: int) -> Any:
    """The line that starts here, told from the line before it; `NO_LINE` if it is not plain.

    Args:
        text: the text; its last byte is a newline.
        start: where the line starts.
        separator: the byte between fields.
        before: the line before, and `NO_LINE` where there is none.
        first_iteration: the iteration of a query that has a word in column 2.
    """
    end, query_hash = start + before.query_length, _NO_HASH
    is_new = not repeated(text, start, before.query, before.query_length)
    if is_new:  # a comment never repeats the query of the line before it
        if byte_at(text, start) == COMMENT:
            return NO_LINE
        end, query_hash = field(text, start)
    query_length = end - start
    if query_length == 0 or byte_at(text, end) != separator:
        return NO_LINE

    column2 = end + 1
    end, iteration, is_word = _read_iteration(text, column2, before, is_new, first_iteration)
    column2_length = end - column2
    if column2_length == 0 or byte_at(text, end) != separator:
        return NO_LINE

    doc = end + 1
    end, doc_hash = field(text, doc)
    doc_length = end - doc
    if doc_length == 0 or byte_at(text, end) != separator:
        return NO_LINE

    end, rank = digits(text, doc + doc_length + 1)
    rank_length = end - (doc + doc_length + 1)
    if rank_length == 0 or rank_length > _DIGITS or byte_at(text, end) != separator:
        return NO_LINE

    end, score = number(text, end + 1)
    if end < 0 or byte_at(text, end) != separator:
        return NO_LINE

    tag = end + 1
    end = _read_tag(text, tag, before, is_new)
    tag_length = end - tag
    if tag_length == 0 or byte_at(text, end) != NEWLINE:
        return NO_LINE
    return Line(
        end + 1, is_new, start, query_length, query_hash, column2, column2_length, is_word, iteration,
        doc, doc_length, doc_hash, rank, score, tag, tag_length,
    )  # fmt: skip


@step
def is_empty(text: Any, line: Any) -> bool:
    """Whether a line says that its iteration has no results: its document is `-`."""
    return line.doc_length == 1 and byte_at(text, line.doc) == MINUS  # type: ignore[no-any-return]  # a bool


@step
def _read_iteration(text: Any, start: int, before: Any, is_new: bool, first_iteration: int) -> tuple[int, int, bool]:
    """Where column 2 ends, the iteration, and whether a word stands there; it ends where it starts if it is not plain."""
    is_word = before.is_word
    if is_new:
        is_signed = byte_at(text, start) == PLUS or (
            byte_at(text, start) == MINUS and byte_at(text, start + 1) == ZERO
        )  # +1 and -0 are numbers
        is_word = not is_signed and not ZERO <= byte_at(text, start) <= NINE
    if not is_word:
        end, iteration = digits(text, start)
        return (end if end - start <= _DIGITS else start), iteration, False
    if is_new:
        end, _ = field(text, start)
        return end, first_iteration, True
    is_same = repeated(text, start, before.column2, before.column2_length)
    return (start + before.column2_length if is_same else start), first_iteration, True


@step
def _read_tag(text: Any, start: int, before: Any, is_new: bool) -> int:
    """Where the tag ends; where it starts if it is not the one that the query had before."""
    if is_new:
        end, _ = field(text, start)
        return end
    return start + before.tag_length if repeated(text, start, before.tag, before.tag_length) else start
