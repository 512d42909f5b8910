"""Reads cassettes: recorded HTTP exchanges in the YAML or JSON of VCR, as the tests of client libraries keep them."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads, parse_if_json
from goodgain.traces.input.event_streams import Assembled

#: A limit against malicious files: an alias of YAML repeats a value, and aliases of aliases grow without bound.
_MAX_VALUES = 5_000_000
_MAX_BODY = 256 << 20
_GZIP = b"\x1f\x8b"
#: Where VCR and its extensions keep a body, the best first.
_BODIES = ("parsed_body", "body", "content")
_TEXTS = ("string", "text", "base64_string", "encoding")


def read_cassette(text: str, path: Path) -> Assembled | None:
    """Return the exchanges in a cassette as objects with a request and a response; None if the text is not one."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:  # JSON is YAML too, but slower as such
        value = loads(text) if text.lstrip().startswith("{") else yaml.load(text, loader)
    except (NotJSONError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: is not YAML to its end ({' '.join(str(error).split())[:200]}); was it cut off?"
        ) from None
    recorded = value.get("interactions") if isinstance(value, dict) else None
    if not isinstance(recorded, list):
        return None
    if _count_values(recorded) > _MAX_VALUES:
        raise InputError(f"{path}: its YAML aliases repeat over {_MAX_VALUES:,} values; write the log without aliases")
    exchanges = [
        {name: _read_body(exchange.get(name)) for name in ("request", "response")} | {"uri": _find_address(exchange)}
        for exchange in recorded
        if isinstance(exchange, dict)
    ]
    return Assembled(exchanges, is_whole=True)


def _count_values(value: Any) -> int:
    stack, count = [value], 0
    while stack and count <= _MAX_VALUES:
        held = stack.pop()
        count += 1
        if isinstance(held, (dict, list)):
            stack.extend(held.values() if isinstance(held, dict) else held)
    return count


def _find_address(exchange: dict[str, Any]) -> str | None:
    request = exchange.get("request")
    uri = request.get("uri", request.get("url")) if isinstance(request, dict) else None
    return uri if isinstance(uri, str) else None


def _read_body(message: Any) -> Any:
    """Return the body of a request or response: a JSON value, else its text."""
    if not isinstance(message, dict):
        return message
    body = next((message[name] for name in _BODIES if message.get(name) not in (None, "")), None)
    if isinstance(body, dict) and (
        name := next((name for name in _TEXTS if name in body and set(body) <= {*_TEXTS}), None)
    ):
        body = body[name]
        if name == "base64_string" and isinstance(body, str):
            with suppress(binascii.Error):
                body = base64.b64decode(body)
    if isinstance(body, bytes):
        body = _unpack(body).decode("utf-8", "replace")
    return parse_if_json(body) if isinstance(body, str) and body.lstrip().startswith(("{", "[")) else body


def _unpack(body: bytes) -> bytes:
    if not body.startswith(_GZIP):
        return body
    try:
        with gzip.open(BytesIO(body)) as packed:
            return packed.read(_MAX_BODY)
    except (OSError, EOFError, zlib.error):
        return body
