"""Runs of chunks and qrels of documents, or the other way round: `documents=` brings both to documents."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pytest

import goodgain as gg
from goodgain.formats.documents import Names, read_document_map, rename
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import FRAMES, in_blocks, in_every_form
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
def score(qrels: Any, run: Any, measures: str, **options: Any) -> dict[str, float | None]:
    return gg.evaluate(qrels, run, measures, **options).mean()


@pytest.mark.slow
def test_the_worked_example_of_chunks_has_its_numbers(tmp_path: Path) -> None:
    run = run_of(*WORKED)
    for source in in_every_form(run, tmp_path):
        for documents in (TABLE,) if isinstance(source, duckdb.DuckDBPyRelation) else (PATTERN, TABLE):
            assert score(QRELS, source, MEASURES, documents=documents) == pytest.approx(COLLAPSED)
            repeated = score(QRELS, source, MEASURES, documents=documents, chunks="repeat")
            assert repeated == pytest.approx(REPEATED)


@pytest.mark.parametrize("bits", [0, 1, 2, 64])
def test_ids_are_renamed_whatever_their_hash(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids with the same hash are compared: with fewer bits of the hash the same ids get the same names."""
    hash_of, mask = pl.Expr.hash, 2**bits - 1
    monkeypatch.setattr(pl.Expr, "hash", lambda column, *seeds: hash_of(column, *seeds) & mask)
    monkeypatch.setattr(pl.Series, "hash", lambda ids, *seeds: ids.to_frame("x").select(pl.col("x").hash()).to_series())
    table = {"a-1": "a", "b-1": "b", "c": "a-1"}
    ids = [*"abcdefgh", "a-1", "b-1", "a-1"]
    for few in range(len(table) + 1):
        names = dict([*table.items()][:few])
        frame = pl.DataFrame(
            {"chunk_id": [*names], "doc_id": [*names.values()]},
            schema_overrides=dict.fromkeys(("chunk_id", "doc_id"), pl.String),
        )
        assert rename(pl.Series("doc_id", ids), Names.of(frame)).to_list() == [names.get(one, one) for one in ids]


def test_a_lazy_frame_of_another_engine_refuses_a_pattern() -> None:
    run = FRAMES["duckdb"](run_of(*WORKED))
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
        covered = gg.coverage(QRELS, {"a": run}, documents=PATTERN)
        assert covered.columns[0] == "system" and covered["unique"].to_list() == [3, 2, 1]
        compared = gg.compare(QRELS, {"a": run, "b": run}, "CG", documents=PATTERN)
        assert compared.signature["documents"] == PATTERN
        assert compared.means["mean"].to_list() == [5.0, 5.0]
        assert gg.pr_curve(QRELS, {"a": run}, documents=PATTERN)["precision"].to_list()[0] == 1.0


def test_systems_are_compared_on_the_same_qrels_whose_ids_are_not_cut_again() -> None:
    qrels = {"q": {"alcohol-23": 3, "alcohol-24": 2}}
    both = {"one": run_of(("q", 1, "alcohol-23-0001")), "other": run_of(("q", 1, "alcohol-24-0000"))}
    with no_notices():
        means = gg.compare(qrels, both, "CG NumGood EvidenceRecall", documents=PATTERN).means
    assert means.sort("system", "measure")["mean"].to_list() == [3.0, 0.5, 1.0, 2.0, 0.5, 1.0]


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
        on_engine = FRAMES["duckdb"](run_of(*rows))
        assert score(qrels, on_engine, measures, documents=table, chunks=chunks) == pytest.approx(expected)


def test_a_table_that_is_no_mapping_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("chunk_id,doc_id\na-1,a\nb-1,b\na-1,a\n")
    for documents, message in (
        (
            tmp_path / "twice.csv",
            r"twice\.csv.* row 4 lists the chunk .*a-1.* a second time; keep one row for each chunk",
        ),
        (pl.DataFrame({"chunk": ["a-1"]}), "has no column chunk_id, doc_id"),
    ):
        with pytest.raises(gg.InputError, match=message):
            gg.evaluate(QRELS, run_of(*WORKED), "CG", documents=documents)


def test_a_host_sees_the_largest_label_of_the_chunks_and_subtopics_of_a_document() -> None:
    rows = [("q", "1", "c1", 0), ("q", "2", "c1", 1), ("q", "1", "c2", 3)]
    given = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "relevance"], orient="row")
    mapping = read_document_map({"c1": "D", "c2": "D"})
    judged = mapping.map_qrels(gg.read_qrels(given, labels="subtopic"), pl.Series([], dtype=pl.String))
    assert {judgment.doc_id: judgment.relevance for judgment in judged.itertuples()} == {"D": 3}
