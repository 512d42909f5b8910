"""Gemini: contents and answers of the API, sessions of Google's ADK, sessions and checkpoints of Gemini CLI.

A content of the model, an event of an agent or a `gemini` message is a step; what the user says is a turn. The grounding
of an answer is one hosted search.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from goodgain.files.json_text import parse_if_json
from goodgain.traces.conversations.conversation import message_text
from goodgain.traces.conversations.exchanges import (
    ConversationPart,
    Exchange,
    are_exchanges,
    join_exchanges,
    split_exchange,
)
from goodgain.traces.conversations.gemini_contents import (
    ContentReader,
    get,
    is_content,
    is_grounded,
    read_response,
    set_output,
)
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

#: Where an object has its contents: a request, a checkpoint of Gemini CLI.
_CONTENT_KEYS = ("contents", "history")
_EXPECTED = "contents (a role and parts), an answer (candidates), a session of ADK (events) or of Gemini CLI (messages)"
#: Types of the messages of Gemini CLI that are neither a turn nor a step, and the fields of the others.
_OTHER_MESSAGES = {"info", "error", "warning"}
_MESSAGE_FIELDS = {"type", "content", "toolCalls", "thoughts", "displayContent"}
_EVENT_FIELDS = {
    *("content", "invocationId", "invocation_id", "actions", "groundingMetadata", "grounding_metadata", "nodeInfo"),
    *("usageMetadata", "longRunningToolIds", "long_running_tool_ids", "node_info", "long_running_tool_ids_json"),
    *("customMetadata", "custom_metadata", "citationMetadata", "citation_metadata", "branch", "cacheMetadata"),
    *("cache_metadata", "logprobsResult", "logprobs_result", "inputTranscription", "outputTranscription"),
    *("input_transcription", "output_transcription", "errorMessage", "error_message", "errorCode", "error_code"),
    *("app_name", "user_id", "interactionId", "interaction_id", "turnCompleteReason", "modelVersion", "model_version"),
    *("liveSessionResumptionUpdate", "live_session_resumption_update", "finishReason", "isolationScope"),
}


def sniff(head: FileHead) -> bool:
    """Return whether there are contents with parts that have no type, candidates, events of ADK, or a CLI's session."""
    if are_exchanges(head):
        # A log of exchanges with several vendors is of the other one: those with Gemini are passed over and counted.
        return any(map(_split_exchange, head.objects)) and not any(map(_is_with_other_vendor, head.objects))
    return any(_is_of_format(record) for record in head.conversations)


def _is_with_other_vendor(record: dict[str, Any]) -> bool:
    found = split_exchange(record)
    if found is None:
        return False
    request, response = found
    return ("messages" in request and ("choices" in response or "content" in response)) or (
        "input" in request and "output" in response
    )


def _is_of_format(value: Any) -> bool:
    if isinstance(value, list):
        return any(is_content(one) or _is_event(one) for one in value)
    if not isinstance(value, dict):
        return False
    held = [one for key in (*_CONTENT_KEYS, "events") if isinstance(value.get(key), list) for one in value[key]]
    return (
        _is_event(value)
        or _is_answer(value)
        or _is_cli(value)
        or any(is_content(one) or _is_event(one) for one in held)
    )


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and "author" in value and ("invocationId" in value or "invocation_id" in value)


def _is_adk(value: dict[str, Any]) -> bool:
    events = value.get("events")
    return isinstance(events, list) and (get(value, "appName") is not None or any(map(_is_event, events)))


def _is_answer(value: dict[str, Any]) -> bool:
    candidates = value.get("candidates")
    return isinstance(candidates, list) and any(
        isinstance(one, dict) and isinstance(one.get("content"), dict) and "parts" in one["content"]
        for one in candidates
    )


def _is_cli(value: dict[str, Any]) -> bool:
    return "sessionId" in value and "projectHash" in value


def _are_events(head: FileHead) -> bool:
    return any(_is_event(record) for record in head.objects)


def _are_cli_lines(head: FileHead) -> bool:
    return head.kind == "jsonl" and bool(head.records) and isinstance(first := head.records[0], dict) and (
        _is_cli(first) and "messages" not in first
    )  # fmt: skip


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own."""
    return not (are_exchanges(head) or _are_events(head) or _are_cli_lines(head))


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a conversation or session."""
    if are_exchanges(source.head):
        return join_exchanges(
            source,
            _read_exchange,
            _content_key,
            lambda parts, at: _read_parts(source, parts, at),
            endpoint_field="contents",
        )
    if _are_events(source.head):
        return _read_event_rows(source)
    if _are_cli_lines(source.head):
        return _read_cli_lines(source)
    return source.traces(
        lambda value, at: _read_trace(source, value, at),
        is_one=lambda value: not value or any(isinstance(one, dict) and "parts" in one for one in value),
    )


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    if isinstance(value, dict) and _is_adk(value):
        return _read_adk(source, value, value["events"], f"{at}/events", at)
    if isinstance(value, dict) and (_is_cli(value) or "messages" in value):
        messages = expect_list(value.get("messages"), f"{at}/messages")
        return _read_cli(source, value, [(one, f"{at}/messages/{index}") for index, one in enumerate(messages)], at)
    reader = ContentReader(source)
    contents, contents_at = (value, at) if isinstance(value, list) else (None, at)
    for key in _CONTENT_KEYS if isinstance(value, dict) else ():
        if isinstance(value.get(key), list):
            contents, contents_at = value[key], f"{at}/{key}"
            break
    for index, content in enumerate(contents or ()):
        reader.read(content, f"{contents_at}/{index}")
    if isinstance(value, dict) and "candidates" in value:
        read_response(reader, value, at)
    elif not contents:
        raise unexpected_value(at, _EXPECTED, value)
    trace = reader.conversation.trace(at, value)
    trace.tag = _get_model(value)
    return trace


def _get_model(value: Any) -> str | None:
    model = get(value, "modelVersion") if isinstance(value, dict) else None
    return model if isinstance(model, str) and model else None


def _split_exchange(record: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the request and the whole answer, also of a stream, of an exchange with Gemini; None for another record."""
    found = split_exchange(record)
    return found if found is not None and "contents" in found[0] and "candidates" in found[1] else None


def _read_exchange(record: Any, at: str) -> Exchange | None:
    if (found := _split_exchange(record)) is None:
        return None
    request, response = found
    contents = expect_list(request["contents"], f"{at}/request/contents")
    candidates = expect_list(response["candidates"], f"{at}/response/candidates")
    first = expect_object(candidates[0], f"{at}/response/candidates/0") if candidates else {}
    answer = [first["content"]] if isinstance(first.get("content"), dict) else []
    return Exchange(
        contents,
        f"{at}/request/contents",
        answer,
        f"{at}/response/candidates",
        response=response,
        response_at=f"{at}/response",
    )


def _content_key(content: Any) -> Hashable | None:
    """Return what two copies of a content share: role, text, and its calls and responses by name and id.

    A text may stand in several pieces, as it was streamed; thoughts are not always sent again.
    """
    if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
        return None
    parts = [part for part in content["parts"] if isinstance(part, dict)]
    named = [get(part, key) for part in parts for key in ("functionCall", "functionResponse")]
    calls = tuple((str(one.get("name")), str(one.get("id"))) for one in named if isinstance(one, dict))
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
    return (str(content.get("role")), "".join(texts).strip(), calls)


def _read_parts(source: Source, parts: list[ConversationPart], at: str) -> Trace:
    reader = ContentReader(source)
    model = None
    for part in parts:
        if part.response:
            read_response(reader, part.response, part.response_at)
            model = _get_model(part.response) or model
            continue
        for content, content_at in part.messages:
            if not part.resent:
                reader.read(content, content_at)
    trace = reader.conversation.trace(at)
    trace.tag = model
    return trace


# Google's Agent Development Kit


def _read_event_rows(source: Source) -> Iterator[Trace]:
    """Yield a trace a session of a list or of lines of events, as a database keeps them."""
    sessions: dict[str | None, list[tuple[Any, str]]] = {}
    for value, at in source.documents():
        rows = [(one, f"{at}/{index}") for index, one in enumerate(value)] if isinstance(value, list) else [(value, at)]
        for row, row_at in rows:
            with source.handle_errors():
                session = expect_id(get(expect_object(row, row_at), "sessionId"), f"{row_at}/session_id")
                sessions.setdefault(session, []).append((row, row_at))
    for session, members in sessions.items():
        with source.handle_errors():
            reader = _read_events(source, members)
            trace = reader.conversation.trace(members[0][1], members[0][0], query_id=session)
            trace.session_id = session
            yield trace


def _read_adk(source: Source, record: dict[str, Any], events: list[Any], events_at: str, at: str) -> Trace:
    reader = _read_events(source, [(event, f"{events_at}/{index}") for index, event in enumerate(events)])
    session = expect_id(record.get("id"), f"{at}/id")
    trace = reader.conversation.trace(at, record, query_id=session)
    app = get(record, "appName")
    trace.session_id, trace.tag = session, app if isinstance(app, str) and app else None
    return trace


def _read_events(source: Source, events: list[tuple[Any, str]]) -> ContentReader:
    reader = ContentReader(source)
    for event, at in events:
        event = expect_object(event, at)
        author = expect_text(event.get("author"), f"{at}/author")
        if event.get("partial") is True:
            continue  # a piece of an answer that comes whole later
        source.check_fields(event, _EVENT_FIELDS, at, of="an event", expected="calls and results in content")
        content = parse_if_json(event.get("content"))
        if content is not None:
            found = {"parts": [], **expect_object(content, f"{at}/content")}
            reader.read(found, f"{at}/content", by_agent=author != "user", grounded=is_grounded(event))
        reader.add_grounding(event, at)
    return reader


# Gemini CLI


def _read_cli_lines(source: Source) -> Iterator[Trace]:
    """Yield the one trace of a session in lines: metadata, then messages and changes to what stands before."""
    record: dict[str, Any] = {}
    messages: dict[str, tuple[Any, str]] = {}
    first_at = ""
    with source.handle_errors():
        for value, at in source.documents():
            line = expect_object(value, at)
            first_at = first_at or at
            if isinstance(changes := line.get("$set"), dict):
                record |= changes
                if "messages" in changes:
                    held = expect_list(changes["messages"], f"{at}/$set/messages")
                    messages = {
                        _message_id(one, f"{at}/$set/messages/{n}"): (one, f"{at}/$set/messages/{n}")
                        for n, one in enumerate(held)
                    }
            elif "$rewindTo" in line:
                ids = list(messages)
                target = expect_id(line["$rewindTo"], f"{at}/$rewindTo") or ""
                for dropped in ids[ids.index(target) :] if target in messages else ():
                    del messages[dropped]
            elif "projectHash" in line:
                record |= line
            else:
                messages[_message_id(line, at)] = (line, at)  # the same id again replaces the message
        yield _read_cli(source, record, list(messages.values()), first_at)


def _message_id(message: Any, at: str) -> str:
    found = expect_id(expect_object(message, at).get("id"), f"{at}/id")
    if found is None:
        raise unexpected_value(f"{at}/id", "the id of a message", found)
    return found


def _read_cli(source: Source, record: dict[str, Any], messages: list[tuple[Any, str]], at: str) -> Trace:
    reader = ContentReader(source)
    model = None
    for value, message_at in messages:
        message = expect_object(value, message_at)
        kind = message.get("type")
        if kind == "user":
            reader.conversation.user(message_text(message.get("content")))
        elif kind == "gemini":
            time = message.get("timestamp")
            reader.conversation.step(time if isinstance(time, str) else None)
            calls = expect_list(message.get("toolCalls"), f"{message_at}/toolCalls")
            for index, call in enumerate(calls):
                _read_cli_call(reader, call, f"{message_at}/toolCalls/{index}")
            model = message["model"] if isinstance(message.get("model"), str) else model
        elif as_word(kind) not in _OTHER_MESSAGES:
            if not isinstance(kind, str):
                raise unexpected_value(f"{message_at}/type", "user, gemini, info, error or warning", kind)
            source.not_understood(
                f"message of type {kind!r}", f"{message_at}/type", "user, gemini, info, error, warning"
            )
        source.check_fields(
            message, _MESSAGE_FIELDS, message_at, of="a message", expected="calls in toolCalls", needs="content"
        )
    session = expect_id(record.get("sessionId"), f"{at}/sessionId")
    trace = reader.conversation.trace(at, record, query_id=session)
    trace.session_id, trace.tag = session, model
    return trace


def _read_cli_call(reader: ContentReader, value: Any, at: str) -> None:
    call = expect_object(value, at)
    made = ToolCall(
        expect_text(call.get("name"), f"{at}/name"), at, expect_id(call.get("id"), f"{at}/id"), call.get("args")
    )
    reader.conversation.call(made)
    found = call.get("result")
    parts = found if isinstance(found, list) else [found]
    responses = [get(part, "functionResponse") for part in parts if isinstance(part, dict)]
    given = [one.get("response") for one in responses if isinstance(one, dict)]
    if given:
        set_output(made, given[0])
    elif isinstance(found, str):
        set_output(made, {"output": found})
    elif found:
        set_output(made, found)
    if call.get("status") in ("error", "cancelled") and made.output is UNANSWERED:
        made.failed = True
    made.failed = made.failed or call.get("status") in ("error", "cancelled")
