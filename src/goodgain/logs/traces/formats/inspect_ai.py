"""Inspect AI logs: `.json` or `.eval` archives. A sample is a trace; each epoch is a run of the system.

An assistant message is a step. A user message is a turn. Searches that a model's vendor ran are `tool_use` parts of the
assistant's content.

Lost: Tool events outside the sample's messages, such as events of subagents. A notice names the searches among these events.
Query id: `sample.id`. The system is the model; each epoch is a replicate.
Costs: `usage` and `time` of the model's events.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import PLAIN_PARTS, message_text, walk_parts
from goodgain.logs.traces.conversations.record_objects import (
    follow_path,
    read_records,
    text_or_none,
    walk_list,
    walk_objects,
)
from goodgain.logs.traces.conversations.tool_calls import expect_output, read_call, require_id
from goodgain.logs.traces.conversations.turns_and_calls import add_usages, read_usage
from goodgain.logs.traces.expected_values import (
    expect_id,
    expect_object,
    expect_text,
    object_or_empty,
    objects_in,
    unexpected_value,
)
from goodgain.logs.traces.input.logs_and_archives import read_json_members
from goodgain.logs.traces.model import Usage

_PART_TYPES = PLAIN_PARTS | {"data", "tool_use"}
_OF_HEADER = {"task", "eval_id", "run_id"}
#: The prefix of a reference to a long text in `attachments`.
_ATTACHMENT = "attachment://"
#: A limit against malicious logs: content nested deeper is not searched for attachments.
_MAX_DEPTH = 20
_REMEDY = "the vendor's answer lacks them: log a search tool of your own"


def sniff(head: FileHead) -> bool:
    if head.kind == "zip":
        return head.name.lower().endswith(".eval") or b"header.json" in head.raw or b"samples/" in head.raw
    headers = (object_or_empty(record.get("eval")) for record in head.objects)
    return any(map(_is_sample, head.objects)) or any(not _OF_HEADER.isdisjoint(header) for header in headers)


def _is_sample(record: dict[str, Any]) -> bool:
    # Other records of messages may have an id and an epoch too. A row of Inspect Scout has all fields, and its messages as text.
    return {"id", "epoch", "input", "target", "messages"} <= record.keys() and "transcript_id" not in record


def read(source: Source) -> Iterator[Trace]:
    """Yield a trace per sample of an archive, of logs, or of lines that are samples."""
    if source.head.kind == "zip":
        yield from _read_archive(source)
        return

    for value, at in read_records(source):
        with source.handle_errors():
            log = expect_object(value, at)
            if _is_sample(log):
                yield _read_sample(source, log, at, None)
                continue
            model = _read_model(log, at)
            samples = log.get("samples")
            if not samples:
                raise unexpected_value(f"{at}/samples", "samples (was the log written without them?)", samples)
            for sample, sample_at in walk_objects(samples, f"{at}/samples"):
                with source.handle_errors():
                    yield _read_sample(source, sample, sample_at, model)


def _read_archive(source: Source) -> Iterator[Trace]:
    """Yield one trace for each sample in an `.eval` archive. The header comes before the samples and names the model."""
    model, has_sample = None, False
    for value, name in read_json_members(source.path):
        at = f"{source.path}, {name}, at "
        if name in ("header.json", "_journal/start.json"):
            model = _read_model(expect_object(value, at), at) or model
        elif name.startswith("samples/"):
            has_sample = True
            with source.handle_errors():
                yield _read_sample(source, expect_object(value, at), at, model)
    if not has_sample:
        raise unexpected_value(f"{source.path}", "an archive with samples/", [])


def _read_model(log: dict[str, Any], at: str) -> str | None:
    return text_or_none(expect_object(log.get("eval"), f"{at}/eval").get("model"))


def _read_sample(source: Source, sample: dict[str, Any], at: str, model: str | None) -> Trace:
    query_id = require_id(sample, at, "id", "the sample's id")
    trace = read_transcript(source, sample, at, query_id, model)
    trace.run = expect_id(sample.get("epoch"), f"{at}/epoch") or "1"
    return trace


def read_transcript(source: Source, sample: dict[str, Any], at: str, query_id: str, model: str | None) -> Trace:
    """Return the trace of an object with `messages` and `events` of Inspect."""
    reader = _Messages(source, sample)
    events = objects_in(sample.get("events"))
    usages = _read_usages(events) if source.costs else {}

    for message, message_at in walk_list(sample, "messages", at):
        if message.get("role") == "assistant":
            reader.spend(usages.get(str(message.get("id"))))
        reader.read(message, message_at)

    for event in events:  # searches that the messages do not show, such as those of subagents
        name = text_or_none(event.get("function") if event.get("event") == "tool" else None)
        if name and source.is_search(name) and not reader.has_call(text_or_none(event.get("id"))):
            what = f"tool event {name!r} outside the sample's messages"
            source.not_understood(what, f"{at}/events", "searches in the sample's messages")

    return reader.trace(at, query_id=query_id, tag=model)


def _read_usages(events: list[dict[str, Any]]) -> dict[str, Usage]:
    """Return the tokens and seconds of each model call, by the id of the message that it returned."""
    usages: dict[str, Usage] = {}  # by the id of the assistant message
    for event in events:
        output = object_or_empty(event.get("output") if event.get("event") == "model" else None)
        message_id = object_or_empty(follow_path(output, "/choices/0/message")).get("id")
        usage = add_usages(read_usage(output.get("usage")), read_usage({"seconds": output.get("time")}))
        if message_id is not None and usage is not None:
            usages.setdefault(str(message_id), usage)
    return usages


class _Messages(Conversation):
    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message: of the user (a turn), of the assistant (a step), or the output of a tool."""
        role = message.get("role")
        content = self._insert_attachments(message.get("content"))
        self.report_unread("a message", message, at, ("content", "tool_calls", "function"))
        if role == "user":
            self.user(message_text(content))
            self.report_parts("a user message", content, f"{at}/content", _PART_TYPES)
        elif role == "assistant":
            self.step()
            for made in self.read_calls(message.get("tool_calls"), f"{at}/tool_calls", "function"):
                made.arguments = self._insert_attachments(made.arguments)
            for part, part_at in walk_parts(content, f"{at}/content"):
                if part.get("type") == "tool_use":  # a call that the model's vendor ran
                    call = self.call(read_call(part, part_at))
                    call.output = UNANSWERED if part.get("result") in (None, "") else part["result"]
                    call.failed = part.get("error") not in (None, "")
                    call.is_search = part.get("tool_type") == "web_search" or None
                    call.remedy = _REMEDY
                elif part.get("type") == "text" and part.get("citations") and self.source.citations:
                    notes = walk_objects(part["citations"], f"{part_at}/citations")
                    self.cite(list({str(note.get("url")): note for note, _ in notes}.values()))
            self.report_parts("an assistant message", content, f"{at}/content", _PART_TYPES)
            if not message.get("tool_calls"):
                self.say(content or [], is_call=lambda part: part.get("type") == "tool_use")
        elif role == "tool":
            output = expect_output(content, f"{at}/content")
            for part, part_at in walk_parts(content, f"{at}/content"):
                expect_text(part.get("type"), f"{part_at}/type")
            call_id = expect_id(message.get("tool_call_id"), f"{at}/tool_call_id")
            name = text_or_none(message.get("function"))
            failed = message.get("error") is not None
            # Without an open call, the log lacks the call. Report this for searches only.
            if name is None or self.source.is_search(name) or self.has_open_call(call_id, name):
                self.answer(call_id, output, f"{at}/content", name=None if call_id else name, failed=failed)
        elif role != "system":
            self.report_kind("message", message, "role", at, "user, assistant, tool or system")

    def _insert_attachments(self, value: Any, depth: int = _MAX_DEPTH) -> Any:
        """Replace references to attachments in a value by the texts. A reference without a text stays."""
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            attached = object_or_empty(self.record.get("attachments"))
            return attached.get(value.removeprefix(_ATTACHMENT), value)
        if depth and isinstance(value, list):
            return [self._insert_attachments(member, depth - 1) for member in value]
        if depth and isinstance(value, dict):
            return {key: self._insert_attachments(member, depth - 1) for key, member in value.items()}
        return value
