"""An analysis reads its tables at each call: it sees a file that was written again, and a frame that was changed in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

QUERIES = [f"q{k}" for k in range(8)]
QRELS = {query_id: {"a": 3, "b": 2} for query_id in QUERIES}
SYSTEMS = {
    name: pl.DataFrame({"query_id": QUERIES * 2, "iteration": [1] * 8 + [2] * 8, "doc_id": [first] * 8 + ["b"] * 8})
    for name, first in (("old", "a"), ("new", "x"))
}


def make_table(**columns: Any) -> pl.DataFrame:
    """Return a row for each query and system, with the columns."""
    systems = ["old"] * 8 + ["new"] * 8
    return pl.DataFrame({"query_id": QUERIES * 2, "system": systems}).with_columns(
        pl.Series(name, value if isinstance(value, list) else [value] * 16) for name, value in columns.items()
    )


def make_uses(opened: bool) -> pl.DataFrame:
    return make_table(doc_id="b", returned_at=2, opened_at=2 if opened else 3, opens=1, cited=opened)


def make_results(text: str) -> pl.DataFrame:
    of_first = make_table(iteration=1, search=1, rank=0, search_query="dam")
    of_second = make_table(iteration=2, search=1, rank=0, search_query=text)
    return pl.concat([of_first, of_second])


GROUPS = [pl.DataFrame({"query_id": QUERIES, "group": ["u"] * number + ["v"] * (8 - number)}) for number in (4, 6)]
OUTCOMES = [make_table(solved=[number] * 8 + [1 - number] * 8) for number in (0, 1)]
COMPLETED = [make_table(completed=[1] * 8 + [number] * 8) for number in (1, 0)]
COSTS = [pl.concat([make_table(iteration=i, input_tokens=number, cost=number) for i in (1, 2)]) for number in (3, 4)]
LENGTHS = [pl.DataFrame({"doc_id": ["a", "b", "c", "d"], "length": [number] * 4}) for number in (30, 4000)]
USES = [make_uses(opened) for opened in (True, False)]
RESULTS = [make_results(text) for text in ("dam", "bridge")]


class Case(NamedTuple):
    before: pl.DataFrame
    after: pl.DataFrame
    analyse: Callable[[gg.Experiment, Any], pl.DataFrame]
    options: Mapping[str, Any] = MappingProxyType({})
    option: str = ""  # the option of the experiment that takes the table, if the analysis does not


AREA = "AreaOver(over='tokens',budget=8)"
CASES = {
    "compare, groups": Case(*GROUPS, lambda x, table: x.compare("CG", groups=table).groups),
    "evaluate, groups": Case(*GROUPS, lambda x, table: x.evaluate("CG", groups=table).by_group),
    "compare, outcomes": Case(*OUTCOMES, lambda x, table: x.compare("CG", outcomes=table).means),
    "compare, completed": Case(
        *COMPLETED, lambda x, table: x.compare("CG", outcomes=table).means, {"incomplete": "zero"}
    ),
    "explain, completed": Case(
        *COMPLETED, lambda x, table: x.explain("old", "new", outcomes=table).queries, {"incomplete": "zero"}
    ),
    "spend, outcomes": Case(*OUTCOMES, lambda x, table: x.spend(COSTS[0], outcomes=table)),
    "spend, costs": Case(*COSTS, lambda x, table: x.spend(table)),
    "curve, costs": Case(*COSTS, lambda x, table: x.curve("CG", over="tokens", costs=table)),
    "evaluate, costs": Case(*COSTS, lambda x, table: x.evaluate(AREA).values, option="costs"),
    "compare, costs": Case(*COSTS, lambda x, table: x.compare(AREA).means, option="costs"),
    "evaluate, lengths": Case(*LENGTHS, lambda x, table: x.evaluate("U").values, option="lengths"),
    "evaluate, results": Case(*RESULTS, lambda x, table: x.evaluate("RepeatedQueries").values, option="results"),
    "explain, results": Case(*RESULTS, lambda x, table: x.explain("old", "new", results=table).iterations),
    "explain, uses": Case(*USES, lambda x, table: x.explain("old", "new", uses=table).documents),
    "funnel, uses": Case(*USES, lambda x, table: x.funnel(table).frame),
}


@pytest.mark.parametrize("form", ["file", "frame"])
@pytest.mark.parametrize("name", CASES)
def test_a_changed_table_changes_the_next_result(name: str, form: str, tmp_path: Path) -> None:
    before, after, analyse, options, option = CASES[name]
    path = tmp_path / "table.jsonl"
    frame = before.to_pandas()
    table: Any = str(path) if form == "file" else frame
    before.write_ndjson(path)
    options = {"resamples": 99, **options, **({option: table} if option else {})}

    x = gg.Experiment(QRELS, SYSTEMS, **options)
    first = analyse(x, table)
    after.write_ndjson(path)
    for column in after.columns:
        frame.loc[:, column] = after.get_column(column).to_list()

    again, wanted = analyse(x, table), analyse(gg.Experiment(QRELS, SYSTEMS, **options), table)
    assert_frame_equal(again, wanted)
    assert not again.equals(first)


def test_a_baseline_file_that_is_written_again_changes_the_next_comparison(tmp_path: Path) -> None:
    compared, path = gg.compare(QRELS, SYSTEMS, "CG", resamples=99), tmp_path / "baseline.jsonl"
    x = gg.Experiment(QRELS, {"mine": SYSTEMS["new"]}, resamples=99)
    differences = []
    for system in ("old", "new"):
        compared.write_baseline(path, system)
        differences += x.compare("CG", baseline_file=path).pairs["difference"].to_list()
    assert differences == [-3.0, 0.0]


def test_qrels_runs_and_the_options_only_and_documents_are_read_once(tmp_path: Path) -> None:
    run, only = tmp_path / "a.run", tmp_path / "only.txt"
    run.write_text("q0 1 a 1 1 t\n")
    only.write_text("q0\n")
    x = gg.Experiment(QRELS, {"a": run}, only=only)
    assert x.evaluate("CG")["CG"] == 3.0
    run.write_text("q0 1 b 1 1 t\n")
    only.write_text("q1\n")
    assert x.evaluate("NumGood CG")["CG"] == 3.0
    assert gg.Experiment(QRELS, {"a": run}, only=["q0"]).evaluate("CG")["CG"] == 2.0
