"""Comments, and lines that go on after the tag, are read as trec_eval reads them, in every reader of TREC text."""

from __future__ import annotations

import gzip
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import polars as pl
import pytest
import zstandard
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.counting.run_in_blocks import text_blocks
from goodgain.formats.qrels_or_run import looks_like_qrels
from tests.cli.test_command_line import goodgain
from tests.support.counts import some_of
from tests.support.forms import in_blocks

QRELS = {f"q{query}": {"a": 3, "b": 2, f"c#{query}": 2, "d": 0, "x#": 0} for query in range(1, 7)}
MEASURES = "CG@2 SRE SRR NumResults nDCG@10 RR@10 AP"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}

CLEAN = "".join(
    f"q{query} {iteration} {doc} {rank} {3 - rank}.5 t\n"
    for query in range(1, 7)
    for iteration, docs in ((1, ("a", f"c#{query}")), (2, ("b", "a", "x#")))
    for rank, doc in enumerate(docs, start=1)
)


def add_comments(text: str, comment: str) -> str:
    """The text with a comment before its first line, after its last, and before every third."""
    lines = [line if number % 3 else f"{comment}\n{line}" for number, line in enumerate(text.splitlines(keepends=True))]
    return "".join(lines) + comment


#: Comments, and how many of them have the fields of a row.
COMMENTS = {
    "# made by our agent": False,
    "#": False,
    "#q1 1 z 1 9.0 t": True,
    "# 1 z 1 9.0 t": True,
    "#q1\t1\tz\t1\t9.0\tt": True,
    "#q1 1 z 1 high t": False,
    "#q1 Q0 z 1 9.0 two words": True,
    "#\xff\0": False,
    "": False,
}


def scores_of(run: object) -> dict[str, float | None]:
    return gg.evaluate(QRELS, run, MEASURES).mean()


COLUMNS = ("query_id", "iteration", "doc_id", "rank", "score", "tag")
WANTED = scores_of(
    pl.DataFrame([line.split() for line in CLEAN.splitlines()], schema=COLUMNS, orient="row").with_columns(
        pl.col("iteration", "rank").cast(pl.Int64), pl.col("score").cast(pl.Float64)
    )
)


@contextmanager
def one_notice(count: int, what: str) -> Iterator[None]:
    """Check that one notice is given, which says what there is and how many of it; none where there is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [text for one in caught if "coverage is low" not in (text := str(one.message))]
    assert len(texts) == (1 if count else 0), texts
    assert all(f": {count} line" in text and what in text for text in texts)


@pytest.mark.parametrize(
    ("comment", "separator", "ending"),  # each two of them meet
    some_of(
        (
            (comment, separator, [*COMPRESS][(k + place) % 3])
            for k, comment in enumerate(COMMENTS)
            for place, separator in enumerate((" ", "\t", "  "))
        ),
        every=7,
    ),
)
def test_comments_are_no_rows_in_any_reader(tmp_path: Path, comment: str, separator: str, ending: str) -> None:
    text = add_comments(CLEAN.replace(" ", separator), comment).encode("latin-1")
    count = text.count(comment.encode("latin-1") + b"\n") + 1 if COMMENTS[comment] else 0
    path = tmp_path / f"agent.run{ending}"
    path.write_bytes(COMPRESS[ending](text))
    for run in (path, in_blocks(path, block=100), in_blocks(path, block=10**6)):
        with one_notice(count, "begin with '#' and were left out as comments"):
            assert scores_of(run) == pytest.approx(WANTED, abs=1e-12)
    with one_notice(count, "as comments"):
        skipping = gg.read_run(path, errors="skip").frame
    with one_notice(count, "as comments"):
        assert skipping.equals(gg.read_run(path).frame)


@pytest.mark.parametrize("comment", some_of(COMMENTS, every=4))
def test_queries_scattered_among_comments_are_put_together(tmp_path: Path, comment: str) -> None:
    lines = sorted(CLEAN.splitlines(keepends=True), key=lambda line: (line.split()[1], line))
    text = add_comments("".join(lines), comment).encode("latin-1")
    path = tmp_path / "agent.run"
    path.write_bytes(text)
    with one_notice(text.count(comment.encode("latin-1") + b"\n") + 1 if COMMENTS[comment] else 0, "comments"):
        assert scores_of(in_blocks(path, block=100)) == pytest.approx(WANTED, abs=1e-12)


def test_a_comment_is_not_taken_for_a_query_when_blocks_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_text(add_comments(CLEAN, "#q1 1 z 1 9.0 t"))
    blocks = [block.data.decode() for block in text_blocks(path, size=40)]
    assert "".join(blocks) == path.read_text()
    queries = [{line.split()[0] for line in block.splitlines() if line[0] != "#"} for block in blocks]
    assert len(blocks) >= 3
    assert sum(map(len, queries)) == 6 and set().union(*queries) == set(QRELS)


def test_a_line_that_is_wrong_is_counted_with_the_comments_before_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_text("# one\nq1 1 a 1 1.0 t\n#q1 1 b 2 0.5 t\nq1 Q0 b 2 1.0 t\n")
    with pytest.raises(gg.InputError, match="line 4"), pytest.warns(gg.GoodgainNotice):
        gg.read_run(path)
    scattered = "# one\nq1 1 a 1 1.0 t\nq2 1 a 1 1.0 t\n\nq1 Q0 b 2 1.0 t"  # the last line has no end
    path.write_text(scattered)
    with pytest.raises(gg.InputError, match=r"line [25]"):
        scores_of(in_blocks(path, block=20))


@pytest.mark.parametrize("ending", COMPRESS)
def test_comments_in_qrels(tmp_path: Path, ending: str) -> None:
    rows = "".join(f"{query} 0 {doc} {label}\n" for query, of in QRELS.items() for doc, label in of.items())
    path = tmp_path / f"qrels.txt{ending}"
    path.write_bytes(COMPRESS[ending](add_comments(rows, "# a comment of four fields").encode()))
    with one_notice(0, ""):
        qrels = gg.read_qrels(path)
    assert qrels.digest == gg.read_qrels(QRELS).digest
    assert looks_like_qrels(path)
    path.write_bytes(COMPRESS[ending](f"#q1 0 a 1\n{rows}".encode()))
    with pytest.warns(gg.GoodgainNotice, match="begins with '#' and was left out as a comment; to read rows") as told:
        assert gg.read_qrels(path).digest == qrels.digest
    assert len(told) == 1


def test_a_run_is_not_taken_for_qrels_by_its_comment(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_text(f"# four fields are here\n{CLEAN}")
    assert not looks_like_qrels(path)
    assert "run, 6 queries, 12 iterations" in goodgain("validate", path)[0]


def test_a_byte_order_mark_may_stand_before_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_bytes(b"\xef\xbb\xbf# comment\n" + CLEAN.encode())
    for run in (path, in_blocks(path, block=100)):
        assert scores_of(run) == pytest.approx(WANTED, abs=1e-12)


def test_query_ids_that_begin_with_the_sign_are_written_so_that_they_are_rows(tmp_path: Path) -> None:
    for name in ("agent.run", "agent.parquet"):
        with pytest.warns(gg.GoodgainNotice) if name == "agent.run" else nullcontext():
            gg.write_run({"#1": {"#a": 1.0}}, tmp_path / name)
    with one_notice(0, ""):
        assert gg.read_run(tmp_path / "agent.run").frame.select("query_id", "doc_id").rows() == [("%231", "#a")]
        assert gg.read_run(tmp_path / "agent.parquet").frame["query_id"].to_list() == ["#1"]


@pytest.mark.parametrize("tag", ["t more words", "t  \tand # signs", "t 2"])
def test_what_follows_the_tag_is_not_read(tmp_path: Path, tag: str) -> None:
    path = tmp_path / "agent.run"
    path.write_text(CLEAN.replace(" t\n", f" {tag}\n", 4))
    for run in (path, in_blocks(path, block=100), in_blocks(path, block=10**6)):
        with one_notice(4, "have text after the tag (field 6)"):
            assert scores_of(run) == pytest.approx(WANTED, abs=1e-12)
    with one_notice(4, "after the tag"):
        assert gg.read_run(path).frame["tag"].unique().to_list() == ["t"]


#: trec_eval's own test files where GOODGAIN_TREC_EVAL names a checkout, else small files of the same forms.
FILES = (
    Path(os.environ["GOODGAIN_TREC_EVAL"], "test")
    if "GOODGAIN_TREC_EVAL" in os.environ
    else Path(__file__).with_name("as_in_trec_eval")
)


def test_files_as_in_trec_evals_own_tests_are_read() -> None:
    with one_notice(0, ""):
        qrels = gg.read_qrels(FILES / "qrels.test.with-comments")
        signed = gg.evaluate(
            FILES / "qrels.comment.test", FILES / "results.comment.test", "NumRel(rel=1) nDCG@10 NumRet"
        )
        whole = gg.read_run(FILES / "results.test").frame

    assert qrels.frame.height == gg.read_qrels(FILES / "qrels.test").frame.height
    assert signed["NumRet"] and signed["nDCG@10"]
    with pytest.warns(gg.GoodgainNotice, match="have text after the tag") as told:
        cut = gg.read_run(FILES / "results.trunc").frame
    assert len(told) == 1

    joined = cut.join(whole, on=["query_id", "doc_id"], how="inner", maintain_order="left")
    assert joined.height == cut.height
    assert_frame_equal(cut, joined.select(cut.columns))
