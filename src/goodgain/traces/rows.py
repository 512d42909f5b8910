"""The results frame, built column by column: what holds for a search is kept once and repeated at the end."""

from __future__ import annotations

from typing import Any

import polars as pl

from goodgain.schema import EMPTY_DOC, RESULTS
from goodgain.traces.pivot import Pairs, Result, SearchCall
from goodgain.traces.searches import Query

__all__ = ["RESULTS_SCHEMA", "Rows", "joined"]

_PAIRS = pl.List(pl.Struct({"name": pl.String, "value": pl.String}))
_TYPES: dict[str, Any] = {"String": pl.String, "Int64": pl.Int64, "Float64": pl.Float64, "List": _PAIRS}

#: The columns of the results frame as Polars knows them.
RESULTS_SCHEMA: dict[str, Any] = {name: _TYPES[type(dtype).__name__] for name, dtype in RESULTS.columns.items()}

_OF_RESULTS = ("rank", "doc_id", "type", "url", "title", "snippet", "score", "ids", "fields")
_OF_SEARCHES = tuple(name for name in RESULTS_SCHEMA if name not in _OF_RESULTS)
#: What a run needs of a result that has an id.
_OF_RUNS = ("rank", "doc_id", "score")

#: Ids that name no document: in a run, `-` means that nothing was found.
_NO_IDS = (None, EMPTY_DOC)

#: Stands in a row for a search without results, or for a query without a search.
_NOTHING = Result(0)


class Rows:
    """Rows of the results frame, gathered query by query."""

    def __init__(self) -> None:
        self._results: list[Result] = []
        self._counts: list[int] = []
        self._searches: dict[str, list[Any]] = {name: [] for name in _OF_SEARCHES}
        self._appends = [column.append for column in self._searches.values()]

    def __len__(self) -> int:
        return len(self._results)

    def add(self, query: Query, query_id: str, system: str | None) -> None:
        """Add what a query's searches found; a query that never searched has one row, with iteration 0."""
        for iteration, searches in enumerate(query.iterations, start=1):
            for number, search in enumerate(searches, start=1):
                values = (query_id, system, query.turn.index, iteration, number, search.call_id, search, search.status)
                self._add(values, search.results or (_NOTHING,))
        if not query.iterations:
            status = "unrecorded" if query.left_out else None
            self._add((query_id, system, query.turn.index, 0, 0, None, None, status), (_NOTHING,))

    def _add(self, values: tuple[Any, ...], results: tuple[Result, ...]) -> None:
        for append, value in zip(self._appends, values, strict=True):
            append(value)
        self._counts.append(len(results))
        self._results += results

    @property
    def all_have_ids(self) -> bool:
        """Whether every result carries an id of its own."""
        return all(result.doc_id not in _NO_IDS or result is _NOTHING for result in self._results)

    def frame(self, *, for_run: bool = False) -> pl.DataFrame:
        """The results frame, or of it what a run needs whose results all have ids."""
        names = _OF_RUNS if for_run else _OF_RESULTS
        found = pl.DataFrame([_column(name, self._results) for name in names])
        wanted = ("query_id", "system", "iteration", "search") if for_run else _OF_SEARCHES
        columns = {name: self._searches[name] for name in wanted}
        if not for_run:
            columns["search_query"] = [_asked(search) for search in columns["search_query"]]
        searches = pl.DataFrame(columns, schema={name: RESULTS_SCHEMA[name] for name in wanted})
        index = pl.select(pl.int_range(len(self._counts)).repeat_by(pl.Series(self._counts, dtype=pl.Int64)).explode())
        whole = searches[index.to_series().cast(pl.UInt32)].hstack(found) if self._counts else searches.hstack(found)
        return whole.select(name for name in RESULTS_SCHEMA if name in whole.columns)


def _asked(search: SearchCall | None) -> str | None:
    """What a search asked for, which is looked up only where somebody will read it."""
    return None if search is None else "; ".join(search.queries) or None


def _column(name: str, results: list[Result]) -> pl.Series:
    if name not in ("ids", "fields"):
        return pl.Series(name, [getattr(result, name) for result in results], dtype=RESULTS_SCHEMA[name])
    pairs: list[Pairs] = [result.ids if name == "ids" else result.fields for result in results]
    if not any(pairs):
        return (
            pl.Series(name, [None], dtype=_PAIRS).new_from_index(0, len(results))
            if results
            else pl.Series(name, [], _PAIRS)
        )
    values = [[{"name": key, "value": value} for key, value in found] or None for found in pairs]
    return pl.Series(name, values, dtype=_PAIRS)


def joined(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of several results frames, in order; an empty results frame of none."""
    return pl.concat(frames) if frames else pl.DataFrame(schema=RESULTS_SCHEMA)
