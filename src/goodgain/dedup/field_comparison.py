"""Compares pairs of records field by field: they agree, differ, or one of them lacks the field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.dedup.document_types import DocumentType
from goodgain.dedup.normalisation import SEVERAL, UNSPACED
from goodgain.dedup.records import MIN_SNIPPET, Records
from goodgain.dedup.urls import has_other_choice

Mask = npt.NDArray[np.bool_]

#: What normalisation leaves of the ellipsis at which a search engine cuts a snippet.
_ELLIPSIS = " ."
#: Two snippets agree if they share this part of the smaller one's 5-grams: a changed date or number leaves it so.
_MIN_OVERLAP = 0.9
#: Equal snippets of this many characters identify a document without any other field.
_LONG_SNIPPET = 200

_TOKENS = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
#: Tokens of a gram: long enough that two texts seldom share one by chance.
_GRAM_SIZE = 5
#: Pairs of texts whose grams are in memory together.
_OVERLAPS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Evidence:
    """Pairs of records that are compared as one type.

    `left` and `right` are places in the records' frame, `kind` is the row of the table of types that holds, and
    `compatible` says whether the types of the pairs can be one document.
    """

    records: Records
    kind: DocumentType
    compatible: bool
    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    _seen: dict[str, tuple[Mask, Mask]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.left)

    def select(self, mask: Mask) -> Evidence:
        """Return the pairs for which `mask` is true."""
        return Evidence(self.records, self.kind, self.compatible, self.left[mask], self.right[mask])

    def no_pairs(self) -> Mask:
        """Return a mask that is false for all pairs."""
        return np.zeros(len(self), dtype=np.bool_)

    def compare(self, name: str) -> tuple[Mask, Mask]:
        """Return whether both sides have this id or field and agree, and whether both have it and differ."""
        if name not in self._seen:
            match name:
                case "snippet":
                    found = self._compare_snippets()
                case "choice":
                    found = self._compare_choices()
                case "url":  # equal items agree; another page or another selection of content differs
                    found = self.compare("item")[0], self.compare("page")[1] | self.compare("choice")[1]
                case "parent" if "parent" in self.kind.required:
                    found = self._compare_parents()
                case _:
                    found = self._compare_values(name)
            self._seen[name] = found
        return self._seen[name]

    def differ_in_any(self, names: Iterable[str]) -> Mask:
        """Return whether both sides have one of these ids and fields and differ in it."""
        differ: Mask = np.any([self.no_pairs(), *(self.compare(name)[1] for name in names)], axis=0)
        return differ

    def has_both(self, name: str) -> Mask:
        """Return whether both sides have this id or field at all."""
        agree, differ = self._compare_values("item" if name == "url" else name)
        return agree | differ

    def _compare_values(self, name: str) -> tuple[Mask, Mask]:
        # The first column before the other: a type's title may be in `title` too.
        names = dict.fromkeys((self.kind.title, "title") if name in ("title", self.kind.title) else (name,))
        columns = [column for column in names if column in self.records.frame.columns]
        if not columns:
            return self.no_pairs(), self.no_pairs()
        codes = self.records.codes(*columns)
        left, right = codes[self.left], codes[self.right]
        both = (left >= 0) & (right >= 0)
        agree, differ = both & (left == right), both & (left != right)
        if name in self.kind.item_ids and differ.any():  # of several values of an id, one in common is enough
            several = self.records.frame[name].str.contains(SEVERAL, literal=True).fill_null(False).to_numpy()
            places = np.flatnonzero(differ & (several[self.left] | several[self.right]))
            agree[places] = [
                not set(one.split(SEVERAL)).isdisjoint(two.split(SEVERAL)) for one, two in self._get_texts(name, places)
            ]
            differ = differ & ~agree
        return agree, differ

    def _compare_parents(self) -> tuple[Mask, Mask]:
        """Compare parents by their doc_ids and by their URLs; neither may differ."""
        (agree, differ), (same_url, other_url) = self._compare_values("parent"), self.compare("url")
        return (agree | same_url) & ~(differ | other_url), differ | other_url

    def _compare_choices(self) -> tuple[Mask, Mask]:
        """Compare the parameters that select the content of one page."""
        agree, differ = self._compare_values("choice")
        differ = differ & self.compare("page")[0]
        places = np.flatnonzero(differ)
        differ[places] = [has_other_choice(one, two) for one, two in self._get_texts("choice", places)]
        return agree, differ

    def _get_texts(self, name: str, places: npt.NDArray[np.intp]) -> Iterable[tuple[str, str]]:
        values = self.records.frame[name]
        return zip(*(values.gather(side[places]).to_list() for side in (self.left, self.right)), strict=True)

    @property
    def snippet_lengths(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The lengths of both snippets."""
        lengths = self.records.frame["snippet_length"].to_numpy()
        return lengths[self.left], lengths[self.right]

    def _compare_snippets(self) -> tuple[Mask, Mask]:
        """Compare snippets: equal, or both long and one contains the other or shares 0.9 of the smaller's 5-grams."""
        equal, other = self._compare_values("snippet")
        agree = equal.copy()
        one, two = self.snippet_lengths
        open_pairs = np.flatnonzero(other & (one >= MIN_SNIPPET) & (two >= MIN_SNIPPET))
        if len(open_pairs):
            pairs = self._get_texts("snippet", open_pairs)
            agree[open_pairs] = [_is_inside(first, second) or _is_inside(second, first) for first, second in pairs]
            rest = open_pairs[~agree[open_pairs]]
            shares = measure_overlap(self.records.frame["snippet"], self.left[rest], self.right[rest])
            agree[rest] = shares >= _MIN_OVERLAP
        return agree, (equal | other) & ~agree

    @property
    def long_equal_snippets(self) -> Mask:
        """Whether the snippets are equal, and long enough to identify a document alone."""
        return self._compare_values("snippet")[0] & (self.snippet_lengths[0] >= _LONG_SNIPPET)


def _is_inside(part: str, whole: str) -> bool:
    """Return whether `whole` contains `part`, apart from the dots that mark where a snippet was cut."""
    words = part.strip(_ELLIPSIS)
    return bool(words) and words in whole


def measure_overlap(
    texts: pl.Series, left: npt.NDArray[np.integer], right: npt.NDArray[np.integer]
) -> npt.NDArray[np.float64]:
    """Return for each pair of texts the share of the smaller one's 5-grams that the other has too."""
    shares = np.zeros(len(left))
    for start in range(0, len(left), _OVERLAPS_AT_ONCE):
        some = slice(start, start + _OVERLAPS_AT_ONCE)
        used = np.unique([left[some], right[some]])
        grams = dict(zip(used.tolist(), map(_hash_grams, texts.gather(used).to_list()), strict=True))
        pairs = ((grams[one], grams[two]) for one, two in zip(left[some].tolist(), right[some].tolist(), strict=True))
        shares[some] = [len(one & two) / (min(len(one), len(two)) or 1) for one, two in pairs]
    return shares


def _hash_grams(text: str) -> set[int]:
    """Return the hashes of a text's 5-grams; a text of fewer tokens is one gram."""
    tokens = _TOKENS.findall(text)
    starts = range(max(len(tokens) - _GRAM_SIZE, 0) + 1) if tokens else ()
    return {hash(tuple(tokens[start : start + _GRAM_SIZE])) for start in starts}
