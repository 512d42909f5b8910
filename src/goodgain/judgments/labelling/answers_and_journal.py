"""Answers of a model, and the journal that stores them in a file."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from goodgain.errors import InputError

#: The grades of the good-gain scale.
GRADES = (0, 1, 2, 3, 4)
#: Statuses: the model gave a grade, or `null`.
OK, NO_GRADE = "ok", "no_grade"
#: The reason of an answer that ended at the limit of output tokens.
CUT = "the answer was cut at the limit of output tokens"
#: The most characters to keep of an answer, and of a reason.
_KEPT, _REASON = 4_000, 1_000
#: Larger token counts are invalid: the journal's numbers have 64 bits.
_MOST_TOKENS = 2**53
#: Error messages of vendors: the text is too long, or a filter refuses the text.
_TOO_LONG = re.compile(
    r"context.?(?:length|window|size|limit)|prompt is too long|input is too long|input token count|request_too_large"
    r"|context the overflows|reduce the length|at least 1, got -|`inputs` (?:tokens|must have less)",
    re.IGNORECASE,
)
_FLAGGED = re.compile(
    r"content.?filter|content.?policy|content management policy|moderation|flagged|safety", re.IGNORECASE
)
#: The end of a thought before the answer: for most models, Magistral, and gpt-oss without a chat template.
_THOUGHT_ENDS = ("</think>", "</thinking>", "[/THINK]", "<|channel|>final<|message|>")
_FENCE = re.compile(r"```(?:json)?\s(.*)```", re.DOTALL | re.IGNORECASE)


class Answer(NamedTuple):
    """The answer to one call: a grade or None, and the model's reason or an error message.

    `status` is `ok`, `no_grade` (the model answered null), or a failure: `refused`, `malformed`, `too_long`, `timeout`,
    `connection`, `http_429` ... `raw` has up to 4,000 characters of the model's text. Tokens and model are None if the endpoint
    does not report them.
    """

    grade: int | None
    reason: str | None
    status: str
    raw: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None

    @property
    def failed(self) -> bool:
        return self.status not in (OK, NO_GRADE)


def is_answer(answer: Answer, grades: Sequence[int] = GRADES) -> bool:
    """Return whether `read_completion` can have made an answer. What else a journal holds was written by others, or is damaged.

    >>> is_answer(Answer(3, None, "ok")), is_answer(Answer(99, None, "ok")), is_answer(Answer(3, None, "timeout"))
    (True, False, False)
    """
    has_texts = all(isinstance(text, str | None) for text in (answer.reason, answer.raw, answer.model))
    counts = [count for count in (answer.input_tokens, answer.output_tokens) if count is not None]
    has_counts = all(_count(count) is not None for count in counts)
    if answer.status == OK:
        has_grade = type(answer.grade) is int and answer.grade in grades
    else:
        has_grade = isinstance(answer.status, str) and answer.grade is None
    return has_texts and has_counts and has_grade


class _Graded(msgspec.Struct, forbid_unknown_fields=True):
    grade: int | None
    reason: str | None = None


def read_completion(body: Any, hide: Callable[[str], str] = str, grades: Sequence[int] = GRADES) -> Answer:
    """Return the answer in the body of a chat completion. `hide` is a function that removes secrets from a text."""
    try:
        choice = body["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        content, refusal = _join_parts(message.get("content")), message.get("refusal")
        thought = message.get("reasoning_content") or message.get("reasoning")
    except (KeyError, IndexError, TypeError, AttributeError):
        return Answer(None, "the answer is not a chat completion", "malformed", _keep(body, hide))

    if refusal:
        answer = Answer(None, "the model refused", "refused", _keep(refusal, hide))
    elif finish == "content_filter":
        answer = Answer(None, "the endpoint's filter stopped the answer", "refused", _keep(content, hide))
    elif finish == "length" or _is_unfinished_thought(content):
        answer = Answer(None, CUT, "too_long", _keep(content or thought, hide))
    else:
        answer = read_content(content, hide, grades)

    input_tokens, output_tokens = read_usage(body)
    model = _keep(body["model"], hide) if body.get("model") else None
    return answer._replace(input_tokens=input_tokens, output_tokens=output_tokens, model=model)


def _is_unfinished_thought(content: Any) -> bool:
    return isinstance(content, str) and "<think>" in content and "</think>" not in content


def _join_parts(content: Any) -> Any:
    """Return the texts of a message's parts as one text. Return a content that is not a list of parts unchanged."""
    if isinstance(content, list) and content and all(isinstance(part, dict) for part in content):
        texts = [part.get("text", "") for part in content if part.get("type") == "text"]
        return "".join(map(str, texts))
    return content


def read_usage(body: Any) -> tuple[int | None, int | None]:
    """Return the numbers of input and output tokens that a completion reports under OpenAI's or Anthropic's names."""
    usage = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(usage, dict):
        return None, None
    sent = _find_count(usage, "prompt_tokens", "input_tokens")
    received = _find_count(usage, "completion_tokens", "output_tokens")
    return sent, received


def _find_count(usage: dict[str, Any], *names: str) -> int | None:
    for name in names:
        if name in usage:
            return _count(usage[name])
    return None


def read_content(content: Any, hide: Callable[[str], str] = str, grades: Sequence[int] = GRADES) -> Answer:
    """Parse a model's text: a JSON object with a grade and a reason, alone, in a code fence, or after reasoning text.

    A number in prose is not a grade.

    >>> read_content('```json\\n{"reason": "names the date", "grade": 3}\\n```')[:3]
    (3, 'names the date', 'ok')
    >>> read_content("I cannot help with events of 2013.")[:3]
    (None, 'the answer is not one JSON object', 'malformed')
    """
    raw = _keep(content, hide)
    try:
        text = content
        for end in _THOUGHT_ENDS:
            text = text.rpartition(end)[2].strip()
        fenced = _FENCE.fullmatch(text)
        parsed = json.loads(fenced[1] if fenced else text, object_pairs_hook=_refuse_twice)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return Answer(None, "the answer is not one JSON object", "malformed", raw)

    try:
        graded = msgspec.convert(parsed, _Graded)
        if graded.grade not in (*grades, None):
            raise msgspec.ValidationError
    except (msgspec.ValidationError, UnicodeEncodeError):  # a name of a field may have half a character
        wanted = f"a reason and a grade, {', '.join(map(str, grades))} or null"
        return Answer(None, f"the answer is not an object of {wanted}", "malformed", raw)

    reason = None
    if graded.reason:
        reason = _replace_halves(hide(graded.reason)[:_REASON])
    status = NO_GRADE if graded.grade is None else OK
    return Answer(graded.grade, reason, status, raw)


def describe_error(error: Any, depth: int = 8) -> str:
    """Return the message in an error response as one line, or "" if it has no message. Lists and objects are searched.

    >>> describe_error({"message": {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}})
    'body.seed: Extra inputs are not permitted'
    """
    if depth and isinstance(error, dict):
        names = ("error", "message", "detail", "msg", "code", "type")
        texts = (describe_error(error.get(name), depth - 1) for name in names)
        text = next(filter(None, texts), "")
        place = error.get("loc")
        if isinstance(place, (list, tuple)):
            return f"{'.'.join(map(str, place))}: {text}"
        return text
    if depth and isinstance(error, list):
        return "; ".join(describe_error(part, depth - 1) for part in error[:3])
    return " ".join(str(error or "").split())


def summarize_error(error: Any) -> str:
    """Return the parameter, code, type and message of an error as one text."""
    words = []
    if isinstance(error, dict):
        words = [error.get(name) for name in ("param", "code", "type")]
    words.append(describe_error(error))
    return " ".join(map(str, filter(None, words)))


def find_failure(status: int, summary: str) -> str | None:
    """Return `too_long` if the document was too long, `refused` if its content was refused, or None for any other error."""
    if status == 413 or (status != 429 and _TOO_LONG.search(summary)):
        return "too_long"
    is_refused = status in (400, 403, 422) and _FLAGGED.search(summary)
    return "refused" if is_refused else None


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice")
    return members


def _count(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < _MOST_TOKENS else None


def _keep(value: Any, hide: Callable[[str], str]) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return _replace_halves(hide(text)[:_KEPT])


def _replace_halves(text: str) -> str:
    """Replace each lone surrogate (half of a UTF-16 pair) by `?`. JSON can escape lone surrogates, but UTF-8 cannot encode them."""
    return text.encode("utf-8", "replace").decode()


#: The application_id in a SQLite file: a journal of goodgain, version 1.
_APPLICATION = 0x67676C31
_FIRST_COLUMNS = ["key", "grade", "reason", "status", "raw", "input_tokens", "output_tokens"]
#: Columns for human readers, and to find answers that were given with other options. Journals of earlier versions lack some.
_ADDED_COLUMNS = ["model", "query_id", "doc_id", "host", "date", "question", "judge"]
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, grade INTEGER, reason TEXT, status TEXT NOT NULL, raw TEXT,
    input_tokens INTEGER, output_tokens INTEGER
) WITHOUT ROWID
"""
_AT_ONCE = 500


class Journal:
    """A SQLite file that stores each answer under a key, so that answered calls are never repeated.

    Threads may share a journal, but processes may not. Each answer is committed immediately, so a killed process loses no answer.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._path = path
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def open(cls, path: Path | None) -> Iterator[Journal]:
        """Open or create a journal. `path=None` keeps the journal in memory."""
        with _explain_errors(path):
            connection = sqlite3.connect(":memory:" if path is None else path, timeout=1, check_same_thread=False)
        journal = cls(connection, path)
        try:
            with _explain_errors(path):
                _prepare(connection, path)
            yield journal
        finally:
            with journal._lock:  # after Ctrl-C a thread may still write: closing now would crash SQLite
                connection.close()

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Return {key: answer} for the keys that have an answer."""
        wanted = list(dict.fromkeys(keys))
        answers: dict[str, Answer] = {}
        columns = ", ".join(("key", *Answer._fields))
        with self._lock, _explain_errors(self._path):
            for start in range(0, len(wanted), _AT_ONCE):
                block = wanted[start : start + _AT_ONCE]
                query = f"SELECT {columns} FROM answers WHERE key IN ({_write_places(block)})"
                for key, *answer in self._connection.execute(query, block):
                    answers[key] = Answer(*answer)
        return answers

    def find_earlier(self, questions: Iterable[str]) -> dict[str, list[tuple[str, Answer]]]:
        """Return {question: pairs of judge and answer}, the oldest first, whatever the options of the calls."""
        wanted = list(dict.fromkeys(questions))
        answers: dict[str, list[tuple[str, Answer]]] = {}
        columns = ", ".join(("question", "judge", *Answer._fields))
        with self._lock, _explain_errors(self._path):
            for start in range(0, len(wanted), _AT_ONCE):
                block = wanted[start : start + _AT_ONCE]
                query = f"SELECT {columns} FROM answers WHERE question IN ({_write_places(block)}) ORDER BY date"
                for question, judge, *answer in self._connection.execute(query, block):
                    answers.setdefault(question, []).append((str(judge), Answer(*answer)))
        return answers

    def add(
        self, key: str, answer: Answer, *, query_id: str, doc_id: str, host: str, question: str, judge: str
    ) -> None:
        """Write an answer. An earlier answer with the same key is replaced."""
        date = datetime.now(UTC).isoformat(timespec="seconds")
        row = (key, *answer, query_id, doc_id, host, date, question, judge)
        with self._lock, _explain_errors(self._path), self._connection:
            self._connection.execute(f"INSERT OR REPLACE INTO answers VALUES ({_write_places(row)})", row)


def _write_places(values: Sequence[Any]) -> str:
    """Return the part of an SQL statement that takes so many values: `?,?,?`."""
    return ",".join("?" * len(values))


def _prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    """Lock the file, and create the table of answers, or add the columns that an older journal lacks.

    Raise an InputError for a database that is not a journal: it is not changed.
    """
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")  # else two jobs could pay for the same answers
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if tables and application != _APPLICATION:
        raise InputError(f"{path}: is a database, but not a journal. Give another file for the journal")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    if not tables:  # reading does not change a journal
        connection.execute(f"PRAGMA application_id={_APPLICATION}")

    connection.execute(_TABLE)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(answers)")]
    all_columns = [*_FIRST_COLUMNS, *_ADDED_COLUMNS]
    is_older = len(_FIRST_COLUMNS) <= len(columns) < len(all_columns)
    if is_older and columns == all_columns[: len(columns)]:
        for name in all_columns[len(columns) :]:
            connection.execute(f"ALTER TABLE answers ADD COLUMN {name} TEXT")
    elif columns != all_columns:
        names = ", ".join(columns)[:200]
        raise InputError(
            f"{path}: cannot be used as journal (its table of answers has the columns {names}). Give another file"
        )


@contextmanager
def _explain_errors(path: Path | None) -> Iterator[None]:
    """Turn errors of SQLite into InputErrors that say what to do. A locked journal is in use by another process."""
    try:
        yield
    except sqlite3.Error as error:
        reason = f"{path or 'the journal'}: cannot be used as journal ({error}). Give another file, or free the disk"
        if "locked" in str(error):
            reason = f"{path}: another process uses this journal. Wait until it ends, or give another file"
        raise InputError(reason) from error
