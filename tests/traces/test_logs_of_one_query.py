"""`query_ids=` may give several logs one id: their searches are one query, by time or in the order given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import InputError
from tests.support.command import run_command

#: The searches of three logs: the minute and the document that each found. The second log overlaps the first.
LOGS = {"lead": {0: "a", 4: "d"}, "helper": {2: "b", 3: "c"}, "other": {1: "x"}}
TABLE = pl.DataFrame({"query_id": ["q", "q", "z"], "log": ["lead", "helper.jsonl", "other"]})


def write_logs(folder: Path, *, times: bool = True) -> list[Path]:
    paths = []
    for name, found in LOGS.items():
        steps = [{"searches": [{"query": doc, "results": [{"doc_id": doc}]}]} for doc in found.values()]
        for minute, step in zip(found, steps, strict=True):
            step |= {"time": f"2026-01-01T00:{minute:02}:00Z"} if times else {}
        trace = {"goodgain_trace": 1, "user": f"The question of {name}", "steps": steps}
        paths.append(folder / f"{name}.jsonl")
        paths[-1].write_text(json.dumps(trace))
    return paths


def read(paths: Any, **options: Any) -> list[tuple[str, int, str]]:
    return gg.read_traces(paths, **options).select("query_id", "iteration", "doc_id").rows()


def test_the_steps_of_logs_with_one_id_are_one_query_by_time(tmp_path: Path) -> None:
    paths = write_logs(tmp_path)
    expected = [("z", 1, "x"), ("q", 1, "a"), ("q", 2, "b"), ("q", 3, "c"), ("q", 4, "d")]
    for order in (paths, paths[::-1]):
        assert read(order, query_ids=TABLE) == expected
    assert read(paths, query_ids=TABLE, jobs=2) == expected


def test_order_given_takes_the_logs_one_after_another(tmp_path: Path) -> None:
    paths = write_logs(tmp_path, times=False)
    ids = [row[2] for row in read(paths, query_ids=TABLE, order="given") if row[0] == "q"]
    assert ids == ["a", "d", "b", "c"]


def test_logs_without_times_need_order_given(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no times.*order='given'"):
        read(write_logs(tmp_path, times=False), query_ids=TABLE)


def test_with_errors_skip_a_query_without_times_is_left_out_by_its_id(tmp_path: Path) -> None:
    table = tmp_path / "ids.csv"
    TABLE.write_csv(table)
    paths = write_logs(tmp_path, times=False)
    done = run_command("convert", *paths, "--query-ids", table, "--errors", "skip", "-o", tmp_path / "a.run")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.run.unread").read_text().split() == ["q"]


def test_equal_ids_without_a_table_stay_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is also in"):
        read(write_logs(tmp_path), query_id="q")


def test_each_system_has_its_own_logs_of_a_query(tmp_path: Path) -> None:
    lead, helper, other = write_logs(tmp_path)
    found = gg.read_traces({"old": [lead, other], "new": [helper]}, query_ids=TABLE)
    rows = found.select("system", "query_id", "iteration", "doc_id").rows()
    assert rows == [
        ("old", "z", 1, "x"),
        ("old", "q", 1, "a"),
        ("old", "q", 2, "d"),
        ("new", "q", 1, "b"),
        ("new", "q", 2, "c"),
    ]


def test_a_log_alone_is_read_as_without_the_others(tmp_path: Path) -> None:
    lead, *_ = write_logs(tmp_path, times=False)
    assert read(lead, query_ids=TABLE) == [("q", 1, "a"), ("q", 2, "d")]


def test_the_command_says_which_logs_are_one_query(tmp_path: Path) -> None:
    table = tmp_path / "ids.csv"
    TABLE.write_csv(table)
    done = run_command(
        "convert", *write_logs(tmp_path), "--query-ids", table, "-o", tmp_path / "a.run", "--order", "time"
    )
    assert done.returncode == 0, done.stderr
    assert "logs that --query-ids joins: 2 are 1 query" in done.stderr


def test_costs_and_uses_of_the_logs_stay_with_their_searches(tmp_path: Path) -> None:
    paths = write_logs(tmp_path)
    for number, path in enumerate(paths[:2], start=1):
        trace = json.loads(path.read_text())
        for step in trace["steps"]:
            step["input_tokens"] = number
        path.write_text(json.dumps(trace))
    _, costs = gg.read_traces(paths, query_ids=TABLE, costs=True)
    assert costs.filter(pl.col("query_id") == "q")["input_tokens"].drop_nulls().to_list() == [1, 2, 2, 1]
