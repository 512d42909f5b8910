"""The compiled loop over the bytes of plain TREC text: first occurrences, their labels, results per iteration.

Ids are told apart by their bytes; hashes only say where to look. A line that is not plain ends the loop with a refusal,
and the readers of `formats` judge it: six fields with one separator between them, whole numbers as iteration and rank, a
finite score, one tag a query.

Positions are used as unsigned numbers: Python's negative ones, which numba would look for, took a fifth of the time.

The text ends with a newline, which ends every field too: no other end of the text need be looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, uint64

__all__ = ["COUNTS", "FIRSTS", "QUERIES", "copy_texts", "count_lines", "number_ids", "scan_lines", "sort_judgments"]

#: Columns of what is filled: queries (whether a score is above that of the rank before)
QUERIES = ("offset", "length", "rising")
#: counts of neighbouring rows with one query and iteration (and GR for each threshold)
COUNTS = ("query", "iteration", "R", "UR", "Unjudged")
#: and the first row of each document.
FIRSTS = ("query", "row", "offset", "length", "iteration", "rank")

_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0xD6E8FEB86659FD93)
_BLANK, _NEWLINE, _PLUS, _MINUS, _DOT, _ZERO, _NINE = 32, 10, 43, 45, 46, 48, 57
_DIGITS = 15  # of a whole number: more may not fit where it is kept
_FINITE = 200  # digits of a score that is finite for sure, with an exponent of two digits


def _compiled(function: Callable[..., Any]) -> Any:
    """Compiled when first called, and kept for the next process where there is a folder to keep it in.

    No function here makes an array, so none needs to count references to them, which took half of the time.
    """
    options: Any = {"nogil": True, "_nrt": False}  # numba's own switch, known to its compiler but not to its types
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        return njit(**options)(function)


@_compiled
def count_lines(text: Any) -> int:
    """How many newlines there are."""
    lines = 0
    for byte in text:
        lines += byte == _NEWLINE
    return lines


@_compiled
def _same(one: Any, i: int, other: Any, j: int, length: int) -> bool:
    for k in range(length):  # noqa: SIM110  # all() of a generator is not compiled
        if one[uint64(i + k)] != other[uint64(j + k)]:
            return False
    return True


@_compiled
def _repeated(text: Any, position: int, earlier: int, length: int) -> bool:
    """Whether the field that starts here is the same as an earlier one, in which there is no newline."""
    return _same(text, position, text, earlier, length) and text[uint64(position + length)] <= _BLANK


@_compiled
def _field(text: Any, start: int) -> tuple[Any, Any]:
    """Where a field ends (at white space or a control character), and a hash of it."""
    value, word = _SEED, uint64(0)
    position = uint64(start)
    while text[position] > _BLANK:
        word = (word << uint64(8)) | uint64(text[position])
        position += uint64(1)
        if (position - uint64(start)) & uint64(7) == 0:
            value = (value ^ word) * _PRIME
            value ^= value >> uint64(32)
            word = uint64(0)
    return np.int64(position), _mixed(value, word, position - uint64(start))


@_compiled
def _hashed(text: Any, start: int, end: int) -> Any:
    """The hash that `_field` gives for these bytes."""
    value, word = _SEED, uint64(0)
    for position in range(uint64(start), uint64(end)):
        word = (word << uint64(8)) | uint64(text[position])
        if (position + uint64(1) - uint64(start)) & uint64(7) == 0:
            value = (value ^ word) * _PRIME
            value ^= value >> uint64(32)
            word = uint64(0)
    return _mixed(value, word, uint64(end - start))


@_compiled
def _mixed(value: Any, word: Any, length: Any) -> Any:
    value = (value ^ word ^ length) * _PRIME
    value = (value ^ (value >> uint64(32))) * _PRIME
    return value ^ (value >> uint64(32))


@_compiled
def _digits(text: Any, position: int) -> tuple[int, int]:
    """Where digits end, and the number they make."""
    number = 0
    while _ZERO <= text[uint64(position)] <= _NINE:
        number = number * 10 + int(text[uint64(position)]) - _ZERO
        position += 1
    return position, number


@_compiled
def _digits_end(text: Any, position: int) -> int:
    while _ZERO <= text[uint64(position)] <= _NINE:
        position += 1
    return position


@_compiled
def _number_end(text: Any, position: int) -> int:
    """Where a number ends that is finite for sure; -1 for anything else."""
    if text[uint64(position)] == _PLUS or text[uint64(position)] == _MINUS:
        position += 1
    end: int = _digits_end(text, position)
    digits = end - position
    if text[uint64(end)] == _DOT:
        position = end + 1
        end = _digits_end(text, position)
        digits += end - position
    if digits == 0 or digits > _FINITE:
        return -1
    if (text[uint64(end)] | 32) == 101:  # e or E
        position = end + 1
        if text[uint64(position)] == _PLUS or text[uint64(position)] == _MINUS:
            position += 1
        end = _digits_end(text, position)
        if end == position or end - position > 2:
            return -1
    return end


@_compiled
def number_ids(text: Any, offsets: Any, slots: Any, numbers: Any, first_rows: Any) -> int:
    """Number ids in the order of their first rows, and say how many there are; -1 where the table is too small.

    Args:
        text, offsets: the ids, as Arrow lays them out.
        slots: a table that is to lead from the hash of an id to its number; all -1, its size a power of two.
        numbers: is to have the number of each row.
        first_rows: is to have the first row of each number.
    """
    count, mask = 0, uint64(len(slots) - 1)
    for row in range(uint64(len(offsets) - 1)):
        start, length = offsets[row], offsets[row + uint64(1)] - offsets[row]
        value = _hashed(text, start, start + length)
        number = _number_of(text, start, length, value, text, offsets, slots, first_rows)
        if number < 0:
            if 2 * count >= len(slots):
                return -1
            slot = value & mask
            while slots[slot] >= 0:
                slot = (slot + uint64(1)) & mask
            number = count
            slots[slot], first_rows[uint64(count)] = count, row
            count += 1
        numbers[row] = number
    return count


@_compiled
def _number_of(text: Any, start: int, length: int, value: Any, ids: Any, offsets: Any, slots: Any, rows: Any) -> int:
    """The number that `number_ids` gave to a text with this hash; -1 for none."""
    mask = uint64(len(slots) - 1)
    slot = value & mask
    while slots[slot] >= 0:
        number = slots[slot]
        row = uint64(rows[uint64(number)])
        if offsets[row + uint64(1)] - offsets[row] == length and _same(ids, offsets[row], text, start, length):
            return np.int64(number)
        slot = (slot + uint64(1)) & mask
    return np.int64(-1)


@_compiled
def sort_judgments(
    numbers: Any, text: Any, offsets: Any, relevance: Any, starts: Any, hashes: Any, places: Any, labels: Any
) -> None:
    """Judgments in order of the numbers of their queries: those of number k go from starts[k] to starts[k + 1].

    Args:
        numbers: of the query of each row.
        text, offsets, relevance: of the document of each row.
        starts: is to say where the judgments of each query are; all 0, with room for two more than there are queries.
        hashes, places, labels: are to have the documents' hashes, (offset, length) and labels.
    """
    for number in numbers:
        starts[uint64(number + 2)] += 1
    for k in range(uint64(2), uint64(len(starts))):
        starts[k] += starts[k - uint64(1)]
    for row in range(uint64(len(numbers))):
        k = uint64(numbers[row] + 1)
        at = uint64(starts[k])
        starts[k] += 1
        offset, end = offsets[row], offsets[row + uint64(1)]
        hashes[at], labels[at] = _hashed(text, offset, end), relevance[row]
        places[at, 0], places[at, 1] = offset, end - offset


@_compiled
def _count_firsts(known: Any, count: int, labels: Any, rels: Any, counts: Any, gains: Any) -> None:
    """Count the documents of a query where each was first returned."""
    for k in range(uint64(count)):
        segment = known[k, 3]
        if segment < 0:
            continue
        counts[uint64(segment), 3] += 1
        judgment = known[k, 2]
        if judgment < 0:
            counts[uint64(segment), 4] += 1
            continue
        label = labels[uint64(judgment)]
        for rel in range(uint64(len(rels))):
            if label >= rels[rel]:
                counts[uint64(segment), uint64(5) + rel] += 1
                gains[uint64(segment), rel] += label


@_compiled
def scan_lines(
    text: Any,
    separator: int,
    first_number: int,
    query_text: Any,
    query_offsets: Any,
    query_rows: Any,
    slots: Any,
    doc_text: Any,
    starts: Any,
    doc_hashes: Any,
    places: Any,
    labels: Any,
    rels: Any,
    scores: Any,
    queries: Any,
    counts: Any,
    gains: Any,
    firsts: Any,
    known: Any,
    hashes: Any,
    table: Any,
) -> tuple[int, int, int, int, bool]:
    """Read the lines of a run; fill `queries`, `counts`, `gains` and `firsts`.

    Args:
        text: the bytes of the run; the last one is a newline.
        separator: the byte between fields.
        first_number: the iteration of a query that has one word in column 2.
        query_text, query_offsets, query_rows, slots: the queries of the judgments, as `number_ids` takes and numbers them.
        doc_text, starts, doc_hashes, places, labels: their documents, as `sort_judgments` sorts them.
        rels: the thresholds.
        scores: the score of every row; empty where no ranking is wanted, and then `firsts` is not filled.
        queries, counts, firsts: what is filled, with room for a row per line.
        gains: G of each row of `counts` for each threshold.
        known, hashes, table: room for the documents of one query (judged or met; offset, length, judgment, row of
            `counts` where it was first returned) and a table of twice their number, all -1.

    Returns:
        How many rows there are, how many rows of each table are filled, and whether the rows of every query stand in
        order of iteration and rank. -1 rows: a line is not plain; -2 rows: there is no room for the documents of a query.
    """
    refused, crowded = (-1, 0, 0, 0, False), (-2, 0, 0, 0, False)
    rows = query_count = segments = first_count = 0
    in_order = True
    query = query_length = tag = tag_length = word = word_length = 0
    is_word = False
    number = rank = -1
    score = 0.0
    base = count = 0  # in the table a document is base + its position in `known`; less is of a query before
    mask = uint64(len(table) - 1)
    position = 0
    while position < len(text):
        is_new = rows == 0 or not _repeated(text, position, query, query_length)
        if is_new:
            _count_firsts(known, count, labels, rels, counts, gains)
            query = position
            position, value = _field(text, position)
            query_length = position - query
            queries[query_count, 0], queries[query_count, 1], queries[query_count, 2] = query, query_length, 0
            query_count += 1
            base, count = base + count, 0
            judged = _number_of(text, query, query_length, value, query_text, query_offsets, slots, query_rows)
            if judged >= 0:
                for judgment in range(uint64(starts[judged]), uint64(starts[judged + 1])):
                    if count == len(known):
                        return crowded
                    value = doc_hashes[judgment]
                    slot = value & mask
                    while table[slot] >= base:
                        slot = (slot + uint64(1)) & mask
                    table[slot] = base + count
                    hashes[uint64(count)] = value
                    known[uint64(count), 0], known[uint64(count), 1] = places[judgment, 0], places[judgment, 1]
                    known[uint64(count), 2], known[uint64(count), 3] = judgment, -1
                    count += 1
        else:
            position += query_length
        if query_length == 0 or text[uint64(position)] != separator:
            return refused

        start = position + 1
        position, found = _digits(text, start)
        if is_new:
            word = start
            is_word = position == start and text[uint64(position)] != _PLUS
            if is_word:
                position, value = _field(text, start)
            word_length = position - start
        elif is_word:
            if not _repeated(text, start, word, word_length):
                return refused
            position = start + word_length
        if is_word:
            found = first_number
        if position == start or text[uint64(position)] != separator:
            return refused
        if not is_word and position - start > _DIGITS:
            return refused
        if is_new or found != number:
            in_order = in_order and (is_new or found > number)
            number, rank = found, -1
            counts[segments, 0], counts[segments, 1] = query_count - 1, number
            for column in range(uint64(2), uint64(counts.shape[1])):
                counts[segments, column] = 0
            for column in range(uint64(gains.shape[1])):
                gains[segments, column] = 0
            segments += 1

        doc = position + 1
        position, value = _field(text, doc)
        length = position - doc
        if length == 0 or text[uint64(position)] != separator:
            return refused

        start = position + 1
        position, found = _digits(text, start)
        if position == start or position - start > _DIGITS or text[uint64(position)] != separator:
            return refused

        position = _number_end(text, position + 1)
        if position < 0 or text[uint64(position)] != separator:
            return refused

        position += 1
        if is_new:
            tag = position
            position, _ = _field(text, tag)
            tag_length = position - tag
        elif _repeated(text, position, tag, tag_length):
            position += tag_length
        else:
            return refused
        if tag_length == 0 or text[uint64(position)] != _NEWLINE:
            return refused
        position += 1
        rows += 1

        if length == 1 and text[uint64(doc)] == _MINUS:
            continue
        if len(scores) > 0:
            if rows > len(scores):
                return refused
            if rank >= 0 and scores[rows - 1] > score:
                queries[query_count - 1, 2] = 1
            score = scores[rows - 1]
        in_order = in_order and found >= rank
        rank = found
        counts[uint64(segments - 1), 2] += 1
        if count == len(known):
            return crowded
        slot = value & mask
        here = -1
        while table[slot] >= base:
            k = table[slot] - base
            if hashes[uint64(k)] == value and known[uint64(k), 1] == length:
                if known[uint64(k), 2] < 0:
                    is_same = _same(text, known[uint64(k), 0], text, doc, length)
                else:
                    is_same = _same(doc_text, known[uint64(k), 0], text, doc, length)
                if is_same:
                    here = k
                    break
            slot = (slot + uint64(1)) & mask
        if here < 0:
            here = count
            table[slot] = base + count
            hashes[uint64(count)] = value
            known[uint64(count), 0], known[uint64(count), 1] = doc, length
            known[uint64(count), 2], known[uint64(count), 3] = -1, -1
            count += 1
        earlier = known[uint64(here), 3]
        if earlier >= 0:
            if number < counts[uint64(earlier), 1]:
                known[uint64(here), 3] = segments - 1
            continue
        known[uint64(here), 3] = segments - 1
        if len(scores) > 0:
            firsts[first_count, 0], firsts[first_count, 1] = query_count - 1, rows - 1
            firsts[first_count, 2], firsts[first_count, 3] = doc, length
            firsts[first_count, 4], firsts[first_count, 5] = number, found
            first_count += 1
    _count_firsts(known, count, labels, rels, counts, gains)
    return rows, query_count, segments, first_count, in_order


@_compiled
def copy_texts(text: Any, offsets: Any, lengths: Any, begins: Any, copied: Any) -> None:
    """Put texts that stand at these places one after the other, where each begins, as Arrow lays them out."""
    for k in range(len(offsets)):
        for byte in range(lengths[k]):
            copied[begins[k] + byte] = text[offsets[k] + byte]
