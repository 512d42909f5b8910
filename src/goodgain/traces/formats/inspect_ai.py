"""Inspect AI logs: `.json`, or `.eval` archives; a sample is a trace, an epoch of it a run of the system.

An assistant message is a step, a user message a turn. Searches that a model's vendor ran stand in the assistant's
content as `tool_use` parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations.conversation import Conversation, message_text
from goodgain.traces.conversations.usage import add_usages, read_usage
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace, Usage
from goodgain.traces.tools import is_search_tool

_PART_TYPES = {"text", "reasoning", "image", "audio", "video", "data", "document", "tool_use"}
_MESSAGE_FIELDS = {
    *("role", "content", "source", "tool_calls", "tool_call_id", "function", "error", "internal", "parse_error"),
    *("reasoning",),
}
#: Inspect keeps long texts once, in `attachments`, and refers to them by this address.
_ATTACHMENT = "attachment://"
#: Content nested deeper is not searched for attachments: the log is hostile.
_MAX_DEPTH = 20


def sniff(head: FileHead) -> bool:
    """Return whether the file is a log with `eval`, a sample with `epoch` and `messages`, or an .eval archive."""
    if head.kind == "zip":
        return head.name.lower().endswith(".eval") or b"header.json" in head.raw or b"samples/" in head.raw
    return any(_is_log(record) or _is_sample(record) for record in head.objects)


def _is_log(record: dict[str, Any]) -> bool:
    header = record.get("eval")
    return isinstance(header, dict) and ("task" in header or "eval_id" in header or "run_id" in header)


def _is_sample(record: dict[str, Any]) -> bool:
    return {"id", "epoch", "messages"} <= record.keys()


def independent(_: FileHead) -> bool:
    """Return True: each line of a JSON Lines file is a sample of its own."""
    return True


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a sample and epoch."""
    if source.head.kind == "zip":
        yield from _read_archive(source)
        return
    for value, at in source.documents():
        logs = value if isinstance(value, list) else [value]
        for index, log in enumerate(logs):
            log_at = f"{at}/{index}" if isinstance(value, list) else at
            with source.handle_errors():
                yield from _read_log(source, expect_object(log, log_at), log_at)


def _read_archive(source: Source) -> Iterator[Trace]:
    """Yield the traces of an archive's samples. Its header, which names the model, comes first in order of names."""
    model = None
    found = False
    for value, name in source.read_members():
        at = f"{source.path}, {name}, at "
        if name in ("header.json", "_journal/start.json"):
            model = _read_model(expect_object(value, at), at) or model
        elif name.startswith("samples/"):
            found = True
            with source.handle_errors():
                yield _read_sample(source, value, at, model)
    if not found:
        raise unexpected_value(f"{source.path}", "an archive with samples/", [])


def _read_model(log: dict[str, Any], at: str) -> str | None:
    header = expect_object(log.get("eval"), f"{at}/eval")
    model = header.get("model")
    return model if isinstance(model, str) and model else None


def _read_log(source: Source, log: dict[str, Any], at: str) -> Iterator[Trace]:
    if _is_sample(log):
        yield _read_sample(source, log, at, None)
        return
    model = _read_model(log, at)
    samples = expect_list(log.get("samples"), f"{at}/samples")
    if not samples:
        raise unexpected_value(f"{at}/samples", "samples (was the log written without them?)", log.get("samples"))
    for index, sample in enumerate(samples):
        with source.handle_errors():
            yield _read_sample(source, sample, f"{at}/samples/{index}", model)


def _read_sample(source: Source, value: Any, at: str, model: str | None) -> Trace:
    sample = expect_object(value, at)
    query_id = expect_id(sample.get("id"), f"{at}/id")
    if query_id is None:
        raise unexpected_value(f"{at}/id", "the sample's id", None)
    attachments = sample.get("attachments")
    attached = attachments if isinstance(attachments, dict) else {}
    messages = sample.get("messages")
    if not isinstance(messages, list):
        raise unexpected_value(f"{at}/messages", "a list of messages", messages)
    conversation = Conversation()
    usages = _read_usages(sample.get("events")) if source.costs else {}
    for index, message in enumerate(messages):
        message_at = f"{at}/messages/{index}"
        if usages and isinstance(message, dict) and message.get("role") == "assistant":
            conversation.spend(usages.get(str(message.get("id"))))
        _read_message(source, conversation, expect_object(message, message_at), message_at, attached)
    _report_unseen_searches(source, conversation, sample.get("events"), f"{at}/events")
    epoch = expect_id(sample.get("epoch"), f"{at}/epoch") or "1"
    trace = conversation.trace(at, sample, query_id=query_id)
    trace.tag, trace.run = model, epoch
    return trace


def _read_usages(events: Any) -> dict[str, Usage]:
    """Return what each message of the assistant cost, by its id, from the events of the model's calls."""
    found: dict[str, Usage] = {}
    for event in events if isinstance(events, list) else []:
        output = event.get("output") if isinstance(event, dict) and event.get("event") == "model" else None
        choices = output.get("choices") if isinstance(output, dict) else None
        message = (
            choices[0].get("message")
            if isinstance(choices, list) and choices and isinstance(choices[0], dict)
            else None
        )
        if isinstance(output, dict) and isinstance(message, dict) and message.get("id") is not None:
            usage = add_usages(read_usage(output.get("usage")), read_usage({"seconds": output.get("time")}))
            if usage is not None:
                found.setdefault(str(message["id"]), usage)
    return found


def _read_message(
    source: Source, conversation: Conversation, message: dict[str, Any], at: str, attached: dict[str, Any]
) -> None:
    role = as_word(message.get("role"))
    content = _insert_attachments(message.get("content"), attached)
    source.check_fields(
        message, _MESSAGE_FIELDS, at, of="a message", expected="calls in tool_calls, text in content", needs="content"
    )
    if role == "user":
        conversation.user(message_text(content))
        for index, part in enumerate(content if isinstance(content, list) else []):
            if isinstance(part, dict) and as_word(part.get("type")) not in _PART_TYPES:
                _report_part(source, part, f"{at}/content/{index}", "a user message")
    elif role == "assistant":
        conversation.step()
        for index, call in enumerate(expect_list(message.get("tool_calls"), f"{at}/tool_calls")):
            call_at = f"{at}/tool_calls/{index}"
            call = expect_object(call, call_at)
            name = expect_text(call.get("function"), f"{call_at}/function")
            call_id = expect_id(call.get("id"), f"{call_at}/id")
            conversation.call(ToolCall(name, call_at, call_id, _insert_attachments(call.get("arguments"), attached)))
        for index, part in enumerate(content if isinstance(content, list) else []):
            _read_part(source, conversation, part, f"{at}/content/{index}")
    elif role == "tool":
        _read_answer(source, conversation, message, content, at)
    elif role != "system":
        if not isinstance(message.get("role"), str):
            raise unexpected_value(f"{at}/role", "a role (user, assistant, tool, system)", message.get("role"))
        source.not_understood(f"message of role {role!r}", f"{at}/role", "user, assistant, tool or system")


def _read_answer(source: Source, conversation: Conversation, message: dict[str, Any], content: Any, at: str) -> None:
    if content is not None and not isinstance(content, (str, list)):
        raise unexpected_value(f"{at}/content", "text or parts", content)
    for index, part in enumerate(content if isinstance(content, list) else []):
        expect_text(expect_object(part, f"{at}/content/{index}").get("type"), f"{at}/content/{index}/type")
    call_id = expect_id(message.get("tool_call_id"), f"{at}/tool_call_id")
    name = message.get("function") if isinstance(message.get("function"), str) else None
    failed = message.get("error") is not None
    if name is not None and not source.is_search(name) and not conversation.has_open_call(call_id, name):
        return  # the log lacks its call, which was not a search
    output = UNANSWERED if content is None else content
    conversation.answer(call_id, output, f"{at}/content", name=None if call_id else name, failed=failed)


def _read_part(source: Source, conversation: Conversation, part: Any, at: str) -> None:
    """Read a part of an assistant message; `tool_use` is a call that the model's vendor ran."""
    part = expect_object(part, at)
    kind = as_word(part.get("type"))
    if kind == "tool_use":
        name = expect_text(part.get("name"), f"{at}/name")
        searches = part.get("tool_type") == "web_search" or None
        result = part.get("result")
        output = UNANSWERED if result in (None, "") else result
        failed = part.get("error") not in (None, "")
        remedy = "the vendor's answer lacks them: log a search tool of your own"
        conversation.call(
            ToolCall(
                name, at, expect_id(part.get("id"), f"{at}/id"), part.get("arguments"), output,
                failed=failed, is_search=searches, remedy=remedy,
            )
        )  # fmt: skip
    elif kind == "text" and part.get("citations") and source.citations:
        notes = expect_list(part["citations"], f"{at}/citations")
        cited = {str(note.get("url")): note for note in notes if isinstance(note, dict)}
        conversation.cite(list(cited.values()))
    elif kind not in _PART_TYPES:
        _report_part(source, part, at, "an assistant message")


def _report_part(source: Source, part: dict[str, Any], at: str, of: str) -> None:
    source.not_understood(f"part of type {part.get('type')!r} in {of}", at, ", ".join(sorted(_PART_TYPES)))


def _insert_attachments(value: Any, attached: dict[str, Any], depth: int = _MAX_DEPTH) -> Any:
    """Return a value in which references to attachments are replaced by their texts."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    if depth and isinstance(value, list):
        return [_insert_attachments(member, attached, depth - 1) for member in value]
    if depth and isinstance(value, dict):
        return {key: _insert_attachments(member, attached, depth - 1) for key, member in value.items()}
    return value


def _report_unseen_searches(source: Source, conversation: Conversation, events: Any, at: str) -> None:
    """Report searches in the events that the messages do not show, such as those of subagents."""
    for index, event in enumerate(events if isinstance(events, list) else []):
        if isinstance(event, dict) and event.get("event") == "tool":
            name, call_id = event.get("function"), event.get("id")
            known = isinstance(call_id, str) and conversation.has_call(call_id)
            if isinstance(name, str) and is_search_tool(name) and not known:
                what = f"tool event {name!r} outside the sample's messages"
                source.not_understood(what, f"{at}/{index}", "searches in the sample's messages")
