"""Reads what an endpoint sends: bodies, errors, waits and addresses. Nothing here depends on the state of a job."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.judgments.labelling.answers_and_journal import summarize_error

BAD_REQUEST = 400
#: Status -> messages with the same meaning that have another status (OpenAI, Anthropic, LiteLLM's proxy).
_MEANS = {
    402: r"insufficient_quota|credit balance is too low|API usage limits|budget_exceeded|Budget has been exceeded"
    r"|ExceededBudget|crossed budget",
    404: r"Invalid model name passed|no healthy deployments for this model",
}
#: The most characters to search in an error that is not JSON.
_SUMMARIZED = 2_000
#: The most bytes to read of a body.
_LARGEST = 16 << 20
#: The most bytes of a usual text in one token. An endpoint that reports fewer tokens (0, for example) does not count them.
_BYTES_OF_TOKEN = 32


def read_body(response: Any) -> Any:
    """Read a streamed response whole, and return it as one with its content. A body is cut after 16 MiB."""
    body = bytearray()
    with contextlib.closing(response):
        for piece in response.iter_bytes():
            body += piece
            if len(body) > _LARGEST:
                break
    headers = [(name, value) for name, value in response.headers.items() if name != "content-encoding"]
    make_response = type(response)
    return make_response(response.status_code, headers=headers, content=bytes(body), request=response.request)


def parse_body(response: Any) -> Any:
    try:
        return loads(response.content)
    except NotJSONError:
        return None


def find_error(body: dict[str, Any]) -> Any:
    """Return the error in a response body, or None. Errors can have status 200 (LM Studio), or be in `choices` (OpenRouter)."""
    choices = body.get("choices")
    error_of_choice = None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        error_of_choice = choices[0].get("error")
    error = body.get("error") or error_of_choice
    if not error and "choices" not in body:
        return body
    return error or None


def summarize(response: Any) -> str:
    body = parse_body(response)
    if isinstance(body, dict):
        return summarize_error(find_error(body))
    return str(response.text[:_SUMMARIZED])


def find_kind(status: int, summary: str) -> int:
    """Return the status that fits the message of an error."""
    if status not in (BAD_REQUEST, 429):
        return status
    for kind, pattern in _MEANS.items():
        if re.search(pattern, summary, re.IGNORECASE):
            return kind
    return status


def find_name(names: Sequence[str], text: str) -> str | None:
    """Return the first of the names that stands in a text as a word, or None."""
    for name in names:
        if re.search(rf"(?<![a-zA-Z_]){re.escape(name)}(?![a-zA-Z_])", text):
            return name
    return None


def read_wait(headers: Any) -> float:
    """Return how many seconds an endpoint asks to wait."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        text = headers.get(name, "")
        if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text):
            return float(text) / unit
    try:
        return parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return 0.0


def count_tokens(reported: int, text_bytes: int) -> int:
    """Return the reported tokens, or the bytes of the text (the worst case) if so few tokens cannot hold the text."""
    return reported if reported * _BYTES_OF_TOKEN >= text_bytes else text_bytes


def measure_answer(completion: Any) -> int:
    """Return the number of bytes of the answer in a chat completion."""
    try:
        message = completion["choices"][0]["message"]
        return len(orjson.dumps(message))
    except (KeyError, IndexError, TypeError):  # not a completion, or a text that UTF-8 cannot encode
        return 0


def split_address(url: str) -> SplitResult:
    """Return the parts of an http or https address. Raise an InputError for any other text."""
    try:
        parts = urlsplit(url)
        is_text = url.isprintable() and " " not in url
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and is_text:
            return parts
    except (ValueError, TypeError, AttributeError):  # an invalid IPv6 address or port, or not a text
        pass
    raise InputError(f"{url!r}: is not an http address. Give one such as http://localhost:8000/v1")


def show_address(parts: SplitResult) -> str:
    """Return an address without the user and the query string."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
