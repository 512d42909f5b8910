"""Coverage: which queries and results of a run the qrels judge, and notices where values would mislead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.counting.ledger import Counts
from goodgain.errors import notice

__all__ = [
    "Coverage",
    "combine_coverages",
    "measure_coverage",
    "warn_if_labels_exceed_scale",
    "warn_if_misleading",
    "warn_if_no_label_reaches",
]

#: The largest label of the scale for which the guideline gives its threshold.
_LARGEST_LABEL = 4


class Coverage(NamedTuple):
    """Which queries and results of a run the qrels judge, in numbers.

    Attributes:
        judged: queries of the qrels.
        searched: queries of the run.
        both: queries of both.
        unique: first occurrences in judged queries.
        unjudged: those without a label.
        numbering: as in `Counts`.
        examples: a query of the run and one of the qrels.
    """

    judged: int
    searched: int
    both: int
    unique: int
    unjudged: int
    numbering: pl.DataFrame
    examples: tuple[str, str]

    @property
    def lowest(self) -> int | None:
        """The lowest number of an iteration in the run; None for an empty run."""
        lowest: Any = self.numbering.get_column("lowest").min()
        return None if lowest is None else int(lowest)

    @property
    def renumbered(self) -> int:
        """Queries with a number missing between the lowest of the run and their own highest."""
        dense = pl.col("is_dense") & pl.col("lowest").eq_missing(self.lowest)
        return int(self.numbering.filter(~dense).get_column("queries").sum())


def measure_coverage(counts: Mapping[float, Counts]) -> Coverage:
    """Measure the coverage of a run and qrels that were counted."""
    rows, pools, numbering = next(iter(counts.values()))
    judged = rows.join(pools.select("query_id"), on="query_id", how="semi")
    return Coverage(
        judged=pools.height,
        searched=rows.get_column("query_id").n_unique(),
        both=int((pools.get_column("N") > 0).sum()),
        unique=int(judged.get_column("UR").sum()),
        unjudged=int(judged.get_column("Unjudged").sum()),
        numbering=numbering,
        examples=(_first(rows), _first(pools)),
    )


def _first(frame: pl.DataFrame) -> str:
    return str(frame.get_column("query_id").min() or "")


def combine_coverages(coverages: Sequence[Coverage]) -> Coverage:
    """Combine the coverage of batches, each of which has other queries."""
    run_examples, qrels_examples = ([e.examples[k] for e in coverages if e.examples[k]] for k in (0, 1))
    return Coverage(
        judged=sum(coverage.judged for coverage in coverages),
        searched=sum(coverage.searched for coverage in coverages),
        both=sum(coverage.both for coverage in coverages),
        unique=sum(coverage.unique for coverage in coverages),
        unjudged=sum(coverage.unjudged for coverage in coverages),
        numbering=pl.concat([coverage.numbering for coverage in coverages]),
        examples=(min(run_examples, default=""), min(qrels_examples, default="")),
    )


def warn_if_no_label_reaches(qrels: pl.DataFrame, rels: Iterable[float]) -> None:
    """Give one notice of the thresholds that no label reaches: then no document is good, and nothing can be found."""
    largest: Any = qrels.get_column("relevance").max()
    beyond = sorted({rel for rel in rels if rel > largest})
    if not beyond:
        return
    within_reach = 1 if largest >= 1 else largest
    remedy = f"ask for a lower one, as in CG(rel={within_reach:g})" if largest > 0 else "check the labels"
    notice(
        f"no label of the qrels reaches {' or '.join(f'rel={rel:g}' for rel in beyond)} (the largest is {largest:g}), so no "
        "document is good: CG, SRE and the like are 0, and IterationsForAllGoodResults is 0, its best value; "
        f"{remedy}"
    )


def warn_if_labels_exceed_scale(qrels: pl.DataFrame, rel: float) -> None:
    """Give a notice where labels are on another scale than the one for which a default threshold was chosen."""
    largest: Any = qrels.get_column("relevance").max()
    if largest > _LARGEST_LABEL:
        notice(
            f"labels go up to {largest:g}, and rel={rel:g} is the default for labels from 0 to {_LARGEST_LABEL}: say which "
            f"labels are good, as in CG(rel={largest / 2:g})"
        )


def warn_if_misleading(coverage: Coverage, *, labels: str | None) -> None:
    """Give a notice where values mean less than they seem to."""
    if coverage.renumbered:
        notice(
            f"numbers of iterations are missing in {coverage.renumbered} quer{'y' if coverage.renumbered == 1 else 'ies'}: "
            "iterations were counted 1, 2, 3 ... in their order; if a missing number means a search without results, read "
            "the run with gaps='empty' (--gaps empty)"
        )
    if labels is not None and coverage.lowest == 0:
        notice(
            "labels by iteration are numbered from 1, and the run numbers its iterations from 0: its first iteration has "
            "only the labels for any iteration, and each later one those of its own number"
        )
    if coverage.searched and not coverage.both:
        run_example, qrels_example = coverage.examples
        notice(
            f"no query of the run is in the qrels (the run has {run_example!r}, the qrels have {qrels_example!r}): every "
            "value is that of a system that never searched; check the query ids"
        )
