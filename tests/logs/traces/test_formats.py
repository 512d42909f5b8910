"""What single formats do that others do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from goodgain.logs.traces import read_traces
from tests.cli.test_command_line import goodgain
from tests.support.tables import ROOT

from .test_cases import SUBJECTS, write_log


def test_a_simulation_of_tau_bench_is_one_query_and_its_trial_a_replicate() -> None:
    results = read_traces(ROOT / "qrels_examples/benchmarks/tau_banking/results.json")
    found = results.drop_nulls("doc_id").select("query_id", "replicate", "iteration", "doc_id", "title").rows()
    assert found[0] == ("task_001", "0", 1, "doc_cards_gold_001", "Gold card")
    assert {(query, replicate) for query, replicate, *_ in found} == {(f"task_00{q}", r) for q in (1, 2) for r in "01"}
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
