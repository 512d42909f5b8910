"""Reads the pairs of documents that the user says are the same or different, and finds the records that the pairs name.

A pair applies in every query in which both names occur, and takes precedence over all rules.
"""

import os
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import number_rows
from goodgain.files.opening import read_lines
from goodgain.options import spell
from goodgain.schema import COMMENT

#: The path of a file with two names a line, or pairs of names; a name is an id or a URL.
Pairs = str | os.PathLike[str] | Iterable[Sequence[str]]
#: The confidence of a pair that the user gave: higher than that of all rules.
SAID_CONFIDENCE = 5.0


@dataclass
class SaidPairs:
    """The pairs of ids or URLs that the user gave in one file or list.

    Attributes:
        source: the file or argument that the pairs come from.
        pairs: for each pair, its place in the source and its two names (ids or URLs).
        found: the names that occurred in results so far.
    """

    source: str
    pairs: list[tuple[str, str, str]] = field(default_factory=list)
    found: set[str] = field(default_factory=set)

    def give_notice(self) -> None:
        names = {name: None for _, *pair in self.pairs for name in pair}
        if lacking := [name for name in names if name not in self.found]:
            notice(
                "unknown_names_of_pairs",
                f"{self.source}: {len(lacking):,} of {count_of(len(names), 'name')} occur in no result, or stand for "
                f"several documents (first: {lacking[0]}). Check their spelling.",
            )


def read_pairs(given: Pairs | SaidPairs | None, option: str) -> SaidPairs:
    """Read pairs of ids or URLs from a file or a list. `option` is the name of the argument."""
    if isinstance(given, SaidPairs):
        return given
    if isinstance(given, (str, os.PathLike)):
        return SaidPairs(str(given), list(_read_file(Path(given))))
    found = SaidPairs(spell(option))
    if not isinstance(given, Iterable | None):
        raise InputError(f"{spell(option)} is a {type(given).__name__}; give a file, or pairs of two ids or URLs")
    for number, pair in enumerate(() if given is None else given, start=1):
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not is_pair or not all(isinstance(name, str) and name for name in pair):
            raise InputError(f"{spell(option)} has {pair!r} as pair {number}; give two ids or URLs, both texts")
        found.pairs.append((f"pair {number} of {spell(option)}", pair[0], pair[1]))
    return found


def _read_file(path: Path) -> Iterator[tuple[str, str, str]]:
    for number, line in number_rows(read_lines(path)):
        place = f"{path}, line {number}"
        try:
            words = line.decode().split()
        except UnicodeDecodeError:
            raise InputError(f"{place}: is not UTF-8; save the file as UTF-8") from None
        # A comment may also follow the names. A URL has no blank before its fragment.
        names = words[: next((at for at, word in enumerate(words) if word.startswith(COMMENT)), None)]
        if len(names) not in (0, 2):
            raise InputError(f"{place}: has {count_of(len(names), 'name')}; give two ids or URLs, separated by a blank")
        if names:
            yield place, names[0], names[1]


class Clusters:
    """Disjoint sets (union-find) with marks. If a set excludes a mark, do not join this set with a set that has the mark."""

    def __init__(self, marks: dict[Any, Set[Any]], barred: dict[Any, Set[Any]]) -> None:
        self._marks, self._barred = marks, barred
        self._root: dict[Any, Any] = {}
        self._members: dict[Any, list[Any]] = {}

    def find(self, one: Any) -> Any:
        return self._root.get(one, one)

    def get_marks(self, one: Any) -> tuple[Set[Any], Set[Any]]:
        root = self.find(one)
        return self._marks.get(root, frozenset()), self._barred.get(root, frozenset())

    def find_bars(self, one: Any, two: Any) -> Set[Any]:
        """Return the marks that keep the sets of `one` and `two` apart: one set has these marks, the other set excludes them."""
        large, small = self._order(one, two)
        return self.get_marks(large)[1] & self.get_marks(small)[0]

    def join(self, one: Any, two: Any) -> None:
        large, small = self._order(one, two)
        if large == small:
            return
        moved = self._members.pop(small, [small])
        self._members.setdefault(large, [large]).extend(moved)
        self._root.update(dict.fromkeys(moved, large))
        for held in (self._marks, self._barred):
            added, own = held.get(small), held.get(large)
            if own is None or added is None:
                held[large] = own or added or frozenset()
            elif own is not added:  # sets grow in place; frozen sets are shared by many members
                own |= added
                held[large] = own

    def _order(self, one: Any, two: Any) -> tuple[Any, Any]:
        roots = sorted((self.find(one), self.find(two)), key=lambda root: (len(self._members.get(root, [root])), root))
        return roots[1], roots[0]


@dataclass(frozen=True)
class Said:
    """The user's pairs, and the records that they name.

    Attributes:
        same, different: the user's pairs of names.
        clusters: sets of records that the user says are one document. A set has the mark (n, 0) if the first
            name of pair n of `different` is a name of the set's document, and the mark (n, 1) if the second name is.
        names: for each record that a pair names, the names of this record.
        lines: for each record of a cluster, the place of the last pair of `same` that names the cluster.
        pairs: the pairs of records (left < right) that were joined to form the clusters.
        named: for each record, whether a pair of the user names the record.
    """

    same: SaidPairs
    different: SaidPairs
    clusters: Clusters
    names: dict[int, set[Any]]
    lines: dict[int, str]
    pairs: pl.DataFrame
    named: npt.NDArray[np.bool_]

    def state(self, pairs: pl.DataFrame, rule: int) -> pl.DataFrame:
        """Return the table `pairs`. If the user's pairs decide a row, `same`, `confidence` and `rule` of this row are replaced."""
        left, right = pairs["left"].to_numpy(), pairs["right"].to_numpy()
        rules, same, confidence = (pairs[name].to_numpy().copy() for name in ("rule", "same", "confidence"))
        for place in np.flatnonzero(self.named[left] & self.named[right] & (left != right)).tolist():
            one, two = int(left[place]), int(right[place])
            joined = self.clusters.find(one) == self.clusters.find(two)
            of_one_name = same[place] and not self.names[one].isdisjoint(self.names[two])
            if (joined and not of_one_name) or self.clusters.find_bars(one, two):
                rules[place], same[place], confidence[place] = rule, joined, SAID_CONFIDENCE * joined
        return pairs.with_columns(rule=rules, same=same, confidence=confidence)


def get_pair(different: SaidPairs, bars: Set[tuple[int, int]]) -> tuple[str, str, str]:
    return different.pairs[min(number for number, _side in bars)]
