"""Answers of a model (a grade, or why it is missing), and the journal that keeps each of them on disk."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from goodgain.errors import InputError

#: The grades that a model may give.
GRADES = (0, 1, 2, 3, 4)

#: The JSON schema that an endpoint is asked to follow.
SCHEMA: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "grade",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "grade": {"type": ["integer", "null"], "enum": [*GRADES, None]},
                "reason": {"type": "string"},
            },
            "required": ["grade", "reason"],
            "additionalProperties": False,
        },
    },
}

#: The model gave a grade, or `null`.
OK, NO_GRADE = "ok", "no_grade"
#: Characters that are kept of an answer, and of the reason in it.
_KEPT, _REASON = 4_000, 1_000
#: A count of tokens from here on is not a count: the journal's numbers have 64 bits.
_MOST_TOKENS = 2**53


class Answer(NamedTuple):
    """What came of asking for one grade, 0..4 or None; the reason is the model's own, or what went wrong.

    `status` is `ok`; `no_grade` (the model's null); or why there is no grade: `refused`, `malformed`, `too_long`, `timeout`,
    `connection`, `http_429` ... `raw` is the content as it came, at most 4,000 characters of it; the tokens are those that
    the endpoint counted, or None.
    """

    grade: int | None
    reason: str | None
    status: str
    raw: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the model gave no valid answer."""
        return self.status not in (OK, NO_GRADE)


class _Graded(msgspec.Struct, forbid_unknown_fields=True):
    """The only object that a model may write."""

    grade: Annotated[int, msgspec.Meta(ge=GRADES[0], le=GRADES[-1])] | None
    reason: str | None = None


def read_completion(body: Any, hide: Callable[[str], str] = str) -> Answer:
    """Return the answer in the body of a chat completion; `hide` takes the key out of a text, before the text is cut."""
    try:
        choice = body["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        content, refusal = message.get("content"), message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError):
        return Answer(None, "the answer is not a chat completion", "malformed", _keep(body, hide))
    if refusal:
        answer = Answer(None, "the model refused", "refused", _keep(refusal, hide))
    elif finish == "content_filter":
        answer = Answer(None, "the endpoint's filter stopped the answer", "refused", _keep(content, hide))
    elif finish == "length":
        answer = Answer(None, "the answer was cut at the most output tokens", "too_long", _keep(content, hide))
    else:
        answer = read_content(content, hide)
    usage = body["usage"] if isinstance(body.get("usage"), dict) else {}
    tokens = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    return answer._replace(input_tokens=tokens[0], output_tokens=tokens[1])


def read_content(content: Any, hide: Callable[[str], str] = str) -> Answer:
    """Return the answer in what a model wrote: the whole of it must be one object with a grade and a reason.

    A number within a sentence is not a grade, and an answer with another key than these two is not read.

    >>> read_content('{"grade": 3, "reason": "names the date"}')[:3]
    (3, 'names the date', 'ok')
    >>> read_content("I cannot help with events of 2013.")[:3]
    (None, 'the answer is not one JSON object', 'malformed')
    """
    raw = _keep(content, hide)
    try:
        found = json.loads(content, object_pairs_hook=_refuse_twice)
    except (ValueError, TypeError, RecursionError):
        return Answer(None, "the answer is not one JSON object", "malformed", raw)
    try:
        graded = msgspec.convert(found, _Graded)
    except msgspec.ValidationError:
        wanted = "a grade of 0, 1, 2, 3, 4 or null and a reason"
        return Answer(None, f"the answer is not an object of {wanted} alone", "malformed", raw)
    reason = _replace_halves(hide(graded.reason)[:_REASON]) if graded.reason else None
    return Answer(graded.grade, reason, NO_GRADE if graded.grade is None else OK, raw)


def describe_error(error: Any) -> str:
    """Return what the body of an error says, as one line; "" where it says nothing."""
    while isinstance(error, dict):
        error = next((error[name] for name in ("error", "message", "detail", "code") if error.get(name)), "")
    return " ".join(str(error or "").split())


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS else None


def _keep(value: Any, hide: Callable[[str], str]) -> str | None:
    text = value if isinstance(value, str) or value is None else json.dumps(value, default=str)
    return None if text is None else _replace_halves(hide(text)[:_KEPT])


def _replace_halves(text: str) -> str:
    """Return a text with `?` for halves of surrogate pairs, which JSON can name and no file can hold."""
    return text.encode("utf-8", "replace").decode()


#: Says that a SQLite file is a journal of ours, and in which form.
_APPLICATION = 0x67676C31
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, grade INTEGER, reason TEXT, status TEXT NOT NULL, raw TEXT,
    input_tokens INTEGER, output_tokens INTEGER
) WITHOUT ROWID
"""
_COLUMNS = ["key", *Answer._fields]
_AT_ONCE = 500


class Journal:
    """Answers by their keys, in one SQLite file, so that none is asked for twice.

    Threads may share one; several processes may use one file. Each answer is committed by itself: a killed process loses no
    answer that it counted.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._path = path
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def open(cls, path: Path | None) -> Iterator[Journal]:
        """Open a journal, or make it; with None it is in memory and ends with the process."""
        with _explain_errors(path):
            connection = sqlite3.connect(":memory:" if path is None else path, timeout=60, check_same_thread=False)
        try:
            with _explain_errors(path):
                _prepare(connection, path)
            yield cls(connection, path)
        finally:
            connection.close()

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Return the stored answers for these keys."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Answer] = {}
        with self._lock, _explain_errors(self._path):
            for start in range(0, len(wanted), _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                question = f"SELECT * FROM answers WHERE key IN ({','.join('?' * len(some))})"
                found.update((key, Answer(*answer)) for key, *answer in self._connection.execute(question, some))
        return found

    def add(self, key: str, answer: Answer) -> None:
        """Write an answer; it replaces a failure."""
        with self._lock, _explain_errors(self._path), self._connection:
            self._connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", (key, *answer))


def _prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    used = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if used and connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise InputError(f"{path}: is a database of something else; give another file for the journal")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA application_id={_APPLICATION}")
    connection.execute(_TABLE)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(answers)")]
    if columns != _COLUMNS:
        told = f"its table of answers has the columns {', '.join(columns)[:200]}"
        raise InputError(f"{path}: cannot be used as journal ({told}); give another file")


@contextmanager
def _explain_errors(path: Path | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(
            f"{path or 'the journal'}: cannot be used as journal ({error}); give another file, or free the disk"
        ) from error
