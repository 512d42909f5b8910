"""Reads the pairs of documents that the user says are the same or different, and finds the records that the pairs name.

A pair applies in every query in which both names occur, and takes precedence over all rules.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import number_rows
from goodgain.files.opening import read_lines
from goodgain.formats.urls import parse_url
from goodgain.logs.dedup.document_types import SEVERAL, TYPES, normalise_kind
from goodgain.logs.dedup.rows_and_trusted_ids import URL_NAMES_IT, Records, name_texts
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
                f"{self.source}: {len(lacking):,} of {count_of(len(names), 'name')} occur in no result, or stand for "
                f"several documents (first: {lacking[0]}). Check their spelling."
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


def find_said(same: SaidPairs, different: SaidPairs, records: Records) -> Said:
    """Find the records that the user's pairs name in each query. Raise InputError if two pairs contradict each other."""
    name_of, heads = _identify_names(same, different)
    names = _join_names(name_of, same, different)
    lines = {names.find(name_of[one]): place for place, one, _ in same.pairs}
    meant: dict[tuple[int, Any], dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    names_of: dict[int, set[Any]] = defaultdict(set)
    for key, scope, record in _find_records(records, heads):
        names_of[record].add(heads[key])
        meant[scope, names.find(heads[key])][heads[key]].append(record)
    occurring = {head for one in names_of.values() for head in one}
    for said in (same, different):
        said.found.update(name for _, *pair in said.pairs for name in pair if name_of[name] in occurring)

    marks, barred = (
        {record: reduce(or_, (names.get_marks(name)[side] for name in own)) for record, own in names_of.items()}
        for side in (0, 1)
    )
    clusters, joins, line_of = Clusters(marks, barred), set(), {}
    for record in names_of:
        if bars := marks[record] & barred[record]:
            place, one, two = get_pair(different, bars)
            raise InputError(
                f"{place}: {one} and {two} name the same result, so they cannot be two documents; remove the pair"
            )
    spelled_twice = {name_of[one] for _, one, two in same.pairs if name_of[one] == name_of[two]}
    for (_, head), parts in meant.items():
        first, *rest = dict.fromkeys(record for members in parts.values() for record in members)
        for record in rest if len(parts) > 1 or not spelled_twice.isdisjoint(parts) else ():
            if bars := clusters.find_bars(first, record):
                raise _contradict(lines[head], different, bars)
            clusters.join(first, record)
            joins.add((min(first, record), max(first, record)))
            line_of[first] = line_of[record] = lines[head]
    named = np.zeros(records.frame.height, np.bool_)
    named[list(names_of)] = True
    pairs = pl.DataFrame(sorted(joins), schema={"left": pl.UInt32, "right": pl.UInt32}, orient="row")
    return Said(same, different, clusters, names_of, line_of, pairs, named)


def get_pair(different: SaidPairs, bars: Set[tuple[int, int]]) -> tuple[str, str, str]:
    return different.pairs[min(number for number, _side in bars)]


def _contradict(line: str, different: SaidPairs, bars: Set[tuple[int, int]]) -> InputError:
    place, one, two = get_pair(different, bars)
    return InputError(f"{place} says that {one} and {two} are different, but {line} makes them the same; remove one")


def _identify_names(same: SaidPairs, different: SaidPairs) -> tuple[dict[str, Any], dict[Any, Any]]:
    names = list(dict.fromkeys(name for said in (same, different) for _, *pair in said.pairs for name in pair))
    clusters = Clusters({}, {})
    keys: dict[str, list[tuple[str, str]]] = {}
    for name, normal in zip(names, normalise_kind(pl.Series(names, dtype=pl.String), "id"), strict=True):
        parsed = parse_url(name)
        # Ids may have `#` too: only what has a host or begins with `/` is a URL.
        is_url = parsed is not None and ("://" in parsed.normalised or name.startswith("/"))
        keys[name] = [("id", name), ("id", normal or name), *([("url", parsed.address)] if parsed and is_url else [])]
        for key in keys[name][1:]:
            clusters.join(keys[name][0], key)
    heads = {key: clusters.find(key) for forms in keys.values() for key in forms}
    return {name: heads[forms[0]] for name, forms in keys.items()}, heads


def _join_names(name_of: dict[str, Any], same: SaidPairs, different: SaidPairs) -> Clusters:
    marks: dict[Any, Set[Any]] = defaultdict(frozenset)
    barred: dict[Any, Set[Any]] = defaultdict(frozenset)
    for number, (place, one, two) in enumerate(different.pairs):
        if name_of[one] == name_of[two]:
            raise InputError(f"{place}: {one} and {two} are one id or URL, not two documents; remove the pair")
        for side, name in enumerate((one, two)):
            marks[name_of[name]] |= {(number, side)}
            barred[name_of[name]] |= {(number, 1 - side)}
    clusters = Clusters(marks, barred)
    for place, one, two in same.pairs:
        if bars := clusters.find_bars(name_of[one], name_of[two]):
            raise _contradict(place, different, bars)
        clusters.join(name_of[one], name_of[two])
    return clusters


def _find_records(records: Records, wanted: dict[Any, Any]) -> Iterator[tuple[Any, int, int]]:
    """Yield (key, scope, number of the record) for each record that has a key in `wanted`.

    Doc_ids that several documents share are ignored, and so are URLs of pages with many items.
    """
    frame = records.frame
    own_doc_id = pl.lit(records.trusted) | ~(
        pl.col("reissued")
        | ((pl.col("type") == "passage") & (pl.col("snippet").n_unique().over("scope", "doc_id") > 1))
    )
    forms: list[tuple[str, pl.Expr]] = [
        ("id", pl.when(own_doc_id).then("doc_id")),
        ("url", pl.when(URL_NAMES_IT).then(pl.col("item") + pl.col("anchor"))),
    ]
    for row in TYPES.values():
        own = [name for name in row.item_ids if name in records.attributes]
        forms += [("id", pl.when(pl.col("type") == row.name).then(name)) for name in own]
    if any(kind == "id" and value.startswith("text:") for kind, value in wanted):
        frame = frame.with_columns(text=name_texts(frame))
        forms.append(("id", pl.col("text")))
    values = {kind: [value for known, value in wanted if known == kind] for kind in ("id", "url")}
    for kind, form in forms:
        held = frame.select("scope", "record", value=form.str.split(SEVERAL)).explode("value").drop_nulls("value")
        for scope, record, value in held.filter(pl.col("value").is_in(values[kind])).iter_rows():
            yield (kind, value), scope, record
    addresses = frame.filter(own_doc_id, pl.col("doc_id").str.contains("^https?://"))
    # Runs without deduplication have URLs as doc_ids.
    for scope, record, value in addresses.select("scope", "record", "doc_id").iter_rows():
        if (parsed := parse_url(value)) and ("url", parsed.address) in wanted:
            yield ("url", parsed.address), scope, record
