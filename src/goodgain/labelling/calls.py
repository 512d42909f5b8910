"""The calls of a job: several at once, within budget and rate, each answer in the journal before it is counted."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from goodgain.labelling.answers import Answer
from goodgain.labelling.endpoint import Endpoint, Reply, StoppedError
from goodgain.labelling.journal import Journal
from goodgain.labelling.limits import Budget, Rate, Spent
from goodgain.labelling.options import check_count
from goodgain.labelling.requests import Request

__all__ = ["Done", "Limits", "Plan", "plan_calls", "send_calls"]

#: The status of a document whose call was not sent, as the budget was spent or the job was stopped.
NOT_SENT = "not_sent"
#: So many failures of the endpoint one after the other, after all tries, stop the job.
_GIVE_UP = 50
_LONGEST_WAIT = 60.0
#: Seconds that calls under way have to end when a job is stopped.
_GRACE = 2.0


@dataclass(frozen=True)
class Limits:
    """How calls are sent.

    Attributes:
        jobs: how many at once.
        max_calls: how many in all; None: any number.
        max_tokens: how many tokens in all, sent and received; None: any number.
        requests_per_minute: calls in any sixty seconds; None: any number.
        tokens_per_minute: tokens in any sixty seconds; None: any number.
        tries: how often a call is sent that may succeed later.
        backoff: seconds before the second try; they double with each, and half of them is random.
    """

    jobs: int = 8
    max_calls: int | None = None
    max_tokens: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tries: int = 6
    backoff: float = 0.5

    def __post_init__(self) -> None:
        for name in ("jobs", "tries"):
            check_count(name, getattr(self, name))
        for name in ("max_calls", "max_tokens"):
            check_count(name, getattr(self, name), 0, none="any number")
        for name in ("requests_per_minute", "tokens_per_minute"):
            check_count(name, getattr(self, name), none="any number")


class Plan(NamedTuple):
    """What of a job is to be sent, and what the journal has already.

    Attributes:
        to_send: the requests without an answer, each key once.
        known: answers of the journal, by their keys.
    """

    to_send: list[Request]
    known: dict[str, Answer]

    @property
    def most_tokens(self) -> int:
        """The most tokens that the calls can take, if each is sent once."""
        return sum(request.most_tokens for request in self.to_send)


@dataclass
class Done:
    """What came of a job: answers by their keys, and what was spent. `stopped` says why it ended early."""

    answers: dict[str, Answer]
    spent: Spent = field(default_factory=Spent)
    stopped: str | None = None


def plan_calls(requests: Sequence[Request | None], journal: Journal, *, retry_failed: bool = False) -> Plan:
    """Sort requests into those that are to be sent and those that the journal answers.

    A failure in the journal is an answer too, and is not sent again; with `retry_failed` failures alone are sent.
    """
    by_key = {request.key: request for request in requests if request is not None}
    known = journal.find(by_key)
    if not retry_failed:
        return Plan([request for key, request in by_key.items() if key not in known], known)
    failed = {key for key, answer in known.items() if answer.failed}
    return Plan([by_key[key] for key in by_key if key in failed], known)


def send_calls(
    plan: Plan,
    endpoint: Endpoint,
    journal: Journal,
    limits: Limits,
    *,
    report: Callable[[Answer, Spent], object] = lambda answer, spent: None,
) -> Done:
    """Send what is to be sent, and return all answers. An answer is in the journal before it is counted or reported.

    Args:
        plan: what `plan_calls` returned.
        endpoint: where to.
        journal: where answers are kept.
        limits: how many calls, and how fast.
        report: called with each answer, and with what was spent so far, by one thread at a time.

    Raises:
        StoppedError: no call can succeed; answers until then are in the journal.
    """
    job = _Job(endpoint, journal, limits, report, dict(plan.known))
    waiting = iter(plan.to_send)
    # Daemons: an endpoint that hangs does not hold the program when it is stopped (Ctrl-C), as a pool's threads would.
    workers = [
        threading.Thread(target=job.work, args=(waiting,), daemon=True)
        for _ in range(min(limits.jobs, len(plan.to_send)))
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        job.stop()
        end = time.monotonic() + _GRACE
        for worker in workers:
            if worker.ident is not None:
                worker.join(max(0.0, end - time.monotonic()))
    if isinstance(job.error, StoppedError):
        job.error.spent = job.budget.spent
    if job.error is not None:
        raise job.error
    return Done(job.answers, job.budget.spent, job.stopped)


class _Job:
    """What the threads of a job share."""

    def __init__(
        self,
        endpoint: Endpoint,
        journal: Journal,
        limits: Limits,
        report: Callable[[Answer, Spent], object],
        answers: dict[str, Answer],
    ) -> None:
        self.answers = answers
        self.stopped: str | None = None
        self.error: BaseException | None = None
        self.budget = Budget(limits.max_calls, limits.max_tokens)
        self._endpoint = endpoint
        self._journal = journal
        self._limits = limits
        self._report = report
        self._ended = threading.Event()
        self._rate = Rate(limits.requests_per_minute, limits.tokens_per_minute, sleep=self._ended.wait)
        self._lock = threading.Lock()
        self._failures = 0
        self._refused_in_a_row = 0

    def stop(self) -> None:
        """Let no further call be sent."""
        self._ended.set()

    def work(self, waiting: Iterator[Request]) -> None:
        """Send one request after the other until none is left or the job ends."""
        try:
            while not self._ended.is_set():
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
            self.stop()

    def _try(self, request: Request) -> Answer | None:
        """Send a request until there is an answer that stands; None where it was not sent, or the job ended before."""
        reply: Reply | None = None
        for turn in range(self._limits.tries):
            if reply is not None and self._ended.wait(self._find_wait(reply, turn)):
                break
            sent = self._send(request)
            if sent is None:
                break
            reply = sent
            if not reply.again:
                break
        # a failure that may pass is not an answer if the job ended before the last try: the next job sends it again
        return None if reply is None or (reply.again and self._ended.is_set()) else reply.answer

    def _send(self, request: Request) -> Reply | None:
        """Send a request once; None where the budget has no room or the job ended."""
        most = request.most_tokens
        self._rate.wait(most)
        if self._ended.is_set():
            return None
        if not self.budget.reserve(most):
            self.stopped = "the budget is spent"
            self.stop()
            return None
        reply = None
        try:
            reply = self._endpoint.ask(request)
        finally:
            self._settle(most, reply)
        self._slow_down(reply)
        return reply

    def _settle(self, most: int, reply: Reply | None) -> None:
        answer = None if reply is None else reply.answer
        if answer is not None and answer.input_tokens is not None and answer.output_tokens is not None:
            cost = answer.input_tokens, answer.output_tokens
        elif reply is not None and reply.may_cost:  # nobody knows what the endpoint did: the worst case
            cost = most, 0
        else:  # the endpoint refused the call, or was not reached
            cost = 0, 0
        self.budget.settle(most, input_tokens=cost[0], output_tokens=cost[1])

    def _slow_down(self, reply: Reply) -> None:
        """Pause all calls when the endpoint says twice in a row that there are too many."""
        with self._lock:
            self._refused_in_a_row = self._refused_in_a_row + 1 if reply.answer.status == "http_429" else 0
            if self._refused_in_a_row > 1 and reply.wait:
                self._rate.pause(reply.wait)

    def _find_wait(self, reply: Reply, turn: int) -> float:
        if reply.wait is not None:
            return reply.wait
        longest: float = min(_LONGEST_WAIT, self._limits.backoff * 2 ** (turn - 1))
        return longest * (0.5 + random.random() / 2)

    def _keep(self, request: Request, answer: Answer) -> None:
        self._journal.add(request.key, answer)
        self._endpoint.check_length(answer)
        with self._lock:
            self.answers[request.key] = answer
            self._report(answer, self.budget.spent)
            is_endpoints = answer.status in ("timeout", "connection") or answer.status.startswith("http_")
            self._failures = self._failures + 1 if is_endpoints else 0
            if self._failures >= _GIVE_UP:
                raise StoppedError(
                    f"{self._endpoint.host} failed {_GIVE_UP} documents one after the other, the last with {answer.status} "
                    f"({answer.reason}); look at the endpoint, then send these again with --retry failed (retry_failed=True)"
                )
