"""A log that is refused: where its calls are, and what to do about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import read_traces

_CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
_CHAT: list[Any] = [
    {"role": "user", "content": "Where?"},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '[{"docid": "d1"}]'},
]
_EXCHANGE = {"request": {"body": "{}"}, "response": {"body": {"string": "{}"}}}


def _refuse(path: Path, content: str) -> str:
    path.write_text(content)
    with pytest.raises(InputError, match="is in no known trace format") as caught:
        read_traces(path)
    return str(caught.value)


def test_the_nearest_format_is_the_one_that_finds_calls_in_a_value_and_says_where(tmp_path: Path) -> None:
    said = _refuse(tmp_path / "a.json", json.dumps({"ours": {"chat": _CHAT}}))
    assert "the nearest is openai_chat (it finds calls at /ours/chat; write what is there to a file of its own)" in said


def test_no_format_is_near_a_log_in_which_none_finds_a_call(tmp_path: Path) -> None:
    said = _refuse(tmp_path / "a.json", json.dumps({"role": "user", "type": "message", "found": [{"id": "d1"}]}))
    assert "the nearest" not in said


@pytest.mark.parametrize(
    "content", ["version: 1\ninteractions:\n- request: {}\n", json.dumps({"interactions": [_EXCHANGE]})]
)
def test_a_cassette_is_refused_with_what_to_write_instead(tmp_path: Path, content: str) -> None:
    said = _refuse(tmp_path / "cassette.log", content)
    assert said.endswith('write the exchanges of the cassette as a list of {"request": BODY, "response": BODY}')


def test_what_the_refusal_of_unknown_keys_advises_works(tmp_path: Path) -> None:
    ferries = [{"ferry_number": "F1", "price": 5}, {"ferry_number": "F2", "price": 6}]
    path = tmp_path / "log.json"
    path.write_text(json.dumps([*_CHAT[:2], {**_CHAT[2], "content": json.dumps(ferries)}]))

    with pytest.raises(
        InputError,
        match=r"an object with doc_id, url, title or snippet .* Or read the output with parse= of read_traces",
    ):
        read_traces(path)

    read = read_traces(path, parse=lambda output: [{"doc_id": one["ferry_number"]} for one in json.loads(output)])
    search = {"query": "x", "results": [{"doc_id": one["ferry_number"]} for one in ferries]}
    (tmp_path / "log.jsonl").write_text(json.dumps({"goodgain_trace": 1, "steps": [{"searches": [search]}]}))
    for found in (read, read_traces(tmp_path / "log.jsonl")):
        assert found["doc_id"].to_list() == ["F1", "F2"]


def _write_exchanges(path: Path, answer: dict[str, Any]) -> Path:
    asked = {"model": "m", "messages": _CHAT[:1]}
    found = {"organic": [{"title": name, "link": f"https://a.example/{name}"} for name in ("one", "two")]}
    exchanges = [
        {"request": asked, "response": {"model": "m", "choices": [{"index": 0, "message": answer}]}},
        {"request": {"q": "dunes"}, "response": found},
        {"request": {"model": "m", "messages": [*_CHAT[:1], answer, *_CHAT[2:]]}, "response": {"choices": [_END]}},
    ]
    path.write_text(json.dumps(exchanges if "tool_calls" in answer else exchanges[:2]))
    return path


_END = {"index": 0, "message": {"role": "assistant", "content": "There."}}


def test_a_search_by_the_program_and_not_the_model_is_told(tmp_path: Path) -> None:
    path = _write_exchanges(tmp_path / "a.json", {"role": "assistant", "content": "dunes"})
    with pytest.warns(GoodgainNotice, match="exchange with another endpoint, which returned results 1; the first at"):
        read_traces(path)


def test_a_search_that_the_model_called_is_read_and_not_told_twice(tmp_path: Path) -> None:
    path = _write_exchanges(tmp_path / "a.json", _CHAT[1])
    assert read_traces(path)["doc_id"].to_list() == ["d1"]


def test_shape_is_advised_for_what_it_reads_only(tmp_path: Path) -> None:
    step = {"action": "search", "args": {"query": "x"}}
    for answer, advice in (
        ({"observation": [{"docid": "d1"}]}, "1 result; pass format='shape' to take this"),
        ({"observation": "a text that is not a list"}, "1 not read; pass format='shape' to see which"),
        ({}, "1 not recorded; pass format='shape' to see which"),
    ):
        path = tmp_path / "log.json"
        assert advice in _refuse(path, json.dumps({"question": "Where?", "trajectory": [step | answer]}))
        if "take this" in advice:
            assert read_traces(path, format="shape")["doc_id"].to_list() == ["d1"]
        else:
            with pytest.raises(InputError, match="at /trajectory/0"):
                read_traces(path, format="shape")


def test_json_values_of_many_lines_are_not_called_cut_off(tmp_path: Path) -> None:
    values = [{"task_id": name, "calls": [{"tool": "search", "query": name, "results": []}]} for name in "ab"]
    path = tmp_path / "log.jsonl"
    said = _refuse(path, "".join(f"{json.dumps(value, indent=1)}\n" for value in values))
    assert "it looks like JSON values of many lines each" in said
    assert "write each of its JSON values on one line (jq -c .)" in said
    assert "cut off" not in said
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
    assert read_traces(path, format="shape")["query_id"].to_list() == ["a", "b"]
    assert "was it cut off?" in _refuse(path, json.dumps(values, indent=1)[:-20])
