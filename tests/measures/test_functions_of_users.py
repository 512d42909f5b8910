"""Measures that a user defines as a function, with ir_measures: over the judged queries, in every door."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ir_measures
import polars as pl
import pytest
from hypothesis import given, settings

import goodgain as gg
from tests.support.command import run_command_here
from tests.support.counts import how_many
from tests.support.forms import in_blocks
from tests.support.notices import notices_of
from tests.support.oracle import EMPTY
from tests.support.random_runs import Case, cases, shapes
from tests.support.tables import frame_of, qrels_frame, run_frame

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")


def find_first_good(qrels: Any, run: Any) -> float:
    """RR(rel=2), as a user writes it."""
    good = set(qrels[qrels["relevance"] >= 2]["doc_id"])
    return next((1 / rank for rank, doc in enumerate(run["doc_id"], 1) if doc in good), 0.0)


FIRST_GOOD = ir_measures.define_byquery(find_first_good, name="FirstGood")
QRELS = {"a": {"x": 2}, "b": {"x": 2}, "absent": {"x": 3}}
RUN = {"a": {"x": 1.0}, "b": {"y": 2.0, "x": 1.0}, "unjudged": {"z": 1.0}}


def share_repeats(qrels: Any, run: Any) -> float:
    """SRR, and a value that nothing else has for a run of more than one iteration."""
    iterations = run["iteration"].nunique() if "iteration" in run else 0
    return float(len(run) - run["doc_id"].nunique()) / len(run) + 10 * iterations


def count_by_hand(case: Case) -> dict[str, float]:
    """`share_repeats` of each judged query; 0 for a query without results."""
    values = {}
    for query in {row.query_id for row in case.qrels}:
        rows = [row for row in case.run if row.query_id == query and row.doc_id not in (EMPTY, None)]
        documents, iterations = {row.doc_id for row in rows}, {str(row.iteration) for row in rows}
        values[query] = (len(rows) - len(documents)) / len(rows) + 10 * len(iterations) if rows else 0.0
    return values


@pytest.mark.slow
@settings(max_examples=how_many(15, full=50), deadline=None)
@given(shapes(words=False, by_iteration=False).flatmap(cases))
def test_values_and_means_are_over_the_judged_queries(case: Case) -> None:
    measure = ir_measures.define_byquery(share_repeats, name="Repeats")
    qrels, run = qrels_frame(case.qrels), run_frame(case.run)
    wanted = count_by_hand(case)
    numbers = {str(row.iteration) for row in case.run}
    lacks_iterations = len(numbers) == 1 and numbers != {"1"}  # one number in all rows does not count searches
    scores = gg.evaluate(qrels, run, [measure, "NumIter"])
    rows = dict(scores.per_query.filter(measure="Repeats").select("query_id", "value").rows())
    assert rows.keys() == wanted.keys() and scores.num_queries["Repeats"] == len(wanted)
    assert scores["Repeats"] == pytest.approx(math.fsum(rows.values()) / len(wanted))

    if not lacks_iterations:
        assert rows == pytest.approx(wanted)
    if wanted.keys().isdisjoint(run["query_id"].cast(pl.String)):
        return  # a comparison of runs that share no judged query is an error
    others = pl.concat([run, frame_of({query: [["d1"]] for query in wanted}).select(run.columns).cast(run.schema)])
    compared = gg.compare(qrels, {"run": run, "more": others}, [measure], resamples=9)
    row = compared.means.row(0, named=True)
    assert (row["queries"], row["mean"]) == (len(wanted), pytest.approx(scores["Repeats"]))


def test_a_function_equal_to_rr_has_its_mean() -> None:
    """The run's queries without judgments counted as 0 in the mean, and stood in per_query."""
    scores, said = notices_of(lambda: gg.evaluate(QRELS, RUN, [FIRST_GOOD, ir_measures.RR(rel=2)]))
    assert scores.mean() == {"FirstGood": 0.5, "RR(rel=2)": 0.5}
    assert scores.per_query["query_id"].unique().sort().to_list() == ["a", "absent", "b"]
    own = ir_measures.calc_aggregate([FIRST_GOOD], gg.read_qrels(QRELS), gg.read_run(RUN))[FIRST_GOOD]
    assert own == 0.375
    told = "FirstGood: this mean is over the judged queries, but ir_measures also counts queries without judgments"
    assert (
        sum(text.startswith(f"{told} (0.5000 over 3 queries here, 0.3750 over 4 in ir_measures)") for text in said) == 1
    )
    alike = {query: of for query, of in RUN.items() if query in QRELS}
    assert not any("FirstGood" in text for text in notices_of(lambda: gg.evaluate(QRELS, alike, [FIRST_GOOD]))[1])


def test_both_means_of_each_run_are_told() -> None:
    other = {"a": {"x": 1.0}, "unjudged": {"z": 1.0}, "more": {"z": 1.0}}
    said = notices_of(lambda: gg.compare(QRELS, {"one": RUN, "two": other}, [FIRST_GOOD], resamples=9))[1]
    (told,) = [text for text in said if text.startswith("FirstGood: this mean")]
    assert "one: 0.5000 over 3 queries here, 0.3750 over 4 in ir_measures" in told
    assert "two: 0.3333 over 3 queries here, 0.2000 over 5 in ir_measures" in told


def test_the_command_prints_the_judged_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ir_measures.measures.registry, "FirstGood", FIRST_GOOD)
    (tmp_path / "q").write_text("a 0 x 2\nb 0 x 2\nabsent 0 x 3\n")
    (tmp_path / "r").write_text("a Q0 x 1 1 t\nb Q0 y 1 2 t\nb Q0 x 2 1 t\nunjudged Q0 z 1 1 t\n")
    done = run_command_here("evaluate", "q", "r", "FirstGood", "-q", "-o", "tsv", cwd=tmp_path)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    values = [line for line in lines if line[-1][0].isdigit()]

    assert values == [
        ["a", "FirstGood", "1.0000"],
        ["absent", "FirstGood", "0.0000"],
        ["b", "FirstGood", "0.5000"],
        ["all", "FirstGood", "0.5000"],
    ]
    assert "0.3750 over 4 in ir_measures" in done.stderr


def test_a_function_gets_the_rows_of_a_run_with_iterations(tmp_path: Path) -> None:
    """It silently got the ranking without repeats; it is not called for queries without results."""
    met: dict[str, Any] = {}

    def note(qrels: Any, run: Any) -> float:
        met[run["query_id"].iloc[0]] = run[["doc_id", "iteration"]].values.tolist()
        return 1.0

    measure = ir_measures.define_byquery(note, name="Noted")
    qrels = {query: {"a": 2} for query in ("q", "idle", "absent")}
    run = frame_of({"q": [["a", "b"], [], ["a"]], "idle": [[]]})
    path = tmp_path / "agent.run"
    gg.write_run(run, path)
    for source in (run, path, in_blocks(path, block=20), run.lazy(), run.to_pandas()):
        met.clear()
        scores = gg.evaluate(qrels, source, [measure])
        assert {query: sorted(rows) for query, rows in met.items()} == {"q": [["a", 1], ["a", 3], ["b", 1]]}
        assert scores.per_query["value"].to_list() == [0.0, 0.0, 1.0]


def test_a_function_gets_no_iterations_of_a_run_without_them() -> None:
    def note(qrels: Any, run: Any) -> float:
        assert list(run.columns) == ["query_id", "doc_id", "score"]
        return 1.0

    measure = ir_measures.define_byquery(note, name="Noted")
    assert gg.evaluate(QRELS, RUN, [measure])["Noted"] == pytest.approx(2 / 3)


def test_values_of_unknown_queries_are_refused() -> None:
    numbered = ir_measures.define(lambda qrels, run: [(1, 0.5)], name="Numbered")
    with pytest.raises(gg.MeasureError, match="Numbered returned a value for query 1, which neither"):
        gg.evaluate({"1": {"a": 2}}, {"1": {"a": 1.0}}, [numbered])
