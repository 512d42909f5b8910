"""The examples of docs/pooling.md run, and print what the page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation.test_engines_docs import run_examples
from tests.support.tables import ROOT

PAGE = (ROOT / "docs" / "pooling.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_write_their_sheets(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "qrels_examples", tmp_path / "qrels_examples")
    commands = re.findall(r"^goodgain (.*)$", PAGE, flags=re.MULTILINE)
    assert len(commands) == 2
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    for command in commands:
        line = f"{sys.executable} -m goodgain {command}"
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / command.split(" -o ")[1]).read_text()


def test_the_examples_print_what_the_page_shows() -> None:
    run_examples(re.findall(r"```pycon\n(.*?)```", PAGE, flags=re.DOTALL))
