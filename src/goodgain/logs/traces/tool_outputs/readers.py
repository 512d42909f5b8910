"""Reads the results in a tool's output. Small readers are tried in turn; the first that recognises the layout is used.

A list is a list of results if its members look like results. A sentence is never a result: it has neither an id nor a URL.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads, parse_concatenated, parse_if_json
from goodgain.logs.traces.expected_values import as_number, describe, format_place
from goodgain.logs.traces.model import Result
from goodgain.logs.traces.tool_outputs import outcomes, result_objects, service_answers
from goodgain.logs.traces.tool_outputs import text_blocks as blocks
from goodgain.logs.traces.tool_outputs import text_lists as lists
from goodgain.logs.traces.tool_outputs.outcomes import EMPTY, ERROR, UNPARSED, Outcome
from goodgain.logs.traces.tool_outputs.overlooked_results import (
    find_overlooked_addresses,
    find_overlooked_objects,
    find_unnamed_lists,
)
from goodgain.logs.traces.tool_outputs.result_objects import Object
from goodgain.logs.traces.tool_outputs.values_in_text import NOTATIONS

#: A reader of the caller: output -> results (objects or Results), or None for output that the readers here must read.
Parse = Callable[[Any], Iterable[Any] | None]

#: The readers of texts by layout, as the docs name it, in the order tried. A reader returns None for text in another layout.
#: Layouts of one product come first. Links come late: numbered lists and blocks have lines that look like a bare link.
LAYOUTS: dict[str, Callable[[str], Sequence[Result] | None]] = {
    "links of Claude Code": blocks.read_claude_code,
    "sources of Gemini CLI": blocks.read_gemini_cli,
    "hits of Codex": blocks.read_codex,
    "snippet, title, link": blocks.read_duckduckgo,
    "labelled blocks below an answer": blocks.read_tavily,
    "blocks whose labels are numbered": blocks.read_jina,
    "pages with a summary": blocks.read_wikipedia,
    "document elements": blocks.read_elements,
    "numbered documents": blocks.read_docs,
    "numbered links": lists.read_numbered_links,
    "numbered titles with an ID": lists.read_numbered_ids,
    "numbered titles with a URL": lists.read_numbered_titles,
    "labelled blocks between rules": blocks.read_ruled,
    "labelled blocks": blocks.read_labelled,
    "one URL a line": lists.read_urls,
    "lines or bullets of Markdown links": lists.read_links,
    "paragraphs of title, URL, text": lists.read_paragraphs,
}
#: Readers of texts that may have links other than results, in prose or in whole pages.
_WITH_OTHER_LINKS = (blocks.read_claude_code, blocks.read_gemini_cli, blocks.read_tavily, blocks.read_jina)
#: A limit against malicious output: wrappers nested deeper are not opened.
_MAX_DEPTH = 12
#: Longer outputs of other tools than searches are pages, and are not checked. JSON may be longer than other text.
_MAX_TEXT_LENGTH = 20_000
_MAX_JSON_LENGTH = 1_000_000


def read_output(output: Any, at: str, *, parse: Parse | None = None, doc_type: str | None = None) -> Outcome:
    """Read a tool's output with `parse`, or with the built-in readers if `parse` returns None. Results get the type `doc_type`."""
    outcome = None if parse is None else _call_parse(parse, output, at)
    if outcome is None:
        outcome = _OutputReader(at, reads_ids=True).read_value(output, _MAX_DEPTH)
    if doc_type is None:
        return outcome
    return outcome._replace(results=tuple(replace(result, type=doc_type) for result in outcome.results))


def looks_like_results(output: Any, at: str) -> bool:
    """Return whether a tool's output looks like two or more results, each with an id or URL."""
    value = output
    if isinstance(output, str) and output.lstrip()[:1] in ("{", "[") and len(output) <= _MAX_JSON_LENGTH:
        with suppress(NotJSONError):
            value = loads(output)
    if isinstance(value, str) and len(value) > _MAX_TEXT_LENGTH:
        return False

    try:
        results = _OutputReader(at).read_value(value, depth=_MAX_DEPTH).results
    except InputError:
        return False
    return len(results) > 1 and all(result.doc_id is not None or result.url is not None for result in results)


def _call_parse(parse: Parse, output: Any, at: str) -> Outcome | None:
    """Return the results of the caller's function, or None if it returns None. A text in its list is the id of a document."""
    place = format_place(at)
    try:
        found = parse(_join_text_parts(output))
        members = found if found is None or isinstance(found, (str, Mapping)) else list(found)
    except Exception as error:
        failure = f"failed with {type(error).__name__} ({error})"
        raise InputError(f"{place}: parse= {failure}; its argument was {describe(output)}") from error

    if members is None:
        return None
    if isinstance(members, (str, Mapping)):
        raise InputError(f"{place}: parse= gave {describe(members)}; give a list, or None for the built-in readers")

    results = []
    for rank, member in enumerate(members, start=1):
        item: Any = {"doc_id": member} if isinstance(member, str) else member
        if isinstance(item, dict):
            item = {str(key): value for key, value in item.items()}
        result = result_objects.read_object(item, rank, at) if isinstance(item, dict) else None
        if isinstance(item, Result):
            result = replace(item, rank=rank)
        if result is None:
            raise InputError(f"{place}: parse= gave a result without id, URL, title or text; add one of them")
        try:
            msgspec.json.decode(msgspec.json.encode(result), type=Result)
        except (msgspec.MsgspecError, TypeError, ValueError) as error:  # ValueError: a lone surrogate
            raise InputError(
                f"{place}: parse= gave a result that no table can hold ({error}): {result!r:.200}; give text for "
                "ids, URLs and titles, and numbers for scores"
            ) from None
        results.append(result)

    if results:
        return Outcome("ok", tuple(results))
    return EMPTY


def _join_text_parts(output: Any) -> Any:
    """Return one text if all parts of an output are texts (an API may split a text); else return the output unchanged."""
    if not isinstance(output, list) or not output:
        return output
    types = ("text", "input_text", "output_text")
    parts = [part for part in output if isinstance(part, dict) and part.get("type") in types]
    texts: list[Any] = [part.get("text") for part in parts]
    is_text = len(texts) == len(output) and all(isinstance(text, str) for text in texts)
    return "".join(texts) if is_text else output


class _OutputReader(NamedTuple):
    at: str  # the place of the output, for errors
    reads_ids: bool = False  # read lists of bare ids as results; only for searches: other tools list files and versions

    def read_value(self, value: Any, depth: int) -> Outcome:
        """Read a value of any type. `depth` is how many more wrappers may be opened."""
        if depth <= 0:
            return UNPARSED
        if isinstance(value, str):
            return self.read_text(value, depth)
        if isinstance(value, list):
            return self.read_list(value, depth)
        if isinstance(value, dict):
            return self.read_single_object(value, depth)
        return UNPARSED

    def read_text(self, text: str, depth: int) -> Outcome:
        """Read a text: an error message, JSON, a known layout, or a value in prose. The outcome of any other text is `unparsed`."""
        stripped = text.strip()
        if stripped.startswith(outcomes.FAILURES):
            return ERROR

        if stripped.startswith(("{", "[", '"')):
            try:
                return self.read_value(loads(stripped), depth - 1)
            except NotJSONError:
                if (many := parse_concatenated(stripped)) is not None:
                    return self.read_list(many, depth - 1)
        if outcomes.BETWEEN_BLOCKS in text:
            return self.read_blocks(text.split(outcomes.BETWEEN_BLOCKS), depth)

        says_nothing = outcomes.is_nothing_found(stripped)
        if says_nothing and "\n" not in stripped:
            return EMPTY

        outcome = self.read_layouts(outcomes.strip_heading(stripped), depth)
        if outcome.status != "unparsed":
            return outcome
        if says_nothing:
            return EMPTY
        if stripped.startswith(outcomes.GEMINI_CLI):
            return Outcome("unrecorded")
        return UNPARSED

    def read_layouts(self, text: str, depth: int) -> Outcome:
        """Read a text with the first reader that recognises its layout. If none does, read the JSON or Python value in the text."""
        for read in LAYOUTS.values():
            if results := read(text):
                others = () if read in _WITH_OTHER_LINKS else find_overlooked_addresses(text, results)
                return Outcome("ok", tuple(results), tuple(others))
        for find in NOTATIONS.values():
            if (separated := find(text)) is not None:
                value, around = separated
                outcome = self.read_value(value, depth - 1)
                if outcome.status != "unparsed":
                    return outcome.add_overlooked_names(find_overlooked_addresses(around, outcome.results))
        return UNPARSED

    def read_blocks(self, blocks: list[Any], depth: int) -> Outcome:
        """Read several outputs in one, such as the results of several queries."""
        return _join_blocks(blocks, [self.read_value(block, depth - 1) for block in blocks])

    def read_list(self, members: list[Any], depth: int) -> Outcome:
        """Read a list of results, of content parts, of texts, of inner lists (one per query), or of pairs (document, score)."""
        if not members:
            return EMPTY
        kinds = set(map(type, members))
        if kinds == {dict}:
            return self.read_object_list(members, depth)
        if kinds == {list}:
            if all(len(pair) == 2 and isinstance(pair[0], dict) and as_number(pair[1]) is not None for pair in members):
                return self.read_list([{"score": score, **document} for document, score in members], depth - 1)
            return self.read_blocks(members, depth)
        if kinds == {str}:
            if all(text.startswith(("http://", "https://")) and not any(map(str.isspace, text)) for text in members):
                return self.read_list([{"url": text} for text in members], depth - 1)
            outcome = self.read_blocks(members, depth)
            if outcome.status == "unparsed" and self.reads_ids and all(map(result_objects.BARE_ID.fullmatch, members)):
                return self.read_list([{"id": text} for text in members], depth - 1)
            return outcome
        return UNPARSED

    def read_object_list(self, members: list[Object], depth: int) -> Outcome:
        """Read a list of content parts, of results, or of objects that each wrap the results of one query."""
        if members[0].get("lc") == 1:
            members = [service_answers.unwrap_langchain(member) for member in members]
        first = members[0]
        if ("type" in first or "text" in first) and service_answers.are_parts(members):
            return self.read_parts(members, depth)
        if service_answers.is_wrapper(first) and all(map(service_answers.is_wrapper, members)):
            return self.read_blocks(members, depth)
        if len(members) == 1 and outcomes.says_nothing_found(first):
            return EMPTY

        readings = (read_hits(members) for read_hits in service_answers.HIT_SHAPES.values())
        members = next((hits for hits in readings if hits is not None), members)
        results = result_objects.read_objects(members, self.at)
        if results is None:
            return self.read_unnamed_lists(members, depth)
        if list not in map(type, chain.from_iterable(map(dict.values, members))):
            return Outcome("ok", results)  # nothing can be overlooked

        found_lists = (find_overlooked_objects(member, [], lists_only=True) for member in members)
        return Outcome("ok", results, tuple(chain.from_iterable(found_lists)))

    def read_unnamed_lists(self, members: list[Object], depth: int) -> Outcome:
        """Read objects that all hold a list of results under the same unknown key."""
        is_read = self.reads_ids and not any(map(outcomes.has_error, members))
        lists = find_unnamed_lists(members) if is_read else None
        if lists is None:
            return UNPARSED
        return self.read_blocks(lists, depth)

    def read_parts(self, parts: list[Object], depth: int) -> Outcome:
        """Read the content parts of a message, as in MCP and the APIs of model vendors. A part may hold results or citations."""
        blocks: list[Any] = []
        for part in parts:
            kind = part.get("type", "text")
            if kind == "search_result":
                source = part.get("source")
                named = {"url" if "://" in source else "doc_id": source} if isinstance(source, str) else {}
                blocks.append([{**part, "source": None, **named, "type": None}])
            elif part.get("citations"):
                blocks.append(part["citations"])
            elif kind == "resource":
                blocks.append([part.get("resource")])
            elif kind == "document" and isinstance(held := part.get("document"), dict) and "data" in held:  # Cohere
                data = parse_if_json(held["data"])
                fields = data if isinstance(data, dict) else {"text": data}
                blocks.append([{"id": held.get("id"), **fields}])
            elif kind in ("resource_link", "document"):
                blocks.append([part])
            elif kind not in ("image", "audio"):
                blocks.append(part.get("text"))

        found = [self.read_value(block, depth - 1) for block in blocks]
        unread = [block for block, outcome in zip(blocks, found, strict=True) if outcome.status == "unparsed"]
        has_unread_address = any("://" in str(block) for block in unread)
        if len(found) > 1 and (has_unread_address or len(unread) == len(blocks)):
            joined = "".join(text for part in parts if isinstance(text := part.get("text"), str))
            if (whole := self.read_text(joined, depth - 1)).status != "unparsed":
                return whole  # one text that an API split into parts
        return _join_blocks(blocks, found, among_prose=True)

    def read_single_object(self, item: Object, depth: int) -> Outcome:
        """Read an object that wraps results, reports an error, or is itself a result."""
        if item.get("isError") is True or item.get("is_error") is True:
            if outcomes.is_nothing_found(result_objects.join_texts(item.get("content")) or ""):
                return EMPTY
            return ERROR
        if item.get("structuredContent"):
            outcome = self.read_value(item["structuredContent"], depth - 1)
            if outcome.status != "unparsed":
                return outcome
        if (fields := service_answers.unwrap_langchain(item)) is not item:
            return self.read_value(fields, depth - 1)

        for read_shape in service_answers.OBJECT_SHAPES.values():
            if (members := read_shape(item)) is not None:
                return self.read_list(members, depth - 1)

        if result_objects.has_identity(item) and not service_answers.is_wrapper(item) and not _wraps_results(item):
            return self.read_list([item], depth)
        if lists := service_answers.find_lists(item):
            found = [self.read_value(members, depth - 1) for members in lists]
            # If one of several lists cannot be read, its results would be missing.
            is_read = all(one.status != "unparsed" for one in found)
            outcome = outcomes.join_outcomes(found) if is_read else UNPARSED
            if outcome.status != "empty" or not outcomes.has_error(item):
                return outcome.add_overlooked_names(find_overlooked_objects(item, lists))

        is_whole = not any(find_overlooked_objects(item, []))
        if is_whole and outcomes.says_nothing_found(item):
            return EMPTY
        if outcomes.has_error(item):
            return ERROR

        only = next(iter(item.values())) if len(item) == 1 else None
        if isinstance(only, str) and only.startswith(("{", "[")):  # Dify: the tool's name and its output as JSON text
            return self.read_value(only, depth - 1)
        if is_whole:
            return EMPTY if outcomes.counts_nothing(item) else UNPARSED

        others = {key: value for key, value in item.items() if not isinstance(value, list)}
        is_doubtful = lists or outcomes.says_nothing_found(item) or outcomes.counts_nothing(others)
        if is_doubtful:
            return UNPARSED
        return self.read_unnamed_lists([item], depth)


def _wraps_results(item: dict[str, Any]) -> bool:
    """Return whether an object has no URL, title or text of its own, but objects inside that look like results."""
    keys = result_objects.make_key_plan(tuple(item)).fields
    own = any(item[key] for field in ("url", "title", "snippet") for key in keys[field] if isinstance(item[key], str))
    return not own and any(find_overlooked_objects(item, []))


def _join_blocks(blocks: list[Any], found: list[Outcome], *, among_prose: bool = False) -> Outcome:
    """Join the outcomes of an output's blocks. A block that was not read is listed as overlooked if it may hold results."""
    joined = outcomes.join_outcomes(found)
    if joined.status != "ok" or len(blocks) == 1:
        return joined
    overlooked: list[str] = []
    for number, (block, outcome) in enumerate(zip(blocks, found, strict=True), start=1):
        if block and outcome.status in ("unparsed", "unrecorded"):
            text = block.strip() if isinstance(block, str) else "["
            # Among prose, a text without an address that does not begin like JSON holds no results.
            may_be_list = text.startswith(("{", "[")) or (text and not among_prose)
            addresses = list(find_overlooked_addresses(text, []))
            overlooked += addresses or ([f"block {number} of the output"] if may_be_list else [])
    return joined.add_overlooked_names(overlooked)
