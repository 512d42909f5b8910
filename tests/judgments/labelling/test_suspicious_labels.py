"""Grades that look as if the model had not read the documents get a notice: the placeholder, extremes, or one grade."""

from __future__ import annotations

from typing import Any

import pytest

from goodgain.judgments.labelling.prompt_requests import read_prompt
from tests.judgments.labelling.endpoint import Call, good, serve
from tests.judgments.labelling.test_calls import ask, number_of
from tests.support.notices import collect_notices

PLACEHOLDER = "one short sentence"


def find_suspicions(grades: list[int | None], reasons: list[str] | None = None, **options: Any) -> list[str]:
    """Label a document for each grade, and return the notices on suspicious labels."""
    said = reasons or ["because"] * len(grades)

    def script(call: Call) -> Any:
        return good(grades[number_of(call)], said[number_of(call)])

    with serve(script) as server, collect_notices() as notices:
        ask(server, len(grades), **options)
    return [str(notice) for notice in notices if notice.kind == "suspicious_labels"]


@pytest.mark.parametrize(
    ("grades", "suspicion"),
    [
        ([3] * 10, "10 of 10 grades are 3"),
        ([3] * 19 + [1], "19 of 20 grades are 3"),
        ([3] * 18 + [1, 2], None),  # 90 % and not more
        ([3] * 9, None),  # too few to say
        ([0, 4] * 5, "all 10 grades are 0 or 4, none is between"),
        ([0, 4] * 5 + [2], None),
        ([0, 3] * 5, None),
        ([0] * 10 + [None] * 10, "10 of 10 grades are 0"),  # no grade is not a grade
    ],
)
def test_a_distribution_that_no_documents_have_gets_a_notice(grades: list[int | None], suspicion: str | None) -> None:
    suspicions = find_suspicions(grades)
    assert len(suspicions) == (suspicion is not None)
    assert all(
        f"judge@good-gain-a404ae/t0/texts/8000: {suspicion}. Read some of the reasons" in text for text in suspicions
    )


def test_the_extremes_are_those_of_the_prompt() -> None:
    assert "all 10 grades are 0 or 3" in find_suspicions([0, 3] * 5, prompt="umbrela")[0]


@pytest.mark.parametrize(("repeated", "is_told"), [(1, False), (2, True), (19, True)])
def test_reasons_that_repeat_the_placeholder_get_a_notice(repeated: int, is_told: bool) -> None:
    reasons = [PLACEHOLDER] * repeated + [f"it names {k}" for k in range(19 - repeated)]
    suspicions = find_suspicions([k % 5 for k in range(19)], reasons)
    assert len(suspicions) == is_told
    assert all(f"{repeated} of 19 reasons repeat the placeholder of the prompt" in text for text in suspicions)


def test_the_built_in_prompts_have_a_placeholder() -> None:
    assert [read_prompt(name).placeholders for name in ("good-gain", "good-gain-1", "umbrela")] == [{PLACEHOLDER}] * 3
