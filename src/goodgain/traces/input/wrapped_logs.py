"""Rewrites logs that hold a known format in other notation: HAR recordings, exchanges with bodies, a Python dict a line."""

from __future__ import annotations

import re
from base64 import b64decode
from contextlib import suppress
from typing import Any

import orjson

from goodgain.files.json_text import NotJSONError, loads, parse_if_json
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.tool_outputs.values_in_text import read_python

#: How a line begins that Python printed, and not JSON.
_PYTHON = re.compile(rb"\s*\{\s*'")
#: Keys of a message of HTTP, which has a body beside them.
_OF_HTTP = {"url", "method", "headers", "status", "status_code"}


def has_wrapping(head: FileHead) -> bool:
    """Return whether a log is in one of these notations, by its beginning."""
    is_python = head.kind in ("json", "jsonl", "text") and _PYTHON.match(head.raw) is not None
    return is_python or any(_unwrap(record) is not record for record in head.records)


def unwrap_log(head: FileHead, content: bytes) -> bytes:
    """Return a log as JSON or JSON Lines; a line that cannot be read stays, and its reader says where it is."""
    parts = content.splitlines() if head.kind == "jsonl" or _PYTHON.match(content) else [content]
    return b"\n".join(map(_rewrite, parts))


def _rewrite(part: bytes) -> bytes:
    with suppress(NotJSONError, TypeError):  # TypeError: nested too deep to be written
        value = loads(part)
        return orjson.dumps(list(map(_unwrap, value)) if isinstance(value, list) else _unwrap(value))
    found = read_python(part.decode("utf-8", "replace").strip())
    return part if found is None else orjson.dumps(found[0])


def _unwrap(record: Any) -> Any:
    """Return a recording's exchanges, or an exchange whose request and response are their bodies; else the same value."""
    log = record.get("log") if isinstance(record, dict) else None
    held = log.get("entries") if isinstance(log, dict) else None
    entries = [entry for entry in held if isinstance(entry, dict)] if isinstance(held, list) else []
    if any("request" in entry for entry in entries):
        return list(map(_read_entry, entries))
    if not isinstance(record, dict) or not {"request", "response"} <= record.keys():
        return record
    bodies = {key: _find_body(record[key]) for key in ("request", "response")}
    is_changed = isinstance(bodies["request"], dict) and any(bodies[key] is not record[key] for key in bodies)
    return {**record, **bodies} if is_changed else record


def _find_body(message: Any) -> Any:
    is_http = isinstance(message, dict) and "body" in message and not _OF_HTTP.isdisjoint(message)
    return parse_if_json(message["body"] if is_http else message)


def _read_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of a HAR recording as an exchange; a request without a JSON body keeps its address."""
    request, response = ({**one} if isinstance(one := entry.get(key), dict) else {} for key in ("request", "response"))
    asked, answer = (one if isinstance(one, dict) else {} for one in (request.get("postData"), response.get("content")))
    body, text = parse_if_json(asked.get("text")), answer.get("text")
    if answer.get("encoding") == "base64" and isinstance(text, str):
        with suppress(ValueError):
            text = b64decode(text).decode("utf-8", "replace")
    return {
        "request": body if isinstance(body, dict) else {"url": request.get("url")},
        "response": parse_if_json(text),
    }
