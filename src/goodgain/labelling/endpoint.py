"""An OpenAI-compatible endpoint: its address, its secrets, one call, and what its errors mean.

The `openai` client retries, obeys Retry-After and keeps the timeout. Its HTTP client counts each request.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.labelling.answers_and_journal import (
    Answer,
    describe_error,
    find_failure,
    read_completion,
    read_usage,
    summarize_error,
)
from goodgain.labelling.budget_and_pace import Budget, JobEnded, StoppedError
from goodgain.labelling.prompt_requests import OUTPUT_LIMITS, Request, check_number
from goodgain.options import spell

#: The default variables of the key and of the address.
KEY_VARIABLE, _URL_VARIABLE = "OPENAI_API_KEY", "OPENAI_BASE_URL"
#: A shorter value is not a secret: hiding it would garble every text.
_SHORTEST_SECRET = 4
#: What a header can carry without change: printable ASCII without blanks.
_SENDABLE = re.compile("[!-~]+")
#: What may separate two signs of a key: the blanks of wrapped text, and backslashes of the key, of repr and of JSON.
_GAP = r"(?:[\s\\]|(?i:%5c|u005c|x5c|&\#x5c;|&\#92;))*+"


class Key:
    """The key in an environment variable (`value` is empty for an endpoint without keys), and the user's headers.

    Raises:
        InputError: the key or a header cannot be sent as it is. The error does not show it.
    """

    def __init__(self, variable: str = KEY_VARIABLE, headers: Mapping[str, str] | None = None) -> None:
        if not variable:
            given = spell("key_variable", variable)
            raise InputError(f"{given}: give the name of the environment variable that holds the key")
        self.variable = variable
        self.value = os.environ.get(variable, "")
        if self.value and not _SENDABLE.fullmatch(self.value):
            raise InputError(
                f"{variable}: the key has a blank, a line end or a character that is not printable ASCII. "
                "Set the variable to the key alone: lines of a .env file saved on Windows end with an invisible \\r"
            )
        if not isinstance(headers, Mapping | None):
            raise InputError(f"{spell('headers')} is a {type(headers).__name__}; give a dict: {{name: value}}")
        self.headers = {str(name): str(value) for name, value in (headers or {}).items()}
        for name, value in self.headers.items():
            if not (_SENDABLE.fullmatch(name) and _SENDABLE.fullmatch(value.replace(" ", ""))):
                told = f"{spell('headers', name)}: the header is not printable ASCII"
                raise InputError(f"{told}. Correct its name or its value")
        in_headers = [part for value in self.headers.values() for part in (value, *value.split()[-1:])]  # Bearer KEY
        self.hide = make_hider([self.value, *in_headers])


def make_hider(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return a function that writes `***` for each secret in a text, however it is escaped or wrapped. Cut texts only afterwards.

    >>> make_hider(["sk-a/b"])(r'{"Authorization": "Bearer sk-a\\/b"}')
    '{"Authorization": "Bearer ***"}'
    """
    hidden = "|".join(_match_secret(secret) for secret in secrets if len(secret) >= _SHORTEST_SECRET)
    return lambda text: re.sub(hidden, "***", text) if hidden else text


def _match_secret(secret: str) -> str:
    """Return a pattern of a secret as it is, and as repr, JSON, URLs, HTML and wrapped text write it.

    No part of the pattern backtracks: the text comes from the endpoint.
    """
    written = _GAP.join(_match_character(character) for character in secret if character != "\\")
    return "|".join(filter(None, (re.escape(secret), written)))


def _match_character(character: str) -> str:
    code = f"{ord(character):02x}"
    escaped = "|".join(map(re.escape, (f"%{code}", f"u00{code}", f"x{code}", f"&#x{code};", f"&#{ord(character)};")))
    return f"(?>(?i:{escaped})|{re.escape(html.escape(character))}|{re.escape(character)})"


#: Characters that are kept of an error's message, and that are searched if it is not JSON.
_SAID, _SUMMARIZED = 300, 2_000
#: Errors of httpx, or of httpx2, where the connection failed and nothing was sent.
_NOT_CONNECTED = ("ConnectError", "ConnectTimeout", "ProxyError")
_BAD_REQUEST = 400
#: Set as the status of an answer that is not JSON, to have the client retry it. No server sends it.
_UNREADABLE = 599
#: Statuses that hold for every call: no further call can succeed.
_HOPELESS = {
    401: "the key is not accepted. Set the variable {key}",
    402: "the account has no credit, or its budget is spent. Add some",
    403: "the key may not use this model or endpoint. Give another {model} or {key_variable}",
    404: "the endpoint or the model is not there. Check {base_url} and {model}",
}
#: Such a status -> what an error with another status says that means the same: of OpenAI, Anthropic, LiteLLM's proxy.
_MEANS = {
    402: r"insufficient_quota|credit balance is too low|API usage limits|budget_exceeded|Budget has been exceeded"
    r"|ExceededBudget|crossed budget",
    404: r"Invalid model name passed|no healthy deployments for this model",
}
#: A body is read up to so many bytes, and in so many times the seconds without a byte.
_LARGEST, _WHOLE = 16 << 20, 10


def _list_remedies() -> dict[str, str]:
    """Return each parameter that an endpoint may refuse, and what to do about it."""
    without = f"Ask without a schema: {spell('schema', False)}"
    return {
        "temperature": f"Send none: {spell('temperature', None)}",
        "response_format": without,
        "json_schema": without,
        "reasoning_effort": f"Leave out {spell('reasoning_effort')}",
        **dict.fromkeys(OUTPUT_LIMITS, f"Give the limit by its name at this endpoint: {spell('extra_body')}"),
    }


class UnreachableError(StoppedError):
    """Raised where the connection fails before the first answer of the endpoint."""

    exit_status = 1


class Endpoint:
    """An OpenAI-compatible endpoint, asked through the `openai` client. Threads may share one.

    Without `base_url` its address is in the variable OPENAI_BASE_URL; none is built in. The key is sent, and hidden in all
    that comes back. Every request, retries included, counts in the budget. A request may take ten times `timeout`.
    """

    def __init__(self, base_url: str | None, key: Key, budget: Budget, *, timeout: float = 60.0) -> None:
        check_number("timeout", timeout, 0.001, 86_400, others=" seconds")
        try:
            import openai
        except ImportError:
            raise InputError('labels need the client of the endpoint: pip install "goodgain[label]"') from None
        self._openai = openai
        url = base_url or os.environ.get(_URL_VARIABLE)
        if not url:
            raise InputError(
                "there is no endpoint: nothing is sent anywhere by default. Give the address of one that is "
                f"OpenAI-compatible ({spell('base_url')}, or the variable {_URL_VARIABLE})"
            )
        parts = _split_address(url)
        self._key = key
        self.budget = budget
        self.host = parts.netloc.rpartition("@")[2]
        self._url = key.hide(_show_address(parts).rstrip("/"))
        self._has_answered = False
        #: Whether the limit of output tokens goes by its other name, because the endpoint refused the first.
        self._has_other_limit = False
        #: The call of this thread: the tokens it reserves, and the body of its answer.
        self._call = threading.local()
        endpoint = self

        class CountedClient(openai.DefaultHttpxClient):
            def send(self, request: Any, **options: Any) -> Any:
                send = super().send
                end = time.monotonic() + _WHOLE * timeout
                late = openai.APITimeoutError(request)
                return endpoint._count(lambda: _read_body(send(request, **options | {"stream": True}), end, late))

        self._client = openai.OpenAI(
            base_url=url,
            api_key=key.value or "none",
            max_retries=budget.limits.tries - 1,
            timeout=timeout,
            default_headers=key.headers,
            # the key and the texts go to the announced host only
            http_client=CountedClient(follow_redirects=False),
        )

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()  # pending calls end with an error

    def ask(self, request: Request) -> Answer:
        """Send one call and return its answer, or why there is none.

        Raises:
            StoppedError: no call can succeed: the key is wrong, the model unknown, or a parameter is refused.
            JobEnded: the job has ended.
        """
        body = request.body
        limit = request.parameters.output_limit
        if self._has_other_limit and limit in body:
            refused, limit = limit, OUTPUT_LIMITS[limit == OUTPUT_LIMITS[0]]
            body[limit] = body.pop(refused)
        self._call.most, self._call.body = request.most_tokens, None
        known = [*(name for name in _list_remedies() if name in body), *(request.parameters.extra_body or ())]
        known += ["json_schema"] if request.parameters.schema else []
        try:
            self._client.post("/chat/completions", cast_to=type(None), body=body)
        except Exception as error:
            failure = error
        else:
            return read_completion(self._call.body, self._key.hide, request.prompt.grades)
        # outside of `except`: a traceback of ours has no error that quotes the key
        found = self._read_failure(failure, known)
        if isinstance(found, Answer):
            return found
        if found == limit and limit == request.parameters.output_limit:
            self._has_other_limit = True
            return self.ask(request)
        raise StoppedError(
            f"{self.host} refuses the parameter {found} ({self._quote(failure)}). {_list_remedies().get(found, 'Leave it out')}"
        )

    def _count(self, send: Any) -> Any:
        """Send one request of a call, reserve its worst case, and settle what it cost."""
        most = self._call.most
        entry = self.budget.reserve(most)
        cost = most, 0  # where the usage is unknown: the worst case
        try:
            response = send()
            self._has_answered = self._has_answered or not response.has_redirect_location
            cost = self._read_cost(response, most)
        except Exception as error:
            if type(error).__name__ not in _NOT_CONNECTED:
                raise
            cost = 0, 0
            if self._has_answered:
                raise
            reason = self._shorten(str(error)) or type(error).__name__
        else:
            return response
        finally:
            self.budget.settle(entry, most, *cost)
        self.budget.end(
            UnreachableError(
                f"{self._url}: cannot be reached ({reason}). Start the endpoint, or correct {spell('base_url')}"
            )
        )
        raise JobEnded

    def _read_cost(self, response: Any, most: int) -> tuple[int, int]:
        """Return the tokens of a response, and give an error in a body with status 200 its own status."""
        was_good = response.is_success
        found = _parse(response)
        if was_good and found is None:
            response.status_code = _UNREADABLE
            return most, 0
        error = _find_error(found) if isinstance(found, dict) else None
        if was_good and error is not None:
            code = str(error.get("code") if isinstance(error, dict) else "")
            response.status_code = int(code) if re.fullmatch("[45][0-9][0-9]", code) else _BAD_REQUEST
        if not response.is_success:
            status, summary = response.status_code, _summarize(response)
            if _find_kind(status, summary) in _HOPELESS or find_failure(status, summary):
                response.headers["x-should-retry"] = "false"  # the client obeys it
            if not was_good or (isinstance(found, dict) and "choices" not in found):
                return 0, 0
        self._call.body = found
        sent, received = read_usage(found)
        return (most, 0) if sent is None or received is None else (sent, received)

    def _read_failure(self, error: Exception, known: Sequence[str]) -> Answer | str:
        """Return what a failed call means for the document, or the parameter that the endpoint refuses.

        An error that does not come from the endpoint is raised again.
        """
        openai = self._openai
        if openai.APITimeoutError in (type(error), type(error.__cause__)):
            return Answer(None, "no answer in time", "timeout")
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            return Answer(
                None, f"the connection failed ({self._shorten(str(cause)) or type(cause).__name__})", "connection"
            )
        if not isinstance(error, openai.APIStatusError):
            raise error
        status, said, summary = error.status_code, self._quote(error), _summarize(error.response)
        if error.response.has_redirect_location:
            return self._read_redirect(error)
        if status == _UNREADABLE:
            return Answer(
                None, "the answer is not whole JSON", "malformed", self._key.hide(error.response.text)[:_SAID]
            )
        failure = find_failure(status, summary)
        if failure is not None:
            return Answer(None, said, failure)
        kind = _find_kind(status, summary)
        if kind in _HOPELESS:
            spelled = {name: spell(name) for name in ("base_url", "key_variable", "model")}
            why = _HOPELESS[kind].format(key=self._key.variable, **spelled)
            raise StoppedError(f"{self.host} answers {status}: {why} ({said})")
        named = (name for name in known if re.search(rf"(?<![a-zA-Z_]){re.escape(name)}(?![a-zA-Z_])", summary))
        refused = next(named, None) if status in (_BAD_REQUEST, 422) else None
        return refused or Answer(None, said, f"http_{status}")

    def _read_redirect(self, error: Any) -> Answer:
        """Return a redirect, which is not followed, as a failure; raise `StoppedError` before the first answer."""
        location = error.response.headers["location"]
        try:
            shown = _show_address(urlsplit(urljoin(str(error.request.url), location)))
        except ValueError:  # not an address, such as half of one of IPv6
            shown = location.partition("?")[0].rpartition("@")[2]
        target = self._shorten(shown)
        if self._has_answered:
            return Answer(None, f"redirects to {target}", f"http_{error.status_code}")
        base = target.removesuffix("/chat/completions")
        is_another = base not in (target, self._url)
        remedy = (
            f"If you trust it, give {spell('base_url', str(base))}" if is_another else f"Correct {spell('base_url')}"
        )
        raise StoppedError(f"{self._url}: redirects to {target}, and redirects are not followed. {remedy}")

    def _quote(self, error: Any) -> str:
        return self._shorten(describe_error(error.body) or str(error.message))

    def _shorten(self, text: str) -> str:
        """Return a text of the endpoint in one line of at most 300 characters, without secrets."""
        return self._key.hide(" ".join(text.split()))[:_SAID]


def _read_body(response: Any, end: float, late: Exception) -> Any:
    """Return a response with its body, cut where it is too large to be an answer; raise `late` if it goes on after `end`."""
    body = bytearray()
    with contextlib.closing(response):
        for piece in response.iter_bytes():
            body += piece
            if time.monotonic() > end:
                raise late
            if len(body) > _LARGEST:
                break
    headers = [(name, value) for name, value in response.headers.items() if name != "content-encoding"]
    return type(response)(response.status_code, headers=headers, content=bytes(body), request=response.request)


def _find_kind(status: int, summary: str) -> int:
    """Return the status that an error means."""
    if status not in (_BAD_REQUEST, 429):
        return status
    return next((kind for kind, said in _MEANS.items() if re.search(said, summary, re.IGNORECASE)), status)


def _parse(response: Any) -> Any:
    """Return the body of a response; None if it is not JSON."""
    try:
        return loads(response.content)
    except NotJSONError:
        return None


def _summarize(response: Any) -> str:
    """Return what an error names, or the beginning of its text."""
    found = _parse(response)
    return summarize_error(_find_error(found)) if isinstance(found, dict) else response.text[:_SUMMARIZED]


def _find_error(found: dict[str, Any]) -> Any:
    """Return the error in a body, or None.

    OpenRouter and LM Studio send errors with status 200, OpenRouter also in the choice.
    """
    choices = found.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    return found.get("error") or first.get("error") or (None if "choices" in found else found)


def _split_address(url: str) -> SplitResult:
    """Return the parts of an http address, or raise `InputError`."""
    try:
        parts = urlsplit(url)
        is_text = url.isprintable() and " " not in url
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and is_text:
            return parts
    except (ValueError, TypeError, AttributeError):  # half an address of IPv6, a port that is not a number, not a text
        pass
    raise InputError(f"{url!r}: is not an http address. Give one such as http://localhost:8000/v1")


def _show_address(parts: SplitResult) -> str:
    """Return an address without its secrets: user, password and query."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
