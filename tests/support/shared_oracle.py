"""What two runs share, by brute force: sets and loops over ranks, written from the definitions.

A run is {query: [documents of a search, ...]}; its joined ranking has each document at its first occurrence.
"""

from __future__ import annotations

from collections.abc import Sequence

Searches = Sequence[Sequence[str]]
#: Ranks after which the weight of rank-biased overlap is far below the rounding of a float.
DEEP = 500


def join(searches: Searches) -> list[str]:
    return list(dict.fromkeys(document for search in searches for document in search))


def jaccard(first: Searches, second: Searches) -> float:
    documents, other_documents = {*join(first)}, {*join(second)}
    return len(documents & other_documents) / len(documents | other_documents)


def overlap(first: Sequence[str], second: Sequence[str], p: float) -> float:
    """RBO from its infinite sum (1 - p) * sum p^(d-1) * A_d. After the end of a ranking, agreement is extrapolated.

    Webber et al., section 4.2: beyond the shorter ranking's end s its unseen documents agree at the rate X_s / s; beyond the end
    of the longer one the agreement A_l stays.
    """
    short, long = sorted((first, second), key=len)
    s, length = len(short), len(long)
    total, agreement = 0.0, 0.0
    for d in range(1, DEEP + 1):
        shared = len({*short[:d]} & {*long[:d]})
        if d <= s:
            agreement = shared / d
        elif d <= length:
            at_end = len({*short} & {*long[:s]})
            agreement = (shared + at_end / s * (d - s)) / d
        total += p ** (d - 1) * agreement
    return (1 - p) * total


def count_apart(searches: Searches, others: Searches) -> int:
    """Searches with results of which the other run has none."""
    known = {*join(others)}
    return sum(1 for search in searches if search and not known & {*search})


def count_search(searches: Searches, i: int) -> tuple[int, int, int, int, int]:
    """Of search i (from 0): whether it was made, results, new documents, whether it is compared with the first, and is apart."""
    if i >= len(searches):
        return 0, 0, 0, 0, 0
    before = {*join(searches[:i])}
    search, first = searches[i], {*searches[0]}
    compared = i > 0 and bool(search) and bool(first)
    return 1, len(search), len({*search} - before), int(compared), int(compared and not first & {*search})
