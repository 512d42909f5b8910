"""Phase 2 of deduplication. It compares pairs of records field by field, and decides by rules whether they are one document.

The rules apply in a fixed order. The first rule that decides is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.errors import tell_progress
from goodgain.formats.urls import has_other_choice
from goodgain.logs.dedup.document_types import GENERIC, SEVERAL, TYPES, UNSPACED, DocumentType, find_pair_type
from goodgain.logs.dedup.rows_and_trusted_ids import ITEM_IDS, MIN_SNIPPET, Policy, Records

Mask = npt.NDArray[np.bool_]

#: The signs of an ellipsis at the end of a cut snippet, after normalisation.
_ELLIPSIS = " ."
#: Two snippets agree if they share this part of the 5-grams of the smaller snippet: a date or a number may have changed.
_MIN_OVERLAP = 0.9
#: Equal snippets of this many characters identify a document without any other field.
_LONG_SNIPPET = 200

_TOKENS = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
#: Tokens of a gram: long enough that two texts seldom share one by chance.
_GRAM_SIZE = 5
_OVERLAPS_AT_ONCE = 20_000


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
    _seen: dict[str, tuple[Mask, Mask]] = field(default_factory=dict, repr=False)

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
        if name not in self._seen:
            match name:
                case "snippet":
                    found = self._compare_snippets()
                case "choice":  # the parameters that select the content of one page
                    agree, differ = self.compare_values(name)
                    differ = differ & self.compare("page")[0]
                    places = np.flatnonzero(differ)
                    differ[places] = [has_other_choice(one, two) for one, two in self._get_texts(name, places)]
                    found = agree, differ
                case "edition":
                    found = self._compare_editions()
                case "url":  # equal addresses agree; another page, selection of content or edition differs
                    agree = self.compare("item")[0] & ~self.compare("anchor")[1]
                    found = agree, self.differ_in_any(("page", "choice", "edition"))
                case "parent" if "parent" in self.kind.required:  # neither the doc_ids nor the URLs may differ
                    (agree, differ), same_url = self.compare_values(name), self.compare("item")[0]
                    other_url = self.compare("url")[1]
                    found = (agree | same_url) & ~(differ | other_url), differ | other_url
                case _:
                    found = self.compare_values(name)
            self._seen[name] = found
        return self._seen[name]

    def differ_in_any(self, names: Iterable[str]) -> Mask:
        differ: Mask = np.any([self.no_pairs(), *(self.compare(name)[1] for name in names)], axis=0)
        return differ

    def compare_values(self, name: str) -> tuple[Mask, Mask]:
        # A type's title may be in `title` instead of its own field.
        names = dict.fromkeys((self.kind.title, "title") if name in ("title", self.kind.title) else (name,))
        columns = [column for column in names if column in self.records.frame.columns]
        if not columns:
            return self.no_pairs(), self.no_pairs()
        codes = self.records.codes(*columns)
        left, right = codes[self.left], codes[self.right]
        both = (left >= 0) & (right >= 0)
        agree, differ = both & (left == right), both & (left != right)
        if name in self.kind.item_ids and differ.any():  # if an id has several values, one in common is enough
            several = self.records.frame[name].str.contains(SEVERAL, literal=True).fill_null(False).to_numpy()
            places = np.flatnonzero(differ & (several[self.left] | several[self.right]))
            texts = self._get_texts(name, places)
            agree[places] = [not {*one.split(SEVERAL)}.isdisjoint(two.split(SEVERAL)) for one, two in texts]
            differ = differ & ~agree
        return agree, differ

    def _compare_editions(self) -> tuple[Mask, Mask]:
        differ = self.compare_values("edition")[1]
        if differ.any():
            differ = differ & self.compare("page")[0]
        agree, places = self.no_pairs(), np.flatnonzero(differ)
        items, folders = self._get_texts("item", places), self._get_texts("edition", places)
        agree[places] = [
            one.replace(folder, "", 1) == two.replace(other, "", 1)
            for (one, two), (folder, other) in zip(items, folders, strict=True)
        ]
        return agree & ~self.compare("anchor")[1], differ

    def _get_texts(self, name: str, places: npt.NDArray[np.intp]) -> Iterable[tuple[str, str]]:
        values = self.records.frame[name]
        return zip(*(values.gather(side[places]).to_list() for side in (self.left, self.right)), strict=True)

    def shorter_snippets(self) -> npt.NDArray[np.uint32]:
        """Return the length of the shorter snippet of each pair."""
        lengths = self.records.frame["snippet_length"].to_numpy()
        shorter: npt.NDArray[np.uint32] = np.minimum(lengths[self.left], lengths[self.right])
        return shorter

    def _compare_snippets(self) -> tuple[Mask, Mask]:
        """Compare the snippets of each pair. Long snippets also agree if one contains the other, or if both share most 5-grams."""
        equal, other = self.compare_values("snippet")
        agree = equal.copy()
        open_pairs = np.flatnonzero(other & (self.shorter_snippets() >= MIN_SNIPPET))
        if len(open_pairs):
            pairs = self._get_texts("snippet", open_pairs)
            agree[open_pairs] = [_is_inside(first, second) or _is_inside(second, first) for first, second in pairs]
            rest = open_pairs[~agree[open_pairs]]
            shares = measure_overlap(self.records.frame["snippet"], self.left[rest], self.right[rest])
            agree[rest] = shares >= _MIN_OVERLAP
        return agree, (equal | other) & ~agree


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
        some = slice(start, start + _OVERLAPS_AT_ONCE)
        used = np.unique([left[some], right[some]])
        grams = dict(zip(used.tolist(), map(_hash_grams, texts.gather(used).to_list()), strict=True))
        pairs = ((grams[one], grams[two]) for one, two in zip(left[some].tolist(), right[some].tolist(), strict=True))
        shares[some] = [len(one & two) / (min(len(one), len(two)) or 1) for one, two in pairs]
    return shares


def _hash_grams(text: str) -> set[int]:
    tokens = _TOKENS.findall(text)
    starts = range(max(len(tokens) - _GRAM_SIZE, 0) + 1) if tokens else ()
    return {hash(tuple(tokens[start : start + _GRAM_SIZE])) for start in starts}


#: The ruling on pairs: which are the same, which are different, and the confidence in the former.
_Ruling = tuple[Mask, Mask, npt.NDArray[np.float64] | float]

#: The maximum confidence of agreeing fields: lower than that of an equal doc_id (1.5) or URL (2).
_MAX_CONFIDENCE = 1.4
_PAIRS_AT_ONCE = 1_000_000


class Rule(NamedTuple):
    name: str
    decide: Callable[[Evidence], _Ruling]
    policies: tuple[Policy, ...] = ("id", "standard", "strict", "content")


def _decide_by_trusted_id(pairs: Evidence) -> _Ruling:
    both = pairs.compare("doc_id") if pairs.records.trusted else (pairs.no_pairs(), pairs.no_pairs())
    return *both, 4.0


def _decide_by_mismatch(pairs: Evidence) -> _Ruling:
    # Untrusted doc_ids are not compared: searches reissue them.
    kind = pairs.kind
    compared = {*kind.item_ids, *kind.reject, *kind.required, *kind.weights, "title", "snippet"}
    return pairs.no_pairs(), (pairs.compare("item")[1] & _names_item(pairs)) | pairs.differ_in_any(compared), 0.0


def _decide_by_item_id(pairs: Evidence) -> _Ruling:
    agree, differ = pairs.no_pairs(), pairs.no_pairs()
    for name in pairs.kind.item_ids:
        equal, other = pairs.compare(name)
        agree = agree | equal
        if name not in pairs.kind.lenient_ids:
            differ = differ | other
    return agree & ~differ, differ, 3.0


def _decide_by_url(pairs: Evidence) -> _Ruling:
    equal, names_item = pairs.compare("url")[0], _names_item(pairs)
    if pairs.records.policy == "id":
        return equal & names_item, pairs.no_pairs(), 2.0
    differ = pairs.compare("page")[1] & names_item
    if pairs.records.policy == "content" and differ.any():
        doubtful = pairs.select(differ)
        differ[differ] = ~(doubtful.compare("title")[0] & doubtful.compare("snippet")[0])
    return equal & names_item, differ | pairs.compare("choice")[1], 2.0


def _decide_by_edition(pairs: Evidence) -> _Ruling:
    # Two language or version folders of one page are one document only if their titles agree.
    alike, differ = pairs.compare("edition")
    if not differ.any():
        return differ, differ, 0.0
    names_item, same_title = _names_item(pairs), pairs.compare("title")[0]
    return alike & names_item & same_title, differ & names_item & ~same_title, 1.5


def _names_item(pairs: Evidence) -> Mask:
    if pairs.kind.url == "item beyond the start page":
        beyond: Mask = pairs.records.frame["beyond_start"].fill_null(False).to_numpy()
        return beyond[pairs.left] & beyond[pairs.right]
    return np.full(len(pairs), pairs.kind.url == "item")


def _decide_by_doc_id(pairs: Evidence) -> _Ruling:
    reissued = pairs.records.frame["reissued"].to_numpy()
    same = pairs.compare("doc_id")[0] & ~reissued[pairs.left]
    if same.any():
        some = pairs.select(same)
        confirmed = some.compare("snippet")[0]
        if "parent" not in some.kind.required:  # all passages of a parent have its title
            confirmed = confirmed | some.compare("title")[0]
        content = ["title", "snippet", "item", "rest", *set(pairs.records.attributes).difference(ITEM_IDS)]
        some_content: Mask = np.any([mask for name in content for mask in some.compare_values(name)], axis=0)
        same[same] = confirmed | ~some_content
    return same, pairs.no_pairs(), 1.5


def _decide_by_weights(pairs: Evidence) -> _Ruling:
    # In hundredths: sums of 0.1 and 0.2 are not exact, and the threshold is 1.0.
    total = np.zeros(len(pairs), dtype=np.int64)
    weights = {name: round(100 * weight) for name, weight in pairs.kind.weights.items()}
    snippet = weights.pop("snippet", 0)
    for name, weight in weights.items():
        total += np.where(pairs.compare(name)[0], weight, 0)
    if snippet:
        near = total + snippet >= 100
        agree = pairs.no_pairs()
        agree[near] = pairs.select(near).compare("snippet")[0]
        lengths = pairs.shorter_snippets()
        total += np.where(agree, np.where(lengths < MIN_SNIPPET, snippet // 2, snippet), 0)
        alone = pairs.compare_values("snippet")[0] & (lengths >= _LONG_SNIPPET) & ~pairs.compare("title")[1]
        total = np.where(alone, np.maximum(total, 100), total)
    same = total >= 100
    for name in pairs.kind.required:
        same = same & pairs.compare(name)[0]
    return same, pairs.no_pairs(), np.minimum(total / 100, _MAX_CONFIDENCE)


_ALL_BUT_ID: tuple[Policy, ...] = ("standard", "strict", "content")
#: In order of application: the surest evidence first.
RULES = (
    Rule("trusted", _decide_by_trusted_id),
    Rule("type", lambda pairs: (pairs.no_pairs(), pairs.no_pairs() | (not pairs.compatible), 0.0)),
    Rule("mismatch", _decide_by_mismatch, ("strict",)),
    Rule("item id", _decide_by_item_id),
    Rule("field", lambda pairs: (pairs.no_pairs(), pairs.differ_in_any(pairs.kind.reject), 0.0), _ALL_BUT_ID),
    Rule("url", _decide_by_url),
    Rule("edition", _decide_by_edition, ("standard", "content")),
    Rule("doc_id", _decide_by_doc_id, _ALL_BUT_ID),
    Rule("fields", _decide_by_weights, _ALL_BUT_ID),
)
UNDECIDED = len(RULES)
#: The name of each position. The last two stand for equal results that no rule joins, and for pairs of the user.
RULE_NAMES = (*(rule.name for rule in RULES), "undecided", "identical", "said")
_IDENTICAL, SAID = len(RULES) + 1, len(RULES) + 2
#: Undecided pairs are not proven different, nor are those of two editions: another result of either may have the same title.
PROVEN_DIFFERENT = ~pl.col("same") & (pl.col("rule") < [rule.name for rule in RULES].index("edition"))


def verify(records: Records, pairs: pl.DataFrame) -> pl.DataFrame:
    """Decide for each pair of records (columns `left` and `right`) whether both are the same document.

    The new columns are `same`, `confidence` and `rule`. `rule` is the position in `RULES` of the deciding rule, or UNDECIDED.
    """
    left, right = pairs["left"].to_numpy(), pairs["right"].to_numpy()
    rule = np.full(len(left), UNDECIDED, dtype=np.uint8)
    same = np.zeros(len(left), dtype=np.bool_)
    confidence = np.zeros(len(left))
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        tell_progress("comparing results", start, len(left))
        some = slice(start, start + _PAIRS_AT_ONCE)
        for places, evidence in split_by_type(records, left[some], right[some]):
            places = places + start
            for number, asked in enumerate(RULES):
                if records.policy not in asked.policies or not len(places):
                    continue
                yes, no, sure = asked.decide(evidence)
                rule[places[yes | no]] = number
                same[places[yes]] = True
                confidence[places[yes]] = sure if isinstance(sure, float) else sure[yes]
                places, evidence = places[~(yes | no)], evidence.select(~(yes | no))
    return pairs.with_columns(rule=rule, same=same, confidence=confidence)


def verify_rows(records: Records, pairs: pl.DataFrame) -> pl.DataFrame:
    """For each pair of records (`left`, `right`), decide whether a row of one and a row of the other are the same document.

    Rows of one record are the same document unless the record's column `apart` is true. The user's pairs overrule the rules.
    """
    ordered = pairs.with_columns(left=pl.min_horizontal("left", "right"), right=pl.max_horizontal("left", "right"))
    apart = records.frame["apart"].gather(pairs["left"])
    alike = (pl.col("left") == pl.col("right")) & ~pl.col("same") & ~apart
    # Equal rows are as sure as fields whose weights reach the threshold.
    found = verify(records, ordered).with_columns(
        pairs["left"],
        pairs["right"],
        rule=pl.when(alike).then(pl.lit(_IDENTICAL, pl.UInt8)).otherwise("rule"),
        same=pl.col("same") | alike,
        confidence=pl.when(alike).then(1.0).otherwise("confidence"),
    )
    return found if records.said is None else records.said.state(found, SAID)


def split_by_type(
    records: Records, left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]
) -> Iterator[tuple[npt.NDArray[np.intp], Evidence]]:
    """Group pairs by document types. Yield the positions and `Evidence` of each group. Incompatible types count as generic."""
    types = records.frame["type"].cast(pl.Enum([*TYPES]))
    met = pl.DataFrame({"place": np.arange(len(left)), "one": types.gather(left), "other": types.gather(right)})
    for (one, other), part in met.group_by("one", "other"):
        places, kind = part["place"].to_numpy(), find_pair_type(str(one), str(other))
        yield places, Evidence(records, kind or GENERIC, kind is not None, left[places], right[places])
