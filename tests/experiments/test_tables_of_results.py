"""Each result that is shown has `tables()`, and a notebook shows these tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.reporting import show_curve, show_ledger
from goodgain.files.tables import Table
from tests.support.tables import ROOT

TWO, USES = ROOT / "qrels_examples" / "two_agents", ROOT / "qrels_examples" / "opened_and_cited"
QRELS, RUNS = TWO / "qrels.txt", {name: TWO / f"{name}.run" for name in ("quick", "late")}
VOTES = {"anna": {"q": {"a": 1, "b": 0}}, "ben": {"q": {"a": 1, "b": 1}}}
#: Result -> the first headings of its first table.
RESULTS: dict[str, tuple[Callable[[gg.Experiment], Any], list[str]]] = {
    "scores": (lambda x: gg.evaluate(QRELS, RUNS["late"], "nCG SRR"), ["measure", "value"]),
    "scores of several systems": (lambda x: x.evaluate("nCG SRR"), ["measure", "quick", "late"]),
    "comparison": (lambda x: x.compare("nCG SRR"), ["measure", "quick", "late"]),
    "explanation": (lambda x: x.explain("quick", "late", "CG@3"), []),
    "funnel": (lambda x: gg.funnel(USES / "judgments.qrels", USES / "uses.jsonl"), ["system", "queries"]),
    "agreement": (lambda x: gg.agreement(VOTES, scale="binary"), ["measure", "value"]),
    "ledger": (lambda x: show_ledger(x.ledger().drop("system")), ["results", "query_id", "iteration"]),
    "curve": (lambda x: show_curve(x.curve("CG")), ["system", "measure"]),
}


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("kind", RESULTS)
def test_a_notebook_shows_the_tables_of_a_result(kind: str) -> None:
    make, header = RESULTS[kind]
    result = make(gg.Experiment(QRELS, RUNS, resamples=100))
    tables, html = result.tables(), result._repr_html_()
    assert [*tables[0].header][: len(header)] == header
    assert html.count("<table>") == len(tables)
    assert html.count("<tr>") == sum(len(table.rows) + 1 for table in tables)


def test_a_frame_is_a_table_with_its_words_first() -> None:
    frame = pl.DataFrame({"a": ["x", None], "n": [1.25, None]})
    plain, rounded = (Table.of_frame(frame, places=places) for places in (None, 1))
    assert plain.words == rounded.words == 1
    assert [[cell.text for cell in row] for row in (*plain.rows, *rounded.rows)] == [
        ["x", "1.25"], ["", ""], ["x", "1.2"], ["–", "–"]
    ]  # fmt: skip
