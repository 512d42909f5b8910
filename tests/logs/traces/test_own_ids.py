"""The id of a query in a record of messages comes before the record's `id`; several records with one id are its runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import InputError
from goodgain.logs.traces import convert_traces, read_traces

from .logs import WRITERS, conversation

#: The formats whose traces are records of messages.
_FORMATS = ("anthropic", "autogen", "gemini", "langchain", "openai_chat", "pydantic_ai", "strands", "vercel_ai")


@pytest.fixture
def read_ids(tmp_path: Path) -> Callable[..., list[str]]:
    def read(*records: Any) -> list[str]:
        (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, records)))
        return read_traces(tmp_path / "log.jsonl")["query_id"].unique(maintain_order=True).to_list()

    return read


@pytest.mark.parametrize("key", ["query_id", "question_id", "qid", "task_id"])
@pytest.mark.parametrize("name", _FORMATS)
def test_a_record_s_own_query_id_comes_before_its_id(name: str, key: str, read_ids: Callable[..., list[str]]) -> None:
    written = json.loads(WRITERS[name][0](conversation()))
    record = {"messages": written} if isinstance(written, list) else written
    assert read_ids({**record, "id": "r1", key: "q7"}, {**record, "id": "r2", key: 8}) == ["q7", "8"]


def test_what_is_no_id_is_passed_over(read_ids: Callable[..., list[str]]) -> None:
    messages = json.loads(WRITERS["openai_chat"][0](conversation()))
    messages = messages["messages"] if isinstance(messages, dict) else messages
    odd = [{"query_id": None}, {"query_id": ""}, {"query_id": ["q"]}, {"query_id": True, "task_id": "t"}]
    assert read_ids(*({"messages": messages, **one} for one in odd)) == ["log-1", "log-2", "log-3", "t"]


# Runs of one query

_REPEATS = ["repeat", "trial", "trial_id", "epoch", "attempt"]


def _make_record(name: str, run: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a record with other words and ids in each run: states of a graph with the same messages are one trace."""
    text = WRITERS[name][0](conversation()).replace("What is BM25?", f"What is BM25, {run}?")
    written = json.loads(text.replace('"id": "m', f'"id": "m{run}'))
    return {**({"messages": written} if isinstance(written, list) else written), **fields}


def _write(folder: Path, *records: Any) -> Path:
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, records)))
    return folder / "log.jsonl"


@pytest.mark.parametrize("key", _REPEATS)
@pytest.mark.parametrize("name", _FORMATS)
def test_records_with_one_id_that_name_their_runs_are_runs_of_the_system(name: str, key: str, tmp_path: Path) -> None:
    log = _write(tmp_path, *(_make_record(name, run, query_id="q7", id=f"r{run}", **{key: run}) for run in (0, 1)))
    rows = read_traces(log, tag="agent").select("query_id", "replicate").unique(maintain_order=True).rows()
    assert rows == [("q7", "0"), ("q7", "1")]
    conversion = convert_traces(log, tmp_path / "{system}.run", tag="agent")
    assert {path.name for path in conversion.runs.values()} == {"agent.0.run", "agent.1.run"}


def test_runs_of_a_query_may_be_in_files_of_their_own(tmp_path: Path) -> None:
    for run in (1, 2):
        (tmp_path / f"{run}.json").write_text(json.dumps(_make_record("openai_chat", task_id="t", attempt=run)))
    assert read_traces(tmp_path)["replicate"].unique(maintain_order=True).to_list() == ["1", "2"]


@pytest.mark.parametrize("key", ["trial_id", "epoch", "attempt"])
def test_a_count_or_time_names_no_run_where_each_id_comes_once(key: str, tmp_path: Path) -> None:
    log = _write(tmp_path, *(_make_record("openai_chat", task_id=f"t{one}", **{key: one}) for one in (1, 2)))
    rows = read_traces(log).select("query_id", "replicate").unique(maintain_order=True).rows()
    assert rows == [("t1", None), ("t2", None)]
    assert convert_traces(log, tmp_path / "a.run").rows > 0


@pytest.mark.parametrize("name", _FORMATS)
def test_records_with_one_id_that_name_no_run_are_an_error_that_says_what_to_do(name: str, tmp_path: Path) -> None:
    log = _write(tmp_path, *(_make_record(name, run, task_id="t", id=f"r{run}") for run in (1, 2)))
    expected = r"line 2: the query id 't'.* is also in .*line 1. Number the runs .* field repeat; .* query_id='id'"
    with pytest.raises(InputError, match=expected):
        read_traces(log)
    assert read_traces(log, query_id="id")["query_id"].unique(maintain_order=True).to_list() == ["r1", "r2"]
    log = _write(tmp_path, *(_make_record(name, k, task_id="t", attempt=run) for k, run in enumerate((1, 2, 2))))
    with pytest.raises(InputError, match=r"the query id 't'.*, replicate '2', is also in"):
        read_traces(log)
