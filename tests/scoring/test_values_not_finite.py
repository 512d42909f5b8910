"""A value that is not finite is null wherever it is shown, and so is the mean, with one notice."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain import compare
from goodgain.errors import GoodgainNotice
from tests.support.notices import notices_of
from tests.support.tables import in_one_search

QRELS = {f"q{k}": {"a": 2, "b": 0} for k in range(4)}
RUN = in_one_search({f"q{k}": {"a": 1.0, "b": 0.5} for k in range(4)})


def only_sometimes(bad: float) -> ir_measures.Measure:
    """1 for each query, and something else for q1."""

    def value(qrels: Any, run: Any) -> float:
        return bad if run["query_id"].iloc[0] == "q1" else 1.0

    return ir_measures.define_byquery(value, name="Sometimes")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_null_and_so_is_the_mean(bad: float) -> None:
    measure = only_sometimes(bad)
    with pytest.warns(
        GoodgainNotice,
        match=r"^no finite value of Sometimes in 1 of 4 queries: a query without a finite value gets null, and the mean is",
    ):
        scores = gg.evaluate(QRELS, RUN, [measure, "nDCG@10", "SRE"])
    values = scores.per_query.filter(pl.col("measure") == "Sometimes").get_column("value")
    assert values.to_list() == [1.0, None, 1.0, 1.0]
    assert scores["Sometimes"] is None and scores[measure] is None
    assert scores.mean() == {"Sometimes": None, "nDCG@10": 1.0, "SRE": 0.5}
    assert repr(scores) == "Scores(Sometimes=–, nDCG@10=1.0000, SRE=0.5000; 4 queries)"


def test_one_notice_names_all_such_measures() -> None:
    never = ir_measures.define_byquery(lambda qrels, run: math.nan, name="Never")
    _, said = notices_of(lambda: gg.evaluate(QRELS, RUN, [never, "SRE", only_sometimes(math.nan)]))
    assert len(said) == 1 and "Never in 4 of 4 queries, Sometimes in 1 of 4 queries" in said[0]
    assert not notices_of(lambda: gg.evaluate(QRELS, RUN, "SRE nDCG@10"))[1]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "tsv", "jsonl"])
def test_the_command_prints_null_a_dash_or_nothing_and_never_nan(form: str, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q0 0 a 2\nq1 0 a 2\n")
    (tmp_path / "a.run").write_text("q0 1 a 1 1 t\nq1 1 a 1 1 t\n")
    code = (
        "import ir_measures, math, sys\n"
        "def half(qrels, run): return math.nan if run['query_id'].iloc[0] == 'q1' else 1.0\n"
        "ir_measures.measures.register(ir_measures.define_byquery(half, name='Half'))\n"
        "from goodgain.cli import main; main()"
    )
    argv = ["evaluate", "qrels", "a.run", "Half SRE", "-q", "-o", form]
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "nan" not in done.stdout.lower()
    assert done.stderr.count("notice: no finite value of Half in 1 of 2 queries") == 1

    if form == "jsonl":
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        found = {(row.get("query_id"), row["measure"]): row["value"] for row in rows}
        assert found["q0", "Half"] == 1 and found["q1", "Half"] is None and found["all", "Half"] is None
    elif form == "tsv":
        assert "q1\tHalf\t\n" in done.stdout and "all\tHalf\t\n" in done.stdout
    else:
        assert done.stdout.count("–") == 2


def test_a_comparison_leaves_such_queries_out_for_all_systems() -> None:
    runs = {"one": RUN, "other": RUN.clone()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)
        comparison = compare(QRELS, runs, [only_sometimes(math.inf)])
    assert comparison.pairs.get_column("queries").to_list() == [3]
    assert comparison.means.get_column("mean").to_list() == [1.0, 1.0]
    assert "Sometimes leaves out 1 query where a system has no value (one 1, other 1)." in comparison.notes
    assert comparison.values.get_column("value").null_count() == 2
    json.loads(comparison.to_text("json"))
