"""Reads the results out of a tool's output with a chain of small readers; the first that knows the shape is used.

What the members of a list hold decides whether it is a list of results. A sentence is never a result, as it has neither
an id nor a URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads, parse_concatenated
from goodgain.traces.input.checks import as_number, describe, format_place
from goodgain.traces.model import Result, Status
from goodgain.traces.tool_outputs.key_names import make_key_plan
from goodgain.traces.tool_outputs.layouts import LAYOUTS
from goodgain.traces.tool_outputs.notations import NOTATIONS
from goodgain.traces.tool_outputs.objects import has_identity, join_texts, read_object, read_objects
from goodgain.traces.tool_outputs.outcomes import is_failure, is_not_recorded, is_nothing_found, strip_heading
from goodgain.traces.tool_outputs.plain_lists import decode_plain_list, remember_keys
from goodgain.traces.tool_outputs.shapes import HIT_SHAPES, OBJECT_SHAPES
from goodgain.traces.tool_outputs.unread import find_unread, find_unread_addresses
from goodgain.traces.tool_outputs.wrappers import (
    are_parts,
    counts_nothing,
    find_list,
    find_parallel_lists,
    has_error,
    is_wrapper,
    unwrap_langchain,
)

__all__ = ["Outcome", "Parse", "looks_like_results", "read_output"]

#: A caller's own reader: output -> results (objects or Results; an empty list: nothing was found), or None for output
#: that it leaves to the readers here.
Parse = Callable[[Any], Iterable[Any] | None]

#: What Tongyi's search tool writes between the results of several queries in one call.
_BLOCK_SEPARATOR = "\n=======\n"
#: Wrappers nested deeper are not opened, so that reading hostile output ends.
_MAX_DEPTH = 12
#: Longer answers of tools that do not search are not looked at: they are pages. JSON may be longer than other text.
_MAX_LOOKED_AT, _MAX_JSON_LOOKED_AT = 20_000, 1_000_000
#: An object with more texts than this is not taken for the report that nothing was found.
_MAX_TEXTS = 3


class Outcome(NamedTuple):
    """The status of a search, its results, and how many more things in the output look like results."""

    status: Status
    results: tuple[Result, ...] = ()
    unread: int = 0


_EMPTY, _ERROR, _UNPARSED = Outcome("empty"), Outcome("error"), Outcome("unparsed")


def read_output(output: Any, at: str, *, parse: Parse | None = None, doc_type: str | None = None) -> Outcome:
    """Read a tool's output.

    `parse` is called first, so that it can also correct what the readers here would return; where it returns None,
    they are used.

    Raises:
        InputError: an id or URL of a result is neither text nor a number, or `parse` failed.
    """
    if parse is not None and (found := _call_parse(parse, output, at, doc_type)) is not None:
        return found
    reader = _OutputReader(at, doc_type)
    outcome = reader.read_value(output, _MAX_DEPTH)
    return reader.count_unread(outcome) if reader.unread else outcome


def looks_like_results(output: Any, at: str) -> bool:
    """Return whether an output looks like a list of results: two or more with an id or URL each."""
    if isinstance(output, str):
        if output.lstrip()[:1] in ("{", "[") and len(output) <= _MAX_JSON_LOOKED_AT:
            with suppress(NotJSONError):
                output = loads(output)
        if isinstance(output, str) and len(output) > _MAX_LOOKED_AT:
            return False
    if not isinstance(output, (str, list, dict)):
        return False
    try:
        results = _OutputReader(at, None).read_value(output, _MAX_DEPTH).results
    except InputError:
        return False
    return len(results) > 1 and all(result.doc_id is not None or result.url is not None for result in results)


def _call_parse(parse: Parse, output: Any, at: str, doc_type: str | None) -> Outcome | None:
    try:
        found = parse(_join_text_parts(output))
        members = None if found is None else list(found)
    except Exception as error:
        raise InputError(
            f"{format_place(at)}: parse= failed with {type(error).__name__} ({error}); it got {describe(output)}"
        ) from error
    if members is None:
        return None
    results = [
        _set_rank(member, rank) if isinstance(member, Result) else
        read_object({"doc_id": member} if isinstance(member, str) else member, rank, at, doc_type)
        for rank, member in enumerate(members, start=1)
        if isinstance(member, (Result, str, dict))
    ]  # fmt: skip
    if len(results) != len(members) or None in results:
        raise InputError(
            f"{format_place(at)}: parse= gave a result with neither id, URL, title nor text; give objects with such keys"
        )
    return _make_outcome(result for result in results if result is not None)


def _join_text_parts(output: Any) -> Any:
    """Join the content parts of an output that is text only: the text that the tool returned before an API split it."""
    if (
        isinstance(output, list)
        and output
        and all(isinstance(part, dict) and part.keys() >= {"type", "text"} for part in output)
    ):
        texts = [part["text"] for part in output if part["type"] in ("text", "input_text", "output_text")]
        if len(texts) == len(output) and all(isinstance(text, str) for text in texts):
            return "".join(texts)
    return output


def _set_rank(result: Result, rank: int) -> Result:
    if result.rank == rank:
        return result
    return Result(rank, *(getattr(result, name) for name in Result.__struct_fields__[1:]))


def _make_outcome(results: Iterable[Result]) -> Outcome:
    found = tuple(results)
    return Outcome("ok", found) if found else _EMPTY


class _OutputReader:
    """The readers for the output at one place, which errors name, of a tool whose results have this document type.

    `unread` has the addresses and ids of what looks like results outside the lists that were read.
    """

    def __init__(self, at: str, doc_type: str | None) -> None:
        self.at = at
        self.doc_type = doc_type
        self.unread: list[str] = []

    def count_unread(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the number of things that look like results and are not among its results."""
        read = {name for result in outcome.results for name in (result.url, result.doc_id)}
        unread = len(set(self.unread) - read)
        return outcome._replace(unread=unread)

    def read_value(self, value: Any, depth: int) -> Outcome:
        """Read a value of any type; `depth` is how much deeper wrappers may still nest."""
        if depth == 0:
            return _UNPARSED
        if isinstance(value, str):
            return self.read_text(value, depth)
        if isinstance(value, list):
            return self.read_list(value, depth)
        if isinstance(value, dict):
            return self.read_object(value, depth)
        return _UNPARSED

    def read_text(self, text: str, depth: int) -> Outcome:
        """Read a text: JSON, a known failure, a known layout, or a value in prose; anything else is unparsed."""
        stripped = text.strip()
        if (plain := decode_plain_list(stripped, self.doc_type)) is not None:
            return Outcome("ok", plain)
        if is_failure(stripped):
            return _ERROR
        if stripped.startswith(("{", "[", '"')):
            try:
                value = loads(stripped)
            except NotJSONError:
                if (many := parse_concatenated(stripped)) is not None:
                    return self.read_list(many, depth - 1)
            else:
                if type(value) is list:
                    remember_keys(stripped, value)
                return self.read_value(value, depth - 1)
        if _BLOCK_SEPARATOR in text:
            return _join_blocks([self.read_text(block, depth - 1) for block in text.split(_BLOCK_SEPARATOR)])
        says_nothing = is_nothing_found(stripped)
        if says_nothing and "\n" not in stripped:
            return _EMPTY
        outcome = self.read_layouts(strip_heading(stripped), depth)
        if outcome.status != "unparsed":
            return outcome
        if says_nothing:
            return _EMPTY
        return Outcome("unrecorded") if is_not_recorded(stripped) else _UNPARSED

    def read_layouts(self, text: str, depth: int) -> Outcome:
        """Read a text in the first layout that knows it, or the value in it."""
        for layout in LAYOUTS:
            if results := layout.read(text):
                if not layout.has_other_links:
                    self.unread += find_unread_addresses(text, results)
                return _make_outcome(self.set_type(results))
        for notation in NOTATIONS:
            if (written := notation.read(text)) is not None:
                before = len(self.unread)
                outcome = self.read_value(written.value, depth - 1)
                if outcome.status != "unparsed":
                    self.unread += find_unread_addresses(written.around, list(outcome.results))
                    return outcome
                del self.unread[before:]
        return _UNPARSED

    def set_type(self, results: list[Result]) -> Iterable[Result]:
        """Return the results with the tool's document type, where it has one."""
        if self.doc_type is None:
            return results
        return [
            Result(r.rank, r.doc_id, r.ids, r.url, r.title, r.snippet, r.score, self.doc_type, r.fields)
            for r in results
        ]

    def read_list(self, members: list[Any], depth: int) -> Outcome:
        """Read a list: of results, of content parts, of lists (one a query), or of pairs of document and score."""
        if not members:
            return _EMPTY
        if set(map(type, members)) == {dict}:
            if members[0].get("lc") == 1:
                members = [unwrap_langchain(member) for member in members]
            first = members[0]
            if ("type" in first or "text" in first) and are_parts(members):
                return self.read_parts(members, depth)
            if is_wrapper(first) and all(map(is_wrapper, members)):
                return _join_blocks([self.read_object(member, depth - 1) for member in members])
            if len(members) == 1 and self.is_empty(first):
                return _EMPTY
            for shape in HIT_SHAPES:
                if (shape.key is None or shape.key in first) and (found := shape.read(members)) is not None:
                    members = found
                    break
            results = read_objects(members, self.at, self.doc_type)
            if results is None:
                return _UNPARSED
            if make_key_plan(tuple(members[0])).simple is None:
                for member in members:
                    self.unread += find_unread(member, [], lists_only=True)
            return Outcome("ok", results)
        if all(isinstance(member, list) for member in members):
            if all(len(pair) == 2 and isinstance(pair[0], dict) and as_number(pair[1]) is not None for pair in members):
                return self.read_list([{"score": score, **document} for document, score in members], depth - 1)
            return _join_blocks([self.read_list(member, depth - 1) for member in members])
        if all(isinstance(member, str) for member in members):
            return self.read_texts(members, depth)
        return _UNPARSED

    def read_texts(self, texts: list[str], depth: int) -> Outcome:
        """Read a list of texts: each of them one object, a list of results, or a URL."""
        if all(text.startswith(("http://", "https://")) and not any(map(str.isspace, text)) for text in texts):
            return self.read_list([{"url": text} for text in texts], depth - 1)
        return _join_blocks([self.read_text(text, depth - 1) for text in texts])

    def read_parts(self, parts: list[dict[str, Any]], depth: int) -> Outcome:
        """Read content parts of MCP and of the model vendors; each may hold results, or citations of results."""
        outcomes = []
        for part in parts:
            kind = part.get("type", "text")
            if kind == "search_result":
                source = part.get("source")
                named = {"url" if "://" in source else "doc_id": source} if isinstance(source, str) else {}
                outcomes.append(self.read_list([{**part, "source": None, **named, "type": None}], depth - 1))
            elif part.get("citations"):
                outcomes.append(self.read_value(part["citations"], depth - 1))
            elif kind == "resource":
                outcomes.append(self.read_list([part.get("resource")], depth - 1))
            elif kind in ("resource_link", "document"):
                outcomes.append(self.read_list([part], depth - 1))
            elif kind not in ("image", "audio"):
                outcomes.append(self.read_value(part.get("text"), depth - 1))
        if len(outcomes) > 1 and any(outcome.status == "unparsed" for outcome in outcomes):
            before = len(self.unread)
            joined = "".join(text for part in parts if isinstance(text := part.get("text"), str))
            if (whole := self.read_text(joined, depth - 1)).status != "unparsed":
                return whole  # one text that an API split into parts
            del self.unread[before:]
        return _join_blocks(outcomes)

    def read_object(self, item: dict[str, Any], depth: int) -> Outcome:
        """Read an object: a wrapper around results, an error, or one result."""
        if item.get("isError") is True or item.get("is_error") is True:
            return _EMPTY if is_nothing_found(join_texts(item.get("content")) or "") else _ERROR
        if item.get("structuredContent"):
            outcome = self.read_value(item["structuredContent"], depth - 1)
            if outcome.status != "unparsed":
                return outcome
        if (fields := unwrap_langchain(item)) is not item:
            return self.read_value(fields, depth - 1)
        for shape in OBJECT_SHAPES:
            if (shape.key is None or shape.key in item) and (members := shape.read(item)) is not None:
                return self.read_list(members, depth - 1)
        if has_identity(item) and not is_wrapper(item) and not _wraps_results(item):
            return self.read_list([item], depth)
        lists = find_parallel_lists(item)
        held = find_list(item) if len(lists) < 2 else None
        if lists and held is None:
            self.unread += find_unread(item, lists)
            outcome = _join_lists([self.read_list(members, depth - 1) for members in lists])
            return _ERROR if outcome.status == "empty" and has_error(item) else outcome
        if held is not None:
            outcome = self.read_value(held, depth - 1)
            if outcome.status != "empty" or not has_error(item):
                self.unread += find_unread(item, [held])
                return outcome
        is_whole = not any(True for _ in find_unread(item, []))
        if is_whole and self.is_empty(item):
            return _EMPTY
        if has_error(item):
            return _ERROR
        return _EMPTY if is_whole and counts_nothing(item) else _UNPARSED

    def is_empty(self, item: dict[str, Any]) -> bool:
        """Return whether all texts of an object say that nothing was found."""
        texts = [value for value in item.values() if isinstance(value, str) and value.strip()]
        return bool(texts) and len(texts) <= _MAX_TEXTS and all(map(is_nothing_found, texts))


def _wraps_results(item: dict[str, Any]) -> bool:
    """Return whether an object has an id and holds results, rather than being one: a service's answer, say."""
    plan = make_key_plan(tuple(item))
    own = any(item[key] for key in plan.url + plan.title + plan.snippet if isinstance(item[key], str))
    return not own and any(True for _ in find_unread(item, []))


def _join_lists(outcomes: list[Outcome]) -> Outcome:
    """Join the lists of results in one answer; unparsed if one of them is, as its results would be missing."""
    return _UNPARSED if _UNPARSED in outcomes else _join_blocks(outcomes)


def _join_blocks(outcomes: list[Outcome]) -> Outcome:
    """Join the blocks of one search: ranks run on, and one block with results makes the search ok."""
    if len(outcomes) == 1:
        return outcomes[0]
    results = [result for outcome in outcomes for result in outcome.results]
    if results:
        return Outcome("ok", tuple(_set_rank(result, rank) for rank, result in enumerate(results, start=1)))
    statuses = {outcome.status for outcome in outcomes}
    # Without a result the worst case for a reader of the numbers decides: unparsed output may have held results.
    for status in (_UNPARSED, _EMPTY, _ERROR):
        if status.status in statuses:
            return status
    return _UNPARSED
