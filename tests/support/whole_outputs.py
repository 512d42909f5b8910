"""Whole outputs: what commands on the shipped examples print and write.

`whole_outputs.json` of a folder has for each command the status if it is not 0, and the lines of stdout, of stderr and of each
written file. Numbers have nine digits. Dates, versions and times are left out, and the pictures, style and script of a page.

    python -m tests.support.whole_outputs

writes today's outputs into all these files. Read the diff: each changed number has its reason in the commit.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from pathlib import Path

from tests.support.command import run_command
from tests.support.tables import ROOT

EXAMPLES = ROOT / "qrels_examples"
NAME = "whole_outputs.json"
_NUMBER = re.compile(r"-?\d+\.\d{9,}(?:e[-+]?\d+)?|-?\d+\.\d+e[-+]?\d+")
_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?|goodgain[ |:=]\d+\.\d+\.\d+\w*|in \d+(?:\.\d+)? s\b"
)
_DRAWN = re.compile(
    r"<(svg|style|script(?! type=.application/json))\b.*?</\1[^>]*>|base64,[\w+/=]+|sha256-[\w+/=]+", re.DOTALL
)


def read_commands(folder: Path) -> dict[str, dict[str, list[str]]]:
    data: dict[str, dict[str, list[str]]] = json.loads((folder / NAME).read_text("utf-8"))
    return data


def run_whole(command: str, folder: Path) -> dict[str, list[str]]:
    """Run a command in a copy of the examples that it names."""
    for name in {name for part in shlex.split(command) for name in re.split("[=/]", part)}:
        if name and (EXAMPLES / name).is_dir():
            shutil.copytree(EXAMPLES / name, folder / name)
    before = {path for path in folder.rglob("*") if path.is_file()}
    done = run_command(*shlex.split(command), cwd=folder)
    outputs = {} if done.returncode == 0 else {"status": [str(done.returncode)]}
    outputs |= {"stdout": _make_lines(done.stdout, folder), "stderr": _make_lines(done.stderr, folder)}
    for path in sorted({path for path in folder.rglob("*") if path.is_file()} - before):
        if path.suffix not in (".journal", ".parquet"):
            outputs[str(path.relative_to(folder))] = _make_lines(path.read_text("utf-8"), folder)
    return outputs


def _make_lines(text: str, folder: Path) -> list[str]:
    text = _CHANGING.sub("...", _DRAWN.sub("", text).replace(str(folder), "HERE"))
    return _NUMBER.sub(lambda number: f"{float(number[0]):.9g}", text).splitlines()


def _rewrite(folder: Path) -> None:
    outputs = {}
    for command in read_commands(folder):
        with tempfile.TemporaryDirectory() as place:
            outputs[command] = run_whole(command, Path(place).resolve())
    (folder / NAME).write_text(json.dumps(outputs, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    for path in sorted((ROOT / "tests").rglob(NAME)):
        _rewrite(path.parent)
