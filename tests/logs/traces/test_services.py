"""What search services, vector stores and agents' own tools return: all their results, and a word on what is left over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, read_traces
from goodgain.logs.traces.tool_outputs.readers import read_output
from tests.support.counts import how_many
from tests.support.seconds import find_faster_growth, measure_seconds

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
#: For each service an answer; each has the two results A and B, here in the words of that service. Then known empty answers.
SERVICES, EMPTY = _DATA["services"], _DATA["empty"]
#: Layouts that nobody reads, and outputs that are cut off: never an empty result, and never a part of the results.
UNKNOWN = _DATA["unknown"]
#: Outputs with more that looks like results than the lists that are read: results read, and how many are left over.
LEFT_OVER = _DATA["left over"]

_A, _B = "https://a.example/1", "https://b.example/2"
#: What the two results are called, in the order looked for.
_NAMES = ({"a", _A, "A"}, {"b", _B, "B"})


@pytest.mark.parametrize("name", SERVICES)
def test_all_results_of_a_service_are_read_and_nothing_else(name: str) -> None:
    for given in (SERVICES[name], json.dumps(SERVICES[name]), str(SERVICES[name])):
        outcome = read_output(given, "here")
        assert (outcome.status, outcome.unread) == ("ok", 0)
        found = [{result.doc_id, result.url, result.title} - {None} for result in outcome.results]
        assert len(found) == 2 and all(found[n] & _NAMES[n] for n in (0, 1)), found
        assert not any(name.startswith("https://api.") for names in found for name in names if name)


def test_an_id_that_repeats_the_address_is_not_an_id_of_the_document() -> None:
    for name in ("Exa", "Bing"):
        assert [(r.doc_id, r.url) for r in read_output(SERVICES[name], "here").results] == [(None, _A), (None, _B)]
    corpus = [{"docid": _A, "url": _A, "title": "A", "text": "x"}]
    assert read_output(corpus, "here").results[0].doc_id == _A, "the key docid says that it is one"


@pytest.mark.parametrize("name", EMPTY)
def test_a_known_empty_answer_is_empty(name: str) -> None:
    assert read_output(EMPTY[name], "here") == read_output(json.dumps(EMPTY[name]), "here")
    assert read_output(EMPTY[name], "here").status == "empty"


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_output_in_an_unknown_layout_is_unparsed(name: str) -> None:
    assert read_output(UNKNOWN[name], "here").status == "unparsed"


def test_prose_where_a_list_should_stand_is_unrecorded() -> None:
    assert read_output('Web search results for "q":\n\nDunes move [1][2].', "here").status == "unrecorded"


@pytest.mark.parametrize("name", LEFT_OVER)
def test_what_looks_like_a_result_and_was_not_read_is_counted(name: str) -> None:
    output, results, unread = LEFT_OVER[name]
    outcome = read_output(output, "here")
    assert (len(outcome.results), outcome.unread) == (results, unread)


def test_a_notice_says_how_many_were_left_over_and_where(tmp_path: Path) -> None:
    searches = [
        {"query": "q", "output": LEFT_OVER[name][0]} for name in ("data and news", "facets", "a number left out")
    ]
    log = {"goodgain_trace": 1, "query_id": "q", "steps": [{"searches": [search]} for search in searches]}
    (tmp_path / "log.jsonl").write_text(json.dumps(log))
    seen: list[Summary] = []
    with pytest.warns(
        GoodgainNotice, match=r"2 searches have 2 objects .* the first at .*log\.jsonl, line 1, .*/steps/0/searches/0"
    ):
        read_traces(tmp_path / "log.jsonl", report=seen.append)
    assert (seen[0].unread, seen[0].searches_with_unread) == (2, 2)


def test_an_unknown_layout_stops_the_reading_and_names_the_place(tmp_path: Path) -> None:
    log = {
        "goodgain_trace": 1,
        "query_id": "q",
        "steps": [{"searches": [{"query": "q", "output": UNKNOWN["a table"]}]}],
    }
    (tmp_path / "log.jsonl").write_text(json.dumps(log))
    with pytest.raises(InputError, match=r"log\.jsonl, line 1, .*no results can be read .*parse="):
        read_traces(tmp_path / "log.jsonl")


# Time grows with the length of an output, not faster

_HOSTILE: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[" + "](a" * n,
    "open brackets": lambda n: "[" * n,
    "numbers": lambda n: "1. " * n,
    "numbered lines": lambda n: "1. a\n" * n,
    "bullets": lambda n: "- " * n,
    "labels": lambda n: "Title: a\n" * n,
    "rules": lambda n: "Title: a\nURL: b\n---\n" * n,
    "documents": lambda n: "<document>" * n,
    "parts": lambda n: "<document>" + "<title>" * n,
    "closed parts": lambda n: "<document>" + "<source>a</source>" * n + "</document>",
    "docs": lambda n: "Doc 1(" * n,
    "snippets": lambda n: "snippet: , title: " * n,
    "links of Claude": lambda n: "Links: [" * n,
    "cites": lambda n: "(https://a\n\ue200cite\ue202turn1search1\ue201" * n,
    "sources": lambda n: 'Web search results for "' + "\nSources:\n[1] (http" * n,
    "fences": lambda n: "```\n" * n,
    "values in prose": lambda n: "x\n" + "[{\n" * n,
    "values behind colons": lambda n: "x: [1] " * n,
    "quotes": lambda n: "['" + "\\'" * n,
    "calls": lambda n: "A(" * n,
    "minus": lambda n: "[" + "-" * n + "1]",
    "dots": lambda n: "A(b=" + "a." * n,
    "digits": lambda n: "[" + "1" * n + "]",
    "commas": lambda n: "[" + "1," * n + "]",
    "addresses": lambda n: f"1. [A]({_A})\n" + "https://" * n,
    "jina": lambda n: "[1] Title: a\n" * n,
    "pictures": lambda n: "Answer: x\nDetailed Results:\nImages:" + "\n" * n + "x",
    "spaces before a word": lambda n: f"1. [A]({_A})\n" + " " * n + "x",
    "spaces before a rule": lambda n: f"Title: A\nURL: {_A}\n" + " " * n + "x\n---\nTitle: B\nURL: b",
    "spaces in JSON": lambda n: "x\n" + ("[" + " " * 50 + "x\n") * (n // 50),
    "spaces":  lambda n: "1." + " " * n,
    "headings": lambda n: "A search for '" + "' found " * n,
    "pages": lambda n: "Page: a\nSummary: b\n\n" * n,
    "more results": lambda n: json.dumps({f"{k}results": [{"a": 1}] for k in range(n)}),
}  # fmt: skip


@pytest.mark.parametrize("name", _HOSTILE)
def test_the_time_for_a_hostile_output_grows_as_its_length(name: str) -> None:
    def measure(size: int) -> float:
        text = _HOSTILE[name](size)
        return measure_seconds(lambda: read_output(text, "here"))

    assert not find_faster_growth(measure, how_many(1_000, full=4_000), least=0.005)
