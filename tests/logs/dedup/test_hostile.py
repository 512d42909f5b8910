"""What nobody should send: it is handled, or refused in one sentence."""

import polars as pl
import pytest

from goodgain.errors import InputError
from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.writing import frame, result


def test_hostile_urls_are_results_without_address() -> None:
    urls = [
        "javascript:alert(1)",
        "data:text/html,x",
        "http://[::1",
        "http://%",
        "http://a b/",
        "::::",
        "http://xn--a/",
        "#",
    ]
    found = deduplicate(frame([result(url=url, title=f"Title number {n} of many") for n, url in enumerate(urls)]))
    assert found.frame["document"].n_unique() == len(urls)


@pytest.mark.slow
def test_a_megabyte_of_snippet_is_compared_like_any_other() -> None:
    words = [f"word{n}" for n in range(150_000)]
    one, two = " ".join(words), " ".join([*words[:-100], *reversed(words[-100:])])
    assert len(one) > 1_000_000
    found = deduplicate(frame([result(title="A very long text", snippet=text) for text in (one, two, one.upper())]))
    assert found.frame["document"].n_unique() == 1


def test_a_megabyte_of_id_is_a_name() -> None:
    found = deduplicate(frame([result(doc_id="x" * 1_000_000), result(doc_id="x" * 1_000_000)]))
    assert found.frame["duplicate_of"].to_list() == [None, 0]


@pytest.mark.parametrize("odd", ["\x00", "\x1f", "\u202e", "\U0001f30a", "'; DROP", "a\x1fb", "\x1e", '"', "\\"])
def test_odd_characters_tell_apart_and_do_not_break(odd: str) -> None:
    rows = [result(doc_id=f"a{odd}", ids={"file_id": f"i{odd}"}, type="file", title=odd), result(doc_id="a", title="b")]
    found = deduplicate(frame([*rows, *rows]))
    assert found.frame["duplicate_of"].to_list() == [None, None, 0, 1]


def test_a_name_that_looks_like_ours_is_no_other_document() -> None:
    rows = [result(type="event", doc_id="d", ids={"occurrence_id": "x"}), result(type="email", ids={"message_id": "x"})]
    found = deduplicate(frame([*rows, result(type="message", ids={"message_id": "x#2"})]))
    assert found.frame["document"].n_unique() == 3


def test_empty_frames_and_rows_without_result() -> None:
    assert deduplicate(frame([result(url="https://example.org/")]).clear()).frame.height == 0
    rows = pl.DataFrame(
        {"query_id": ["q"] * 3, "iteration": [1, 2, 0], "rank": [1, 0, 0], "url": ["https://a.example", None, None]}
    )
    assert deduplicate(rows).frame["document"].to_list() == ["https://a.example", None, None]


def test_a_result_with_nothing_at_all_is_a_document_of_its_own() -> None:
    found = deduplicate(frame([result(), result(title=" ", snippet="", url="\n"), result(doc_id="-")]))
    documents = found.frame["document"].to_list()
    assert None not in documents
    assert len(set(documents)) == 3


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


@pytest.mark.parametrize(
    "options", [{"policy": "loose"}, {"level": "site"}, {"across": "system"}, {"across": ["turn"]}, {"pairs_a_key": 0}]
)
def test_an_option_that_does_not_exist_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        deduplicate(frame([result(doc_id="a")]), **options)  # type: ignore[arg-type] # that is what is tested
