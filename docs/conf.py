"""The site: README.md is its start page, and its table of pages is the site's table of contents. `make docs` builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils.nodes import literal_block

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from goodgain.version import __version__  # noqa: E402  the path comes first

project = "goodgain"
author = "The goodgain maintainers"
release = version = __version__
copyright = author  # noqa: A001  Sphinx reads this name

extensions = ["myst_nb", "sphinx_copybutton"]
# The sources are those that GitHub shows; Sphinx runs in the root of the checkout.
root_doc = "README"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**.md",
    "notebooks/*.ipynb",
    "qrels_examples/**.md",
]
html_theme = "furo"
html_title = f"goodgain {__version__}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the tests execute the notebooks

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

#: Page -> what readers search for that the search of Sphinx would not find: a question, a number.
_SEARCHED = {"docs/two_logs": "which agent is better", "docs/model_labels": "429"}
_TABLE = re.compile(r"[│┃|].*[│┃|]|\S {3,}\S")
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]*\]\([^|]+\)[^|]*) \|$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]+?)(?:\.md|\.ipynb)\)")


def add_contents(app: Any, page: str, source: list[str]) -> None:
    """Add what Sphinx needs and GitHub does not show: tables of contents, and words for the search."""
    if page in _SEARCHED:
        title, _, text = source[0].partition("\n")
        source[0] = f"{title}\n\n```{{index}} ! {_SEARCHED[page]}\n```\n{text}"
    elif page == "CHANGELOG":  # it has every word, of every version
        source[0] = f"---\nnosearch: true\n---\n{source[0]}"
    elif page == root_doc:
        table = source[0].partition("## Where to go next")[2]
        for caption, links in _ROW.findall(table):
            pages = "\n".join(_LINK.findall(links))
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption[0].upper()}{caption[1:]}\n\n{pages}\n```\n"
    elif page in ("docs/traces/README", "qrels_examples/README"):
        others = "*" if page.startswith("docs") else "*/README"
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n{others}\n```\n"


def mark_tables(_app: Any, page: Any) -> None:
    """Give samples with a printed table a class: a table must not wrap (site.css)."""
    for sample in page.findall(literal_block):
        if sum(bool(_TABLE.search(line)) for line in sample.astext().splitlines()) > 1:
            sample["classes"].append("printed-table")


def setup(app: Any) -> None:
    """Tell Sphinx what to do with each page that it reads."""
    app.connect("source-read", add_contents)
    app.connect("doctree-read", mark_tables)
