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


@pytest.mark.slow
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

_ANSWERED = {"tool": "web_search", "args": {"query": "x"}}


def _search(query: str, *doc_ids: str, **more: Any) -> dict[str, Any]:
    return {"tool": "web_search", "args": {"query": query}, "result": [{"doc_id": name} for name in doc_ids], **more}


def _rows(path: Path, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return read_traces(path, format="shape", **options).select(*columns).rows()


@pytest.mark.parametrize("name", ["repeat", "trial", "trial_id", "epoch", "attempt"])
def test_trials_of_one_task_are_runs_of_the_system(name: str, tmp_path: Path) -> None:
    columns = ("replicate", "query_id", "iteration", "doc_id")
    records = [
        {"task_id": "t1", name: trial, "steps": [_search(f"x{trial}", "a"), _search(f"y{trial}", "b")]}
        for trial in (0, 1)
    ]
    expected = [("0", "t1", 1, "a"), ("0", "t1", 2, "b"), ("1", "t1", 1, "a"), ("1", "t1", 2, "b")]
    assert _rows(_write(tmp_path, records), *columns, iteration="call") == expected
    inside = {"task_id": "t1", "runs": [{key: one[key] for key in (name, "steps")} for one in records]}
    assert _rows(_write(tmp_path, [inside]), *columns, iteration="call") == expected


@pytest.mark.parametrize("name", ["repeat", "trial", "trial_id", "epoch", "attempt"])
def test_events_name_their_run_by_trial_and_their_own_retry_or_time_by_attempt_or_epoch(
    name: str, tmp_path: Path
) -> None:
    events = [{"task_id": "t1", name: trial, "step": 1, **_search("x", "a")} for trial in (0, 1)]
    found = _rows(_write(tmp_path, events), "replicate", "query_id", "doc_id")
    is_of_call = name in ("epoch", "attempt")
    assert found == [(None if is_of_call else "0", "t1", "a"), (None if is_of_call else "1", "t1", "a")]


@pytest.mark.parametrize(
    "records",
    [
        [{"task_id": "t1", "steps": [_search("x", "a")]}, {"task_id": "t1", "steps": [_search("y", "b")]}],
        [{"task_id": 1, "steps": [_search("x", "a")]}, {"task_id": "1", "steps": [_search("y", "b")]}],
        [{"task_id": "t1", "question": "q", "steps": [_search("x", "a")]}, {"task_id": "t1", "question": "q", "steps": []}],
        [{"session_id": "s", "question": name, "steps": [_search("x", name)]} for name in ("q1", "q2")],
        [{"task_id": "t1", "type": "multi-hop", "time": 1, "steps": [_search(name, name)]} for name in ("x", "y")],
    ],
)  # fmt: skip
def test_a_second_record_with_the_same_id_and_its_own_calls_is_an_error(records: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"log.json, at /1: the query id .* is also in .*log.json, at /0"):
        _read(_write(tmp_path, records))


def test_two_questions_with_one_id_are_an_error_and_query_id_names_the_field_that_tells_them_apart(
    tmp_path: Path,
) -> None:
    rows = [{"session_id": "s", "question": name, **_search("x", name)} for name in ("q1", "q2", "q1")]
    path = _write(tmp_path, rows)
    with pytest.raises(InputError, match=r"at /0: the query id 's' has two questions, 'q1' and 'q2'"):
        _read(path)
    assert _rows(path, "query_id", "iteration", query_id="question") == [("q1", 1), ("q1", 2), ("q2", 1)]


@pytest.mark.parametrize(
    "part", [{"step": 1}, {"step_idx": 1}, {"turn_id": "a"}, {"type": "tool_call"}, {"role": "ai"}]
)
def test_records_of_steps_with_one_id_are_one_query(part: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"task_id": "t", **part, "calls": [_search(name, name)]} for name in ("x", "y")]
    assert _rows(_write(tmp_path, rows), "query_id", "iteration", "doc_id") == [("t", 1, "x"), ("t", 2, "y")]


def _log_of_events(number: int) -> dict[str, Any]:
    log: list[dict[str, Any]] = []
    for index, (query, doc_id) in enumerate([("overview", f"d{number}"), (f"more {number}", f"e{number}")]):
        own = {"call_id": f"call_{index}"}
        log.append({"kind": "tool_call", **own, "name": "web_search", "arguments": {"query": query}})
        log.append({"kind": "tool_result", **own, "output": [{"doc_id": doc_id}]})
    return {"task_id": f"t{number}", "question": f"q {number}", "log": log}


def test_ids_of_calls_may_restart_in_each_query(tmp_path: Path) -> None:
    path = _write(tmp_path, [_log_of_events(number) for number in (1, 2, 3)])
    assert _rows(path, "query_id", "iteration", "doc_id") == [
        *(("t1", 1, "d1"), ("t1", 2, "e1"), ("t2", 1, "d2"), ("t2", 2, "e2"), ("t3", 1, "d3"), ("t3", 2, "e3")),
    ]  # fmt: skip
    whole = [{"task_id": name, "calls": [_search("x", f"d{name}", id="1")]} for name in ("t1", "t2")]
    assert _rows(_write(tmp_path, whole), "query_id", "doc_id") == [("t1", "dt1"), ("t2", "dt2")]


def test_a_search_with_two_different_answers_is_an_error(tmp_path: Path) -> None:
    calls = [_search("x", "a", id="c1"), _search("x", "b", id="c1")]
    with pytest.raises(
        InputError, match=r"at /0/steps/1: the search web_search with this id has another answer too .*at /0/steps/0"
    ):
        _read(_write(tmp_path, [{"task_id": "t1", "steps": calls}]))
    call = {"type": "tool_call", "id": "1", "name": "web_search", "arguments": {"query": "x"}}
    answers = [{"type": "tool_result", "id": "1", "content": [{"doc_id": name}]} for name in "ab"]
    with pytest.raises(InputError, match="at /events/2: the search web_search with this id has another answer too"):
        _read(_write(tmp_path, {"task_id": "t", "events": [call, *answers]}))
    parts = [{"type": "text", "text": '[{"doc_id": "a"}]'}]
    events = [call, answers[0], call, answers[0] | {"content": parts}, answers[0] | {"content": None}]
    assert _rows(_write(tmp_path, {"task_id": "t", "events": events}), "iteration", "doc_id") == [(1, "a")]


@pytest.mark.parametrize("answer", [{"result": None}, {"data": [{"doc_id": "a"}]}, {}])
def test_a_search_without_an_answer_that_goodgain_knows_is_unrecorded(answer: dict[str, Any], tmp_path: Path) -> None:
    path = _write(tmp_path, {"task_id": "t", "steps": [{**_ANSWERED, **answer}, _search("y", "b")]})
    place = "perhaps under 'data'" if "data" in answer else "what it returned is not in the log"
    with pytest.raises(InputError, match=f"at /steps/0: the search with 'web_search' was made, .*{place}"):
        _read(path)
    found = _rows(path, "iteration", "doc_id", "status", iteration="call", unrecorded="empty")
    assert found == [(1, None, "unrecorded"), (2, "b", "ok")]


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


def test_the_questions_of_steps_are_not_queries(tmp_path: Path) -> None:
    for asked in ("question", "task"):
        path = _write(tmp_path, {asked: "All?", "steps": _ROWS})
        assert _rows(path, "query_id", "iteration", iteration="call") == [("log", 1), ("log", 2), ("log", 3)]


@pytest.mark.parametrize("given", ["question", "/question"])
def test_query_id_names_a_field_with_or_without_a_slash(given: str, tmp_path: Path) -> None:
    path = _write(tmp_path, _ROWS)
    assert _rows(path, "query_id", "iteration", query_id=given) == [("Who?", 1), ("Who?", 2), ("What?", 1)]


def test_a_constant_for_several_queries_is_an_error(tmp_path: Path) -> None:
    for records in (_ROWS, [{"steps": [_search("x", "a")]}, {"steps": [_search("y", "b")]}]):
        with pytest.raises(InputError, match=r"at /1: the query id 'mine' is also in .*at /0"):
            _read(_write(tmp_path, records), query_id="mine")
    one = _write(tmp_path, {"steps": [_search("x", "a"), _search("y", "b")]})
    assert _rows(one, "query_id", query_id="mine") == [("mine",), ("mine",)]


def _messages(asked: str, *doc_ids: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be good."}, {"role": "user", "content": asked}]
    for doc_id in doc_ids:
        call = {
            "id": f"c{doc_id}",
            "type": "function",
            "function": {"name": "search", "arguments": json.dumps({"query": doc_id})},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps([{"doc_id": doc_id}])})
    return messages


def test_conversations_under_the_keys_of_an_object_are_queries(tmp_path: Path) -> None:
    keyed = {"a": _messages("Who?", "d1", "d2"), "b": _messages("What?", "d3"), "c": _messages("Why?")}
    path = _write(tmp_path, keyed | {"notes": [{"role": "assistant", "content": "done"}]})
    found = _rows(path, "query_id", "iteration", "doc_id")
    assert found == [("a", 1, "d1"), ("a", 2, "d2"), ("b", 1, "d3"), ("c", 0, None)]


def test_conversations_of_one_query_under_the_keys_of_an_object_stay_one(tmp_path: Path) -> None:
    judged = {"agent": _messages("Who?", "d1", "d2"), "judge": _messages("Is this right?")}
    assert _rows(_write(tmp_path, judged), "query_id", "iteration") == [("log", 1), ("log", 2)]
    helpers = {"plan": _messages("Who?", "d1"), "work": _messages("What?", "d2")}
    found = _rows(_write(tmp_path, {"question": "All?"} | helpers), "query_id", "doc_id", turns="all")
    assert found == [("log_1", "d1"), ("log_2", "d2")]
    again = {"plan": _messages("Who?", "d1"), "work": _messages("Who?", "d2")}
    found = _rows(_write(tmp_path, again), "query_id", "doc_id", turns="all")
    assert found == [("log_1", "d1"), ("log_2", "d2")]


def test_records_of_a_known_format_without_ids_are_queries(tmp_path: Path) -> None:
    path = _write(tmp_path, [{"question": asked, "messages": _messages(asked, asked)} for asked in ("q", "r")])
    assert _rows(path, "query_id", "doc_id") == [("log-1", "q"), ("log-2", "r")]
