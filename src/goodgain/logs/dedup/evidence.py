"""Compares pairs of records field by field, for the rules of `verification`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.formats.urls import has_other_choice
from goodgain.logs.dedup.document_types import GENERIC, SEVERAL, TYPES, UNSPACED, DocumentType, find_pair_type
from goodgain.logs.dedup.rows_and_trusted_ids import MIN_SNIPPET, Records

#: One value per pair.
Mask = npt.NDArray[np.bool_]

#: The signs of an ellipsis at the end of a cut snippet, after normalisation.
_ELLIPSIS = " ."
#: Two snippets agree if they share this part of the 5-grams of the smaller snippet: a date or a number may have changed.
_MIN_OVERLAP = 0.9

_TOKENS = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
#: Tokens of a gram: long enough that two texts seldom share one by chance.
_GRAM_SIZE = 5
_OVERLAPS_AT_ONCE = 20_000


def split_by_type(
    records: Records, left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]
) -> Iterator[tuple[npt.NDArray[np.intp], Evidence]]:
    """Group pairs by document types. Yield the positions and `Evidence` of each group. Incompatible types count as generic."""
    types = records.frame["type"].cast(pl.Enum([*TYPES]))
    pairs = pl.DataFrame(
        {"place": np.arange(len(left)), "left_type": types.gather(left), "right_type": types.gather(right)}
    )
    for (left_type, right_type), part in pairs.group_by("left_type", "right_type"):
        places = part["place"].to_numpy()
        kind = find_pair_type(str(left_type), str(right_type))
        yield places, Evidence(records, kind or GENERIC, kind is not None, left[places], right[places])


@dataclass(frozen=True)
class Evidence:
    """Pairs of records, compared by the rules of one document type.

    `left` and `right` are positions in the records' frame. `kind` is the type whose rules apply. All pairs have
    the same two types. `compatible` is false if results of these two types can never be one document.
    """

    records: Records
    kind: DocumentType
    compatible: bool
    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    _masks: dict[str, tuple[Mask, Mask]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.left)

    def select(self, mask: Mask) -> Evidence:
        return Evidence(self.records, self.kind, self.compatible, self.left[mask], self.right[mask])

    def no_pairs(self) -> Mask:
        return np.zeros(len(self), dtype=np.bool_)

    def compare(self, name: str) -> tuple[Mask, Mask]:
        """Return two masks of the pairs: where both records agree in the id or field `name`, and where they differ in it.

        A pair with a missing value is usually in neither mask. A pair of different editions may be in both masks.
        """
        if name not in self._masks:
            self._masks[name] = self._compare(name)
        return self._masks[name]

    def _compare(self, name: str) -> tuple[Mask, Mask]:
        """Return where both records agree and where they differ: by a rule of its own for some names, else by equal values."""
        match name:
            case "snippet":
                return self._compare_snippets()
            case "choice":
                return self._compare_choices()
            case "edition":
                return self._compare_editions()
            case "url":
                return self._compare_urls()
            case "parent" if "parent" in self.kind.required:
                return self._compare_parents()
            case _:
                return self.compare_values(name)

    def differ_in_any(self, names: Iterable[str]) -> Mask:
        masks = [self.compare(name)[1] for name in names]
        differ: Mask = np.any([self.no_pairs(), *masks], axis=0)
        return differ

    def compare_values(self, name: str) -> tuple[Mask, Mask]:
        """Return masks as `compare` does, only by whether the normalised values are equal."""
        names = [name]
        if name in ("title", self.kind.title):  # a type's title may be in `title` instead of its own field
            names = list(dict.fromkeys((self.kind.title, "title")))
        columns = [column for column in names if column in self.records.frame.columns]
        if not columns:
            return self.no_pairs(), self.no_pairs()

        codes = self.records.codes(*columns)
        left, right = codes[self.left], codes[self.right]
        both = (left >= 0) & (right >= 0)
        agree = both & (left == right)
        differ = both & (left != right)
        if name in self.kind.item_ids and differ.any():
            # An id may have several values: one in common is enough.
            has_several = self.records.frame[name].str.contains(SEVERAL, literal=True).fill_null(False).to_numpy()
            places = np.flatnonzero(differ & (has_several[self.left] | has_several[self.right]))
            agree[places] = [_share_value(*ids) for ids in self._get_texts(name, places)]
            differ = differ & ~agree
        return agree, differ

    def _get_texts(self, name: str, places: npt.NDArray[np.intp]) -> Iterable[tuple[str, str]]:
        """Return the (left, right) values of a column, for the pairs at `places`."""
        values = self.records.frame[name]
        left = values.gather(self.left[places]).to_list()
        right = values.gather(self.right[places]).to_list()
        return zip(left, right, strict=True)

    def _compare_choices(self) -> tuple[Mask, Mask]:
        """Compare the parameters that select the content of one page."""
        agree, differ = self.compare_values("choice")
        differ = differ & self.compare("page")[0]
        places = np.flatnonzero(differ)
        differ[places] = [has_other_choice(*choices) for choices in self._get_texts("choice", places)]
        return agree, differ

    def _compare_editions(self) -> tuple[Mask, Mask]:
        """Compare the folders for a language or version. A pair agrees if the addresses are equal without these folders."""
        differ = self.compare_values("edition")[1]
        if differ.any():
            differ = differ & self.compare("page")[0]

        agree, places = self.no_pairs(), np.flatnonzero(differ)
        items, folders = self._get_texts("item", places), self._get_texts("edition", places)
        agree[places] = [
            left_item.replace(left_folder, "", 1) == right_item.replace(right_folder, "", 1)
            for (left_item, right_item), (left_folder, right_folder) in zip(items, folders, strict=True)
        ]
        return agree & ~self.compare("anchor")[1], differ

    def _compare_urls(self) -> tuple[Mask, Mask]:
        """Equal addresses agree. Addresses of another page, selection of content or edition differ."""
        agree = self.compare("item")[0] & ~self.compare("anchor")[1]
        return agree, self.differ_in_any(("page", "choice", "edition"))

    def _compare_parents(self) -> tuple[Mask, Mask]:
        """Parents agree by doc_id or by URL, and neither may differ."""
        same_id, other_id = self.compare_values("parent")
        same_url, other_url = self.compare("item")[0], self.compare("url")[1]
        differ = other_id | other_url
        return (same_id | same_url) & ~differ, differ

    def _compare_snippets(self) -> tuple[Mask, Mask]:
        """Compare the snippets of each pair. Long snippets also agree if one contains the other, or if both share most 5-grams."""
        agree, differ = self.compare_values("snippet")
        long_pairs = np.flatnonzero(differ & (self.shorter_snippets() >= MIN_SNIPPET))
        if len(long_pairs):
            agree = agree.copy()
            pairs = self._get_texts("snippet", long_pairs)
            agree[long_pairs] = [_is_inside(left, right) or _is_inside(right, left) for left, right in pairs]
            open_pairs = long_pairs[~agree[long_pairs]]
            shares = measure_overlap(self.records.frame["snippet"], self.left[open_pairs], self.right[open_pairs])
            agree[open_pairs] = shares >= _MIN_OVERLAP
        return agree, differ & ~agree

    def shorter_snippets(self) -> npt.NDArray[np.uint32]:
        """Return the length of the shorter snippet of each pair."""
        lengths = self.records.frame["snippet_length"].to_numpy()
        shorter: npt.NDArray[np.uint32] = np.minimum(lengths[self.left], lengths[self.right])
        return shorter


def _share_value(left: str, right: str) -> bool:
    return not {*left.split(SEVERAL)}.isdisjoint(right.split(SEVERAL))


def _is_inside(part: str, whole: str) -> bool:
    """Return whether `whole` contains `part`, ignoring dots and blanks at both ends of `part`."""
    words = part.strip(_ELLIPSIS)
    return bool(words) and words in whole


def measure_overlap(
    texts: pl.Series, left: npt.NDArray[np.integer], right: npt.NDArray[np.integer]
) -> npt.NDArray[np.float64]:
    """Return, for each pair of texts, the number of shared 5-grams divided by the number in the text with fewer 5-grams."""
    shares = np.zeros(len(left))
    for start in range(0, len(left), _OVERLAPS_AT_ONCE):
        block = slice(start, start + _OVERLAPS_AT_ONCE)
        places = np.unique([left[block], right[block]])
        grams = map(_hash_grams, texts.gather(places).to_list())
        grams_of = dict(zip(places.tolist(), grams, strict=True))
        for pair, ends in enumerate(zip(left[block].tolist(), right[block].tolist(), strict=True), start=start):
            left_grams, right_grams = grams_of[ends[0]], grams_of[ends[1]]
            fewer = min(len(left_grams), len(right_grams))
            shares[pair] = len(left_grams & right_grams) / (fewer or 1)
    return shares


def _hash_grams(text: str) -> set[int]:
    """Return a hash of each run of 5 tokens (words, or single signs of scripts without spaces). A shorter text is one gram."""
    tokens = _TOKENS.findall(text)
    if not tokens:
        return set()
    grams = range(max(len(tokens) - _GRAM_SIZE, 0) + 1)
    return {hash(tuple(tokens[start : start + _GRAM_SIZE])) for start in grams}
