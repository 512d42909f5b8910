"""What must hold for any run: invariants of the ledger, and changes that change nothing."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.measures import MEASURES
from goodgain.measures.names import parse_measure, parse_measures
from tests.support.counts import how_many
from tests.support.oracle import QrelRow, RunRow
from tests.support.random_runs import Case, cases, shapes
from tests.support.tables import no_notices, qrels_frame, run_frame

NAMES = [
    *(name for name, measure in MEASURES.items() if measure.declaration.cutoff != "required"),
    *("CG@2", "AvgGain@1", "AvgGain@3", "SRE@2", "DRAG@4", "nDCGG@1", "IterationsForAllGoodResults(pool='retrieved')"),
]
any_case = shapes().flatmap(cases)
few = settings(deadline=None, max_examples=how_many(4, full=20))


def scores(run: list[RunRow], qrels: list[QrelRow], labels: str | None = None) -> dict[tuple[str, str], float]:
    with no_notices():
        judged = gg.read_qrels(qrels_frame(qrels), labels=labels)
        found = gg.evaluate(judged, run_frame(run), NAMES)
    return {(query_id, name): value for query_id, name, value in found.per_query.iter_rows()}


@few
@given(any_case)
def test_the_ledger_keeps_its_invariants(case: Case) -> None:
    with no_notices():
        qrels = gg.read_qrels(qrels_frame(case.qrels), labels=case.labels)
        ledger = gg.ledger(qrels, run_frame(case.run), measures="NumResults NumUnique NumDup CG")
    assert (ledger["R"] == ledger["UR"] + ledger["Dup"]).all()
    assert (ledger["GR"] <= ledger["UR"]).all()
    assert (ledger["Unjudged"] <= ledger["UR"]).all()
    assert ledger.select((pl.col("iteration") == pl.int_range(1, pl.len() + 1).over("query_id")).all()).item()
    judged = ledger.filter("judged")
    assert (judged["NumResults"] == judged["NumUnique"] + judged["NumDup"]).all()
    pool = qrels.largest.filter(pl.col("relevance") >= 2).group_by("query_id").agg(pool=pl.col("relevance").sum())
    gained = judged.group_by("query_id").agg(pl.col("G").sum()).join(pool, on="query_id", how="left").fill_null(0)
    assert (gained["G"] <= gained["pool"] + 1e-9).all()


@few
@given(any_case)
def test_renaming_documents_and_queries_changes_nothing(case: Case) -> None:
    def renamed(rows: list) -> list:
        return [
            row._replace(
                query_id=f"é {row.query_id}", doc_id=row.doc_id if row.doc_id == "-" else f"{row.doc_id[::-1]}😀"
            )
            for row in rows
        ]

    before = scores(case.run, case.qrels, case.labels)
    after = scores(renamed(case.run), renamed(case.qrels), case.labels)
    assert after == pytest.approx({(f"é {query}", name): value for (query, name), value in before.items()}, abs=1e-12)


@pytest.mark.slow
@few
@given(any_case, st.randoms())
def test_the_order_of_rows_changes_nothing_where_ranks_are_distinct(case: Case, random: Random) -> None:
    shuffled = random.sample(case.run, len(case.run)), random.sample(case.qrels, len(case.qrels))
    assert scores(*shuffled, case.labels) == pytest.approx(scores(case.run, case.qrels, case.labels), abs=1e-12)
    with no_notices():
        one, other = (
            gg.flatten(run_frame(run)).select("query_id", "doc_id", "score") for run in (case.run, shuffled[0])
        )
    key = ["query_id", "doc_id"]
    assert_frame_equal(one.sort(key), other.sort(key))


@few
@given(shapes(words=False).flatmap(cases))
def test_an_appended_empty_iteration_changes_no_earlier_value(case: Case) -> None:
    ends: dict[str, int] = {}
    for row in case.run:
        ends[row.query_id] = max(ends.get(row.query_id, 0), int(row.iteration))
    longer = [*case.run, *(RunRow(query, end + 1, "-", 0) for query, end in ends.items())]
    with no_notices():
        qrels = gg.read_qrels(qrels_frame(case.qrels), labels=case.labels)
        names = [measure.NAME for measure in MEASURES.values()]
        before = gg.ledger(qrels, run_frame(case.run), measures=names)
        after = gg.ledger(qrels, run_frame(longer), measures=names)
    joined = after.join(before.select("query_id", "iteration"), on=["query_id", "iteration"], how="semi")
    assert_frame_equal(joined, before, abs_tol=1e-12)
    assert after.height == before.height + len(ends)


@few
@given(any_case)
def test_one_iteration_without_repeats_has_no_redundancy_and_all_its_good_gains(case: Case) -> None:
    firsts = {(row.query_id, row.doc_id): row._replace(iteration=1) for row in case.run}
    labels = {(row.query_id, row.doc_id): float(row.relevance) for row in case.qrels}
    found = scores(list(firsts.values()), [QrelRow(*key[:1], "0", key[1], label) for key, label in labels.items()])
    for query in {query for query, _ in labels}:
        good = [label for key, label in labels.items() if key[0] == query and key in firsts and label >= 2]
        assert found[query, "SRR"] == 0
        assert found[query, "CG"] == pytest.approx(sum(good))


@pytest.mark.slow
@few
@given(any_case)
def test_splitting_a_run_by_query_gives_the_same_values(case: Case) -> None:
    together = scores(case.run, case.qrels, case.labels)
    for query in {row.query_id for row in case.qrels}:
        alone = scores(
            [row for row in case.run if row.query_id == query],
            [row for row in case.qrels if row.query_id == query],
            case.labels,
        )
        assert alone == pytest.approx({key: value for key, value in together.items() if key[0] == query}, abs=1e-12)


@few
@given(any_case)
def test_values_stay_within_their_bounds(case: Case) -> None:
    largest = max(float(row.relevance) for row in case.qrels)
    for (_, name), value in scores(case.run, case.qrels, case.labels).items():
        if value is None:
            assert parse_measure(name).declaration.null_if  # type: ignore[attr-defined]  # ours
            continue
        low, high = parse_measure(name).declaration.bounds  # type: ignore[attr-defined]  # ours
        assert value >= float(low) - 1e-12
        assert (
            value
            <= {"": float("inf"), "max gain": max(0.0, largest)}.get(
                high, float(high or 0) if high != "max gain" else 0
            )
            + 1e-9
        )


numbers = st.one_of(st.integers(1, 9), st.sampled_from([0.5, 1.8, 2.25, 1e-05, 1e16]))
names = st.one_of(
    st.builds(lambda name, rel: f"{name}(rel={rel!r})", st.sampled_from(["CG", "SRE", "nDCGG", "NumGood"]), numbers),
    st.builds(
        lambda name, at: f"{name}@{at}", st.sampled_from(["CG", "AvgGain", "NumDup", "SRR"]), st.integers(1, 10**6)
    ),
    st.builds(
        lambda rel, pool: f"IterationsForAllGoodResults(rel={rel!r}, pool={pool!r})",
        numbers,
        st.sampled_from(["judged", "retrieved"]),
    ),
    st.sampled_from(
        ["nDCG@10", "AP(rel=2)", "nDCG(gains={1:1,2:3,3:7})@5", "P(rel=2,judged_only=True)@3", "RBP(p=0.9,rel=1)"]
    ),
)


@settings(deadline=None, max_examples=how_many(15, full=100))
@given(st.lists(names, min_size=1, max_size=4))
def test_parsing_what_a_measure_prints_gives_the_measure(given_names: list[str]) -> None:
    measures = [parse_measure(name) for name in given_names]
    assert [parse_measure(str(measure)) for measure in measures] == measures
    assert parse_measures("  ".join(given_names)) == list(dict.fromkeys(measures))
