"""The oracle against numbers worked by hand: it judges the package, so it must itself be right."""

from __future__ import annotations

import json
from fractions import Fraction
from math import log2
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counts import how_many
from tests.support.oracle import NAMES, Line, Pool, QrelRow, RunRow, count, mean, per_query, value, w
from tests.support.oracle_flattening import classic_labels, differing_labels, flatten
from tests.support.random_runs import (
    Shape,
    cases,
    make_case,
    qrels_text,
    read_qrels_text,
    read_run_text,
    run_text,
    shapes,
)


def steps(*docs_by_iteration: str, query: str = "q", numbers: list[int | str] | None = None) -> list[RunRow]:
    """`steps("a b", "", "c")`: three iterations; the second one got nothing."""
    rows = []
    for place, docs in enumerate(docs_by_iteration):
        number = numbers[place] if numbers else place + 1
        rows += [RunRow(query, number, doc, rank, -rank) for rank, doc in enumerate(docs.split() or ["-"], 1)]
    return rows


def judged(query: str = "q", **gains: float) -> list[QrelRow]:
    return [QrelRow(query, "0", doc, gain) for doc, gain in gains.items()]


#: A run of the query q (an iteration's documents, blanks between), its qrels (labels of documents, or rows), and what follows.
CASES = json.loads(Path(__file__).with_name("oracle_cases.json").read_text("utf-8"))
GUIDELINE_RUN = steps("d1 d2", "d3 d4 d1", "d5 d1 d3")
GUIDELINE_QRELS = judged(d1=3, d2=2, d3=4, d4=1, d5=2)
GUIDELINE = """
i | R | UR | Dup | GR | G | AvgGain | CG | RG | DCGG | DRG | RAG | DRAG | SRE | SRR
1 | 2 | 2 | 0 | 2 | 5 | 2.5 | 5 | 5 | 5 | 5 | 2.5 | 2.5 | 1 | 0
2 | 3 | 2 | 1 | 1 | 4 | 1.3333 | 9 | 4.5 | 7.5237 | 3.7619 | 1.9167 | 1.6706 | 0.6 | 0.2
3 | 3 | 1 | 2 | 1 | 2 | 0.6667 | 11 | 3.6667 | 8.5237 | 2.8412 | 1.5 | 1.2249 | 0.5 | 0.375
"""


def table_cells() -> list[tuple[int, str, float]]:
    head, *rows = [[cell.strip() for cell in line.split("|")] for line in GUIDELINE.strip().splitlines()]
    return [(int(row[0]), name, float(cell)) for row in rows for name, cell in zip(head[1:], row[1:], strict=True)]


@pytest.mark.parametrize(("i", "column", "expected"), table_cells())
def test_the_three_iterations_of_the_guideline(i: int, column: str, expected: float) -> None:
    tables = count(GUIDELINE_RUN, GUIDELINE_QRELS)
    line = tables.at("q", i)
    got = getattr(line, column) if column in Line._fields else value(tables, "q", column, at=i)
    assert round(float(got), 4) == expected


def test_w_is_exact_at_powers_of_two_and_close_elsewhere() -> None:
    assert [w(1), w(3), w(7)] == [1, Fraction(1, 2), Fraction(1, 3)]
    for k in range(1, 200):
        assert float(w(k)) == pytest.approx(1 / log2(k + 1), rel=1e-15)


def test_stopping_early_wins_when_each_is_taken_at_its_own_n() -> None:
    short = [row for row in GUIDELINE_RUN if int(row.iteration) <= 2]
    for name in ("RG", "DRG", "RAG", "DRAG", "SRE"):
        assert per_query(name, short, GUIDELINE_QRELS)["q"] > per_query(name, GUIDELINE_RUN, GUIDELINE_QRELS)["q"]
    assert per_query("SRR", short, GUIDELINE_QRELS)["q"] < per_query("SRR", GUIDELINE_RUN, GUIDELINE_QRELS)["q"]


def test_discounted_gains_after_the_last_iteration_are_exact() -> None:
    for measure, expected in (
        ("DCGG", 5 + w(2) * 4 + 1),
        ("DCGG@5", 6 + 4 * w(2)),
        ("DRG@5", (6 + 4 * w(2)) / 5),
        ("DRAG@6", (Fraction(5, 2) + Fraction(4, 3) * w(2) + Fraction(1, 3)) / 6),
    ):
        assert per_query(measure, GUIDELINE_RUN, GUIDELINE_QRELS) == {"q": expected}


@pytest.mark.each
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_a_case_worked_by_hand(case: dict[str, Any]) -> None:
    run, options = steps(*case["run"], numbers=case.get("numbers")), case.get("options", {})
    given = case["qrels"]
    qrels = judged(**given) if isinstance(given, dict) else [QrelRow("q", *row) for row in given]
    if "error" in case:
        with pytest.raises(ValueError, match=case["error"]):
            [per_query(measure, run, qrels, **options) for measure in case.get("values", ["CG"])]
        return

    tables = count(run, qrels, **options)
    for i, line in case.get("ledger", {}).items():
        assert tables.ledger["q", int(i)] == Line(*line)
    assert tables.pools["q"] == Pool(*case.get("pool", tables.pools["q"]))

    for measure, number in case.get("values", {}).items():
        assert per_query(measure, run, qrels, **options) == {"q": Fraction(number)}
    for order, ranking in case.get("flattened", {}).items():
        assert flatten(run, order)["q"] == [tuple(row) for row in ranking]
    if "classic labels" in case:
        assert classic_labels(run, qrels, labels="iteration") == {"q": case["classic labels"]}
        assert classic_labels([], qrels, labels="iteration") == {"q": case["classic labels without a run"]}
        assert differing_labels(qrels) == case["differing labels"]


#: Measures that have no value without an iteration, or another one than 0 for a query that was not searched.
NOT_0 = {"AvgGain", "IterationsForAllGoodResults", "NoProgress", "OverSearch"}


def test_a_judged_query_without_a_search_is_0_and_stays_in_the_mean() -> None:
    qrels = GUIDELINE_QRELS + judged("silent", x=3) + judged("nothing_good", x=1)
    for name in sorted(set(NAMES) - NOT_0):
        said = f"{name} is not 0: say so in docs/measures.md under Means, and add it to NOT_0 in tests/support/test_oracle.py"
        assert per_query(name, GUIDELINE_RUN, qrels)["silent"] == 0, said
    assert mean(per_query("CG@3", GUIDELINE_RUN, qrels)) == Fraction(11, 3)
    everything = "IterationsForAllGoodResults"
    assert per_query(everything, GUIDELINE_RUN, qrels) == {"q": 3, "silent": 100, "nothing_good": 0}
    retrieved = f"{everything}(pool='retrieved')"
    assert per_query(retrieved, GUIDELINE_RUN, qrels) == {"q": 3, "silent": 100, "nothing_good": 100}


def test_a_query_without_judgments_has_a_ledger_and_no_value() -> None:
    run = GUIDELINE_RUN + steps("a a", query="unknown")
    assert count(run, GUIDELINE_QRELS).ledger["unknown", 1] == Line(2, 1, 1, 0, Fraction(0), 1)
    assert set(per_query("CG", run, GUIDELINE_QRELS)) == {"q"}


@pytest.mark.parametrize("pool", ["judged", "retrieved"])
def test_more_than_100_iterations_count_as_100(pool: str) -> None:
    def found_at(n: int) -> Fraction:
        run = steps(*[""] * (n - 1), "a")
        return per_query(f"IterationsForAllGoodResults(pool='{pool}')", run, judged(a=2))["q"]

    assert [found_at(n) for n in (1, 99, 100, 101, 130)] == [1, 99, 100, 100, 100]


def test_a_dash_beside_results_changes_nothing_whatever_its_rank_and_score() -> None:
    run, qrels = steps("a b", "c"), judged(a=2, c=2)
    dashes = [RunRow("q", 1, "-", 1, 99.0), RunRow("q", 2, None, 7, 0.0)]
    assert count(run + dashes, qrels) == count(run, qrels)
    assert flatten(run + dashes) == flatten(run)


def test_numbers_are_made_dense_per_query_from_any_start() -> None:
    qrels = judged(a=2, b=3, c=4)
    for numbers in ([1, 4, 9], [0, 1, 2], [5, 6, 70]):
        assert count(steps("a", "b", "c", numbers=numbers), qrels) == count(steps("a", "b", "c"), qrels)


@pytest.mark.parametrize("order", ["seen", "interleaved", "last"])
def test_file_scores_are_kept_for_one_iteration_without_repeats_alone(order: str) -> None:
    classic = [RunRow("q", "Q0", "a", 1, 0.25), RunRow("q", "Q0", "b", 2, 7.5), RunRow("q", "Q0", "-", 0, 0.0)]
    assert flatten(classic, order)["q"] == [("a", 0.25), ("b", 7.5)]
    assert flatten([*classic, RunRow("q", "Q0", "a", 3, 0.1)], order)["q"] == [("a", 2), ("b", 1)]
    numbered = [row._replace(iteration=1) for row in classic]
    assert flatten([*numbered, RunRow("q", 2, "-", 0)], "seen")["q"] == [("a", 2), ("b", 1)]


@settings(max_examples=how_many(15, full=50), deadline=None)
@given(st.data())
def test_invariants_and_independence_of_row_order(data: st.DataObject) -> None:
    case = data.draw(shapes().flatmap(cases))
    tables = count(case.run, case.qrels, labels=case.labels)
    assert tables == count(case.run[::-1], case.qrels[::-1], labels=case.labels)
    for line in tables.ledger.values():
        assert line.UR + line.Dup == line.R
        assert line.GR + line.Unjudged <= line.UR
    for query, pool in tables.pools.items():
        gained = [tables.at(query, k) for k in range(1, pool.N + 1)]
        assert sum(line.G for line in gained) <= pool.GainPool
        assert sum(line.GR for line in gained) <= pool.GoodPool


@settings(max_examples=how_many(15, full=50), deadline=None)
@given(st.data())
def test_cases_survive_being_written_and_read(data: st.DataObject) -> None:
    case = data.draw(shapes().flatmap(cases))
    run, qrels = read_run_text(run_text(case.run)), read_qrels_text(qrels_text(case.qrels))
    assert count(run, qrels, labels=case.labels) == count(case.run, case.qrels, labels=case.labels)


def test_a_seed_makes_the_same_case_and_the_seeds_cover_what_they_promise() -> None:
    assert make_case(Random(7)) == make_case(Random(7))
    many = [make_case(Random(seed), Shape(by_iteration=seed % 2 == 0)) for seed in range(200)]
    tables = [count(case.run, case.qrels, labels=case.labels) for case in many]
    lines = [line for t in tables for line in t.ledger.values()]

    assert any(line.Dup and line.UR for line in lines)
    assert any(line.R == 0 for line in lines)
    assert any(line.Unjudged for line in lines)
    assert any(line.G.denominator > 1 for line in lines)
    assert any(pool.N == 0 for t in tables for pool in t.pools.values())
    assert any({q for q, _ in t.ledger} - set(t.pools) for t in tables)
    assert any(row.iteration == "Q0" for case in many for row in case.run)
    assert any(row.iteration == 0 for case in many for row in case.run)
    assert any(differing_labels(case.qrels) for case in many)
