"""Rewrites every `qrels_examples/*/expected.json` from sources other than goodgain, which is never imported here.

- The good-gain measures: the brute-force oracle (oracle.py), exact until the last step to a float.
- The measures over one ranking that no host has: a second brute-force oracle (ranking_oracle.py).
- The classic measures: ir_measures (that is pytrec_eval for most), and ranx for its own lower-case names
  (`dcg_burges@5`), on the ranking that the oracle's flattening makes, in each order.

    python -m tests.support.make_expected    # from the project's folder; ranx compiles for 10-20 s

What stands in the files: {run file: {order: {measure: mean over the queries of the qrels}}}, at full precision. The orders
and measures of the first run count for all runs: write a new name there, with null. A change in the numbers is a change in
what they mean: read the diff.
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
from tests.support.oracle_flattening import classic_labels, flatten
from tests.support.random_runs import read_qrels_text, read_run_text

FOLDER = Path(__file__).parents[2] / "qrels_examples"


def _read_names(folder: Path) -> tuple[tuple[str, ...], list[str]]:
    first = next(iter(json.loads((folder / "expected.json").read_text("utf-8")).values()))
    return tuple(first), list(next(iter(first.values())))


#: folder -> orders and measures. Which source a measure comes from follows from its name.
EXAMPLES = {path.parent.name: _read_names(path.parent) for path in sorted(FOLDER.glob("*/qrels.txt"))}


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
    labels = {
        query: {doc: int(label) for doc, label in labels_of_query.items()}
        for query, labels_of_query in classic_labels(run, qrels).items()
    }
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
    written_parameters = {
        pair.split("=")[0]: ast.literal_eval(pair.split("=")[1]) for pair in (written or "").split(",") if pair
    }
    at = {} if cutoff is None else {"recall" if name == "InterpolatedPrecision" else "cutoff": ast.literal_eval(cutoff)}
    parameters = _DEFAULTS | ({"ideal": "topk"} if name == "GradednDCG" else {}) | written_parameters | at
    values = [ranking_oracle.value(name, parameters, scores.get(q, {}), labels[q]) for q in labels]
    present = [value for value in values if value is not None]
    return fsum(present) / len(present)


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


if __name__ == "__main__":
    for example in EXAMPLES:
        (FOLDER / example / "expected.json").write_text(
            json.dumps(expected(FOLDER / example), indent=1) + "\n", encoding="utf-8"
        )
