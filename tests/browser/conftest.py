"""Opens files of ours in a real chromium, and keeps what the browser complains of.

Playwright drives the chromium of the system; it downloads none.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Opened:
    """A file in the browser, with what the browser said and asked for.

    `console` holds errors and warnings; `requests` holds every address but the file's own and `data:`.
    """

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def show_as(self, *, colours: Any = "light", medium: Any = "screen", width: int = 1280) -> None:
        """Show the page in "light" or "dark" colours, on "screen" or in "print", with a width in pixels."""
        self.page.emulate_media(color_scheme=colours, media=medium)
        self.page.set_viewport_size({"width": width, "height": 900})

    def is_too_wide(self) -> bool:
        root = "document.documentElement"
        return bool(self.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))

    def find_violations(self) -> list[str]:
        """Return what axe-core finds that is serious or critical: the rule, and the first place."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{rule['id']}: {rule['nodes'][0]['html']}" for rule in found if rule["impact"] in ("serious", "critical")
        ]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium here: apt-get install chromium, then these tests run")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_file(browser: Browser) -> Iterator[Callable[[Path], Opened]]:
    """Return a function that opens a file as a user does who clicks on it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})

    def open_(path: Path) -> Opened:
        opened = Opened(context.new_page())
        own = (path.resolve().as_uri(), "data:")

        def hear(said: ConsoleMessage) -> None:
            if said.type in ("error", "warning"):
                opened.console.append(said.text)

        def note(request: Request) -> None:
            if not request.url.startswith(own):
                opened.requests.append(request.url)

        opened.page.on("console", hear)
        opened.page.on("pageerror", lambda error: opened.console.append(str(error)))
        opened.page.on("request", note)
        opened.page.goto(own[0])
        return opened

    yield open_
    context.close()
