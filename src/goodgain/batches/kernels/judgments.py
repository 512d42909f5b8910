"""Judgments, query by query, as the loop looks them up."""

from typing import Any, NamedTuple

from goodgain.batches.kernels.arguments import Floats, Hashes, Ints, ReadOnlyBytes, ReadOnlyFloats, ReadOnlyInts, step
from goodgain.batches.kernels.bytes_of_fields import first_slot, hashed, same

__all__ = ["Judgments", "number_ids", "number_of", "sort_judgments"]


class Judgments(NamedTuple):
    """Labels of documents, those of each query together.

    Queries are numbered in the order of their first rows in the qrels (`number_ids`); the judgments of query k are at
    query_starts[k] up to query_starts[k + 1] (`sort_judgments`).

    Attributes:
        query_text, query_offsets: the query ids of all rows, as Arrow lays them out: that of row r is
            query_text[query_offsets[r] : query_offsets[r + 1]].
        query_rows: the first row of each query.
        query_slots: a hash table of the numbers of queries; -1 where a slot is empty.
        query_starts: where the judgments of each query begin.
        doc_text: the bytes of the doc ids.
        starts, lengths, hashes, labels: where in `doc_text` the document of each judgment is, its hash and its label.
    """

    query_text: ReadOnlyBytes
    query_offsets: ReadOnlyInts
    query_rows: Ints
    query_slots: Ints
    query_starts: Ints
    doc_text: ReadOnlyBytes
    starts: Ints
    lengths: Ints
    hashes: Hashes
    labels: Floats


@step
def number_of(text: Any, start: int, length: int, value: Any, ids: Any, offsets: Any, slots: Any, rows: Any) -> int:
    """The number that `number_ids` gave to a text with this hash; -1 for none."""
    slot = first_slot(value, len(slots))
    while slots[slot] >= 0:
        row = rows[slots[slot]]
        if offsets[row + 1] - offsets[row] == length and same(ids, offsets[row], text, start, length):
            return slots[slot]  # type: ignore[no-any-return]  # an int64
        slot = (slot + 1) & (len(slots) - 1)
    return -1


def number_ids(text: ReadOnlyBytes, offsets: ReadOnlyInts, slots: Ints, numbers: Ints, first_rows: Ints) -> int:
    """Number ids in the order of their first rows, and say how many there are; -1 where the table is too small.

    Args:
        text, offsets: the ids, as Arrow lays them out.
        slots: a hash table that is to lead from an id to its number; all -1, its size a power of two.
        numbers: is to have the number of each row.
        first_rows: is to have the first row of each number.
    """
    found = 0
    for row in range(len(numbers)):
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        value = hashed(text, start, length)
        number = number_of(text, start, length, value, text, offsets, slots, first_rows)
        if number < 0:
            if 2 * found >= len(slots):
                return -1
            slot = first_slot(value, len(slots))
            while slots[slot] >= 0:
                slot = (slot + 1) & (len(slots) - 1)
            number = found
            slots[slot], first_rows[found] = found, row
            found += 1
        numbers[row] = number
    return found


def sort_judgments(numbers: Ints, offsets: ReadOnlyInts, relevance: ReadOnlyFloats, judgments: Judgments) -> int:
    """Put the documents and labels of all rows in the order of the numbers of their queries.

    Args:
        numbers: of the query of each row.
        offsets: of the document of each row, in `judgments.doc_text`.
        relevance: of each row.
        judgments: `query_starts` is all 0, with room for two more than there are queries; it and `starts`, `lengths`,
            `hashes`, `labels` are filled.
    """
    query_starts = judgments.query_starts
    for row in range(len(numbers)):
        query_starts[numbers[row] + 2] += 1
    for k in range(2, len(query_starts)):
        query_starts[k] += query_starts[k - 1]
    for row in range(len(numbers)):
        at = query_starts[numbers[row] + 1]
        query_starts[numbers[row] + 1] += 1
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        judgments.starts[at], judgments.lengths[at] = start, length
        judgments.hashes[at] = hashed(judgments.doc_text, start, length)
        judgments.labels[at] = relevance[row]
    return 0
