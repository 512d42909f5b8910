"""Simple objects are read on a short way: the same results as the general reader gives, whatever their values are."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.errors import InputError
from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.result_objects import read_object, read_objects
from tests.support.counts import how_many

PAGE = {"docid": "d1", "url": "https://a.example/1", "title": "T", "snippet": "Text.", "score": 0.5}

_KEYS = st.sampled_from(
    [
        *("docid", "doc_id", "id", "url", "link", "title", "name", "snippet", "text", "content", "score", "rank", "lc"),
        *("type", "metadata", "source", "results", "extra"),
    ]
)
_TEXTS = st.sampled_from(["d1", "", " ", '"T"', "'", "http://a.example", " https://a.example ", "---\ntitle: T\n---\n"])
_VALUES = st.one_of(
    _TEXTS, st.text(max_size=5), st.none(), st.booleans(), st.integers(), st.floats(),
    st.just(10**30), st.just([]), st.just(["a"]), st.just({"title": "inside"}),
)  # fmt: skip
_NEARLY_PLAIN = st.fixed_dictionaries(
    {"docid": _TEXTS, "title": _TEXTS, "snippet": _TEXTS},
    optional={"url": _TEXTS | st.none(), "score": st.none() | st.floats() | st.integers(), "rank": st.integers()},
)
_ITEMS = st.one_of(
    _NEARLY_PLAIN,
    st.dictionaries(_KEYS, _VALUES, max_size=3).map(lambda changed: PAGE | changed),
    st.sets(st.sampled_from(sorted(PAGE))).map(lambda kept: {key: PAGE[key] for key in PAGE if key in kept}),
    st.dictionaries(_KEYS, _VALUES, max_size=5),
)


@settings(max_examples=how_many(200, full=1_000))
@given(members=st.lists(_ITEMS, max_size=3), doc_type=st.sampled_from([None, "passage"]))
def test_what_is_read_on_the_short_way_is_what_the_general_reader_reads(
    members: list[dict[str, Any]], doc_type: str | None
) -> None:
    items = [PAGE, *members]
    one_by_one: list[Result] | None = []
    try:
        for rank, item in enumerate(items, start=1):
            if (result := read_object(item, rank, "here", doc_type)) is None:
                one_by_one = None
                break
            one_by_one.append(result)
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            read_objects(items, "here", doc_type)
        return
    assert read_objects(items, "here", doc_type) == (None if one_by_one is None else tuple(one_by_one))
