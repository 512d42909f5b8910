"""Moves rows to engines (Polars, pandas, DuckDB, Spark ...), and ranks a run on its engine.

The rules of the ranking are those of `first_occurrences_and_flattening`. One group-by first reduces the run to first
occurrences. Most window functions are applied later, because they sort their rows and are slow.
"""

import math
import uuid
from collections.abc import Collection, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import Frame
from goodgain.options import ORDER, check_choice
from goodgain.ranking.first_occurrences_and_flattening import (
    PLACED_BY,
    Orders,
    find_first_rows,
    flatten_columns,
    keeps_scores,
    warn_of_orders,
)
from goodgain.ranking.ranking_table import POSITIONS, Judgments, RankingTable
from goodgain.schema import EMPTY_DOC, RUN

_IN_ITERATION = ("query_id", "iteration")
#: These engines keep no order of rows. So doc_ids break ties of rank, and scores order the rows of one document.
_BY_RANK = ["rank", "doc_id", "minus_score"]
#: An expression over the columns of `_span_iterations`.
_HAS_ONE_ITERATION = nw.col("lowest") == nw.col("highest")
#: The largest number of 32 bits.
_LARGEST_SINGLE = 3.4028234663852886e38

Lazy = nw.LazyFrame[Any]


def to_lazy(frame: Frame) -> nw.LazyFrame[Any]:
    """Make a Polars frame lazy, because `collect` streams lazy frames. Return any other frame unchanged."""
    if isinstance(frame, nw.DataFrame) and frame.implementation.is_polars():
        return frame.lazy()
    return frame  # type: ignore[return-value]  # a frame in memory has the needed methods


def collect(frame: Frame) -> pl.DataFrame:
    """Collect a frame as a Polars frame in memory.

    On 6.5 million rows, Polars' streaming engine took 0.6 of the time and half the memory of its in-memory engine.
    """
    if isinstance(frame, nw.DataFrame):
        return frame.to_polars()
    if frame.implementation.is_polars():
        return frame.to_native().collect(engine="streaming")  # type: ignore[no-any-return]  # a Polars frame, by the test
    return frame.collect("polars").to_native()  # type: ignore[no-any-return]  # a Polars frame


def move_to_engine(run: nw.LazyFrame[Any], rows: Frame) -> nw.LazyFrame[Any]:
    """Move judgments, or another small table, to the engine of the run for a join."""
    small: Any = collect(rows)
    if run.implementation.is_polars():
        small = small.lazy()
    elif run.implementation.is_pandas():
        small = small.to_pandas()
    elif run.implementation.is_pyarrow():
        small = small.to_arrow()
    elif run.implementation.is_duckdb():
        small = _move_to_duckdb(run.to_native(), small)
    elif _is_spark(run):
        small = run.to_native().sparkSession.createDataFrame(small.to_arrow())
    else:
        raise InputError(f"rows cannot be moved to {run.implementation}; collect the run as a Polars frame")
    return to_lazy(nw.from_native(small))


def _is_spark(frame: Frame) -> bool:
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def _move_to_duckdb(relation: Any, small: pl.DataFrame) -> Any:
    """Move a small frame to the DuckDB connection of `relation`. This connection can be used only through `relation.query`.

    DuckDB looks for a table in the user's catalogue first, and then among Python's variables. Unique names make sure that no
    table of the user is read instead of the frame.
    """
    name = f"goodgain_{uuid.uuid4().hex}"
    globals()[name] = small.to_arrow()
    try:
        return relation.query(f"{name}_run", f"SELECT * FROM {name}")
    finally:
        del globals()[name]  # DuckDB has its own reference


def rank_on_engine(run: Lazy, *, order: str) -> Lazy:
    """Return the ranking of a run as a lazy frame of the same engine, with rank, score and the columns of the run."""
    check_choice("order", order)
    firsts = _find_firsts(run, order).join(_span_iterations(run), on="query_id", how="left")
    placed = _add_keeps(firsts, _HAS_ONE_ITERATION).with_columns(place=_place(order))
    whole = _has_whole_ranks(run)
    ranking = placed.with_columns(rank=nw.col("rank").cast(nw.Int64 if whole else nw.Float64))
    columns = {*run.collect_schema().names(), "rank", "score"}
    return ranking.with_columns(**flatten_columns()).select(name for name in RUN.columns if name in columns)


def tabulate_on_engine(
    run: Lazy, judgments: Judgments, *, order: str = ORDER, positions: Collection[str] = ()
) -> RankingTable:
    """Return the ranking table of a run. The rows are a lazy frame on the engine of the run: nothing is collected.

    The judgments are moved to the engine. `positions` are as in `tabulate_ranking`.
    """
    queries = pl.DataFrame({"query_id": judgments.query_ids}).with_row_index("query").cast({"query": pl.Int64})
    spans = _span_iterations(run).join(move_to_engine(run, nw.from_native(queries)), on="query_id", how="inner")
    columns = [name for name in ("iteration", "doc_id", "rank", "score") if name in run.collect_schema()]
    numbered = run.join(spans, on="query_id", how="inner").select(
        nw.col("query").alias("query_id"), *columns, "lowest", "highest"
    )
    names = [*dict.fromkeys(("k", *positions))]
    # Only queries with one iteration can keep their scores; in all others the place is the position.
    several = _find_firsts(numbered.filter(~_HAS_ONE_ITERATION), order)
    placed = several.with_columns(k=_place(order)).with_columns(nw.col("k").alias(name) for name in names)
    alone = _add_positions(_find_firsts(numbered.filter(_HAS_ONE_ITERATION), order), order, names)
    firsts = nw.concat([some.select("query_id", "doc_id", *names) for some in (placed, alone)])
    labels = judgments.labels.select(pl.col("query").cast(pl.Int64).alias("query_id"), "doc_id", "relevance")
    rows = firsts.join(move_to_engine(run, nw.from_native(labels)), on=["query_id", "doc_id"], how="left")
    return RankingTable(rows.select(nw.col("query_id").alias("query"), *names, "relevance").to_native(), None)


def _add_positions(firsts: Lazy, order: str, names: Sequence[str]) -> Lazy:
    """Add the columns `names` (keys of `POSITIONS`) to `firsts`. All queries of `firsts` have one iteration.

    If a query keeps its scores, the documents are sorted by score, else by the columns of `PLACED_BY`. Columns that are not
    used for a query are set to null, so one window function sorts all queries.
    """
    keeps = nw.col("keeps")
    score = nw.col("score").cast(nw.Float64) + 0.0  # -0.0 becomes 0.0
    # Scores as 32-bit floats: too large ones become infinite, as in trec_eval. Some engines refuse to cast these.
    high = nw.when(score > _LARGEST_SINGLE).then(nw.lit(math.inf))
    single = high.when(score < -_LARGEST_SINGLE).then(nw.lit(-math.inf)).otherwise(score).cast(nw.Float32)
    found = _add_keeps(firsts, nw.lit(True)).with_columns(score=score, single=single)
    for name in PLACED_BY[order]:
        found = found.with_columns(nw.when(~keeps).then(nw.col(name)).alias(name))
    for name in names:
        column, id_descends = POSITIONS[name]
        by_score, position = -nw.col(column), nw.col("place")
        if id_descends:  # descending by both: count from the end
            by_score, position = nw.col(column), nw.col("kept") + 1 - nw.col("place")
        found = found.with_columns(by_score=nw.when(keeps).then(by_score)).with_columns(place=_place(order, "by_score"))
        found = found.with_columns(nw.when(keeps).then(position).otherwise(nw.col("place")).alias(name))
    return found


def warn_of_order(run: Lazy, *, order: str) -> None:
    orders, tied = _count_facts(run, order)
    warn_of_orders(orders)
    _warn_if_tied(tied, run.collect_schema().names())


def sort_unordered(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by query, iteration, rank and doc_id, because their engine keeps no order. Give a notice on ties in rank."""
    key = ["query_id", "iteration", *(["rank"] if "rank" in rows.columns else [])]
    tied = rows.filter(pl.col("doc_id") != EMPTY_DOC).select(pl.struct(key).is_duplicated().sum()).item()
    if "rank" in rows.columns or "score" not in rows.columns:
        _warn_if_tied(tied, rows.columns)
    return rows.sort(*key, "doc_id")


def _warn_if_tied(results: int, columns: Sequence[str]) -> None:
    if results:
        reason = "ties in rank" if "rank" in columns else "neither rank nor score"
        number = count_of(results, "result has", "results have")
        notice(
            "order_by_doc_id",
            f"{number} {reason}: they are ordered by doc_id, because the frame does not keep the order of rows",
            minor=True,
        )


def _find_firsts(run: Lazy, order: str) -> Lazy:
    """Return the first occurrence of each document in the results of each query.

    Columns: query_id, doc_id, `times` (how often the document occurs), score, iteration, rank, tag, and `PLACED_BY[order]`.
    """
    results = _take_results(run, order)
    if order == "interleaved":
        results = results.with_columns(position=_number_rows(*_IN_ITERATION, by=_BY_RANK))
    tag = ["tag"] if "tag" in run.collect_schema() else []
    carried = [*dict.fromkeys((*PLACED_BY[order], "iteration", "rank", *tag))]
    # A document that occurs once keeps its only score. A query with repeats does not keep its scores.
    results = results.with_columns(at=nw.struct(*carried))
    grouped = find_first_rows(results, nw.col("at", "score").min(), nw.len().alias("times"))
    return grouped.with_columns(*(nw.col("at").struct.field(name) for name in carried)).drop("at")


def _add_keeps(firsts: Lazy, one_iteration: nw.Expr) -> Lazy:
    """Add a query's number of `results`, its number of different documents (`kept`), and whether it keeps its scores (`keeps`)."""
    counted = firsts.with_columns(
        results=nw.col("times").sum().over("query_id"),
        kept=nw.col("doc_id").count().over("query_id").cast(nw.Int64),
    )
    return counted.with_columns(keeps=keeps_scores(one_iteration, nw.col("results"), nw.col("kept")))


def _place(order: str, *by: str) -> nw.Expr:
    return _number_rows("query_id", by=[*PLACED_BY[order], *by, "doc_id"])


def _span_iterations(run: Lazy) -> Lazy:
    iteration = nw.col("iteration")
    return run.group_by("query_id").agg(iteration.min().alias("lowest"), iteration.max().alias("highest"))


def _take_results(run: Lazy, order: str) -> Lazy:
    """Select the results to rank. Add ranks and scores as `add_ranks` does; a run with neither is ranked by doc_id."""
    results = run.filter(nw.col("doc_id") != EMPTY_DOC)
    if order == "last":
        last = _span_iterations(run).select("query_id", iteration="highest")
        results = results.join(last, on=["query_id", "iteration"], how="semi")
    columns = run.collect_schema().names()
    if "rank" not in columns and "score" in columns:  # count from the end: both descend
        count = nw.col("doc_id").count().over(*_IN_ITERATION).cast(nw.Int64)
        results = results.with_columns(rank=count + 1 - _number_rows(*_IN_ITERATION, by=["score", "doc_id"]))
    elif "rank" not in columns:
        results = results.with_columns(rank=_number_rows(*_IN_ITERATION, by=["doc_id"]))
    if "score" not in columns:
        results = results.with_columns(score=-nw.col("rank").cast(nw.Float64))
    return results.with_columns(minus_score=-nw.col("score"))


def _has_whole_ranks(run: Lazy) -> bool:
    """Return whether ranks are whole numbers. The engine is queried only if ranks are floats."""
    kind, rank = run.collect_schema().get("rank"), nw.col("rank")
    if kind is None or kind.is_integer():
        return True
    if not kind.is_float():
        return False
    return not len(collect(run.filter((rank != rank.round()) | (rank.abs() >= 2.0**53)).select("rank").head(1)))


def _count_facts(run: Lazy, order: str) -> tuple[Orders, int]:
    columns, results = run.collect_schema().names(), _take_results(run, order)
    if "rank" not in columns and "score" in columns:
        return Orders(), 0  # ranks follow the scores
    if "rank" not in columns:
        unordered = results.group_by(*_IN_ITERATION).agg(nw.len().alias("results")).filter(nw.col("results") > 1)
        ties = collect(unordered.select(nw.col("results").sum())).item()
        return Orders(), int(ties or 0)  # the sum of no rows is null
    odd = _find_odd_queries(results)
    found, several = collect(odd), 0
    if found.get_column("by_score").sum():
        several = len(collect(_span_iterations(run).filter(~_HAS_ONE_ITERATION).select("query_id")))
    if not several:
        found = found.filter((pl.col("rising") > 0) | (pl.col("tied") > 0) | pl.col("level"))
    if found.is_empty():
        return Orders(), 0
    run_of_odd = run.join(odd.select("query_id"), on="query_id", how="semi")
    firsts = _find_firsts(run_of_odd, order).join(_span_iterations(run_of_odd), on="query_id", how="left")
    keeping = collect(_add_keeps(firsts, _HAS_ONE_ITERATION).filter(nw.col("keeps")).select("query_id").unique())
    kept, rescored = (found.join(keeping, on="query_id", how=how) for how in ("semi", "anti"))
    orders = Orders(
        contradicting=int(rescored.get_column("rising").sum()),
        by_score=int(kept.get_column("by_score").sum()),
        several=several,
        against_ranks=kept.filter((pl.col("rising") > 0) | (pl.col("by_score") > 0) & pl.col("level")).height,
    )
    return orders, int(rescored.get_column("tied").sum())


def _find_odd_queries(results: Lazy) -> Lazy:
    """Return the queries with ties in rank, or with scores that contradict ranks.

    The columns are query_id, `rising` and `by_score` (1 or 0, defined as in `FirstOccurrences`), `tied` (the number of
    results that share a rank within an iteration), and `level` (whether all results have the same score, and
    different ranks).
    """
    before = {
        f"{x}_before": nw.col(x).shift(1).over(*_IN_ITERATION, order_by=_BY_RANK) for x in ("score", "rank", "doc_id")
    }
    rank_after = nw.col("rank").shift(-1).over(*_IN_ITERATION, order_by=_BY_RANK)
    neighbours = results.with_columns(**before, rank_after=rank_after)
    rank, score, score_before = nw.col("rank"), nw.col("score"), nw.col("score_before")
    falls = (score == score_before) & (nw.col("doc_id") > nw.col("doc_id_before"))
    flagged = neighbours.with_columns(
        rising=_one_if(score > score_before),
        by_score=_one_if((score > score_before) | falls),
        tied=_one_if((rank == nw.col("rank_before")) | (rank == nw.col("rank_after"))),
    )
    ends = (nw.col("score").min().alias("least"), nw.col("score").max().alias("most"))
    queries = flagged.group_by("query_id").agg(nw.col("rising", "by_score").max(), nw.col("tied").sum(), *ends)
    is_level = (nw.col("least") == nw.col("most")) & (nw.col("tied") == 0)
    queries = queries.with_columns(level=is_level).drop("least", "most")
    return queries.filter((nw.col("by_score") > 0) | (nw.col("tied") > 0))


def _number_rows(*partition: str, by: Sequence[str]) -> nw.Expr:
    return nw.col("doc_id").cum_count().over(*partition, order_by=by).cast(nw.Int64)


def _one_if(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))
