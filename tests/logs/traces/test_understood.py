"""No trace ends without a search because something in it was not understood."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice
from goodgain.logs.traces import Summary, convert_traces, read_traces
from goodgain.logs.traces.tool_outputs.overlooked_results import looks_like_search

from .conftest import STEPS, by_iteration
from .expected import ODD_ITEMS
from .logs import WRITERS, Call, Story, Turn, docs

Json = Any

_PAGE = {"url": "https://a.example", "title": "A"}


# The rule, in every format


@pytest.mark.parametrize("form", WRITERS)
def test_with_a_search_what_is_not_understood_is_a_notice_with_count_and_first_place(tmp_path: Path, form: str) -> None:
    writer, file_name = WRITERS[form]
    text = writer(Story([Turn([[Call(docs("d1"))]])]))
    path = tmp_path / file_name

    if form == "openinference":
        odd = json.loads(text.splitlines()[0])
        odd["attributes"] = {"openinference.span.kind": "odd", "session.id": "story"}
        odd["context"] = {**odd["context"], "span_id": "0x00000000000000ff"}
        path.write_text(
            f"{text}{json.dumps(odd)}\n{json.dumps({**odd, 'context': {**odd['context'], 'span_id': '0x00000000000000fe'}})}\n"
        )
    elif (keys := ODD_ITEMS[form]["place"]) is None:
        first = ODD_ITEMS[form]["item"]
        second = first | ({"id": "another"} if "id" in first else {})
        path.write_text(f"{text}{json.dumps(first)}\n{json.dumps(second)}\n")
    else:
        log = json.loads(text)
        holder = log
        for key in keys:
            holder = holder[key]
        first = ODD_ITEMS[form]["item"]  # a span with the same id would be the same span, exported twice
        holder += [first, first | {key: f"{first[key][:-1]}f" for key in ("id", "span_id") if key in first}]
        path.write_text(json.dumps(log))

    seen: list[Summary] = []
    with pytest.warns(
        GoodgainNotice, match=rf"2 items in the traces are not understood.* 2; the first at \S*{file_name}, "
    ):
        results = read_traces(path, report=seen.append, **STEPS)

    assert by_iteration(results) == [["d1"]]
    assert sum(seen[0].unknown.values()) == 2


@pytest.mark.parametrize(
    ("field", "looks"), json.loads(Path(__file__).with_suffix(".json").read_text())["fields"], ids=str
)
def test_a_field_that_no_format_reads_is_reported_if_it_looks_like_a_search(field: Json, looks: bool) -> None:
    ((key, value),) = field.items()
    assert looks_like_search(key, value) is looks


# The cases known from people's logs


def test_a_large_answer_of_anthropic_is_known_by_its_hosted_blocks(save: Callable[..., Path]) -> None:
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "a"}}
    page = {"type": "web_search_result", **_PAGE, "encrypted_content": "x" * 300_000}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [page]}
    answer = {
        "id": "msg_1",
        "content": [use, result],
        "role": "assistant",
        "type": "message",
        "stop_reason": "end_turn",
    }
    assert by_iteration(read_traces(save(answer))) == [["https://a.example"]]


def test_a_source_without_an_address_is_a_result(save: Callable[..., Path]) -> None:
    sources = [{"type": "api", "name": "oai-weather"}, {"type": "url", "url": "https://a.example"}]
    call = {
        "type": "web_search_call",
        "id": "ws",
        "status": "completed",
        "action": {"type": "search", "query": "q", "sources": sources},
    }
    path = save({"object": "response", "output": [call]})
    assert read_traces(path).select("rank", "url", "title", "type").rows() == [
        (1, None, "oai-weather", "api"), (2, "https://a.example", None, None),
    ]  # fmt: skip

    convert_traces(path, path.with_name("a.run"))
    assert len(path.with_name("a.run").read_text().splitlines()) == 2
