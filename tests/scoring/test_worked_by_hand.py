"""Small cases, a paragraph each: `worked.json` has values that a person works out, numbers as `7/32` or `log2(3)`.

`notices.json` has the notices of a call, or its error; a case without either is one where nothing may be said.
"""

from __future__ import annotations

import json
import re
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.names import parse_measure
from tests.support.tables import ROOT, frame_of, no_notices, work_out

CASES, NOTICES = (
    json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8")) for name in ("worked.json", "notices.json")
)


def open_case(case: dict[str, Any]) -> tuple[Any, Any]:
    """The qrels (a dict, rows, columns, or a path) and the run (a dict, columns, a path, or the documents of each search)."""
    qrels, run = case["qrels"], case["run"] if "run" in case else frame_of(case["searches"])
    if isinstance(qrels, list):
        columns = ["query_id", "iteration", "doc_id", "relevance"]
        qrels = gg.read_qrels(pl.DataFrame(qrels, columns, orient="row"), labels=case.get("labels"))
    qrels, run = (pl.DataFrame(of) if "query_id" in of and isinstance(of, dict) else of for of in (qrels, run))
    return (ROOT / qrels, ROOT / run) if isinstance(qrels, str) else (qrels, run)


@pytest.mark.each
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_worked_by_hand(name: str) -> None:
    case = CASES[name]
    means, values = case.get("means", {}), case.get("values", {})
    asked = case.get("measures") or [*dict.fromkeys([*means, *values])]
    with no_notices() if "notices" in case else nullcontext():  # elsewhere a notice is an error
        scores = gg.evaluate(*open_case(case), asked, **case.get("options", {}))
    assert {measure: scores[measure] for measure in means} == {m: work_out(number) for m, number in means.items()}
    by_query = {(measure, query): value for query, measure, value in scores.per_query.iter_rows()}
    for measure, of_queries in values.items():
        found = {query: by_query[str(parse_measure(measure)), query] for query in of_queries}
        assert found == {query: work_out(number) for query, number in of_queries.items()}, measure


@pytest.mark.each
@pytest.mark.parametrize("name", NOTICES)
def test_a_call_says_what_is_odd_and_nothing_else(name: str) -> None:
    case = NOTICES[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", gg.GoodgainNotice)
        try:
            gg.evaluate(*open_case(case), case["measures"], **case.get("options", {}))
            raised = None
        except gg.GoodgainError as error:
            raised = str(error)

    texts = [str(one.message) for one in told if one.category is gg.GoodgainNotice]
    if "error" in case:
        assert re.search(case["error"], str(raised))
    for said in case.get("notices", []):
        assert any(re.search(said, text) for text in texts), said
    if not case.keys() & {"error", "notices"}:  # so small a case can have a low coverage
        assert raised is None and [text for text in texts if not text.startswith("coverage is low")] == []
