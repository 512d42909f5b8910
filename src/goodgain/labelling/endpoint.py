"""An OpenAI-compatible endpoint: its address, its key (kept out of all that is written or shown), one call, and its errors."""

from __future__ import annotations

import html
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.labelling.answers_and_journal import Answer, describe_error, read_completion
from goodgain.labelling.prompt_requests import Parameters, Request, check_number

#: Where the key is, unless another variable is named, and the address, unless one is given.
KEY_VARIABLE, _URL_VARIABLE = "OPENAI_API_KEY", "OPENAI_BASE_URL"
#: What a header can carry without change: printable ASCII without blanks.
_SENDABLE = re.compile("[!-~]+")
#: What may separate two signs of a key: the blanks of wrapped text, and backslashes of the key, of repr and of JSON.
_GAP = r"(?:[\s\\]|(?i:%5c|u005c|x5c|&\#x5c;|&\#92;))*+"


class Key:
    """The key in an environment variable; `value` is empty for an endpoint without keys.

    Raises:
        InputError: the key cannot be sent as it is. The error does not show it.
    """

    def __init__(self, variable: str = KEY_VARIABLE) -> None:
        if not variable:
            raise InputError(f"key_variable={variable!r}: give the name of the environment variable that holds the key")
        self.variable = variable
        self.value = os.environ.get(variable, "")
        if self.value and not _SENDABLE.fullmatch(self.value):
            raise InputError(
                f"{variable}: the key has a blank, a line end or a character that is not printable ASCII. "
                "Set the variable to the key alone; lines of a .env file saved on Windows end with an invisible \\r"
            )
        # The key as it is, and as repr, JSON, URLs, HTML and wrapped text write it. No part of the pattern goes back: the
        # text comes from the endpoint.
        written = _GAP.join(_match_character(character) for character in self.value if character != "\\")
        self._pattern = re.compile("|".join(filter(None, (re.escape(self.value), written))))

    def hide(self, text: str) -> str:
        """Return a text with `***` in place of the key, however it is escaped or wrapped. Cut texts only afterwards.

        >>> os.environ["DEMO_KEY"] = "sk-a/b"
        >>> Key("DEMO_KEY").hide(r'{"Authorization": "Bearer sk-a\\/b"}')
        '{"Authorization": "Bearer ***"}'
        >>> del os.environ["DEMO_KEY"]
        """
        return self._pattern.sub("***", text) if self.value else text


def _match_character(character: str) -> str:
    code = f"{ord(character):02x}"
    escaped = "|".join(map(re.escape, (f"%{code}", f"u00{code}", f"x{code}", f"&#x{code};", f"&#{ord(character)};")))
    return f"(?>(?i:{escaped})|{re.escape(html.escape(character))}|{re.escape(character)})"


#: Seconds that Retry-After may ask to wait: a job that waits for longer seems to hang.
_LONGEST_WAIT = 3600.0
#: Bytes of an answer that are read.
_LARGEST_BODY = 2**20
#: Characters that are kept of what an endpoint says of an error.
_SAID = 300
#: A parameter that an endpoint may refuse -> what to do about it.
_REMEDIES = {
    "temperature": "send none: temperature=None",
    "response_format": "ask without a schema: schema=False",
    "json_schema": "ask without a schema: schema=False",
    "max_completion_tokens": "use the older name: output_limit='max_tokens'",
    "max_tokens": "use the newer name: output_limit='max_completion_tokens'",
}
#: Errors of httpx, or of httpx2, where the connection failed and nothing was sent.
_NOT_CONNECTED = ("ConnectError", "ConnectTimeout", "ProxyError")
#: The libraries below the client, which wraps their errors only of sending.
_TRANSPORT = ("httpx", "httpx2", "httpcore", "httpcore2")
_BAD_REQUEST, _TIMEOUT, _CONFLICT, _UNPROCESSABLE, _TOO_MANY, _SERVER = 400, 408, 409, 422, 429, 500
#: Statuses that hold for every call: no further call can succeed.
_HOPELESS = {
    401: "the key is not accepted; set the variable {key}",
    402: "the account has no credit",
    403: "the key may not use this model or endpoint",
    404: "the endpoint or the model is not there; check base_url= and model=",
}


@dataclass(frozen=True)
class Spent:
    """What was sent: calls, and tokens as the endpoint counts them or, where it does not say, as they were reserved."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens sent and received."""
        return self.input_tokens + self.output_tokens

    def add(self, calls: int = 0, input_tokens: int = 0, output_tokens: int = 0) -> Spent:
        """Return what was spent with this call and these tokens too."""
        return Spent(self.calls + calls, self.input_tokens + input_tokens, self.output_tokens + output_tokens)


class StoppedError(InputError):
    """Raised where no further call can succeed; what was answered before is kept. `spent` is what was sent until then."""

    spent = Spent()


class UnreachableError(StoppedError):
    """Raised where the connection fails before the first answer of the endpoint."""

    exit_status = 1


class Reply(NamedTuple):
    """What came of one call: the answer, or the failure, and whether the same call may succeed later.

    `wait` is the seconds that the endpoint asked to wait, if it did; `may_cost` says that it may have done the work without
    counting tokens.
    """

    answer: Answer
    again: bool = False
    wait: float | None = None
    may_cost: bool = False


class Endpoint:
    """An OpenAI-compatible endpoint, asked through the `openai` client. Threads may share one.

    Without `base_url` its address is in the variable OPENAI_BASE_URL; none is built in. The key is sent, and hidden in all
    that comes back. A call takes `timeout` seconds at most, from its beginning to its end.
    """

    def __init__(self, base_url: str | None, parameters: Parameters, key: Key, *, timeout: float = 60.0) -> None:
        check_number("timeout", timeout, 0.001, 86_400, others=" seconds")
        url = base_url or os.environ.get(_URL_VARIABLE)
        if not url:
            raise InputError(
                "there is no endpoint: nothing is sent anywhere by default; give the address of one that is "
                f"OpenAI-compatible (base_url=, or the variable {_URL_VARIABLE})"
            )
        parts = _split_address(url)
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
        self.host = parts.netloc.rpartition("@")[2]
        self._url = key.hide(_show_address(parts).rstrip("/"))

    def close(self) -> None:
        """Close all connections; calls under way end with an error."""
        self._client.close()

    def ask(self, request: Request) -> Reply:
        """Send one call and return what came of it.

        It raises `StoppedError` where no call can succeed: the key is wrong, the model unknown, or a parameter is refused;
        before the first answer also where the connection fails or the endpoint redirects.
        """
        try:
            body = self._receive(request)
        except Exception as error:
            failure = error
        else:
            self._has_answered = True
            return self._read_body(body)
        return self._read_failure(failure)  # outside of `except`: a traceback of ours has no error that quotes the key

    def check_length(self, answer: Answer) -> None:
        """Raise `StoppedError` for an answer that is longer than the budget reserved."""
        asked = self._parameters.max_output_tokens
        if answer.output_tokens is not None and answer.output_tokens > asked:
            name = self._parameters.output_limit
            raise StoppedError(
                f"{self.host} gave an answer of {answer.output_tokens:,} tokens where {asked:,} were asked for at most: it does "
                f"not know the parameter {name}; {_REMEDIES[name]}"
            )

    def _receive(self, request: Request) -> bytes:
        end = time.monotonic() + self._timeout  # the client's own limit is for each piece
        received = bytearray()
        create = self._client.chat.completions.with_streaming_response.create
        with create(**self._parameters.make_body(request.messages)) as response:
            for piece in response.iter_bytes():
                received += piece
                if len(received) > _LARGEST_BODY:
                    break
                if time.monotonic() > end:
                    raise TimeoutError
        return bytes(received)

    def _read_body(self, body: bytes) -> Reply:
        if len(body) > _LARGEST_BODY:
            return Reply(Answer(None, f"the answer is larger than {_LARGEST_BODY:,} bytes", "malformed"), may_cost=True)
        try:
            found = loads(body)
        except NotJSONError:
            raw = self._key.hide(body.decode("utf-8", "replace"))[:200]
            return Reply(Answer(None, "the answer is not whole JSON", "malformed", raw), again=True, may_cost=True)
        answer = read_completion(found, self._key.hide)
        return Reply(answer, may_cost=answer.output_tokens is None)

    def _read_failure(self, error: Exception) -> Reply:
        """Return what the error of a call means; raise an error again that does not come from the endpoint."""
        openai = self._openai
        if isinstance(error, openai.APIStatusError):
            redirects = error.response.has_redirect_location
            return self._read_redirect(error) if redirects else self._read_status(error)
        cause = error.__cause__ or error
        reason = self._shorten(str(cause)) or type(cause).__name__
        if type(cause).__name__ in _NOT_CONNECTED:
            if not self._has_answered:
                raise UnreachableError(
                    f"{self._url}: cannot be reached ({reason}). Start the endpoint, or correct base_url="
                )
            return Reply(Answer(None, f"the connection failed ({reason})", "connection"), again=True)
        if isinstance(error, (openai.APITimeoutError, TimeoutError)):
            return Reply(Answer(None, "no answer in time", "timeout"), again=True, may_cost=True)
        is_of_transport = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _TRANSPORT
        if isinstance(error, openai.APIConnectionError) or is_of_transport:
            return Reply(Answer(None, f"the connection broke off ({reason})", "connection"), again=True, may_cost=True)
        raise error

    def _read_status(self, error: Any) -> Reply:
        """Return what an HTTP error means for the document; raise `StoppedError` where it holds for all."""
        status = int(error.status_code)
        self._has_answered = True
        said = self._shorten(describe_error(error.body) or str(error.message))
        if status in (_BAD_REQUEST, _UNPROCESSABLE):
            return Reply(Answer(None, said, self._read_refusal(error, said) or f"http_{status}"))
        kind = 402 if status == _TOO_MANY and "insufficient_quota" in str(error.body) else status
        if kind in _HOPELESS:
            remedy = _HOPELESS[kind].format(key=self._key.variable)
            raise StoppedError(f"{self.host} answers {status}: {remedy} ({said})")
        wait = _read_wait(error.response.headers)
        again = status in (_TIMEOUT, _CONFLICT, _TOO_MANY) or status >= _SERVER
        return Reply(Answer(None, said, f"http_{status}"), again and (wait or 0) <= _LONGEST_WAIT, wait)

    def _read_refusal(self, error: Any, said: str) -> str | None:
        """Return whether a 400 calls the text too long or refuses it; raise `StoppedError` where it names a parameter."""
        body = error.body if isinstance(error.body, dict) else {}
        code, named = str(body.get("code")), f"{body.get('param') or ''} {said}"
        if "context_length" in code or "context length" in said.lower():
            return "too_long"
        sent = self._parameters.make_body([])
        for parameter, remedy in _REMEDIES.items():
            if parameter in named and (parameter in sent or (parameter == "json_schema" and "response_format" in sent)):
                raise StoppedError(f"{self.host} refuses the parameter {parameter} ({said}); {remedy}")
        return "refused" if "content_filter" in code or "content_policy" in code else None

    def _read_redirect(self, error: Any) -> Reply:
        """Return what a redirect means, which is not followed; raise `StoppedError` before the first answer."""
        location = error.response.headers["location"]
        try:
            shown = _show_address(urlsplit(urljoin(str(error.request.url), location)))
        except ValueError:  # not an address, such as half of one of IPv6
            shown = location.partition("?")[0].rpartition("@")[2]
        target = self._shorten(shown)
        if self._has_answered:
            return Reply(Answer(None, f"redirects to {target}", f"http_{error.status_code}"))
        base = target.removesuffix("/chat/completions")
        is_another = base not in (target, self._url)
        remedy = f"If you trust it, give base_url={str(base)!r}" if is_another else "Correct base_url="
        raise StoppedError(f"{self._url}: redirects to {target}, and redirects are not followed. {remedy}")

    def _shorten(self, text: str) -> str:
        """Return a text of the endpoint in one line of at most 300 characters, without the key, which some repeat."""
        return self._key.hide(" ".join(text.split()))[:_SAID]


def _split_address(url: str) -> SplitResult:
    """Return the parts of an http address; raise `InputError` for anything else."""
    try:
        parts = urlsplit(url)
        is_text = url.isprintable() and " " not in url
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and is_text:
            return parts
    except (ValueError, TypeError, AttributeError):  # half an address of IPv6, a port that is not a number, not a text
        pass
    raise InputError(f"{url!r}: is not an http address; give one such as http://localhost:8000/v1")


def _show_address(parts: SplitResult) -> str:
    """Return an address without what may be secret: the user with the password, and the query."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _read_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After asks to wait; None where it has no number of them."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
