"""Builds the results frame column by column; the values of a search are kept once, and repeated only at the end."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import polars as pl

from goodgain.logs.traces.model import Result
from goodgain.logs.traces.reading.queries_and_costs import Query
from goodgain.schema import COSTS, RESULTS

RESULTS_SCHEMA = RESULTS.polars
_OF_QUERY = dict.fromkeys(("query_id", "system", "replicate"), pl.String)
#: The tables beside the results. Iteration 0 of costs is the answer; a query's text is the user's in its turn; only logs of
#: spans have trace ids.
_TABLES: dict[str, dict[str, Any]] = {
    "costs": dict(COSTS.polars),
    "queries": _OF_QUERY | {"text": pl.String},
    "traces": _OF_QUERY | {"trace_id": pl.String},
    "outcomes": _OF_QUERY | {"outcome": pl.String, "value": pl.Float64},
    # A row a mention, and one of the kind `query`. The place of a result is null for a document that no search returned.
    "uses": _OF_QUERY
    | {"kind": pl.String, "opened_at": pl.Int64, "name": pl.String}
    | dict.fromkeys(("iteration", "search", "rank"), pl.Int64)
    | dict.fromkeys(("failed", "answered", "can_open"), pl.Boolean),
}

_OF_RESULTS = ("rank", "doc_id", "type", "url", "title", "snippet", "score", "ids", "fields")
_OF_SEARCHES = tuple(name for name in RESULTS_SCHEMA if name not in _OF_RESULTS)
#: The row of a search without results, or of a query without a search.
_NO_RESULT = (Result(0),)


class ResultRows:
    """Rows of the results frame, added query by query."""

    def __init__(self) -> None:
        self._results: list[Result] = []
        self._counts: list[int] = []
        self._tables: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _TABLES}
        self._searches: list[tuple[Any, ...]] = []  # in the order of _OF_SEARCHES

    def __len__(self) -> int:
        return len(self._results)

    def add(self, query: Query, *of: str | None) -> None:
        """Add the results of the searches of a query: of its id, system and replicate."""
        turn = query.turn.index
        self._tables["queries"].append((*of, query.turn.user_text))
        if query.turn.trace_id is not None:
            self._tables["traces"].append((*of, query.turn.trace_id))
        for iteration, searches in enumerate(query.iterations, start=1):
            for number, search in enumerate(searches, start=1):
                found = search.results or _NO_RESULT
                self._searches.append((*of, turn, iteration, number, search.call_id, search, search.status))
                self._counts.append(len(found))
                self._results += found
        if not query.iterations:  # a query that never searched has one row with iteration 0
            status = "unrecorded" if query.left_out else None
            self._searches.append((*of, turn, 0, 0, None, None, status))
            self._counts.append(1)
            self._results += _NO_RESULT

        for place, usage in enumerate(query.spent, start=1):
            iteration = place if place < len(query.spent) else 0
            values = (usage.input_tokens, usage.output_tokens, usage.seconds, usage.cost)
            if iteration or not query.iterations or values.count(None) < len(values):
                calls = len(query.iterations[iteration - 1]) if iteration else 0
                self._tables["costs"].append((*of, iteration, calls, *values))

        if query.uses is not None:
            answered, can_open, no_place = query.uses.answered, query.uses.can_open, (None, None, None)
            self._tables["uses"].append((*of, "query", None, None, *no_place, None, answered, can_open))
            self._tables["uses"] += [
                (*of, one.kind, one.iteration, one.name, *(one.place or no_place), one.failed, None, None)
                for one in query.uses.mentions
            ]

    def add_outcomes(self, outcomes: Mapping[str, float], *of: str | None) -> None:
        """Add the outcomes that a log records for a query: of its id, system and replicate."""
        self._tables["outcomes"] += [(*of, name, value) for name, value in outcomes.items()]

    def to_frame(self) -> pl.DataFrame:
        columns = dict(zip(_OF_SEARCHES, zip(*self._searches, strict=True), strict=True)) if self._searches else {}
        if columns:
            calls = columns["search_query"]  # their queries are parsed only here, on demand
            columns["search_query"] = tuple(None if call is None else "; ".join(call.queries) or None for call in calls)
        searches = pl.DataFrame(
            [pl.Series(name, columns.get(name, ()), dtype=RESULTS_SCHEMA[name]) for name in _OF_SEARCHES]
        )
        counts = pl.Series(self._counts, dtype=pl.UInt32)
        rows = pl.select(pl.int_range(len(counts), dtype=pl.UInt32).repeat_by(counts).explode()).to_series()
        found = [_make_column(name, self._results) for name in _OF_RESULTS]
        whole = (searches[rows] if self._counts else searches).hstack(found)
        return whole.select([*RESULTS_SCHEMA])

    def to_table(self, name: str) -> pl.DataFrame:
        """Return one of the other tables; `costs` and `uses` are empty if they were not read."""
        return pl.DataFrame(self._tables[name], schema=_TABLES[name], orient="row")


def _make_column(name: str, results: list[Result]) -> pl.Series:
    values = list(map(attrgetter(name), results))
    if name in ("ids", "fields"):
        if not any(values):  # as in most logs
            return pl.repeat(None, len(values), dtype=RESULTS_SCHEMA[name], eager=True).alias(name)
        values = [[{"name": key, "value": value} for key, value in pairs] or None for pairs in values]
    return pl.Series(name, values, dtype=RESULTS_SCHEMA[name])
