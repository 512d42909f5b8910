"""What the README shows is executed, and says the truth."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from goodgain.measures import MEASURES
from tests.support.command import run_command
from tests.support.tables import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line.startswith("goodgain ")]
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
#: A new process of ranx compiles its metrics, which takes 15 seconds.
MARKED = [pytest.param(code, marks=pytest.mark.slow) if "ranx" in code else code for code in PYTHON]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("qrels_examples", "docs", "tests/traces/fixtures"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def output(command: str, folder: Path) -> str:
    done = run_command(*shlex.split(command, comments=True)[1:], cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("block", [text for kind, text in BLOCKS if kind == "sh" and "goodgain " in text])
def test_the_commands_of_the_readme_run_one_after_the_other(block: str, checkout: Path) -> None:
    for command in (line for line in block.splitlines() if line.startswith("goodgain ")):
        shown = output(command, checkout)
        assert shown or "-o " in command


def test_the_table_of_deduplication_is_what_the_code_above_it_prints(checkout: Path) -> None:
    code = next(code for code in PYTHON if "deduplicate" in code)
    printed = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True).stdout
    shown = re.findall(r"^\| with(?:out)? deduplication \| (.*?) \| (.*?) \| (.*?) \|", README, flags=re.MULTILINE)
    found = [tuple(map(float, values)) for values in re.findall(r"SRE=(\S+), SRR=(\S+), CG=([0-9.]+)", printed)]
    assert [tuple(map(float, row)) for row in shown] == [pytest.approx(values, abs=0.005) for values in found]
    assert len(shown) == 2


def test_the_picture_is_what_is_printed(checkout: Path) -> None:
    picture = next(text for kind, text in BLOCKS if not kind and "┏" in text)
    assert output(COMMANDS[0], checkout).split() == picture.split()


@pytest.mark.parametrize("code", MARKED)
def test_python_of_the_readme_runs(code: str, checkout: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "GoodgainNotice" not in done.stderr
    assert "SRR" in done.stdout


def test_the_table_of_measures_has_each_with_its_direction() -> None:
    rows = dict(re.findall(r"^\| (`[^|]*`) \|([^|]*)\|", README, flags=re.MULTILINE))
    listed = {re.sub("@i", "", name): better for names, better in rows.items() for name in re.findall("`(.*?)`", names)}
    assert set(listed) == set(MEASURES)
    for name, better in listed.items():
        assert better.strip("* ") in (MEASURES[name].declaration.better, "")


def test_make_demo_scores_examples_that_exist(checkout: Path) -> None:
    make = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"-m goodgain (.*?)(?<!\\)\n", make, flags=re.DOTALL)
    assert len(commands) == 3
    for command in commands:
        assert output("goodgain " + command.replace("\\\n", " "), checkout)
