"""leave_out='own' removes the own document of a query, and only= uses some of the queries: in every kind of run and analysis."""

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
from tests.support.forms import in_every_form, write_table

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

quiet = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")


@quiet
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


@quiet
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
        scores = gg.evaluate(qrels, run, measures, leave_out="own", **options)
        expected = gg.evaluate(qrels, wanted, measures, **options)
        assert_frame_equal(scores.per_query, expected.per_query, check_exact=True)
        assert_frame_equal(scores.coverage, expected.coverage)


@quiet
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


@quiet
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


IDS = [f"q{k}" for k in range(6)]
SOME = ["q1", "q2", "q5"]
ALL_QRELS = pl.DataFrame(
    {
        "query_id": [q for q in IDS for _ in range(3)],
        "doc_id": ["d0", "d1", "d2"] * 6,
        "relevance": [3, 2, 0, 0, 2, 2, 3, 3, 0] * 2,
    }
)
ALL_RUN = pl.DataFrame(
    {
        "query_id": [q for q in [*IDS, "other"] for _ in range(4)],
        "iteration": [1, 1, 2, 3] * 7,
        "doc_id": ["d2", "d0", "d0", "d1", "d1", "d9", "d0", "d2"] * 3 + ["d0", "d1", "d2", "d3"],
        "rank": [1, 2, 1, 1] * 7,
    }
)
MEASURES = "CG SRR nCG@2 nDCG@10 NumQ"


def cut(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("query_id").is_in(SOME))


@pytest.mark.slow
def test_values_are_those_of_files_without_the_other_queries_in_every_kind_of_run(tmp_path: Path) -> None:
    wanted = gg.evaluate(cut(ALL_QRELS), cut(ALL_RUN), MEASURES)
    for run in (*in_every_form(ALL_RUN, tmp_path, block=30), write_table(ALL_RUN, tmp_path / "a.parquet")):
        scores = gg.evaluate(ALL_QRELS, run, MEASURES, only=SOME)
        assert scores.per_query.equals(wanted.per_query), run
        assert scores.signature.pop("only").startswith("3:")
        assert scores.signature == wanted.signature


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("some.txt", "q2\r\n\nq1\nq5\nq5\n"),
        ("some.csv", "query_id,text\nq1,a\nq2,b\nq5,c\n"),
        ("some.jsonl", '{"query_id": "q1"}\n{"query_id": "q2"}\n{"query_id": "q5"}\n'),
    ],
)
def test_the_queries_stand_in_a_list_or_a_table(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    wanted = gg.evaluate(ALL_QRELS, ALL_RUN, MEASURES, only=SOME)
    for given in (tmp_path / name, str(tmp_path / name), pl.Series(SOME), pl.DataFrame({"query_id": SOME})):
        scores = gg.evaluate(ALL_QRELS, ALL_RUN, MEASURES, only=given)
        assert scores.mean() == wanted.mean() and scores.signature == wanted.signature


def test_an_id_that_the_qrels_lack_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(gg.InputError, match=r"only=: the qrels lack 2 queries: other, q7\. Give only queries of"):
        gg.evaluate(ALL_QRELS, ALL_RUN, "CG", only=["q7", "q1", "other"])
    (tmp_path / "none.txt").write_text("\n")
    with pytest.raises(gg.InputError, match=r"none\.txt: names no query"):
        gg.evaluate(ALL_QRELS, ALL_RUN, "CG", only=tmp_path / "none.txt")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*stop at different iterations:goodgain.GoodgainNotice")
def test_every_analysis_uses_these_queries_alone() -> None:
    systems = {"new": ALL_RUN, "old": ALL_RUN.filter(pl.col("iteration") < 3)}
    x = gg.Experiment(ALL_QRELS, systems).only(SOME)
    y = gg.Experiment(cut(ALL_QRELS), {name: cut(run) for name, run in systems.items()})
    assert x.compare("CG SRR").pairs.equals(y.compare("CG SRR").pairs)

    for analyse in (
        lambda one: one.curve("CG SRR"),
        lambda one: one.ledger(),
        lambda one: one.coverage(),
        lambda one: one.pr_curve(),
        lambda one: one.spend(),
        lambda one: one.explain("old", "new", "CG").queries,
    ):
        analysis: Any = analyse
        assert analysis(x).equals(analysis(y))


def test_a_baseline_file_of_other_queries_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.baseline"
    gg.compare(ALL_QRELS, {"one": ALL_RUN, "two": ALL_RUN}, "CG", only=SOME).write_baseline(path, "one")
    assert gg.compare(ALL_QRELS, {"new": ALL_RUN}, "CG", only=SOME, baseline_file=path).pairs.item(0, "difference") == 0
    with pytest.raises(gg.InputError, match=r"was made with only='3:\w+' instead of only=None"):
        gg.compare(ALL_QRELS, {"new": ALL_RUN}, "CG", baseline_file=path)


def test_the_commands_take_the_file(tmp_path: Path) -> None:
    gg.write_run(ALL_RUN, tmp_path / "a.run")
    gg.write_qrels(ALL_QRELS, tmp_path / "qrels.txt")
    (tmp_path / "some.txt").write_text("\n".join(SOME))
    done = run_command("evaluate", tmp_path / "qrels.txt", tmp_path / "a.run", "NumQ", "--only", tmp_path / "some.txt")
    assert done.stdout == "NumQ\t3.0000\n" and "queries: 3 scored" in done.stderr and " only=3:" in done.stderr
