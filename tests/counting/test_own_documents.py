"""leave_out="own": results that are the query's own document are removed before ranks and R are counted."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import in_every_form

RUN = pl.DataFrame(
    {
        "query_id": ["a1"] * 5 + ["b1", "c1"],
        "iteration": [1, 1, 2, 3, 3, 1, 1],
        "doc_id": ["a1", "x", "a1", "y", "x", "b1", "a1"],
        "rank": [1, 2, 1, 1, 2, 1, 1],
        "score": [2.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0],
    }
)
QRELS = {"a1": {"x": 3, "y": 2, "a1": 2}, "b1": {"x": 2}, "c1": {"a1": 2}}
#: Of a1 there remain [x], [], [y, x]; of b1 one empty iteration; a1 is not the own document of c1.
MEANS = {
    "NumIter": (3 + 1 + 1) / 3,
    "NumResults": (3 + 0 + 1) / 3,
    "NumDup": 1 / 3,
    "NumGood@2": (1 + 0 + 1) / 3,
    "nCG": (5 / 7 + 0 + 1) / 3,
    "RR": (1 + 0 + 1) / 3,
    "PerIteration(measure='P@1')": (2 / 3 + 0 + 1) / 3,
}

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")


def test_the_worked_example_has_its_numbers_in_every_kind_of_run(tmp_path: Path) -> None:
    for run in in_every_form(RUN, tmp_path):
        scores = gg.evaluate(QRELS, run, [*MEANS], leave_out="own")
        assert scores.mean() == pytest.approx(MEANS), run
        assert scores.signature["leave_out"] == "own"
        assert scores.signature["qrels"] == gg.evaluate(QRELS, RUN, "CG").signature["qrels"]
    assert "leave_out" not in gg.evaluate(QRELS, RUN, "CG").signature


def without_own(run: pl.DataFrame) -> pl.DataFrame:
    """The oracle: the rows are taken out one by one, and an iteration that has lost all of them gets an empty row."""
    rows, empty = [], {}
    for row in run.iter_rows(named=True):
        if row["doc_id"] == row["query_id"]:
            empty.setdefault((row["query_id"], row["iteration"]), row | {"doc_id": "-"})
        else:
            rows.append(row)
    kept = {(row["query_id"], row["iteration"]) for row in rows}
    rows += [row for place, row in empty.items() if place not in kept]
    return pl.DataFrame(rows, schema=run.schema)


@pytest.mark.slow
@pytest.mark.parametrize("page", [None, 2])
def test_random_runs_have_the_values_of_runs_without_these_rows(page: int | None) -> None:
    measures = "nCG SRR@2 NumIter NumResults nDCG@3 P@2 NumRet PerIteration(measure='nDCG@2') nSessionDCG"
    for seed in range(how_many(4, full=40)):
        draw = Random(seed)
        ids = [f"d{k}" for k in range(5)]
        qrels = {query: {doc: draw.randint(0, 3) for doc in draw.sample(ids, 4)} for query in ids[:3]}
        rows = [
            (query, 1 if page else i, doc, k, float(9 - k))
            for query in ids[:3]
            for i in range(1, 2 if page else draw.randint(2, 4))
            for k, doc in enumerate(draw.sample(ids, draw.randint(1, 4)), 1)
        ]
        run = pl.DataFrame(rows, schema=RUN.schema, orient="row")
        run = run.drop("iteration") if page else run
        wanted = without_own(run.with_columns(iteration=pl.lit("Q0")) if page else run)
        order = draw.choice(["seen", "interleaved", "last"])
        options: dict[str, Any] = {"order": order, "page": page, "bounds": bool(draw.randint(0, 1))}
        found = gg.evaluate(qrels, run, measures, leave_out="own", **options)
        expected = gg.evaluate(qrels, wanted, measures, **options)
        assert_frame_equal(found.per_query, expected.per_query, check_exact=True)
        assert_frame_equal(found.coverage, expected.coverage)


def test_the_doors_agree(tmp_path: Path) -> None:
    other, kept = RUN.filter(pl.col("iteration") < 3), {"leave_out": "own"}
    runs, wanted = {"a": RUN, "b": other}, {"a": without_own(RUN), "b": without_own(other)}
    assert_frame_equal(gg.compare(QRELS, runs, "nCG RR", **kept).values, gg.compare(QRELS, wanted, "nCG RR").values)
    assert_frame_equal(gg.curve(QRELS, runs, "nCG", **kept), gg.curve(QRELS, wanted, "nCG"))
    assert_frame_equal(
        gg.curve(QRELS, runs, "CG", over="results", **kept), gg.curve(QRELS, wanted, "CG", over="results")
    )
    assert_frame_equal(gg.ledger(QRELS, RUN, **kept), gg.ledger(QRELS, wanted["a"]))
    assert_frame_equal(gg.coverage(QRELS, runs, **kept), gg.coverage(QRELS, wanted))
    assert_frame_equal(gg.pr_curve(QRELS, runs, **kept), gg.pr_curve(QRELS, wanted))
    assert_frame_equal(gg.explain(QRELS, RUN, other, **kept).causes, gg.explain(QRELS, *wanted.values()).causes)
    pages = [
        gg.report(QRELS, of, tmp_path / f"{k}.json", "nCG RR", **more).read_text()
        for k, (of, more) in enumerate([(runs, kept), (wanted, {})])
    ]
    assert re.sub(r'\n *"leave_out": "own",', "", pages[0]) == pages[1]


def test_commands_leave_it_out_and_a_baseline_file_says_so(tmp_path: Path) -> None:
    gg.write_run(RUN, tmp_path / "a.run")
    gg.write_qrels(QRELS, tmp_path / "qrels.txt")
    done = run_command("evaluate", "qrels.txt", "a.run", "NumResults", "--leave-out", "own", "-p", "2", cwd=tmp_path)
    assert done.stdout == "NumResults\t1.33\n" and "leave_out=own" in done.stderr
    pooled = run_command("pool", "a.run", "-o", "sheet.csv", "--leave-out", "own", cwd=tmp_path)
    assert pooled.returncode == 0
    assert {*pl.read_csv(tmp_path / "sheet.csv").select("query_id", "doc_id").rows()} == {
        ("a1", "x"),
        ("a1", "y"),
        ("c1", "a1"),
    }
    gg.compare(QRELS, {"a": RUN, "b": RUN}, "nCG").write_baseline(tmp_path / "old.jsonl", "a")
    with pytest.raises(gg.InputError, match="leave_out=None instead of leave_out='own'"):
        gg.compare(QRELS, {"a": RUN}, "nCG", baseline_file=tmp_path / "old.jsonl", leave_out="own")
