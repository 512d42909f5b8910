"""Finds the documents that a turn opened or cited, and matches them with the results of the turn."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from goodgain.files.json_text import parse_if_json
from goodgain.formats.urls import parse_url
from goodgain.logs.traces.model import UNANSWERED, SearchCall, ToolCall, Turn
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
                    names = {result.doc_id, result.url, *(value for _, value in result.ids)}
                    names |= {key for name in (result.url, result.doc_id) if name for key in list_page_keys(name)}
                    for name in filter(None, names):
                        self._places.setdefault(name, []).append((iteration, number, result.rank))

    def find(self, name: str, iteration: int) -> Place | None:
        """Return where the id or URL `name` was last found up to `iteration`, else where it was first found later, else None."""
        keys = [name, *list_page_keys(name)]
        places = next((self._places[key] for key in keys if key in self._places), [])
        return next((place for place in reversed(places) if place[0] <= iteration), places[0] if places else None)

    def is_met(self, name: str) -> bool:
        return self.find(name, 0) is not None or not self.opened.isdisjoint([name, *list_page_keys(name)])


def list_page_keys(name: str) -> list[str]:
    """Return keys that all spellings of a URL share, the most exact first; an empty list if `name` is not a URL.

    The first key is that of the address with its anchor. The last is that of the page: opening or citing a page by another anchor
    opens or cites the page.
    """
    parsed = parse_url(name) if "/" in name or name.startswith("www.") else None  # most names are ids
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
        named = list(_read_open(call, iteration, documents))
        if not named:
            unnamed += 1
            # The log hides the document if the arguments are missing or refer to an unrecorded output. Other calls without
            # a name continue in the open page.
            asked = parse_if_json(call.arguments) if call.opened is None else call.opened
            is_hidden |= asked in (None, "", {}, ()) or _REFERENCE.search(str(asked)) is not None
        mentions += named
        documents.opened |= {key for one in named if one.name for key in (one.name, *list_page_keys(one.name))}
    text, last = turn.answer, turn.steps[-1].calls[-1:] if turn.steps else []
    if text is None and last and has_answer(last[0].tool):
        text = str(last[0].arguments)
    for name in dict.fromkeys(_list_citations(text or "", turn, documents)):
        place = documents.find(name, len(iterations))
        mentions.append(Mention("cite", len(iterations), None if place else name, place))
    known = can_open if turn.opens_are_known is None else turn.opens_are_known
    return Uses(mentions, text is not None or bool(turn.cited), None if is_hidden else known, unnamed)


def _read_open(call: ToolCall, iteration: int, documents: _Documents) -> Iterator[Mention]:
    asked = parse_if_json(call.arguments) if call.opened is None else [*call.opened]
    if isinstance(asked, str) and any(map(str.isspace, asked.strip())):  # a text: the value in it, else its URLs
        value = next(filter(None, (find(asked) for find in NOTATIONS.values())), None)
        asked = [*_find_urls(asked)] if value is None else value[0]
    found: dict[tuple[str | None, Place | None], None] = {}
    for key, name in _list_names(asked, _NAMES + _POSITIONS):
        place = documents.find(str(name), iteration)
        if place is None and isinstance(name, int) and key in _POSITIONS:
            # The n-th result, from 1, of the last search before.
            searches = documents.iterations[iteration - 1] if iteration else ()
            is_rank = searches and 0 < name <= len(searches[-1].results)
            place = (iteration, len(searches), name) if is_rank else None
        is_name = not (isinstance(name, int) and key in (*_DOUBTFUL, *_POSITIONS))
        if place is not None or (is_name and not _REFERENCE.fullmatch(str(name))):
            found[None if place else str(name), place] = None
    pages = call.output.split(BETWEEN_BLOCKS) if isinstance(call.output, str) else []
    outputs = pages if len(pages) == len(found) else [call.output] * len(found)
    for (unmet, place), output in zip(found, outputs, strict=True):
        failed = call.failed or (output is not UNANSWERED and brings_no_page(output))
        yield Mention("open", iteration, unmet, place, failed)


def _list_names(
    value: Any, keys: Sequence[str], key: str = "", depth: int = _MAX_DEPTH
) -> Iterator[tuple[str, str | int]]:
    """Yield the documents that a value names, as (key, id or URL). In an object without any of `keys`, only URLs count."""
    if isinstance(value, str) and (name := value.strip()):
        is_number = key in ("page", *_POSITIONS) and _NUMBER.fullmatch(name) is not None and len(name) < 10
        yield (key, int(name)) if is_number else (key, name)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield key, value
    elif isinstance(value, list) and depth:
        for member in value:
            yield from _list_names(member, keys, key, depth - 1)
    elif isinstance(value, dict) and depth:
        named = {normalise_key(str(name)): held for name, held in value.items() if held not in (None, "")}
        for best in keys:
            if found := list(_list_names(named.get(best), keys, best, depth - 1)):
                yield from found
                return
        for held in named.values():  # a wrapper, or an argument of another name
            if isinstance(held, (dict, list)) or (isinstance(held, str) and _URL.match(held.strip())):
                yield from (one for one in _list_names(held, keys, "", depth - 1) if one[0] or _URL.match(str(one[1])))


def _list_citations(text: str, turn: Turn, documents: _Documents) -> Iterator[str]:
    """Yield what an answer cites: structured citations, URLs in its text, and bracketed ids of documents found or opened."""
    for cited in turn.cited:
        yield from (str(name) for _, name in _list_names(cited, _NAMES))
    pages_of_question = {key for url in _find_urls(turn.user_text) for key in list_page_keys(url)}
    for url in _find_urls(text):
        # A URL of the question that the answer only repeats is not a citation.
        if pages_of_question.isdisjoint(list_page_keys(url)) or documents.is_met(url):
            yield url
    for found in _BRACKETS.finditer(text):
        for part in _BETWEEN_IDS.split(found[1] or found[2]):
            name = part.partition("†")[0].strip()
            yield from filter(documents.is_met, [name] if documents.is_met(name) else _NUMBER.findall(name))


def _find_urls(text: str) -> Iterator[str]:
    for found in _URL.finditer(text):
        url = found[0]
        while url[-1] in _AFTER_URL or (url[-1] == ")" and url.count(")") > url.count("(")):
            url = url[:-1]
        yield url
