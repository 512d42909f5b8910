"""Results, options, and the documents that they become: each case of cases.json is a rule.

`groups` has a letter for each result: equal letters are one document. `documents` are names in order; a list stands for
one of several, `text:` for the name of a text. `earlier` are results with their documents, which `known` renames.
`told` are the rules of the pairs that an explanation of all documents shows. The modules tried: rows_and_trusted_ids,
candidates, verification, groups_and_names, said_pairs, reports.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from string import Template
from typing import Any

import polars as pl
import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.writing import fill, frame, result

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))


def make_frame(rows: list[dict[str, Any]], query_id: str = "q") -> pl.DataFrame:
    return frame([result(**{name: fill(value) for name, value in row.items()}) for row in rows], query_id)


@pytest.mark.each
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_results_become_the_documents_of_the_case(case: dict[str, Any], tmp_path: Path) -> None:
    for name, text in case.get("files", {}).items():
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    case = json.loads(Template(json.dumps(case)).safe_substitute(here=tmp_path))
    options = case.get("options", {})
    if "earlier" in case:
        known = deduplicate(make_frame(case["earlier"], case.get("earlier query", "q"))).frame
        options["earlier"] = known.with_columns(document=pl.Series(case.get("known", known["document"])))
    if "error" in case:
        with pytest.raises(InputError, match=case["error"]):
            deduplicate(make_frame(case["rows"]), **options)
        return

    said = pytest.warns(GoodgainNotice, match=case["notice"]) if "notice" in case else contextlib.nullcontext()
    with said:
        deduplication = deduplicate(make_frame(case["rows"]), **options)
    documents, summary = deduplication.frame["document"].to_list(), deduplication.summary
    assert None not in documents
    assert summary.pairs == sum(summary.same.values()) + sum(summary.different.values()) + summary.undecided

    for document, wanted in zip(documents, case.get("documents", documents), strict=True):
        if wanted == "text:":
            assert document.startswith(wanted)
        else:
            assert document in wanted if isinstance(wanted, list) else document == wanted

    assert sorted(documents) == case.get("names", sorted(documents))
    if "groups" in case:
        first_met = list(dict.fromkeys(documents))
        assert [first_met.index(document) for document in documents] == list(map("abcdefgh".index, case["groups"]))
    assert case.get("holds", documents[0]) in documents and not set(documents) & set(case.get("others", []))
    assert all(documents[one] != documents[two] for one, two in case.get("apart", []))

    for column, key in (("rule", "joined by"), ("duplicate_of", "duplicate_of")):
        assert deduplication.frame[column].to_list() == case.get(key, deduplication.frame[column].to_list())
    assert {name: getattr(summary, name) for name in case.get("summary", {})} == case.get("summary", {})
    assert all(part in str(summary) for part in case.get("said", []))

    if "told" in case:
        explanation = deduplication.explain(*list(dict.fromkeys(documents))[: case.get("explain")])
        assert explanation.pairs["rule"].to_list() == case["told"]
        assert all(part in str(explanation) for part in case.get("explained", []))
