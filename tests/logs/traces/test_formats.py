"""What single formats do that others do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goodgain.errors import GoodgainNotice
from goodgain.logs.traces import convert_traces, read_traces
from tests.cli.test_command_line import goodgain
from tests.support.tables import ROOT

from .conftest import by_iteration
from .story import docs
from .test_cases import SUBJECTS, write_log


def test_a_simulation_of_tau_bench_is_one_query_and_its_trial_a_replicate() -> None:
    results = read_traces(ROOT / "qrels_examples/benchmarks/tau_banking/results.json")
    rows = results.drop_nulls("doc_id").select("query_id", "replicate", "iteration", "doc_id", "title").rows()
    assert rows[0] == ("task_001", "0", 1, "doc_cards_gold_001", "Gold card")
    assert {(query, replicate) for query, replicate, *_ in rows} == {(f"task_00{q}", r) for q in (1, 2) for r in "01"}
    empty = results.filter(query_id="task_002", replicate="1", iteration=1)
    assert empty["status"].to_list() == ["empty"]


def test_results_of_tau_bench_are_found_behind_long_tasks(save: Callable[..., Path]) -> None:
    simulation = json.loads((ROOT / "tests/logs/traces/fixtures/tau_bench/story.json").read_text())["simulations"]
    tasks = [{"id": f"task_{k}", "required_documents": ["d"] * 100} for k in range(1000)]
    path = save({"timestamp": "now", "info": {"agent_info": {"llm": "m"}}, "tasks": tasks, "simulations": simulation})
    assert path.stat().st_size > 2**18
    assert read_traces(path)["query_id"].unique().to_list() == ["story"]


def test_a_refusal_names_the_option_that_takes_what_by_shape_counts(tmp_path: Path) -> None:
    (case,) = (case for case in SUBJECTS["langchain_events"] if case["name"] == "a refusal says what by shape counts")
    _, err = goodgain("convert", write_log(case, tmp_path), "-o", tmp_path / "a.run", status=2)
    assert "by shape: 1 query, 1 search: web_search 1; 1 result; pass --format shape to take this" in err


def _chat(document: str) -> str:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    answer = {"role": "tool", "tool_call_id": "c", "content": json.dumps(docs(document))}
    return json.dumps([{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]}, answer])


def test_a_folder_is_one_of_strands_by_what_is_in_its_files_and_logs_beside_sessions_are_read(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"message_{number}.json").write_text(_chat(f"d{number}"))
    assert read_traces(tmp_path)["doc_id"].to_list() == ["d1", "d2", "d3"]

    folder = tmp_path / "session_1" / "agents" / "agent_a" / "messages"
    folder.mkdir(parents=True)
    for path in (folder.parents[2] / "session.json", folder.parent / "agent.json"):
        path.write_text("{}")
    use = {"toolUse": {"toolUseId": "t", "name": "search"}}
    result = {"toolResult": {"toolUseId": "t", "content": [{"json": docs("d4")}]}}
    for number, (role, block) in enumerate((("assistant", use), ("user", result))):
        record = {"message": {"role": role, "content": [block]}, "message_id": number, "redact_message": None}
        (folder / f"message_{number}.json").write_text(json.dumps(record))
    with pytest.warns(GoodgainNotice, match="share no query"):  # only a session names its agent
        results = read_traces(tmp_path)
    assert sorted(results["doc_id"]) == ["d1", "d2", "d3", "d4"]

    for path in (folder, folder.parent, folder.parents[2]):
        assert read_traces(path)["doc_id"].to_list() == ["d4"]


def test_the_history_of_gemini_s_own_calls_repeats_what_was_asked(save: Callable[..., Path], tmp_path: Path) -> None:
    asked = {"role": "user", "parts": [{"text": "What?"}]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {}}}]}
    found = {"name": "search", "response": {"result": docs("d1")}}
    calls = [call, {"role": "user", "parts": [{"functionResponse": found}]}]
    candidates = [{"content": {"role": "model", "parts": [{"text": "A"}]}}]

    for name, contents, history, steps in (
        ("first", [asked], [asked, *calls], 1),
        ("again", [asked, *calls], [asked, *calls], 1),
        ("more", [asked, *calls], [asked, *calls, *calls], 2),
    ):
        response = {"candidates": candidates, "automaticFunctionCallingHistory": history}
        exchange = {"request": {"contents": contents}, "response": response}
        for form, record in (("exchange", exchange), ("contents", {"contents": contents, **response})):
            log, run = save(record, f"{name}_{form}.json"), tmp_path / f"{name}_{form}"
            assert by_iteration(read_traces(log, iteration="step")) == [["d1"]] * steps
            convert_traces(log, f"{run}.run", queries=f"{run}.jsonl")
            assert json.loads(Path(f"{run}.jsonl").read_text())["text"] == "What?"

    answer = {"role": "model", "parts": [{"text": "A"}]}
    later = {"request": {"contents": [asked, *calls, answer, asked]}, "response": {"candidates": candidates}}
    response = {"candidates": candidates, "automaticFunctionCallingHistory": [asked, *calls]}
    log = save([{"request": {"contents": [asked]}, "response": response}, later], "joined.jsonl")
    assert read_traces(log, turns="all")["doc_id"].to_list() == ["d1", None], "two turns of one conversation"
