"""Scores inside Inspect: the real package, with its mock model calling a search tool."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from statistics import stdev
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.hosts.inspect import scorer

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed here: make test-hosts")

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, execute_tools, get_model
from inspect_ai.solver import Generate, TaskState, generate, solver, use_tools
from inspect_ai.tool import tool

pytestmark = pytest.mark.filterwarnings("ignore:.*coverage is low:goodgain.GoodgainNotice")

LABELS = {"q1": {"d1": 3, "d3": 2}, "q2": {"d2": 1}, "q3": {"d9": 2}, "q4": {"d1": 3}}
QRELS = {query: LABELS[query] for query in ("q1", "q2", "q3")}
MEASURES = "nDCG@10 nCG@2 SRR@2 CG"
FOUND = {"a": ["d1", "d2"], "b": ["d2", "d3"], "nothing": [], "c": ["d4", "d2", "d1"]}
#: The search strings of each sample in each epoch; q3 never searches.
SEARCHES = {
    ("q1", 1): ["a", "b"],
    ("q2", 1): ["a"],
    ("q3", 1): [],
    ("q1", 2): ["nothing", "c"],
    ("q2", 2): ["b", "b"],
    ("q3", 2): ["c"],
    ("q4", 1): ["c"],
    ("q4", 2): ["a", "unreadable"],
}


@tool
def search() -> Any:
    async def execute(query: str) -> str:
        """Search the collection.

        Args:
            query: the query.
        """
        if query == "unreadable":
            return "oops"
        return json.dumps([{"docid": name, "snippet": f"text of {name}"} for name in FOUND[query]])

    return execute


def script(sample: str, epoch: int) -> list[ModelOutput]:
    asked = SEARCHES[sample, epoch]
    calls = [ModelOutput.for_tool_call("mockllm/model", "search", {"query": one}) for one in asked]
    return [*calls, ModelOutput.from_content("mockllm/model", "done")]


def run_eval(folder: Path, scoring: Any, samples: tuple[str, ...] = ("q1", "q2", "q3"), epochs: int = 2) -> Any:
    outputs = [one for epoch in range(1, epochs + 1) for sample in samples for one in script(sample, epoch)]
    for output in outputs:
        output.usage = ModelUsage()  # else Inspect downloads a tokenizer
    task = inspect_ai.Task(
        dataset=[Sample(id=sample, input=f"the question {sample}") for sample in samples],
        solver=[use_tools(search()), generate()],
        scorer=scoring,
        epochs=epochs,
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(folder), display="none", max_samples=1)
    assert log.status == "success", log.error

    return log


def read_runs(log: Any, epochs: int = 2) -> list[pl.DataFrame]:
    results = gg.read_traces(log.location)
    return [gg.to_run(results, replicate=str(epoch)) for epoch in range(1, epochs + 1)]


def means_of(log: Any, key: str = "mean") -> dict[str, float]:
    return {score.name: score.metrics[key].value for score in log.results.scores}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run_eval(tmp_path_factory.mktemp("logs"), scorer(QRELS, MEASURES))


def test_the_means_of_an_eval_are_those_of_evaluate_with_the_epochs_as_replicates(log: Any) -> None:
    scores = gg.evaluate(QRELS, read_runs(log), MEASURES)
    assert means_of(log) == pytest.approx(scores.mean())
    assert 0 < scores["nCG@2"] < 1


def test_each_sample_has_the_values_of_its_query_in_its_epoch(log: Any) -> None:
    for epoch, run in enumerate(read_runs(log), start=1):
        rows = gg.evaluate(QRELS, run, MEASURES).per_query.rows()
        expected = {(query, measure): value for query, measure, value in rows}
        found = {
            (sample.id, measure): value
            for sample in log.samples
            if sample.epoch == epoch
            for measure, value in sample.scores["goodgain"].value.items()
        }
        assert found == pytest.approx(expected)


def test_the_standard_errors_are_over_samples_not_over_epochs(log: Any) -> None:
    rows = gg.evaluate(QRELS, read_runs(log), MEASURES).per_query.group_by("measure").agg("value").rows()
    assert means_of(log, "stderr") == pytest.approx({name: stdev(values) / math.sqrt(3) for name, values in rows})


def test_the_explanation_says_what_each_search_found(log: Any) -> None:
    first, _, third = (sample.scores["goodgain"] for sample in log.samples if sample.epoch == 1)
    assert first.explanation.splitlines() == [
        "iteration 1: 2 results, 1 new and good, 0 repeated, 1 unjudged",
        "iteration 2: 2 results, 1 new and good, 1 repeated, 0 unjudged",
    ]
    assert third.explanation == "no search"
    assert first.metadata["signature"]["goodgain"] == gg.__version__


def test_an_existing_log_is_scored_in_place(log: Any, tmp_path: Path) -> None:
    scored = inspect_ai.score(
        read_eval_log(log.location), scorer(gg.read_qrels(QRELS), [gg.SRE @ 2], rel=1), action="append", display="none"
    )
    path = tmp_path / "scored.eval"
    write_eval_log(scored, str(path))
    means = means_of(read_eval_log(str(path)))
    expected = gg.evaluate(QRELS, read_runs(log), f"{MEASURES} SRE(rel=1)@2").mean()
    assert means == pytest.approx(expected)
    assert gg.read_traces(path).equals(gg.read_traces(log.location))


def test_the_command_of_inspect_scores_a_log(log: Any, tmp_path: Path) -> None:
    qrels, path = tmp_path / "qrels.txt", tmp_path / "scored.eval"
    gg.write_qrels(gg.read_qrels(QRELS), qrels)
    options = ["--scorer", "goodgain/goodgain", "-S", f"qrels={qrels}", "-S", "measures=nCG@2 SRE@1", "-S", "rel=1"]
    command = [sys.executable, "-m", "inspect_ai", "score", log.location, *options]
    command += ["--action", "overwrite", "--output-file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = means_of(read_eval_log(str(path)))
    assert found == pytest.approx(gg.evaluate(QRELS, read_runs(log), "nCG@2 SRE@1", rel=1).mean())


def test_a_sample_without_judgments_is_unscored_and_says_why(tmp_path: Path) -> None:
    log = run_eval(tmp_path, scorer({"q1": QRELS["q1"]}, "CG nCG@2"), samples=("q1", "q2"), epochs=1)
    score = log.samples[1].scores["goodgain"]
    assert all(map(math.isnan, score.value.values()))
    assert (
        score.explanation
        == "the qrels have no judgments of the query 'q2'; the query ids of the qrels must be the ids of the samples"
    )
    assert [
        (scores_of_system.scored_samples, scores_of_system.unscored_samples) for scores_of_system in log.results.scores
    ] == [(1, 1), (1, 1)]
    run = read_runs(log, epochs=1)[0]
    assert means_of(log) == gg.evaluate({"q1": QRELS["q1"]}, run, "CG nCG@2").mean()


def test_a_search_that_cannot_be_read_leaves_the_sample_unscored(tmp_path: Path) -> None:
    log = run_eval(tmp_path, scorer(LABELS, "CG"), samples=("q4",))
    read, unread = (sample.scores["goodgain"] for sample in log.samples)
    assert math.isnan(unread.value["CG"])
    assert "oops" in unread.explanation
    assert read.value == {"CG": 3.0}
    assert means_of(log) == {"CG": 3.0}


def test_a_sample_whose_agent_only_called_other_tools_counts_as_one_without_a_search(tmp_path: Path) -> None:
    log = run_eval(tmp_path, scorer(QRELS, "CG", tools="lookup"), samples=("q1",), epochs=1)
    score = log.samples[0].scores["goodgain"]
    assert score.value == {"CG": 0.0}
    assert score.explanation == "no search; tools called: search"


def test_a_wrong_option_is_an_error_before_the_first_sample() -> None:
    with pytest.raises(gg.InputError, match="iteration='round' is not known"):
        scorer(QRELS, "CG", iteration="round")


@solver
def ask_a_subagent() -> Any:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        call = ModelOutput.for_tool_call("mockllm/model", "search", {"query": "a"}).message
        await execute_tools([call], [search()])
        return state

    return solve


def test_a_search_that_the_messages_lack_leaves_the_sample_unscored(tmp_path: Path) -> None:
    task = inspect_ai.Task(dataset=[Sample(id="q1", input="?")], solver=ask_a_subagent(), scorer=scorer(QRELS, "CG"))
    (log,) = inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    score = log.samples[0].scores["goodgain"]
    assert math.isnan(score.value["CG"])
    assert "tool event 'search' outside the sample's messages" in score.explanation
