"""Computes bounds of values: how far a value could rise if the unjudged results had labels.

A measure has bounds if an unjudged result counts like the label 0, and the value never falls when a label rises. The value
itself is then the lower bound. The upper bound is the value if every unjudged result had the largest label of the qrels.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import ir_measures
import polars as pl

from goodgain.counting.ledger import Counts, count
from goodgain.formats import Qrels, Run
from goodgain.measures.declaration import Declaration, DeclaredMeasure, GoodGainMeasure, find_declaration
from goodgain.measures.ledger_values import BatchScores, final_values
from goodgain.measures.ranking_values import RankedScores, find_positions
from goodgain.measures.thresholds import find_thresholds
from goodgain.ranking.ranking_table import RankingTable, number_judgments, tabulate_ranking


def find_rule(measure: ir_measures.Measure) -> Literal["sum", "highest"] | None:
    """Return `sum` if the value is a sum over documents, `highest` if the best document determines the value, else None.

    >>> find_rule(ir_measures.P @ 10), find_rule(ir_measures.RR), find_rule(ir_measures.nDCG @ 10)
    ('sum', 'highest', None)
    """
    declared = _find_declaration(measure)
    is_moved = measure.params.get("judged_only")  # a judgment would change the ranks of later documents
    if declared is None or is_moved:
        return None
    return declared.from_labels


def _find_declaration(measure: ir_measures.Measure) -> Declaration | None:
    return measure.declaration if isinstance(measure, DeclaredMeasure) else find_declaration(measure)


def find_largest_label(qrels: pl.DataFrame) -> float:
    """Return the label of unjudged results in an upper bound: the largest of the qrels, or 0 if no label is above 0."""
    largest: Any = qrels.get_column("relevance").max()
    return max(float(largest or 0), 0.0)


class Range(NamedTuple):
    """The values that a measure allows."""

    least: float = -math.inf
    most: float = math.inf
    is_0_or_1: bool = False  # no values between the two

    @property
    def is_share(self) -> bool:
        """Whether the values go from 0 to 1."""
        return self.is_0_or_1 or (self.least, self.most) == (0, 1)


def find_range(measure: ir_measures.Measure, label: float) -> Range:
    """Return the values that a measure allows. `label` is the largest label of the qrels.

    >>> find_range(ir_measures.nDCG @ 10, 3.0)
    Range(least=0.0, most=1.0, is_0_or_1=False)
    """
    declared = _find_declaration(measure)
    if declared is None:
        return Range()
    ends = {"max gain": label, "": math.inf}
    least, most = (ends[end] if end in ends else float(end) for end in declared.bounds)
    return Range(least, most, declared.is_0_or_1)


def _split(measures: Sequence[ir_measures.Measure]) -> tuple[list[GoodGainMeasure], list[ir_measures.Measure]]:
    good_gain = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
    return good_gain, [measure for measure in measures if not isinstance(measure, GoodGainMeasure)]


class RaisedScores:
    """Computes the upper bounds of measures, one batch of queries at a time.

    The qrels must have one label per document. A tally has counts per query and iteration. Column `GR0` counts the good
    documents for the threshold `rels[0]`, column `GR1` for `rels[1]`, and so on.
    """

    def __init__(self, measures: Sequence[ir_measures.Measure], qrels: Qrels, rels: Sequence[float]) -> None:
        self._label = find_largest_label(qrels.frame)
        self._rels = rels
        good_gain, ranked = _split(measures)
        self._good_gain = BatchScores(good_gain, qrels, rels)
        self._ranked = RankedScores(ranked, qrels.judgments) if ranked else None

    def add(self, tallied: pl.DataFrame, table: RankingTable | None) -> None:
        """Add the tally and ranking table (with all unjudged documents) of a batch of queries. Each query is in only one batch."""
        raised = {}
        for k, rel in enumerate(self._rels):
            if self._label >= rel:
                raised[f"GR{k}"] = pl.col(f"GR{k}") + pl.col("Unjudged")
                raised[f"G{k}"] = pl.col(f"G{k}") + pl.col("Unjudged") * self._label
        self._good_gain.add(tallied.with_columns(**raised))
        if self._ranked is not None and table is not None:
            rows = table.rows.drop("doc_id", strict=False)
            labelled = rows.with_columns(pl.col("relevance").fill_null(self._label))
            self._ranked.add(RankingTable(labelled, table.retrieved))

    def finish(self) -> pl.DataFrame:
        values, _ = self._good_gain.finish()
        if self._ranked is None:
            return values
        return values.join(self._ranked.finish(), on="query_id", how="left", maintain_order="left")


_DOCUMENT = ("query_id", "doc_id")


def find_contributions(
    qrels: Qrels, run: Run, measures: Sequence[ir_measures.Measure], *, label: float, order: str
) -> dict[str, pl.DataFrame]:
    """Return what each unjudged result would add to each measure if its label were `label`, and all other labels were 0.

    The dict maps the name of a measure to a frame with the columns `query_id`, `doc_id` and `added` (how much the value rises).
    """
    good_gain, ranked = _split(measures)
    contributions: dict[str, pl.DataFrame] = {}
    if good_gain:
        contributions |= _add_to_iterations(qrels, run, good_gain, label)
    if ranked:
        contributions |= _add_to_ranking(qrels, run, ranked, label, order)
    return contributions


def _add_to_iterations(
    qrels: Qrels, run: Run, measures: Sequence[GoodGainMeasure], label: float
) -> dict[str, pl.DataFrame]:
    """Return the contributions to good-gain measures. Results first found in the same iteration add the same amount."""
    unjudged = _find_unjudged(qrels, run)
    counts = count(qrels.frame, run.rows, rels=find_thresholds(measures))
    places = unjudged.select("query_id", "iteration").unique()
    added = _score_each_iteration(counts, measures, places, label)

    joined = unjudged.join(added, on=["query_id", "iteration"])
    names = [str(measure) for measure in measures]
    return {name: joined.select(*_DOCUMENT, added=name) for name in names}


def _find_unjudged(qrels: Qrels, run: Run) -> pl.DataFrame:
    """Return the unjudged results of judged queries, with the iteration, counted from 1, that found them first."""
    numbers = run.rows.select("query_id", number="iteration").unique()
    iteration = pl.col("number").rank("dense").over("query_id")
    numbers = numbers.with_columns(iteration=iteration.cast(pl.Int64))

    firsts = run.first_iterations.rename({"iteration": "number"})
    judged = qrels.frame.select(*_DOCUMENT)
    of_judged_queries = firsts.join(judged, on="query_id", how="semi")
    unjudged = of_judged_queries.join(judged, on=_DOCUMENT, how="anti")
    return unjudged.join(numbers, on=["query_id", "number"])


def _score_each_iteration(
    counts: Mapping[float, Counts], measures: Sequence[GoodGainMeasure], places: pl.DataFrame, label: float
) -> pl.DataFrame:
    """Return how much a document with the label `label` adds to each measure if first found in an iteration of `places`.

    `places` has the columns `query_id` and `iteration`. Each row of `places` is scored alone. No other document counts as good.
    """
    # one query for each place, called `at`, with all iterations of the real query
    numbered = places.with_columns(at=pl.format("{} {}", pl.int_range(pl.len()), "query_id"))
    with_document: dict[float, Counts] = {}
    without_document: dict[float, Counts] = {}
    for rel, of_rel in counts.items():
        ledger = numbered.rename({"iteration": "place"}).join(of_rel.ledger, on="query_id").sort("at", "iteration")
        pools = numbered.join(of_rel.pools, on="query_id").sort("at").with_columns(query_id="at")
        of_places = of_rel._replace(pools=pools.select(of_rel.pools.columns))

        is_good = (pl.col("iteration") == pl.col("place")) & pl.lit(label >= rel)
        gain = pl.when(is_good).then(label).otherwise(0.0)
        for form, num_good, good_gain in (
            (with_document, is_good.cast(pl.Int64), gain),
            (without_document, pl.lit(0, pl.Int64), pl.lit(0.0)),
        ):
            rows = ledger.with_columns(query_id="at", GR=num_good, G=good_gain)
            form[rel] = of_places._replace(ledger=rows.select(of_rel.ledger.columns))

    values = final_values(measures, with_document).sort("query_id")
    base = final_values(measures, without_document).sort("query_id")
    added = [pl.col(str(measure)) - base.get_column(str(measure)) for measure in measures]
    rises = values.select("query_id", *added)
    return numbered.join(rises, left_on="at", right_on="query_id").drop("at")


def _add_to_ranking(
    qrels: Qrels, run: Run, measures: Sequence[ir_measures.Measure], label: float, order: str
) -> dict[str, pl.DataFrame]:
    """Return the contributions to measures over the ranking: the value with the label, minus the value without any label."""
    judgments = qrels.judgments
    positions = find_positions(measures)
    table = tabulate_ranking(run.flatten(order), judgments, positions=positions, unjudged=True)

    unjudged = table.rows.filter(pl.col("relevance").is_null())
    number = pl.format("{}", pl.int_range(pl.len(), dtype=pl.Int64)).str.zfill(12)
    documents = unjudged.join(table.retrieved, on="query", how="left", maintain_order="left").with_columns(at=number)

    # each document is scored alone, as the only judged document of a query called `at`
    labels = documents.select(query_id="at", doc_id="doc_id", relevance=pl.lit(label))
    query = pl.int_range(pl.len(), dtype=pl.UInt32).alias("query")
    places = [name for name in ("k", *sorted(positions - {"k"})) if name in documents.columns]
    rows = documents.select(query, *places, relevance=pl.lit(label))
    retrieved = documents.select(query, "NumRet")

    values = _score_rows(measures, labels, rows, retrieved)
    base = _score_rows(measures, labels, rows.clear(), retrieved)
    query_ids = judgments.query_ids.gather(documents.get_column("query"))
    results = documents.select(query_ids.alias("query_id"), "doc_id")
    names = [str(measure) for measure in measures]
    return {name: results.with_columns(added=values[name] - base[name]) for name in names}


def _score_rows(
    measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, rows: pl.DataFrame, retrieved: pl.DataFrame
) -> pl.DataFrame:
    scores = RankedScores(measures, number_judgments(labels))
    scores.add(RankingTable(rows, retrieved))
    return scores.finish()
