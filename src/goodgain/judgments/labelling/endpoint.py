"""Calls an OpenAI-compatible endpoint, and interprets errors.

The `openai` client retries, applies the timeout, and obeys a short Retry-After. A subclass of the HTTP client counts requests.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

from goodgain.errors import InputError, count_of, notice, tell_progress
from goodgain.judgments.labelling.answers_and_journal import (
    Answer,
    describe_error,
    find_failure,
    read_completion,
    read_usage,
    summarize_error,
)
from goodgain.judgments.labelling.budget import Budget, JobEnded, StoppedError, UnusableError
from goodgain.judgments.labelling.keys import Key
from goodgain.judgments.labelling.prompt_requests import OUTPUT_LIMITS, Request, check_number
from goodgain.judgments.labelling.responses import (
    BAD_REQUEST,
    count_tokens,
    find_error,
    find_kind,
    find_name,
    measure_answer,
    parse_body,
    read_body,
    read_wait,
    show_address,
    split_address,
    summarize,
)
from goodgain.options import spell

_URL_VARIABLE = "OPENAI_BASE_URL"
#: The most characters to keep of an error message.
_SAID = 300
#: Errors of httpx or httpx2 for a failed connection: nothing was sent.
_NOT_CONNECTED = ("ConnectError", "ConnectTimeout", "ProxyError")
#: The status set for an answer that is not JSON, so that the client retries. No server sends this status.
_UNREADABLE = 599
#: Status after which no further call can succeed -> problem and remedy.
_HOPELESS = {
    401: "the key is not accepted. Set the variable {key}",
    402: "the account has no credit, or its budget is spent. Add some",
    403: "the key may not use this model or endpoint. Give another {model} or {key_variable}",
    404: "the endpoint or the model is not there. Check {base_url} and {model}",
}
#: The status for an error without a code in an answer with status 200, unless the error blames the request. It is retried.
_UNAVAILABLE = 503
_BLAMES_REQUEST = re.compile(
    r"\b(?:invalid|unexpected|unknown|unsupported|not supported|not found)\b|invalid_", re.IGNORECASE
)
#: What servers say of a JSON schema that they cannot follow, and the statuses with which they say it.
_ABOUT_SCHEMA = re.compile(r"response[_ ]?format|json[_ ]?schema|structured[_ ]outputs?|guided|grammar", re.IGNORECASE)
_REFUSES_SCHEMA = (BAD_REQUEST, 422, 500, 501)
#: Statuses of a server that fails at the same request each time, as often as it gets the request.
_FAILS_ALWAYS = (500, 501)
#: How often the same sentence may come before any call has succeeded, until calls with this sentence are not retried.
_SAME_SENTENCE = 6
#: Seconds after which a first error is told, if no call has succeeded.
_TELL_AFTER = 5.0
#: The longest Retry-After, in seconds, that the client obeys, and that `_wait_as_asked` obeys.
_CLIENT_WAITS, _LONGEST_WAIT = 60.0, 3_600.0
#: The most time to read a body, as a multiple of the timeout.
_WHOLE = 10
#: The events after which httpx has a new connection (its extension `trace`).
_CONNECTED = (".connect_tcp.complete", ".start_tls.complete")


#: The names of a schema in a request.
_SCHEMA_NAMES = ("response_format", "json_schema")


def _list_remedies() -> dict[str, str]:
    """Return {parameter: what to do if the endpoint refuses it}."""
    without = f"Ask without a schema: {spell('schema', False)}"
    return {
        "temperature": f"Send none: {spell('temperature', None)}",
        "response_format": without,
        "json_schema": without,
        "reasoning_effort": f"Leave out {spell('reasoning_effort')}",
        **dict.fromkeys(OUTPUT_LIMITS, f"Give the limit by its name at this endpoint: {spell('extra_body')}"),
    }


def _find_address(base_url: str | None) -> str:
    """Return `base_url`, else the address in the environment. A default address could get data by accident."""
    url = base_url or os.environ.get(_URL_VARIABLE)
    if not url:
        raise InputError(
            "there is no endpoint: nothing is sent anywhere by default. Give the address of an OpenAI-compatible endpoint "
            f"({spell('base_url')}, or the variable {_URL_VARIABLE})"
        )
    return url


class Endpoint:
    """An OpenAI-compatible endpoint, called through the `openai` client. Threads may share an endpoint.

    If `base_url` is None, the variable OPENAI_BASE_URL gives the address. The key is hidden in all answers. All requests and
    retries count in the budget. A request fails after `timeout` seconds without a byte, or after 10 * `timeout` seconds in total.
    """

    def __init__(self, base_url: str | None, key: Key, budget: Budget, *, timeout: float = 60.0) -> None:
        check_number("timeout", timeout, 0.001, 86_400, others=" seconds")
        try:
            import openai
        except ImportError:
            raise InputError('labels need the client of the endpoint: pip install "goodgain[label]"') from None
        self._openai = openai
        url = _find_address(base_url)
        parts = split_address(url)
        self._key = key
        self.budget = budget
        self.host = parts.netloc.rpartition("@")[2]
        self._url = key.hide(show_address(parts).rstrip("/"))

        self._has_answered = self._has_waited = self._has_succeeded = self._has_told = False
        #: Whether the endpoint refused a JSON schema. Later calls send none.
        self.lacks_schema = False
        #: The first error, until a call succeeds or the error is told: when it came, and a sentence.
        self._trouble: tuple[float, str] | None = None
        #: (status, sentence) -> how often the endpoint said it, before any call succeeded.
        self._sentences = Counter[tuple[int, str]]()
        self._lock = threading.Lock()
        #: Whether the endpoint refused the first name of the limit of output tokens.
        self._has_other_limit = False
        #: The call of this thread: reserved tokens, bytes of the messages, body of the answer, names of parameters, number of
        #: requests, whether it has a schema of ours, the last refusal, when the answer must have ended, and the error if not.
        self._call = threading.local()
        self._client = openai.OpenAI(
            base_url=url,
            api_key=key.value or "none",
            max_retries=budget.tries - 1,
            timeout=timeout,
            default_headers=key.headers,
            http_client=self._make_http_client(timeout),
        )

    def _make_http_client(self, timeout: float) -> Any:
        """Return an HTTP client whose requests and retries count in the budget."""
        openai, endpoint = self._openai, self

        class CountedClient(openai.DefaultHttpxClient):  # type: ignore[name-defined,misc]  # a module that is imported late
            def send(self, request: Any, **options: Any) -> Any:
                send, late = super().send, openai.APITimeoutError(request)

                def fetch() -> Any:  # the time begins after the wait for the limits per minute
                    endpoint._call.end = time.monotonic() + _WHOLE * timeout
                    endpoint._call.late = late
                    request.extensions["trace"] = endpoint._limit_reads
                    return read_body(send(request, **options | {"stream": True}))

                response = endpoint._send_and_count(fetch)
                endpoint._wait_as_asked(response)
                return response

        # the key and the texts go to the announced host only
        return CountedClient(follow_redirects=False)

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()  # pending calls end with an error

    def ask(self, request: Request) -> Answer:
        """Send one request. Return the model's answer, or an `Answer` that says why the request failed.

        Raise `StoppedError` if no call can succeed, for example with a wrong key. Raise `JobEnded` if the job has ended.
        """
        body = request.body
        limit = request.parameters.output_limit
        extra_body = request.parameters.extra_body or {}
        if self._has_other_limit and limit in body:
            refused, limit = limit, OUTPUT_LIMITS[limit == OUTPUT_LIMITS[0]]  # the other of the two names
            body[limit] = body.pop(refused)
        has_schema = request.parameters.schema and "response_format" not in extra_body
        if has_schema and self.lacks_schema:
            del body["response_format"]
            has_schema = False

        names = [name for name in _list_remedies() if name in body]
        names += extra_body
        if has_schema:
            names.append("json_schema")
        self._begin_call(request, body, names, has_schema=has_schema)
        try:
            self._client.post("/chat/completions", cast_to=type(None), body=body)
        except Exception as error:
            failure = error
        else:
            return read_completion(self._call.body, self._key.hide, request.prompt.grades)

        # outside of `except`: no traceback may contain an error that quotes the key
        refused_name = self._read_failure(failure, names)
        if isinstance(refused_name, Answer):  # the endpoint did not refuse a parameter
            return refused_name
        if refused_name == limit and limit == request.parameters.output_limit:
            self._has_other_limit = True
            return self.ask(request)
        if has_schema and refused_name in _SCHEMA_NAMES:
            self._go_on_without_schema(failure)
            return self.ask(request)
        remedy = _list_remedies().get(refused_name, "Leave it out")
        raise StoppedError(f"{self.host} refuses the parameter {refused_name} ({self._quote(failure)}). {remedy}")

    def _begin_call(self, request: Request, body: dict[str, Any], names: list[str], *, has_schema: bool) -> None:
        """Record the call of this thread. `names` are the parameters that the endpoint may refuse."""
        self._call.has_schema = has_schema
        self._call.refusal = None
        self._call.most = request.most_tokens
        self._call.body = None
        self._call.names = names
        self._call.sent = 0
        self._call.text_bytes = sum(len(message["content"].encode()) for message in body["messages"])

    def tell_trouble(self) -> None:
        """Give a notice of the first error, if some seconds have passed and no call has succeeded."""
        with self._lock:
            since, sentence = self._trouble or (math.inf, "")
            if self._has_told or time.monotonic() - since < _TELL_AFTER:
                sentence = ""
            if sentence:
                self._has_told = True
        if sentence:
            tries = f"A failed call is tried up to {count_of(self.budget.tries, 'time')}"
            notice("failing_endpoint", f"no call has succeeded yet: {sentence}. {tries}. You can stop at any time")

    def _note_trouble(self, sentence: str) -> None:
        with self._lock:
            if self._trouble is None and not self._has_succeeded:
                self._trouble = time.monotonic(), sentence

    def _go_on_without_schema(self, failure: Any) -> None:
        """Note that this endpoint refuses a schema, so that later calls have none. The first time, give a notice."""
        with self._lock:
            is_first = not self.lacks_schema
            self.lacks_schema = True
        if is_first:
            notice(
                "schema_refused",
                f"{self.host} refuses a JSON schema ({self._quote(failure)}), so goodgain asks without. Answers are validated "
                f"just as strictly. {spell('schema', False)} asks without from the start",
            )

    def _send_and_count(self, send: Any) -> Any:
        """Send a request of this thread within the budget, and return its response.

        If nothing can be reached before the endpoint has answered once, end the job: the address is wrong.
        """
        most = self._call.most
        entry = self.budget.reserve(most)
        self._call.sent += 1

        cost = most, 0  # the worst case, if the usage is unknown
        try:
            response = send()
            self._has_answered = self._has_answered or not response.has_redirect_location
            cost = self._judge_response(response, most)
        except Exception as error:
            self._note_trouble(self._shorten(str(error)) or type(error).__name__)
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

        remedy = f"Start the endpoint, or correct {spell('base_url')}"
        self.budget.end(UnusableError(f"{self._url}: cannot be reached ({reason}). {remedy}"))
        raise JobEnded

    def _judge_response(self, response: Any, most: int) -> tuple[int, int]:
        """Return the input and output tokens that a response costs: 0 for a refusal, `most` if a success does not say.

        An error with status 200, and a body that is not JSON, get the status of an error, so the client retries as it should.
        The body of a success is kept for this thread.
        """
        was_good = response.is_success
        body = parse_body(response)
        if was_good and body is None:
            response.status_code = _UNREADABLE
            return most, 0
        error = find_error(body) if isinstance(body, dict) else None
        if was_good and error is not None:
            is_object = error is not body or "error" in (body.get("object"), body.get("type"))
            response.status_code = self._find_status(error) if is_object else BAD_REQUEST

        if not response.is_success:
            status, summary = response.status_code, summarize(response)
            self._note_trouble(f"{self.host} answers {status} ({self._shorten(summary)})")
            is_known = find_kind(status, summary) in _HOPELESS or find_failure(status, summary)
            if is_known or self._refuses_schema(status, summary) or self._says_it_again(status, summary):
                response.headers["x-should-retry"] = "false"  # the client obeys it
            if not was_good or (isinstance(body, dict) and "choices" not in body):
                return 0, 0

        self._call.body = body
        with self._lock:
            self._has_succeeded, self._trouble = True, None
        sent, received = read_usage(body)
        if sent is None or received is None:
            return most, 0
        return count_tokens(sent, self._call.text_bytes), count_tokens(received, measure_answer(body))

    def _refuses_schema(self, status: int, summary: str) -> bool:
        return self._call.has_schema and status in _REFUSES_SCHEMA and bool(_ABOUT_SCHEMA.search(summary))

    def _says_it_again(self, status: int, summary: str) -> bool:
        """Return whether a retry is in vain: no call has succeeded, and the server repeats one sentence."""
        if status not in _FAILS_ALWAYS or self._has_succeeded:
            return False
        refusal = status, summary
        is_second = self._call.refusal == refusal
        self._call.refusal = refusal
        with self._lock:
            self._sentences[refusal] += 1
            return is_second or self._sentences[refusal] > _SAME_SENTENCE

    def _limit_reads(self, event: str, info: Any) -> None:
        """Limit the time of all reads of a call: an endpoint may drip headers, or send answers 103 without end."""
        if event.endswith(_CONNECTED):
            stream = info["return_value"]
            stream.read = partial(self._read_in_time, stream.read)

    def _read_in_time(self, read: Callable[..., bytes], most: int, timeout: float | None = None) -> bytes:
        """Read bytes, or raise the error of a late answer if the whole call has taken too long, whatever the error of the read."""
        left = self._call.end - time.monotonic()
        try:
            if left > 0:
                return read(most, left if timeout is None else min(timeout, left))
        except Exception:
            if time.monotonic() < self._call.end:
                raise
        raise self._call.late

    def _find_status(self, error: Any) -> int:
        """Return a fitting HTTP status for an error that the server sent with status 200."""
        code = str(error.get("code")) if isinstance(error, dict) else ""
        summary = summarize_error(error)
        if re.fullmatch("[45][0-9][0-9]", code):
            return int(code)
        is_known = find_kind(BAD_REQUEST, summary) != BAD_REQUEST or find_failure(BAD_REQUEST, summary)
        blames = is_known or find_name(self._call.names, summary) or _BLAMES_REQUEST.search(summary)
        return BAD_REQUEST if blames else _UNAVAILABLE

    def _wait_as_asked(self, response: Any) -> None:
        """Wait as long as the endpoint asks before the next try, if this is longer than the client itself would wait."""
        may_help = response.status_code in (408, 409, 429) or response.is_server_error
        wait = read_wait(response.headers) if may_help else 0.0
        is_last = self._call.sent >= self.budget.tries or response.headers.get("x-should-retry") == "false"
        if may_help and not is_last:
            when = f" in {math.ceil(wait):,} seconds" if 0 < wait <= _LONGEST_WAIT else ""
            tries = f"try {self._call.sent + 1} of {self.budget.tries}"
            tell_progress(f"{self.host} answered with status {response.status_code}: {tries}{when}", 0, None)

        if _CLIENT_WAITS < wait <= _LONGEST_WAIT and not is_last:
            if not self._has_waited:
                self._has_waited = True
                notice(
                    "waiting_endpoint",
                    f"{self.host} asks to wait {math.ceil(wait):,} seconds before the next try. You can stop, and give the same "
                    "command later: answered calls are never repeated",
                )
            self.budget.pause(wait)
            for name in ("retry-after", "retry-after-ms"):
                response.headers.pop(name, None)

    def _read_failure(self, error: Exception, names: Sequence[str]) -> Answer | str:
        """Return the failed answer for an error of the client, or the parameter in `names` that the endpoint refuses.

        Raise `StoppedError` if no further call can succeed.
        """
        openai = self._openai
        if openai.APITimeoutError in (type(error), type(error.__cause__)):
            return Answer(None, "no answer in time", "timeout")
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            reason = self._shorten(str(cause)) or type(cause).__name__
            return Answer(None, f"the connection failed ({reason})", "connection")
        if not isinstance(error, openai.APIStatusError):
            raise error

        status, sentence, summary = error.status_code, self._quote(error), summarize(error.response)
        if error.response.has_redirect_location:
            return self._read_redirect(error)
        if status == _UNREADABLE:
            text = self._key.hide(error.response.text)[:_SAID]
            return Answer(None, "the answer is not whole JSON", "malformed", text)
        if failure := find_failure(status, summary):
            return Answer(None, sentence, failure)

        kind = find_kind(status, summary)
        if kind in _HOPELESS:
            options = {name: spell(name) for name in ("base_url", "key_variable", "model")}
            reason = _HOPELESS[kind].format(key=self._key.variable, **options)
            raise StoppedError(f"{self.host} answers {status}: {reason} ({sentence})")
        refused = None
        if status in (BAD_REQUEST, 422):
            refused = find_name(names, summary)
        if refused is None and self._refuses_schema(status, summary):
            refused = "json_schema"
        return refused or Answer(None, sentence, f"http_{status}")

    def _read_redirect(self, error: Any) -> Answer:
        """Return a failed answer for a redirect, which is never followed. At the first call, raise `StoppedError`."""
        location = error.response.headers["location"]
        try:
            address = show_address(urlsplit(urljoin(str(error.request.url), location)))
        except ValueError:  # not an address, such as an invalid IPv6 address
            address = location.partition("?")[0].rpartition("@")[2]
        target = self._shorten(address)
        if self._has_answered:
            return Answer(None, f"redirects to {target}", f"http_{error.status_code}")
        base = target.removesuffix("/chat/completions")
        remedy = f"Correct {spell('base_url')}"
        if base not in (target, self._url):
            remedy = f"If you trust it, give {spell('base_url', base)}"
        raise StoppedError(f"{self._url}: redirects to {target}, and redirects are not followed. {remedy}")

    def _quote(self, error: Any) -> str:
        return self._shorten(describe_error(error.body) or str(error.message))

    def _shorten(self, text: str) -> str:
        return self._key.hide(" ".join(text.split()))[:_SAID]
