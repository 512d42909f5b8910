"""Scores inside MLflow: the real package, with a store in SQLite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.hosts.mlflow import log_comparison, metric_name, scorer

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read at import
pytest.importorskip("mlflow", reason="mlflow is not installed here: make test-hosts")

import mlflow
from mlflow.entities import Document

pytestmark = pytest.mark.filterwarnings("ignore:.*coverage is low:goodgain.GoodgainNotice")

QRELS = {"q1": {"d1": 3, "d3": 2}, "q2": {"d2": 1}, "q3": {"d2": 2}}
MEASURES = "nDCG@10 nCG@2 nCG(rel=1)@2 SRR"
FOUND = {"a": ["d1", "d2"], "b": ["d2", "d3"], "c": ["d4", "d2", "d1"]}
SEARCHES = {"q1": ["a", "b"], "q2": ["b", "c"], "q3": []}
FOLDER = "qrels_examples/two_agents/"


@mlflow.trace(span_type="RETRIEVER")
def retrieve(query: str) -> list[Document]:
    return [Document(page_content=f"text of {name}", id=name, metadata={"doc_id": name}) for name in FOUND[query]]


@mlflow.trace(span_type="TOOL")
def search(query: str) -> list[dict[str, str]]:
    return [{"docid": name, "snippet": f"text of {name}"} for name in FOUND[query]]


@mlflow.trace(span_type="CHAT_MODEL")
def think(question: str) -> str:
    return "search"


@mlflow.trace(span_type="AGENT")
def answer(question: str) -> str:
    think(question)
    for query in SEARCHES[question]:
        (retrieve if question == "q1" else search)(query)
        think(question)
    return "done"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    before = mlflow.get_tracking_uri()
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("agents", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("agents")
    yield str(folder)
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def traces(store: str) -> Any:
    for question in SEARCHES:
        answer(question)
        mlflow.set_trace_tag(mlflow.get_last_active_trace_id(), "query_id", question)
    mlflow.flush_trace_async_logging()
    found = mlflow.search_traces()
    assert len(found) == 3
    return found


def expected_means(qrels: Any, tmp_path: Path) -> dict[str, float | None]:
    """The means of `gg.evaluate` for the traces as files, without the queries that the qrels lack."""
    for trace in mlflow.search_traces(return_type="list", filter_string="tags.query_id LIKE 'q%'"):
        (tmp_path / f"{trace.info.trace_id}.json").write_text(trace.to_json())
    scores = gg.evaluate(qrels, gg.to_run(gg.read_traces(tmp_path)), MEASURES)
    return {f"{metric_name(name)}/mean": value for name, value in scores.mean().items()}


def read_feedback(result: Any) -> dict[str, Any]:
    (assessments,) = result.result_df["assessments"]
    return {
        assessment["assessment_name"]: assessment["feedback"].get("error", assessment["feedback"]["value"])
        for assessment in assessments
    }


def test_the_means_over_traces_are_those_of_evaluate(traces: Any, tmp_path: Path) -> None:
    result = mlflow.genai.evaluate(data=traces, scorers=[scorer(QRELS, MEASURES)])
    assert result.metrics == pytest.approx(expected_means(QRELS, tmp_path))
    assert 0 < result.metrics["nCG_rel_1_at_2/mean"] < 1
    assert set(result.metrics) == {"nDCG_at_10/mean", "nCG_at_2/mean", "nCG_rel_1_at_2/mean", "SRR/mean"}


def test_a_trace_without_judgments_has_an_error_and_does_not_count(traces: Any, tmp_path: Path) -> None:
    qrels = {query: QRELS[query] for query in ("q1", "q2")}
    result = mlflow.genai.evaluate(data=traces, scorers=[scorer(qrels, MEASURES)])
    assert result.metrics == pytest.approx(expected_means(qrels, tmp_path))
    errors = [
        one["feedback"]["error"]["error_message"]
        for of_trace in result.result_df["assessments"]
        for one in of_trace
        if one["assessment_name"] == "goodgain"
    ]
    said = "the qrels have no judgments of the query 'q3'; the query ids of the qrels must be the tags query_id of the traces"
    assert errors == [said]


@pytest.mark.parametrize("place", ["inputs", "expectations"])
def test_the_query_id_can_stand_in_the_data(store: str, place: str) -> None:
    def predict(question: str, query_id: str | None = None) -> str:
        return answer(question)

    data = {"inputs": {"question": "q1"}, "expectations": {}}
    data[place]["query_id"] = "seven"
    result = mlflow.genai.evaluate(data=[data], predict_fn=predict, scorers=[scorer({"seven": QRELS["q1"]}, "CG SRR")])
    assert result.metrics == {"CG/mean": 5.0, "SRR/mean": 0.25}


def test_data_without_a_trace_is_an_error_not_an_agent_that_never_searched(store: str) -> None:
    data = [{"inputs": {"question": "q1", "query_id": "q1"}, "outputs": "done"}]
    feedback = read_feedback(mlflow.genai.evaluate(data=data, scorers=[scorer(QRELS, "CG")]))
    assert feedback["goodgain"]["error_message"].startswith("the trace is one span without a search")
    assert "CG" not in feedback


def test_each_feedback_says_what_each_search_found(traces: Any) -> None:
    one = traces[traces["tags"].map(lambda tags: tags["query_id"]) == "q1"]
    result = mlflow.genai.evaluate(data=one, scorers=[scorer(QRELS, "NumGood")])
    (assessments,) = result.result_df["assessments"]
    (said,) = (assessment["rationale"] for assessment in assessments if assessment["assessment_name"] == "NumGood")
    assert said.splitlines() == [
        "iteration 1: 2 results, 1 new and good, 0 repeated, 1 unjudged",
        "iteration 2: 2 results, 1 new and good, 1 repeated, 0 unjudged",
    ]


@pytest.fixture(scope="module")
def compared() -> tuple[gg.Comparison, pl.DataFrame]:
    runs = {name: f"{FOLDER}{name}.run" for name in ("quick", "late")}
    with pytest.warns(gg.GoodgainNotice):
        comparison = gg.compare(f"{FOLDER}qrels.txt", runs, "nDCG@10 nCG@6 SRR@6", resamples=99)
    return comparison, gg.curve(f"{FOLDER}qrels.txt", runs, "nCG SRR", resamples=0)


def test_a_comparison_is_a_run_with_a_nested_run_for_each_system(store: str, compared: Any) -> None:
    comparison, curve = compared
    log_comparison(comparison, curve)
    client = mlflow.MlflowClient()
    late, quick, parent = mlflow.search_runs(max_results=3, output_format="list")
    assert [run.info.run_name for run in (parent, quick, late)] == ["comparison", "quick", "late"]

    for system, run in (("quick", quick), ("late", late)):
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        means = comparison.means.filter(system=system).select("measure", "mean").rows()
        assert {name: run.data.metrics[metric_name(name)] for name, _ in means} == dict(means)
        for measure in ("nCG", "SRR"):
            steps = {one.step: one.value for one in client.get_metric_history(run.info.run_id, measure)}
            rows = curve.filter(system=system, measure=measure)
            assert steps == dict(rows.select("iteration", "mean").rows())
            assert len(steps) == 6

    assert mlflow.artifacts.load_text(f"{parent.info.artifact_uri}/comparison.md") == comparison.to_text()
    assert {one.path for one in client.list_artifacts(parent.info.run_id)} == {
        "comparison.md",
        "comparison.json",
        "curve.png",
    }


def test_a_comparison_goes_to_the_active_run(store: str, compared: Any) -> None:
    with mlflow.start_run() as active:
        mlflow.log_param("seed", 7)
        log_comparison(compared[0])
        log_comparison(compared[0])
    assert {artifact.path for artifact in mlflow.MlflowClient().list_artifacts(active.info.run_id)} == {
        "comparison.md",
        "comparison.json",
    }


def test_a_curve_over_spend_is_refused(store: str, compared: Any) -> None:
    with pytest.raises(gg.InputError, match="by iteration; call goodgain"):
        log_comparison(compared[0], compared[1].drop("iteration"))
    assert mlflow.active_run() is None
