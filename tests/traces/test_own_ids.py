"""The id of a query in a record of messages comes before the record's `id`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.traces import read_traces

from .logs import WRITERS, conversation

#: The formats whose traces are records of messages, with the key of the messages in a record.
_FORMATS = {
    **dict.fromkeys(
        ("anthropic", "autogen", "gemini", "langchain", "openai_chat", "pydantic_ai", "strands"), "messages"
    ),
    "vercel_ai": "messages",
}


@pytest.fixture
def read_ids(tmp_path: Path) -> Callable[..., list[str]]:
    def read(*records: Any) -> list[str]:
        (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, records)))
        return read_traces(tmp_path / "log.jsonl")["query_id"].unique(maintain_order=True).to_list()

    return read


@pytest.mark.parametrize("key", ["query_id", "question_id", "qid", "task_id"])
@pytest.mark.parametrize("name", _FORMATS)
def test_a_record_s_own_query_id_comes_before_its_id(name: str, key: str, read_ids: Callable[..., list[str]]) -> None:
    written = json.loads(WRITERS[name][0](conversation()))
    record = {_FORMATS[name]: written} if isinstance(written, list) else written
    assert read_ids({**record, "id": "r1", key: "q7"}, {**record, "id": "r2", key: 8}) == ["q7", "8"]


def test_what_is_no_id_is_passed_over(read_ids: Callable[..., list[str]]) -> None:
    messages = json.loads(WRITERS["openai_chat"][0](conversation()))
    messages = messages["messages"] if isinstance(messages, dict) else messages
    odd = [{"query_id": None}, {"query_id": ""}, {"query_id": ["q"]}, {"query_id": True, "task_id": "t"}]
    assert read_ids(*({"messages": messages, **one} for one in odd)) == ["log-1", "log-2", "log-3", "t"]
