"""CSV and TSV with a header: every line is read as it stands, or one sentence says which is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice
from tests.support.seconds import find_faster_growth, measure_seconds
from tests.support.tables import no_notices

RUN = "query_id,iteration,doc_id,rank,score\n"
QRELS = "query_id,doc_id,relevance\n"


def write(tmp_path: Path, text: str, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_lines_with_another_number_of_values_are_left_out_and_told_where_bad_rows_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, RUN + 'q1,1,"d,1",1,2\nq1,2\nq1,1,d2,2,1\nq1,1,d3,2,1,9')
    with pytest.warns(GoodgainNotice, match=r"left out 2 bad lines; line 3 \(has 2 values.*; line 5 \(has 6 values"):
        run = gg.read_run(path, errors="skip")
    assert run.frame["doc_id"].to_list() == ["d,1", "d2"]


def test_rows_behind_a_line_that_is_left_out_keep_their_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, RUN + "q1,1,d1,1,2\nq1,d2\nq1,1,d3,2,1\nq1,1,d4,x,2\n")
    with pytest.warns(GoodgainNotice) as told:
        assert gg.read_run(path, errors="skip").frame["doc_id"].to_list() == ["d1", "d3"]
    said = " ".join(str(one.message) for one in told)
    assert "line 3 (has 2 values" in said and "row 5 (has the rank 'x', which is not a number)" in said


def test_a_label_that_is_not_a_number_is_a_bad_row_and_an_empty_one_is_unjudged(tmp_path: Path) -> None:
    path = write(tmp_path, QRELS + "q1,d1,2\nq1,d2,x\nq1,d3,\nq1,d4,1\n")
    with pytest.warns(GoodgainNotice) as told:
        qrels = gg.read_qrels(path, errors="skip")
    said = " ".join(str(one.message) for one in told)
    assert "left out 1 bad row" in said and "row 3 (has the relevance 'x', which is not a number)" in said
    assert "1 row with a null relevance" in said
    assert qrels.frame["doc_id"].to_list() == ["d1", "d4"]
    assert qrels.ungraded is not None and qrels.ungraded["doc_id"].to_list() == ["d3"]


def test_empty_values_blank_lines_and_quotes_are_no_short_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path, '\n \nquery_id,doc_id,relevance,note\nq1,d1,2,"a\nb, c"\n\nq1,d2,1,\n,,,\nq1,"d""3",0,5 \n  \n'
    )
    with no_notices():
        labels = gg.read_qrels(path).frame.select("doc_id", "relevance").rows()
        assert labels == [("d1", 2), ("d2", 1), ('d"3', 0)]
        assert gg.aggregate(path)["relevance"].to_list() == [2, 1, 0]


@pytest.mark.parametrize("quoted", ["", '"x,y"\n'])
@pytest.mark.parametrize("read", [gg.read_qrels, gg.aggregate])
def test_many_short_lines_under_many_names_take_no_square_of_time(
    read: Callable[[Path], object], quoted: str, tmp_path: Path
) -> None:
    def measure(size: int) -> float:
        names = ",".join(f"c{k}" for k in range(size))
        path = write(tmp_path, f"query_id,doc_id,relevance,{names}\n{quoted}" + "q\n" * size)

        def call() -> None:
            with pytest.raises(gg.InputError, match=rf"line 2: .* has . values?, the header has {size + 3} names"):
                read(path)

        return measure_seconds(call)

    assert not find_faster_growth(measure, 500)


def test_blanks_around_values_belong_to_no_id_whoever_reads_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "query_id , doc_id, relevance\nq1, d1,2\n q1 ,d2 , 1\n")
    labels = [("q1", "d1", 2), ("q1", "d2", 1)]
    assert gg.read_qrels(path).frame.select("query_id", "doc_id", "relevance").rows() == labels
    assert gg.aggregate(path).select("query_id", "doc_id", "relevance").rows() == labels


def test_a_quote_in_tsv_is_a_sign_as_any_other(tmp_path: Path) -> None:
    path = write(tmp_path, 'query_id\tdoc_id\trelevance\nq1\t"d1\t2\nq1\td2\t1\nq1\td3"\t0\n', "t.tsv")
    with no_notices():
        assert gg.read_qrels(path).frame["doc_id"].to_list() == ['"d1', "d2", 'd3"']
        assert sorted(gg.aggregate(path)["doc_id"].to_list()) == ['"d1', "d2", 'd3"']


def test_values_of_tsv_that_stand_in_quotes_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, 'query_id\tdoc_id\trelevance\nq1\t"d1"\t2\nq1\td2\t1\n', "t.tsv")
    for read in (gg.read_qrels, gg.aggregate):
        with pytest.warns(GoodgainNotice, match="1 value in quotes, which are part of the value in TSV"):
            read(path)


def test_grade_and_relevance_in_one_table_are_an_error_whoever_reads_it(tmp_path: Path) -> None:
    path = write(tmp_path, "query_id,doc_id,grade,relevance\nq1,d1,0,2\n")
    frame = pl.read_csv(path)
    frame.write_ndjson(tmp_path / "t.jsonl")
    for source in (path, frame, tmp_path / "t.jsonl"):
        with pytest.raises(gg.InputError, match="two columns that may be relevance, 'relevance' and 'grade'"):
            gg.read_qrels(source)
        with pytest.raises(gg.InputError, match=r"two .* that may be the grade, grade and relevance"):
            gg.aggregate(source)
    assert gg.read_qrels(path, columns={"relevance": "relevance"}).frame["relevance"].to_list() == [2]


def test_a_first_line_of_more_values_than_any_table_has_columns_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("query_id,doc_id,relevance" + ",NaN" * 20_000)
    with pytest.raises(gg.InputError, match=r"the first line has 20,003 values, so it is not a header"):
        gg.read_qrels(path)
