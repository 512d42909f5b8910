"""A comparison is a function of scores; what a user does not ask for is not computed."""

from __future__ import annotations

from typing import Any

import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.analysis.comparing import comparison_frames, comparison_question
from goodgain.scoring import steps
from goodgain.scoring.score_run import score_run

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

FOLDER = "qrels_examples/two_agents/"
QRELS, GROUPS, OUTCOMES = (f"{FOLDER}{name}" for name in ("qrels.txt", "groups.csv", "outcomes.csv"))
SYSTEMS = {"quick": f"{FOLDER}quick.run", "late": f"{FOLDER}late.run"}


def test_groups_and_correlations_are_tested_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def count(module: Any, name: str) -> None:
        compute: Any = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args: (made.append(name), compute(*args))[1])

    count(comparison_question, "compare_pairs")
    count(comparison_frames, "correlate")
    comparison = gg.compare(QRELS, SYSTEMS, "nCG@6 SRR@6", groups=GROUPS, outcomes=OUTCOMES)
    assert made == ["compare_pairs"]
    assert comparison.groups is not None and comparison.correlations is not None
    assert comparison.groups.get_column("group").n_unique() == len(made) - 2  # pairs, one for each group, correlations
    assert comparison.groups is comparison.groups and len(made) == 2 + comparison.groups.get_column("group").n_unique()


@pytest.mark.parametrize(
    "options", [{"alpha": 0.2, "seed": 7}, {"against": "previous"}, {"groups": GROUPS}, {"detect": 0.1}]
)
def test_runs_that_were_scored_once_serve_comparisons_with_other_options(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[Any] = []
    monkeypatch.setattr(steps, "score_run", lambda *args, **given: (scored.append(args), score_run(*args, **given))[1])
    x = gg.Experiment(QRELS, SYSTEMS)
    x.compare("nCG@6 nDCG@10")
    of_experiment = {name: options[name] for name in options if name in ("alpha", "seed")}
    comparison = x.with_(**of_experiment).compare(
        "nCG@6 nDCG@10", **{name: value for name, value in options.items() if name not in of_experiment}
    )
    assert len(scored) == len(SYSTEMS)

    monkeypatch.undo()
    wanted = gg.compare(QRELS, SYSTEMS, "nCG@6 nDCG@10", **options)
    assert comparison.signature == wanted.signature and comparison.notes == wanted.notes

    for name in ("pairs", "means", "groups", "detectable", "noise"):
        one, other = getattr(comparison, name), getattr(wanted, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert_frame_equal(one, other, check_exact=True)
