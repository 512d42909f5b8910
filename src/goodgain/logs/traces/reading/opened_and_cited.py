"""Finds the documents that a turn opened or cited, and matches them with the results of the turn."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from goodgain.files.json_text import parse_if_json
from goodgain.formats.urls import parse_url
from goodgain.logs.traces.model import UNANSWERED, Result, SearchCall, ToolCall, Turn
from goodgain.logs.traces.tool_outputs.outcomes import BETWEEN_BLOCKS, brings_no_page
from goodgain.logs.traces.tool_outputs.result_objects import normalise_key
from goodgain.logs.traces.tool_outputs.values_in_text import NOTATIONS
from goodgain.logs.traces.tools import has_answer

#: The position of a result: iteration, search and rank.
Place = tuple[int, int, int]

#: Arguments of calls, and fields of citations, that name documents, in order of preference.
_NAMES = (
    *("url", "urls", "link", "links", "uri", "href", "docid", "docids", "documentid", "documentids", "fileid"),
    *("id", "ids", "page", "source"),
)
#: Arguments whose number may be another one (a page of a document), and arguments with a position in the last results.
_DOUBTFUL, _POSITIONS = {"id", "ids", "page", "source"}, ("cursor", "index")
#: A reference of Codex to an output of its web tool. The log does not say which document this is.
_REFERENCE = re.compile(r"turn\d+[a-z]+\d+")
#: A limit against malicious logs: arguments and citations nested deeper are not read.
_MAX_DEPTH = 6

_URL = re.compile(r"https?://[^\s<>\"`|\\^{}\[\]【】「」《》，。、；：！？（）]+", re.IGNORECASE)
_AFTER_URL = ".,;:!?'*_~"
_BRACKETS = re.compile(r"\[([^\[\]]{1,1000})\]|【([^【】]{1,1000})】")
_BETWEEN_IDS = re.compile(r"[,;，；]")
_NUMBER = re.compile(r"\d+")


class Mention(NamedTuple):
    kind: str  # `open` or `cite`
    iteration: int  # the last iteration before the document was opened or cited
    name: str | None  # the id or URL; None if the document is the result at `place`
    place: Place | None = None
    failed: bool = False  # the call failed or brought nothing


class Uses(NamedTuple):
    mentions: list[Mention]
    answered: bool  # the log has a final answer
    can_open: bool | None  # the log records opened documents; None if it hides those of this turn
    unnamed: int  # how many calls opened something that the log does not name


class _Documents:
    """Looks up documents that a turn found or opened, by id or URL."""

    def __init__(self, iterations: Sequence[Sequence[SearchCall]]) -> None:
        self.iterations = iterations
        self._places: dict[str, list[Place]] = {}
        self.opened: set[str] = set()
        for iteration, searches in enumerate(iterations, start=1):
            for number, search in enumerate(searches, start=1):
                for result in search.results:
                    for name in _name_result(result):
                        self._places.setdefault(name, []).append((iteration, number, result.rank))

    def find(self, name: str, iteration: int) -> Place | None:
        """Return where the id or URL `name` was last found up to `iteration`, else where it was first found later, else None."""
        keys = [name, *list_page_keys(name)]
        places = next((self._places[key] for key in keys if key in self._places), None)
        if places is None:
            return None
        return next((place for place in reversed(places) if place[0] <= iteration), places[0])

    def is_met(self, name: str) -> bool:
        return self.find(name, 0) is not None or not self.opened.isdisjoint([name, *list_page_keys(name)])


def _name_result(result: Result) -> set[str]:
    """Return the ids of a result, its address, and keys of its page."""
    names = {result.doc_id, result.url, *(value for _, value in result.ids)}
    for address in (result.url, result.doc_id):
        if address:
            names.update(list_page_keys(address))
    return {name for name in names if name}


def list_page_keys(name: str) -> list[str]:
    """Return keys that all spellings of a URL share, the most exact first; an empty list if `name` is not a URL.

    The first key is that of the address with its anchor. The last is that of the page: opening or citing a page by another anchor
    opens or cites the page.
    """
    is_id = "/" not in name and not name.startswith("www.")  # as most names
    parsed = None if is_id else parse_url(name)
    if parsed is None or "://" not in parsed.normalised:
        return []
    page = f"page {parsed.item}"
    return [f"page {parsed.address}", page] if parsed.anchor else [page]


def read_uses(
    turn: Turn, iterations: Sequence[Sequence[SearchCall]], opens: Iterable[tuple[int, ToolCall]], *, can_open: bool
) -> Uses:
    """Read the documents that a turn opened and cited. `opens` yields (number of earlier iterations, call that opens documents)."""
    documents = _Documents(iterations)
    mentions: list[Mention] = []
    unnamed, is_hidden = 0, False
    for iteration, call in opens:
        mentions_of_call = list(_read_open(call, iteration, documents))
        mentions += mentions_of_call
        if not mentions_of_call:
            unnamed += 1
            is_hidden |= _hides_document(call)
        for mention in mentions_of_call:
            if mention.name:
                documents.opened.update([mention.name, *list_page_keys(mention.name)])

    answer = _find_answer(turn)
    for name in dict.fromkeys(_list_citations(answer or "", turn, documents)):
        place = documents.find(name, len(iterations))
        mentions.append(Mention("cite", len(iterations), None if place else name, place))

    answered = answer is not None or bool(turn.cited)
    if turn.opens_are_known is not None:
        can_open = turn.opens_are_known
    return Uses(mentions, answered, None if is_hidden else can_open, unnamed)


def _hides_document(call: ToolCall) -> bool:
    """Return whether the log hides what a call opened: the arguments are missing, or refer to an unrecorded output.

    Other calls without a name continue in the open page.
    """
    arguments = parse_if_json(call.arguments) if call.opened is None else call.opened
    return arguments in (None, "", {}, ()) or _REFERENCE.search(str(arguments)) is not None


def _find_answer(turn: Turn) -> str | None:
    """Return the text of the final answer: the log's own, else the arguments of a last call that gives the answer."""
    if turn.answer is not None or not turn.steps:
        return turn.answer
    last_calls = turn.steps[-1].calls[-1:]
    if last_calls and has_answer(last_calls[0].tool):
        return str(last_calls[0].arguments)
    return None


def _read_open(call: ToolCall, iteration: int, documents: _Documents) -> Iterator[Mention]:
    """Yield each document that a call opened once: the place among the results up to `iteration`, else the id or URL.

    A number counts only as a place: as the id of a result, or as the position in the last search before. If the call has one
    output per document, an output without a page makes only its own document fail.
    """
    # Each opened document once: its name, or its place among the results.
    opened: dict[tuple[str | None, Place | None], None] = {}
    for key, name in _list_names(_read_arguments(call), _NAMES + _POSITIONS):
        place = documents.find(str(name), iteration)
        if place is None and isinstance(name, int) and key in _POSITIONS:
            # The n-th result, from 1, of the last search before.
            searches = documents.iterations[iteration - 1] if iteration else ()
            if searches and 0 < name <= len(searches[-1].results):
                place = (iteration, len(searches), name)
        is_name = not (isinstance(name, int) and key in (*_DOUBTFUL, *_POSITIONS))
        if place is not None or (is_name and not _REFERENCE.fullmatch(str(name))):
            opened[None if place else str(name), place] = None

    outputs = [call.output] * len(opened)
    if isinstance(call.output, str):
        pages = call.output.split(BETWEEN_BLOCKS)
        if len(pages) == len(opened):
            outputs = pages
    for (name_of_unmet, place), output in zip(opened, outputs, strict=True):
        failed = call.failed or (output is not UNANSWERED and brings_no_page(output))
        yield Mention("open", iteration, name_of_unmet, place, failed)


def _read_arguments(call: ToolCall) -> Any:
    """Return what a call opens. In a text of several words, this is the value in it, else its URLs."""
    arguments = parse_if_json(call.arguments) if call.opened is None else [*call.opened]
    if not isinstance(arguments, str) or not any(map(str.isspace, arguments.strip())):
        return arguments
    for find in NOTATIONS.values():
        if value := find(arguments):
            return value[0]
    return [*_find_urls(arguments)]


def _list_names(
    value: Any, keys: Sequence[str], key: str = "", depth: int = _MAX_DEPTH
) -> Iterator[tuple[str, str | int]]:
    """Yield the documents that a value names, as (key, id or URL). A whole number under the key of a position or page is an int.

    In an object, the first of `keys` that names documents counts alone. If none does, members count that are URLs, or name a
    document in turn.
    """
    if isinstance(value, str) and (name := value.strip()):
        is_number = key in ("page", *_POSITIONS) and _NUMBER.fullmatch(name) is not None and len(name) < 10
        yield (key, int(name)) if is_number else (key, name)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield key, value
    elif isinstance(value, list) and depth:
        for member in value:
            yield from _list_names(member, keys, key, depth - 1)
    elif isinstance(value, dict) and depth:
        fields = {normalise_key(str(name)): member for name, member in value.items() if member not in (None, "")}
        for best_key in keys:
            if names := list(_list_names(fields.get(best_key), keys, best_key, depth - 1)):
                yield from names
                return

        for member in fields.values():  # a wrapper, or an argument of another name
            if isinstance(member, (dict, list)) or (isinstance(member, str) and _URL.match(member.strip())):
                for inner_key, inner_name in _list_names(member, keys, "", depth - 1):
                    if inner_key or _URL.match(str(inner_name)):
                        yield inner_key, inner_name


def _list_citations(text: str, turn: Turn, documents: _Documents) -> Iterator[str]:
    """Yield what an answer cites: structured citations, URLs in its text, and bracketed ids of documents found or opened."""
    for citation in turn.cited:
        yield from (str(name) for _, name in _list_names(citation, _NAMES))

    pages_of_question = {key for url in _find_urls(turn.user_text) for key in list_page_keys(url)}
    for url in _find_urls(text):
        # A URL of the question that the answer only repeats is not a citation.
        if pages_of_question.isdisjoint(list_page_keys(url)) or documents.is_met(url):
            yield url

    for match in _BRACKETS.finditer(text):
        for part in _BETWEEN_IDS.split(match[1] or match[2]):
            name = part.partition("†")[0].strip()
            if documents.is_met(name):
                yield name
            else:
                yield from filter(documents.is_met, _NUMBER.findall(name))


def _find_urls(text: str) -> Iterator[str]:
    """Yield the URLs in a text, without the punctuation of the sentence after them."""
    for match in _URL.finditer(text):
        url = match[0]
        while url[-1] in _AFTER_URL or (url[-1] == ")" and url.count(")") > url.count("(")):
            url = url[:-1]
        yield url
