"""Sends the calls of a job within a budget. The first 20 calls of each model are a trial: if most of them fail, the job ends."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from goodgain.errors import InputError
from goodgain.judgments.labelling.answers_and_journal import CUT, Answer, Journal
from goodgain.judgments.labelling.prompt_requests import Request
from goodgain.options import check_whole_number, spell

if TYPE_CHECKING:
    from goodgain.judgments.labelling.endpoint import Endpoint

_MINUTE = 60.0
#: Option that may be None (no limit) -> the smallest other value.
_LEAST = {"max_calls": 0, "max_tokens": 0, "requests_per_minute": 1, "tokens_per_minute": 1}


class StoppedError(InputError):
    """Raised when no further call can succeed. Earlier answers are kept."""


class UnusableError(StoppedError):
    """Raised if the endpoint cannot be reached, if most of a model's first 20 answers are unusable, or if nothing is graded."""

    exit_status = 1


class JobEnded(BaseException):  # like KeyboardInterrupt, not caught by the client's retries
    """Raised in a worker thread to stop it, because the job has ended."""


@dataclass
class Pace:
    """The limits on calls and tokens in any sixty seconds. A limit of None allows any number.

    A finished call counts as the tokens that the call used. A pending call counts as an estimate: if earlier calls used 30 %
    of their reserved tokens, the pending call counts as 30 % of its reserved tokens.
    """

    requests: int | None
    tokens: int | None
    _recent: deque[list[float]] = field(default_factory=deque)
    _reserved: float = 0.0
    _used: float = 0.0

    def find_delay(self, reserved: int, now: float) -> float:
        """Return how many seconds to wait before a call that reserves `reserved` tokens, or 0 to send it now."""
        while self._recent and self._recent[0][0] <= now - _MINUTE:
            self._recent.popleft()
        over_requests = self.requests is not None and len(self._recent) >= self.requests
        sent = sum(tokens for _, tokens in self._recent) if self.tokens is not None else 0
        over_tokens = self.tokens is not None and sent + self._estimate(reserved) > self.tokens
        # a call larger than the limit is sent alone
        return self._recent[0][0] + _MINUTE - now if self._recent and (over_requests or over_tokens) else 0.0

    def add(self, reserved: int, now: float) -> list[float]:
        entry = [now, self._estimate(reserved)]
        self._recent.append(entry)
        return entry

    def settle(self, entry: list[float], reserved: int, used: int) -> None:
        entry[1] = used
        self._reserved += reserved
        self._used += used

    def _estimate(self, reserved: int) -> float:
        return reserved * (self._used / self._reserved if self._used else 1.0)


@dataclass(eq=False)
class Budget:
    """The limits of a job, and the calls and tokens already spent. Threads share a budget.

    `jobs` is the number of calls at once, `tries` the maximum number of attempts per call. Each request reserves the most tokens
    that it can use. After the answer, the tokens actually used replace the reserved tokens.
    """

    jobs: int = 8
    max_calls: int | None = None
    max_tokens: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tries: int = 6

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name not in _LEAST:
                check_whole_number(name, value, 1)
            elif value is not None:
                check_whole_number(name, value, _LEAST[name], others=", or None (any number)")
        #: The calls sent, retries included, and their tokens: as reported by the endpoint, else as reserved.
        self.calls = self.input_tokens = self.output_tokens = 0
        self.under_way = 0
        #: Why the job ended early: a sentence, or the error to raise.
        self.ended: str | BaseException | None = None
        self._reserved = 0
        self._pace = Pace(self.requests_per_minute, self.tokens_per_minute)
        self._changed = threading.Condition()

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def end(self, why: str | BaseException) -> None:
        with self._changed:
            self.ended = self.ended or why
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.ended, seconds)

    def reserve(self, tokens: int) -> list[float]:
        """Wait until the limits allow a request, reserve its tokens, and return the entry that `settle` needs.

        Raise `JobEnded` if the job has ended, or if the budget is spent.
        """
        with self._changed:
            while True:
                pending = self.tokens + self._reserved
                is_over = self.max_tokens is not None and pending + tokens > self.max_tokens
                is_last = self.max_calls is not None and self.calls >= self.max_calls
                if is_last or (is_over and not self.under_way):
                    self.ended = self.ended or "the budget is spent"
                    self._changed.notify_all()
                if self.ended:
                    raise JobEnded
                delay = self._pace.find_delay(tokens, time.monotonic())
                if not is_over and delay <= 0:
                    break
                self._changed.wait(delay if not is_over else None)
            self.calls += 1
            self._reserved += tokens
            self.under_way += 1
            return self._pace.add(tokens, time.monotonic())

    def settle(self, entry: list[float], reserved: int, input_tokens: int, output_tokens: int) -> None:
        with self._changed:
            self.input_tokens += input_tokens
            self.output_tokens += output_tokens
            self._reserved -= reserved
            self.under_way -= 1
            self._pace.settle(entry, reserved, input_tokens + output_tokens)
            self._changed.notify_all()


#: The first calls of each model, which show whether answers can be used.
TRIAL = 20
#: Consecutive failures of the endpoint, after all tries, that stop the job.
_GIVE_UP = 50
#: Seconds to wait for pending calls of a stopped job, and between two checks for Ctrl-C.
_GRACE, _PIECE = 2.0, 0.2
#: The most characters of an answer in a message.
_SHOWN = 300


class Plan(NamedTuple):
    """The requests to send, without repeated keys, and the answers that the journal already has."""

    to_send: list[Request]
    known: dict[str, Answer]
    usable: Counter[str]  # model -> answers that are not failures


def plan_calls(requests: Iterable[Request], journal: Journal, *, retry_failed: bool = False) -> Plan:
    """Select the requests without an answer in the journal. With `retry_failed`, select only the requests that failed before."""
    by_key = {request.key: request for request in requests if request.document is not None}
    known = journal.find(by_key)
    asked = {key for key, answer in known.items() if answer.failed} if retry_failed else by_key.keys() - known.keys()
    usable = Counter(by_key[key].parameters.model for key, answer in known.items() if not answer.failed)
    return Plan([request for key, request in by_key.items() if key in asked], known, usable)


def send_calls(
    plan: Plan, endpoint: Endpoint, journal: Journal, report: Callable[[Answer], object] = lambda answer: None
) -> dict[str, Answer]:
    """Send the calls of a plan. Return a dict {key: answer}, which includes the answers that the journal already had.

    Each new answer is written to the journal, and then passed to `report`. Only one thread at a time calls `report`. If some
    calls were not sent, `endpoint.budget.ended` says why. Raise `UnusableError` if most answers to a model's first 20 calls
    cannot be used, and `StoppedError` if no further call can succeed.
    """
    answers = dict(plan.known)
    lock = threading.Lock()
    failures = 0

    def keep(request: Request, answer: Answer) -> None:
        nonlocal failures
        journal.add(request.key, answer, query_id=request.query_id, doc_id=request.doc_id, host=endpoint.host)
        if answer.output_tokens is not None and answer.output_tokens > request.most_output:
            raise StoppedError(
                f"{endpoint.host} gave an answer of {answer.output_tokens:,} tokens, over the limit of {request.most_output:,}: "
                f"it ignores {request.parameters.output_limit}. Choose another name of the limit with {spell('output_limit')}"
            )
        with lock:
            answers[request.key] = answer
            report(answer)
            is_endpoints = answer.status in ("timeout", "connection") or answer.status.startswith("http_")
            failures = failures + 1 if is_endpoints else 0
            if failures >= _GIVE_UP:
                raise StoppedError(
                    f"{endpoint.host} failed for {_GIVE_UP} documents in a row, the last with {answer.status} "
                    f"({answer.reason}). {_advise(answer.status)}"
                )

    tried: set[str] = set()
    for model in dict.fromkeys(request.parameters.model for request in plan.to_send):
        usable = plan.usable[model]
        trial = [one for one in plan.to_send if one.parameters.model == model][: max(0, TRIAL - usable)]
        _send_all(trial, endpoint, keep)
        tried.update(request.key for request in trial)
        found = [answers[request.key] for request in trial if request.key in answers]
        if len(found) + usable >= TRIAL and 2 * sum(answer.failed for answer in found) > TRIAL:
            raise UnusableError(explain_failures(found))
    _send_all([request for request in plan.to_send if request.key not in tried], endpoint, keep)
    return answers


def _send_all(requests: Iterable[Request], endpoint: Endpoint, keep: Callable[[Request, Answer], None]) -> None:
    budget, waiting, lock = endpoint.budget, iter(requests), threading.Lock()

    def work() -> None:
        try:
            while not budget.ended:
                with lock:
                    request = next(waiting, None)
                if request is None:
                    return
                keep(request, endpoint.ask(request))
        except JobEnded:
            pass
        except BaseException as error:  # the waiting thread raises it again
            budget.end(error)

    # daemons: with a thread pool, Ctrl-C would wait for an endpoint that hangs
    workers = [threading.Thread(target=copy_context().run, args=(work,), daemon=True) for _ in range(budget.jobs)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            # short waits: Polars' hook for Ctrl-C does not interrupt a wait. Without pending calls, workers only wait to retry.
            while worker.is_alive() and not (budget.ended and not budget.under_way):
                worker.join(_PIECE)
    except BaseException as error:
        budget.end(error)
        raise
    finally:
        if budget.ended:
            for worker in filter(threading.Thread.is_alive, workers):  # Ctrl-C may have come before all started
                worker.join(_GRACE / len(workers))
    if isinstance(budget.ended, BaseException):
        raise budget.ended


def explain_failures(answers: Sequence[Answer]) -> str:
    """Return a message with the number of failures, an example, and advice on the most frequent failure."""
    failed = [answer for answer in answers if answer.failed]
    kinds = [(answer.status, answer.reason == CUT) for answer in failed]
    (status, is_cut), _ = Counter(kinds).most_common(1)[0]
    first = failed[kinds.index((status, is_cut))]
    remedy = _advise(CUT if is_cut else status)
    shown = f": {' '.join(first.raw.split())[:_SHOWN]!r}" if first.raw else ""
    return (
        f"{len(failed):,} of {len(answers):,} answers cannot be used, most with {status}. One of them: "
        f"{first.reason}{shown}. {remedy}"
    )


def _advise(failure: str) -> str:
    room, thinking, body = spell("max_output_tokens"), spell("reasoning_effort", "low"), spell("extra_body")
    remedies = {
        CUT: f"Give a larger {room}, or have the model think less: {thinking}, or {body}",
        "malformed": f"Try {spell('schema', False)}, or end the model's thinking with {body} or {thinking}",
        "too_long": f"Give a smaller {spell('max_characters')}, or a smaller {room}",
        "refused": f"Give another {spell('model')}",
    }
    return remedies.get(failure, f"Look at the endpoint, then send these again with {spell('retry_failed', True)}")
