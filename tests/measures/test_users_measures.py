"""Measures that users define with `goodgain.define`: the guideline's ten, written as functions, are the oracle's in every door."""

from __future__ import annotations

import copy
import math
import pickle
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

import ir_measures
import polars as pl
import pytest
import ranx

import goodgain as gg
from goodgain.hosts import pytrec_eval as trec_host
from goodgain.hosts import ranx as ranx_host
from goodgain.measures.declaration import DECLARATIONS
from goodgain.measures.names import parse_measures
from goodgain.measures.users_values import COLUMNS
from tests.support import oracle
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import FRAMES, in_blocks
from tests.support.notices import notices_of
from tests.support.random_runs import Case, Shape, make_case
from tests.support.tables import ROOT, qrels_frame, run_frame

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")


def discount(row: dict[str, Any]) -> float:
    return 1 / math.log2(row["iteration"] + 1)


def per_result(row: dict[str, Any]) -> float:
    return row["G"] / row["R"] if row["R"] else 0.0


def find_all_good(rows: pl.DataFrame) -> float:
    found, wanted = 0, rows.item(0, "GoodPool")
    for row in rows.iter_rows(named=True):
        found += row["GR"]
        if found == wanted:
            return min(row["iteration"], 100) if wanted else 0
    return 100


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


#: Name of the guideline's measure -> its better direction, and a function of the rows.
TEN: dict[str, tuple[Any, Any]] = {
    "CG": ("up", lambda rows: rows["G"].sum()),
    "RG": ("up", lambda rows: rows["G"].sum() / rows.height),
    "DCGG": ("up", lambda rows: math.fsum(discount(row) * row["G"] for row in rows.iter_rows(named=True))),
    "DRG": (
        "up",
        lambda rows: math.fsum(discount(row) * row["G"] for row in rows.iter_rows(named=True)) / rows.height,
    ),
    "AvgGain": ("up", lambda rows: per_result(rows.row(-1, named=True))),
    "RAG": ("up", lambda rows: math.fsum(map(per_result, rows.iter_rows(named=True))) / rows.height),
    "DRAG": (
        "up",
        lambda rows: math.fsum(discount(row) * per_result(row) for row in rows.iter_rows(named=True)) / rows.height,
    ),
    "SRE": ("up", lambda rows: ratio(rows["GR"].sum(), rows["R"].sum())),
    "SRR": ("down", lambda rows: ratio(rows["Dup"].sum(), rows["R"].sum())),
    "IterationsForAllGoodResults": ("down", find_all_good),
    "nCG": ("up", lambda rows: ratio(rows["G"].sum(), rows.item(0, "GainPool"))),
    "NumUnjudged": ("down", lambda rows: rows["Unjudged"].sum()),
    "NumIter": ("down", lambda rows: rows.item(0, "N")),
}
CASES = how_many(8, full=30)
CUTOFFS = (1, 2, 7)


def define_ten() -> None:
    for name, (better, function) in TEN.items():
        gg.define(f"My{name}", function, better=better)


@cache
def all_cases(labels: str | None) -> Case:
    run, qrels = [], []
    for seed in range(CASES):
        case = make_case(Random(seed), Shape(by_iteration=labels is not None, words=seed % 3 == 0))
        run += [row._replace(query_id=f"{seed}-{row.query_id}") for row in case.run]
        qrels += [row._replace(query_id=f"{seed}-{row.query_id}") for row in case.qrels]
    return Case(run, qrels, labels)


def work_out(case: Case, *, rel: float = 2) -> dict[str, dict[str, float | None]]:
    """Name of the user's measure, with a cutoff or without -> query -> value."""
    tables = oracle.count(case.run, case.qrels, rel=rel, labels=case.labels)
    threshold = "" if rel == 2 else f"(rel={rel})"
    values: dict[str, dict[str, float | None]] = {}

    for name, (better, _) in TEN.items():
        for cutoff in (None, *CUTOFFS):
            has_none = name in (*oracle.ALONE, *oracle.WITHOUT_CUTOFF) and name != "NumIter"
            if has_none and (cutoff is None) == (name in oracle.ALONE):
                continue
            at = None if name in oracle.WITHOUT_CUTOFF else cutoff
            found = {query: oracle.value(tables, query, name, at=at) for query in tables.pools}
            values[f"My{name}{threshold}" + (f"@{cutoff}" if cutoff else "")] = {
                query: (None if better == "down" else 0.0) if not tables.pools[query].N else float(value or 0)
                for query, value in found.items()
            }

    return values


def check(scores: gg.Scores, wanted: dict[str, dict[str, float | None]]) -> None:
    found: dict[str, dict[str, float]] = {name: {} for name in wanted}
    for query_id, name, value in scores.per_query.iter_rows():
        if name in wanted:
            found[name][query_id] = oracle.to_float(value)
    for name, values in wanted.items():
        known = [value for value in values.values() if value is not None]
        expected = {query: oracle.to_float(value) for query, value in values.items()}
        assert found[name] == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True), name
        assert scores[name] == pytest.approx(math.fsum(known) / len(known), rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("labels", [None, "iteration"])
def test_the_ten_as_functions_are_the_oracles(labels: str | None) -> None:
    case, qrels = all_cases(labels), gg.read_qrels(qrels_frame(all_cases(labels).qrels), labels=labels)
    define_ten()
    wanted = work_out(case)
    check(gg.evaluate(qrels, run_frame(case.run), [*wanted]), wanted)
    lower = work_out(case, rel=1)
    check(gg.evaluate(qrels, run_frame(case.run), [*lower]), lower)


def test_the_ten_as_functions_are_the_oracles_from_text_blocks_and_engines(tmp_path: Path) -> None:
    case = all_cases(None)
    define_ten()
    qrels, run, wanted = qrels_frame(case.qrels), run_frame(case.run), work_out(case)
    path = tmp_path / "random.run"
    gg.write_run(run, path)
    for source in (path, in_blocks(path, block=300), *(FRAMES[name](run) for name in ("lazy", "duckdb", "pandas"))):
        check(gg.evaluate(qrels, source, [*wanted]), wanted)


def test_a_curve_and_a_ledger_have_the_values_of_evaluate() -> None:
    case = all_cases(None)
    define_ten()
    names = ["MyCG", "MyDRAG", "MySRR", "MyAvgGain", "MyIterationsForAllGoodResults"]
    qrels, run = qrels_frame(case.qrels), run_frame(case.run)
    curve = gg.curve(qrels, {"a": run}, names, upto=7, resamples=0)
    means = {f"{name}@{i}": mean for name, i, mean in curve.select("measure", "iteration", "mean").iter_rows()}
    assert means == pytest.approx(gg.evaluate(qrels, run, [*means]).mean(), abs=1e-12)

    rows = gg.ledger(qrels, run, measures=names).filter("judged")
    last: Any = rows["iteration"].max()
    scores = gg.evaluate(qrels, run, [f"{name}@{i}" for name in names for i in range(1, last + 1)])
    values = {(query_id, name): value for query_id, name, value in scores.per_query.iter_rows()}
    for name in names:
        for query_id, i, value in rows.select("query_id", "iteration", name).iter_rows():
            assert value == pytest.approx(values[query_id, f"{name}@{i}"], abs=1e-12)


def test_hosts_have_the_values_of_evaluate() -> None:
    case = all_cases(None)
    define_ten()
    qrels, run = gg.read_qrels(qrels_frame(case.qrels)), gg.read_run(run_frame(case.run))
    names = [f"My{name}@2" for name in TEN if name not in oracle.WITHOUT_CUTOFF]
    wanted = gg.evaluate(qrels, run, names).mean()
    measures = parse_measures(" ".join(names))  # ir_measures reads no names under Python 3.14
    found = ir_measures.calc_aggregate(measures, qrels, run)
    assert {str(measure): value for measure, value in found.items()} == pytest.approx(wanted, abs=1e-12)

    query_ids = {row.query_id for row in case.run}
    both = qrels_frame([row for row in case.qrels if row.query_id in query_ids])
    up = [name for name, (better, _) in TEN.items() if better == "up"]
    metrics = {f"my_{DECLARATIONS[name].host_name}@2": f"My{name}@2" for name in up}
    in_ranx = ranx.evaluate(ranx_host.Qrels(both), ranx_host.Run(run), [*metrics], make_comparable=True)
    means = gg.evaluate(both, run, [*metrics.values()]).mean()
    assert {metrics[name]: value for name, value in in_ranx.items()} == pytest.approx(means, abs=1e-12)

    evaluator = trec_host.RelevanceEvaluator(both, {"my_sre_2", "my_srr"})
    values = evaluator.evaluate(run)
    rows = gg.evaluate(both, run, "MySRE@2 MySRR").per_query.iter_rows()
    given = {"MySRE@2": "my_sre_2", "MySRR": "my_srr"}
    assert {(query, given[name]): value for query, name, value in rows} == {
        (query, name): value for query, of in values.items() for name, value in of.items()
    }


def count_good(rows: pl.DataFrame) -> float:
    """Good documents found."""
    return float(rows["GR"].sum())


AGENTS = ROOT / "qrels_examples" / "two_agents"
RUNS = {"quick": AGENTS / "quick.run", "late": AGENTS / "late.run"}


def test_compare_and_a_report_take_the_name_as_any_other(tmp_path: Path) -> None:
    gg.define("MyGood", count_good, better="up")
    compared = gg.compare(AGENTS / "qrels.txt", RUNS, "MyGood@3 NumGood@3", resamples=99)
    mine, wanted = (compared.pairs.filter(measure=name).drop("measure") for name in ("MyGood@3", "NumGood@3"))
    columns = ("difference", "low", "high", "wins", "losses", "verdict")
    assert mine.select(columns).equals(wanted.select(columns))
    page = gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "page.html", "MyGood@3 nDCG@10").read_text()
    assert "MyGood@3" in page


def test_a_function_gets_the_columns_of_the_docstring() -> None:
    seen: list[pl.DataFrame] = []

    def look(rows: pl.DataFrame) -> int:
        seen.append(rows)
        return 0

    run = pl.DataFrame({"query_id": "q", "iteration": [4, 4, 9], "doc_id": ["a", "b", "a"]})
    gg.define("Look", look, better=None)
    gg.evaluate({"q": {"a": 3, "c": 2}, "absent": {"a": 2}}, run, "Look@3")
    assert [rows.rows() for rows in seen] == [
        [
            ("q", 1, 2, 2, 0, 1, 3.0, 1, 2, 2, 5.0),
            ("q", 2, 1, 0, 1, 0, 0.0, 0, 2, 2, 5.0),
            ("q", 3, 0, 0, 0, 0, 0.0, 0, 2, 2, 5.0),
        ]
    ]
    assert seen[0].columns == [*COLUMNS]


COSTS = pl.DataFrame(
    {"query_id": ["q", "q", "p"], "iteration": [1, 2, 1], "input_tokens": [300, 100, 50], "output_tokens": [100, 0, 50]}
)
RUN = pl.DataFrame({"query_id": list("qqpo"), "iteration": [1, 2, 1, 1], "doc_id": list("abab")})
QRELS = {"q": {"a": 3, "b": 2}, "p": {"a": 3}, "o": {"b": 4}, "absent": {"a": 2}}


def test_a_function_of_costs_gets_the_amount_of_each_iteration() -> None:
    gg.define("GainPer1000", lambda rows: 1000 * rows["G"].sum() / rows["tokens"].sum(), better="up", costs="tokens")
    scores = gg.evaluate(QRELS, RUN, "GainPer1000 GainPer1000@1 GainPer1000@9", costs=COSTS)
    assert sorted(scores.per_query.rows()) == [
        *(
            (query, name, None)
            for query in ("absent", "o")
            for name in ("GainPer1000", "GainPer1000@1", "GainPer1000@9")
        ),
        ("p", "GainPer1000", 30.0),
        ("p", "GainPer1000@1", 30.0),
        ("p", "GainPer1000@9", 30.0),
        ("q", "GainPer1000", 10.0),
        ("q", "GainPer1000@1", 7.5),
        ("q", "GainPer1000@9", 10.0),
    ]
    with pytest.raises(gg.InputError, match="GainPer1000 needs costs="):
        gg.evaluate(QRELS, RUN, "GainPer1000")
    with pytest.raises(gg.MeasureError, match="the ledger has no GainPer1000, which needs costs=; evaluate it at"):
        gg.ledger(QRELS, RUN, measures="GainPer1000")


def test_costs_per_query_are_refused_without_an_empty_name() -> None:
    gg.define("GainPer1000", lambda rows: 1000 * rows["G"].sum() / rows["tokens"].sum(), better="up", costs="tokens")
    per_query = pl.DataFrame({"query_id": ["q"], "input_tokens": [100], "output_tokens": [1]})
    with pytest.raises(gg.InputError, match="the tokens are per query, and are needed per iteration"):
        gg.evaluate(QRELS, RUN, "GainPer1000", costs=per_query)


def test_none_is_left_out_of_the_mean() -> None:
    gg.define("FirstGood", lambda rows: rows.filter(pl.col("GR") > 0)["iteration"].min(), better="down")
    scores = gg.evaluate({"q": {"b": 2}, "p": {"x": 2}, "absent": {"b": 2}}, RUN, "FirstGood")
    assert scores.mean() == {"FirstGood": 2.0} and scores.signature["without_value"] == ["FirstGood:2"]


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda rows: 1 / 0, "its function fails for query 'q': ZeroDivisionError: division by zero"),
        (lambda rows: "a", "its function returns 'a' for query 'q'. Return a finite number, or None"),
        (lambda rows: math.nan, "its function returns nan for query 'q'. Return a finite number, or None"),
        (lambda rows: 1.5, "its function returns 1.5 for query 'q', outside its bounds"),
    ],
)
def test_a_wrong_value_is_an_error_with_the_query(function: Any, told: str) -> None:
    gg.define("Wrong", function, better="up", bounds=(0, 1))
    with pytest.raises(gg.MeasureError, match=told):
        gg.evaluate({"q": {"b": 2}}, RUN, "Wrong")


def test_bounds_contain_the_value_of_a_query_that_was_not_searched() -> None:
    with pytest.raises(
        gg.MeasureError, match=r"0, the value of a query that was not searched, is outside the bounds \(1, 5\)"
    ):
        gg.define("Stars", count_good, better="up", bounds=(1, 5))
    gg.define("Stars", count_good, better="down", bounds=(1, 5))  # without a search, it has no value


def test_bounds_are_not_rounded() -> None:
    gg.define("Large", lambda rows: 1_234_567.5, better="up", bounds=(0, 1_234_567.5))
    assert gg.evaluate({"q": {"b": 2}}, RUN, "Large").mean() == {"Large": 1_234_567.5}
    gg.define("Large", lambda rows: 1_234_568.0, better="up", bounds=(0, 1_234_567.5))
    with pytest.raises(gg.MeasureError, match="outside its bounds"):
        gg.evaluate({"q": {"b": 2}}, RUN, "Large")


@pytest.mark.parametrize("name", ["SRR", "srr", "n_cg", "nDCG", "P", "MAP", "hit", "DCG", "a-b", "", "lambda"])
def test_a_name_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(gg.MeasureError, match=r"there is a measure|cannot be the name"):
        gg.define(name, count_good, better="up")


@pytest.mark.parametrize(
    "wrong",
    [
        {"better": "higher"},
        {"better": "up", "bounds": (1, 0)},
        {"better": "up", "bounds": (1, 1)},
        {"better": "up", "costs": "money"},
    ],
)
def test_a_wrong_argument_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(gg.MeasureError, match="Wrong: "):
        gg.define("Wrong", count_good, **wrong)
    with pytest.raises(gg.MeasureError, match="is not a function"):
        gg.define("Wrong", 3, better="up")  # type: ignore[arg-type]  # no function


def test_a_second_definition_replaces_the_first_and_says_so_only_if_it_differs() -> None:
    assert notices_of(lambda: gg.define("Mine", count_good, better="up"))[1] == []
    x = gg.Experiment(QRELS, {"a": RUN})
    assert x.evaluate("Mine")["Mine"] == 1.0
    assert notices_of(lambda: gg.define("Mine", count_good, better="up"))[1] == []
    _, told = notices_of(lambda: gg.define("Mine", lambda rows: 7, better="up"))
    assert told == ["Mine was defined differently before. From now on the new definition counts."]
    assert x.evaluate("Mine")["Mine"] == 5.25 == gg.evaluate(QRELS, RUN, "Mine")["Mine"]  # absent: 0


def test_the_signature_tells_two_definitions_apart() -> None:
    signatures = []
    for function in (count_good, lambda rows: 7):
        gg.define("Mine", function, better="up")
        signatures.append(gg.evaluate(QRELS, RUN, "Mine CG").signature["defined"])
    (first,), (second,) = signatures
    assert first.startswith("Mine:") and second.startswith("Mine:") and first != second


def test_another_process_gets_a_function_of_a_module_only() -> None:
    mine = gg.define("Mine", count_good, better="up")
    text = pickle.dumps(mine(rel=1) @ 2)
    for table in (DECLARATIONS, ir_measures.measures.registry):
        del table["Mine"]
    again = pickle.loads(text)
    assert str(again) == "Mine(rel=1)@2" and gg.evaluate(QRELS, RUN, [again]).mean() == {"Mine(rel=1)@2": 1.0}
    of_lambda = gg.define("Mine", lambda rows: 1, better="up")
    assert str(copy.deepcopy(of_lambda @ 2)) == "Mine@2"
    with pytest.raises(gg.MeasureError, match="Define it in a module"):
        pickle.dumps(of_lambda)


def test_ranx_needs_a_value_for_each_query() -> None:
    gg.define("FirstGood", lambda rows: None, better="down")
    with pytest.raises(gg.MeasureError, match="first_good has no value for query 'q', and ranx needs one"):
        ranx.evaluate(ranx_host.Qrels({"q": {"a": 2}}), ranx_host.Run(RUN.filter(query_id="q")), "first_good")


DEFINITIONS = """\
import goodgain as gg

def count_good(rows):
    "Good documents found."
    return rows["GR"].sum()

gg.define("MyGood", count_good, better="up", title="My good")
"""


def test_commands_take_a_file_of_definitions(tmp_path: Path) -> None:
    path = tmp_path / "measures.py"
    path.write_text(DEFINITIONS)
    late = AGENTS / "late.run"
    done = run_command("evaluate", AGENTS / "qrels.txt", late, "MyGood@3", "NumGood@3", "--define", path)
    values = [line.split("\t")[1] for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(values) == 2 and values[0] == values[1]

    listed = run_command("measures", "--define", path).stdout
    assert "MyGood[@i]\t↑ higher\tany number\tMy good: Good documents found;" in listed
    for command in (
        ["ledger", AGENTS / "qrels.txt", late, "-m", "MyGood"],
        ["curve", AGENTS / "qrels.txt", late, "-m", "MyGood"],
        ["compare", AGENTS / "qrels.txt", *RUNS.values(), "-m", "MyGood@3"],
        ["report", AGENTS / "qrels.txt", *RUNS.values(), "-m", "MyGood@3", "-o", tmp_path / "report.html"],
    ):
        done = run_command(*command, "--define", path)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "defines no measure. Call goodgain.define in this file."),
        ("\nimport nothing_of_this_name\n", "line 2: ModuleNotFoundError"),
        ("def (\n", "SyntaxError"),
        ("import goodgain as gg\ngg.define('SRR', len, better='up')\n", "there is a measure SRR already"),
    ],
)
def test_a_wrong_file_of_definitions_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "measures.py"
    path.write_text(text)
    done = run_command("measures", "--define", path)
    assert done.returncode == 2 and told in done.stderr


@pytest.mark.parametrize(("better", "has_value"), [("up", True), ("down", False)])
def test_the_declaration_says_when_a_query_has_no_value(better: Literal["up", "down"], has_value: bool) -> None:
    measure = gg.define("Mine", count_good, better=better)
    assert ("a query was not searched" in measure.declaration.null_if) is not has_value
