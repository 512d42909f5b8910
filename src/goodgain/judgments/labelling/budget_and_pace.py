"""The budget of a job: hard limits of calls and tokens, and rate limits per minute."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from goodgain.errors import InputError
from goodgain.options import check_whole_number

_MINUTE = 60.0
#: Options whose None is any number, and their least values.
_LEAST = {"max_calls": 0, "max_tokens": 0, "requests_per_minute": 1, "tokens_per_minute": 1}


@dataclass(frozen=True)
class Limits:
    """The limits of a job: calls at once (`jobs`), calls and tokens in all and per minute, and tries of a failing call."""

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
class Spent:
    """The calls sent, retries included, and their tokens: as the endpoint counted, else as reserved."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class StoppedError(InputError):
    """Raised when no further call can succeed. Earlier answers are kept."""


class JobEnded(BaseException):  # no error: like KeyboardInterrupt it passes through the client's retries
    """Raised in a thread of a job that has ended."""


@dataclass
class Pace:
    """Calls and tokens in any sixty seconds (None: any number).

    A finished call counts with its actual usage. A pending call counts with its worst case, scaled as earlier calls used theirs.
    """

    requests: int | None
    tokens: int | None
    _recent: deque[list[float]] = field(default_factory=deque)
    _reserved: float = 0.0
    _used: float = 0.0

    def find_delay(self, reserved: int, now: float) -> float:
        """Return the seconds to wait before a call of this worst case. 0: send it now."""
        while self._recent and self._recent[0][0] <= now - _MINUTE:
            self._recent.popleft()
        over_requests = self.requests is not None and len(self._recent) >= self.requests
        sent = sum(tokens for _, tokens in self._recent) if self.tokens is not None else 0
        over_tokens = self.tokens is not None and sent + self._estimate(reserved) > self.tokens
        # a call larger than the limit goes alone
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


class Budget:
    """The hard limits of a job and its pace, shared by threads, and whether and why the job has ended.

    Each request reserves its worst-case cost. Actual usage then replaces it.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.spent = Spent()
        self.under_way = 0
        #: Why the job ended early: a sentence, or an error that is raised.
        self.ended: str | BaseException | None = None
        self._reserved = 0
        self._pace = Pace(limits.requests_per_minute, limits.tokens_per_minute)
        self._clock = clock
        self._changed = threading.Condition()

    def end(self, why: str | BaseException) -> None:
        with self._changed:
            self.ended = self.ended or why
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until the job ends."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended, seconds)

    def reserve(self, tokens: int) -> list[float]:
        """Reserve one request and its tokens, and return the entry for `settle`. Wait for the pace and for pending calls.

        Raise `JobEnded` if the job has ended, or ends now because the budget is spent.
        """
        limits = self.limits
        with self._changed:
            while True:
                pending = self.spent.tokens + self._reserved
                is_over = limits.max_tokens is not None and pending + tokens > limits.max_tokens
                is_last = limits.max_calls is not None and self.spent.calls >= limits.max_calls
                if is_last or (is_over and not self.under_way):
                    self.ended = self.ended or "the budget is spent"
                    self._changed.notify_all()
                if self.ended:
                    raise JobEnded
                delay = self._pace.find_delay(tokens, self._clock())
                if not is_over and delay <= 0:
                    break
                self._changed.wait(delay if not is_over else None)
            self.spent.calls += 1
            self._reserved += tokens
            self.under_way += 1
            return self._pace.add(tokens, self._clock())

    def settle(self, entry: list[float], reserved: int, input_tokens: int, output_tokens: int) -> None:
        with self._changed:
            self.spent.input_tokens += input_tokens
            self.spent.output_tokens += output_tokens
            self._reserved -= reserved
            self.under_way -= 1
            self._pace.settle(entry, reserved, input_tokens + output_tokens)
            self._changed.notify_all()
