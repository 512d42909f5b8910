"""docs/conversations.md, and the script that makes its files from a clone of the data of TREC CAsT.

The data are not kept here: GOODGAIN_CAST names a clone, and without one only made-up files of the same shape are read.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import goodgain as gg
from tests.support.page_examples import printed_now
from tests.support.tables import ROOT

PAGE = ROOT / "docs" / "conversations.md"
CAST = os.environ.get("GOODGAIN_CAST")
needs_cast = pytest.mark.skipif(CAST is None, reason="GOODGAIN_CAST names no clone of treccastweb")
SYSTEMS = ("manual_bm25", "manual_ance", "manual_ance_bert", "convdr", "convdr_bert")


def make_files(clone: Path, target: Path, *more: str) -> Path:
    command = [sys.executable, str(ROOT / "docs" / "make_cast2021.py"), str(clone), str(target), *more]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")})
    return target


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a made-up clone: two turns of one conversation, three results each."""
    folder = tmp_path / "treccastweb" / "2021"
    runs = folder / "baselines" / "document_runs"
    runs.mkdir(parents=True)
    folder.joinpath("trec-cast-qrels-docs.2021.qrel").write_text("106_1 0 a 4\n106_2 0 a 0\n106_2 0 b 3\n")
    lines = [f"106_{turn} Q0 {doc} {k} {9 - k} x\n" for turn in (1, 10) for k, doc in enumerate("abc", 1)]
    for name in SYSTEMS:
        runs.joinpath(f"org_{name}.run").write_text("".join(lines))
    return folder.parent


def test_a_turn_becomes_an_iteration_of_its_conversation(clone: Path, tmp_path: Path) -> None:
    files = make_files(clone, tmp_path / "made", "--depth", "2")
    assert (files / "qrels.txt").read_text() == "106 1 a 4\n106 2 a 0\n106 2 b 3\n"
    assert [line.split()[:3] for line in (files / "convdr.run").read_text().splitlines()] == [
        ["106", "1", "a"], ["106", "1", "b"], ["106", "10", "a"], ["106", "10", "b"],
    ]  # fmt: skip
    assert sorted(path.stem for path in files.glob("*.run")) == sorted(SYSTEMS)


@needs_cast
def test_the_page_shows_what_the_public_runs_give(tmp_path: Path) -> None:
    make_files(Path(str(CAST)), tmp_path / "cast2021")
    page = PAGE.read_text(encoding="utf-8")
    assert printed_now(page, tmp_path) == page


@needs_cast
@pytest.mark.filterwarnings("ignore::goodgain.errors.GoodgainNotice")  # coverage, and labels that differ between turns
def test_the_public_runs_have_the_numbers_that_were_counted_by_hand(tmp_path: Path) -> None:
    files = make_files(Path(str(CAST)), tmp_path / "cast2021")
    labels = gg.read_qrels(files / "qrels.txt", labels="iteration").frame
    assert (len(labels), labels["query_id"].n_unique()) == (19_334, 19)
    assert labels["relevance"].unique().sort().to_list() == [0, 1, 2, 3, 4]
    rows = gg.ledger(files / "qrels.txt", files / "convdr.run", labels="iteration")
    assert (len(rows), rows["query_id"].n_unique(), rows["Dup"].sum(), rows["R"].sum()) == (239, 26, 508, 2_390)
    systems = {name: files / f"{name}.run" for name in ("manual_bm25", "manual_ance")}
    (pair,) = gg.compare(files / "qrels.txt", systems, "nCG@8", baseline="manual_bm25", labels="iteration").pairs.rows(
        named=True
    )
    assert [round(pair[name], 4) for name in ("difference", "low", "high")] == [0.0489, 0.0145, 0.0833]
    assert pair["verdict"] == "better"


if __name__ == "__main__":  # writes what the public runs give into the page: GOODGAIN_CAST=... python -m tests...
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        make_files(Path(str(CAST)), Path(name) / "cast2021")
        PAGE.write_text(printed_now(PAGE.read_text(encoding="utf-8"), Path(name)), encoding="utf-8")
