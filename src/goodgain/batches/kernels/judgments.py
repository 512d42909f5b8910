"""Judgments, query by query, as the loop looks them up."""

from typing import Any, NamedTuple

from goodgain.batches.kernels.arguments import Floats, Hashes, Ints, ReadOnlyBytes, ReadOnlyInts, step
from goodgain.batches.kernels.bytes_of_fields import first_slot, hashed, same

__all__ = ["Judgments", "hash_ids", "number_of"]


class Judgments(NamedTuple):
    """Labels of documents, those of each query together.

    Ids stand as Arrow lays them out: id k of a text is text[offsets[k] : offsets[k + 1]].

    Attributes:
        query_text, query_offsets: the ids of the queries.
        query_slots: a hash table of the numbers of queries; -1 where a slot is empty.
        query_starts: the judgments of query k are at query_starts[k] up to query_starts[k + 1].
        doc_text, doc_offsets: the doc ids of the judgments.
        hashes, labels: the hash of the doc id of each judgment, and its label.
        unit: what labels are cut at for exact sums, as `counting.ledger.find_unit` gives it.
    """

    query_text: ReadOnlyBytes
    query_offsets: ReadOnlyInts
    query_slots: Ints
    query_starts: Ints
    doc_text: ReadOnlyBytes
    doc_offsets: ReadOnlyInts
    hashes: Hashes
    labels: Floats
    unit: Floats


@step
def number_of(text: Any, start: int, length: int, value: Any, judgments: Any) -> int:
    """The number of the query whose id stands at a place of a text and has this hash; -1 for none."""
    ids, offsets, slots = judgments.query_text, judgments.query_offsets, judgments.query_slots
    slot = first_slot(value, len(slots))
    while slots[slot] >= 0:
        number = slots[slot]
        if offsets[number + 1] - offsets[number] == length and same(ids, offsets[number], text, start, length):
            return number  # type: ignore[no-any-return]  # an int64
        slot = (slot + 1) & (len(slots) - 1)
    return -1


def hash_ids(judgments: Judgments) -> int:
    """Enter the queries in the hash table, which is empty (all -1), and fill the hashes of the documents."""
    slots = judgments.query_slots
    for number in range(len(judgments.query_offsets) - 1):
        start, end = judgments.query_offsets[number], judgments.query_offsets[number + 1]
        slot = first_slot(hashed(judgments.query_text, start, end - start), len(slots))
        while slots[slot] >= 0:  # all ids are different: the first empty slot will do
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number
    for judgment in range(len(judgments.hashes)):
        start, end = judgments.doc_offsets[judgment], judgments.doc_offsets[judgment + 1]
        judgments.hashes[judgment] = hashed(judgments.doc_text, start, end - start)
    return 0
