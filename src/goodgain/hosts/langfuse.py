"""Writes annotations to Langfuse as scores, through the REST API."""

import base64
import hashlib
import http.client
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import polars as pl

from goodgain.errors import InputError
from goodgain.hosts.annotation_table import NotWrittenError, explain_refusal, explain_silence
from goodgain.judgments.labelling.keys import make_hider
from goodgain.options import spell

#: Environment variables of the keys, and of the address by priority.
KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
ADDRESSES = ("LANGFUSE_BASE_URL", "LANGFUSE_HOST")
_PATH = "/api/public/scores"
_TIMEOUT = 60
#: Attempts to send a score that the rate limit refuses, and the longest wait between two attempts.
_TRIES, _LONGEST_WAIT = 5, 60
_TOO_MANY = 429
#: Bytes to read of an answer.
_MOST_READ = 2_000
_REPEATING = "The same command sends all annotations again; some versions of Langfuse then keep two copies of these"


class _NoRedirects(HTTPRedirectHandler):  # the keys go to the given host only
    def redirect_request(self, *_: Any) -> None:
        return None


def make_bodies(annotations: pl.DataFrame) -> list[dict[str, Any]]:
    """Convert annotations to request bodies for Langfuse. Scores with equal trace, span and name have the same id."""
    return [
        {
            "id": hashlib.sha256("\0".join(("goodgain", trace, span or "", name)).encode()).hexdigest()[:32],
            "traceId": trace,
            **({} if span is None else {"observationId": span}),
            "name": name,
            "value": score,
            "dataType": "NUMERIC",
            "comment": f"goodgain, query {query}",
        }
        for query, trace, span, name, score in annotations.iter_rows()
    ]


def send(bodies: list[dict[str, Any]], *, base_url: str | None, key: str, hide: Callable[[str], str]) -> None:
    """Send scores, one per request. `key` is `PUBLIC_KEY:SECRET_KEY`. `hide` is a function that removes secrets from a text."""
    if not base_url:
        remedy = f"Give {spell('base_url')}, or set {ADDRESSES[0]}"
        raise InputError(f"there is no address: nothing is sent anywhere by default. {remedy}")
    try:
        parts = urlsplit(base_url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # an invalid IPv6 address
        is_address = False
    if not is_address:
        raise InputError(f"{hide(base_url)[:100]}: is not an address. Give one that begins with https://")

    opener = build_opener(_NoRedirects)
    encoded_key = base64.b64encode(key.encode()).decode()
    headers = {"Authorization": f"Basic {encoded_key}", "Content-Type": "application/json"}
    hide_encoded = make_hider([encoded_key.rstrip("=")])
    for written, body in enumerate(bodies):
        request = Request(base_url.rstrip("/") + _PATH, json.dumps(body).encode(), headers, method="POST")
        failure = _try(opener.open, request, lambda text: hide(hide_encoded(text)))
        if failure:
            raise NotWrittenError.of(failure, written, len(bodies), _REPEATING)


def _try(open_url: Callable[..., Any], request: Request, hide: Callable[[str], str]) -> str:
    """Send a request, and return why it failed, or "" if it succeeded. Retry if the rate limit refuses the request."""
    host = hide(f"{request.type}://{request.host}")
    for attempt in range(1, _TRIES + 1):
        try:
            with open_url(request, timeout=_TIMEOUT) as answer:
                answer.read(_MOST_READ)
            return ""
        except HTTPError as error:
            with error:
                answer_text = error.read(_MOST_READ).decode(errors="replace")
            if error.code != _TOO_MANY or attempt == _TRIES:
                return explain_refusal(host, error.code, answer_text, KEYS, hide)

            retry_after = error.headers.get("Retry-After", "")
            wait = float(retry_after) if retry_after.isdecimal() else 2**attempt
            time.sleep(min(wait, _LONGEST_WAIT))
        except (URLError, http.client.HTTPException, OSError, ValueError) as error:
            return explain_silence(host, hide(str(getattr(error, "reason", error))))
    return ""
