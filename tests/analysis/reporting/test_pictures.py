"""The pictures of README and docs are those of the code above them, as it is now (`make pictures` draws them)."""

from __future__ import annotations

import json
import re
import runpy
import warnings
from typing import Any

import matplotlib
import pytest

from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.plots.pictures import write_picture
from goodgain.errors import GoodgainNotice
from tests.support.counts import how_many
from tests.support.tables import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "make_pictures.py"))
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in SCRIPT["PAGES"]}
IMAGES = ROOT / "docs" / "images"


@pytest.fixture(scope="module")
def pictures() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)
        return {name: ax.figure for page in PAGES.values() for name, ax in SCRIPT["draw_pictures"](page)}


@pytest.mark.slow
def test_each_picture_shows_the_numbers_of_now(pictures: dict[str, Any]) -> None:
    stored = json.loads((IMAGES / "drawn.json").read_text(encoding="utf-8"))
    assert list(stored) == list(pictures), "run make pictures"
    for name, figure in pictures.items():
        assert flatten(SCRIPT["list_drawn"](figure)) == pytest.approx(flatten(stored[name]), abs=2e-6), (
            "run make pictures"
        )


def flatten(value: Any) -> list[float]:
    if isinstance(value, dict):
        return flatten(list(value.values()))
    return [number for one in value for number in flatten(one)] if isinstance(value, list) else [value]


@pytest.mark.slow
def test_each_picture_is_the_one_that_this_matplotlib_draws(pictures: dict[str, Any], tmp_path: Any) -> None:
    for name, figure in list(pictures.items())[: how_many(1, full=len(pictures))]:
        stored = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        if f"Matplotlib v{matplotlib.__version__}," in stored:  # another version draws the same numbers in other words
            write_picture(figure, tmp_path / f"{name}.svg")
            assert (tmp_path / f"{name}.svg").read_text(encoding="utf-8") == stored, "run make pictures"
        assert "<dc:date>" not in stored


TERMINALS = list(SCRIPT["TERMINALS"].items())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "example"), TERMINALS[: how_many(1, full=len(TERMINALS))])
def test_a_picture_of_a_terminal_has_the_text_that_the_command_prints(name: str, example: tuple[str, str]) -> None:
    folder, command = example
    printed = SCRIPT["run_in_terminal"](folder, command)
    stored, drawn = (IMAGES / f"{name}.svg").read_text(encoding="utf-8"), SCRIPT["make_terminal"](command, printed)
    assert SCRIPT["list_texts"](stored) == SCRIPT["list_texts"](drawn), "run make pictures"
    plain = re.sub(r"\x1b\[[\d;]*m", "", printed)
    assert max(map(len, plain.splitlines())) <= 80, "a terminal breaks longer lines inside words"
    assert "".join(plain.split()) in "".join(SCRIPT["list_texts"](stored).split())


def test_badges_say_what_the_package_says() -> None:
    for name, text in SCRIPT["make_badges"]().items():
        assert (IMAGES / f"badge_{name}.svg").read_text(encoding="utf-8") == text, "run make pictures"


def test_the_page_shows_every_plot_and_every_picture_is_shown() -> None:
    drawn = [name for name in plots.__all__ if not name.endswith("_data")]
    assert sorted(re.findall(r"^ax = plots\.(\w+)\(", PAGES["pictures"], flags=re.MULTILINE)) == drawn
    shown = {name: re.findall(r"!\[[^\]]+\]\(images/(\w+)\.svg\)", page) for name, page in PAGES.items()}
    assert sorted(shown["pictures"]) == sorted(drawn)
    joined = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "README.md", ROOT / "docs" / "command_line.md")
    )
    of_others = re.findall(r"!\[[^\]]+\]\((?:docs/)?images/(\w+)\.svg\)", joined)
    assert {name for name, _ in TERMINALS} <= {*of_others}
    assert {path.stem for path in IMAGES.glob("*.svg")} == {name for names in shown.values() for name in names} | {
        *of_others
    }
