"""Compiles the loop when it is first needed, or loads what numba kept of it from an earlier process."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from goodgain.cycle_search import pause_cycle_search

__all__ = ["Kernels", "kernels"]

_once = Lock()


class Kernels(NamedTuple):
    """The compiled functions, by the names that they have in `judgments` and `scan`."""

    count_lines: Callable[..., int]
    copy_texts: Callable[..., int]
    hash_ids: Callable[..., int]
    scan_lines: Callable[..., int]


def kernels() -> Kernels:
    """The compiled functions, which run without Python's lock; each takes only the types that it is declared with.

    Raises:
        ImportError: numba cannot be loaded, or does not compile them.
    """
    with _once:
        return _kernels()


@cache
@pause_cycle_search(stays=True)  # to search what numba makes while it is loaded takes a fifth of the time
def _kernels() -> Kernels:
    import numba

    if getattr(numba.config, "DISABLE_JIT", False):
        raise ImportError("the variable NUMBA_DISABLE_JIT is set")
    _import_array_functions()
    from goodgain.batches.kernels import judgments, scan

    functions = [getattr(scan, name, None) or getattr(judgments, name) for name in Kernels._fields]
    version = _version(numba.__version__)
    for function in functions:
        # numba names the file that it keeps after the function, and looks no further than the source file of the function
        # itself for changes: by this name what was compiled from other sources is never found.
        function.__qualname__ = f"{function.__name__}_{version}"
    return Kernels(*map(_compile, functions))


def _import_array_functions() -> None:
    """Import numba's functions of arrays without scipy.linalg, which takes as long as the rest of numba.

    numba imports it there to learn whether SciPy is installed, and goodgain requires SciPy. Where numba compiles a function that
    calls np.dot or the like, it looks again.
    """
    with suppress(ImportError, AttributeError):  # a numba that looks in another way; then it takes its time
        from numba.np import linalg

        look = linalg.ensure_blas
        linalg.ensure_blas = lambda: None
        try:
            import numba.np.arraymath  # noqa: F401  # numba finds it imported
        finally:
            linalg.ensure_blas = look


def _version(compiler: str) -> str:
    """A hash of all that is compiled, and of what compiles it."""
    sources = sorted(
        (file.name, file.read_bytes()) for file in files(__package__).iterdir() if file.name.endswith(".py")
    )
    return hashlib.sha256(repr((compiler, sources)).encode()).hexdigest()[:16]


def _compile(function: Callable[..., int]) -> Any:
    """Compile a function or load it; it is not kept where numba finds no folder to write to, or cannot write.

    Nor is it loaded from a folder in which somebody else could have put code, which numba would run.

    Raises:
        ImportError: numba does not compile it.
    """
    from numba import njit
    from numba.core.errors import NumbaError

    from goodgain.batches.kernels.arguments import OPTIONS, types_of

    is_kept = True
    while True:
        kernel = None
        try:
            with _ignore_relative_cache_home():
                kernel = njit(cache=is_kept, nogil=True, **OPTIONS)(function)
            if is_kept and not _is_private(Path(kernel.stats.cache_path)):
                is_kept = False
                continue
            kernel.compile(types_of(function))
            kernel.disable_compile()
            return kernel
        except Exception as error:  # of any kind: numba loads what was kept without a look at whether it is whole
            if isinstance(error, NumbaError) or not is_kept:
                reason = str(error).strip().splitlines() or [type(error).__name__]
                raise ImportError(f"it does not compile {function.__name__}: {reason[0]}") from error
            is_kept = kernel is not None and _discard(Path(kernel.stats.cache_path), function.__qualname__)


@contextmanager
def _ignore_relative_cache_home() -> Iterator[None]:
    """Leave XDG_CACHE_HOME out where it is relative, as its specification says; numba takes it from the working folder."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not home or Path(home).is_absolute():
        yield
        return
    del os.environ["XDG_CACHE_HOME"]
    try:
        yield
    finally:
        os.environ["XDG_CACHE_HOME"] = home


def _is_private(folder: Path) -> bool:
    """Return whether the user owns a folder and nobody else can write to it; a group of the user alone may."""
    if not hasattr(os, "geteuid"):
        return True
    status = folder.stat()
    others = stat.S_IWOTH if _is_own_group(status.st_gid) else stat.S_IWOTH | stat.S_IWGRP
    return status.st_uid == os.geteuid() and not status.st_mode & others


def _is_own_group(number: int) -> bool:
    """Return whether a group has the user's name and no other member, as many systems make one for every user."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _discard(folder: Path, name: str) -> bool:
    """Delete what is kept of a function, and say whether there was any."""
    found = [*folder.glob(f"*.{name}-*")]
    with suppress(OSError):
        for path in found:
            path.unlink()
        return bool(found)
    return False
