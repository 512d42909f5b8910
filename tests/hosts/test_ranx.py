"""Our measures in ranx.evaluate: the values of goodgain.evaluate and of the worked examples, and classic metrics as ranx alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
import ranx

import goodgain as gg
import goodgain.hosts.ranx as host
from goodgain.measures.families import HOST_NAMES
from goodgain.measures.names import parse_measure
from tests.support.counts import how_many
from tests.support.make_expected import EXAMPLES, FOLDER, source
from tests.support.random_runs import SMALL, make_case
from tests.support.tables import SESSIONS, qrels_frame, run_frame

CLASSIC = ["ndcg@10", "mrr@10", "recall@100", "map", "precision@5-l2"]
SAME_ELSEWHERE = {"ndcg@10": "nDCG@10", "recall@100": "R@100", "map": "AP", "precision@5-l2": "P(rel=2)@5"}


def every_metric(cutoff: int) -> dict[str, str]:
    """All of ours at their ends, at a cutoff and with other thresholds: ranx's name -> goodgain's."""
    names: dict[str, str] = {}
    for name, measure in HOST_NAMES.items():
        declared = measure.declaration
        if declared.cutoff != "required":
            names[name] = str(measure)
        if declared.cutoff != "none":
            names[f"{name}@{cutoff}"] = str(measure @ cutoff)
        if declared.cutoff != "none" and declared.uses_rel:
            names[f"{name}@{cutoff}-l1"] = str(measure(rel=1) @ cutoff)
            names[f"{name}@{cutoff}-l2.5"] = str(measure(rel=2.5) @ cutoff)
    return names


def same_as_everywhere(qrels: Any, run: Any, cutoff: int, **reading: Any) -> None:
    """One call with ours and classic metrics, held against goodgain.evaluate and plain ranx on the flattened run."""
    names = every_metric(cutoff)
    judged = gg.read_qrels(qrels, **reading)
    scores = gg.evaluate(judged, run, list(names.values()))
    found = ranx.evaluate(host.Qrels(judged), host.Run(run), [*names, *CLASSIC], make_comparable=True)
    for name, elsewhere in names.items():
        assert found[name] == pytest.approx(scores[elsewhere], abs=1e-9), name
    found_any = len(gg.flatten(run)) > 0  # ranx itself cannot make a Run without a document
    if judged.fractional is None and judged.labels is None and found_any:
        plain = plain_ranx(judged, run, CLASSIC)
        assert {name: found[name] for name in CLASSIC} == pytest.approx(plain, abs=1e-12)


def plain_ranx(qrels: gg.Qrels, run: Any, metric_names: list[str]) -> dict[str, float]:
    """ranx's own classes on the flattened ranking, with our measures taken out of ranx."""
    flat: dict[str, dict[str, float]] = {}
    for query_id, doc_id, score in gg.read_run(run).flatten().select("query_id", "doc_id", "score").iter_rows():
        flat.setdefault(query_id, {})[doc_id] = score
    labels: dict[str, dict[str, int]] = {}
    for query_id, doc_id, label in qrels.largest.iter_rows():
        labels.setdefault(query_id, {})[doc_id] = int(label)
    host.unregister()
    try:
        return dict(ranx.evaluate(ranx.Qrels(labels), ranx.Run(flat), metric_names, make_comparable=True))
    finally:
        host.register()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("seed", range(how_many(2, full=12)))
def test_random_runs_with_repeats_have_the_values_of_evaluate_and_of_plain_ranx(seed: int) -> None:
    shape = SMALL._replace(fractional=seed % 3 == 1, by_iteration=seed % 3 == 2)
    case = make_case(Random(seed), shape)
    same_as_everywhere(qrels_frame(case.qrels), run_frame(case.run), 1 + seed % 4, labels=case.labels)


@pytest.mark.filterwarnings(
    "ignore:no label of the qrels reaches:goodgain.GoodgainNotice"
)  # rel=2.5 and 3 are asked for
@pytest.mark.skipif(not SESSIONS.exists(), reason="the sessions are not beside this checkout")
@pytest.mark.slow  # ranx compiles for each length of ids
def test_real_sessions_have_the_values_of_evaluate_and_of_plain_ranx() -> None:
    qrels, run = gg.read_qrels(SESSIONS / "sessions.qrels"), gg.read_run(SESSIONS / "sessions.run")
    same_as_everywhere(qrels, run, 3)
    scores = ranx.evaluate(host.Qrels(qrels), host.Run(run), list(SAME_ELSEWHERE), make_comparable=True)
    wanted = gg.evaluate(qrels, run, list(SAME_ELSEWHERE.values()))
    for name, elsewhere in SAME_ELSEWHERE.items():
        assert scores[name] == pytest.approx(wanted[elsewhere], abs=1e-9), name


#: What ranx calls the measures that mean the same there.
SAME_THERE = {"P": "precision", "R": "recall", "RR": "mrr", "AP": "map", "nDCG": "ndcg"}


def ranx_name(measure: str) -> str | None:
    """The metric of ranx for a name in expected.json; None where ranx has none."""
    if source(measure) == "ranx":
        return measure
    if source(measure) == "oracle":
        parsed: Any = parse_measure(measure)
        name = next(
            name
            for name, host_name in HOST_NAMES.items()
            if type(host_name) is type(parsed) and same_pool(host_name, parsed)
        )
        return name + at(parsed.cutoff) + (f"-l{parsed['rel']}" if "rel" in parsed.params else "")
    parts = re.fullmatch(r"(\w+)(?:\(rel=([0-9]+)\))?((?:@[0-9]+)?)", measure)
    if parts is None or parts[1] not in SAME_THERE:
        return None
    return SAME_THERE[parts[1]] + parts[3] + (f"-l{parts[2]}" if parts[2] else "")


def same_pool(one: object, other: object) -> bool:
    return getattr(one, "params", {}).get("pool") == getattr(other, "params", {}).get("pool")


def at(cutoff: int | None) -> str:
    return "" if cutoff is None else f"@{cutoff}"


def values(folder: Path, run: str, order: str) -> dict[str, float]:
    stored: dict[str, float] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))[run][order]
    return stored


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.each  # ranx compiles for some seconds for ids of each length
@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] * (x != "guideline")) for x in EXAMPLES])
def test_the_numbers_of_every_worked_example_come_out_of_ranx(name: str) -> None:
    folder = FOLDER / name
    qrels = host.Qrels(folder / "qrels.txt")
    for path in sorted(folder.glob("*.run")):
        for order in EXAMPLES[name][0]:
            expected = {
                known: value
                for measure, value in values(folder, path.name, order).items()
                if (known := ranx_name(measure)) is not None
            }
            assert expected
            run = host.Run(path, order=order)
            found = ranx.evaluate(qrels, run, list(expected), make_comparable=True)
            found = found if isinstance(found, dict) else dict.fromkeys(expected, found)
            assert found == pytest.approx(expected, abs=1e-9)


def test_the_examples_that_need_ranx_are_among_them() -> None:
    of_ranx = [measure for _, measures in EXAMPLES.values() for measure in measures if source(measure) == "ranx"]
    assert {measure.partition("@")[0] for measure in of_ranx} == {"dcg", "dcg_burges"}
    assert all(ranx_name(measure) == measure for measure in of_ranx)
