"""What engine_checks.py asks of every engine, of Spark: `make test-spark` runs it, where there is Java.

Spark is slow to answer and takes any number of rows: each test asks it few questions.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest

import goodgain as gg
from goodgain.formats import spark_workers
from goodgain.ranking.first_occurrences_and_flattening import ORDERS
from tests.support import engine_checks as checks
from tests.support.counts import how_many
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

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else that of the search path
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
def _rows_out_of_spark() -> Iterator[checks.Handed]:
    """The number of rows that PySpark itself hands over, whoever asks it."""
    from pyspark.sql.classic.dataframe import DataFrame

    handed = checks.Handed([], [])

    def counting(way: str) -> Any:
        original = getattr(DataFrame, way)

        def collect(self: Any, *args: Any, **options: Any) -> Any:
            found = original(self, *args, **options)
            handed.tables.append(len(found))
            return found

        return mock.patch.object(DataFrame, way, collect)

    with counting("toArrow"), counting("toPandas"), counting("collect"):
        yield handed


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
        ("only_small_tables_are_collected", [_rows_out_of_spark]),
        ("classic_measures_agree_and_the_run_is_read_once", [_rows_out_of_spark]),
        ("classic_measures_are_the_same_in_each_order", []),
    ],
)
def test_spark_does_what_memory_does(put: Put, check: str, arguments: list[Any]) -> None:
    getattr(checks, check)(put, *arguments)


def test_random_runs_have_the_values_of_memory(put: Put, tmp_path: Path) -> None:
    for seed in range(how_many(2, full=6)):
        checks.check_parts(put, tmp_path, seed)


def test_qrels_of_another_session_and_of_other_engines_are_carried_to_that_of_the_run(spark: Any, put: Put) -> None:
    run = put(pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"], "score": 1.0}))
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["b"], "relevance": [3.0]})
    for other in (spark.newSession().createDataFrame(qrels.to_arrow()), qrels.lazy(), qrels.to_pandas()):
        assert gg.ledger(other, run)["G"].to_list() == [0.0, 3.0]
    here = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["b"]})
    assert gg.ledger(put(qrels), here)["G"].to_list() == [3.0]


_HIDE_GOODGAIN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "goodgain":
            raise ModuleNotFoundError("No module named 'goodgain'")
sys.meta_path.insert(0, Hidden())
"""


def test_workers_without_goodgain_are_an_error_before_anything_is_counted(
    spark: Any, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = put(pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"], "score": 1.0}))
    with monkeypatch.context() as patched:
        patched.setattr(spark_workers, "__version__", "0.0")
        with pytest.raises(
            gg.InputError, match=r"the workers of Spark need this goodgain \(theirs is .*, here is 0.0\)"
        ):
            gg.evaluate({"q": {"a": 2}}, run, "CG")

    (tmp_path / "sitecustomize.py").write_text(_HIDE_GOODGAIN)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    for call in (lambda: gg.evaluate({"q": {"a": 2}}, run, "CG"), lambda: gg.flatten(run)):
        with pytest.raises(gg.InputError, match=r"No module named 'goodgain'.* PYSPARK_PYTHON"):
            call()


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
