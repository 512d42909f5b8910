"""Transcripts of Inspect Scout: its database, a folder of Parquet files. Scout imports logs of many agents and tracers.

A row is a trace. An assistant message is a step. A user message is a turn.

Lost: What Scout's importer of the agent leaves out, and events outside the messages. A notice names searches among these events.
Query id: `task_id`, else `transcript_id`. The system is `model`, else `agent`; each `task_repeat` is a run.
Costs: `usage` and `time` of the model's events.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations import FileHead, Source, Trace
from goodgain.logs.traces.conversations.record_objects import read_records, text_or_none
from goodgain.logs.traces.conversations.tool_calls import require_id
from goodgain.logs.traces.expected_values import expect_id, expect_object
from goodgain.logs.traces.formats.inspect_ai import read_transcript

#: The columns with JSON text.
_JSON_COLUMNS = ("messages", "events", "score")


def sniff(head: FileHead) -> bool:
    return any({"transcript_id", "source_type", "messages"} <= record.keys() for record in head.objects)


def read(source: Source) -> Iterator[Trace]:
    for value, at in read_records(source):
        with source.handle_errors():
            yield _read_row(source, expect_object(value, at), at)


def _read_row(source: Source, row: dict[str, Any], at: str) -> Trace:
    """Read a row of transcripts. The task is the query, and each repeat of the task is a run of the system."""
    transcript_id = require_id(row, at, "transcript_id", "the transcript's id")
    query_id = expect_id(row.get("task_id"), f"{at}/task_id") or transcript_id
    transcript = row | {column: parse_if_json(row.get(column)) for column in _JSON_COLUMNS}
    system = text_or_none(row.get("model")) or text_or_none(row.get("agent"))
    trace = read_transcript(source, transcript, at, query_id, system)
    trace.run = expect_id(row.get("task_repeat"), f"{at}/task_repeat")
    return trace
