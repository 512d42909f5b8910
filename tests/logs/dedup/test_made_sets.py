"""On sets with known groups: precision and recall, the same for every order of the rows, and every pair explained."""

import pytest

from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.maker import MAKERS, make


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_found_agrees_with_how_the_set_was_made(kind: str, seed: int) -> None:
    deduplication = deduplicate(make(kind, 200, seed))
    agreement = deduplication.score("gold")
    assert agreement.precision >= 0.99, agreement
    assert agreement.recall >= 0.95, agreement
