"""The calls of a job: several at once, within budget and rate, each answer in the journal before it is counted."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from goodgain.errors import check_whole_number
from goodgain.labelling.answers_and_journal import Answer, Journal
from goodgain.labelling.endpoint import Endpoint, Reply, Spent, StoppedError
from goodgain.labelling.prompt_requests import Request

#: Consecutive failures of the endpoint, after all tries, that stop the job.
_GIVE_UP = 50
#: The most seconds before a call is sent again, where the endpoint does not say when.
_LONGEST_WAIT = 60.0
#: Seconds in which pending calls may end when a job is stopped.
_GRACE = 2.0
#: Seconds between two checks for an interrupt while waiting for the workers.
_PIECE = 0.2
_MINUTE = 60.0
#: Options whose None is any number, and their least values.
_LEAST = {"max_calls": 0, "max_tokens": 0, "requests_per_minute": 1, "tokens_per_minute": 1}


@dataclass(frozen=True)
class Limits:
    """How calls are sent: how many at once (`jobs`), in all, in any sixty seconds, and how often one that may succeed later.

    Raises:
        InputError: one is not a whole number, or less than it may be.
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


@dataclass
class Budget:
    """Hard limits of calls and tokens, shared by threads; None: no limit.

    Each call reserves its worst-case cost: the bytes of the prompt (a byte-level tokenizer never makes more tokens) and the
    largest output. Actual usage then replaces it.
    """

    max_calls: int | None
    max_tokens: int | None
    spent: Spent = field(default_factory=Spent)
    _reserved: int = 0
    _under_way: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def reserve(self, tokens: int) -> bool:
        """Reserve one call and these tokens; False if the budget is spent. Waits while pending calls may free some."""
        with self._changed:
            while True:
                if self.max_calls is not None and self.spent.calls >= self.max_calls:
                    return False
                if self.max_tokens is None or self.spent.tokens + self._reserved + tokens <= self.max_tokens:
                    break
                if not self._under_way:
                    return False
                self._changed.wait()
            self.spent = self.spent.add(calls=1)
            self._reserved += tokens
            self._under_way += 1
            return True

    def settle(self, reserved: int, *, input_tokens: int, output_tokens: int) -> None:
        """Replace the reservation of a call by its actual usage."""
        with self._changed:
            self.spent = self.spent.add(input_tokens=input_tokens, output_tokens=output_tokens)
            self._reserved -= reserved
            self._under_way -= 1
            self._changed.notify_all()


@dataclass
class Rate:
    """Calls and tokens in any sixty seconds, shared by threads (None: any number), and a pause that an endpoint asked for.

    Tokens are counted as they are reserved. `sleep` waits for seconds, and returns True if the wait is to end, as the job
    stops; `clock` gives the seconds now.
    """

    requests: int | None
    tokens: int | None
    sleep: Callable[[float], bool]
    clock: Callable[[], float] = time.monotonic
    _sent: deque[tuple[float, int]] = field(default_factory=deque)
    _closed_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, tokens: int) -> None:
        """Wait until a call of so many tokens may be sent, and count it."""
        while (seconds := self._take(tokens)) > 0:
            if self.sleep(seconds):
                return

    def pause(self, seconds: float) -> None:
        """Let no call be sent for so many seconds."""
        with self._lock:
            self._closed_until = max(self._closed_until, self.clock() + seconds)

    def _take(self, tokens: int) -> float:
        """Count a call if it may be sent now; else return the seconds after which to ask again."""
        with self._lock:
            now = self.clock()
            while self._sent and self._sent[0][0] <= now - _MINUTE:
                self._sent.popleft()
            wait = self._closed_until - now
            over_requests = self.requests is not None and len(self._sent) >= self.requests
            over_tokens = self.tokens is not None and sum(sent for _, sent in self._sent) + tokens > self.tokens
            if self._sent and (over_requests or over_tokens):  # a call larger than the rate goes alone
                wait = max(wait, self._sent[0][0] + _MINUTE - now)
            if wait <= 0:
                self._sent.append((now, tokens))
            return wait


class Plan(NamedTuple):
    """What of a job is to be sent, each key once, and the answers that the journal has already, by their keys."""

    to_send: list[Request]
    known: dict[str, Answer]


class Done(NamedTuple):
    """What came of a job: answers by their keys, and what was spent. `stopped` says why it ended early."""

    answers: dict[str, Answer]
    spent: Spent
    stopped: str | None


def plan_calls(requests: Sequence[Request | None], journal: Journal, *, retry_failed: bool = False) -> Plan:
    """Sort requests into those that are to be sent and those that the journal answers.

    A failure in the journal is an answer too, and is not sent again; with `retry_failed` failures alone are sent.
    """
    by_key = {request.key: request for request in requests if request is not None}
    known = journal.find(by_key)
    asked = {key for key, answer in known.items() if answer.failed} if retry_failed else by_key.keys() - known.keys()
    return Plan([request for key, request in by_key.items() if key in asked], known)


#: Called with each answer, and with what was spent so far, by one thread at a time.
Report = Callable[[Answer, Spent], object]


def send_calls(
    plan: Plan, endpoint: Endpoint, journal: Journal, limits: Limits, report: Report = lambda answer, spent: None
) -> Done:
    """Send the calls of a plan, and return all answers; each is in the journal before it is counted, also if the job stops."""
    job = _Job(endpoint, journal, limits, report, dict(plan.known))
    waiting = iter(plan.to_send)
    # Daemons: with the threads of a pool, Ctrl-C would wait for an endpoint that hangs.
    workers: list[threading.Thread] = []
    try:
        for _ in range(min(limits.jobs, len(plan.to_send))):
            worker = threading.Thread(target=job.work, args=(waiting,), daemon=True)
            worker.start()
            workers.append(worker)
        for worker in workers:
            while worker.is_alive():  # in pieces: Polars' hook for Ctrl-C lets one long wait go on
                worker.join(_PIECE)
    finally:
        job.ended.set()
        end = time.monotonic() + _GRACE
        for worker in workers:
            worker.join(max(0.0, end - time.monotonic()))
        endpoint.close()
    if isinstance(job.error, StoppedError):
        job.error.spent = job.budget.spent
    if job.error is not None:
        raise job.error
    return Done(job.answers, job.budget.spent, job.stopped)


@dataclass
class _Job:
    """What the threads of a job share."""

    endpoint: Endpoint
    journal: Journal
    limits: Limits
    report: Report
    answers: dict[str, Answer]
    stopped: str | None = None
    error: BaseException | None = None
    _failures: int = 0
    _refused_in_a_row: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        limits = self.limits
        self.ended = threading.Event()
        self.budget = Budget(limits.max_calls, limits.max_tokens)
        self._rate = Rate(limits.requests_per_minute, limits.tokens_per_minute, self.ended.wait)

    def work(self, waiting: Iterator[Request]) -> None:
        """Send one request after the other until none is left or the job ends."""
        try:
            while not self.ended.is_set():
                with self._lock:
                    request = next(waiting, None)
                if request is None:
                    return
                answer = self._try(request)
                if answer is not None:
                    self._keep(request, answer)
        except BaseException as error:  # raised again by the thread that waits for this one
            with self._lock:
                self.error = self.error or error
            self.ended.set()

    def _try(self, request: Request) -> Answer | None:
        """Send a request until it has a final answer; None where it was not sent, or the job ended before."""
        reply = self._send(request)
        for turn in range(1, self.limits.tries):
            if reply is None or not reply.again or self.ended.wait(_find_wait(reply, turn)):
                break
            reply = self._send(request)
        # a temporary failure before the last try is not an answer: the next job sends the request again
        return None if reply is None or (reply.again and self.ended.is_set()) else reply.answer

    def _send(self, request: Request) -> Reply | None:
        """Send a request once; None where the budget has no room or the job ended."""
        most = request.most_tokens
        self._rate.wait(most)
        if self.ended.is_set():
            return None
        if not self.budget.reserve(most):
            self.stopped = "the budget is spent"
            self.ended.set()
            return None
        cost = 0, 0  # where the endpoint refuses the call, or is not reached
        try:
            reply = self.endpoint.ask(request)
            answer = reply.answer
            if answer.input_tokens is not None and answer.output_tokens is not None:
                cost = answer.input_tokens, answer.output_tokens
            elif reply.may_cost:  # usage is unknown: the worst case
                cost = most, 0
        finally:
            self.budget.settle(most, input_tokens=cost[0], output_tokens=cost[1])
        with self._lock:  # all calls pause when the endpoint says twice in a row that there are too many
            self._refused_in_a_row = self._refused_in_a_row + 1 if answer.status == "http_429" else 0
            if self._refused_in_a_row > 1 and reply.wait:
                self._rate.pause(reply.wait)
        return reply

    def _keep(self, request: Request, answer: Answer) -> None:
        self.journal.add(request.key, answer)
        self.endpoint.check_length(answer)
        with self._lock:
            self.answers[request.key] = answer
            self.report(answer, self.budget.spent)
            is_endpoints = answer.status in ("timeout", "connection") or answer.status.startswith("http_")
            self._failures = self._failures + 1 if is_endpoints else 0
            if self._failures >= _GIVE_UP:
                raise StoppedError(
                    f"{self.endpoint.host} failed {_GIVE_UP} documents one after the other, the last with {answer.status} "
                    f"({answer.reason}); look at the endpoint, then send these again with retry_failed=True"
                )


def _find_wait(reply: Reply, turn: int) -> float:
    """Return the seconds before the next try: as the endpoint asked, or doubling from half a second, half of them random."""
    longest: float = min(_LONGEST_WAIT, 0.5 * 2 ** (turn - 1))
    return longest * (0.5 + random.random() / 2) if reply.wait is None else reply.wait
