"""The policy `strict`: any compared field that differs makes two results different, whatever else is equal."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.logs.dedup import deduplicate
from tests.cli.test_command_line import goodgain
from tests.logs.dedup.writing import PAIRS, frame

FLOOD = "The river rose by two metres in the night and the old bridge near the mill had to be closed to all traffic."
HARVEST = "A committee of nine members will report on the state of the harvest before the end of the coming winter."
PAGE = "https://example.org/news"


def ids(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


FILE = {"type": "file", "ids": ids(file_id="F1"), "url": PAGE, "title": "Budget of the year"}

#: Two results, and whether they are the same under `standard` and `strict`.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], bool, bool]] = {
    "equal id, other title": (FILE, FILE | {"title": "Budget, final"}, True, False),
    "equal id, other snippet": (FILE | {"snippet": FLOOD}, FILE | {"snippet": HARVEST}, True, False),
    "equal id, other address": (FILE, FILE | {"url": PAGE + "/2"}, True, False),
    "equal id, another parameter of the address": (FILE, FILE | {"url": PAGE + "?ref=home"}, True, False),
    "equal id, other author": (
        FILE | {"fields": ids(author="Ann")},
        FILE | {"fields": ids(author="Bob")},
        True,
        False,
    ),
    "one of two ids differs": (
        FILE | {"ids": ids(file_id="F1", unique_id="1")},
        FILE | {"ids": ids(file_id="F1", unique_id="2")},
        False,
        False,
    ),
    "equal address, other title": ({"url": PAGE, "title": "The flood"}, {"url": PAGE, "title": "The mill"}, True, False),
    "equal in all": (FILE | {"snippet": FLOOD}, FILE | {"snippet": FLOOD}, True, True),
    "equal but for tracking": ({"url": PAGE, "title": "A"}, {"url": PAGE + "/?utm_source=x", "title": "A"}, True, True),
    "one lacks what the other has": (FILE, {"ids": ids(file_id="F1"), "type": "file"}, True, True),
    "a snippet that contains the other": (FILE | {"snippet": FLOOD}, FILE | {"snippet": FLOOD[10:]}, True, True),
    "doc_ids that were issued anew": (FILE | {"doc_id": "1"}, FILE | {"doc_id": "2"}, True, True),
    "mails found at the start page": (
        {"type": "email", "ids": ids(message_id="M"), "url": "https://mail.example/"},
        {"type": "email", "ids": ids(message_id="M"), "url": "https://other.example/"},
        True,
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_differs_rejects_under_strict(case: str) -> None:
    first, second, standard, strict = CASES[case]
    for rows in ([first, second], [second, first]):
        for policy, same in (("standard", standard), ("strict", strict)):
            found = deduplicate(frame(rows), policy=policy)  # type: ignore[arg-type]  # one of the policies
            one, two = found.frame["document"]
            assert (one == two) is same, str(found.explain(one, two))
    if standard and not strict:
        assert found.explain(one, two).pairs["rule"].to_list() == ["mismatch"]


@pytest.mark.slow
def test_strict_joins_no_hand_written_pair_that_standard_keeps_apart_or_of_which_a_text_differs() -> None:
    joined = 0
    for pair in PAIRS:
        found = deduplicate(frame([pair.first, pair.second]), policy="strict")
        one, two = found.frame["document"]
        if one != two:
            continue
        joined += 1
        assert pair.same, pair.reason
        told = found.explain(one).pairs.row(0, named=True)
        assert set(told["differed"]) <= {"doc_id", "url"}, pair.reason
    assert joined > 20


def test_results_that_differ_are_not_joined_by_way_of_one_that_says_less() -> None:
    rows = [{"url": PAGE, "title": "The flood"}, {"url": PAGE}, {"url": PAGE, "title": "The mill"}]
    for order in permutations(rows):
        documents = deduplicate(frame(list(order)), policy="strict").frame["document"]
        by_title = dict(zip([row.get("title") for row in order], documents, strict=True))
        assert by_title["The flood"] != by_title["The mill"]


def test_results_are_taken_from_a_file(tmp_path: Path) -> None:
    results = gg.read_results("docs/web_search.jsonl")
    found = gg.deduplicate("docs/web_search.jsonl", policy="strict")
    assert found.frame.equals(gg.deduplicate(results, policy="strict").frame)
    gg.write_results(found.frame, tmp_path / "documents.parquet")
    for path in (tmp_path / "documents.parquet", str(tmp_path / "documents.parquet")):
        assert gg.to_run(path).equals(gg.to_run(found))
    goodgain("dedup", "docs/web_search.jsonl", "-o", tmp_path / "again.jsonl", "--policy", "strict")
    assert gg.read_results(tmp_path / "again.jsonl")["document"].equals(found.frame["document"])
    for call in (gg.deduplicate, gg.to_run):
        with pytest.raises(gg.InputError, match="no such file"):
            call(tmp_path / "none.jsonl")
    standard = gg.deduplicate(results)
    assert found.summary.documents >= standard.summary.documents
    assert isinstance(standard.frame, pl.DataFrame)
