"""docs/ranx.md: its examples run and print what they say, and its names are the names there are."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from goodgain.measures.names import HOST_NAMES

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "docs" / "ranx.md").read_text(encoding="utf-8")


def test_the_examples_print_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(blocks, {}, "ranx.md", "docs/ranx.md", 0)
    assert len(examples.examples) > 8
    said: list[str] = []
    doctest.DocTestRunner().run(examples, out=said.append)
    assert not said, "".join(said)


def test_the_names_are_those_of_the_declarations() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| ([↑↓]) \|$", TEXT, flags=re.MULTILINE)
    declared = [(name, str(measure), measure.declaration.arrow) for name, measure in HOST_NAMES.items()]
    assert sorted(rows) == sorted(declared)
