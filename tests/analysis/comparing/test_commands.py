"""What commands print and write, and how they exit: each case of commands.json is a rule, files, and commands in order."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from string import Template
from typing import Any

import pytest

from tests.support.command import run_command
from tests.support.tables import ROOT

EXAMPLES = ROOT / "qrels_examples"
CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("commands.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_commands_print_write_and_exit_as_the_case_says(case: dict[str, Any], tmp_path: Path) -> None:
    for name, text in case.get("files", {}).items():
        content = text if isinstance(text, str) else (EXAMPLES / text["copy"]).read_text(encoding="utf-8")
        (tmp_path / name).write_text(content, encoding="utf-8")
    places = {"here": str(tmp_path), "examples": str(EXAMPLES)}
    for step in case["steps"]:
        done = run_command(*shlex.split(Template(step["run"]).substitute(places)))
        assert done.returncode == step["status"], done.stderr
        assert done.stdout == step.get("stdout_is", done.stdout)
        texts = {"stdout": done.stdout, "stderr": done.stderr}
        for name, printed in texts.items():
            check_text(
                printed, step.get(name, []), step.get(f"{name}_lacks", []), step.get(f"{name}_matches", []), places
            )
        for name in {**step.get("written", {}), **step.get("written_lacks", {})}:
            written = (tmp_path / name).read_text(encoding="utf-8")
            check_text(
                written, step.get("written", {}).get(name, []), step.get("written_lacks", {}).get(name, []), [], places
            )
        assert not [name for name in step.get("not_written", []) if (tmp_path / name).exists()]


def check_text(text: str, has: list[str], lacks: list[str], matches: list[str], places: dict[str, str]) -> None:
    for part in has:
        assert Template(part).safe_substitute(places) in text
    for part in lacks:
        assert part not in text
    for pattern in matches:
        assert re.search(pattern, text), (pattern, text)
