"""An argument of another kind than declared is one sentence at each door, whatever the kind."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodgain as gg
from goodgain.argument_kinds import checks_kinds
from tests.support.tables import ROOT

EXAMPLES = ROOT / "qrels_examples"
TWO = EXAMPLES / "two_agents"
QRELS, QUICK, LATE = (str(TWO / name) for name in ("qrels.txt", "quick.run", "late.run"))
LOG = str(EXAMPLES / "two_logs" / "old.json")
USES = EXAMPLES / "opened_and_cited"
ODD: list[Any] = [
    0,
    -1,
    1.5,
    [0],
    ["a"],
    [],
    {},
    {"a": 1},
    b"x",
    object(),
    True,
    "x",
    (1, 2),
    float("nan"),
    {1: 2},
    [None],
]


def make_calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Calls that work: the function, and its arguments by name."""
    results = gg.read_traces(LOG)
    two = {"a": QUICK, "b": LATE}
    x = gg.Experiment(QRELS, two)
    comparison = x.compare("CG@3", baseline="a")
    return {
        "read_run": (gg.read_run, {"source": QUICK}),
        "read_qrels": (gg.read_qrels, {"source": QRELS}),
        "write_run": (gg.write_run, {"run": gg.read_run(QUICK), "path": "o.run"}),
        "write_qrels": (gg.write_qrels, {"qrels": gg.read_qrels(QRELS), "path": "o.txt"}),
        "flatten": (gg.flatten, {"run": QUICK}),
        "check": (gg.check, {"comparison": comparison, "lines": "CG@3>=0"}),
        "aggregate": (gg.aggregate, {"grades": str(EXAMPLES / "judges" / "grades.csv")}),
        "rescale": (gg.rescale, {"qrels": QRELS, "map": {0: 0, 1: 1, 2: 1, 3: 2}}),
        "agreement": (gg.agreement, {"grades": str(EXAMPLES / "judges" / "grades.csv"), "scale": "good-gain"}),
        "pool": (gg.pool, {"runs": {"a": QUICK}}),
        "deduplicate": (gg.deduplicate, {"results": results}),
        "to_run": (gg.to_run, {"results": results}),
        "read_traces": (gg.read_traces, {"paths": LOG}),
        "convert_traces": (gg.convert_traces, {"paths": LOG, "output": "c.run"}),
        "read_results": (gg.read_results, {"path": str(EXAMPLES / "lost_documents" / "results.jsonl")}),
        "write_results": (gg.write_results, {"results": results, "path": "w.jsonl"}),
        "funnel": (gg.funnel, {"qrels": str(USES / "judgments.qrels"), "uses": str(USES / "uses.jsonl")}),
        "label": (
            gg.label,
            {"source": QUICK, "queries": {"q": "x"}, "model": "m", "base_url": "http://127.0.0.1:9/v1"},
        ),
        "x.curve": (x.curve, {"measures": "CG"}),
        "x.compare": (x.compare, {"measures": "CG@3"}),
        "x.check": (x.check, {"lines": "CG@3>=0"}),
        "x.report": (x.report, {"path": "r.html", "measures": "CG@3"}),
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_argument_of_each_door_takes_any_kind_or_refuses_it_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    faults = []
    for door, (function, given) in make_calls().items():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            for value in ODD:
                try:
                    function(**given | {parameter.name: value})
                except (gg.GoodgainError, AssertionError):  # a line that does not hold
                    pass
                except Exception as error:
                    faults.append(f"{door}({parameter.name}={value!r}): {type(error).__name__}: {error}")

    assert faults == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gg.read_qrels(QRELS, label=[0]), r"label=\[0\]: give a number or None"),  # type: ignore[arg-type]
        (lambda: gg.to_run(gg.read_traces(LOG), tag=b"x"), "tag=b'x': give a text or None"),  # type: ignore[arg-type]
        (lambda: gg.aggregate(EXAMPLES / "judges" / "grades.csv", how=[]), r"how=\[\]: give a text or None"),  # type: ignore[arg-type]
        (lambda: gg.curve(QRELS, {"a": QUICK}, "CG", over={}), "over={}: give a text or None"),  # type: ignore[arg-type]
        (lambda: gg.deduplicate(gg.read_traces(LOG), trust_doc_id=-1), "trust_doc_id=-1: give True or False or None"),
        (lambda: gg.write_results([], "x.jsonl"), r"results=\[\]: give DataFrame"),  # type: ignore[arg-type]
    ],
)
def test_the_message_names_the_argument_and_what_to_give(call: Callable[[], Any], message: str) -> None:
    with warnings.catch_warnings(), pytest.raises(gg.InputError, match=f"^{message}$"):
        warnings.simplefilter("ignore")
        call()


def test_what_is_of_its_declared_kind_keeps_its_error() -> None:
    @checks_kinds
    def fail(number: float, names: Collection[str] = (), *, yes: bool = False) -> bool:
        raise ValueError("a bug")

    for given in ({"number": np.float32(1), "yes": np.bool_(True)}, {"number": 3, "names": np.array(["a"])}):
        with pytest.raises(ValueError, match="a bug"):
            fail(**given)  # type: ignore[arg-type]  # NumPy's own kinds
    with pytest.raises(TypeError, match="missing 1 required positional"):
        fail()  # type: ignore[call-arg]
    with pytest.raises(gg.InputError, match=r"names=\[1\]: give a list of texts"):
        fail(1, [1])  # type: ignore[list-item]
