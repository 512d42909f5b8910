"""The counts of a deduplication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from goodgain.dedup.candidates import SkippedPairs
from goodgain.dedup.verify import RULE_NAMES, RULES, UNDECIDED, Verdicts

__all__ = ["Summary", "count_rules"]


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
    same = np.bincount(verdicts.rule[verdicts.same], minlength=len(RULE_NAMES)).tolist()
    other = np.bincount(verdicts.rule[~verdicts.same], minlength=len(RULE_NAMES)).tolist()
    names = RULE_NAMES[: len(RULES)]
    return (
        {name: same[place] for place, name in enumerate(names) if same[place]},
        {name: other[place] for place, name in enumerate(names) if other[place]},
        other[UNDECIDED],
    )
