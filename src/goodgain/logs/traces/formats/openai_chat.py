"""OpenAI Chat Completions: message lists with `tool_calls`, as vLLM, LiteLLM, Groq, Haystack and most agents log them.

An assistant message is a step. A user message is a turn. The format includes `function_call`, Groq's `executed_tools`,
Haystack's message parts, and recorded requests and responses of OpenAI, Cohere (v2) and Ollama.

Lost: Ids, URLs and scores that the tool did not write. Searches by models such as `gpt-4o-search-preview` are unrecorded.
Query id: The `id` beside the messages, except ids of answers (`chatcmpl-...`). The system is the `model`.
Record: If the log has citations but no search results, `--citations` counts the citations of an answer as search results.
Costs: `usage` of recorded answers, including `usage.cost`.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import (
    PLAIN_PARTS,
    find_messages,
    has_messages,
    message_text,
    walk_parts,
)
from goodgain.logs.traces.conversations.record_objects import Placed, text_or_none, walk_objects
from goodgain.logs.traces.conversations.tool_calls import expect_output, mark_unanswered, read_call, read_function_call
from goodgain.logs.traces.conversations.vendor_exchanges import Exchange, JoinedConversation, split_exchange
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_id,
    expect_object,
    expect_optional_text,
    expect_text,
    find_record_id,
    object_or_empty,
    objects_in,
)
from goodgain.logs.traces.formats import tagged_text
from goodgain.options import spell

#: Marks of other formats whose messages have a role: types of parts, keys of parts, keys of messages.
_OTHER_PART_TYPES = {
    *("tool_use", "tool_result", "server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result"),
    *("tool-call", "tool-result", "tool_call", "input_text", "output_text"),
}
_OTHER_PARTS = {"toolUse", "toolResult"}
_OTHER_KEYS = {"function", "tool_type", "lc", "data", "parts", "toolInvocations"}
_ROLES = {"user", "assistant", "system", "developer", "tool", "function"}
#: Haystack's parts have no type: each is an object with one of these keys.
_HAYSTACK_PARTS = {"text", "tool_call", "tool_call_result", "image", "reasoning", "file"}
_PARTS = (PLAIN_PARTS, _HAYSTACK_PARTS)
_CALL_FIELDS = {"tool_calls", "function_call", "executed_tools", "tool_call_id", "tool_responses"}
#: `tool_plan` is what Cohere's models think before they call.
_READ = _CALL_FIELDS | {"content", "tool_plan"}
_KNOWN = _READ | {"role", "name"}
#: Fields of a message that only speaks.
_SPOKEN = {"role", "content", "name"}
#: Special tokens that some models write into their messages to search.
_SEARCH_TOKEN = re.compile(r"<\|\w{0,20}(?:search|query)\w{0,20}\|>")
#: Parts of the names of models that search before each answer.
_SEARCHING_MODELS = ("search-preview", "search-api")


def advise_citations() -> str:
    return f"the vendor ran the search and logs only citations: count them as results with {spell('citations', True)}"


def sniff(head: FileHead) -> bool:
    if JoinedConversation.are_exchanges(head):
        return _Messages.claims(head)
    # Tagged text is often logged in messages of this format: the tags decide.
    return any(map(_is_chat, head.conversations)) and not tagged_text.sniff(head)


def _is_chat(record: Any) -> bool:
    held = object_or_empty(record)
    if "samples" in held or "tool_call_counts" in held:
        return False
    is_answer = held.get("object") == "chat.completion" and "choices" in held
    return is_answer or (has_messages(record, _is_message) and not has_messages(record, _is_of_other_format))


def _is_message(message: dict[str, Any]) -> bool:
    """Return whether a message has a role of this format, and a text, a field of a call, or a part of this format."""
    if as_word(message.get("role")) not in _ROLES or message.get("type", "message") != "message":
        return False
    content = message.get("content")
    if isinstance(content, str) or not _CALL_FIELDS.isdisjoint(message):
        return True
    return any(map(_is_part, objects_in(content)))


def _is_part(part: dict[str, Any]) -> bool:
    if "type" in part:
        return as_word(part["type"]) in PLAIN_PARTS
    return not _HAYSTACK_PARTS.isdisjoint(part)


def _is_of_other_format(message: dict[str, Any]) -> bool:
    parts = objects_in(message.get("content"))
    has_parts = any(
        as_word(part.get("type")) in _OTHER_PART_TYPES or not _OTHER_PARTS.isdisjoint(part) for part in parts
    )
    return message.get("type") not in (None, "message") or not _OTHER_KEYS.isdisjoint(message) or has_parts


def read(source: Source) -> Iterator[Trace]:
    if JoinedConversation.are_exchanges(source.head):
        return _Messages.join_exchanges(source)
    return _Messages.read_source(source, _find_messages)


def _find_messages(value: Any, at: str) -> Iterable[Placed]:
    if isinstance(value, dict) and "choices" in value and "messages" not in value:
        return _Messages.find_answer(value, at)
    return find_messages(value, at)


class _Messages(JoinedConversation):
    asked, answered = "messages", "choices"
    hosted_searches = 0  # the number of hosted searches so far

    def __init__(self, source: Source, record: Any = None) -> None:
        super().__init__(source, record)
        self.model = object_or_empty(record).get("model")

    @classmethod
    def split(cls, record: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return a record's request and response, or None. Cohere and Ollama respond with `message` instead of `choices`."""
        exchange = super().split(record) or split_exchange(record, cls.asked, "message")
        is_whole = exchange is not None and ("choices" in exchange[1] or isinstance(exchange[1]["message"], dict))
        return exchange if is_whole else None

    @classmethod
    def find_answer(cls, response: dict[str, Any], at: str) -> list[Placed]:
        if "choices" not in response:
            return [(expect_object(response.get("message"), f"{at}/message"), f"{at}/message")]
        first = next(walk_objects(response["choices"], f"{at}/choices"), ({}, ""))[0]
        return [(expect_object(first.get("message"), f"{at}/choices/0/message"), f"{at}/choices/0")]

    @classmethod
    def key(cls, message: dict[str, Any]) -> Hashable | None:
        """Return the role, the ids of calls and answers, and the text. None for an answer that has neither text nor calls."""
        ids = tuple(str(call.get("id")) for call in objects_in(message.get("tool_calls")))
        text = message_text(message.get("content")).strip()
        if message.get("role") == "assistant" and not text and not ids and not message.get("function_call"):
            return None
        return (str(message.get("role")), ids, str(message.get("tool_call_id")), text)

    def read_exchange(self, exchange: Exchange) -> None:
        """Read the messages that the request has not repeated from an earlier exchange, then the response."""
        self.model = None  # unknown for answers in the request: another model may have given them
        self.read_all(exchange.messages[exchange.repeated_messages :])

        searches_before = self.hosted_searches
        self.model = exchange.response.get("model")
        self.tag = self.tag or text_or_none(self.model)
        self.spend(exchange.response.get("usage"))
        self.read_all(exchange.answer)
        self.report_unread("a response", exchange.response, exchange.response_at, ("choices", "message"))
        self._add_unlogged_searches(exchange.response, searches_before, exchange.response_at)

    def _end(self, at: str) -> None:
        self._add_unlogged_searches(object_or_empty(self.record), 0, at)
        self.query_id, self.tag = find_record_id(self.record), self.tag or text_or_none(self.model)

    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message: of the user (a turn), of the assistant (a step), or the output of a tool."""
        role = message.get("role")
        if not message.keys() <= _KNOWN:
            self.report_unread("a message", message, at, _READ)
        if role in ("tool", "function", "observation"):
            self._read_answer(message, at)
        elif role == "assistant":
            self.spend(message.get("usage"))
            self.step()
            self._read_calls(message, at)
            if not message.get("tool_calls") and not message.get("function_call"):
                notes = objects_in(message.get("annotations"))
                self.say(message.get("content") or [], notes, is_call=lambda part: "tool_call" in part)
        elif role == "user":
            self.user(message_text(message.get("content")))
            self.report_parts("a user message", message.get("content"), f"{at}/content", *_PARTS)
        elif role not in ("system", "developer"):
            self.report_kind("message", message, "role", at, ", ".join(sorted(_ROLES)))

    def _read_answer(self, message: dict[str, Any], at: str) -> None:
        """Answer the calls that a message of a tool names: in parts (Haystack), in a list of answers (AutoGen), or as a whole."""
        content = message.get("content")
        content_at = f"{at}/content"
        parts = list(walk_parts(content, content_at))
        for part, part_at in parts:
            if part.get("tool_call_result") is not None:
                result_at = f"{part_at}/tool_call_result"
                result = expect_object(part["tool_call_result"], result_at)
                origin = expect_object(result.get("origin"), f"{result_at}/origin")
                call_id = expect_id(origin.get("id"), f"{result_at}/origin/id")
                name = expect_optional_text(origin.get("tool_name"), f"{result_at}/origin/tool_name")
                output = mark_unanswered(result.get("result"))
                failed = result.get("error") is True
                self.answer(call_id, output, result_at, name=name, failed=failed)

        if any("tool_call_result" in part for part, _ in parts):
            return
        if "tool_responses" in message:  # AutoGen 0.2: `content` joins the texts of the answers
            for answer, answer_at in walk_objects(message["tool_responses"], f"{at}/tool_responses"):
                self._read_answer(answer, answer_at)
            return

        call_id = expect_id(message.get("tool_call_id"), f"{at}/tool_call_id")
        name = expect_optional_text(message.get("name"), f"{at}/name") if call_id is None else None
        if name is not None and message.get("role") != "function" and not self.has_open_call(None, name):
            name = None  # the name may differ from the name of the function

        self.answer(call_id, expect_output(content, content_at), content_at, name=name)

    def _read_calls(self, message: dict[str, Any], at: str) -> None:
        """Add the calls of an assistant's message: of the client's tools, then those that the vendor ran.

        An answer with citations, or of a model that always searches, is one search. Its results are the citations only if the
        option `citations` is set; else they are unrecorded.
        """
        searches_before = self.hosted_searches
        content = message.get("content")
        content_at = f"{at}/content"
        if isinstance(content, str):
            self._report_search_token(content, content_at)
            if message.keys() <= _SPOKEN:
                return

        for call, call_at in walk_objects(message.get("tool_calls"), f"{at}/tool_calls"):
            self.call(read_function_call(call, call_at))
        if (legacy := message.get("function_call")) is not None:
            made = read_call(expect_object(legacy, f"{at}/function_call"), f"{at}/function_call")
            made.call_id = None
            self.call(made)
        for part, part_at in walk_parts(content, content_at):
            if isinstance(part.get("tool_call"), dict):
                self.call(read_call(part["tool_call"], f"{part_at}/tool_call", "tool_name"))
        self.report_parts("an assistant message", content, content_at, *_PARTS)
        expect_output(content, content_at)
        if "executed_tools" in message:
            for tool, tool_at in _unite_copies(message["executed_tools"], f"{at}/executed_tools"):
                self.hosted_searches += 1
                found, output = (mark_unanswered(tool.get(key)) for key in ("search_results", "output"))
                first, spare = (output, UNANSWERED) if found is UNANSWERED else (found, output)
                name = expect_text(tool.get("type"), f"{tool_at}/type")
                asked = tool.get("arguments")
                self.call(ToolCall(name, tool_at, arguments=asked, output=first, spare=spare))
        if "annotations" in message and not message.get("tool_calls") and not message.get("executed_tools"):
            # The log lacks the search behind an answer with citations, or by a model that always searches.
            notes, notes_at = message["annotations"], f"{at}/annotations"
            citations = objects_in([note.get("url_citation") for note, _ in walk_objects(notes, notes_at)])
            unique = {str(citation.get("url")): citation for citation in citations}
            model = as_word(message.get("model") or self.model)
            if unique or (notes is not None and any(part in model for part in _SEARCHING_MODELS)):
                cited = list(unique.values()) if self.source.citations and unique else UNANSWERED
                self.hosted_searches += 1
                self.call(ToolCall("web_search", notes_at, output=cited, is_search=True, remedy=advise_citations()))
        self._add_unlogged_searches(message, searches_before, at)

    def _report_search_token(self, text: str, at: str) -> None:
        if "<|" in text and (tag := _SEARCH_TOKEN.search(text)) is not None:
            self.source.not_understood(f"the tag {tag.group()}", at, "calls in tool_calls")

    def _add_unlogged_searches(self, holder: dict[str, Any], searches_before: int, at: str) -> None:
        """Add the searches that the usage counts, if no hosted search was read since there were `searches_before`."""
        if self.hosted_searches == searches_before and (usage := holder.get("usage")):
            self.hosted_searches += self.add_counted_searches(usage, at, advise_citations())


def _unite_copies(tools: Any, at: str) -> list[Placed]:
    """Merge the two copies of each tool call in a stream of Groq. The first copy lacks the results."""
    first_copies: dict[tuple[Any, ...], Placed] = {}
    for place, (member, tool_at) in enumerate(walk_objects(tools, at)):
        tool = {key: value for key, value in member.items() if value is not None}
        results = tool.get("search_results")
        index = tool.get("index")
        if "output" not in tool and isinstance(results, dict) and not results.get("results"):
            del tool["search_results"]
        named = (as_word(tool.get(name)) for name in ("type", "arguments"))
        key = (index if isinstance(index, int) else -1 - place, *named)
        first_copies.setdefault(key, ({}, tool_at))[0].update(tool)
    return list(first_copies.values())
