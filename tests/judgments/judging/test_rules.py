"""Rules of aggregation, maps and scales, on random grades against a plain loop, and what each error says."""

from __future__ import annotations

import json
import random
import statistics
import time
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

import goodgain as gg
from goodgain.judgments.scales import find_scale
from tests.support.counts import how_many
from tests.support.tables import in_one_search

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))

Votes = dict[tuple[str, str], list[float | None]]


def frame_of(*rows: tuple[Any, ...]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "judge", "grade"], orient="row", strict=False)


def random_votes(seed: int, top: int) -> tuple[pl.DataFrame, Votes]:
    """Grades 0..top of up to five judges, some null, in random order; and those of each document in that order."""
    chance = random.Random(seed)
    keys = [(f"q{q}", f"d{d}", f"j{j}") for q in range(3) for d in range(8) for j in range(5) if chance.random() < 0.7]
    chance.shuffle(keys)
    rows = [(*key, None if chance.random() < 0.3 else chance.randint(0, top)) for key in keys]
    votes: Votes = {}
    for query_id, doc_id, _, grade in rows:
        votes.setdefault((query_id, doc_id), []).append(grade)
    return frame_of(*rows), votes


def by_hand(how: str, grades: list[float | None]) -> float | None:
    given = [grade for grade in grades if grade is not None]
    if not given:
        return None
    if how == "majority":
        ones, zeros = given.count(1), given.count(0)
        return None if ones == zeros else float(ones > zeros)
    rules = {
        "mean": statistics.fmean,
        "median": statistics.median,
        "max": max,
        "min": min,
        "first": lambda all_: all_[0],
    }
    return float(rules[how](given))


@pytest.mark.parametrize("how", ["majority", "mean", "median", "max", "min", "first"])
def test_each_rule_equals_a_plain_loop(how: str) -> None:
    for seed in range(how_many(5, full=60)):
        frame, votes = random_votes(seed, top=1 if how == "majority" else 4)
        labels = gg.aggregate(frame, how=how, scale="binary" if how == "majority" else "0..4")
        assert [row[:2] for row in labels.iter_rows()] == list(votes)
        for query_id, doc_id, label, judges, nulls, tie in labels.iter_rows():
            grades = votes[query_id, doc_id]
            given = [grade for grade in grades if grade is not None]
            assert label == by_hand(how, grades)
            assert (judges, nulls) == (len(given), grades.count(None))
            assert tie == (len(statistics.multimode(given)) > 1)


def test_a_map_may_be_a_dict() -> None:
    votes = frame_of(("q", "d", "a", 2), ("q", "d", "b", 3))
    labels = gg.aggregate(votes, scale="graded", map={0: 0, 1: 1, 2: 1, 3: 1}, map_first=True)
    assert labels["relevance"].to_list() == [1]
    for call in (
        lambda: gg.aggregate(votes, map={0: 0, 2: 1, 3: 1}),
        lambda: gg.rescale({"q": {"d": 2.5}}, {2: 1, 3: 1}),
    ):
        with pytest.raises(gg.InputError, match=r"2\.5 is not in the map .*thresholds.*map_first=True"):
            call()


@pytest.mark.parametrize(("text", "value", "label"), CASES["maps"])
def test_a_map_is_a_table_or_thresholds_of_which_the_highest_reached_counts(
    text: str, value: float, label: float
) -> None:
    assert gg.rescale({"q": {"d": value}}, text).frame["relevance"].to_list() == [label]


@pytest.mark.each
@pytest.mark.parametrize(("rows", "options", "says"), CASES["errors of aggregate"])
def test_an_error_says_what_where_and_the_remedy(rows: list[Any], options: dict[str, Any], says: str) -> None:
    with pytest.raises(gg.InputError, match=says):
        gg.aggregate(frame_of(*rows), **options)


def test_a_frame_that_mixes_types_in_a_column_is_a_clear_error() -> None:
    mixed = pd.DataFrame({"query_id": [1, "b"], "doc_id": ["d", "e"], "grade": [1, 2]})
    with pytest.raises(gg.InputError, match="values mix types in a column"):
        gg.aggregate(mixed)


def test_first_refuses_rows_without_an_order() -> None:
    frame = frame_of(("q", "d", "a", 1), ("q", "d", "b", 2))  # DuckDB reads it by name
    relation = duckdb.sql("SELECT * FROM frame")
    with pytest.raises(gg.InputError, match="rows of a database have no order"):
        gg.aggregate(relation, how="first")
    assert gg.aggregate(relation, how="mean")["relevance"].to_list() == [1.5]
    assert gg.aggregate(frame.lazy(), how="first")["relevance"].to_list() == [1]


def test_judges_are_named_by_the_dict_or_by_the_files(tmp_path: Path) -> None:
    for folder, label in (("a", 1), ("b", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.qrels").write_text(f"q 0 d {label}\n")
    files = [tmp_path / folder / "same.qrels" for folder in "ab"]
    assert gg.aggregate(files)["relevance"].to_list() == [2]  # two files of one name are two judges
    agreement = gg.agreement({"anna": files[0], "ben": {"q": {"d": 3}}}, scale="graded", names=True)
    assert agreement.judges["judge"].to_list() == ["anna", "ben"]
    assert gg.agreement(files, scale="graded").judges["judge"].to_list() == [*map(str, files)]


@pytest.mark.slow
def test_a_million_grades_of_three_judges_take_under_five_seconds() -> None:
    """Seconds of all threads together, which do not depend on what else the machine does."""
    number = pl.int_range(333_334, eager=True)
    documents = pl.DataFrame({"query_id": (number // 100).cast(pl.String), "doc_id": number.cast(pl.String)})
    grades = [documents.with_columns(judge=pl.lit(f"j{k}"), grade=number.hash(k) % 4) for k in range(3)]
    start = time.process_time()
    labels = gg.aggregate(pl.concat(grades), scale="graded")
    assert time.process_time() - start < 5
    assert labels.height == 333_334
    assert labels.get_column("n_judges").sum() == 1_000_002


def test_rescaled_qrels_with_subtopics_keep_a_label_for_each_subtopic_and_one_for_each_document() -> None:
    rows = [("q", "1", "a", 2.0), ("q", "2", "a", 7.0), ("q", "1", "b", 8.0), ("q", "3", "c", 1.0)]
    labels = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "relevance"], orient="row")
    found = gg.rescale(gg.read_qrels(labels, labels="subtopic"), ">=7 -> 2")
    assert found.frame.select("doc_id", "relevance").sort("doc_id").rows() == [("a", 2), ("b", 2), ("c", 0)]
    run = {"q": {"a": 1.0}}
    scores = gg.evaluate(found, in_one_search(run), "SubtopicRecall CG nCG").mean()
    assert scores == {"SubtopicRecall": 1 / 2, "CG": 2.0, "nCG": 1 / 2}


@pytest.mark.parametrize(("scale", "grades"), CASES["scales"])
@pytest.mark.each
def test_a_scale_of_ones_own_has_its_grades_in_order(scale: Any, grades: list[float]) -> None:
    assert find_scale(scale).grades == tuple(grades)


@pytest.mark.parametrize("scale", CASES["no scales"])
@pytest.mark.each
def test_one_grade_is_not_a_scale(scale: Any) -> None:
    with pytest.raises(gg.InputError, match=r"is not a scale of two or more grades\. Write "):
        find_scale(scale)
