"""Causes of a difference: for each good document, which of two systems counted it, and why the other did not.

The amounts of the documents add up to the difference of a query, because CG, NumGood and DCGG are sums over documents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from goodgain.counting.ledger import Counts, label_by_iteration
from goodgain.errors import MeasureError
from goodgain.formats import Qrels, Run
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import CG, DCGG, MEASURES, NumDup, NumGood, w
from goodgain.measures.ledger_values import final_values
from goodgain.ranking.first_occurrences_and_flattening import count_in_query, find_first_occurrences

#: Measure that is a sum over documents -> what a good document adds in the iteration that finds it.
_WORTH = {"CG": pl.col("relevance"), "NumGood": pl.lit(1.0), "DCGG": w * pl.col("relevance")}
#: Rate -> its numerator and its denominator.
_RATES = {
    "RG": (CG, "iterations"),
    "DRG": (DCGG, "iterations"),
    "SRE": (NumGood, "results"),
    "SRR": (NumDup, "results"),
    "nCG": (CG, "gain of all good documents"),
    "nDCGG": (DCGG, "gain of all good documents"),
}
_DOCUMENT = ["query_id", "doc_id"]
#: The columns of causes beside query_id.
_CAUSE = ["measure", "counted_by", "cause"]


class Searched(NamedTuple):
    """What a system found.

    Attributes:
        documents: query_id, doc_id, iteration (1..N of the query), relevance (null: unjudged): the first occurrences.
        numbers: query_id, iteration (1..N), number (that of the run).
        counts: threshold -> ledger and pools.
    """

    documents: pl.DataFrame
    numbers: pl.DataFrame
    counts: dict[float, Counts]


def find_documents(qrels: Qrels, run: Run, counts: dict[float, Counts]) -> Searched:
    """Return the first occurrences of a run with their labels, its iterations, and the counts as they are."""
    firsts = find_first_occurrences(run.rows)
    query_id = firsts.queries.get_column("query_id")
    iterations = firsts.iterations.select(
        query_id.gather(firsts.iterations.get_column("query")),
        iteration=count_in_query(firsts.iterations.get_column("query")),
        number="iteration",
    )
    rows = firsts.rows.select(query_id.gather(firsts.rows.get_column("query")), "doc_id", "iteration")
    by_iteration = qrels.labels is not None
    relevance = label_by_iteration(rows, qrels.frame) if by_iteration else qrels.judgments.look_up(firsts)
    iteration = iterations.get_column("iteration").gather(firsts.rows.get_column("group"))
    return Searched(rows.with_columns(iteration, relevance.alias("relevance")), iterations, counts)


class Parts(NamedTuple):
    """A measure as a fraction.

    Attributes:
        measure: the measure.
        numerator: the sum itself, or the numerator of a rate.
        denominator: what a rate is divided by, in words; None for a sum.
    """

    measure: GoodGainMeasure
    numerator: GoodGainMeasure
    denominator: str | None = None


def divide_measure(measure: object) -> Parts:
    """Return the parts of a measure.

    Raises:
        MeasureError: it is neither a sum over documents nor a rate of one.

    >>> divide_measure(MEASURES["SRE"](rel=1) @ 3)
    Parts(measure=SRE(rel=1)@3, numerator=NumGood(rel=1)@3, denominator='results')
    """
    if isinstance(measure, GoodGainMeasure) and measure.NAME in _WORTH:
        return Parts(measure, measure)
    if isinstance(measure, GoodGainMeasure) and measure.NAME in _RATES:
        numerator, denominator = _RATES[str(measure.NAME)]
        known = {name: value for name, value in measure.params.items() if name in numerator.SUPPORTED_PARAMS}
        return Parts(measure, type(numerator)(**known), denominator)
    names = ", ".join([*_WORTH, *_RATES])
    raise MeasureError(f"{measure} has no causes by document. Ask for one of {names}.")


def find_causes(qrels: Qrels, base: Searched, new: Searched, measure: GoodGainMeasure) -> pl.DataFrame:
    """Find for each good document what it adds to the difference of two systems, and why.

    Args:
        qrels: the judgments.
        base, new: what the two systems found.
        measure: CG, NumGood or DCGG.

    Returns:
        The columns of `Explanation.documents` but title.
    """
    good = qrels.largest.filter(pl.col("relevance") >= measure.rel).select(*_DOCUMENT, "relevance")
    for name, searched in (("base", base), ("new", new)):
        is_good = pl.col("relevance") >= measure.rel
        counted = is_good if measure.cutoff is None else is_good & (pl.col("iteration") <= measure.cutoff)
        found = searched.documents.select(
            *_DOCUMENT,
            pl.col("iteration").alias(f"iteration_{name}"),
            counted.fill_null(False).alias(f"counted_{name}"),
            pl.when(counted).then(pl.col("relevance")).alias(f"gain_{name}"),
            pl.when(counted).then(_WORTH[str(measure.NAME)]).otherwise(0.0).cast(pl.Float64).alias(f"worth_{name}"),
        )
        ends = searched.counts[measure.rel].pools.select("query_id", pl.col("N").alias(f"N_{name}"))
        good = good.join(found, on=_DOCUMENT, how="left", maintain_order="left")
        good = good.join(ends, on="query_id", how="left", maintain_order="left")
    in_base, in_new = (pl.col(f"counted_{name}").fill_null(False) for name in ("base", "new"))
    both = in_base & in_new
    counted_by = pl.when(both).then(pl.lit("both")).when(in_base).then(pl.lit("base")).when(in_new).then(pl.lit("new"))
    worth_base, worth_new = (pl.col(f"worth_{name}").fill_null(0.0) for name in ("base", "new"))
    only_base, only_new = _find_cause("base", "new", measure), _find_cause("new", "base", measure)
    regained = pl.col("gain_base") != pl.col("gain_new")
    moved = (
        pl.when(pl.col("iteration_new") < pl.col("iteration_base")).then(pl.lit("earlier")).otherwise(pl.lit("later"))
    )
    in_both = pl.when(regained).then(pl.lit("judged_differently")).otherwise(moved)
    return good.sort(_DOCUMENT).select(
        "query_id",
        pl.lit(str(measure)).alias("measure"),
        "doc_id",
        "relevance",
        "iteration_base",
        "iteration_new",
        found=_compare_iterations(),
        counted_by=counted_by.otherwise(pl.lit("neither")),
        cause=pl.when(both & (worth_base == worth_new))
        .then(None)
        .when(both)
        .then(in_both)
        .when(in_base)
        .then(only_base)
        .when(in_new)
        .then(only_new),
        amount=worth_new - worth_base,
    )


def _find_cause(found: str, other: str, measure: GoodGainMeasure) -> pl.Expr:
    """Return the first cause that holds in the other system for a document that only one counts."""
    at, first = pl.col(f"iteration_{other}"), pl.col(f"iteration_{found}")
    after = pl.lit(False) if measure.cutoff is None else at > measure.cutoff
    return (
        pl.when(after)
        .then(pl.lit("later" if found == "base" else "earlier"))
        .when(pl.col(f"N_{other}") < first)
        .then(pl.lit("never_searched"))
        .when(at.is_not_null())
        .then(pl.lit("judged_differently"))
        .otherwise(pl.lit("not_retrieved"))
    )


def _compare_iterations() -> pl.Expr:
    base, new = pl.col("iteration_base"), pl.col("iteration_new")
    return (
        pl.when(base.is_null() & new.is_null())
        .then(pl.lit("found_by_neither"))
        .when(base.is_null())
        .then(pl.lit("found_by_new_only"))
        .when(new.is_null())
        .then(pl.lit("found_by_base_only"))
        .when(base == new)
        .then(pl.lit("same"))
        .when(new < base)
        .then(pl.lit("earlier"))
        .otherwise(pl.lit("later"))
    )


def add_up(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the sum of the amounts of each group, rounded once: it does not depend on the order of rows."""
    amount = pl.col("amount").map_elements(lambda values: math.fsum(values.to_list()), pl.Float64)
    return (
        rows.group_by(by, maintain_order=True)
        .agg(documents=pl.len().cast(pl.Int64), amount="amount")
        .with_columns(amount)
    )


def sum_causes(documents: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, measure, counted_by, cause, documents, amount: one row for each cause of a query."""
    with_cause = documents.filter(pl.col("cause").is_not_null())
    return add_up(with_cause, ["query_id", *_CAUSE]).sort("query_id", *_CAUSE)


def tabulate_values(parts: Parts, base: Searched, new: Searched) -> pl.DataFrame:
    """Return query_id, base, new, and for a rate numerator and denominator of both systems."""
    measure, sides = parts.measure, []
    for name, searched in (("base", base), ("new", new)):
        rel = next(iter(searched.counts)) if measure.rel not in searched.counts else measure.rel
        pools = searched.counts[rel].pools
        results = MEASURES["NumResults"](**({} if measure.cutoff is None else {"cutoff": measure.cutoff}))
        asked = list(dict.fromkeys([measure, parts.numerator, results]))
        divisors = {
            "iterations": pl.col("N") if measure.cutoff is None else pl.lit(measure.cutoff),
            "results": pl.col(str(results)),
            "gain of all good documents": pl.col("GainPool"),
        }
        values = final_values(asked, searched.counts).join(pools, on="query_id", maintain_order="left")
        columns = {name: pl.col(str(measure))}
        if parts.denominator is not None:
            columns |= {f"numerator_{name}": pl.col(str(parts.numerator))}
            columns |= {f"denominator_{name}": divisors[parts.denominator].cast(pl.Float64)}
        sides.append(values.select("query_id", **columns))
    return sides[0].join(sides[1], on="query_id", maintain_order="left")


def find_first_difference(documents: pl.DataFrame, parts: Parts, base: Searched, new: Searched) -> pl.DataFrame:
    """Return query_id, first_differing_iteration; only queries that have one.

    It is the first iteration in which one system alone found a good document. Where a rate counts results, it can also be
    the first one with other numbers of results or repeats.
    """
    parted = documents.filter(pl.col("iteration_base").ne_missing(pl.col("iteration_new")))
    found = parted.select("query_id", at=pl.min_horizontal("iteration_base", "iteration_new"))
    if parts.denominator == "results":
        key = ["query_id", "iteration"]
        rows = [next(iter(one.counts.values())).ledger.select(*key, "R", "Dup") for one in (base, new)]
        beside = rows[0].join(rows[1], on=key, how="full", coalesce=True).fill_null(0)
        differs = (pl.col("R") != pl.col("R_right")) | (pl.col("Dup") != pl.col("Dup_right"))
        found = pl.concat([found, beside.filter(differs).select("query_id", at="iteration")])
    if parts.measure.cutoff is not None:
        found = found.filter(pl.col("at") <= parts.measure.cutoff)
    return found.group_by("query_id").agg(first_differing_iteration=pl.col("at").min())
