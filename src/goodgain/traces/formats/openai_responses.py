"""OpenAI Responses: output items such as `function_call`, `web_search_call`, `file_search_call`, `mcp_call`.

Calls of the client's tools in a response are one step. Hosted tools run inside a response: if it has reasoning items,
calls without reasoning or a message between them are one step; otherwise each call is a step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from goodgain.traces.conversations.conversation import Conversation, message_text
from goodgain.traces.conversations.exchanges import (
    ConversationPart,
    Exchange,
    are_exchanges,
    join_exchanges,
    split_exchange,
)
from goodgain.traces.conversations.response_calls import (
    CLIENT_CALLS,
    WEB_RUN,
    is_encrypted,
    read_call,
    read_web_run_output,
)
from goodgain.traces.conversations.usage import read_usage
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

#: Types of items in which the client sends the output of its tools.
_CLIENT_ANSWER_TYPES = {"function_call_output", "custom_tool_call_output"}
#: Types of items without a search or a result.
_OTHER_TYPES = {
    *("computer_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output"),
    *("tool_search_output", "mcp_approval_response", "item_reference", "compaction", "additional_tools"),
    *("compaction_trigger", "program", "program_output", "configuration_update"),
}
_MESSAGE_FIELDS = {"role", "content", "type", "phase", "parsed"}
_USER_PART_TYPES = {"input_text", "input_image", "input_file", "input_audio", "text", "output_text", "refusal"}
#: Types of items that only this format has.
_OWN_TYPES = {
    "function_call",
    "function_call_output",
    "web_search_call",
    "file_search_call",
    "mcp_call",
    "mcp_list_tools",
}


def sniff(head: FileHead) -> bool:
    """Return whether there is a response, items of one, or exchanges with `input` and `output`."""
    if are_exchanges(head):
        return any(_is_exchange(record) for record in head.objects)
    if head.lines_are_messages or any("record_type" in record for record in head.objects):
        return False  # items of the Agents SDK, or an early rollout of Codex
    return any(_is_response(record) for record in head.objects)


def _is_response(record: dict[str, Any]) -> bool:
    if record.get("object") == "response" or as_word(record.get("type")) in _OWN_TYPES:
        return True
    for key in ("output", "input", "items"):
        items = record.get(key)
        if isinstance(items, list) and any(is_item(item) for item in items):
            return True
    return False


def is_item(item: Any) -> bool:
    """Return whether a value is an item of a kind that only this format has."""
    if not isinstance(item, dict):
        return False
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    output = any(isinstance(part, dict) and part.get("type") in ("output_text", "input_text") for part in parts)
    return as_word(item.get("type")) in _OWN_TYPES or (item.get("type") == "message" and output)


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own."""
    return not are_exchanges(head) and not _are_chained_responses(head)


def _are_chained_responses(head: FileHead) -> bool:
    return any(isinstance(record, dict) and record.get("previous_response_id") for record in head.records)


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a response or list of items; exchanges and chained responses are joined to conversations."""
    if are_exchanges(source.head):
        return join_exchanges(
            source, _read_exchange, _item_key, lambda parts, at: _read_parts(source, parts, at), endpoint_field="input"
        )
    if _are_chained_responses(source.head):
        return join_exchanges(source, _read_response, _item_key, lambda parts, at: _read_parts(source, parts, at))
    return source.traces(lambda value, at: _read_trace(source, value, at), is_one=_is_conversation)


def _is_conversation(value: list[Any]) -> bool:
    return not value or any(
        isinstance(item, dict) and ("role" in item or as_word(item.get("type")) in _OWN_TYPES) for item in value
    )


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    """Read a trace from a list of items, from a response, or from an object with `input` and `output`."""
    reader = ItemReader(source)
    lists = [(value, at)] if isinstance(value, list) else []
    if isinstance(value, dict):
        lists = [(value[key], f"{at}/{key}") for key in ("input", "items", "messages", "output") if key in value]
    if not lists:
        raise unexpected_value(at, "a response, or a list of its items", value)
    for items, items_at in lists:
        if source.costs and items_at == f"{at}/output":
            reader.conversation.spend(read_usage(value.get("usage")))
        if items is None and not items_at.endswith("/input"):
            raise unexpected_value(items_at, "a list of items", items)
        reader.read_all(_read_input(items, items_at) if items_at.endswith("/input") else _read_items(items, items_at))
    return reader.conversation.trace(at, value)


def _read_input(items: Any, at: str) -> list[tuple[Any, str]]:
    """Return the items of an input with their places; a text is one message of the user."""
    return [({"role": "user", "content": items}, at)] if isinstance(items, str) else _read_items(items, at)


def _read_items(items: Any, at: str) -> list[tuple[Any, str]]:
    return [(item, f"{at}/{index}") for index, item in enumerate(expect_list(items, at))]


def _is_exchange(record: Any) -> bool:
    found = split_exchange(record)
    if found is None:
        return False
    request, response = found
    return "input" in request and "output" in response


def _read_exchange(record: Any, at: str) -> Exchange | None:
    if not _is_exchange(record):
        return None
    request, response = split_exchange(record) or ({}, {})
    messages = [item for item, _ in _read_input(request["input"], f"{at}/request/input")]
    answer = expect_list(response["output"], f"{at}/response/output")
    previous = expect_id(request.get("previous_response_id"), f"{at}/request/previous_response_id")
    this = expect_id(response.get("id"), f"{at}/response/id")
    return Exchange(messages, f"{at}/request/input", answer, f"{at}/response/output", this, previous, response)


def _read_response(record: Any, at: str) -> Exchange | None:
    """Read a stored response as an exchange: its output, and its input if it has one."""
    response = expect_object(record, at)
    messages = [item for item, _ in _read_input(response.get("input"), f"{at}/input")]
    previous = expect_id(response.get("previous_response_id"), f"{at}/previous_response_id")
    answer = expect_list(response.get("output"), f"{at}/output")
    this = expect_id(response.get("id"), f"{at}/id")
    return Exchange(messages, f"{at}/input", answer, f"{at}/output", this, previous, response)


def _read_parts(source: Source, parts: list[ConversationPart], at: str) -> Trace:
    reader = ItemReader(source)
    for part in parts:
        if source.costs and not part.resent:
            reader.conversation.spend(read_usage(part.response.get("usage")))
        reader.read_all(part.messages, resent=part.resent)
    return reader.conversation.trace(at)


def _item_key(item: Any) -> Hashable | None:
    """Return what two copies of an item share; None for thoughts and hosted calls, which need not be sent again."""
    if not isinstance(item, dict):
        return None
    kind = as_word(item.get("type"), "message")
    if kind == "message":
        text = message_text(item.get("content")).strip()
        return (str(item.get("role")), text) if text or item.get("role") == "user" else None
    if kind in CLIENT_CALLS or kind in _CLIENT_ANSWER_TYPES:
        return (str(kind), str(item.get("call_id")))
    return None


class ItemReader:
    """Reports the items of a conversation to a `Conversation`, response by response.

    `web_remedy`: what would have recorded the results of a hosted web search, for programs without the API's options.
    """

    def __init__(self, source: Source, *, web_remedy: str = "") -> None:
        self.source = source
        self.conversation = Conversation()
        self.web_remedy = web_remedy
        self._new_step = True
        self._by_reasoning = self._stepped = self._client_step = False

    def read_all(self, items: list[tuple[Any, str]], *, resent: bool = False) -> None:
        """Read items in order. The items between two that the client sends are one response."""
        start = 0
        for item, at in items:
            expect_object(item, at)
        for index, (item, _) in enumerate([*items, (None, "")]):
            if item is None or _is_input(item):
                self._read_response(items[start:index], resent=resent)
                if item is not None and not resent:
                    self._read_client_item(*items[index])
                start = index + 1

    def _read_client_item(self, item: dict[str, Any], at: str) -> None:
        kind = as_word(item.get("type"), "message")
        if kind in _CLIENT_ANSWER_TYPES:
            call_id = expect_id(item.get("call_id"), f"{at}/call_id")
            output = item.get("output")
            if output is not None and not isinstance(output, (str, list, dict)):
                raise unexpected_value(f"{at}/output", "text or parts", output)
            lacks = output is None or is_encrypted(output)
            call = self.conversation.answer(call_id, UNANSWERED if lacks else output, f"{at}/output")
            if call.tool == WEB_RUN and call.output is not UNANSWERED:
                call.output = read_web_run_output(output)
        elif item.get("role") == "user":
            content = item.get("content")
            self.conversation.user(message_text(content))
            self._check_message_fields(item, at)
            for index, part in enumerate(content if isinstance(content, list) else []):
                if isinstance(part, dict) and part.get("type") not in _USER_PART_TYPES:
                    self._report_part(part, f"{at}/content/{index}")

    def _read_response(self, items: list[tuple[Any, str]], *, resent: bool) -> None:
        if not items:
            return
        objects = [(expect_object(item, at), at) for item, at in items]
        self._by_reasoning = any(item.get("type") == "reasoning" for item, _ in objects)
        self._new_step = True
        self._stepped = self._client_step = False
        waiting: list[ToolCall] = []
        for item, at in objects:
            kind = as_word(item.get("type"), "message")
            if kind == "reasoning":
                self._new_step = True
            elif kind == "message":
                self._new_step = True
                self._read_message(item, at, waiting, resent=resent)
            elif (call := read_call(self.source, kind, item, at)) is not None:
                self._add_call(call, client=kind in CLIENT_CALLS, resent=resent)
                if call.is_search and call.output is UNANSWERED:
                    waiting.append(call)
            elif kind not in _OTHER_TYPES:
                if not isinstance(item.get("type"), str):
                    raise unexpected_value(f"{at}/type", "the type of an item", item.get("type"))
                self.source.not_understood(f"item of type {kind!r}", at, "an item such as message, function_call")
        if not self._stepped and not resent:
            self.conversation.step()  # an answer without a call is a step, so that the next user message is a new turn

    def _add_call(self, call: ToolCall, *, client: bool, resent: bool) -> None:
        if not client and self.conversation.has_call(call.call_id):
            self.conversation.merge_copy(call)
            return
        if resent:
            return
        if not (client and self._client_step) and (self._new_step or not self._by_reasoning):
            self.conversation.step()
            self._stepped = True
        if self.web_remedy and call.tool == "web_search_call":
            call.remedy = self.web_remedy
        self._new_step = False
        self._client_step = self._client_step or client
        self.conversation.call(call)

    def _read_message(self, item: dict[str, Any], at: str, waiting: list[ToolCall], *, resent: bool) -> None:
        if item.get("role") != "assistant":
            raise unexpected_value(f"{at}/role", "a role (user, assistant, system, developer)", item.get("role"))
        if resent:
            return
        self._check_message_fields(item, at)
        content = item.get("content")
        for index, part in enumerate(content if isinstance(content, list) else []):
            part = expect_object(part, f"{at}/content/{index}")
            if part.get("type") not in ("output_text", "refusal", "text", "input_text"):
                self._report_part(part, f"{at}/content/{index}")
            elif self.source.citations and waiting:
                notes = expect_list(part.get("annotations"), f"{at}/content/{index}/annotations")
                cited = {str(note.get("url")): note for note in notes if _is_citation(note)}
                if cited:  # the log does not say which search found them, so they go to the last one before
                    waiting.pop().output = [{**note, "type": None} for note in cited.values()]

    def _check_message_fields(self, item: dict[str, Any], at: str) -> None:
        expected = "text in content, calls as items of their own"
        self.source.check_fields(item, _MESSAGE_FIELDS, at, of="a message", expected=expected, needs="content")

    def _report_part(self, part: dict[str, Any], at: str) -> None:
        self.source.not_understood(f"part of type {part.get('type')!r} in a message", at, "input_text or output_text")


def _is_input(item: Any) -> bool:
    """Return whether the client sends an item, so that the response before it has ended."""
    if not isinstance(item, dict):
        return False
    kind = as_word(item.get("type"), "message")
    return kind in _CLIENT_ANSWER_TYPES or (kind == "message" and item.get("role") in ("user", "system", "developer"))


def _is_citation(note: Any) -> bool:
    return isinstance(note, dict) and note.get("type") == "url_citation"
