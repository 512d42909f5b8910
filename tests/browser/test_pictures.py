"""The pictures of the pages are shown by a browser as they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Opened
from tests.support.tables import ROOT

PICTURES = sorted((ROOT / "docs" / "images").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_drawn_from_its_file_alone(open_file: Callable[[Path], Opened], picture: Path) -> None:
    opened = open_file(picture)
    box = opened.page.evaluate(
        "(() => { const box = document.documentElement.getBBox(); return [box.width, box.height] })()"
    )
    assert min(box) > 0
    assert (opened.console, opened.requests) == ([], [])
