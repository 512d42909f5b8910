"""Reads and checks values in a log: texts, ids, numbers, times, and the outcomes of tasks.

The `expect_...` functions raise an error that names the place of an unexpected value.
"""

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from goodgain.errors import InputError
from goodgain.options import spell
from goodgain.schema import COMPLETED

#: The fields that may hold a query id, in order of preference: those of metadata, and those of a record.
OF_METADATA = ("query_id", "question_id", "qid")
QUERY_IDS = (*OF_METADATA, "task_id")
#: The other fields that may hold the id of a record, of a conversation, and of a part of a log that may be a query.
RECORD_IDS = ("sample_id", "instance_id", "example_id", "problem_id")
CONVERSATION_IDS = ("session_id", "sessionId", "conversation_id", "thread_id", "chat_id")
PART_IDS = ("trace_id", "traceId", "message_id", "messageId", "run_id", "runId")
#: The fields that may name the run of a query, in order of preference. In a step or call, `epoch` and `attempt` may be a time
#: and a retry count.
OF_RUNS = ("repeat", "trial", "trial_id")
REPEATS = (*OF_RUNS, "epoch", "attempt")
#: Prefixes of the ids of model responses, which are not query ids.
_ANSWER_IDS = ("cmpl-", "chatcmpl-", "gen-", "resp_", "msg_")
#: Grades in words -> numbers. The letters are those of Inspect.
_WORDS = {"c": 1.0, "correct": 1.0, "true": 1.0, "yes": 1.0, "pass": 1.0, "p": 0.5, "partial": 0.5} | dict.fromkeys(
    ("i", "n", "incorrect", "false", "no", "fail"), 0.0
)
#: Lists of judgments, each an object with a name and a value: Langfuse, LangSmith, MLflow, Phoenix.
_LISTS = ("scores", "feedback", "assessments", "annotations")
_NAMES, _VALUES = ("assessment_name", "name", "key"), ("value", "score", "feedback", "result")

#: The remedy for a value that a format does not allow.
CORRECT_FILE = "correct or remove the file"


def format_place(at: str) -> str:
    """Return the place `at` for an error message. If `at` ends in `, at `, this ending is removed."""
    return at.removesuffix(", at ")


def describe(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {str(value)[:40]}"
        case str():
            text = f"the text {value[:60]!r}"
            return f"{text}..." if len(value) > 60 else text
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"an object with {', '.join(list(map(str, value))[:6]) or 'nothing'}"[:160]
        case _:
            return type(value).__name__


def unexpected_value(at: str, expected: str, value: Any, remedy: str = "") -> InputError:
    """Return the error to raise for a value that the format does not allow."""
    if not remedy:
        options = f"name its format with {spell('format')}, or leave out such traces with {spell('errors', 'skip')}"
        remedy = f"{CORRECT_FILE}, {options}"
    return InputError(f"{format_place(at)}: expected {expected}, found {describe(value)}; {remedy}")


def expect_list(value: Any, at: str) -> list[Any]:
    """Return a list unchanged, and an empty list for null. Raise InputError for any other value."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise unexpected_value(at, "a list", value)
    return value


def expect_object(value: Any, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise unexpected_value(at, "an object", value)
    return value


def expect_text(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise unexpected_value(at, "text", value)
    return value


def expect_optional_text(value: Any, at: str) -> str | None:
    return None if value is None else expect_text(value, at)


def objects_in(members: Any) -> list[dict[str, Any]]:
    if not isinstance(members, list):
        return []
    return [member for member in members if isinstance(member, dict)]


def object_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_word(value: Any, default: str = "") -> str:
    """Return a text unchanged, `default` for None, and a description such as `<a list of 3>` for any other value."""
    if value is None:
        return default
    return value if isinstance(value, str) else f"<{describe(value)}>"


def expect_id(value: Any, at: str) -> str | None:
    """Return a text or whole number as an id; None for null and empty text. Raise InputError for any other value."""
    if value is None or isinstance(value, str):
        return value or None
    text = id_or_none(value)
    if text is None:
        raise unexpected_value(at, "an id (text or a whole number)", value)
    return text


def as_number(value: Any) -> float | None:
    """Return a finite number, also if it is written as text; None for any other value."""
    if not isinstance(value, (float, int, str)) or type(value) is bool:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def parse_time(text: str | None) -> datetime | None:
    """Parse an ISO 8601 time; return None for other text. The default time zone is UTC."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def id_or_none(value: Any) -> str | None:
    """Return a text or whole number as an id; None for empty text and for other values."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value) or None


def find_id(record: Any, names: Iterable[str] = QUERY_IDS) -> str | None:
    """Return the first id that a record has in one of the fields `names`, or None."""
    if not isinstance(record, dict):
        return None
    ids = (id_or_none(record[name]) for name in names if name in record)
    return next(filter(None, ids), None)


def find_record_id(record: Any) -> str | None:
    """Return the value of a record's field `id`; None if the field holds no id, or the id looks like that of a model response."""
    record_id = find_id(record, ("id",))
    if record_id is None or record_id.startswith(_ANSWER_IDS):
        return None
    return record_id


def find_outcomes(record: Any) -> dict[str, float]:
    """Return the scores, rewards and feedback in a trace's record as a dict by name. Omit values other than numbers and grades.

    >>> find_outcomes({"scores": {"match": {"value": "C"}, "judge": {"value": {"style": 0.5}}}})
    {'match': 1.0, 'style': 0.5}
    >>> find_outcomes({"reward": 0, "feedback": [{"key": "correctness", "score": True}]})
    {'correctness': 1.0, 'reward': 0.0}
    """
    if not isinstance(record, dict):
        return {}
    outcomes = {name: _read_number(value) for name, value in _list_judgments(record)}
    broke_off = record.get("status") in ("incomplete", "failed") or record.get("error")
    if broke_off or record.get("termination_reason") == "infrastructure_error":
        outcomes[COMPLETED] = 0.0
    return {name: number for name, number in outcomes.items() if name and number is not None}


def _list_judgments(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each judgment, at the places of all vendors."""
    for key in _LISTS:
        for judgment in objects_in(record.get(key)):
            name = next((judgment[key] for key in _NAMES if isinstance(judgment.get(key), str)), "")
            yield name, next((judgment[key] for key in _VALUES if judgment.get(key) is not None), None)

    for key in ("scores", "feedback_stats"):  # Inspect's scorers, LangSmith's means
        for name, judgment in object_or_empty(record.get(key)).items():
            value = judgment
            if isinstance(judgment, dict):
                value = judgment.get("value", judgment.get("avg"))
            yield from value.items() if isinstance(value, dict) else [(name, value)]

    for key in ("reward_info", "verifier_result", "judge_result"):  # tau2-bench, Harbor, BrowseComp-Plus
        verdict = object_or_empty(record.get(key))
        rewards = object_or_empty(verdict.get("rewards", verdict))
        yield from ((name, rewards[name]) for name in ("reward", "correct") if name in rewards)

    yield from ((name, record[name]) for name in ("reward", "correct", "is_correct", "solved") if name in record)
    for key, value in record.items():  # Phoenix: evaluations beside the attributes of a span
        if isinstance(key, str) and key.startswith("eval.") and key.endswith(".score"):
            yield key.removeprefix("eval.").removesuffix(".score"), value


def _read_number(value: Any) -> float | None:
    if isinstance(value, dict):  # MLflow's feedback, Phoenix's result
        value = next((value[key] for key in ("value", "score") if value.get(key) is not None), None)
    if isinstance(value, str):
        value = _WORDS.get(value.strip().lower(), value)
    return float(value) if isinstance(value, bool) else as_number(value)
