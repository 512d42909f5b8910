"""The functions of `kernels`, compiled once and kept, so that a later process need not load what compiles them.

numba takes longer to load (0.7 s) than its loop over six million rows. So what it makes is kept as it makes it, as text
for LLVM, which llvmlite turns into machine code in a tenth of a second.
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

__all__ = ["COUNT_COLUMNS", "FIRST_COLUMNS", "QUERY_COLUMNS", "kernels"]

#: What an argument of a kernel points to, by the name of its type; any other is a whole number.
_ELEMENTS = {"Bytes": np.uint8, "Ints": np.int64, "Hashes": np.uint64, "Floats": np.float64}
#: Columns of the tables that the kernel `scan_lines` fills (of counts, GR for each threshold follows): of queries, counts
#: and first occurrences. They stand here because importing the kernels loads numba.
QUERY_COLUMNS = ("offset", "length", "rising")
COUNT_COLUMNS = ("query", "iteration", "R", "UR", "Unjudged")
FIRST_COLUMNS = ("query", "row", "offset", "length", "iteration", "rank")
_SOURCES = [Path(__file__), *sorted(Path(__file__).with_name("kernels").glob("*.py"))]
_OUTSIDE = re.compile(r"^declare (?!.*@llvm\.)|^@.* = external", re.MULTILINE)  # what a text needs and does not hold
_once = Lock()

Kernels = dict[str, Callable[..., int]]
Kept = dict[str, dict[str, Any]]  # of each kernel: parameters, name (in the text), text


def kernels() -> Kernels:
    """Kernel by name; each takes whole numbers and arrays of the types it is declared with, and gives a number.

    Raises:
        ImportError: numba cannot be loaded, or does not compile them.
    """
    with _once:
        return _kernels()


@cache
def _kernels() -> Kernels:
    for path in _places():
        with suppress(OSError, ValueError, KeyError, RuntimeError):  # not kept, or damaged
            check, _, text = path.read_text("utf-8").partition("\n")
            if check == hashlib.sha256(text.encode()).hexdigest():
                return _loaded(json.loads(text))
    return _made()


def _places() -> Iterator[Path]:
    """Where the kernels are kept: beside what Python keeps, or in the user's folder for such things."""
    import llvmlite

    made_by = [version("numba"), llvmlite.__version__, *_machine()]
    sources = b"".join(path.read_bytes() for path in _SOURCES)
    name = f"kernels.{hashlib.sha256(chr(10).join(made_by).encode() + sources).hexdigest()[:16]}.ll"
    with suppress(NotImplementedError):  # a Python that keeps nothing
        yield Path(cache_from_source(__file__)).with_name(name)
    with suppress(RuntimeError):  # nobody's home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "goodgain", name)


def _machine() -> tuple[str, str, str]:
    """Triple, processor and its features, as LLVM names them."""
    from llvmlite import binding

    features = ""
    with suppress(RuntimeError):  # where LLVM cannot tell them
        features = binding.get_host_cpu_features().flatten()
    return binding.get_process_triple(), binding.get_host_cpu_name(), features


def _loaded(kept: Kept) -> Kernels:
    """Machine code of the kernels."""
    from llvmlite import binding

    with suppress(RuntimeError):  # versions that need it; others refuse
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple, processor, features = _machine()
    machine = binding.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=3, jit=True
    )
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    for kernel in kept.values():
        engine.add_module(binding.parse_assembly(kernel["text"]))
    engine.finalize_object()
    return {
        name: _callable(kernel["parameters"], engine.get_function_address(kernel["name"]), engine)
        for name, kernel in kept.items()
    }


def _made() -> Kernels:
    """The kernels from numba, and kept for the next process where there is a place for them."""
    from numba import cfunc, types
    from numba.core.errors import NumbaError

    import goodgain.batches.kernels as sources

    pointers = {name: types.CPointer(getattr(types, np.dtype(kind).name)) for name, kind in _ELEMENTS.items()}
    kept: Kept = {}
    made: Kernels = {}
    for name in sources.__all__:
        function = getattr(sources, name)
        parameters = [str(parameter.annotation) for parameter in inspect.signature(function).parameters.values()]
        signature = types.int64(*(pointers.get(parameter, types.int64) for parameter in parameters))
        try:
            compiled: Any = cfunc(signature)(function)
        except NumbaError as error:  # another version of it, or NUMBA_DISABLE_JIT
            raise ImportError(f"it does not compile {name}: {str(error).splitlines()[0]}") from error
        made[name] = _callable(parameters, compiled.address, compiled)
        kept[name] = {"parameters": parameters, "name": compiled.native_name, "text": compiled.inspect_llvm()}
    if not any(_OUTSIDE.search(kernel["text"]) for kernel in kept.values()):
        _keep(json.dumps(kept))
    return made


def _keep(text: str) -> None:
    for path in _places():
        part = path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}", "utf-8")
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink()
        else:
            return


def _callable(parameters: list[str], address: int, owner: Any) -> Callable[..., int]:
    """Calls what is at an address, without Python's lock; the owner is kept as long as it can be called."""
    kinds = [ctypes.c_void_p if parameter in _ELEMENTS else ctypes.c_int64 for parameter in parameters]
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address)

    def call(*arguments: Any) -> int:
        plain = [_plain(*pair) for pair in zip(parameters, arguments, strict=True)]
        return int(function(*plain))

    call.__dict__["owner"] = owner
    return call


def _plain(parameter: str, argument: Any) -> int:
    if parameter not in _ELEMENTS:
        return int(argument)
    if argument.dtype != _ELEMENTS[parameter] or not argument.flags.c_contiguous:
        raise TypeError(f"{parameter} of a kernel is not a {argument.dtype} array with flags {argument.flags}")
    return int(argument.ctypes.data)
