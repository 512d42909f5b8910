"""The policy `strict`: any compared field that differs makes two results different, whatever else is equal."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from goodgain.logs.dedup import deduplicate
from tests.cli.test_command_line import goodgain
from tests.logs.dedup.writing import PAIRS, frame

PAGE = "https://example.org/news"


@pytest.mark.slow
def test_strict_joins_no_hand_written_pair_that_standard_keeps_apart_or_of_which_a_text_differs() -> None:
    joined = 0
    for pair in PAIRS:
        deduplication = deduplicate(frame([pair.first, pair.second]), policy="strict")
        one, two = deduplication.frame["document"]
        if one != two:
            continue
        joined += 1
        assert pair.same, pair.reason
        row = deduplication.explain(one).pairs.row(0, named=True)
        assert set(row["differed"]) <= {"doc_id", "url"}, pair.reason
    assert joined > 20


def test_results_that_differ_are_not_joined_by_way_of_one_that_says_less() -> None:
    rows = [{"url": PAGE, "title": "The flood"}, {"url": PAGE}, {"url": PAGE, "title": "The mill"}]
    for order in permutations(rows):
        documents = deduplicate(frame(list(order)), policy="strict").frame["document"]
        by_title = dict(zip([row.get("title") for row in order], documents, strict=True))
        assert by_title["The flood"] != by_title["The mill"]


def test_results_are_taken_from_a_file(tmp_path: Path) -> None:
    results = gg.read_results("docs/web_search.jsonl")
    deduplication = gg.deduplicate("docs/web_search.jsonl", policy="strict")
    assert deduplication.frame.equals(gg.deduplicate(results, policy="strict").frame)

    gg.write_results(deduplication.frame, tmp_path / "documents.parquet")
    for path in (tmp_path / "documents.parquet", str(tmp_path / "documents.parquet")):
        assert gg.to_run(path).equals(gg.to_run(deduplication))
    goodgain("dedup", "docs/web_search.jsonl", "-o", tmp_path / "again.jsonl", "--policy", "strict")
    assert gg.read_results(tmp_path / "again.jsonl")["document"].equals(deduplication.frame["document"])

    for call in (gg.deduplicate, gg.to_run):
        with pytest.raises(gg.InputError, match="no such file"):
            call(tmp_path / "none.jsonl")
    standard = gg.deduplicate(results)
    assert deduplication.summary.documents >= standard.summary.documents
    assert isinstance(standard.frame, pl.DataFrame)
