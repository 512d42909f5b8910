"""Records of retrieval in RAG pipelines and evaluations: a question and the passages retrieved for this question.

The passages are under `ctxs`, `contexts`, `retrieved_contexts`, `search_results`, LlamaIndex's `source_nodes` or similar keys.
Each list of passages is one search and one step. In a list of texts, each text is a result. Its id may be in a list beside the
texts: `retrieved_context_ids` beside `retrieved_contexts`.

Lost: The name of the tool, and results that a cutoff or a reranker removed.
Query id: `query_id`, `question_id`, `qid` or `task_id`, else `id`.
Record: Write an id or URL for each passage. Passages without id and URL are distinguished by text.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from goodgain.errors import InputError
from goodgain.logs.traces.conversations import Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import walk_list
from goodgain.logs.traces.conversations.record_traits import QUESTIONS
from goodgain.logs.traces.expected_values import (
    expect_object,
    find_record_id,
    object_or_empty,
    objects_in,
    unexpected_value,
)
from goodgain.logs.traces.tool_outputs.key_traits import PASSAGE_KEYS
from goodgain.logs.traces.tool_outputs.overlooked_results import holds_call
from goodgain.logs.traces.tool_outputs.result_objects import normalise_keys
from goodgain.logs.traces.tools import extract_queries

#: Keys of the agent's queries, and keys of the user's question.
_SEARCHED = ("search_queries", "search_query", "searchQuery")
_ASKED = ("question", "user_input", "retrievalQuery", *QUESTIONS)
#: The keys of a record's own question. Other keys may also hold the query of a step, or describe a whole file.
_OWN = ("question", "user_input", "user_query")
#: Keys of messages, calls and spans: a log with them is of another format.
_OF_OTHERS = re.compile(
    rb'"(role|lc|tool|tool_?calls?|tool_?name|tool_(call|use)_id|function(Call)?|(trace|span)_?id|goodgain_trace)"\s*:',
    re.I,
)
_MAX_DEPTH = 6
#: A part of another log that looks like a record is a step of that log.
INSIDE = False


class _Search(NamedTuple):
    holders: tuple[dict[str, Any], ...]  # the objects around the passages
    passages: Any
    at: str
    turn: str  # the user's text in the turn with the passages; empty without a turn

    @property
    def queries(self) -> tuple[str, ...]:
        """The agent's queries beside the passages, else the question in the innermost object with one; empty if there is none."""
        own_queries = (extract_queries(self.holders[-1].get(name)) for name in _SEARCHED)
        queries = next(filter(None, own_queries), ())
        if queries:
            return queries
        questions = map(_find_question, reversed(self.holders))
        question = next(filter(None, questions), "")
        return (question,) if question else ()


def sniff(head: FileHead) -> bool:
    if head.kind not in ("json", "jsonl") or _OF_OTHERS.search(head.raw):
        return False
    key = _find_wrapper(head.value)
    records = head.records if key is None else head.value[key]
    searches_of_records = [list(_find_searches(record, "")) for record in records]
    has_question = bool(searches_of_records) and any(search.queries for search in searches_of_records[0])
    if not has_question or any(map(_find_doubt, searches_of_records)):
        return False
    return any(search.passages for searches in searches_of_records for search in searches)


def read(source: Source) -> Iterator[Trace]:
    """Yield a trace per record: each list of passages is the output of one search, which is a step."""

    def read_record(record: Any, at: str) -> Trace:
        reader = Conversation(source, expect_object(record, at))
        searches = list(_find_searches(record, at))
        if not searches:
            raise unexpected_value(at, "a question and the passages retrieved for it", record)
        if doubt := _find_doubt(searches):
            raise InputError(f"{doubt}; write a record for each question, with one list of passages for each search")

        question = _find_question(record) or searches[0].turn or " ".join(searches[0].queries)
        reader.user(question)
        for search in searches:
            if search.turn not in ("", question):
                reader.user(question := search.turn)
            reader.step()
            call = reader.call(ToolCall("retrieval", search.at, is_search=True, queries=search.queries))
            call.output = search.passages

        for place in _find_other_calls(record, at, {search.at for search in searches}):
            source.not_understood("a call beside the passages", place, "a list of passages for each search")
        return reader.trace(at, query_id=find_record_id(record))

    key = _find_wrapper(source.head.value)
    if key is None:
        yield from source.traces(read_record, is_one=lambda members: False)
        return
    for value, at in source.documents():
        for record, place in walk_list(value, key, at):
            yield from source.read_numbered(read_record, record, place)


def _find_wrapper(value: Any) -> str | None:
    """Return the key under which an object holds records with passages. Return None if no key or several keys fit.

    Turns of a conversation are not records. An object that has its own question is one record, so the result is None.
    """
    if not isinstance(value, dict) or _find_passages(value) or _find_question(value, _OWN):
        return None
    names = _OWN if _find_question(value) else _ASKED
    records = (
        (key, record) for key, held in value.items() for record in objects_in(held) if _find_question(record, names)
    )
    keys: list[str] = list(dict.fromkeys(key for key, record in records if any(_find_searches(record, ""))))
    is_wrapper = len(keys) == 1 and "turn" not in keys[0].lower()
    return keys[0] if is_wrapper else None


def _find_searches(
    value: Any, at: str, holders: tuple[dict[str, Any], ...] = (), turn: str = "", depth: int = _MAX_DEPTH
) -> Iterator[_Search]:
    """Yield each list of passages in a value as a search. Of the empty lists in an object, only one is a search, and only if
    the object has no other list.

    `holders` are the objects around the value; `turn` is the question of the turn around it.
    """
    keys: list[str] = []
    if isinstance(value, dict):
        holders, keys = (*holders, value), _find_passages(value)
        for key in [key for key in keys if value[key]] or keys[:1]:
            passages = _add_ids(_read_passages(value[key]), value.get(f"{key.removesuffix('s')}_ids"))
            yield _Search(holders, passages, f"{at}/{key}", turn)

    for name, held in _list_members(value) if depth else ():
        if name not in keys:
            is_turn = isinstance(held, dict) and "turn" in at.rpartition("/")[2].lower()
            question = _find_question(held) if is_turn else turn
            yield from _find_searches(held, f"{at}/{name}", holders, question, depth - 1)


def _list_members(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return (key, value) of an object's fields or of a list's members; nothing for other values."""
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list):
        return enumerate(value)
    return ()


def _find_other_calls(value: Any, at: str, read: set[str]) -> Iterator[str]:
    """Yield the places of values with a call that are not, and do not hold, the lists of passages at the places `read`."""
    for name, held in _list_members(value):
        place = f"{at}/{name}"
        if any(search_place.startswith(f"{place}/") for search_place in read):
            yield from _find_other_calls(held, place, read)
        elif place not in read and holds_call(held):
            yield place


def _find_doubt(searches: list[_Search]) -> str:
    """Return the reason why the searches of a record may not belong to one query, or an empty text if no reason exists."""
    places = [search.at.rpartition("/")[0] + "/" for search in searches]
    for search, place in zip(searches, places, strict=True):
        if sum(other_place.startswith(place) for other_place in places) > 1:
            return f"{search.at}: may repeat other passages of the same question"
    record = searches[0].holders[0] if searches else {}
    if _find_question(record, _OWN):
        return ""  # the record's own question holds for all searches
    names = _OWN if _find_question(record) else _ASKED

    questions = set()
    for search in searches:
        if not search.turn:
            texts = (_find_question(holder, names) for holder in reversed(search.holders[1:]))
            questions.add(next(filter(None, texts), ""))
    if len(questions) > 1:
        return f"{searches[0].at}: the object holds several questions"
    return ""


def _find_passages(value: dict[str, Any]) -> list[str]:
    """Return the keys of an object under which passages stand, the best key first."""
    names = {name: key for key, name in reversed(normalise_keys(tuple(value)))}
    held = (names[name] for name in PASSAGE_KEYS if name in names)
    return [key for key in held if isinstance(_read_passages(value[key]), list)]


def _read_passages(held: Any) -> Any:
    """Take the value out of an object with only one field. Then convert a list of texts to a list of results."""
    if isinstance(held, dict) and len(held) == 1:  # Bedrock's retrievalResults
        held = next(iter(held.values()))
    members = held if isinstance(held, list) else []
    texts = list(map(_take_text, members))
    are_texts = all(isinstance(text, str) for text in texts)
    if are_texts and any(" " in text for text in texts):
        return [{"snippet": text} for text in texts]
    return held


def _take_text(passage: Any) -> Any:
    """Return the text of a passage that is an object with only a text. Return any other passage unchanged."""
    if isinstance(passage, dict) and passage.keys() == {"text"}:
        return passage["text"]
    return passage


def _add_ids(passages: Any, ids: Any) -> Any:
    """Add the ids in a list beside the passages, such as RAGAS's `retrieved_context_ids`, to passages that are texts."""
    if not isinstance(passages, list) or not isinstance(ids, list) or len(passages) != len(ids):
        return passages
    texts = [passage.get("snippet") if isinstance(passage, dict) else passage for passage in passages]
    has_only_texts = all(isinstance(text, str) for text in texts)
    has_other_fields = any(isinstance(passage, dict) and len(passage) > 1 for passage in passages)
    if not has_only_texts or has_other_fields:
        return passages
    return [{"doc_id": doc_id, "snippet": text} for doc_id, text in zip(ids, texts, strict=True)]


def _find_question(value: dict[str, Any], names: tuple[str, ...] = _ASKED) -> str:
    """Return the first question under one of the keys `names`, in the object or in its `inputRecord`. Empty if there is none."""
    inner = object_or_empty(value.get("inputRecord"))
    values = (record.get(name) for record in (value, inner) for name in names)
    texts = map(_read_question, values)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _read_question(value: Any) -> Any:
    """Return the text of a question that is a message. Return any other value unchanged."""
    if isinstance(value, dict):
        return message_text(value.get("content") or value.get("text"))
    return value
