"""What each result without a judgment would add to the value of a measure if it alone had the largest label.

A value that is a sum over documents (`from_labels` of its declaration) is the value as judged plus what each adds; one that
is that of the best document is the largest of them. So bounds of differences follow from these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ir_measures
import polars as pl

from goodgain.counting.ledger import Counts, count
from goodgain.formats import Qrels, Run
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.ranked_values import RankedScores, plan_measures
from goodgain.measures.thresholds import find_thresholds
from goodgain.measures.values import final_values
from goodgain.ranking.ranking_table import RankingTable, number_judgments, tabulate_ranking

__all__ = ["find_contributions"]

_DOCUMENT = ("query_id", "doc_id")


def find_contributions(
    run: Run, qrels: Qrels, measures: Sequence[ir_measures.Measure], *, label: float, order: str
) -> dict[str, pl.DataFrame]:
    """Return what each unjudged result of judged queries would add to each measure.

    Args:
        run: the run.
        qrels: the judgments, without labels by iteration.
        measures: measures that have bounds.
        label: the label that a result would have.
        order: how ranked measures get one ranking.

    Returns:
        Name of a measure -> query_id, doc_id, added.
    """
    good_gain = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
    ranked = [measure for measure in measures if not isinstance(measure, GoodGainMeasure)]
    found: dict[str, pl.DataFrame] = {}
    if good_gain:
        found |= _add_to_iterations(run, qrels, good_gain, label)
    if ranked:
        found |= _add_to_ranking(run, qrels, ranked, label, order)
    return found


def _add_to_iterations(
    run: Run, qrels: Qrels, measures: Sequence[GoodGainMeasure], label: float
) -> dict[str, pl.DataFrame]:
    """Return contributions to measures of the ledger, which are the same for all results that an iteration found first."""
    numbers = run.rows.select("query_id", number="iteration").unique()
    numbers = numbers.with_columns(iteration=pl.col("number").rank("dense").over("query_id").cast(pl.Int64))
    firsts = run.first_iterations.rename({"iteration": "number"})
    judged = qrels.frame.select(*_DOCUMENT)
    unjudged = (
        firsts.join(judged, on="query_id", how="semi")
        .join(judged, on=_DOCUMENT, how="anti")
        .join(numbers, on=["query_id", "number"])
    )
    counts = count(run.frame, qrels.frame, rels=find_thresholds(measures))
    added = _score_each_iteration(counts, measures, unjudged.select("query_id", "iteration").unique(), label)
    joined = unjudged.join(added, on=["query_id", "iteration"])
    return {str(m): joined.select(*_DOCUMENT, added=str(m)) for m in measures}


def _score_each_iteration(
    counts: Mapping[float, Counts], measures: Sequence[GoodGainMeasure], places: pl.DataFrame, label: float
) -> pl.DataFrame:
    """Return query_id, iteration and a column for each measure: what one document that it found first would add.

    Each place becomes a query of its own, with the ledger of its query in which this document alone is good.
    """
    named = places.with_columns(at=pl.format("{} {}", pl.int_range(pl.len()), "query_id"))
    alone: dict[float, Counts] = {}
    nothing: dict[float, Counts] = {}
    for rel, (ledger, pools, numbering) in counts.items():
        rows = named.rename({"iteration": "place"}).join(ledger, on="query_id").sort("at", "iteration")
        is_here = (pl.col("iteration") == pl.col("place")) & pl.lit(label >= rel)
        good = rows.with_columns(GR=is_here.cast(pl.Int64), G=pl.when(is_here).then(label).otherwise(0.0))
        none = rows.with_columns(GR=pl.lit(0, pl.Int64), G=pl.lit(0.0))
        of_places = named.join(pools, on="query_id").sort("at")
        pools_of = of_places.with_columns(query_id="at").select(pools.columns)
        alone[rel], nothing[rel] = (
            Counts(frame.with_columns(query_id="at").select(ledger.columns), pools_of, numbering)
            for frame in (good, none)
        )
    names = [str(measure) for measure in measures]
    values, base = (final_values(measures, form).sort("query_id") for form in (alone, nothing))
    added = values.select("query_id", *(pl.col(name) - base.get_column(name) for name in names))
    return named.join(added, left_on="at", right_on="query_id").drop("at")


def _add_to_ranking(
    run: Run, qrels: Qrels, measures: Sequence[ir_measures.Measure], label: float, order: str
) -> dict[str, pl.DataFrame]:
    """Return contributions to measures over one ranking: each document becomes a query in which it alone has a label."""
    judgments = qrels.judgments
    positions = plan_measures(measures).positions
    table = tabulate_ranking(run.flatten(order), judgments, positions=positions, unjudged=True)
    unjudged = table.rows.filter(pl.col("relevance").is_null())
    number = pl.format("{}", pl.int_range(pl.len(), dtype=pl.Int64)).str.zfill(12)
    named = unjudged.join(table.retrieved, on="query", how="left", maintain_order="left").with_columns(at=number)
    labels = named.select(query_id="at", doc_id="doc_id", relevance=pl.lit(label))
    names = [str(measure) for measure in measures]
    if named.is_empty():
        return {name: pl.DataFrame(schema=_SCHEMA) for name in names}
    query = pl.int_range(pl.len(), dtype=pl.UInt32)
    places = [name for name in ("k", *sorted(positions - {"k"})) if name in named.columns]
    rows = named.select(query.alias("query"), *places, relevance=pl.lit(label))
    retrieved = named.select(query.alias("query"), "NumRet")
    values, base = (_score_table(measures, labels, RankingTable(some, retrieved)) for some in (rows, rows.clear()))
    documents = named.select(judgments.query_ids.gather(named.get_column("query")).alias("query_id"), "doc_id")
    return {name: documents.with_columns(added=values[name] - base[name]) for name in names}


_SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "added": pl.Float64}


def _score_table(measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, table: RankingTable) -> pl.DataFrame:
    scores = RankedScores(measures, number_judgments(labels))
    scores.add(table)
    return scores.finish()
