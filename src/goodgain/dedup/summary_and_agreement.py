"""A deduplication in numbers: what it found, and how well its documents agree with given groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from goodgain.dedup.candidates import SkippedPairs
from goodgain.dedup.rules import RULES, UNDECIDED, Verdicts
from goodgain.errors import InputError


@dataclass(frozen=True)
class Summary:
    """The numbers of results and documents, and of the pairs that each rule decided.

    `same` and `different` count, for each rule, the pairs of records that it decided; `undecided` counts those that no
    rule decided, which are kept apart. `refused` counts joins that would have put two records proven different into
    one group; `skipped` lists the pairs that the bound on one key left uncompared. Documents are counted by query.
    `earlier` counts the results that had their documents already, and `bridges` where these and the new results disagree:
    new results that are the same as results of two earlier documents, and earlier documents that proved to be several.
    """

    results: int
    documents: int
    duplicates: int
    records: int
    pairs: int
    same: Mapping[str, int]
    different: Mapping[str, int]
    undecided: int
    refused: int
    skipped: Sequence[SkippedPairs]
    earlier: int = 0
    bridges: int = 0

    def __str__(self) -> str:
        lines = [
            f"{self.results:,} results, {self.documents:,} documents, {self.duplicates:,} repeats within a run",
            f"{self.records:,} different records, {self.pairs:,} pairs compared: {sum(self.same.values()):,} the same, "
            f"{sum(self.different.values()):,} different, {self.undecided:,} undecided (kept apart)",
        ]
        lines += [f"  same by {name}: {count:,}" for name, count in self.same.items()]
        lines += [f"  different by {name}: {count:,}" for name, count in self.different.items()]
        if self.refused:
            lines.append(f"{self.refused:,} joins refused: they would have put two proven different into one document")
        lines += [str(pairs) for pairs in self.skipped]
        if self.earlier:
            lines.append(
                f"{self.earlier:,} earlier results keep their documents; {self.bridges:,} bridges between these"
            )
        return "\n".join(lines)


def count_rules(verdicts: Verdicts) -> tuple[dict[str, int], dict[str, int], int]:
    """Count the pairs that each rule found the same, those it found different, and those that no rule decided."""
    same, other = (np.bincount(verdicts.rule[of], minlength=UNDECIDED + 1) for of in (verdicts.same, ~verdicts.same))
    by_name = [{rule.name: int(n) for rule, n in zip(RULES, counts, strict=False) if n} for counts in (same, other)]
    return by_name[0], by_name[1], int(other[UNDECIDED])


@dataclass(frozen=True)
class Agreement:
    """Precision, recall and F1 of documents against given groups: over pairs of results, and B-cubed.

    Pairwise: the share of the pairs joined that belong together (precision), and of those that belong together that
    are joined (recall). B-cubed: these shares within the group of each result, averaged over the results. A share of
    nothing is 1.

    Source: Bagga and Baldwin, Algorithms for scoring coreference chains (LREC 1998), for B-cubed.
    """

    precision: float
    recall: float
    f1: float
    bcubed_precision: float
    bcubed_recall: float
    bcubed_f1: float
    results: int


def score_agreement(rows: pl.DataFrame, gold: Sequence[object] | pl.Series) -> Agreement:
    """Compare the `document` of each row with its group in `gold`, within its scope."""
    groups = gold if isinstance(gold, pl.Series) else pl.Series(list(gold), strict=False)
    if len(groups) != rows.height:
        raise InputError(f"{len(groups)} groups for {rows.height} rows of results: give one for each row.")
    counted = rows.select("scope", "document", gold=groups).drop_nulls()
    joined, related, right = (_count_pairs(counted, names) for names in (["document"], ["gold"], ["document", "gold"]))
    pairwise = _add_f1(right / joined if joined else 1.0, right / related if related else 1.0)
    results = counted.height
    # Summed over results, not over groups: in their order, and exactly.
    both, found, given = (pl.len().over("scope", *names) for names in (["document", "gold"], ["document"], ["gold"]))
    shares = counted.select(precision=both / found, recall=both / given)
    bcubed = _add_f1(*(math.fsum(share) / results if results else 1.0 for share in shares))
    return Agreement(*pairwise, *bcubed, results)


def _count_pairs(rows: pl.DataFrame, names: list[str]) -> float:
    size = pl.col("len").cast(pl.Float64)
    return float(rows.group_by("scope", *names).len().select((size * (size - 1) / 2).sum()).item())


def _add_f1(precision: float, recall: float) -> tuple[float, float, float]:
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0
