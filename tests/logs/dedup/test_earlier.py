"""Joining new results to the documents of earlier ones: these stay as they are, and nobody is counted twice."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.errors import InputError
from goodgain.formats.results import write_results
from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.maker import MAKERS, make
from tests.logs.dedup.test_order import _RESULTS, _result
from tests.logs.dedup.writing import frame, result
from tests.support.counts import how_many


def _known(*rows: dict[str, object]) -> pl.DataFrame:
    """Results that have their documents."""
    found: pl.DataFrame = deduplicate(frame(list(rows))).frame
    return found


def test_earlier_results_may_be_a_file_and_need_their_documents(tmp_path: Path) -> None:
    known = _known(result(url="https://example.org/a", ids={"file_id": "F1"}))
    new = frame([result(url="http://example.org/a")])
    for name in ("known.jsonl", "known.parquet"):
        write_results(known, tmp_path / name)
        deduplication = deduplicate(new, earlier=tmp_path / name)
        assert deduplication.frame["document"].to_list() == known["document"].to_list()

    with pytest.raises(InputError, match=r"lack `query_id` or `document`.*convert their logs again"):
        deduplicate(new, earlier=known.drop("document"))
    with pytest.raises(InputError, match="the earlier results are a int; give a data frame or the path of a file"):
        deduplicate(new, earlier=5)
    with pytest.raises(InputError, match=r"the earlier results have List.* in the column rank: give texts or numbers"):
        deduplicate(new, earlier=known.with_columns(rank=pl.concat_list("rank")))
    with pytest.raises(InputError, match=r"the results have Struct.* in the column query_id: give texts or numbers"):
        deduplicate(new.with_columns(query_id=pl.struct("query_id")))


def test_iterations_may_be_categories() -> None:
    rows = frame([result(url="https://example.org/a"), result(url="http://www.example.org/a/")])
    deduplication = deduplicate(rows.with_columns(pl.col("iteration").cast(pl.String).cast(pl.Categorical)))
    assert deduplication.frame["document"].n_unique() == 1


# Joint and sequential deduplication


def _partition(results: pl.DataFrame) -> set[frozenset[int]]:
    """The documents, each as the set of its calls."""
    return {frozenset(calls) for calls in results.group_by("query_id", "document").agg("call")["call"].to_list()}


def _compare(results: pl.DataFrame, is_new: list[bool]) -> int:
    """Deduplicate results at once and in two parts, hold them equal if no bridge is counted, and return the bridges."""
    results = results.with_columns(call=pl.int_range(pl.len()), new=pl.Series(is_new, dtype=pl.Boolean))
    first = deduplicate(results.filter(~pl.col("new"))).frame
    deduplication = deduplicate(results.filter("new"), earlier=first)
    both = pl.concat([part.select("query_id", "call", "document") for part in (first, deduplication.frame)])
    together = _partition(deduplicate(results).frame)
    if deduplication.summary.bridges == 0:
        assert _partition(both) == together
    else:
        assert _partition(both) != together, "a bridge is counted only where all results together give other documents"
    names = dict(first.select("call", "document").iter_rows())
    assert all(names[call] == name for call, name in both.select("call", "document").iter_rows() if call in names)
    return deduplication.summary.bridges


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")  # of bridges, which are counted here
@pytest.mark.parametrize("kind", MAKERS)
def test_joint_equals_sequential_wherever_no_bridge_is_counted(kind: str) -> None:
    bridges = []
    for seed in range(how_many(1, full=8)):
        rng = random.Random(seed)
        queries = [make(kind, 6, 3 * seed + part).with_columns(query_id=pl.lit(f"q{part}")) for part in range(3)]
        results = pl.concat(queries, how="diagonal")
        bridges.append(_compare(results, [rng.random() < 0.5 for _ in range(results.height)]))
    assert 0 in bridges or len(bridges) < 5, "else this would say nothing"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@settings(max_examples=how_many(6, full=24), deadline=None)
@given(st.lists(_RESULTS, min_size=2, max_size=9), st.randoms(use_true_random=False))
def test_any_results_in_two_parts_are_as_all_at_once_wherever_no_bridge_is_counted(
    results: list[dict[str, str]], rng: random.Random
) -> None:
    rows = frame([_result(**row) for row in results]).with_columns(rank=pl.int_range(1, pl.len() + 1))
    is_new = [rng.random() < 0.5 for _ in results]
    is_new[0], is_new[-1] = False, True
    _compare(rows, is_new)
