"""The site: README.md is its start page, and its table of pages is the site's table of contents. `make docs` builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from goodgain.version import __version__  # noqa: E402  the path comes first

project = "goodgain"
author = "The goodgain maintainers"
release = version = __version__
copyright = author  # noqa: A001  Sphinx reads this name

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
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
html_static_path: list[str] = []
myst_heading_anchors = 3
nb_execution_mode = "off"  # the tests execute the notebooks
autodoc_typehints = "none"  # the signature in the docstring's words is enough
autodoc_member_order = "bysource"
add_module_names = False
default_role = "code"  # docstrings write names between single backquotes
napoleon_use_rtype = False

_ROW = re.compile(r"^\| ([^|]+) \| ([^|]*\]\([^|]+\)[^|]*) \|$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]+?)(?:\.md|\.ipynb)\)")


def add_contents(app: Any, page: str, source: list[str]) -> None:
    """Add the table of contents to a page that leads to others: Sphinx needs one, GitHub does not show it."""
    if page == root_doc:
        table = source[0].partition("## Where to go next")[2]
        for caption, links in _ROW.findall(table):
            pages = "\n".join(_LINK.findall(links))
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption[0].upper()}{caption[1:]}\n\n{pages}\n```\n"
    elif page in ("docs/traces/README", "qrels_examples/README"):
        others = "*" if page.startswith("docs") else "*/README"
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n{others}\n```\n"


def setup(app: Any) -> None:
    """Tell Sphinx what to do with each page that it reads."""
    app.connect("source-read", add_contents)
