"""Finds the causes of a difference: for each good document, which of two systems counted it, and why the other did not.

Each document adds an amount. The amounts of a query add up to the difference between the systems, because CG, NumGood,
DCGG, nCG and nDCGG are sums over documents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from goodgain.counting.ledger import Counts, label_by_iteration
from goodgain.errors import MeasureError
from goodgain.formats import Qrels, Run
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import CG, DCGG, NumDup, NumGood, NumResults
from goodgain.measures.ledger_values import final_values
from goodgain.measures.names import needs_results
from goodgain.schema import EMPTY_DOC
from goodgain.statistics.statistical_tests import RESIDUE

#: Measure that is a sum over documents -> what a good document adds, and the divisor of this amount.
_ONE, _GAIN, _POOL = pl.lit(1.0), pl.col("relevance"), pl.col("GainPool")
_DISCOUNT = 1 / (pl.col("iteration") + 1).log(2)
_WORTH = {
    "CG": (_GAIN, _ONE),
    "NumGood": (_ONE, _ONE),
    "DCGG": (_DISCOUNT * _GAIN, _ONE),
    "nCG": (_GAIN, _POOL),
    "nDCGG": (_DISCOUNT * _GAIN, _POOL),
}
#: Rate -> its numerator and its denominator.
_RATES = {
    "RG": (CG, "iterations"),
    "DRG": (DCGG, "iterations"),
    "SRE": (NumGood, "results"),
    "SRR": (NumDup, "results"),
}
_DOCUMENT = ["query_id", "doc_id"]


_NO_QUERIES = pl.Series("query_id", [], pl.String)


class Searched(NamedTuple):
    """What a system found in the judged queries. Iterations are numbered 1..N in each query."""

    documents: pl.DataFrame  # query_id, doc_id, iteration (of the first occurrence), relevance (null: unjudged)
    repeats: pl.DataFrame  # query_id, doc_id, iteration, first_iteration: a row for each later occurrence
    numbers: pl.DataFrame  # query_id, iteration, number (of the iteration in the run)
    counts: dict[float, Counts]  # threshold -> ledger and pools
    broke_off: pl.Series = _NO_QUERIES  # queries whose results do not count, because the trace broke off
    left_out: pl.Series = _NO_QUERIES  # queries in which the system has no value

    @property
    def absent(self) -> pl.Series:
        """The judged queries without a row in the run."""
        counts = next(iter(self.counts.values()))
        idle = pl.concat([counts.never_searched, self.broke_off])
        is_idle = pl.col("query_id").is_in(idle.implode())
        return counts.pools.filter(pl.col("N") == 0, ~is_idle).get_column("query_id")

    def apply_options(self, missing: str, incomplete: str = "keep", broke_off: pl.Series | None = None) -> Searched:
        """Return what counts with the options `missing` and `incomplete`. `broke_off` has the queries that broke off."""
        searched, left_out = self, _NO_QUERIES
        if missing == "absent":
            left_out = self.absent
        if incomplete != "keep" and broke_off is not None:
            searched = self._discard(broke_off)
            if incomplete == "absent":
                left_out = pl.concat([left_out, broke_off])
        return searched._replace(left_out=left_out.unique())

    def _discard(self, query_ids: pl.Series) -> Searched:
        """Return these results with `query_ids` as queries without a search."""
        is_counted = ~pl.col("query_id").is_in(query_ids.implode())
        iterations = pl.when(is_counted).then("N").otherwise(0).alias("N")
        counts = {}
        for rel, counts_of_rel in self.counts.items():
            counted_rows = counts_of_rel.ledger.select(is_counted).to_series()
            counts[rel] = counts_of_rel._replace(
                ledger=counts_of_rel.ledger.filter(counted_rows),
                numbers=counts_of_rel.numbers.filter(counted_rows),
                pools=counts_of_rel.pools.with_columns(iterations),
            )
        return Searched(
            documents=self.documents.filter(is_counted),
            repeats=self.repeats.filter(is_counted),
            numbers=self.numbers.filter(is_counted),
            counts=counts,
            broke_off=query_ids,
        )


def find_documents(qrels: Qrels, run: Run, counts: dict[float, Counts]) -> Searched:
    """Return what a run found in the judged queries. `counts` are the counts of the run, by threshold."""
    judged = next(iter(counts.values())).pools.select("query_id")
    judged_rows = run.rows.join(judged, on="query_id", how="semi")
    rows = judged_rows.select(*_DOCUMENT, number="iteration")
    numbers = rows.select("query_id", "number").unique().sort("query_id", "number")
    numbers = numbers.with_columns(iteration=pl.int_range(1, pl.len() + 1).over("query_id"))

    results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    results = results.join(numbers, on=["query_id", "number"]).sort(*_DOCUMENT, "iteration")
    results = results.with_columns(first_iteration=pl.col("iteration").first().over(_DOCUMENT))
    is_first = pl.struct(_DOCUMENT).is_first_distinct()
    firsts, repeats = results.filter(is_first), results.filter(~is_first)

    if qrels.labels is None:
        labels = qrels.frame.select(*_DOCUMENT, "relevance")
        labelled = firsts.join(labels, on=_DOCUMENT, how="left")
    else:
        relevance = label_by_iteration(firsts.select(*_DOCUMENT, iteration="number"), qrels.frame)
        labelled = firsts.with_columns(relevance.alias("relevance"))
    return Searched(labelled.select(*_DOCUMENT, "iteration", "relevance"), repeats, numbers, counts)


class Parts(NamedTuple):
    """A measure, split into numerator and denominator."""

    measure: GoodGainMeasure
    numerator: GoodGainMeasure  # the sum itself, or the numerator of a rate
    denominator: str | None = None  # what a rate is divided by, in words; None for a sum

    @property
    def last(self) -> float:
        """The cutoff of the measure, or infinity if it has none."""
        return math.inf if self.measure.cutoff is None else float(self.measure.cutoff)

    @property
    def upto(self) -> str:
        """The words `up to iteration N` for a cutoff N, or an empty text without a cutoff."""
        return "" if self.measure.cutoff is None else f" up to iteration {self.measure.cutoff}"

    @property
    def idle(self) -> str:
        """The words for a denominator of 0: the system never searched, or got no results."""
        return "never searched" if self.denominator == "iterations" else f"got no results{self.upto}"


def divide_measure(measure: object) -> Parts:
    """Split a measure into numerator and denominator. A sum over documents has no denominator.

    Raise `MeasureError` for a measure that is neither a sum over documents nor a quotient of sums.

    >>> divide_measure(CG(rel=1, cutoff=3))
    Parts(measure=CG(rel=1)@3, numerator=CG(rel=1)@3, denominator=None)
    """
    if isinstance(measure, GoodGainMeasure) and "per" in measure.params:
        raise MeasureError(
            f"{measure} cannot be explained: its ideal ends where a system stops. Ask for nDCGG without per."
        )
    if isinstance(measure, GoodGainMeasure) and measure.NAME in _WORTH:
        return Parts(measure, measure)
    if isinstance(measure, GoodGainMeasure) and measure.NAME in _RATES:
        numerator, denominator = _RATES[str(measure.NAME)]
        known = {name: value for name, value in measure.params.items() if name in numerator.SUPPORTED_PARAMS}
        return Parts(measure, type(numerator)(**known), denominator)
    names = ", ".join([*_WORTH, *_RATES])
    raise MeasureError(f"{measure} cannot be explained. Ask for one of {names}.")


def find_causes(qrels: Qrels, base: Searched, new: Searched, measure: GoodGainMeasure) -> pl.DataFrame:
    """Return rows for `Explanation.documents`, without titles and uses. The measure must be a sum over documents."""
    documents = _list_good_documents(qrels, measure)
    for side, searched in (("base", base), ("new", new)):
        found = _find_counted(searched, measure, side)
        documents = documents.join(found, on=_DOCUMENT, how="left", maintain_order="left")
        ends = _find_ends(searched, measure, side)
        documents = documents.join(ends, on="query_id", how="left", maintain_order="left")

    in_base, in_new = (pl.col(f"counted_{side}").fill_null(False) for side in ("base", "new"))
    worth_base, worth_new = (pl.col(f"worth_{side}").fill_null(0.0) for side in ("base", "new"))
    is_in_one = in_base ^ in_new
    is_moved = in_base & in_new & (worth_base != worth_new)
    left_out = pl.concat([base.left_out, new.left_out])
    has_values = ~pl.col("query_id").is_in(left_out.implode())
    causes = _list_causes(in_base, in_new, is_in_one, is_moved, Parts(measure, measure).last)
    divisor = _WORTH[str(measure.NAME)][1]

    return documents.select(
        "query_id",
        pl.lit(str(measure)).alias("measure"),
        "doc_id",
        "relevance",
        "iteration_base",
        "iteration_new",
        found=_choose(_list_finders(), "found_by_neither"),
        counted_by=_choose({"both": in_base & in_new, "base": in_base, "new": in_new}, "neither"),
        cause=pl.when(has_values, is_moved | is_in_one).then(_choose(causes, "judged_differently")),
        amount=pl.when(has_values).then((worth_new - worth_base) / divisor),
    )


def _list_good_documents(qrels: Qrels, measure: GoodGainMeasure) -> pl.DataFrame:
    """Return the good documents by their largest labels, with the sum of these labels in the query."""
    good = qrels.largest.filter(pl.col("relevance") >= measure.rel).sort(_DOCUMENT)
    good = good.select(*_DOCUMENT, "relevance")
    return good.with_columns(GainPool=pl.col("relevance").sum().over("query_id"))


def _find_counted(searched: Searched, measure: GoodGainMeasure, side: str) -> pl.DataFrame:
    """Return the documents of a system: the iteration and the label of each, whether it counts, and the gain that it adds."""
    is_in_time = pl.col("iteration") <= Parts(measure, measure).last
    counted = ((pl.col("relevance") >= measure.rel) & is_in_time).fill_null(False)
    added = _WORTH[str(measure.NAME)][0]
    columns = {
        f"iteration_{side}": pl.col("iteration"),
        f"gain_{side}": pl.col("relevance"),
        f"counted_{side}": counted,
        f"worth_{side}": pl.when(counted).then(added).otherwise(0.0).cast(pl.Float64),
    }
    return searched.documents.select(*_DOCUMENT, **columns)


def _find_ends(searched: Searched, measure: GoodGainMeasure, side: str) -> pl.DataFrame:
    """Return how each query ended: whether it is absent from the run, whether it broke off, and its number of iterations."""
    columns = {
        f"absent_{side}": pl.col("query_id").is_in(searched.absent.implode()),
        f"broke_off_{side}": pl.col("query_id").is_in(searched.broke_off.implode()),
        f"N_{side}": pl.col("N"),
    }
    return searched.counts[measure.rel].pools.select("query_id", **columns)


def _list_finders() -> dict[str, pl.Expr]:
    """Return when each value of `found` holds, without `found_by_neither`. The first one that holds is the value."""
    at_base, at_new = pl.col("iteration_base"), pl.col("iteration_new")
    return {
        "same": at_base == at_new,
        "earlier": at_new < at_base,
        "later": at_new > at_base,
        "found_by_base_only": at_base.is_not_null(),
        "found_by_new_only": at_new.is_not_null(),
    }


def _list_causes(
    in_base: pl.Expr, in_new: pl.Expr, is_in_one: pl.Expr, is_moved: pl.Expr, last: float
) -> dict[str, pl.Expr]:
    """Return when each cause holds. The first one that holds is the cause.

    `is_in_one`: one system alone counts the document. `is_moved`: both count it, with different amounts. The other system is
    the one that does not count it. `last` is the cutoff of the measure.
    """
    at_base, at_new = pl.col("iteration_base"), pl.col("iteration_new")
    at_counted = pl.when(in_base).then(at_base).otherwise(at_new)
    at_other = pl.when(in_base).then(at_new).otherwise(at_base)
    n_other = pl.when(in_base).then("N_new").otherwise("N_base")
    other_broke_off = pl.when(in_base).then("broke_off_new").otherwise("broke_off_base")
    other_is_absent = pl.when(in_base).then("absent_new").otherwise("absent_base")

    is_earlier = is_moved & (at_new < at_base)
    is_in_time_only_in_new = is_in_one & in_new & (at_base > last)
    is_in_time_only_in_base = is_in_one & in_base & (at_new > last)
    return {
        "judged_differently": is_moved & (pl.col("gain_base") != pl.col("gain_new")),
        "earlier": is_earlier | is_in_time_only_in_new,
        "later": is_moved | is_in_time_only_in_base,
        "broke_off": is_in_one & other_broke_off,
        "absent": is_in_one & other_is_absent,
        "never_searched": is_in_one & (n_other == 0),
        "stopped_before": is_in_one & (n_other < at_counted),
        "not_retrieved": is_in_one & at_other.is_null(),
    }


def _choose(conditions: Mapping[str, pl.Expr], otherwise: str) -> pl.Expr:
    """Return the first word whose condition holds, or `otherwise`."""
    words: list[pl.Expr] = []
    for word, condition in conditions.items():
        words.append(pl.when(condition).then(pl.lit(word)))
    return pl.coalesce(*words, pl.lit(otherwise))


def add_up(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """For each group of rows, count the documents and queries, and sum `amount`. The order of rows does not change the sums."""
    groups = rows.group_by(by).agg(
        documents=pl.len().cast(pl.Int64),
        queries=pl.col("query_id").n_unique(),
        amount="amount",
    )
    amount = pl.col("amount").map_elements(lambda values: math.fsum(values.to_list()), pl.Float64)
    return groups.with_columns(amount).sort(by)


def tabulate_queries(parts: Parts, base: Searched, new: Searched, causes: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `Explanation.queries` for one measure, without sentences.

    Two systems differ in an iteration if they found different good documents in it (SRR ignores good documents). For a rate
    per result, a different number of results or of repeated results also counts. `from_numerator` is the change of the numerator
    times the mean of 1 / denominator. `from_denominator` is the change of 1 / denominator times the mean of the numerators.

    As in `compare`, a system has no value in the queries of `left_out`, and a measure such as SRR has no value without results.
    The difference needs both values.
    """
    measure = parts.measure
    queries = next(iter(base.counts.values())).pools.select("query_id")
    for side, searched in (("base", base), ("new", new)):
        values = _find_values(parts, searched, side)
        queries = queries.join(values, on="query_id", how="left", maintain_order="left")
    amounts = add_up(causes.filter(measure=str(measure)), ["query_id"])
    queries = queries.join(amounts, on="query_id", how="left", maintain_order="left")
    firsts = _find_first_differing(parts, base, new)
    queries = queries.join(firsts, on="query_id", how="left", maintain_order="left")

    base_value, new_value = pl.col("base"), pl.col("new")
    has_both = base_value.is_not_null() & new_value.is_not_null()
    if parts.denominator is None:
        difference: pl.Expr = pl.when(has_both).then(pl.col("amount").fill_null(0.0))
    else:
        difference = new_value - base_value
    is_residue = difference.abs() <= RESIDUE * pl.max_horizontal(new_value.abs(), base_value.abs())

    above_base, above_new = pl.col("numerator_base"), pl.col("numerator_new")
    below_base, below_new = pl.col("denominator_base"), pl.col("denominator_new")
    is_divided = has_both & (below_base > 0) & (below_new > 0)
    from_numerator = (above_new - above_base) * (1 / below_base + 1 / below_new) / 2
    from_denominator = (1 / below_new - 1 / below_base) * (above_base + above_new) / 2
    return queries.select(
        "query_id",
        pl.lit(str(measure)).alias("measure"),
        "base",
        "new",
        difference=pl.when(is_residue).then(0.0).otherwise(difference),
        numerator_base=above_base,
        numerator_new=above_new,
        denominator_base=below_base,
        denominator_new=below_new,
        from_numerator=pl.when(is_divided).then(from_numerator),
        from_denominator=pl.when(is_divided).then(from_denominator),
        first_differing_iteration=pl.when(has_both).then(pl.col("at").cast(pl.Int64)),
    )


def _find_values(parts: Parts, searched: Searched, side: str) -> pl.DataFrame:
    """Return the value of the measure in each query of a system and, for a rate, its numerator and denominator.

    `side` (base or new) names the columns.
    """
    measure = parts.measure
    if measure.cutoff is None:
        results = NumResults()
        iterations = pl.col("N")
    else:
        results = NumResults(cutoff=measure.cutoff)
        iterations = pl.lit(measure.cutoff)  # RG@k divides by k even if a query has fewer iterations
    numerator = denominator = pl.lit(None, pl.Float64)
    if parts.denominator is not None:
        numerator = pl.col(str(parts.numerator))
        denominator = iterations if parts.denominator == "iterations" else pl.col(str(results))

    has_value = ~pl.col("query_id").is_in(searched.left_out.implode())
    if needs_results(measure):
        has_value &= pl.col(str(results)) > 0
    columns = {
        side: pl.when(has_value).then(str(measure)),
        f"numerator_{side}": numerator,
        f"denominator_{side}": denominator.cast(pl.Float64),
    }
    measures = list(dict.fromkeys([measure, parts.numerator, results]))  # a sum is its own numerator
    values = final_values(measures, searched.counts)
    pools = next(iter(searched.counts.values())).pools  # with N, which is the same for each threshold
    return values.join(pools, on="query_id").select("query_id", **columns)


def _find_first_differing(parts: Parts, base: Searched, new: Searched) -> pl.DataFrame:
    """Return the first iteration (`at`) of each query in which two systems differ."""
    place = [*_DOCUMENT, "iteration"]
    differing = []
    if parts.numerator.NAME != NumDup.NAME:
        is_good = pl.col("relevance") >= parts.measure.rel
        good_of_base = base.documents.filter(is_good)
        good_of_new = new.documents.filter(is_good)
        differing.append(good_of_base.join(good_of_new, on=place, how="anti"))
        differing.append(good_of_new.join(good_of_base, on=place, how="anti"))
    if parts.denominator == "results":
        ledger_of_base, ledger_of_new = (next(iter(side.counts.values())).ledger for side in (base, new))
        beside = ledger_of_base.join(ledger_of_new, on=["query_id", "iteration"], how="full", coalesce=True)
        has_other_results = pl.col("R") != pl.col("R_right")
        has_other_repeats = pl.col("Dup") != pl.col("Dup_right")
        differing.append(beside.fill_null(0).filter(has_other_results | has_other_repeats))

    places = pl.concat(rows.select("query_id", at="iteration") for rows in differing)
    in_time = places.filter(pl.col("at") <= parts.last)
    return in_time.group_by("query_id").agg(pl.col("at").min())


def find_unjudged(parts: Parts, systems: Mapping[str, Searched]) -> pl.DataFrame:
    """Return the rows of `Explanation.unjudged` for one measure, without titles."""
    left_out = pl.concat(searched.left_out for searched in systems.values())
    is_counted = ~pl.col("query_id").is_in(left_out.implode())
    is_unjudged = is_counted & pl.col("relevance").is_null() & (pl.col("iteration") <= parts.last)

    tables = []
    for system, searched in systems.items():
        rows = searched.documents.filter(is_unjudged)
        rows = rows.with_columns(measure=pl.lit(str(parts.measure)), system=pl.lit(system))
        tables.append(rows.select("query_id", "measure", "system", "doc_id", "iteration"))
    unjudged = pl.concat(tables)
    is_of_one_system = pl.len().over(_DOCUMENT) == 1
    return unjudged.filter(is_of_one_system).sort("query_id", "system", "iteration", "doc_id")
