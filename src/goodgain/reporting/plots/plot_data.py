"""The data of each plot, from the frames that goodgain returns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import polars.selectors as cs

from goodgain.comparing.comparison import Comparison
from goodgain.comparing.pairs_table import arrange_values
from goodgain.comparing.statistical_tests import RESIDUE, subtract_without_residue
from goodgain.comparing.use_of_documents import Funnel
from goodgain.errors import InputError
from goodgain.formats.qrels import load_qrels
from goodgain.measures.names import find_direction, parse_measures
from goodgain.reporting.counted_runs import KINDS
from goodgain.reporting.spends import ENOUGH

_POINT = ("system", "measure", "iteration", "mean", "low", "high", "searching", "queries")
_SPEND_POINT = ("system", "measure", "over", "spend", "mean", "low", "high", "queries")
#: Columns of a frame in which a system has several runs.
_LEAST_AND_MOST = cs.by_name("least", "most", require_all=False)
_COUNTS = ("query_id", "iteration", "R", "UR", "Dup", "GR", "Unjudged", "judged")


def curve_data(frame: Any, measure: str | None = None) -> pl.DataFrame:
    """Return the data of `plots.curve`: one measure of a frame of `gg.curve`.

    Args:
        frame: what `gg.curve` returns.
        measure: one of its measures; not needed if there is only one.

    Returns:
        system, iteration, mean, low, high, and few: whether fewer than half of the queries still search. Also least and
        most, if a system has several runs.

    Raises:
        InputError: the frame is not one of `gg.curve`, or has several measures and none is named.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> found = gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "CG SRE")
    >>> curve_data(found, "CG").rows()
    [('lean', 1, 3.5, 2.0, 5.0, False), ('lean', 2, 6.5, 5.0, 8.0, False), ('lean', 3, 7.5, 5.0, 10.0, False)]
    """
    few = pl.col("searching") * 2 < pl.col("queries")
    points = choose_points(frame, measure)
    return points.select("system", "iteration", "mean", "low", "high", _LEAST_AND_MOST, few=few)


def choose_points(frame: Any, measure: str | None, *, spend: bool = False) -> pl.DataFrame:
    """Return the rows of one measure of a frame of `gg.curve`, over iterations or over what was spent."""
    rows = _read_frame(frame, *((_SPEND_POINT, "gg.curve(..., over=...)") if spend else (_POINT, "gg.curve")))
    return rows.filter(measure=_choose(rows, "measure", measure))


def against_spend_data(frame: Any, measure: str | None = None) -> pl.DataFrame:
    """Return the data of `plots.against_spend`: one measure of a frame of `gg.curve(..., over=...)`.

    Args:
        frame: what `gg.curve(..., over=...)` returns.
        measure: one of its measures; not needed if there is only one.

    Returns:
        system, spend, mean, low, high, and enough: true at the smallest spend whose mean is 95 % of the last one; nowhere
        for a measure whose better direction is not up. Also least and most, if a system has several runs.

    Raises:
        InputError: the frame is not one of `gg.curve(..., over=...)`, or has several measures and none is named.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> found = gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "CG", over="searches", at=[1, 2, 3])
    >>> against_spend_data(found).select("spend", "mean", "enough").rows()
    [(1.0, 3.5, False), (2.0, 6.5, False), (3.0, 7.5, True)]
    """
    rows = choose_points(frame, measure, spend=True)
    names = rows.get_column("measure").unique()
    rises = all(find_direction(one) == "up" for one in parse_measures([*names], complete=False))
    reached = (pl.col("mean") >= ENOUGH * pl.col("mean").last() * (1 - RESIDUE)).fill_null(False) & rises
    enough = (reached & (reached.cum_sum() == 1) & (pl.col("mean") > 0)).over("system")
    return rows.select("system", "spend", "mean", "low", "high", _LEAST_AND_MOST, enough=enough)


def new_good_data(frame: Any, system: str | None = None) -> pl.DataFrame:
    """Return the data of `plots.new_good`, from the measures NumGood and nCG of a frame of `gg.curve`.

    Args:
        frame: what `gg.curve(qrels, runs, "NumGood nCG")` returns.
        system: one of its systems; not needed if there is only one.

    Returns:
        iteration, new_good (number of good documents first found in this iteration) and share (nCG: share of the gain of
        all good documents found up to this iteration). Both are means over all queries.

    Raises:
        InputError: the frame is not one of `gg.curve`, lacks one of the two measures, or has several systems and none is named.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> new_good_data(gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "NumGood nCG")).rows()
    [(1, 1.5, 0.45), (2, 1.0, 0.9), (3, 0.5, 1.0)]
    """
    rows = _read_frame(frame, _POINT, "gg.curve(qrels, runs, 'NumGood nCG')")
    rows = rows.filter(system=_choose(rows, "system", system))
    measures = list(dict.fromkeys(rows.get_column("measure")))
    good, share = (_find_measure(measures, name) for name in ("NumGood", "nCG"))
    if good.removeprefix("NumGood") != share.removeprefix("nCG"):
        raise InputError(f"{good} and {share} have different thresholds: give both the same rel")
    totals = rows.filter(measure=good).sort("iteration")
    shares = rows.filter(measure=share).select("iteration", share="mean")
    new = (pl.col("mean") - pl.col("mean").shift(fill_value=0.0)).alias("new_good")
    return totals.select("iteration", new).join(shares, on="iteration", how="left", maintain_order="left")


def what_came_back_data(ledger: Any) -> pl.DataFrame:
    """Return the data of `plots.what_came_back`: the results of each iteration by kind, over all judged queries.

    Args:
        ledger: what `gg.ledger` returns.

    Returns:
        iteration; the numbers of results that are new_good, new_other (new, judged, not good), unjudged (new, without a
        judgment) and repeated; searches: the number of queries that have this iteration; nothing: the number of those
        without a result. Queries without judgments are left out.

    Raises:
        InputError: the frame is not one of `gg.ledger`.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> what_came_back_data(gg.ledger(folder + "qrels.txt", folder + "repeating.run")).rows()
    [(1, 3, 2, 0, 1, 2, 0), (2, 2, 2, 0, 4, 2, 0), (3, 1, 0, 0, 4, 1, 0)]
    """
    rows = _read_frame(ledger, _COUNTS, "gg.ledger").filter("judged")
    counted = rows.group_by("iteration").agg(
        **{name: kind.number.sum() for name, kind in KINDS.items()},
        searches=pl.len().cast(pl.Int64),
        nothing=(pl.col("R") == 0).sum().cast(pl.Int64),
    )
    return counted.sort("iteration")


def iterations_used_data(ledger: Any, qrels: Any = None) -> pl.DataFrame:
    """Return the data of `plots.iterations_used`: the last iteration of queries, and the last that found a good document.

    Args:
        ledger: what `gg.ledger` returns. It has no row of a query that never searched.
        qrels: what `read_qrels` takes; adds the judged queries that never searched. None leaves them out.

    Returns:
        iteration (from 0), last: the number of queries with this last iteration, last_good: the number of queries that
        found their last new good document in it. Iteration 0 has the queries that never searched, or never found a good
        one. Queries without judgments are left out.

    Raises:
        InputError: the frame is not one of `gg.ledger`, or the qrels cannot be read.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> iterations_used_data(gg.ledger(folder + "qrels.txt", folder + "lean.run")).rows()
    [(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 1, 1)]
    """
    rows = _read_frame(ledger, _COUNTS, "gg.ledger").filter("judged")
    when_good = pl.when(pl.col("GR") > 0).then("iteration").otherwise(0)
    queries = rows.group_by("query_id").agg(last=pl.col("iteration").max(), last_good=when_good.max())
    if qrels is not None:
        judged = load_qrels(qrels).frame.select(pl.col("query_id").unique())
        queries = judged.join(queries, on="query_id", how="left").fill_null(0)
    axis = pl.DataFrame({"iteration": range(int(queries.get_column("last").max() or 0) + 1)})  # type: ignore[arg-type]  # an Int64
    for name in ("last", "last_good"):
        counted = queries.group_by(iteration=pl.col(name).cast(pl.Int64)).agg(pl.len().cast(pl.Int64).alias(name))
        axis = axis.join(counted, on="iteration", how="left", maintain_order="left")
    return axis.fill_null(0)


def precision_recall_data(frame: Any) -> pl.DataFrame:
    """Return the data of `plots.precision_recall`: the points of a frame of `gg.pr_curve`, by ascending recall.

    Args:
        frame: what `gg.pr_curve` returns, with or without `per_query=True`.

    Returns:
        system, query_id (null in a frame of means), recall, precision.

    Raises:
        InputError: the frame is not one of `gg.pr_curve`.

    >>> import goodgain as gg
    >>> found = gg.pr_curve({"q": {"a": 1, "c": 1}}, {"agent": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}}, points="all")
    >>> precision_recall_data(found).rows()
    [('agent', None, 0.5, 1.0), ('agent', None, 1.0, 0.6666666666666666)]
    """
    rows = _read_frame(frame, ("system", "recall", "precision"), "gg.pr_curve")
    if "query_id" not in rows.columns:
        rows = rows.with_columns(query_id=pl.lit(None, pl.String))
    in_order = pl.Enum(rows.get_column("system").unique(maintain_order=True))
    return rows.sort(pl.col("system").cast(in_order), "query_id", "recall").select(
        "system", "query_id", "recall", "precision"
    )


def per_query_data(
    comparison: Comparison, measure: str | None = None, *, system: str | None = None, against: str | None = None
) -> pl.DataFrame:
    """Return the data of `plots.per_query`: the difference of two systems in each query, in descending order.

    Args:
        comparison: what `gg.compare` returns.
        measure: one of its measures; not needed if there is only one.
        system, against: one of its pairs; not needed if there is only one.

    Returns:
        query_id, value (of system), value_against, difference (value minus value_against), and outcome: `better` or `worse`
        for system, by the direction of the measure, or `equal`; null for a measure without a direction. As in
        `comparison.pairs`, a query is left out if one of both systems has no value for it.

    Raises:
        InputError: the comparison lacks the measure or the pair, or has several and none is named.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> runs = {name: f"{folder}{name}.run" for name in ("repeating", "lean")}
    >>> per_query_data(gg.compare(folder + "qrels.txt", runs, "SRR@3")).rows()
    [('q2', 0.0, 0.42857142857142855, -0.42857142857142855, 'better'), ('q1', 0.0, 0.5, -0.5, 'better')]
    """
    pair = choose_pair(comparison, measure, system=system, against=against)
    names = comparison.systems.get_column("system").to_list()
    query_ids = comparison.values.get_column("query_id").unique().sort()
    arranged = arrange_values(comparison.values, [pair["measure"]], names, query_ids)[pair["measure"]]
    sides = [names.index(pair["system"]), names.index(pair["against"])]
    value, other = arranged[sides]
    difference = subtract_without_residue(value, other)
    columns = {"query_id": query_ids, "value": value, "value_against": other, "difference": difference}
    rows = pl.DataFrame(columns).filter(pl.Series(np.isfinite(difference)))
    gain = pl.col("difference") * {"up": 1, "down": -1, None: None}[pair["better"]]
    names_of_signs = {1.0: "better", 0.0: "equal", -1.0: "worse"}
    outcome = gain.cast(pl.Float64).sign().replace_strict(names_of_signs, default=None, return_dtype=pl.String)
    return rows.with_columns(outcome=outcome).sort("difference", "query_id", descending=[True, False])


def choose_pair(
    comparison: Comparison, measure: str | None = None, *, system: str | None = None, against: str | None = None
) -> dict[str, Any]:
    """Return the named row of `comparison.pairs`, or the only one; raise InputError if neither exists."""
    if not isinstance(comparison, Comparison):
        raise InputError(f"{type(comparison).__name__} is not a comparison: give what gg.compare returns")
    pairs = comparison.pairs.filter(measure=_choose(comparison.pairs, "measure", measure))
    for name, wanted in (("system", system), ("against", against)):
        pairs = pairs if wanted is None else pairs.filter(pl.col(name) == str(wanted))
    if pairs.height == 1:
        return pairs.row(0, named=True)
    there = comparison.pairs.select("system", "against").unique(maintain_order=True).rows()
    listed = ", ".join(f"system={one!r}, against={other!r}" for one, other in there[:10])
    raise InputError(f"{'no' if pairs.is_empty() else 'more than one'} pair matches; give one of: {listed}")


def funnel_data(found: Funnel) -> pl.DataFrame:
    """Return the data of `plots.funnel`: the mean number of good and other documents of each stage.

    Args:
        found: what `gg.funnel` returns.

    Returns:
        system, stage (returned, opened, cited), good, other, and share: good of all. Null where the stage is not known.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/opened_and_cited/"
    >>> funnel_data(gg.funnel(folder + "judgments.qrels", folder + "uses.jsonl")).filter(system="agent").row(0)
    ('agent', 'returned', 1.6666666666666667, 1.3333333333333333, 0.5555555555555556)
    """
    stages = [
        found.frame.select(
            "system", stage=pl.lit(stage), good=f"good_{stage}", other=pl.col(stage) - pl.col(f"good_{stage}"),
            share=pl.when(pl.col(stage) > 0).then(pl.col(f"good_{stage}") / pl.col(stage)),
        )
        for stage in ("returned", "opened", "cited")
    ]  # fmt: skip
    order = pl.col("system").cast(pl.Enum(found.frame.get_column("system")))
    return pl.concat(stages).sort(order, maintain_order=True)


def _read_frame(frame: Any, columns: Collection[str], source: str) -> pl.DataFrame:
    """Return the frame in Polars; raise InputError without the columns of its source."""
    try:
        rows: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
    except TypeError:
        raise InputError(f"{type(frame).__name__} is not a data frame: give the one that {source} returns") from None
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise InputError(f"the frame lacks {', '.join(missing)}: give the one that {source} returns")
    return rows


def _choose(rows: pl.DataFrame, column: str, wanted: str | None) -> str:
    """Return the wanted value of a column, or its only one."""
    there = [str(value) for value in rows.get_column(column).unique(maintain_order=True)]
    if wanted is None and len(there) == 1:
        return there[0]
    if wanted is not None and str(wanted) in there:
        return str(wanted)
    given = "is not given" if wanted is None else f"{str(wanted)!r} is not there"
    raise InputError(f"{column}: {given}; give one of {', '.join(map(repr, there)) or 'none: the frame is empty'}")


def _find_measure(measures: list[str], name: str) -> str:
    found = next((measure for measure in measures if measure == name or measure.startswith(f"{name}(")), None)
    if found is None:
        there = ", ".join(measures)
        raise InputError(f"the frame has {there}, and {name} is needed: draw gg.curve(qrels, runs, 'NumGood nCG')")
    return found
