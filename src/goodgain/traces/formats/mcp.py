"""MCP: logs of JSON-RPC messages between a client and servers (`tools/call` and their results).

The log has neither steps nor turns: each call is an iteration by default, and with iteration="step" the calls that
follow each other without an answer between them are one. The file is one trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations import tree
from goodgain.traces.conversations.turns_and_calls import Conversation
from goodgain.traces.expected_values import as_word, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import ToolCall, Trace

ITERATION = "call"
#: Keys under which logs keep the message beside a time or a direction.
_WRAPPERS = ("message", "msg", "payload", "data", "body")


def sniff(head: FileHead) -> bool:
    """Return whether there are messages of JSON-RPC with a method, parameters or a result of MCP."""
    return any(_is_of_mcp(message) for record in head.objects if (message := _find_message(record)) is not None)


def _find_message(record: dict[str, Any]) -> dict[str, Any] | None:
    held = (record, *(record.get(key) for key in _WRAPPERS))
    return next((one for one in held if isinstance(one, dict) and one.get("jsonrpc") == "2.0"), None)


def _is_of_mcp(message: dict[str, Any]) -> bool:
    method, result = as_word(message.get("method")), message.get("result")
    return method == "initialize" or method.startswith(("tools/", "notifications/")) or (
        isinstance(result, dict) and isinstance(result.get("content"), list)
    )  # fmt: skip


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace, the file."""
    with source.handle_errors():
        yield _read_messages(source)


def _read_messages(source: Source) -> Trace:
    messages: list[dict[str, Any]] = []
    conversation = Conversation(source, messages)
    first: str | None = None
    waiting: dict[str, ToolCall] = {}
    others: set[str] = set()
    answered = True
    for value, at in tree.read_records(source):
        first = first or at
        record = expect_object(value, at)
        message = _find_message(record)
        if message is None:
            source.not_understood("record without a message of JSON-RPC", at, 'an object with jsonrpc: "2.0"')
            continue
        messages.append(record)
        key, method = _read_key(message, at), message.get("method")
        if method == "tools/call":
            if not key:
                raise unexpected_value(f"{at}/id", "the id of a request", message.get("id"))
            if answered:
                conversation.step()
            answered = False
            params = expect_object(message.get("params"), f"{at}/params")
            name = expect_text(params.get("name"), f"{at}/params/name")
            waiting[key] = conversation.call(ToolCall(name, at, None, params.get("arguments")))
        elif method is not None:
            expect_text(method, f"{at}/method")
            others.add(key)
        elif key in waiting:
            _set_answer(waiting.pop(key), message, at)
            answered = True
        elif not key or key not in others:
            expected = "a request of the same id before it"
            source.not_understood("answer to a request that is not in the log", at, expected)
    return conversation.trace(first or f"{source.path}, at ")


def _read_key(message: dict[str, Any], at: str) -> str:
    """Return the id of a request or answer, empty if it has none; a number and a text are different ids."""
    found = message.get("id")
    if isinstance(found, bool) or not isinstance(found, (str, int, float, type(None))):
        raise unexpected_value(f"{at}/id", "an id (text or a number)", found)
    return "" if found is None else repr(found)


def _set_answer(call: ToolCall, message: dict[str, Any], at: str) -> None:
    error, result = message.get("error"), message.get("result")
    if error is not None:
        call.output, call.failed = error, True
    elif result is not None:
        found = expect_object(result, f"{at}/result")
        call.failed = found.get("isError") is True
        only_content = isinstance(found.get("content"), list) and found.keys() <= {"content", "isError", "_meta"}
        call.output = found["content"] if only_content else found
