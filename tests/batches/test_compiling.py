"""The loop is compiled once and kept; where it cannot be kept, or what was kept is damaged, it still works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import goodgain
from goodgain.batches.kernels.compiling import Kernels, kernels

TEXT = np.frombuffer(b"one\ntwo\n\nthree", np.uint8)
COUNT = """
import sys, numpy as np
from goodgain.batches.kernels.compiling import Kernels, kernels
found = kernels()
print(found.count_lines(np.frombuffer(b"a\\nb\\n", np.uint8)), *(sum(k.stats.cache_hits.values()) for k in found))
"""
EVALUATE = """
import sys, pathlib, goodgain as gg
from goodgain.batches import run_file
run_file.LARGE = 10
pathlib.Path(sys.argv[1]).write_text("q0 1 d1 1 1 t\\nq0 2 d2 1 1 t\\n")
print(gg.evaluate({"q0": {"d1": 2, "d2": 3}}, sys.argv[1], "CG")["CG"])
"""

LINEAR_ALGEBRA = """
import gc, sys, numpy as np
from goodgain.batches.kernels.compiling import kernels
kernels()
print("scipy.linalg" in sys.modules, gc.isenabled())
import numba
one, other = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)
print((numba.njit(lambda a, b: np.dot(a, b))(one, other) == one @ other).all(), "scipy.linalg" in sys.modules)
"""


def run(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | variables
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)


def counted(**variables: str) -> list[int]:
    """Lines that a new process counts (two), and for each kernel whether it was loaded instead of compiled."""
    done = run(COUNT, **variables)
    assert done.returncode == 0, done.stderr
    return [*map(int, done.stdout.split())]


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which another process has kept the loop."""
    folder = tmp_path_factory.mktemp("kept")
    assert counted(NUMBA_CACHE_DIR=str(folder)) == [2, *[0] * len(Kernels._fields)]
    return folder


@pytest.fixture
def kept(compiled_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compiled_once, tmp_path / "kept"))


@pytest.mark.slow
def test_a_later_process_loads_what_was_compiled(kept: Path) -> None:
    assert counted(NUMBA_CACHE_DIR=str(kept)) == [2, *[1] * len(Kernels._fields)]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have owners on Unix only")
def test_nothing_is_loaded_from_a_folder_that_others_can_write_to(kept: Path) -> None:
    for folder in kept.rglob("*/"):
        folder.chmod(0o777)
    assert counted(NUMBA_CACHE_DIR=str(kept)) == [2, *[0] * len(Kernels._fields)]
    for folder in kept.rglob("*/"):
        folder.chmod(0o755)
    assert counted(NUMBA_CACHE_DIR=str(kept)) == [2, *[1] * len(Kernels._fields)]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_nothing_is_loaded_from_a_folder_of_another_user(kept: Path) -> None:
    for folder in kept.rglob("*/"):
        os.chown(folder, 12345, 12345)
    assert counted(NUMBA_CACHE_DIR=str(kept)) == [2, *[0] * len(Kernels._fields)]


@pytest.mark.slow
def test_a_relative_cache_home_is_ignored(tmp_path: Path) -> None:
    """As the specification of XDG_CACHE_HOME says; the loop would be loaded from whatever folder one works in."""
    sources = tmp_path / "sources"
    shutil.copytree(Path(goodgain.__file__).parent, sources / "goodgain", ignore=shutil.ignore_patterns("__pycache__"))
    (sources / "goodgain" / "batches" / "kernels" / "__pycache__").write_text(
        "not a folder, so that numba looks further"
    )
    where = {
        "PYTHONPATH": str(sources),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": "here",
    }
    code = f"import os; os.chdir({str(tmp_path)!r})\n{COUNT}"
    done = run(code, **where)
    assert done.stdout.split()[0] == "2", done.stderr
    assert not (tmp_path / "here").exists()
    assert list((tmp_path / ".cache" / "numba").rglob("*.nbi"))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "other"])
def test_what_is_kept_and_damaged_is_compiled_and_kept_anew(kept: Path, ending: str, damage: str) -> None:
    for path in kept.rglob(f"*count_lines*.{ending}"):
        content = path.read_bytes()
        path.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "other": b"not a cache file"}[damage])
    assert counted(NUMBA_CACHE_DIR=str(kept)) == [2, 0, *[1] * (len(Kernels._fields) - 1)]
    assert counted(NUMBA_CACHE_DIR=str(kept)) == [2, *[1] * len(Kernels._fields)]


@pytest.mark.slow
def test_what_was_compiled_from_other_sources_is_not_used(kept: Path, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    shutil.copytree(Path(goodgain.__file__).parent, sources / "goodgain", ignore=shutil.ignore_patterns("__pycache__"))
    own = {"PYTHONPATH": str(sources), "NUMBA_CACHE_DIR": str(kept)}
    assert counted(**own) == [2, *[0] * len(Kernels._fields)]
    assert counted(**own) == [2, *[1] * len(Kernels._fields)]
    path = (
        sources / "goodgain" / "batches" / "kernels" / "bytes_of_fields.py"
    )  # the kernels are in other files, which stay as they are
    path.write_text(path.read_text("utf-8").replace("NEWLINE, PLUS, MINUS", "PLUS, NEWLINE, MINUS"), "utf-8")
    assert counted(**own)[0] == 0


@pytest.mark.slow
def test_where_nothing_can_be_kept_it_is_compiled_each_time(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    sources = tmp_path / "sources"
    shutil.copytree(Path(goodgain.__file__).parent, sources / "goodgain", ignore=shutil.ignore_patterns("__pycache__"))
    (sources / "goodgain" / "batches" / "kernels" / "__pycache__").write_text("not a folder")
    nowhere = {
        "PYTHONPATH": str(sources),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(file),
        "XDG_CACHE_HOME": str(file),
    }
    assert counted(**nowhere) == [2, *[0] * len(Kernels._fields)]
    done = run(EVALUATE, str(tmp_path / "agent.run"), **nowhere)
    assert (done.stdout, done.stderr) == ("5.0\n", "")


@pytest.mark.slow
def test_processes_that_start_together_all_count(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        started = [pool.submit(counted, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(3)]
        assert [found.result()[0] for found in started] == [2, 2, 2]
    assert counted(NUMBA_CACHE_DIR=str(tmp_path)) == [2, *[1] * len(Kernels._fields)]


@pytest.mark.parametrize("array", [np.zeros(4, np.int64), np.zeros((4, 2), np.uint8)[:, 0]])
def test_an_array_of_another_type_or_with_gaps_is_refused(array: np.ndarray) -> None:  # type: ignore[type-arg]  # of any
    assert kernels().count_lines(TEXT) == 3
    with pytest.raises(TypeError, match="No matching definition"):
        kernels().count_lines(array)


def test_where_numba_may_not_compile_large_files_are_read_without_it(tmp_path: Path) -> None:
    done = run(EVALUATE, str(tmp_path / "agent.run"), NUMBA_DISABLE_JIT="1")
    assert done.stdout == "5.0\n"
    assert "numba cannot be used (the variable NUMBA_DISABLE_JIT is set): large files" in done.stderr
