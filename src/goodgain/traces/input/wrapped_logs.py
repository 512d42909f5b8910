"""Rewrites logs that hold a known format in other notation: HAR recordings, exchanges with bodies, a Python dict a line."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import orjson

from goodgain.files.json_text import NotJSONError, loads, parse_if_json
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.tool_outputs.values_in_text import read_python

#: How a line begins that Python printed, and not JSON.
_PYTHON_LINE = re.compile(rb"\s*\{\s*'")
#: Keys of the messages of HTTP, which have a body beside them.
_OF_HTTP = {"url", "method", "headers", "status", "status_code"}


def find_unwrapper(head: FileHead) -> Callable[[bytes], bytes] | None:
    """Return what rewrites a log as JSON or JSON Lines; None for a log without a wrapping."""
    if head.kind in ("json", "jsonl", "text") and _PYTHON_LINE.match(head.raw):
        return _rewrite_python
    if any(map(_is_recording, head.objects)):
        return _unwrap_recording
    if any(_unwrap_exchange(record) is not record for record in head.records):
        return _unwrap_lines if head.kind == "jsonl" else _unwrap_list
    return None


def _rewrite_python(content: bytes) -> bytes:
    """Write each line that is a dict as Python prints it as JSON; other lines stay, and their reader refuses them."""
    lines = content.splitlines()
    found = (read_python(line.decode("utf-8", "replace").strip()) for line in lines)
    return b"\n".join(line if one is None else orjson.dumps(one[0]) for line, one in zip(lines, found, strict=True))


def _unwrap_list(content: bytes) -> bytes:
    try:
        value = loads(content)
    except NotJSONError:
        return content  # cut off: its reader says where
    return orjson.dumps(list(map(_unwrap_exchange, value)) if isinstance(value, list) else _unwrap_exchange(value))


def _unwrap_lines(content: bytes) -> bytes:
    return b"\n".join(line and _unwrap_list(line) for line in content.splitlines())


def _unwrap_exchange(record: Any) -> Any:
    """Return an exchange with the bodies of its request and response in their places; any other value unchanged."""
    if not isinstance(record, dict) or not {"request", "response"} <= record.keys():
        return record
    held = {key: _find_body(record[key]) for key in ("request", "response")}
    changed = any(held[key] is not record[key] for key in held) and isinstance(held["request"], dict)
    return {**record, **held} if changed else record


def _find_body(message: Any) -> Any:
    if isinstance(message, dict) and "body" in message and not _OF_HTTP.isdisjoint(message):
        message = message["body"]
    return parse_if_json(message)


def _is_recording(record: dict[str, Any]) -> bool:
    log = record.get("log")
    return isinstance(log, dict) and isinstance(log.get("entries"), list)


def _unwrap_recording(content: bytes) -> bytes:
    try:
        entries = loads(content)["log"]["entries"]
    except NotJSONError:
        return content
    return orjson.dumps([_unwrap_entry(entry) for entry in entries if isinstance(entry, dict)])


def _unwrap_entry(entry: dict[str, Any]) -> Any:
    """Return an entry of a HAR recording as an exchange; a request without a JSON body keeps its address."""
    request, response = ({**one} if isinstance(one := entry.get(key), dict) else {} for key in ("request", "response"))
    asked, answer = (one if isinstance(one, dict) else {} for one in (request.get("postData"), response.get("content")))
    text = answer.get("text")
    if answer.get("encoding") == "base64" and isinstance(text, str):
        text = b64decode(text).decode("utf-8", "replace")
    body = parse_if_json(asked.get("text"))
    return {
        "request": body if isinstance(body, dict) else {"url": request.get("url")},
        "response": parse_if_json(text),
        "time": entry.get("startedDateTime"),
    }
