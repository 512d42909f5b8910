"""What Python gives in place of a file or a frame is read, or is one sentence that says what to give."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import goodgain as gg


def test_qrels_without_rows_have_no_judgment() -> None:
    for rows in ([], iter(())):
        with pytest.raises(gg.InputError, match="the qrels: there is no judgment in these qrels"):
            gg.read_qrels(rows)


def test_a_column_whose_name_is_a_number_is_passed_over() -> None:
    rows = {"query_id": ["q"], "doc_id": ["a"], 5: [1]}
    run = gg.read_run(pd.DataFrame(rows | {"score": [1.0]}))
    qrels = gg.read_qrels(pd.DataFrame(rows | {"relevance": [2]}))
    assert gg.evaluate(qrels, run, "RR")["RR"] == 1


@pytest.mark.parametrize("iteration", [1.5, float("nan"), float("inf")])
def test_an_iteration_of_results_that_is_no_whole_number_is_refused(iteration: float) -> None:
    results = pl.DataFrame({"query_id": ["q", "q"], "iteration": [1.0, iteration], "rank": [1, 1], "url": ["u", "v"]})
    with pytest.raises(gg.InputError, match="The column iteration of the results has"):
        gg.deduplicate(results)
    whole = gg.deduplicate(results.with_columns(iteration=pl.Series([1.0, None]))).frame
    assert whole.height == 2


def test_a_path_may_be_text_or_a_path(tmp_path: Path) -> None:
    gg.write_run({"q": {"a": 1.0}}, tmp_path / "a.run")
    gg.write_run({"q": {"a": 1.0}}, str(tmp_path / "b.run"))
    assert (tmp_path / "a.run").read_bytes() == (tmp_path / "b.run").read_bytes()
