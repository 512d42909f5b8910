"""Which fields of two results must agree, for each type, before the two are one document: the smallest sets of fields."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

import polars as pl
import pytest

from goodgain.logs.dedup import deduplicate
from goodgain.logs.dedup.document_types import KINDS, TYPES
from tests.logs.dedup.writing import EN, frame, result

#: By hand, from the weights in docs/dedup.md. The fields that a type requires agree too.
SMALLEST = {
    "generic": ["title snippet"],
    "web_page": ["title snippet", "title published author", "snippet published author"],
    "file": [
        "title snippet", "file_name snippet", "snippet modified_time", "title file_name modified_time", "title file_name author",
        "title file_name modified_by", "title modified_time author", "title modified_time modified_by",
        "file_name modified_time author", "file_name modified_time modified_by", "snippet author modified_by",
    ],
    "email": [
        "received sender", "received subject", "received snippet", "sender recipients snippet", "sender subject snippet",
        "recipients subject snippet",
    ],
    "event": ["title", "organizer snippet"],
    "message": ["sent snippet", "sender snippet"],
    "person": [
        "display_name department company office", "display_name department company job_title",
        "display_name department office job_title", "display_name company office job_title",
    ],
    "passage": ["offset", "chunk", "snippet"],
    "transcript": ["title snippet", "start snippet", "title start end"],
}  # fmt: skip


def _write_value(field: str) -> str:
    if field == "snippet":
        return EN
    return "2026-01-01T00:00:00Z" if KINDS.get(field) == "time" else f"a value of {field}"


def _find_smallest(name: str) -> Iterator[frozenset[str]]:
    """Yield the smallest sets of agreeing fields that make two results one document."""
    kind = TYPES[name]
    sizes = range(1, len(kind.weights) + 1)
    sets = [frozenset(fields) for fields in chain.from_iterable(combinations(kind.weights, size) for size in sizes)]
    pairs = []
    for number, fields in enumerate(sets):
        values = {field: _write_value(field) for field in fields | set(kind.required)}
        pair = [result(type=name, doc_id=doc_id, **values) for doc_id in ("d1", "d2")]
        pairs.append(frame(pair, query_id=str(number)))

    documents = deduplicate(pl.concat(pairs, how="diagonal")).frame
    counts = documents.group_by("query_id").agg(pl.col("document").n_unique())
    joined = {sets[int(number)] for number, count in counts.iter_rows() if count == 1}
    yield from (fields for fields in joined if not any(smaller < fields for smaller in joined))


@pytest.mark.parametrize("name", SMALLEST)
def test_two_results_of_a_type_are_one_document_if_these_fields_agree(name: str) -> None:
    assert set(_find_smallest(name)) == {frozenset(fields.split()) for fields in SMALLEST[name]}
