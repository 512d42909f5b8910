"""What nobody should send: it is handled, or refused in one sentence."""

import polars as pl
import pytest

from goodgain.errors import InputError
from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.writing import frame, result


@pytest.mark.slow
def test_a_megabyte_of_snippet_is_compared_like_any_other() -> None:
    words = [f"word{n}" for n in range(150_000)]
    one, two = " ".join(words), " ".join([*words[:-100], *reversed(words[-100:])])
    assert len(one) > 1_000_000
    deduplication = deduplicate(
        frame([result(title="A very long text", snippet=text) for text in (one, two, one.upper())])
    )
    assert deduplication.frame["document"].n_unique() == 1


def test_a_megabyte_of_id_is_a_name() -> None:
    deduplication = deduplicate(frame([result(doc_id="x" * 1_000_000), result(doc_id="x" * 1_000_000)]))
    assert deduplication.frame["duplicate_of"].to_list() == [None, 0]


def test_empty_frames_and_rows_without_result() -> None:
    assert deduplicate(frame([result(url="https://example.org/")]).clear()).frame.height == 0
    rows = pl.DataFrame(
        {"query_id": ["q"] * 3, "iteration": [1, 2, 0], "rank": [1, 0, 0], "url": ["https://a.example", None, None]}
    )
    assert deduplicate(rows).frame["document"].to_list() == ["https://a.example", None, None]


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ({"doc_id": ["a"]}, "query_id"),
        ({"query_id": ["q"], "rank": [1]}, "doc_id, url, title or snippet"),
        ({"query_id": [None, "q"], "doc_id": ["a", "b"]}, "Row 0"),
        ({"query_id": ["q"], "doc_id": ["a"], "ids": ["file_id=1"]}, "ids"),
        ({"query_id": ["q"], "doc_id": ["a"], "fields": [3]}, "fields"),
    ],
)
def test_a_frame_that_is_no_results_frame_is_refused(rows: dict[str, list[object]], what: str) -> None:
    with pytest.raises(InputError, match=what):
        deduplicate(pl.DataFrame(rows))
