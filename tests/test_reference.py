"""The pages of docs/reference say what the code says."""

from __future__ import annotations

import sys

import pytest

from tests.support.tables import ROOT

sys.path.insert(0, str(ROOT / "docs"))

import make_reference


@pytest.mark.parametrize(("file", "text"), [*make_reference.write_pages()], ids=lambda part: part[:12])
def test_a_page_of_the_reference_is_up_to_date(file: str, text: str) -> None:
    written = (make_reference.FOLDER / file).read_text(encoding="utf-8")
    assert written == text, f"docs/reference/{file} is out of date: run `make reference`"
