"""Computes session measures: measures from all results of all iterations."""

from collections.abc import Mapping, Sequence

import polars as pl

from goodgain.errors import InputError
from goodgain.formats import Qrels
from goodgain.measures.declaration import SessionMeasure
from goodgain.measures.parameters import read_parameters
from goodgain.measures.searches import Searches
from goodgain.options import spell
from goodgain.schema import EMPTY_DOC

#: The columns of `Searches.rows`.
_ROWS = {
    "query_id": pl.String,
    "number": pl.Int64,
    "doc_id": pl.String,
    "rank": pl.Int64,
    "score": pl.Float64,
    "iteration": pl.Int64,
}
#: Name of a table beside the run -> what to give.
_TABLES = {
    "results": "the table that goodgain convert --results writes",
    "costs": "the table that goodgain convert --costs writes",
    "lengths": "a table of doc_id and length",
}


class SessionScores:
    """Computes session measures (from all results of all iterations) for a run that is read in batches of whole queries."""

    def __init__(self, measures: Sequence[SessionMeasure], qrels: Qrels, tables: Mapping[str, pl.DataFrame]) -> None:
        for measure in measures:
            if measure.table and measure.table not in tables:
                raise InputError(f"{measure} needs {spell(measure.table)}: give {_TABLES[measure.table]}.")

        for measure in measures:
            if measure.declaration.labels and not qrels.has_subtopics:
                raise InputError(
                    f"{measure.NAME}: these qrels have no subtopics, so each value would be 1 or 0. Give "
                    f"qrels whose column 2 is the subtopic, and read them with {spell('labels', 'subtopic')}; or use Success"
                )

        for measure in measures:
            measure.declaration.check_scale(measure, qrels.frame.get_column("relevance"))

        self._measures = measures
        self._qrels = qrels
        self._tables = tables
        self._values: dict[str, list[pl.DataFrame]] = {str(measure): [] for measure in measures}
        self._searched: list[pl.Series] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Add all rows of a batch of queries. The columns are query_id, iteration, doc_id, rank and score."""
        is_judged = pl.col("query_id").is_in(self._qrels.query_ids.implode())
        rows = rows.filter(is_judged).rename({"iteration": "number"})
        rows = rows.sort("query_id", "number", "rank", maintain_order=True)
        iteration = pl.col("number").rank("dense").over("query_id")
        rows = rows.with_columns(iteration=iteration.cast(pl.Int64))

        results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
        iterations = rows.select("query_id", "iteration", "number").unique()

        self._searched.append(iterations.get_column("query_id").unique())
        for measure in self._measures:
            self._compute(measure, results, iterations)

    def _compute(self, measure: SessionMeasure, results: pl.DataFrame, iterations: pl.DataFrame) -> None:
        parameters = read_parameters(measure)
        searches = Searches(results, iterations, self._qrels, measure.cutoff, parameters, self._tables)
        self._values[str(measure)].append(measure.declaration.formula(searches))

    def finish(self) -> pl.DataFrame:
        """Return a frame with the column `query_id` (all queries of the qrels, sorted), and a Float64 column per measure.

        A query that was not searched has the value of one search without results. `score_run.py` removes values that the rule
        in `is_null_without_search` excludes.
        """
        query_ids = self._qrels.query_ids
        with_search = pl.concat([query_ids.clear(), *self._searched])
        not_searched = query_ids.filter(~query_ids.is_in(with_search.implode())).to_frame("query_id")
        one_search = not_searched.with_columns(iteration=pl.lit(1, pl.Int64), number=pl.lit(1, pl.Int64))
        no_results = pl.DataFrame(schema=_ROWS)

        values = query_ids.to_frame("query_id")
        for measure in self._measures:
            name = str(measure)
            has_nulls = bool(measure.declaration.null_if)
            if has_nulls and not_searched.height and not measure.is_null_without_search:
                self._compute(measure, no_results, one_search)

            no_values = pl.DataFrame(schema={"query_id": pl.String, "value": pl.Float64})
            of_measure = pl.concat([no_values, *self._values[name]]).rename({"value": name})
            values = values.join(of_measure, on="query_id", how="left", maintain_order="left")
            if not has_nulls:
                values = values.with_columns(pl.col(name).fill_null(0.0))
        return values
