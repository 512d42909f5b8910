"""What kernels take: whole numbers, and the first elements of C-contiguous arrays; tables are given row by row."""

from __future__ import annotations

from typing import Any, TypeAlias

from numba import njit

__all__ = ["Bytes", "Floats", "Hashes", "Ints", "inlined"]

Bytes: TypeAlias = Any  #: uint8
Ints: TypeAlias = Any  #: int64
Hashes: TypeAlias = Any  #: uint64
Floats: TypeAlias = Any  #: float64

inlined = njit(inline="always")
