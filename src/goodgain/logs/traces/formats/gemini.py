"""Gemini: messages and answers of the API, sessions of Google's ADK, sessions and checkpoints of Gemini CLI.

A message of the model, an event of an agent (ADK) or a `gemini` message (CLI) is a step. A message of the user is a turn. The
grounding of an answer is one search that Google ran.

Lost: Tokens, results of searches without grounding chunks (such searches count as unrecorded), and which redirect URLs lead to
one page.
Query id: The session's id (ADK, Gemini CLI), else none. The system is the app's name (ADK) or the model.
Record: The log must hold the answers too, because requests do not hold the grounding.
Costs: Seconds since the previous step, by `timestamp` (Gemini CLI).
"""

from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from itertools import takewhile
from operator import ne
from typing import Any, Self

from goodgain.files.json_text import parse_if_json
from goodgain.logs.dedup.document_types import snake_case
from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import (
    Placed,
    any_object,
    find_list,
    get_either,
    read_records,
    text_or_none,
    walk_objects,
)
from goodgain.logs.traces.conversations.tool_calls import read_call, require_id
from goodgain.logs.traces.conversations.vendor_exchanges import Exchange, Item, JoinedConversation, split_exchange
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_id,
    expect_list,
    expect_object,
    expect_text,
    object_or_empty,
    objects_in,
    unexpected_value,
)

_EXPECTED = "contents (a role and parts), an answer (candidates), a session of ADK (events) or of Gemini CLI (messages)"
#: Keys of parts in camelCase: calls and responses; parts without a call; keys that accompany other keys.
_CALLS = ("functionCall", "functionResponse", "toolCall", "toolResponse")
_OTHER_PARTS = ("text", "inlineData", "fileData", "executableCode", "codeExecutionResult")
_BESIDE = ("thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution")
#: Google's hosted searches and tool to open pages. Responses to searches hold only suggestions: the results are in the
#: grounding of the answer.
_HOSTED_SEARCHES = {"google_search_web", "google_search_image", "google_maps", "file_search"}
_OPENS_PAGES = "url_context"
_NO_RESULTS = {"search_suggestions", "searchSuggestions", "google_maps_widget_context_token"}
_HOSTED_REMEDY = "Google returns it as groundingMetadata of the answer: record the answers, not only the requests"
#: The kinds of grounding chunks, each an object with a URL or a text, and the fields that are kept.
_CHUNKS = ("web", "retrievedContext", "retrieved_context", "maps", "image")
_OF_CHUNK = ("uri", "title", "text", "domain", "documentName", "document_name", "fileSearchStore", "file_search_store")
_QUERIES = ("webSearchQueries", "web_search_queries", "retrievalQueries", "retrieval_queries")
_GROUNDS = (*_QUERIES, "groundingChunks", "grounding_chunks")
_GROUNDING_REMEDY = "the answer's groundingMetadata has queries and no groundingChunks"
#: The fields of requests and responses of other vendors' endpoints.
_OTHER_ENDPOINTS = (("messages", "choices"), ("messages", "content"), ("input", "output"))
#: The fields of an ADK event that are read, or that instruct the program.
_EVENT_READ = ("content", "groundingMetadata", "grounding_metadata", "actions")
_CLI_KEYS = {"sessionId", "projectHash"}
#: Types of the messages of Gemini CLI that are neither a turn nor a step.
_OTHER_MESSAGES = {"info", "error", "warning"}
_OF_MESSAGE = "the id of a message"
_CLI_SEARCH = "google_web_search"
_CLI_REMEDY = "the tool wrote prose without its list of sources"
#: The keys of parts that this format knows, as dumps write them: in camelCase or, from Python, in snake_case.
_KNOWN = {spelling for key in (*_CALLS, *_OTHER_PARTS, *_BESIDE) for spelling in (key, snake_case(key))}


def sniff(head: FileHead) -> bool:
    if not JoinedConversation.are_exchanges(head):
        return any(map(_is_of_format, head.conversations))
    # A log of exchanges with several vendors is read in the other format. That format reports Gemini's as left out.
    exchanges = (split_exchange(record, *endpoint) for record in head.objects for endpoint in _OTHER_ENDPOINTS)
    return ContentReader.claims(head) and not any(exchanges)


def _is_of_format(value: Any) -> bool:
    record = object_or_empty(value)
    lists = (value, *(record.get(key) for key in ("contents", "history", "events")))
    return (
        any(_is_content(item) or _is_event(item) for held in lists for item in objects_in(held))
        or _is_event(record)
        or record.keys() >= _CLI_KEYS
        or any_object(record.get("candidates"), lambda item: "parts" in object_or_empty(item.get("content")))
    )


def _is_content(value: dict[str, Any]) -> bool:
    has_parts = any_object(value.get("parts"), lambda part: "type" not in part and not _KNOWN.isdisjoint(part))
    return has_parts and as_word(value.get("role")) in ("user", "model", "function")


def _is_event(value: dict[str, Any]) -> bool:
    return "author" in value and ("invocationId" in value or "invocation_id" in value)


def read(source: Source) -> Iterator[Trace]:
    """Choose the reader: joined exchanges, rows of ADK events, lines of the CLI, or values that are a trace each."""
    if JoinedConversation.are_exchanges(source.head):
        return ContentReader.join_exchanges(source)
    if any(map(_is_event, source.head.objects)):
        return _read_event_rows(source)
    first = next(map(object_or_empty, source.head.records), {})
    if source.head.kind == "jsonl" and first.keys() >= _CLI_KEYS and "messages" not in first:
        return _read_cli_lines(source)
    read_one = partial(_read_trace, source)
    return source.traces(read_one, is_one=lambda value: not value or any_object(value, lambda item: "parts" in item))


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    """Read a session of ADK events, a session of the CLI, or contents; the response after them, if the record has one."""
    record = object_or_empty(value)
    events = record.get("events")
    app = get_either(record, "appName")
    if isinstance(events, list) and (app is not None or any_object(events, _is_event)):
        reader = ContentReader(source, record).read_events(walk_objects(events, f"{at}/events"))
        session = expect_id(record.get("id"), f"{at}/id")
        return reader.trace(at, session_id=session, tag=app)
    if record.keys() >= _CLI_KEYS or "messages" in record:
        return _CliSession(source, record).read_all(walk_objects(record.get("messages"), f"{at}/messages")).trace(at)

    contents, path = find_list(value, "contents", "history")
    inner = object_or_empty(record.get("response"))
    answer, answer_at = (inner, f"{at}/response") if "candidates" in inner else (record, at)
    if not contents and "candidates" not in answer:
        raise unexpected_value(at, _EXPECTED, value)

    reader = ContentReader(source, value)
    if "candidates" in answer:
        reader.read_exchange(ContentReader.pair({"contents": contents}, answer, at, answer_at))
    else:
        reader.read_all(walk_objects(contents, f"{at}{path}"))
    return reader.trace(at, tag=get_either(record, "modelVersion"))


class ContentReader(JoinedConversation):
    asked, answered = "contents", "candidates"

    @classmethod
    def find_answer(cls, response: dict[str, Any], at: str) -> list[Placed]:
        first = next(walk_objects(response["candidates"], f"{at}/candidates"), ({}, ""))[0]
        if isinstance(first.get("content"), dict):
            return [(first["content"], f"{at}/candidates/0/content")]
        return []

    @classmethod
    def key(cls, content: Any) -> Hashable | None:
        """Return the role, the text without thoughts, and the names and ids of calls. None for a message without parts."""
        if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
            return None
        parts = objects_in(content["parts"])
        named = [get_either(part, key) for part in parts for key in ("functionCall", "functionResponse")]
        calls = tuple((str(call.get("name")), str(call.get("id"))) for call in named if isinstance(call, dict))
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
        return (str(content.get("role")), "".join(texts).strip(), calls)

    @classmethod
    def find_asked(cls, request: dict[str, Any], response: dict[str, Any], at: str, response_at: str) -> list[Item]:
        """Return the messages of a request, then the messages of automatic function calls in the response, without duplicates."""
        asked = super().find_asked(request, response, at, response_at)
        history = get_either(response, "automaticFunctionCallingHistory")
        history_calls = list(walk_objects(history, f"{response_at}/automaticFunctionCallingHistory"))
        same = takewhile(
            lambda pair: cls.key(pair[0][0]) == cls.key(pair[1][0]), zip(asked, history_calls, strict=False)
        )
        return asked + history_calls[len(list(same)) :]

    def read_exchange(self, exchange: Exchange) -> None:
        self.read_all(exchange.messages[exchange.repeated_messages :])
        answer, at = exchange.response, exchange.response_at
        for candidate, candidate_at in list(walk_objects(answer.get("candidates"), f"{at}/candidates"))[:1]:
            self.read_grounded(candidate, candidate.get("content"), candidate_at, by_agent=True)
        self.tag = text_or_none(get_either(answer, "modelVersion")) or self.tag

    def read_events(self, events: Iterable[Placed]) -> Self:
        """Read the contents of ADK events, each once: pieces of a streamed answer are left out."""
        for event, at in events:
            author = expect_text(event.get("author"), f"{at}/author")
            if event.get("partial") is not True:  # the whole answer comes later
                self.report_unread("an event", event, at, _EVENT_READ)
                self.read_grounded(event, parse_if_json(event.get("content")), at, by_agent=author != "user")
            self.hold(event, at)
        return self

    def read_grounded(self, holder: dict[str, Any], content: Any, at: str, *, by_agent: bool) -> None:
        """Read a message and its `groundingMetadata`. All queries in the metadata are one search."""
        grounding = get_either(holder, "groundingMetadata")
        grounded = isinstance(grounding, dict) and any(grounding.get(key) for key in _GROUNDS)
        if content is not None:
            self.read(content, f"{at}/content", by_agent=by_agent, grounded=grounded)
        if not grounded:
            return

        at = f"{at}/groundingMetadata"
        queries = [query for key in _QUERIES for query in expect_list(grounding.get(key), f"{at}/{key}")]
        chunks = list(walk_objects(get_either(grounding, "groundingChunks"), f"{at}/groundingChunks"))
        texts = tuple(query for query in queries if isinstance(query, str))
        call = ToolCall("google_search", at, is_search=True, remedy=_GROUNDING_REMEDY, queries=texts)
        self.call(call).output = [] if chunks else UNANSWERED
        supports = objects_in(get_either(grounding, "groundingSupports"))
        numbers = [expect_list(get_either(support, "groundingChunkIndices"), at) for support in supports]

        for index, (chunk, chunk_at) in enumerate(chunks):
            held = next((chunk[key] for key in _CHUNKS if isinstance(chunk.get(key), dict)), None)
            if held is None:
                self.report_keys("grounding chunk", chunk, chunk_at, "a chunk of web, retrievedContext or maps")
            else:
                call.output.append({name: held[name] for name in _OF_CHUNK if held.get(name) is not None})
                self.say([], [held] if any(index in of_support for of_support in numbers) else [])

    def read(self, content: Any, at: str, *, by_agent: bool | None = None, grounded: bool = False) -> None:
        """Read one message (a `Content`). If `by_agent` is None, the message's role shows whether the agent wrote it."""
        content = expect_object(content, at)
        role = content.get("role")
        if by_agent is None:
            if as_word(role) not in ("user", "model", "function", "system"):
                self.report_kind("content", content, "role", at, "user, model or function")
                return
            if "parts" not in content:
                raise unexpected_value(f"{at}/parts", "a list of parts", None)
            by_agent = role == "model"

        self.report_unread("a content", content, at, ("parts",))
        placed = list(walk_objects(content.get("parts"), f"{at}/parts"))
        parts = [part for part, _ in placed]
        responds = any(get_either(part, "functionResponse") is not None for part in parts)
        is_spoken = not responds and not any(get_either(part, "toolResponse") for part in parts)
        if by_agent and not responds:
            self.step()
        elif is_spoken and not by_agent and role != "system":
            self.user(message_text(parts))

        for part, part_at in placed:
            self._read_part(part, part_at, grounded=grounded)
        if by_agent:
            self.say(parts, is_call=lambda part: any(get_either(part, key) for key in _CALLS))

    def _read_part(self, part: dict[str, Any], at: str, *, grounded: bool) -> None:
        """Read a part that is a call or an answer, of the client's tools (functions) or of Google's. Report unknown parts.

        In a grounded message, Google's searches are left out: they are one search, read from the grounding.
        """
        kind = next((key for key in _CALLS if get_either(part, key) is not None), None)
        if kind is None:
            odd = [key for key, value in part.items() if key not in _KNOWN and (value is not None or len(part) == 1)]
            if odd or not part:
                self.report_keys("part", odd, at, "a part with text, functionCall, functionResponse ...")
            return

        content, at = expect_object(get_either(part, kind), f"{at}/{kind}"), f"{at}/{kind}"
        call_id = expect_id(content.get("id"), f"{at}/id")
        response = content.get("response")
        if kind == "functionCall":
            self.call(read_call(content, at, arguments="args")).at = at.removesuffix(f"/{kind}")
        elif kind == "functionResponse":
            name = expect_text(content.get("name"), f"{at}/name")
            if not self.has_call(call_id) and any(call.call_id is None for call in self._open):
                call_id = None  # calls without an id are answered by name and order
            self._answer(call_id, response, at, name)
        elif kind == "toolResponse":
            response_items = response.items() if isinstance(response, dict) and not grounded else ()
            if held := {key: value for key, value in response_items if key not in _NO_RESULTS}:
                self._answer(call_id, held, at)
        else:  # a tool that Google ran; the searches of a grounded answer are one, read from the grounding
            tool = as_word(get_either(content, "toolType")).lower()
            searches = tool in _HOSTED_SEARCHES or self.source.is_search(tool)
            if not searches and tool != _OPENS_PAGES:
                expected = f"one of {', '.join(sorted(_HOSTED_SEARCHES))}, {_OPENS_PAGES}"
                self.source.not_understood(f"toolCall of type {tool!r}", f"{at}/toolType", expected)
            elif not (searches and grounded):
                asked = content.get("args")
                self.call(ToolCall(tool, at, call_id, asked, is_search=searches, remedy=_HOSTED_REMEDY))

    def _answer(self, call_id: str | None, response: Any, at: str, name: str | None = None) -> None:
        call = self.answer(call_id, UNANSWERED, at, name=name)  # finds the call; its output is set below
        if not call.answered:
            _set_output(call, response)


def _set_output(call: ToolCall, response: Any) -> None:
    """Set the output of a call. Take the `error` of a failed response, and unwrap a lone field `result` or `output`."""
    if isinstance(response, dict):
        held = [key for key in ("result", "output") if response.get(key) is not None]
        if response.get("error") is not None and not held:
            call.output = response["error"]
            call.failed = True
            return
        if len(held) == 1 and len(response) == 1:
            response = response[held[0]]
    if call.tool == _CLI_SEARCH:
        call.remedy = _CLI_REMEDY
    if response is not None:
        call.output = response


def _read_event_rows(source: Source) -> Iterator[Trace]:
    """Yield one trace per session from rows of ADK's table of events. Rows of several sessions may alternate."""
    sessions: dict[str | None, list[Placed]] = {}
    for row, at in read_records(source):
        with source.handle_errors():
            row = expect_object(row, at)
            session = expect_id(get_either(row, "sessionId"), f"{at}/session_id")
            sessions.setdefault(session, []).append((row, at))
    for session, members in sessions.items():
        with source.handle_errors():
            first, at = members[0]
            yield ContentReader(source, first).read_events(members).trace(at, session_id=session)


def _read_cli_lines(source: Source) -> Iterator[Trace]:
    """Yield the trace of a Gemini CLI session. Lines hold metadata, messages, and changes to earlier lines."""
    record: dict[str, Any] = {}
    messages: dict[str, Placed] = {}
    first_at = ""

    with source.handle_errors():
        for value, at in source.documents():
            line = expect_object(value, at)
            first_at = first_at or at
            if isinstance(changes := line.get("$set"), dict):
                record |= changes
                if "messages" in changes:
                    held = walk_objects(changes["messages"], f"{at}/$set/messages")
                    messages = {require_id(*item, "id", _OF_MESSAGE): item for item in held}
            elif "$rewindTo" in line:
                target = expect_id(line["$rewindTo"], f"{at}/$rewindTo")
                if target not in messages:
                    source.not_understood("$rewindTo a message that the log lacks", at, "the id of a message before it")
                messages_before = takewhile(partial(ne, target), messages)
                messages = {message_id: messages[message_id] for message_id in messages_before}
            elif "projectHash" in line:
                record |= line
            else:  # a repeated id replaces the message
                messages[require_id(line, at, "id", _OF_MESSAGE)] = (line, at)
        yield _CliSession(source, record).read_all(messages.values()).trace(first_at)


class _CliSession(Conversation):
    def _end(self, at: str) -> None:
        self.session_id = expect_id(self.record.get("sessionId"), f"{at}/sessionId")

    def read(self, message: dict[str, Any], at: str) -> None:
        kind = as_word(message.get("type"))
        if kind == "user":
            self.user(message_text(message.get("content")))
        elif kind == "gemini":
            self.step(message.get("timestamp"))
            for call, call_at in walk_objects(message.get("toolCalls"), f"{at}/toolCalls"):
                tool_call = self.call(read_call(call, call_at, arguments="args"))
                result = call.get("result")
                parts = objects_in(result if isinstance(result, list) else [result])
                responses = objects_in([get_either(part, "functionResponse") for part in parts])
                if responses or result:
                    alone = {"output": result} if isinstance(result, str) else result
                    _set_output(tool_call, responses[0].get("response") if responses else alone)
                tool_call.failed = tool_call.failed or call.get("status") in ("error", "cancelled")
            self.tag = text_or_none(message.get("model")) or self.tag
            if not message.get("toolCalls"):
                self.say(message.get("content") or [])
        elif kind not in _OTHER_MESSAGES:
            self.report_kind("message", message, "type", at, "user, gemini, info, error, warning")

        self.report_unread("a message", message, at, ("content", "toolCalls", "displayContent"))
