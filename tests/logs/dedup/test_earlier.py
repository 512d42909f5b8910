"""Joining new results to the documents of earlier ones: these stay as they are, and nobody is counted twice."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.errors import GoodgainNotice, InputError
from goodgain.files.table_reading import write_results
from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.maker import MAKERS, make
from tests.logs.dedup.test_order import _RESULTS, _result
from tests.logs.dedup.writing import frame, result
from tests.support.counts import how_many

FLOOD = "The river rose by two metres in the night and the old bridge near the mill had to be closed to all traffic."
TITLE = "The flood of the night"


def _documents(results: pl.DataFrame, earlier: pl.DataFrame | None = None) -> list[str]:
    return deduplicate(results, earlier=earlier).frame["document"].to_list()


def _known(*rows: dict[str, object]) -> pl.DataFrame:
    """Results that have their documents."""
    found: pl.DataFrame = deduplicate(frame(list(rows))).frame
    return found


def test_a_new_result_joins_the_document_of_an_earlier_one_under_its_name() -> None:
    known = _known(result(url="https://m.dw.com/dresden/?utm_source=x", title="Dresden"))
    assert known["document"].to_list() == ["https://dw.com/dresden"]
    known = known.with_columns(document=pl.lit("https://m.dw.com/dresden/"))  # as an older version named it
    new = frame([result(url="http://dw.com/dresden", title="Dresden, again"), result(url="https://dw.com/bonn")])
    assert _documents(new) == ["https://dw.com/dresden", "https://dw.com/bonn"]
    found = deduplicate(new, earlier=known)
    assert found.frame["document"].to_list() == ["https://m.dw.com/dresden/", "https://dw.com/bonn"]
    assert found.frame.height == 2, "earlier rows are not returned"
    assert found.frame["duplicate_of"].null_count() == 2, "a first occurrence is one in its own run"
    assert (found.summary.results, found.summary.earlier, found.summary.bridges) == (2, 1, 0)
    assert "1 earlier results keep their documents" in str(found.summary)


def test_a_result_that_matches_two_joins_its_best_pair_and_never_merges_them() -> None:
    known = _known(result(url="https://example.org/x", title=TITLE), result(title=TITLE, snippet=FLOOD))
    by_url, by_text = known["document"].to_list()
    bridge = frame([result(url="http://www.example.org/x", title=TITLE, snippet=FLOOD)])
    assert len(set(_documents(pl.concat([known.select(bridge.columns), bridge])))) == 1, "together they are one"
    with pytest.warns(GoodgainNotice, match="1 conflict with earlier documents"):
        found = deduplicate(bridge, earlier=known)
    assert found.frame["document"].to_list() == [by_url], "2.0 by URL comes before 1.1 by fields"
    assert by_url != by_text
    assert found.summary.bridges == 1


def test_equally_good_pairs_are_decided_by_the_name() -> None:
    rows = [result(title=TITLE, snippet=FLOOD, doc_id=name) for name in ("b", "a")]
    known = frame(rows).with_columns(document=pl.Series(["named b", "named a"]))
    with pytest.warns(GoodgainNotice, match="conflicts? with earlier documents"):
        assert _documents(frame([result(title=TITLE, snippet=FLOOD)]), known) == ["named a"]


def test_new_results_join_by_way_of_other_new_results() -> None:
    known = _known(result(url="https://example.org/x", title=TITLE))
    new = frame([result(title=TITLE, snippet=FLOOD), result(url="http://example.org/x/", title=TITLE, snippet=FLOOD)])
    assert _documents(new, known) == ["https://example.org/x"] * 2


def test_a_new_document_never_takes_the_name_of_an_earlier_one() -> None:
    known = frame([result(url="https://example.org/a")]).with_columns(document=pl.lit("https://example.org/b"))
    new = frame([result(url="https://example.org/b"), result(url="https://example.org/a")])
    assert _documents(new, known) == ["https://example.org/b~2", "https://example.org/b"]


def test_an_earlier_document_that_proves_to_be_several_is_counted() -> None:
    known = frame([result(doc_id="1", title=TITLE), result(doc_id="1", title=TITLE)]).with_columns(
        document=pl.lit("one"), url=pl.Series(["https://example.org/a", "https://example.org/b"])
    )
    with pytest.warns(GoodgainNotice, match="1 conflict with"):
        assert _documents(frame([result(url="https://example.org/a")]), known) == ["one"]


def test_only_earlier_results_of_the_same_query_count() -> None:
    known = _known(result(url="https://example.org/a")).with_columns(query_id=pl.lit("another"))
    assert _documents(frame([result(url="http://example.org/a")]), known) == ["https://example.org/a"]


def test_earlier_results_may_be_a_file_and_need_their_documents(tmp_path: Path) -> None:
    known = _known(result(url="https://example.org/a", ids={"file_id": "F1"}))
    new = frame([result(url="http://example.org/a")])
    for name in ("known.jsonl", "known.parquet"):
        write_results(known, tmp_path / name)
        found = deduplicate(new, earlier=tmp_path / name)
        assert found.frame["document"].to_list() == known["document"].to_list()
    with pytest.raises(InputError, match=r"no column document.*convert their logs again"):
        deduplicate(new, earlier=known.drop("document"))
    with pytest.raises(InputError, match="the earlier results are a int; give a data frame or the path of a file"):
        deduplicate(new, earlier=5)
    with pytest.raises(InputError, match=r"the earlier results have List.* in the column rank: give texts or numbers"):
        deduplicate(new, earlier=known.with_columns(rank=pl.concat_list("rank")))
    with pytest.raises(InputError, match=r"the results have Struct.* in the column query_id: give texts or numbers"):
        deduplicate(new.with_columns(query_id=pl.struct("query_id")))


def test_iterations_may_be_categories() -> None:
    rows = frame([result(url="https://example.org/a"), result(url="http://www.example.org/a/")])
    found = deduplicate(rows.with_columns(pl.col("iteration").cast(pl.String).cast(pl.Categorical)))
    assert found.frame["document"].n_unique() == 1


# Joint and sequential deduplication


def _partition(results: pl.DataFrame) -> set[frozenset[int]]:
    """The documents, each as the set of its calls."""
    return {frozenset(calls) for calls in results.group_by("query_id", "document").agg("call")["call"].to_list()}


def _compare(results: pl.DataFrame, is_new: list[bool]) -> int:
    """Deduplicate results at once and in two parts, hold them equal if no bridge is counted, and return the bridges."""
    results = results.with_columns(call=pl.int_range(pl.len()), new=pl.Series(is_new, dtype=pl.Boolean))
    first = deduplicate(results.filter(~pl.col("new"))).frame
    found = deduplicate(results.filter("new"), earlier=first)
    both = pl.concat([part.select("query_id", "call", "document") for part in (first, found.frame)])
    together = _partition(deduplicate(results).frame)
    if found.summary.bridges == 0:
        assert _partition(both) == together
    else:
        assert _partition(both) != together, "a bridge is counted only where all results together give other documents"
    names = dict(first.select("call", "document").iter_rows())
    assert all(names[call] == name for call, name in both.select("call", "document").iter_rows() if call in names)
    return found.summary.bridges


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
@settings(max_examples=how_many(6, full=40), deadline=None)
@given(st.lists(_RESULTS, min_size=2, max_size=9), st.randoms(use_true_random=False))
def test_any_results_in_two_parts_are_as_all_at_once_wherever_no_bridge_is_counted(
    results: list[dict[str, str]], rng: random.Random
) -> None:
    rows = frame([_result(**row) for row in results]).with_columns(rank=pl.int_range(1, pl.len() + 1))
    is_new = [rng.random() < 0.5 for _ in results]
    is_new[0], is_new[-1] = False, True
    _compare(rows, is_new)
