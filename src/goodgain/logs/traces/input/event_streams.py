"""Assembles a stream of server-sent events into the response that the vendor returns without streaming.

The streams are those of OpenAI's Chat Completions and Responses, Anthropic's Messages, Gemini, the UI messages of the
Vercel AI SDK, and deer-flow.
"""

from collections import Counter
from typing import Any

import orjson

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.expected_values import object_or_empty, objects_in

Event = dict[str, Any]

_CHUNK = "chat.completion.chunk"
#: Fields that each piece has in full; other texts continue from piece to piece.
_WHOLE_TEXTS = {"role", "id", "type", "name"}
_RESPONSE_ENDS = {"response.completed", "response.incomplete", "response.failed"}
#: The field of an Anthropic block that each type of piece continues.
_BLOCK_TEXTS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
_CALL_STATES = {
    "tool-input-available": "input-available",
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-input-error": "output-error",
    "tool-output-denied": "output-denied",
}
_CALL_FIELDS = ("input", "output", "errorText", "preliminary", "providerExecuted")

#: The response in a stream, and whether the stream is complete. An incomplete stream may lack calls.
Assembled = tuple[Any, bool]


def assemble_stream(text: str) -> Assembled | None:
    """Assemble the response from the text of a stream; None if the vendor is unknown or the text is damaged."""
    events = _parse_events(text)
    assembled = assemble_events(events) if events is not None else None
    has_end = text.rstrip()[-20:].replace(" ", "").endswith("data:[DONE]")
    return assembled and (assembled[0], assembled[1] or has_end)


def assemble_events(events: list[Event]) -> Assembled | None:
    """Return the response in the events of a stream, and whether the stream is complete.

    Return None if the vendor is unknown, or the events are damaged or nest too deep.
    """
    try:
        orjson.dumps(events)
    except TypeError:  # nested over 254 deep, and the functions below are recursive
        return None
    if any("choices" in event and event.get("object", _CHUNK) == _CHUNK for event in events):
        return _assemble_chat(events)
    types = {event["type"] for event in events if isinstance(event.get("type"), str)}
    if any(name.startswith("response.") for name in types):
        return _assemble_responses(events)
    if "message_start" in types:
        return _assemble_anthropic(events)
    if any("thread_id" in event and "agent" in event for event in events):
        return _assemble_deer_flow(events)
    if any("candidates" in event for event in events):
        return _assemble_gemini(events)
    if types & {"start", "start-step"} or types & _CALL_STATES.keys():
        return _assemble_ui_message(events)
    return None


def _parse_events(text: str) -> list[Event] | None:
    """Return the JSON objects in the data of the events; None if the data of an event is neither an object nor `[DONE]`."""
    events: list[Event] = []
    waiting: list[str] = []  # data on several lines, up to a blank line
    for line in [*text.splitlines(), ""]:
        data = ""
        if line.startswith("data:"):
            data = line.removeprefix("data:").strip()
        elif line.startswith('{"'):
            data = line

        if data and data != "[DONE]":
            waiting.append(data)
            if len(waiting) > 1:
                continue
        elif not waiting or line.strip():
            continue

        event = parse_if_json("\n".join(waiting))
        if isinstance(event, dict):
            events.append(event)
            waiting = []
        elif not line.strip():
            return None
    return events


def _join_pieces(pieces: list[Event]) -> Event:
    """Merge the pieces of one object: the values that the pieces have under the same key are joined."""
    fields: dict[str, list[Any]] = {}
    for piece in pieces:
        for key, value in piece.items():
            fields.setdefault(key, []).append(value)
    return {key: _join_values(key, values) for key, values in fields.items()}


def _join_values(key: str, values: list[Any]) -> Any:
    """Join the values of one key from several pieces. Concatenate texts and lists, but join members of `tool_calls` by index."""
    values = [value for value in values if value is not None]
    kinds = set(map(type, values))
    if key == "tool_calls" and kinds == {list}:
        return _join_calls([piece for value in values for piece in value if isinstance(piece, dict)])
    if kinds == {str}:
        return next(filter(None, reversed(values)), "") if key in _WHOLE_TEXTS else "".join(values)
    if kinds == {dict}:
        return _join_pieces(values)
    if kinds == {list}:
        return [member for value in values for member in value]
    return values[-1] if values else None


def _join_calls(pieces: list[Event]) -> list[Event]:
    """Join the pieces of each call. Pieces of one call have one index; a piece without an index is a call."""
    pieces_of_calls: dict[int, list[Event]] = {}
    for piece in pieces:
        index = piece.get("index")
        place = index if isinstance(index, int) else len(pieces_of_calls)
        fields = {name: field for name, field in piece.items() if name != "index"}
        pieces_of_calls.setdefault(place, []).append(fields)
    return [_join_pieces(pieces_of_call) for _, pieces_of_call in sorted(pieces_of_calls.items())]


def _name_answers(events: list[Event]) -> list[str]:
    """Return for each event the name of its response: its id or, if each chunk has its own id, the number of ended responses."""
    ids = [str(event.get("id")) for event in events]
    are_ends = [_is_end(event) for event in events]
    # Groq's agents give each chunk its own id, but the last chunks of all responses the same id.
    counts = Counter(ids)
    if any(counts[name] > 1 and not is_end for name, is_end in zip(ids, are_ends, strict=True)):
        return ids

    names = []
    ended = 0
    for event, is_end in zip(events, are_ends, strict=True):
        is_after_end = ended > 0 and not event.get("choices")  # the usage of the response that ended
        names.append(str(ended - 1 if is_after_end else ended))
        ended += is_end
    return names


def _is_end(event: Event) -> bool:
    return any(choice.get("finish_reason") for choice in objects_in(event.get("choices")))


def _find_last(holders: list[Event], key: str) -> Any:
    return next((holder[key] for holder in reversed(holders) if holder.get(key)), None)


def _assemble_chat(events: list[Event]) -> Assembled | None:
    """Join the deltas of each response's first choice. Several responses become messages of one conversation.

    Each response keeps what its chunks hold beside the deltas, such as Perplexity's search results.
    """
    chunks: dict[str, list[Event]] = {}
    for name, event in zip(_name_answers(events), events, strict=True):
        chunks.setdefault(name, []).append(event)
    model = _find_last(next(iter(chunks.values())), "model")

    answers: list[tuple[Event, Any, Event]] = []  # message, reason of its end, fields beside the deltas
    for chunks_of_answer in chunks.values():
        choices = [choice for chunk in chunks_of_answer for choice in objects_in(chunk.get("choices"))]
        choices = [choice for choice in choices if choice.get("index", 0) == 0]
        delta = _join_pieces([object_or_empty(choice.get("delta")) for choice in choices])
        message = {"role": "assistant", "content": None, **delta}
        answers.append((message, _find_last(choices, "finish_reason"), _find_fields(chunks_of_answer)))
    is_whole = all(end for _, end, _ in answers)

    if len(answers) > 1:
        return {"model": model, "messages": [fields | message for message, _, fields in answers]}, is_whole
    message, end, fields = answers[0]
    choice = {"index": 0, "message": message, "finish_reason": end}
    return {**fields, "object": "chat.completion", "model": model, "choices": [choice]}, is_whole


def _find_fields(chunks: list[Event]) -> Event:
    """Return the lists and objects of a response beside its choices. A later chunk repeats a field as a whole."""
    fields: Event = {}
    for chunk in chunks:
        fields.update({key: value for key, value in chunk.items() if value and isinstance(value, (list, dict))})
    fields.pop("choices", None)
    return fields


def _assemble_responses(events: list[Event]) -> Assembled | None:
    """Return the response of a stream, or a list of several. If a response did not end, its completed output items are used."""
    responses: list[Event] = []
    items: list[Any] = []
    begun: Event = {}
    for event in events:
        kind = str(event.get("type"))
        response = event.get("response")
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
    return responses[0] if len(responses) == 1 else responses, is_whole


def _assemble_anthropic(events: list[Event]) -> Assembled | None:
    """Join the pieces of each content block. Several responses become messages of one conversation."""
    messages: list[Event] = []
    blocks: list[dict[int, list[Event]]] = []  # the pieces of each message's blocks
    ended = 0
    for event in events:
        kind = event.get("type")
        index = event.get("index")
        delta = object_or_empty(event.get("delta"))
        if kind == "message_start" and isinstance(event.get("message"), dict):
            messages.append(dict(event["message"]))
            blocks.append({})
        elif not messages:
            return None
        elif kind == "content_block_start" and isinstance(index, int) and isinstance(event.get("content_block"), dict):
            blocks[-1][index] = [event["content_block"]]
        elif kind == "content_block_delta" and isinstance(index, int) and index in blocks[-1]:
            if delta.get("type") == "citations_delta":
                blocks[-1][index].append({"citations": [delta.get("citation")]})
            elif (field := _BLOCK_TEXTS.get(str(delta.get("type")))) is not None:
                blocks[-1][index].append({field: delta.get(field)})
        elif kind == "message_delta":
            messages[-1].update({key: value for key, value in delta.items() if key != "content"})
            _add_usage(messages[-1], event.get("usage"))
        elif kind == "message_stop":
            ended += 1

    for message, blocks_of_message in zip(messages, blocks, strict=True):
        message["content"] = [_join_block(pieces) for _, pieces in sorted(blocks_of_message.items())]
    return messages[0] if len(messages) == 1 else {"messages": messages}, ended == len(messages)


def _add_usage(message: Event, usage: Any) -> None:
    if isinstance(usage, dict) and isinstance(message.get("usage"), dict):
        message["usage"] = {**message["usage"], **usage}


def _join_block(pieces: list[Event]) -> Event:
    """Join the pieces of a content block, and parse the arguments of a call."""
    block = _join_pieces(pieces)
    arguments = block.pop("partial_json", None)
    if arguments:
        value = parse_if_json(str(arguments))
        block["input"] = value if isinstance(value, dict) else arguments
    return block


def _assemble_gemini(events: list[Event]) -> Assembled | None:
    """Join the parts of Gemini's first candidate. Keep only one copy of each chunk and query in its grounding metadata."""
    parts: list[Any] = []
    whole: Event = {"candidates": []}
    candidate: Event = {}
    grounding: dict[str, list[Any]] = {}
    seen: set[tuple[str, bytes]] = set()
    for event in events:
        whole.update({key: value for key, value in event.items() if key != "candidates"})
        first = next(iter(objects_in(event.get("candidates"))), {})
        parts_of_event = object_or_empty(first.get("content")).get("parts")
        if isinstance(parts_of_event, list):
            parts += parts_of_event
        for key, values in object_or_empty(first.get("groundingMetadata")).items():
            for value in values if isinstance(values, list) else ():
                spelling = (key, orjson.dumps(value))
                if spelling not in seen:
                    seen.add(spelling)
                    grounding.setdefault(key, []).append(value)
        other_fields = first.keys() - {"content", "groundingMetadata"}
        candidate.update({key: value for key, value in first.items() if key in other_fields})

    candidate["content"] = {"role": "model", "parts": parts}
    if grounding:
        candidate["groundingMetadata"] = grounding
    return {**whole, "candidates": [candidate]}, candidate.get("finishReason") is not None


def _assemble_ui_message(events: list[Event]) -> Assembled | None:
    """Return a list of one UI message with the parts of a stream: steps, sources, texts, and calls that later events complete."""
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
            text = event.get("delta", event.get("textDelta", ""))
            message["parts"].append({"type": "text", "text": str(text)})
        elif kind.startswith("tool-"):
            call_id = str(event.get("toolCallId"))
            if call_id not in calls:
                calls[call_id] = _begin_call(event, call_id)
                message["parts"].append(calls[call_id])
            _continue_call(calls[call_id], event, kind)
    return [message], any(event.get("type") == "finish" for event in events)


def _begin_call(event: Event, call_id: str) -> Event:
    name = event.get("toolName")
    call = {"toolCallId": call_id, "state": "input-streaming"}
    if event.get("dynamic"):
        return {"type": "dynamic-tool", "toolName": name, **call}
    return {"type": f"tool-{name}", **call}


def _continue_call(call: Event, event: Event, kind: str) -> None:
    call.update({key: event[key] for key in _CALL_FIELDS if key in event})
    call["state"] = _CALL_STATES.get(kind, call["state"])
    if kind == "tool-output-available" and not event.get("preliminary"):
        call.pop("preliminary", None)


def _assemble_deer_flow(events: list[Event]) -> Assembled:
    """Make chat messages from events. Events with one id become one message. A tool result answers a call of the same agent."""
    messages: list[Event] = []
    by_id: dict[str, Event] = {}
    waiting: dict[str, list[str]] = {}
    for event in events:
        agent = str(event.get("agent"))
        text = event.get("content")
        if "tool_call_id" in event:
            open_calls = waiting.setdefault(agent, [])  # without ids, results answer them in order
            call_id = event["tool_call_id"] or (open_calls[0] if open_calls else None)
            if call_id in open_calls:
                open_calls.remove(call_id)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
            continue

        name = str(event.get("id"))
        if name not in by_id:
            by_id[name] = {"role": event.get("role"), "content": ""}
            messages.append(by_id[name])
        message = by_id[name]
        message["content"] += text if isinstance(text, str) else ""
        for call in objects_in(event.get("tool_calls")):
            if call.get("name"):
                call_id = call.get("id") or f"{name}-{len(message.get('tool_calls', []))}"
                waiting.setdefault(agent, []).append(call_id)
                function = {"name": call["name"], "arguments": call.get("args") or ""}
                message.setdefault("tool_calls", []).append({"id": call_id, "type": "function", "function": function})
        for piece in objects_in(event.get("tool_call_chunks")):
            made_calls, index = message.get("tool_calls", []), piece.get("index")
            place = index if isinstance(index, int) and 0 <= index < len(made_calls) else -1
            if made_calls and isinstance(made_calls[place]["function"]["arguments"], str):
                made_calls[place]["function"]["arguments"] += str(piece.get("args") or "")
    return {"messages": messages}, True
