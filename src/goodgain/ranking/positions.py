"""Positions of documents in a ranking, in the orders that hosts give tied documents."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import polars as pl

from goodgain.ranking.first_occurrences import count_in_query

__all__ = ["POSITIONS", "place_documents"]

#: Column -> the order of its positions: the score it looks at, and whether doc_ids of tied documents descend.
POSITIONS = {
    "k": ("single", True),  # trec_eval: scores as 32-bit floats, doc_id descending
    "k_id": ("score", False),  # msmarco and judged: scores as 64-bit floats, doc_id ascending
    "k_gdeval": ("score", True),  # gdeval: scores as 64-bit floats, doc_id descending
}


def place_documents(
    ranking: pl.DataFrame, doc_ids: Callable[[pl.Series], pl.Series], *, positions: Collection[str]
) -> pl.DataFrame:
    """Return the position of each document within its query, from 1.

    Scores that already descend need no sorting, and only tied documents have their doc_ids compared: in the order of
    their UTF-8 bytes, which is also the order of Python's strings.

    Args:
        ranking: query (a number; the rows of a query stand together), score (Float64, never NaN).
        doc_ids: from numbers of rows to their doc_ids; it is asked for tied documents alone.
        positions: names of `POSITIONS`.

    Returns:
        Int64 columns in the order of the rows: `k`, and those of `positions` that differ from it. A column that is
        not there is the same as `k`.

    Source: trec_eval's form_res_rels.c; the providers msmarco and judged of ir_measures; gdeval.pl.

    >>> tied = pl.DataFrame({"query": 0, "score": [1.0, 1.0, 2.0]})
    >>> doc_ids = pl.Series(["a", "b", "c"])
    >>> place_documents(tied, doc_ids.gather, positions=["k_id"]).to_dict(as_series=False)
    {'k': [3, 2, 1], 'k_id': [2, 3, 1]}
    """
    score = pl.col("score") + 0.0  # -0.0 becomes 0.0
    rows = ranking.select("query", score, single=score.cast(pl.Float32))
    placed = pl.DataFrame({"k": count_in_query(rows.get_column("query"))})
    out_of_order = rows.get_column("query").filter(
        rows.select(_same_as_before("query") & (pl.col("single") >= pl.col("single").shift(1))).to_series()
    )
    if out_of_order.is_empty():
        return placed
    unsettled = rows.with_row_index("row").filter(pl.col("query").is_in(out_of_order.unique().implode()))
    by_score = unsettled.sort("query", "single", descending=[False, True])
    by_score = by_score.with_columns(k=count_in_query(by_score.get_column("query")))
    same = _same_as_before("query") & _same_as_before("single")
    tied = by_score.filter(same | same.shift(-1, fill_value=False))
    k = _written_over(placed.get_column("k"), by_score.get_column("row"), by_score.get_column("k"))
    columns = {"k": k}
    if not tied.is_empty():
        tied = tied.with_columns(doc_ids(tied.get_column("row")).alias("doc_id"))
        for name in ("k", *sorted({*positions} - {"k"})):
            placed_by = _written_over(k, _rows_in_order(tied, *POSITIONS[name]), tied.get_column("k"))
            if name == "k" or not placed_by.equals(columns["k"]):
                columns[name] = placed_by
    return pl.DataFrame(columns)


def _same_as_before(column: str) -> pl.Expr:
    return (pl.col(column) == pl.col(column).shift(1)).fill_null(False)


def _rows_in_order(tied: pl.DataFrame, score: str, id_descends: bool) -> pl.Series:
    """Tied documents, in the order in which they take the positions that they have together."""
    return tied.sort("query", score, "doc_id", descending=[False, True, id_descends]).get_column("row")


def _written_over(column: pl.Series, rows: pl.Series, values: pl.Series) -> pl.Series:
    written = np.array(column)
    written[rows.to_numpy()] = values.to_numpy()
    return pl.Series(column.name, written)
