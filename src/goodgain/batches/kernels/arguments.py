"""The types of what the loop works on, as numba knows them.

An annotation with one of these is the type that is compiled. So this file, and each one that declares a kernel or a table of
arrays, goes without `from __future__ import annotations`, which would make texts of them.
"""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from numba import njit, types

__all__ = [
    "OPTIONS",
    "Bytes",
    "Floats",
    "FloatsColumns",
    "Hashes",
    "Ints",
    "IntsColumn",
    "IntsColumns",
    "IntsTable",
    "ReadOnlyBytes",
    "ReadOnlyFloats",
    "ReadOnlyInts",
    "step",
    "types_of",
]

Function = TypeVar("Function", bound=Callable[..., Any])

if TYPE_CHECKING:
    Bytes: TypeAlias = Any
    Ints: TypeAlias = Any
    IntsColumn: TypeAlias = Any
    IntsColumns: TypeAlias = Any
    IntsTable: TypeAlias = Any
    Hashes: TypeAlias = Any
    Floats: TypeAlias = Any
    FloatsColumns: TypeAlias = Any
    ReadOnlyBytes: TypeAlias = Any
    ReadOnlyInts: TypeAlias = Any
    ReadOnlyFloats: TypeAlias = Any
else:
    Bytes = types.uint8[::1]
    Ints = types.int64[::1]
    IntsTable = types.int64[:, ::1]
    Hashes = types.uint64[::1]
    Floats = types.float64[::1]
    # Parts of a wider table: what follows in memory is the rest of the row.
    IntsColumn = types.int64[:]
    IntsColumns = types.int64[:, :]
    FloatsColumns = types.float64[:, :]
    ReadOnlyBytes, ReadOnlyInts, ReadOnlyFloats = (
        types.Array(kind, 1, "C", readonly=True) for kind in (types.uint8, types.int64, types.float64)
    )

#: Nothing here allocates or keeps an array, so arrays need not be counted; with their counts the loop takes twice as long.
OPTIONS: dict[str, Any] = {"_nrt": False}

_INLINED: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def step(function: Function) -> Function:
    """Compile a function that kernels call. It is made part of them: calls would take as long as the work of the steps."""
    compiled: Any = njit(**_INLINED, **OPTIONS)(function)
    return compiled  # type: ignore[no-any-return]  # it is called as the function is


def types_of(kernel: Callable[..., int]) -> Any:
    """The signature of a kernel, from its annotations."""
    parameters = inspect.signature(kernel).parameters.values()
    return types.int64(*(_type_of(parameter.annotation) for parameter in parameters))


def _type_of(annotation: Any) -> Any:
    if annotation is int:
        return types.int64
    if hasattr(annotation, "_fields"):  # a table of arrays
        return types.BaseTuple.from_types(
            [_type_of(annotation.__annotations__[name]) for name in annotation._fields], annotation
        )
    return annotation
