"""BEIR's qrels are read without `columns`; a score elsewhere is no label."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.tables import no_notices

BEIR = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td1\t2\n"
WANTED = [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d1", 2)]


@no_notices()
def test_beirs_header_is_read_without_columns(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(BEIR)
    (tmp_path / "test.csv").write_text(BEIR.replace("\t", ","))
    frame = pl.DataFrame({"query-id": ["q1", "q1", "q2"], "corpus-id": ["d1", "d2", "d1"], "score": [1, 0, 2]})
    frame.write_parquet(tmp_path / "test.parquet")
    for source in (tmp_path / "test.tsv", tmp_path / "test.csv", tmp_path / "test.parquet", frame, frame.to_pandas()):
        assert gg.read_qrels(source).frame.select("query_id", "doc_id", "relevance").rows() == WANTED
    (tmp_path / "a.run").write_text("q1 1 d1 1 2.0 t\nq2 1 d1 1 1.0 t\n")
    done = run_command("evaluate", tmp_path / "test.tsv", tmp_path / "a.run", "P@1", "-o", "tsv")
    assert done.returncode == 0 and "1.0000" in done.stdout


def test_other_names_of_a_user_come_first_and_a_score_alone_is_no_label() -> None:
    frame = pl.DataFrame({"query-id": ["q"], "corpus-id": ["d"], "score": [1], "mine": [3]})
    judged = gg.read_qrels(frame, columns={"mine": "relevance"}).frame
    assert judged.select("query_id", "doc_id", "relevance").rows() == [("q", "d", 3)]
    with pytest.raises(gg.InputError, match="has no column 'relevance'"):
        gg.read_qrels(pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1]}))
