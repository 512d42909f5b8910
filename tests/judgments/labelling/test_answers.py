"""What a model writes is a grade only if the whole of it is one object with a grade and a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodgain.judgments.labelling.answers_and_journal import read_completion, read_content
from tests.judgments.labelling.endpoint import completion, good

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("grade", range(5))
def test_an_object_with_a_grade_is_read(grade: int) -> None:
    answer = read_content(f' {{"reason": "why", "grade": {grade}}}\n')
    assert (answer.grade, answer.reason, answer.status) == (grade, "why", "ok")


def test_null_is_no_grade_and_no_failure() -> None:
    answer = read_content('{"grade": null, "reason": "not readable"}')
    assert (answer.grade, answer.status, answer.failed) == (None, "no_grade", False)


def test_half_a_character_in_a_reason_does_not_end_the_job() -> None:
    """JSON can name a half of a surrogate pair, which the journal cannot hold: one answer ended all calls."""
    answer = read_content('{"grade": 3, "reason": "a\\ud800b"}')
    assert (answer.grade, answer.reason, answer.status) == (3, "a?b", "ok")


@pytest.mark.parametrize("tokens", [2**53, 2**63, 10**30, -1, 1.5, True, "7"])
def test_a_number_that_is_no_count_of_tokens_is_not_one(tokens: Any) -> None:
    body = good()
    body["usage"]["prompt_tokens"] = tokens
    answer = read_completion(body)
    assert (answer.grade, answer.input_tokens, answer.output_tokens) == (3, None, 10)


@pytest.mark.parametrize("content", CASES["test_anything_else_is_malformed_and_no_grade"])
def test_anything_else_is_malformed_and_no_grade(content: Any) -> None:
    answer = read_content(content)
    assert (answer.grade, answer.status, answer.failed) == (None, "malformed", True)


@given(st.text() | st.integers().map(str) | st.text().map(lambda text: f"{text} 3 {text}"))
def test_no_number_comes_out_of_prose(content: str) -> None:
    """Random text is an object with a grade by chance too rarely to be met here."""
    assert read_content(content).grade is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (completion(None, refusal="I will not"), "refused"),
        (completion('{"grade": 4, "reason": "x"}', finish="content_filter"), "refused"),
        (completion('{"grade": 4, "reason": "x"}', finish="length"), "too_long"),
        ({"choices": []}, "malformed"),
        ({"choices": [{"message": None}]}, "malformed"),
        ([], "malformed"),
        (None, "malformed"),
        ({"error": "no"}, "malformed"),
    ],
)
def test_a_completion_without_an_answer_has_a_status_that_says_why(body: Any, status: str) -> None:
    answer = read_completion(body)
    assert (answer.grade, answer.status) == (None, status)


def test_the_tokens_are_those_of_the_endpoint() -> None:
    answer = read_completion(good(2))
    assert (answer.grade, answer.input_tokens, answer.output_tokens) == (2, 100, 10)
    assert read_completion(completion(json.dumps({"grade": 2}), usage=False)).input_tokens is None
