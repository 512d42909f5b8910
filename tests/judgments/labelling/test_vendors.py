"""Answers and errors in the words of vendors and servers: each gets the right status, and the right remedy."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.judgments.labelling.answers_and_journal import read_completion, read_content
from goodgain.judgments.labelling.budget_and_pace import StoppedError
from tests.judgments.labelling.endpoint import Call, completion, good, serve
from tests.judgments.labelling.test_calls import ask, number_of

ANSWER = '{"reason": "names the day", "grade": 3}'
#: `written`: answers of grade 3 by their kind. `prose`: what has a grade for a reader, and is not an answer. `errors`: vendor ->
#: status, body, the status of the document, a part of its reason. The bodies are those of the vendors.
VENDORS = json.loads(Path(__file__).with_name("vendors.json").read_text(encoding="utf-8"))
WRITTEN, ERRORS = VENDORS["written"], VENDORS["errors"]


@pytest.mark.parametrize("kind", WRITTEN)
def test_one_object_in_a_fence_or_after_a_thought_is_an_answer(kind: str) -> None:
    found = read_content(WRITTEN[kind])
    assert (found.grade, found.reason, found.status) == (3, "names the day", "ok")
    assert found.raw == WRITTEN[kind]  # as it came


@pytest.mark.parametrize("written", VENDORS["prose"])
def test_an_object_or_a_number_in_prose_is_no_answer(written: str) -> None:
    found = read_content(written)
    assert (found.grade, found.status) == (None, "malformed")


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


def error(message: Any, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize("vendor", ERRORS)
def test_an_error_of_a_document_has_its_status_and_is_sent_once(vendor: str) -> None:
    status, body, wanted, said = ERRORS[vendor]
    body = body.encode() if isinstance(body, str) else body
    with serve(lambda call: good() if number_of(call) else (status, body, {})) as server:
        found = ask(server, 2)
        assert server.count == 2
    assert found["status"].to_list() == [wanted, "ok"]
    assert said in found.item(0, "reason")


@pytest.mark.parametrize(("body", "status"), VENDORS["errors_with_status_200"])
def test_an_error_with_status_200_is_retried_as_its_own_status_says(body: dict[str, Any], status: str) -> None:
    def script(call: Call) -> Any:
        return body if number_of(call) == 0 or not call.before else good()

    with serve(script) as server:
        found = ask(server, 2, tries=2)
        passes = status != "http_400"
        assert server.count == (4 if passes else 2)
    assert found["status"].to_list() == [status, "ok" if passes else status]


def test_a_rate_limit_of_litellms_proxy_is_retried() -> None:
    said = (
        "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached for m on tokens per min (TPM): Limit "
        "30000, Used 29500, Requested 1200. Received Model Group=m\nAvailable Model Group Fallbacks=None"
    )
    reply = 429, error(said, type="throttling_error", param=None, code="429"), {"Retry-After-Ms": "10"}
    with serve(lambda call: good() if call.before or number_of(call) else reply) as server:
        assert ask(server, 2)["status"].to_list() == ["ok", "ok"]
        assert server.count == 3
    with serve(lambda call: good() if number_of(call) else reply) as server:
        found = ask(server, 2, tries=2)
        assert server.count == 3
    assert found["status"].to_list() == ["http_429", "ok"]
    assert found.item(0, "reason").startswith("litellm.RateLimitError")


@pytest.mark.parametrize(("status", "body", "said"), VENDORS["errors_for_every_call"])
def test_an_error_of_litellms_proxy_that_holds_for_every_call_stops_the_job(
    status: int, body: dict[str, Any], said: str
) -> None:
    with serve(lambda call: (status, body, {})) as server, pytest.raises(StoppedError, match=said):
        ask(server, 50, jobs=2, reasoning_effort="low")
    assert server.count <= 4


def test_a_limit_that_mistral_refuses_goes_by_its_other_name_for_the_whole_job() -> None:
    def script(call: Call) -> Any:
        return (422, VENDORS["mistral"], {}) if "max_completion_tokens" in call.body else good()

    with serve(script) as server:
        found = ask(server, 30, jobs=1)
        assert found["grade"].to_list() == [3] * 30
        assert server.count == 31
        assert all(call.body["max_tokens"] == 2_000 for call in server.calls[1:])


def test_a_model_of_openai_that_refuses_the_older_name_gets_the_newer_one() -> None:
    def script(call: Call) -> Any:
        said = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return (400, error(said, param="max_tokens"), {}) if "max_tokens" in call.body else good()

    with serve(script) as server:
        assert ask(server, 3, jobs=1, output_limit="max_tokens")["status"].to_list() == ["ok"] * 3
        assert server.count == 4


def test_an_endpoint_that_refuses_both_names_stops_the_job() -> None:
    def script(call: Call) -> Any:
        name = "max_tokens" if "max_tokens" in call.body else "max_completion_tokens"
        return 422, {"detail": [{"loc": ["body", name], "msg": "Extra inputs are not permitted"}]}, {}

    with serve(script) as server, pytest.raises(StoppedError, match=r"the parameter max_tokens .*extra_body="):
        ask(server, 30, jobs=1)
    assert server.count == 2


def test_more_fields_and_headers_are_sent() -> None:
    body = {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 1}
    with serve(lambda call: good()) as server:
        found = ask(server, 1, reasoning_effort="low", extra_body=body, headers={"X-Title": "labels of mine"})
        plain = ask(server, 1)
    call = server.calls[0]
    assert call.body["chat_template_kwargs"] == {"enable_thinking": False}
    assert (call.body["top_k"], call.body["reasoning_effort"]) == (1, "low")
    assert call.headers["x-title"] == "labels of mine"
    assert not {"reasoning_effort", "top_k"} & set(server.calls[1].body)
    assert found.item(0, "judge") != plain.item(0, "judge")


def test_a_field_that_the_endpoint_refuses_is_named() -> None:
    reply = 422, {"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}]}, {}
    with serve(lambda call: reply) as server, pytest.raises(StoppedError, match="refuses the parameter top_k"):
        ask(server, 3, extra_body={"top_k": 1})


def test_a_header_is_hidden_like_the_key() -> None:
    with serve(lambda call: good(3, f"your key is {call.headers['api-key']}")) as server:
        found = ask(server, 1, headers={"api-key": "azure-secret-1"})
    assert found.item(0, "reason") == "your key is ***"


def test_the_schema_lets_a_model_reason_before_it_grades() -> None:
    with serve(lambda call: good()) as server:
        for prompt in (None, "good-gain-1", "umbrela"):
            ask(server, 1, prompt=prompt)
    fields = [call.body["response_format"]["json_schema"]["schema"]["properties"] for call in server.calls]
    assert [list(one) for one in fields] == [["reason", "grade"], ["grade", "reason"], ["reason", "grade"]]
    assert [one["grade"]["enum"] for one in fields] == [[0, 1, 2, 3, 4, None]] * 2 + [[0, 1, 2, 3, None]]
    assert [call.body["max_completion_tokens"] for call in server.calls] == [2_000, 400, 2_000]


def test_umbrelas_scale_ends_at_3() -> None:
    with serve(lambda call: good(4 if number_of(call) else 3)) as server:
        found = ask(server, 2, prompt="umbrela")
    assert found["status"].to_list() == ["ok", "malformed"]


def test_a_retry_counts_as_a_call() -> None:
    with serve(lambda call: (503, error("busy"), {"Retry-After-Ms": "10"})) as server:
        with pytest.warns(match="the budget is spent"):
            found = ask(server, 30, max_calls=7, jobs=2)
        assert server.count == 7
    assert Counter(found["status"])["not_sent"] >= 28


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
