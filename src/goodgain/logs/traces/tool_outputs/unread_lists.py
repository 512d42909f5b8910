"""Finds lists of results anywhere in a record of a log: beside the messages, in metadata, in the answer of an API.

The readers of formats know where their calls hold results. This walk finds the lists elsewhere, so that no list is passed
over in silence. It visits each list and object once.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, NamedTuple

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.model import Result
from goodgain.logs.traces.tool_outputs.key_traits import OUTPUT_KEYS, PASSAGE_KEYS, KeyTraits, read_key
from goodgain.logs.traces.tool_outputs.overlooked_results import CALL_TYPE
from goodgain.logs.traces.tool_outputs.readers import read_output
from goodgain.logs.traces.tool_outputs.result_objects import BARE_ID, Object, make_key_plan, normalise_key, read_object
from goodgain.logs.traces.tool_outputs.service_answers import HIT_SHAPES, OBJECT_SHAPES
from goodgain.logs.traces.tool_outputs.text_lists import is_url

#: Keys with metadata of a message or record.
NOTE_KEYS = {"metadata", "meta", "extra", "extras", "additional_kwargs", "response_metadata"}
#: Fields of messages that hold no results apart from calls and their outputs, which the formats read.
PLAIN_FIELDS = {"role", "content", "name", "tool_calls", "tool_call_id"}
#: What smolagents writes around the text that an agent's code printed.
_AROUND_PRINTED = re.compile(r"\A\s*Execution logs:\n|\nLast output from code snippet:.*\Z", re.DOTALL)
#: Keys of messages, steps, calls, tools and requests: objects with such a key are not results.
_NOT_OF_RESULTS = {
    *("role", "tool_calls", "toolCalls", "function", "parameters", "input_schema", "inputSchema", "arguments", "args"),
    *("tool_name", "tool_call_id", "toolCallId", "call_id", "tool_use_id", "action", "step", "thought", "observation"),
    *("event", "method", "messages", "parts", "input", "inputs", "outputs"),
}
#: Keys of requests, and of results that keep their query.
_QUERIES = {"query", "queries"}
#: Keys of the answer to a question, in records of an evaluation.
_ANSWERS = {"answer", "response", "prediction", "generated_answer", "model_answer"}
#: Keys that only documents of LangChain have.
_DOCUMENT_KEYS = {"page_content", "pageContent"}
#: Types of messages.
_SPEAKERS = {"human", "ai", "system", "tool", "function", "developer", "user", "assistant", "message", "remove"}
#: Keys of the names of files.
_FILE_KEYS = {
    *("file_name", "fileName", "filename", "document_name", "documentName", "source", "file_path", "filePath"),
    *("source_file", "sourceFile"),
}
#: What the ids of results name, apart from documents.
_ITEMS = {"chunk", "passage", "node", "file", "page", "paper", "article", "record", "source", "vector", "point"}
#: Keys of objects that hold results in columns or classes.
_COLUMN_KEYS = {"ids", "data", "objects", "documents"}
#: Limits against malicious logs: how many members decide whether a list holds results, how many results are named, how many
#: fields of an object are looked at for a question, and the length of texts, and of texts that are read as JSON.
_MOST_JUDGED, _MOST_NAMED, _MOST_FIELDS = 64, 1000, 200
_LONGEST_TEXT, _LONGEST_JSON = 20_000, 1_000_000


#: What is looked at: the fields of an object and its metadata; everything but parts of messages and calls; or everything.
Scope = Literal["fields", "record", "everything"]


class ResultList(NamedTuple):
    """A list of results in a record."""

    key: str  # the key that holds the list
    at: str  # the place of the list
    value: Any  # the list, or the object that holds it in columns
    names: tuple[str, ...]  # the URLs and ids of the first results
    is_sure: bool  # at least half of the members have a URL, or an id and more; otherwise an id or a title
    was_searched: bool  # a key around the list says so
    question: str  # the question or query beside the list
    is_judged: bool  # a key around the list says so: `gold_documents`
    is_citations: bool  # a key around the list says so


def find_result_lists(holder: Any, at: str, read: Collection[int], scope: Scope) -> Iterator[ResultList]:
    """Yield the lists of results in an object of a log.

    Args:
        holder: a record, a message or an event.
        read: the `id()` of values that the format reads, such as messages and outputs of calls.
        scope: what is looked at.
    """
    if scope == "fields" and not _may_hold_lists(holder, 3):
        return

    todo: list[_Visit] = [(holder, (None, at), _Way())]
    while todo:
        value, place, way = todo.pop()
        if isinstance(value, str):
            value = parse_if_json(value)

        results = _judge_value(value, place, way, scope)
        if results is not None:
            yield results
        may_hold_more = (
            isinstance(value, list) and scope == "everything" and results is not None and not results.is_sure
        )
        if results is None or may_hold_more:
            todo += _list_inner_values(value, place, way, read, scope)


def _judge_value(value: Any, place: "_Place", way: "_Way", scope: Scope) -> ResultList | None:
    """Return a value as a list of results, or None: a text in a layout, an object in columns, or a list of objects or texts."""
    if isinstance(value, str):
        return _judge_text(value, place, way, scope)
    if isinstance(value, dict):
        rows = _read_columns(value) if way.key and scope != "fields" else None
        if rows:
            return _judge(value, rows, place, way)
        return None
    if not isinstance(value, list):
        return None

    results = _judge(value, value, place, way) if _may_name_results(way.key) else None
    if results is None and scope == "everything":
        results = _judge_column(value, place, way)
    return results


def _list_inner_values(value: Any, place: "_Place", way: "_Way", read: Collection[int], scope: Scope) -> "list[_Visit]":
    """Return the values inside a value that the walk visits next, in reverse order."""
    if isinstance(value, dict):
        fields = list(_select_fields(value, read, way, scope))
        question = (find_question_in(value) if fields else "") or way.question
        return [(inner, (place, key), way.into(key, traits, question)) for key, inner, traits in reversed(fields)]
    if not isinstance(value, list) or scope == "fields":
        return []

    inside = way.deeper()
    visits: list[_Visit] = []
    for number in range(len(value) - 1, -1, -1):
        member = value[number]
        is_open = bool(member) and isinstance(member, (dict, list)) and id(member) not in read
        if is_open and not (scope == "record" and _is_plain_message(member)):
            visits.append((member, (place, number), inside))
    return visits


def _may_name_results(key: str) -> bool:
    """Return whether a list under a key may be one of results. Lists of questions, steps and claims are none."""
    traits = read_key(key)
    return bool(key) and not traits.is_holder and not traits.is_question


def _may_hold_lists(value: Any, depth: int) -> bool:
    """Return whether a value has a list of objects that may be results, or of URLs. Most records of chats have none."""
    if isinstance(value, dict):
        if depth == 0:
            return False
        return any(isinstance(inner, (dict, list)) and _may_hold_lists(inner, depth - 1) for inner in value.values())
    first = value[0] if value else None
    if isinstance(first, dict):
        return _may_be_result(tuple(first))
    return isinstance(first, str) and "://" in first


def _is_plain_message(member: Any) -> bool:
    return isinstance(member, dict) and "role" in member and member.keys() <= PLAIN_FIELDS


@lru_cache(maxsize=1024)
def _may_be_result(keys: tuple[str, ...]) -> bool:
    """Return whether an object with these keys may be a result: no key is of a message, and one names a document or its text."""
    if _has_key_of_conversation(keys):
        return False
    plan = make_key_plan(keys)
    has_ids = any(is_id for _, _, is_id in plan.others)
    return bool(plan.steps or plan.containers or plan.wrapped or has_ids or not _FILE_KEYS.isdisjoint(keys))


@lru_cache(maxsize=1024)
def _has_key_of_conversation(keys: tuple[str, ...]) -> bool:
    """Return whether a key is of a message, a step, a call, a tool or a request.

    A query is of a request, unless a URL and a title or text stand beside it: some results keep their query. A question beside
    its answer is of a record, unless a score shows that both were retrieved.
    """
    is_answered = "question" in keys and not _ANSWERS.isdisjoint(keys) and "score" not in keys
    if is_answered or not _NOT_OF_RESULTS.isdisjoint(keys):
        return True
    fields = make_key_plan(keys).fields
    is_page = fields["url"] and (fields["title"] or fields["snippet"])
    return not is_page and not _QUERIES.isdisjoint(keys)


#: The place of the value around, or None, and the last key.
_Place = tuple[Any, str | int]


class _Way(NamedTuple):
    """What the keys and objects around a value say about it."""

    key: str = ""
    depth: int = 0
    question: str = ""
    was_searched: bool = False
    is_judged: bool = False
    is_cited: bool = False

    def into(self, key: str, traits: KeyTraits, question: str) -> "_Way":
        """Return the way to the value under a key. What an outer key says holds for all values inside."""
        if key.isdigit() and self.key:  # a row of a column, as pandas writes tables
            key = self.key
        was_searched = self.was_searched or traits.was_searched
        is_judged = self.is_judged or traits.is_judged
        is_cited = traits.is_cited or (self.is_cited and not traits.was_searched)
        return _Way(key, self.depth + 1, question, was_searched, is_judged, is_cited)

    def deeper(self) -> "_Way":
        return self._replace(depth=self.depth + 1)


#: A value to look at, its place, and what is around it.
_Visit = tuple[Any, _Place, _Way]


def _write_place(place: _Place) -> str:
    """Write a place, a chain of (place around, key), as the keys from the outermost, with slashes between."""
    keys: list[str] = []
    around: _Place | None = place
    while around is not None:
        around, key = around
        keys.append(str(key))
    return "/".join(reversed(keys))


def _select_fields(
    value: Object, read: Collection[int], way: _Way, scope: Scope
) -> Iterator[tuple[str, Any, KeyTraits]]:
    """Yield (key, value, traits of the key) of the fields to look into. With the scope `fields`, only the outer ones and notes."""
    is_whole = scope != "fields"
    for key, inner in value.items():
        if isinstance(inner, (dict, list)):
            is_open = is_whole or way.depth < 1 or way.key in NOTE_KEYS or (way.depth < 3 and way.was_searched)
        else:
            is_open = is_whole and isinstance(inner, str) and _may_hold_results(key, inner, scope)
        if not is_open or not inner or id(inner) in read:
            continue
        traits = read_key(key)
        if not (traits.is_passed_over or (traits.is_part and scope != "everything")):
            yield key, inner, traits


def _may_hold_results(key: str, text: str, scope: Scope) -> bool:
    """Return whether a text may be a list of results: it begins like JSON, or its key says that it was searched for."""
    if text[:1] in ("[", "{"):
        return len(text) <= _LONGEST_JSON
    return "\n" in text and _is_of_search(key, scope, was_searched=read_key(key).was_searched)


def _is_of_search(key: str, scope: Scope, *, was_searched: bool) -> bool:
    """Return whether a text under a key may be the results of a search. If everything is looked at, outputs may be too."""
    name = normalise_key(key)
    return was_searched or name in PASSAGE_KEYS or (scope == "everything" and name in OUTPUT_KEYS)


def _judge_text(text: str, place: _Place, way: _Way, scope: Scope) -> ResultList | None:
    """Return a text in a layout of results, or in Python's notation, under a key that says that it was searched for."""
    if len(text) > _LONGEST_TEXT or not _is_of_search(way.key, scope, was_searched=way.was_searched):
        return None
    try:
        results = read_output(_AROUND_PRINTED.sub("", text), _write_place(place)).results
    except InputError:
        return None
    names = [name for result in results if (name := result.url or result.doc_id)]
    if names:
        return _make_list(text, names, place, way, is_sure=True)
    return None


def find_question_in(holder: Object) -> str:
    """Return the text of the first field whose key names a question or query.

    Join several texts with `; `. Empty if there is none.
    """
    for key, value in islice(holder.items(), _MOST_FIELDS):
        if isinstance(value, (str, list)) and value and read_key(key).is_question:
            texts = [value] if isinstance(value, str) else [text for text in value if isinstance(text, str)]
            if question := "; ".join(filter(str.strip, texts)):
                return question
    return ""


def _read_columns(value: Object) -> list[Any] | None:
    """Return the results in an object with parallel columns, or keyed by URL."""
    if not value or not ("://" in next(iter(value)) or not _COLUMN_KEYS.isdisjoint(value)):
        return None
    rows = next((rows for read in OBJECT_SHAPES.values() if (rows := read(value)) is not None), None)
    if rows and all(isinstance(row, list) for row in rows):  # one list per query
        return [member for row in rows for member in row]
    return rows


def _judge(value: Any, members: list[Any], place: _Place, way: _Way) -> ResultList | None:
    """Return the list at the end of a way if it looks like a list of results, else None."""
    judged = members[:_MOST_JUDGED]
    if not judged or not (isinstance(judged[0], (str, dict)) or isinstance(judged[-1], (str, dict))):
        return None
    if all(isinstance(member, str) for member in judged):
        return _judge_texts(members, place, way)

    objects = _unwrap_hits(list(filter(_is_object, judged)))
    may_be_results = [member for member in objects if _may_be_result(tuple(member))]
    if 2 * len(may_be_results) < len(judged) or any(map(_is_of_conversation, objects)):
        return None

    results = list(map(_read_member, objects))
    holds_passages = way.was_searched or normalise_key(way.key) in PASSAGE_KEYS
    named = [member for member, result in zip(objects, results, strict=True) if _names_document(member, result)]
    texts = [result for result in results if result and result.snippet] if holds_passages else []
    if 2 * max(len(named), len(texts)) < len(judged):
        return None

    pairs = zip(objects, results, strict=True)
    sure = sum(result is not None and _is_sure(member, result) for member, result in pairs)
    is_of_one_search = len({str(member.get("query")) for member in objects}) == 1
    is_sure = is_of_one_search and (holds_passages or 2 * sure >= len(judged))
    named_objects = list(filter(_is_object, members[:_MOST_NAMED])) if is_sure else []
    read = map(_read_member, _unwrap_hits(named_objects))
    names = [name for result in read if result and (name := result.url or result.doc_id)]
    return _make_list(value, names, place, way, is_sure=is_sure)


def _unwrap_hits(objects: list[Object]) -> list[Object]:
    """Return the results in the hits of a known service, whose texts and addresses are in inner objects."""
    if not objects:
        return objects
    shaped = (read_hits(objects) for read_hits in HIT_SHAPES.values())
    return next((hits for hits in shaped if hits is not None), objects)


def _judge_texts(texts: list[str], place: _Place, way: _Way) -> ResultList | None:
    """Return a list of URLs, of ids under a key that says so, or of passages."""
    judged = texts[:_MOST_JUDGED]
    if 2 * sum(map(is_url, judged)) >= len(judged):
        return _make_list(texts, list(filter(is_url, texts[:_MOST_NAMED])), place, way, is_sure=True)
    if way.was_searched and all(map(BARE_ID.fullmatch, judged)):
        return _make_list(texts, texts[:_MOST_NAMED], place, way, is_sure=True)
    if normalise_key(way.key) in PASSAGE_KEYS and any(" " in text for text in judged):
        return _make_list([{"snippet": text} for text in texts], [], place, way, is_sure=True)
    return None


def _judge_column(members: list[Any], place: _Place, way: _Way) -> ResultList | None:
    """Return ids under a key such as `retrieved_doc_ids`, or the passages of several questions in one column of a table."""
    if members and all(isinstance(member, list) for member in members):
        texts = [text for member in members for text in member]
        is_texts = all(isinstance(text, str) for text in texts[:_MOST_JUDGED])
        if texts and is_texts:
            return _judge_texts(texts, place, way)
        return None

    judged = members[:_MOST_JUDGED]
    are_ids = bool(judged) and all(isinstance(name, str) and name and " " not in name for name in judged)
    is_context = (
        bool(way.question)
        and place[1] == way.key
        and normalise_key(way.key) == "context"
        and any(map(_is_passage, judged))
    )
    if is_context:
        return _make_list([{"snippet": text} for text in members], [], place, way, is_sure=True)
    if way.was_searched and are_ids and read_key(way.key).has_ids:
        return _make_list(members, members[:_MOST_NAMED], place, way, is_sure=True)
    return None


def _is_passage(text: Any) -> bool:
    return isinstance(text, str) and " " in text


def _make_list(value: Any, names: list[str], place: _Place, way: _Way, *, is_sure: bool) -> ResultList:
    """Return a list of results. Judged documents, such as gold documents, are never sure to be results of a search."""
    was_searched = way.was_searched and not way.is_judged
    is_sure = is_sure and not way.is_judged
    return ResultList(
        way.key,
        _write_place(place),
        value,
        tuple(names),
        is_sure,
        was_searched,
        way.question,
        way.is_judged,
        way.is_cited,
    )


def _is_object(member: Any) -> bool:
    return isinstance(member, dict)


def _read_member(member: Object) -> Result | None:
    try:
        return read_object(member, 1, "")
    except InputError:
        return None


def _names_document(member: Object, result: Result | None) -> bool:
    """Return whether an object has an id, a URL, a title, or the name of a file, or is a document of LangChain."""
    if result and (result.doc_id or result.url or result.title or _ids(result)):
        return True
    if not _DOCUMENT_KEYS.isdisjoint(member):
        return True
    held = (member, member.get("metadata"))
    return any(isinstance(holder, dict) and not _FILE_KEYS.isdisjoint(holder) for holder in held)


def _ids(result: Result) -> list[str]:
    """Return the ids of passages and files, such as `chunk_id`. Ids of users and messages do not count."""
    return [value for name, value in result.ids if name.removesuffix("_id") in _ITEMS]


def _is_of_conversation(member: Object) -> bool:
    """Return whether an object is a message, a step, a call, a tool or a request."""
    names = member.get("id") if member.get("lc") == 1 else member.get("type")
    kind = names[-1] if isinstance(names, list) and names else names
    is_call = isinstance(kind, str) and kind != "tool_reference" and CALL_TYPE.search(kind) is not None
    is_kind = isinstance(kind, str) and (is_call or kind in _SPEAKERS or "Message" in kind)
    return bool(is_kind) or _has_key_of_conversation(tuple(member))


def _is_sure(member: Object, result: Result) -> bool:
    """Return whether an object has a URL, or an id and a title, text or score, or is a document of LangChain.

    An id and a name may be of anything.
    """
    has_id = result.doc_id is not None or bool(_ids(result))
    has_title = result.title is not None and result.title != member.get("name")
    has_more = has_title or result.snippet is not None or result.score is not None
    is_document = not _DOCUMENT_KEYS.isdisjoint(member)
    return (result.url is not None and is_url(result.url)) or (has_id and has_more) or is_document
