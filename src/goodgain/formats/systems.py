"""The systems of a call that takes several runs: a name for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodgain.errors import InputError
from goodgain.files.safe_text import check_name

__all__ = ["check_systems"]


def check_systems(systems: Mapping[str, Any], *, least: int = 1) -> dict[str, Any]:
    """Return name -> run, the names as text.

    Args:
        systems: name -> what `read_run` takes.
        least: how many systems there have to be.

    Raises:
        InputError: the runs have no names, or one that is no text, two have the same, or there are too few.
    """
    if not isinstance(systems, Mapping):
        raise InputError(f"systems is a {type(systems).__name__}; give each run a name: {{'old': run, 'new': other}}")
    named = {check_name(str(name), "system"): run for name, run in systems.items()}
    if len(named) < len(systems):
        raise InputError("two systems have the same name once it is text; give each a name of its own")
    if len(named) < least:
        there = ", ".join(named) or "none"
        if least == 1:
            raise InputError("there is no run; give one, with its name: {'agent': run}")
        raise InputError(f"a comparison needs two systems or more, and there is {there}; add another run")
    return named
