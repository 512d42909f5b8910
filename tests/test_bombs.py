"""Small files that unpack to gigabytes are refused, or read in bounded memory, by every reader that the registries name."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import re
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest
import zstandard

import goodgain as gg
from tests.support.readers import PATH_READERS
from tests.support.tables import no_notices

#: What a bomb unpacks to, and what a process may take to read it: Python, Polars, numba and ir_measures take 300 MB alone.
PLAIN = 1024 << 20
ALLOWED = 1000 << 20
_PIECE = 8 << 20
#: Lines as they stand in files of any kind; the readers of the others refuse them.
SHAPES = {
    "one line": b"a" * _PIECE,
    "blanks": b" " * _PIECE,
    "brackets": b"[" * _PIECE,
    "rows of a run": b"q 1 a 1 1 t\n" * (_PIECE // 12),
    "rows of qrels": b"q 0 a 1\n" * (_PIECE // 8),
    "objects": b'{"query_id":"q","doc_id":"a","relevance":1,"judge":"j","grade":1}\n' * (_PIECE // 66),
    "empty lists": b"[[]" + b",[]" * (_PIECE // 3) + b"]\n",
}
#: Both are unpacked by one function, so each shape meets one of them.
BOMBS = list(zip(SHAPES, itertools.cycle((".zst", ".gz")), strict=False))


def _pack(piece: bytes, compression: str) -> bytes:
    """Return compressed data that unpack to the piece, again and again: members and frames may follow each other."""
    packed = gzip.compress(piece, 9) if compression == ".gz" else zstandard.compress(piece)
    return packed * (PLAIN // len(piece))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in KiB, as Linux does")
@pytest.mark.parametrize(("shape", "compression"), BOMBS)
def test_a_bomb_takes_little_memory_in_every_reader(tmp_path: Path, shape: str, compression: str) -> None:
    path = tmp_path / f"bomb{compression}"
    path.write_bytes(_pack(SHAPES[shape], compression))
    assert path.stat().st_size < PLAIN // 100

    first = BOMBS.index((shape, compression))
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_bombs", path, str(first)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT_OF_TESTS,
        env=os.environ | {"TMPDIR": str(tmp_path), "POLARS_MAX_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr[-2000:]

    for name, outcome, peak in map(json.loads, done.stdout.splitlines()):
        assert peak < ALLOWED, (name, outcome, peak >> 20)
        assert outcome, name


ROOT_OF_TESTS = Path(__file__).parents[1]


@pytest.mark.slow
def test_an_archive_whose_members_are_large_together_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(24):
            archive.writestr(f"samples/{number}.json", b" " * (50 << 20))
    with pytest.raises(gg.InputError, match="unpacks to 1,200 MiB"):
        gg.read_traces(path)


def test_a_line_longer_than_any_table_has_is_refused_whatever_it_is_compressed_with(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(b"q 1 a 1 1 t\n" + b"x" * (65 << 20))
    with pytest.raises(gg.InputError, match="a line of more than 64 MiB"):
        gg.read_run(path)


@pytest.mark.slow
def test_ids_of_a_megabyte_are_legal(tmp_path: Path) -> None:
    long = "d" * 2**20
    (tmp_path / "a.run").write_text(f"{long} 1 {long} 1 1 t\n")
    (tmp_path / "a.qrels").write_text(f"{long} 0 {long} 3\n")
    for ending in ("", ".gz", ".zst"):
        run, qrels = gg.read_run(tmp_path / "a.run"), gg.read_qrels(tmp_path / "a.qrels")
        gg.write_run(run, tmp_path / f"b.run{ending}")
        gg.write_qrels(qrels, tmp_path / f"b.qrels{ending}")
        assert gg.evaluate(tmp_path / f"b.qrels{ending}", tmp_path / f"b.run{ending}", "CG")["CG"] == 3


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_small_file_that_unpacks_to_a_large_run_is_read_in_blocks(tmp_path: Path, ending: str) -> None:
    """A run that shrinks to a twentieth is honest: it is read, and not all at once."""
    from goodgain.counting import run_in_blocks, run_opening

    rows = "".join(
        f"q{k // 1000} {k % 1000 // 100} d{random.Random(k).random()} {k % 100} 1 t\n" for k in range(20_000)
    )
    piece = _pack_once(rows.encode(), ending)
    (tmp_path / f"a.run{ending}").write_bytes(piece)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_opening, "LARGE", 2**19)
        opened = run_opening.open_run(tmp_path / f"a.run{ending}")
        assert isinstance(opened, run_in_blocks.RunFile)
        with no_notices():
            scores = gg.evaluate({"q1": {"a": 1}}, opened, "NumResults")  # type: ignore[arg-type]  # what the command passes
    assert scores["NumResults"] == 1000


def _pack_once(data: bytes, ending: str) -> bytes:
    return gzip.compress(data) if ending == ".gz" else zstandard.compress(data)


def _read_some(path: Path, first: int) -> None:
    """Read a bomb with every seventh reader; print the name of each, what came of it, and the largest memory so far.

    Readers of one kind stand beside each other in the registries, so each shape meets some of every kind.
    """
    warnings.simplefilter("ignore")
    for name in [*PATH_READERS][first :: len(BOMBS)]:
        ending, read = PATH_READERS[name]
        link = path.with_name(f"a{ending}{path.suffix}")
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        try:
            read(link)
            outcome = "read"
        except gg.GoodgainError as error:
            outcome = str(error)
        print(json.dumps([name, outcome, _peak()]), flush=True)


def _peak() -> int:
    """Return the largest memory of this process in bytes; `ru_maxrss` would count that of the process that started it too."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


if __name__ == "__main__":
    _read_some(Path(sys.argv[1]), int(sys.argv[2]))
