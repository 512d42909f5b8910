"""Claude Code and the Claude Agent SDK: session files (JSON Lines) and `--output-format stream-json`.

A message of the assistant, which may stand on several lines, is a step; a prompt of the user is a turn. Of a session
file, which is a tree of lines, the branch that leads to the last line is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from goodgain.files.json_text import NotJSONError, loads
from goodgain.traces.conversations.conversation import Conversation, message_text
from goodgain.traces.formats.anthropic import CALL_TYPES, OTHER_BLOCK_TYPES, is_result_block, read_result_block
from goodgain.traces.input.checks import as_word, expect_id, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

#: Types of lines that hold neither a call nor a result. `stream_event` repeats the assistant's lines in pieces.
_OTHER_LINES = {
    *("summary", "system", "file-history-snapshot", "attachment", "progress", "queue-operation", "ai-title"),
    *("custom-title", "agent-name", "last-prompt", "permission-mode", "result", "stream_event", "tool_progress"),
    *("auth_status", "tool_use_summary", "rate_limit_event", "prompt_suggestion", "control_request"),
    *("control_response", "keep_alive", "file-history-delta", "pr-link", "saved_hook_context", "mode"),
}
#: Fields of a user's line that say that its text is not a prompt.
_NOT_PROMPTS = ("isMeta", "isCompactSummary", "isSynthetic", "sourceToolUseID", "isVisibleInTranscriptOnly")
#: How texts begin that Claude Code itself writes in the user's name.
_NOT_TYPED = (
    *("<command-name>", "<command-message>", "<local-command-", "<task-notification>", "<system-reminder>"),
    *("<bash-input>", "<bash-stdout>", "[Request interrupted", "Caveat:"),
)
#: The field that holds a tool's output as an object, in session files and in streams.
_STRUCTURED = ("toolUseResult", "tool_use_result")
_LINKS = "Links: "
_DETACHED = "the call went on in the background, and the session does not hold its answer"
_ONLY_RESULT = (
    "the lines of a session (this is the last line only, which has no calls); write them with "
    "--output-format stream-json --verbose, or read the session file"
)


class _Line(msgspec.Struct):
    """A line of a session; `parent` is the id of the line it follows, None for the first of a tree."""

    record: dict[str, Any]
    at: str
    id: str | None
    parent: str | None

    @property
    def message(self) -> dict[str, Any]:
        """Its message; empty if it has none."""
        found = self.record.get("message")
        return found if isinstance(found, dict) else {}

    @property
    def message_id(self) -> str:
        """The id of its message, to compare with others; empty if it has none."""
        return as_word(self.message.get("id"))

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The blocks of its message; none if the content is text."""
        content = self.message.get("content")
        return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def sniff(head: FileHead) -> bool:
    """Return whether there are lines with a session's id and a message, or the first or last line of a stream."""
    return any(_is_session_line(record) for record in head.objects)


def _is_session_line(record: dict[str, Any]) -> bool:
    if isinstance(record.get("message"), dict) and "uuid" in record:
        return ("sessionId" in record and "parentUuid" in record) or (
            "session_id" in record and "parent_tool_use_id" in record
        )
    return "session_id" in record and (
        (record.get("type") == "system" and record.get("subtype") == "init")
        or (record.get("type") == "result" and "num_turns" in record)
    )


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a session; a file of a subagent alone is a trace of a system of its own."""
    lines = list(_read_lines(source))
    if lines and all(line.record.get("type") == "result" for line in lines):
        raise unexpected_value(lines[0].at, _ONLY_RESULT, lines[0].record)
    of_main = [line for line in lines if not _is_of_subagent(line)]
    is_subagent = not any(line.message for line in of_main)
    traces = []
    covered: set[int] = set()
    by_session = _group_by_session(lines if is_subagent else of_main)
    for session, members in reversed(by_session.items()):  # the last one may go on from the others
        if all(id(line) in covered for line in members if line.message):
            continue
        live = _select_live(source, members, lines)
        covered.update(map(id, live))
        traces.append((session, members, live))
    every = _group_by_session(lines)
    for session, members, live in reversed(traces):
        with source.handle_errors():
            if not is_subagent:
                _report_subagents(source, every.get(session, []))
            yield _read_session(source, session, members, live, is_subagent=is_subagent)


def _read_lines(source: Source) -> Iterator[_Line]:
    """Yield the lines of a file once: resumed sessions repeat lines."""
    seen: set[str] = set()
    for value, at in source.documents():
        many = isinstance(value, list)
        for index, record in enumerate(value if many else [value]):
            place = f"{at}/{index}" if many else at
            with source.handle_errors():
                record = expect_object(record, place)
                line_id = expect_id(record.get("uuid"), f"{place}/uuid")
                if line_id is not None and line_id in seen:
                    continue
                seen.add(line_id or "")
                parent = record.get("parentUuid") or record.get("logicalParentUuid")
                yield _Line(record, place, line_id, expect_id(parent, f"{place}/parentUuid"))


def _is_of_subagent(line: _Line) -> bool:
    return line.record.get("isSidechain") is True or line.record.get("parent_tool_use_id") is not None


def _group_by_session(lines: Iterable[_Line]) -> dict[str | None, list[_Line]]:
    """Return the lines of each session; a line without a session's id belongs to the one before it."""
    found: dict[str | None, list[_Line]] = {}
    session: str | None = None
    for line in lines:
        given = line.record.get("sessionId", line.record.get("session_id"))
        session = expect_id(given, f"{line.at}/sessionId") or session
        found.setdefault(session, []).append(line)
    if None in found and len(found) > 1:  # lines without an id before the first that has one
        first = next(name for name in found if name is not None)
        found = {first: [*found.pop(None), *found.pop(first)], **found}
    return found


def _select_live(source: Source, members: list[_Line], lines: list[_Line]) -> list[_Line]:
    """Return the lines of a session on the branch that leads to its last line, in the order of the file.

    Edited prompts and retries leave dead branches. Answers of parallel calls stand beside the branch: they are live if
    their calls are, as are all blocks of a live message.
    """
    if not any("parentUuid" in line.record for line in members):
        return members  # a stream has no branches
    by_id = {line.id: index for index, line in enumerate(lines) if line.id is not None}
    placed = {id(line): index for index, line in enumerate(lines)}
    last = next(line for line in reversed(members) if "parentUuid" in line.record)
    chain: set[int] = set()
    at: int | None = placed[id(last)]
    while at is not None and at not in chain:
        chain.add(at)
        at = _find_parent(source, lines, at, by_id, chain)
    messages = {lines[index].message_id for index in chain} - {""}
    on_branch = [
        line for index, line in enumerate(lines)
        if index in chain or (line.record.get("type") == "assistant" and line.message_id in messages)
    ]  # fmt: skip
    calls = {
        str(block.get("id")) for line in on_branch for block in line.blocks if as_word(block.get("type")) in CALL_TYPES
    }
    wanted = set(map(id, on_branch))
    return [
        line for line in lines
        if id(line) in wanted or any(is_result_block(block) and str(block.get("tool_use_id")) in calls for block in line.blocks)
    ]  # fmt: skip


def _find_parent(source: Source, lines: list[_Line], at: int, by_id: dict[str, int], chain: set[int]) -> int | None:
    """Return the line that a line follows; where the log does not hold it, the line with an id before it."""
    line = lines[at]
    if line.parent is not None and line.parent in by_id:
        return by_id[line.parent]
    compacted = line.record.get("isCompactSummary") or line.record.get("subtype") == "compact_boundary"
    if line.parent is None and "parentUuid" in line.record and not compacted:
        return None
    before = next((index for index in range(at - 1, -1, -1) if lines[index].message and index not in chain), None)
    if before is not None:
        what = "line whose parentUuid is missing or names no line (taken to follow the line before it)"
        source.not_understood(what, f"{line.at}/parentUuid", "the uuid of a line")
    return before


def _read_session(
    source: Source, session: str | None, members: list[_Line], live: list[_Line], *, is_subagent: bool
) -> Trace:
    reader = _SessionReader(source)
    for line in live:
        reader.read(line)
    for line in members:
        kind = as_word(line.record.get("type"))
        if kind not in _OTHER_LINES and kind not in ("user", "assistant"):
            source.not_understood(f"line of type {kind!r}", f"{line.at}/type", "user, assistant, system, result ...")
    trace = reader.conversation.trace(members[0].at, members[0].record, query_id=session)
    trace.session_id, trace.tag = session, reader.model
    if is_subagent:
        trace.tag = next((agent for line in members if (agent := _agent_name(line))), "subagent")
    return trace


def _agent_name(line: _Line) -> str | None:
    name = line.record.get("agentId") or line.record.get("parent_tool_use_id")
    return f"subagent {name}" if isinstance(name, str) else None


def _report_subagents(source: Source, lines: list[_Line]) -> None:
    """Report the searches of subagents, which are left out: they are of another system than the session's."""
    for line in lines:
        if _is_of_subagent(line):
            for block in line.blocks:
                name = block.get("name")
                if as_word(block.get("type")) in CALL_TYPES and isinstance(name, str) and source.is_search(name):
                    what = (
                        "search of a subagent (left out; lines of one subagent alone are read as a system of its own)"
                    )
                    source.not_understood(what, line.at, "a search of the main agent")


class _SessionReader:
    """Reports the live lines of a session to a `Conversation`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.conversation = Conversation()
        self.model: str | None = None
        self._message: str | None = None
        self._answered = self._acted = False

    def read(self, line: _Line) -> None:
        """Read one line: a prompt, answers of tools, a part of an assistant's message, or the end of a turn."""
        kind = line.record.get("type")
        if kind == "result":
            self._answered = True
        if kind not in ("user", "assistant"):
            return
        message = expect_object(line.record.get("message"), f"{line.at}/message")
        content = message.get("content")
        if not isinstance(content, (str, list)):
            raise unexpected_value(f"{line.at}/message/content", "text or blocks", content)
        blocks = [
            (expect_object(block, f"{line.at}/message/content/{index}"), f"{line.at}/message/content/{index}")
            for index, block in enumerate(content if isinstance(content, list) else [])
        ]
        for block, at in blocks:
            self._check_block(block, at)
        if kind == "assistant":
            self._read_assistant(line, message, blocks)
        elif any(is_result_block(block) for block, _ in blocks):
            results = [(block, at) for block, at in blocks if is_result_block(block)]
            for block, at in results:
                self._read_result(line, block, at, alone=len(results) == 1)
        elif _is_prompt(line, content):
            self._start_turn(message_text(content))

    def _start_turn(self, text: str) -> None:
        self.conversation.user(text)
        self._answered = self._acted = False

    def _read_assistant(self, line: _Line, message: dict[str, Any], blocks: list[tuple[dict[str, Any], str]]) -> None:
        if self._answered or not self._acted:
            self._start_turn("")  # a stream holds no prompts: each result line ends a turn
        self._acted = True
        model, message_id = message.get("model"), expect_id(message.get("id"), f"{line.at}/message/id")
        if isinstance(model, str) and model and not model.startswith("<"):
            self.model = model
        if message_id is None:
            self.source.not_understood("message without an id (taken for a step)", f"{line.at}/message/id", "an id")
        if message_id is None or message_id != self._message:
            time = line.record.get("timestamp")
            self.conversation.step(time if isinstance(time, str) else None)
            self._message = message_id
        for block, at in blocks:
            kind = as_word(block.get("type"))
            if kind in CALL_TYPES:
                name = expect_text(block.get("name"), f"{at}/name")
                self.conversation.call(ToolCall(name, at, expect_id(block.get("id"), f"{at}/id"), block.get("input")))
            elif is_result_block(block):
                self._read_result(line, block, at, alone=False)

    def _check_block(self, block: dict[str, Any], at: str) -> None:
        kind = block.get("type")
        if not isinstance(kind, str):
            raise unexpected_value(f"{at}/type", "the type of a block", kind)
        if kind not in CALL_TYPES | OTHER_BLOCK_TYPES and not is_result_block(block):
            self.source.not_understood(f"block of type {kind!r}", at, "a block such as text, tool_use, tool_result")

    def _read_result(self, line: _Line, block: dict[str, Any], at: str, *, alone: bool) -> None:
        call_id, content, failed = read_result_block(block, at)
        structured = next((line.record[key] for key in _STRUCTURED if key in line.record), None) if alone else None
        if isinstance(structured, dict) and structured.get("detachedToolCall") is True:
            self.conversation.answer(call_id, UNANSWERED, at).remedy = _DETACHED
            return
        found = _read_web_search(structured)
        if found is None and isinstance(text := message_text(content) if content is not UNANSWERED else "", str):
            found = _read_links(text)
        if found is not None:
            hits, is_error = found
            self.conversation.answer(call_id, hits, at, failed=failed or is_error)
        else:
            spare = UNANSWERED if structured is None else structured
            self.conversation.answer(call_id, content, at, failed=failed, spare=spare)


def _is_prompt(line: _Line, content: str | list[Any]) -> bool:
    """Return whether a user's line is what a person asked, rather than a note of the program."""
    text = message_text(content).lstrip()
    return bool(content) and not any(line.record.get(key) for key in _NOT_PROMPTS) and not text.startswith(_NOT_TYPED)


def _read_web_search(structured: Any) -> tuple[list[Any], bool] | None:
    """Return the hits in the output of WebSearch and whether it failed; None if it is the output of another tool.

    Its `results` hold an object a hosted search, and prose between them.
    """
    if not isinstance(structured, dict) or not {"query", "results"} <= structured.keys():
        return None
    found = structured["results"]
    if not isinstance(found, list):
        return None
    searches = [one for one in found if isinstance(one, dict)]
    if any(not isinstance(one.get("content"), list) for one in searches):
        return None
    failed = not searches and any(isinstance(one, str) and one.startswith("Web search error") for one in found)
    return [hit for one in searches for hit in one["content"]], failed


def _read_links(text: str) -> tuple[list[Any], bool] | None:
    """Return the hits in the text of WebSearch: the lists that end on their lines. Links in its prose are not hits."""
    if not text.startswith("Web search results for query:"):
        return None
    lines = text.splitlines()
    hits: list[Any] = []
    known = any(line.strip() == "No links found." for line in lines)
    for line in lines:
        if line.startswith(f"{_LINKS}["):
            try:
                hits += loads(line.removeprefix(_LINKS))
            except NotJSONError:
                return None
            known = True
    return (hits, False) if known else None
