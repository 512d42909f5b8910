"""Answers of a model: a grade, or the reason why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["FAILED", "GRADES", "LARGEST_BODY", "OK", "SCHEMA", "Answer", "read_completion", "read_content"]

#: The grades that a model may give.
GRADES = (0, 1, 2, 3, 4)

#: What an endpoint is asked to make the answer follow.
SCHEMA: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "grade",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "grade": {"type": ["integer", "null"], "enum": [*GRADES, None]},
                "reason": {"type": "string"},
            },
            "required": ["grade", "reason"],
            "additionalProperties": False,
        },
    },
}

#: The model gave a grade; or, by `null`, said that there is none.
OK, NO_GRADE = "ok", "no_grade"
#: Words that are kept of an answer that could not be read.
_KEPT = 4_000
_REASON = 1_000
#: An answer of more bytes is not read to its end.
LARGEST_BODY = 2**20
#: A count of tokens from here on is not a count: the journal's numbers have 64 bits.
_MOST_TOKENS = 2**53


class Answer(NamedTuple):
    """What came of asking for one grade.

    Attributes:
        grade: 0..4, or None.
        reason: the model's own, or what went wrong.
        status: `ok`; `no_grade` (the model's null); or why there is no grade: `refused`, `malformed`, `too_long`, `timeout`,
            `connection`, `http_429` ...
        raw: the content as it came, at most 4,000 characters of it.
        input_tokens: as the endpoint says, or None.
        output_tokens: the same.
    """

    grade: int | None
    reason: str | None
    status: str
    raw: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def failed(self) -> bool:
        """Whether there is no answer of the model that counts."""
        return self.status not in (OK, NO_GRADE)


#: The statuses that are not failures, for queries on the journal.
FAILED = f"status NOT IN ('{OK}', '{NO_GRADE}')"


def read_completion(body: Any, hide: Callable[[str], str] = str) -> Answer:
    """Return the answer in the body of a chat completion, as a call or a batch file has it.

    Args:
        body: the body.
        hide: takes the key out of a text, before the text is cut.
    """
    try:
        choice = body["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        content, refusal = message.get("content"), message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError):
        return Answer(None, "the answer is not a chat completion", "malformed", _keep(body, hide))
    usage = body.get("usage") if isinstance(body.get("usage"), dict) else {}
    tokens = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    if refusal:
        answer = Answer(None, "the model refused", "refused", _keep(refusal, hide))
    elif finish == "content_filter":
        answer = Answer(None, "the endpoint's filter stopped the answer", "refused", _keep(content, hide))
    elif finish == "length":
        answer = Answer(
            None, "the answer was cut at the largest number of output tokens", "too_long", _keep(content, hide)
        )
    else:
        answer = read_content(content, hide)
    return answer._replace(input_tokens=tokens[0], output_tokens=tokens[1])


def read_content(content: Any, hide: Callable[[str], str] = str) -> Answer:
    """Return the answer in what a model wrote: the whole of it must be one object with a grade and a reason.

    A number within a sentence is not a grade, and an answer with another key than these two is not read.

    >>> read_content('{"grade": 3, "reason": "names the date"}')[:3]
    (3, 'names the date', 'ok')
    >>> read_content("I cannot help with events of 2013.")[:3]
    (None, 'the answer is not one JSON object', 'malformed')
    """
    if not isinstance(content, str):
        return Answer(None, "the answer has no text", "malformed", _keep(content, hide))
    raw = _keep(content, hide)
    try:
        found = json.loads(content, object_pairs_hook=_refuse_twice, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return Answer(None, "the answer is not one JSON object", "malformed", raw)
    if not isinstance(found, dict) or "grade" not in found or not found.keys() <= {"grade", "reason"}:
        return Answer(None, "the answer is not an object with grade and reason alone", "malformed", raw)
    grade, reason = found["grade"], found.get("reason")
    if reason is not None and not isinstance(reason, str):
        return Answer(None, "the reason is not a text", "malformed", raw)
    reason = _replace_halves(hide(reason)[:_REASON]) if reason else None
    if grade is None:
        return Answer(None, reason, NO_GRADE, raw)
    if isinstance(grade, bool) or not isinstance(grade, int) or grade not in GRADES:
        return Answer(None, "the grade is not one of 0, 1, 2, 3, 4 or null", "malformed", raw)
    return Answer(grade, reason, OK, raw)


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(name: str) -> None:
    raise ValueError(name)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS else None


def _keep(value: Any, hide: Callable[[str], str]) -> str | None:
    text = value if isinstance(value, str) else None if value is None else json.dumps(value, default=str)
    return None if text is None else _replace_halves(hide(text)[:_KEPT])


def _replace_halves(text: str) -> str:
    """Return a text with `?` for halves of surrogate pairs, which JSON can name and no file can hold."""
    return text.encode("utf-8", "replace").decode()
