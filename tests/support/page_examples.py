"""Runs the examples of a page, and returns the page with what they print now.

The kind of a block says how it runs: `console` and `pycon` are compared with what the page shows, `sh` and `python` must succeed.
All commands of a page run in one folder, one after the other, and all its Python in one session.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from tests.support.tables import ROOT

BLOCK = re.compile(r"```(console|pycon|sh|python)\n(.*?)```\n", re.DOTALL)
_STATEMENT = re.compile(r"^>>> .*\n(?:\.\.\. .*\n)*", re.MULTILINE)
_GOODGAIN = f'goodgain() {{ {sys.executable} -m goodgain "$@"; }}; '


def copy_checkout(folder: Path) -> Path:
    """Copy what the examples read into a folder where they can write."""
    for name in ("qrels_examples", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def printed_now(page: str, checkout: Path) -> str:
    """Return a page with the output of every example as it is now."""
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        kind, text = block.groups()
        if kind == "console":
            text = "".join(_run_command(line, checkout) for line in re.findall(r"^\$ goodgain .*\n", text, re.M))
        elif kind == "sh":
            for line in re.findall(r"^goodgain .*\n", text, re.M):
                _run_command(line, checkout, must_succeed=True)
        else:
            with contextlib.chdir(checkout), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = _run_python(text, kind, names)
        return f"```{kind}\n{text}```\n"

    return BLOCK.sub(run, page)


def _run_command(line: str, checkout: Path, *, must_succeed: bool = False) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    command = _GOODGAIN + line.removeprefix("$ ")
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=checkout, env=environment)
    assert done.returncode == 0 or not must_succeed, f"{line}{done.stderr}"
    said = re.sub(r"goodgain=\S+ ir_measures=\S+", "goodgain=... ir_measures=...", done.stderr)
    printed = re.sub(r" +$", "", done.stdout + said, flags=re.MULTILINE)  # rich fills each line of a table
    return line + printed + (f"$ echo $?\n{done.returncode}\n" if done.returncode else "")


def _run_python(text: str, kind: str, names: dict[str, Any]) -> str:
    if kind == "python":
        exec(text, names)  # the pages are ours
        return text
    out = io.StringIO()
    for statement in _STATEMENT.findall(text):
        out.write(statement)
        source = "".join(line[4:] for line in statement.splitlines(keepends=True))
        with contextlib.redirect_stdout(out):
            exec(compile(source, "<page>", "single"), names)
    return out.getvalue()
