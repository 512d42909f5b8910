"""Applies a function to tasks in several processes, in the order of the tasks; no process outlives its parent."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import TypeVar

from goodgain.errors import GoodgainNotice, InputError, notice

Task = TypeVar("Task")
Value = TypeVar("Value")

#: Tasks submitted per process: one running and one waiting, so no process is idle.
_TASKS_AHEAD = 2


def map_in_processes(function: Callable[[Task], Value], tasks: Iterable[Task], jobs: int) -> Iterator[Value]:
    """Yield `function(task)` for each task in order, computed by several processes; give the notices of all.

    Raises:
        InputError: the function cannot be given to another process, or a process ended early.
    """
    try:
        pickle.dumps(function)
    except Exception as error:
        raise InputError(
            f"with jobs={jobs}, functions given as options must be importable by name ({error}); "
            "define them in a module, or leave jobs at 1"
        ) from error
    with _open_pool(jobs) as pool:
        waiting: deque[Future[tuple[Value, list[str]]]] = deque()
        for task in tasks:
            with _block_interrupts():  # a process started here must not print a traceback on Ctrl-C
                waiting.append(pool.submit(_record_notices, function, task))
            if len(waiting) > jobs * _TASKS_AHEAD:
                yield _get_value(waiting.popleft())
        while waiting:
            yield _get_value(waiting.popleft())


def _record_notices(function: Callable[[Task], Value], task: Task) -> tuple[Value, list[str]]:
    """Return the value and the notices given meanwhile; the user's process gives them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GoodgainNotice)
        value = function(task)
    return value, [str(warning.message) for warning in caught if issubclass(warning.category, GoodgainNotice)]


def _get_value(future: Future[tuple[Value, list[str]]]) -> Value:
    try:
        value, notices = future.result()
    except BrokenProcessPool as error:
        raise InputError(
            "a process that read traces ended early; if this is a script, put its work below "
            "`if __name__ == '__main__':`, else leave jobs at 1"
        ) from error
    for text in notices:
        notice(text)
    return value


@contextmanager
def _open_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
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
def _block_interrupts() -> Iterator[None]:
    """Block SIGINT, also for processes started meanwhile, which inherit this: their parent kills them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even if killed: it would hold the parent's pipes open."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
