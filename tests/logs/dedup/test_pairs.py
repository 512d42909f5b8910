"""The hand-written pairs: each is found the same, or is not, and the explanation names the rule."""

import itertools

import pytest

from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.writing import PAIRS, Pair, frame
from tests.support.counts import some_of


@pytest.mark.parametrize(
    ("pair", "turned"),
    [
        pytest.param(
            pair, turned, id=f"{'same' if pair.same else 'different'}: {pair.reason}{', turned round' * turned}"
        )
        for pair, turned in some_of(itertools.product(PAIRS, [False, True]), every=7)  # odd: both ways are met
    ],
)
def test_a_hand_written_pair_is_decided_as_its_reason_says(pair: Pair, turned: bool) -> None:
    results = [pair.second, pair.first] if turned else [pair.first, pair.second]
    deduplication = deduplicate(frame(results))
    one, two = deduplication.frame["document"].to_list()
    assert (one == two) is pair.same, str(deduplication.explain(one, two))

    told = deduplication.explain(one, None if pair.same else two).pairs
    assert told.height == 1
    assert told["same"].to_list() == [pair.same]
    assert told["rule"][0] in {
        "type",
        "item id",
        "field",
        "url",
        "edition",
        "doc_id",
        "fields",
        "undecided",
        "identical",
    }


def test_the_hand_written_set_holds_all_types_and_at_least_150_pairs() -> None:
    types = {side.get("type") for pair in PAIRS for side in (pair.first, pair.second)}
    assert len(PAIRS) >= 150
    assert types >= {"web_page", "file", "email", "event", "message", "person", "passage", "transcript", None}
