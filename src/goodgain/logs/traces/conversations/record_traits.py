"""What a record of a log says about itself, for the format `shape`: its question, its lists, whether it is a step or event."""

import re
from collections.abc import Iterable
from typing import Any

from goodgain.logs.traces.conversations.calls_by_shape import KINDS, Found, Place
from goodgain.logs.traces.tool_outputs.result_objects import normalise_key

#: Fields with the question of a record.
QUESTIONS = ("question", "query", "task", "prompt", "instruction", "problem", "user_query", "input", "topic")
#: Fields and types of a record that is a step or an event.
_OF_PARTS = re.compile("(step|turn|iteration|iter|round|hop)(number|num|no|id|index|idx)?|observation|thought")
_SPEAKER = "ai|agent|assistant|model|llm|user|human|tool|function|action"
_PART = re.compile(
    rf"(on)?({_SPEAKER})?(message|call|step|turn|event|action|observation|result|response|output|use|start|end)s?|{_SPEAKER}"
)


def find_question(record: Any, names: Iterable[str] = QUESTIONS) -> str:
    texts = (record.get(name) for name in names) if isinstance(record, dict) else ()
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def has_list(event: Found, place: Place) -> bool:
    return bool(event.traces) or any(isinstance(key, int) for key in event.place[len(place) :])


def is_part(record: Any) -> bool:
    kinds = (normalise_key(kind) for name in KINDS if isinstance(kind := record.get(name), str))
    return any(map(_PART.fullmatch, kinds)) or any(_OF_PARTS.fullmatch(normalise_key(name)) for name in record)
