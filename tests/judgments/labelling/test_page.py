"""The examples of the pages on labels print what stands there, and the recorded answers are those of today's calls.

python -m tests.judgments.labelling.test_page      # writes what they print now into the pages: read the diff
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

#: The pages, with the number of commands that are compared and how often the address of the endpoint stands there.
PAGES = {"labelling": (3, 0), "model_labels": (0, 1)}
#: Where the endpoint of the pages is.
ADDRESS = "http://localhost:8000/v1"


def run_examples(page: str, folder: Path) -> str:
    """Return the page as it is now; its endpoint is a server on the loopback."""
    with serve(lambda call: good()) as server:
        surroundings = {"OPENAI_API_KEY": "key-of-the-page", "OPENAI_BASE_URL": server.url}
        with mock.patch.dict(os.environ, surroundings):
            return printed_now(page.replace(ADDRESS, server.url), copy_checkout(folder)).replace(server.url, ADDRESS)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_examples_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    page = read_page(name)
    assert (page.count("$ goodgain "), page.count(ADDRESS)) == PAGES[name]
    assert run_examples(page, tmp_path) == page


def read_page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            now = run_examples(read_page(name), Path(folder))
        (ROOT / "docs" / f"{name}.md").write_text(now, encoding="utf-8")
