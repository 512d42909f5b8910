"""Logs that broke off: traces that say so, lines and lists that were cut off, and what could not be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.comparing.requirements import parse_requirement
from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import convert_traces, read_traces
from tests.cli.test_command_line import goodgain

_DATA = json.loads(Path(__file__).with_name("broken_off.json").read_text("utf-8"))
#: A chat with one search, and logs of two queries, the first of which broke off.
_CHAT, _LOGS = _DATA["chat"], _DATA["logs"]


@pytest.mark.parametrize("name", _LOGS)
def test_a_trace_that_broke_off_is_told_and_marked_among_the_outcomes(name: str, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(_LOGS[name]))
    outcomes = tmp_path / "outcomes.jsonl"
    told = "the logs mark 1 trace as broken off, the first at .*log.json, at .*/0"
    with pytest.warns(GoodgainNotice, match=told):
        conversion = convert_traces(
            tmp_path / "log.json", tmp_path / "{system}.run", outcomes=outcomes, iteration="call"
        )
    assert "traces that broke off according to their logs: 1" in str(conversion.summary)
    rows = pl.read_ndjson(outcomes).sort("query_id")
    assert rows.select("query_id", "completed").rows() == [("a", 0.0), ("b", 1.0)]


def test_traces_that_did_not_break_off_are_completed(tmp_path: Path) -> None:
    whole = {**_LOGS["tau2"], "simulations": _LOGS["tau2"]["simulations"][1:]}
    (tmp_path / "log.json").write_text(json.dumps(whole))
    convert_traces(tmp_path / "log.json", tmp_path / "{system}.run", outcomes=tmp_path / "outcomes.jsonl")
    assert {*pl.read_ndjson(tmp_path / "outcomes.jsonl")["completed"]} == {1.0}


def _compare(outcomes: dict[str, Any], **options: Any) -> list[str]:
    qrels = pl.DataFrame({"query_id": ["a", "b", "c"], "doc_id": "d", "relevance": 2})
    run = qrels.select("query_id", iteration=1, doc_id="doc_id", rank=1, score=1.0)
    table = pl.DataFrame({"query_id": [*"abc"] * 2, "system": ["x"] * 3 + ["y"] * 3, **outcomes})
    comparison = gg.compare(qrels, {"x": run, "y": run}, "SRR@1", outcomes=table, **options)
    return [] if comparison.outcomes is None else comparison.outcomes.columns[2:]


@pytest.mark.filterwarnings("ignore:1 query broke off in x")
def test_completed_is_compared_only_if_a_required_line_names_it() -> None:
    values = {"completed": [0, 1, 1, 1, 1, 1], "solved": [0, 1, 0, 1, 1, 1]}
    with pytest.warns(GoodgainNotice, match="completed says whether a trace broke off, and is not tested"):
        assert _compare(values) == ["solved"]
    for line in ("completed>=baseline", parse_requirement("completed>=baseline", outcomes=["completed"])):
        assert _compare(values, require=[line]) == ["completed", "solved"]
    with pytest.warns(GoodgainNotice, match="is not tested"):
        assert _compare({"completed": values["completed"]}) == []


# What could not be read


Convert = Callable[[str, str], tuple[list[str], list[str]]]


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """Convert a log with --errors skip; return the query ids in the run, and those that could not be read."""

    def convert(name: str, content: str) -> tuple[list[str], list[str]]:
        (tmp_path / name).write_text(content)
        goodgain("convert", tmp_path / name, "-o", tmp_path / "a.run", "--errors", "skip")
        ids = [line.split()[0] for line in (tmp_path / "a.run").read_text().splitlines()]
        return ids, (tmp_path / "a.run.unread").read_text().splitlines()

    return convert


def _lines(*, named: bool) -> list[str]:
    return [json.dumps({**({"query_id": f"q{k}"} if named else {}), "messages": _CHAT}) for k in range(1, 13)]


@pytest.mark.parametrize(("named", "lost"), [(True, "q"), (False, "log-")])
def test_lines_that_were_cut_off_are_queries_that_could_not_be_read(named: bool, lost: str, convert: Convert) -> None:
    lines = [line[:80] if k in (3, 7, 11) else line for k, line in enumerate(_lines(named=named))]
    read, unread = convert("log.jsonl", "\n".join(lines))
    assert unread == [f"{lost}4", f"{lost}8", f"{lost}12"]
    assert read == [f"{lost}{k}" for k in range(1, 13) if f"{lost}{k}" not in unread]


def test_an_id_that_was_cut_off_is_not_guessed(convert: Convert) -> None:
    lines = [json.dumps({"messages": _CHAT, "query_id": f"q{k}"}) for k in (1, 2, 3)]
    conversion = convert("log.jsonl", "\n".join([*lines[:2], lines[2][:80], '{"query_id": "q4", "messages": 5}']))
    assert conversion == (["q1", "q2"], ["q4"])


@pytest.mark.parametrize("kept", [0.4, 0.7, 0.95])
def test_a_list_that_was_cut_off_gives_its_whole_members(kept: float, convert: Convert) -> None:
    whole = json.dumps([json.loads(line) for line in _lines(named=True)], indent=1)
    text = whole[: int(len(whole) * kept)]
    read, unread = convert("log.json", text)
    begun = text.count('"query_id"')
    assert [*read, *unread] == [f"q{k}" for k in range(1, begun + 1)]
    assert len(unread) <= 1


def test_a_conversation_that_was_cut_off_is_not_read_as_a_shorter_one(tmp_path: Path) -> None:
    path = tmp_path / "q1.json"
    path.write_text(json.dumps([*_CHAT, {"role": "assistant", "content": "There."}])[:-20])
    _, err = goodgain("convert", path, "-o", tmp_path / "a.run", "--errors", "skip", status=2)
    assert "no trace could be read" in err
    assert not (tmp_path / "a.run").exists()


def test_an_earlier_list_of_unread_queries_is_replaced(tmp_path: Path) -> None:
    lines, unread = _lines(named=True), tmp_path / "all.run.unread"
    for content, lost in (([*lines[:2], lines[2][:90]], "q3\n"), (lines, "")):
        (tmp_path / "log.jsonl").write_text("\n".join(content))
        goodgain("convert", tmp_path / "log.jsonl", "-o", tmp_path / "{system}.run", "--errors", "skip")
        assert unread.read_text() == lost


def test_without_errors_skip_a_cut_list_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps([json.loads(line) for line in _lines(named=True)])[:-30])
    with pytest.raises(InputError, match="is not valid JSON"):
        read_traces(tmp_path / "log.json")
