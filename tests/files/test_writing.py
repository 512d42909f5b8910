"""The permissions of files that are written, and of what other threads write meanwhile."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from goodgain.files.writing import atomic_write


@pytest.fixture(params=[0o077, 0o027, 0o022, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _write(path: Path) -> None:
    with atomic_write(path) as file:
        file.write(b"x")


@pytest.mark.parametrize("name", ["new.run", "new.run.gz", "new.run.zst"])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(umask: int, name: str, tmp_path: Path) -> None:
    _write(tmp_path / name)
    assert _mode(tmp_path / name) == 0o666 & ~umask
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("old", [0o600, 0o640, 0o666, 0o755, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions_and_is_never_open_to_more(
    umask: int, old: int, tmp_path: Path
) -> None:
    path = tmp_path / "old.run"
    path.write_bytes(b"old")
    path.chmod(old)
    with atomic_write(path) as file:
        file.write(b"new")
        meanwhile = [_mode(other) for other in tmp_path.iterdir() if other != path]
    assert (path.read_bytes(), _mode(path)) == (b"new", old)
    assert len(meanwhile) == 1 and not meanwhile[0] & ~(old | stat.S_IRUSR | stat.S_IWUSR)


@pytest.mark.parametrize("name", ["new.run", "old.run", "new.run.gz"])
def test_other_threads_never_write_without_the_umask_meanwhile(name: str, tmp_path: Path) -> None:
    """A thread can begin between any two instructions, so a file is created before each one."""
    (tmp_path / "old.run").write_bytes(b"old")
    modes: list[int] = []

    def create(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        frame.f_trace_opcodes = True
        if event == "opcode":
            descriptor = os.open(tmp_path / "other", os.O_CREAT | os.O_EXCL, 0o666)
            modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
            os.close(descriptor)
            (tmp_path / "other").unlink()
        return create

    before, tracing = os.umask(0o077), sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 sends events of instructions if a frame asks before `settrace`
    sys.settrace(create)
    try:
        _write(tmp_path / name)
    finally:
        sys.settrace(tracing)
        os.umask(before)
    assert len(modes) > 100
    assert {*modes} == {0o600}


@pytest.mark.slow
def test_the_next_writer_removes_what_killed_ones_left_and_nothing_else(tmp_path: Path) -> None:
    """Each line of the code is a process: one is killed while it writes, one writes on meanwhile."""
    code = """
import sys, time
from pathlib import Path
from goodgain.files.writing import atomic_write
with atomic_write(Path("out.run")) as file:
    print("writing", flush=True)
    sys.stdin.read()
"""
    killed, living = (
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    )
    for process in (killed, living):
        assert process.stdout is not None and process.stdout.readline() == "writing\n"
    killed.kill()
    killed.communicate()
    others = {".other.run.0123abcd.part", ".out.run.part", ".out.run.0123abcd.part.bak", "out.run.0123abcd.part"}
    for name in others:
        (tmp_path / name).touch()
    assert len([*tmp_path.glob(".out.run.????????.part")]) == 2

    _write(tmp_path / "out.run")
    assert len([*tmp_path.glob(".out.run.????????.part")]) == 1
    living.communicate("")
    assert living.returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == others | {"out.run"}
    assert (tmp_path / "out.run").read_bytes() == b""
