"""`pool`: which documents are to be judged, against a count row by row."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from random import Random

import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.cli.program import program
from goodgain.counting.run_in_blocks import RunFile
from goodgain.files.escaping import guard_formulas, unguard_ids
from goodgain.judgments.judging import documents_to_judge
from goodgain.judgments.judging.judging_page import write_judging_page
from tests.support import oracle
from tests.support.counts import how_many
from tests.support.oracle import RunRow
from tests.support.random_runs import Case, Shape, make_case
from tests.support.ranking_oracle import in_trec_evals_order
from tests.support.tables import ROOT, no_notices, qrels_frame, run_frame, write_repeating_run

EXAMPLES = ROOT / "qrels_examples"

Found = dict[tuple[str, str], tuple[int, int]]  # (query, document) -> runs, first iteration


def judged_in(case: Case) -> set[tuple[str, str]]:
    return {(row.query_id, row.doc_id) for row in case.qrels}


def pool_iterations(runs: list[list[RunRow]], judged: set[tuple[str, str]], k: int) -> Found:
    firsts: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        of_run: dict[tuple[str, str], int] = {}
        for query, steps in oracle.iterations(run).items():
            for i, step in enumerate(steps, 1):
                for doc in step.docs[:k]:
                    of_run.setdefault((query, doc), i)
        for key, i in of_run.items():
            firsts.setdefault(key, []).append(i)
    return {key: (len(first), min(first)) for key, first in firsts.items() if key not in judged}


def pool_flattened(runs: list[gg.Run], rows: list[list[RunRow]], judged: set[tuple[str, str]], k: int) -> Found:
    firsts: dict[tuple[str, str], list[int]] = {}
    for run, rows_of in zip(runs, rows, strict=True):
        steps = oracle.iterations(rows_of)
        ranking = run.flatten()
        for (query,), docs in ranking.group_by("query_id"):
            for doc in in_trec_evals_order(dict(docs.select("doc_id", "score").iter_rows()))[:k]:
                first = next(i for i, step in enumerate(steps[str(query)], 1) if doc in step.docs)
                firsts.setdefault((str(query), doc), []).append(first)
    return {key: (len(found), min(found)) for key, found in firsts.items() if key not in judged}


def as_found(pooled: pl.DataFrame) -> Found:
    assert pooled["grade"].null_count() == pooled.height
    rows = pooled.select("query_id", "doc_id", "runs", "first_iteration").rows()
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    return {(query, doc): (runs, first) for query, doc, runs, first in rows}


@pytest.mark.parametrize("seed", range(how_many(4, full=40)))
def test_the_pool_of_random_runs_is_that_of_brute_force(seed: int) -> None:
    random = Random(seed)
    shape = Shape(results=6, documents=15, score_follows_rank=random.random() < 0.5)
    several = [make_case(random, shape) for _ in range(random.randint(1, 3))]
    rows, frames = [case.run for case in several], [run_frame(case.run) for case in several]
    with no_notices():
        runs = {f"system {number}": gg.read_run(frame) for number, frame in enumerate(frames)}
        labels = gg.read_qrels(qrels_frame(several[0].qrels))
        for k in (1, 2, 4, 50):
            for judged, qrels in ((set[tuple[str, str]](), None), (judged_in(several[0]), labels)):
                assert as_found(gg.pool(runs, k=k, qrels=qrels)) == pool_iterations(rows, judged, k)
                flattened = gg.pool(runs, k=k, qrels=qrels, flattened=True)
                assert as_found(flattened) == pool_flattened(list(runs.values()), rows, judged, k)


def test_a_pool_of_the_flattened_run_never_sees_a_late_search() -> None:
    runs = {"late": EXAMPLES / "late_recovery" / "late.run"}
    by_iteration, flattened = (set(gg.pool(runs, k=10, flattened=way)["doc_id"]) for way in (False, True))
    good = set(gg.read_qrels(EXAMPLES / "late_recovery" / "qrels.txt").frame.filter(pl.col("relevance") >= 2)["doc_id"])
    assert flattened < by_iteration
    assert not flattened & good
    assert by_iteration & good


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("flattened", [False, True])
def test_a_large_file_in_blocks_gives_the_same_pool(scattered: bool, flattened: bool, tmp_path: Path) -> None:
    path = write_repeating_run(tmp_path / "large.run", queries=100, iterations=4, scattered=scattered)
    blocks = RunFile(path, "close", 1, is_text=True, block=2_000)
    qrels = {f"q{query}": {f"d{k}": 1 for k in range(7)} for query in range(50)}
    with no_notices():
        wanted = gg.pool({"x": path, "y": path}, k=3, qrels=qrels, flattened=flattened)
        sheet = gg.pool({"x": blocks, "y": path}, k=3, qrels=qrels, flattened=flattened)
    assert_frame_equal(sheet, wanted)


def test_an_empty_file_in_blocks_has_an_empty_pool_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.run"
    path.write_text("")
    blocks = RunFile(path, "close", 1, is_text=True)
    with pytest.warns(gg.GoodgainNotice, match="the run is empty"):
        assert gg.pool({"x": blocks}).is_empty()


def test_what_was_not_read_of_a_large_file_is_told_as_of_a_small_one(tmp_path: Path) -> None:
    path = tmp_path / "large.run"
    path.write_text("#q0 1 d0 1 2 t\n" + "".join(f"q{k} 1 d{k} 1 1 t\n" for k in range(200)))
    for source in (path, RunFile(path, "close", 1, is_text=True, block=500)):
        with pytest.warns(gg.GoodgainNotice, match="1 line with the fields of a row begins with '#'"):
            gg.pool({"x": source})


RESULTS = pl.DataFrame(
    [
        ("q", 1, 1, 1, "a", None, "A", None, "first search"),
        ("q", 2, 1, 1, "a", "https://a.example", "A longer title", "text", "second search"),
        ("q", 2, 1, 2, None, "https://b.example/?utm_source=x", "B", "", "second search"),
        ("q", 2, 2, 1, "c", None, None, None, None),
        ("p", 1, 1, 1, "a", None, "of another query", None, "other"),
    ],
    schema=["query_id", "iteration", "search", "rank", "doc_id", "url", "title", "snippet", "search_query"],
    orient="row",
)


def test_results_add_the_fullest_texts_and_the_search_that_found_a_document_first() -> None:
    run = gg.to_run(RESULTS)
    sheet = gg.pool({"x": run}, qrels={"p": {"a": 1}}, results=RESULTS)
    assert sheet.columns == [
        "query_id", "doc_id", "runs", "first_iteration", "search_query", "title", "url", "snippet", "grade",
    ]  # fmt: skip
    assert sheet.rows() == [
        ("q", "a", 1, 1, "first search", "A longer title", "https://a.example", "text", None),
        ("q", "c", 1, 2, None, None, None, None, None),
        ("q", "https://b.example", 1, 2, "second search", "B", "https://b.example/?utm_source=x", None, None),
    ]


def test_documents_of_deduplicated_results_have_their_texts() -> None:
    documents = gg.deduplicate(gg.read_results(ROOT / "docs" / "web_search.jsonl"))
    sheet = gg.pool({"agent": gg.to_run(documents)}, k=50, results=documents)
    assert set(sheet["doc_id"]) == set(documents.frame["document"].drop_nulls())
    assert sheet["title"].null_count() == 0
    assert sheet["snippet"].null_count() == 0


def test_results_of_convert_fill_the_sheet(tmp_path: Path) -> None:
    run, results, sheet = (tmp_path / name for name in ("agent.run", "results.jsonl", "sheet.csv"))
    log = ROOT / "tests/logs/traces/fixtures/browsecomp_plus/story.json"
    for arguments in (
        ["convert", log, "-o", run, "--results", results, "--iteration", "call"],
        ["pool", run, "--results", results, "-o", sheet],
    ):
        done = CliRunner().invoke(program, list(map(str, arguments)), catch_exceptions=False)
        assert done.exit_code == 0, done.output
    table = pl.read_csv(sheet)
    assert table["search_query"].null_count() == 0
    assert table["snippet"].null_count() < table.height


def test_ids_of_a_sheet_for_spreadsheets_are_read_as_they_were(tmp_path: Path) -> None:
    ids = [
        "-aB3",
        "=1",
        "+x",
        "@name",
        "'=y",
        "'z",
        "plain",
        "\uff1d1+1",
        "a;=1+1",
        "a;'=b",
        "a;;\uff20b",
        "a\t=2",
        "a;b",
    ]
    pooled = gg.pool({"a": {"q": dict.fromkeys(ids, 1.0)}}, k=20)
    documents_to_judge.write_sheet(pooled, tmp_path / "sheet.csv", spreadsheet=True)
    sheet = pl.read_csv(tmp_path / "sheet.csv", infer_schema=False)
    assert sheet["doc_id"].str.contains("(?:^|[;\t])[=+@\uff1d\uff20-]").sum() == 0

    sheet.with_columns(grade=pl.lit("2")).write_csv(tmp_path / "graded.csv")
    with pytest.warns(gg.GoodgainNotice, match="apostrophe .* in 10 ids"):
        labels = gg.aggregate(tmp_path / "graded.csv", scale="good-gain")
    assert sorted(labels["doc_id"]) == sorted(ids)


@pytest.mark.parametrize("again", [False, True])
def test_what_is_guarded_against_formulas_comes_back_as_it_was(again: bool) -> None:
    """With `again`, only what looks guarded changes: reading removes one apostrophe in any case."""
    random = Random(5)
    signs = "=-+@;'\t\r\na\uff1d\uff0b\uff0d\uff20"
    texts = pl.DataFrame({"doc_id": ["".join(random.choices(signs, k=random.randint(0, 6))) for _ in range(2_000)]})
    guarded = guard_formulas(texts, again=again)
    if not again:
        formula = "(?:^|[;\t\r\n])'*[=+@\uff1d\uff0b\uff0d\uff20-]"
        assert texts["doc_id"].str.contains(formula).sum() > 100
        assert guarded["doc_id"].str.contains(formula.replace("'*", "")).sum() == 0
    with warnings.catch_warnings(action="ignore"):
        assert unguard_ids(guarded, ["doc_id"], "").equals(texts)


def test_drawn_queries_have_all_their_documents() -> None:
    runs = {name: {f"q{q}": {f"{name}{k}": -1.0 * k for k in range(30)} for q in range(9)} for name in "ab"}
    drawn = documents_to_judge.pool(runs, sample_queries=4, seed=42)
    assert drawn["query_id"].n_unique() == 4
    assert drawn.height == 4 * 60
    assert drawn.equals(documents_to_judge.pool(runs, sample_queries=4, seed=42))

    others = {
        tuple(documents_to_judge.pool(runs, sample_queries=4, seed=seed)["query_id"].unique()) for seed in range(9)
    }
    assert len(others) > 1

    everything = documents_to_judge.pool(runs, sample_queries=9).sort("query_id", "doc_id")
    assert everything.equals(documents_to_judge.pool(runs, k=2**31))
    with pytest.raises(gg.InputError, match="sample_queries=10: the runs have 9 queries"):
        documents_to_judge.pool(runs, sample_queries=10)


def test_a_larger_sample_begins_with_the_queries_of_the_smaller_one() -> None:
    """So 12 judged queries are part of the 30 drawn later, and a judge who stops early has judged whole queries at random."""
    runs = {name: {f"q{q}": {f"{name}{k}": -1.0 * k for k in range(3)} for q in range(40)} for name in "ab"}
    sheets = [documents_to_judge.pool(runs, sample_queries=number, seed=5) for number in (1, 12, 30, 40)]
    orders = [sheet["query_id"].rle().struct.field("value").to_list() for sheet in sheets]
    for sheet, order, number in zip(sheets, orders, (1, 12, 30, 40), strict=True):
        assert len(order) == len({*order}) == number  # the documents of a query stand together
        assert order == orders[-1][:number]
        assert all(of_query["doc_id"].is_sorted() for of_query in sheet.partition_by("query_id"))
    assert orders[-1] != sorted(orders[-1])
    judged = {query: {"a0": 1, "a1": 0} for query in orders[1]}
    rest = documents_to_judge.pool(runs, sample_queries=30, seed=5, qrels=judged)
    assert rest["query_id"].unique(maintain_order=True).to_list() == orders[2]
    assert rest.filter(query_id=orders[1][0])["doc_id"].to_list() == ["a2", "b0", "b1", "b2"]


@pytest.mark.slow
def test_each_query_is_drawn_equally_often() -> None:
    runs = {"a": {f"q{q}": {"d": 1.0} for q in range(6)}}
    drawn = [documents_to_judge.pool(runs, sample_queries=2, seed=seed)["query_id"].to_list() for seed in range(300)]
    counts = Counter(query for queries in drawn for query in queries)
    assert {*counts} == {f"q{q}" for q in range(6)}
    assert all(70 <= number <= 130 for number in counts.values())  # 100 expected; 3.7 standard deviations


@pytest.mark.parametrize(
    ("documents", "seen"),
    [
        (["d1", "d2"], "judges see no text of 2 of 2 documents, only the title."),
        (["https://a.org/1", "https://a.org/2"], "judges see no text of 2 of 2 documents, only title and address."),
        (["https://a.org/1", "d2"], "judges see no text of 2 of 2 documents, only the title, and the address of some."),
    ],
)
def test_a_page_without_texts_says_what_judges_see(documents: list[str], seen: str, tmp_path: Path) -> None:
    pooled = gg.pool({"agent": {"q": dict.fromkeys(documents, 1.0)}})
    with pytest.warns(gg.GoodgainNotice) as notices:
        write_judging_page(pooled.with_columns(query=pl.lit("question")), tmp_path / "sheet.html")
    (told,) = [str(one.message) for one in notices]
    assert told.startswith(seen) and "Give texts=" in told


def test_the_path_of_a_page_can_be_a_string(tmp_path: Path) -> None:
    pooled = gg.pool({"agent": {"q": {"a": 1.0}}}, queries={"q": "who?"}, texts={"a": "A"})
    write_judging_page(pooled, str(tmp_path / "sheet.html"))
    assert "who?" in (tmp_path / "sheet.html").read_text()
