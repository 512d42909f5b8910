"""Makes frames from dicts {query_id: {doc_id: value}} and from lists of values, and such dicts from frames."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.schema import QRELS, Table


def read_dict(source: Mapping[Any, Any], table: Table) -> pl.DataFrame:
    """Return rows of {query_id: {doc_id: label or score}}. The iteration and the rank are not known."""
    value, kind = ("relevance", "label") if table.name == QRELS.name else ("score", "score")
    columns: dict[str, list[Any]] = {"query_id": [], "doc_id": [], value: []}
    for query_id, documents in source.items():
        if not isinstance(documents, Mapping):
            problem = f"the {table.name} dict has a {type(documents).__name__} for query {query_id!r}"
            raise InputError(f"{problem}; give {{query_id: {{doc_id: {kind}}}}}")
        columns["query_id"] += [query_id] * len(documents)
        columns["doc_id"] += documents
        columns[value] += documents.values()
    return make_columns(columns, table)


def to_nested_dict(frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    """Return a frame as {query_id: {doc_id: value}}. Queries keep the order in which they first appear.

    >>> to_nested_dict(pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0]}), "score")
    {'q': {'a': 2.0, 'b': 1.0}}
    """
    queries = frame.group_by("query_id", maintain_order=True).agg("doc_id", value)
    nested = {}
    for query_id, doc_ids, values in queries.iter_rows():
        nested[query_id] = dict(zip(doc_ids, values, strict=True))
    return nested


def make_columns(columns: dict[str, list[Any]], table: Table) -> pl.DataFrame:
    return pl.DataFrame([_make_column(name, values, table) for name, values in columns.items()])


def _make_column(name: str, values: list[Any], table: Table) -> pl.Series:
    """Make a column of one type. A mixture of integers and floats becomes floats; any other mixture raises an `InputError`."""
    try:
        return pl.Series(name, values, strict=True)
    except UnicodeEncodeError:
        raise InputError(f"the {table.name} has a {name} that is not valid Unicode text; correct it") from None
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            kinds = sorted({type(value).__name__ for value in values})
            mixed = f"the {table.name} mixes {' and '.join(kinds)} in {name}"
            raise InputError(f"{mixed}; give every row the same type") from None
    try:
        return pl.Series(name, [float(value) for value in values])
    except OverflowError:
        raise InputError(f"the {table.name} has a {name} too large for a float; correct it") from None
