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
        conversation = hashlib.blake2b(digest_size=_KEY_SIZE)
        separator = b""
        for text in texts:
            if not text.isascii():
                text = unicodedata.normalize("NFKC", text)
            text = " ".join(text.casefold().split())
            if not text:
                questions.append(cls())
                continue

            encoded = text.encode("utf-8", "surrogatepass")
            conversation.update(separator + encoded)
            separator = b"\n"
            key = hashlib.blake2b(encoded, digest_size=_KEY_SIZE).digest()
            questions.append(cls(text[:_QUOTED], key, conversation.digest()))
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
    columns = [name for name in ("text", "log") if name in frame.columns]
    if "query_id" not in frame.columns or not columns:
        header = ", ".join(frame.columns) or "none"
        raise InputError(f"{rows.label}: needs a header with query_id and text, or query_id and log; found {header}")

    has_value = nw.any_horizontal(*(~nw.col(name).is_null() for name in columns), ignore_nulls=True)
    problems = [(lacks("query_id")[0] & has_value, "has no query_id")]
    for name in columns:
        is_blank = nw.col(name).str.strip_chars() == ""
        if len(columns) == 1:
            is_blank |= nw.col(name).is_null()
        problems.append((is_blank, f"has no {name}"))
    check_rows(nw.from_native(frame, eager_only=True), rows, problems)

    ids: dict[bytes | str, str] = {}
    for name in columns:
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
    questions: dict[str, Question] = {}
    for query_id, text in frame.select("query_id", "text").drop_nulls().iter_rows():
        question = Question.of(text)
        first = questions.setdefault(query_id, question)
        if first.key != question.key:
            texts = f"{first.text!r} and {question.text!r}"
            raise InputError(f"{rows.label}: the query id {query_id!r} has two questions, {texts}; keep one")
    return questions


def _read_frame(source: Any, argument: str) -> tuple[pl.DataFrame, RowSource]:
    """Return those of the columns query_id, text and log that a file or data frame has, as text; and where the rows stand."""
    rows: RowSource = FrameRows(argument)
    if isinstance(source, (str, os.PathLike)):
        frame, rows, _ = read_table(make_path(source, argument), _TYPES)
    else:
        frame = read_frame(source, argument)
    names = [name for name in _TYPES if name in frame.columns]
    if names:
        frame = cast_texts(frame.select(names), names, rows.label)
    return frame, rows


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
        """Note a query. Raise an InputError if its run has the id already, or if only some traces have the field of ids."""
        earlier = self._runs.setdefault(query.run, {}).setdefault(query.query_id, query)
        if earlier is not query:
            raise _make_repeated_error(query, earlier)

        self._first.setdefault(query.source, query.at)
        if "path" in self._first and "constant" in self._first:
            place_without = format_place(self._first["constant"])
            place_with = format_place(self._first["path"])
            raise InputError(
                f"{place_without}: lacks the field that {spell('query_id')} names, but {place_with} has it; add the field to "
                "every trace, or use a function"
            )

    def join(self, options: ReadOptions, summary: Summary) -> None:
        """After all queries are read, join equal queries of different runs: fill `new_ids`, and count the joins in `summary`.

        Raise InputError if no trace has the field that `query_id=` names.

        Queries of different runs are equal if they share an id, or a question that no run asks twice. Equal queries get the
        id that the caller gave, else the id of the first run.
        """
        queries = [query for queries_of_run in self._runs.values() for query in queries_of_run.values()]
        is_field = isinstance(options.query_id, str) and _names_field(options.query_id)
        if is_field and "ignored" in self._first and "path" not in self._first:
            raise _make_field_error(self._first["ignored"], str(options.query_id))
        for query in queries:
            if query.source == "ignored":
                summary.count("own_ids", query.query_id)
            if options.query_ids is not None and query.source != "table" and query.run != EARLIER:
                summary.count_unnamed(query.query_id)
        self.new_ids = _join_queries(queries, summary) if len(self._runs) > 1 else {}


def _make_repeated_error(query: NamedQuery, earlier: NamedQuery) -> InputError:
    """Return the error of two queries of one run with one id."""
    system, replicate = query.run
    name = f"the query id {query.query_id!r}"
    if system is not None:
        name += f" of system {system!r}"
    if replicate is not None:
        name += f", replicate {replicate!r},"

    message = (
        f"{format_place(query.at)}: {name} is also in {format_place(earlier.at)}. Number the "
        f"runs of a query in a field repeat; for other queries, name the field of their ids: {spell('query_id', 'id')}"
    )
    if None not in (query.repeat, earlier.repeat) and query.repeat != earlier.repeat:
        return RepeatedQueryError(message)
    return InputError(message)


def name_run(trace: Trace, system: str | None, options: ReadOptions) -> RunName:
    """Return the system and replicate of a trace. The system is the argument `system`, else the option `tag`, else `trace.tag`."""
    if not system:
        system = trace.tag if options.tag is None else options.tag
    fields = REPEATS if options.repeats else REPEATS[:1]
    return RunName(system, trace.run or find_id(trace.record, fields))


def name_queries(trace: Trace, queries: list[Query], run: RunName, options: ReadOptions, name: str) -> list[NamedQuery]:
    """Return the queries of a trace with their ids.

    The id comes from the first of these sources that has one: the table `query_ids=`; the field that `query_id=` names; the
    trace itself; a constant or function `query_id=`; the name of the file (with a number if the file has several traces). With
    turns='all', the number of the turn is appended, unless the turn has its own id.
    """
    texts = [turn.user_text if turn.asked is None else turn.asked for turn in trace.turns]
    indices = [turn.index for turn in trace.turns]
    question_of = dict(zip(indices, Question.of_turns(texts), strict=True))
    repeat = find_id(trace.record, REPEATS) if run.replicate is None else None

    named_queries = []
    for query in queries:
        question = question_of[query.turn.index]
        query_id, source = _choose_query_id(trace, query, question, options, name)
        named_queries.append(NamedQuery(run, query_id, trace.at, source, question, repeat))
    return named_queries


def name_log(trace: Trace, name: str) -> str:
    """Return a name for a trace without an id: the file's name, with a number if the file has several traces."""
    return name if trace.number is None else f"{name}-{trace.number}"


def find_id_of_log(trace: Trace, table: QueryIds, name: str) -> str | None:
    """Return a log's id in `table`, or None. Look up, in this order: the trace's id, numbered file name, file name, session."""
    names = (trace.query_id, name_log(trace, name), name, trace.session_id)
    return next((table[key] for key in names if key is not None and key in table), None)


def _choose_query_id(
    trace: Trace, query: Query, question: Question, options: ReadOptions, name: str
) -> tuple[str, str]:
    """Return the id of a query, and its source as in `NamedQuery`."""
    number = f"_{query.turn.index}" if options.turns == "all" else ""
    table = options.query_ids
    if table is not None:
        query_id = table.get(question.key) or table.get(query.own_id or "")
        if query_id is not None:
            return query_id, "table"
        id_of_log = find_id_of_log(trace, table, name)
        if id_of_log is not None:
            return id_of_log + number, "table"

    option = options.query_id
    own_id = trace.query_id if query.own_id is None else query.own_id
    has_field = isinstance(option, str) and follow_path(trace.record, option) is not ABSENT
    if own_id is not None and not (has_field and own_id == trace.query_id):
        source = "own" if option in (None, own_id) else "ignored"
        return (own_id + number if query.own_id is None else own_id), source

    if option is not None:
        id_of_trace, source = _apply_query_id_option(trace, options)
        return id_of_trace + number, source
    return name_log(trace, name) + number, "name"


def _apply_query_id_option(trace: Trace, options: ReadOptions) -> tuple[str, str]:
    """Return the id that `query_id=` gives a trace, and its source: a function, a field, or the option itself as a constant."""
    option = options.query_id
    if callable(option):
        try:
            value = option(trace)
        except Exception as error:
            failure = f"{spell('query_id')} failed with {type(error).__name__} ({error})"
            raise InputError(f"{format_place(trace.at)}: {failure}") from error
        return _check_id(value, trace, f"{spell('query_id')} gave"), "function"

    path = str(option)
    value = follow_path(trace.record, path)
    if value is not ABSENT:
        return _check_id(value, trace, f"{path} holds"), "path"
    if _names_field(path):
        raise _make_field_error(trace.at, path)
    return check_name(path, "query"), "constant"


def _names_field(text: str) -> bool:
    return text.startswith("/") or text.rpartition(".")[2] in _ID_FIELDS


def _make_field_error(at: str, path: str) -> InputError:
    return InputError(f"{format_place(at)}: has no field {path} for query ids; give another, or a function")


def _check_id(value: Any, trace: Trace, source: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise InputError(
            f"{format_place(trace.at)}: {source} {describe(value)} as query id; give text or a whole number"
        )
    return check_name(str(value), "query")


def _join_queries(queries: list[NamedQuery], summary: Summary) -> dict[str, str]:
    """Return old id -> new id for equal queries of several runs. Count queries that are joined by question, by id, or not at all.

    The counts are of systems that share a query or, if there is one system, of its replicates.
    """
    _check_equal_ids(queries)
    ids = _join_by_question(queries)
    _check_new_ids(queries, ids)

    has_several_systems = len({query.run.system for query in queries}) > 1
    summary.joined_runs = "systems" if has_several_systems else "runs"
    runs_of_query: dict[str, set[str | None]] = {}
    for query in queries:
        query_id = ids.get(query.query_id, query.query_id)
        run = query.run.system if has_several_systems else query.run.replicate
        runs_of_query.setdefault(query_id, set()).add(run)

    new_ids = set(ids.values())
    for query_id, runs in runs_of_query.items():
        if runs == {EARLIER.system}:
            continue
        if len(runs) < 2:
            summary.joined_to_none += 1
        elif query_id in new_ids:
            summary.joined_by_question += 1
        else:
            summary.joined_by_id += 1
    return ids


def _check_equal_ids(queries: list[NamedQuery]) -> None:
    """Raise an InputError if two systems use one id for two questions, unless the caller gave the id."""
    first_of_id: dict[str, NamedQuery] = {}
    for query in queries:
        if query.question.key and not query.has_given_id:
            first = first_of_id.setdefault(query.query_id, query)
            if first.question.key != query.question.key and first.run.system != query.run.system:
                raise InputError(
                    f"the query id {query.query_id!r} has two questions: {first.question.text!r} in {format_place(first.at)}, and "
                    f"{query.question.text!r} in {format_place(query.at)}; give each query its id with {spell('query_ids')}, "
                    f"or {spell('query_id')}"
                )


def _join_by_question(queries: list[NamedQuery]) -> dict[str, str]:
    """Map ids to new ids: queries with the same question get the first id that the caller gave one of them, else the first id."""
    queries_of_question: dict[bytes, list[NamedQuery]] = {}
    questions_of_id: dict[str, set[bytes]] = {}
    for query in queries:
        if key := query.question.conversation:
            queries_of_question.setdefault(key, []).append(query)
            questions_of_id.setdefault(query.query_id, set()).add(key)

    ids: dict[str, str] = {}
    for equal_queries in queries_of_question.values():
        # Simulated users ask different questions in replicates. An id with several questions joins queries only by id.
        joinable = [query for query in equal_queries if len(questions_of_id[query.query_id]) == 1]
        runs = {query.run for query in equal_queries}
        is_asked_twice = len(runs) < len(equal_queries)
        if is_asked_twice or len(joinable) < 2:
            continue

        new_id = next((query for query in joinable if query.has_given_id), joinable[0]).query_id
        for query in joinable:
            if query.query_id != new_id and not query.has_given_id:
                ids[query.query_id] = new_id
    return ids


def _check_new_ids(queries: list[NamedQuery], ids: Mapping[str, str]) -> None:
    """Raise an InputError if two queries of one run would have the same id after renaming."""
    first_of_id: dict[tuple[RunName, str], NamedQuery] = {}
    for query in queries:
        new_id = ids.get(query.query_id, query.query_id)
        first = first_of_id.setdefault((query.run, new_id), query)
        if first is not query:
            raise InputError(
                f"{format_place(query.at)}: the queries {first.query_id!r} and {query.query_id!r} of one system would both get "
                f"the id {new_id!r}, because each shares an id or a question with queries of other systems or runs; "
                f"give each query its id with {spell('query_ids')}"
            )


def rename_queries(rows: Rows, ids: Mapping[str, str]) -> Rows:
    return rows.with_columns(pl.col("query_id").replace(ids)) if ids else rows
