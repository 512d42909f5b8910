"""With turns="joined" a conversation is one query: a question of the agent between two searches does not divide it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

import goodgain as gg
from goodgain.logs.traces.model import Step, ToolCall, Trace, Turn, Usage
from goodgain.logs.traces.reading.queries_and_costs import Query, read_queries
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading_summary import Summary


def search(number: int, *documents: str) -> list[dict[str, Any]]:
    called = {"name": "web_search", "arguments": json.dumps({"query": f"search {number}"})}
    call = {"id": f"c{number}", "type": "function", "function": called}
    results = [{"docid": name, "title": name, "snippet": "text"} for name in documents]
    answered = {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(results)}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, answered]


def say(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


CLARIFIED = [
    say("user", "Compare the costs."),
    *search(1, "a", "b"),
    say("assistant", "Europe only?"),
    say("user", "Europe only."),
    *search(2, "a", "c"),
    say("assistant", "Report. [a]"),
]


def write_log(path: Path, messages: list[dict[str, Any]], **fields: Any) -> Path:
    path.write_text(json.dumps({"messages": messages, **fields}))
    return path


def test_a_conversation_is_one_query_whose_iterations_run_on(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.json", CLARIFIED, id="dr1")
    run, queries = tmp_path / "a.parquet", tmp_path / "queries.parquet"
    conversion = gg.convert_traces(log, run, queries=queries, turns="joined")
    assert pl.read_parquet(run).select("query_id", "iteration", "doc_id").rows() == [
        ("dr1", 1, "a"), ("dr1", 1, "b"), ("dr1", 2, "a"), ("dr1", 2, "c"),
    ]  # fmt: skip
    assert pl.read_parquet(queries)["text"].to_list() == ["Compare the costs.\nEurope only."]
    assert (conversion.summary.turns_read, conversion.summary.turns_used) == (2, 2)


def make_step(minute: int, second: int, *, tokens: int, search: bool) -> Step:
    call = ToolCall(
        "web_search", "log", arguments={"query": "x"}, output=[{"docid": "a", "title": "t", "snippet": "s"}]
    )
    return Step([call] * search, time=f"2026-01-01T00:{minute:02}:{second:02}Z", usage=Usage(input_tokens=tokens))


def read_joined(turns: list[Turn]) -> Query:
    options = ReadOptions(turns="joined", costs=True)
    (query,) = read_queries(Trace(turns, "log"), options, "step", Summary())
    return query


def test_what_a_turn_spends_after_its_last_search_goes_to_the_next_iteration_without_the_users_time() -> None:
    first = [make_step(0, 4, tokens=1, search=True), make_step(0, 9, tokens=10, search=False)]
    second = [make_step(50, 3, tokens=100, search=True), make_step(50, 4, tokens=1000, search=False)]
    turns = [Turn("a", first, 1, time="2026-01-01T00:00:00Z"), Turn("b", second, 2, time="2026-01-01T00:50:00Z")]
    query = read_joined(turns)
    assert [usage.input_tokens for usage in query.spent] == [1, 110, 1000]
    assert [usage.seconds for usage in query.spent] == [4, 5 + 3, 1]


def test_a_step_never_has_searches_of_two_turns() -> None:
    turns = [Turn(text, [make_step(0, 1, tokens=1, search=True)], k) for k, text in enumerate("ab", 1)]
    assert [len(searches) for searches in read_joined(turns).iterations] == [1, 1]
