"""No reader takes more than n^1.2 for hostile text of length n.

The readers are listed by the registries of formats: a new format is tested here by existing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.comparing.required_lines import parse_requirement
from goodgain.logs.dedup import normalise_url
from goodgain.logs.traces.formats import formats
from goodgain.logs.traces.tool_outputs.readers import read_output
from tests.logs.traces.logs import WRITERS, Call, Story, Turn
from tests.support.counts import how_many
from tests.support.readers import PATH_READERS
from tests.support.seconds import find_faster_growth, measure_seconds

#: Characters of a short text.
LENGTH = 4_000
#: Readers that get a text this many times as short: they take long for each word, however many there are.
SLOW = {"measures": 16, "deduplication": 8}
#: What hurts some parser if it stands in a text again and again.
REPEATED = [
    *('[', "{", "(", '{"a":', "[[],", "{},", "[1],", '"', "'", "\\", "\\u", "NaN,", '{"results":[', '"a","', "],", "}"),
    *("[a](", "[](", "](", "[a](u)", "1. [a](u)\n", "1. ", "- ", "* ", "Title: a\n", "Title: ", "Doc 1(Title: ", "URL: x\n"),
    *("<search>", "<information>", "<tool_response>", "<tool_call>", "</information>", "</search>", "<search>x</search>"),
    *("<search>x</search>\n\n", "<search>x</search><information>", "<tool_call>x</tool_call><tool_response>", "<docid: "),
    *("<|im_start|>user\n", "<|im_start|>", "<|start_header_id|>", "<|search|", "<", "</", "<answer>", "<think>"),
    *("Answer the given question. You must conduct reasoning", "Question:", "A search for '", "no ", "there are no "),
    *("\n", " ", "\t", "\x1c", "\u3000", "\r", "\0", "---\n", "name ", "name: ", "date: x\n", "\n\n---\n\n", "# ", "`"),
    *("%", "%4", "/", ".", ":", "//", "../", ";", "?a=b&", "&", "#", "@", "a.", "a-", "a@", "=", "http://", "www.", "a=a;"),
    *("a", "1", "0", "-", "+", "e", "1e", "é", "\u202e", "x y ", "q 1 a 1 1 t\n", "q 0 a 1\n", "q", "a,b\n", "data: {}\n\n"),
]  # fmt: skip
#: What stands around it, so that a reader takes the text for one of its own.
AROUND = [
    ("", ""), ("x", "x"), ("http://a.b/", ""), ("http://", "/"), ("1. [a](u)\n", ""), ("", "\n1. [a](u)"), ('[{"title": "', ""),
    ('[{"title": "a", "url": "', '"}]'), ("<search>q</search><information>", "</information>"), ("q 1 ", " 1 1 t\n"),
    ("Answer the given question. You must conduct reasoning. Question: ", "\n<search>q</search>"), ("{", "}"),
    ("<|im_start|>assistant\n<search>q</search>", ""), ("nDCG(", ")@10"), ("SRE", ">0.5"), ("[", "]"),
]  # fmt: skip

Read = Callable[[str], object]


def _read_in_log(name: str) -> Callable[[Path], Read]:
    """Return a reader of a text as a tool's output in a log of a format that is found by its head."""

    def prepare(folder: Path) -> Read:
        def read(text: str) -> object:
            path = folder / WRITERS[name][1]
            path.write_text(WRITERS[name][0](Story([Turn([[Call(text, text), Call([])]], text)])))
            return gg.read_traces(path, unrecorded="empty")

        return read

    return prepare


def _read_file(ending: str, read_path: Callable[[Path], object]) -> Callable[[Path], Read]:
    def prepare(folder: Path) -> Read:
        def read(text: str) -> object:
            path = folder / f"a{ending}"
            path.write_text(text)
            return read_path(path)

        return read

    return prepare


def _deduplicate(text: str) -> object:
    """Deduplicate as many results as the text has fifties of characters, all with pieces of it as texts."""
    rows = len(text) // 50
    texts = [text[k : k + 50] for k in range(0, rows * 50, 50)]
    columns: dict[str, Any] = {"query_id": "q", "iteration": 1, "search": 1, "rank": range(1, rows + 1)}
    found = {
        "doc_id": [None] * rows,
        "url": texts,
        "title": texts,
        "snippet": [t + str(k) for k, t in enumerate(texts)],
    }
    return gg.deduplicate(pl.DataFrame(columns | found, schema_overrides={"doc_id": pl.String}))


READERS: dict[str, Callable[[Path], Read]] = {
    **{name: _read_file(*reader) for name, reader in PATH_READERS.items()},
    **{f"output in {name}": _read_in_log(name) for name in WRITERS},
    "tool output": lambda _: lambda text: read_output(text, "here"),
    "URL": lambda _: normalise_url,
    "deduplication": lambda _: _deduplicate,
    "measures": lambda _: lambda text: gg.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, text),
    "required line": lambda _: parse_requirement,
}


def test_every_format_has_a_writer() -> None:
    assert set(WRITERS) <= set(formats()), "formats that plugins bring are tested by their authors"


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_text_and_not_with_its_square(name: str, tmp_path: Path) -> None:
    read = READERS[name](tmp_path)

    def find_growth(repeated: str, before: str, after: str) -> str:
        def measure(length: int) -> float:
            return _measure(read, before + repeated * (length // len(repeated)) + after)

        return find_faster_growth(measure, LENGTH // SLOW.get(name, 1))

    cases = [(repeated, *around) for repeated in REPEATED for around in AROUND]
    for case in Random(name).sample(cases, how_many(2, full=30)):
        assert not find_growth(*case), case


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.json", "[" * 262_145),
        ("log.json", '{"a":' * 48_000),
        *(("log.txt", f"<|im_start|>assistant\n{tag}" * 10_000) for tag in ("<search>", "<information>")),
        *(("log.txt", "<search>q</search>" + tag * 20_000) for tag in ("<search>", "<information>", "<tool_response>")),
        ("log.txt", "<search>x</search>" + "\n" * 160_000),
        ("log.txt", "<search>x</search>" + "<information>" * 20_000 + "</information>"),
        ("tool output", "[a](" * 20_000),
        ("tool output", "\n" * 160_000),
        ("tool output", "1. [a](u)" + "\n" * 160_000),
    ],
    ids=lambda value: value[:40],
)
def test_texts_that_took_minutes(name: str, text: str, tmp_path: Path) -> None:
    assert _measure(READERS[name](tmp_path), text) < 2


def _measure(read: Read, text: str) -> float:
    """Return the seconds of the processor that reading takes; a sentence is as good as a result."""

    def call() -> None:
        try:
            read(text)
        except gg.GoodgainError as error:
            assert len(str(error)) < 2_000

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure_seconds(call)
