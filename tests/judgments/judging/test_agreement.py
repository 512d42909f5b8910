"""Coefficients of agreement against statsmodels, and against their definitions over single pairs of grades."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

import goodgain as gg
from goodgain.judgments.judging.judge_agreement import Agreement
from tests.judgments.judging.test_rules import Votes, frame_of, random_votes
from tests.support.command import run_command
from tests.support.counts import how_many


def units_of(votes: Votes) -> list[list[float]]:
    return [[grade for grade in grades if grade is not None] for grades in votes.values()]


def alpha_by_pairs(units: list[list[float]], ordinal: bool) -> float | None:
    """1 - observed / expected disagreement, each over all ordered pairs of grades, one by one."""
    units = [unit for unit in units if len(unit) > 1]
    everything = [grade for unit in units for grade in unit]
    counts = Counter(everything)

    def apart(a: float, b: float) -> float:
        if not ordinal:
            return float(a != b)
        low, high = sorted((a, b))
        between = sum(count for grade, count in counts.items() if low <= grade <= high)
        return (between - (counts[a] + counts[b]) / 2) ** 2

    observed = sum(apart(a, b) / (len(unit) - 1) for unit in units for a, b in itertools.permutations(unit, 2))
    expected = sum(apart(a, b) for a, b in itertools.permutations(everything, 2))
    return (
        None
        if not expected
        else 1 - (observed / len(everything)) / (expected / len(everything) / (len(everything) - 1))
    )


def ac_by_pairs(units: list[list[float]], scale: range, quadratic: bool) -> float | None:
    """Gwet's coefficient from single pairs of grades."""

    def alike(a: float, b: float) -> float:
        return 1 - ((a - b) / (len(scale) - 1)) ** 2 if quadratic else float(a == b)

    several = [unit for unit in units if len(unit) > 1]
    if not several:
        return None
    pairs = [list(itertools.permutations(unit, 2)) for unit in several]
    observed = sum(sum(alike(*pair) for pair in of_unit) / len(of_unit) for of_unit in pairs) / len(several)
    graded = [unit for unit in units if unit]
    spread = [sum(unit.count(grade) / len(unit) for unit in graded) / len(graded) for grade in scale]
    total = sum(alike(a, b) for a in scale for b in scale)
    chance = total * sum(share * (1 - share) for share in spread) / (len(scale) * (len(scale) - 1))
    return (observed - chance) / (1 - chance)


def test_coefficients_of_all_judges_equal_their_definitions() -> None:
    for seed in range(how_many(10, full=80)):
        top = 1 + seed % 4
        frame, votes = random_votes(seed, top)
        units = units_of(votes)
        found = gg.agreement(frame, scale=f"0..{top}").overall
        wanted = {
            "alpha_nominal": alpha_by_pairs(units, ordinal=False),
            "alpha_ordinal": alpha_by_pairs(units, ordinal=True),
            "ac1": ac_by_pairs(units, range(top + 1), quadratic=False),
            "ac2": ac_by_pairs(units, range(top + 1), quadratic=True),
        }
        assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-11, abs=1e-11)
        assert found["documents"] == len(units)
        assert found["coverage"] == sum(bool(unit) for unit in units) / len(units)


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # statsmodels divides 0 by 0 where kappa is undefined
def test_kappa_of_each_pair_equals_statsmodels() -> None:
    for seed in range(how_many(5, full=50)):
        frame, _ = random_votes(seed, top=3)
        report = gg.agreement(frame, scale="graded", names=True)
        wide = frame.pivot("judge", index=["query_id", "doc_id"], values="grade")

        for judge, other, documents, agreement, kappa, quadratic in report.pairs.iter_rows():
            both = wide.select(pl.col(judge, other).cast(pl.Int64)).drop_nulls()
            table = np.zeros((4, 4))
            for pair in both.iter_rows():
                table[pair] += 1
            assert documents == both.height
            assert agreement == pytest.approx(np.trace(table) / both.height, rel=1e-12)
            for weights, found in ((None, kappa), ("quadratic", quadratic)):
                wanted = cohens_kappa(table, wt=weights, return_results=False)
                assert (found is None) == bool(np.isnan(wanted))
                assert found is None or found == pytest.approx(float(wanted), rel=1e-11, abs=1e-11)
            cells = report.confusion.filter((pl.col("judge") == judge) & (pl.col("other") == other))
            assert {(int(a), int(b)): n for a, b, n in cells.drop("judge", "other").iter_rows()} == {
                (a, b): table[a, b] for a in range(4) for b in range(4) if table[a, b]
            }


def test_kappa_of_a_table_worked_by_hand() -> None:
    # 20 both yes, 15 both no, 5 and 10 apart: (35/50 - (25·30 + 25·20)/2500) / (1 - 1/2) = .4
    cells = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    rows = [
        ("q", f"d{k}", judge, grade) for k, pair in enumerate(cells) for judge, grade in zip("ab", pair, strict=True)
    ]
    assert gg.agreement(frame_of(*rows), scale="binary").pairs["kappa"].to_list() == pytest.approx([0.4], rel=1e-12)


def test_judges_have_no_names_unless_asked() -> None:
    frame = frame_of(("q", "x", "anna@example.org", 1), ("q", "x", "ben", 0))
    report = gg.agreement(frame, scale="binary")
    assert "anna" not in repr(report) + str(report.judges) + str(report.pairs) + str(report.confusion)
    assert gg.agreement(frame, scale="binary", names=True).judges["judge"].to_list() == ["anna@example.org", "ben"]


def test_a_name_with_a_tab_stays_in_its_column(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    frame_of(("q", "x", "a\tb", 1), ("q", "x", 'c "d"', 2)).write_csv(path)
    shown = run_command("judge", path, "--scale", "graded", "--agreement", "--names").stdout
    blocks = [pl.read_csv(StringIO(text), separator="\t") for text in shown.split("\n\n")[1:3]]
    assert blocks[0]["judge"].to_list() == ["a\tb", 'c "d"'] and blocks[1]["other"].to_list() == ['c "d"']


def _many_votes() -> list[tuple[str, str, str, float | None]]:
    """Grades on a scale of fractions, so that sums in another order have other digits."""
    chance = random.Random(7)
    grades = (0.0, 0.1, 0.3, 0.7, 1.0)
    return [
        (f"q{q}", f"d{d}", f"j{j}", chance.choice(grades) if chance.random() < 0.8 else None)
        for q in range(12)
        for d in range(15)
        for j in range(5)
        if chance.random() < 0.8
    ]


def _digits(report: Agreement) -> tuple[object, ...]:
    """All numbers of a report, whichever judge comes first."""
    pairs = [(frozenset((judge, other)), *numbers) for judge, other, *numbers in report.pairs.rows()]
    return report.overall, sorted(report.judges.rows()), sorted(pairs, key=lambda pair: sorted(pair[0]))


def test_each_call_gives_the_same_digits() -> None:
    frame = frame_of(*_many_votes())
    reports = [gg.agreement(frame, scale="0,0.1,0.3,0.7,1") for _ in range(30)]
    assert all(_digits(report) == _digits(reports[0]) for report in reports)


def test_the_order_of_rows_does_not_change_a_digit_of_the_report() -> None:
    rows = _many_votes()
    first = _digits(gg.agreement(frame_of(*rows), scale="0,0.1,0.3,0.7,1", names=True))
    for seed in range(how_many(4, full=15)):
        random.Random(seed).shuffle(rows)
        assert _digits(gg.agreement(frame_of(*rows), scale="0,0.1,0.3,0.7,1", names=True)) == first


def simulate_judges(random: np.random.Generator, documents: int, *, queries: int) -> pl.DataFrame:
    """Two judges who say what is true of four documents in five, and else anything: kappa is 0.8 squared."""
    truth = random.integers(0, 3, documents)
    rows = []
    for judge in "ab":
        said = np.where(random.random(documents) < 0.8, truth, random.integers(0, 3, documents))
        rows += [(f"q{k % queries}", f"d{k}", judge, int(grade)) for k, grade in enumerate(said)]
    return frame_of(*rows)


@pytest.mark.slow
def test_intervals_cover_kappa_and_alpha() -> None:
    rounds, covered = how_many(40, full=200), Counter[str]()
    random = np.random.default_rng(1)
    for k in range(rounds):
        found = gg.agreement(
            simulate_judges(random, 150, queries=(3, 50)[k % 2]), scale="0..2", intervals=True
        ).intervals
        assert found is not None
        for name, low, high in found.select("coefficient", "low", "high").iter_rows():
            covered[name] += low <= 0.64 <= high
    assert set(covered) == {"alpha_nominal", "alpha_ordinal", "kappa", "kappa_quadratic"}
    band = 0.03 if rounds == 200 else 0.12
    assert all(abs(count / rounds - 0.94) < band for count in covered.values()), covered


def test_an_interval_that_is_not_defined_is_null() -> None:
    constant = frame_of(*(("q", doc, judge, 2) for doc in "xyz" for judge in "ab"))
    found = gg.agreement(constant, scale="graded", intervals=True).intervals
    assert found is not None
    assert found.select("low", "high").null_count().row(0) == (4, 4)
    one = gg.agreement(frame_of(("q", "x", "a", 1), ("q", "x", "b", 2)), scale="graded", intervals=True).intervals
    assert one is not None and one.get_column("low").null_count() == one.height > 0


def _pairs(equal: int, apart: int, rare: int = 0) -> dict[str, dict[str, dict[str, int]]]:
    """Grades of two judges: `equal` documents on which they agree, `apart` with 0 and 4, and `rare` more with equal grades of 0."""
    grades = [(k % 5, k % 5) for k in range(equal)] + [(0, 4)] * apart + [(0, 0)] * rare
    return {
        name: {
            f"q{k % 12}": {f"d{m}": pair[place] for m, pair in enumerate(grades) if m % 12 == k % 12} for k in range(12)
        }
        for place, name in enumerate(("anna", "ben"))
    }


@pytest.mark.parametrize(
    ("grades", "words"),
    [
        (_pairs(100, 0), "the judges agree: alpha_ordinal 1.00 over 100 documents is at least 0.80"),
        (_pairs(100, 7), "the judges agree in part: alpha_ordinal 0.7"),
        (_pairs(20, 20), "the judges do not agree enough: alpha_ordinal -0."),
        (_pairs(0, 4, 96), "But ac2 is 0.9"),
        ({"anna": {"q": {"a": 1}}, "ben": {"q": {"b": 1}}}, "no verdict: only 0 documents with grades of two judges"),
        ({"anna": {"q": {"a": 0}}, "ben": {"q": {"a": 4}}}, "no verdict: only 1 document with grades of two judges; 5"),
        (_pairs(0, 0, 9), "no verdict: alpha is undefined"),
    ],
)
def test_the_verdict_has_the_threshold_that_the_coefficient_reaches(grades: dict[str, object], words: str) -> None:
    report = gg.agreement(grades, scale="good-gain", intervals=True)
    assert words in report.verdict
    alpha = report.overall["alpha_ordinal"]
    if report.intervals is not None and alpha is not None and alpha < 1:
        low, high = report.intervals.filter(coefficient="alpha_ordinal").select("low", "high").row(0)
        thresholds = () if low is None else (("0.667", 0.667), ("0.8", 0.8))
        crossed = [text for text, threshold in thresholds if low < threshold <= high]
        assert all(text in report.verdict.partition("crosses")[2] for text in crossed)
        assert ("crosses" in report.verdict) == bool(crossed)


def test_judges_are_called_after_their_files(tmp_path: Path) -> None:
    people, model = tmp_path / "people.csv", tmp_path / "model.csv"
    frame_of(("q", "x", "anna@example.org", 1), ("q", "y", "ben@example.org", 0)).write_csv(people)
    frame_of(("q", "x", "m@prompt", 1), ("q", "y", "m@prompt", 1)).write_csv(model)
    shown = run_command("judge", people, model, "--scale", "binary", "--agreement").stdout
    blocks = [pl.read_csv(StringIO(text), separator="\t") for text in shown.split("\n\n")[1:3]]
    assert blocks[0]["judge"].to_list() == ["people 1", "people 2", "model"]
    assert "example.org" not in shown
    named = gg.agreement({"people": {"q": {"a": 1}}, "model": {"q": {"a": 0}}}, scale="binary")
    assert named.judges["judge"].to_list() == ["people", "model"]
    frames = [frame_of(("q", "x", name, 1)) for name in ("anna", "ben")]
    assert gg.agreement(frames, scale="binary").judges["judge"].to_list() == ["judge 1", "judge 2"]
