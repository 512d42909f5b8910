"""The oracle's other half: from an iterated run to one classic ranking and its labels, by brute force.

Independent of goodgain, as oracle.py is.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from tests.support.oracle import EMPTY, Iteration, QrelRow, RunRow, iterations, label_at, labels_of

ORDERS = ("seen", "interleaved", "last")


def _firsts(docs: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(docs))


def ranking(steps: list[Iteration], order: str) -> list[str]:
    """The documents of one query in the order asked for, none twice."""
    if order == "seen":
        return _firsts(doc for step in steps for doc in step.docs)
    if order == "interleaved":
        depth = max(len(step.docs) for step in steps)
        return _firsts(step.docs[place] for place in range(depth) for step in steps if place < len(step.docs))
    if order == "last":
        return _firsts(steps[-1].docs)
    raise ValueError(order)


def flatten(
    run: Iterable[RunRow], order: str = "seen", *, gaps: str | None = None, first: int = 1
) -> dict[str, list[tuple[str, float]]]:
    """query -> (document, score), in order. A query that got nothing has an empty list.

    One iteration without a repeat: the file's scores (then trec_eval ranks by score, whatever the ranks say).
    Else n, n-1, ..., 1.
    """
    rows = list(run)
    flat = {}
    for query, steps in iterations(rows, gaps=gaps, first=first).items():
        docs = ranking(steps, order)
        if len(steps) == 1 and len(set(docs)) == len(steps[0].docs):
            scores = {r.doc_id: r.score for r in rows if r.query_id == query and r.doc_id not in (None, EMPTY)}
            flat[query] = [(doc, scores[doc]) for doc in docs]
        else:
            flat[query] = [(doc, float(len(docs) - place)) for place, doc in enumerate(docs)]
    return flat


def classic_labels(
    run: Iterable[RunRow], qrels: Iterable[QrelRow], *, labels: str | None = None
) -> dict[str, dict[str, Fraction]]:
    """query -> document -> the one label a classic measure takes.

    A retrieved document has the label of its first occurrence, and is left out where that occurrence is unjudged; a
    document that was not retrieved has the largest of its labels.
    """
    iterations_of = iterations(run)
    values: dict[str, dict[str, Fraction]] = {}
    for query, documents in labels_of(qrels, labels).items():
        values[query] = {}
        for doc, of_doc in documents.items():
            first = next((step for step in iterations_of.get(query, []) if doc in step.docs), None)
            label = max(of_doc.values()) if first is None else label_at(documents, doc, first.number)
            if label is not None:
                values[query][doc] = label
    return values


def differing_labels(qrels: Iterable[QrelRow]) -> int:
    """The number of (query, document) whose labels by iteration differ."""
    return sum(
        len(set(of_doc.values())) > 1 for docs in labels_of(qrels, "iteration").values() for of_doc in docs.values()
    )
