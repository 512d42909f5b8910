"""Searches of messages in memory are those that the same messages in a file give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

FIXTURES = Path(__file__).parent / "fixtures"


def _call(number: str, query: str) -> dict[str, Any]:
    arguments = json.dumps({"query": query})
    return {"id": number, "type": "function", "function": {"name": "search", "arguments": arguments}}


QUESTION = {"role": "user", "content": "Which dam broke first?"}
ANSWER = {"role": "assistant", "content": "The first one."}
CHAT = [
    QUESTION,
    {"role": "assistant", "tool_calls": [_call("c1", "dam"), _call("c2", "dams")]},
    {"role": "tool", "tool_call_id": "c1", "content": '[{"docid": "d1"}, {"docid": "d2"}]'},
    {"role": "tool", "tool_call_id": "c2", "content": '[{"docid": "d2"}]'},
    {"role": "assistant", "tool_calls": [_call("c3", "first dam")]},
    {"role": "tool", "tool_call_id": "c3", "content": "[]"},
    ANSWER,
]


def _read_from_file(path: Path) -> list[list[str]] | None:
    """Return the searches that `read_traces` finds in a file of one query; None for other files."""
    try:
        run = gg.to_run(gg.read_traces(path))
    except gg.InputError:
        return None
    if run.get_column("query_id").n_unique() != 1:
        return None
    numbers = run.get_column("iteration").drop_nulls().unique().sort()
    searches = []
    for number in numbers:
        of_search = run.filter(pl.col("iteration") == number).sort("rank", maintain_order=True)
        searches.append([doc_id for doc_id in of_search.get_column("doc_id") if doc_id != "-"])
    return searches


def test_a_step_with_two_calls_is_one_search_and_an_empty_result_an_empty_search() -> None:
    assert gg.read_searches(CHAT) == [["d1", "d2", "d2"], []]
    assert gg.read_searches(CHAT, iteration="call") == [["d1", "d2"], ["d2"], []]


def test_a_conversation_without_a_search_has_none() -> None:
    assert gg.read_searches([QUESTION, ANSWER]) == []


def test_messages_give_the_searches_of_the_file(tmp_path: Path) -> None:
    compared = 0
    for path in sorted(FIXTURES.rglob("*.json")):
        expected = _read_from_file(path)
        if expected is not None:
            assert gg.read_searches(json.loads(path.read_bytes())) == expected, path.name
            compared += 1
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    assert gg.read_searches(CHAT) == _read_from_file(path)
    assert compared > 5


@pytest.mark.parametrize("messages", ["text", 3, [], object(), [{"role": "user"}]])
def test_what_is_no_conversation_is_an_input_error(messages: Any) -> None:
    with pytest.raises(gg.InputError):
        gg.read_searches(messages)


def test_several_conversations_are_an_input_error() -> None:
    with pytest.raises(gg.InputError, match="hold 2 conversations"):
        gg.read_searches([{"query_id": "q1", "messages": CHAT}, {"query_id": "q2", "messages": CHAT}])
