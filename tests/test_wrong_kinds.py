"""An argument of another kind than declared is one sentence at each door, whatever the kind."""

from __future__ import annotations

import inspect
import itertools
import random
import warnings
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import goodgain as gg
from goodgain.argument_kinds import checks_kinds
from tests.support.tables import ROOT

EXAMPLES = ROOT / "qrels_examples"
TWO = EXAMPLES / "two_agents"
QRELS, QUICK, LATE = (str(TWO / name) for name in ("qrels.txt", "quick.run", "late.run"))
LOG = str(EXAMPLES / "two_logs" / "old.json")
USES = EXAMPLES / "opened_and_cited"
FRAME = pl.DataFrame({"query_id": ["q"], "doc_id": [["d"]]})
ODD: list[Any] = [
    *(0, -1, 1.5, float("nan"), True, np.float32(1), 2**63, 1j),
    *("x", b"x", Path("x"), object(), len, Exception),
    *([0], ["a"], [], [None], [object()], (1, 2), {1}, frozenset("a"), range(3), np.array(["a"])),
    *({}, {"a": 1}, {1: 2}, {"a": None}, {object(): 1}),
    *(FRAME, pl.DataFrame(), pl.Series([1]), FRAME.lazy(), pl.col("a")),
]


def make_calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Calls that work: the function, and its arguments by name."""
    results = gg.read_traces(LOG)
    two = {"a": QUICK, "b": LATE}
    x = gg.Experiment(QRELS, two)
    comparison = x.compare("CG@3", baseline="a")
    explanation, deduplication = gg.explain(QRELS, QUICK, LATE), gg.deduplicate(results)
    scores, scorer = gg.evaluate(QRELS, QUICK, "CG@3"), gg.Scorer(QRELS, "CG@3")
    funnel = gg.funnel(USES / "judgments.qrels", USES / "uses.jsonl")
    compare = {"qrels": QRELS, "systems": two, "measures": "CG@3"}
    return {
        "evaluate": (gg.evaluate, {"qrels": QRELS, "run": QUICK, "measures": "CG@3"}),
        "ledger": (gg.ledger, {"qrels": QRELS, "run": QUICK}),
        "compare": (gg.compare, compare),
        "compare_unlabelled": (gg.compare_unlabelled, {"systems": two}),
        "curve": (gg.curve, {"qrels": QRELS, "runs": two, "measures": "CG"}),
        "pr_curve": (gg.pr_curve, {"qrels": QRELS, "runs": two}),
        "explain": (gg.explain, {"qrels": QRELS, "base": QUICK, "new": LATE}),
        "spend": (gg.spend, {"qrels": QRELS, "runs": two}),
        "coverage": (gg.coverage, {"qrels": QRELS, "runs": two}),
        "define": (gg.define, {"name": "OfWrongKinds", "function": len, "better": "up"}),
        "read_searches": (gg.read_searches, {"messages": [{"role": "user", "content": "What?"}]}),
        "Experiment": (gg.Experiment, {"qrels": QRELS, "systems": two}),
        "Scorer": (gg.Scorer, {"qrels": QRELS, "measures": "CG@3"}),
        "scorer.score": (scorer.score, {"query_id": "q06", "searches": [["d"]]}),
        "scorer.score_many": (scorer.score_many, {"rollouts": [("q06", [["d"]])]}),
        "scores.mean": (scores.mean, {}),
        "comparison.tables": (comparison.tables, {}),
        "comparison.to_text": (comparison.to_text, {}),
        "comparison.write_baseline": (comparison.write_baseline, {"path": "b.jsonl"}),
        "explanation.tables": (explanation.tables, {}),
        "explanation.to_text": (explanation.to_text, {}),
        "deduplication.explain": (deduplication.explain, {"document": "x"}),
        "deduplication.score": (deduplication.score, {"gold": "doc_id"}),
        "funnel.in_order": (funnel.in_order, {"systems": ["x"]}),
        "run.flatten": (gg.read_run(QUICK).flatten, {}),
        "plots.funnel": (gg.plots.funnel, {"found": funnel}),
        "plots.per_query": (gg.plots.per_query, {"comparison": comparison}),
        "x.evaluate": (x.evaluate, {"measures": "CG@3"}),
        "x.ledger": (x.ledger, {}),
        "x.only": (x.only, {"queries": ["q06"]}),
        "x.explain": (x.explain, {"base": "a", "new": "b"}),
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
@pytest.mark.parametrize("seed", range(4))
def test_each_argument_of_each_door_takes_any_kind_or_refuses_it_in_a_sentence(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = make_calls()
    changes: list[tuple[str, str, Any]] = []
    for door, (function, _) in calls.items():
        parameters = inspect.signature(function).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
        changes += itertools.product([door], names, ODD)

    faults = []
    for door, name, value in random.Random(seed).sample(changes, 600):
        function, arguments = calls[door]
        try:
            function(**arguments | {name: value})
        except (gg.GoodgainError, AssertionError):  # a line that does not hold
            pass
        except Exception as error:
            faults.append(f"{door}({name}={value!r}): {type(error).__name__}: {error}")

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
        (lambda: gg.evaluate(QRELS, QUICK, "CG", interval=FRAME), r"interval=(.|\n)*: give True or False"),  # type: ignore[arg-type]
        (lambda: gg.Scorer(QRELS, "CG").score(["q06"], []), r"query_id=\['q06'\]: give a text"),  # type: ignore[arg-type]
        (lambda: gg.Scorer(QRELS, "CG").score_many([1]), "rollouts=1: give pairs of a query_id and its searches"),  # type: ignore[list-item]
        (
            lambda: gg.define("Odd", len, better="up", title=1.5),
            "Odd: title=1.5 is not a text. Give the full name of .*",
        ),  # type: ignore[arg-type]
        (
            lambda: gg.Experiment(QRELS, {"a": QUICK}, urls=pl.Series(["x"])),
            r"urls=(.|\n)* is not one of join, keep. .*",
        ),  # type: ignore[arg-type]
    ],
)
def test_the_message_names_the_argument_and_what_to_give(call: Callable[[], Any], message: str) -> None:
    with warnings.catch_warnings(), pytest.raises(gg.GoodgainError, match=f"^{message}$"):
        warnings.simplefilter("ignore")
        call()


def test_an_unknown_option_of_reading_is_named_as_python_names_it() -> None:
    for call in (lambda **options: gg.read_searches([], **options), partial(gg.convert_traces, LOG, "c.run")):
        with pytest.raises(
            TypeError, match=r"^(read_searches|convert_traces)\(\) got an unexpected keyword argument 'gaps'$"
        ):
            call(gaps="close")


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
