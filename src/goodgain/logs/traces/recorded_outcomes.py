"""What a log records about the outcome of a task: scores, rewards and feedback, as numbers by name."""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.expected_values import as_number
from goodgain.schema import COMPLETED

#: Words of graders -> their number; the letters are those of Inspect.
_WORDS = {"c": 1.0, "correct": 1.0, "true": 1.0, "yes": 1.0, "pass": 1.0, "p": 0.5, "partial": 0.5} | dict.fromkeys(
    ("i", "n", "incorrect", "false", "no", "fail"), 0.0
)
#: Lists of judgments, each an object with a name and a value: Langfuse, LangSmith, MLflow, Phoenix.
_LISTS = ("scores", "feedback", "assessments", "annotations")
#: Fields of such an object.
_NAMES, _VALUES = ("assessment_name", "name", "key"), ("value", "score", "feedback", "result")
#: Values of fields that say that a trace broke off; an `error` does too.
_ENDS = (("status", "incomplete"), ("status", "failed"), ("termination_reason", "infrastructure_error"))


def find_outcomes(record: Any) -> dict[str, float]:
    """Return the outcomes in the object of a trace, by name; what is not a number or a grader's word is left out.

    >>> find_outcomes({"scores": {"match": {"value": "C"}, "judge": {"value": {"style": 0.5}}}})
    {'match': 1.0, 'style': 0.5}
    >>> find_outcomes({"reward": 0, "feedback": [{"key": "correctness", "score": True}]})
    {'correctness': 1.0, 'reward': 0.0}
    """
    if not isinstance(record, dict):
        return {}
    found = {name: _read_number(value) for name, value in _iterate(record)}
    if record.get("error") or any(record.get(key) == value for key, value in _ENDS):
        found[COMPLETED] = 0.0
    return {name: number for name, number in found.items() if name and number is not None}


def _iterate(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in _LISTS:
        held = record.get(key)
        for one in held if isinstance(held, list) else []:
            if isinstance(one, dict):
                name = next((one[key] for key in _NAMES if isinstance(one.get(key), str)), "")
                yield name, next((one[key] for key in _VALUES if one.get(key) is not None), None)
    for key in ("scores", "feedback_stats"):  # Inspect's scorers, LangSmith's means
        held = record.get(key)
        for name, one in held.items() if isinstance(held, dict) else []:
            value = one.get("value", one.get("avg")) if isinstance(one, dict) else one
            yield from value.items() if isinstance(value, dict) else [(name, value)]
    for key in ("reward_info", "verifier_result", "judge_result"):  # tau2-bench, Harbor, BrowseComp-Plus
        held = record.get(key)
        held = held.get("rewards", held) if isinstance(held, dict) else {}
        yield from ((name, held[name]) for name in ("reward", "correct") if isinstance(held, dict) and name in held)
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
