"""How long four analyses take on one experiment, beside the four functions that each read and count for themselves.

    python benchmarks/experiment.py [QUERIES]

3 systems, 6 iterations of 10 results, by default 2,000 queries; runs in memory and as text. Evaluate is called for each system.
Each time is the least CPU time of three rounds; both sides take turns.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import report  # the benchmark of reports, which makes the runs

import goodgain as gg

MEASURES, CURVES, ROUNDS = "nDCG@10 nCG nDCGG SRR", "nCG nDCGG SRR", 3


def call_functions(qrels: Any, runs: Mapping[str, Any], path: Path) -> None:
    for run in runs.values():
        gg.evaluate(qrels, run, MEASURES)
    gg.compare(qrels, runs, MEASURES, baseline=next(iter(runs)))
    gg.curve(qrels, runs, CURVES)
    gg.report(qrels, runs, path, MEASURES)


def use_experiment(qrels: Any, runs: Mapping[str, Any], path: Path) -> None:
    x = gg.Experiment(qrels, runs)
    x.evaluate(MEASURES)
    x.compare(MEASURES, baseline=next(iter(runs)))
    x.curve(CURVES)
    x.report(path, MEASURES)


def measure(call: Callable[[Any, Mapping[str, Any], Path], None], *arguments: Any) -> float:
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start


def main(queries: int, folder: Path) -> None:
    labels, frames = report.make(queries, 3, 6)
    text = {}
    for name, frame in frames.items():
        text[name] = str(folder / f"{name}.run")
        gg.write_run(frame, text[name])
    gg.write_qrels(labels, folder / "qrels.txt")
    sources: dict[str, tuple[Any, Mapping[str, Any]]] = {
        "in memory": (labels, frames),
        "text": (str(folder / "qrels.txt"), text),
    }
    print("| runs | report | four functions | one experiment | ratio |\n|---|---|---|---|---|")
    for place, (qrels, runs) in sources.items():
        for form in ("html", "json"):
            path = folder / f"report.{form}"
            calls = (call_functions, use_experiment)
            rounds = [[measure(call, qrels, runs, path) for call in calls] for _ in range(ROUNDS)]
            functions, experiment = (min(times) for times in zip(*rounds, strict=True))
            ratio = experiment / functions
            print(f"| {place} | {form} | {functions:.2f} s | {experiment:.2f} s | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        main(int(sys.argv[1]) if sys.argv[1:] else 2_000, Path(name))
