"""Rewrites every `qrels_examples/*/expected.json` from sources other than goodgain, which is never imported here.

- The good-gain measures: the brute-force oracle (oracle.py), exact until the last step to a float.
- The measures over one ranking that no host has: a second brute-force oracle (ranking_oracle.py).
- The classic measures: ir_measures (that is pytrec_eval for most), and ranx for its own lower-case names
  (`dcg_burges@5`), on the ranking that the oracle's flattening makes, in each order.

    python -m tests.support.make_expected    # from the project's folder; ranx compiles for 10-20 s

What stands in the files: {run file: {order: {measure: mean over the queries of the qrels}}}, at full precision. A
change in them is a change in what the numbers mean: read the diff.
"""

from __future__ import annotations

import ast
import json
import re
from math import fsum
from pathlib import Path
from typing import Any

from tests.support import ranking_oracle
from tests.support.oracle import NAMES, QrelRow, RunRow, mean, per_query
from tests.support.oracle_flattening import ORDERS, classic_labels, flatten
from tests.support.random_runs import read_qrels_text, read_run_text

FOLDER = Path(__file__).parents[2] / "qrels_examples"

_EXPONENTIAL = "nDCG(gains={1:1,2:3,3:7})"
_RANKING = [*(f"P@{k}" for k in range(1, 11)), *(f"R@{k}" for k in range(1, 11)), "AP", "RR"]
_RANKING += [*(f"IPrec@{tenth / 10}" for tenth in range(11)), "SRE(rel=1)", "NumGood(rel=1)@1"]
_POINTS = ["ElevenPointAP", *(f"InterpolatedPrecision@{tenth / 10:g}" for tenth in range(11))]
_AT_K = ["AP@5", "TruncatedAP@5", "F(beta=2)@10", "SetF(beta=2.0)", "Fallout@5", "RelativeP@5", "RelativeP@10"]
_EXP = "dcg='exp-log2'"
_TEN = ["CG", "RG", "DCGG", "DRG", "RAG", "DRAG", "SRE", "SRR", "nCG", "nDCGG"]
_COUNTS = ["NumResults", "NumUnique", "NumGood", "NumDup", "NumUnjudged"]
_GRADED = ["GradedP", "GradedAP", "GradedRR", "GradedCG", "GradedDCG", "GradednDCG"]
_WHOLE = ["NumIter", "IterationsForAllGoodResults", "IterationsForAllGoodResults(pool='retrieved')"]


def _iterated(last: int) -> list[str]:
    """All of ours: without a cutoff, and at every iteration to one beyond the longest query's last."""
    cut = [f"{name}@{i}" for i in range(1, last + 2) for name in [*_TEN, "AvgGain", *_COUNTS]]
    return [*_TEN, *_COUNTS, *_WHOLE, *cut]


#: folder -> orders and measures. Which source a measure comes from follows from its name.
EXAMPLES: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "guideline": (("seen",), [*_iterated(3), "SRE(rel=3)@3", "CG(rel=1)@3"]),
    "rankings": (("seen",), [*_RANKING, *_POINTS]),
    "rankings_ab": (("seen",), [*_RANKING, *_POINTS, *_AT_K]),
    "rankings_cd": (("seen",), [*_RANKING, *_POINTS]),
    "exponential_gain": (
        ("seen",),
        [
            *(f"dcg_burges@{k}" for k in range(1, 11)),
            *(f"{_EXPONENTIAL}@{k}" for k in range(1, 11)),
            *(f"RankDCG({_EXP})@{k}" for k in range(1, 11)),
            *(f"RankIDCG({_EXP},ideal='ranking')@{k}" for k in range(1, 11)),
            *(f"nDCG({_EXP},ideal='ranking')@{k}" for k in range(1, 11)),
            "CG@1",
            "SRE@1",
        ],
    ),
    "linear_gain": (
        ("seen",),
        [
            *(f"dcg@{k}" for k in range(1, 6)),
            *(f"nDCG@{k}" for k in range(1, 6)),
            *("RankDCG@5", "RankIDCG@5", "nDCG(ideal='ranking')@5", "CG@1"),
        ],
    ),
    "products": (
        ("seen",),
        [
            *("dcg_burges@3", f"{_EXPONENTIAL}@3", f"RankDCG({_EXP})@3", f"RankIDCG({_EXP})@3"),
            *(f"nDCG({_EXP},ideal='ranking')@3", "CG@1", "nCG@1", "SRE(rel=3)@1"),
        ],
    ),
    "first_relevant": (("seen",), ["RR", "RR@10", "RR@2", "Success@1"]),
    "recall": (
        ("seen",),
        [
            *("R@100", "R@5", "P@10", "Unjudged@10", "RBPResidual(p=0.5)"),
            *("SRE(rel=1)", "IterationsForAllGoodResults(rel=1)"),
        ],
    ),
    "f1": (("seen",), ["SetF", "SetP", "SetR", "F@50", "SRE(rel=1)"]),
    "f1_high": (("seen",), ["SetF", "SetP", "SetR", "F@2300", "SRE(rel=1)"]),
    "late_recovery": (
        ORDERS,
        [
            *("nDCG@10", "P(rel=2)@10", "R(rel=2)@10", "R(rel=2)@100", "RR(rel=2)", "Success(rel=2)@10"),
            *_iterated(2),
        ],
    ),
    "redundancy": (ORDERS, ["nDCG@10", "R(rel=2)@10", "RR(rel=2)", "AP(rel=2)", *_iterated(3)]),
    "empty_iterations": (("seen",), _iterated(3)),
    "two_agents": (
        ("seen",),
        ["nDCG@10", "R(rel=2)@100", "SRE", "SRR", *(f"{name}@{i}" for name in ("nCG", "NumGood") for i in range(1, 7))],
    ),
    "lost_documents": (("seen",), _iterated(4)),
    "repeated_runs": (("seen",), ["nDCG@10", "nCG@3", "SRR@3", "SRE@3"]),
    "ungraded": (
        ("seen",),
        [f"{name}@{k}" for k in (2, 5) for name in (*_GRADED, "GradednDCG(ideal='ranking')", "P")],
    ),
    "unjudged": (("seen",), ["CG", "SRE", "P@2", "RR", "nDCG@10", "GradedP@2", "NumUnjudged"]),
}


def source(measure: str) -> str:
    """`oracle`, `ranking_oracle`, `ranx` or `ir_measures`."""
    name = re.split("[(@]", measure)[0]
    if name in NAMES:
        return "oracle"
    if name in ranking_oracle.HOSTLESS | ranking_oracle.GRADED or "ideal=" in measure:
        return "ranking_oracle"
    return "ranx" if name.islower() else "ir_measures"


def expected(
    folder: Path, sources: tuple[str, ...] = ("oracle", "ranking_oracle", "ir_measures", "ranx")
) -> dict[str, dict[str, dict[str, float]]]:
    """The content of one expected.json, or the part of it that these sources give."""
    orders, measures = EXAMPLES[folder.name]
    measures = [measure for measure in measures if source(measure) in sources]
    qrels = read_qrels_text((folder / "qrels.txt").read_text(encoding="utf-8"))
    numbers: dict[str, dict[str, dict[str, float]]] = {}
    for path in sorted(folder.glob("*.run")):
        run = read_run_text(path.read_text(encoding="utf-8"))
        numbers[path.name] = {order: _values(measures, run, qrels, order) for order in orders}
    return numbers


def _values(measures: list[str], run: list[RunRow], qrels: list[QrelRow], order: str) -> dict[str, float]:
    labels = {query: {doc: int(label) for doc, label in of.items()} for query, of in classic_labels(run, qrels).items()}
    scores = {query: dict(docs) for query, docs in flatten(run, order).items()}
    values = {m: float(mean(per_query(m, run, qrels))) for m in measures if source(m) == "oracle"}
    values |= {m: _by_ranking_oracle(m, labels, scores) for m in measures if source(m) == "ranking_oracle"}
    values |= _by_ir_measures([m for m in measures if source(m) == "ir_measures"], labels, scores)
    values |= _by_ranx([m for m in measures if source(m) == "ranx"], labels, scores)
    return {measure: values[measure] for measure in measures}


#: The defaults that the ranking oracle wants to be given.
_DEFAULTS: dict[str, Any] = {"dcg": "log2", "ideal": "judged", "rel": 1, "beta": 1}


def _by_ranking_oracle(measure: str, labels: dict[str, dict[str, int]], scores: dict[str, dict[str, float]]) -> float:
    name, written, cutoff = re.fullmatch(r"(\w+)(?:\((.*)\))?(?:@(.*))?", measure).groups()  # type: ignore[union-attr]  # matches all above
    given = {pair.split("=")[0]: ast.literal_eval(pair.split("=")[1]) for pair in (written or "").split(",") if pair}
    at = {} if cutoff is None else {"recall" if name == "InterpolatedPrecision" else "cutoff": ast.literal_eval(cutoff)}
    parameters = _DEFAULTS | ({"ideal": "topk"} if name == "GradednDCG" else {}) | given | at
    values = [ranking_oracle.value(name, parameters, scores.get(q, {}), labels[q]) for q in labels]
    some = [value for value in values if value is not None]
    return fsum(some) / len(some)


def _by_ir_measures(
    measures: list[str], labels: dict[str, dict[str, int]], scores: dict[str, dict[str, float]]
) -> dict[str, float]:
    """Means by `fsum`: ir_measures' own sum follows the hash order of queries, and differs in the last digit."""
    import ir_measures

    values: dict[str, float] = {}
    for measure in measures:
        # A name is an expression of Python. ir_measures' own parser fails under Python 3.14.
        parsed = eval(measure, vars(ir_measures).copy())
        by_query = [metric.value for metric in ir_measures.iter_calc([parsed], labels, scores)]
        values[measure] = fsum(by_query) / len(by_query)
    return values


def _by_ranx(
    measures: list[str], labels: dict[str, dict[str, int]], scores: dict[str, dict[str, float]]
) -> dict[str, float]:
    if not measures:
        return {}
    from ranx import Qrels, Run, evaluate  # compiles: only where asked for

    values = evaluate(Qrels(labels), Run(scores), measures)
    return {m: float(values[m] if isinstance(values, dict) else values) for m in measures}


def text(numbers: dict[str, dict[str, dict[str, float]]]) -> str:
    """As it stands in the file."""
    return json.dumps(numbers, indent=1) + "\n"


def main() -> None:
    """Rewrite them all, and fail where a folder and EXAMPLES disagree."""
    folders = {path.parent.name for path in FOLDER.glob("*/qrels.txt")}
    if folders != set(EXAMPLES):
        raise SystemExit(f"folders and EXAMPLES differ: {sorted(folders ^ set(EXAMPLES))}")
    for name in EXAMPLES:
        (FOLDER / name / "expected.json").write_text(text(expected(FOLDER / name)), encoding="utf-8")


if __name__ == "__main__":
    main()
