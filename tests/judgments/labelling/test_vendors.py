"""Answers and errors in the words of vendors and servers: each gets the right status, and the right remedy."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import polars as pl
import pytest

from goodgain.judgments.labelling.answers_and_journal import read_completion, read_content
from tests.judgments.labelling.endpoint import completion, good, serve
from tests.judgments.labelling.test_calls import ask

ANSWER = '{"reason": "names the day", "grade": 3}'
#: `written`: answers of grade 3 by their kind. `prose`: what has a grade for a reader, and is not an answer. `errors`: vendor ->
#: status, body, the status of the document, a part of its reason. The bodies are those of the vendors.
VENDORS = json.loads(Path(__file__).with_name("vendors.json").read_text(encoding="utf-8"))
WRITTEN = VENDORS["written"]


@pytest.mark.parametrize("kind", WRITTEN)
def test_one_object_in_a_fence_or_after_a_thought_is_an_answer(kind: str) -> None:
    content = read_content(WRITTEN[kind])
    assert (content.grade, content.reason, content.status) == (3, "names the day", "ok")
    assert content.raw == WRITTEN[kind]  # as it came


@pytest.mark.parametrize("written", VENDORS["prose"])
def test_an_object_or_a_number_in_prose_is_no_answer(written: str) -> None:
    content = read_content(written)
    assert (content.grade, content.status) == (None, "malformed")


def test_mistral_sends_thought_and_text_in_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": '{"grade": 4}'}]},
        {"type": "text", "text": ANSWER},
    ]
    assert read_completion(completion(parts)).grade == 3


def test_an_answer_that_is_cut_while_thinking_keeps_the_thought() -> None:
    """vLLM, DeepSeek and OpenRouter send thoughts beside an empty content; others in it, without an end."""
    cut = completion(None, finish="length")
    cut["choices"][0]["message"]["reasoning_content"] = "The document says"
    for body in (cut, completion("<think>The document says", finish="stop")):
        found = read_completion(body)
        assert found.status == "too_long"
        assert "The document says" in (found.raw or "")


def test_more_fields_and_headers_are_sent() -> None:
    body = {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 1}
    with serve(lambda call: good()) as server:
        found = ask(server, 1, reasoning_effort="low", extra_body=body, headers={"X-Title": "labels of mine"})
        plain = ask(server, 1)
        bodies = [ask(server, 1, extra_body={"top_k": top_k}) for top_k in (1, 2)]
    call = server.calls[0]
    assert call.body["chat_template_kwargs"] == {"enable_thinking": False}
    assert (call.body["top_k"], call.body["reasoning_effort"]) == (1, "low")
    assert call.headers["x-title"] == "labels of mine"
    assert not {"reasoning_effort", "top_k"} & set(server.calls[1].body)
    assert len({frame.item(0, "judge") for frame in (found, plain, *bodies)}) == 4


def test_the_schema_lets_a_model_reason_before_it_grades() -> None:
    with serve(lambda call: good()) as server:
        for prompt in (None, "good-gain-1", "umbrela"):
            ask(server, 1, prompt=prompt)
    fields = [call.body["response_format"]["json_schema"]["schema"]["properties"] for call in server.calls]
    assert [list(field) for field in fields] == [["reason", "grade"], ["grade", "reason"], ["reason", "grade"]]
    assert [field["grade"]["enum"] for field in fields] == [[0, 1, 2, 3, 4, None]] * 2 + [[0, 1, 2, 3, None]]
    assert [call.body["max_completion_tokens"] for call in server.calls] == [2_000, 400, 2_000]


def test_answers_have_the_model_that_served_them_in_the_journal(tmp_path: Path) -> None:
    with serve(lambda call: good() | {"model": "judge-2026-01"}) as server:
        ask(server, 2, journal=tmp_path / "j")
    connection = sqlite3.connect(tmp_path / "j")
    found = connection.execute("SELECT query_id, doc_id, model, host, date FROM answers ORDER BY doc_id").fetchall()
    connection.close()
    host = server.url.removeprefix("http://").removesuffix("/v1")
    assert [row[:4] for row in found] == [("q", f"d{k}", "judge-2026-01", host) for k in range(2)]
    assert all(row[4].startswith("20") and row[4].endswith("+00:00") for row in found)


def test_judges_are_told_apart_by_temperature_text_and_cut() -> None:
    with serve(lambda call: good()) as server:
        judges = [
            ask(server, 1, **options).item(0, "judge")
            for options in ({}, {"temperature": 0.5}, {"temperature": None}, {"max_characters": 3})
        ]

    head = judges[0].partition("/")[0]
    assert head.startswith("judge@good-gain-")
    assert judges == [
        f"{head}/t0/texts/8000",
        f"{head}/t0.5/texts/8000",
        f"{head}/tnone/texts/8000",
        f"{head}/t0/texts/3",
    ]


def test_a_cut_is_a_column() -> None:
    with serve(lambda call: good()) as server:
        found = ask(server, 11, max_characters=6)
    assert found.filter(pl.col("cut"))["doc_id"].to_list() == ["d10"]


def test_a_prompt_with_line_ends_of_windows_is_the_same_prompt(tmp_path: Path) -> None:
    for name, end in (("unix", "\n"), ("windows", "\r\n")):
        (tmp_path / name).mkdir()
        text = end.join(["You grade.", "---", "{{query}}", "{{document}}", ""])
        (tmp_path / name / "mine.txt").write_bytes(text.encode())
    with serve(lambda call: good()) as server:
        judges = {ask(server, 1, prompt=tmp_path / name / "mine.txt").item(0, "judge") for name in ("unix", "windows")}
    assert len(judges) == 1
    assert [message["role"] for message in server.calls[1].body["messages"]] == ["system", "user"]
    assert server.calls[0].body == server.calls[1].body
