"""The examples of the documentation run and give what they say."""

import doctest
from pathlib import Path

import pytest

import goodgain.dedup.deduplication
import goodgain.dedup.document_types
import goodgain.dedup.urls

_DOCS = Path(__file__).parents[2] / "docs" / "dedup.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_DOCS.parents[1])
    outcome = doctest.testfile(str(_DOCS), module_relative=False)
    assert outcome.attempted > 20
    assert outcome.failed == 0


@pytest.mark.parametrize("module", [goodgain.dedup.deduplication, goodgain.dedup.document_types, goodgain.dedup.urls])
def test_the_examples_of_docstrings_run(module: object) -> None:
    outcome = doctest.testmod(module)  # type: ignore[arg-type] # they are modules
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_every_rule_has_its_section() -> None:
    from goodgain.dedup.verification import RULE_NAMES

    page = _DOCS.read_text(encoding="utf-8")
    headings = [line for line in page.splitlines() if line.startswith("### ")]
    assert all(any(name in heading for heading in headings) for name in RULE_NAMES)
