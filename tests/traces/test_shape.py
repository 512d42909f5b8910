"""By shape: every call that is there is found once, nothing is found where none is, and doubt is an error."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import InputError
from goodgain.traces import read_traces
from goodgain.traces.reading_summary import Summary
from tests.support.counts import some_of
from tests.support.seconds import find_faster_growth, measure_seconds

from .more_logs import claude_code
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


@pytest.mark.parametrize("seed", some_of(range(1000), every=20))
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


def test_calls_and_answers_are_paired_by_id_whatever_their_order(tmp_path: Path) -> None:
    events = [
        *({"type": "tool_call", "id": name, "name": "web_search", "arguments": {"query": name}} for name in "ab"),
        {"type": "tool_result", "tool_call_id": "b", "content": _results(1)},
        {"type": "tool_result", "tool_call_id": "a", "content": _results(3)},
    ]
    results = read_traces(_write(tmp_path, {"agent": {"events": events}}), format="shape")
    assert results.select("iteration", "search", "rank").rows() == [(1, 1, 1), (1, 1, 2), (1, 1, 3), (1, 2, 1)]


def test_events_one_a_line_with_data_are_read(tmp_path: Path) -> None:
    lines = ["event: tool_end", f"data: {json.dumps(_call())}", "", ": ping", f"data: {json.dumps(_call(count=1))}"]
    assert _read(_write(tmp_path, "\n".join(lines), "log.txt")).results == 3


def test_a_list_of_a_known_format_under_any_key_is_read_in_that_format(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [call, call | {"id": "d"}]},
        {"role": "tool", "tool_call_id": "d", "content": json.dumps(_results(1))},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps(_results(2))},
    ]
    read = _read(
        _write(tmp_path, [{"qid": 7, "our_log": {"talk": messages}}, {"qid": 8, "our_log": {"talk": messages}}])
    )
    assert (read.traces, read.iterations, read.results) == (2, 2, 6)
    assert read.ids_from == "qid"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([_call(), _call(children=[_call("retrieve")])], "holds the search retrieve"),
        ({"one": [_call()], "two": {"again": [_call()]}}, "is also at"),
        (
            [
                *({"type": "tool_call", "name": "search", "args": {"q": q}} for q in "abc"),
                *({"type": "tool_result", "output": _results(1)} for _ in "ab"),
            ],
            "could belong to several calls",
        ),
        ([{**_call("fetch_page"), "result": {"calls": [_call()]}}], "the output of fetch_page holds a call of web_search"),
        ([_call("fetch_page"), _call("notes")], "none of its calls is a search .fetch_page 1, notes 1."),
        ([{"name": "web_search", "description": "d", "parameters": {"type": "object", "properties": {}}}], "holds no trace"),
    ],
)  # fmt: skip
def test_doubt_is_an_error_that_names_the_places(value: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        _read(_write(tmp_path, value))


def test_a_call_sent_again_with_its_id_counts_once(tmp_path: Path) -> None:
    assert sum(_read(_write(tmp_path, [_call(id="c1"), {"again": [_call(id="c1")]}])).searches.values()) == 1


def test_a_call_without_an_answer_is_unrecorded_and_never_empty(tmp_path: Path) -> None:
    path = _write(tmp_path, [_call(), {"type": "tool_call", "tool": "web_search", "args": {"query": "x"}}])
    with pytest.raises(InputError, match="what it returned is not in the log"):
        _read(path)
    assert _read(path, unrecorded="empty").unrecorded == 1


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


def test_rows_of_a_database_are_queries_by_their_id(tmp_path: Path) -> None:
    rows = [{"query_id": query, **_call(count=1)} for query in ("x", "y", "x")]
    path = _write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "rows.jsonl")
    results = read_traces(path, format="shape")
    assert sorted(results.select("query_id", "iteration").rows()) == [("x", 1), ("x", 2), ("y", 1)]


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


def test_searches_of_an_agent_below_another_count_if_their_tool_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path, [{**_call("ask_researcher"), "result": {"calls": [_call(), _call()]}}])
    assert dict(_read(path, tools=["web_search"], iteration="call").searches) == {"web_search": 2}


@pytest.mark.parametrize("field", ["args", "result", "note"])
@pytest.mark.parametrize("depth", [150, 330, 990])
def test_a_log_nested_too_deep_is_read_or_an_error(field: str, depth: int, tmp_path: Path) -> None:
    deep = '{"a": ' * depth + "1" + "}" * depth
    path = _write(tmp_path, f'[{json.dumps(_call())}, {{"tool": "calculate", "args": {{}}, "{field}": {deep}}}]')
    try:
        read_traces(path, format="shape")
    except InputError as error:
        assert str(error) == f"{path}: nests too deep; write its searches in the format jsonl"


@pytest.mark.parametrize("held", [list, json.dumps])
@pytest.mark.parametrize("key", ["question", "query_id"])
def test_time_grows_with_the_number_of_queries_and_not_with_its_square(held: Any, key: str, tmp_path: Path) -> None:
    def measure(count: int) -> float:
        records = [{key: f"q{number}", "calls": [_call(count=1)]} for number in range(count)]
        path = _write(tmp_path, {"data": held(records)})
        return measure_seconds(lambda: _read(path))

    assert not find_faster_growth(measure, 200)


def test_tools_in_the_output_of_tools_take_no_more_than_linear_time(tmp_path: Path) -> None:
    value: Any = {"x": 1}
    for number in range(40):
        value = {"tool": "delegate", "args": {"to": number}, "result": {"calls": [value]}}
    path = _write(tmp_path, [_call(), value])
    assert dict(_read(path, iteration="call").searches) == {"web_search": 1}


def test_two_trials_of_a_task_are_one_query_with_the_record_of_the_first(tmp_path: Path) -> None:
    made = {"id": "c1", "name": "web_search", "arguments": {"query": "q"}}
    answer = {"role": "tool", "id": "c1", "content": json.dumps(_results(2))}
    messages = [{"role": "assistant", "content": None, "tool_calls": [made]}, answer]
    trials = [{"task_id": "t1", "trial": trial, "asked": f"Why {trial}?", "messages": messages} for trial in (0, 1)]
    path = _write(tmp_path, {"held": {"simulations": trials}})
    table = tmp_path / "ids.csv"
    table.write_text("query_id,text\nq-one,Why 0?\n")
    named = read_traces(path, format="shape", query_ids=table, query_text="/asked")
    assert named["query_id"].unique().to_list() == ["q-one"]


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
