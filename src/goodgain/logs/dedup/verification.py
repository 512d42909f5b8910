"""Phase 2 of deduplication. It decides by rules whether the two records of each pair are one document.

The rules apply in a fixed order. The first rule that decides is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.errors import tell_progress
from goodgain.logs.dedup.evidence import Evidence, Mask, split_by_type
from goodgain.logs.dedup.rows_and_trusted_ids import ITEM_IDS, MIN_SNIPPET, Policy, Records

#: Equal snippets of this many characters identify a document without any other field.
_LONG_SNIPPET = 200


class _Ruling(NamedTuple):
    """What a rule decides on pairs: which it joins, which it separates, and its confidence in the joined ones."""

    joined: Mask
    separated: Mask
    confidence: npt.NDArray[np.float64] | float


#: The maximum confidence of agreeing fields: lower than that of an equal doc_id (1.5) or URL (2).
_MAX_CONFIDENCE = 1.4
_PAIRS_AT_ONCE = 1_000_000


class Rule(NamedTuple):
    name: str
    decide: Callable[[Evidence], _Ruling]
    policies: tuple[Policy, ...] = ("id", "standard", "strict", "content")


def _decide_by_trusted_id(pairs: Evidence) -> _Ruling:
    if not pairs.records.trusted:
        return _Ruling(pairs.no_pairs(), pairs.no_pairs(), 4.0)
    return _Ruling(*pairs.compare("doc_id"), 4.0)


def _decide_by_type(pairs: Evidence) -> _Ruling:
    return _Ruling(pairs.no_pairs(), np.full(len(pairs), not pairs.compatible), 0.0)


def _decide_by_mismatch(pairs: Evidence) -> _Ruling:
    """Separate pairs that differ in any compared field or address. Untrusted doc_ids are not compared: searches reissue them."""
    kind = pairs.kind
    names = {*kind.item_ids, *kind.reject, *kind.required, *kind.weights, "title", "snippet"}
    other_address = pairs.compare("item")[1] & _is_named_by_url(pairs)
    return _Ruling(pairs.no_pairs(), other_address | pairs.differ_in_any(names), 0.0)


def _decide_by_item_id(pairs: Evidence) -> _Ruling:
    """Join pairs with an equal item id, unless another item id differs: this separates them, except for lenient ids."""
    is_same, is_different = pairs.no_pairs(), pairs.no_pairs()
    for name in pairs.kind.item_ids:
        agree, differ = pairs.compare(name)
        is_same = is_same | agree
        if name not in pairs.kind.lenient_ids:
            is_different = is_different | differ
    return _Ruling(is_same & ~is_different, is_different, 3.0)


def _decide_by_rejected_field(pairs: Evidence) -> _Ruling:
    return _Ruling(pairs.no_pairs(), pairs.differ_in_any(pairs.kind.reject), 0.0)


def _decide_by_url(pairs: Evidence) -> _Ruling:
    """Join pairs with one address, and separate those with another page or another choice of content on one page.

    An address counts only if it names an item; another choice always separates. With the policy `id`, no pair is separated; with
    `content`, pages with equal title and snippet are not.
    """
    is_named = _is_named_by_url(pairs)
    is_same = pairs.compare("url")[0] & is_named
    if pairs.records.policy == "id":
        return _Ruling(is_same, pairs.no_pairs(), 2.0)
    other_page = pairs.compare("page")[1] & is_named
    if pairs.records.policy == "content" and other_page.any():
        doubtful = pairs.select(other_page)
        is_copy = doubtful.compare("title")[0] & doubtful.compare("snippet")[0]
        other_page[other_page] = ~is_copy
    return _Ruling(is_same, other_page | pairs.compare("choice")[1], 2.0)


def _decide_by_edition(pairs: Evidence) -> _Ruling:
    """Of pairs with two language or version folders of one page, join those with equal titles, and separate all others."""
    same_page, other_edition = pairs.compare("edition")
    if not other_edition.any():
        return _Ruling(other_edition, other_edition, 0.0)
    is_named = _is_named_by_url(pairs)
    same_title = pairs.compare("title")[0]
    return _Ruling(same_page & is_named & same_title, other_edition & is_named & ~same_title, 1.5)


def _is_named_by_url(pairs: Evidence) -> Mask:
    if pairs.kind.url == "item beyond the start page":
        beyond_start: Mask = pairs.records.frame["beyond_start"].fill_null(False).to_numpy()
        return beyond_start[pairs.left] & beyond_start[pairs.right]
    return np.full(len(pairs), pairs.kind.url == "item")


def _decide_by_doc_id(pairs: Evidence) -> _Ruling:
    """Join pairs with an equal doc_id whose title or snippet agrees, or that have no content to compare.

    A doc_id that stands for several documents joins nothing. Passages need an equal snippet.
    """
    reissued = pairs.records.frame["reissued"].to_numpy()
    is_same = pairs.compare("doc_id")[0] & ~reissued[pairs.left]
    if is_same.any():  # equal doc_ids need the support of the content, if both records have any
        doubtful = pairs.select(is_same)
        confirmed = doubtful.compare("snippet")[0]
        if "parent" not in doubtful.kind.required:  # all passages of a parent have its title
            confirmed = confirmed | doubtful.compare("title")[0]
        further_names = set(pairs.records.attributes).difference(ITEM_IDS)
        content = ["title", "snippet", "item", "rest", *further_names]
        masks = [mask for name in content for mask in doubtful.compare_values(name)]
        has_content: Mask = np.any(masks, axis=0)
        is_same[is_same] = confirmed | ~has_content
    return _Ruling(is_same, pairs.no_pairs(), 1.5)


def _decide_by_weights(pairs: Evidence) -> _Ruling:
    """Join pairs whose agreeing fields have weights of 1 or more in sum, and that agree in all required fields.

    Short snippets count half. A long equal snippet is enough alone, unless the titles differ. No pair is separated.
    """
    # In hundredths: sums of 0.1 and 0.2 are not exact, and the threshold is 1.0.
    total = np.zeros(len(pairs), dtype=np.int64)
    weights = {name: round(100 * weight) for name, weight in pairs.kind.weights.items()}
    snippet_weight = weights.pop("snippet", 0)
    for name, weight in weights.items():
        total += np.where(pairs.compare(name)[0], weight, 0)

    if snippet_weight:
        # Snippets are slow to compare: only where they can make the difference.
        near = total + snippet_weight >= 100
        agree = pairs.no_pairs()
        agree[near] = pairs.select(near).compare("snippet")[0]
        lengths = pairs.shorter_snippets()
        weight_of_length = np.where(lengths < MIN_SNIPPET, snippet_weight // 2, snippet_weight)
        total += np.where(agree, weight_of_length, 0)

        is_long = pairs.compare_values("snippet")[0] & (lengths >= _LONG_SNIPPET)
        decides_alone = is_long & ~pairs.compare("title")[1]
        total = np.where(decides_alone, np.maximum(total, 100), total)

    is_same = total >= 100
    for name in pairs.kind.required:
        is_same = is_same & pairs.compare(name)[0]
    return _Ruling(is_same, pairs.no_pairs(), np.minimum(total / 100, _MAX_CONFIDENCE))


_ALL_BUT_ID: tuple[Policy, ...] = ("standard", "strict", "content")
#: In order of application: the surest evidence first.
RULES = (
    Rule("trusted", _decide_by_trusted_id),
    Rule("type", _decide_by_type),
    Rule("mismatch", _decide_by_mismatch, ("strict",)),
    Rule("item id", _decide_by_item_id),
    Rule("field", _decide_by_rejected_field, _ALL_BUT_ID),
    Rule("url", _decide_by_url),
    Rule("edition", _decide_by_edition, ("standard", "content")),
    Rule("doc_id", _decide_by_doc_id, _ALL_BUT_ID),
    Rule("fields", _decide_by_weights, _ALL_BUT_ID),
)
UNDECIDED = len(RULES)
#: The name of each position. The last two stand for equal results that no rule joins, and for pairs of the user.
RULE_NAMES = (*(rule.name for rule in RULES), "undecided", "identical", "said")
_IDENTICAL = RULE_NAMES.index("identical")
SAID = RULE_NAMES.index("said")
#: Undecided pairs are not proven different, nor are those of two editions: another result of either may have the same title.
PROVEN_DIFFERENT = ~pl.col("same") & (pl.col("rule") < RULE_NAMES.index("edition"))


def verify(records: Records, pairs: pl.DataFrame) -> pl.DataFrame:
    """Decide for each pair of records (columns `left` and `right`) whether both are the same document.

    The new columns are `same`, `confidence` and `rule`. `rule` is the position in `RULES` of the deciding rule, or UNDECIDED.
    """
    left, right = pairs["left"].to_numpy(), pairs["right"].to_numpy()
    rule_of = np.full(len(left), UNDECIDED, dtype=np.uint8)
    is_same = np.zeros(len(left), dtype=np.bool_)
    confidence = np.zeros(len(left))
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        tell_progress("comparing results", start, len(left))
        block = slice(start, start + _PAIRS_AT_ONCE)
        for places, evidence in split_by_type(records, left[block], right[block]):
            # `places` are the positions of the pairs that no rule has decided yet
            places = places + start
            for number, rule in enumerate(RULES):
                if records.policy not in rule.policies or not len(places):
                    continue

                joined, separated, sureness = rule.decide(evidence)
                decided = joined | separated
                rule_of[places[decided]] = number
                is_same[places[joined]] = True
                confidence[places[joined]] = sureness if isinstance(sureness, float) else sureness[joined]
                places, evidence = places[~decided], evidence.select(~decided)
    return pairs.with_columns(rule=rule_of, same=is_same, confidence=confidence)


def verify_rows(records: Records, pairs: pl.DataFrame) -> pl.DataFrame:
    """For each pair of records (`left`, `right`), decide whether a row of one and a row of the other are the same document.

    Rows of one record are the same document unless the record's column `apart` is true. The user's pairs overrule the rules.
    """
    ends = pl.col("left", "right")
    ordered = pairs.with_columns(left=pl.min_horizontal(ends), right=pl.max_horizontal(ends))
    verified = verify(records, ordered).with_columns(pairs["left"], pairs["right"])
    apart = records.frame["apart"].gather(pairs["left"])
    is_one_record = pl.col("left") == pl.col("right")
    is_identical = is_one_record & ~pl.col("same") & ~apart

    # Equal rows are as sure as fields whose weights reach the threshold.
    verified = verified.with_columns(
        rule=pl.when(is_identical).then(pl.lit(_IDENTICAL, pl.UInt8)).otherwise("rule"),
        same=pl.col("same") | is_identical,
        confidence=pl.when(is_identical).then(1.0).otherwise("confidence"),
    )

    if records.user_pairs is None:
        return verified
    return records.user_pairs.overrule(verified, SAID)
