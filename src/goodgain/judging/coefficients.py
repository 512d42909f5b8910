"""Agreement beyond chance: Cohen's kappa, Krippendorff's alpha, Gwet's AC1 and AC2, from counts of grades.

Every category of a scale counts, also one that nobody gave. A coefficient that is 0/0 is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["gwet_ac", "krippendorff_alpha", "pair_kappa", "quadratic_weights"]

Matrix = NDArray[np.float64]


def quadratic_weights(grades: Sequence[float]) -> Matrix:
    """Return how far two grades agree: 1 - ((a - b) / (largest - smallest))²."""
    values = np.asarray(grades, dtype=np.float64)
    distance = (values[:, None] - values[None, :]) / (values.max() - values.min())
    return np.asarray(1 - distance**2)


def pair_kappa(confusion: Matrix, weights: Matrix) -> float | None:
    """Return Cohen's kappa of two judges: (observed - chance) / (1 - chance) agreement, each pair of grades weighted.

    Args:
        confusion: documents by the grade of the one judge (row) and of the other (column).
        weights: how far two grades agree; the identity for plain kappa.

    Source: Cohen 1960, 1968.
    """
    if not confusion.sum():
        return None
    documents, apart = confusion.sum(), 1 - weights
    # Exact sums: the same whichever of the two judges comes first.
    expected = math.fsum((apart * np.outer(confusion.sum(axis=1), confusion.sum(axis=0)) / documents).flat)
    return None if expected == 0 else 1 - math.fsum((apart * confusion).flat) / expected


def krippendorff_alpha(patterns: Matrix, documents: Matrix, *, ordinal: bool) -> float | None:
    """Return Krippendorff's alpha, 1 - observed / expected disagreement, over documents with two grades or more.

    Args:
        patterns: grades of each kind (columns, from the lowest) in each pattern of grades (rows).
        documents: how many documents have each pattern.
        ordinal: grades are apart by the grades given between them; else two different grades are apart by 1.

    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability.
    """
    graded = patterns.sum(axis=1)
    pairable = graded > 1
    counts, share = patterns[pairable], (documents / np.maximum(graded - 1, 1))[pairable]
    together = counts.T @ (counts * share[:, None]) - np.diag(share @ counts)
    totals = together.sum(axis=1)
    apart = _ordinal_distances(totals) if ordinal else 1 - np.eye(len(totals))
    expected = float((apart * np.outer(totals, totals)).sum())
    return None if expected == 0 else 1 - float(totals.sum() - 1) * float((apart * together).sum()) / expected


def _ordinal_distances(totals: Matrix) -> Matrix:
    """Return (n_a/2 + n_b/2 + the grades between a and b)² for grades a and b that were given n_a and n_b times."""
    middle = np.cumsum(totals) - totals / 2
    return np.asarray((middle[:, None] - middle[None, :]) ** 2)


def gwet_ac(patterns: Matrix, documents: Matrix, weights: Matrix) -> float | None:
    """Return Gwet's AC1 (identity weights) or AC2 over any number of judges: chance agreement from how evenly grades spread.

    Observed agreement is over documents with two grades or more, the spread of grades over all with a grade.

    Args:
        patterns: grades of each kind (columns) in each pattern of grades (rows).
        documents: how many documents have each pattern.
        weights: how far two grades agree.

    Source: Gwet 2014, Handbook of Inter-Rater Reliability.
    """
    graded = patterns.sum(axis=1)
    some, several = graded > 0, graded > 1
    if not several.any():
        return None
    counts, number = patterns[several], graded[several]
    agreeing = (counts * (counts @ weights - 1)).sum(axis=1) / (number * (number - 1))
    observed = float(agreeing @ documents[several] / documents[several].sum())
    spread = documents[some] @ (patterns[some] / graded[some][:, None]) / documents[some].sum()
    kinds = len(spread)
    chance = float(weights.sum() * (spread * (1 - spread)).sum() / (kinds * (kinds - 1)))
    return None if chance == 1 else (observed - chance) / (1 - chance)
