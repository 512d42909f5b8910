"""Compares pairs of records field by field: they agree, differ, or one of them lacks the field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from goodgain.dedup.records import MIN_SNIPPET, Records
from goodgain.dedup.texts import measure_overlap
from goodgain.dedup.types import DocumentType
from goodgain.dedup.urls import has_other_choice
from goodgain.dedup.values import SEVERAL

__all__ = ["Evidence", "Mask"]

Mask = npt.NDArray[np.bool_]

#: What normalisation leaves of the ellipsis at which a search engine cuts a snippet.
_ELLIPSIS = " ."
#: Two snippets agree if they share this part of the smaller one's 5-grams: a changed date or number leaves it so.
_MIN_OVERLAP = 0.9
#: Equal snippets of this many characters identify a document without any other field.
_LONG_SNIPPET = 200


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
            special: dict[str, Callable[[], tuple[Mask, Mask]]] = {
                "snippet": self._compare_snippets,
                "url": self._compare_urls,
            }
            if "parent" in self.kind.required:
                special["parent"] = self._compare_parents
            self._seen[name] = special[name]() if name in special else self._compare_values(name)
        return self._seen[name]

    def has_both(self, name: str) -> Mask:
        """Return whether both sides have this id or field at all."""
        columns = self._find_columns("item" if name == "url" else name)
        if not columns:
            return self.no_pairs()
        has: Mask = self.records.codes(*columns) >= 0
        return has[self.left] & has[self.right]

    def _find_columns(self, name: str) -> tuple[str, ...]:
        """Return the columns that hold a field, the first before the others: a type's title may be in `title` too."""
        names = dict.fromkeys((self.kind.title, "title") if name in ("title", self.kind.title) else (name,))
        return tuple(column for column in names if column in self.records.frame.columns)

    def _compare_values(self, name: str) -> tuple[Mask, Mask]:
        columns = self._find_columns(name)
        if not columns:
            return self.no_pairs(), self.no_pairs()
        codes = self.records.codes(*columns)
        left, right = codes[self.left], codes[self.right]
        both = (left >= 0) & (right >= 0)
        agree, differ = both & (left == right), both & (left != right)
        if name in self.kind.item_ids and differ.any():  # of several values of an id, one in common is enough
            values = self.records.frame[name]
            several = values.str.contains(SEVERAL, literal=True).fill_null(False).to_numpy()
            for place in np.flatnonzero(differ & (several[self.left] | several[self.right])).tolist():
                one, two = values[int(self.left[place])], values[int(self.right[place])]
                if set(one.split(SEVERAL)) & set(two.split(SEVERAL)):
                    agree[place], differ[place] = True, False
        return agree, differ

    def _compare_parents(self) -> tuple[Mask, Mask]:
        """Compare parents by their doc_ids and by their URLs; neither may differ."""
        agree, differ = self._compare_values("parent")
        same_url, other_url = self._compare_urls()
        differ = differ | other_url
        return (agree | same_url) & ~differ, differ

    def _compare_urls(self) -> tuple[Mask, Mask]:
        """Compare URLs: they agree if their items are equal, and differ if page or selected content differs."""
        item, _ = self._compare_values("item")
        return item, self.other_page | self.other_choice

    @cached_property
    def other_item(self) -> Mask:
        """Whether the URLs differ in anything after normalisation."""
        return self._compare_values("item")[1]

    @cached_property
    def other_page(self) -> Mask:
        """Whether host or path of the URLs differ."""
        return self._compare_values("page")[1]

    @cached_property
    def other_choice(self) -> Mask:
        """Whether the URLs are of one page and a parameter that selects its content differs."""
        same_page, _ = self._compare_values("page")
        _, differ = self._compare_values("choice")
        column = self.records.frame["choice"]
        differ = differ & same_page
        places = np.flatnonzero(differ)
        pairs = zip(
            column.gather(self.left[places]).to_list(), column.gather(self.right[places]).to_list(), strict=True
        )
        differ[places] = [has_other_choice(one, two) for one, two in pairs]
        return differ

    @cached_property
    def _snippet_lengths(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        lengths = self.records.frame["snippet_length"].to_numpy()
        return lengths[self.left], lengths[self.right]

    def _compare_snippets(self) -> tuple[Mask, Mask]:
        """Compare snippets: equal, or both long and one contains the other or shares 0.9 of the smaller's 5-grams."""
        equal, other = self._compare_values("snippet")
        agree = equal.copy()
        one, two = self._snippet_lengths
        open_pairs = np.flatnonzero(other & (one >= MIN_SNIPPET) & (two >= MIN_SNIPPET))
        if len(open_pairs):
            texts = self.records.frame["snippet"]
            left, right = self.left[open_pairs], self.right[open_pairs]
            pairs = zip(texts.gather(left).to_list(), texts.gather(right).to_list(), strict=True)
            agree[open_pairs] = [_is_inside(first, second) or _is_inside(second, first) for first, second in pairs]
            rest = open_pairs[~agree[open_pairs]]
            shares = measure_overlap(texts, self.left[rest].astype(np.intp), self.right[rest].astype(np.intp))
            agree[rest] = shares >= _MIN_OVERLAP
        return agree, (equal | other) & ~agree

    @property
    def short_snippets(self) -> Mask:
        """Whether the snippets are too short to count in full."""
        one, two = self._snippet_lengths
        return np.minimum(one, two) < MIN_SNIPPET

    @property
    def long_equal_snippets(self) -> Mask:
        """Whether the snippets are equal, and long enough to identify a document alone."""
        return self._compare_values("snippet")[0] & (self._snippet_lengths[0] >= _LONG_SNIPPET)

    @cached_property
    def beyond_start(self) -> Mask:
        """Whether both URLs go beyond a start page."""
        beyond: Mask = self.records.frame["beyond_start"].fill_null(False).to_numpy()
        return beyond[self.left] & beyond[self.right]


def _is_inside(part: str, whole: str) -> bool:
    """Return whether `whole` contains `part`, apart from the dots that mark where a snippet was cut."""
    words = part.strip(_ELLIPSIS)
    return bool(words) and words in whole
