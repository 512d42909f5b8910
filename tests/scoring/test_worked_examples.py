"""Every number in qrels_examples comes out of evaluate, ir_measures and the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import ir_measures
import pytest

import goodgain as gg
from goodgain.measures.names import parse_measure
from tests.support.tables import ROOT, no_notices

FOLDER = ROOT / "qrels_examples"
EXPECTED = {
    (folder.name, run, order): values
    for folder in sorted(FOLDER.iterdir())
    if (folder / "qrels.txt").exists()
    for run, orders in json.loads((folder / "expected.json").read_text(encoding="utf-8")).items()
    for order, values in orders.items()
}


def without_ranx(values: dict[str, float]) -> dict[str, float]:
    """Measures of ranx have small letters; they are tested with that host."""
    return {name: value for name, value in values.items() if not re.match(r"[a-z_]+@", name)}


@pytest.mark.each
@pytest.mark.parametrize(("folder", "run", "order"), EXPECTED)
def test_evaluate_gives_the_expected_values(folder: str, run: str, order: str) -> None:
    wanted = without_ranx(EXPECTED[folder, run, order])
    with no_notices():
        scores = gg.evaluate(FOLDER / folder / "qrels.txt", FOLDER / folder / run, list(wanted), order=order)
    assert {name: scores[name] for name in wanted} == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("folder", "run"), sorted({key[:2] for key in EXPECTED}))
def test_ir_measures_gives_the_expected_values(folder: str, run: str) -> None:
    wanted = without_ranx(EXPECTED[folder, run, "seen"])
    measures = {name: parse_measure(name) for name in wanted}
    with no_notices():
        found = ir_measures.calc_aggregate(
            measures.values(), gg.read_qrels(FOLDER / folder / "qrels.txt"), gg.read_run(FOLDER / folder / run)
        )
    assert {name: found[measure] for name, measure in measures.items()} == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.slow
def test_the_guidelines_example_from_the_command_line_at_full_precision() -> None:
    wanted = without_ranx(EXPECTED["guideline", "agent.run", "seen"])
    folder = FOLDER / "guideline"
    printed = command("evaluate", folder / "qrels.txt", folder / "agent.run", *wanted, "-p", "-1")
    found = dict(line.split("\t") for line in printed.splitlines())
    assert {name: float(value) for name, value in found.items()} == pytest.approx(
        {str(parse_measure(name)): value for name, value in wanted.items()}, rel=1e-12, abs=1e-12
    )


def command(*arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "goodgain", *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_agent_that_recovers_late_fails_by_ndcg_and_not_by_good_gain() -> None:
    folder = FOLDER / "late_recovery"
    late = gg.evaluate(folder / "qrels.txt", folder / "late.run", "nDCG@10 nCG SRE")
    assert late["nDCG@10"] == 0
    assert late["nCG"] > 0
    assert late["SRE"] > 0


def test_two_agents_that_differ_in_redundancy_only_differ_in_srr_and_sre_only() -> None:
    folder = FOLDER / "redundancy"
    lean, repeating = (
        gg.evaluate(folder / "qrels.txt", folder / name, "CG DCGG nCG SRR SRE IterationsForAllGoodResults nDCG@10")
        for name in ("lean.run", "repeating.run")
    )
    differing = {name for name in lean.mean() if lean[name] != repeating[name]}
    assert differing == {"SRR", "SRE"}
    assert lean["SRR"] < repeating["SRR"]
