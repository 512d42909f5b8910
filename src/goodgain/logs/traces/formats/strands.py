"""Strands Agents and Bedrock Converse: messages with `toolUse` and `toolResult` blocks, and session folders.

A message of the assistant is a step. A user's message without tool results is a turn.

Lost: Time and model: messages have neither.
Query id: The session's id in the folder's name, else none.
Record: Pass the session's folder to `goodgain convert`, not its files.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import open_stream
from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import find_messages, has_messages, message_text
from goodgain.logs.traces.conversations.record_objects import Placed, walk_objects
from goodgain.logs.traces.conversations.tool_calls import read_call, require_id
from goodgain.logs.traces.expected_values import as_word, expect_object, object_or_empty, objects_in, unexpected_value
from goodgain.logs.traces.input.logs_and_archives import list_logs

_ROLES = {"user", "assistant", "system"}
_TOOLS = {"toolUse", "toolResult"}
#: Keys of blocks without a call or a result.
_OTHER_BLOCKS = {
    *("text", "image", "document", "video", "audio", "cachePoint", "reasoningContent", "guardContent"),
    *("citationsContent", "searchResult"),
}
#: The folders of sessions' messages, the files beside them, and the name of a message's file.
_FOLDERS = ("messages", "agents/agent_*/messages", "session_*/agents/agent_*/messages")
_STATES = ("session.json", "agent.json")
_MESSAGE_FILE = re.compile(r"message_(\d{1,9})\.json")


def sniff(head: FileHead) -> bool:
    in_messages = any(has_messages(record, _has_tools) or _is_answer(record) for record in head.conversations)
    return in_messages or any(map(_is_session_message, head.objects))


def _has_tools(message: dict[str, Any]) -> bool:
    blocks = (block for block in objects_in(message.get("content")) if "type" not in block)
    return as_word(message.get("role")) in _ROLES and any(not _TOOLS.isdisjoint(block) for block in blocks)


def _is_answer(record: Any) -> bool:
    output = object_or_empty(object_or_empty(record).get("output"))
    return isinstance(output.get("message"), dict) and "stopReason" in record


def _is_session_message(record: dict[str, Any]) -> bool:
    message = record.get("message")
    return {"message_id", "redact_message"} <= record.keys() and isinstance(message, dict) and "role" in message


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per list of messages. If the file is a message in a session's folder, read the whole folder as one trace."""
    if any(map(_is_session_message, source.head.objects)):
        with source.handle_errors():
            yield _read_folder(source)
        return
    yield from _Messages.read_source(source, _find_messages)


def find(directory: Path) -> list[Path]:
    """Return the files to read in a folder: for each agent, the file with the agent's first message; then the other logs."""
    folders = [directory, *(folder for pattern in _FOLDERS for folder in sorted(directory.glob(pattern)))]
    file_groups = [_find_files(folder) for folder in folders if folder.is_dir()]
    sessions = [paths for paths in file_groups if any(map(_is_of_session, paths))]
    session_files = {path for paths in sessions for path in paths} | {directory / name for name in _STATES}
    other_files = [path for path in list_logs(directory) if path not in session_files] if sessions else []
    return [*(paths[0] for paths in sessions), *other_files]


def _is_of_session(path: Path) -> bool:
    with suppress(InputError):  # reading the file reports the damage
        return _is_session_message(object_or_empty(_load(path)))
    return False


def _find_files(folder: Path) -> list[Path]:
    numbered = [(int(name[1]), path) for path in folder.iterdir() if (name := _MESSAGE_FILE.fullmatch(path.name))]
    return [path for _, path in sorted(numbered)]


def _find_messages(value: Any, at: str) -> Iterable[Placed]:
    if _is_answer(value):
        return [(value["output"]["message"], f"{at}/output/message")]
    return find_messages(value, at)


def _read_folder(source: Source) -> Trace:
    """Read all messages in the folder of `source`, ordered by the numbers in their file names."""
    folder = source.path.parent
    paths = _find_files(folder) or [source.path]
    records = [(expect_object(_load(path), f"{path}, at "), f"{path}, at /message") for path in paths]
    messages = [(record.get("redact_message") or record.get("message"), at) for record, at in records]
    names = (above.name for above in folder.absolute().parents)
    session = next((name.removeprefix("session_") for name in names if name.startswith("session_")), None)
    tag = folder.parent.name.removeprefix("agent_") if folder.parent.name.startswith("agent_") else None
    reader = _Messages(source).read_all(messages)
    return reader.trace(f"{paths[0]}, at ", session_id=session, tag=tag)


def _load(path: Path) -> Any:
    """Read a JSON file of any compression. Raise an InputError if it is not JSON."""
    with open_stream(path) as file:
        content = file.read()
    try:
        return loads(content)
    except NotJSONError as error:
        raise InputError(f"{path}: is not valid JSON ({error}); copy the complete file again") from None


class _Messages(Conversation):
    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message of the assistant (a step) or the user. A message of the user with results of tools is not a turn."""
        role = message.get("role")
        content = message.get("content")
        if as_word(role) not in _ROLES:
            self.report_kind("message", message, "role", at, "user or assistant")
            return

        self.report_unread("a message", message, at, ("content",))
        if "content" not in message:
            raise unexpected_value(f"{at}/content", "a list of blocks", None)

        content = [{"text": content}] if isinstance(content, str) else content
        blocks = list(walk_objects(content, f"{at}/content"))
        if role == "assistant":
            self.step()
            self.say([_read_cited(block) for block, _ in blocks], is_call=lambda block: "toolUse" in block)
        elif role == "user" and not any("toolResult" in block for block, _ in blocks):
            self.user(message_text([block for block, _ in blocks]))

        for block, at in blocks:
            if "toolUse" in block:
                use = expect_object(block["toolUse"], f"{at}/toolUse")
                self.call(read_call(use, f"{at}/toolUse", call_id="toolUseId", arguments="input")).at = at
            elif "toolResult" in block:
                result = expect_object(block["toolResult"], f"{at}/toolResult")
                call_id = require_id(result, f"{at}/toolResult", "toolUseId")
                parts = list(walk_objects(result.get("content"), f"{at}/toolResult/content"))
                for part, part_at in parts:
                    if _OTHER_BLOCKS.isdisjoint(part) and "json" not in part:
                        self.report_keys("part of a toolResult", part, part_at, "a part with json or text")
                values = [part.get("json", part.get("text", part)) for part, _ in parts]
                output: Any = values[0] if len(values) == 1 else values
                if result.get("content") is None:
                    output = UNANSWERED
                self.answer(call_id, output, at, failed=result.get("status") == "error")
            elif _OTHER_BLOCKS.isdisjoint(block):
                self.report_keys("block", block, at, "a block with text, toolUse, toolResult ...")


def _read_cited(block: dict[str, Any]) -> dict[str, Any]:
    """Convert a `citationsContent` block to a text block with its citations. Return other blocks unchanged."""
    held = object_or_empty(block.get("citationsContent"))
    places = (object_or_empty(citation.get("location")) for citation in objects_in(held.get("citations")))
    cited = [place.get("web") or place.get("document") or place for place in places]
    if held:
        return {"text": message_text(held.get("content")), "citations": cited}
    return block
