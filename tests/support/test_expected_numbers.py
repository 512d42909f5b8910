"""The numbers in `qrels_examples/*/expected.json` are what their sources give, and round to the published ones."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

import pytest

from tests.support import make_repeated_runs, make_two_agents
from tests.support.make_expected import EXAMPLES, FOLDER, expected, source
from tests.support.random_runs import read_qrels_text, read_run_text

#: Rows of a table in a paper or a book: a run of an example, measures, and their values as printed, or as exact fractions.
PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text("utf-8"))
Numbers = dict[str, dict[str, dict[str, float]]]


@cache
def stored(folder: str) -> Numbers:
    numbers: Numbers = json.loads((FOLDER / folder / "expected.json").read_text(encoding="utf-8"))
    return numbers


def seen(folder: str, run: str, measure: str) -> float:
    return stored(folder)[f"{run}.run"]["seen"][measure]


def test_every_folder_has_its_numbers_and_its_readme() -> None:
    for folder in EXAMPLES:  # judges/ holds grades, and no run
        assert set(stored(folder)) == {path.name for path in (FOLDER / folder).glob("*.run")}
        assert (FOLDER / folder / "README.md").is_file()


@pytest.mark.parametrize("folder", ["two_agents", "repeated_runs"])
def test_runs_that_are_made_up_are_those_that_their_script_writes(folder: str) -> None:
    make_files = {"two_agents": make_two_agents, "repeated_runs": make_repeated_runs}[folder].make_files
    for name, text in make_files().items():
        assert (FOLDER / folder / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("folder", EXAMPLES)
def test_the_files_hold_what_oracle_and_ir_measures_give_now(folder: str) -> None:
    # ranx, which compiles for a minute, is held by the plain formula below.
    for run, orders in expected(FOLDER / folder, ("oracle", "ranking_oracle", "ir_measures")).items():
        for order, values in orders.items():
            vs = {m: v for m, v in stored(folder)[run][order].items() if source(m) != "ranx"}
            assert vs == pytest.approx(values, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("folder", ["exponential_gain", "linear_gain", "products"])
def test_the_numbers_of_ranx_are_the_plain_formula(folder: str) -> None:
    labels = {row.doc_id: row.relevance for row in read_qrels_text((FOLDER / folder / "qrels.txt").read_text())}
    for run, orders in stored(folder).items():
        docs = [row.doc_id for row in read_run_text((FOLDER / folder / run).read_text())]
        vs = {m: v for m, v in orders["seen"].items() if source(m) == "ranx"}
        assert vs
        for measure, number in vs.items():
            name, cutoff = measure.split("@")
            label = [float(labels[doc or ""]) for doc in docs[: int(cutoff)]]
            gains = label if name == "dcg" else [2**gain - 1 for gain in label]
            assert number == pytest.approx(sum(gain / log2(k + 1) for k, gain in enumerate(gains, 1)), rel=1e-12)


@pytest.mark.each
@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row["rule"])
def test_a_published_number_is_ours_rounded(row: dict[str, Any]) -> None:
    """Each number lies within half a unit of the last digit printed (half is rounded either way)."""
    got = [seen(row["folder"], row["run"], measure) for measure in row["measures"]]
    if "exact" in row:
        assert got == [float(Fraction(number)) for number in row["exact"].split()]
        return
    for number, printed in zip(got, row["printed"].split(), strict=True):
        places = len(printed.partition(".")[2])
        assert abs(number - float(printed)) <= 0.5 * 10**-places + 1e-9, (number, printed)


def test_published_numbers_that_are_means_or_cut() -> None:
    for run, printed in (("a", 0.82), ("b", 0.60)):
        points = [seen("rankings_ab", run, f"IPrec@{tenth / 10}") for tenth in range(11)]
        assert abs(sum(points) / 11 - printed) <= 0.005 + 1e-9
    # Printed 12.916, which is cut and not rounded: it is 8.5 + 7/log2(3) = 12.91651.
    ideals = seen("products", "ideal", "dcg_burges@3"), seen("products", "ranking", "RankIDCG(dcg='exp-log2')@3")
    assert ideals == pytest.approx((8.5 + 7 / log2(3),) * 2, rel=1e-12)
    assert int(1000 * ideals[0]) / 1000 == 12.916


def test_the_cut_run_wins_at_its_own_n_and_loses_what_can_be_lost_at_3() -> None:
    for name in ("RG", "DRG", "RAG", "DRAG", "SRE"):
        assert seen("guideline", "stopped_early", name) > seen("guideline", "agent", name)
    assert seen("guideline", "stopped_early", "SRR") < seen("guideline", "agent", "SRR")
    for name in ("CG", "DCGG", "nCG", "nDCGG", "RG", "DRG", "RAG", "DRAG"):
        assert seen("guideline", "stopped_early", f"{name}@3") < seen("guideline", "agent", f"{name}@3")


def test_late_recovery_is_a_failure_by_rank_alone() -> None:
    late, early = stored("late_recovery")["late.run"], stored("late_recovery")["early.run"]
    assert [late[order]["nDCG@10"] for order in ("seen", "last")] == [0, 1]
    assert [early[order]["nDCG@10"] for order in ("seen", "last")] == [1, 0]
    assert 0.5 < late["interleaved"]["nDCG@10"] < early["interleaved"]["nDCG@10"]
    for measure in ("CG@2", "SRE@2", "RG@2", "RAG@2"):
        assert late["seen"][measure] == early["seen"][measure] > 0
    assert 0 < late["seen"]["DCGG@2"] < early["seen"]["DCGG@2"]


def test_good_gain_measures_do_not_depend_on_the_flattening_order() -> None:
    for folder in ("late_recovery", "redundancy"):
        for orders in stored(folder).values():
            ours = [{m: v for m, v in values.items() if source(m) == "oracle"} for values in orders.values()]
            assert ours[0]
            assert all(our == ours[0] for our in ours)


def test_redundancy_alone_moves_only_what_counts_results() -> None:
    lean, repeating = (stored("redundancy")[f"{name}.run"]["seen"] for name in ("lean", "repeating"))
    moved = {m.partition("@")[0] for m in lean if lean[m] != repeating[m]}
    assert moved == {"AvgGain", "RAG", "DRAG", "SRE", "SRR", "NumResults", "NumDup"}
