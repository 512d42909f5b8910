"""DSPy ReAct: predictions with a `trajectory` of numbered keys (`tool_name_0`, `tool_args_0`, `observation_0`).

Each number is a step. In a list of texts that a search returned, each text is a result.

Lost: Costs. DSPy records no time and no tokens in a trajectory.
Query id: `query_id`, `question_id`, `qid` or `task_id`, else `id`.
Record: Write the inputs beside the prediction: `{"question": ..., **prediction.toDict()}`.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.record_traits import find_question
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered
from goodgain.logs.traces.expected_values import expect_object, expect_text, find_record_id, object_or_empty

_TOOL = re.compile(r"tool_name_(\d{1,6})")
#: The tool that ends a trajectory.
_FINISH = "finish"


def sniff(head: FileHead) -> bool:
    return any("tool_name_0" in object_or_empty(record.get("trajectory")) for record in head.objects)


def read(source: Source) -> Iterator[Trace]:
    return source.traces(partial(_read_prediction, source), is_one=lambda value: False)


def _read_prediction(source: Source, value: Any, at: str) -> Trace:
    """Read a prediction of ReAct. Each numbered tool in `trajectory` is a step; the tool that ends the loop is not a call."""
    record = expect_object(value, at)
    place = f"{at}/trajectory"
    trajectory = expect_object(record.get("trajectory"), place)
    reader = Conversation(source, record)
    reader.user(find_question(record))
    reader.report_unread("a prediction", record, at, ("trajectory",))

    for number in sorted(int(match[1]) for match in map(_TOOL.fullmatch, trajectory) if match):
        reader.step()
        tool = expect_text(trajectory[f"tool_name_{number}"], f"{place}/tool_name_{number}")
        if tool == _FINISH:
            continue
        observed = mark_unanswered(trajectory.get(f"observation_{number}"))
        call = ToolCall(tool, f"{place}/tool_name_{number}", arguments=trajectory.get(f"tool_args_{number}"))
        call.output = observed
        call.spare = _read_passages(observed)
        reader.call(call)

    reader.say(record.get("answer"))
    return reader.trace(at, query_id=find_record_id(record))


def _read_passages(observed: Any) -> Any:
    """Return the texts of a list as results, for outputs that cannot be read in another way."""
    if not isinstance(observed, list) or not all(isinstance(text, str) and text for text in observed):
        return UNANSWERED
    return [{"snippet": text} for text in observed]
