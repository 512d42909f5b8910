"""What engine_checks.py asks of every engine, of Spark: `make test-spark` runs it, where there is Java.

Spark is slow to answer and takes any number of rows: each test asks it few questions.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest

import goodgain as gg
from goodgain.counting.ledger import count
from goodgain.ranking.first_occurrences_and_flattening import ORDERS
from tests.support import engine_checks as checks
from tests.support.engine_checks import Put
from tests.support.page_examples import run_python
from tests.support.tables import ROOT, SESSIONS

pytestmark = pytest.mark.spark


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and Path(home, "bin", "java").exists())


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one session of the tests, on this machine alone."""
    if not _has_java():
        pytest.skip("there is no Java here, which Spark runs on; make test-spark runs these tests where there is")
    pytest.importorskip("pyspark", reason="PySpark is not installed: make test-spark installs it and runs these tests")
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def put(spark: Any) -> Put:
    return lambda frame: spark.createDataFrame(frame.to_arrow())


@pytest.mark.skipif(not SESSIONS.exists(), reason="the real sessions are shared beside the checkout, never in it")
def test_the_real_sessions_are_the_same(put: Put) -> None:
    checks.the_real_sessions_agree(put)


@contextmanager
def _rows_out_of_spark() -> Iterator[list[int]]:
    """The number of rows that PySpark itself hands over, whoever asks it."""
    from pyspark.sql.classic.dataframe import DataFrame

    heights: list[int] = []

    def counting(way: str) -> Any:
        original = getattr(DataFrame, way)

        def collect(self: Any, *args: Any, **options: Any) -> Any:
            found = original(self, *args, **options)
            heights.append(len(found))
            return found

        return mock.patch.object(DataFrame, way, collect)

    with counting("toArrow"), counting("toPandas"), counting("collect"):
        yield heights


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        *(("ledgers_and_pools_agree", [labels]) for labels in (None, "iteration")),
        *(("scores_agree", [labels]) for labels in (None, "iteration")),
        *(("rankings_agree", [order]) for order in ORDERS),
        *(("rankings_agree", ["seen", (without,)]) for without in ("rank", "score")),
        ("ties_are_broken_by_doc_id", []),
        ("a_lazy_run_is_told_of_as_one_in_memory", []),
        ("missing_iterations_are_added", []),
        ("queries_that_never_searched_are_known", []),
        ("only_small_tables_leave", [_rows_out_of_spark]),
        ("classic_measures_agree_and_no_ranking_leaves", [_rows_out_of_spark]),
        ("classic_measures_are_the_same_in_each_order", []),
        ("infinite_scores_are_ranked_as_in_memory", []),
    ],
)
def test_spark_does_what_memory_does(put: Put, check: str, arguments: list[Any]) -> None:
    getattr(checks, check)(put, *arguments)


def test_qrels_of_another_session_and_of_other_engines_are_carried_to_that_of_the_run(spark: Any, put: Put) -> None:
    run = put(pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"], "score": 1.0}))
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["b"], "relevance": [3.0]})
    for other in (spark.newSession().createDataFrame(qrels.to_arrow()), qrels.lazy(), qrels.to_pandas()):
        assert count(other, run)[2].ledger["G"].to_list() == [0.0, 3.0]
    assert count(put(qrels), pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["b"]}))[2].ledger["G"][0] == 3.0


def test_words_and_tags_that_break_the_rules_are_errors(put: Put) -> None:
    words = pl.DataFrame({"query_id": "q", "iteration": ["1", "x"], "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    with pytest.raises(gg.InputError, match="column 2"):
        gg.read_run(put(words))
    tags = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["a", "b"], "tag": ["s", "t"]})
    with pytest.raises(gg.InputError, match="tag"):
        gg.read_run(put(tags))


def test_the_example_of_the_docs_prints_what_the_page_shows(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    (example,) = (block for block in re.findall(r"```pycon\n(.*?)```", page, flags=re.DOTALL) if "pyspark" in block)
    assert run_python(example, "pycon", {}) == example
