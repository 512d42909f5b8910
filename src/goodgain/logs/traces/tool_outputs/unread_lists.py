"""Finds lists of results anywhere in a record of a log: beside the messages, in metadata, in the answer of an API.

The readers of formats know where their calls hold results. This walk finds the lists elsewhere, so that no list is passed
over in silence. It visits each list and object once.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.logs.dedup.document_types import snake_case
from goodgain.logs.traces.model import Result
from goodgain.logs.traces.tool_outputs.overlooked_results import NO_RESULTS
from goodgain.logs.traces.tool_outputs.result_objects import Object, normalise_key, read_object
from goodgain.logs.traces.tool_outputs.service_answers import OBJECT_SHAPES
from goodgain.logs.traces.tool_outputs.text_lists import is_url

#: Keys of passages that a pipeline retrieved, in order of preference, in lower case and without punctuation. Under these
#: keys, texts are results too.
PASSAGE_KEYS = (
    *("ctxs", "retrievedcontexts", "retrievedpassages", "retrieveddocuments", "retrieveddocs", "retrievedchunks"),
    *("retrievednodes", "retrievalresults", "retrievalcontext", "contexts", "searchresults", "sourcedocuments"),
)
#: Keys with metadata of a message or record.
NOTE_KEYS = ("metadata", "meta", "extra", "extras", "additional_kwargs", "response_metadata")
#: Keys of the citations of an answer.
CITATION_KEYS = {"citations", "citation", "citedsources", "citationsources"}
#: Keys of values that hold no results of a search: settings, examples, what the user attached, parts of messages, calls
#: (which the formats read) and judgments.
_PASSED_OVER = NO_RESULTS | {
    *("system", "systemprompt", "systeminstruction", "systeminstructions", "instructions", "config"),
    *("tools", "functions", "tooldefinitions", "toolchoice", "toolconfig", "availabletools", "toolschemas", "mcpservers"),
    *("example", "examples", "fewshot", "fewshotexamples", "demos", "demonstrations"),
    *("attachment", "attachments", "experimentalattachments", "files", "uploadedfiles", "fileids"),
    *("content", "contents", "parts", "text", "toolcalls", "functioncall", "executedtools", "arguments", "args"),
    *("annotations", "assessments", "feedback", "scores", "score", "evaluations", "grades", "ratings", "logprobs"),
}
#: Words of keys that name judged documents, such as `gold_documents` and `reference_contexts`.
_JUDGED_WORDS = {
    *("gold", "golden", "expected", "target", "truth", "groundtruth", "relevant", "irrelevant", "positive", "positives"),
    *("negative", "negatives", "qrels", "label", "labels", "oracle", "supporting", "reference", "judged", "ideal"),
}
#: Words of keys whose values were searched for.
_SEARCHED_WORDS = {
    *("search", "searched", "searches", "retrieve", "retrieved", "retrieves", "retriever", "retrieval"),
}
#: Last words of keys with a question or query, and whole keys.
_QUESTION_WORDS, _QUESTION_KEYS = {"question", "query", "questions", "queries"}, {"q", "input", "user_input"}
#: Keys of messages, steps, calls, tools and requests: objects with such a key are not results.
_NOT_OF_RESULTS = {
    *("role", "tool_calls", "toolCalls", "function", "parameters", "input_schema", "inputSchema", "arguments", "args"),
    *("tool_name", "tool_call_id", "toolCallId", "call_id", "tool_use_id", "action", "step", "thought", "observation"),
    *("event", "method", "query", "queries", "messages", "parts"),
}
#: Longer lists are judged by so many members. Longer texts are not read as JSON.
_MOST_JUDGED, _LONGEST_JSON = 64, 1_000_000
_LONGEST_KEY = 200


class ResultList(NamedTuple):
    """A list of results in a record."""

    key: str  # the key that holds the list
    at: str  # the place of the list
    value: Any  # the list, or the object that holds it in columns
    names: tuple[str, ...]  # the URLs and ids of the results
    is_sure: bool  # at least half of the members have a URL, or an id and more; otherwise an id or a title
    was_searched: bool  # a key around the list says so
    question: str  # the question or query beside the list

    @property
    def is_citations(self) -> bool:
        return normalise_key(self.key) in CITATION_KEYS


def find_result_lists(holder: Any, at: str, read: Collection[int], *, is_whole: bool) -> Iterator[ResultList]:
    """Yield the lists of results in an object of a log.

    Args:
        holder: a record, a message or an event.
        read: the `id()` of values that the format reads, such as messages and outputs of calls.
        is_whole: look at everything in the object; otherwise only at its own fields and its metadata.
    """
    todo: list[tuple[Any, _Way]] = [(holder, _Way(at))]
    while todo:
        value, way = todo.pop()
        if isinstance(value, str):
            value = parse_if_json(value)
        if isinstance(value, dict):
            if way.key and is_whole and (rows := _read_columns(value)) is not None:
                if (found := _judge(value, rows, way)) is not None:
                    yield found
                    continue
            todo += [(inner, way.into(key, value)) for key, inner in _select_fields(value, read, way, is_whole=is_whole)]
        elif isinstance(value, list):
            if way.key and (found := _judge(value, value, way)) is not None:
                yield found
            elif is_whole or way.depth < 2:
                inner_way = way.deeper()
                todo += [
                    (member, inner_way.member(number))
                    for number, member in enumerate(value)
                    if isinstance(member, (dict, list)) and id(member) not in read
                ]


class _Way(NamedTuple):
    """The way from the holder to a value."""

    at: str | tuple[Any, str]  # the place of the holder; or the place of the value around, and the last key
    key: str = ""
    depth: int = 0
    question: str = ""
    was_searched: bool = False
    is_judged: bool = False

    def into(self, key: str, holder: Object) -> "_Way":
        traits = _read_key(key)
        return _Way(
            (self.at, key), key, self.depth + 1, _find_question(holder) or self.question,
            self.was_searched or traits.was_searched, self.is_judged or traits.is_judged,
        )  # fmt: skip

    def deeper(self) -> "_Way":
        return self._replace(depth=self.depth + 1)

    def member(self, number: int) -> "_Way":
        return self._replace(at=(self.at, str(number)))

    @property
    def place(self) -> str:
        keys: list[str] = []
        at = self.at
        while isinstance(at, tuple):
            at, key = at
            keys.append(key)
        return "/".join([at, *reversed(keys)])


class _KeyTraits(NamedTuple):
    is_passed_over: bool
    is_judged: bool
    was_searched: bool
    is_question: bool


@lru_cache(maxsize=4096)
def _read_key(key: str) -> _KeyTraits:
    words = snake_case(key).split("_") if len(key) <= _LONGEST_KEY else [""]
    is_question = words[-1] in _QUESTION_WORDS or "_".join(words) in _QUESTION_KEYS
    is_passed_over = normalise_key(key[:_LONGEST_KEY]) in _PASSED_OVER
    is_judged = not _JUDGED_WORDS.isdisjoint(words)
    return _KeyTraits(is_passed_over, is_judged, not _SEARCHED_WORDS.isdisjoint(words), is_question)


def _select_fields(value: Object, read: Collection[int], way: _Way, *, is_whole: bool) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, (dict, list)):
            is_open = is_whole or way.depth < 1 or way.key in NOTE_KEYS or way.depth < 3 and way.was_searched
        else:
            is_open = is_whole and isinstance(inner, str) and inner[:1] in ("[", "{") and len(inner) <= _LONGEST_JSON
        if is_open and inner and id(inner) not in read and not _read_key(key).is_passed_over:
            yield key, inner


def _find_question(holder: Object) -> str:
    for key, value in holder.items():
        if isinstance(value, (str, list)) and value and _read_key(key).is_question:
            texts = [value] if isinstance(value, str) else [text for text in value if isinstance(text, str)]
            if question := "; ".join(filter(str.strip, texts)):
                return question
    return ""


def _read_columns(value: Object) -> list[Any] | None:
    """Return the results in an object with parallel columns, or keyed by URL."""
    rows = next((rows for read in OBJECT_SHAPES.values() if (rows := read(value)) is not None), None)
    if rows and all(isinstance(row, list) for row in rows):  # one list per query
        return [member for row in rows for member in row]
    return rows


def _judge(value: Any, members: list[Any], way: _Way) -> ResultList | None:
    some = members[:_MOST_JUDGED]
    if all(isinstance(member, str) for member in some):
        is_list_of_urls = bool(some) and 2 * sum(map(is_url, some)) >= len(some)
        is_list_of_texts = normalise_key(way.key) in PASSAGE_KEYS and any(" " in text for text in some)
        if not (is_list_of_urls or is_list_of_texts):
            return None
        rows = [{"snippet": text} for text in members] if is_list_of_texts and not is_list_of_urls else value
        names = tuple(filter(is_url, members))
        return ResultList(
            way.key, way.place, rows, names, not way.is_judged, way.was_searched and not way.is_judged, way.question
        )
    objects = [member for member in some if isinstance(member, dict)]
    if 2 * len(objects) < len(some) or any(not _NOT_OF_RESULTS.isdisjoint(one) for one in objects):
        return None
    results = [_read_member(member) for member in objects]
    sure = sum(result is not None and _is_sure(result) for result in results)
    perhaps = sum(result is not None and (result.doc_id or result.url or result.title) is not None for result in results)
    if 2 * perhaps < len(some):
        return None
    is_sure = 2 * sure >= len(some) and not way.is_judged
    named = [_read_member(member) for member in members if isinstance(member, dict)] if is_sure else []
    names = tuple(name for result in named if result and (name := result.url or result.doc_id))
    return ResultList(
        way.key, way.place, value, names, is_sure, way.was_searched and not way.is_judged, way.question
    )


def _read_member(member: Object) -> Result | None:
    try:
        return read_object(member, 1, "")
    except InputError:
        return None


def _is_sure(result: Result) -> bool:
    has_more = (result.title or result.snippet or result.score) is not None
    return (result.url is not None and is_url(result.url)) or (result.doc_id is not None and has_more)
