"""docs/benchmarks.md: its commands give numbers above 0. tests/test_pages.py compares what they print with the page."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.command import run_command
from tests.support.tables import ROOT

PAGE = ROOT / "docs/benchmarks.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, flags=re.MULTILINE | re.DOTALL))


def commands(kind: str, text: str = TEXT) -> list[list[str]]:
    blocks = "".join(re.findall(rf"```{kind}\n(.*?)```", text, flags=re.DOTALL))
    return [
        shlex.split(line) for line in re.findall(r"^(?:\$ )?goodgain (.*?)(?: 2> .*)?$", blocks, flags=re.MULTILINE)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the small files."""
    shutil.copytree(ROOT / "qrels_examples/benchmarks", tmp_path / "qrels_examples/benchmarks")
    return tmp_path


@pytest.mark.parametrize("section", list(SECTIONS))
def test_every_value_that_a_section_prints_for_its_files_is_above_0(section: str, folder: Path) -> None:
    evaluated = 0
    for command in commands("console", SECTIONS[section]):
        if command[0] == "evaluate":
            command = [*command, "-o", "tsv"]
            evaluated += 1
        done = run_command(*command, cwd=folder)
        assert done.returncode == 0, done.stderr
        if command[0] == "evaluate":
            rows = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
            values = {row[0]: float(row[-1]) for row in rows if re.fullmatch(r"[0-9.]+", row[-1])}
            assert values and all(value > 0 for name, value in values.items() if not name.startswith("SRR"))
    assert evaluated


def test_every_command_on_binary_labels_sets_the_threshold() -> None:
    scored = [" ".join(command) for command in commands("console") if command[0] == "evaluate"]
    assert len(scored) >= 6
    assert all("--rel 1" in command or "(rel=1)" in command for command in scored)
