"""Sums of differences with random signs: computed quickly, and exactly where it matters."""

import numpy as np
from numpy.typing import NDArray

from goodgain.statistics.statistical_tests import Matrix, Vector

#: With more queries the rounding errors of 32-bit sums are too large to be of use.
_MOST_QUERIES_OF_32_BITS = 10_000
#: If more than this share of the sums is needed exactly, one product of matrices is faster than single sums.
_LARGEST_SHARE = 0.03
_Places = NDArray[np.int64]
Quick = NDArray[np.floating]


class SignedSums:
    """Computes the sums of each row of differences after a block of draws gave each difference a sign.

    Quick sums have 32 bits. They are off by at most `errors`, so they tell which draws are surely not of interest. `differences`
    are divided by a power of two, which changes no digit, so that no 32-bit number overflows.
    """

    def __init__(self, differences: Matrix) -> None:
        largest = np.abs(differences).max(axis=1, initial=0.0)
        self.exponents = np.frexp(largest)[1]
        self.differences: Matrix = np.ldexp(differences, -self.exponents[:, None])
        self.sizes: Vector = np.abs(self.differences).sum(axis=1)

        n = differences.shape[1]
        kind = np.float32 if n <= _MOST_QUERIES_OF_32_BITS else np.float64
        self.precision = 2 * (n + 8) * float(np.finfo(kind).eps)  # of the sum of n numbers, relative to their sizes
        self._quick = self.differences.astype(kind)
        self._buffer: Quick = np.empty(0, kind)

    @property
    def errors(self) -> Vector:
        errors: Vector = self.precision * self.sizes
        return errors

    def compute_quickly(self, signs: Matrix) -> Quick:
        """Return a row per difference and a column per draw. The next call overwrites the result."""
        kind = self._quick.dtype
        self._buffer = take_buffer(self._buffer, (len(self._quick), len(signs)), kind)
        return np.matmul(self._quick, signs.T.astype(kind), out=self._buffer)

    def compute_exactly(self, signs: Matrix, rows: _Places, draws: _Places) -> Vector:
        """Return the sum of each given row of differences after the draw beside it."""
        if len(rows) > _LARGEST_SHARE * len(self.differences) * len(signs):
            return np.asarray((self.differences @ signs.T)[rows, draws])
        sums: Vector = np.einsum("ij,ij->i", self.differences[rows], signs[draws])
        return sums


def take_buffer(buffer: Quick, shape: tuple[int, int], kind: np.dtype[np.floating]) -> Quick:
    """Return the buffer if it has this shape, else a new one. A new array for each block takes longer than its sums."""
    return buffer if buffer.shape == shape else np.empty(shape, kind)


def find_places(marks: NDArray[np.bool_]) -> tuple[_Places, _Places]:
    """Return the row and the column of each true cell, row by row. `numpy.nonzero` takes ten times as long."""
    rows, columns = np.divmod(np.flatnonzero(marks), max(1, marks.shape[1]))
    return rows, columns
