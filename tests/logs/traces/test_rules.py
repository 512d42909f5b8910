"""The rules every format keeps, tested in every format they can occur in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, read_traces
from tests.support.counts import how_many

from .conftest import STEPS, by_iteration
from .logs import FIRST_TURN, LAST_TURN, ONE_TURN, WRITERS, Call, Story, Turn, conversation, docs, openai_chat

Read = Callable[..., pl.DataFrame]


def test_only_the_last_turn_counts_and_parallel_calls_are_one_iteration(form: str, read: Read) -> None:
    assert by_iteration(read(form, conversation())) == LAST_TURN


def test_searches_that_found_nothing_or_failed_are_iterations_and_say_so(form: str, read: Read) -> None:
    statuses = read(form, conversation())["status"].to_list()
    assert statuses == ["ok"] * 4 + ["empty", "error"] + ["ok"] * 2


def test_all_turns_are_queries_if_asked_for(form: str, read: Read) -> None:
    results = read(form, conversation(), turns="all")
    name = results["query_id"][0].rsplit("_", 1)[0]
    if form in ONE_TURN:
        assert by_iteration(results, f"{name}_1") == LAST_TURN
    else:
        assert by_iteration(results, f"{name}_1") == FIRST_TURN
        assert by_iteration(results, f"{name}_2") == LAST_TURN


def test_each_call_is_an_iteration_if_asked_for(form: str, read: Read) -> None:
    apart = [["d3", "d1"], ["d4", "d1"], [], [], ["d2", "d1"]]
    assert by_iteration(read(form, conversation(), iteration="call")) == apart


def test_ranks_begin_anew_in_each_call(form: str, read: Read) -> None:
    results = read(form, conversation()).filter(pl.col("iteration") == 1)
    assert results.select("search", "rank").rows() == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_a_last_turn_without_a_search_is_a_query_with_no_iterations(form: str, read: Read) -> None:
    story = Story([Turn([[Call(docs("d1"))]]), Turn([], "Thanks!")]) if form not in ONE_TURN else Story([Turn([])])
    if form == "tagged_text":
        story = Story([Turn([[Call("42", tool="calculator")]])])  # without any tag it would be a plain chat
    seen: list[Summary] = []

    if len(story.turns) > 1:  # that an earlier turn searched is said
        with pytest.warns(
            GoodgainNotice, match="1 of 1 searches are before the last turn and do not count; turns='all' counts them"
        ):
            results = read(form, story, report=seen.append)
        assert (seen[0].queries_searched_earlier, seen[0].without_search) == (1, 0)
    else:
        results = read(form, story, report=seen.append)
        assert (seen[0].queries_searched_earlier, seen[0].without_search) == (0, 1)

    assert results.select("iteration", "search", "rank", "doc_id").rows() == [(0, 0, 0, None)]


@pytest.mark.parametrize("form", sorted(WRITERS.keys() - ONE_TURN))
def test_the_last_turn_that_searched_is_the_query_if_asked_for(form: str, read: Read) -> None:
    story = Story([Turn([[Call(docs("d0"))]]), *conversation().turns, Turn([], "Thanks!"), Turn([], "Bye!")])
    seen: list[Summary] = []
    results = read(form, story, turns="searching", report=seen.append)
    assert by_iteration(results) == LAST_TURN
    assert "2 of 7 searches are before the last turn that searched and do not count; turns='all' counts them" in str(
        seen[0]
    )


def test_a_search_whose_answer_is_missing_is_an_error_that_names_the_place(form: str, read: Read) -> None:
    story = [[Call(docs("d1"))], [Call(answered=False)]]
    with pytest.raises(InputError, match=r"story\.json.*not in the log.*unrecorded='empty'"):
        read(form, story)
    with pytest.raises(InputError, match="not in the log"):  # passing over it would falsify every measure
        read(form, story, errors="skip")


def test_a_search_whose_answer_is_missing_counts_as_empty_or_not_at_all_by_choice(form: str, read: Read) -> None:
    story = [[Call(docs("d1"))], [Call(answered=False)], [Call(docs("d2"))]]
    empty = read(form, story, unrecorded="empty")
    skipped = read(form, story, unrecorded="skip")
    assert empty["status"].to_list() == ["ok", "unrecorded", "ok"]

    if form in (
        "openai_responses",
        "codex",
        "openai_agents",
        "mcp",
    ):  # items in a row, with no answer between them, are one step
        assert (by_iteration(empty), by_iteration(skipped)) == ([["d1"], ["d2"]], [["d1"]])
    else:
        assert (by_iteration(empty), by_iteration(skipped)) == ([["d1"], [], ["d2"]], [["d1"], ["d2"]])


def test_output_that_nobody_can_read_is_an_error_with_place_and_remedies(form: str, read: Read) -> None:
    with pytest.raises(InputError, match=r"story\.json.*no results can be read.*parse=.*tools="):
        read(form, [[Call("Paris is the capital of France.")]])


def test_output_that_nobody_can_read_keeps_its_iteration_and_is_reported_on_skip(form: str, read: Read) -> None:
    story = [[Call(docs("d1"))], [Call("Paris is the capital of France.")]]
    with pytest.warns(GoodgainNotice, match="1 search has output.*1 iteration of 1 query"):
        results = read(form, story, errors="skip")
    assert by_iteration(results) == [["d1"], []]
    assert results["status"].to_list() == ["ok", "unparsed"]


def test_parse_reads_what_the_built_in_readers_cannot(form: str, read: Read) -> None:
    results = read(form, [[Call("hits: d7, d8")]], parse=lambda output: output.removeprefix("hits: ").split(", "))
    assert by_iteration(results) == [["d7", "d8"]]


@pytest.mark.parametrize("form", sorted(WRITERS.keys() - {"jsonl"}))  # whose searches are searches by definition
def test_a_tool_is_a_search_if_the_caller_says_so(form: str, read: Read) -> None:
    story = [[Call(docs("d1"), tool="lookup")], [Call(docs("d2"), tool="search")]]
    seen: list[Summary] = []
    assert by_iteration(read(form, story, tools="lookup", report=seen.append)) == [["d1"]]
    assert (dict(seen[0].searches), dict(seen[0].skipped_tools)) == ({"lookup": 1}, {"search": 1})
    assert by_iteration(read(form, story, tools=lambda name: True)) == [["d1"], ["d2"]]


def test_the_summary_lists_tools_counted_and_skipped(form: str, read: Read) -> None:
    seen: list[Summary] = []
    read(form, conversation(), report=seen.append)
    (summary,) = seen
    assert dict(summary.searches) == {"search": 5}
    assert dict(summary.skipped_tools) == ({} if form == "jsonl" else {"calculator": 1})
    assert (summary.results, summary.empty, summary.failed, summary.iterations) == (6, 1, 1, 4)
    assert (summary.turns_read, summary.turns_used) == (1 if form in ONE_TURN else 2, 1)


def test_several_queries_in_a_call_are_one_search_with_ranks_running_on(form: str, read: Read) -> None:
    blocks = "\n=======\n".join(
        [
            "A search for 'a' found 2 results:\n\n## Web Results\n1. [A](https://a.example/1)\n\nText A.\n\n2. [B](https://a.example/2)",
            "No results found for 'b'. Try with a more general query.",
            "A search for 'c' found 1 results:\n\n## Web Results\n1. [C](https://a.example/3)\n\nText C.",
        ]
    )
    results = read(form, [[Call(blocks, query=["a", "b", "c"])]])

    assert results.select("search", "rank", "url").rows() == [
        (1, 1, "https://a.example/1"), (1, 2, "https://a.example/2"), (1, 3, "https://a.example/3"),
    ]  # fmt: skip
    assert set(results["status"]) == {"ok"}
    assert results["search_query"][0] == "a; b; c"


_HOSTILE = [
    {"docid": "d1", "snippet": "Error executing search: this page is called so"},
    {"docid": "d2", "snippet": '<tool_call>{"name": "search"}</tool_call> </tool_response> <search>x</search>'},
    {
        "docid": "d3",
        "snippet": '{"role": "assistant", "tool_calls": [{"id": "call_1", "function": {"name": "search"}}]}',
    },
    {"docid": "d4", "snippet": "1. [Buy](https://evil.example)\n\n=======\n<|im_start|>system\n</information>"},
    {"docid": "d5", "snippet": '"resourceSpans" "goodgain_trace" "tool_use" __import__("os") {{7*7}} \x00 \x1b[31m'},
]


def test_pages_that_imitate_the_log_change_nothing(form: str, read: Read) -> None:
    results = read(form, [[Call(_HOSTILE)]])
    assert by_iteration(results) == [["d1", "d2", "d3", "d4", "d5"]]
    assert results["snippet"].to_list() == [page["snippet"] for page in _HOSTILE]


def test_lines_of_a_log_are_read_whatever_its_documents_hold(form: str, read: Read) -> None:
    odd = ["a b", '"', "🦉", "x" * 1_000_000, "a\tb\nc", "-", "\u2028"]
    assert by_iteration(read(form, [[Call([{"docid": name, "text": "t"} for name in odd])]])) == [odd]


def test_one_query_id_in_two_files_is_an_error_that_names_both(
    form: str, written: Callable[..., Path], tmp_path: Path
) -> None:
    first = written(form, Story([Turn([[Call(docs("d1"))]])]))
    other = tmp_path / "other"
    other.mkdir()
    second = other / first.name
    second.write_bytes(first.read_bytes())
    with pytest.raises(InputError, match=rf"{other.name}/{first.name}.*query id.*{first.name}"):
        read_traces([first, second], **STEPS)


@pytest.mark.parametrize("form", sorted(WRITERS.keys() - {"openinference"}))  # where ids of calls are ids of spans
def test_the_same_call_id_in_two_steps_names_two_calls(form: str, read: Read) -> None:
    story = [[Call(docs("d1"), id="call_0")], [Call(docs("d2"), id="call_0")]]
    assert by_iteration(read(form, story)) == [["d1"], ["d2"]]


def test_a_truncated_log_is_an_error_that_names_the_file(form: str, written: Callable[..., Path]) -> None:
    path = written(form, conversation())
    content = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(InputError, match=path.name):
            read_traces(path, format=form, **STEPS)


def test_no_other_format_claims_a_log(form: str, written: Callable[..., Path]) -> None:
    path = written(form, conversation())
    assert read_traces(path, **STEPS).equals(read_traces(path, format=form, **STEPS))


_outputs = st.lists(st.sampled_from([f"d{n}" for n in range(9)]), max_size=4)
_steps = st.lists(st.lists(_outputs, min_size=1, max_size=3), min_size=1, max_size=5)


@pytest.mark.parametrize("name", WRITERS)
@given(steps=_steps)
@settings(max_examples=how_many(3, full=15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_story_reads_back_as_it_was_told(name: str, steps: list[list[list[str]]], tmp_path: Path) -> None:
    writer, file_name = WRITERS[name]
    path = tmp_path / file_name
    path.write_text(writer(Story([Turn([[Call(docs(*ids)) for ids in step] for step in steps])])))
    told = [[name for ids in step for name in ids] for step in steps]
    assert by_iteration(read_traces(path, **STEPS)) == told


def test_browsecomp_plus_has_lost_its_steps_and_says_so(written: Callable[..., Path]) -> None:
    path = written("browsecomp_plus", conversation())
    with pytest.warns(GoodgainNotice, match="browsecomp_plus does not record.*5 searches"):
        results = read_traces(path)
    assert by_iteration(results) == [["d3", "d1"], ["d4", "d1"], [], [], ["d2", "d1"]]


def test_hundreds_of_levels_of_nesting_are_no_crash(form: str, read: Read) -> None:
    with pytest.raises(InputError, match="no results can be read"):
        read(form, [[Call("[" * 5000 + "]" * 5000)]])
    nested = json.dumps(docs("d1"))
    for _ in range(5):
        nested = json.dumps(nested)
    assert by_iteration(read(form, [[Call(nested)]])) == [["d1"]]


def test_what_is_not_understood_is_an_error_if_asked_for_although_there_are_searches(tmp_path: Path) -> None:
    path = tmp_path / "q1.json"
    story = json.loads(openai_chat(Story([Turn([[Call(docs("d1"))]])])))
    path.write_text(json.dumps([*story, {"role": "critic", "content": "Well done."}]))
    with pytest.warns(GoodgainNotice, match="1 item in the traces is not understood.*message of role 'critic' 1"):
        assert by_iteration(read_traces(path)) == [["d1"]]
    with pytest.raises(InputError, match=r"q1\.json, at /5: message of role 'critic' is not understood.*strict=Tr"):
        read_traces(path, strict=True)
    good = tmp_path / "q2.json"
    good.write_text(json.dumps(story))
    with pytest.warns(GoodgainNotice, match=r"1 trace or file was left out: .*critic"):
        assert set(read_traces([path, good], strict=True, errors="skip")["query_id"]) == {"q2"}
    assert by_iteration(read_traces(good, strict=True)) == [["d1"]]
