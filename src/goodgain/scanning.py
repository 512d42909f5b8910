"""The loop over the bytes of plain TREC text: each iteration's results, first occurrences and good documents.

`compiled` compiles the kernels here; nothing else imports this file, for it loads numba. An argument named Bytes, Ints,
Hashes or Floats is the first element of a C-contiguous array of uint8, int64, uint64 or float64; tables are given row by
row. Nothing here can fail, so that what is compiled needs neither Python nor numba: other functions are made part of the
kernels (`inline="always"`), and nothing divides, allocates or raises.

Ids are told apart by their bytes; hashes only say where to look. A line that is not plain ends the loop with a refusal,
and the readers of `formats` judge it: six fields with one separator between them, whole numbers as iteration and rank, a
finite score, one tag a query. The text ends with a newline, which ends every field too: no other end of it is looked for.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import int64, njit, uint64

__all__ = ["copy_texts", "count_lines", "number_ids", "scan_lines", "sort_judgments"]

Bytes: TypeAlias = Any
Ints: TypeAlias = Any
Hashes: TypeAlias = Any
Floats: TypeAlias = Any

_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0xD6E8FEB86659FD93)
_BLANK, _NEWLINE, _PLUS, _MINUS, _DOT, _ZERO, _NINE = 32, 10, 43, 45, 46, 48, 57
_DIGITS = 15  # of a whole number: more may not fit where it is kept
_FINITE = 200  # digits of a score that is finite for sure, with an exponent of two digits

_part_of_kernels = njit(inline="always")


def count_lines(text: Bytes, size: int) -> int:
    """How many newlines there are."""
    lines = 0
    for position in range(size):
        lines += text[position] == _NEWLINE
    return lines


def copy_texts(text: Bytes, offsets: Ints, lengths: Ints, count: int, begins: Ints, copied: Bytes) -> int:
    """Put texts that stand at these places one after the other, where each begins, as Arrow lays them out."""
    for k in range(count):
        for byte in range(lengths[k]):
            copied[begins[k] + byte] = text[offsets[k] + byte]
    return count


@_part_of_kernels
def _same(one: Any, i: int, other: Any, j: int, length: int) -> bool:
    for k in range(length):  # noqa: SIM110  # all() of a generator is not compiled
        if one[i + k] != other[j + k]:
            return False
    return True


@_part_of_kernels
def _repeated(text: Any, position: int, earlier: int, length: int) -> bool:
    """Whether the field that starts here is the same as an earlier one, in which there is no newline."""
    return _same(text, position, text, earlier, length) and text[position + length] <= _BLANK


@_part_of_kernels
def _field(text: Any, start: int) -> tuple[int, Any]:
    """Where a field ends (at white space or a control character), and a hash of it."""
    value, word, position = _SEED, uint64(0), start
    while text[position] > _BLANK:
        word = (word << uint64(8)) | uint64(text[position])
        position += 1
        if (position - start) & 7 == 0:
            value = (value ^ word) * _PRIME
            value ^= value >> uint64(32)
            word = uint64(0)
    return position, _mixed(value, word, position - start)


@_part_of_kernels
def _hashed(text: Any, start: int, length: int) -> Any:
    """The hash that `_field` gives for these bytes."""
    value, word = _SEED, uint64(0)
    for k in range(length):
        word = (word << uint64(8)) | uint64(text[start + k])
        if (k + 1) & 7 == 0:
            value = (value ^ word) * _PRIME
            value ^= value >> uint64(32)
            word = uint64(0)
    return _mixed(value, word, length)


@_part_of_kernels
def _mixed(value: Any, word: Any, length: int) -> Any:
    value = (value ^ word ^ uint64(length)) * _PRIME
    value = (value ^ (value >> uint64(32))) * _PRIME
    return value ^ (value >> uint64(32))


@_part_of_kernels
def _slot(value: Any, size: int) -> Any:
    """Where to look for a hash first, in a table whose size is a power of two."""
    return int64(value & uint64(size - 1))


@_part_of_kernels
def _digits(text: Any, position: int) -> tuple[int, int]:
    """Where digits end, and the number they make."""
    number = 0
    while _ZERO <= text[position] <= _NINE:
        number = number * 10 + int64(text[position]) - _ZERO
        position += 1
    return position, number


@_part_of_kernels
def _digits_end(text: Any, position: int) -> int:
    while _ZERO <= text[position] <= _NINE:
        position += 1
    return position


@_part_of_kernels
def _number_end(text: Any, position: int) -> int:
    """Where a number ends that is finite for sure; -1 for anything else."""
    if text[position] == _PLUS or text[position] == _MINUS:
        position += 1
    end: int = _digits_end(text, position)
    digits = end - position
    if text[end] == _DOT:
        position = end + 1
        end = _digits_end(text, position)
        digits += end - position
    if digits == 0 or digits > _FINITE:
        return -1
    if (text[end] | 32) == 101:  # e or E
        position = end + 1
        if text[position] == _PLUS or text[position] == _MINUS:
            position += 1
        end = _digits_end(text, position)
        if end == position or end - position > 2:
            return -1
    return end


@_part_of_kernels
def _number_of(
    text: Any, start: int, length: int, value: Any, ids: Any, offsets: Any, slots: Any, size: int, first_rows: Any
) -> int:
    """The number that `number_ids` gave to a text with this hash; -1 for none."""
    slot = _slot(value, size)
    found = -1
    while found < 0 and slots[slot] >= 0:
        row = first_rows[slots[slot]]
        if offsets[row + 1] - offsets[row] == length and _same(ids, offsets[row], text, start, length):
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
        value = _hashed(text, start, length)
        number = _number_of(text, start, length, value, text, offsets, slots, size, first_rows)
        if number < 0:
            if 2 * found >= size:
                return -1
            slot = _slot(value, size)
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
        hashes[at] = _hashed(text, offset, length)
        labels[at] = relevance[row]
        places[2 * at] = offset
        places[2 * at + 1] = length
    return count


@_part_of_kernels
def _count_firsts(known: Any, count: int, labels: Any, rels: Any, rel_count: int, counts: Any, gains: Any) -> int:
    """Count the documents of a query where each was first returned."""
    for k in range(count):
        segment = known[4 * k + 3]
        if segment >= 0:
            row = segment * (5 + rel_count)
            counts[row + 3] += 1
            judgment = known[4 * k + 2]
            if judgment < 0:
                counts[row + 4] += 1
            else:
                for rel in range(rel_count):
                    if labels[judgment] >= rels[rel]:
                        counts[row + 5 + rel] += 1
                        gains[segment * rel_count + rel] += labels[judgment]
    return count


def scan_lines(
    text: Bytes,
    size: int,
    separator: int,
    first_number: int,
    query_text: Bytes,
    query_offsets: Ints,
    query_rows: Ints,
    slots: Ints,
    slots_size: int,
    doc_text: Bytes,
    starts: Ints,
    doc_hashes: Hashes,
    places: Ints,
    labels: Floats,
    rels: Floats,
    rel_count: int,
    scores: Floats,
    score_count: int,
    queries: Ints,
    counts: Ints,
    gains: Floats,
    firsts: Ints,
    known: Ints,
    hashes: Hashes,
    table: Ints,
    room: int,
    filled: Ints,
) -> int:
    """Read the lines of a run; fill `queries`, `counts`, `gains`, `firsts` and `filled`, and say how many rows there are.

    Args:
        text, size: the bytes of the run, of which the last is a newline, and how many.
        separator: the byte between fields.
        first_number: the iteration of a query that has one word in column 2.
        query_text, query_offsets, query_rows, slots, slots_size: the judged queries, as `number_ids` takes and numbers
            them.
        doc_text, starts, doc_hashes, places, labels: their documents, as `sort_judgments` sorts them.
        rels, rel_count: the thresholds.
        scores, score_count: the score of every row; none where no ranking is wanted, and then `firsts` is not filled.
        queries: offset and length of the id, whether a score is above that of the rank before it. This table and the
            next ones have room for a row per line.
        counts, gains: of neighbouring rows with one query and iteration: query, iteration, R, UR, Unjudged, and GR and G
            for each threshold.
        firsts: query, row, offset and length of the id, iteration, rank of the first row of each document.
        known, hashes, table, room: room for the documents of one query (judged or met: offset, length, judgment, row of
            `counts` where it was first returned) and a table of twice their number, a power of two, all -1.
        filled: how many rows of queries, counts and firsts are filled; whether all rows of a query are in order.

    Returns:
        The rows. -1: a line is not plain. -2: there is no room for the documents of a query.
    """
    rows = query_count = segments = first_count = 0
    in_order = True
    query = query_length = tag = tag_length = word = word_length = 0
    is_word = False
    number = rank = -1
    score = 0.0
    width = 5 + rel_count
    base = count = 0  # in the table a document is base + its position in `known`; less is of a query before
    mask = 2 * room - 1
    position = 0
    while position < size:
        is_new = rows == 0 or not _repeated(text, position, query, query_length)
        if is_new:
            _count_firsts(known, count, labels, rels, rel_count, counts, gains)
            query = position
            position, value = _field(text, query)
            query_length = position - query
            queries[3 * query_count], queries[3 * query_count + 1], queries[3 * query_count + 2] = (
                query,
                query_length,
                0,
            )
            query_count += 1
            base, count = base + count, 0
            judged = _number_of(
                text, query, query_length, value, query_text, query_offsets, slots, slots_size, query_rows
            )
            if judged >= 0:
                for judgment in range(starts[judged], starts[judged + 1]):
                    if count == room:
                        return -2
                    slot = _slot(doc_hashes[judgment], 2 * room)
                    while table[slot] >= base:
                        slot = (slot + 1) & mask
                    table[slot] = base + count
                    hashes[count] = doc_hashes[judgment]
                    known[4 * count], known[4 * count + 1] = places[2 * judgment], places[2 * judgment + 1]
                    known[4 * count + 2], known[4 * count + 3] = judgment, -1
                    count += 1
        else:
            position += query_length
        if query_length == 0 or text[position] != separator:
            return -1

        start = position + 1
        position, found = _digits(text, start)
        if is_new:
            word = start
            is_word = position == start and text[position] != _PLUS
            if is_word:
                position, _ = _field(text, start)
            word_length = position - start
        elif is_word:
            if not _repeated(text, start, word, word_length):
                return -1
            position = start + word_length
        if is_word:
            found = first_number
        if position == start or text[position] != separator or (not is_word and position - start > _DIGITS):
            return -1
        if is_new or found != number:
            in_order = in_order and (is_new or found > number)
            number, rank = found, -1
            counts[segments * width], counts[segments * width + 1] = query_count - 1, number
            for column in range(2, width):
                counts[segments * width + column] = 0
            for column in range(rel_count):
                gains[segments * rel_count + column] = 0.0
            segments += 1

        doc = position + 1
        position, value = _field(text, doc)
        length = position - doc
        if length == 0 or text[position] != separator:
            return -1

        start = position + 1
        position, found = _digits(text, start)
        if position == start or position - start > _DIGITS or text[position] != separator:
            return -1

        position = _number_end(text, position + 1)
        if position < 0 or text[position] != separator:
            return -1

        start = position + 1
        if is_new:
            tag = start
            position, _ = _field(text, tag)
            tag_length = position - tag
        elif _repeated(text, start, tag, tag_length):
            position = start + tag_length
        else:
            return -1
        if tag_length == 0 or text[position] != _NEWLINE:
            return -1
        position += 1
        rows += 1

        if length == 1 and text[doc] == _MINUS:
            continue
        if score_count > 0:
            if rows > score_count:
                return -1
            if rank >= 0 and scores[rows - 1] > score:
                queries[3 * query_count - 1] = 1
            score = scores[rows - 1]
        in_order = in_order and found >= rank
        rank = found
        counts[(segments - 1) * width + 2] += 1
        if count == room:
            return -2
        slot = _slot(value, 2 * room)
        here = -1
        while here < 0 and table[slot] >= base:
            k = table[slot] - base
            if hashes[k] == value and known[4 * k + 1] == length:
                if known[4 * k + 2] < 0:
                    is_same = _same(text, known[4 * k], text, doc, length)
                else:
                    is_same = _same(doc_text, known[4 * k], text, doc, length)
                if is_same:
                    here = k
            slot = (slot + 1) & mask
        if here < 0:
            here = count
            slot = _slot(value, 2 * room)
            while table[slot] >= base:
                slot = (slot + 1) & mask
            table[slot] = base + count
            hashes[count] = value
            known[4 * count], known[4 * count + 1], known[4 * count + 2], known[4 * count + 3] = doc, length, -1, -1
            count += 1
        earlier = known[4 * here + 3]
        if earlier >= 0:
            if number < counts[earlier * width + 1]:
                known[4 * here + 3] = segments - 1
            continue
        known[4 * here + 3] = segments - 1
        if score_count > 0:
            first = 6 * first_count
            firsts[first], firsts[first + 1], firsts[first + 2] = query_count - 1, rows - 1, doc
            firsts[first + 3], firsts[first + 4], firsts[first + 5] = length, number, found
            first_count += 1
    _count_firsts(known, count, labels, rels, rel_count, counts, gains)
    filled[0], filled[1], filled[2], filled[3] = query_count, segments, first_count, in_order
    return rows
