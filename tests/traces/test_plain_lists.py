"""Lists of plain results that are decoded straight: the same as the general chain reads, whatever the texts say."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.errors import InputError
from goodgain.traces.tool_outputs import plain_lists, readers
from goodgain.traces.tool_outputs.plain_lists import decode_plain_list
from goodgain.traces.tool_outputs.readers import Outcome, read_output
from tests.support.counts import how_many

from .mutations import mutated

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


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_lists, "_decoders", {})


def _read(text: str, doc_type: str | None, *, straight: bool) -> Outcome | str:
    with pytest.MonkeyPatch.context() as patch:
        if not straight:
            patch.setattr(readers, "decode_plain_list", lambda text, doc_type: None)
        try:
            return read_output(text, "here", doc_type=doc_type)
        except InputError as error:
            return str(error)


@settings(max_examples=how_many(100, full=400))
@given(
    first=st.lists(_ITEMS, max_size=2),
    then=st.lists(_ITEMS, max_size=2),
    doc_type=st.sampled_from([None, "passage"]),
)
def test_what_is_read_straight_is_what_the_chain_reads(
    first: list[dict[str, Any]], then: list[dict[str, Any]], doc_type: str | None
) -> None:
    plain_lists._decoders.clear()
    for members in ([PAGE], first, then, [PAGE, *then]):
        text = json.dumps(members)
        general = _read(text, doc_type, straight=False)
        assert _read(text, doc_type, straight=True) == general, "whatever was remembered before"
        assert _read(text, doc_type, straight=True) == general, "once it is remembered itself"


def test_damaged_texts_are_read_as_the_chain_reads_them() -> None:
    chance = random.Random(3)
    page = PAGE | {"title": 'Größe \U0001f600 \\ "', "rank": 1}
    tried = 0
    for _ in range(4000):
        text = json.dumps([page | {"docid": f"d{number}"} for number in range(3)], ensure_ascii=chance.random() < 0.5)
        _read(text, None, straight=True)
        damaged = mutated(text.encode(), chance)[0].decode("utf-8", "replace")
        tried += plain_lists._decoders.get(plain_lists._first_key_prefix(damaged)) is not None
        assert _read(damaged, None, straight=True) == _read(damaged, None, straight=False), damaged
    assert tried > 1000, "many of them begin as the whole texts do"


@pytest.mark.parametrize(
    "fields",
    [
        r'"docid": "\ud800"', r'"docid": "\udc00\ud800"', '"docid": "\ud800"', '"docid": "a\x01"', r'"docid": "\/\b\u00e9"',
        '"docid": "a", "docid": "b"', r'"doc\u0069d": "a"', '"docid": "a", "score": 1e999', '"docid": "a", "score": NaN',
        '"docid": "a", "score": 9007199254740993', '"docid": "a", "score": -0', '"docid": "a", "rank": [[]]',
        '"docid": "a", "rank": 123456789012345678901234567890', '"docid": "a", "url": null',
    ],
    ids=ascii,
)  # fmt: skip
@pytest.mark.parametrize("end", ["}]", "},]", "}] more", ""])
def test_json_that_readers_may_take_in_different_ways(fields: str, end: str) -> None:
    read_output(json.dumps([{"docid": "a", "title": "T", "snippet": "S", "score": 1.0, "rank": 1}]), "here")
    text = f'[{{{fields}, "title": "T", "snippet": "S"{end}'
    assert _read(text, None, straight=True) == _read(text, None, straight=False)


def test_the_keys_of_a_text_read_before_decide_and_are_no_more_than_a_few() -> None:
    text = json.dumps([PAGE, {**PAGE, "docid": "d2", "rank": 2}])
    assert decode_plain_list(text, None) is None
    general = read_output(text, "here")
    assert decode_plain_list(text, None) == general.results
    assert decode_plain_list(json.dumps([{**PAGE, "score": None}]), None) is not None, "what may be missing may be null"
    assert decode_plain_list(json.dumps([{**PAGE, "page": 1}]), None) is None, "a key that was not there"
    for number in range(500):
        read_output(json.dumps([{f"id{number}": 1, **PAGE}]), "here")
    assert len(plain_lists._decoders) <= 64
