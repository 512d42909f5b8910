"""The loop over the lines of plain TREC text: each iteration's results, first occurrences and good documents.

A line is read (`line_fields`), its document looked up among those of the query (`documents`), and counted in the row of the tally
for its query and iteration. A line that is not plain ends the loop, and the readers in `formats` judge it.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from goodgain.batches.kernels.arguments import (
    Bytes,
    Floats,
    FloatsColumns,
    Ints,
    IntsColumn,
    IntsColumns,
    IntsTable,
    ReadOnlyBytes,
    ReadOnlyFloats,
    ReadOnlyInts,
    step,
)
from goodgain.batches.kernels.bytes_of_fields import NEWLINE
from goodgain.batches.kernels.documents import Documents, add_document, add_judged, find_document
from goodgain.batches.kernels.judgments import Judgments, number_of
from goodgain.batches.kernels.line_fields import NO_LINE, is_empty, read_line

__all__ = [
    "FIRSTS",
    "FULL",
    "INEXACT",
    "REFUSED",
    "Found",
    "Queries",
    "Tally",
    "copy_texts",
    "count_lines",
    "scan_lines",
]

REFUSED = -1  #: a line is not plain
FULL = -2  #: there is no room for the documents of a query
INEXACT = -3  #: a score is needed that the loop cannot read
_ZERO: Any = np.int64(0)  # for a literal 0 numba would compile the steps that take it once more


class Queries(NamedTuple):
    """Queries in the order of the text: where the id is, and whether a score is above that of the rank before it."""

    start: IntsColumn
    length: IntsColumn
    rising: IntsColumn


class Tally(NamedTuple):
    """A row for neighbouring lines with one query (its position in `Queries`) and iteration; counts as in the ledger.

    GR, G and rest have a column for each threshold. Labels are added up in G only where they reach it: their multiples of
    the unit in G, and what is left of them in rest, so that both sums are exact.
    """

    query: IntsColumn
    iteration: IntsColumn
    R: IntsColumn
    UR: IntsColumn
    Unjudged: IntsColumn
    GR: IntsColumns
    G: FloatsColumns
    rest: FloatsColumns


#: Columns of the first line of each document of a query, in the order of the text: the query (its position in `Queries`), the
#: line, columns 2 and 4 of it, the judgment (-1: the query has no label for the document), and where the doc id is. They are one
#: table and not an array each, because all of a row is written at once: seven places in memory took a third longer.
FIRSTS = "query", "row", "iteration", "rank", "judgment", "doc_start", "doc_length"


class Found(NamedTuple):
    """What `scan_lines` fills.

    Attributes:
        queries, tally, firsts: tables; `FIRSTS` are the columns of the last.
        filled: how many rows of each are filled; whether the lines of each query are in order, by iteration and rank; and
            whether column 2 of some query has numbers.
    """

    queries: Queries
    tally: Tally
    firsts: IntsTable
    filled: Ints


def count_lines(text: ReadOnlyBytes) -> int:
    """How many newlines there are."""
    lines = 0
    for position in range(len(text)):
        lines += text[position] == NEWLINE
    return lines


def copy_texts(text: ReadOnlyBytes, starts: ReadOnlyInts, lengths: ReadOnlyInts, begins: Ints, copied: Bytes) -> int:
    """Put texts that stand at these places one after the other, where each begins, as Arrow lays them out."""
    for k in range(len(starts)):
        for byte in range(lengths[k]):
            copied[begins[k] + byte] = text[starts[k] + byte]
    return 0


def scan_lines(
    text: ReadOnlyBytes,
    separator: int,
    first_iteration: int,
    judgments: Judgments,
    rels: ReadOnlyFloats,
    scores: Floats,
    documents: Documents,
    found: Found,
) -> int:
    """Read the lines of a run into `found`, and say how many there are; or REFUSED, FULL or INEXACT.

    Args:
        text: the run; its last byte is a newline.
        separator: the byte between fields.
        first_iteration: the iteration of a query that has one word in column 2.
        judgments, rels: the labels, and the thresholds of the tally.
        scores: of each line, NaN where the loop is to read it and fill it in; empty where no ranking is wanted, and then
            no firsts are filled.
        documents, found: an empty table of documents; tables with room for a row per line.
    """
    queries, tally, firsts, filled = found
    lines = query = row = first = base = count = last_result = start = _ZERO
    last_rank, in_order, has_numbers = -1, True, False
    line = NO_LINE
    while start < len(text):
        before = line
        line = read_line(text, start, separator, before, first_iteration)
        if line.end < 0:
            return REFUSED
        if len(scores) > 0 and np.isnan(scores[lines]):
            scores[lines] = line.score
            if np.isnan(line.score):
                return INEXACT
        if line.is_new:
            _count_documents(documents, count, judgments.labels, judgments.unit[0], rels, tally)
            base += count
            has_numbers = has_numbers or not line.is_word
            count = _begin_query(queries, query, text, line, judgments, documents, base)
            query += 1
        if line.is_new or line.iteration != before.iteration:
            in_order = in_order and (line.is_new or line.iteration > before.iteration)
            _begin_iteration(tally, row, query - 1, line.iteration)
            row, last_rank = row + 1, -1
        if count >= 0 and not is_empty(text, line):
            in_order = in_order and line.rank >= last_rank
            if len(scores) > 0 and last_rank >= 0 and scores[lines] > scores[last_result]:
                queries.rising[query - 1] = 1
            last_rank, last_result = line.rank, lines
            count, new = _count_result(tally, row - 1, text, line, judgments.doc_text, documents, base, count)
            if len(scores) > 0 and new >= 0:
                _add_first(firsts, first, query - 1, lines, line, documents.judgments[new])
                first += 1
        if count < 0:
            return FULL
        start, lines = line.end, lines + 1
    _count_documents(documents, count, judgments.labels, judgments.unit[0], rels, tally)
    filled[0], filled[1], filled[2], filled[3], filled[4] = query, row, first, in_order, has_numbers
    return lines  # type: ignore[no-any-return]  # an int64


@step
def _begin_query(queries: Any, query: int, text: Any, line: Any, judgments: Any, documents: Any, base: int) -> int:
    """Enter a query, and the documents that it has labels for; say how many these are, or -1 where there is no room."""
    queries.start[query], queries.length[query], queries.rising[query] = line.query, line.query_length, 0
    judged = number_of(text, line.query, line.query_length, line.query_hash, judgments)
    return 0 if judged < 0 else add_judged(documents, base, judgments, judged)


@step
def _begin_iteration(tally: Any, row: int, query: int, iteration: int) -> None:
    tally.query[row], tally.iteration[row] = query, iteration
    tally.R[row], tally.UR[row], tally.Unjudged[row] = 0, 0, 0
    for rel in range(tally.GR.shape[1]):
        tally.GR[row, rel], tally.G[row, rel], tally.rest[row, rel] = 0, 0.0, 0.0


@step
def _count_result(
    tally: Any, row: int, text: Any, line: Any, judged_text: Any, documents: Any, base: int, count: int
) -> tuple[int, int]:
    """Count a result in its row of the tally.

    Returns:
        How many documents the query has now, -1 where there is no room for one more; and the number of the document if
        it was returned for the first time, else -1.
    """
    tally.R[row] += 1
    slot = find_document(documents, base, text, judged_text, line)
    if documents.slots[slot] < base:
        if count == len(documents.rows):
            return -1, -1
        add_document(documents, slot, base, count, line.doc, line.doc_length, line.doc_hash, -1)
        count += 1
    document = documents.slots[slot] - base
    first_row = documents.rows[document]
    if first_row < 0 or line.iteration < tally.iteration[first_row]:  # lines may be out of order
        documents.rows[document] = row
    return count, document if first_row < 0 else -1


@step
def _add_first(firsts: Any, at: int, query: int, row: int, line: Any, judgment: int) -> None:
    firsts[at, 0], firsts[at, 1], firsts[at, 2], firsts[at, 3] = query, row, line.iteration, line.rank
    firsts[at, 4], firsts[at, 5], firsts[at, 6] = judgment, line.doc, line.doc_length


@step
def _count_documents(documents: Any, count: int, labels: Any, unit: float, rels: Any, tally: Any) -> None:
    """Count the documents of a query in the rows of the tally where they were first returned."""
    for document in range(count):
        row = documents.rows[document]
        if row < 0:  # judged, and not returned
            continue
        judgment = documents.judgments[document]
        tally.UR[row] += 1
        if judgment < 0:
            tally.Unjudged[row] += 1
            continue
        for rel in range(len(rels)):
            if labels[judgment] >= rels[rel]:
                tally.GR[row, rel] += 1
                whole = labels[judgment] if unit == 0.0 else math.floor(labels[judgment] / unit) * unit
                tally.G[row, rel] += whole
                tally.rest[row, rel] += labels[judgment] - whole
