"""The examples of the pages in docs run in order, and print what the pages show.

python -m tests.test_pages docs/format.md ...      # writes what they print now into the pages: read the diff
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.page_examples import copy_checkout, printed_now
from tests.support.tables import ROOT

#: Pages whose examples another test runs.
ELSEWHERE = {
    "command_line": "tests/test_readme.py",
    "conversations": "tests/scoring/test_conversations_page.py",
    "labelling": "tests/judgments/labelling/test_page.py",
    "model_labels": "tests/judgments/labelling/test_page.py",
    "published_tables": "tests/scoring/test_published_tables_page.py",
}
#: Pages whose examples need packages that only `make test-hosts` installs.
NEEDS = {"hosts_agents": ("inspect_ai", "mlflow")}
#: The last section of a page, and the package that it needs and a new Python lacks: without it the page ends before.
LAST_SECTION = {"hosts": ("\n## PyTerrier\n", "pyterrier")}
PAGES = sorted(path for path in ROOT.glob("docs/*.md") if path.stem not in ELSEWHERE)
PAGES.append(ROOT / "docs" / "traces" / "README.md")
#: ranx compiles for half a minute in each process: tests with ranx in their name share one (tests/conftest.py).
WITH_RANX = [path for path in PAGES if "import ranx" in path.read_text(encoding="utf-8")]


def check_examples(path: Path, folder: Path) -> None:
    for package in NEEDS.get(path.stem, ()):
        pytest.importorskip(
            package, reason=f"{package} is not installed here (make test-hosts has inspect_ai and mlflow)"
        )
    page = path.read_text(encoding="utf-8")
    heading, package = LAST_SECTION.get(path.stem, ("", ""))
    if package and importlib.util.find_spec(package) is None:
        page, section, _ = page.partition(heading)
        assert section
    assert printed_now(page, copy_checkout(folder)) == page


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in PAGES if path not in WITH_RANX], ids=lambda path: path.stem)
def test_the_examples_print_what_the_page_shows(path: Path, tmp_path: Path) -> None:
    check_examples(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_RANX, ids=lambda path: path.stem)
def test_the_examples_with_ranx_print_what_the_page_shows(path: Path, tmp_path: Path) -> None:
    check_examples(path, tmp_path)


#: The questions that people bring, each a page.
QUESTIONS = {
    "two_logs": "Is my agent better?",
    "without_iterations": "My run has no iterations",
    "labels": "My labels are 0 and 1",
    "labelling": "Nothing is judged",
    "gate": "In the pull request",
    "paper": "For the paper",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_page_of_a_question_ends_with_a_table_or_picture_and_what_to_decide(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {QUESTIONS[name]}\n")
    *shown, decision = page.rpartition("\n## ")[2].strip().split("\n\n")
    assert decision.startswith("**Decide**: ")
    assert any(part.startswith(("|", "![")) for part in shown)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_is_an_example_that_runs(path: Path) -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for kind, text in blocks:
        lines = text.splitlines()
        assert kind in {"pycon", "python", "console", "sh", "text", "mermaid", "yaml", "bibtex"}, text
        assert kind != "sh" or all(line.startswith(("goodgain ", "pip install ", "make ")) for line in lines), text


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as name:
            now = printed_now(path.read_text(encoding="utf-8"), copy_checkout(Path(name)))
        path.write_text(now, encoding="utf-8")
