"""Makes ranking tables from rankings and judgments: the position and the label of each ranked document."""

import math
from collections.abc import Callable, Collection
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

#: Pairs of a label and the gain that replaces it, sorted.
Gains = tuple[tuple[float, float], ...]

#: The smallest exponent of a unit (`find_unit`). Much smaller units would underflow to 0.
_LEAST_EXPONENT = -1000

#: An odd number of 64 bits: its products with the numbers of queries differ in all bits.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Judgments:
    """The labels of all judged queries. Each query is identified by its index in the sorted query ids."""

    query_ids: pl.Series  # sorted; the number of a query is its position
    labels: pl.DataFrame  # query, doc_id, relevance (Float64): one row per judged document, sorted by query

    def number_queries(self, firsts: FirstOccurrences) -> Any:
        """Return the number of each query of `firsts` among the judged queries; -1 for a query without judgments."""
        return find_places(firsts.queries.get_column("query_id"), self.query_ids)

    def look_up(self, firsts: FirstOccurrences, number: Any) -> pl.Series:
        """Return the label of each first occurrence; null for an unjudged document. `number` is from `number_queries`.

        Joining hashes and then comparing texts takes half the time of a join by text.
        """
        query = firsts.rows.get_column("query").to_numpy()
        doc_id = firsts.rows.get_column("doc_id")
        keys = pl.DataFrame({"key": _hash_pairs(number, query, doc_id)}).with_row_index("row")
        label_keys = self._select_keys(np.unique(number[number >= 0]))

        # one row per (row of the run, label) with the same hash
        matches = keys.join(label_keys, on="key")
        row = matches.get_column("row").to_numpy()
        label = matches.get_column("label").to_numpy()
        same_query = number[query[row]] == self.columns[0][label]
        same_document = doc_id[row] == self.labels.get_column("doc_id")[label]
        is_label = same_query & same_document.to_numpy()

        relevance = np.full(len(doc_id), np.nan)
        relevance[row[is_label]] = self.columns[1][label[is_label]]
        return pl.Series("relevance", relevance, nan_to_null=True)

    def _select_keys(self, queries: Any) -> pl.DataFrame:
        """Return the keys of the labels of the queries with these numbers, which are sorted."""
        if len(queries) == len(self.query_ids):
            return self._keys
        begins = self.starts[queries]
        lengths = self.starts[queries + 1] - begins
        rows_before = np.cumsum(lengths) - lengths
        return self._keys[np.repeat(begins - rows_before, lengths) + np.arange(lengths.sum())]

    @cached_property
    def _keys(self) -> pl.DataFrame:
        """The hash of each label's query and document (`key`), and the row of the label."""
        numbers = np.arange(len(self.query_ids))
        keys = pl.DataFrame({"key": _hash_pairs(numbers, self.columns[0], self.labels.get_column("doc_id"))})
        return keys.with_row_index("label")

    @cached_property
    def starts(self) -> Any:
        """The index of each query's first row in `labels`; the last value is the number of rows."""
        counts = np.bincount(self.labels.get_column("query"), minlength=len(self.query_ids))
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def num_judged(self) -> Any:
        """For each query, the number of its labels."""
        return np.diff(self.starts).astype(np.float64)

    def count_relevant(self, rel: float) -> Any:
        """Return the number of labels >= `rel` of each query."""
        if rel not in self._counts:
            query, label = self.columns
            self._counts[rel] = np.bincount(query[label >= rel], minlength=len(self.query_ids)).astype(np.float64)
        return self._counts[rel]

    def rank_ideally(self, gains: Gains = ()) -> tuple[Any, Any]:
        """Return the labels above 0 of each query, largest first, and the number of these labels of each query.

        If `gains` is given, labels are first replaced by their gains.
        """
        if gains not in self._ideals:
            query, label = self.columns
            gained = label.copy() if gains else label
            for given, gain in gains:
                gained[label == float(given)] = float(gain)
            lengths = np.bincount(query[gained > 0], minlength=len(self.query_ids))
            # Two sorts by one column take less than half the time of one sort by two.
            positive = pl.DataFrame({"query": query, "gain": gained}).filter(pl.col("gain") > 0)
            ranking = positive.sort("gain", descending=True).sort("query", maintain_order=True)
            self._ideals[gains] = ranking.get_column("gain").to_numpy(), lengths
        return self._ideals[gains]

    @cached_property
    def columns(self) -> tuple[Any, Any]:
        """The query and the label of each judged document, as arrays."""
        return self.labels.get_column("query").to_numpy(), self.labels.get_column("relevance").to_numpy()

    @cached_property
    def unit(self) -> float:
        """The unit of `find_unit` for all labels."""
        return find_unit(self.columns[1])

    @cached_property
    def _counts(self) -> dict[float, Any]:
        return {}

    @cached_property
    def _ideals(self) -> dict[Gains, tuple[Any, Any]]:
        return {}


class RankingTable(NamedTuple):
    """The ranked documents of each query, with positions and labels."""

    #: query, k (1..n), relevance (Float64), k_id and k_gdeval if they differ from k, and possibly doc_id. A document without a
    #: label has no row, or null as its relevance.
    rows: pl.DataFrame
    retrieved: pl.DataFrame  # query, NumRet (documents) of each judged query with results


def number_judgments(qrels: pl.DataFrame, query_ids: pl.Series | None = None) -> Judgments:
    """Return the `Judgments` of a frame with query_id, doc_id and relevance, one row per judged document.

    `query_ids` are all judged queries, and are needed only if a judged query has no row.
    """
    place, names = number_queries(qrels.get_column("query_id"))
    query_ids = names.sort() if query_ids is None else query_ids.unique().sort()
    number = pl.Series("query", find_places(names, query_ids)[place.to_numpy()])
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
    number = judgments.number_queries(firsts)
    relevance = judgments.look_up(firsts, number)
    return tabulate_first_occurrences(firsts, number, relevance, positions=positions, unjudged=unjudged)


def tabulate_first_occurrences(
    firsts: FirstOccurrences, number: Any, relevance: pl.Series, *, positions: Collection[str], unjudged: bool
) -> RankingTable:
    """Return the ranking table of first occurrences. `number` and `relevance` are from `number_queries` and `look_up`.

    If a query keeps the scores of the run, its documents are sorted by score here. Any other query has the scores n, n-1, ...,
    1, and its documents are already sorted.
    """
    query = firsts.rows.get_column("query")
    number_of_row = number[query.to_numpy()]
    positions_of_row = _place_first_occurrences(firsts, positions)
    documents = firsts.rows.get_column("doc_id")
    rows = pl.DataFrame([pl.Series("query", number_of_row), documents, *positions_of_row, relevance])
    is_needed = number_of_row >= 0
    if not unjudged:
        is_needed &= ~np.isnan(relevance.to_numpy())
    if not is_needed.all():
        rows = rows[np.flatnonzero(is_needed)]

    is_retrieved = (number >= 0) & (firsts.documents > 0)
    retrieved = pl.DataFrame({"query": number[is_retrieved], "NumRet": firsts.documents[is_retrieved]})
    return RankingTable(rows, retrieved)


def _place_first_occurrences(firsts: FirstOccurrences, positions: Collection[str]) -> list[pl.Series]:
    """Return the columns of positions, `k` first."""
    query = firsts.rows.get_column("query")
    k = count_in_query(query)
    keeps_scores = firsts.keep_scores[query.to_numpy()]
    if not keeps_scores.any():
        return [k]

    places = pl.Series(np.flatnonzero(keeps_scores))
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


def find_unit(labels: Any) -> float:
    """Return a power of two, or 0 if all labels are whole. Labels are split into a multiple of this unit and a remainder.

    Without the split, the last digit of a sum of labels would depend on the order of rows. The sum of the multiples is exact
    for millions of labels, because each multiple has at most 26 bits. The sum of the remainders is exact too, unless there are
    very many labels, or both very large and very small labels. If both sums are exact, only the addition of the two sums rounds.
    """
    known = np.asarray(labels, np.float64)
    known = known[~np.isnan(known)]
    if (known == np.round(known)).all():
        return 0.0
    largest = float(np.abs(known).max(initial=0))
    return math.ldexp(1.0, max(math.frexp(largest)[1] - 26, _LEAST_EXPONENT))


def _hash_pairs(number: Any, query: Any, doc_id: pl.Series) -> Any:
    """Return a hash of query and document of each row. `number` has the number of each query among the judged queries."""
    return doc_id.hash(1).to_numpy() ^ (number.astype(np.uint64) * _SPREAD)[query]


def find_places(some: pl.Series, query_ids: pl.Series) -> Any:
    """Return the place of each query in `query_ids`, which are sorted and distinct; -1 for a query that `query_ids` lack."""
    if query_ids.is_empty() or some.is_empty():
        return np.full(len(some), -1)
    if len(some) == len(query_ids) and (some == query_ids).all():
        return np.arange(len(some))
    place = np.minimum(query_ids.search_sorted(some).to_numpy(), len(query_ids) - 1).astype(np.int64)
    place[(query_ids[place] != some).to_numpy()] = -1
    return place
