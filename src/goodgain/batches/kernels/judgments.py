"""Judgments, query by query, as `scan_lines` takes them."""

from __future__ import annotations

from typing import Any

from goodgain.batches.kernels.arguments import Bytes, Floats, Hashes, Ints, inlined
from goodgain.batches.kernels.fields import first_slot, hashed, same

__all__ = ["number_ids", "number_of", "sort_judgments"]


@inlined
def number_of(
    text: Any, start: int, length: int, value: Any, ids: Any, offsets: Any, slots: Any, size: int, first_rows: Any
) -> int:
    """The number that `number_ids` gave to a text with this hash; -1 for none."""
    slot = first_slot(value, size)
    found = -1
    while found < 0 and slots[slot] >= 0:
        row = first_rows[slots[slot]]
        if offsets[row + 1] - offsets[row] == length and same(ids, offsets[row], text, start, length):
            found = slots[slot]
        slot = (slot + 1) & (size - 1)
    return found


def number_ids(text: Bytes, offsets: Ints, count: int, slots: Ints, size: int, numbers: Ints, first_rows: Ints) -> int:
    """Number ids in the order of their first rows, and say how many there are; -1 where the table is too small.

    Args:
        text, offsets, count: the ids, as Arrow lays them out, and how many rows they have.
        slots, size: a table that is to lead from the hash of an id to its number; all -1, its size a power of two.
        numbers: is to have the number of each row.
        first_rows: is to have the first row of each number.
    """
    found = 0
    for row in range(count):
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        value = hashed(text, start, length)
        number = number_of(text, start, length, value, text, offsets, slots, size, first_rows)
        if number < 0:
            if 2 * found >= size:
                return -1
            slot = first_slot(value, size)
            while slots[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            number = found
            slots[slot], first_rows[found] = found, row
            found += 1
        numbers[row] = number
    return found


def sort_judgments(
    numbers: Ints,
    count: int,
    queries: int,
    text: Bytes,
    offsets: Ints,
    relevance: Floats,
    starts: Ints,
    hashes: Hashes,
    places: Ints,
    labels: Floats,
) -> int:
    """Judgments in order of the numbers of their queries: those of number k go from starts[k] to starts[k + 1].

    Args:
        numbers, count, queries: of the query of each row, how many rows, how many queries.
        text, offsets, relevance: of the document of each row.
        starts: is to say where the judgments of each query are; all 0, with room for two more than there are queries.
        hashes, places, labels: are to have the documents' hashes, (offset, length) and labels.
    """
    for row in range(count):
        starts[numbers[row] + 2] += 1
    for k in range(2, queries + 2):
        starts[k] += starts[k - 1]
    for row in range(count):
        at = starts[numbers[row] + 1]
        starts[numbers[row] + 1] += 1
        offset, length = offsets[row], offsets[row + 1] - offsets[row]
        hashes[at] = hashed(text, offset, length)
        labels[at] = relevance[row]
        places[2 * at] = offset
        places[2 * at + 1] = length
    return 0
