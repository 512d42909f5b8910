"""Finds the files to read, groups them into tasks, and runs the tasks in parallel processes."""

import os
import pickle
import signal
import stat
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from glob import glob, has_magic
from itertools import chain
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from goodgain.errors import GoodgainNotice, InputError, collect_notices, give
from goodgain.files.escaping import check_name
from goodgain.files.opening import error_reason, explain_read_errors, make_path
from goodgain.formats.any_source import exists
from goodgain.logs.traces.formats import formats
from goodgain.logs.traces.input.logs_and_archives import LOG_ENDINGS, list_logs
from goodgain.options import FOR_COMMANDS, spell

PathsOfSystem = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
#: The traces of one system, or those of each system by its name.
Paths = PathsOfSystem | Mapping[str, PathsOfSystem]

#: The minimum bytes of a task: large enough that starting it costs little, small enough for several tasks in memory.
_TASK_SIZE = 16 << 20
#: Tasks submitted per process: one running and one waiting, so no process is idle.
_TASKS_AHEAD = 2

Task = TypeVar("Task")
Value = TypeVar("Value")


class TraceFile(NamedTuple):
    """A file of traces, with its size in bytes, the name of the system and the folder, if the caller gave these."""

    path: Path
    system: str | None
    size: int
    folder: Path | None = None


def find_trace_files(paths: Paths) -> list[TraceFile]:
    """Return the files of traces at `paths`. For a directory, return its files that end in `.json`, `.jsonl`, `.zip` etc."""
    if isinstance(paths, Mapping):
        for name in paths:
            if not isinstance(name, str) or not name:
                raise InputError(f"{name!r} is not the name of a system; give a text, as in {{'old': 'old.jsonl'}}")
            check_name(name, "system")
        found = [file._replace(system=name) for name, of_system in paths.items() for file in _list_files(of_system)]
    else:
        found = _list_files(paths)
    if not found:
        raise InputError("no trace was given; name at least one file")

    files: dict[Path, TraceFile] = {}
    for file in found:
        if file.path in files:
            raise InputError(f"{file.path}: is given twice; name each file once")
        files[file.path] = file
    return list(files.values())


def count_subfolders(files: list[TraceFile]) -> Counter[str]:
    """Count the subfolders, which are not read, of each folder that the caller gave. Hidden ones do not count."""
    folders = {file.folder for file in files if file.folder is not None}
    counts = {
        folder: sum(entry.is_dir() and not entry.name.startswith(".") for entry in folder.iterdir())
        for folder in folders
    }
    return Counter({str(folder): count for folder, count in sorted(counts.items()) if count})


def _list_files(paths: PathsOfSystem) -> list[TraceFile]:
    """Return the files of paths of files, folders and patterns. Raise an InputError for a folder without logs."""
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    if not isinstance(paths, Iterable):
        raise InputError(f"the traces are of type {type(paths).__name__}; give the path of a file or folder, or a list")

    files: list[TraceFile] = []
    for text in chain.from_iterable(map(_expand_pattern, paths)):
        path = make_path(text, "one of the traces")
        with explain_read_errors(path):
            files_of_path, folder = _list_files_at(path)
        if not files_of_path:
            endings = ", ".join(LOG_ENDINGS)
            raise InputError(f"{path}: the directory holds no file that ends in {endings}; give the paths of logs")
        files += [TraceFile(file, None, file.stat().st_size, folder) for file in files_of_path]
    return files


def _expand_pattern(text: Any) -> list[Any]:
    """Return the paths that match a pattern. If none does, or if `text` is a path, return `text`."""
    if not isinstance(text, str) or not has_magic(text) or exists(text):
        return [text]
    return sorted(glob(text)) or [text]  # noqa: PTH207  # any text is a path here


def _list_files_at(path: Path) -> tuple[list[Path], Path | None]:
    """Return the files of a path, and the path if it is a folder of logs, whose other files are not read.

    A folder may be a format's own layout; else its files with known endings. No such file: OSError.
    """
    try:  # stat fails if there is no such file, or if a log passed as text is too long for a name
        mode = path.stat().st_mode
    except ValueError as error:  # a NUL in the name
        fault = f"{str(path)[:200]!r}: {error_reason(error)}"
        raise InputError(f"{fault}; give the path of a readable file") from error

    if stat.S_ISDIR(mode):
        own_files = [file for trace_format in formats().values() for file in trace_format.find(path)]
        return (own_files, None) if own_files else (list_logs(path), path)
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: is a pipe or a device, but a log is read twice; write it to a file")
    return [path], None


def plan_tasks(files: list[TraceFile]) -> Iterator[list[TraceFile]]:
    """Yield groups of files. A single process reads all files of a group. Every group except the last has at least 16 MiB."""
    task: list[TraceFile] = []
    size = 0
    for file in files:
        task.append(file)
        size += file.size
        if size >= _TASK_SIZE or file is files[-1]:
            yield task
            task, size = [], 0


def map_in_processes(run: Callable[[Task], Iterable[Value]], tasks: Iterable[Task], jobs: int) -> Iterator[list[Value]]:
    """Run tasks in worker processes. Yield the values of each task, in order. Give the workers' notices in the calling process."""
    try:
        pickle.dumps(run)
    except Exception as error:
        raise InputError(
            f"with {spell('jobs', jobs)}, functions given as options must be importable by name ({error}); "
            "define them in a module, or leave jobs at 1"
        ) from error

    with _open_pool(jobs) as pool:
        waiting: deque[Future[tuple[list[Value], list[GoodgainNotice]]]] = deque()
        for task in tasks:
            with _block_interrupts():  # a process started here must not print a traceback on Ctrl-C
                waiting.append(pool.submit(_record_notices, run, task))
            if len(waiting) > jobs * _TASKS_AHEAD:
                yield _get_value(waiting.popleft())
        while waiting:
            yield _get_value(waiting.popleft())


def _record_notices(
    function: Callable[[Task], Iterable[Value]], task: Task
) -> tuple[list[Value], list[GoodgainNotice]]:
    notices: list[GoodgainNotice] = []
    with collect_notices(notices.append):
        values = list(function(task))
    return values, notices


def _get_value(future: Future[tuple[Value, list[GoodgainNotice]]]) -> Value:
    """Return the result of a worker process, and give here the notices that it collected."""
    try:
        value, notices = future.result()
    except BrokenProcessPool as error:
        raise InputError(
            "a process that read traces ended early; if your program is a script, put its code below "
            "`if __name__ == '__main__':`, else leave jobs at 1"
        ) from error
    for notice in notices:
        give(notice)
    return value


@contextmanager
def _open_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of processes, and wait for them at the end. After an error, a signal or Ctrl-C, kill them."""
    # Polars does not survive a fork.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_begin, initargs=(FOR_COMMANDS.get(),))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):  # kill_workers() exists from Python 3.14 on
            process.kill()
        # If a process was killed while it sent a result, the pool waits for the rest until the pipe is closed.
        results: Any = pool._result_queue
        results._writer.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C until the end of the block. A process started inside inherits this: it never gets Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(for_commands: bool) -> None:  # a process is started with positional arguments
    """Make a worker process write messages like its parent, and exit when its parent exits (else pipes would stay open)."""
    FOR_COMMANDS.set(for_commands)

    def wait() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
