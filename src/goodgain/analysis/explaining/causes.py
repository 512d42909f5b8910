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
        is_kept = ~pl.col("query_id").is_in(query_ids.implode())
        n = pl.when(is_kept).then("N").otherwise(0).alias("N")
        counts = {}
        for rel, of_rel in self.counts.items():
            kept = of_rel.ledger.select(is_kept).to_series()
            counts[rel] = of_rel._replace(
                ledger=of_rel.ledger.filter(kept),
                numbers=of_rel.numbers.filter(kept),
                pools=of_rel.pools.with_columns(n),
            )
        documents, repeats, numbers = (frame.filter(is_kept) for frame in (self.documents, self.repeats, self.numbers))
        return Searched(documents, repeats, numbers, counts, broke_off=query_ids)


def find_documents(qrels: Qrels, run: Run, counts: dict[float, Counts]) -> Searched:
    judged = next(iter(counts.values())).pools.select("query_id")
    given = run.rows.join(judged, on="query_id", how="semi").select(*_DOCUMENT, number="iteration")
    numbers = given.select("query_id", "number").unique().sort("query_id", "number")
    numbers = numbers.with_columns(iteration=pl.int_range(1, pl.len() + 1).over("query_id"))
    results = given.filter(pl.col("doc_id") != EMPTY_DOC).join(numbers, on=["query_id", "number"])
    results = results.sort(*_DOCUMENT, "iteration")
    results = results.with_columns(first_iteration=pl.col("iteration").first().over(_DOCUMENT))
    is_first = pl.struct(_DOCUMENT).is_first_distinct()
    firsts = results.filter(is_first)
    if qrels.labels is None:
        labelled = firsts.join(qrels.frame.select(*_DOCUMENT, "relevance"), on=_DOCUMENT, how="left")
    else:
        relevance = label_by_iteration(firsts.select(*_DOCUMENT, iteration="number"), qrels.frame)
        labelled = firsts.with_columns(relevance.alias("relevance"))
    return Searched(labelled.select(*_DOCUMENT, "iteration", "relevance"), results.filter(~is_first), numbers, counts)


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
    last = Parts(measure, measure).last
    is_good = pl.col("relevance") >= measure.rel
    counted = (is_good & (pl.col("iteration") <= last)).fill_null(False)
    added, divisor = _WORTH[str(measure.NAME)]
    worth = pl.when(counted).then(added).otherwise(0.0).cast(pl.Float64)
    good = qrels.largest.filter(is_good).sort(_DOCUMENT).select(*_DOCUMENT, "relevance")
    good = good.with_columns(GainPool=pl.col("relevance").sum().over("query_id"))
    left_out = pl.concat([base.left_out, new.left_out])
    has_values = ~pl.col("query_id").is_in(left_out.implode())
    for name, searched in (("base", base), ("new", new)):
        columns = {"iteration": pl.col("iteration"), "gain": pl.col("relevance"), "counted": counted, "worth": worth}
        named = (column.alias(f"{what}_{name}") for what, column in columns.items())
        found = searched.documents.select(*_DOCUMENT, *named)
        good = good.join(found, on=_DOCUMENT, how="left", maintain_order="left")
        is_absent = pl.col("query_id").is_in(searched.absent.implode()).alias(f"absent_{name}")
        is_broken = pl.col("query_id").is_in(searched.broke_off.implode()).alias(f"broke_off_{name}")
        pools = searched.counts[measure.rel].pools
        ends = pools.select("query_id", is_absent, is_broken, pl.col("N").alias(f"N_{name}"))
        good = good.join(ends, on="query_id", how="left", maintain_order="left")
    at_base, at_new = pl.col("iteration_base"), pl.col("iteration_new")
    in_base, in_new = (pl.col(f"counted_{name}").fill_null(False) for name in ("base", "new"))
    worth_base, worth_new = (pl.col(f"worth_{name}").fill_null(0.0) for name in ("base", "new"))
    by = {"both": in_base & in_new, "base": in_base, "new": in_new}
    found_when = {
        "same": at_base == at_new,
        "earlier": at_new < at_base,
        "later": at_new > at_base,
        "found_by_base_only": at_base.is_not_null(),
        "found_by_new_only": at_new.is_not_null(),
    }
    moved = in_base & in_new & (worth_base != worth_new)
    at_other = pl.when(in_base).then(at_new).otherwise(at_base)
    n_other = pl.when(in_base).then("N_new").otherwise("N_base")
    one = in_base ^ in_new
    causes = {
        "judged_differently": moved & (pl.col("gain_base") != pl.col("gain_new")),
        "earlier": (moved & (at_new < at_base)) | (one & in_new & (at_base > last)),
        "later": moved | (one & in_base & (at_new > last)),
        "broke_off": one & pl.when(in_base).then("broke_off_new").otherwise("broke_off_base"),
        "absent": one & pl.when(in_base).then("absent_new").otherwise("absent_base"),
        "never_searched": one & (n_other == 0),
        "stopped_before": one & (n_other < pl.when(in_base).then(at_base).otherwise(at_new)),
        "not_retrieved": one & at_other.is_null(),
    }
    return good.select(
        "query_id",
        pl.lit(str(measure)).alias("measure"),
        "doc_id",
        "relevance",
        "iteration_base",
        "iteration_new",
        found=_choose(found_when, "found_by_neither"),
        counted_by=_choose(by, "neither"),
        cause=pl.when(has_values, moved | one).then(_choose(causes, "judged_differently")),
        amount=pl.when(has_values).then((worth_new - worth_base) / divisor),
    )


def _choose(conditions: Mapping[str, pl.Expr], otherwise: str) -> pl.Expr:
    chosen = (pl.when(condition).then(pl.lit(word)) for word, condition in conditions.items())
    return pl.coalesce(*chosen, pl.lit(otherwise))


def add_up(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """For each group of rows, count the documents and queries, and sum `amount`. The order of rows does not change the sums."""
    amount = pl.col("amount").map_elements(lambda values: math.fsum(values.to_list()), pl.Float64)
    sizes = {"documents": pl.len().cast(pl.Int64), "queries": pl.col("query_id").n_unique()}
    return rows.group_by(by).agg(**sizes, amount="amount").with_columns(amount).sort(by)


def tabulate_queries(parts: Parts, base: Searched, new: Searched, causes: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `Explanation.queries` for one measure, without sentences.

    Two systems differ in an iteration if they found different good documents in it (SRR ignores good documents). For a rate
    per result, a different number of results or of repeated results also counts. `from_numerator` is the change of the numerator
    times the mean of 1 / denominator. `from_denominator` is the change of 1 / denominator times the mean of the numerators.

    As in `compare`, a system has no value in the queries of `left_out`, and a measure such as SRR has no value without results.
    The difference needs both values.
    """
    measure, is_rate = parts.measure, parts.denominator is not None
    results = NumResults(**({} if measure.cutoff is None else {"cutoff": measure.cutoff}))
    asked = list(dict.fromkeys([measure, parts.numerator, results]))
    sums = add_up(causes.filter(measure=str(measure)), ["query_id"])
    queries = next(iter(base.counts.values())).pools.select("query_id")
    for name, searched in (("base", base), ("new", new)):
        pools = next(iter(searched.counts.values())).pools
        divisors = {
            None: pl.lit(None),
            "iterations": pl.col("N") if measure.cutoff is None else pl.lit(measure.cutoff),
            "results": pl.col(str(results)),
        }
        has_value = ~pl.col("query_id").is_in(searched.left_out.implode())
        if needs_results(measure):
            has_value &= pl.col(str(results)) > 0
        columns = {
            name: pl.when(has_value).then(str(measure)),
            f"numerator_{name}": pl.when(pl.lit(is_rate)).then(pl.col(str(parts.numerator))),
            f"denominator_{name}": divisors[parts.denominator].cast(pl.Float64),
        }
        values = final_values(asked, searched.counts).join(pools, on="query_id").select("query_id", **columns)
        queries = queries.join(values, on="query_id", how="left", maintain_order="left")
    is_good = pl.lit(parts.numerator.NAME != NumDup.NAME) & (pl.col("relevance") >= measure.rel)
    good = [one.documents.filter(is_good) for one in (base, new)]
    place = [*_DOCUMENT, "iteration"]
    alone = [one.join(other, on=place, how="anti") for one, other in (good, good[::-1])]
    found = pl.concat(alone).select("query_id", at="iteration")
    if parts.denominator == "results":
        rows = [next(iter(one.counts.values())).ledger for one in (base, new)]
        beside = rows[0].join(rows[1], on=["query_id", "iteration"], how="full", coalesce=True).fill_null(0)
        differs = (pl.col("R") != pl.col("R_right")) | (pl.col("Dup") != pl.col("Dup_right"))
        found = pl.concat([found, beside.filter(differs).select("query_id", at="iteration")])
    firsts = found.filter(pl.col("at") <= parts.last).group_by("query_id").agg(pl.col("at").min())
    for frame in (sums, firsts):
        queries = queries.join(frame, on="query_id", how="left", maintain_order="left")
    has_both = pl.col("base").is_not_null() & pl.col("new").is_not_null()
    difference = pl.col("new") - pl.col("base") if is_rate else pl.when(has_both).then(pl.col("amount").fill_null(0.0))
    is_residue = difference.abs() <= RESIDUE * pl.max_horizontal(pl.col("new").abs(), pl.col("base").abs())
    of_rate = [f"{part}_{side}" for part in ("numerator", "denominator") for side in ("base", "new")]
    above, after, below, under = map(pl.col, of_rate)
    is_divided = has_both & (below > 0) & (under > 0)
    return queries.select(
        "query_id",
        pl.lit(str(measure)).alias("measure"),
        "base",
        "new",
        difference=pl.when(is_residue).then(0.0).otherwise(difference),
        **{name: name for name in of_rate},
        from_numerator=pl.when(is_divided).then((after - above) * (1 / below + 1 / under) / 2),
        from_denominator=pl.when(is_divided).then((1 / under - 1 / below) * (above + after) / 2),
        first_differing_iteration=pl.when(has_both).then(pl.col("at").cast(pl.Int64)),
    )


def find_unjudged(parts: Parts, systems: Mapping[str, Searched]) -> pl.DataFrame:
    """Return the rows of `Explanation.unjudged` for one measure, without titles."""
    left_out = pl.concat(searched.left_out for searched in systems.values())
    is_counted = ~pl.col("query_id").is_in(left_out.implode())
    unjudged = is_counted & pl.col("relevance").is_null() & (pl.col("iteration") <= parts.last)
    columns = ["query_id", "measure", "system", "doc_id", "iteration"]
    rows = pl.concat(
        searched.documents.filter(unjudged)
        .with_columns(measure=pl.lit(str(parts.measure)), system=pl.lit(name))
        .select(columns)
        for name, searched in systems.items()
    )
    return rows.filter(pl.len().over(_DOCUMENT) == 1).sort("query_id", "system", "iteration", "doc_id")
