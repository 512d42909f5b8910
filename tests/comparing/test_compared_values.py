"""A comparison is a function of scores; what a user does not ask for is not computed."""

from __future__ import annotations

from typing import Any

import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.comparing import compared_values
from goodgain.comparing.compare_systems import compare_scores
from goodgain.comparing.comparison_question import Question
from goodgain.counting.run_opening import open_systems

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

FOLDER = "qrels_examples/two_agents/"
QRELS, GROUPS, OUTCOMES = (f"{FOLDER}{name}" for name in ("qrels.txt", "groups.csv", "outcomes.csv"))
SYSTEMS = {"quick": f"{FOLDER}quick.run", "late": f"{FOLDER}late.run"}


def test_groups_and_correlations_are_tested_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def count(name: str) -> None:
        compute: Any = getattr(compared_values, name)
        monkeypatch.setattr(compared_values, name, lambda *args: (made.append(name), compute(*args))[1])

    count("compare_pairs")
    count("correlate")
    found = gg.compare(QRELS, SYSTEMS, "nCG@6 SRR@6", groups=GROUPS, outcomes=OUTCOMES)
    assert made == ["compare_pairs"]
    assert found.groups is not None and found.correlations is not None
    assert found.groups.get_column("group").n_unique() == len(made) - 2  # pairs, one for each group, correlations
    assert found.groups is found.groups and len(made) == 2 + found.groups.get_column("group").n_unique()


@pytest.mark.parametrize(
    "options", [{"alpha": 0.2, "seed": 7}, {"against": "previous"}, {"groups": GROUPS}, {"detect": 0.1}]
)
def test_runs_that_were_scored_once_serve_comparisons_with_other_options(options: dict[str, Any]) -> None:
    qrels, systems = open_systems(QRELS, SYSTEMS)
    runs_of = {name: [name] for name in systems}
    first = Question(measures="nCG@6 nDCG@10", runs_of=runs_of)
    scored = {name: first.finish_run(qrels, run, first.score_run(qrels, run), None) for name, (run,) in systems.items()}
    asked = Question(measures="nCG@6 nDCG@10", runs_of=runs_of, **options)
    found = compare_scores(asked, qrels.query_ids, scored)
    wanted = gg.compare(QRELS, SYSTEMS, "nCG@6 nDCG@10", **options)
    assert found.signature == wanted.signature and found.notes == wanted.notes
    for name in ("pairs", "means", "groups", "detectable", "noise"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert_frame_equal(one, other, check_exact=True)
