"""What two records say about each other, field by field: agreement, difference, or nothing."""

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

_ELLIPSIS = " ."  # an ellipsis, after normalisation
_MIN_OVERLAP = 0.9
_LONG_SNIPPET = 200


@dataclass(frozen=True)
class Evidence:
    """Pairs of records of one type: `left` and `right` are places in the records' frame, `kind` the row that holds."""

    records: Records
    kind: DocumentType
    compatible: bool
    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    _seen: dict[str, tuple[Mask, Mask]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.left)

    def select(self, mask: Mask) -> Evidence:
        """Return the pairs where `mask` holds."""
        return Evidence(self.records, self.kind, self.compatible, self.left[mask], self.right[mask])

    def none(self) -> Mask:
        """No pair."""
        return np.zeros(len(self), dtype=np.bool_)

    def compare(self, name: str) -> tuple[Mask, Mask]:
        """Where both sides have this id or field: whether they agree, and whether they differ."""
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
            return self.none()
        has: Mask = self.records.codes(*columns) >= 0
        return has[self.left] & has[self.right]

    def _find_columns(self, name: str) -> tuple[str, ...]:
        """Return the columns that hold a field: the title of this type is read from `title` where its own field is missing."""
        names = dict.fromkeys((self.kind.title, "title") if name in ("title", self.kind.title) else (name,))
        return tuple(column for column in names if column in self.records.frame.columns)

    def _compare_values(self, name: str) -> tuple[Mask, Mask]:
        columns = self._find_columns(name)
        if not columns:
            return self.none(), self.none()
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
        """Return a parent is known by its doc_id or by its URL, each compared with its like."""
        agree, differ = self._compare_values("parent")
        same_url, other_url = self._compare_urls()
        differ = differ | other_url
        return (agree | same_url) & ~differ, differ

    def _compare_urls(self) -> tuple[Mask, Mask]:
        """Equal in minimal form; or of two pages, or of a page that shows two contents."""
        item, _ = self._compare_values("item")
        return item, self.other_page | self.other_choice

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
        """Equal; or both long enough, and one contains the other or shares 0.9 of the smaller one's 5-grams."""
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
        """Whether the snippets are equal, and long enough to tell a document alone."""
        return self._compare_values("snippet")[0] & (self._snippet_lengths[0] >= _LONG_SNIPPET)

    @cached_property
    def beyond_start(self) -> Mask:
        """Whether both URLs go beyond a start page."""
        beyond: Mask = self.records.frame["beyond_start"].fill_null(False).to_numpy()
        return beyond[self.left] & beyond[self.right]


def _is_inside(part: str, whole: str) -> bool:
    """Return whether one text contains the other, but for the dots that say where it was cut."""
    words = part.strip(_ELLIPSIS)
    return bool(words) and words in whole
