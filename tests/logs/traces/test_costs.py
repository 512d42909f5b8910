"""What each iteration cost: tokens, seconds and money of each format that logs them, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.errors import InputError
from goodgain.logs.traces import convert_traces
from tests.cli.test_command_line import goodgain

Json = Any


def _own(*steps: Json, **more: Json) -> str:
    return json.dumps({"goodgain_trace": 1, "query_id": "q1", "steps": list(steps), **more}) + "\n"


def test_costs_are_written_beside_the_run(tmp_path: Path) -> None:
    search = {"query": "bm25", "results": [{"doc_id": "d1"}]}
    for name in ("a", "b"):
        step = {"searches": [search], "output_tokens": 4, "cost": 0.5}
        (tmp_path / f"{name}.jsonl").write_text(_own(step, repeat=1) + _own(step, repeat=2))
    logs = [f"{name}={tmp_path / name}.jsonl" for name in ("a", "b")]
    goodgain("convert", *logs, "-o", tmp_path / "{system}.run", "--costs", tmp_path / "costs.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "costs.jsonl").read_text().splitlines()]
    assert [(row["query_id"], row["system"], row["replicate"]) for row in rows] == [
        ("q1", "a", "1"), ("q1", "a", "2"), ("q1", "b", "1"), ("q1", "b", "2"),
    ]  # fmt: skip
    assert rows[0] | {"query_id": 0, "system": 0, "replicate": 0} == {
        "query_id": 0, "system": 0, "replicate": 0, "iteration": 1, "calls": 1, "input_tokens": None, "output_tokens": 4,
        "seconds": None, "cost": 0.5,
    }  # fmt: skip
    log, out, costs = tmp_path / "a.jsonl", tmp_path / "y.run", tmp_path / "c.parquet"
    convert_traces(log, tmp_path / "x.run", system="goodgain-1", tag="goodgain", costs=costs)
    spent = pl.read_parquet(costs)
    assert spent.select("system", "replicate", "cost").rows() == [("x", "1", 0.5)], "as curve calls the run"
    with pytest.raises(InputError, match=r"name of its own"):
        convert_traces(log, out, system="1", results=tmp_path / "r.jsonl", costs=tmp_path / "r.jsonl")
    with pytest.raises(InputError, match=r"\.parquet or \.jsonl"):
        convert_traces(log, out, costs=tmp_path / "c.csv")
