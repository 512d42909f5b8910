"""The documents of one query: a hash table that knows each by its bytes.

The table keeps numbers, and the arrays beside it what is known of the document with that number:

    slots    -1 | 12 | -1 |  5 | 14 | 13 | -1 | 7      2 * room of them, a power of two; here base = 12, count = 3
                  |         |     \\    \\
                  |         |      \\    '---> document 1
                  |         |       '--------> document 2
                  |         '-- 5 < base: a document of an earlier query
                  '-------------------------> document 0

    document     0    1    2                           slot - base
    start       17   60  102                           where its id is: in the text, or in that of the judgments,
    length       9    9    9                               where the query has a label for it (judgment >= 0)
    hash         .    .    .
    judgment   530  531   -1                           the query's judgments are entered when the query begins
    row         -1    4    4                           row of the tally where it was first returned; -1: not yet

A hash says in which slot to look first. If another document is there, the next slot is looked at, and so on (linear
probing); an empty slot says that the document is not in the table. Documents are the same where their bytes are: two ids
with one hash are two documents.

Slots below `base` belong to earlier queries and count as empty, so the table is never cleared: a query begins by adding the
number of documents of the one before to `base`. Every query starts with an empty table, so nothing is looked for past an
empty slot in error.
"""

from typing import Any, NamedTuple

from goodgain.batches.kernels.arguments import Hashes, Ints, step
from goodgain.batches.kernels.bytes_of_fields import first_slot, same

__all__ = ["Documents", "add_document", "add_judged", "find_document"]


class Documents(NamedTuple):
    """Room for the documents of one query, judged or returned.

    Attributes:
        slots: the table: `base` + the number of a document; -1 at first. Twice as many as documents fit.
        hashes: of the id.
        starts, lengths: where the id is.
        judgments: its judgment; -1: it has no label.
        rows: the row of the tally where it was first returned; -1: it was not.
    """

    slots: Ints
    hashes: Hashes
    starts: Ints
    lengths: Ints
    judgments: Ints
    rows: Ints


@step
def add_judged(documents: Any, base: int, judgments: Any, query: int) -> int:
    """Enter the documents that a query has labels for, and say how many; -1 where there is no room for them."""
    first, end = judgments.query_starts[query], judgments.query_starts[query + 1]
    if end - first > len(documents.rows):
        return -1
    for judgment in range(first, end):
        slot = first_slot(judgments.hashes[judgment], len(documents.slots))
        while documents.slots[slot] >= base:  # all are different: the first empty slot will do
            slot = _next(documents, slot)
        start, next_start = judgments.doc_offsets[judgment], judgments.doc_offsets[judgment + 1]
        add_document(
            documents, slot, base, judgment - first, start, next_start - start, judgments.hashes[judgment], judgment
        )
    return end - first  # type: ignore[no-any-return]  # an int64


@step
def find_document(documents: Any, base: int, text: Any, judged_text: Any, line: Any) -> Any:
    """The slot of the document of a line, or the empty slot where it belongs."""
    slot = first_slot(line.doc_hash, len(documents.slots))
    while documents.slots[slot] >= base:
        at = documents.slots[slot] - base
        if documents.hashes[at] == line.doc_hash and documents.lengths[at] == line.doc_length:
            start = documents.starts[at]
            if documents.judgments[at] < 0:
                is_same = same(text, start, text, line.doc, line.doc_length)
            else:
                is_same = same(judged_text, start, text, line.doc, line.doc_length)
            if is_same:
                return slot
        slot = _next(documents, slot)
    return slot


@step
def add_document(
    documents: Any, slot: int, base: int, at: int, start: int, length: int, value: Any, judgment: int
) -> None:
    """Enter a document as number `at` of its query in an empty slot."""
    documents.slots[slot] = base + at
    documents.starts[at], documents.lengths[at], documents.hashes[at] = start, length, value
    documents.judgments[at], documents.rows[at] = judgment, -1


@step
def _next(documents: Any, slot: int) -> int:
    return (slot + 1) & (len(documents.slots) - 1)
