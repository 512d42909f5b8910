"""Coverage: which queries and results of a run the qrels judge, and notices where values would mislead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.counting.ledger import Counts
from goodgain.errors import notice
from goodgain.formats.run import AnyRun, warn_of_missing_iterations

#: Judged share of unique results below which a small difference may come from the missing judgments.
LOW_COVERAGE = 0.8

#: Shared queries over those of the smaller side, below which two sides hardly join.
LOW_SHARE = 0.5

#: The columns of a table of coverage, and their types; the row of all iterations has null as its iteration.
COVERAGE: dict[str, type[pl.DataType]] = {
    "iteration": pl.Int64,
    "judged": pl.Int64,
    "unique": pl.Int64,
    "coverage": pl.Float64,
}

#: Query ids that an error or a notice shows of each side.
_EXAMPLES = 3

#: Iterations whose coverage a notice lists.
_LISTED = 10


class Coverage(NamedTuple):
    """Which queries and results of a run the qrels judge, in numbers.

    Attributes:
        judged: queries of the qrels.
        searched: queries of the run.
        both: queries of both.
        unique: first occurrences in judged queries.
        unjudged: those without a label.
        numbering: as in `Counts`.
        examples: queries of the run that the qrels lack, and queries of the qrels that the run lacks: three of each.
        by_iteration: iteration, unique, unjudged: the first occurrences of each iteration, in judged queries.
    """

    judged: int
    searched: int
    both: int
    unique: int
    unjudged: int
    numbering: pl.DataFrame
    examples: tuple[list[str], list[str]]
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
        """Whether all rows of the run have one number, and it is not 1."""
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
    unjudged = rows.join(pools.select("query_id"), on="query_id", how="anti")
    return Coverage(
        judged=pools.height,
        searched=rows.get_column("query_id").n_unique(),
        both=int((pools.get_column("N") > 0).sum()),
        unique=int(judged.get_column("UR").sum()),
        unjudged=int(judged.get_column("Unjudged").sum()),
        numbering=numbering,
        examples=(_list_first(unjudged), _list_first(pools.filter(pl.col("N") == 0))),
        by_iteration=_sum_iterations(judged.select("iteration", unique="UR", unjudged="Unjudged")),
    )


def _sum_iterations(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("iteration").agg(pl.col("unique", "unjudged").sum()).sort("iteration")


def _list_first(frame: pl.DataFrame) -> list[str]:
    """Return the first query ids, as examples."""
    found: list[str] = frame.get_column("query_id").unique().bottom_k(_EXAMPLES).sort().to_list()
    return found


def combine_coverages(coverages: Sequence[Coverage]) -> Coverage:
    """Combine the coverage of batches, each of which has other queries."""
    run_examples, qrels_examples = ({one for e in coverages for one in e.examples[k]} for k in (0, 1))
    return Coverage(
        judged=sum(coverage.judged for coverage in coverages),
        searched=sum(coverage.searched for coverage in coverages),
        both=sum(coverage.both for coverage in coverages),
        unique=sum(coverage.unique for coverage in coverages),
        unjudged=sum(coverage.unjudged for coverage in coverages),
        numbering=pl.concat([coverage.numbering for coverage in coverages]),
        examples=(sorted(run_examples)[:_EXAMPLES], sorted(qrels_examples)[:_EXAMPLES]),
        by_iteration=_sum_iterations(pl.concat([coverage.by_iteration for coverage in coverages])),
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
            "pool lists them), or see how much they could change (bounds=True)"
        )


def share_of_smaller(both: int, first: int, second: int) -> float:
    """Return the number of shared queries over those of the side that has fewer; 1 where that side has none."""
    return both / min(first, second) if first and second else 1.0


def warn_if_few_shared(searched: int, judged: int, both: int, examples: tuple[list[str], list[str]]) -> None:
    """Give a notice where run and qrels share less than half the queries of the side that has fewer.

    Args:
        searched, judged, both: the number of queries of the run, of the qrels, of both.
        examples: queries that the other side lacks, of the run and of the qrels.
    """
    if share_of_smaller(both, searched, judged) >= LOW_SHARE:
        return
    of_run, of_qrels = (repr(ids[0]) for ids in examples)
    notice(
        f"{'no query' if not both else f'only {both:,} of {searched:,} queries'} of the run {'is' if both < 2 else 'are'} in the "
        f"qrels, which have {judged:,} (the run has {of_run}, the qrels have {of_qrels}). Check that both name queries alike."
    )


def warn_of_queries(run_ids: pl.Series, qrels_ids: pl.Series) -> None:
    """Give the notice of `warn_if_few_shared` for the query ids of a run and of qrels."""
    run_ids, qrels_ids = run_ids.unique(), qrels_ids.unique()
    is_judged, is_searched = run_ids.is_in(qrels_ids.implode()), qrels_ids.is_in(run_ids.implode())
    examples = [
        ids.bottom_k(_EXAMPLES).sort().to_list() for ids in (run_ids.filter(~is_judged), qrels_ids.filter(~is_searched))
    ]
    warn_if_few_shared(len(run_ids), len(qrels_ids), int(is_judged.sum()), (examples[0], examples[1]))


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
            "the run with gaps='empty'"
        )
    if labels is not None and coverage.lowest == 0:
        notice(
            "labels by iteration are numbered from 1, and the run numbers its iterations from 0: its first iteration has "
            "only the labels for any iteration, and each later one those of its own number"
        )
    warn_if_few_shared(coverage.searched, coverage.judged, coverage.both, coverage.examples)
    if low:
        _warn_if_low(coverage)
