"""Qwen Code: session files (JSON Lines) whose messages are Gemini's contents.

A message of the model is a step. A message that the user typed is a turn. A session file is a tree of lines: only the branch
to the last line is read.

Lost: Costs, and searches of subagents.
Query id: The session's id. The system is the model of the last answer.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import FileHead, Source, Trace
from goodgain.logs.traces.conversations.record_objects import Placed, read_records, text_or_none
from goodgain.logs.traces.conversations.tool_calls import require_id
from goodgain.logs.traces.expected_values import as_word, expect_id, expect_object, object_or_empty, unexpected_value
from goodgain.logs.traces.formats.gemini import ContentReader

#: Types of lines with a message, and of all lines.
_MESSAGES = ("user", "assistant", "tool_result")
_LINES = {*_MESSAGES, "system"}


def sniff(head: FileHead) -> bool:
    return any(map(is_line, head.objects))


def is_line(record: dict[str, Any]) -> bool:
    return {"uuid", "parentUuid"} <= record.keys() and "parts" in object_or_empty(record.get("message"))


def read(source: Source) -> Iterator[Trace]:
    """Yield a trace per session: the branch of its tree of lines that ends in the last line."""
    sessions: dict[str | None, list[Placed]] = {}
    for value, at in read_records(source):
        with source.handle_errors():
            line = expect_object(value, at)
            sessions.setdefault(expect_id(line.get("sessionId"), f"{at}/sessionId"), []).append((line, at))

    for session, lines in sessions.items():
        with source.handle_errors():
            reader = ContentReader(source, lines[0][0])
            for line, at in lines:
                if as_word(line.get("type")) not in _LINES:
                    reader.report_kind("line", line, "type", at, ", ".join(sorted(_LINES)))
            messages = [
                (line, at) for line, at in lines if line.get("type") in _MESSAGES or line.get("message") is not None
            ]
            branch = _select_branch(messages)
            for line, at in branch:
                _read_line(reader, line, at)
            _report_lost_parent(source, messages, branch)
            yield reader.trace(lines[0][1], session_id=session)


def _select_branch(lines: list[Placed]) -> list[Placed]:
    """Return the lines from the root of the tree to the last line."""
    by_id = {require_id(line, at, "uuid", "the id of a line"): place for place, (line, at) in enumerate(lines)}
    branch: list[int] = []
    place: int | None = len(lines) - 1 if lines else None
    while place is not None:
        branch.append(place)
        above = by_id.get(as_word(lines[place][0].get("parentUuid")))
        place = above if above is not None and above < place else None
    return [lines[place] for place in reversed(branch)]


def _report_lost_parent(source: Source, lines: list[Placed], branch: list[Placed]) -> None:
    """Report a branch whose first line has a parent that the file lacks, if the file has earlier lines."""
    if branch and branch[0][0] is not lines[0][0]:
        source.not_understood("line whose parent is missing", branch[0][1], "the line that parentUuid names")


def _read_line(reader: ContentReader, line: dict[str, Any], at: str) -> None:
    """Read the content of a line, in the form of Gemini."""
    message = expect_object(line.get("message"), f"{at}/message")
    if not isinstance(message.get("parts"), list):
        raise unexpected_value(f"{at}/message/parts", "a list of parts", message.get("parts"))
    reader.tag = text_or_none(line.get("model")) or reader.tag
    by_agent = message["role"] == "model" if isinstance(message.get("role"), str) else None
    reader.read(message, f"{at}/message", by_agent=by_agent)
    reader.hold(line, at)
