"""Files of kinds that goodgain does not read: the error names the kind, whatever the file's name is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import goodgain as gg

QRELS = "q1 0 dé1 2\nq1 0 d2 0\n"
FRAME = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "relevance": [2]})


def make_database() -> bytes:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE judged (query TEXT)")
        database.execute("INSERT INTO judged VALUES ('é')")
        return database.serialize()


def make_zip(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, QRELS)
    return file.getvalue()


def make_tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("qrels.txt"), io.BytesIO())
    return file.getvalue()


def write_to_bytes(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


#: Content -> a pattern of the error.
KINDS = {
    "SQLite": (make_database(), "is an SQLite database. Export its table as CSV"),
    "zip": (make_zip("qrels.txt"), "is a zip archive. Unpack it"),
    "xlsx": (make_zip("[Content_Types].xml"), "is an Excel workbook. Export"),
    "xls": (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), "is an old Excel or Office file"),
    "bzip2": (bz2.compress(QRELS.encode()), "is bzip2 data. Unpack it"),
    "xz": (lzma.compress(QRELS.encode()), "is xz data"),
    "tar": (make_tar(), "is a tar archive"),
    "NumPy": (write_to_bytes(lambda file: np.save(file, np.zeros(2))), "is a NumPy array"),
    "Parquet": (write_to_bytes(FRAME.write_parquet), "is Parquet data. Rename it to end in .parquet"),
    "Arrow": (write_to_bytes(FRAME.write_ipc), "is Arrow data. Rename it to end in .arrow"),
    "UTF-16": (QRELS.encode("utf-16"), "is UTF-16 text. Save it as UTF-8"),
    "UTF-16 without its mark": (QRELS.encode("utf-16-be"), "is UTF-16 text"),
    "UTF-32": (QRELS.encode("utf-32"), "is UTF-32 text"),
    "HTML": (b"\n<!DOCTYPE html>\n<html>", "is a web page"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a pointer of Git LFS"),
}


@pytest.mark.parametrize("name", ["file.txt", "file.csv"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_a_file_is_named(tmp_path: Path, kind: str, name: str) -> None:
    content, message = KINDS[kind]
    for path, written in ((tmp_path / name, content), (tmp_path / f"{name}.gz", gzip.compress(content))):
        path.write_bytes(written)
        for read in (gg.read_run, gg.read_qrels, gg.aggregate):
            with pytest.raises(gg.InputError) as error:
                read(path)
            assert str(error.value).startswith(f"{path}: {message}")


def test_a_large_file_of_another_kind_is_not_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodgain.counting.run_opening.LARGE", 10)
    (tmp_path / "a.run").write_bytes("q1 1 d1 1 2.0 t\n".encode("utf-16") * 99)
    with pytest.raises(gg.InputError, match="is UTF-16 text"):
        gg.evaluate({"q1": {"d1": 2}}, tmp_path / "a.run", "CG")


@pytest.mark.parametrize("kind", ["SQLite", "UTF-16"])
def test_logs_of_such_a_kind_are_not_called_text_that_is_not_utf_8(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(KINDS[kind][0])
    with pytest.raises(gg.InputError, match=r"it looks like (an SQLite database|UTF-16 text)\)") as error:
        gg.read_traces(path)
    assert "not UTF-8" not in str(error.value)


def test_words_that_begin_like_a_sign_are_text(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("PAR1 1 d1 1 2.0 t\nBZh9 1 d1 1 2.0 t\n")
    assert gg.read_run(path).frame.height == 2
    path.write_text("query 1 DUCK 1 2.0 t\n")
    assert gg.read_run(path).frame.height == 1
