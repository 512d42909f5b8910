"""What errors="skip" left out: counted, and told with the first five places."""

from __future__ import annotations

from goodgain.errors import InputError, notice

__all__ = ["Skipped", "check_errors_option"]

_TOLD = 5


class Skipped:
    """Rows left out of one source."""

    def __init__(self) -> None:
        self.count = 0
        self.places: list[str] = []

    def add(self, place: str) -> None:
        """Count a row, and keep its place if it is among the first."""
        self.count += 1
        if len(self.places) < _TOLD:
            self.places.append(place)

    def report(self, label: str, unit: str = "line") -> None:
        """One notice, if anything was left out."""
        if self.count:
            first = "the first: " if self.count > len(self.places) else ""
            notice(
                f"{label}: left out {self.count} bad {unit}{'s' * (self.count != 1)}; {first}{'; '.join(self.places)}"
            )


def check_errors_option(errors: str) -> None:
    """Raise unless the option is `raise` or `skip`."""
    if errors not in ("raise", "skip"):
        raise InputError(f"errors={errors!r} is neither 'raise' nor 'skip'")
