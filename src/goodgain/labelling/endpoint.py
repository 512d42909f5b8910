"""One call to an OpenAI-compatible endpoint, and what its errors mean."""

from __future__ import annotations

import email.utils
import math
import os
import time
from collections.abc import Mapping
from datetime import UTC
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.labelling.answers import LARGEST_BODY, Answer, read_completion
from goodgain.labelling.options import check_name, check_number
from goodgain.labelling.requests import Parameters, Request

__all__ = ["Endpoint", "Reply", "StoppedError"]

#: Where the key is, unless another variable is named.
KEY_VARIABLE = "OPENAI_API_KEY"
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
_BAD_REQUEST, _UNPROCESSABLE, _TIMEOUT, _CONFLICT, _TOO_MANY, _SERVER = 400, 422, 408, 409, 429, 500
#: Statuses that hold for every call: nothing is gained by sending more.
_HOPELESS = {
    401: "the key is not accepted; set the variable {key}",
    402: "the account has no credit",
    403: "the key may not use this model or endpoint",
    404: "the endpoint or the model is not there; check --base-url and --model",
}


class StoppedError(InputError):
    """Raised where no further call can succeed; what was answered before is kept."""


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
        timeout: the most seconds of one call, from its beginning to its end.
        key_variable: the environment variable that holds the key. Endpoints without keys need none.

    Raises:
        InputError: there is no address, or the extra `label` is not installed.
    """

    def __init__(
        self, base_url: str | None, parameters: Parameters, *, timeout: float = 60.0, key_variable: str = KEY_VARIABLE
    ) -> None:
        check_number(
            "timeout", timeout, _SHORTEST, _LONGEST, words="seconds, a number above 0 and at most 86,400 (a day)"
        )
        check_name("key_variable", key_variable, "give the name of the environment variable that holds the key")
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
        self._key_variable = key_variable
        self._key = os.environ.get(key_variable, "")
        self._client = openai.OpenAI(base_url=url, api_key=self._key or "none", max_retries=0, timeout=timeout)
        self.host = urlsplit(url).netloc.rpartition("@")[2]

    def close(self) -> None:
        """Close all connections; calls under way end with an error."""
        self._client.close()

    def ask(self, request: Request) -> Reply:
        """Send one call and return what came of it.

        Raises:
            StoppedError: no call can succeed: the key is wrong, the model unknown, or a parameter is refused.
        """
        openai = self._openai
        began = time.monotonic()
        try:
            body = self._receive(request, began)
        except openai.APITimeoutError:
            return Reply(Answer(None, "no answer in time", "timeout"), again=True, may_cost=True)
        except openai.APIStatusError as error:
            return self._read_error(error)
        except TimeoutError:
            return Reply(Answer(None, "no answer in time", "timeout"), again=True, may_cost=True)
        except openai.APIConnectionError as error:
            reason = f"the connection failed ({self._hide(str(error.__cause__ or error))})"
            return Reply(Answer(None, reason, "connection"), again=True, may_cost=True)
        except Exception as error:
            if not _is_of_transport(error):
                raise
            reason = f"the connection broke off ({type(error).__name__})"
            return Reply(Answer(None, reason, "connection"), again=True, may_cost=True)
        if len(body) > LARGEST_BODY:
            return Reply(Answer(None, f"the answer is larger than {LARGEST_BODY:,} bytes", "malformed"), may_cost=True)
        try:
            found = loads(body)
        except NotJSONError:
            broken = Answer(
                None, "the answer is not whole JSON", "malformed", self._hide(body[:200].decode("utf-8", "replace"))
            )
            return Reply(broken, again=True, may_cost=True)
        answer = read_completion(found)
        return Reply(
            answer._replace(raw=None if answer.raw is None else self._hide(answer.raw)),
            may_cost=answer.output_tokens is None,
        )

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
        said = self._hide(_message_of(error))
        if status in (_BAD_REQUEST, _UNPROCESSABLE):
            return self._read_refusal(error, status, said)
        if status in _HOPELESS:
            remedy = _HOPELESS[status].format(key=self._key_variable)
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

    def _hide(self, text: str) -> str:
        """Return a text without the key, which some endpoints repeat in their errors."""
        return text.replace(self._key, "***") if self._key else text


def _is_address(url: Any) -> bool:
    """Tell whether something is an http address with a host."""
    try:
        return urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except (ValueError, TypeError, AttributeError):  # half an address of IPv6, a port that is not a number, not a text
        return False


def _is_of_transport(error: Exception) -> bool:
    """Tell whether an error is one of the library below the client, which wraps only those of sending."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in (
        "httpx",
        "httpx2",
        "httpcore",
        "httpcore2",
    )


def _message_of(error: Any) -> str:
    """Return what an endpoint says of an error, in one line of at most 300 characters."""
    body = error.body
    if isinstance(body, dict):
        body = (
            body.get("message")
            or body.get("detail")
            or (body.get("error") if isinstance(body.get("error"), str) else None)
        )
    text = body if isinstance(body, str) else str(error.message)
    return " ".join(text.split())[:300]


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
