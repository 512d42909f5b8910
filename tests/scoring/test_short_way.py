"""The way from a public call to the first line that looks at the run is short, and loads nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import goodgain as gg

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

FOLDER = "qrels_examples/two_agents/"
QRELS, RUN, OTHER = (f"{FOLDER}{name}" for name in ("qrels.txt", "late.run", "quick.run"))
#: A call -> the most frames of goodgain between the call and `score_run` or `count_run`.
CALLS: dict[str, tuple[Callable[[], Any], int]] = {
    "evaluate": (lambda: gg.evaluate(QRELS, RUN, "nDCG@10 nCG"), 6),
    "ledger": (lambda: gg.ledger(QRELS, RUN), 6),
    "coverage": (lambda: gg.coverage(QRELS, {"late": RUN}), 6),
    "compare": (lambda: gg.compare(QRELS, {"late": RUN, "quick": OTHER}, "nCG@6"), 9),
}


def count_frames(call: Callable[[], Any]) -> int:
    """Return how many frames of goodgain lie above the first call of `score_run` or `count_run`."""
    depths: list[int] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or depths or frame.f_code.co_name not in ("score_run", "count_run"):
            return
        depth, above = 0, frame.f_back
        while above is not None:
            depth += "/goodgain/" in above.f_code.co_filename
            above = above.f_back
        depths.append(depth)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return depths[0]


@pytest.mark.parametrize("name", CALLS)
def test_few_frames_lie_before_the_first_look_at_a_run(name: str) -> None:
    call, most = CALLS[name]
    call()  # a first call imports modules
    assert count_frames(call) <= most


def test_evaluate_loads_no_analysis_logs_or_judgments() -> None:
    script = (
        f"import sys, goodgain as gg; gg.evaluate({QRELS!r}, {RUN!r}, 'nDCG@10 nCG SRR', interval=True); "
        "print(*[name for name in sys.modules if name.startswith(('goodgain.analysis', 'goodgain.logs', "
        "'goodgain.judgments', 'goodgain.experiments'))])"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_an_option_scores_again_only_if_scores_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from goodgain.scoring import steps

    calls: list[Any] = []
    score_run = steps.score_run

    def count(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return score_run(*args, **options)

    monkeypatch.setattr(steps, "score_run", count)
    x = gg.Experiment(QRELS, {"late": RUN})
    numbers = []
    for options in ({}, {"missing": "absent"}, {"incomplete": "absent"}, {"alpha": 0.1}, {"order": "interleaved"}):
        x.with_(**options).evaluate("nDCG@10 nCG")
        numbers.append(len(calls))
    assert numbers == [1, 1, 1, 1, 2]
