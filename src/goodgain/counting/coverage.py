"""Coverage: which queries and results of a run the qrels judge, and notices where values would mislead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.counting.ledger import Counts
from goodgain.errors import notice
from goodgain.formats.run import AnyRun, warn_of_missing_iterations

__all__ = [
    "COVERAGE",
    "LOW_COVERAGE",
    "Coverage",
    "combine_coverages",
    "list_shares",
    "measure_coverage",
    "warn_if_labels_exceed_scale",
    "warn_if_misleading",
    "warn_if_no_label_reaches",
]

#: Judged share of unique results below which a small difference may come from the missing judgments.
LOW_COVERAGE = 0.8

#: The columns of a table of coverage, and their types; the row of all iterations has null as its iteration.
COVERAGE: dict[str, type[pl.DataType]] = {
    "iteration": pl.Int64,
    "judged": pl.Int64,
    "unique": pl.Int64,
    "coverage": pl.Float64,
}

#: Iterations whose coverage a notice lists.
_LISTED = 10

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
        by_iteration: iteration, unique, unjudged: the first occurrences of each iteration, in judged queries.
    """

    judged: int
    searched: int
    both: int
    unique: int
    unjudged: int
    numbering: pl.DataFrame
    examples: tuple[str, str]
    by_iteration: pl.DataFrame

    @property
    def share(self) -> float | None:
        """The judged share of the first occurrences; None where there are none."""
        return (self.unique - self.unjudged) / self.unique if self.unique else None

    def tabulate(self) -> pl.DataFrame:
        """Return the columns of `COVERAGE`: a row for all iterations, and one for each; null where nothing was found."""
        overall = pl.DataFrame({"iteration": None, "unique": self.unique, "unjudged": self.unjudged})
        rows = pl.concat([overall.cast(self.by_iteration.schema), self.by_iteration])
        judged = pl.col("unique") - pl.col("unjudged")
        share = pl.when(pl.col("unique") > 0).then(judged / pl.col("unique"))
        return rows.with_columns(judged=judged, coverage=share).select(
            pl.col(name).cast(kind) for name, kind in COVERAGE.items()
        )

    @property
    def lowest(self) -> int | None:
        """The lowest number of an iteration in the run; None for an empty run."""
        lowest: Any = self.numbering.get_column("lowest").min()
        return None if lowest is None else int(lowest)

    @property
    def has_one_number(self) -> bool:
        """Whether all rows of the run have one number, and not that of a first iteration."""
        return self.lowest is not None and self.lowest == self.numbering.get_column("highest").max() != 1

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
        by_iteration=_sum_iterations(judged.select("iteration", unique="UR", unjudged="Unjudged")),
    )


def _sum_iterations(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("iteration").agg(pl.col("unique", "unjudged").sum()).sort("iteration")


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
        by_iteration=_sum_iterations(pl.concat([coverage.by_iteration for coverage in coverages])),
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


def list_shares(coverages: pl.DataFrame) -> str:
    """Return the coverage of the first iterations as text: `0.75, 0.50`; a dash where nothing new was found.

    Args:
        coverages: the columns of `COVERAGE`.
    """
    shares = coverages.filter(pl.col("iteration").is_not_null()).get_column("coverage").to_list()
    shown = ["–" if share is None else f"{share:.2f}" for share in shares[:_LISTED]]
    return ", ".join([*shown, *(["..."] if len(shares) > _LISTED else [])])


def _warn_if_low(coverage: Coverage) -> None:
    """Give a notice where too few results have a label to trust a small difference."""
    if coverage.share is not None and coverage.share < LOW_COVERAGE:
        notice(
            f"coverage is low: {coverage.share:.2f} of the {coverage.unique:,} unique results have a label (by iteration "
            f"{list_shares(coverage.tabulate())}), and to most measures the others are not relevant; judge more of them (goodgain "
            "pool lists them), or see how much they could change (bounds=True, --bounds)"
        )


def warn_if_misleading(
    coverage: Coverage, *, labels: str | None, low: bool = True, iterated: AnyRun | None = None
) -> None:
    """Give a notice where values mean less than they seem to.

    Args:
        coverage: that of the run.
        labels: as in `Counts`.
        low: False leaves the notice of a low coverage to the caller.
        iterated: the run, where measures of iterations are asked of it.
    """
    if iterated is not None and coverage.searched and (not iterated.has_iterations or coverage.has_one_number):
        warn_of_missing_iterations(iterated)
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
    if low:
        _warn_if_low(coverage)
