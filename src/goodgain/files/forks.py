"""Refuses to work in a process that was forked from one that has used Polars: its threads do not survive a fork."""

from __future__ import annotations

import os

from goodgain.errors import InputError

#: Whether this process has used Polars through goodgain, and whether it was forked from one that had. It is state of the
#: process itself, and not of any value.
_process = {"has_used": False, "is_fork": False}


def check_fork() -> None:
    """Check that Polars can work in this process; whatever reads or computes calls this first.

    Raises:
        InputError: the process was forked after Polars had been used: its next call would wait for ever.
    """
    if _process["is_fork"]:
        raise InputError(
            "this process was forked from one that had used goodgain, and Polars' threads do not survive a fork; start "
            "processes with multiprocessing.get_context('spawn')"
        )
    _process["has_used"] = True


def _note_fork() -> None:
    _process["is_fork"] = _process["has_used"]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
