"""The journal: every answer that was paid for, in one SQLite file, so that none is asked for twice."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from goodgain.errors import InputError
from goodgain.labelling.answers import Answer

__all__ = ["Journal"]

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
    """Answers by their keys. Threads may share one; several processes may use one file.

    Each answer is committed by itself, so that a process that is killed loses none that it has counted.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None = None) -> None:
        self._connection = connection
        self._path = path
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def open(cls, path: Path | None) -> Iterator[Journal]:
        """Open a journal, or make it; with None it is in memory and ends with the process.

        Raises:
            InputError: the file is not a journal, or cannot be opened or written.
        """
        with _explain_errors(path):
            connection = sqlite3.connect(":memory:" if path is None else path, timeout=60, check_same_thread=False)
        try:
            with _explain_errors(path):
                _prepare(connection, path)
            yield cls(connection, path)
        finally:
            connection.close()

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Return the answers that there are for these keys.

        Raises:
            InputError: the file is damaged, or its table is not that of a journal.
        """
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Answer] = {}
        with self._lock, _explain_errors(self._path):
            for start in range(0, len(wanted), _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                rows = self._connection.execute(
                    f"SELECT {', '.join(_COLUMNS)} FROM answers WHERE key IN ({','.join('?' * len(some))})",
                    some,
                )
                found.update((key, Answer(*answer)) for key, *answer in rows)
        return found

    def add(self, key: str, answer: Answer) -> None:
        """Write an answer, over a failure that stands there.

        Raises:
            InputError: the file cannot be written.
        """
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
        raise InputError(
            f"{path}: cannot be used as journal (its table of answers has the columns {', '.join(columns)[:200]}); give another "
            "file"
        )


@contextmanager
def _explain_errors(path: Path | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(
            f"{path or 'the journal'}: cannot be used as journal ({error}); give another file, or free the disk"
        ) from error
