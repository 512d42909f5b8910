"""The goodgain command, called in the process of the tests.

A process takes a second to start, and most tests of the command are about what it prints. `make test-all` starts a process for
the first call of each subcommand. What only a process shows (pipes, terminals, signals, environment variables) is
tested with one always.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

from goodgain.cli import main
from tests.support.counts import EVERYTHING

__all__ = ["COMMAND", "SHELL", "run_command", "run_command_here"]

COMMAND = [sys.executable, "-m", "goodgain"]
#: Characters of a command that only a shell understands.
SHELL = frozenset("|<>;&*$~`")
#: The subcommands that were called so far.
_called: set[str] = set()


def run_command(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does: its exit status, and what it prints on stdout and stderr."""
    argv = [*COMMAND, *map(str, arguments)]
    if _needs_process(argv):
        return subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=cwd)
    return _call_here(argv, cwd)


def run_command_here(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in the process of the test, whose registries it then sees."""
    return _call_here([*COMMAND, *map(str, arguments)], cwd)


def _call_here(argv: list[str], cwd: Path | None) -> subprocess.CompletedProcess[str]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["goodgain", *argv[len(COMMAND) :]]),
        warnings.catch_warnings(),
    ):
        status = _call_main()
    printed = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]  # a BytesIO
    return subprocess.CompletedProcess(argv, status, *printed)


def _needs_process(argv: list[str]) -> bool:
    new = {*argv[len(COMMAND) :][:1]} - _called
    _called.update(new)
    return (EVERYTHING and bool(new)) or any(argument.startswith("/dev/") for argument in argv)


def _call_main() -> int:
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
