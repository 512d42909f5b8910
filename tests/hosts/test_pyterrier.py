"""PyTerrier's `pt.Experiment` with our measures on frames with an iteration column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import goodgain as gg

pt = pytest.importorskip("pyterrier")  # pyjnius, which it needs, has no package for Python 3.15

TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})
QRELS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "c", "d"], "label": [3, 2, 2]})
RESULTS = pd.DataFrame(
    {
        "qid": ["q1"] * 4 + ["q2"] * 2,
        "docno": ["a", "b", "a", "c", "x", "d"],
        "score": [4.0, 3.0, 2.0, 1.0, 2.0, 1.0],
        "rank": [0, 1, 0, 1, 0, 0],
        "iteration": [1, 1, 2, 2, 1, 2],
    }
)
pytestmark = [
    # PyTerrier hands ir_measures its plain frames: what a notice says of them is tested by itself.
    pytest.mark.filterwarnings("ignore:this run has several iterations:goodgain.GoodgainNotice"),
    # In batches of one query, the labels of that query alone may not reach rel=3.
    pytest.mark.filterwarnings("ignore:no label of the qrels reaches:goodgain.GoodgainNotice"),
]
OURS = [gg.SRE @ 2, gg.SRR, gg.CG @ 1, gg.nDCGG, gg.IterationsForAllGoodResults, gg.SRE(rel=3) @ 1]
WANTED = gg.evaluate(
    QRELS.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"}),
    RESULTS.rename(columns={"qid": "query_id", "docno": "doc_id"}),
    OURS,
)


class Agent(pt.Transformer):  # type: ignore[misc]  # PyTerrier may be absent
    """A system that answers topics with the results above."""

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        return RESULTS.merge(topics, on="qid")


@pytest.mark.parametrize("options", [{}, {"batch_size": 1}], ids=["at once", "in batches"])
@pytest.mark.parametrize("system", [RESULTS, Agent()], ids=["frame", "transformer"])
def test_an_experiment_has_the_values_of_evaluate(system: Any, options: dict[str, Any]) -> None:
    row = pt.Experiment([system], TOPICS, QRELS, OURS, names=["agent"], **options).iloc[0]
    assert {str(measure): row[str(measure)] for measure in OURS} == pytest.approx(WANTED.mean())


def test_values_by_query_are_those_of_evaluate() -> None:
    experiment = pt.Experiment([RESULTS], TOPICS, QRELS, OURS, names=["agent"], perquery=True)
    wanted = {(query_id, measure): value for query_id, measure, value in WANTED.per_query.iter_rows()}
    assert {(row.qid, row.measure): row.value for row in experiment.itertuples()} == pytest.approx(wanted)


def test_classic_measures_stand_beside_ours_and_want_a_flattened_ranking() -> None:
    names = {"query_id": "qid", "doc_id": "docno"}
    ranking = gg.flatten(RESULTS.rename(columns={new: old for old, new in names.items()})).rename(columns=names)
    found = pt.Experiment([ranking], TOPICS, QRELS, ["map", "recip_rank"], names=["agent"]).iloc[0]
    assert found["map"] == pytest.approx(((1 + 2 / 3) / 2 + 1 / 2) / 2)
    assert found["recip_rank"] == pytest.approx((1 + 1 / 2) / 2)
    both = pt.Experiment([RESULTS], TOPICS, QRELS, [gg.SRR, "recip_rank"], names=["agent"]).iloc[0]
    assert both["SRR"] == WANTED["SRR"]


def test_a_query_outside_the_topics_counts_as_one_without_a_search() -> None:
    with pytest.warns(gg.GoodgainNotice, match="run is empty"):
        measures, options = [gg.SRE @ 2, gg.IterationsForAllGoodResults], {"batch_size": 1, "filter_by_topics": False}
        row = pt.Experiment([Agent()], TOPICS[:1], QRELS, measures, **options).iloc[0]
    assert row["SRE@2"] == 0.25
    assert row["IterationsForAllGoodResults"] == (2 + 100) / 2


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_a_frame_without_iterations_is_pointed_out_by_pyterrier() -> None:
    with pytest.warns(UserWarning, match="iteration"):
        pt.Experiment([RESULTS.drop(columns="iteration")], TOPICS, QRELS, [gg.SRE @ 2])


def test_results_with_several_iterations_are_told_of() -> None:
    with pytest.warns(gg.GoodgainNotice, match=r"this run has several iterations.*goodgain.read_run\(run\)"):
        pt.Experiment([RESULTS], TOPICS, QRELS, [gg.SRR, "recip_rank"])


@pytest.mark.filterwarnings("error:this run has several iterations:goodgain.GoodgainNotice")
def test_measures_of_iterations_alone_are_told_nothing_of_classic_ones() -> None:
    experiment = pt.Experiment([RESULTS], TOPICS, QRELS, [gg.SRR, gg.CG @ 2], names=["agent"])
    assert experiment.iloc[0]["SRR"] == WANTED["SRR"]


def test_the_page_says_that_a_baseline_marks_the_larger_value_as_the_better_one() -> None:
    """PyTerrier counts a query as improved where the value is larger: for SRR that is the worse one."""
    worse = pd.concat([RESULTS, RESULTS[:2].assign(iteration=3, score=0.1)])
    experiment = pt.Experiment([RESULTS, worse], TOPICS, QRELS, [gg.SRR], names=["a", "b"], baseline=0)
    assert experiment.iloc[1]["SRR"] > experiment.iloc[0]["SRR"] and experiment.iloc[1]["SRR +"] == 1
    page = (Path(__file__).parents[2] / "docs" / "hosts.md").read_text()
    assert "`baseline=`" in page and "lower is better" in page
