"""What users may throw at us gets a right answer or one clear sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import pandas as pd
import polars as pl
import pytest

import goodgain as gg
from tests.cli.test_command_line import goodgain
from tests.support.command import COMMAND
from tests.support.counts import some_of
from tests.support.forms import FRAMES, write_table
from tests.support.seconds import find_faster_growth, measure_seconds
from tests.support.tables import in_one_search, no_notices

RUN = in_one_search({"q": {"d": 1.0, "e": 2.0}})


@pytest.mark.parametrize("label", [2**31, 2**32, 2**32 + 1, 5 * 10**8, 2**63, 1e308])
def test_labels_too_large_for_trec_eval_are_said_and_ours_take_them(label: float) -> None:
    qrels = {"q": {"d": label, "e": 0}}
    for name, provider in (("AP", "pytrec_eval"), ("nDCG@10", "pytrec_eval"), ("RR", "pytrec_eval"), ("Compat", None)):
        with pytest.raises(gg.InputError, match="too large for trec_eval"):
            gg.evaluate(qrels, RUN, name, provider=provider)
    means = gg.evaluate(qrels, RUN, "SRE(rel=2) CG(rel=2) AP RR nDCG@10").mean()
    ranked = {"AP": 0.5, "RR": 0.5, "nDCG@10": pytest.approx(0.6309297535714575)}
    assert means == {"SRE": 0.5, "CG": float(label)} | ranked


def test_very_large_labels_are_written_and_read_again(tmp_path: Path) -> None:
    gg.write_qrels({"q": {"a": 1e300, "b": 2.0**60}}, tmp_path / "a.qrels")
    assert gg.read_qrels(tmp_path / "a.qrels").frame["relevance"].to_list() == [1e300, 2.0**60]


@pytest.mark.parametrize("measure", [[ir_measures.nDCG @ 0], None, 5, []])
def test_what_is_no_measure_is_refused(measure: Any) -> None:
    with pytest.raises(gg.MeasureError):
        gg.evaluate({"q": {"d": 1}}, RUN, measure)


def test_large_cutoffs_of_ours() -> None:
    with no_notices():
        assert gg.evaluate({"q": {"d": 2}}, RUN, "CG@1000000000 RG@1000000000")["CG@1000000000"] == 2


def test_ids_that_a_text_reader_would_change_are_written_so_that_it_does_not(tmp_path: Path) -> None:
    with no_notices():
        gg.write_run({"\ufeffq": {"a": 1.0}}, tmp_path / "a.run")
    assert gg.read_run(tmp_path / "a.run").frame["query_id"].to_list() == ["%EF%BB%BFq"]
    with pytest.raises(gg.InputError, match="would become one"):
        gg.write_run({"q": {"a b": 2.0, "a%20b": 1.0}}, tmp_path / "b.run")
    assert not (tmp_path / "b.run").exists()


ITERATIONS = {
    "text": (["1", "2"], [1, 2]),
    "text with signs": (["+1", "02"], [1, 2]),
    "floats": ([1.0, 2.0], [1, 2]),
    "a word": (["Q0", "Q0"], [1]),
}


@pytest.mark.parametrize("kind", ITERATIONS)
@pytest.mark.parametrize("engine", FRAMES)
def test_iterations_of_any_type_on_any_engine(kind: str, engine: str) -> None:
    values, wanted = ITERATIONS[kind]
    frame = pl.DataFrame({"query_id": "q", "iteration": values, "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    with no_notices():  # of the run that has a word
        found = gg.ledger({"q": {"a": 2}}, FRAMES[engine](frame))["iteration"].to_list()
    assert found == list(range(1, len(wanted) + 1))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 1.5, -1.0])
@pytest.mark.parametrize("engine", ["polars", "pandas", "duckdb"])
def test_numbers_that_are_no_iterations(value: float, engine: str) -> None:
    frame = pl.DataFrame({"query_id": "q", "iteration": [1.0, value], "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    with pytest.raises(gg.InputError):
        gg.read_run(FRAMES[engine](frame))


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128, pl.Decimal(38, 0)])
def test_ranks_of_128_bits_as_a_sum_in_duckdb_has_them_are_numbers(kind: Any) -> None:
    columns = {"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["b", "a", "b"], "rank": [2, 1, 1]}
    ranking = gg.flatten(pl.DataFrame(columns, schema_overrides={"rank": kind}))
    assert ranking.select("doc_id", "rank").rows() == [("a", 1), ("b", 2)]


def test_tags_that_are_missing_are_no_tags() -> None:
    frame = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["a", "b", "c"], "tag": [None, "t", "u"]})
    with pytest.raises(gg.InputError, match=r"row 2 has the tag 'u' where query 'q' has 't'"):
        gg.read_run(frame)
    assert gg.read_run(frame.head(1)).frame.height == 1
    assert gg.read_run(frame.head(2)).frame.height == 2


Found = namedtuple("Found", "query_id doc_id score")  # as users write them
Other = namedtuple("Other", "query_id doc_id")  # as users write them


@pytest.mark.parametrize(
    "source",
    [
        [Found("q", "a", 1.0), Other("q", "b")],
        {"q": {"a": 10**400}},
        {"q": {"\ud800": 1.0}},
        pd.DataFrame([["q", "a", "b"]], columns=["query_id", "doc_id", "doc_id"]),
        pd.DataFrame({"query_id": pd.period_range("2026-01", periods=1, freq="M"), "doc_id": ["a"]}),
        "a\0b",
        "x" * 5000,
        "\ud800",
    ],
    ids=["two tuples", "beyond floats", "half a character", "one name twice", "periods", "NUL", "long", "surrogate"],
)
def test_one_clear_sentence(source: Any) -> None:
    with pytest.raises(gg.InputError) as error:
        gg.read_run(source)
    assert len(str(error.value)) < 700
    if isinstance(source, str):
        with pytest.raises(gg.InputError):
            gg.read_qrels(source)


def test_json_lines_of_searches_without_results_and_floats_of_pandas(tmp_path: Path) -> None:
    rows = [{"query_id": "q", "iteration": float(i), "doc_id": None} for i in (1, 2)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert gg.evaluate({"q": {"a": 2}}, tmp_path / "a.jsonl", "NumIter")["NumIter"] == 2


def test_column_2_of_a_qrels_frame_may_hold_anything_where_it_is_ignored() -> None:
    for column in ([None, None], [1.5, 2.0], [pd.Timestamp("2026-01-01")] * 2):
        frame = pd.DataFrame({"query_id": "q", "iteration": column, "doc_id": ["a", "b"], "relevance": [2, 0]})
        assert len(gg.read_qrels(frame)) == 2


@pytest.mark.parametrize("place", ["", "{folder}", "{folder}/" + "x" * 300, "/dev/full", "{folder}/a\0b"])
def test_places_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    with pytest.raises(gg.InputError, match="cannot be written"):
        gg.write_run({f"q{k}": {"d": 1.0} for k in range(20_000)}, place.format(folder=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_tables_keep_queries_called_all_brackets_and_every_digit(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("all 0 a 3\n[red]x[/q] 0 b 0\n")
    (tmp_path / "r").write_text("all 1 a 1 2 t\n[red]x[/q] 1 b 1 1 t\n")
    out, _ = goodgain("evaluate", tmp_path / "q", tmp_path / "r", "SRE CG", "-q", "-o", "table")
    assert "[red]x[/q]" in out
    assert out.count("all") == 4
    long = "x" * 60
    (tmp_path / "r").write_text(f"{long} 1 a 1 2 t\n")
    out, _ = goodgain("ledger", tmp_path / "q", tmp_path / "r", "-o", "table")
    assert long in out


@pytest.mark.slow
def test_validate_refuses_a_pipe_instead_of_calling_it_empty() -> None:
    done = subprocess.run([*COMMAND, "validate", "/dev/stdin"], input="q 1 a 1 2 t\n", capture_output=True, text=True)
    assert done.returncode == 2
    assert "is a pipe" in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "goodgain", "flatten", "/dev/stdin", "-o", "/dev/stdout"],
        input="q 1 a 1 2 t\n",
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("q 1 a 1 ")


def test_a_file_whose_queries_are_mixed_has_the_ranking_of_one_that_is_not(tmp_path: Path) -> None:
    lines = [f"q{q} {i} d{(q * i + k) % 9} {k} {9 - k} t" for i in (1, 2, 3) for q in range(5) for k in range(1, 6)]
    (tmp_path / "mixed.run").write_text("\n".join(lines))
    (tmp_path / "sorted.run").write_text("\n".join(sorted(lines)))
    qrels = {f"q{q}": {f"d{k}": k % 4 for k in range(9)} for q in range(5)}
    names = "nDCG@3 RR AP CG SRE SRR"
    one, other = (gg.evaluate(qrels, tmp_path / name, names).mean() for name in ("mixed.run", "sorted.run"))
    assert one == pytest.approx(other, abs=1e-12)


def test_labels_below_minus_1_do_not_break_trec_eval() -> None:
    random = Random(3)
    documents = [f"d{k}" for k in range(6)]
    qrels = {f"q{k}": {d: random.choice([-3, -2, 0, 1, 2]) for d in documents} for k in range(300)}
    run = {query: {d: random.random() for d in random.sample(documents, 4)} for query in qrels}
    lifted = {query: {d: max(label, -1) for d, label in labels.items()} for query, labels in qrels.items()}
    names = "nDCG@10 AP RR P@3 R@10 NumRet"
    assert gg.evaluate(qrels, run, names).mean() == gg.evaluate(lifted, run, names).mean()
    for name, provider in (("Bpref", None), ("infAP", None), ("P(judged_only=True)@3", "pytrec_eval")):
        with pytest.raises(gg.MeasureError, match="below -1"):
            gg.evaluate(qrels, run, name, provider=provider)


@pytest.mark.parametrize("label", [-1, -2])
def test_queries_with_labels_below_0_only_have_nothing_relevant(label: int) -> None:
    """trec_eval looks for levels of relevance that such a query does not have, and at times never ends."""
    qrels = {f"q{k}": {"a": label, "c": -1} for k in range(20)}
    run = {f"q{k}": {"a": 2.0, "b": 1.0} for k in range(20)}
    with no_notices():
        scores = gg.evaluate(qrels, run, "nDCG@10 nDCG RR@10 R@100 AP P@3 Rprec NumRet NumRel CG")
    assert scores.mean() == dict.fromkeys(scores.mean(), 0.0) | {"NumRet": 40.0}
    assert len(scores.per_query) == 20 * 10


BELOW_0 = ({"a": -2, "b": 1, "c": -7}, {"a": -2, "b": -2}, {"a": -1, "b": -1})


@pytest.mark.slow
@pytest.mark.parametrize("labels", some_of(BELOW_0, every=3))
def test_labels_below_minus_1_do_not_crash_ir_measures_or_pytrec_eval(labels: dict[str, int]) -> None:
    """Real qrels have -2; trec_eval writes outside its memory for them: in a process of its own, as it may crash."""
    code = f"""
import ir_measures, goodgain as gg
from goodgain.hosts.pytrec_eval import RelevanceEvaluator
from goodgain.measures.names import parse_measures
qrels, run = {{"q": {labels}, "p": {{"b": 1}}}}, {{q: {{"a": 2.0, "b": 1.0, "u": 0.5}} for q in "qp"}}
classic = parse_measures("nDCG@10 AP P@2 Bpref infAP P(judged_only=True)@5 RR@10")
for _ in range(20):
    found = ir_measures.calc_aggregate([*classic, gg.CG(rel=1)], gg.read_qrels(qrels), gg.read_run(run))
    RelevanceEvaluator(qrels, {{"ndcg_cut_10", "map", "bpref", "infAP"}}).evaluate(run)
assert found[gg.CG(rel=1)] == {1.0 if 1 in labels.values() else 0.5}, found
clipped = {{"q": {{doc: max(label, -1) for doc, label in {labels}.items()}}, "p": {{"b": 1}}}}
assert abs(found[ir_measures.nDCG @ 10] - gg.evaluate(clipped, run, "nDCG@10")["nDCG@10"]) <= 1e-12
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def _unnamed(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"query_id": ["q1"] * 3, "iteration": [1, 1, 2], "doc_id": ["d1", None, "d2"]} | columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"rank": [1, 2, 1], "score": [2.0, 1.0, 1.0]},
        {"rank": [1, 2, 1], "score": [2.0, None, 1.0]},
        {"score": [2.0, 1.0, 1.0]},
        {"score": [2.0, None, 1.0]},
        {},
        {"iteration": [1, 3, 2], "rank": [1, 2, 1]},
    ],
)
def test_a_row_without_doc_id_that_may_be_a_result_is_told_with_its_place(
    tmp_path: Path, columns: dict[str, list[Any]]
) -> None:
    frame = _unnamed(**columns)
    files = {name: write_table(frame, tmp_path / name) for name in ("a.csv", "a.jsonl", "a.parquet")}
    places = dict.fromkeys(["lazy", "duckdb"], "a row .*'q1'") | {
        "a.csv": ".*the header as row 1, row 3",
        "a.jsonl": '.*line 2: \'.*"doc_id":null',
    }
    for name, source in (files | {name: make(frame) for name, make in FRAMES.items()}).items():
        place = places.get(name, ".*row 1")
        with pytest.warns(gg.GoodgainNotice, match=f"1 row without a doc_id looks like a result .* the first: {place}"):
            gg.read_run(source)


def test_rows_without_doc_id_and_with_nothing_else_say_that_an_iteration_has_no_results() -> None:
    alone = {"iteration": [1, 3, 2]}
    for columns in (alone, alone | {"rank": [1, 0, 1]}, alone | {"rank": [1, None, 1], "score": [1.0, None, 2.0]}):
        for source in (_unnamed(**columns), _unnamed(**columns).to_pandas(), _unnamed(**columns).lazy()):
            with no_notices():
                gg.read_run(source)
    with no_notices():  # as `-` beside results, which changes nothing
        gg.read_run(_unnamed(rank=[1, 0, 1], score=[1.0, 0.0, 1.0]))


def test_a_large_table_says_once_how_many_rows_have_no_doc_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from goodgain.counting import run_opening

    monkeypatch.setattr(run_opening, "LARGE_COMPRESSED", 0)
    rows = [(f"q{k}", 1, f"d{j}" if j % 3 else None, j + 1) for k in range(50) for j in range(9)]
    frame = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank"], orient="row")
    for name, one in (("whole", frame), ("scattered", frame.sample(fraction=1, shuffle=True, seed=1))):
        one.write_parquet(tmp_path / f"{name}.parquet", row_group_size=45)
        with pytest.warns(gg.GoodgainNotice, match="150 rows without a doc_id look like results") as told:
            gg.evaluate({"q1": {"d1": 1}}, tmp_path / f"{name}.parquet", "CG(rel=1)")
        assert sum("without a doc_id" in str(notice.message) for notice in told) == 1


@pytest.mark.parametrize("depth", [300, 900, 1000])
def test_a_table_that_nests_deep_is_an_error_and_no_crash(tmp_path: Path, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    line = f'{{"query_id": "q", "doc_id": "d", "iteration": 1, "search": 1, "rank": 1, "ids": {{"x": {nested}}}}}'
    texts = {
        "run.jsonl": f'{{"query_id": {nested}, "doc_id": "d"}}',
        "run.json": f'{{"q": {{"d": {nested}}}}}',
        "r.jsonl": line,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(gg.InputError, match=name):
            (gg.read_results if name == "r.jsonl" else gg.read_run)(tmp_path / name)


@pytest.mark.parametrize("quoted", ["", '"x,y"\n'])
@pytest.mark.parametrize("read", [gg.read_qrels, gg.aggregate])
def test_many_short_lines_under_many_names_take_no_square_of_time(
    read: Callable[[Path], object], quoted: str, tmp_path: Path
) -> None:
    def measure(size: int) -> float:
        names = ",".join(f"c{k}" for k in range(size))
        path = tmp_path / "t.csv"
        path.write_text(f"query_id,doc_id,relevance,{names}\n{quoted}" + "q\n" * size)

        def call() -> None:
            with pytest.raises(gg.InputError, match=rf"line 2: .* has . values?, the header has {size + 3} names"):
                read(path)

        return measure_seconds(call)

    assert not find_faster_growth(measure, 500)


def test_a_first_line_of_more_values_than_any_table_has_columns_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("query_id,doc_id,relevance" + ",NaN" * 20_000)
    with pytest.raises(gg.InputError, match=r"the first line has 20,003 values, so it is not a header"):
        gg.read_qrels(path)
