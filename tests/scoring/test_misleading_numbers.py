"""Numbers that would mislead are refused, or told of in a notice: once a call, with the remedy."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import pandas as pd
import polars as pl
import pytest
from ir_measures import NRBP, NumRet, P, R, alpha_nDCG, nDCG

import goodgain as gg
from goodgain.counting import run_opening
from tests.support.call_cases import make_run
from tests.support.counts import how_many
from tests.support.notices import collect_notices
from tests.support.tables import in_one_search, no_notices

QRELS = {"q": {"a": 3, "b": 2, "c": 0}}
ROWS = {"query_id": ["q"] * 4, "step": [1, 1, 2, 2], "doc_id": ["a", "u", "b", "a"], "rank": [1, 2, 1, 2]}
COLUMNS = {"step": "iteration"}


def under(name: str) -> dict[str, list[Any]]:
    """The run with its iteration in a column of this name."""
    return {name if key == "step" else key: values for key, values in ROWS.items()}


def files(folder: Path, rows: dict[str, list[Any]]) -> list[Path]:
    """The run in each kind of file that has names of columns."""
    frame = pl.DataFrame(rows)
    paths = [folder / f"agent.{ending}" for ending in ("parquet", "arrow", "jsonl")]
    frame.write_parquet(paths[0])
    frame.write_ipc(paths[1])
    frame.write_ndjson(paths[2])
    return paths


@pytest.mark.parametrize("name", ["step", "turn", "round", "search", "call", "hop", "Step"])
def test_a_column_that_looks_like_the_iteration_is_an_error_for_our_measures(name: str, tmp_path: Path) -> None:
    for source in (
        pl.DataFrame(under(name)),
        pl.LazyFrame(under(name)),
        pd.DataFrame(under(name)),
        *files(tmp_path, under(name)),
    ):
        with pytest.raises(gg.InputError, match=f"found the column '{name}'.*columns={{'{name}': 'iteration'}}"):
            gg.evaluate(QRELS, source, "nDCG@10 CG@2")
        with pytest.raises(gg.InputError, match=f"found the column '{name}'"):
            gg.ledger(QRELS, source)
        with pytest.raises(gg.InputError, match=f"found the column '{name}'"):
            gg.compare(QRELS, {"one": source, "other": source}, "nDCG@10")  # it shows what each system spent


def without_coverage(told: pytest.WarningsRecorder) -> list[str]:
    """The texts of notices without the one on low coverage, which is right in these small cases."""
    return [text for one in told if not (text := str(one.message)).startswith("coverage is low")]


def test_it_is_an_error_in_ir_measures_pytrec_eval_and_ranx() -> None:
    import ranx

    from goodgain.hosts.pytrec_eval import RelevanceEvaluator
    from goodgain.hosts.ranx import Qrels, Run

    frame = pd.DataFrame(ROWS).assign(score=1.0)
    with pytest.raises(gg.InputError, match="found the column 'step'"):
        ir_measures.calc_aggregate([gg.CG], QRELS, frame)
    with pytest.warns(gg.GoodgainNotice, match="looks like the iteration"):
        run = gg.read_run(frame)
    with pytest.raises(gg.InputError, match="found the column 'step'"):
        ir_measures.calc_aggregate([gg.CG], QRELS, run)
    with pytest.raises(gg.InputError, match="found the column 'step'"):
        RelevanceEvaluator(QRELS, {"cg"}).evaluate(run)
    with pytest.raises(gg.InputError, match="found the column 'step'"):
        ranx.evaluate(Qrels(QRELS), Run(run), "cg")


@pytest.mark.slow
def test_columns_name_the_iteration_in_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = gg.evaluate(QRELS, pl.DataFrame(under("iteration")), "CG@2 SRR nDCG@10").mean()
    assert wanted["CG@2"] == 5 and wanted["SRR"] == 0.25
    row = pl.DataFrame(ROWS)
    sources = [
        row,
        row.lazy(),
        row.to_pandas(),
        row.to_arrow(),
        list(row.to_pandas().itertuples(index=False)),
        *files(tmp_path, ROWS),
    ]

    for source in sources:
        with no_notices():
            assert gg.evaluate(QRELS, source, "CG@2 SRR nDCG@10", columns=COLUMNS).mean() == wanted
            assert gg.read_run(source, columns=COLUMNS).rows["iteration"].to_list() == ROWS["step"]
            comparison = gg.compare(QRELS, {"one": source, "other": source}, "CG@2", columns=COLUMNS)
            assert comparison.means["mean"].to_list() == [5, 5]
            assert gg.ledger(QRELS, source, columns=COLUMNS).height == 2
            assert (
                len(
                    gg.flatten(source, columns=COLUMNS).to_pandas()
                    if source is sources[3]
                    else gg.read_run(gg.flatten(source, columns=COLUMNS))
                )
                == 3
            )

    monkeypatch.setattr(run_opening, "LARGE_COMPRESSED", 0)  # now the file is read in blocks
    assert gg.evaluate(QRELS, tmp_path / "agent.parquet", "CG@2 SRR nDCG@10", columns=COLUMNS).mean() == wanted
    with pytest.raises(gg.InputError, match="found the column 'step'"):
        gg.evaluate(QRELS, tmp_path / "agent.parquet", "CG@2")


def test_a_plain_frame_with_several_iterations_is_told_of_in_ir_measures() -> None:
    frame = pd.DataFrame(under("iteration")).assign(score=[4.0, 3.0, 2.0, 1.0])
    for run in (frame, list(frame.itertuples(index=False))):
        with pytest.warns(gg.GoodgainNotice, match=r"this run has several iterations.*goodgain.read_run\(run\)"):
            ir_measures.calc_aggregate([gg.CG, nDCG @ 10], QRELS, run)
    with no_notices():
        ir_measures.calc_aggregate([gg.CG, nDCG @ 10], QRELS, gg.read_run(frame))
        ir_measures.calc_aggregate([gg.CG, nDCG @ 10], QRELS, frame.assign(iteration=1).drop_duplicates("doc_id"))


@pytest.mark.parametrize(
    "measures",
    [
        [nDCG(gains={1: 1, 2: 3, 3: 7}) @ 3, nDCG @ 3],
        [P(judged_only=True) @ 5, NumRet],
        [NRBP, NRBP(alpha=0.3)],
        [NRBP(alpha=0.3), alpha_nDCG @ 5],
    ],
)
def test_measures_that_ir_measures_mixes_up_are_told_of(measures: list[ir_measures.Measure]) -> None:
    with pytest.warns(gg.GoodgainNotice, match="mixes up the parameters of") as told:
        ir_measures.calc_aggregate([*measures, gg.CG], QRELS, gg.read_run(in_one_search({"q": {"a": 1.0, "u": 0.5}})))
    said = without_coverage(told)
    assert len(said) == 1 and all(str(measure) in said[0] for measure in measures)


def test_measures_that_share_a_call_rightly_are_not_told_of() -> None:
    with no_notices():
        ir_measures.calc_aggregate(
            [nDCG @ 10, P(rel=2) @ 5, P(judged_only=True) @ 5, R @ 100, gg.CG], QRELS, gg.read_run({"q": {"a": 1.0}})
        )


BINARY = {"q": {"a": 1, "b": 0}}


def test_every_threshold_that_no_label_reaches_is_told_of_in_ranx() -> None:
    import ranx

    from goodgain.hosts.ranx import Qrels, Run

    with pytest.warns(gg.GoodgainNotice) as told:
        ranx.evaluate(Qrels(BINARY), Run(in_one_search({"q": {"a": 1.0}})), ["cg", "sre", "cg-l3", "cg-l1", "num_iter"])
    assert sorted(re.findall(r"the threshold (\d)", " ".join(str(one.message) for one in told))) == ["2", "3"]


def test_whole_labels_stay_whole_for_the_hosts(tmp_path: Path) -> None:
    qrels = gg.read_qrels(QRELS)
    assert qrels.frame.schema["relevance"] == pl.Int64
    found = ir_measures.calc_aggregate([nDCG @ 10], qrels.frame.to_pandas(), {"q": {"a": 1.0}})
    assert found[nDCG @ 10] == pytest.approx(gg.evaluate(QRELS, {"q": {"a": 1.0}}, "nDCG@10")["nDCG@10"], abs=1e-12)
    gg.write_qrels(qrels, tmp_path / "qrels.jsonl")
    assert json.loads((tmp_path / "qrels.jsonl").read_text().splitlines()[0])["relevance"] == 3
    assert gg.read_qrels({"q": {"a": 2.2, "b": 1}}).frame.schema["relevance"] == pl.Float64


def test_labels_beyond_the_scale_of_the_default_threshold_are_said_in_ir_measures() -> None:
    run = gg.read_run(in_one_search({"q": {"a": 2.0, "b": 1.0}}))
    with pytest.warns(gg.GoodgainNotice, match=r"labels go up to 10, .* as in CG\(rel=5\)"):
        ir_measures.calc_aggregate([gg.CG], {"q": {"a": 10, "b": 3}}, run)


@pytest.mark.parametrize("seed", range(how_many(10, full=200)))
def test_the_sentence_on_queries_without_results_is_that_of_a_count(seed: int) -> None:
    """Random runs, in which queries are absent, never searched, or found nothing in some searches."""
    random = Random(seed)
    qrels = {f"q{k}": {"a": 2, "b": 0} for k in range(random.randint(1, 6))}
    searches: dict[str, list[list[str]] | None] = {}
    for query_id in qrels:
        kind = random.choice(["absent", "never", "searched", "searched"])
        if kind != "absent":
            lists = [random.choices("abc", k=random.randint(0, 3)) for _ in range(random.randint(1, 3))]
            searches[query_id] = lists if kind == "searched" else None
    searches["q0"] = [["a"]]
    cutoff = random.randint(1, 3)
    with collect_notices() as notices:
        gg.evaluate(qrels, make_run(searches), f"SRR@{cutoff}")
    values = []
    for lists in searches.values():
        results = [doc_id for docs in (lists or [])[:cutoff] for doc_id in docs]
        if results:
            values.append(1 - len(set(results)) / len(results))
    empty = len(qrels) - len(values)
    said = [str(notice) for notice in notices if "queries without results" in str(notice)]
    mean = f"(mean of the others {math.fsum(values) / len(values):.4f})"
    number = f"{empty} quer{'y' if empty == 1 else 'ies'}"
    told = f"queries without results count as 0, the best value: SRR@{cutoff} in {number} {mean}."
    assert said == ([f"{told} Report the mean of the others too."] if empty else [])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GoodgainNotice)
        curve = gg.curve(qrels, {"agent": make_run(searches)}, "SRR", upto=3, resamples=0)
    (point,) = curve.filter(iteration=cutoff).rows(named=True)
    assert point.get("without_results", 0) == empty
    assert point["mean"] == pytest.approx(math.fsum(values) / len(qrels))


@pytest.mark.parametrize(
    "call",
    [
        lambda run: gg.evaluate(QRELS, run, "nDCGG(per=1)@2"),
        lambda run: gg.ledger(QRELS, run, measures="nDCGG(per=1)"),
        lambda run: gg.curve(QRELS, {"old": run}, "nDCGG(per=1)"),
        lambda run: gg.compare(QRELS, {"old": run, "new": run}, "nDCGG(per=1)@2"),
        lambda _run: gg.Scorer(QRELS, "nDCGG(per=1)").score("q", [["a", "b"]]),
    ],
)
def test_an_iteration_with_more_results_than_its_limit_is_refused(call: Any) -> None:
    run = pl.DataFrame(under("iteration"))
    with no_notices(), pytest.raises(gg.MeasureError, match=r"2 results, more than per=1, .* such as per=2"):
        call(run)


def test_a_limit_that_only_later_iterations_exceed_is_right_before_them() -> None:
    run = pl.DataFrame({"query_id": ["q"] * 3, "iteration": [1, 2, 2], "doc_id": ["a", "b", "c"], "rank": [1, 1, 2]})
    with no_notices():
        assert gg.evaluate(QRELS, run, "nDCGG(per=1)@1")["nDCGG(per=1)@1"] == 1.0
