"""Every format has a page, and what the pages show runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goodgain.traces import formats

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "traces").glob("*.md"))
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_every_format_has_a_page_and_a_line_in_the_table() -> None:
    built_in = {form.name: form.title for form in formats().values() if not form.is_plugin}
    assert {page.stem for page in PAGES} == built_in.keys() | {"README"}
    table = (ROOT / "docs" / "traces" / "README.md").read_text()
    for name, title in built_in.items():
        assert f"| [`{name}`]({name}.md) | {title} |" in table


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    examples = _PYTHON.findall(page.read_text())
    assert examples
    for example in examples:
        exec(compile(example, str(page), "exec"), {})  # the pages are ours
    assert "query_id" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_says_where_iterations_come_from_and_what_is_lost(page: Path) -> None:
    if page.stem != "README":
        text = page.read_text()
        assert all(f"## {title}" in text for title in ("Where its iterations come from", "What it loses", "Query ids"))
