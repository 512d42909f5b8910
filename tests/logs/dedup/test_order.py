"""The same rows in any order give the same groups and the same names."""

import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.maker import MAKERS, make
from tests.logs.dedup.writing import PAIRS, frame, result
from tests.support.counts import how_many


def _mixed() -> pl.DataFrame:
    """All kinds in one query, and every hand-written pair: groups that pull at each other, twins, bare titles."""
    made = pl.concat([make(kind, 15, 7).drop("gold") for kind in MAKERS], how="diagonal")
    written = [side for pair in PAIRS for side in (pair.first, pair.second)]
    mixed = pl.concat([made, frame(written)], how="diagonal")
    return mixed.with_columns(rank=pl.int_range(1, pl.len() + 1), call=pl.int_range(pl.len()))


def _by_call(found: pl.DataFrame, *columns: str) -> pl.DataFrame:
    return found.sort("call").select("call", *columns)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")  # some buckets are cut on purpose
@pytest.mark.parametrize("pairs_a_key", [10_000, 50])
def test_random_orders_of_rows_give_the_same_documents(pairs_a_key: int) -> None:
    mixed = _mixed()
    first = deduplicate(mixed, pairs_a_key=pairs_a_key)
    expected = _by_call(first.frame, "document", "rule", "confidence")
    assert first.summary.refused > 0  # else this would say nothing of joins that are refused
    for seed in range(how_many(2, full=30) if pairs_a_key == 10_000 else how_many(1, full=4)):
        turned = deduplicate(mixed.sample(fraction=1, shuffle=True, seed=seed), pairs_a_key=pairs_a_key)
        assert _by_call(turned.frame, "document", "rule", "confidence").equals(expected)
        assert turned.summary == first.summary


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_other_doc_ids_give_the_same_documents() -> None:
    mixed, partitions = _mixed().drop("doc_id", strict=False), set()
    for seed in range(how_many(3, full=15)):
        ids = random.Random(seed).sample(range(mixed.height), mixed.height)
        named = mixed.with_columns(doc_id=pl.Series([f"result-{one}" for one in ids]))
        deduplication = deduplicate(named)
        assert deduplication.summary.refused > 0
        groups = deduplication.frame.group_by("document").agg(pl.col("call").sort()).get_column("call").to_list()
        partitions.add(tuple(sorted(map(tuple, groups))))
    assert len(partitions) == 1


@pytest.mark.slow
def test_rows_that_say_the_same_word_for_word_share_names_in_any_order() -> None:
    bare = [result(title="Home"), result(title="Home"), result(title="Home", type="web_page"), result(), result()]
    names = {
        tuple(sorted(deduplicate(frame(random.Random(seed).sample(bare, 5))).frame["document"])) for seed in range(20)
    }
    assert len(names) == 1
    assert len(set(names.pop())) == 5


def test_the_first_occurrence_follows_the_run_and_not_the_rows() -> None:
    results = frame([result(url="https://example.org/a"), result(url="https://example.org/a?utm_source=x")])
    deduplication = deduplicate(results.reverse())
    assert deduplication.frame["duplicate_of"].to_list() == [1, None]


_PAGES = st.sampled_from([f"https://example.org/{path}" for path in ("a", "a/", "b", "a?id=1", "a?id=2", "a?x=1", "")])
_RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "url": _PAGES,
        "doc_id": st.sampled_from(["1", "2"]),
        "type": st.sampled_from(["file", "web_page", "email", "passage"]),
        "title": st.sampled_from(["A title of some length", "Another title at length", "Home"]),
        "snippet": st.sampled_from(["a few words " * 6, "other words here " * 6, "short"]),
        "file_id": st.sampled_from(["F1", "F2"]),
        "sender": st.sampled_from(["a@example.org", "b@example.org"]),
    },
)


@settings(max_examples=how_many(3, full=20), deadline=None)
@given(st.lists(_RESULTS, min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_any_results_in_any_order(results: list[dict[str, str]], rng: random.Random) -> None:
    rows = frame([_result(**row) for row in results]).with_columns(
        rank=pl.int_range(1, pl.len() + 1), call=pl.int_range(pl.len())
    )
    order = list(range(len(results)))
    rng.shuffle(order)
    first, second = deduplicate(rows), deduplicate(rows[order])
    assert _by_call(first.frame, "document").equals(_by_call(second.frame, "document"))
    assert first.frame["document"].null_count() == 0
    # No group holds two of which a rule says that they are different.
    for document in first.frame["document"].unique():
        told = first.explain(document).pairs
        assert told.filter(~pl.col("same") & (pl.col("rule") != "undecided")).is_empty()


def _result(file_id: str | None = None, **values: str) -> dict[str, object]:
    return result(ids={"file_id": file_id} if file_id else {}, **values)
