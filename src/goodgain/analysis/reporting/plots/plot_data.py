"""Prepares the data of each plot from the frames that goodgain returns."""

from collections.abc import Collection
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl
import polars.selectors as cs

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.use_of_documents import STAGES, Funnel
from goodgain.analysis.reporting.spends import ENOUGH
from goodgain.errors import InputError
from goodgain.files.tables import sort_ids
from goodgain.formats.qrels import load_qrels
from goodgain.measures.names import find_direction, parse_measures
from goodgain.statistics.statistical_tests import RESIDUE, subtract_without_residue

_POINT = ("system", "measure", "iteration", "mean", "low", "high", "searching", "queries")
_SPEND_POINT = ("system", "measure", "over", "spend", "mean", "low", "high", "queries")
#: Columns of a frame in which a system has several runs.
_LEAST_AND_MOST = cs.by_name("least", "most", require_all=False)
_COUNTS = ("query_id", "iteration", "R", "UR", "Dup", "GR", "Unjudged", "judged")


class Kind(NamedTuple):
    """How to count one kind of results in a row of the ledger, and how to draw its bars."""

    number: pl.Expr
    colour: str
    hatch: str
    label: str


#: The kinds of results, in the order of stacked bars. Systems and verdicts have other colours.
KINDS = {
    "new_good": Kind(pl.col("GR"), "#E8B004", "", "new, good"),
    "new_other": Kind(pl.col("UR") - pl.col("GR") - pl.col("Unjudged"), "#F7E7B4", "--", "new, not good"),
    "unjudged": Kind(pl.col("Unjudged"), "#BCBCBC", r"\\\\", "new, unjudged"),
    "repeated": Kind(pl.col("Dup"), "#8A6D3B", "////", "repeated"),
}


def prepare_curve(frame: Any, measure: str | None = None) -> pl.DataFrame:
    """Return the points of one measure. The column `few` is true where fewer than half of the queries still search."""
    few = pl.col("searching") * 2 < pl.col("queries")
    points = choose_points(frame, measure)
    return points.select("system", "iteration", "mean", "low", "high", _LEAST_AND_MOST, few=few)


def choose_points(frame: Any, measure: str | None, *, spend: bool = False) -> pl.DataFrame:
    """Return the rows of one measure in a frame from `gg.curve`. `spend` says that the frame is from `gg.curve(..., over=...)`."""
    columns, source = _POINT, "gg.curve"
    if spend:
        columns, source = _SPEND_POINT, "gg.curve(..., over=...)"
    rows = _read_frame(frame, columns, source)
    return rows.filter(measure=_choose(rows, "measure", measure))


def describe_without_results(points: pl.DataFrame) -> list[str]:
    """Return a sentence on queries without results, which count as 0, the best value; none without such queries."""
    if "without_results" not in points.columns:
        return []
    most = points.group_by("system", maintain_order=True).agg(pl.col("without_results").max())
    listed = ", ".join(f"{number:,} of {system}" for system, number in most.iter_rows() if number)
    return [f"Queries without results count as 0, the best value: up to {listed}."] if listed else []


def prepare_against_spend(frame: Any, measure: str | None = None) -> pl.DataFrame:
    """Return the points of one measure over the amount spent.

    The column `enough` is true at the smallest spend at which the mean reaches 95 % of the last mean. For a measure where
    higher is not better, `enough` is always false.
    """
    rows = choose_points(frame, measure, spend=True)
    names = rows.get_column("measure").unique()
    rises = all(find_direction(named) == "up" for named in parse_measures([*names], complete=False))

    enough_of_last = ENOUGH * pl.col("mean").last() * (1 - RESIDUE)
    is_reached = (pl.col("mean") >= enough_of_last).fill_null(False) & rises
    is_first = is_reached.cum_sum() == 1
    enough = (is_reached & is_first & (pl.col("mean") > 0)).over("system")
    return rows.select("system", "spend", "mean", "low", "high", _LEAST_AND_MOST, enough=enough)


def prepare_new_good(frame: Any, system: str | None = None) -> pl.DataFrame:
    """Return means over queries by iteration: new_good (good documents first found in this iteration) and share (nCG)."""
    rows = _read_frame(frame, _POINT, "gg.curve(qrels, runs, 'NumGood nCG')")
    rows = rows.filter(system=_choose(rows, "system", system))
    measures = list(dict.fromkeys(rows.get_column("measure")))
    good, share = (_find_measure(measures, name) for name in ("NumGood", "nCG"))
    if good.removeprefix("NumGood") != share.removeprefix("nCG"):
        raise InputError(f"{good} and {share} have different thresholds: give both the same rel")

    means = rows.pivot("measure", on_columns=[good, share], index="iteration", values="mean").sort("iteration")
    found_before = pl.col(good).shift(fill_value=0.0)
    return means.select("iteration", new_good=pl.col(good) - found_before, share=share)


def prepare_what_came_back(ledger: Any) -> pl.DataFrame:
    """Return a row per iteration. For each kind of result, a column has the number of such results in all judged queries.

    The column `searches` counts the queries that have the iteration, and `nothing` counts those without a result there.
    """
    rows = _read_frame(ledger, _COUNTS, "gg.ledger").filter("judged")
    numbers = {name: kind.number.sum() for name, kind in KINDS.items()}
    numbers["searches"] = pl.len().cast(pl.Int64)
    numbers["nothing"] = (pl.col("R") == 0).sum().cast(pl.Int64)
    return rows.group_by("iteration").agg(**numbers).sort("iteration")


def prepare_iterations_used(ledger: Any, qrels: Any = None) -> pl.DataFrame:
    """Count the judged queries by last iteration (`last`), and by the iteration of the last new good document (`last_good`).

    At iteration 0, `last` counts the queries that never searched, and `last_good` those that never found a good document.
    Queries that never searched are not in a ledger, and are counted only if `qrels` has them.
    """
    rows = _read_frame(ledger, _COUNTS, "gg.ledger").filter("judged")
    when_good = pl.when(pl.col("GR") > 0).then("iteration").otherwise(0)
    queries = rows.group_by("query_id").agg(last=pl.col("iteration").max(), last_good=when_good.max())
    if qrels is not None:
        judged = load_qrels(qrels).frame.select(pl.col("query_id").unique())
        queries = judged.join(queries, on="query_id", how="left").fill_null(0)

    last: Any = queries.get_column("last").max() or 0
    iterations = pl.DataFrame({"iteration": range(last + 1)})
    for name in ("last", "last_good"):
        ends = queries.select(iteration=pl.col(name).cast(pl.Int64))
        numbers = ends.group_by("iteration").agg(pl.len().cast(pl.Int64).alias(name))
        iterations = iterations.join(numbers, on="iteration", how="left", maintain_order="left")
    return iterations.fill_null(0)


def prepare_precision_recall(frame: Any) -> pl.DataFrame:
    """Return the columns system, query_id (null in a frame of means), recall and precision, sorted by recall."""
    rows = _read_frame(frame, ("system", "recall", "precision"), "gg.pr_curve")
    if "query_id" not in rows.columns:
        rows = rows.with_columns(query_id=pl.lit(None, pl.String))
    in_order = pl.Enum(rows.get_column("system").unique(maintain_order=True))
    rows = rows.sort(pl.col("system").cast(in_order), "query_id", "recall")
    return rows.select("system", "query_id", "recall", "precision")


def prepare_per_query(
    comparison: Comparison, measure: str | None = None, *, system: str | None = None, against: str | None = None
) -> pl.DataFrame:
    """Return a row per query of one pair and measure, in descending order of difference.

    The column `outcome` is `better`, `worse` or `equal`. It is null for measures where neither higher nor lower
    values are better. Queries in which one of the two systems has no value are left out.
    """
    pair = choose_pair(comparison, measure, system=system, against=against)
    systems = comparison.systems.get_column("system").to_list()
    values = comparison.matrices[pair["measure"]]  # a row per system, a column per query
    value = values[systems.index(pair["system"])]
    other = values[systems.index(pair["against"])]
    difference = subtract_without_residue(value, other)
    columns = {"query_id": comparison.query_ids, "value": value, "value_against": other, "difference": difference}
    rows = pl.DataFrame(columns).filter(pl.Series(np.isfinite(difference)))

    gain = pl.col("difference") * {"up": 1, "down": -1, None: None}[pair["better"]]
    names_of_signs = {1.0: "better", 0.0: "equal", -1.0: "worse"}
    outcome = gain.cast(pl.Float64).sign().replace_strict(names_of_signs, default=None, return_dtype=pl.String)
    rows = sort_ids(rows.with_columns(outcome=outcome))
    return rows.sort("difference", descending=True, maintain_order=True)


def choose_pair(
    comparison: Comparison, measure: str | None = None, *, system: str | None = None, against: str | None = None
) -> dict[str, Any]:
    """Return the row of `comparison.pairs` that matches the arguments. Raise `InputError` if none or several match."""
    if not isinstance(comparison, Comparison):
        raise InputError(f"{type(comparison).__name__} is not a comparison: give what gg.compare returns")
    pairs = comparison.pairs.filter(measure=_choose(comparison.pairs, "measure", measure))
    for column, name in (("system", system), ("against", against)):
        if name is not None:
            pairs = pairs.filter(pl.col(column) == str(name))
    if pairs.height == 1:
        return pairs.row(0, named=True)

    number = "no" if pairs.is_empty() else "more than one"
    all_pairs = comparison.pairs.select("system", "against").unique(maintain_order=True)
    examples = [f"system={first!r}, against={second!r}" for first, second in all_pairs.head(10).iter_rows()]
    raise InputError(f"{number} pair matches; give one of: {', '.join(examples)}")


def prepare_funnel(funnel: Funnel) -> pl.DataFrame:
    """Return mean numbers of good and other documents, and the part that is good, by system and stage. Null: unknown, or 0 / 0."""
    tables = []
    for stage in STAGES:
        documents, good = pl.col(stage), pl.col(f"good_{stage}")
        share = pl.when(documents > 0).then(good / documents)
        tables.append(
            funnel.frame.select("system", stage=pl.lit(stage), good=good, other=documents - good, share=share)
        )
    order = pl.col("system").cast(pl.Enum(funnel.frame.get_column("system")))
    return pl.concat(tables).sort(order, maintain_order=True)


def _read_frame(frame: Any, columns: Collection[str], source: str) -> pl.DataFrame:
    """Return a frame of any library as a Polars frame. Raise `InputError` if columns are missing; `source` makes such frames."""
    try:
        rows: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
    except TypeError:
        raise InputError(f"{type(frame).__name__} is not a data frame: give the frame that {source} returns") from None
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise InputError(f"the frame lacks {', '.join(missing)}: give the frame that {source} returns")
    return rows


def _choose(rows: pl.DataFrame, column: str, wanted: str | None) -> str:
    """Return the wanted value of a column or, if it is None, the only value. Raise `InputError` if there is none."""
    values = [str(value) for value in rows.get_column(column).unique(maintain_order=True)]
    if wanted is None and len(values) == 1:
        return values[0]
    if wanted is not None and str(wanted) in values:
        return str(wanted)
    fault = "is not given" if wanted is None else f"{str(wanted)!r} is not there"
    raise InputError(f"{column}: {fault}; the frame has {', '.join(map(repr, values)) or 'no rows'}")


def _find_measure(measures: list[str], name: str) -> str:
    for measure in measures:
        if measure == name or measure.startswith(f"{name}("):
            return measure
    present = ", ".join(measures)
    raise InputError(f"the frame lacks {name} (it has {present}): draw gg.curve(qrels, runs, 'NumGood nCG')")
