"""The loop over the lines of plain TREC text: each iteration's results, first occurrences and good documents.

A line that is not plain ends the loop with a refusal, and the readers of `formats` judge it: six fields with one separator
between them, whole numbers as iteration and rank, a finite score, one tag a query.
"""

from __future__ import annotations

from typing import Any

from goodgain.batches.compiled_kernels import COUNT_COLUMNS, FIRST_COLUMNS, QUERY_COLUMNS
from goodgain.batches.kernels.arguments import Bytes, Floats, Hashes, Ints, inlined
from goodgain.batches.kernels.fields import (
    MINUS,
    NEWLINE,
    PLUS,
    ZERO,
    digits,
    field,
    first_slot,
    number_end,
    repeated,
    same,
)
from goodgain.batches.kernels.judgments import number_of

__all__ = ["copy_texts", "count_lines", "scan_lines"]

#: How many columns the tables have that are filled; in counts, GR for each threshold follows.
QUERIES, COUNTS, FIRSTS = len(QUERY_COLUMNS), len(COUNT_COLUMNS), len(FIRST_COLUMNS)
KNOWN = 4  # of a document: offset, length, judgment, row of counts where it was first returned
_DIGITS = 15  # of a whole number: more may not fit where it is kept


def count_lines(text: Bytes, size: int) -> int:
    """How many newlines there are."""
    lines = 0
    for position in range(size):
        lines += text[position] == NEWLINE
    return lines


def copy_texts(text: Bytes, offsets: Ints, lengths: Ints, count: int, begins: Ints, copied: Bytes) -> int:
    """Put texts that stand at these places one after the other, where each begins, as Arrow lays them out."""
    for k in range(count):
        for byte in range(lengths[k]):
            copied[begins[k] + byte] = text[offsets[k] + byte]
    return 0


@inlined
def _count_firsts(known: Any, count: int, labels: Any, rels: Any, rel_count: int, counts: Any, gains: Any) -> int:
    """Count the documents of a query where each was first returned."""
    for k in range(count):
        segment = known[KNOWN * k + 3]
        if segment >= 0:
            row = segment * (COUNTS + rel_count)
            counts[row + 3] += 1
            judgment = known[KNOWN * k + 2]
            if judgment < 0:
                counts[row + 4] += 1
            else:
                for rel in range(rel_count):
                    if labels[judgment] >= rels[rel]:
                        counts[row + COUNTS + rel] += 1
                        gains[segment * rel_count + rel] += labels[judgment]
    return 0


def scan_lines(
    text: Bytes,
    size: int,
    separator: int,
    first_iteration: int,
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
        first_iteration: the iteration of a query that has one word in column 2.
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
        The rows. -1: a line is not plain, or there are more rows than scores. -2: there is no room for the documents of a query.
    """
    rows = query_count = segments = first_count = 0
    in_order = True
    query = query_length = tag = tag_length = word = word_length = 0
    is_word = False
    iteration = rank = -1
    score = 0.0
    width = COUNTS + rel_count
    # A slot of `table` has base + the position of a document in `known`. Slots below `base` belong to earlier queries and
    # count as empty, so the table is never cleared.
    base = count = 0
    mask = 2 * room - 1
    position = 0
    while position < size:
        # query; with a new one begins what is known of its documents: those judged
        is_new = rows == 0 or not repeated(text, position, query, query_length)
        if is_new:
            _count_firsts(known, count, labels, rels, rel_count, counts, gains)
            query = position
            position, value = field(text, query)
            query_length = position - query
            at = QUERIES * query_count
            queries[at], queries[at + 1], queries[at + 2] = query, query_length, 0
            query_count += 1
            base, count = base + count, 0
            judged = number_of(
                text, query, query_length, value, query_text, query_offsets, slots, slots_size, query_rows
            )
            if judged >= 0:
                for judgment in range(starts[judged], starts[judged + 1]):
                    if count == room:
                        return -2
                    slot = first_slot(doc_hashes[judgment], 2 * room)
                    while table[slot] >= base:
                        slot = (slot + 1) & mask
                    table[slot] = base + count
                    hashes[count] = doc_hashes[judgment]
                    at = KNOWN * count
                    known[at], known[at + 1] = places[2 * judgment], places[2 * judgment + 1]
                    known[at + 2], known[at + 3] = judgment, -1
                    count += 1
        else:
            position += query_length
        if query_length == 0 or text[position] != separator:
            return -1

        # iteration: a number, or one word for all rows of the query
        start = position + 1
        position, found = digits(text, start)
        if is_new:
            word = start
            is_number = text[start] == PLUS or (text[start] == MINUS and text[start + 1] == ZERO)  # +1, -0: for readers
            is_word = position == start and not is_number
            if is_word:
                position, _ = field(text, start)
            word_length = position - start
        elif is_word:
            if not repeated(text, start, word, word_length):
                return -1
            position = start + word_length
        if is_word:
            found = first_iteration
        if position == start or text[position] != separator or (not is_word and position - start > _DIGITS):
            return -1
        if is_new or found != iteration:
            in_order = in_order and (is_new or found > iteration)
            iteration, rank = found, -1
            counts[segments * width], counts[segments * width + 1] = query_count - 1, iteration
            for column in range(2, width):
                counts[segments * width + column] = 0
            for column in range(rel_count):
                gains[segments * rel_count + column] = 0.0
            segments += 1

        # document
        doc = position + 1
        position, value = field(text, doc)
        length = position - doc
        if length == 0 or text[position] != separator:
            return -1

        # rank and score
        start = position + 1
        position, found = digits(text, start)
        if position == start or position - start > _DIGITS or text[position] != separator:
            return -1

        position = number_end(text, position + 1)
        if position < 0 or text[position] != separator:
            return -1

        # tag: one for all rows of the query
        start = position + 1
        if is_new:
            tag = start
            position, _ = field(text, tag)
            tag_length = position - tag
        elif repeated(text, start, tag, tag_length):
            position = start + tag_length
        else:
            return -1
        if tag_length == 0 or text[position] != NEWLINE:
            return -1
        position += 1
        rows += 1

        # the result, unless it says that there is none
        if length == 1 and text[doc] == MINUS:
            continue
        if score_count > 0:
            if rows > score_count:
                return -1
            if rank >= 0 and scores[rows - 1] > score:
                queries[QUERIES * query_count - 1] = 1
            score = scores[rows - 1]
        in_order = in_order and found >= rank
        rank = found
        counts[(segments - 1) * width + 2] += 1
        if count == room:
            return -2
        slot = first_slot(value, 2 * room)
        here = -1
        while here < 0 and table[slot] >= base:
            k = table[slot] - base
            at = KNOWN * k
            if hashes[k] == value and known[at + 1] == length:
                if known[at + 2] < 0:
                    is_same = same(text, known[at], text, doc, length)
                else:
                    is_same = same(doc_text, known[at], text, doc, length)
                if is_same:
                    here = k
            slot = (slot + 1) & mask
        if here < 0:
            here = count
            slot = first_slot(value, 2 * room)
            while table[slot] >= base:
                slot = (slot + 1) & mask
            table[slot] = base + count
            hashes[count] = value
            at = KNOWN * count
            known[at], known[at + 1], known[at + 2], known[at + 3] = doc, length, -1, -1
            count += 1
        earlier = known[KNOWN * here + 3]
        if earlier >= 0:
            if iteration < counts[earlier * width + 1]:  # rows out of order: first is where the iteration is lowest
                known[KNOWN * here + 3] = segments - 1
            continue
        known[KNOWN * here + 3] = segments - 1
        if score_count > 0:
            first = FIRSTS * first_count
            firsts[first], firsts[first + 1], firsts[first + 2] = query_count - 1, rows - 1, doc
            firsts[first + 3], firsts[first + 4], firsts[first + 5] = length, iteration, found
            first_count += 1
    _count_firsts(known, count, labels, rels, rel_count, counts, gains)
    filled[0], filled[1], filled[2], filled[3] = query_count, segments, first_count, in_order
    return rows
