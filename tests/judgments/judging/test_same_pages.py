"""Grades and pools join addresses that spell one web page, as scores do."""

from __future__ import annotations

import random
import warnings

import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice
from tests.support.counts import how_many
from tests.support.tables import no_notices

ONE, OTHER, APART = "https://example.org/a", "http://www.example.org/a/", "https://example.org/b"


def test_grades_of_two_spellings_of_a_page_are_grades_of_one_document() -> None:
    grades = {"anna": {"q": {ONE: 3, APART: 0}}, "ben": {"q": {OTHER: 1}}}
    with pytest.warns(GoodgainNotice, match="spell one web address.*1 id"):
        found = gg.aggregate(grades, how="mean")
    assert sorted(found.select("doc_id", "relevance", "n_judges").rows()) == [(OTHER, 2, 2), (APART, 0, 1)]
    with no_notices():
        kept = gg.aggregate(grades, how="mean", urls="keep")
    assert kept.height == 3


def test_the_largest_grade_of_a_judge_for_a_page_counts() -> None:
    with pytest.warns(GoodgainNotice, match="spell one web address"):
        found = gg.aggregate({"anna": {"q": {ONE: 1, OTHER: 2}}}, how="mean")
    assert found.select("relevance", "n_judges").rows() == [(2, 1)]


PAGES = [f"example.org/page/{number}" for number in range(6)]
SPELLINGS = ["https://{}", "http://{}", "https://www.{}", "http://m.{}/"]


def name_page(doc_id: str) -> str:
    return doc_id[doc_id.index("example.org") :].rstrip("/")


def draw_pages(draw: random.Random, *, spell: bool) -> dict[str, dict[str, float]]:
    """Four pages, each with a number that is its own, for one query."""
    chosen = draw.sample(PAGES, 4)
    written = [draw.choice(SPELLINGS).format(page) for page in chosen]
    return {"q": {doc: float(draw.randrange(4)) for doc in (written if spell else chosen)}}


@pytest.mark.parametrize("seed", range(how_many(4, full=40)))
def test_any_spellings_give_the_labels_and_pools_of_the_pages_names(seed: int) -> None:
    """Without qrels too: there Polars once read beyond a literal, and ids came out empty."""
    sources = [
        {name: draw_pages(draw, spell=spell) for name in ("anna", "ben", "carla")}
        for spell in (True, False)
        for draw in [random.Random(seed)]
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)
        spelled, named = (gg.aggregate(one, how="median") for one in sources)
        pooled, pages = (gg.pool(one) for one in sources)
    for found, expected, column in ((spelled, named, "relevance"), (pooled, pages, "runs")):
        assert {name_page(doc): value for doc, value in found.select("doc_id", column).rows()} == dict(
            expected.select("doc_id", column).rows()
        )
        assert found.height == expected.height


def test_a_pool_leaves_out_a_page_that_is_judged_under_another_address() -> None:
    runs = {"old": {"q": {OTHER: 2.0}}, "new": {"q": {APART: 1.0, "http://example.org/b": 0.5}}}
    with pytest.warns(GoodgainNotice, match="spell one web address"):
        found = gg.pool(runs, qrels={"q": {ONE: 3}})
    assert found.select("doc_id", "runs").rows() == [("http://example.org/b", 1)]
    with no_notices():
        kept = gg.pool(runs, qrels={"q": {ONE: 3}}, urls="keep")
    assert kept.height == 3
