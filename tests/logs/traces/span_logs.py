"""The story as tools for tracing write it down: Langfuse, LangSmith, MLflow."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

from .story import Call, Json, Story, Writer, asked


def _events(story: Story) -> Iterator[tuple[int, int, str, str | None, Call | None]]:
    """What happens: turn, number, kind (root, model, tool), the number of the root above, and the call."""
    number = 0
    for index, turn in enumerate(story.turns):
        number += 1
        root = number
        yield index, number, "root", None, None

        for step in turn.steps:
            number += 1
            yield index, number, "model", str(root), None
            for call in step:
                number += 1
                yield index, number, "tool", str(root), call

        number += 1
        yield index, number, "model", str(root), None


def _time(number: int) -> str:
    return f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}.000000Z"


def langfuse(story: Story) -> str:
    traces = [
        {"id": f"t{index}", "sessionId": "story", "metadata": {}, "input": turn.user, "observations": []}
        for index, turn in enumerate(story.turns)
    ]
    kinds = {"root": "AGENT", "model": "GENERATION", "tool": "TOOL"}

    for index, number, kind, parent, call in _events(story):
        found: Json = {
            "id": f"o{number}", "traceId": f"t{index}", "type": kinds[kind], "name": call.tool if call else kind,
            "startTime": _time(number), "parentObservationId": f"o{parent}" if parent else None,
            "level": "ERROR" if call and call.failed else "DEFAULT", "input": json.dumps(asked(call)) if call else None,
        }  # fmt: skip
        if call and call.answered and not call.failed:
            found["output"] = json.dumps(call.output)
        if kind == "root":
            found["output"] = {"answer": story.turns[index].answer}
        traces[index]["observations"].append(found)  # type: ignore[attr-defined]

    return json.dumps({"id": "story", "traces": traces})


def openai_agents_traces(story: Story) -> str:
    traces = [{"object": "trace", "id": f"trace_{k}", "group_id": "story"} for k in range(len(story.turns))]
    lines = [json.dumps(trace) for trace in traces]
    kinds = {"root": "agent", "model": "generation", "tool": "function"}
    last = {index: number for index, number, *_ in _events(story)}

    for index, number, kind, parent, call in _events(story):
        data: Json = {"type": kinds[kind], "name": call.tool if call else kind}
        if number == last[index]:
            data["output"] = [{"role": "assistant", "content": story.turns[index].answer}]
        if call:
            data["input"] = json.dumps(asked(call))
        if call and call.answered:
            data["output"] = call.text
        span = {
            "object": "trace.span", "id": f"span_{number}", "trace_id": f"trace_{index}", "started_at": _time(number),
            "parent_id": f"span_{parent}" if parent else None, "span_data": data,
            "error": {"message": call.text} if call and call.failed else None,
        }  # fmt: skip
        lines.append(json.dumps(span))

    return "\n".join(reversed(lines)) + "\n"  # spans are written when they end


def _dotted(number: int) -> str:
    return re.sub("[-:.]", "", _time(number)) + f"r{number}"


def langsmith(story: Story) -> str:
    lines = []
    kinds = {"root": "chain", "model": "llm", "tool": "tool"}
    for index, number, kind, parent, call in _events(story):
        above = f"{_dotted(int(parent))}." if parent else ""
        run: Json = {
            "id": f"r{number}", "trace_id": f"r{parent or number}", "run_type": kinds[kind], "name": call.tool if call else kind,
            "start_time": _time(number), "dotted_order": above + _dotted(number),
            "parent_run_id": f"r{parent}" if parent else None, "inputs": asked(call) if call else {},
            "extra": {"metadata": {"thread_id": "story"}},
        }  # fmt: skip
        if kind == "root":
            run["outputs"] = {"messages": [{"type": "ai", "content": story.turns[index].answer}]}
        if call and call.failed:
            run |= {"error": call.text, "outputs": {}}
        elif call and call.answered:
            run["outputs"] = {
                "output": {"content": call.text, "type": "tool", "tool_call_id": call.id, "status": "success"}
            }
        lines.append(json.dumps(run))

    return "\n".join(reversed(lines)) + "\n"  # runs are written when they end


def mlflow(story: Story) -> str:
    traces: list[Json] = [
        {
            "info": {"trace_id": f"tr-{index}", "trace_metadata": {"mlflow.trace.session": "story"}},
            "data": {"spans": []},
        }
        for index in range(len(story.turns))
    ]
    kinds = {"root": "AGENT", "model": "CHAT_MODEL", "tool": "TOOL"}

    def span_id(number: int | str) -> str:
        return base64.b64encode(int(number).to_bytes(8, "big")).decode()

    for index, number, kind, parent, call in _events(story):
        attributes = {"mlflow.spanType": json.dumps(kinds[kind])}
        if call:
            attributes["mlflow.spanInputs"] = json.dumps(asked(call))
        if call and call.answered and not call.failed:
            attributes["mlflow.spanOutputs"] = json.dumps(call.output)
        if kind == "root":
            attributes["mlflow.spanOutputs"] = json.dumps(story.turns[index].answer)
        span = {
            "trace_id": base64.b64encode((index + 1).to_bytes(16, "big")).decode(), "span_id": span_id(number),
            "parent_span_id": span_id(parent) if parent else None, "name": call.tool if call else kind,
            "start_time_unix_nano": 1_767_225_600_000_000_000 + number * 1_000_000, "attributes": attributes,
            "status": {"code": "STATUS_CODE_ERROR" if call and call.failed else "STATUS_CODE_OK"},
        }  # fmt: skip
        traces[index]["data"]["spans"].append(span)
    return json.dumps(traces)


#: For each format its writer and the name of its file.
SPAN_WRITERS: dict[str, tuple[Writer, str]] = {
    "langfuse": (langfuse, "story.json"),
    "openai_agents_traces": (openai_agents_traces, "story.jsonl"),
    "langsmith": (langsmith, "story.jsonl"),
    "mlflow": (mlflow, "story.json"),
}
