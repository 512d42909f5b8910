"""The examples of docs/comparing.md, curves.md and explain.md print what stands there.

python tests/comparing/test_docs.py      # writes what they print now into the pages: read the diff
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from code import InteractiveConsole
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("comparing.md", "curves.md", "explain.md")]
_BLOCK = re.compile(r"```(console|pycon)\n(.*?)```\n", re.DOTALL)


def printed_now(page: str) -> str:
    """The page with the output of every example as it is now."""
    python = InteractiveConsole()
    return _BLOCK.sub(lambda block: f"```{block[1]}\n{_run(block[1], block[2], python)}```\n", page)


def _run(kind: str, block: str, python: InteractiveConsole) -> str:
    if kind == "pycon":
        return _session(block, python)
    return "".join(map(_command, re.findall(r"^\$ goodgain .*\n", block, re.M)))


def _command(line: str) -> str:
    arguments = shlex.split(line.removeprefix("$ goodgain "))
    into_file = arguments[-2] == ">"
    if into_file:
        del arguments[-2:]
    argv = [sys.executable, "-c", "from goodgain.cli import main; main()", *arguments]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    status = f"$ echo $?\n{done.returncode}\n" if done.returncode else ""
    return line + ("" if into_file else done.stdout) + _without_versions(done.stderr) + status


def _without_versions(text: str) -> str:
    return re.sub(r"goodgain=\S+ ir_measures=\S+", "goodgain=... ir_measures=...", text)


def _session(block: str, python: InteractiveConsole) -> str:
    out = io.StringIO()
    source = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
    with contextlib.redirect_stdout(out), contextlib.chdir(ROOT), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, line in enumerate(source):
            continues = line.startswith(" ")
            print(("... " if continues else ">>> ") + line, file=out)
            if python.push(line) and not (k + 1 < len(source) and source[k + 1].startswith(" ")):
                python.push("")
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_examples_print_what_the_page_shows(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert len(_BLOCK.findall(page)) >= 4
    assert printed_now(page) == page


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    for path in PAGES:
        path.write_text(printed_now(path.read_text(encoding="utf-8")), encoding="utf-8")
