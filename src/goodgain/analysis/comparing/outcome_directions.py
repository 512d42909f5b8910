"""Says whether higher or lower values of an outcome are better."""

from goodgain.analysis.comparing.use_of_documents import FUNNEL
from goodgain.formats.query_tables import AMOUNTS

_SUFFIXES = {":up": "up", ":down": "down"}
#: What a system spends: a system that spends more is never better for it.
_SPENT = ("tokens", "cached_tokens", "reasoning_tokens", "searches", *AMOUNTS)


def find_direction_of_outcome(name: str) -> str | None:
    """Return `up`, `down` or None: the end of the name (`latency:down`), else what goodgain knows of the name, else `up`.

    >>> [find_direction_of_outcome(name) for name in ("solved", "tokens", "latency:down", "seconds:up")]
    ['up', 'down', 'down', 'up']
    """
    for suffix, direction in _SUFFIXES.items():
        if name.endswith(suffix):
            return direction
    return "down" if name in _SPENT else FUNNEL.get(name, "up")
