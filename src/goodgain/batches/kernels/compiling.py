"""Compiles the loop when it is first needed, or loads what numba kept of it from an earlier process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

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
def _kernels() -> Kernels:
    import numba

    if getattr(numba.config, "DISABLE_JIT", False):
        raise ImportError("the variable NUMBA_DISABLE_JIT is set")
    from goodgain.batches.kernels import judgments, scan

    functions = [getattr(scan, name, None) or getattr(judgments, name) for name in Kernels._fields]
    version = _version(numba.__version__)
    for function in functions:
        # numba names the file that it keeps after the function, and looks no further than the source file of the function
        # itself for changes: by this name what was compiled from other sources is never found.
        function.__qualname__ = f"{function.__name__}_{version}"
    return Kernels(*map(_compile, functions))


def _version(compiler: str) -> str:
    """A hash of all that is compiled, and of what compiles it."""
    sources = sorted(
        (file.name, file.read_bytes()) for file in files(__package__).iterdir() if file.name.endswith(".py")
    )
    return hashlib.sha256(repr((compiler, sources)).encode()).hexdigest()[:16]


def _compile(function: Callable[..., int]) -> Any:
    """Compile a function or load it; it is not kept where numba finds no folder to write to, or cannot write.

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
            kernel = njit(cache=is_kept, nogil=True, **OPTIONS)(function)
            kernel.compile(types_of(function))
            kernel.disable_compile()
            return kernel
        except Exception as error:  # of any kind: numba loads what was kept without a look at whether it is whole
            if isinstance(error, NumbaError) or not is_kept:
                reason = str(error).strip().splitlines() or [type(error).__name__]
                raise ImportError(f"it does not compile {function.__name__}: {reason[0]}") from error
            is_kept = kernel is not None and _discard(Path(kernel.stats.cache_path), function.__qualname__)


def _discard(folder: Path, name: str) -> bool:
    """Delete what is kept of a function, and say whether there was any."""
    found = [*folder.glob(f"*.{name}-*")]
    with suppress(OSError):
        for path in found:
            path.unlink()
        return bool(found)
    return False
