"""Coverage: which queries and results of a run the qrels judge, and notices on misleading values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from goodgain.counting.ledger import Counts
from goodgain.errors import count_of, notice
from goodgain.formats.iterations import lacks_iterations, warn_of_missing_iterations
from goodgain.options import spell

if TYPE_CHECKING:
    from goodgain.counting.run_in_blocks import RunFile
    from goodgain.formats import Run

#: Below this judged share of unique results, missing judgments may explain a small difference.
LOW_COVERAGE = 0.8

#: Below this share of the smaller side's queries, two sides share too few queries.
LOW_SHARE = 0.5

#: The columns of a table of coverage, and their types; iteration is null in the row of all iterations.
COVERAGE: dict[str, type[pl.DataType]] = {
    "iteration": pl.Int64,
    "judged": pl.Int64,
    "unique": pl.Int64,
    "coverage": pl.Float64,
}

#: Query ids per side in an error or a notice.
_EXAMPLES = 3

#: The most iterations whose coverage a notice lists.
_LISTED = 10


_NO_QUERIES = pl.Series("query_id", [], pl.String)


class SharedQueries(NamedTuple):
    """The query ids of a run and qrels, each once."""

    both: pl.Series
    only_searched: pl.Series  # in the run alone
    only_judged: pl.Series  # in the qrels alone: absent from the run
    never_searched: pl.Series = _NO_QUERIES  # in both, and the run says that the query never searched

    @property
    def searched(self) -> int:
        """The number of queries of the run."""
        return len(self.both) + len(self.only_searched)

    @property
    def judged(self) -> int:
        """The number of queries of the qrels."""
        return len(self.both) + len(self.only_judged)


def match_queries(searched: pl.Series, judged: pl.Series, never_searched: pl.Series = _NO_QUERIES) -> SharedQueries:
    """Match the query ids of a run and qrels; `never_searched` are further ids of the run."""
    searched, judged = pl.concat([searched, never_searched]).unique(), judged.unique()
    is_judged, is_searched = searched.is_in(judged.implode()), judged.is_in(searched.implode())
    idle = never_searched.filter(never_searched.is_in(judged.implode()))
    return SharedQueries(searched.filter(is_judged), searched.filter(~is_judged), judged.filter(~is_searched), idle)


def list_examples(query_ids: pl.Series) -> list[str]:
    """Return the first three query ids in sorted order."""
    return query_ids.bottom_k(_EXAMPLES).sort().to_list()


def join_examples(query_ids: pl.Series) -> str:
    """Return the first three query ids as text, with dots if there are more."""
    shown = list_examples(query_ids)
    return ", ".join(shown) + ", ..." * (len(query_ids) > len(shown))


class Coverage(NamedTuple):
    """Which queries and results of a run the qrels judge."""

    queries: SharedQueries
    unique: int  # first occurrences in judged queries
    unjudged: int  # first occurrences without a label, in judged queries
    numbering: pl.DataFrame  # as in `Counts`
    by_iteration: pl.DataFrame  # iteration, unique, unjudged

    @property
    def share(self) -> float | None:
        """The judged share of the first occurrences; None if there are none."""
        return (self.unique - self.unjudged) / self.unique if self.unique else None

    def tabulate(self) -> pl.DataFrame:
        """Return the columns of `COVERAGE`: a row for all iterations, then one per iteration."""
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

    def lacks_iterations(self, run: Run | RunFile) -> bool:
        highest: Any = self.numbering.get_column("highest").max()
        return self.lowest is not None and lacks_iterations(run.has_iterations, self.lowest, highest)

    @property
    def renumbered(self) -> int:
        """The number of queries that lack an iteration number between the lowest of the run and the highest of the query."""
        dense = pl.col("is_dense") & pl.col("lowest").eq_missing(self.lowest)
        return int(self.numbering.filter(~dense).get_column("queries").sum())


def measure_coverage(counts: Mapping[float, Counts]) -> Coverage:
    rows, pools, numbering, _, never_searched = next(iter(counts.values()))
    judged = rows.join(pools.select("query_id"), on="query_id", how="semi")
    return Coverage(
        queries=match_queries(rows.get_column("query_id"), pools.get_column("query_id"), never_searched),
        unique=int(judged.get_column("UR").sum()),
        unjudged=int(judged.get_column("Unjudged").sum()),
        numbering=numbering,
        by_iteration=_sum_iterations(judged.select("iteration", unique="UR", unjudged="Unjudged")),
    )


def _sum_iterations(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("iteration").agg(pl.col("unique", "unjudged").sum()).sort("iteration")


def combine_coverages(coverages: Sequence[Coverage]) -> Coverage:
    queries = zip(*(coverage.queries for coverage in coverages), strict=True)
    return Coverage(
        queries=SharedQueries(*(pl.concat(of_batches) for of_batches in queries)),
        unique=sum(coverage.unique for coverage in coverages),
        unjudged=sum(coverage.unjudged for coverage in coverages),
        numbering=pl.concat([coverage.numbering for coverage in coverages]),
        by_iteration=_sum_iterations(pl.concat([coverage.by_iteration for coverage in coverages])),
    )


def list_shares(coverages: pl.DataFrame) -> str:
    """Return the coverage of the first iterations as text, `0.75, 0.50`. An iteration without new results has a dash."""
    shares = coverages.filter(pl.col("iteration").is_not_null()).get_column("coverage").to_list()
    shown = ["–" if share is None else f"{share:.2f}" for share in shares[:_LISTED]]
    return ", ".join([*shown, *(["..."] if len(shares) > _LISTED else [])])


def share_of_smaller(both: int, first: int, second: int) -> float:
    """Return shared queries / queries of the smaller side; 1 if a side is empty."""
    return both / min(first, second) if first and second else 1.0


def warn_if_few_shared(queries: SharedQueries) -> None:
    """Give a notice if run and qrels share less than half the queries of the smaller side."""
    both = len(queries.both)
    if pairs := _find_other_spellings(queries):
        of_run, of_qrels = pairs[0]
        notice(
            f"{count_of(len(pairs), 'query', 'queries')} of the run may be in the qrels under another id ({of_run!r} in the run, "
            f"{of_qrels!r} in the qrels). Those of the qrels count as not searched. Write query ids alike."
        )
        return
    if share_of_smaller(both, queries.searched, queries.judged) >= LOW_SHARE:
        return
    of_run, of_qrels = (repr(list_examples(ids)[0]) for ids in (queries.only_searched, queries.only_judged))
    shared = f"only {both:,} of {queries.searched:,} queries" if both else "no query"
    notice(
        f"{shared} of the run {'is' if both < 2 else 'are'} in the qrels, which have {queries.judged:,} (the run has {of_run}, "
        f"the qrels have {of_qrels}). Check that both use the same query ids."
    )


def _find_other_spellings(queries: SharedQueries) -> list[tuple[str, str]]:
    """Return pairs of ids, a query of the run alone and one of the qrels alone: only case, signs and zeros differ."""
    sides = (queries.only_searched, queries.only_judged)
    if not all(map(len, sides)):
        return []
    apart = pl.col("id").str.to_lowercase().str.replace_all(r"(\d)[\W_]+(\d)", "$1 $2")  # 31_1 is not 311
    plain = apart.str.replace_all(r"[^\w ]|_", "").str.strip_chars_start("0")
    ours, theirs = (
        pl.DataFrame({"id": ids}).with_columns(plain=plain).filter(pl.col("plain") != "").unique("plain", keep="none")
        for ids in sides
    )
    return ours.join(theirs, on="plain").select("id", "id_right").sort("id").rows()


def warn_if_misleading(
    coverage: Coverage, *, labels: str | None, low: bool = True, iterated: Run | RunFile | None = None
) -> None:
    """Give notices where values may mislead. With `low=False` the caller gives the notice on low coverage.

    `labels` is the argument of `count`. `iterated` is the run, if measures of iterations are computed.
    """
    if iterated is not None and coverage.lacks_iterations(iterated):
        warn_of_missing_iterations(iterated)
    if coverage.renumbered:
        notice(
            f"numbers of iterations are missing in {coverage.renumbered} quer{'y' if coverage.renumbered == 1 else 'ies'}, "
            "so iterations were renumbered 1, 2, 3 ... If a missing number is a search without results, read the run with "
            f"{spell('gaps', 'empty')}."
        )
    if labels is not None and coverage.lowest == 0:
        notice(
            "the run numbers its iterations from 0, but labels by iteration start at 1: iteration 0 gets only the labels "
            "for any iteration. Number the iterations of the run from 1 to match the labels."
        )
    warn_if_few_shared(coverage.queries)
    if low:
        warn_of_low_coverage(coverage.tabulate(), labels=labels)


def warn_of_low_coverage(coverages: pl.DataFrame, *, labels: str | None) -> None:
    """Give a notice if few results of a run have a label; `coverages` has the columns of `COVERAGE`."""
    unique, share = coverages.row(0)[2:]
    # warn_of_run reports a share of 0, unless labels are by iteration
    if share is not None and share < LOW_COVERAGE and (share or labels is not None):
        shares = f"(by iteration {list_shares(coverages)})"
        notice(
            describe_low_coverage(f"{share:.2f} of the {unique:,}", shares),
            of_several=(describe_low_coverage(), f"{share:.2f} of {unique:,} {shares}"),
        )


def describe_low_coverage(share: str = f"under {LOW_COVERAGE} of the", figures: str = "") -> str:
    return (
        f"coverage is low: {share} unique results have a label{figures and f' {figures}'}; most measures count the others as "
        f"not relevant. Judge more of them (goodgain pool lists them), or see their possible effect with {spell('bounds', True)}."
    )
