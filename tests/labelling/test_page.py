"""The example of docs/labelling.md prints what stands there, and its recorded answers are those of today's calls.

python -m tests.labelling.test_page      # writes what it prints now into the page: read the diff
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.tables import ROOT

PAGE = ROOT / "docs" / "labelling.md"
BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)


def printed_now(page: str, folder: Path) -> str:
    """Return the page with what its commands print now, in a folder that has the docs."""
    shutil.copytree(ROOT / "docs" / "labelling", folder / "docs" / "labelling")
    return BLOCK.sub(
        lambda block: f"```console\n{''.join(run(line, folder) for line in commands(block[1]))}```\n", page
    )


def commands(block: str) -> list[str]:
    return re.findall(r"^\$ goodgain .*\n", block, flags=re.MULTILINE)


def run(line: str, folder: Path) -> str:
    command = [sys.executable, "-m", "goodgain", *shlex.split(line.removeprefix("$ goodgain "))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    said = re.sub(r"goodgain=\S+ ir_measures=\S+", "goodgain=... ir_measures=...", done.stderr)
    return line + done.stdout + said


@pytest.mark.slow
def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(commands(page)) == 3
    assert printed_now(page, tmp_path) == page


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        PAGE.write_text(printed_now(PAGE.read_text(encoding="utf-8"), Path(name)), encoding="utf-8")
