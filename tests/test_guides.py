"""The examples of the guides run, and print what their pages show.

python -m tests.test_guides      # writes what they print now into the pages: read the diff
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.support.page_examples import BLOCK, copy_checkout, printed_now
from tests.support.tables import ROOT

#: Each page, and how many examples it has at least.
GUIDES = {
    "comparing": 4,
    "curves": 4,
    "dedup": 3,
    "judging": 6,
    "pictures": 7,
    "pooling": 2,
    "same_pages": 3,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GUIDES)
def test_the_examples_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert len(BLOCK.findall(page)) >= GUIDES[name]
    assert printed_now(page, copy_checkout(tmp_path)) == page


if __name__ == "__main__":
    for guide in GUIDES:
        path = ROOT / "docs" / f"{guide}.md"
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(
                printed_now(path.read_text(encoding="utf-8"), copy_checkout(Path(folder))), encoding="utf-8"
            )
