"""A digest of eight hexadecimal digits that identifies a table, whatever the order of the rows."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

_ROWS = 2**13  # hashed at a time, to stay in the processor's cache
_LONG = 1024  # bytes; a longer text is first hashed by blake2b
_WORD = 8  # bytes


def digest_rows(rows: pl.DataFrame) -> str:
    """Return eight hexadecimal digits that identify the rows. The order of the rows and the platform do not matter.

    The digits come from the sum of the rows' 64-bit hashes. Sorting a million rows of text would take ten times as long.

    Args:
        rows: columns of text and of numbers, without nulls.

    >>> rows = pl.DataFrame({"doc_id": ["a", "b"], "relevance": [1.0, 2.0]})
    >>> digest_rows(rows) == digest_rows(rows.reverse()) != digest_rows(rows.with_columns(relevance=1.0))
    True
    """
    hashes: Any = np.zeros(rows.height, np.uint64)
    for column in rows:
        hash_rows = _hash_texts(column) if column.dtype == pl.String else _take_bits(column)
        for start in range(0, rows.height, _ROWS):
            part = hashes[start : start + _ROWS]
            part[:] = _mix(part ^ hash_rows(start, start + len(part)))
    total = int(hashes.sum(dtype=np.uint64))
    return hashlib.blake2b(total.to_bytes(8, "little"), digest_size=4).hexdigest()


def _take_bits(numbers: pl.Series) -> Callable[[int, int], Any]:
    floats: Any = numbers.cast(pl.Float64).to_numpy()
    return lambda start, end: (floats[start:end] + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0


def _hash_texts(texts: pl.Series) -> Callable[[int, int], Any]:
    """Return a function that takes (start, end) and returns the hashes of `texts[start:end]`."""
    is_long = texts.str.len_bytes() > _LONG
    if is_long.any():
        hashed = [hashlib.blake2b(text.encode()).hexdigest() for text in texts.filter(is_long)]
        texts = texts.clone().scatter(is_long.arg_true(), hashed)
    ends = np.cumsum(texts.str.len_bytes().to_numpy(), dtype=np.int64)
    begins: Any = np.concatenate([[0], ends])
    padded = np.zeros(begins[-1] + _WORD, np.uint8)
    padded[: begins[-1]] = np.frombuffer(texts.str.join("").item().encode(), np.uint8)
    # A view: the word that begins at each byte.
    words: Any = np.ndarray(len(padded) - _WORD + 1, np.dtype("<u8"), padded, strides=(1,))

    def hash_rows(start: int, end: int) -> Any:
        begin_of = begins[start:end]
        lengths = np.diff(begins[start : end + 1])
        hashes: Any = _mix(lengths.astype(np.uint64))
        for offset in range(0, int(lengths.max(initial=0)), _WORD):  # eight bytes of all texts at a time
            rows: Any = np.flatnonzero(lengths > offset)
            if len(rows) == len(lengths):
                rows = slice(None)
            beyond = _WORD - np.minimum(lengths[rows] - offset, _WORD)  # bytes of the text that follows
            word = words[begin_of[rows] + offset] << (8 * beyond).astype(np.uint64)
            hashes[rows] = _mix(hashes[rows] ^ word)
        return hashes

    return hash_rows


def _mix(values: Any) -> Any:
    """Mix the bits of each 64-bit number: each bit of the result depends on all bits of the number (as in splitmix64)."""
    values = values ^ (values >> np.uint64(30))
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values
