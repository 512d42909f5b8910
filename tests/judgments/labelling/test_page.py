"""The examples of docs/labelling.md print what stands there, and its recorded answers are those of today's calls.

python -m tests.judgments.labelling.test_page      # writes what they print now into the page: read the diff
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from tests.judgments.labelling.endpoint import good, serve
from tests.support.page_examples import copy_checkout, printed_now
from tests.support.tables import ROOT

PAGE = ROOT / "docs" / "labelling.md"
#: Where the page's endpoint is.
ADDRESS = "http://localhost:8000/v1"


def run_examples(page: str, folder: Path) -> str:
    """Return the page as it is now; its endpoint is a server on the loopback."""
    with serve(lambda call: good()) as server:
        surroundings = {"OPENAI_API_KEY": "key-of-the-page", "OPENAI_BASE_URL": server.url}
        with mock.patch.dict(os.environ, surroundings):
            return printed_now(page.replace(ADDRESS, server.url), copy_checkout(folder)).replace(server.url, ADDRESS)


@pytest.mark.slow
def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("$ goodgain ") == 4
    assert page.count(ADDRESS) == 1
    assert run_examples(page, tmp_path) == page


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        PAGE.write_text(run_examples(PAGE.read_text(encoding="utf-8"), Path(name)), encoding="utf-8")
