"""By shape: every call that is there is found once, nothing is found where none is, and doubt is an error."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.errors import InputError
from goodgain.logs.traces import read_traces
from goodgain.logs.traces.reading_summary import Summary
from tests.support.counts import how_many
from tests.support.seconds import find_faster_growth, measure_seconds

from .logs import claude_code
from .story import conversation

_TOOLS = ("tool_name", "tool", "name", "function", "action")
_ARGUMENTS = ("args", "arguments", "input", "parameters", "action_input", "query")
_OUTPUTS = ("result", "output", "observation", "response", "documents", "results", "content")
_WORDS = ["note", "plan", "meta", "items", "state", "inner", "data2", "log", "part", "value", "extra"]


def _write(folder: Path, value: Any, name: str = "log.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def _read(path: Path, **options: Any) -> Summary:
    said: list[Summary] = []
    read_traces(path, format="shape", report=said.append, **options)
    return said[0]


def _results(count: int) -> list[dict[str, str]]:
    return [{"url": f"https://a.example/{number}", "title": f"Page {number}"} for number in range(count)]


def _call(tool: str = "web_search", count: int = 2, **more: Any) -> dict[str, Any]:
    return {"tool": tool, "args": {"query": "q"}, "result": _results(count), **more}


def _plant(chance: random.Random, calls: list[dict[str, Any]], depth: int) -> Any:
    """Return a random value with some calls in it, in order."""
    if not calls:
        return chance.choice([None, 3, "text", True, {"note": "x"}, [1, 2], {"items": [{"part": 1.5}]}])
    if depth == 0:
        return {"calls2": calls} if chance.random() < 0.5 else calls
    cut = sorted(chance.randrange(len(calls) + 1) for _ in range(2))
    parts = [_plant(chance, part, depth - 1) for part in (calls[: cut[0]], calls[cut[0] : cut[1]], calls[cut[1] :])]
    if chance.random() < 0.5:
        return parts
    return dict(zip(chance.sample(_WORDS, 3), parts, strict=True))


@pytest.mark.filterwarnings("ignore:the keys .* may be query ids")
@pytest.mark.parametrize("seed", range(how_many(3, full=250)))
def test_every_planted_call_is_found_once_and_none_where_none_is(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    counts = [chance.randrange(4) for _ in range(chance.choice([0, 1, 2, 5, 9]))]
    keys = chance.choice(_TOOLS), chance.choice(_ARGUMENTS), chance.choice(_OUTPUTS)
    calls = [
        dict(
            zip(
                keys,
                ("web_search", f"q{number}" if chance.random() < 0.5 else {"q": f"q{number}"}, _results(count)),
                strict=True,
            )
        )
        for number, count in enumerate(counts)
    ]
    path = _write(tmp_path, {"top": _plant(chance, calls, chance.randrange(1, 7))})
    if not calls:
        with pytest.raises(InputError, match="holds no trace that shape can read"):
            _read(path)
        return

    read = _read(path, iteration="call")
    assert sum(read.searches.values()) == len(calls)
    assert read.results == sum(counts)
    assert read.empty == counts.count(0)


def test_query_id_and_query_text_name_fields_of_a_record(tmp_path: Path) -> None:
    records = [{"case": {"no": number, "asked": f"Why {number}?"}, "calls": [_call(count=number)]} for number in (1, 2)]
    path = _write(tmp_path, records)
    results = read_traces(path, format="shape", query_id="/case/no", query_text="/case/asked")
    assert results["query_id"].to_list() == ["1", "2", "2"]
    table = tmp_path / "ids.csv"
    table.write_text("query_id,text\nq-one,Why 1?\nq-two,why 2?\n")
    named = read_traces(path, format="shape", query_ids=table, query_text="/case/asked")
    assert named["query_id"].to_list() == ["q-one", "q-two", "q-two"]
    with pytest.raises(InputError, match="has no text at /case/told; give another path with query_text="):
        read_traces(path, format="shape", query_text="/case/told")


def test_a_refusal_says_what_by_shape_counts_and_fills_a_line_of_jsonl(tmp_path: Path) -> None:
    path = _write(tmp_path, [{"task_id": "t1", "calls": [_call(count=2), _call("retrieve", 1)]}])
    with pytest.raises(InputError) as refused:
        read_traces(path)
    said = str(refused.value)
    assert (
        "by shape: 1 query, 2 searches: web_search 1, retrieve 1; 3 results; query ids from `task_id`; pass format='shape'"
        in said
    )
    line = json.loads(said[said.index('{"goodgain_trace"') :])
    again = read_traces(_write(tmp_path, json.dumps(line) + "\n", "line.jsonl"))
    assert again.select("query_id", "url").rows() == [("t1", "https://a.example/0")]


@pytest.mark.parametrize("field", ["args", "result", "note"])
@pytest.mark.parametrize("depth", [150, 330, 990])
def test_a_log_nested_too_deep_is_read_or_an_error(field: str, depth: int, tmp_path: Path) -> None:
    deep = '{"a": ' * depth + "1" + "}" * depth
    path = _write(tmp_path, f'[{json.dumps(_call())}, {{"tool": "calculate", "args": {{}}, "{field}": {deep}}}]')
    try:
        read_traces(path, format="shape")
    except InputError as error:
        assert str(error) == f"{path}: its JSON nests too deep; write its searches in the format jsonl"


@pytest.mark.slow
@pytest.mark.parametrize("held", [list, json.dumps])
@pytest.mark.parametrize("key", ["question", "query_id"])
def test_time_grows_with_the_number_of_queries_and_not_with_its_square(held: Any, key: str, tmp_path: Path) -> None:
    def measure(count: int) -> float:
        records = [{key: f"q{number}", "calls": [_call(count=1)]} for number in range(count)]
        path = _write(tmp_path, {"data": held(records)})
        return measure_seconds(lambda: _read(path))

    assert not find_faster_growth(measure, 200)


@pytest.mark.slow
@pytest.mark.parametrize("ids", [{}, {"run_id": "r"}])
def test_time_grows_with_the_number_of_open_calls_and_not_with_its_square(ids: dict[str, str], tmp_path: Path) -> None:
    def measure(count: int) -> float:
        starts = [
            {**ids, "event": "tool_start", "tool": "web_search", "args": {"query": f"q{k}"}} for k in range(count)
        ]
        ends = [{**ids, "event": "tool_end", "output": _results(1)} for _ in range(count)]
        path = _write(tmp_path, [*starts, *ends])
        return measure_seconds(lambda: _read(path))

    assert not find_faster_growth(measure, 400)


def test_tools_in_the_output_of_tools_take_no_more_than_linear_time(tmp_path: Path) -> None:
    value: Any = {"x": 1}
    for number in range(40):
        value = {"tool": "delegate", "args": {"to": number}, "result": {"calls": [value]}}
    path = _write(tmp_path, [_call(), value])
    assert dict(_read(path, iteration="call").searches) == {"web_search": 1}


def test_traces_that_a_known_format_makes_of_many_objects_have_their_own_records(tmp_path: Path) -> None:
    session = claude_code(conversation())
    other = session.replace("uuid-", "other-").replace("msg_", "other_").replace('"story"', '"other"')
    path = _write(tmp_path, session + other.replace("call_", "other_call_"), "sessions.jsonl")
    results = read_traces(path, format="shape", query_id="/sessionId", turns="all", unrecorded="empty")
    plain = read_traces(path, format="claude_code", query_id="/sessionId", turns="all", unrecorded="empty")
    assert (
        results["query_id"].unique(maintain_order=True).to_list()
        == plain["query_id"].unique(maintain_order=True).to_list()
    )


# Queries


def _rows(path: Path, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return read_traces(path, format="shape", **options).select(*columns).rows()


_ROWS = [
    {"question": asked, "tool": "search", "query": query, "results": [{"doc_id": query}]}
    for asked, query in [("Who?", "a"), ("What?", "b"), ("Who?", "c")]
]


def test_calls_with_the_same_question_are_one_query(tmp_path: Path) -> None:
    path = _write(tmp_path, "".join(json.dumps(row) + "\n" for row in _ROWS), "home.jsonl")
    expected = [("home-1", 1, "a"), ("home-1", 2, "c"), ("home-2", 1, "b")]
    assert _rows(path, "query_id", "iteration", "doc_id") == expected
    with pytest.raises(InputError, match="by shape: 2 queries, 3 searches: search 3; 3 results; pass format='shape'"):
        read_traces(path)
    table = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["who?", "what?"]})
    named = read_traces(path, format="shape", query_ids=table)
    assert named.select("query_id", "doc_id").rows() == [("q1", "a"), ("q1", "c"), ("q2", "b")]
    renamed = [{"user_query" if key == "question" else key: value for key, value in row.items()} for row in _ROWS]
    path = _write(tmp_path, renamed, "home.json")
    assert _rows(path, "query_id", "iteration", "doc_id") == expected
