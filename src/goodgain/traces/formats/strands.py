"""Strands Agents and Bedrock Converse: messages with blocks of one key (`toolUse`, `toolResult`), session folders.

A message of the assistant is a step; a user's message without tool results is a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import open_stream
from goodgain.traces.conversations.conversation import (
    Conversation,
    find_messages,
    has_messages,
    is_message_list,
    message_text,
)
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

_ROLES = {"user", "assistant", "system"}
_TOOLS = {"toolUse", "toolResult"}
#: Keys of blocks without a call or a result.
_OTHER_BLOCKS = {
    *("text", "image", "document", "video", "audio", "cachePoint", "reasoningContent", "guardContent"),
    *("citationsContent", "searchResult"),
}
_MESSAGE_FIELDS = {"role", "content"}
#: A message of a session folder, in `session_<id>/agents/agent_<id>/messages`.
_FOLDERS = ("messages", "agents/agent_*/messages", "session_*/agents/agent_*/messages")
_MESSAGE_FILE = re.compile(r"message_(\d{1,9})\.json")


def sniff(head: FileHead) -> bool:
    """Return whether there are messages with such blocks, an answer of Converse, or a message of a session's folder."""
    return any(has_messages(record, _has_tools) or _is_answer(record) for record in head.conversations) or any(
        _is_session_message(record) for record in head.objects
    )


def _has_tools(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return as_word(message.get("role")) in _ROLES and isinstance(content, list) and any(
        isinstance(block, dict) and not _TOOLS.isdisjoint(block) and "type" not in block for block in content
    )  # fmt: skip


def _is_answer(record: Any) -> bool:
    output = record.get("output") if isinstance(record, dict) else None
    return isinstance(output, dict) and isinstance(output.get("message"), dict) and "stopReason" in record


def _is_session_message(record: dict[str, Any]) -> bool:
    message = record.get("message")
    return "message_id" in record and "redact_message" in record and isinstance(message, dict) and "role" in message


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own."""
    return not any(map(_is_session_message, head.objects))


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a list of messages or an answer; a message of a session's folder stands for all messages there."""
    if any(map(_is_session_message, source.head.objects)):
        with source.handle_errors():
            yield _read_folder(source)
        return
    yield from source.traces(lambda value, at: _read_trace(source, value, at), is_one=is_message_list)


def find(directory: Path) -> list[Path]:
    """Return the first message of each agent in the folder of a session, of several sessions, or of one agent."""
    folders = [directory, *(folder for pattern in _FOLDERS for folder in sorted(directory.glob(pattern)))]
    numbered = [[(int(found[1]), path) for path in folder.iterdir() if (found := _MESSAGE_FILE.fullmatch(path.name))]
                for folder in folders if folder.is_dir()]  # fmt: skip
    return [min(messages)[1] for messages in numbered if messages]


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    if _is_answer(value):
        messages, messages_at = [value["output"]["message"]], f"{at}/output/message"
        return _read_messages(source, [(messages[0], messages_at)], at, value)
    messages, messages_at = find_messages(value, at)
    return _read_messages(source, [(one, f"{messages_at}/{index}") for index, one in enumerate(messages)], at, value)


def _read_folder(source: Source) -> Trace:
    """Read the session that a message belongs to: all messages in its folder, in the order of their numbers."""
    folder = source.path.parent
    numbered = sorted(
        (int(found[1]), path) for path in folder.iterdir() if (found := _MESSAGE_FILE.fullmatch(path.name))
    )
    messages = []
    for _, path in numbered or [(0, source.path)]:
        at = f"{path}, at "
        record = expect_object(_load(path), at)
        message = record.get("redact_message") or record.get("message")
        messages.append((message, f"{at}/message"))
    trace = _read_messages(source, messages, f"{numbered[0][1] if numbered else source.path}, at ", None)
    trace.query_id = trace.session_id = _find_session(folder)
    agent = folder.parent.name.removeprefix("agent_")
    trace.tag = agent if folder.parent.name.startswith("agent_") and agent else None
    return trace


def _load(path: Path) -> Any:
    with open_stream(path) as file:
        content = file.read()
    try:
        return loads(content)
    except NotJSONError as error:
        raise InputError(f"{path}: is not JSON to its end ({error}); is it cut off?") from None


def _find_session(folder: Path) -> str | None:
    """Return the session's id, of which the folder's name is made."""
    names = [above.name for above in folder.absolute().parents]
    return next((name.removeprefix("session_") for name in names if name.startswith("session_")), None) or None


def _read_messages(source: Source, messages: list[tuple[Any, str]], at: str, record: Any) -> Trace:
    conversation = Conversation()
    for value, message_at in messages:
        message = expect_object(value, message_at)
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str):
            raise unexpected_value(f"{message_at}/role", "user or assistant", role)
        if role not in _ROLES:
            source.not_understood(f"message of role {role!r}", f"{message_at}/role", "user or assistant")
            continue
        expected = "calls and results in the blocks of content"
        source.check_fields(message, _MESSAGE_FIELDS, message_at, of="a message", expected=expected, needs="content")
        if "content" not in message:
            raise unexpected_value(f"{message_at}/content", "a list of blocks", None)
        if isinstance(content, str):
            content = [{"text": content}]
        blocks = [
            (expect_object(block, f"{message_at}/content/{index}"), f"{message_at}/content/{index}")
            for index, block in enumerate(expect_list(content, f"{message_at}/content"))
        ]
        if role == "assistant":
            conversation.step()
        elif role == "user" and not any("toolResult" in block for block, _ in blocks):
            conversation.user(message_text([block for block, _ in blocks]))
        for block, block_at in blocks:
            _read_block(source, conversation, block, block_at)
    return conversation.trace(at, record)


def _read_block(source: Source, conversation: Conversation, block: dict[str, Any], at: str) -> None:
    if "toolUse" in block:
        use = expect_object(block["toolUse"], f"{at}/toolUse")
        call_id = expect_id(use.get("toolUseId"), f"{at}/toolUse/toolUseId")
        conversation.call(ToolCall(expect_text(use.get("name"), f"{at}/toolUse/name"), at, call_id, use.get("input")))
    elif "toolResult" in block:
        result = expect_object(block["toolResult"], f"{at}/toolResult")
        call_id = expect_id(result.get("toolUseId"), f"{at}/toolResult/toolUseId")
        if call_id is None:
            raise unexpected_value(f"{at}/toolResult/toolUseId", "the id of the call it answers", call_id)
        content = result.get("content")
        parts = expect_list(content, f"{at}/toolResult/content")
        values = [_read_part(source, part, f"{at}/toolResult/content/{index}") for index, part in enumerate(parts)]
        output = UNANSWERED if content is None else values[0] if len(values) == 1 else values
        conversation.answer(call_id, output, at, failed=result.get("status") == "error")
    elif _OTHER_BLOCKS.isdisjoint(block):
        what = f"block with {', '.join(map(str, list(block)[:3])) or 'nothing'!r}"
        source.not_understood(what, at, "a block with text, toolUse, toolResult ...")


def _read_part(source: Source, part: Any, at: str) -> Any:
    """Return the value of a part of a result: an object under `json`, or a text."""
    found = expect_object(part, at)
    for key in ("json", "text"):
        if key in found:
            return found[key]
    if _OTHER_BLOCKS.isdisjoint(found):
        what = f"part with {', '.join(map(str, list(found)[:3])) or 'nothing'!r} in a toolResult"
        source.not_understood(what, at, "a part with json or text")
    return found
