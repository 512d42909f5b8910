"""`only=` uses some of the queries, in every kind of run and every analysis, as if the files had no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.forms import in_every_form, write_table

IDS = [f"q{k}" for k in range(6)]
SOME = ["q1", "q2", "q5"]
QRELS = pl.DataFrame(
    {
        "query_id": [q for q in IDS for _ in range(3)],
        "doc_id": ["d0", "d1", "d2"] * 6,
        "relevance": [3, 2, 0, 0, 2, 2, 3, 3, 0] * 2,
    }
)
RUN = pl.DataFrame(
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
    wanted = gg.evaluate(cut(QRELS), cut(RUN), MEASURES)
    for run in (*in_every_form(RUN, tmp_path, block=30), write_table(RUN, tmp_path / "a.parquet")):
        found = gg.evaluate(QRELS, run, MEASURES, only=SOME)
        assert found.per_query.equals(wanted.per_query), run
        assert found.signature.pop("only").startswith("3:")
        assert found.signature == wanted.signature


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
    wanted = gg.evaluate(QRELS, RUN, MEASURES, only=SOME)
    for given in (tmp_path / name, str(tmp_path / name), pl.Series(SOME), pl.DataFrame({"query_id": SOME})):
        found = gg.evaluate(QRELS, RUN, MEASURES, only=given)
        assert found.mean() == wanted.mean() and found.signature == wanted.signature


def test_an_id_that_the_qrels_lack_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(gg.InputError, match=r"only=: the qrels lack 2 queries: other, q7\. Leave them out\."):
        gg.evaluate(QRELS, RUN, "CG", only=["q7", "q1", "other"])
    (tmp_path / "none.txt").write_text("\n")
    with pytest.raises(gg.InputError, match=r"none\.txt: names no query"):
        gg.evaluate(QRELS, RUN, "CG", only=tmp_path / "none.txt")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*stop at different iterations:goodgain.GoodgainNotice")
def test_every_analysis_uses_these_queries_alone() -> None:
    systems = {"new": RUN, "old": RUN.filter(pl.col("iteration") < 3)}
    x = gg.Experiment(QRELS, systems).only(SOME)
    y = gg.Experiment(cut(QRELS), {name: cut(run) for name, run in systems.items()})
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
    gg.compare(QRELS, {"one": RUN, "two": RUN}, "CG", only=SOME).write_baseline(path, "one")
    assert gg.compare(QRELS, {"new": RUN}, "CG", only=SOME, baseline_file=path).pairs.item(0, "difference") == 0
    with pytest.raises(gg.InputError, match=r"was made with only='3:\w+' instead of only=None"):
        gg.compare(QRELS, {"new": RUN}, "CG", baseline_file=path)


def test_the_commands_take_the_file(tmp_path: Path) -> None:
    gg.write_run(RUN, tmp_path / "a.run")
    gg.write_qrels(QRELS, tmp_path / "qrels.txt")
    (tmp_path / "some.txt").write_text("\n".join(SOME))
    done = run_command("evaluate", tmp_path / "qrels.txt", tmp_path / "a.run", "NumQ", "--only", tmp_path / "some.txt")
    assert done.stdout == "NumQ\t3.0000\n" and "queries: 3 scored" in done.stderr and " only=3:" in done.stderr
