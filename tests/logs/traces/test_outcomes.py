"""`convert --outcomes` writes what logs record: scores, rewards and feedback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.logs.traces.expected_values import find_outcomes
from tests.support.command import run_command

from .logs import Call, Story, Turn, docs, openai_chat

FIXTURES = Path(__file__).parent / "fixtures"

CHAT = json.loads(openai_chat(Story([Turn([[Call(docs("d1"))]])])))


def convert(log: Path, folder: Path) -> list[dict[str, Any]]:
    outcomes = folder / "outcomes.jsonl"
    done = run_command("convert", log, "-o", folder / "agent.run", "--outcomes", outcomes)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in outcomes.read_text(encoding="utf-8").splitlines()]


def _score_inspect(log: Any) -> None:
    del log["samples"][1:]  # the other epoch
    log["samples"][0]["scores"] = {"match": {"value": "C"}, "judge": {"value": {"style": 0.5}}}


def _score_langsmith(tree: Any) -> None:
    (tree[0] if isinstance(tree, list) else tree)["feedback_stats"] = {
        "match": {"n": 1, "avg": 1.0},
        "style": {"avg": 0.5},
    }


def _score_langfuse(session: Any) -> None:
    scores = [{"name": "match", "value": 1, "dataType": "BOOLEAN"}, {"name": "style", "value": 0.5}, {"name": "x"}]
    session["traces"][-1]["scores"] = scores


def _score_mlflow(traces: Any) -> None:
    (traces[-1] if isinstance(traces, list) else traces)["info"]["assessments"] = [
        {"assessment_name": "match", "feedback": {"value": True}},
        {"assessment_name": "style", "feedback": {"value": "0.5"}},
        {"assessment_name": "expected", "expectation": {"value": "a text"}},
    ]


@pytest.mark.parametrize(
    ("fixture", "score"),
    [
        ("inspect_ai/log.json", _score_inspect),
        ("langsmith/tree.json", _score_langsmith),
        ("langfuse/story.json", _score_langfuse),
        ("mlflow/story.json", _score_mlflow),
    ],
)
def test_scores_of_a_log_become_numbers_of_its_query(
    fixture: str, score: Callable[[Any], None], tmp_path: Path
) -> None:
    log = json.loads((FIXTURES / fixture).read_text(encoding="utf-8"))
    score(log)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    first, *_ = convert(path, tmp_path)
    assert (first["match"], first["style"], first["system"]) == (1.0, 0.5, "agent")
    assert first["query_id"] in (tmp_path / "agent.run").read_text(encoding="utf-8")


def test_downloads_of_langfuse_have_the_trace_beside_its_observations(tmp_path: Path) -> None:
    story = json.loads((FIXTURES / "langfuse/story.json").read_text(encoding="utf-8"))
    trace = story["traces"][-1]
    observations = trace.pop("observations")
    _score_langfuse({"traces": [trace]})
    trace["metadata"] = json.dumps({"query_id": "q7"})  # the UI writes metadata as text
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"trace": trace, "observations": observations}), encoding="utf-8")
    first, *_ = convert(path, tmp_path)
    assert (first["query_id"], first["match"], first["style"]) == ("q7", 1.0, 0.5)


@pytest.mark.parametrize(
    ("record", "expected"), json.loads(Path(__file__).with_suffix(".json").read_text())["outcomes"], ids=str
)
def test_what_counts_as_an_outcome(record: Any, expected: dict[str, float]) -> None:
    assert find_outcomes(record) == expected


def test_outcomes_of_several_systems_go_into_compare(tmp_path: Path) -> None:
    for system, rewards in (("old", (0, 1, 0)), ("new", (1, 1, 0))):
        lines = [{"task_id": f"q{k}", "messages": CHAT, "reward": reward} for k, reward in enumerate(rewards)]
        (tmp_path / f"{system}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    logs = [f"{name}={tmp_path / name}.jsonl" for name in ("old", "new")]
    outcomes = tmp_path / "outcomes.parquet"
    done = run_command(
        "convert", *logs, "-o", tmp_path / "{system}.run", "--outcomes", outcomes, "--query-id", "/task_id"
    )
    assert done.returncode == 0, done.stderr

    frame = pl.read_parquet(outcomes).sort("system", "query_id")
    assert frame.columns == ["query_id", "system", "replicate", "reward", "completed"]
    assert frame["reward"].to_list() == [1, 1, 0, 0, 1, 0]

    (tmp_path / "qrels.txt").write_text("q0 0 d1 2\nq1 0 d1 2\nq2 0 d1 2\n", encoding="utf-8")
    runs = tmp_path / "old.run", tmp_path / "new.run"
    compared = run_command("compare", tmp_path / "qrels.txt", *runs, "-m", "CG", "--outcomes", outcomes, "-o", "json")
    assert compared.returncode == 0, compared.stderr
    assert json.loads(compared.stdout)["pairs"][1]["difference"] == pytest.approx(1 / 3)


def test_epochs_are_replicates(tmp_path: Path) -> None:
    log = json.loads((FIXTURES / "inspect_ai/log.json").read_text(encoding="utf-8"))
    sample = log["samples"][0]
    log["samples"] = [sample | {"epoch": k, "scores": {"match": {"value": word}}} for k, word in ((1, "C"), (2, "I"))]
    (tmp_path / "log.json").write_text(json.dumps(log), encoding="utf-8")
    done = run_command(
        "convert", tmp_path / "log.json", "-o", tmp_path / "{system}.run", "--outcomes", tmp_path / "outcomes.jsonl"
    )
    assert done.returncode == 0, done.stderr

    rows = [json.loads(line) for line in (tmp_path / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["system"], row["replicate"], row["match"]) for row in rows] == [
        ("mock_model", "1", 1.0),  # the names of the files mock_model.1.run and mock_model.2.run
        ("mock_model", "2", 0.0),
    ]
