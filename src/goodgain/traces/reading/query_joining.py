"""Finds which queries of several systems are the same: by their ids, or by what users asked."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import FrameRows, RowSource, check_rows, lacks
from goodgain.files.opening import make_path
from goodgain.files.table_reading import cast_texts, read_frame, read_table
from goodgain.traces.expected_values import format_place
from goodgain.traces.input.logs import base_name
from goodgain.traces.reading_summary import RunName, Summary

Rows = TypeVar("Rows", pl.DataFrame, pl.LazyFrame)

#: The ids that a table gives to queries: by the key of their question, or by the name of their log.
QueryIds = Mapping[bytes | str, str]
#: Stands for the system of queries that an earlier conversion wrote.
EARLIER = RunName("the earlier queries")

_TYPES = dict.fromkeys(("query_id", "text", "log"), pl.String)

#: Characters of a question that a message quotes.
_QUOTED = 80

#: Bytes of the key of a question.
_KEY_SIZE = 16


class Question(NamedTuple):
    """What a user asked in one turn.

    Attributes:
        text: the beginning of the turn's text, for messages; empty where the log has none.
        key: the same for the same text, whatever its case, form of Unicode and white space; empty where there is none.
        conversation: the key of all that the user said up to this turn: a "yes" in two conversations is not one query.
    """

    text: str = ""
    key: bytes = b""
    conversation: bytes = b""

    @classmethod
    def of(cls, text: str) -> Question:
        """Return the question that one text alone asks."""
        return cls.of_turns([text])[0]

    @classmethod
    def of_turns(cls, texts: Iterable[str]) -> list[Question]:
        """Return the question of each turn of a conversation, by what the user said in it."""
        questions = []
        said = hashlib.blake2b(digest_size=_KEY_SIZE)
        separator = b""
        for text in map(_collapse, texts):
            if not text:
                questions.append(cls())
                continue
            encoded = text.encode("utf-8", "surrogatepass")
            said.update(separator + encoded)
            separator = b"\n"
            key = hashlib.blake2b(encoded, digest_size=_KEY_SIZE).digest()
            questions.append(cls(text[:_QUOTED], key, said.digest()))
        return questions


def _collapse(text: str) -> str:
    """Return a text without differences of white space, case and form of Unicode."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


class NamedQuery(NamedTuple):
    """A query of one run, with its id, where the id came from, its place, and its question.

    `source` is own, ignored (the log's own, although `query_id=` was given), path, constant, function, name or table.
    """

    run: RunName
    query_id: str
    at: str
    source: str = "own"
    question: Question = Question()

    @property
    def is_decided(self) -> bool:
        """Whether the caller gave this id: it is neither changed nor doubted."""
        return self.source in ("path", "constant", "function", "table")


def read_query_ids(source: Any) -> QueryIds:
    """Read a table of query_id and text, or of query_id and log: a file .csv, .tsv, .jsonl, .parquet, or a data frame.

    Raises:
        InputError: the table cannot be read, lacks a column or a value, or gives two ids to one text or log.
    """
    frame, rows = _read_frame(source, "query_ids=")
    ids: dict[bytes | str, str] = {}
    given = [name for name in ("text", "log") if name in frame.columns]
    if "query_id" not in frame.columns or not given:
        raise InputError(
            f"{rows.label}: needs a header with query_id and text, or query_id and log; it has {', '.join(frame.columns) or 'none'}"
        )
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
            # q1.json names the log q1, whose file the reader knows without its ending.
            keys: set[bytes | str] = {Question.of(value).key} if name == "text" else {value, base_name(Path(value))}
            if any(ids.setdefault(key, query_id) != query_id for key in keys):
                raise InputError(f"{rows.locate(row)}: the {name} {value[:_QUOTED]!r} has two ids; keep one")
    return ids


def read_earlier_queries(source: Any) -> dict[str, Question]:
    """Read the ids and questions of an earlier conversion, which `queries=` wrote.

    Raises:
        InputError: they cannot be read, lack a column, or have two questions for one id.
    """
    frame, rows = _read_frame(source, "earlier_queries=")
    if not {"query_id", "text"} <= set(frame.columns):
        raise InputError(f"{rows.label}: needs the columns query_id and text, as --queries (queries=) writes them")
    found: dict[str, Question] = {}
    for query_id, text in frame.select("query_id", "text").drop_nulls().iter_rows():
        question = Question.of(text)
        if found.setdefault(query_id, question).key != question.key:
            raise InputError(
                f"{rows.label}: the query id {query_id!r} has two questions, {found[query_id].text!r} and {question.text!r}; "
                "keep one"
            )
    return found


def _read_frame(source: Any, argument: str) -> tuple[pl.DataFrame, RowSource]:
    """Return a table as a frame of texts, and how errors name its rows."""
    rows: RowSource = FrameRows(argument)
    if isinstance(source, (str, os.PathLike)):
        frame, rows, _ = read_table(make_path(source, argument), _TYPES)
    else:
        frame = read_frame(source, argument)
    names = [name for name in _TYPES if name in frame.columns]
    return (cast_texts(frame.select(names), names, rows.label) if names else frame), rows


def join_queries(named: Iterable[NamedQuery], summary: Summary) -> dict[str, str]:
    """Return the new ids of queries of several runs that are the same, by their own ids, and count them.

    The first run keeps its ids. Queries with one id are one query. So are queries of different runs with one question,
    but not where a run has the question twice.

    Raises:
        InputError: a query of two systems has one id and two questions, or joining by question would give one run two
            queries of one id.
    """
    runs: dict[RunName, dict[str, NamedQuery]] = {}
    for query in named:
        runs.setdefault(query.run, {})[query.query_id] = query
    if len(runs) < 2:
        return {}
    _check_equal_ids(runs)
    ids = _join_by_question(runs)
    _check_new_ids(runs, ids)
    several_systems = len({run.system for run in runs}) > 1
    summary.joined_runs = "systems" if several_systems else "runs"
    found_by: dict[str, set[str | None]] = {}
    for run, queries in runs.items():
        for query_id in queries:
            of = run.system if several_systems else run.replicate
            found_by.setdefault(ids.get(query_id, query_id), set()).add(of)
    renamed = set(ids.values())
    for query_id, found in found_by.items():
        if found != {EARLIER.system}:
            summary.joined_to_none += len(found) < 2
            summary.joined_by_question += len(found) > 1 and query_id in renamed
            summary.joined_by_id += len(found) > 1 and query_id not in renamed
    return ids


def _check_equal_ids(runs: Mapping[RunName, Mapping[str, NamedQuery]]) -> None:
    first: dict[str, NamedQuery] = {}
    for queries in runs.values():
        for query_id, query in queries.items():
            if not query.question.key or query.is_decided:
                continue
            other = first.setdefault(query_id, query)
            if other.question.key != query.question.key and other.run.system != query.run.system:
                raise InputError(
                    f"the query id {query_id!r} has two questions: {other.question.text!r} in {format_place(other.at)}, and "
                    f"{query.question.text!r} in {format_place(query.at)}; give each query its id with query_ids=, "
                    "or query_id="
                )


def _join_by_question(runs: Mapping[RunName, Mapping[str, NamedQuery]]) -> dict[str, str]:
    """Return own id -> the id of the first query with the same question, where that is another one."""
    by_question: dict[bytes, list[NamedQuery]] = {}
    questions: dict[str, set[bytes]] = {}
    twice: set[bytes] = set()
    for queries in runs.values():
        here: set[bytes] = set()
        for query in queries.values():
            key = query.question.conversation
            if key:
                by_question.setdefault(key, []).append(query)
                questions.setdefault(query.query_id, set()).add(key)
                (twice if key in here else here).add(key)
    ids: dict[str, str] = {}
    for key, same in by_question.items():
        # An id that has several questions, as simulated users give it to replicates, joins by itself alone.
        same = [query for query in same if len(questions[query.query_id]) == 1]
        if key in twice or len(same) < 2:
            continue
        kept = next((query for query in same if query.is_decided), same[0]).query_id
        ids |= {query.query_id: kept for query in same if query.query_id != kept and not query.is_decided}
    return ids


def _check_new_ids(runs: Mapping[RunName, Mapping[str, NamedQuery]], ids: Mapping[str, str]) -> None:
    for queries in runs.values():
        kept: dict[str, NamedQuery] = {}
        for query_id, query in queries.items():
            joined = ids.get(query_id, query_id)
            other = kept.setdefault(joined, query)
            if other is not query:
                raise InputError(
                    f"{format_place(query.at)}: the queries {other.query_id!r} and {query_id!r} of one system would both be "
                    f"{joined!r}, because of their ids and questions in other systems; give each query its id with "
                    "query_ids="
                )


def rename_queries(rows: Rows, ids: Mapping[str, str]) -> Rows:
    """Return rows with the new ids of joined queries."""
    return rows.with_columns(pl.col("query_id").replace(ids)) if ids else rows
