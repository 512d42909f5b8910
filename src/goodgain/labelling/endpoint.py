"""One call to an OpenAI-compatible endpoint, and what its errors mean."""

from __future__ import annotations

import email.utils
import math
import os
import time
from collections.abc import Mapping
from datetime import UTC
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.labelling.answers import LARGEST_BODY, Answer, read_completion
from goodgain.labelling.key import Key
from goodgain.labelling.limits import Spent
from goodgain.labelling.options import check_number
from goodgain.labelling.requests import Parameters, Request

__all__ = ["Endpoint", "Reply", "StoppedError", "UnreachableError"]

URL_VARIABLE = "OPENAI_BASE_URL"

#: Seconds that Retry-After may ask to wait: a job that waits for longer seems to hang.
_LONGEST_WAIT = 3600.0
#: Seconds that a call may take: the least and the most that may be asked for.
_SHORTEST, _LONGEST = 1e-6, 86_400.0

#: A parameter that an endpoint may refuse -> what to do about it.
_REMEDIES = {
    "temperature": "send none: --temperature none (temperature=None)",
    "response_format": "ask without a schema: --no-schema (schema=False)",
    "json_schema": "ask without a schema: --no-schema (schema=False)",
    "max_completion_tokens": "use the older name: --output-limit max_tokens (output_limit='max_tokens')",
    "max_tokens": "use the newer name: --output-limit max_completion_tokens (output_limit='max_completion_tokens')",
}
#: Errors of httpx, or of httpx2, which the client brings: there is no connection, and nothing was sent.
_NOT_CONNECTED = ("ConnectError", "ConnectTimeout", "ProxyError")
#: Characters that are kept of what an endpoint says of an error.
_SAID = 300
_CALL = "/chat/completions"
_BAD_REQUEST, _UNPROCESSABLE, _TIMEOUT, _CONFLICT, _TOO_MANY, _SERVER = 400, 422, 408, 409, 429, 500
#: Statuses that hold for every call: nothing is gained by sending more.
_HOPELESS = {
    401: "the key is not accepted; set the variable {key}",
    402: "the account has no credit",
    403: "the key may not use this model or endpoint",
    404: "the endpoint or the model is not there; check --base-url and --model",
}


class StoppedError(InputError):
    """Raised where no further call can succeed; what was answered before is kept.

    Attributes:
        spent: what was sent until then.
    """

    spent = Spent()


class UnreachableError(StoppedError):
    """Raised where there is no connection to the endpoint before its first answer."""

    exit_status = 1


class Reply(NamedTuple):
    """What came of one call.

    Attributes:
        answer: the answer, or the failure.
        again: whether the same call may succeed later.
        wait: seconds that the endpoint asked to wait; None: it did not say.
        may_cost: whether the endpoint may have done the work, though it gave no count of tokens.
    """

    answer: Answer
    again: bool = False
    wait: float | None = None
    may_cost: bool = False


class Endpoint:
    """An OpenAI-compatible endpoint, asked through the `openai` client. Threads may share one.

    Args:
        base_url: where it is; None: the variable OPENAI_BASE_URL. No address is built in.
        parameters: how the model is asked.
        key: the key that is sent, and hidden in all that comes back.
        timeout: the most seconds of one call, from its beginning to its end.

    Raises:
        InputError: there is no address, or the extra `label` is not installed.
    """

    def __init__(self, base_url: str | None, parameters: Parameters, key: Key, *, timeout: float = 60.0) -> None:
        check_number(
            "timeout", timeout, _SHORTEST, _LONGEST, words="seconds, a number above 0 and at most 86,400 (a day)"
        )
        url = base_url or os.environ.get(URL_VARIABLE)
        if not url:
            raise InputError(
                "there is no endpoint: nothing is sent anywhere by default; give the address of one that is "
                f"OpenAI-compatible (--base-url, base_url=, or the variable {URL_VARIABLE})"
            )
        if not _is_address(url):
            raise InputError(f"{url!r}: is not an http address; give one such as http://localhost:8000/v1")
        try:
            import openai
        except ImportError:
            raise InputError("labels need the client of the endpoint: pip install goodgain[label]") from None
        self._openai = openai
        self._parameters = parameters
        self._timeout = timeout
        self._key = key
        self._has_answered = False
        self._client = openai.OpenAI(
            base_url=url,
            api_key=key.value or "none",
            max_retries=0,
            timeout=timeout,
            # the key and the texts go to the host that was announced, and to no other
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._url = key.hide(_show_address(url).rstrip("/"))

    def close(self) -> None:
        """Close all connections; calls under way end with an error."""
        self._client.close()

    def ask(self, request: Request) -> Reply:
        """Send one call and return what came of it.

        Raises:
            StoppedError: no call can succeed: the key is wrong, the model unknown, or a parameter is refused; before the
                first answer also: there is no connection, or the endpoint sends elsewhere.
        """
        began = time.monotonic()
        try:
            body = self._receive(request, began)
        except Exception as error:
            failure = error
        else:
            self._has_answered = True
            return self._read_body(body)
        return self._read_failure(failure)  # outside of `except`: a traceback of ours has no error that quotes the key

    def _read_body(self, body: bytes) -> Reply:
        """Return the answer in the body of a call that succeeded."""
        if len(body) > LARGEST_BODY:
            return Reply(Answer(None, f"the answer is larger than {LARGEST_BODY:,} bytes", "malformed"), may_cost=True)
        try:
            found = loads(body)
        except NotJSONError:
            raw = self._key.hide(body.decode("utf-8", "replace"))[:200]
            return Reply(Answer(None, "the answer is not whole JSON", "malformed", raw), again=True, may_cost=True)
        answer = read_completion(found, self._key.hide)
        return Reply(answer, may_cost=answer.output_tokens is None)

    def _read_failure(self, error: Exception) -> Reply:
        """Return what the error of a call means; raise again what is not of the endpoint.

        Raises:
            StoppedError: no call can succeed.
        """
        openai = self._openai
        if isinstance(error, openai.APIStatusError):
            return self._read_error(error)
        cause = error.__cause__ or error
        reason = self._shorten(str(cause)) or type(cause).__name__
        if type(cause).__name__ in _NOT_CONNECTED:
            if not self._has_answered:
                raise UnreachableError(
                    f"{self._url}: cannot be reached ({reason}). Start the endpoint, or correct --base-url (base_url=)"
                )
            return Reply(Answer(None, f"the connection failed ({reason})", "connection"), again=True)
        if isinstance(error, (openai.APITimeoutError, TimeoutError)):
            return Reply(Answer(None, "no answer in time", "timeout"), again=True, may_cost=True)
        if isinstance(error, openai.APIConnectionError) or _is_of_transport(error):
            return Reply(Answer(None, f"the connection broke off ({reason})", "connection"), again=True, may_cost=True)
        raise error

    def check_length(self, answer: Answer) -> None:
        """Check that an answer is no longer than it may be, as the budget reserves no more.

        Raises:
            StoppedError: it is longer.
        """
        asked = self._parameters.max_output_tokens
        if answer.output_tokens is not None and answer.output_tokens > asked:
            name = self._parameters.output_limit
            raise StoppedError(
                f"{self.host} gave an answer of {answer.output_tokens:,} tokens where {asked:,} were asked for at most: it does "
                f"not know the parameter {name}; {_REMEDIES[name]}"
            )

    def _receive(self, request: Request, began: float) -> bytes:
        """Return the bytes of the answer, as many as may be."""
        received = bytearray()
        create = self._client.chat.completions.with_streaming_response.create
        with create(**self._parameters.make_body(request.messages)) as response:
            for piece in response.iter_bytes():
                received += piece
                if len(received) > LARGEST_BODY:
                    break
                if time.monotonic() - began > self._timeout:  # the client's own limit is for each piece
                    raise TimeoutError
        return bytes(received)

    def _read_error(self, error: Any) -> Reply:
        """Return what an HTTP error means for the document.

        Raises:
            StoppedError: no call can succeed, or none within an hour.
        """
        status = int(error.status_code)
        if error.response.has_redirect_location:
            return self._read_redirect(error, status)
        self._has_answered = True
        said = self._shorten(_message_of(error))
        if status in (_BAD_REQUEST, _UNPROCESSABLE):
            return self._read_refusal(error, status, said)
        if status in _HOPELESS:
            remedy = _HOPELESS[status].format(key=self._key.variable)
            raise StoppedError(f"{self.host} answers {status}: {remedy} ({said})")
        if status == _TOO_MANY and "insufficient_quota" in str(error.body):
            raise StoppedError(f"{self.host} answers 429: the account has no credit ({said})")
        again = status in (_TIMEOUT, _CONFLICT, _TOO_MANY) or status >= _SERVER
        wait = _read_wait(error.response.headers) if again else None
        if wait is not None and wait > _LONGEST_WAIT:
            raise StoppedError(
                f"{self.host} answers {status} and asks to wait {wait / 3600:,.1f} hours, and the job waits for one at most; "
                f"send the rest later, with the same journal ({said})"
            )
        return Reply(Answer(None, said, f"http_{status}"), again=again, wait=wait)

    def _read_refusal(self, error: Any, status: int, said: str) -> Reply:
        """Return what a 400 means: a text that is too long, or one that the endpoint does not take.

        Raises:
            StoppedError: it names a parameter.
        """
        body = error.body if isinstance(error.body, dict) else {}
        named = f"{body.get('param') or ''} {said}"
        if "context_length" in str(body.get("code")) or "context length" in said.lower():
            return Reply(Answer(None, said, "too_long"))
        sent = self._parameters.make_body([])
        for parameter, remedy in _REMEDIES.items():
            if parameter in named and (parameter in sent or (parameter == "json_schema" and "response_format" in sent)):
                raise StoppedError(f"{self.host} refuses the parameter {parameter} ({said}); {remedy}")
        if "content_filter" in str(body.get("code")) or "content_policy" in str(body.get("code")):
            return Reply(Answer(None, said, "refused"))
        return Reply(Answer(None, said, f"http_{status}"))

    def _read_redirect(self, error: Any, status: int) -> Reply:
        """Return what a redirect means: none is followed, as nobody was told of its target.

        Raises:
            StoppedError: the endpoint has not answered yet: --base-url is not its address.
        """
        target = self._shorten(_show_target(str(error.request.url), error.response.headers["location"]))
        base = target.removesuffix(_CALL)
        if not self._has_answered:
            is_another = base not in (target, self._url)
            remedy = f"If you trust it, give --base-url {base}" if is_another else "Correct --base-url"
            raise StoppedError(
                f"{self._url}: redirects to {target}, and redirects are not followed. {remedy} (base_url=)"
            )
        return Reply(Answer(None, f"redirects to {target}", f"http_{status}"))

    def _shorten(self, text: str) -> str:
        """Return a text of the endpoint in one line of at most 300 characters, without the key, which some repeat."""
        return self._key.hide(" ".join(text.split()))[:_SAID]


def _is_address(url: Any) -> bool:
    """Tell whether something is an http address with a host."""
    try:
        return (
            url.isprintable()
            and " " not in url
            and urlsplit(url).scheme in ("http", "https")
            and bool(urlsplit(url).hostname)
            and urlsplit(url).port != 0
        )
    except (ValueError, TypeError, AttributeError):  # half an address of IPv6, a port that is not a number, not a text
        return False


def _show_address(url: str) -> str:
    """Return an address without what may be secret: the user with the password, and the query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _show_target(url: str, location: str) -> str:
    """Return the address that a redirect names, relative to the one that was asked."""
    try:
        return _show_address(urljoin(url, location))
    except ValueError:  # not an address, such as half of one of IPv6
        return location.partition("?")[0].rpartition("@")[2]


def _is_of_transport(error: Exception) -> bool:
    """Tell whether an error is one of the library below the client, which wraps only those of sending."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in (
        "httpx",
        "httpx2",
        "httpcore",
        "httpcore2",
    )


def _message_of(error: Any) -> str:
    """Return what an endpoint says of an error."""
    body = error.body
    if isinstance(body, dict):
        body = (
            body.get("message")
            or body.get("detail")
            or (body.get("error") if isinstance(body.get("error"), str) else None)
        )
    return body if isinstance(body, str) else str(error.message)


def _read_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After asks to wait: a number, or a date; None for what is neither."""
    milliseconds = _read_seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _read_seconds(text)
    if seconds is not None:
        return seconds
    try:
        date = email.utils.parsedate_to_datetime(text or "")
        return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - time.time())
    except (ValueError, OverflowError):  # not a date, one that is in no calendar, or one beyond the year 9999
        return None


def _read_seconds(text: str | None) -> float | None:
    """Return a finite number, 0 for a negative one; None for any other text."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
