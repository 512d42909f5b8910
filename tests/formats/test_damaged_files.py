"""Damaged files of every format are one sentence or are read: no traceback, no panic, no process that ends."""

from __future__ import annotations

import gzip
import itertools
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import goodgain as gg
from goodgain.files import opening
from goodgain.judgments.labelling.prompt_requests import read_prompt
from tests.support.counts import how_many
from tests.support.forms import encode
from tests.support.readers import PATH_READERS
from tests.support.tables import no_notices

#: What is written into a file at a random place.
JUNK = [
    b"9" * 400,
    *b"\0 \xff\xfe \xef\xbb\xbf \n \r NaN 1e999 -0 \xed\xa0\x80 \t , { inf".split(b" "),
    *b"\0\0\0\0 \xff\xff\xff\x7f 1_000 \xc2\xa0 \xe2\x80\xa8 \x85 1e-400".split(b" "),
    b'"',
]
TABLES = {"run": "evaluated run", "qrels": "qrels", "grades": "grades"}
#: What `goodgain label` reads, and the endings that it knows.
LABELLING = [*itertools.product(("queries", "texts", "sheet"), (".csv", ".tsv", ".jsonl", ".parquet"))]
ENDINGS = [".txt", ".csv", ".tsv", *opening._CONTAINERS]


def make_frame(table: str) -> pl.DataFrame:
    rows = {"query_id": [f"q{k // 9}" for k in range(90)], "iteration": [k % 9 // 3 + 1 for k in range(90)]}
    frame = pl.DataFrame(rows).with_columns(doc_id="d" + pl.int_range(90).cast(pl.String))
    if table == "run":
        return frame.with_columns(rank=pl.int_range(90) % 3 + 1, score=1 / (pl.int_range(90) + 1), tag=pl.lit("t"))
    if table == "qrels":
        return frame.with_columns(iteration=pl.lit("0"), relevance=pl.int_range(90) % 4)
    if table == "queries":
        queries = frame.select("query_id").unique(maintain_order=True)
        return queries.with_columns(text=pl.lit("who"), description=pl.lit("it"))
    if table == "texts":
        return frame.select("doc_id", text="text of " + pl.col("doc_id"))
    if table == "sheet":
        texts = frame.select("query_id", "doc_id", title="t" + pl.col("doc_id"), url=pl.lit("u"), snippet=pl.lit("s"))
        return texts.with_columns(grade=pl.lit(None, pl.Int64))
    return frame.drop("iteration").with_columns(judge=pl.lit("j"), grade=pl.int_range(90) % 4)


def damage(content: bytes, random: Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        at = random.randrange(len(damaged) + 1)
        match random.randrange(5):
            case 0:
                damaged[at:at] = random.choice(JUNK)
            case 1:
                del damaged[at : at + random.choice([1, 3, 50])]
            case 2 | 3:
                damaged[at : at + 1] = bytes([random.randrange(256)])
            case _:
                damaged += damaged[:at]

    return bytes(damaged)


@pytest.mark.parametrize(("table", "ending"), [*itertools.product(TABLES, ENDINGS), *LABELLING])
def test_a_damaged_table_is_read_or_is_one_sentence(table: str, ending: str, tmp_path: Path) -> None:
    _, read = PATH_READERS[f"{TABLES.get(table, table)}{ending}"]
    whole, path = encode(make_frame(table), ending), tmp_path / f"a{ending}"
    for seed in range(how_many(4, full=50)):
        path.write_bytes(damage(whole, Random(f"{table}{ending}{seed}")))
        with no_notices():
            try:
                read(path)
            except gg.GoodgainError as error:
                assert "\n" not in str(error) and len(str(error)) < 2_000


#: Compressions that goodgain does not undo, or not twice; Polars would undo each.
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    **{f"zlib {level}": lambda text, level=level: zlib.compress(text, level) for level in (0, 1, 6, 9)},
    "gz gz": lambda text: gzip.compress(gzip.compress(text)),
    "zst zst": lambda text: zstandard.compress(zstandard.compress(text)),
    "gz zst": lambda text: gzip.compress(zstandard.compress(text)),
    "gz zlib": lambda text: gzip.compress(zlib.compress(text)),
}
TEXTS = [
    *((TABLES.get(table, table), ending) for table in TABLES for ending in (".txt", ".csv", ".tsv")),
    *((table, ending) for table, ending in LABELLING if ending in (".csv", ".tsv")),
]


@pytest.mark.parametrize(("table", "ending"), TEXTS)
def test_compressed_bytes_are_not_unpacked_a_second_time(table: str, ending: str, tmp_path: Path) -> None:
    whole, path = encode(make_frame(table.removeprefix("evaluated ")), ending), tmp_path / f"a{ending}"
    for name, pack in PACKINGS.items():
        path.write_bytes(pack(whole))
        with no_notices(), pytest.raises(gg.InputError) as error:
            PATH_READERS[f"{table}{ending}"][1](path)
            pytest.fail(f"{name} was read")
        assert "\n" not in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize("query_id", ["x^", "x\x01", "x", "(", "\x1f", "\ufeffx^"])
def test_a_text_that_begins_as_compressed_data_do_is_read(query_id: str, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(f"{query_id} 1 d 1 1 t\nq 1 d 1 1 t\n")
    (tmp_path / "qrels.txt").write_text(f"{query_id} 0 d 3\nq 0 d 3\n")
    with no_notices():
        scores = gg.evaluate(tmp_path / "qrels.txt", tmp_path / "a.run", "CG")
    assert {*scores.per_query.get_column("query_id")} == {query_id.removeprefix("\ufeff"), "q"} and scores["CG"] == 3


@pytest.mark.parametrize("table", ["run", "queries", "texts", "sheet", "log"])
def test_a_parquet_file_that_asks_for_more_memory_than_there_is_does_not_end_the_process(
    table: str, tmp_path: Path
) -> None:
    """Bytes of the header of a page are set to all values: one of them is the number of its rows."""
    log = Path(__file__).parents[1] / "logs" / "traces" / "fixtures" / "openinference" / "phoenix.parquet"
    whole = log.read_bytes() if table == "log" else encode(make_frame(table), ".parquet")
    path = tmp_path / "a.parquet"
    for at in {*range(4, how_many(12, full=60)), 62, 142}:  # where Polars ended the process for a log and for texts
        for value in (0x7F, 0x80, 0xFF):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            with no_notices():
                try:
                    PATH_READERS[f"{table}.parquet"][1](path)
                except gg.InputError as error:
                    assert "write it again" in str(error) or "a.parquet" in str(error) or table == "sheet"


def test_metadata_of_a_container_may_be_any_bytes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Polars panicked, and printed where in its code."""
    read = pq.read_table(pa.BufferReader(encode(make_frame("run"), ".parquet")))
    fields = [field.with_metadata({b"\xf6": b"\xff"}) for field in read.schema]
    read = pa.table(read.columns, schema=pa.schema(fields, metadata={b"\xf6": b"\xff"}))
    pq.write_table(read, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, read.schema) as writer:
        writer.write_table(read)
    for ending in (".parquet", ".arrow"):
        assert gg.read_run(tmp_path / f"a{ending}").frame.height == 90
    assert capfd.readouterr().err == ""


def test_a_log_in_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(gg.InputError, match="a pipe or a device"):
            gg.read_traces(place)


@pytest.mark.parametrize("read", [gg.read_run, gg.read_qrels, read_prompt], ids=["run", "qrels", "prompt"])
def test_a_device_that_never_ends_is_refused(read: Callable[[str], Any]) -> None:
    with pytest.raises(gg.InputError, match="a line of more than 64 MiB"):
        read("/dev/zero")
