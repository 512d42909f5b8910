"""`query_ids=` may give several logs one id: their searches are one query, by time or in the order given."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import InputError
from goodgain.logs.traces.model import Trace, Turn
from goodgain.logs.traces.reading.queries_and_costs import join_logs
from goodgain.logs.traces.reading.read_options import ReadOptions

#: The searches of three logs: the minute and the document that each found. The second log overlaps the first.
LOGS = {"lead": {0: "a", 4: "d"}, "helper": {2: "b", 3: "c"}, "other": {1: "x"}}
TABLE = pl.DataFrame({"query_id": ["q", "q", "z"], "log": ["lead", "helper.jsonl", "other"]})


def write_logs(folder: Path, *, times: bool = True) -> list[Path]:
    paths = [folder / f"{name}.jsonl" for name in LOGS]
    for number, (path, found) in enumerate(zip(paths, LOGS.values(), strict=True), start=1):
        steps = [
            {"input_tokens": number, "searches": [{"query": doc, "results": [{"doc_id": doc}]}]}
            | ({"time": f"2026-01-01T00:{minute:02}:00Z"} if times else {})
            for minute, doc in found.items()
        ]
        path.write_text(json.dumps({"goodgain_trace": 1, "user": f"The question of {path.stem}", "steps": steps}))
    return paths


def read(paths: Any, **options: Any) -> list[tuple[str, int, str]]:
    return gg.read_traces(paths, query_ids=TABLE, **options).select("query_id", "iteration", "doc_id").rows()


def test_the_steps_of_logs_with_one_id_are_one_query_by_time(tmp_path: Path) -> None:
    paths = write_logs(tmp_path)
    expected = [("z", 1, "x"), ("q", 1, "a"), ("q", 2, "b"), ("q", 3, "c"), ("q", 4, "d")]
    assert read(paths) == read(paths[::-1]) == read(paths, jobs=2) == expected
    _, costs = gg.read_traces(paths, query_ids=TABLE, costs=True)
    assert costs.filter(pl.col("query_id") == "q")["input_tokens"].drop_nulls().to_list() == [1, 2, 2, 1]


def test_logs_without_times_need_order_given_which_takes_one_after_another(tmp_path: Path) -> None:
    paths = write_logs(tmp_path, times=False)
    with pytest.raises(InputError, match=r"has no times.*order='given'"):
        read(paths)
    assert [doc for query, _, doc in read(paths, order="given") if query == "q"] == ["a", "d", "b", "c"]
    assert read(paths[0]) == [("q", 1, "a"), ("q", 2, "d")], "a log alone is read as without the others"


def test_equal_ids_without_a_table_stay_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is also in"):
        gg.read_traces(write_logs(tmp_path), query_id="q")


def test_a_query_broke_off_if_one_of_its_logs_did() -> None:
    cut, whole = ({"status": "incomplete", "reward": 1}, {"reward": 0})
    for records in ((cut, whole), (whole, cut)):
        joined = join_logs([Trace([Turn()], "log", record=record) for record in records], ReadOptions())
        assert joined.outcomes == {"completed": 0, "reward": records[1]["reward"]}


def test_each_system_has_its_own_logs_of_a_query(tmp_path: Path) -> None:
    lead, helper, other = write_logs(tmp_path)
    results = gg.read_traces({"old": [lead, other], "new": [helper]}, query_ids=TABLE).filter(query_id="q")
    rows = results.select("system", "iteration", "doc_id").rows()
    assert rows == [("old", 1, "a"), ("old", 2, "d"), ("new", 1, "b"), ("new", 2, "c")]
