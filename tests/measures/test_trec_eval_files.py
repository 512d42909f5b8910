"""The values that trec_eval 10 prints for the files of its own test suite.

Nothing of trec_eval is kept here: GOODGAIN_TREC_EVAL names a checkout of it, and without one these tests do not run.

    GOODGAIN_TREC_EVAL=../trec_eval python -m pytest tests/measures/test_trec_eval_files.py
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.names import parse_measure

FOLDER = Path(os.environ.get("GOODGAIN_TREC_EVAL", "")) / "test"
pytestmark = pytest.mark.skipif(
    "GOODGAIN_TREC_EVAL" not in os.environ, reason="GOODGAIN_TREC_EVAL names no checkout of trec_eval"
)

#: Half a unit of the last of four decimals.
PRINTED = 0.5e-4 + 1e-9

#: trec_eval's name -> ours; {rel} is its option -l, and {k} a number in its name.
NAMES: dict[str, str] = json.loads(Path(__file__).with_name("trec_eval_names.json").read_text(encoding="utf-8"))


class Case(NamedTuple):
    """One command of trec_eval's quicktest: what it prints, what it reads, and its options."""

    printed: str
    qrels: str
    run: str
    rel: int = 1
    complete: bool = False  # the option -c


CASES = (
    Case("out.test", "qrels.test", "results.test"),
    Case("out.test", "qrels.test.with-comments", "results.test"),
    Case("out.comment.test", "qrels.comment.test", "results.comment.test"),
    Case("out.test.a", "qrels.test", "results.test"),
    Case("out.test.aq", "qrels.test", "results.test"),
    Case("out.test.aqc", "qrels.test", "results.trunc", complete=True),
    Case("out.test.aql", "qrels.rel_level", "results.test", rel=2),
    Case("out.test.meas_params", "qrels.test", "results.test"),
)


def read_rows(name: str, columns: int) -> list[list[str]]:
    """The first columns of the lines that are not comments: the tags in these files have blanks."""
    lines = (FOLDER / name).read_text().splitlines()
    return [line.split()[:columns] for line in lines if line.strip() and not line.startswith("#")]


def read_qrels(name: str, *, lowest: int = -(10**6)) -> gg.Qrels:
    rows = [(query, doc, int(label)) for query, _, doc, label in read_rows(name, 4) if int(label) >= lowest]
    return gg.read_qrels(pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row"))


def read_run(name: str) -> gg.Run:
    rows = [(query, doc, float(score)) for query, _, doc, _, score in read_rows(name, 5)]
    return gg.read_run(pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row"))


def read_printed(name: str) -> dict[tuple[str, str], str]:
    """(trec_eval's name, query or `all`) -> the printed value."""
    return {(measure, query): value for measure, query, *rest in read_rows(name, 3) for value in rest}


def translate(name: str, rel: int) -> str | None:
    for pattern, ours in NAMES.items():
        found = re.fullmatch(pattern, name) if "(" in pattern else (name == pattern or None)
        if found:
            parts = found.groupdict() if isinstance(found, re.Match) else {}
            return ours.format(rel=f"rel={rel}", **parts)
    return None


class Values(NamedTuple):
    """The values of measures here, with queries left out as trec_eval without -c does it."""

    scores: gg.Scores
    by_query: dict[tuple[str, str], float]
    queries: list[str]

    def __call__(self, measure: str, query: str) -> float:
        name = str(parse_measure(measure))
        if query != "all":
            return self.by_query[name, query]
        values = [self.by_query[name, each] for each in self.queries]
        return math.fsum(values) if name.startswith("Num") else math.fsum(values) / len(values)


def evaluate(case: Case, measures: list[str], *, lowest: int = -(10**6)) -> Values:
    qrels, run = read_qrels(case.qrels, lowest=lowest), read_run(case.run)
    scores = gg.evaluate(qrels, run, measures)
    judged = set(qrels.frame["query_id"].unique())
    queries = judged if case.complete else judged & set(run.frame["query_id"].unique())
    by_query = {(measure, query): value for query, measure, value in scores.per_query.iter_rows()}
    return Values(scores, by_query, sorted(queries))


def list_differing(
    printed: dict[tuple[str, str], str], find: Callable[[str, str], float | None]
) -> Iterator[tuple[Any, ...]]:
    for (name, query), value in printed.items():
        found = find(name, query)
        if found is not None and abs(found - float(value)) > PRINTED:
            yield name, query, value, found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.printed}-{case.qrels}")
def test_values_are_the_printed_ones(case: Case) -> None:
    printed = read_printed(case.printed)
    asked = {name: ours for name, _ in printed if (ours := translate(name, case.rel))}
    assert len(asked) >= 12
    values = evaluate(case, list(asked.values()))

    def find(name: str, query: str) -> float | None:
        if name not in asked or (name == "num_rel" and case.complete and query in ("302", "all")):
            return None  # ir_measures and we count the relevant documents of the queries of the run only
        return values(asked[name], query)

    assert list(list_differing(printed, find)) == []
    assert printed.get(("num_q", "all")) in (None, str(len(values.queries)))


@pytest.mark.parametrize("case", [case for case in CASES if case.printed != "out.test.meas_params"], ids=lambda c: c[0])
def test_the_geometric_mean_of_ap_is_gm_map(case: Case) -> None:
    scores = evaluate(case, [f"AP(rel={case.rel})"]).scores
    assert scores.mean(how="geometric").popitem()[1] == pytest.approx(
        float(read_printed(case.printed)["gm_map", "all"]), abs=PRINTED
    )


def count_relevant(case: Case) -> dict[str, int]:
    frame = read_qrels(case.qrels).frame.filter(pl.col("relevance") >= case.rel)
    return dict(frame.group_by("query_id").len().iter_rows())


@pytest.mark.parametrize("case", [case for case in CASES if ".aq" in case.printed], ids=lambda case: case.printed)
def test_eleven_points_are_the_printed_ones_at_the_recalls_that_trec_eval_rounds_to(case: Case) -> None:
    printed, relevant = read_printed(case.printed), count_relevant(case)
    compared = 0
    for query, number in relevant.items():
        if ("11pt_avg", query) not in printed:
            continue
        rounded = [math.floor(tenths / 10 * number + 0.5) for tenths in range(11)]
        points = [f"InterpolatedPrecision(rel={case.rel})@{count / number}" for count in rounded]
        values = evaluate(case, [f"ElevenPointAP(rel={case.rel})", *points])
        found = [values(point, query) for point in points]
        for tenths, value in enumerate(found):
            assert value == pytest.approx(float(printed[f"iprec_at_recall_{tenths / 10:.2f}", query]), abs=PRINTED)
        assert math.fsum(found) / 11 == pytest.approx(float(printed["11pt_avg", query]), abs=PRINTED)
        if rounded == [math.ceil(tenths * number / 10) for tenths in range(11)]:
            exact = values(f"ElevenPointAP(rel={case.rel})", query)
            assert exact == pytest.approx(float(printed["11pt_avg", query]), abs=PRINTED)
            compared += 1

    assert compared or case.rel == 2


@pytest.mark.parametrize("case", [case for case in CASES if ".a" in case.printed], ids=lambda case: case.printed)
def test_unjudged_documents_and_rbp_are_the_printed_ones(case: Case) -> None:
    """Labels below 0 are left out first: trec_eval counts them as unjudged, and we as judged."""
    printed = read_printed(case.printed)
    values = evaluate(case, ["Unjudged@5", "Unjudged@10", "Unjudged@20", "RBPResidual(p=0.9)"], lowest=0)
    rbp = evaluate(case, ["RBP(rel=1,p=0.9)"])
    binary = case.qrels == "qrels.test"
    searched = set(read_run(case.run).frame["query_id"])

    def find(name: str, query: str) -> float | None:
        if name.startswith("unj_"):
            return values(f"Unjudged@{name.removeprefix('unj_')}", query)
        if name == "rbp" and binary:
            return rbp("RBP(rel=1,p=0.9)", query)
        if name == "rbp_resid" and query != "all":
            if query not in searched:
                assert values("RBPResidual(p=0.9)", query) == 1  # and trec_eval says 0
                return None
            return values("RBPResidual(p=0.9)", query)
        if name == "rbp_resid" and len(searched) == len(values.queries):
            return values("RBPResidual(p=0.9)", query)
        return None

    assert list(list_differing(printed, find)) == []
