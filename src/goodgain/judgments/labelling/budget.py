"""The budget of a job: hard limits on calls and tokens, and limits per minute. Errors that end the job."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from goodgain.errors import InputError
from goodgain.options import check_whole_number

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
        tokens = self._estimate(reserved)
        if self.tokens is not None:
            tokens += sum(tokens_of_call for _, tokens_of_call in self._recent)
        over_tokens = self.tokens is not None and tokens > self.tokens
        # a call larger than the limit is sent alone
        if self._recent and (over_requests or over_tokens):
            return self._recent[0][0] + _MINUTE - now
        return 0.0

    def add(self, reserved: int, now: float) -> list[float]:
        entry = [now, self._estimate(reserved)]
        self._recent.append(entry)
        return entry

    def settle(self, entry: list[float], reserved: int, used: int) -> None:
        entry[1] = used
        self._reserved += reserved
        self._used += used

    def _estimate(self, reserved: int) -> float:
        share = self._used / self._reserved if self._used else 1.0
        return reserved * share


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

    def end(self, reason: str | BaseException) -> None:
        with self._changed:
            self.ended = self.ended or reason
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
                self._changed.wait(None if is_over else delay)
            self.calls += 1
            self._reserved += tokens
            self.under_way += 1
            return self._pace.add(tokens, time.monotonic())

    def settle(self, entry: list[float], reserved: int, input_tokens: int, output_tokens: int) -> None:
        """Replace the reserved tokens of a finished call by those that it used, and let waiting calls try again."""
        with self._changed:
            self.input_tokens += input_tokens
            self.output_tokens += output_tokens
            self._reserved -= reserved
            self.under_way -= 1
            self._pace.settle(entry, reserved, input_tokens + output_tokens)
            self._changed.notify_all()
