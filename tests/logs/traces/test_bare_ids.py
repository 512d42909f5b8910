"""Answers that are lists of ids, and what is said of lists that may be something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodgain.logs.traces import read_traces
from goodgain.logs.traces.reading_summary import Summary
from tests.cli.test_command_line import goodgain

from .logs import Call, Story, Turn, jsonl, openai_chat


def _write(folder: Path, *answers: Any, tool: str = "search") -> Path:
    path = folder / "q1.json"
    log = openai_chat(Story([Turn([[Call(answer)] for answer in answers])]))
    path.write_text(log if tool == "search" else log.replace('"search"', json.dumps(tool)))
    return path


@pytest.mark.parametrize(
    ("answer", "ids"),
    [
        (["d1", "d2"], ["d1", "d2"]), (["7187158", "42"], ["7187158", "42"]), (["doc-1_a.txt#3"], ["doc-1_a.txt#3"]),
        ({"query": "x", "docs": ["d1", "d2"]}, ["d1", "d2"]), ([["d1", "d2"], ["d3"]], ["d1", "d2", "d3"]), ([], ["-"]),
    ],
)  # fmt: skip
def test_a_list_of_ids_is_a_list_of_results(tmp_path: Path, answer: Any, ids: list[str]) -> None:
    goodgain("convert", _write(tmp_path, answer), "-o", tmp_path / "a.run")
    assert [line.split()[2] for line in (tmp_path / "a.run").read_text().splitlines()] == ids


def test_the_own_format_takes_a_list_of_ids_as_output(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(jsonl(Story([Turn([[Call(["d1", "d2"])]])])))
    goodgain("convert", tmp_path / "log.jsonl", "-o", tmp_path / "a.run")
    assert [line.split()[2] for line in (tmp_path / "a.run").read_text().splitlines()] == ["d1", "d2"]


@pytest.mark.parametrize(
    "answer",
    [
        ["news", "sports"], ["d1", "news"], ["The wind moves sand.", "Dunes 2"], ["d1", ""], [1, 2], ["d1", 2], ["d" + "1" * 200],
        [["d1", 0.5], ["d2", 0.4]],
    ],
)  # fmt: skip
def test_a_list_that_may_be_something_else_is_an_error_with_a_remedy_of_the_command_line(
    tmp_path: Path, answer: Any
) -> None:
    _, err = goodgain("convert", _write(tmp_path, answer), "-o", tmp_path / "a.run", status=2)
    assert "no results can be read from the output of the search" in err
    assert "write the searches in the format jsonl with a list of objects as results" in err
    assert "docs/traces/your_own_agent.md" in err


def test_lists_of_tools_that_do_not_search_do_not_look_like_results(tmp_path: Path) -> None:
    said: list[Summary] = []
    read_traces(_write(tmp_path, ["a1.txt", "b2.txt"], tool="list_files"), report=said.append)
    assert not said[0].lookalikes
    assert said[0].skipped_tools == {"list_files": 1}


def test_steps_without_the_name_of_a_tool_are_sent_to_the_own_format(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps([{"query": "dunes", "docs": ["d1", "d2"]}]))
    _, err = goodgain("convert", tmp_path / "log.json", "--format", "shape", "-o", tmp_path / "a.run", status=2)
    assert "holds no trace that shape can read" in err
    assert "write its searches in the format jsonl (docs/traces/your_own_agent.md)" in err
