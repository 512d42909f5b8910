"""MCP: logs of JSON-RPC messages between a client and servers (`tools/call` and their results).

The log has neither steps nor turns. By default, each call is an iteration. With iteration="step", consecutive calls
without an answer between them are one iteration. The file is one trace.

Lost: The user's questions, the model, and what the agent does without MCP.
Query id: Not recorded by MCP.
Record: Log each client to its own file: ids of several clients can collide.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.errors import InputError
from goodgain.logs.traces.conversations import Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.record_objects import follow_path, read_records
from goodgain.logs.traces.expected_values import as_word, expect_object, expect_text, object_or_empty, unexpected_value

ITERATION = "call"
#: Keys of the message in logs that add a time or a direction.
_WRAPPERS = ("message", "msg", "payload", "data", "body")
#: A file is not a log of MCP if as many records as this come before the first message.
_MOST_UNREAD = 10_000


def sniff(head: FileHead) -> bool:
    messages = [*filter(None, map(_find_message, head.objects))]
    methods = [as_word(message.get("method")) for message in messages]
    has_method = "initialize" in methods or any(item.startswith(("tools/", "notifications/")) for item in methods)
    return has_method or any(isinstance(follow_path(item, "/result/content"), list) for item in messages)


def _find_message(record: dict[str, Any]) -> dict[str, Any] | None:
    held = (record, *(record.get(key) for key in _WRAPPERS))
    return next((value for value in held if isinstance(value, dict) and value.get("jsonrpc") == "2.0"), None)


def read(source: Source) -> Iterator[Trace]:
    with source.handle_errors():
        yield _Messages(source).read_file(read_records(source))


class _Messages(Conversation):
    def __init__(self, source: Source) -> None:
        super().__init__(source, [])  # the record is the list of all messages
        #: Open calls by id, with the direction in the log; and whether other requests are open, by id.
        self._waiting: dict[str, tuple[ToolCall, Any]] = {}
        self._others: dict[str, bool] = {}
        self._answered = True
        self._unread = 0  # records without a message

    def read(self, record: dict[str, Any], at: str) -> None:
        """Read a message: a call of a tool, its answer, or another request, notification or answer, which is passed over."""
        message = _find_message(record)
        if message is None:
            self._unread += 1
            if not self.record and self._unread == _MOST_UNREAD:
                fault = f"none of the first {_MOST_UNREAD:,} records is a message of JSON-RPC"
                raise InputError(f"{self.source.path}: {fault}. Leave the file out, or name its format")
            self.source.not_understood("record without a message of JSON-RPC", at, 'an object with jsonrpc: "2.0"')
            return

        self.record.append(record)
        number = message.get("id")
        method = message.get("method")
        if isinstance(number, bool) or not isinstance(number, (str, int, float, type(None))):
            raise unexpected_value(f"{at}/id", "an id (text or a number)", number)

        key = "" if number is None else repr(number)  # a number and a text are different ids
        if method == "tools/call":
            if not key:
                raise unexpected_value(f"{at}/id", "the id of a request", message.get("id"))
            if self._answered:
                self.step()
            self._answered = False
            params = expect_object(message.get("params"), f"{at}/params")
            name = expect_text(params.get("name"), f"{at}/params/name")
            self._waiting[key] = self.call(ToolCall(name, at, None, params.get("arguments"))), record.get("direction")
        elif method is not None:
            expect_text(method, f"{at}/method")
            self._others[key] = True
        elif key in self._waiting and not (self._others.get(key) and self._answers_server(key, record, message)):
            call = self._waiting.pop(key)[0]
            error = message.get("error")
            result = message.get("result")
            self._answered = True
            if error is not None:
                call.output, call.failed = error, True
            elif result is not None:
                content = expect_object(result, f"{at}/result")
                call.failed = content.get("isError") is True
                has_more = not content.keys() <= {"content", "isError", "_meta"}
                call.output = (
                    content if has_more or not isinstance(content.get("content"), list) else content["content"]
                )
        elif key and key in self._others:
            self._others[key] = False
        else:
            self.report_orphan(at, f"no open request has the id {number!r}")

    def _answers_server(self, key: str, record: dict[str, Any], message: dict[str, Any]) -> bool:
        """Return whether a response answers a request that the server sent. A tool call of the client may have the same id."""
        asked = self._waiting[key][1]
        answered = record.get("direction")
        if asked is not None and answered is not None:
            return bool(asked == answered)
        # Without a direction, the content of the response decides.
        result = object_or_empty(message.get("result"))
        return "role" in result or not ("structuredContent" in result or isinstance(result.get("content"), list))
