"""A large file, read in blocks, says what the same file says when it is read at once."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.cli.program import program
from goodgain.counting import run_opening
from goodgain.counting.run_in_blocks import RunFile, partition_by_query, text_blocks
from goodgain.files.opening import Content, open_stream, read_bytes
from tests.scoring.test_against_oracle import all_cases
from tests.scoring.test_missing_iterations import frame_of
from tests.support.counts import some_of
from tests.support.forms import in_blocks
from tests.support.tables import SESSIONS, no_notices, qrels_frame, run_frame

OURS = "CG RG DCGG DRG RAG DRAG SRE SRR CG@3 AvgGain@3 SRE(rel=3)@2 IterationsForAllGoodResults NumUnjudged"
CLASSIC = "nDCG@10 RR@10 R@100 AP P@3 NumRet"


def text_of(run: pl.DataFrame, *, separator: str = " ") -> bytes:
    """The rows as TREC text, with half of the scores in forms that need care."""
    rows = run.with_row_index("row").iter_rows(named=True)
    lines = [
        separator.join(
            [r["query_id"], str(r["iteration"]), r["doc_id"], str(r["rank"]), _number(r["score"], r["row"]), "t"]
        )
        for r in rows
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _number(score: float, row: int) -> str:
    return [repr(float(score)), f"{score:.17e}", f"+{score:.0f}." if score >= 0 else repr(score)][row % 3]


def whole_queries(run: pl.DataFrame) -> pl.DataFrame:
    return run.sort("query_id", maintain_order=True)


def in_reading_order(run: pl.DataFrame) -> pl.DataFrame:
    number = pl.col("iteration").cast(pl.Int64, strict=False)
    return run.sort("query_id", number, "rank", maintain_order=True)


@pytest.fixture(scope="module")
def random_runs() -> tuple[pl.DataFrame, gg.Qrels]:
    run, rows, _ = all_cases(None)
    whole = [row._replace(relevance=int(row.relevance)) for row in rows]
    kept = {(row.query_id, row.doc_id): row for row in whole}
    return run_frame(run), gg.read_qrels(qrels_frame(list(kept.values())))


def same_scores(qrels: gg.Qrels, large: RunFile, path: Path, measures: str, **options: object) -> None:
    with no_notices():
        read = gg.read_run(path, gaps=large.gaps, first=large.first)
        there = gg.evaluate(qrels, large, measures, **options)  # type: ignore[arg-type]  # by name
        here = gg.evaluate(qrels, read, measures, **options)  # type: ignore[arg-type]  # by name
    assert_frame_equal(there.per_query, here.per_query, abs_tol=1e-12)
    assert there.signature == here.signature
    assert there.mean() == pytest.approx(here.mean(), abs=1e-12)


@pytest.mark.parametrize("block", some_of([100, 3_000, 10**6], every=2))
@pytest.mark.parametrize("arranged", [whole_queries, in_reading_order])
@pytest.mark.parametrize("separator", some_of([" ", "\t", "  "], every=3))
def test_scores_are_those_of_the_file_read_at_once(
    tmp_path: Path, random_runs: tuple[pl.DataFrame, gg.Qrels], block: int, arranged: object, separator: str
) -> None:
    run, qrels = random_runs
    path = tmp_path / "agent.run"
    path.write_bytes(text_of(arranged(run), separator=separator))  # type: ignore[operator]  # one of two functions
    same_scores(qrels, in_blocks(path, block=block), path, f"{OURS} {CLASSIC}")


@pytest.mark.parametrize("order", ["seen", "interleaved", "last"])
def test_every_order_of_the_ranking_is_the_same(
    tmp_path: Path, random_runs: tuple[pl.DataFrame, gg.Qrels], order: str
) -> None:
    run, qrels = random_runs
    path = tmp_path / "agent.run"
    path.write_bytes(text_of(in_reading_order(run)))
    same_scores(qrels, in_blocks(path, block=5_000), path, CLASSIC, order=order)


@pytest.mark.parametrize("name", ["agent.run", "agent.parquet"])
def test_queries_scattered_over_the_file_are_put_together(
    tmp_path: Path, random_runs: tuple[pl.DataFrame, gg.Qrels], name: str
) -> None:
    run, qrels = random_runs
    path, shuffled = tmp_path / name, run.sample(fraction=1, shuffle=True, seed=5)
    if path.suffix == ".parquet":
        shuffled.write_parquet(path)
    else:
        path.write_bytes(text_of(shuffled))
    large = in_blocks(path, block=8_000 if path.suffix == ".parquet" else 4_000, is_text=path.suffix == ".run")
    same_scores(qrels, large, path, f"{OURS} {CLASSIC}")


def test_a_scattered_parquet_file_is_divided_by_the_size_of_its_rows_which_shrank_to_a_sixth(tmp_path: Path) -> None:
    path = tmp_path / "agent.parquet"
    frame = pl.DataFrame({"query_id": [f"q{k % 200}" for k in range(400)], "iteration": 1, "doc_id": "d", "rank": 1})
    frame.write_parquet(path)
    parts = list(partition_by_query(in_blocks(path, block=path.stat().st_size // 2, is_text=False)))
    assert len(parts) == 6 + 2, "six times the size in parts of two blocks, and two more"


@pytest.mark.parametrize("labels", [None, "iteration"])
def test_parquet_is_read_in_blocks_too(tmp_path: Path, labels: str | None) -> None:
    run, rows, _ = all_cases(labels)
    path = tmp_path / "agent.parquet"
    whole_queries(run_frame(run)).write_parquet(path)
    with no_notices():
        qrels = gg.read_qrels(qrels_frame(rows), labels=labels)
    same_scores(qrels, in_blocks(path, block=8_000, is_text=False), path, OURS)


def test_labels_by_iteration_and_filled_gaps_hold_in_blocks(tmp_path: Path) -> None:
    run, rows, _ = all_cases("iteration")
    path = tmp_path / "agent.run"
    path.write_bytes(text_of(whole_queries(run_frame(run))))
    with no_notices():
        qrels = gg.read_qrels(qrels_frame(rows), labels="iteration")
    same_scores(qrels, in_blocks(path, block=4_000), path, OURS)
    same_scores(qrels, in_blocks(path, block=4_000, gaps="empty", first=0), path, OURS)


#: What is written to files of text, by the ending of their name.
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize(("mark", "block"), some_of([(b"\xef\xbb\xbf", 4_000), (b"", 4_000), (b"", 10**6)], every=3))
@pytest.mark.parametrize("arranged", [whole_queries, in_reading_order])
def test_a_compressed_file_has_the_scores_of_the_plain_file(
    tmp_path: Path, random_runs: tuple[pl.DataFrame, gg.Qrels], ending: str, arranged: object, mark: bytes, block: int
) -> None:
    run, qrels = random_runs
    text = mark + text_of(arranged(run))  # type: ignore[operator]  # one of two functions
    plain, compressed = tmp_path / "agent.run", tmp_path / f"agent.run{ending}"
    plain.write_bytes(text)
    compressed.write_bytes(COMPRESS[ending](text))
    same_scores(qrels, in_blocks(compressed, block=block), plain, f"{OURS} RR")


def test_a_zst_file_of_several_frames_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "agent.run.zst"
    text = "".join(LINES).encode()
    path.write_bytes(b"".join(zstandard.compress(text[start : start + 100]) for start in range(0, len(text), 100)))
    assert b"".join(block.data for block in text_blocks(path, size=150)) == text
    assert read_bytes(path).data == text
    with open_stream(path) as file:
        assert [line.decode() for line in file] == LINES


def test_the_ledger_is_the_same_in_blocks(tmp_path: Path, random_runs: tuple[pl.DataFrame, gg.Qrels]) -> None:
    run, qrels = random_runs
    path = tmp_path / "agent.run"
    path.write_bytes(text_of(whole_queries(run)))
    with no_notices():
        there = gg.ledger(qrels, in_blocks(path, block=4_000), measures="SRE DRAG")
        assert_frame_equal(there, gg.ledger(qrels, path, measures="SRE DRAG"), abs_tol=1e-12)


def test_notices_count_over_all_blocks(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    lines = [f"q{k} {i} d{r} {r} {r} t\n" for k in range(40) for i in (1, 3) for r in (1, 2)]
    path.write_text("".join(lines))
    qrels = {f"q{k}": {"d1": 3} for k in range(45)}
    with pytest.warns(gg.GoodgainNotice) as told:
        gg.evaluate(qrels, in_blocks(path, block=200), "nDCG@10 CG")
    texts = sorted(str(notice.message)[:70] for notice in told)
    assert [text[:60] for text in texts] == [
        "coverage is low: 0.50 of the 80 unique results have a label ",
        "iteration numbers are missing in 40 queries, so iterations w",
        "ranks contradict scores within an iteration in 40 queries: t",
    ]


def test_a_large_file_of_single_searches_has_one_order_and_one_notice_of_it(tmp_path: Path) -> None:
    """The ranks of each query have the opposite order of its scores: all queries are ordered by score."""
    path = tmp_path / "agent.run"
    path.write_text("".join(f"q{k} 1 d{r} {r} {r} t\n" for k in range(9) for r in (1, 2)))
    qrels = {f"q{k}": {"d1": 2, "d2": 0} for k in range(9)}
    with pytest.warns(gg.GoodgainNotice, match="^in 9 queries with one search, classic measures sort by score") as told:
        assert gg.evaluate(qrels, in_blocks(path, block=50), "RR")["RR"] == 1 / 2
    assert len(told) == 1


LINES = [f"q{k} {i} d{r} {r} 1.0 t\n" for k in range(30) for i in (1, 2) for r in (1, 2, 3)]


@pytest.mark.parametrize(
    "bad",
    [
        "q7 1 d9 1 t",
        "q7 1 d9 1 x t",
        "q7 1 d9 nan 1 t",
        "q7 1 d9 1 1e999 t",
        "q7 two d9 1 1 t",
        "q7 -1 d9 1 1 t",
        "q7 1 d9 1 1 other",
        "q7 1 d\0 1 1 t",
        "q7 1 d 9 1 1 t",
    ],
)
@pytest.mark.parametrize("scattered", [False, True])
def test_a_bad_line_in_a_later_block_has_the_message_it_has_in_a_small_file(
    tmp_path: Path, bad: str, scattered: bool
) -> None:
    lines = [*LINES]
    if scattered:
        lines = [lines[-1], *lines[:-1]]
    at = lines.index("q7 2 d1 1 1.0 t\n")
    path = tmp_path / "agent.run"
    path.write_text("".join([*lines[:at], f"{bad}\n", *lines[at:]]))
    with pytest.raises(gg.InputError) as at_once:
        gg.read_run(path)
    with pytest.raises(gg.InputError) as block_by_block:
        gg.evaluate({"q7": {"d1": 2}}, in_blocks(path, block=150), "CG")
    assert str(block_by_block.value) == str(at_once.value)
    assert f"line {at + 1}" in str(at_once.value)


def test_a_bad_row_of_a_parquet_file_is_named_by_its_number_in_the_file(tmp_path: Path) -> None:
    frame = pl.DataFrame({"query_id": [f"q{k // 6}" for k in range(600)], "doc_id": [f"d{k}" for k in range(600)]})
    frame = frame.with_columns(iteration=pl.lit(1), score=pl.when(pl.col("doc_id") != "d431").then(1.0))
    path = tmp_path / "agent.parquet"
    frame.write_parquet(path)
    with pytest.raises(gg.InputError, match="row 431"):
        gg.evaluate({"q7": {"d1": 2}}, in_blocks(path, block=3_200, is_text=False), "CG")


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_truncated_compressed_file_is_said(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"agent.run{ending}"
    path.write_bytes(COMPRESS[ending]("".join(LINES).encode())[:-20])
    with pytest.raises(gg.InputError, match="truncated or damaged"):
        gg.evaluate({"q7": {"d1": 2}}, in_blocks(path, block=150), "CG")


@pytest.mark.parametrize("size", [1, 7, 60, 10_000])
@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
@pytest.mark.parametrize("ending", COMPRESS)
def test_blocks_hold_whole_queries_and_together_the_file(tmp_path: Path, size: int, end: str, ending: str) -> None:
    path = tmp_path / f"agent.run{ending}"
    text = ("".join(LINES).rstrip("\n") + end).encode()
    path.write_bytes(COMPRESS[ending](text))
    blocks = [(block.offset, block.data) for block in text_blocks(path, size=size)]
    assert b"".join(block for _, block in blocks) == text
    queries = [{line.split()[0] for line in block.splitlines() if line.split()} for _, block in blocks]
    assert sum(map(len, queries)) == len(set().union(*queries))
    for offset, block in blocks:
        assert text[offset : offset + len(block)] == block
        assert Content(block, part_of=path, offset=offset).before == text[:offset].count(b"\n")


def test_a_query_that_fills_many_blocks_is_one_block(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_text("".join(f"q {i} d{r} {r} 1 t\n" for i in range(1, 200) for r in range(1, 20)))
    assert len(list(text_blocks(path, size=64))) == 1
    same_scores(gg.read_qrels({"q": {"d3": 2, "x": 3}}), in_blocks(path, block=64), path, f"{OURS} {CLASSIC}")


def test_a_large_file_is_read_in_blocks_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.run"
    path.write_text("".join(LINES))
    monkeypatch.setattr(run_opening, "LARGE", 100)
    assert isinstance(run_opening.open_run(path), RunFile)
    assert isinstance(run_opening.open_run(path, errors="skip"), gg.Run)
    monkeypatch.setattr(run_opening, "LARGE_COMPRESSED", 10)
    for ending in (".gz", ".zst"):
        compressed = tmp_path / f"agent.run{ending}"
        compressed.write_bytes(COMPRESS[ending](path.read_bytes()))
        assert isinstance(run_opening.open_run(compressed), RunFile)
    qrels = {"q7": {"d1": 2}}
    assert gg.evaluate(qrels, path, "CG SRE").mean() == gg.evaluate(qrels, gg.read_run(path), "CG SRE").mean()


def test_the_command_compare_reads_large_files_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.run"
    path.write_text("".join(LINES))
    (tmp_path / "other.run").write_text("q7 1 d1 1 1.0 t\n")
    (tmp_path / "qrels.txt").write_text("q7 0 d1 3\nq8 0 d2 2\n")
    command = ["compare", str(tmp_path / "qrels.txt"), str(path), str(tmp_path / "other.run"), "-m", "CG nDCG@10"]
    with no_notices():
        at_once = CliRunner().invoke(program, command)

    def read_small(source: str, **options: object) -> gg.Run:
        assert source != str(path), "read at once"
        return gg.read_run(source)

    monkeypatch.setattr(run_opening, "LARGE", 100)
    monkeypatch.setattr(run_opening, "load_run", read_small)
    with no_notices():
        by_blocks = CliRunner().invoke(program, command)
    assert by_blocks.exit_code == at_once.exit_code == 0
    assert by_blocks.stdout == at_once.stdout


def test_measures_of_the_users_own_get_all_queries_at_once(tmp_path: Path) -> None:
    import ir_measures

    sizes: list[int] = []

    def counting(qrels: object, run: pl.DataFrame) -> list[ir_measures.Metric]:
        sizes.append(len(set(run["query_id"])))
        return [(query_id, 1.0) for query_id in sorted(set(run["query_id"]))]  # type: ignore[misc]  # as ir_measures takes it

    own = ir_measures.define(counting, name="Own")
    path = tmp_path / "agent.run"
    path.write_text("".join(LINES))
    gg.evaluate({"q7": {"d1": 2}}, in_blocks(path, block=150), [own, "nDCG@10"])
    assert sizes == [30]


@pytest.mark.skipif(not SESSIONS.exists(), reason="the real sessions are shared beside the checkout, never in it")
def test_the_real_sessions_are_the_same_in_blocks() -> None:
    qrels = gg.read_qrels(SESSIONS / "sessions.qrels")
    path = SESSIONS / "sessions.run"
    same_scores(qrels, in_blocks(path, block=20_000), path, f"{OURS} {CLASSIC}")


def test_a_byte_order_mark_within_the_file_belongs_to_the_query(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    lines = [f"q{k} 1 d1 1 1.0 t \n" for k in range(9)]  # a blank at the end: not a clean line
    path.write_text("\ufeff" + "".join([*lines[:4], "\ufeffz0 1 d1 1 1.0 t\n", *lines[4:]]), encoding="utf-8")
    qrels = gg.read_qrels({"z0": {"d1": 2}, "\ufeffz0": {"d1": 3}, "q0": {"d1": 2}})
    for block in (1, 30, 10_000):
        same_scores(qrels, in_blocks(path, block=block), path, f"{OURS} {CLASSIC}")


def test_a_parquet_file_without_iterations_is_told_of_once_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.parquet"
    pl.DataFrame({"query_id": [f"q{k}" for k in range(40) for _ in "ab"], "doc_id": "d1"}).write_parquet(path)
    monkeypatch.setattr(run_opening, "LARGE_COMPRESSED", 0)
    assert isinstance(run_opening.open_run(path), RunFile)
    large = in_blocks(path, block=320, is_text=False)
    with pytest.warns(gg.GoodgainNotice) as told:
        gg.evaluate({"q7": {"d1": 2}}, large, "CG CG@2")
    assert [str(notice.message)[:34] for notice in told] == ["agent: no iterations in this run: "]


def test_a_file_that_becomes_shorter_while_it_is_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_text("".join(LINES) * 2_000)  # longer than what Python reads ahead
    blocks = text_blocks(path, size=150)
    next(blocks)
    path.write_text(LINES[0])
    with pytest.raises(gg.InputError, match="became shorter while it was read"):
        list(blocks)


def test_the_queries_that_a_notice_names_do_not_depend_on_blocks(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_text("".join(reversed(LINES)))
    told = []
    for run in (path, in_blocks(path, block=150), in_blocks(path, block=2_000)):
        with pytest.warns(gg.GoodgainNotice, match="no query of the run is in the qrels") as notices:
            gg.evaluate({"x9": {"d1": 2}, "x10": {"d1": 2}}, run, "CG")
        told.append(str(notices[0].message))
    assert told == [told[0]] * 3
    assert "'q0'" in told[0]
    assert "'x9'" in told[0]  # as people count


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n\n \n"])
@pytest.mark.parametrize("ending", COMPRESS)
def test_a_large_file_without_a_row_is_an_empty_run(tmp_path: Path, content: bytes, ending: str) -> None:
    path = tmp_path / f"agent.run{ending}"
    path.write_bytes(COMPRESS[ending](content))
    for run in (path, in_blocks(path, block=10)):
        with pytest.warns(gg.GoodgainNotice) as told:
            scores = gg.evaluate({"q7": {"d1": 2}}, run, "CG SRE nDCG@10")
        assert [str(notice.message).startswith(f"{path}: the run is empty") for notice in told] == [True]
        assert scores.mean() == {"CG": 0.0, "SRE": 0.0, "nDCG@10": 0.0}


@pytest.mark.parametrize("name", ["agent.run.gz", "agent.run.zst"])
def test_a_large_file_is_what_its_name_says(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_opening, "LARGE", 10)
    (tmp_path / name).write_text("".join(LINES))
    with pytest.raises(gg.InputError, match="data, despite its name"):
        gg.evaluate({"q7": {"d1": 2}}, tmp_path / name, "CG")


@pytest.mark.parametrize("block", [60, 10_000])
def test_two_byte_order_marks_are_one_and_a_letter(tmp_path: Path, block: int) -> None:
    path = tmp_path / "agent.run"
    path.write_text("\ufeff\ufeffq0 1 d1 1 1 t\n" + "".join(LINES), encoding="utf-8")
    qrels = gg.read_qrels({"q0": {"d1": 2}, "\ufeffq0": {"d1": 3}})
    same_scores(qrels, in_blocks(path, block=block), path, OURS)
    assert gg.evaluate({"\ufeffq0": {"d1": 3}}, path, "CG")["CG"] == 3.0


@pytest.mark.parametrize("ending", ["run", "run.gz", "parquet"])
@pytest.mark.parametrize("block", [40, 2**20])
def test_a_large_file_that_was_appended_to_itself_is_refused(tmp_path: Path, ending: str, block: int) -> None:
    for rows in ("q 1 a 1 2 t|q 2 b 1 1 t|p 1 a 1 1 t|", "q 1 a 1 2 t|q 2 b 1 1 t|"):
        text = rows.replace("|", "\n") * 3
        path = tmp_path / f"twice.{ending}"
        if ending == "parquet":
            frame_of(text).write_parquet(path)
        else:
            path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
        file = RunFile(path, "close", 1, is_text=ending != "parquet", compressed=ending.endswith("gz"), block=block)
        with pytest.raises(gg.InputError, match=rf"the run has 3 copies of the same {rows.count('|')} rows"):
            gg.evaluate({"q": {"a": 2}}, file, "SRR")


def test_equal_rows_of_a_large_file_are_counted_over_its_blocks(tmp_path: Path) -> None:
    path = tmp_path / "calls.run"
    path.write_text(
        "".join(f"q{k} 1 {doc} {rank} 1 t\n" for k in range(9) for rank, doc in ((1, "a"), (2, "b"), (1, "a")))
    )
    file = RunFile(path, "close", 1, is_text=True, block=40)
    with pytest.warns(gg.GoodgainNotice, match=r"9 rows equal an earlier row") as told:
        assert gg.evaluate({"q1": {"a": 2}}, file, "SRR")["SRR"] == pytest.approx(1 / 3)
    assert len([one for one in told if "equal" in str(one.message)]) == 1
