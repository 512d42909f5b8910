"""Reads the pairs of documents that the user says are the same or different, and finds the records that the pairs name.

A pair applies in every query in which both names occur, and takes precedence over all rules.
"""

import itertools
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
        occurring: the names that occurred in results so far.
    """

    source: str
    pairs: list[tuple[str, str, str]] = field(default_factory=list)
    occurring: set[str] = field(default_factory=set)

    def give_notice(self) -> None:
        """Give a notice of names in the pairs that no result has, or that stand for several documents."""
        names = {name: None for _, *pair in self.pairs for name in pair}
        unknown = [name for name in names if name not in self.occurring]
        if unknown:
            notice(
                "unknown_names_of_pairs",
                f"{self.source}: {len(unknown):,} of {count_of(len(names), 'name')} occur in no result, or stand for "
                f"several documents (first: {unknown[0]}). Check their spelling.",
            )


def read_pairs(pairs: Pairs | SaidPairs | None, option: str) -> SaidPairs:
    """Read pairs of ids or URLs from a file or a list. `option` is the name of the argument."""
    if isinstance(pairs, SaidPairs):
        return pairs
    if pairs is None:
        return SaidPairs(spell(option))
    if isinstance(pairs, (str, os.PathLike)):
        return SaidPairs(str(pairs), list(_read_file(Path(pairs))))
    if not isinstance(pairs, Iterable):
        raise InputError(f"{spell(option)} is a {type(pairs).__name__}; give a file, or pairs of two ids or URLs")

    read = SaidPairs(spell(option))
    for number, pair in enumerate(pairs, start=1):
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not is_pair or not all(isinstance(name, str) and name for name in pair):
            raise InputError(f"{spell(option)} has {pair!r} as pair {number}; give two ids or URLs, both texts")
        read.pairs.append((f"pair {number} of {spell(option)}", pair[0], pair[1]))
    return read


def _read_file(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (place, name, name) of each line. Blank lines and comments are left out."""
    for number, line in number_rows(read_lines(path)):
        place = f"{path}, line {number}"
        try:
            words = line.decode().split()
        except UnicodeDecodeError:
            raise InputError(f"{place}: is not UTF-8; save the file as UTF-8") from None
        # A comment may also follow the names. A URL has no blank before its fragment.
        names = list(itertools.takewhile(lambda word: not word.startswith(COMMENT), words))
        if len(names) not in (0, 2):
            raise InputError(f"{place}: has {count_of(len(names), 'name')}; give two ids or URLs, separated by a blank")
        if names:
            yield place, names[0], names[1]


class Clusters:
    """Disjoint sets (union-find) with marks. If a set excludes a mark, do not join this set with a set that has the mark."""

    def __init__(self, marks: dict[Any, Set[Any]], barred: dict[Any, Set[Any]]) -> None:
        self._marks = marks
        self._barred = barred
        self._root: dict[Any, Any] = {}
        self._members: dict[Any, list[Any]] = {}

    def find(self, member: Any) -> Any:
        return self._root.get(member, member)

    def get_marks(self, member: Any) -> Set[Any]:
        return self._marks.get(self.find(member), frozenset())

    def get_barred_marks(self, member: Any) -> Set[Any]:
        return self._barred.get(self.find(member), frozenset())

    def find_bars(self, left: Any, right: Any) -> Set[Any]:
        """Return the marks that keep the sets of `left` and `right` apart: one set has these marks, the other set excludes them."""
        small, large = self._order_roots(left, right)
        return self.get_barred_marks(large) & self.get_marks(small)

    def join(self, left: Any, right: Any) -> None:
        """Join two sets with their marks, even if a mark keeps them apart: ask `find_bars` before."""
        small, large = self._order_roots(left, right)
        if large == small:
            return

        moved = self._members.pop(small, [small])
        self._members.setdefault(large, [large]).extend(moved)
        self._root.update(dict.fromkeys(moved, large))
        for marks_of in (self._marks, self._barred):
            marks, new_marks = marks_of.get(large), marks_of.get(small)
            if marks is None or new_marks is None:
                marks_of[large] = marks or new_marks or frozenset()
            elif marks is not new_marks:  # sets grow in place; frozen sets are shared by many members
                marks |= new_marks
                marks_of[large] = marks

    def _order_roots(self, left: Any, right: Any) -> list[Any]:
        """Return the heads of both sets, that of the smaller set first."""
        return sorted((self.find(left), self.find(right)), key=self._measure_size)

    def _measure_size(self, root: Any) -> tuple[int, Any]:
        return len(self._members.get(root, [root])), root


@dataclass(frozen=True)
class UserPairs:
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

    def overrule(self, pairs: pl.DataFrame, rule: int) -> pl.DataFrame:
        """Return the table `pairs`. If the user's pairs decide a row, `same`, `confidence` and `rule` of this row are replaced."""
        left, right = pairs["left"].to_numpy(), pairs["right"].to_numpy()
        rule_of = pairs["rule"].to_numpy().copy()
        is_same = pairs["same"].to_numpy().copy()
        confidence = pairs["confidence"].to_numpy().copy()
        for place in np.flatnonzero(self.named[left] & self.named[right] & (left != right)).tolist():
            ends = int(left[place]), int(right[place])
            is_joined = self.clusters.find(ends[0]) == self.clusters.find(ends[1])
            share_name = not self.names[ends[0]].isdisjoint(self.names[ends[1]])
            joined_by_user = is_joined and not (is_same[place] and share_name)
            if joined_by_user or self.clusters.find_bars(*ends):
                rule_of[place] = rule
                is_same[place] = is_joined
                confidence[place] = SAID_CONFIDENCE * is_joined
        return pairs.with_columns(rule=rule_of, same=is_same, confidence=confidence)


def get_pair(different: SaidPairs, bars: Set[tuple[int, int]]) -> tuple[str, str, str]:
    return different.pairs[min(number for number, _side in bars)]
