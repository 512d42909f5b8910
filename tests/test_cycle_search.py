"""Python's search for reference cycles is paused, and afterwards as the user had it."""

from __future__ import annotations

import gc

from goodgain.cycle_search import pause_cycle_search


def test_what_stays_is_old_and_still_collected() -> None:
    with pause_cycle_search(stays=True):
        assert not gc.isenabled()
        made: list[object] = []
        made.append(made)
    assert gc.isenabled()
    assert any(found is made for found in gc.get_objects(generation=2))
    gc.collect()
    del made
    assert gc.collect() >= 1


def test_what_the_user_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with pause_cycle_search(stays=True):
            pass
        assert 0 < gc.get_freeze_count() <= frozen  # some may have been freed meanwhile
    finally:
        gc.unfreeze()


def test_a_search_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with pause_cycle_search():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
