"""The examples at the end of every command's help run in a checkout, and print or write something."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from goodgain.cli.program import program
from tests.support.command import SHELL, run_command
from tests.support.counts import some_of
from tests.support.tables import ROOT

COMMANDS = {"goodgain": program} | {f"goodgain {name}": command for name, command in program.commands.items()}


def read_examples(name: str, command: click.Command) -> list[str]:
    """Return the lines after "Examples:" in the text that --help prints."""
    text = command.get_help(click.Context(command, info_name=name))
    _, _, after = text.partition("Examples:\n")
    return re.findall(r"^ *(goodgain .*)$", after, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the folders that examples read, with a command `goodgain` that runs this package."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("qrels_examples", "docs", "tests/logs/traces/fixtures"):
        shutil.copytree(ROOT / name, folder / name)
    script = folder / "bin" / "goodgain"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m goodgain "$@"\n')
    script.chmod(0o755)
    return folder


def run_example(example: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    if not SHELL.isdisjoint(example):  # as typed, in a shell
        environment = os.environ | {"PATH": f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run(example, shell=True, cwd=checkout, env=environment, capture_output=True, text=True)
    return run_command(*shlex.split(example)[1:], cwd=checkout)


@pytest.mark.parametrize("name", some_of(COMMANDS, every=4))
def test_help_ends_with_two_examples_that_run(name: str, checkout: Path) -> None:
    examples = read_examples(name, COMMANDS[name])
    assert len(examples) == 2
    for example in examples:
        before = set(checkout.iterdir())
        done = run_example(example, checkout)
        assert done.returncode == 0, f"{example}\n{done.stderr}"
        assert done.stdout or set(checkout.iterdir()) > before, example
