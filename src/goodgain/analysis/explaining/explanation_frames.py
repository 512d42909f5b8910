"""The frames of an explanation, as they were computed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import polars as pl

from goodgain.analysis.explaining.causes import Parts
from goodgain.counting.coverage import list_examples
from goodgain.errors import InputError

#: The tables of an explanation.
FRAMES = ("queries", "causes", "documents", "iterations", "wasted", "unjudged", "repeats", "absent", "broke_off")


@dataclass(frozen=True, eq=False, repr=False)
class ExplanationFrames:
    """What an explanation computed. `Explanation` documents each attribute; sentences and screens are written from these frames."""

    base: str
    new: str
    measures: tuple[str, ...]
    queries: pl.DataFrame
    causes: pl.DataFrame
    documents: pl.DataFrame
    iterations: pl.DataFrame
    wasted: pl.DataFrame
    unjudged: pl.DataFrame
    repeats: pl.DataFrame
    absent: pl.DataFrame
    broke_off: pl.DataFrame
    parts: Mapping[str, Parts]
    top: int = 5
    pairs: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()


Frames = TypeVar("Frames", bound=ExplanationFrames)


def take_query(explanation: Frames, query_id: str) -> Frames:
    """Return the explanation of one query. Raise `InputError` if the query is not in the qrels."""
    frames = {name: getattr(explanation, name).filter(query_id=str(query_id)) for name in FRAMES}
    if frames["queries"].is_empty():
        examples = ", ".join(list_examples(explanation.queries.get_column("query_id").unique()))
        raise InputError(f"query {query_id!r} is not in the qrels. Query ids in the qrels are {examples}, for example.")
    return replace(explanation, **frames)
