"""A brute-force oracle for the session measures: from the definitions, slow, and independent of goodgain.

Input: `rounds`, the documents of each iteration in order, and `labels`, document -> label, or for the cube test document ->
subtopic -> label. Pure Python: no goodgain, no polars.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

Rounds = Sequence[Sequence[str]]


class Walked(NamedTuple):
    """A result: its iteration and rank, both from 1, and its document unless that came before."""

    m: int
    r: int
    new: str | None
    document: str


def walk(rounds: Rounds) -> list[Walked]:
    steps, seen = [], set[str]()
    for m, documents in enumerate(rounds, 1):
        for r, document in enumerate(documents, 1):
            steps.append(Walked(m, r, None if document in seen else document, document))
            seen.add(document)
    return steps


def session_dcg(
    rounds: Rounds, labels: Mapping[str, float], conv: str, k: int | None = None, b: float = 2, bq: float = 4
) -> float:
    total = 0.0
    for m, r, new, document in walk(rounds):
        if r > (k or (9 if conv == "jiang" else math.inf)):
            continue
        if conv == "dd":
            gain = max(labels.get(new, 0), 0) if new else 0
            total += gain / ((1 + math.log(r, b)) * (1 + math.log(m, bq)))
        else:
            gain = 2 ** max(labels.get(document, 0), 0) - 1
            total += gain / (math.log(r + b - 1, b) * math.log(m + bq - 1, bq))
    return total


def ideal_dcg(
    number: int,
    labels: Mapping[str, float],
    conv: str,
    k: int | None = None,
    b: float = 2,
    bq: float = 4,
    depth: int = 5,
) -> float:
    """The bound for a session of `number` rounds."""
    gains = sorted((max(label, 0) for label in labels.values()), reverse=True)
    if conv == "jiang":
        best = [f"{place}" for place, _ in enumerate(gains)]
        return session_dcg([best] * number, dict(zip(best, gains, strict=True)), conv, k, b, bq)
    slots = range(1, min(depth, k or depth) + 1)
    weights = [1 / ((1 + math.log(r, b)) * (1 + math.log(m, bq))) for m in range(1, number + 1) for r in slots]
    return sum(w * g for w, g in zip(sorted(weights, reverse=True), gains, strict=False))


def session_rbp(rounds: Rounds, labels: Mapping[str, float], b: float = 0.8, p: float = 0.9, max_rel: int = 4) -> float:
    total = 0.0
    for m, r, _, document in walk(rounds):
        j = (2 ** max(labels.get(document, 0), 0) - 1) / 2**max_rel
        total += ((p - b * p) / (1 - b * p)) ** (m - 1) * (b * p) ** (r - 1) * j
    return (1 - p) * total


class Cube(NamedTuple):
    ct: float
    act: float
    bound: float


def cube_test(
    rounds: Rounds, labels: Mapping[str, Mapping[str, float]], number: int, gamma: float = 0.5, height: float = 5
) -> Cube:
    """CT and ACT of the rounds, and the bound of nCT for `number` rounds."""
    relevant = [
        (doc, s, label)
        for doc, labels_of_document in labels.items()
        for s, label in labels_of_document.items()
        if label > 0
    ]
    subtopics = {s for _, s, _ in relevant}
    if not subtopics or not rounds:
        return Cube(0, 0, 1)
    filled, counts = dict.fromkeys(subtopics, 0.0), dict.fromkeys(subtopics, 0)
    seen, speeds = set[str](), []

    for m, documents in enumerate(rounds, 1):
        for document in documents or ["no document"]:
            for doc, s, label in relevant:
                if doc == document and doc not in seen and filled[s] < height:
                    filled[s] += min(gamma ** (counts[s] + 1) * label, height - filled[s])
                    counts[s] += 1
            seen.add(document)
            speeds.append(sum(filled.values()) / len(subtopics) / height / m)

    reachable = 0.0
    for subtopic in subtopics:
        best = sorted((label for _, s, label in relevant if s == subtopic), reverse=True)[: 5 * number + 1]
        reachable += min(height, sum(gamma**i * label for i, label in enumerate(best)))
    return Cube(speeds[-1], sum(speeds) / len(speeds), reachable / len(subtopics) / (height * number))


class Utility(NamedTuple):
    eu: float
    upper: float
    lower: float


def expected_utility(
    rounds: Rounds,
    nuggets: Mapping[str, tuple[float, Collection[str]]],
    lengths: Mapping[str, float],
    number: int,
    a: float = 0.001,
    gamma: float = 0.5,
    p: float = 0.5,
    depth: int = 5,
) -> Utility:
    """EU, and the bounds of nEU for `number` rounds. `nuggets`: nugget -> weight and documents that have it.

    Readers are followed one by one: whoever stops after rank s has read the first s results.
    """
    times, cost, seen = dict.fromkeys(nuggets, 0.0), 0.0, set[str]()
    for documents in rounds:
        new = [
            None if document in seen or document in documents[:k] else document for k, document in enumerate(documents)
        ]
        for s in range(1, len(documents) + 1):
            share = (1 - p) ** (s - 1) * (p if s < len(documents) else 1)
            read = [document for document in new[:s] if document]
            cost += share * sum(lengths[document] for document in read)
            for nugget, (_, having) in nuggets.items():
                times[nugget] += share * sum(document in having for document in read)
        seen.update(documents)

    slots = sorted(((1 - p) ** r for r in range(depth) for _ in range(number)), reverse=True)
    most = {nugget: sum(slots[: len(having)]) for nugget, (_, having) in nuggets.items()}
    ordered = sorted(lengths.values())
    least_cost = sum(w * length for w, length in zip(slots, ordered, strict=False))
    most_cost = sum(w * length for w, length in zip(slots, reversed(ordered), strict=False))

    def gain(of: Mapping[str, float]) -> float:
        return sum(weight * series(gamma, of[nugget]) for nugget, (weight, _) in nuggets.items())

    return Utility(gain(times) - a * cost, gain(most) - a * least_cost, -a * most_cost)


def series(gamma: float, times: float) -> float:
    return times if gamma == 1 else (1 - gamma**times) / (1 - gamma)


def time_biased_gain(
    rounds: Rounds,
    labels: Mapping[str, float],
    lengths: Mapping[str, float],
    rel: float = 1,
    half_life: float = 224,
    other: float = 0.39,
) -> float:
    clock, total = 0.0, 0.0
    for _, _, new, _ in walk(rounds):
        is_good = new is not None and labels.get(new, 0) >= rel
        if is_good:
            total += 0.64 * 0.77 * math.exp(-clock * math.log(2) / half_life)
        clock += 4.4
        if new is not None:
            clock += (0.64 if is_good else other) * (0.018 * lengths[new] + 7.8)
    return total


def u_measure(
    rounds: Rounds,
    labels: Mapping[str, float],
    lengths: Mapping[str, float],
    last: float = 132_000,
    snippet: float = 200,
    share: float = 0.2,
    *,
    opens_all: bool = False,
) -> float:
    position, total = 0.0, 0.0
    for _, _, new, _ in walk(rounds):
        label = 0 if new is None else labels.get(new, 0)
        position += snippet
        if new is not None and (opens_all or label >= 1):
            position += share * lengths[new]
        if label >= 1:
            total += label * max(0, 1 - position / last)
    return total
