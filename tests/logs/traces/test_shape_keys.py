"""By shape: when the keys of an object are the ids of queries, when they name the parts of one, and when a notice asks."""

# cases are easier to read one a line

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from goodgain.errors import GoodgainNotice
from goodgain.logs.traces import convert_traces, read_traces


def _calls(*doc_ids: str) -> list[dict[str, Any]]:
    return [
        {"tool": "search", "arguments": {"query": f"about {name}"}, "output": json.dumps([{"doc_id": name}])}
        for name in doc_ids
    ]


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
_PARTS, _DOUBTFUL = _DATA["parts"], _DATA["doubtful"]
_SYSTEM = {"role": "system", "content": "Be good."}
_KNOWN = {"role": "assistant", "content": "I know it."}


class _Converted(NamedTuple):
    run: dict[str, list[str]]
    queries: int
    without_search: int
    notices: list[str]


def _convert(folder: Path, value: Any, **options: Any) -> _Converted:
    """Convert a log; the run is query id -> the documents of its iterations."""
    (folder / "log.json").write_text(json.dumps(value))
    with warnings.catch_warnings(record=True, action="always", category=GoodgainNotice) as given:
        done = convert_traces(folder / "log.json", folder / "a.run", format="shape", iteration="call", **options)
    run: dict[str, list[str]] = {}
    for line in (folder / "a.run").read_text().splitlines():
        query_id, iteration, doc_id, *_ = line.split()
        if iteration != "-":  # a query that never searched
            run.setdefault(query_id, []).append(doc_id)
    return _Converted(run, done.summary.traces, done.summary.without_search, [str(one.message) for one in given])


def _record(number: int, **more: Any) -> dict[str, Any]:
    return {"question": f"what {number}", "steps": _calls(f"a{number}", f"b{number}"), **more}


@pytest.mark.parametrize("kind", _DATA["by id"])
@pytest.mark.parametrize("around", [None, "results"])
def test_records_under_query_ids_are_queries_in_every_form(kind: str, around: str | None, tmp_path: Path) -> None:
    text = json.dumps(_DATA["by id"][kind])
    log: Any = {f"q{number}": json.loads(text.replace("#", str(number))) for number in (0, 1)}
    done = _convert(tmp_path, {"model": "m", around: log} if around else log)
    assert done == ({"q0": ["a0", "b0"], "q1": ["a1", "b1"]}, 2, 0, [])


@pytest.mark.parametrize(
    "ids",
    [
        ("question-7", "question-12"),
        ("5a8b57f25542995d1e6f1371", "5ae2070a5542994d89d5b313"),
        ("2hop__482757_12019", "2hop__129292_160545"),
        ("b7c1f9e2-5d0a-4c8e-9b39-0f5a6f7d1e22", "0d9e4c11-2f7b-4b6a-8f0e-7c3a5b2d9e10"),
        ("17", "1266"),
    ],
)
def test_numbers_and_hashes_are_query_ids(ids: tuple[str, str], tmp_path: Path) -> None:
    done = _convert(tmp_path, {name: {"steps": _calls(f"d{name}")} for name in ids})
    assert done == ({name: [f"d{name}"] for name in ids}, 2, 0, [])


@pytest.mark.parametrize("keys", [("alpha", "beta"), ("0", "1"), ("hotpot_1", "hotpot_2")])
def test_records_under_any_key_are_queries_by_their_different_questions(keys: tuple[str, str], tmp_path: Path) -> None:
    first, second = keys
    for records in (
        [_record(1), _record(2)],
        [[_user("Who?"), *_calls("a1", "b1")], [_user("What?"), *_calls("a2", "b2")]],
        [[_SYSTEM, _SYSTEM, _user("Who?"), *_calls("a1", "b1")], [_SYSTEM, _SYSTEM, _user("What?"), *_calls("a2", "b2")]],
        [[_user("Go."), _user("Who?"), *_calls("a1", "b1")], [_user("Go."), _user("What?"), *_calls("a2", "b2")]],
    ):  # fmt: skip
        done = _convert(tmp_path, dict(zip(keys, records, strict=True)))
        assert done == ({first: ["a1", "b1"], second: ["a2", "b2"]}, 2, 0, [])


def test_queries_that_never_searched_keep_their_ids_and_count(tmp_path: Path) -> None:
    """Also if only one of all queries searched."""
    one = {"q0": [_user("what 0"), _KNOWN], "q1": [_user("what 1"), *_calls("a", "b")], "q2": [_user("what 2"), _KNOWN]}
    assert _convert(tmp_path, one) == ({"q1": ["a", "b"]}, 3, 2, [])
    records = {"q0": {"steps": []}, "q1": {"steps": _calls("a")}, "q2": {"error": "out of memory"}, "notes": {"x": 1}}
    *counts, (said,) = _convert(tmp_path, records)
    assert counts == [{"q1": ["a"]}, 3, 2]
    assert "mark 1 trace as broken off" in said, "the record with an error"
    asked = {"a": _record(0), "b": _record(1), "c": _record(2, steps=[])}
    assert _convert(tmp_path, asked) == ({"a": ["a0", "b0"], "b": ["a1", "b1"]}, 3, 1, [])
    with_ids = {"x": _record(0, question_id="x"), "y": _record(1, question_id="y", steps=[])}
    assert _convert(tmp_path, with_ids) == ({"x": ["a0", "b0"]}, 2, 1, [])


def test_objects_beside_a_record_are_not_queries(tmp_path: Path) -> None:
    log = {"record": _record(0, task_id="t"), "task": {"task_id": "t", "question": "what 0"}, "eval": {"task": "x"}}
    assert _convert(tmp_path, log) == ({"t": ["a0", "b0"]}, 1, 0, [])


@pytest.mark.parametrize("kind", _PARTS)
def test_keys_of_steps_and_agents_are_one_query(kind: str, tmp_path: Path) -> None:
    assert _convert(tmp_path, _PARTS[kind]) == ({"log": ["a", "b"]}, 1, 0, [])


@pytest.mark.parametrize("kind", _DOUBTFUL)
def test_where_nothing_decides_the_keys_are_one_query_and_a_notice_names_them(kind: str, tmp_path: Path) -> None:
    done = _convert(tmp_path, _DOUBTFUL[kind])
    assert (done.run, done.queries) == ({"log": ["a", "b"]}, 1)
    (notice,) = done.notices
    keys = list(_DOUBTFUL[kind].get("all", _DOUBTFUL[kind]))
    assert notice.startswith(f"the keys {keys[0]!r}, {keys[1]!r} in {tmp_path / 'log.json'}")
    confirmed = _convert(tmp_path, _DOUBTFUL[kind], query_id="mine")
    assert confirmed == ({"mine": ["a", "b"]}, 1, 0, [])


def test_the_remedies_of_the_notice_on_doubtful_keys_work(tmp_path: Path) -> None:
    lines = [{"query_id": name, "calls": calls} for name, calls in _DOUBTFUL["numbers"].items()]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_traces(path, format="shape", iteration="call")["query_id"].to_list() == ["hotpot_1", "hotpot_2"]


def test_lists_of_records_under_keys_are_queries_by_the_records(tmp_path: Path) -> None:
    """The keys name parts of the data."""
    for keys in (("train", "test"), ("batch_001", "batch_002")):
        log = {keys[0]: [_record(0), _record(1)], keys[1]: [_record(2)]}
        done = _convert(tmp_path, log)
        assert (done.queries, sorted(done.run), done.notices) == (3, ["log-1", "log-2", "log-3"], [])


@pytest.mark.parametrize("key", ["q" * 1000, "1" * 5000, "7" * 100_000 + "x", "\n1 2 3", "1" + "-a" * 100_000])
def test_malicious_keys_take_no_time(key: str, tmp_path: Path) -> None:
    done = _convert(tmp_path, {key: _calls("a"), f"{key}2": _calls("b")})
    assert sum(map(len, done.run.values())) == 2
