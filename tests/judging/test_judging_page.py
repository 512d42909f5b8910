"""The examples of docs/judging.md print what stands there.

python -m tests.judging.test_judging_page      # writes what they print now into the page: read the diff
"""

from __future__ import annotations

import pytest

from tests.comparing.test_docs import ROOT, printed_now

PAGE = ROOT / "docs" / "judging.md"


@pytest.mark.slow
def test_the_examples_print_what_the_page_shows() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```console") + page.count("```pycon") == 8
    assert printed_now(page) == page


if __name__ == "__main__":
    PAGE.write_text(printed_now(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
