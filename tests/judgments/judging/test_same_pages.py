"""Grades and pools join addresses that spell one web page, as scores do."""

from __future__ import annotations

import random
import warnings

import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice
from tests.support.counts import how_many

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
        spelled, named = (gg.aggregate(source, how="median") for source in sources)
        pooled, pages = (gg.pool(source) for source in sources)

    for found, expected, column in ((spelled, named, "relevance"), (pooled, pages, "runs")):
        assert {name_page(doc): value for doc, value in found.select("doc_id", column).rows()} == dict(
            expected.select("doc_id", column).rows()
        )
        assert found.height == expected.height
