"""What is compiled is kept, used without its compiler, and made anew where what was kept is not whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from goodgain.batches import compiled_kernels

TEXT = np.frombuffer(b"one\ntwo\n\nthree", np.uint8)


class CompilingError(Exception):
    """numba was asked."""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what is kept, in the one place where it is looked for; numba may not be asked."""
    compiled_kernels.kernels()
    path = tmp_path / "kept.ll"
    path.write_bytes(next(place for place in compiled_kernels._places() if place.exists()).read_bytes())

    def refused() -> compiled_kernels.Kernels:
        raise CompilingError

    monkeypatch.setattr(compiled_kernels, "_places", lambda: iter([path]))
    monkeypatch.setattr(compiled_kernels, "_made", refused)
    return path


def test_what_is_kept_is_used_without_numba() -> None:
    compiled_kernels.kernels()
    code = (
        "import sys, numpy as np; from goodgain.batches.compiled_kernels import kernels\n"
        "print(kernels()['count_lines'](np.frombuffer(b'a\\nb\\n', np.uint8), 4), 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]


def test_what_is_kept_counts_as_it_did(kept: Path) -> None:
    found = compiled_kernels._kernels.__wrapped__()
    assert kept.exists()
    assert found.keys() == compiled_kernels.kernels().keys()
    assert found["count_lines"](TEXT, len(TEXT)) == 3


@pytest.mark.parametrize("damage", [b"", b"x", b"check\n{}"])
def test_what_is_kept_and_damaged_is_compiled_anew(kept: Path, damage: bytes) -> None:
    kept.write_bytes(damage)
    with pytest.raises(CompilingError):
        compiled_kernels._kernels.__wrapped__()


@pytest.mark.parametrize("at", [10, 1_000, -1_000])
def test_one_changed_byte_is_seen(kept: Path, at: int) -> None:
    content = bytearray(kept.read_bytes())
    content[at] ^= 1
    kept.write_bytes(content)
    with pytest.raises(CompilingError):
        compiled_kernels._kernels.__wrapped__()


def test_where_nothing_can_be_kept_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setattr(compiled_kernels, "_places", lambda: iter([file / "kept.ll", tmp_path / "second" / "kept.ll"]))
    compiled_kernels._keep("{}")
    assert (tmp_path / "second" / "kept.ll").exists()
    monkeypatch.setattr(compiled_kernels, "_places", lambda: iter([file / "kept.ll"]))
    compiled_kernels._keep("{}")
    assert file.read_text() == "no folder"


def test_a_text_that_needs_more_than_itself_is_told(kept: Path) -> None:
    text = kept.read_text("utf-8")
    assert not any(
        compiled_kernels._OUTSIDE.search(line) for line in text.encode().decode("unicode_escape").splitlines()
    )
    assert compiled_kernels._OUTSIDE.search("declare i32 @llvm.smax.i32(i32, i32)\ndeclare void @PyErr_Clear() #1")
    assert compiled_kernels._OUTSIDE.search("@PyExc_SystemError = external global i8")
    assert not compiled_kernels._OUTSIDE.search("declare i32 @llvm.smax.i32(i32, i32)\n@x = internal constant i8 1")


@pytest.mark.parametrize("array", [np.zeros(4, np.int64), np.zeros((4, 2), np.uint8)[:, 0]])
def test_an_array_of_another_type_or_with_gaps_is_refused(array: np.ndarray) -> None:  # type: ignore[type-arg]  # of any
    with pytest.raises(TypeError, match="Bytes"):
        compiled_kernels.kernels()["count_lines"](array, 4)


def test_what_numba_does_not_compile_is_told_as_what_cannot_be_loaded(tmp_path: Path) -> None:
    code = "from goodgain.batches.compiled_kernels import kernels; kernels()"
    places = {"NUMBA_DISABLE_JIT": "1", "PYTHONPYCACHEPREFIX": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | places)
    assert done.stderr.splitlines()[-1].startswith("ImportError: it does not compile")
