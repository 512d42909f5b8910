"""Makes ranking tables from rankings and judgments: the position and the label of each ranked document."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from goodgain.ranking.first_occurrences_and_flattening import (
    FirstOccurrences,
    count_in_query,
    find_first_occurrences,
    number_queries,
)

#: Column of positions -> the score that orders documents, and whether ties are ordered by descending doc_ids.
POSITIONS = {
    "k": ("single", True),  # trec_eval: scores as 32-bit floats, doc_id descending
    "k_id": ("score", False),  # msmarco and judged: scores as 64-bit floats, doc_id ascending
    "k_gdeval": ("score", True),  # gdeval: scores as 64-bit floats, doc_id descending
}

#: A hash of query and document.
_KEY = pl.col("doc_id").hash(1) ^ pl.col("query").hash(2)


@dataclass(frozen=True)
class Judgments:
    """The labels of all judged queries. Each query is identified by its index in the sorted query ids."""

    query_ids: pl.Series  # sorted; the number of a query is its position
    labels: pl.DataFrame  # query, doc_id, relevance (Float64): one row per judged document, sorted by query

    def number_queries(self, query_ids: pl.Series) -> pl.Series:
        """Return the index of each query among the judged queries; null for a query without judgments."""
        return _number(query_ids, self.query_ids)

    def look_up(self, firsts: FirstOccurrences) -> pl.Series:
        """Return the label of each first occurrence; null for an unjudged document.

        Joining hashes and then comparing texts takes half the time of a join by text.
        """
        number = self.number_queries(firsts.queries.get_column("query_id"))
        rows = firsts.rows.select(number.gather(firsts.rows.get_column("query")), "doc_id")
        labels = self._select_labels(number.drop_nulls().to_numpy())
        keys = rows.lazy().select(key=_KEY).with_row_index("row")
        label_keys = labels.lazy().select(key=_KEY).with_row_index("label")

        # one row per (row of the run, label) with the same hash
        matches = keys.join(label_keys, on="key").collect()
        matched_rows = rows[matches.get_column("row")]
        matched_labels = labels[matches.get_column("label")]
        same_query = matched_rows.get_column("query") == matched_labels.get_column("query")
        same_document = matched_rows.get_column("doc_id") == matched_labels.get_column("doc_id")
        is_label = (same_query & same_document).fill_null(False)

        relevance = np.full(rows.height, np.nan)
        row_of_label = matches.get_column("row").filter(is_label)
        relevance[row_of_label] = matched_labels.get_column("relevance").filter(is_label)
        return pl.Series("relevance", relevance).fill_nan(None)

    def _select_labels(self, queries: Any) -> pl.DataFrame:
        """Return the labels of the queries with these numbers."""
        starts = self._starts
        begins = starts[queries]
        lengths = starts[queries + 1] - begins
        rows_before = np.cumsum(lengths) - lengths
        places = np.repeat(begins - rows_before, lengths) + np.arange(lengths.sum())
        return self.labels[places]

    @cached_property
    def _starts(self) -> Any:
        """The index of each query's first row in `labels`; the last value is the number of rows."""
        counts = np.bincount(self.labels.get_column("query"), minlength=len(self.query_ids))
        return np.concatenate([[0], np.cumsum(counts)])

    def count_judged(self, rels: Iterable[float]) -> pl.DataFrame:
        """Return the label counts of each query: query, query_id, NumJudged (all labels), and `NumRel(rel=...)` (labels >= rel)."""
        aggregates = {"NumJudged": pl.len().cast(pl.Int64)}
        for rel in sorted(set(rels)):
            aggregates[name_relevant(rel)] = (pl.col("relevance") >= rel).sum().cast(pl.Int64)
        counts = self.labels.group_by("query").agg(**aggregates)
        queries = pl.DataFrame({"query_id": self.query_ids}).with_row_index("query")
        counted = queries.join(counts, on="query", how="left", maintain_order="left")
        return counted.with_columns(pl.col(counts.columns[1:]).fill_null(0))

    def rank_ideally(self, gains: Mapping[float, float] | None = None) -> pl.DataFrame:
        """Return the ideal ranking of each query (query, k, relevance): its labels above 0, largest first.

        If `gains` is given, labels are first replaced by their gains.
        """
        relevance = pl.col("relevance")
        if gains:
            relevance = relevance.replace({float(label): float(gain) for label, gain in gains.items()})
        positive = self.labels.select("query", relevance).filter(pl.col("relevance") > 0)
        # Two sorts by one column take less than half the time of one sort by two.
        ranking = positive.sort("relevance", descending=True).sort("query", maintain_order=True)
        return ranking.insert_column(1, count_in_query(ranking.get_column("query")))


class RankingTable(NamedTuple):
    """The ranked documents of each query, with positions and labels."""

    #: query, k (1..n), relevance (Float64), k_id and k_gdeval if they differ from k, and possibly doc_id. A document without a
    #: label has no row, or null as its relevance.
    rows: pl.DataFrame
    retrieved: pl.DataFrame  # query, NumRet (documents) of each judged query with results


def name_relevant(rel: float) -> str:
    """Return the name of the column with the number of labels >= `rel`."""
    is_short = float(f"{rel:g}") == rel
    return f"NumRel(rel={rel:g})" if is_short else f"NumRel(rel={rel!r})"


def number_judgments(qrels: pl.DataFrame, query_ids: pl.Series | None = None) -> Judgments:
    """Return the `Judgments` of a frame with query_id, doc_id and relevance, one row per judged document.

    `query_ids` are all judged queries, and are needed only if a judged query has no row.
    """
    place, names = number_queries(qrels.get_column("query_id"))
    query_ids = names.sort() if query_ids is None else query_ids.unique().sort()
    number = _number(names, query_ids).gather(place)
    labels = qrels.select(number, "doc_id", pl.col("relevance").cast(pl.Float64))
    if not number.is_sorted():
        labels = labels.sort("query", maintain_order=True)
    return Judgments(query_ids, labels)


def tabulate_ranking(
    ranking: pl.DataFrame, judgments: Judgments, *, positions: Collection[str] = (), unjudged: bool = False
) -> RankingTable:
    """Make the ranking table of a ranking with query_id, doc_id and score. Only judged queries are in the table.

    `positions` are columns of `POSITIONS` that are needed in addition to `k`. With `unjudged` the table also has rows for
    documents without a label, with null as relevance. These rows change no value of a measure.

    >>> ranking = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> qrels = pl.DataFrame({"query_id": "q", "doc_id": ["b", "c"], "relevance": [1.0, 3.0]})
    >>> tabulate_ranking(ranking, number_judgments(qrels), unjudged=True).rows.rows()
    [(0, 'a', 1, None), (0, 'b', 2, 1.0)]
    """
    firsts = find_first_occurrences(ranking.select("query_id", "doc_id", "score", iteration=pl.lit(1)))
    relevance = judgments.look_up(firsts)
    return tabulate_first_occurrences(firsts, judgments, relevance, positions=positions, unjudged=unjudged)


def tabulate_first_occurrences(
    firsts: FirstOccurrences, judgments: Judgments, relevance: pl.Series, *, positions: Collection[str], unjudged: bool
) -> RankingTable:
    """Return the ranking table of first occurrences. `relevance` is the result of `judgments.look_up(firsts)`.

    If a query keeps the scores of the run, its documents are sorted by score here. Any other query has the scores n, n-1, ...,
    1, and its documents are already sorted.
    """
    number = judgments.number_queries(firsts.queries.get_column("query_id"))
    query = firsts.rows.get_column("query")
    columns = _place_first_occurrences(firsts, positions)
    rows = pl.DataFrame([number.gather(query).alias("query"), firsts.rows.get_column("doc_id"), *columns, relevance])
    needed_column = "query" if unjudged else "relevance"
    rows = rows.filter(pl.col(needed_column).is_not_null())

    retrieved = pl.DataFrame({"query": number, "NumRet": firsts.documents}, schema_overrides={"NumRet": pl.Int64})
    retrieved = retrieved.filter(pl.col("query").is_not_null() & (pl.col("NumRet") > 0))
    return RankingTable(rows, retrieved)


def _place_first_occurrences(firsts: FirstOccurrences, positions: Collection[str]) -> list[pl.Series]:
    """Return the columns of positions, `k` first."""
    query = firsts.rows.get_column("query")
    k = count_in_query(query)
    keeps_scores = pl.Series(firsts.keep_scores).gather(query)
    if not keeps_scores.any():
        return [k]

    places = keeps_scores.arg_true()
    scored = firsts.rows if keeps_scores.all() else firsts.rows[places]
    scores = scored.select("query", pl.col("score").cast(pl.Float64))
    placed = place_documents(scores, scored.get_column("doc_id").gather, positions=positions)
    if keeps_scores.all():
        return placed.get_columns()
    return [_write_over(k, places, column).alias(column.name) for column in placed.get_columns()]


def _write_over(column: pl.Series, rows: pl.Series, values: pl.Series) -> pl.Series:
    written = np.array(column)
    written[rows.to_numpy()] = values.to_numpy()
    return pl.Series(column.name, written)


def place_documents(
    ranking: pl.DataFrame, doc_ids: Callable[[pl.Series], pl.Series], *, positions: Collection[str]
) -> pl.DataFrame:
    """Return the position of each document within its query, from 1.

    Queries with descending scores need no sorting. Only the doc_ids of tied documents are compared, by UTF-8 bytes, as
    Python orders strings.

    `ranking` has query (a number; the rows of a query are adjacent) and score (Float64, never NaN). `doc_ids` is a function
    from row numbers to doc_ids. Return Int64 columns in the order of the rows: `k`, and each of `positions` that differs from `k`.

    Source: trec_eval's form_res_rels.c; the providers msmarco and judged of ir_measures; gdeval.pl.

    >>> tied = pl.DataFrame({"query": 0, "score": [1.0, 1.0, 2.0]})
    >>> doc_ids = pl.Series(["a", "b", "c"])
    >>> place_documents(tied, doc_ids.gather, positions=["k_id"]).to_dict(as_series=False)
    {'k': [3, 2, 1], 'k_id': [2, 3, 1]}
    """
    score = pl.col("score") + 0.0  # -0.0 becomes 0.0
    rows = ranking.select("query", score, single=score.cast(pl.Float32))
    k = count_in_query(rows.get_column("query"))
    is_out_of_order = _same_as_before("query") & (pl.col("single") >= pl.col("single").shift(1))
    queries = rows.get_column("query").filter(rows.select(is_out_of_order).to_series()).unique()
    if queries.is_empty():
        return pl.DataFrame({"k": k})

    unsettled = rows.with_row_index("row").filter(pl.col("query").is_in(queries.implode()))
    by_score = unsettled.sort("query", "single", descending=[False, True])
    by_score = by_score.with_columns(k=count_in_query(by_score.get_column("query")))
    k = _write_over(k, by_score.get_column("row"), by_score.get_column("k"))

    equals_row_before = _same_as_before("query") & _same_as_before("single")
    tied = by_score.filter(equals_row_before | equals_row_before.shift(-1, fill_value=False))
    columns = {"k": k}
    if not tied.is_empty():
        tied = tied.with_columns(doc_ids(tied.get_column("row")).alias("doc_id"))
        for name in ("k", *sorted({*positions} - {"k"})):
            score_column, id_descends = POSITIONS[name]
            in_order = tied.sort("query", score_column, "doc_id", descending=[False, True, id_descends])
            position = _write_over(k, in_order.get_column("row"), tied.get_column("k"))
            if name == "k" or not position.equals(columns["k"]):
                columns[name] = position
    return pl.DataFrame(columns)


def _same_as_before(column: str) -> pl.Expr:
    return (pl.col(column) == pl.col(column).shift(1)).fill_null(False)


def _number(queries: pl.Series, query_ids: pl.Series) -> pl.Series:
    """Return the position of each query in the sorted `query_ids`; null for an absent query."""
    if query_ids.is_empty():
        return pl.Series("query", [None] * len(queries), dtype=pl.UInt32)
    place = query_ids.search_sorted(queries).clip(upper_bound=len(query_ids) - 1)
    numbers = pl.DataFrame({"query": place, "is_there": query_ids.gather(place) == queries})
    return numbers.select(pl.when("is_there").then(pl.col("query").cast(pl.UInt32))).to_series()
