"""If only some queries are judged, a comparison says how many, what they can show, and how many more a difference takes."""

from __future__ import annotations

import math
import re
from random import Random

import numpy as np
import pytest
from scipy import stats

import goodgain as gg
from tests.support.counts import how_many

quiet = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
Runs = dict[str, dict[str, dict[str, float]]]


def make_case(random: Random, queries: int, judged: int) -> tuple[dict[str, dict[str, int]], Runs]:
    """Two systems that find each of four documents with different chances. The first `judged` queries have labels."""
    ids = [f"q{number:03}" for number in range(queries)]
    runs: Runs = {}
    for system, chance in (("old", 0.4), ("new", 0.6)):
        runs[system] = {query: {d: 1.0 for d in "abcd" if random.random() < chance} | {"z": 0.5} for query in ids}
    return {query: dict.fromkeys("abcd", 2) for query in ids[:judged]}, runs


def find_power(difference: float, spread: float, queries: int, alpha: float) -> float:
    """The power of the two-sided t-test, as SciPy's noncentral t distribution has it."""
    freedom = queries - 1
    limit = stats.t.ppf(1 - alpha / 2, freedom)
    shift = difference / spread * math.sqrt(queries)
    return float(stats.nct.sf(limit, freedom, shift) + stats.nct.cdf(-limit, freedom, shift))


def take_notes(found: gg.Comparison) -> list[str]:
    return [note for note in found.notes if "can show" in note]


@quiet
def test_the_numbers_are_those_of_the_power_of_the_t_test() -> None:
    random = Random(1)
    for _ in range(how_many(4, full=25)):
        judged = random.randint(8, 30)
        queries = judged + random.randint(1, 800)
        qrels, runs = make_case(random, queries, judged)
        detect = random.choice([None, 0.1, 0.2])
        comparison = gg.compare(qrels, runs, "nCG", baseline="old", detect=detect)
        assert any(f"{judged} of {queries} queries judged" in note for note in comparison.notes)
        assert any(
            "p holds only for a number of queries that was fixed before judging" in note for note in comparison.notes
        )

        values = comparison.values.pivot("system", index="query_id", values="value")
        spread = float(np.std((values["new"] - values["old"]).to_numpy(), ddof=1))
        (note,) = take_notes(comparison)
        match = re.fullmatch(
            r"(\d+) queries can show a difference of ([\d.]+) or more in nCG \(power 0\.8\); (.*)\.", note
        )
        assert match is not None, note
        assert int(match[1]) == judged
        assert find_power(float(match[2]), spread, judged, 0.05) == pytest.approx(0.8, abs=0.005)

        asked = 0.05 if detect is None else detect
        more = re.search(r"judge (\d+) more", match[3])
        if more is None:
            assert match[3] == f"they suffice for a difference of {asked:g}"
            assert find_power(asked, spread, judged, 0.05) >= 0.8
            continue
        number = int(more[1])
        assert find_power(asked, spread, judged + number, 0.05) >= 0.8
        assert find_power(asked, spread, judged + number - 1, 0.05) < 0.8
        assert (f"but only {queries - judged:,} are left" in match[3]) == (number > queries - judged)


@quiet
def test_without_detect_only_shares_are_asked_about() -> None:
    """A difference of .05 means nothing for a count of results."""
    qrels, runs = make_case(Random(2), 40, 12)
    notes = take_notes(gg.compare(qrels, runs, "CG NumResults nCG", baseline="old"))
    assert [re.findall(r"in (\w+) \(power", note) for note in notes] == [["nCG"]]
    notes = take_notes(gg.compare(qrels, runs, "CG NumResults nCG", baseline="old", detect=0.5))
    assert [re.findall(r"in (\w+) \(power", note) for note in notes] == [["CG"], ["NumResults"], ["nCG"]]


@quiet
def test_counts_alone_have_the_smallest_difference_and_no_advice() -> None:
    qrels, runs = make_case(Random(2), 40, 12)
    notes = take_notes(gg.compare(qrels, runs, "CG NumResults", baseline="old"))
    assert len(notes) == 2
    assert all(
        re.fullmatch(r"12 queries can show a difference of [\d.]+ or more in \w+ \(power 0\.8\)\.", n) for n in notes
    )


@quiet
def test_few_judged_queries_can_show_nothing() -> None:
    qrels, runs = make_case(Random(3), 20, 4)
    (note,) = take_notes(gg.compare(qrels, runs, "nCG", baseline="old"))
    assert note.startswith("4 queries can show no difference in nCG")


@quiet
def test_with_three_systems_each_sentence_names_its_pair() -> None:
    qrels, runs = make_case(Random(4), 30, 12)
    runs["mid"] = runs["old"] | {"q000": {"a": 1.0}}
    notes = take_notes(gg.compare(qrels, runs, "nCG", baseline="old"))
    assert [re.findall(r"in nCG, (\w+ against \w+) \(power", note) for note in notes] == [
        ["new against old"],
        ["mid against old"],
    ]


@quiet
def test_nothing_is_said_if_all_queries_are_judged() -> None:
    qrels, runs = make_case(Random(5), 12, 12)
    comparison = gg.compare(qrels, runs, "nCG", baseline="old")
    assert not any("queries judged" in note or "fixed before judging" in note for note in comparison.notes)
    assert not any("more quer" in note for note in comparison.notes)
