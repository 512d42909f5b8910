"""Runs the examples of a page, and returns the page with what they print now.

The kind of a block says how it runs: `console` and `pycon` are compared with what the page shows, `sh` and `python` must succeed.
All commands of a page run in one folder, one after the other, and all its Python in one session.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

from tests.support.command import SHELL, run_command
from tests.support.tables import ROOT

BLOCK = re.compile(r"```(console|pycon|sh|python)\n(.*?)```\n", re.DOTALL)
_STATEMENT = re.compile(r"^>>> .*\n(?:\.\.\. .*\n)*", re.MULTILINE)
_GOODGAIN = f'goodgain() {{ {sys.executable} -m goodgain "$@"; }}; '


def copy_checkout(folder: Path) -> Path:
    """Copy what the examples read into a folder where they can write."""
    for name in ("qrels_examples", "docs", "tests/logs/traces/fixtures"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def printed_now(page: str, checkout: Path) -> str:
    """Return a page with the output of every example as it is now."""
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        kind, text = block.groups()
        if kind == "console":
            text = "".join(_run_command(line, checkout) for line in re.findall(r"^\$ (?!echo).*\n", text, re.M))
        elif kind == "sh":
            for line in re.findall(r"^goodgain .*\n", text, re.M):
                if line.startswith("goodgain example "):  # the copy has them already, as a checkout does
                    shutil.rmtree(checkout / "qrels_examples")
                _run_command(line, checkout, must_succeed=True)
        elif "pyspark" not in text:  # tests/scoring/test_spark.py runs that example
            with contextlib.chdir(checkout):
                text = run_python(text, kind, names)
        return f"```{kind}\n{text}```\n"

    return BLOCK.sub(run, page)


def _run_command(line: str, checkout: Path, *, must_succeed: bool = False) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    command = line.removeprefix("$ ")
    if command.startswith("goodgain ") and SHELL.isdisjoint(command):
        with mock.patch.dict(os.environ, environment):
            done = run_command(*shlex.split(command, comments=True)[1:], cwd=checkout)
    else:
        done = subprocess.run(
            _GOODGAIN + command, shell=True, capture_output=True, text=True, cwd=checkout, env=environment
        )

    assert done.returncode == 0 or not must_succeed, f"{line}{done.stderr}"
    notices = re.sub(r"goodgain=\S+ ir_measures=\S+", "goodgain=... ir_measures=...", done.stderr)
    printed = re.sub(r" +$", "", done.stdout + notices, flags=re.MULTILINE)  # rich fills each line of a table
    return line + printed + (f"$ echo $?\n{done.returncode}\n" if done.returncode else "")


def run_python(text: str, kind: str, names: dict[str, Any]) -> str:
    """Run a block of Python without notices; one of `pycon` comes back with what it prints."""
    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("ignore")
        if kind == "python":
            exec(text, names)  # the pages are ours
            return text
        for statement in _STATEMENT.findall(text):
            out.write(statement)
            source = "".join(line[4:] for line in statement.splitlines(keepends=True))
            try:
                exec(compile(source, "<page>", "single"), names)
            except Exception as error:
                out.write(
                    "Traceback (most recent call last):\n  ...\n" + "".join(traceback.format_exception_only(error))
                )

    return re.sub(r" +$", "", out.getvalue(), flags=re.MULTILINE)
