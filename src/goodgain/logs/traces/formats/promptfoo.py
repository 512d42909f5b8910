"""Results of promptfoo (`promptfoo eval -o results.json`) for providers whose outputs are lists of results.

A test is a query, and a provider is a system. Each output is one search. An output in prose is an error.

Lost: Assertions and their scores.
Query id: `query_id`, `question_id`, `qid` or `task_id` in the test's `vars`, else `<file>-<k>` for the k-th test.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import Placed, find_list, read_records, walk_objects
from goodgain.logs.traces.conversations.record_traits import find_question
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered
from goodgain.logs.traces.expected_values import expect_object, find_id, id_or_none, object_or_empty, objects_in


def sniff(head: FileHead) -> bool:
    rows = [row for record in head.objects for row in (record, *objects_in(_find_rows(record)[0]))]
    return any(_is_row(row) and isinstance(_find_output(row), list) for row in rows)


def read(source: Source) -> Iterator[Trace]:
    """Yield a trace per row of results. The rows of one test have one query id with all providers."""
    tests: dict[Any, str] = {}
    rows: list[Placed] = []
    for record, at in read_records(source):
        members, found_at = _find_rows(expect_object(record, at))
        rows += [(record, at)] if members is None else walk_objects(members, f"{at}{found_at}")

    def read_row(row: Any, at: str) -> Trace:
        """Read a row as a trace with one search. The provider is the system."""
        variables = object_or_empty(row.get("vars"))
        reader = Conversation(source, row)
        test = id_or_none(row.get("testIdx")) or repr(variables)
        query_id = tests.setdefault(test, find_id(variables) or f"{source.name}-{len(tests) + 1}")
        provider = row["provider"]
        tag = provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
        prompt = object_or_empty(row.get("prompt"))
        question = find_question(variables) or message_text(prompt.get("raw"))
        reader.user(question)
        reader.step()
        call = reader.call(ToolCall("retrieval", f"{at}/response/output", is_search=True, queries=(question,)))
        call.output = _find_output(row)
        call.failed = bool(row.get("error"))
        return reader.trace(at, query_id=query_id, tag=tag)

    for row, at in filter(lambda placed: _is_row(placed[0]), rows):
        yield from source.read_numbered(read_row, row, at)


def _find_rows(record: dict[str, Any]) -> tuple[list[Any] | None, str]:
    return find_list(record, "results/results" if isinstance(record.get("results"), dict) else "results")


def _is_row(row: dict[str, Any]) -> bool:
    return {"provider", "vars", "response"} <= row.keys()


def _find_output(row: dict[str, Any]) -> Any:
    output = parse_if_json(object_or_empty(row.get("response")).get("output", UNANSWERED))
    return mark_unanswered(output)
