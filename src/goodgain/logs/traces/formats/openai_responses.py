"""OpenAI Responses: output items such as `function_call`, `web_search_call`, `file_search_call`, `mcp_call`.

Calls of the client's tools in a response are one step. OpenAI runs hosted tools inside a response. If the response has
reasoning items, all hosted calls between two reasoning items or messages are one step. Otherwise each hosted call is a step.

Lost: Results of hosted web and file searches, unless requested. A search whose results are missing counts as unrecorded.
Query id: Not recorded by the API: `resp_...` is the id of an answer.
Record: Pass `include=["web_search_call.action.sources", "file_search_call.results"]`.
Costs: `usage` of each response. If a response has several steps, the first step has the whole usage.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from itertools import starmap
from typing import Any, Self

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations import UNANSWERED, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import Placed, any_object, walk_objects
from goodgain.logs.traces.conversations.tool_calls import expect_output, mark_unanswered, read_call
from goodgain.logs.traces.conversations.vendor_exchanges import Exchange, Item, JoinedConversation, place
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_id,
    expect_object,
    expect_text,
    object_or_empty,
    objects_in,
    unexpected_value,
)

#: Calls of the client's own tools with the field of their arguments, and items with the output of these tools.
_CLIENT_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_CLIENT_ANSWERS = {"function_call_output", "custom_tool_call_output"}
#: Keys in the action of a web search that do not hold arguments: its kind, and its results.
_NO_ARGUMENTS = {"type", "sources"}
#: Hosted tools that never search documents, and actions of the web search tool that read a page.
_OTHER_CALLS = {
    *("tool_search_call", "computer_call", "code_interpreter_call", "image_generation_call", "local_shell_call"),
    *("shell_call", "apply_patch_call", "mcp_list_tools", "mcp_approval_request"),
}
_OTHER_ACTIONS = {"open_page", "find", "find_in_page"}
_ROLES = ("user", "assistant", "system", "developer")
#: Types of items without a search or a result.
_OTHER_TYPES = {
    *("computer_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output"),
    *("tool_search_output", "mcp_approval_response", "item_reference", "compaction", "additional_tools"),
    *("compaction_trigger", "program", "program_output", "configuration_update", "reasoning"),
}
_PART_TYPES = {"input_text", "input_image", "input_file", "input_audio", "text", "output_text", "refusal"}
#: Types of items that only this format has.
_OWN_TYPES = {"web_search_call", "file_search_call", "mcp_call", "mcp_list_tools", "function_call", *_CLIENT_ANSWERS}
_WEB_REMEDY = 'record them with include=["web_search_call.action.sources"]'
_FILE_REMEDY = 'record them with include=["file_search_call.results"]'
#: The name for calls of Codex's web tool, and a result in the output: a line with title and URL, then a line with a mark.
#: The mark `turnNviewM` means an opened page.
_WEB_RUN = "web.run"
_WEB_RUN_HIT = re.compile(
    r"^(?P<title>[^\n]{0,500}?) ?\((?P<url>[a-z]+://[^\s]{1,2000})\)[ \t]*\n"
    r"\ue200cite\ue202turn\d+(?P<kind>[a-z]+)\d+\ue201(?P<text>[^\n]*)",
    re.MULTILINE,
)
_WEB_RUN_REMEDY = "Codex encrypts what its web tool returns"


def sniff(head: FileHead) -> bool:
    if JoinedConversation.are_exchanges(head):
        return ItemReader.claims(head)
    if head.lines_are_messages or any("record_type" in record for record in head.objects):
        return False  # items of the Agents SDK, or an early rollout of Codex
    return any(
        record.get("object") == "response"
        or as_word(record.get("type")) in _OWN_TYPES
        or any(any_object(record.get(key), is_item) for key in ("output", "input", "items"))
        for record in head.objects
    )


def is_item(item: dict[str, Any]) -> bool:
    content = item.get("content") if item.get("type") == "message" else None
    has_text = any_object(content, lambda part: part.get("type") in ("output_text", "input_text"))
    return has_text or as_word(item.get("type")) in _OWN_TYPES


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per list of items, or per conversation. `previous_response_id` joins responses into a conversation."""
    if JoinedConversation.are_exchanges(source.head):
        return ItemReader.join_exchanges(source)
    if any_object(source.head.records, lambda record: bool(record.get("previous_response_id"))):
        # A stored response holds the output and perhaps the input: it is both request and response.
        return ItemReader.join_exchanges(
            source, lambda record, at: ItemReader.pair(expect_object(record, at), record, at, at)
        )

    def is_one(value: Any) -> bool:
        items = objects_in(value)
        return not value or any("role" in item or as_word(item.get("type")) in _OWN_TYPES for item in items)

    return source.traces(partial(_read_trace, source), is_one=is_one)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    """Read a list of items, or a response: its input and other items first, then its output."""
    reader = ItemReader(source, value)
    lists = [("", value)] if isinstance(value, list) else []
    if isinstance(value, dict):
        lists = [(f"/{key}", value[key]) for key in ("input", "items", "messages", "output") if key in value]
    if not lists:
        raise unexpected_value(at, "a response, or a list of its items", value)

    for path, items in lists:
        if path == "/output":
            reader.spend(value.get("usage"))
        if items is None and path != "/input":
            raise unexpected_value(f"{at}{path}", "a list of items", items)
        reader.read_all(walk_objects(_get_input(items) if path == "/input" else items, f"{at}{path}"))

    return reader.trace(at)


def _get_input(items: Any) -> Any:
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return items


class ItemReader(JoinedConversation):
    asked, answered = "input", "output"
    #: How to record the results of a hosted web search; programs without the API's options have another remedy.
    web_remedy = _WEB_REMEDY

    @classmethod
    def find_asked(cls, request: dict[str, Any], response: dict[str, Any], at: str, response_at: str) -> list[Item]:
        return place(_get_input(request.get("input")), f"{at}/input")

    @classmethod
    def key(cls, item: dict[str, Any]) -> Hashable | None:
        """Return a key that is equal for copies of an item. Return None for thoughts and hosted calls: histories may omit both."""
        kind = as_word(item.get("type"), "message")
        if kind == "message":
            text = message_text(item.get("content")).strip()
            if text or item.get("role") == "user":
                return (str(item.get("role")), text)
            return None
        if kind in _CLIENT_CALLS or kind in _CLIENT_ANSWERS:
            return (kind, str(item.get("call_id")))
        return None

    def read_exchange(self, exchange: Exchange) -> None:
        """Read the items that the request has not repeated from an earlier exchange, then those of the response."""
        # A repeated call may have the output that the first copy lacks.
        for item, at in exchange.messages[: exchange.repeated_messages]:
            kind = as_word(expect_object(item, at).get("type"), "message")
            is_call = kind != "message" and kind not in _CLIENT_ANSWERS
            if is_call and (call := self._read_call(kind, item, at)) is not None:
                self.merge_copy(call)
        self.read_all(exchange.messages[exchange.repeated_messages :])
        self.spend(exchange.response.get("usage"))
        self.read_all(exchange.answer)

    def read_all(self, items: Iterable[tuple[Any, str]]) -> Self:
        """Read the items in order. Consecutive items of the model are one response."""
        response: list[Placed] = []
        for item, at in items:
            kind = as_word(expect_object(item, at).get("type"), "message")
            self.hold(item, at)
            if kind in _CLIENT_ANSWERS or (kind == "message" and item.get("role") in ("user", "system", "developer")):
                self._read_response(response)
                response = []
                self._read_client_item(kind, item, at)
            else:
                response.append((item, at))
        self._read_response(response)
        return self

    def _read_client_item(self, kind: str, item: dict[str, Any], at: str) -> None:
        """Read the output of a client's tool, or a message of the user. Messages of the system are passed over."""
        if kind in _CLIENT_ANSWERS:
            call_id = expect_id(item.get("call_id"), f"{at}/call_id")
            output = expect_output(item.get("output"), f"{at}/output")
            if any_object(output, lambda part: part.get("type") == "encrypted_content"):
                output = UNANSWERED

            call = self.answer(call_id, output, f"{at}/output")
            if call.tool == _WEB_RUN and call.output is not UNANSWERED:
                parts = output if isinstance(output, list) else [output]
                texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
                hits = [hit for text in texts if isinstance(text, str) for hit in _WEB_RUN_HIT.finditer(text)]
                call.opened = tuple(hit["url"] for hit in hits if hit["kind"] == "view") or call.opened
                call.output = [
                    {"title": hit["title"], "url": hit["url"], "snippet": hit["text"].strip() or None}
                    for hit in hits if hit["kind"] == "search"
                ] if hits and call.is_search else output  # fmt: skip
        elif item.get("role") == "user":
            self._read_message(item, at)

    def _read_response(self, items: list[Placed]) -> None:
        """Read the items of a response into steps. The texts after its last call are the answer.

        All calls of the client's tools are one step. Hosted calls between two thoughts or messages are one step if the response
        has thoughts; else each of them is a step.
        """
        by_reasoning = any(item.get("type") == "reasoning" for item, _ in items)
        new_step = True  # a thought or message came after the last call
        stepped = False
        client_step = False  # a call of the client's tools has begun a step
        waiting: list[ToolCall] = []  # searches without results
        texts: list[dict[str, Any]] = []

        for item, at in items:
            kind = as_word(item.get("type"), "message")
            client = kind in _CLIENT_CALLS
            if kind in ("reasoning", "message"):
                new_step = True
                if kind == "message":
                    self._read_message(item, at)
                    texts += objects_in(item.get("content"))
                for part in objects_in(item.get("content")) if self.source.citations else ():
                    notes = objects_in(part.get("annotations"))
                    notes = [note for note in notes if note.get("type") == "url_citation"]
                    cited = {str(note.get("url")): {**note, "type": None} for note in notes}
                    if cited and waiting:  # the citations belong to the last search before them
                        waiting.pop().output = list(cited.values())
                continue
            if (call := self._read_call(kind, item, at)) is None:
                continue
            texts.clear()
            if call.is_search and call.output is UNANSWERED:
                waiting.append(call)
            if not client and self.has_call(call.call_id):
                self.merge_copy(call)
                continue
            if not (client and client_step) and (new_step or not by_reasoning):
                self.step()
                stepped = True
            new_step, client_step = False, client_step or client
            self.call(call)

        if items and not stepped:
            self.step()  # an answer without a call is a step: the next user message is a new turn
        self.say(texts)

    def _read_message(self, item: dict[str, Any], at: str) -> None:
        """Read a message of the user (a turn). The answer in a message of the assistant is read elsewhere."""
        if item.get("role") not in _ROLES:
            raise unexpected_value(f"{at}/role", f"a role ({', '.join(_ROLES)})", item.get("role"))
        if item["role"] == "user":
            self.user(message_text(item.get("content")))
        self.report_unread("a message", item, at, ("content",))
        self.report_parts("a message", item.get("content"), f"{at}/content", _PART_TYPES)

    def _read_call(self, kind: str, item: dict[str, Any], at: str) -> ToolCall | None:
        """Return the call that an item is, with its results if they were requested; None for items without a call."""
        if kind in _CLIENT_CALLS:
            call = read_call(item, at, "name", "call_id", _CLIENT_CALLS[kind])
            if (item.get("namespace"), call.tool) == ("web", "run"):
                return _read_web_run(call)
            return call

        call_id = expect_id(item.get("id"), f"{at}/id")
        failed = item.get("status") == "failed"
        if kind == "web_search_call":
            action = {} if item.get("action") is None else expect_object(item["action"], f"{at}/action")
            does = as_word(action.get("type"), "search")
            found = action.get("sources")
            if does != "search":
                if does not in _OTHER_ACTIONS:
                    what = f"action of type {does!r} in a web_search_call"
                    self.source.not_understood(what, f"{at}/action", "search or open_page")
                return ToolCall(f"{kind} {does}", at, call_id, action, is_search=False, failed=failed)
            urls = UNANSWERED if found is None else [*starmap(read_source, walk_objects(found, f"{at}/action/sources"))]
            failed, remedy = failed and found is None, self.web_remedy
            arguments = {name: value for name, value in action.items() if name not in _NO_ARGUMENTS}
            return ToolCall(kind, at, call_id, arguments, urls, is_search=True, failed=failed, remedy=remedy)
        if kind == "file_search_call":
            found = item.get("results")
            asked = item.get("queries")
            hits = UNANSWERED if found is None else [*starmap(_read_file_hit, walk_objects(found, f"{at}/results"))]
            call = ToolCall(kind, at, call_id, asked, hits, is_search=True, doc_type="passage")
            call.failed = failed and found is None
            call.remedy = _FILE_REMEDY
            return call
        if kind == "mcp_call":
            call = read_call(item, at)
            call.output = mark_unanswered(item.get("output"))
            call.failed = item.get("error") not in (None, "")
            return call
        if kind in _OTHER_CALLS:
            return ToolCall(kind, at, call_id, is_search=False, output=None)
        if kind.endswith("_search_call"):  # a search tool newer than this reader
            name = as_word(item.get("name")) or kind
            asked = item.get("arguments", item.get("action"))
            remedy = f"goodgain does not read items of type {kind!r}"
            return ToolCall(name, at, call_id, asked, is_search=True, remedy=remedy, failed=failed)

        if kind not in _OTHER_TYPES:
            self.report_kind("item", item, "type", at, "an item such as message, function_call")
        return None


def _read_web_run(call: ToolCall) -> ToolCall:
    """Read a call of `web.run`, Codex's web tool. The arguments show whether the call searches, opens a page or finds text."""
    arguments = parse_if_json(call.arguments)
    if not isinstance(arguments, dict):
        raise unexpected_value(call.at, "arguments of web.run as a JSON object", arguments)
    queries = arguments.get("search_query")
    texts = [query.get("q") for query in objects_in(queries)]
    call.tool = _WEB_RUN
    call.is_search = bool(queries)
    call.remedy = _WEB_RUN_REMEDY
    call.queries = tuple(text for text in texts if isinstance(text, str))
    call.opened = tuple(page.get("ref_id") for page in objects_in(arguments.get("open"))) or None
    return call


def _read_file_hit(hit: dict[str, Any], at: str) -> dict[str, Any]:
    """Convert a result of a file search. `file_id` becomes `doc_id`, so several results may share a `doc_id`."""
    if hit.get("file_id") is None:
        raise unexpected_value(f"{at}/file_id", "the id of a file", None)
    names = {"title": "filename", "text": "text", "score": "score", "file_name": "filename"}
    attributes = object_or_empty(hit.get("attributes"))
    return {
        "doc_id": hit["file_id"],
        **{name: hit[key] for name, key in names.items() if hit.get(key) not in (None, "")},
        **{f"attribute_{name}": value for name, value in attributes.items()},
    }


def read_source(source: dict[str, Any], at: str) -> dict[str, Any]:
    """Convert a source of a web search to a result. A source without a URL gets its name as title."""
    if source.get("url") is None and source.get("name"):
        return {"title": expect_text(source["name"], f"{at}/name"), "type": source.get("type")}
    return {"url": expect_text(source.get("url"), f"{at}/url")}
