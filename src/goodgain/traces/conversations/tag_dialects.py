"""The dialects in which models search by tags in their text, and how each writes what a search found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from goodgain.files.json_text import NotJSONError, loads
from goodgain.traces.model import UNANSWERED, ToolCall

__all__ = ["DIALECTS", "NOTES", "Dialect", "find_dialect", "set_found"]

#: What a program writes into the model's text after an action that it could not run: its tags are examples.
NOTES = re.compile(r"My (?:previous )?action is (?:invalid|not correct)\..{0,600}?Let me try again\.", re.DOTALL)
#: Texts in place of results that say that the search was not run.
_REFUSALS = ("You have searched this query", "The maximum search limit is exceeded", "<warning>")
_SUMMARY = "a model summarised what the search found; log the pages that it was given"
_DOC = re.compile(r"^Doc (?P<n>\d{1,4})(?:: |<## Title: (?P<title>[^\n]*?) ##> ?)", re.MULTILINE)
_NUMBER = re.compile(r"^\((?P<n>\d{1,4})\)", re.MULTILINE)
_PASSAGE = re.compile(r"\n[ \t]*\n(?=[ \t]*\")")


class Dialect(NamedTuple):
    """Tags around a search, tags around what it found, and the reader of the text between these."""

    query: tuple[str, str]
    found: tuple[str, str]
    read: Callable[[ToolCall, str], None]


def _read_documents(call: ToolCall, text: str) -> None:
    """Read `Doc 1(Title: "t") text` (Search-R1), `Doc 1: text` (ZeroSearch) or `Doc 1<## Title: "t" ##> text` (StepSearch)."""
    documents = _split_numbered(_DOC, text)
    call.output = text if documents is None else documents


def _read_passages(call: ToolCall, text: str) -> None:
    """Read passages parted by blank lines, each with its title in quotes on the first line (ReSearch)."""
    passages = [passage.strip().partition("\n") for passage in _PASSAGE.split(text) if passage.strip()]
    if all(title.startswith('"') for title, _, _ in passages):
        call.output = [{"title": title.strip().strip('"'), "text": body.strip() or None} for title, _, body in passages]
    else:
        call.output = text


def _read_numbers(call: ToolCall, text: str) -> None:
    """Read `(1)text` a line (R1-Searcher); `None` if there is nothing."""
    documents = _split_numbered(_NUMBER, text)
    call.output = [] if text == "None" else text if documents is None else documents


def _read_list(call: ToolCall, text: str) -> None:
    """Read a JSON list, whose ids are positions (Search-o1's RagAgent); prose is a model's summary."""
    try:
        value: Any = loads(text)
    except NotJSONError:
        value = None
    if isinstance(value, list):
        call.output = [
            {key: field for key, field in one.items() if key != "id"} if isinstance(one, dict) else one for one in value
        ]
    else:
        call.output, call.remedy = UNANSWERED, _SUMMARY


def _split_numbered(mark: re.Pattern[str], text: str) -> list[dict[str, str | None]] | None:
    """Return the parts of a text that begin with marks numbered from 1; None if it does not begin with the first."""
    starts: list[re.Match[str]] = []
    for found in mark.finditer(text):
        if int(found["n"]) == len(starts) + 1:
            starts.append(found)
    if not starts or starts[0].start() != 0:
        return None
    ends = [found.start() for found in starts[1:]] + [len(text)]
    return [
        {"title": (found.groupdict().get("title") or "").strip('"') or None, "text": text[found.end() : end].strip()}
        for found, end in zip(starts, ends, strict=True)
    ]


DIALECTS = (
    Dialect(("<search>", "</search>"), ("<information>", "</information>"), _read_documents),
    Dialect(("<search>", "</search>"), ("<result>", "</result>"), _read_passages),
    Dialect(
        ("<|begin_of_query|>", "<|end_of_query|>"), ("<|begin_of_documents|>", "<|end_of_documents|>"), _read_numbers
    ),
    Dialect(
        ("<|begin_search_query|>", "<|end_search_query|>"),
        ("<|begin_search_result|>", "<|end_search_result|>"),
        _read_list,
    ),
)  # fmt: skip


def find_dialect(text: str, start: int, query_tag: str) -> Dialect:
    """Return the dialect of a search that ends at `start`: the one whose tag for results follows, else the first."""
    possible = [dialect for dialect in DIALECTS if dialect.query[0] == query_tag]
    rest = text[start : start + 2000].lstrip()
    return next((dialect for dialect in possible if rest.startswith(dialect.found[0])), possible[0])


def set_found(call: ToolCall, dialect: Dialect, text: str) -> None:
    """Set the output of a search from the text between the tags for results."""
    if text.startswith(_REFUSALS):
        call.output, call.failed = text, True
    else:
        dialect.read(call, text)
