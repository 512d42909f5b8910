"""How much may be sent: a budget of calls and tokens that is never passed, and a rate of both."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Budget", "Rate", "Spent"]

_MINUTE = 60.0


@dataclass(frozen=True)
class Spent:
    """What was sent: calls, and tokens as the endpoint counts them or, where it does not say, as they were reserved."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Budget:
    """A number of calls and of tokens that is never passed, shared by threads.

    Before a call its largest cost is reserved: the bytes of the prompt (a byte-level tokenizer never makes more tokens) and
    the largest output. Afterwards what it took replaces the reservation.

    Args:
        max_calls: how many calls may be sent; None: any number.
        max_tokens: how many tokens may be sent and received together; None: any number.
    """

    def __init__(self, max_calls: int | None, max_tokens: int | None) -> None:
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._changed = threading.Condition()
        self._spent = Spent()
        self._reserved = 0
        self._under_way = 0

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        return self._spent

    def reserve(self, tokens: int) -> bool:
        """Reserve one call and these tokens; False if there is no room. Waits while calls under way may leave some."""
        with self._changed:
            while not self._has_room(tokens):
                if not self._under_way or self._has_calls_left() is False:
                    return False
                self._changed.wait()
            self._spent = Spent(self._spent.calls + 1, self._spent.input_tokens, self._spent.output_tokens)
            self._reserved += tokens
            self._under_way += 1
            return True

    def settle(self, reserved: int, *, input_tokens: int, output_tokens: int) -> None:
        """Put what a call took in the place of what was reserved for it."""
        with self._changed:
            self._reserved -= reserved
            self._under_way -= 1
            spent = self._spent
            self._spent = Spent(spent.calls, spent.input_tokens + input_tokens, spent.output_tokens + output_tokens)
            self._changed.notify_all()

    def _has_calls_left(self) -> bool:
        return self._max_calls is None or self._spent.calls < self._max_calls

    def _has_room(self, tokens: int) -> bool:
        taken = self._spent.input_tokens + self._spent.output_tokens + self._reserved
        return self._has_calls_left() and (self._max_tokens is None or taken + tokens <= self._max_tokens)


class Rate:
    """Calls and tokens a minute, shared by threads; and a pause that an endpoint asked for.

    Args:
        requests: calls in any sixty seconds; None: any number.
        tokens: tokens in any sixty seconds, counted as they are reserved; None: any number.
        clock: the seconds now.
        sleep: waits for seconds; returns True if the wait is to end, as the job stops.
    """

    def __init__(
        self,
        requests: int | None,
        tokens: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], bool] | None = None,
    ) -> None:
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._sleep = sleep or _sleep
        self._lock = threading.Lock()
        self._sent: deque[tuple[float, int]] = deque()
        self._closed_until = 0.0

    def wait(self, tokens: int) -> None:
        """Wait until a call of so many tokens may be sent, and count it."""
        while (seconds := self._take(tokens)) > 0:
            if self._sleep(seconds):
                return

    def pause(self, seconds: float) -> None:
        """Let no call be sent for so many seconds."""
        with self._lock:
            self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _take(self, tokens: int) -> float:
        """Count a call if it may be sent now; else return the seconds after which to ask again."""
        with self._lock:
            now = self._clock()
            while self._sent and self._sent[0][0] <= now - _MINUTE:
                self._sent.popleft()
            wait = self._closed_until - now
            over_requests = self._requests is not None and len(self._sent) >= self._requests
            over_tokens = self._tokens is not None and sum(sent for _, sent in self._sent) + tokens > self._tokens
            if self._sent and (over_requests or over_tokens):  # a call larger than the rate goes alone
                wait = max(wait, self._sent[0][0] + _MINUTE - now)
            if wait <= 0:
                self._sent.append((now, tokens))
            return wait


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False
