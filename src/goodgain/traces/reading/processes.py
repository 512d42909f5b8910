"""Processes that read traces side by side, none of which outlives the one that started them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

__all__ = ["block_interrupts", "open_pool"]


@contextmanager
def open_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of processes, and wait for them at the end; after an error, a signal or Ctrl-C kill them.

    They are spawned: Polars does not survive a fork.
    """
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):  # kill_workers() exists from Python 3.14 on
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Block SIGINT, which processes started meanwhile inherit: this one ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even if that was killed: it holds the parent's pipes open."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
