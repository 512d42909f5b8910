"""OpenAI Agents SDK: SQLite files of `SQLiteSession`, or one item of OpenAI's Responses per line.

Steps are those of the format `openai_responses`. A session is a trace.

Lost: Results of hosted searches, unless requested, and encrypted sessions. All branches of a session are read as one conversation.
Query id: The session's id; JSON Lines have no id. `--tag` names the system.
Record: Request the sources and results of hosted searches, as described for the format `openai_responses`.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import compression
from goodgain.logs.traces.conversations import FileHead, Source, Trace
from goodgain.logs.traces.conversations.record_objects import Placed, walk_objects
from goodgain.logs.traces.expected_values import expect_id, expect_list, expect_text, unexpected_value
from goodgain.logs.traces.formats.openai_responses import ItemReader, is_item

_SQLITE = b"SQLite format 3\0"
#: Columns that identify the table of messages, whatever its name.
_COLUMNS = {"session_id", "message_data"}
_BRANCHES = "SELECT count(DISTINCT branch_id) FROM message_structure GROUP BY session_id"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


def sniff(head: FileHead) -> bool:
    if head.raw.startswith(_SQLITE):
        return b"message_data" in head.raw
    return head.lines_are_messages and any(map(is_item, head.records))


def read(source: Source) -> Iterator[Trace]:
    """Yield a trace per list of items, or per session of an SQLite database."""
    if source.head.raw.startswith(_SQLITE):
        yield from _read_database(source)
        return
    for value, at in source.documents():
        with source.handle_errors():
            items = expect_list(value, at)
            yield ItemReader(source, items).read_all(walk_objects(items, at)).trace(at)


def _read_database(source: Source) -> Iterator[Trace]:
    """Yield a trace per session of an SQLite database, which is opened read-only. Branches of a session are read as one."""
    if compression(source.path) is not None:
        raise InputError(f"{source.path}: is a compressed SQLite database; decompress it first")
    sessions: dict[str | None, list[Placed]] = {}
    try:
        # `immutable=1` locks nothing and creates no file, but ignores a write-ahead log.
        log = source.path.with_name(f"{source.path.name}-wal")
        how = "" if log.exists() and log.stat().st_size else "&immutable=1"
        address = f"{source.path.absolute().as_uri()}?mode=ro{how}"
        with closing(sqlite3.connect(address, uri=True)) as database:
            table = _find_table(database, source.path)
            is_advanced = database.execute(f"{_TABLES} AND name = 'message_structure'").fetchone() is not None
            if is_advanced and any(count > 1 for (count,) in database.execute(_BRANCHES)):
                at = f"{source.path}, table message_structure, at "
                source.not_understood("session with branches (all are read as one)", at, "one branch per session")
            name = table.replace('"', '""')
            rows = database.execute(f'SELECT rowid, session_id, message_data FROM "{name}" ORDER BY rowid')
            for row, session, text in rows:
                at = f"{source.path}, table {table}, row {row}, at "
                with source.handle_errors():
                    session_id = expect_id(session, f"{at}session_id")
                    try:
                        item = loads(expect_text(text, f"{at}message_data"))
                    except NotJSONError as error:
                        raise unexpected_value(f"{at}message_data", f"an item as JSON text ({error})", text) from None
                    sessions.setdefault(session_id, []).append((item, at))
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        raise InputError(
            f"{source.path}: the SQLite database cannot be read ({error}); copy it again, or export the items as JSON Lines"
        ) from None

    for session_id, items in sessions.items():
        with source.handle_errors():
            reader = ItemReader(source, [item for item, _ in items]).read_all(items)
            yield reader.trace(items[0][1], session_id=session_id)


def _find_table(database: sqlite3.Connection, path: Path) -> str:
    """Return the only table with the columns of a session. Raise an InputError if there is none, or several."""
    columns = "SELECT name FROM pragma_table_info(?)"
    tables = [str(table) for (table,) in database.execute(_TABLES).fetchall()]
    session_tables = [
        table for table in tables if {name for (name,) in database.execute(columns, (table,))} >= _COLUMNS
    ]
    if len(session_tables) != 1:
        raise InputError(
            f"{path}: expected one table with the columns {', '.join(sorted(_COLUMNS))}, found "
            f"{' and '.join(session_tables) or 'none'}; convert a database of SQLiteSession, or export the items as JSON Lines"
        )
    return session_tables[0]
