"""Reads the times of events in any JSON, and puts the events of a query in the order of their times."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from goodgain.logs.traces.conversations.calls_by_shape import Found, Holders
from goodgain.logs.traces.expected_values import as_number, parse_time
from goodgain.logs.traces.tool_outputs.result_objects import normalise_keys

#: Keys with the time of an event. Those in `_CLOCKS` may count seconds from the start; the others may be durations.
_CLOCKS = ("ts", "timestamp")
_TIMES = (
    *(*_CLOCKS, "time", "datetime", "starttime", "startedat", "starttimeunixnano", "createdat", "created"),
    *("eventtime", "loggedat", "at", "date"),
)
#: The smallest number that can be a time since 1970.
_FIRST_TIME = 1e8
#: The smallest number that counts nanoseconds, microseconds or milliseconds, and how many of them are a second.
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def find_event_time(event: Found) -> float | None:
    """Return the time of the event that a call or an answer is: the nearest member of a list, or line of the file."""
    positions = [index for index, key in enumerate(event.place) if isinstance(key, int)]
    event_depth = positions[-1] + 1 if positions else 0
    return _find_time(tuple(holder for holder in event.holders if len(holder[0]) >= event_depth))


def sort_events(events_of_log: list[Found], report: Callable[[Found], None]) -> list[Found]:
    """Sort the events of each query by time. Events of one time, and queries with events without a time, keep the log's order.

    `report` takes the first event of each query whose times are out of order, but cannot be sorted.
    """
    by_query: dict[Any, list[int]] = {}
    for index, event in enumerate(events_of_log):
        by_query.setdefault(event.query, []).append(index)

    ordered = list(events_of_log)
    for indices in by_query.values():
        events = [events_of_log[index] for index in indices]
        times = _read_times(events)
        known_times = [time for time in times if time is not None]
        if all(earlier <= later for earlier, later in pairwise(known_times)):
            continue
        if len(known_times) < len(times):
            report(events[0])
            continue
        places = sorted(range(len(events)), key=lambda place: known_times[place])
        for index, place in zip(indices, places, strict=True):
            ordered[index] = events[place]
    return ordered


def _read_times(events: list[Found]) -> list[float | None]:
    """Return the time of each event. A text of the user without a time has that of the event before it."""
    times: list[float | None] = []
    last: float | None = float("-inf")
    for event in events:
        time = _find_time(event.holders)
        if time is None and event.text is not None:
            time = last
        times.append(time)
        last = time
    return times


def _find_time(holders: Holders) -> float | None:
    """Return the time in the innermost object that has one."""
    for _, holder in reversed(holders):
        keys = {name: key for key, name in reversed(normalise_keys(tuple(holder)))}
        for name in _TIMES:
            if name in keys and (time := _read_time(holder[keys[name]], is_clock=name in _CLOCKS)) is not None:
                return time
    return None


def _read_time(value: Any, *, is_clock: bool) -> float | None:
    """Convert ISO 8601 text or a number to seconds. The size of a number shows its unit."""
    number = as_number(value)
    if number is None:
        moment = parse_time(value) if isinstance(value, str) else None
        return None if moment is None else moment.timestamp()
    if number < _FIRST_TIME:
        return number if is_clock else None
    return next((number / a_second for smallest, a_second in _UNITS if number >= smallest), number)
