"""Sums up what an agent spent on each iteration: tokens, seconds and money, as far as its log has them."""

from __future__ import annotations

from datetime import UTC, datetime

from goodgain.traces.conversations.usage import add_usages
from goodgain.traces.model import Step, Turn, Usage

__all__ = ["CostMeter"]

_NOTHING = Usage()


class CostMeter:
    """Sums up the costs of a turn, step by step.

    An iteration costs what was spent since the one before it, up to the end of its own step. `rest` is what was spent
    after the last iteration, on the answer.
    """

    def __init__(self, turn: Turn) -> None:
        self.iterations: list[Usage] = []
        self._open: Usage | None = None
        self._clock = _parse_time(turn.time)

    def add(self, step: Step) -> None:
        """Add what a step cost. Without a duration, it lasted from the time of the step before to its own."""
        self._open = add_usages(self._open, step.usage)
        time = _parse_time(step.time)
        if time is None:
            return
        if self._clock is not None and time >= self._clock and (step.usage is None or step.usage.seconds is None):
            self._open = add_usages(self._open, Usage(seconds=(time - self._clock).total_seconds()))
        self._clock = time

    def end_iterations(self, count: int) -> None:
        """End this number of iterations: the first costs all, as the others were made in the same step."""
        if not count:
            return
        first = self._open or _NOTHING
        free = Usage(*(None if getattr(first, name) is None else 0 for name in Usage.__struct_fields__))
        self.iterations += [first, *[free] * (count - 1)]
        self._open = None

    @property
    def rest(self) -> Usage:
        """What was spent after the last iteration."""
        return self._open or _NOTHING


def _parse_time(text: str | None) -> datetime | None:
    """Return a time of ISO 8601; one without a zone is taken as UTC, as only differences matter. None if it is not one."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
