"""Tool outputs of every known shape: to results, to nothing found, to an error, or to unparsed; never to a guess."""

from __future__ import annotations

from typing import Any

import pytest

from goodgain.errors import InputError
from goodgain.logs.traces.model import Result
from goodgain.logs.traces.tool_outputs.readers import read_output
from goodgain.logs.traces.tools import extract_queries

_ONE = {"docid": "d1", "url": "https://a.example/1", "title": "T", "snippet": "Text."}


def test_lists_of_results_that_nest_deep_are_read() -> None:
    nested = '{"a": ' * 400 + "1" + "}" * 400
    one, two = (f'[{{"url": "https://a.example/{name}", "title": "T", "more": {nested}}}]' for name in "ab")
    found = read_output(f'{{"organic": {one}, "news": {two}}}', "here").results
    assert [result.url for result in found] == ["https://a.example/a", "https://a.example/b"]


@pytest.mark.slow
def test_more_objects_in_a_row_than_a_tool_returns_are_not_read_in_part() -> None:
    assert len(read_output('{"id": 1}' * 100_000, "here").results) == 100_000
    assert read_output('{"id": 1}' * 100_002, "here").status == "unparsed"


@pytest.mark.parametrize("value", [["d1"], {"a": 1}, 1.5, True])
def test_an_id_that_is_neither_text_nor_a_whole_number_is_an_error_with_its_place(value: Any) -> None:
    with pytest.raises(InputError, match=r"here.*expected an id"):
        read_output([{"docid": value, "text": "t"}], "here")


def test_parse_comes_first_and_none_from_it_means_not_mine() -> None:
    assert read_output([_ONE], "here", parse=lambda output: ["x"]).results == (Result(1, "x"),)
    assert read_output([_ONE], "here", parse=lambda output: None).results[0].doc_id == "d1"
    assert read_output("nothing", "here", parse=lambda output: []).status == "empty"
    assert read_output("x", "here", parse=lambda output: [Result(9, "a"), {"url": "u"}]).results[0] == Result(1, "a")
    with pytest.raises(InputError, match=r"here: parse= failed with KeyError"):
        read_output({}, "here", parse=lambda output: output["hits"])
    with pytest.raises(InputError, match=r"here: parse= gave a result without"):
        read_output({}, "here", parse=lambda output: [{}])


def test_queries_are_found_in_arguments_of_any_kind() -> None:
    assert extract_queries('{"query": "a"}') == ("a",)
    assert extract_queries({"queries": ["a", "b"], "n": 1}) == ("a", "b")
    assert extract_queries({"text": "a", "n": 1}) == ("a",)
    assert extract_queries("plain words") == ("plain words",)
    assert extract_queries('{"query": ') == ('{"query": ',)
    assert extract_queries(None) == extract_queries(5) == extract_queries({}) == ()
