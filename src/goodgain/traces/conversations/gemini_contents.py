"""Reads Gemini's contents (`parts` with function calls and responses) and the grounding of its answers."""

from __future__ import annotations

import re
from typing import Any

from goodgain.traces.conversations.conversation import Conversation, message_text
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall

__all__ = ["ContentReader", "get", "is_content", "is_grounded", "read_response", "set_output"]

#: Keys of parts besides those of calls and responses, and keys that stand beside others and hold nothing themselves.
_OTHER_PARTS = {
    *("text", "inlineData", "fileData", "executableCode", "codeExecutionResult"),
    *("inline_data", "file_data", "executable_code", "code_execution_result"),
}
_BESIDE = {
    *("thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata", "partMetadata"),
    *("part_metadata", "mediaResolution", "media_resolution"),
}
_CALL, _RESPONSE = ("functionCall", "function_call"), ("functionResponse", "function_response")
#: Calls of tools that Google runs itself. The response to a search holds suggestions only: what it found is grounding.
_HOSTED_CALL, _HOSTED_RESPONSE = ("toolCall", "tool_call"), ("toolResponse", "tool_response")
_HOSTED_SEARCHES = {"google_search_web", "google_search_image", "google_maps", "file_search"}
_OPENS_PAGES = "url_context"
_NO_RESULTS = {"search_suggestions", "searchSuggestions", "google_maps_widget_context_token"}
_HOSTED_REMEDY = "Google returns it as groundingMetadata of the answer: record the answers, not only the requests"
_CONTENT_FIELDS = {"role", "parts"}
#: The kinds of chunks of grounding, each an object with a URL or a text.
_CHUNKS = ("web", "retrievedContext", "retrieved_context", "maps", "image")
_QUERIES = ("webSearchQueries", "web_search_queries", "retrievalQueries", "retrieval_queries")
_GROUNDING_REMEDY = "the answer's groundingMetadata has queries and no groundingChunks"
#: What the search tool of Gemini CLI writes: prose, and below it the pages that it comes from.
_CLI_SEARCH = "google_web_search"
_CLI_HEADING = 'Web search results for "'
_CLI_NOTHING = "No search results or information found for query"
_CLI_SOURCES = re.compile(r"\nSources:\n(?P<lines>(?:\[\d+\] [^\n]*(?:\n|\Z))+)\s*\Z")
_CLI_SOURCE = re.compile(r"\[\d+\] (?P<title>.*) \((?P<url>\S+)\)\s*")
_CLI_REMEDY = "the tool wrote prose without its list of sources"


def get(record: dict[str, Any], camel: str) -> Any:
    """Return the value of a key that dumps write in camelCase or, from Python, in snake_case; None if there is none."""
    if camel in record:
        return record[camel]
    return record.get(re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", camel))


def is_content(value: Any) -> bool:
    """Return whether a value is a content: a role, and parts that have no type."""
    if not isinstance(value, dict) or as_word(value.get("role")) not in ("user", "model", "function"):
        return False
    parts = value.get("parts")
    known = {*_OTHER_PARTS, *_BESIDE, *_CALL, *_RESPONSE, *_HOSTED_CALL, *_HOSTED_RESPONSE}
    return isinstance(parts, list) and any(
        isinstance(part, dict) and "type" not in part and not known.isdisjoint(part) for part in parts
    )


def is_grounded(holder: dict[str, Any]) -> bool:
    """Return whether an answer or event has grounding with queries or chunks."""
    found = get(holder, "groundingMetadata")
    return isinstance(found, dict) and any(found.get(key) for key in (*_QUERIES, "groundingChunks", "grounding_chunks"))


class ContentReader:
    """Reports contents and answers of the API to a `Conversation`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.conversation = Conversation()

    def read(self, content: Any, at: str, *, by_agent: bool | None = None, grounded: bool = False) -> None:
        """Read one content: a turn, responses of functions, or a step of the model.

        `by_agent`: whether the log says that an agent wrote it; None: its role decides. `grounded`: whether its searches
        are reported by `add_grounding`.
        """
        content = expect_object(content, at)
        role = content.get("role")
        if by_agent is None:
            if not isinstance(role, str) or role not in ("user", "model", "function", "system"):
                if not isinstance(role, str):
                    raise unexpected_value(f"{at}/role", "user, model or function", role)
                self.source.not_understood(f"content of role {role!r}", f"{at}/role", "user, model or function")
                return
            by_agent = role == "model"
        self.source.check_fields(content, _CONTENT_FIELDS, at, of="a content", expected="all in parts", needs="parts")
        if "parts" not in content:
            raise unexpected_value(f"{at}/parts", "a list of parts", None)
        parts = [
            (expect_object(part, f"{at}/parts/{index}"), f"{at}/parts/{index}")
            for index, part in enumerate(expect_list(content["parts"], f"{at}/parts"))
        ]
        responses = [part for part, _ in parts if _find(part, _RESPONSE) is not None]
        if by_agent and not responses:
            self.conversation.step()
        elif not (by_agent or responses or role == "system" or any(_find(part, _HOSTED_RESPONSE) for part, _ in parts)):
            self.conversation.user(message_text([part for part, _ in parts]))
        for part, part_at in parts:
            self._read_part(part, part_at, grounded=grounded)

    def _read_part(self, part: dict[str, Any], at: str, *, grounded: bool) -> None:
        if (key := _find(part, _CALL)) is not None:
            call = expect_object(part[key], f"{at}/{key}")
            name = expect_text(call.get("name"), f"{at}/{key}/name")
            self.conversation.call(ToolCall(name, at, expect_id(call.get("id"), f"{at}/{key}/id"), call.get("args")))
        elif (key := _find(part, _RESPONSE)) is not None:
            self._read_function_response(expect_object(part[key], f"{at}/{key}"), f"{at}/{key}")
        elif (key := _find(part, _HOSTED_CALL)) is not None:
            self._read_hosted_call(expect_object(part[key], f"{at}/{key}"), f"{at}/{key}", grounded=grounded)
        elif (key := _find(part, _HOSTED_RESPONSE)) is not None:
            if not grounded:
                self._read_hosted_response(expect_object(part[key], f"{at}/{key}"), f"{at}/{key}")
        else:
            known = {*_OTHER_PARTS, *_BESIDE}
            odd = [key for key, value in part.items() if key not in known and (value is not None or len(part) == 1)]
            if odd or not part:
                what = f"part with {', '.join(map(str, odd[:3])) or 'nothing'!r}"
                self.source.not_understood(what, at, "a part with text, functionCall, functionResponse ...")

    def _read_hosted_call(self, found: dict[str, Any], at: str, *, grounded: bool) -> None:
        """Read the call of a tool that Google ran; the searches behind a grounded answer are one, its grounding."""
        kind = as_word(get(found, "toolType")).lower()
        searches = kind in _HOSTED_SEARCHES or self.source.is_search(kind)
        if not searches and kind != _OPENS_PAGES:
            expected = f"one of {', '.join(sorted(_HOSTED_SEARCHES))}, {_OPENS_PAGES}"
            self.source.not_understood(f"toolCall of type {kind!r}", f"{at}/toolType", expected)
        elif not (searches and grounded):
            call = ToolCall(kind, at, expect_id(found.get("id"), f"{at}/id"), found.get("args"), remedy=_HOSTED_REMEDY)
            call.is_search = searches
            self.conversation.call(call)

    def _read_hosted_response(self, found: dict[str, Any], at: str) -> None:
        call_id, response = expect_id(found.get("id"), f"{at}/id"), found.get("response")
        held = (
            {key: value for key, value in response.items() if key not in _NO_RESULTS}
            if isinstance(response, dict)
            else {}
        )
        if held and self.conversation.has_call(call_id):
            set_output(self.conversation.answer(call_id, UNANSWERED, at), held)
        elif held:
            self.source.not_understood(
                "toolResponse without a call", at, f"the answer to a call (none has the id {call_id!r})"
            )

    def _read_function_response(self, found: dict[str, Any], at: str) -> None:
        name = expect_text(found.get("name"), f"{at}/name")
        call_id = expect_id(found.get("id"), f"{at}/id")
        call_id = call_id if self.conversation.has_call(call_id) else None  # ids are often left out: by name and order
        if not self.conversation.has_open_call(call_id, name):
            expected = f"the answer to a call made before (no call of {name!r} is open)"
            self.source.not_understood("functionResponse without a call", at, expected)
            return
        call = self.conversation.answer(call_id, UNANSWERED, at, name=name)
        set_output(call, found.get("response"))

    def add_grounding(self, holder: dict[str, Any], at: str) -> None:
        """Report the hosted search behind an answer: one, whatever the number of its queries."""
        if not is_grounded(holder):
            return
        found, at = get(holder, "groundingMetadata"), f"{at}/groundingMetadata"
        queries = [query for key in _QUERIES for query in expect_list(found.get(key), f"{at}/{key}")]
        chunks = expect_list(get(found, "groundingChunks"), f"{at}/groundingChunks")
        call = ToolCall("google_search", at, is_search=True, remedy=_GROUNDING_REMEDY)
        call.queries = tuple(query for query in queries if isinstance(query, str))
        if chunks:
            hits = [self._read_chunk(chunk, f"{at}/groundingChunks/{index}") for index, chunk in enumerate(chunks)]
            call.output = [hit for hit in hits if hit is not None]
        self.conversation.call(call)

    def _read_chunk(self, chunk: Any, at: str) -> dict[str, Any] | None:
        found = expect_object(chunk, at)
        key = next((key for key in _CHUNKS if isinstance(found.get(key), dict)), None)
        if key is None:
            what = f"grounding chunk with {', '.join(map(str, list(found)[:3])) or 'nothing'!r}"
            self.source.not_understood(what, at, "a chunk of web, retrievedContext or maps")
            return None
        kept = ("uri", "title", "text", "domain", "documentName", "document_name")
        return {name: found[key][name] for name in kept if found[key].get(name) is not None}


def set_output(call: ToolCall, response: Any) -> None:
    """Set the output of a call from its response: what stands under `result` or `output`, or a failure under `error`."""
    if isinstance(response, dict):
        held = [key for key in ("result", "output") if response.get(key) is not None]
        if response.get("error") is not None and not held:
            call.output, call.failed = response["error"], True
            return
        if len(held) == 1 and len(response) == 1:
            response = response[held[0]]
    if response is None:
        return
    if call.tool == _CLI_SEARCH and isinstance(response, str):
        response = _read_cli_search(response)
        call.remedy = _CLI_REMEDY
    call.output = response


def _read_cli_search(text: str) -> Any:
    """Return the sources in the text of Gemini CLI's search; unanswered if it has prose only."""
    if text.startswith(_CLI_NOTHING):
        return []
    if not text.startswith(_CLI_HEADING):
        return text
    sources = _CLI_SOURCES.search(text)
    lines = sources["lines"].splitlines() if sources else []
    found = [hit for line in lines if (hit := _CLI_SOURCE.fullmatch(line))]
    return (
        [{"title": hit["title"], "url": hit["url"]} for hit in found]
        if lines and len(found) == len(lines)
        else UNANSWERED
    )


def read_response(reader: ContentReader, record: dict[str, Any], at: str) -> None:
    """Read an answer of the API: its first candidate, after the calls that the client library made by itself."""
    history = get(record, "automaticFunctionCallingHistory")
    for index, content in enumerate(expect_list(history, f"{at}/automaticFunctionCallingHistory")):
        reader.read(content, f"{at}/automaticFunctionCallingHistory/{index}")
    candidates = expect_list(record.get("candidates"), f"{at}/candidates")
    if not candidates:
        return
    first = expect_object(candidates[0], f"{at}/candidates/0")
    if first.get("content") is not None:
        content_at = f"{at}/candidates/0/content"
        content = {"parts": [], **expect_object(first["content"], content_at)}
        reader.read(content, content_at, by_agent=True, grounded=is_grounded(first))
    reader.add_grounding(first, f"{at}/candidates/0")


def _find(part: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if part.get(key) is not None), None)
