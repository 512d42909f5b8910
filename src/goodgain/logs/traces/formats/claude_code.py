"""Claude Code and the Claude Agent SDK: session files (JSON Lines) and `--output-format stream-json`.

A message of the assistant, which may take several lines, is a step. A prompt of the user is a turn. A session file is a
tree of lines: only the branch to the last line is read.

Lost: Tokens, texts and scores of WebSearch, and answers to calls that continued in the background.
Query id: The session's id. The system is the model of the last answer.
Record: Use `claude -p --output-format stream-json --verbose`; `--output-format json` omits calls. Convert
`subagents/agent-<id>.jsonl` too: each file is a system named `subagent <id>`.
Costs: Seconds since the previous step, by `timestamp`.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import message_text, walk_parts
from goodgain.logs.traces.conversations.record_objects import Placed, any_object, read_records, walk_list
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered, read_call
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_id,
    expect_object,
    object_or_empty,
    objects_in,
    unexpected_value,
)
from goodgain.logs.traces.formats import anthropic

#: Types of lines that hold neither a call nor a result. `stream_event` repeats the assistant's lines in pieces.
_OTHER_LINES = {
    *("summary", "system", "file-history-snapshot", "attachment", "progress", "queue-operation", "ai-title"),
    *("custom-title", "agent-name", "last-prompt", "permission-mode", "result", "stream_event", "tool_progress"),
    *("auth_status", "tool_use_summary", "rate_limit_event", "prompt_suggestion", "control_request"),
    *("control_response", "keep_alive", "file-history-delta", "pr-link", "saved_hook_context", "mode"),
}
#: Fields of a user's line whose text is not a prompt.
_NOT_PROMPTS = ("isMeta", "isCompactSummary", "isSynthetic", "sourceToolUseID", "isVisibleInTranscriptOnly")
#: Beginnings of texts that Claude Code writes in the user's name.
_NOT_TYPED = (
    *("<command-name>", "<command-message>", "<local-command-", "<task-notification>", "<system-reminder>"),
    *("<bash-input>", "<bash-stdout>", "[Request interrupted", "Caveat:"),
)
_DETACHED = "the call continued in the background, and the session does not hold its answer"
_OF_SUBAGENT = "search of a subagent (left out; a file with only the lines of a subagent is read as a separate system)"
_ONLY_RESULT = (
    "the lines of a session (this is the last line only, which has no calls); write them with "
    "--output-format stream-json --verbose, or read the session file"
)


class _Line(NamedTuple):
    record: dict[str, Any]
    at: str
    id: str | None
    parent: str | None  # the id of the parent line
    kind: str
    message: dict[str, Any]
    message_id: str
    calls: tuple[dict[str, Any], ...]  # the blocks of calls in the message
    answers: tuple[str, ...]  # the ids of the calls that the message answers
    is_of_subagent: bool


def sniff(head: FileHead) -> bool:
    return any(map(_is_session_line, head.objects))


def _is_session_line(record: dict[str, Any]) -> bool:
    """Return whether a record is of Claude Code: a line of a log or of the SDK's stream, or an export of a whole session."""
    if "loglines" in record:
        return any_object(record["loglines"], lambda line: isinstance(line.get("message"), dict))
    message = record.get("message")
    if isinstance(message, dict) and "parts" not in message and "uuid" in record:
        return "parentUuid" in record or {"session_id", "parent_tool_use_id"} <= record.keys()
    is_first = record.get("type") == "system" and record.get("subtype") == "init"
    return "session_id" in record and (is_first or (record.get("type") == "result" and "num_turns" in record))


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per session. A file that holds only a subagent's lines is one trace.

    A session whose messages are all on the branch of a later session is left out: the later one continues it.
    """
    lines = list(_read_lines(source))
    if lines and all(line.kind == "result" for line in lines):
        raise unexpected_value(lines[0].at, _ONLY_RESULT, lines[0].record)

    is_subagent = not any(line.message for line in lines if not line.is_of_subagent)
    branches = _Branches(source, lines)
    traces = []
    covered: set[int] = set()

    for session, every in reversed(_group_by_session(lines).items()):  # the last one may continue the others
        members = [line for line in every if is_subagent or not line.is_of_subagent]
        if not members or all(id(line) in covered for line in members if line.message):
            continue
        live = branches.select_live(members)
        covered.update(map(id, live))
        traces.append((session, every, members, live))

    for session, every, members, live in reversed(traces):
        with source.handle_errors():
            left_out = [line for line in every if line.is_of_subagent and not is_subagent]
            for at, call in [(line.at, call) for line in left_out for call in line.calls]:
                if isinstance(call.get("name"), str) and source.is_search(call["name"]):
                    source.not_understood(_OF_SUBAGENT, at, "a search of the main agent")
            reader = _SessionReader(source, members[0].record)
            for line in live:
                reader.read_line(line)
                reader.hold(line.record, line.at)
            for line in members:
                if line.kind not in _OTHER_LINES and line.kind not in ("user", "assistant"):
                    what = f"line of type {line.record.get('type')!r}"
                    source.not_understood(what, f"{line.at}/type", "user, assistant, system, result ...")
            tag = None
            if is_subagent:
                names = (line.record.get("agentId") or line.record.get("parent_tool_use_id") for line in members)
                tag = next((f"subagent {name}" for name in names if isinstance(name, str)), "subagent")
            yield reader.trace(members[0].at, session_id=session, tag=tag)


def _read_lines(source: Source) -> Iterator[_Line]:
    """Yield each line of a file once: a resumed session repeats earlier lines with the same `uuid`."""
    seen: set[str] = set()
    for record, at in _walk_lines(source):
        with source.handle_errors():
            record = expect_object(record, at)
            line_id = expect_id(record.get("uuid"), f"{at}/uuid")
            if line_id is not None and line_id in seen:
                continue

            seen.add(line_id or "")
            parent = expect_id(record.get("parentUuid") or record.get("logicalParentUuid"), f"{at}/parentUuid")
            message = object_or_empty(record.get("message"))
            blocks = objects_in(message.get("content"))
            calls = tuple(block for block in blocks if as_word(block.get("type")) in anthropic.CALL_TYPES)
            answers = tuple(str(block.get("tool_use_id")) for block in blocks if anthropic.is_result_block(block))
            side = record.get("isSidechain") is True or record.get("parent_tool_use_id") is not None
            kind = as_word(record.get("type"))
            message_id = as_word(message.get("id"))
            yield _Line(record, at, line_id, parent, kind, message, message_id, calls, answers, side)


def _walk_lines(source: Source) -> Iterator[tuple[Any, str]]:
    """Yield the lines of a session. An export holds all lines in one object under `loglines`."""
    for record, at in read_records(source):
        is_export = isinstance(record, dict) and "loglines" in record
        yield from walk_list(record, "loglines", at) if is_export else [(record, at)]


def _group_by_session(lines: Iterable[_Line]) -> dict[str | None, list[_Line]]:
    """Group lines by session. A line without a session id belongs to the session of the previous line."""
    sessions: dict[str | None, list[_Line]] = {}
    session: str | None = None
    for line in lines:
        session_id = line.record.get("sessionId", line.record.get("session_id"))
        session = expect_id(session_id, f"{line.at}/sessionId") or session
        sessions.setdefault(session, []).append(line)
    if None in sessions and len(sessions) > 1:  # lines before the first id belong to the first session
        first = next(name for name in sessions if name is not None)
        sessions = {first: [*sessions.pop(None), *sessions.pop(first)], **sessions}
    return sessions


class _Branches:
    def __init__(self, source: Source, lines: list[_Line]) -> None:
        self._source, self._lines = source, lines
        self._positions = {id(line): index for index, line in enumerate(lines)}
        self._by_id = {line.id: index for index, line in enumerate(lines) if line.id is not None}
        self._of_message: dict[str, list[int]] = {}
        self._of_call: dict[str, list[int]] = {}  # the answers
        for index, line in enumerate(lines):
            if line.kind == "assistant" and line.message_id:
                self._of_message.setdefault(line.message_id, []).append(index)
            for call_id in line.answers:
                self._of_call.setdefault(call_id, []).append(index)

    def select_live(self, members: list[_Line]) -> list[_Line]:
        """Return the lines on the branch to a session's last line. Skip branches that an edited prompt or a retry replaced."""
        linked = [line for line in members if "parentUuid" in line.record]
        followed = {line.parent for line in members if line.parent is not None}
        if not linked:
            return members  # a stream has no branches

        last = next((line for line in reversed(linked) if line.id not in followed), linked[-1])
        lines, chain = self._lines, dict[int, int]()  # the lines of the branch, the last one first
        at: int | None = self._positions[id(last)]

        while at is not None and at not in chain:
            chain[at] = -len(chain)
            at = self._find_parent(at, chain)

        # Answers of parallel calls, and other lines of a live message, are live beside the branch.
        live = set(chain).union(*(self._of_message.get(lines[index].message_id, ()) for index in chain))
        calls = {str(call.get("id")) for index in live for call in lines[index].calls}
        live.update(*(self._of_call.get(call_id, ()) for call_id in calls))
        # A line beside the branch follows its parent or, without a parent, the previous line.
        depths, depth = dict(chain), 0

        for index in sorted(live):
            parent = self._by_id.get(lines[index].parent or "", -1)
            depth = depths[index] = chain.get(index, depths.get(parent, depth))

        return [lines[index] for index in sorted(live, key=lambda index: (depths[index], index not in chain, index))]

    def _find_parent(self, at: int, chain: Collection[int]) -> int | None:
        """Return the index of a line's parent. If the log lacks the parent, return the index of the previous message."""
        line = self._lines[at]
        if line.parent is not None and line.parent in self._by_id:
            return self._by_id[line.parent]
        compacted = line.record.get("isCompactSummary") or line.record.get("subtype") == "compact_boundary"
        if line.parent is None and "parentUuid" in line.record and not compacted:
            return None
        before = (index for index in range(at - 1, -1, -1) if self._lines[index].message and index not in chain)
        if (parent := next(before, None)) is not None:
            what = "line whose parentUuid is missing or names no line (taken to follow the line before it)"
            self._source.not_understood(what, f"{line.at}/parentUuid", "the uuid of a line")
        return parent


class _SessionReader(Conversation):
    _message: str | None = None
    _answered = _acted = False

    def read_line(self, line: _Line) -> None:
        """Read a message of the assistant, answers of tools, or a prompt that the user typed.

        Other lines hold no part of a trace.
        """
        if line.kind == "result":
            self._answered = True
        if line.kind not in ("user", "assistant"):
            return

        content = expect_object(line.record.get("message"), f"{line.at}/message").get("content")
        if not isinstance(content, (str, list)):
            raise unexpected_value(f"{line.at}/message/content", "text or blocks", content)

        blocks = list(walk_parts(content, f"{line.at}/message/content"))
        results = [(block, at) for block, at in blocks if anthropic.is_result_block(block)]
        for block, at in blocks:
            if not anthropic.is_known_block(block):
                self.report_kind("block", block, "type", at, anthropic.BLOCKS)

        if line.kind == "assistant":
            self._read_assistant(line, blocks)
        elif results:
            for block, at in results:
                self._read_result(line, block, at, alone=len(results) == 1)
        elif content and not any(map(line.record.get, _NOT_PROMPTS)):
            text = message_text(content)
            if not text.lstrip().startswith(_NOT_TYPED):
                self.user(text)
                self._answered = self._acted = False

    def _read_assistant(self, line: _Line, blocks: list[Placed]) -> None:
        """Read a line of the assistant. A step begins unless the line has the same message id as the line before."""
        if self._answered or not self._acted:
            self.user("")  # a stream holds no prompts: each result line ends a turn
        is_first = not self._acted
        self._answered, self._acted = False, True
        model = line.message.get("model")
        message_id = expect_id(line.message.get("id"), f"{line.at}/message/id")
        if isinstance(model, str) and model and not model.startswith("<"):
            self.tag = model
        if not is_first and None in (message_id, self._message):  # the lines may be one message
            self.source.not_understood("message without an id (taken for a step)", f"{line.at}/message/id", "an id")
        if message_id is None or message_id != self._message:
            self.step(line.record.get("timestamp"))
            self._message = message_id

        for block, at in blocks:
            if as_word(block.get("type")) in anthropic.CALL_TYPES:
                self.call(read_call(block, at, arguments="input"))
            elif anthropic.is_result_block(block):
                self._read_result(line, block, at, alone=False)

        self.say(line.message.get("content"), is_call=anthropic.is_call_or_result)

    def _read_result(self, line: _Line, block: dict[str, Any], at: str, *, alone: bool) -> None:
        """Read the answer of a tool. If a line has only one answer, `toolUseResult` may hold the answer as an object."""
        call_id, content, failed = anthropic.read_result_block(block, at)
        structured = line.record.get("toolUseResult", line.record.get("tool_use_result")) if alone else None
        if isinstance(structured, dict) and structured.get("detachedToolCall") is True:
            self.answer(call_id, UNANSWERED, at).remedy = _DETACHED
            return

        results = structured.get("results") if isinstance(structured, dict) and "query" in structured else None
        searches = [item.get("content") or () for item in objects_in(results)]
        if not isinstance(results, list) or not all(isinstance(hits, list) for hits in searches):
            self.answer(call_id, content, at, failed=failed, spare=mark_unanswered(structured))
            return

        # The output of WebSearch has one object per search.
        errors = [item for item in results if isinstance(item, str) and item.startswith("Web search error")]
        failed = failed or bool(errors and not searches)
        self.answer(call_id, [hit for hits in searches for hit in hits], at, failed=failed)
