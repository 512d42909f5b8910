"""The site in a browser: samples fit, search finds what readers ask, pictures are drawn, no page stands twice in the sidebar."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Opened
from tests.support.tables import ROOT

#: The pages of the tests: notebooks and reference take most of the time of `make docs`.
PAGES = "README.md,CHANGELOG.md,docs/**.md,qrels_examples/**.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("sphinx", "sphinx_copybutton"):
        pytest.importorskip(module, reason="the site needs the extra docs: pip install goodgain[docs]")
    path = tmp_path_factory.mktemp("site")
    options = ("-c", "docs", "-d", path / "doctrees", "-D", f"include_patterns={PAGES}")
    skipped = ("-D", "exclude_patterns=docs/reference/**,.venv/**")
    command = (sys.executable, "-m", "sphinx", *options, *skipped, "--quiet", ".", path)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.slow
def test_samples_fit_beside_the_sidebar_and_no_page_is_too_wide(
    site: Path, open_file: Callable[[Path], Opened]
) -> None:
    opened = open_file(site / "README.html")
    for page in sorted(site.glob("docs/*.html")):
        opened.page.goto(page.as_uri())
        opened.show_as(width=1280)
        cut = "[...document.querySelectorAll('article pre')].filter(pre => pre.scrollWidth > pre.clientWidth + 1)"
        assert opened.page.evaluate(f"{cut}.map(pre => pre.innerText.slice(0, 60))") == [], page.name
        samples, buttons = (opened.page.locator(f"article {name}").count() for name in ("pre", "button.copybtn"))
        assert samples == buttons, page.name
        opened.show_as(width=390)
        assert not opened.is_too_wide(), page.name
    opened.show_as(width=1320)  # the narrowest with a table of contents at the right
    assert not opened.is_too_wide()


@pytest.mark.slow
@pytest.mark.parametrize(("query", "first"), [("which agent is better", "two_logs"), ("429", "model_labels")])
def test_the_search_finds_what_readers_ask(
    site: Path, open_file: Callable[[Path], Opened], query: str, first: str
) -> None:
    opened = open_file(site / "search.html")
    opened.page.goto(f"{(site / 'search.html').as_uri()}?q={query.replace(' ', '+')}")
    found = opened.page.locator("#search-results li a").first
    assert f"docs/{first}.html" in (found.get_attribute("href") or "")


@pytest.mark.slow
def test_the_sidebar_has_five_groups_and_no_page_twice(site: Path, open_file: Callable[[Path], Opened]) -> None:
    opened = open_file(site / "docs" / "comparing.html")
    assert opened.page.locator(".sidebar-tree .caption").count() == 5
    links = opened.page.evaluate(
        "[...document.querySelectorAll('.sidebar-tree a')].map(link => [link.innerText, link.href])"
    )
    for number, part in enumerate(("title", "address")):
        names = [link[number] for link in links]
        assert sorted(names) == sorted(set(names)), part


@pytest.mark.slow
def test_pictures_follow_the_colours_that_a_reader_chose(site: Path, open_file: Callable[[Path], Opened]) -> None:
    opened = open_file(site / "README.html")
    shown = {}
    for theme in ("light", "dark"):
        opened.page.evaluate(f"document.body.dataset.theme = '{theme}'")
        assert opened.page.evaluate("getComputedStyle(document.querySelector('article img')).colorScheme") == theme
        shown[theme] = opened.page.locator("article img[src*=curve]").screenshot()
    assert shown["light"] != shown["dark"]


PICTURES = sorted((ROOT / "docs" / "images").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_drawn_from_its_file_alone(open_file: Callable[[Path], Opened], picture: Path) -> None:
    opened = open_file(picture)
    box = opened.page.evaluate(
        "(() => { const box = document.documentElement.getBBox(); return [box.width, box.height] })()"
    )
    assert min(box) > 0
    assert (opened.console, opened.requests) == ([], [])
