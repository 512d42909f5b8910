"""Streams of server-sent events: the answer that their pieces make, as the vendor returns it where nothing is streamed.

Read are streams of OpenAI's Chat Completions and Responses, Anthropic's Messages, Gemini, and the UI messages of the
Vercel AI SDK.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import Any, NamedTuple

import orjson

from goodgain.files.json_text import NotJSONError, loads

Event = dict[str, Any]

_CHUNK = "chat.completion.chunk"
#: Fields of pieces that are whole in each piece; other texts go on from piece to piece.
_WHOLE_TEXTS = {"role", "id", "type", "name"}
_RESPONSE_ENDS = {"response.completed", "response.incomplete", "response.failed"}
#: The field of an Anthropic block that each type of piece goes on with.
_BLOCK_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_CALL_STATES = {
    "tool-input-available": "input-available",
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-input-error": "output-error",
    "tool-output-denied": "output-denied",
}


class Assembled(NamedTuple):
    """The value that the events make, and whether the stream has its end: without it, calls may be missing."""

    value: Any
    is_whole: bool


def assemble_stream(text: str) -> Assembled | None:
    """Return the answer in the text of a stream; None if it is not one, or of an unknown vendor, or damaged."""
    events = _parse_events(text)
    assembled = assemble_events(events) if events is not None else None
    has_end = text.rstrip()[-20:].replace(" ", "").endswith("data:[DONE]")
    return assembled and assembled._replace(is_whole=assembled.is_whole or has_end)


def assemble_events(events: list[Event]) -> Assembled | None:
    """Return the answer that events make; None if they are not of a known vendor."""
    if any("choices" in event and event.get("object", _CHUNK) == _CHUNK for event in events):
        return _assemble_chat(events)
    types = {event["type"] for event in events if isinstance(event.get("type"), str)}
    if any(name.startswith("response.") for name in types):
        return _assemble_responses(events)
    if "message_start" in types:
        return _assemble_anthropic(events)
    if any("candidates" in event for event in events):
        return _assemble_gemini(events)
    if types & {"start", "start-step"} or types & _CALL_STATES.keys():
        return _assemble_ui_message(events)
    return None


def _parse_events(text: str) -> list[Event] | None:
    """Return the object in each event's data; None if some data is neither an object nor the mark of the end."""
    events: list[Event] = []
    waiting: list[str] = []  # data on several lines, up to the blank line behind it
    for line in [*text.splitlines(), ""]:
        data = line[5:].strip() if line.startswith("data:") else ""
        if data and data != "[DONE]":
            waiting.append(data)
            if len(waiting) > 1:
                continue
        elif not waiting or line.strip():
            continue
        event = _parse_object("\n".join(waiting))
        if event is not None:
            events.append(event)
            waiting = []
        elif not line.strip():
            return None
    return events


def _parse_object(text: str) -> Event | None:
    try:
        value = loads(text)
    except NotJSONError:
        return None
    return value if isinstance(value, dict) else None


class _Pieces(dict[str, Any]):
    """An object whose fields come in pieces: texts go on, lists grow, members of `tool_calls` are told by their index."""

    def add(self, piece: Event) -> None:
        """Add what a piece has."""
        for key, value in piece.items():
            if value is None:
                self.setdefault(key, None)
            elif isinstance(value, str) and key not in _WHOLE_TEXTS:
                kept = self.get(key)
                if not isinstance(kept, _Text):
                    kept = self[key] = _Text()
                kept.append(value)
            elif key == "tool_calls" and isinstance(value, list):
                self._add_members(key, value)
            elif isinstance(value, dict):
                if not isinstance(self.get(key), _Pieces):
                    self[key] = _Pieces()
                self[key].add(value)
            elif isinstance(value, list) and isinstance(self.get(key), list):
                self[key] += value
            elif value != "" or key not in self:
                self[key] = list(value) if isinstance(value, list) else value

    def _add_members(self, key: str, members: list[Any]) -> None:
        if not isinstance(self.get(key), dict):
            self[key] = {}
        for member in members:
            if isinstance(member, dict):
                index = member.get("index")
                place = index if isinstance(index, int) else len(self[key])
                self[key].setdefault(place, _Pieces()).add({k: v for k, v in member.items() if k != "index"})

    def build(self) -> Event:
        """Return the whole object."""
        return {key: _build(value) for key, value in self.items()}


class _Text(list[str]):
    """The pieces of a text."""


def _build(value: Any) -> Any:
    if isinstance(value, _Text):
        return "".join(value)
    if isinstance(value, _Pieces):
        return value.build()
    if isinstance(value, dict):  # members by their index
        return [member.build() for _, member in sorted(value.items())]
    return value


def _name_answers(events: list[Event]) -> list[str]:
    """Return for each chunk what tells its answer from others: its id, or how many answers ended before.

    Groq's agents give each chunk an id of its own, and the last one of each answer the same.
    """
    ids = [str(event.get("id")) for event in events]
    ends = [any(choice.get("finish_reason") for choice in _list_objects(event, "choices")) for event in events]
    counts = Counter(ids)
    if any(counts[name] > 1 and not end for name, end in zip(ids, ends, strict=True)):
        return ids
    ended = accumulate(ends, initial=0)
    return [
        str(number - (number > 0 and not event.get("choices"))) for number, event in zip(ended, events, strict=False)
    ]


def _list_objects(holder: Event, key: str) -> list[Event]:
    """Return the objects in the list under a key."""
    members = holder.get(key)
    return [member for member in members if isinstance(member, dict)] if isinstance(members, list) else []


def _get_object(holder: Event, key: str) -> Event:
    """Return the object under a key; an empty one where there is none."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def _assemble_chat(events: list[Event]) -> Assembled | None:
    """Join the deltas of each answer's first choice; several answers are the messages of one conversation."""
    answers: dict[str, Event] = {}
    for name, event in zip(_name_answers(events), events, strict=True):
        answer = answers.setdefault(name, {"message": _Pieces(), "finish_reason": None, "usage": None})
        answer["model"] = event.get("model") or answer.get("model")
        answer["usage"] = event.get("usage") or answer["usage"]
        for choice in _list_objects(event, "choices"):
            if choice.get("index", 0) == 0:
                answer["message"].add(_get_object(choice, "delta"))
                answer["finish_reason"] = choice.get("finish_reason") or answer["finish_reason"]
    whole = all(answer["finish_reason"] for answer in answers.values())
    for answer in answers.values():
        answer["message"] = {"role": "assistant", "content": None, **answer["message"].build()}
    first = next(iter(answers.values()))
    if len(answers) > 1:
        messages = [
            answer["message"] | ({"usage": answer["usage"]} if answer["usage"] else {}) for answer in answers.values()
        ]
        return Assembled({"model": first["model"], "messages": messages}, whole)
    choice = {"index": 0, "message": first["message"], "finish_reason": first["finish_reason"]}
    value = {"object": "chat.completion", "model": first["model"], "choices": [choice], "usage": first["usage"]}
    return Assembled(value, whole)


def _assemble_responses(events: list[Event]) -> Assembled | None:
    """Take the response at the end; where a stream lacks it, the items that were done."""
    responses: list[Event] = []
    items: list[Any] = []
    begun: Event = {}
    for event in events:
        kind, response = event.get("type"), event.get("response")
        if kind == "response.output_item.done":
            items.append(event.get("item"))
        elif kind in _RESPONSE_ENDS and isinstance(response, dict):
            responses.append(response if response.get("output") else {**response, "output": items})
            items, begun = [], {}
        elif kind == "response.created" and isinstance(response, dict):
            if begun or items:
                responses.append({**begun, "object": "response", "output": items})
            items, begun = [], response
    is_whole = not (begun or items)
    if not is_whole:
        responses.append({**begun, "object": "response", "output": items})
    return Assembled(responses[0] if len(responses) == 1 else responses, is_whole)


def _assemble_anthropic(events: list[Event]) -> Assembled | None:
    """Join the pieces of each block; several answers are the messages of one conversation."""
    messages: list[Event] = []
    blocks: dict[int, _Pieces] = {}
    arguments: dict[int, list[str]] = {}
    ended = 0
    for event in events:
        kind, index, delta = event.get("type"), event.get("index"), _get_object(event, "delta")
        if kind == "message_start" and isinstance(event.get("message"), dict):
            blocks, arguments = {}, {}
            messages.append({**event["message"], "content": (blocks, arguments)})
        elif not messages:
            return None
        elif kind == "content_block_start" and isinstance(index, int) and isinstance(event.get("content_block"), dict):
            blocks[index] = _Pieces()
            blocks[index].add(event["content_block"])
        elif kind == "content_block_delta" and isinstance(index, int) and index in blocks:
            _add_to_block(blocks[index], arguments.setdefault(index, []), delta)
        elif kind == "message_delta":
            messages[-1].update({key: value for key, value in delta.items() if key != "content"})
            if isinstance(event.get("usage"), dict) and isinstance(messages[-1].get("usage"), dict):
                messages[-1]["usage"] = {**messages[-1]["usage"], **event["usage"]}
        elif kind == "message_stop":
            ended += 1
    whole = [{**message, "content": _build_blocks(*message["content"])} for message in messages]
    return Assembled(whole[0] if len(whole) == 1 else {"messages": whole}, ended == len(whole))


def _add_to_block(block: _Pieces, arguments: list[str], delta: Event) -> None:
    kind = str(delta.get("type"))
    if kind == "input_json_delta" and isinstance(delta.get("partial_json"), str):
        arguments.append(delta["partial_json"])
    elif kind in _BLOCK_TEXTS:
        block.add({_BLOCK_TEXTS[kind]: delta.get(_BLOCK_TEXTS[kind])})
    elif kind == "citations_delta":
        block.add({"citations": [delta.get("citation")]})


def _build_blocks(blocks: dict[int, _Pieces], arguments: dict[int, list[str]]) -> list[Event]:
    built = []
    for index, pieces in sorted(blocks.items()):
        block = pieces.build()
        if text := "".join(arguments.get(index, ())):
            parsed = _parse_object(text)
            block["input"] = text if parsed is None else parsed
        built.append(block)
    return built


def _assemble_gemini(events: list[Event]) -> Assembled | None:
    """Join the parts of the first candidate; of grounding, each chunk and query once."""
    parts: list[Any] = []
    whole: Event = {"candidates": []}
    candidate: Event = {}
    grounding: dict[str, list[Any]] = {}
    seen: set[tuple[str, bytes]] = set()
    for event in events:
        whole.update({key: value for key, value in event.items() if key != "candidates"})
        first = next(iter(_list_objects(event, "candidates")), {})
        found = _get_object(first, "content").get("parts")
        parts += found if isinstance(found, list) else []
        for key, values in _get_object(first, "groundingMetadata").items():
            for value in values if isinstance(values, list) else ():
                if (mark := (key, orjson.dumps(value))) not in seen:
                    seen.add(mark)
                    grounding.setdefault(key, []).append(value)
        candidate.update({key: value for key, value in first.items() if key not in ("content", "groundingMetadata")})
    candidate["content"] = {"role": "model", "parts": parts}
    if grounding:
        candidate["groundingMetadata"] = grounding
    return Assembled({**whole, "candidates": [candidate]}, candidate.get("finishReason") is not None)


def _assemble_ui_message(events: list[Event]) -> Assembled | None:
    """Make the parts of a UI message: steps, calls with what became of them, and sources."""
    message: Event = {"id": "", "role": "assistant", "parts": []}
    calls: dict[str, Event] = {}
    for event in events:
        kind = str(event.get("type"))
        if kind == "start":
            message["id"] = event.get("messageId") or message["id"]
        elif kind == "start-step":
            message["parts"].append({"type": "step-start"})
        elif kind in ("source-url", "source-document", "file"):
            message["parts"].append(event)
        elif kind == "text-delta":
            message["parts"].append({"type": "text", "text": str(event.get("delta", event.get("textDelta", "")))})
        elif kind.startswith("tool-"):
            _add_to_call(message["parts"], calls, event, kind)
    return Assembled([message], any(event.get("type") == "finish" for event in events))


def _add_to_call(parts: list[Event], calls: dict[str, Event], event: Event, kind: str) -> None:
    call_id, name = str(event.get("toolCallId")), event.get("toolName")
    if call_id not in calls:
        named = {"type": "dynamic-tool", "toolName": name} if event.get("dynamic") else {"type": f"tool-{name}"}
        calls[call_id] = {**named, "toolCallId": call_id, "state": "input-streaming"}
        parts.append(calls[call_id])
    kept = ("input", "output", "errorText", "preliminary", "providerExecuted")
    calls[call_id].update({key: event[key] for key in kept if key in event})
    calls[call_id]["state"] = _CALL_STATES.get(kind, calls[call_id]["state"])
    if kind == "tool-output-available" and not event.get("preliminary"):
        calls[call_id].pop("preliminary", None)
