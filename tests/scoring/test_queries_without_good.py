"""Queries without a good document: `no_good="keep"` counts each measure's own value, `absent` leaves them out."""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice
from tests.support.notices import collect_notices
from tests.support.random_runs import Shape, make_case, qrels_text, run_text

MEASURES = "nCG nCG(rel=3) nDCG@5 P(rel=2)@5 RR SRR Judged@5 AllGood IterationsForAllGoodResults NoProgress NumIter"
#: Measure -> its threshold; a measure that looks for no good document has none.
THRESHOLDS = {
    "nCG": 2, "nCG(rel=3)": 3, "nDCG@5": 0.1, "P(rel=2)@5": 2, "RR": 1, "SRR": None, "Judged@5": None, "AllGood": 2,
    "IterationsForAllGoodResults": 2, "NoProgress": 2, "NumIter": None,
}  # fmt: skip


def call(function: Any, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)
        return function(*args, **options)


def make_files(tmp_path: Any, seed: int) -> tuple[str, str]:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "a.run"
    random = Random(seed)
    case = make_case(random, Shape(queries=12, words=False))
    while len({row[0] for row in case.qrels} & {row[0] for row in case.run}) < 4:
        case = make_case(random, Shape(queries=12, words=False))
    qrels.write_text(qrels_text(case.qrels))
    run.write_text(run_text(case.run))
    return str(qrels), str(run)


@pytest.mark.parametrize("replicates", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_absent_leaves_out_the_queries_without_a_label_from_the_measures_threshold(
    tmp_path: Any, seed: int, replicates: int
) -> None:
    qrels, run = make_files(tmp_path, seed)
    runs = run if replicates == 1 else [run, run]
    kept = call(gg.evaluate, qrels, runs, MEASURES).per_query
    absent = call(gg.evaluate, qrels, runs, MEASURES, no_good="absent")
    labels = gg.read_qrels(qrels).frame.group_by("query_id").agg(pl.col("relevance").max())
    best = dict(labels.iter_rows())
    left_out = 0

    for query_id, measure, value in kept.iter_rows():
        threshold = THRESHOLDS[measure]
        lacks_good = threshold is not None and best[query_id] < threshold
        left_out += lacks_good
        (found,) = absent.per_query.filter(query_id=query_id, measure=measure)["value"]
        assert found == (None if lacks_good else value), (query_id, measure)

    assert left_out
    for measure, mean in absent.mean().items():
        values = absent.per_query.filter(measure=measure)["value"].drop_nulls()
        assert mean == (None if values.is_empty() else pytest.approx(values.mean()))
    assert absent.signature["no_good"] == "absent"


def make_systems(without_good: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, dict[str, float]]]]:
    """12 queries, some of them without a good document. `new` finds the good document of each other query."""
    qrels = {f"q{k:02}": {"a": 0 if k < without_good else 3, "b": 0} for k in range(12)}
    old = {query: {"b": 1.0} for query in qrels}
    new = {query: {"a": 1.0} for query in qrels}
    return qrels, {"old": old, "new": new}


def test_compare_tests_the_other_queries_and_says_if_the_choice_changes_a_verdict() -> None:
    """Without a good document both systems have RR 0: such queries are ties, and ties do not change the signs' p."""
    qrels, systems = make_systems(7)
    with collect_notices() as notices:
        comparison = gg.compare(qrels, systems, "RR IterationsForAllGoodResults", alpha=0.1)
    assert not any("without a good document" in str(notice) for notice in notices)
    absent = call(gg.compare, qrels, systems, "RR", alpha=0.1, no_good="absent")
    assert comparison.pairs["queries"].to_list() == [12, 12] and absent.pairs["queries"].to_list() == [5]
    assert comparison.pairs["difference"][0] == pytest.approx(5 / 12) and absent.pairs["difference"][0] == 1
    assert absent.signature["no_good"] == "absent" and "leaves out" not in " ".join(absent.notes)


@pytest.mark.parametrize(
    ("no_good", "sentence"),
    [
        (
            "keep",
            "Fallout@1 of new against old is unclear, without them better. no_good='absent' leaves such queries out.",
        ),
        ("absent", "Fallout@1 of new against old is better, with them unclear. no_good='keep' counts such queries."),
    ],
)
def test_a_sentence_names_the_verdict_of_the_other_choice(no_good: str, sentence: str) -> None:
    """`new` has less Fallout in the 8 queries with a good document, and more in the 4 others."""
    qrels = {f"q{k}": {"a": 2, "b": 0} for k in range(8)} | {f"r{k}": {"x": 0, "y": 0} for k in range(4)}
    old = {query: {"b": 1.0} if query.startswith("q") else {"z": 1.0} for query in qrels}
    new = {query: {"a": 1.0} if query.startswith("q") else {"x": 1.0} for query in qrels}
    found = call(gg.compare, qrels, {"old": old, "new": new}, "Fallout@1 RR", no_good=no_good)
    assert f"Verdicts that depend on queries without a good document: {sentence}" in found.notes


def test_a_baseline_file_made_with_the_other_choice_is_refused(tmp_path: Any) -> None:
    qrels, systems = make_systems(3)
    path = tmp_path / "old.jsonl"
    call(gg.compare, qrels, systems, "RR", no_good="absent").write_baseline(path, "old")
    new = {"new": systems["new"]}
    with pytest.raises(gg.InputError, match="no_good='absent' instead of no_good='keep'"):
        call(gg.compare, qrels, new, "RR", baseline_file=path)
    assert call(gg.compare, qrels, new, "RR", baseline_file=path, no_good="absent").pairs["queries"].to_list() == [9]


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({}, "0, the best value, in 1 query without good documents, and 100, the worst, in 1 query."),
        ({"missing": "absent"}, "0, the best value, in 1 query without good documents."),
        ({"no_good": "absent"}, "100, the worst, in 1 query."),
        ({"missing": "absent", "no_good": "absent"}, None),
    ],
)
def test_a_notice_on_0_and_100_counts_only_queries_of_the_mean(options: dict[str, str], ends: str | None) -> None:
    qrels = {"found": {"a": 2}, "lacking": {"a": 2}, "none": {"a": 1}}
    run = {"found": {"a": 1.0}, "none": {"a": 1.0}}
    with collect_notices() as notices:
        gg.evaluate(qrels, run, "IterationsForAllGoodResults", **options)
    told = [str(notice) for notice in notices if str(notice).startswith("IterationsForAllGoodResults")]
    assert [notice.split(" Report")[0] for notice in told] == (
        [f"IterationsForAllGoodResults is {ends}"] if ends else []
    )
