"""Runs of chunks and qrels of documents, or the other way round: `documents=` brings both to documents."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pytest

import goodgain as gg
from goodgain.formats.documents import read_document_map
from tests.counting.test_large_files import in_blocks
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.tables import no_notices

PATTERN = r"^(.+)-\d+$"
WORKED = [("q1", 1, "a-1"), ("q1", 1, "a-2"), ("q1", 1, "b-1"), ("q1", 2, "a-3"), ("q1", 2, "c-1")]
TABLE = {doc: doc[0] for _, _, doc in WORKED}
QRELS = {"q1": {"a": 3, "c": 2}}
MEASURES = "NumResults@1 NumResults@2 NumUnique@2 SRR@1 SRR@2 CG@1 CG@2"
COLLAPSED = {"NumResults@1": 2, "NumResults@2": 4, "NumUnique@2": 3, "SRR@1": 0, "SRR@2": 1 / 4, "CG@1": 3, "CG@2": 5}
REPEATED = COLLAPSED | {"NumResults@1": 3, "NumResults@2": 5, "SRR@1": 1 / 3, "SRR@2": 2 / 5}


def run_of(*rows: tuple[str, int, str]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")
    rank = pl.int_range(1, pl.len() + 1).over("query_id", "iteration")
    return frame.with_columns(rank=rank, score=10.0 - rank)


@no_notices()
def by_iteration(*rows: tuple[str, str, str, float]) -> gg.Qrels:
    columns = ["query_id", "iteration", "doc_id", "relevance"]
    return gg.read_qrels(pl.DataFrame(rows, schema=columns, orient="row"), labels="iteration")


@no_notices()
def score(qrels: Any, run: Any, measures: str, **options: Any) -> dict[str, float | None]:
    return gg.evaluate(qrels, run, measures, **options).mean()


@pytest.mark.slow
def test_the_worked_example_of_chunks_has_its_numbers(tmp_path: Path) -> None:
    run = run_of(*WORKED)
    path = tmp_path / "chunks.run"
    gg.write_run(run, path)
    for source in (run, run.lazy(), path, in_blocks(path, block=20)):
        for documents in (PATTERN, TABLE):
            assert score(QRELS, source, MEASURES, documents=documents) == pytest.approx(COLLAPSED)
            repeated = score(QRELS, source, MEASURES, documents=documents, chunks="repeat")
            assert repeated == pytest.approx(REPEATED)


def test_a_lazy_frame_of_another_engine_takes_a_table_and_refuses_a_pattern() -> None:
    for chunks, expected in (("collapse", COLLAPSED), ("repeat", REPEATED)):
        run = duckdb.connect().from_arrow(run_of(*WORKED).to_arrow())
        assert score(QRELS, run, MEASURES, documents=TABLE, chunks=chunks) == pytest.approx(expected)
    with pytest.raises(gg.InputError, match="give a table of chunk_id and doc_id"):
        gg.evaluate(QRELS, run, MEASURES, documents=PATTERN)


def test_every_door_maps_alike_and_the_command_says_how_many_ids_it_mapped(tmp_path: Path) -> None:
    gg.write_run(run_of(*WORKED), tmp_path / "chunks.run")
    gg.write_qrels(QRELS, tmp_path / "qrels.txt")
    pl.DataFrame({"chunk_id": [*TABLE], "doc_id": [*TABLE.values()]}).write_csv(tmp_path / "chunks.csv")
    files = [str(tmp_path / "qrels.txt"), str(tmp_path / "chunks.run")]
    for documents in (PATTERN, str(tmp_path / "chunks.csv")):
        done = run_command("evaluate", *files, "SRR@1-2 CG@2", "-o", "tsv", "--documents", documents)
        assert done.stdout.split() == ["SRR@1", "0.0000", "SRR@2", "0.2500", "CG@2", "5.0000"]
        assert "ids mapped to documents: 5 of the run, 0 of the qrels" in done.stderr
    assert "documents=^(.+)-\\d+$" in run_command("evaluate", *files, "CG", "--documents", PATTERN).stderr
    repeated = run_command("evaluate", *files, "SRR@2", "-o", "tsv", "--documents", PATTERN, "--chunks", "repeat")
    assert repeated.stdout.split() == ["SRR@2", "0.4000"]
    assert "chunks=repeat" in repeated.stderr
    ledger = run_command("ledger", *files, "--documents", PATTERN)
    assert [line.split(",")[2:5] for line in ledger.stdout.splitlines()[1:]] == [["2", "2", "0"], ["2", "1", "1"]]
    with no_notices():
        run = gg.read_run(files[1])
        assert gg.ledger(QRELS, run, documents=PATTERN)["Dup"].to_list() == [0, 1]
        assert gg.curve(QRELS, {"a": run}, "CG", documents=PATTERN)["mean"].to_list() == [3.0, 5.0]
        assert gg.coverage(QRELS, {"a": run}, documents=PATTERN)["unique"].to_list() == [3, 2, 1]
        compared = gg.compare(QRELS, {"a": run, "b": run}, "CG", documents=PATTERN)
        assert compared.signature["documents"] == PATTERN
        assert compared.means["mean"].to_list() == [5.0, 5.0]
        assert gg.pr_curve(QRELS, {"a": run}, documents=PATTERN)["precision"].to_list()[0] == 1.0


def test_a_document_takes_the_best_rank_and_the_largest_score_of_its_chunks() -> None:
    run = run_of(("q", 1, "x-1"), ("q", 1, "a-1"), ("q", 1, "y-1"), ("q", 1, "a-2"), ("q", 1, "x-2"))
    run = run.with_columns(score=pl.Series([1.0, 5.0, 4.0, 9.0, 2.0]), rank=pl.Series([4, 2, 3, 1, 5]))
    assert score({"q": {"a": 3}}, run, "RR P@1", documents=PATTERN) == {"RR": 1.0, "P@1": 1.0}
    assert score({"q": {"y": 3}}, run, "RR", documents=PATTERN) == {"RR": 1 / 2}


def test_a_repeat_of_a_document_that_no_chunk_names_stays_a_repeat() -> None:
    run = run_of(("q", 1, "page"), ("q", 1, "page"), ("q", 1, "a-1"), ("q", 1, "a-2"))
    assert score({"q": {"a": 3}}, run, "NumResults NumDup", documents=PATTERN) == {"NumResults": 3, "NumDup": 1}


def test_empty_iterations_stay() -> None:
    run = run_of(("q", 1, "-"), ("q", 2, "a-1"), ("q", 3, "-"))
    assert score({"q": {"a": 3}}, run, "NumIter NumResults", documents=PATTERN) == {"NumIter": 3, "NumResults": 1}


def test_a_document_of_the_qrels_has_the_largest_label_of_its_chunks() -> None:
    qrels = {"q": {"a-1": 1, "a-2": 4, "b-1": 0}}
    assert score(qrels, {"q": {"a": 1.0}}, "CG EvidenceRecall", documents=PATTERN) == {"CG": 4, "EvidenceRecall": 1}
    read = by_iteration(("q", "1", "a-1", 2.0), ("q", "1", "a-2", 3.0), ("q", "2", "a-1", 4.0))
    assert score(read, run_of(("q", 1, "a-9")), "CG", documents=PATTERN) == {"CG": 3}


def test_an_id_of_the_qrels_that_is_a_document_of_a_run_is_not_cut_again() -> None:
    qrels = {"q": {"alcohol-23": 3, "alcohol-24": 2}}
    run = run_of(("q", 1, "alcohol-23-0001"), ("q", 1, "alcohol-24-0000"))
    assert score(qrels, run, "CG SRE", documents=PATTERN) == {"CG": 5, "SRE": 1}
    both = {"one": run_of(("q", 1, "alcohol-23-0001")), "other": run_of(("q", 1, "alcohol-24-0000"))}
    with no_notices():  # the systems are compared on the same qrels
        means = gg.compare(qrels, both, "CG NumGood EvidenceRecall", documents=PATTERN).means
    assert means.sort("system", "measure")["mean"].to_list() == [3.0, 0.5, 1.0, 2.0, 0.5, 1.0]
    with pytest.warns(gg.GoodgainNotice, match="documents_of='run'"):
        gg.evaluate(qrels, both["one"], "CG", documents=PATTERN)
    assert score(qrels, both["one"], "EvidenceRecall", documents=PATTERN, documents_of="run") == {"EvidenceRecall": 0.5}


def test_documents_without_the_form_of_a_chunk_are_no_reason_for_a_notice() -> None:
    qrels = {"q": {"a": 3, "b-1": 2}}
    run = run_of(("q", 1, "a-1"), ("q", 2, "b-2"))
    assert gg.evaluate(qrels, run, "EvidenceRecall", documents=PATTERN)["EvidenceRecall"] == 1


def test_a_provider_gets_one_label_for_a_document_whatever_column_2_says() -> None:
    rows = [("q", "u1", "a-1", 3), ("q", "u2", "a-2", 1), ("q", "u3", "b-1", 2)]
    qrels = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "relevance"], orient="row")
    run = run_of(("q", 1, "b-7"), ("q", 1, "a-9"))
    alone = score(qrels, run, "nDCG@2", documents=PATTERN)
    assert score(qrels, run, "nDCG@2", documents=PATTERN, provider="pytrec_eval") == pytest.approx(alone)


def test_only_what_is_asked_for_is_mapped() -> None:
    qrels, run = {"q": {"a-1": 3, "a-2": 3}}, run_of(("q", 1, "a"), ("q", 1, "b-1"), ("q", 1, "b-2"))
    of_qrels = score(qrels, run, "CG NumResults", documents=PATTERN, documents_of="qrels")
    assert of_qrels == {"CG": 3, "NumResults": 3}
    of_run = score(qrels, run, "CG NumResults", documents=PATTERN, documents_of="run")
    assert of_run == {"CG": 0, "NumResults": 2}


@pytest.mark.slow
@pytest.mark.parametrize("chunks", ["collapse", "repeat"])
def test_mapping_is_what_a_reader_does_by_hand(chunks: str, tmp_path: Path) -> None:
    random = Random(7)
    for _ in range(how_many(2, full=8)):
        places = [(f"q{query}", i) for query in range(3) for i in (1, 2, 3) for _ in range(random.randint(1, 5))]
        rows = [(*place, f"{random.choice('abcd')}-{random.randint(1, 4)}") for place in places]
        by_hand = [(query, i, doc[0]) for query, i, doc in rows]
        by_hand = list(dict.fromkeys(by_hand)) if chunks == "collapse" else by_hand
        qrels = {f"q{query}": {doc: random.randint(0, 3) for doc in "abcd"} for query in range(3)}
        measures = "CG@2 SRR SRE@1 NumResults nDCG@3 RR DRAG"
        expected = score(qrels, run_of(*by_hand), measures)
        path = tmp_path / "random.run"
        gg.write_run(run_of(*rows), path)
        table = {doc: doc[0] for _, _, doc in rows}
        for source in (path, in_blocks(path, block=60)):
            assert score(qrels, source, measures, documents=PATTERN, chunks=chunks) == pytest.approx(expected)
        on_engine = duckdb.connect().from_arrow(run_of(*rows).to_arrow())
        assert score(qrels, on_engine, measures, documents=table, chunks=chunks) == pytest.approx(expected)


def test_wrong_mappings_say_what_to_do(tmp_path: Path) -> None:
    run = run_of(*WORKED)
    path = tmp_path / "twice.csv"
    path.write_text("chunk_id,doc_id\na-1,a\nb-1,b\na-1,a\n")
    for documents, options, message in (
        (r"^(.+)_\d+$", {}, "maps no id of the run or the qrels"),
        ("chunks.csv", {}, r"is not a file, and not a pattern with one group \(it has 0\)"),
        ("^((.+)-1$", {}, "not a pattern with one group .*unclosed group"),
        ("^(.)(.)-1$", {}, r"it has 2"),
        (path, {}, r"twice\.csv.* row 4 lists the chunk .*a-1.* a second time; keep one row for each chunk"),
        ({"a-1": "-"}, {}, "has '-', which stands for an iteration without results"),
        (pl.DataFrame({"chunk": ["a-1"]}), {}, "has no column chunk_id, doc_id"),
        (PATTERN, {"chunks": "join"}, "chunks='join' is not one of collapse, repeat"),
        (None, {"chunks": "repeat"}, "give documents= too"),
    ):
        with pytest.raises(gg.InputError, match=message):
            gg.evaluate(QRELS, run, "CG", documents=documents, **options)


def test_a_label_for_one_iteration_does_not_hide_that_of_another_chunk_for_any() -> None:
    read = by_iteration(("q", "0", "a-1", 3.0), ("q", "1", "a-2", 1.0), ("q", "1", "b-1", 1.0), ("q", "0", "b-1", 4.0))
    assert score(read, run_of(("q", 1, "a-1")), "CG", documents=PATTERN) == {"CG": 3}
    assert score(read, run_of(("q", 1, "b-1")), "CG", documents=PATTERN) == {"CG": 0}, "its own label comes first"


def test_a_tie_of_ranks_is_in_the_order_of_the_best_ranked_lines() -> None:
    run = run_of(("q", 1, "c-1"), ("q", 1, "a-2"), ("q", 1, "b-1"), ("q", 1, "a-1"), ("q", 2, "z"))
    run = run.with_columns(rank=pl.Series([1, 2, 1, 1, 1]))
    assert score({"q": {"b": 3}}, run, "RR", documents=PATTERN) == {"RR": 1 / 2}


def test_a_host_sees_the_largest_label_of_the_chunks_and_subtopics_of_a_document() -> None:
    rows = [("q", "1", "c1", 0), ("q", "2", "c1", 1), ("q", "1", "c2", 3)]
    given = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "relevance"], orient="row")
    mapping = read_document_map({"c1": "D", "c2": "D"})
    judged = mapping.map_qrels(gg.read_qrels(given, labels="subtopic"), pl.Series([], dtype=pl.String))
    assert {judgment.doc_id: judgment.relevance for judgment in judged.itertuples()} == {"D": 3}
