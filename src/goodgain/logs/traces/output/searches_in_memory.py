"""Reads the searches of one conversation that is in memory, for rewards while an agent is trained."""

import io
from pathlib import Path
from typing import Any

import msgspec

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, without_notices
from goodgain.logs.traces.input.logs_and_archives import Log, read_head
from goodgain.logs.traces.output.results_to_run import make_run
from goodgain.logs.traces.reading.read_options import ReadOptions, check_option_names
from goodgain.logs.traces.reading.trace_reading import read_log
from goodgain.schema import EMPTY_DOC

#: The name of the conversation in errors.
_PATH = Path("messages.json")


@checks_kinds
def read_searches(messages: Any, **options: Any) -> list[list[str]]:
    """Return the documents of each search of a conversation, as `Scorer.score` takes them.

    Args:
        messages: the messages of one conversation (with tool calls and their outputs), or a log of it as a dict or list, in any
            format that `read_traces` reads from a file.
        options: those of `read_traces` that say how a trace is read: `format`, `turns`, `iteration`, `tools`, `parse`,
            `citations`, `unrecorded`, `reranked` and `strict`.

    Returns:
        A list of doc_ids for each iteration, in order. An iteration without results, or without a readable document, is empty. A
        conversation without a search is an empty list.

    Raises:
        InputError: the messages cannot be read, or hold more than one conversation.

    >>> call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "bm25"}'}}
    >>> read_searches([
    ...     {"role": "user", "content": "What is BM25?"},
    ...     {"role": "assistant", "tool_calls": [call]},
    ...     {"role": "tool", "tool_call_id": "c1", "content": '[{"docid": "d1"}, {"docid": "d2"}]'},
    ... ])
    [['d1', 'd2']]
    """
    check_option_names("read_searches", options)
    try:
        raw = msgspec.json.encode(messages)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"messages cannot be written as JSON ({error}); give lists, dicts, texts and numbers"
        ) from None

    def open_bytes() -> io.BytesIO:
        return io.BytesIO(raw)

    with without_notices():
        results = read_log(Log(_PATH, read_head(_PATH, open_bytes), open_bytes), ReadOptions(**options)).to_frame()
        queries = results.get_column("query_id").n_unique()
        if queries > 1:
            raise InputError(f"messages hold {queries} conversations; give the messages of one")
        rows = make_run(results)
    by_iteration = rows.drop_nulls("iteration").sort("iteration", "rank", maintain_order=True)
    grouped = by_iteration.group_by("iteration", maintain_order=True).agg("doc_id").get_column("doc_id")
    return [[doc_id for doc_id in search if doc_id != EMPTY_DOC] for search in grouped.to_list()]
