"""The numbers in `qrels_examples/*/expected.json` are what their sources give, and round to the published ones."""

from __future__ import annotations

import json
from functools import cache
from math import log2

import pytest

from tests.support import make_repeated_runs, make_two_agents
from tests.support.make_expected import EXAMPLES, FOLDER, expected, source
from tests.support.random_runs import read_qrels_text, read_run_text

Numbers = dict[str, dict[str, dict[str, float]]]


@cache
def stored(folder: str) -> Numbers:
    numbers: Numbers = json.loads((FOLDER / folder / "expected.json").read_text(encoding="utf-8"))
    return numbers


def seen(folder: str, run: str, measure: str) -> float:
    return stored(folder)[f"{run}.run"]["seen"][measure]


def published(got: list[float], rounded: str) -> None:
    """Each number lies within half a unit of the last digit printed (half is rounded either way)."""
    wanted = rounded.split()
    assert len(got) == len(wanted)
    for number, printed in zip(got, wanted, strict=True):
        places = len(printed.partition(".")[2])
        assert abs(number - float(printed)) <= 0.5 * 10**-places + 1e-9, (number, printed)


def test_every_folder_has_its_numbers_and_its_readme() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/qrels.txt")}  # judges/ holds grades, and no run
    assert folders == set(EXAMPLES)
    for folder in folders:
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
            kept = {m: v for m, v in stored(folder)[run][order].items() if source(m) != "ranx"}
            assert kept == pytest.approx(values, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("folder", ["exponential_gain", "linear_gain", "products"])
def test_the_numbers_of_ranx_are_the_plain_formula(folder: str) -> None:
    labels = {row.doc_id: row.relevance for row in read_qrels_text((FOLDER / folder / "qrels.txt").read_text())}
    for run, orders in stored(folder).items():
        docs = [row.doc_id for row in read_run_text((FOLDER / folder / run).read_text())]
        found = {m: v for m, v in orders["seen"].items() if source(m) == "ranx"}
        assert found
        for measure, number in found.items():
            name, cutoff = measure.split("@")
            label = [float(labels[doc or ""]) for doc in docs[: int(cutoff)]]
            gains = label if name == "dcg" else [2**gain - 1 for gain in label]
            assert number == pytest.approx(sum(gain / log2(k + 1) for k, gain in enumerate(gains, 1)), rel=1e-12)


def test_ranking_a_and_its_neighbours() -> None:
    a = stored("rankings_ab")["a.run"]["seen"]
    published([a[f"P@{k}"] for k in range(1, 11)], "1 .5 .67 .75 .8 .83 .71 .63 .56 .60")
    published([a[f"R@{k}"] for k in range(1, 11)], ".17 .17 .33 .5 .67 .83 .83 .83 .83 1")
    published([a["AP"], a["RR"]], ".78 1")
    published([eleven_point("a"), eleven_point("b")], ".82 .60")
    published([seen("rankings_ab", "b", "AP")], ".52")
    published([seen("rankings_cd", "c", "AP"), seen("rankings_cd", "d", "AP")], ".54 .44")
    published([seen("rankings", "a_and_c", "AP"), seen("rankings", "b_and_d", "AP")], ".66 .48")


def eleven_point(run: str) -> float:
    return sum(seen("rankings_ab", run, f"IPrec@{tenth / 10}") for tenth in range(11)) / 11


def test_graded_gains() -> None:
    def row(run: str, measure: str) -> list[float]:
        return [seen("exponential_gain", run, f"{measure}@{k}") for k in range(1, 11)]

    published(row("ranking", "dcg_burges"), "7 8.89 12.39 12.39 12.39 12.75 13.75 14.70 16.80 16.80")
    published(row("ideal", "dcg_burges"), "7 11.42 14.92 16.21 17.37 18.44 18.77 18.77 18.77 18.77")
    exponential = "nDCG(gains={1:1,2:3,3:7})"
    published(row("ranking", exponential), "1 .78 .83 .76 .71 .69 .73 .78 .90 .90")
    linear = [("ranking", "dcg@5"), ("ideal", "dcg@5"), ("ranking", "nDCG@5")]
    published([seen("linear_gain", run, measure) for run, measure in linear], "6.1487 6.3235 .9724")
    product = [("ranking", "dcg_burges@3"), ("ideal", "dcg_burges@3"), ("ranking", f"{exponential}@3")]
    dcg, ideal, ndcg = (seen("products", run, measure) for run, measure in product)
    published([dcg, ndcg], "9.393 .727")
    # Printed 12.916, which is cut and not rounded: it is 8.5 + 7/log2(3) = 12.91651.
    assert ideal == pytest.approx(8.5 + 7 / log2(3), rel=1e-12)
    assert int(1000 * ideal) / 1000 == 12.916


def test_first_relevant_recall_and_f1() -> None:
    published([seen("first_relevant", "ranking", "RR")], ".778")
    assert seen("recall", "ranking", "R@100") == 0.75
    assert seen("f1", "ranking", "SetP") == pytest.approx(47 / 50)
    assert seen("f1", "ranking", "SetR") == pytest.approx(47 / 181)
    assert seen("f1_high", "ranking", "SetP") == pytest.approx(0.99)
    assert seen("f1_high", "ranking", "SetR") == pytest.approx(0.92)
    published([seen("f1", "ranking", "SetF"), seen("f1_high", "ranking", "SetF")], ".41 .95")


def test_exact_points_and_measures_cut_at_k() -> None:
    for folder, run, rounded in (
        ("rankings_ab", "a", ".8212"), ("rankings_ab", "b", ".6"),
        ("rankings_cd", "c", ".5636"), ("rankings_cd", "d", ".4545"),
    ):  # fmt: skip
        published([seen(folder, run, "ElevenPointAP")], rounded)
    published(points("a_and_c"), "1 1 .917 .917 .583 .583 .583 .567 .567 .45 .45")
    published(points("b_and_d"), ".55 .55 .55 .55 .514 .514 .514 .514 .514 .514 .514")
    published([seen("rankings", "a_and_c", "IPrec@0.7")], ".583")
    published([seen("rankings_ab", run, "TruncatedAP@5") for run in ("a", "b")], ".6433 .18")
    published([seen("rankings_ab", run, "AP@5") for run in ("a", "b")], ".5361 .15")
    published([seen("rankings_ab", "a", name) for name in ("F(beta=2)@10", "SetF(beta=2.0)")], ".8824 .8182")
    assert [seen("rankings_ab", run, "Fallout@5") for run in ("a", "b")] == [1 / 4, 3 / 4]
    assert [seen("rankings_ab", "a", f"RelativeP@{k}") for k in (5, 10)] == [4 / 5, 1]
    published([seen("f1", "ranking", "F@50"), seen("f1_high", "ranking", "F@2300")], ".4069 .9537")
    assert seen("recall", "ranking", "Unjudged@10") == 0.4
    assert seen("recall", "ranking", "RBPResidual(p=0.5)") == 307 / 1024


def points(run: str) -> list[float]:
    return [seen("rankings", run, f"InterpolatedPrecision@{tenth / 10:g}") for tenth in range(11)]


def test_sums_of_gains_and_the_ideal_of_the_ranking() -> None:
    def row(measure: str) -> list[float]:
        return [seen("exponential_gain", "ranking", f"{measure}@{k}") for k in range(1, 11)]

    published(row("RankDCG(dcg='exp-log2')"), "7 8.89 12.39 12.39 12.39 12.75 13.75 14.70 16.80 16.80")
    of_ranking = "RankIDCG(dcg='exp-log2',ideal='ranking')"
    published(row(of_ranking), "7 11.42 14.92 16.21 17.37 18.44 18.77 18.77 18.77 18.77")
    published(row("nDCG(dcg='exp-log2',ideal='ranking')"), "1 .78 .83 .76 .71 .69 .73 .78 .90 .90")
    linear = ("RankDCG@5", "RankIDCG@5", "nDCG(ideal='ranking')@5")
    published([seen("linear_gain", "ranking", name) for name in linear], "6.1487 6.3235 .9724")
    products = [seen("products", "ranking", f"{name}(dcg='exp-log2')@3") for name in ("RankDCG", "RankIDCG")]
    published(products[:1], "9.393")
    assert products[1] == pytest.approx(8.5 + 7 / log2(3), rel=1e-12)  # 12.91651, printed 12.916


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
            assert all(other == ours[0] for other in ours)


def test_redundancy_alone_moves_only_what_counts_results() -> None:
    lean, repeating = (stored("redundancy")[f"{name}.run"]["seen"] for name in ("lean", "repeating"))
    moved = {m.partition("@")[0] for m in lean if lean[m] != repeating[m]}
    assert moved == {"AvgGain", "RAG", "DRAG", "SRE", "SRR", "NumResults", "NumDup"}
