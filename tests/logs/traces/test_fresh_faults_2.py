"""Searches and results that were once lost or counted twice without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goodgain.errors import GoodgainNotice
from goodgain.logs.traces import read_traces
from goodgain.logs.traces.output.conversion import convert_traces

from .conftest import by_iteration
from .story import docs


def _chat(document: str) -> str:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    answer = {"role": "tool", "tool_call_id": "c", "content": json.dumps(docs(document))}
    return json.dumps([{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]}, answer])


def test_a_folder_is_one_of_strands_by_what_is_in_its_files_and_logs_beside_sessions_are_read(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"message_{number}.json").write_text(_chat(f"d{number}"))
    assert read_traces(tmp_path)["doc_id"].to_list() == ["d1", "d2", "d3"]
    folder = tmp_path / "session_1" / "agents" / "agent_a" / "messages"
    folder.mkdir(parents=True)
    for path in (folder.parents[2] / "session.json", folder.parent / "agent.json"):
        path.write_text("{}")
    use = {"toolUse": {"toolUseId": "t", "name": "search"}}
    result = {"toolResult": {"toolUseId": "t", "content": [{"json": docs("d4")}]}}
    for number, (role, block) in enumerate((("assistant", use), ("user", result))):
        record = {"message": {"role": role, "content": [block]}, "message_id": number, "redact_message": None}
        (folder / f"message_{number}.json").write_text(json.dumps(record))
    with pytest.warns(GoodgainNotice, match="share no query"):  # only a session names its agent
        found = read_traces(tmp_path)
    assert sorted(found["doc_id"]) == ["d1", "d2", "d3", "d4"]
    for path in (folder, folder.parent, folder.parents[2]):
        assert read_traces(path)["doc_id"].to_list() == ["d4"]


def test_the_history_of_gemini_s_own_calls_repeats_what_was_asked(save: Callable[..., Path], tmp_path: Path) -> None:
    asked = {"role": "user", "parts": [{"text": "What?"}]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {}}}]}
    found = {"name": "search", "response": {"result": docs("d1")}}
    calls = [call, {"role": "user", "parts": [{"functionResponse": found}]}]
    candidates = [{"content": {"role": "model", "parts": [{"text": "A"}]}}]
    for name, contents, history, steps in (
        ("first", [asked], [asked, *calls], 1),
        ("again", [asked, *calls], [asked, *calls], 1),
        ("more", [asked, *calls], [asked, *calls, *calls], 2),
    ):
        response = {"candidates": candidates, "automaticFunctionCallingHistory": history}
        exchange = {"request": {"contents": contents}, "response": response}
        for form, record in (("exchange", exchange), ("contents", {"contents": contents, **response})):
            log, run = save(record, f"{name}_{form}.json"), tmp_path / f"{name}_{form}"
            assert by_iteration(read_traces(log, iteration="step")) == [["d1"]] * steps
            convert_traces(log, f"{run}.run", queries=f"{run}.jsonl")
            assert json.loads(Path(f"{run}.jsonl").read_text())["text"] == "What?"
    answer = {"role": "model", "parts": [{"text": "A"}]}
    later = {"request": {"contents": [asked, *calls, answer, asked]}, "response": {"candidates": candidates}}
    response = {"candidates": candidates, "automaticFunctionCallingHistory": [asked, *calls]}
    log = save([{"request": {"contents": [asked]}, "response": response}, later], "joined.jsonl")
    assert read_traces(log, turns="all")["doc_id"].to_list() == ["d1", None], "two turns of one conversation"
