"""What the pages on traces show runs; the guides are in test_pages.py."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command import run_command

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs" / "traces").glob("*.md"))
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
#: The last file that the line before names, the kind and the text of a block.
_BLOCK = re.compile(r"(?:`(\w+\.jsonl?)`[^\n]*\n\n)?```(python|sh|text|json)\n(.*?)```", re.DOTALL)


#: Rules of reading and other programs, without examples in Python.
_WITHOUT_PYTHON = ("rules", "importers", "your_own_agent")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem not in _WITHOUT_PYTHON], ids=lambda page: page.stem
)
def test_the_examples_of_a_page_run(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    examples = _PYTHON.findall(page.read_text())
    assert examples
    for example in examples:
        exec(compile(example, str(page), "exec"), {})  # the pages are ours
    assert "query_id" in capsys.readouterr().out


def test_the_page_on_an_agent_of_one_s_own_goes_from_its_loop_to_scores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its blocks run in order in an empty folder; what a command is said to print, it prints."""
    monkeypatch.chdir(tmp_path)
    assert _follow_page(with_jq=False) == {"python", "sh", "jq", "text", "json"}
    said = capsys.readouterr().out
    assert "query_id" in said and "['d2', 'd3']" in said


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_jq_writes_on_this_page_what_python_writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert "jq" in _follow_page(with_jq=True)


def _follow_page(*, with_jq: bool) -> set[str]:
    """Run the blocks of the page in this folder, and return their kinds; `json` is a file to save, named before it."""
    names: dict[str, object] = {}
    printed = ""
    kinds = set()
    page = (ROOT / "docs/traces/your_own_agent.md").read_text()

    for file, kind, block in _BLOCK.findall(page):
        kind = "jq" if block.startswith("jq ") else kind
        kinds.add(kind)
        if kind == "python":
            exec(compile(block, "your_own_agent.md", "exec"), names)
        elif kind == "json":
            Path(file).write_text(block)
        elif kind == "jq" and with_jq:
            log = Path(block.split()[-1])
            by_python = log.read_text().splitlines()
            subprocess.run(["sh", "-c", block], check=True)
            assert list(map(json.loads, log.read_text().splitlines())) == list(map(json.loads, by_python))
        elif kind == "sh":
            done = run_command(*shlex.split(block)[1:], cwd=Path.cwd())
            assert done.returncode == 0, done.stderr
            printed = done.stdout + done.stderr
        elif kind == "text":
            assert all(line in printed.splitlines() for line in block.strip().splitlines()), printed

    return kinds
