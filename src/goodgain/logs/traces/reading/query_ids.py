"""Chooses query ids, checks that they are unique in each run, and joins equal queries of several systems."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import FrameRows, RowSource, check_rows, lacks
from goodgain.files.escaping import check_name
from goodgain.files.opening import make_path
from goodgain.files.table_reading import cast_texts, read_frame, read_table
from goodgain.logs.traces.conversations.record_objects import ABSENT, follow_path
from goodgain.logs.traces.expected_values import (
    CONVERSATION_IDS,
    PART_IDS,
    QUERY_IDS,
    RECORD_IDS,
    REPEATS,
    describe,
    find_id,
    format_place,
)
from goodgain.logs.traces.input.logs_and_archives import base_name
from goodgain.logs.traces.model import Trace
from goodgain.logs.traces.reading.queries_and_costs import Query
from goodgain.logs.traces.reading.read_options import QueryIds, ReadOptions
from goodgain.logs.traces.reading_summary import RunName, Summary
from goodgain.options import spell

Value = TypeVar("Value")
Rows = TypeVar("Rows", pl.DataFrame, pl.LazyFrame)

EARLIER = RunName("the earlier queries")

_TYPES = dict.fromkeys(("query_id", "text", "log"), pl.String)
#: Values of `query_id=` that name a field, and are not the id of one query.
_ID_FIELDS = {*QUERY_IDS, *RECORD_IDS, *CONVERSATION_IDS, *PART_IDS, "id", "uuid", "question"}
#: Characters of a question that a message quotes, and bytes of its key.
_QUOTED, _KEY_SIZE = 80, 16


class Question(NamedTuple):
    """What a user asked in one turn."""

    text: str = ""  # the beginning of the text, for messages
    key: bytes = b""  # equal for equal texts, whatever their case, Unicode form and white space; empty without a text
    conversation: bytes = b""  # the key of all user texts up to this turn: two turns "yes" may be two queries

    @classmethod
    def of(cls, text: str) -> Question:
        return cls.of_turns([text])[0]

    @classmethod
    def of_turns(cls, texts: Iterable[str]) -> list[Question]:
        """Return the question of each turn of a conversation. `texts` has what the user wrote in each turn."""
        questions = []
        said = hashlib.blake2b(digest_size=_KEY_SIZE)
        separator = b""
        for text in texts:
            text = text if text.isascii() else unicodedata.normalize("NFKC", text)
            text = " ".join(text.casefold().split())
            if not text:
                questions.append(cls())
                continue
            encoded = text.encode("utf-8", "surrogatepass")
            said.update(separator + encoded)
            separator = b"\n"
            key = hashlib.blake2b(encoded, digest_size=_KEY_SIZE).digest()
            questions.append(cls(text[:_QUOTED], key, said.digest()))
        return questions


class NamedQuery(NamedTuple):
    """A query of one run, with its id, the source of the id, its place in the log, and its question."""

    run: RunName
    query_id: str
    at: str
    #: own, ignored (the log's own, although `query_id=` was given), path, constant, function, name or table.
    source: str = "own"
    question: Question = Question()
    repeat: str | None = None  # the run that the record names, if `run` has no replicate

    @property
    def has_given_id(self) -> bool:
        """Whether the caller gave the id. A given id is usually kept, even if queries with different questions share the id."""
        return self.source in ("path", "constant", "function", "table")


def read_query_ids(source: Any) -> QueryIds:
    """Read a table of query ids (.csv, .tsv, .jsonl, .parquet or a data frame) with a column query_id, and a column text or log."""
    frame, rows = _read_frame(source, spell("query_ids"))
    ids: dict[bytes | str, str] = {}
    given = [name for name in ("text", "log") if name in frame.columns]
    if "query_id" not in frame.columns or not given:
        there = ", ".join(frame.columns) or "none"
        raise InputError(f"{rows.label}: needs a header with query_id and text, or query_id and log; found {there}")
    is_given = nw.any_horizontal(*(~nw.col(name).is_null() for name in given), ignore_nulls=True)
    problems = [(lacks("query_id")[0] & is_given, "has no query_id")]
    for name in given:
        without = nw.col(name).str.strip_chars() == ""
        problems.append((without if len(given) == 2 else without | nw.col(name).is_null(), f"has no {name}"))
    check_rows(nw.from_native(frame, eager_only=True), rows, problems)
    for name in given:
        for row, (query_id, value) in enumerate(frame.select("query_id", name).iter_rows()):
            if value is None:
                continue
            # Logs are looked up without the ending of the file.
            keys: set[bytes | str] = {Question.of(value).key} if name == "text" else {value, base_name(Path(value))}
            if any(ids.setdefault(key, query_id) != query_id for key in keys):
                raise InputError(f"{rows.locate(row)}: the {name} {value[:_QUOTED]!r} has two ids; keep one")
    return ids


def read_earlier_queries(source: Any) -> dict[str, Question]:
    """Read the table that an earlier conversion wrote as its output `queries=`. Return the question of each query id."""
    frame, rows = _read_frame(source, spell("earlier_queries"))
    if not {"query_id", "text"} <= set(frame.columns):
        raise InputError(f"{rows.label}: needs the columns query_id and text, as written by {spell('queries')}")
    found: dict[str, Question] = {}
    for query_id, text in frame.select("query_id", "text").drop_nulls().iter_rows():
        question = Question.of(text)
        if (other := found.setdefault(query_id, question)).key != question.key:
            both = f"{other.text!r} and {question.text!r}"
            raise InputError(f"{rows.label}: the query id {query_id!r} has two questions, {both}; keep one")
    return found


def _read_frame(source: Any, argument: str) -> tuple[pl.DataFrame, RowSource]:
    rows: RowSource = FrameRows(argument)
    if isinstance(source, (str, os.PathLike)):
        frame, rows, _ = read_table(make_path(source, argument), _TYPES)
    else:
        frame = read_frame(source, argument)
    names = [name for name in _TYPES if name in frame.columns]
    return (cast_texts(frame.select(names), names, rows.label) if names else frame), rows


class RepeatedQueryError(InputError):
    """Raised if two records share a query id but name different runs: they are repeated runs of one query, not two queries."""


def read_repeats(read: Callable[[ReadOptions], Value], options: ReadOptions) -> Value:
    """Return `read(options)`. If this raises RepeatedQueryError, read again with the option `repeats=True`."""
    try:
        return read(options)
    except RepeatedQueryError:  # else `attempt` and `epoch` are a retry count and a time
        return read(replace(options, repeats=True))


class QueryNames:
    """The queries read so far, by run and id. A query in `earlier` (an earlier conversion) usually gives equal queries its id."""

    def __init__(self, earlier: Mapping[str, Question] | None = None, earlier_at: str = "") -> None:
        self._runs: dict[RunName, dict[str, NamedQuery]] = {}
        self._first: dict[str, str] = {}  # the place of the first query of each source
        #: Old id -> new id of equal queries of several runs; filled by `join`.
        self.new_ids: dict[str, str] = {}
        for query_id, question in (earlier or {}).items():
            self.add(NamedQuery(EARLIER, query_id, earlier_at, "own", question))

    def add(self, query: NamedQuery) -> None:
        earlier = self._runs.setdefault(query.run, {}).setdefault(query.query_id, query)
        if earlier is not query:
            system, replicate = query.run
            of = f" of system {system!r}" if system is not None else ""
            of += f", replicate {replicate!r}," if replicate is not None else ""
            are_runs = None not in (query.repeat, earlier.repeat) and query.repeat != earlier.repeat
            raise (RepeatedQueryError if are_runs else InputError)(
                f"{format_place(query.at)}: the query id {query.query_id!r}{of} is also in {format_place(earlier.at)}. Number the "
                f"runs of a query in a field repeat; for other queries, name the field of their ids: {spell('query_id', 'id')}"
            )
        self._first.setdefault(query.source, query.at)
        if "path" in self._first and "constant" in self._first:
            without, having = format_place(self._first["constant"]), format_place(self._first["path"])
            raise InputError(
                f"{without}: lacks the field that {spell('query_id')} names, but {having} has it; add the field to every trace, or "
                "use a function"
            )

    def join(self, options: ReadOptions, summary: Summary) -> None:
        """After all queries are read, join equal queries of different runs: fill `new_ids`, and count the joins in `summary`.

        Raise InputError if no trace has the field that `query_id=` names.

        Queries of different runs are equal if they share an id, or a question that no run asks twice. Equal queries get the
        id that the caller gave, else the id of the first run.
        """
        queries = [query for of_run in self._runs.values() for query in of_run.values()]
        is_field = isinstance(options.query_id, str) and _names_field(options.query_id)
        if is_field and "ignored" in self._first and "path" not in self._first:
            raise _make_field_error(self._first["ignored"], str(options.query_id))
        for query in queries:
            if query.source == "ignored":
                summary.count("own_ids", query.query_id)
            if options.query_ids is not None and query.source != "table" and query.run != EARLIER:
                summary.count_unnamed(query.query_id)
        self.new_ids = _join_queries(queries, summary) if len(self._runs) > 1 else {}


def name_run(trace: Trace, system: str | None, options: ReadOptions) -> RunName:
    """Return the system and replicate of a trace. The system is the argument `system`, else the option `tag`, else `trace.tag`."""
    system = system or (options.tag if options.tag is not None else trace.tag)
    return RunName(system, trace.run or find_id(trace.record, REPEATS if options.repeats else REPEATS[:1]))


def name_queries(trace: Trace, queries: list[Query], run: RunName, options: ReadOptions, name: str) -> list[NamedQuery]:
    """Return the queries of a trace with their ids.

    The id comes from the first of these sources that has one: the table `query_ids=`; the field that `query_id=` names; the
    trace itself; a constant or function `query_id=`; the name of the file (with a number if the file has several traces). With
    turns='all', the number of the turn is appended, unless the turn has its own id.
    """
    of_turns = Question.of_turns(turn.user_text if turn.asked is None else turn.asked for turn in trace.turns)
    questions = {turn.index: question for turn, question in zip(trace.turns, of_turns, strict=True)}
    named, repeat = [], None if run.replicate is not None else find_id(trace.record, REPEATS)
    for query in queries:
        question = questions[query.turn.index]
        query_id, source = _choose_query_id(trace, query, question, options, name)
        named.append(NamedQuery(run, query_id, trace.at, source, question, repeat))
    return named


def name_log(trace: Trace, name: str) -> str:
    """Return a name for a trace without an id: the file's name, with a number if the file has several traces."""
    return name if trace.number is None else f"{name}-{trace.number}"


def find_id_of_log(trace: Trace, table: QueryIds, name: str) -> str | None:
    """Return a log's id in `table`, or None. Look up, in this order: the trace's id, numbered file name, file name, session."""
    names = (trace.query_id, name_log(trace, name), name, trace.session_id)
    return next((table[known] for known in names if known is not None and known in table), None)


def _choose_query_id(trace: Trace, query: Query, asked: Question, options: ReadOptions, name: str) -> tuple[str, str]:
    log = name_log(trace, name)
    number = f"_{query.turn.index}" if options.turns == "all" else ""
    if (table := options.query_ids) is not None:
        if (query_id := table.get(asked.key) or table.get(query.own_id or "")) is not None:
            return query_id, "table"
        if (of_log := find_id_of_log(trace, table, name)) is not None:
            return of_log + number, "table"
    own, chosen = trace.query_id if query.own_id is None else query.own_id, options.query_id
    has_field = isinstance(chosen, str) and follow_path(trace.record, chosen) is not ABSENT
    if own is not None and not (has_field and own == trace.query_id):
        return own + number * (query.own_id is None), "own" if chosen in (None, own) else "ignored"
    if chosen is not None:
        query_id, source = _apply_query_id_option(trace, options)
        return query_id + number, source
    return log + number, "name"


def _apply_query_id_option(trace: Trace, options: ReadOptions) -> tuple[str, str]:
    chosen = options.query_id
    if callable(chosen):
        try:
            value = chosen(trace)
        except Exception as error:
            failure = f"{spell('query_id')} failed with {type(error).__name__} ({error})"
            raise InputError(f"{format_place(trace.at)}: {failure}") from error
        return _check_id(value, trace, f"{spell('query_id')} gave"), "function"
    chosen = str(chosen)
    value = follow_path(trace.record, chosen)
    if value is not ABSENT:
        return _check_id(value, trace, f"{chosen} holds"), "path"
    if _names_field(chosen):
        raise _make_field_error(trace.at, chosen)
    return check_name(chosen, "query"), "constant"


def _names_field(chosen: str) -> bool:
    return chosen.startswith("/") or chosen.rpartition(".")[2] in _ID_FIELDS


def _make_field_error(at: str, chosen: str) -> InputError:
    return InputError(f"{format_place(at)}: has no field {chosen} for query ids; give another, or a function")


def _check_id(value: Any, trace: Trace, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise InputError(f"{format_place(trace.at)}: {what} {describe(value)} as query id; give text or a whole number")
    return check_name(str(value), "query")


def _join_queries(queries: list[NamedQuery], summary: Summary) -> dict[str, str]:
    _check_equal_ids(queries)
    ids = _join_by_question(queries)
    _check_new_ids(queries, ids)
    several_systems = len({query.run.system for query in queries}) > 1
    summary.joined_runs = "systems" if several_systems else "runs"
    found_by: dict[str, set[str | None]] = {}
    for query in queries:
        of = query.run.system if several_systems else query.run.replicate
        found_by.setdefault(ids.get(query.query_id, query.query_id), set()).add(of)
    renamed = set(ids.values())
    for query_id, found in found_by.items():
        if found != {EARLIER.system}:
            summary.joined_to_none += len(found) < 2
            summary.joined_by_question += len(found) > 1 and query_id in renamed
            summary.joined_by_id += len(found) > 1 and query_id not in renamed
    return ids


def _check_equal_ids(queries: list[NamedQuery]) -> None:
    first: dict[str, NamedQuery] = {}
    for query in queries:
        if query.question.key and not query.has_given_id:
            query_id, other = query.query_id, first.setdefault(query.query_id, query)
            if other.question.key != query.question.key and other.run.system != query.run.system:
                raise InputError(
                    f"the query id {query_id!r} has two questions: {other.question.text!r} in {format_place(other.at)}, and "
                    f"{query.question.text!r} in {format_place(query.at)}; give each query its id with {spell('query_ids')}, "
                    f"or {spell('query_id')}"
                )


def _join_by_question(queries: list[NamedQuery]) -> dict[str, str]:
    """Map ids to new ids: queries with the same question get the first id that the caller gave one of them, else the first id."""
    by_question: dict[bytes, list[NamedQuery]] = {}
    questions: dict[str, set[bytes]] = {}
    for query in queries:
        if key := query.question.conversation:
            by_question.setdefault(key, []).append(query)
            questions.setdefault(query.query_id, set()).add(key)
    ids: dict[str, str] = {}
    for asked in by_question.values():
        # Simulated users ask different questions in replicates. An id with several questions joins queries only by id.
        same = [query for query in asked if len(questions[query.query_id]) == 1]
        is_asked_twice = len({query.run for query in asked}) < len(asked)
        if is_asked_twice or len(same) < 2:
            continue
        kept = next((query for query in same if query.has_given_id), same[0]).query_id
        ids |= {query.query_id: kept for query in same if query.query_id != kept and not query.has_given_id}
    return ids


def _check_new_ids(queries: list[NamedQuery], ids: Mapping[str, str]) -> None:
    kept: dict[tuple[RunName, str], NamedQuery] = {}
    for query in queries:
        joined = ids.get(query.query_id, query.query_id)
        other = kept.setdefault((query.run, joined), query)
        if other is not query:
            raise InputError(
                f"{format_place(query.at)}: the queries {other.query_id!r} and {query.query_id!r} of one system would both get "
                f"the id {joined!r}, because each shares an id or a question with queries of other systems or runs; "
                f"give each query its id with {spell('query_ids')}"
            )


def rename_queries(rows: Rows, ids: Mapping[str, str]) -> Rows:
    return rows.with_columns(pl.col("query_id").replace(ids)) if ids else rows
