"""A field that no reader reads is passed over only where it looks neither like a call nor like results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import read_traces

from .conftest import STEPS, by_iteration
from .expected import EXPECTED, ODD_ITEMS
from .logs import WRITERS, Call, Story, Turn, docs
from .test_fixtures import FIXTURES, FOLDERS

#: Formats of messages, steps and entries. Spans say by their kind what they are, and goodgain's own format knows its fields.
_FORMS = [
    *("openai_chat", "openai_responses", "openai_agents", "anthropic", "langchain", "tagged_text", "atif"),
    *("inspect_ai", "browsecomp_plus", "gemini", "strands", "autogen", "pydantic_ai", "vercel_ai", "smolagents"),
    "tau_bench",
]


_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
#: What a newer version may write beside what is read: calls of tools, results, and both deeper down.
_CALLS_AND_RESULTS: dict[str, Any] = _DATA["calls and results"]
#: What logs have beside it that says nothing of searches.
_NOTES: dict[str, Any] = _DATA["notes"]


def _write(form: str, path: Path, story: Story, more: dict[str, Any]) -> Path:
    """Write a story whose last message, step or entry has more fields."""
    writer, file_name = WRITERS[form]
    lines = writer(story).strip().split("\n")
    keys = ODD_ITEMS[form]["place"]
    log = json.loads(lines[-1])
    item = log
    for key in keys or ():
        item = item[key]
    if keys is not None:
        item = item[-1]
    item.update(more)
    (path / file_name).write_text("\n".join([*lines[:-1], json.dumps(log)]))
    return path / file_name


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("what", _CALLS_AND_RESULTS)
def test_a_field_with_what_looks_like_a_call_or_results_is_not_understood(form: str, what: str, tmp_path: Path) -> None:
    more = _CALLS_AND_RESULTS[what]
    (field,) = more
    path = _write(form, tmp_path, Story([Turn([[Call("42", tool="calculator")]])]), more)
    unread = rf"field '{field}' of .* is not understood.*no search was found"
    with pytest.raises(InputError, match=rf"/{field}\S*: ({unread}|1 object looks like results.*{field})"):
        read_traces(path, format=form, **STEPS)
    searched = _write(form, tmp_path, Story([Turn([[Call(docs("d1"))]])]), more)
    with pytest.warns(GoodgainNotice, match=rf"1 item in the traces is not understood.*field '{field}'"):
        assert by_iteration(read_traces(searched, format=form, **STEPS)) == [["d1"]]


@pytest.mark.parametrize("form", _FORMS)
def test_a_field_that_counts_describes_or_cites_is_passed_over(form: str, tmp_path: Path) -> None:
    path = _write(form, tmp_path, Story([Turn([[Call(docs("d1"))]])]), _NOTES)
    assert by_iteration(read_traces(path, format=form, **STEPS)) == [["d1"]]


@pytest.mark.slow
def test_a_hostile_field_is_looked_at_only_so_far(tmp_path: Path) -> None:
    nested: Any = "x"
    for _ in range(900):
        nested = [{"a": nested}, {"b": nested}] if len(str(nested)) < 5000 else [nested]
    path = _write(
        "openai_chat", tmp_path, Story([Turn([[Call(docs("d1"))]])]), {"deep": nested, "wide": [[]] * 200_000}
    )
    assert by_iteration(read_traces(path, format="openai_chat")) == [["d1"]]


@pytest.mark.parametrize("content", [[[{"type": "tool_use"}]], [{"type": []}], [{"type": {}}]])
def test_parts_that_are_lists_or_have_no_type_are_not_passed_over(content: Any, tmp_path: Path) -> None:
    log = [{"role": "user", "content": content}, {"type": "function_call_output", "call_id": "c", "output": "x"}]
    (tmp_path / "log.json").write_text(json.dumps(log))
    with pytest.raises(InputError, match=r"log\.json, at /0/content/0"):
        read_traces(tmp_path / "log.json", format="openai_responses")


def test_a_request_nested_without_end_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('[{"response": 1, "request": ' + '{"body": ' * 900 + "1" + "}" * 900 + "}]")
    for form in ("openai_chat", "anthropic", "openai_responses", "gemini"):
        with pytest.raises(InputError, match=r"log\.json"):
            read_traces(tmp_path / "log.json", format=form)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("form", FOLDERS)
def test_no_fixture_is_read_to_no_search_whatever_format_is_named(form: str) -> None:
    for name, queries in EXPECTED.items():
        if not any(queries.values()) or name.startswith("tagged_text/"):
            continue  # no query of it searched; tags are prose to the formats of messages
        try:
            results = read_traces(FIXTURES / name, format=form)
        except InputError:
            continue
        assert results["iteration"].max(), (name, form)


def test_a_notice_names_a_field_with_the_urls_of_results_that_have_no_known_url_or_id(tmp_path: Path) -> None:
    def read(**more: str) -> None:
        hits = [
            {"address": f"https://a.example/{n}", "icon": "https://a.example/i.png", "blurb": "x", **more} for n in "ab"
        ]
        searches = [{"query": "q", "output": [{"headline": f"Page {hit['address']}", **hit} for hit in hits]}]
        line = {"goodgain_trace": 1, "query_id": "q", "steps": [{"searches": searches}] * 2}
        (tmp_path / "log.jsonl").write_text(json.dumps(line))
        read_traces(tmp_path / "log.jsonl")

    said = "the results of 2 searches have no URL or id that goodgain knows, .* but 'address' holds URLs: name it url in the log"
    with pytest.warns(GoodgainNotice, match=said):
        read()
    read(doc_id="d1")
    read(url="https://a.example/z")
