"""Every layout of tool outputs gives back what was written in it, whole or damaged, and has its row in the docs."""

from __future__ import annotations

import json
import random
import sys
import warnings
from pathlib import Path

import pytest

from goodgain.errors import InputError
from goodgain.logs.traces.tool_outputs.outcomes import Outcome
from goodgain.logs.traces.tool_outputs.readers import LAYOUTS, read_output
from goodgain.logs.traces.tool_outputs.service_answers import ALWAYS_LISTS, HIT_SHAPES, LIST_KEYS, OBJECT_SHAPES
from goodgain.logs.traces.tool_outputs.values_in_text import NOTATIONS
from tests.support.counts import how_many

from .layout_writers import WRITERS, WRITTEN_BY, Page, make_pages
from .mutations import mutated

EVERY = (*LAYOUTS, *NOTATIONS, *OBJECT_SHAPES, *HIT_SHAPES)
#: The results of an example.
PAGES = [
    Page("d1", "https://a.example/1", "On dunes", "Sand that moves."),
    Page("d2", "https://b.example/2", "On lakes", "Water that stays."),
]
DOCS_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "tool_layouts.md"


def test_every_layout_has_a_name_of_its_own_and_a_writer() -> None:
    assert len(EVERY) == len(set(EVERY))
    assert set(EVERY) == WRITERS.keys() == WRITTEN_BY.keys()


def _example(name: str) -> str:
    output = WRITERS[name][0](PAGES)
    return output if isinstance(output, str) else json.dumps(output)


@pytest.mark.parametrize("name", EVERY)
def test_the_example_of_a_layout_is_two_results(name: str) -> None:
    outcome = read_output(_example(name), "here")
    assert (outcome.status, len(outcome.results), outcome.unread) == ("ok", 2, 0)
    for field in WRITERS[name][1]:
        assert [getattr(result, field) for result in outcome.results] == [getattr(page, field) for page in PAGES]


def _normalise(text: str | None, *, lines: bool) -> str | None:
    """A snippet without the indentation of its lines, which lists add."""
    return "\n".join(line.strip() for line in text.splitlines()) if text and lines else text


def _fields(outcome: Outcome, keeps: tuple[str, ...]) -> list[tuple[str | None, ...]]:
    return [tuple(_normalise(getattr(r, name), lines=name == "snippet") for name in keeps) for r in outcome.results]


@pytest.mark.parametrize("name", EVERY)
def test_what_is_written_in_a_layout_is_read_from_it(name: str) -> None:
    chance = random.Random(name)
    write, keeps = WRITERS[name]
    for _ in range(how_many(30, full=250)):
        pages = make_pages(chance)
        output = write(pages)
        wanted = [tuple(getattr(page, field) for field in keeps) for page in pages]

        for given in (
            (output, {"result": output}) if isinstance(output, str) else (output, json.dumps(output), str(output))
        ):
            outcome = read_output(given, "here")
            assert (outcome.status, outcome.unread) == ("ok", 0), given
            assert _fields(outcome, keeps) == wanted, given
            assert [result.rank for result in outcome.results] == list(range(1, len(pages) + 1))


@pytest.mark.parametrize("name", EVERY)
def test_a_damaged_output_is_read_to_results_or_said_to_be_unreadable(name: str) -> None:
    chance = random.Random(name)
    write, _ = WRITERS[name]
    seen = set()

    for _ in range(how_many(30, full=250)):
        output = write(make_pages(chance, most=3))
        text = output if isinstance(output, str) else json.dumps(output)
        damaged = mutated(text.encode(), chance)[0].decode("utf-8", "replace")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                outcome = read_output(damaged, "here")
            except InputError as error:
                assert "\n" not in str(error) and len(str(error)) < 2000
                continue
        seen.add(outcome.status)
        assert outcome.status != "empty" or not outcome.results
        # What is lost is an address or a line of a page: never all results, in silence.
        assert outcome.status != "empty" or "https://" not in damaged or _is_list_emptied(damaged), damaged

    assert "ok" in seen


def _is_list_emptied(text: str) -> bool:
    """Whether the damage put an empty list in the place of the results."""
    return "[]" in text


# The page of the docs


#: The words with which the second result of an example begins.
_SECOND = ("On lakes", "https://b.example", "Water")


def _describe(name: str) -> str:
    """The part of the page that a layout gets: who writes it, and its example up to the second result."""
    shown = _cut(_example(name)).replace("\ue200", "").replace("\ue202", "").replace("\ue201", "")
    fence = "````" if "```" in shown else "```"
    return f"### {name[0].upper()}{name[1:]}\n\nWritten by {WRITTEN_BY[name]}:\n\n{fence}\n{shown}\n{fence}\n"


def _cut(example: str) -> str:
    """Return an example up to its second result."""
    before = example[: min(at for word in _SECOND if (at := example.find(word)) >= 0)]
    line = before.rfind("\n") + 1
    if example.startswith("snippet") or before[line:].lstrip(" -").startswith(("[{", "{", "[[", "Links")):
        return before[: before.rindex(",")] + ", ..."
    return before[:line].rstrip() + "\n..."


def _make_parts() -> str:
    always = ", ".join(f"`{key}`" for key in LIST_KEYS if key in ALWAYS_LISTS)
    others = ", ".join(f"`{key}`" for key in LIST_KEYS if key not in ALWAYS_LISTS)
    under = (
        "## Lists under a key\n\nThe keys that hold a list of results. goodgain reads all lists in line 1. "
        "Without such a list, goodgain prefers keys in the order of line 2:\n\n"
        f"1. {always}\n2. with a list that is not empty: {others}\n\n"
    )
    texts = "## Text\n\n" + "\n".join(map(_describe, LAYOUTS))
    rows = "".join(f"| {name} | {WRITTEN_BY[name]} |\n" for name in (*NOTATIONS, *OBJECT_SHAPES, *HIT_SHAPES))
    return f"{under}{texts}\n## Values in text, and objects\n\n| layout | written by |\n|---|---|\n{rows}"


_TITLE = """# Layouts of tool outputs

What goodgain reads from [the output of a search tool](../traces/tool_outputs.md), in the formats of all logs.
`python -m tests.logs.traces.test_layouts` writes this page.

"""


def test_the_page_lists_every_layout_as_it_is_declared() -> None:
    assert DOCS_PAGE.read_text(encoding="utf-8") == _TITLE + _make_parts(), (
        "write the layouts into docs/reference/tool_layouts.md: python -m tests.logs.traces.test_layouts"
    )


if __name__ == "__main__":
    DOCS_PAGE.write_text(_TITLE + _make_parts(), encoding="utf-8")
    print(f"{DOCS_PAGE} written", file=sys.stderr)
