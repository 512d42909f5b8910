"""Several qrels merged into graded labels, one label a file: evidence 1, answers 2."""

from __future__ import annotations

import pytest

import goodgain as gg
from tests.support.tables import no_notices

EVIDENCE = {"q": {"a": 1, "b": 1, "c": 0, "d": -1}}
GOLDS = {"q": {"b": 1, "e": 1, "c": 0}}


def labels(**options: object) -> dict[str, float]:
    found = gg.aggregate({"evidence": EVIDENCE, "golds": GOLDS}, **options)  # type: ignore[arg-type]  # by name
    return dict(zip(found["doc_id"], found["relevance"], strict=True))


def test_positive_labels_become_that_of_their_file_and_the_largest_counts() -> None:
    assert labels(file_labels=[1, 2]) == {"a": 1, "b": 2, "c": 0, "d": -1, "e": 2}
    assert labels(file_labels=[1, 2], how="max") == labels(file_labels=[1, 2])
    assert labels(file_labels=[3, 0.5])["b"] == 3


@no_notices()
def test_rel_1_asks_for_evidence_and_rel_2_for_golds() -> None:
    merged = gg.aggregate({"evidence": EVIDENCE, "golds": GOLDS}, file_labels=[1, 2])
    mean = gg.evaluate(merged, {"q": {"a": 2.0, "b": 1.0}}, "EvidenceRecall EvidenceRecall(rel=2)").mean()
    assert mean == {"EvidenceRecall": 2 / 3, "EvidenceRecall(rel=2)": 1 / 2}


@pytest.mark.parametrize(
    ("given", "message"), [([1], "has 1 labels for 2 sources"), ([1, 0], "a label is a number above 0")]
)
def test_wrong_file_labels_are_errors(given: list[float], message: str) -> None:
    with pytest.raises(gg.InputError, match=message):
        labels(file_labels=given)
