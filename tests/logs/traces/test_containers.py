"""Archives of logs and streams of events: read through the same door as files, bounded, and never to half an answer."""

# ruff: noqa: E501  # events are easier to read an item a line

from __future__ import annotations

import gzip
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, read_traces
from goodgain.logs.traces.input import logs_and_archives as logs_module
from goodgain.logs.traces.input.event_streams import assemble_stream
from tests.support.counts import how_many

from .conftest import STEPS, by_iteration
from .logs import WRITERS, conversation, docs
from .mutations import changed

Json = Any

_USER = {"role": "user", "content": "What?"}


def _archive(path: Path, members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


# Archives


@pytest.mark.parametrize("name", WRITERS)
def test_a_log_in_an_archive_is_read_as_the_file_is(name: str, tmp_path: Path) -> None:
    writer, file_name = WRITERS[name]
    text = writer(conversation())
    (tmp_path / file_name).write_text(text)
    alone = read_traces(tmp_path / file_name, **STEPS)
    packed = gzip.compress(text.encode())
    for number, members in enumerate(({f"logs/{file_name}": text}, {f"{file_name}.gz": packed})):
        path = _archive(tmp_path / f"{number}.zip", {**members, "README.md": "x", f"__MACOSX/._{file_name}": "x"})
        assert read_traces(path, **STEPS).equals(alone)


def test_an_archive_of_mixed_formats_says_how_many_of_each(tmp_path: Path) -> None:
    names = ["openai_chat", "anthropic", "jsonl"]
    members = {f"{name}{Path(WRITERS[name][1]).suffix}": WRITERS[name][0](conversation()) for name in names}
    seen: list[Summary] = []
    results = read_traces(_archive(tmp_path / "logs.zip", members), report=seen.append)
    assert set(results["query_id"]) == {"anthropic", "openai_chat", "story"}, "jsonl names its query itself"
    assert seen[0].formats == dict.fromkeys(names, 1)
    assert "traces by format: anthropic 1, jsonl 1, openai_chat 1" in str(seen[0])


def test_a_folder_of_mixed_formats_says_how_many_of_each(tmp_path: Path) -> None:
    for name in ("openai_chat", "anthropic", "openinference"):
        writer, file_name = WRITERS[name]
        (tmp_path / f"{name}{Path(file_name).suffix}").write_text(writer(conversation()))
    _archive(tmp_path / "more.zip", {"a.json": WRITERS["openai_chat"][0](conversation())})
    seen: list[Summary] = []
    read_traces(tmp_path, report=seen.append)
    assert "traces by format: openai_chat 2, anthropic 1, openinference 1" in str(seen[0])


def test_errors_name_the_file_in_the_archive_and_skip_leaves_out_no_other(tmp_path: Path) -> None:
    good = WRITERS["openai_chat"][0](conversation())
    path = _archive(
        tmp_path / "logs.zip", {"a.json": good, "b.json": '{"odd": 1}', "c.json": good[:-20], "d.json": good}
    )
    with pytest.raises(InputError, match=r"logs\.zip/b\.json: is in no known trace format"):
        read_traces(path)
    with pytest.warns(GoodgainNotice, match=r"2 traces or files were left out: .*zip/b\.json.*zip/c\.json"):
        assert set(read_traces(path, errors="skip")["query_id"]) == {"a", "d"}


def test_an_archive_without_logs_a_damaged_one_and_one_within_another_are_clear_errors(tmp_path: Path) -> None:
    good = WRITERS["openai_chat"][0](conversation())
    inner = _archive(tmp_path / "inner.zip", {"a.json": good}).read_bytes()
    cases = {
        "holds no file that ends in": _archive(tmp_path / "1.zip", {"a.md": "x"}),
        "which is not read inside an archive": _archive(tmp_path / "2.zip", {"b.zip": inner}),
        "an SQLite database, which is not": _archive(tmp_path / "3.zip", {"b.log": "SQLite format 3\0" + "x" * 99}),
        "cannot be read from its archive": tmp_path / "4.zip",
    }
    (tmp_path / "4.zip").write_bytes(inner[:-30])
    for message, path in cases.items():
        with pytest.raises(InputError, match=message) as caught:
            read_traces(path)
        assert str(path) in str(caught.value)


def test_archives_are_bounded_in_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = WRITERS["openai_chat"][0](conversation())
    path = _archive(tmp_path / "logs.zip", {f"{n}.json": good for n in range(3)})
    monkeypatch.setattr(logs_module, "_MAX_UNPACKED", 2 * len(good))
    monkeypatch.setattr(logs_module, "_MAX_TIMES", 1)
    with pytest.raises(InputError, match=r"logs\.zip: unpacks to .* over 1 times its size"):
        read_traces(path)
    monkeypatch.setattr(logs_module, "_MAX_UNPACKED", 1 << 30)
    monkeypatch.setattr(logs_module, "_MAX_STREAM", 100)
    with pytest.raises(InputError, match="the stream of events is larger"):
        read_traces(_archive(tmp_path / "streams.zip", {"s.txt": _stream(_CHAT)}))
    with pytest.raises(InputError, match=r"packed\.zip/s\.json\.gz: unpacks to more than"):
        read_traces(_archive(tmp_path / "packed.zip", {"s.json.gz": gzip.compress(good.encode())}))


def test_damaged_archives_are_read_or_are_one_sentence(tmp_path: Path) -> None:
    chance = random.Random(1)
    good = WRITERS["openai_chat"][0](conversation())
    content = _archive(tmp_path / "logs.zip", {"a.json": good, "b.json.gz": gzip.compress(good.encode())}).read_bytes()
    path = tmp_path / "damaged.zip"
    for _ in range(how_many(40, full=500)):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 4))):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged[: chance.choice((None, None, chance.randrange(1, len(damaged))))])
        try:
            read_traces(path)
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)


# Streams of events


def _stream(events: list[Json], *, named: bool = False, done: bool = False) -> str:
    lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([": a comment\n\n", *lines, "data: [DONE]\n\n" if done else ""])


def _chunk(delta: Json, finish: str | None = None, answer: str = "a") -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": answer, "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def _call_piece(index: int, arguments: str, **more: str) -> Json:
    function = {"arguments": arguments, **({"name": more["name"]} if "name" in more else {})}
    return {"index": index, "function": function, **({"id": more["id"], "type": "function"} if "id" in more else {})}


_CHAT = [
    _chunk({"role": "assistant", "content": None, "tool_calls": [_call_piece(0, "", id="c1", name="search")]}),
    _chunk({"tool_calls": [_call_piece(0, '{"query":')]}),
    _chunk({"tool_calls": [_call_piece(0, '"a"}'), _call_piece(1, '{"query":"b"}', id="c2", name="search")]}),
    _chunk({}, "tool_calls"),
    {"id": "a", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": {"total_tokens": 3}},
]


@pytest.mark.parametrize(
    "event",
    [
        '{"candidates": [{"groundingMetadata": {"chunks": [%s]}}]}',
        '{"id": "a", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"more": %s}}]}',
    ],
)
def test_a_stream_that_nests_deep_is_not_assembled_and_no_crash(event: str) -> None:
    nested = '{"a": ' * 900 + "1" + "}" * 900
    assert assemble_stream(f"data: {event % nested}\n\n") is None


def test_the_answers_of_a_stream_file_are_one_conversation(save: Callable[..., Path]) -> None:
    second = [_chunk({"role": "assistant", "content": "So."}, answer="b"), _chunk({"content": " It is."}, "stop", "b")]
    assembled = assemble_stream(_stream([*_CHAT, *second]))
    assert assembled is not None and assembled.is_whole
    assert [message["content"] for message in assembled.value["messages"]] == [None, "So. It is."]


def _groq(*tools: Json) -> list[Json]:
    """The chunks of Groq's agents, each of which has an id of its own: what was run stands in two copies, the first empty."""
    events = [_chunk({"reasoning": "I look. "}), *(_chunk({"executed_tools": [tool]}) for tool in tools)]
    events += [_chunk({"content": "So."}), _chunk({"content": " It is."})]
    return [{**event, "id": f"{tools[0]['arguments']} {n}"} for n, event in enumerate(events)] + [
        {**_chunk({}, "stop"), "id": "stub"}
    ]


def _ran(index: int, query: str, url: str | None = None) -> Json:
    tool = {
        "index": index,
        "type": "search",
        "arguments": json.dumps({"query": query}),
        "search_results": {"results": []},
    }
    found = {"results": [{"title": "T", "url": url, "content": "c", "score": 0.9}]}
    return tool if url is None else {**tool, "output": f"Title: T\nURL: {url}\nContent: c\n", "search_results": found}


def test_the_chunks_of_groq_are_one_step_and_the_empty_copy_of_a_search_is_none(save: Callable[..., Path]) -> None:
    tools = [_ran(0, "a"), _ran(0, "a", "u:1"), _ran(1, "b"), _ran(1, "b", "u:2")]
    stream = _stream(_groq(*tools), done=True)
    log = [{"request": {"messages": [_USER], "stream": True}, "response": stream}]
    for path in (save(stream, "stream.txt"), save(log)):
        seen: list[Summary] = []
        results = read_traces(path, report=seen.append)
        assert results.select("iteration", "search", "search_query", "url", "status").rows() == [
            (1, 1, "a", "u:1", "ok"), (1, 2, "b", "u:2", "ok"),
        ]  # fmt: skip
        assert (seen[0].steps, seen[0].empty) == (1, 0)
    two = assemble_stream(_stream([*_groq(*tools), *_groq(_ran(0, "c"))]))
    assert two is not None and two.is_whole
    assert [message["content"] for message in two.value["messages"]] == ["So. It is."] * 2


def test_answers_of_which_each_is_one_chunk_are_told_apart_by_their_ends(save: Callable[..., Path]) -> None:
    found = assemble_stream(_stream([_chunk({"content": "A"}, "stop", "a"), _chunk({"content": "B"}, "stop", "b")]))
    assert found is not None and [one["content"] for one in found.value["messages"]] == ["A", "B"]


def _item(number: int, *urls: str) -> Json:
    sources = [{"type": "url", "url": url} for url in urls]
    return {"type": "web_search_call", "id": f"ws{number}", "status": "completed",
            "action": {"type": "search", "query": "q", "sources": sources}}  # fmt: skip


_ANTHROPIC = [
    {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": [], "stop_reason": None, "usage": {"output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"query": '}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"bm25"}'}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
        {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "x"}]}},
    {"type": "ping"},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]  # fmt: skip


def test_the_blocks_of_an_anthropic_stream_are_searches_with_their_results(save: Callable[..., Path]) -> None:
    results = read_traces(save(_stream(_ANTHROPIC, named=True), "stream.txt"))
    assert by_iteration(results) == [["https://a.example"]]
    assert results["search_query"].to_list() == ["bm25"]
    assembled = assemble_stream(_stream(_ANTHROPIC))
    assert assembled is not None and assembled.value["content"][0] == {"type": "text", "text": "I look."}
    assert assembled.value["usage"] == {"output_tokens": 9} and assembled.value["stop_reason"] == "end_turn"


_CHUNK_OF_WEB = {"web": {"uri": "https://a.example", "title": "A"}}
_GEMINI = [
    {"candidates": [{"content": {"parts": [{"text": "So"}]}, "groundingMetadata": {"groundingChunks": [_CHUNK_OF_WEB]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "search", "args": {}}}]}, "finishReason": "STOP",
                     "groundingMetadata": {"groundingChunks": [_CHUNK_OF_WEB], "webSearchQueries": ["q"]}}]},
]  # fmt: skip
_UI = [
    {"type": "start", "messageId": "m"}, {"type": "start-step"},
    {"type": "tool-input-available", "toolCallId": "c1", "toolName": "search", "input": {"query": "a"}},
    {"type": "tool-output-available", "toolCallId": "c1", "output": docs("d1")},
    {"type": "tool-input-available", "toolCallId": "c2", "toolName": "mcp", "input": {}, "dynamic": True},
    {"type": "tool-output-error", "toolCallId": "c2", "errorText": "no"}, {"type": "finish"},
]  # fmt: skip


def test_the_pieces_of_gemini_and_of_the_ui_stream_are_put_together() -> None:
    found = assemble_stream(_stream(_GEMINI))
    assert found is not None and found.is_whole
    (candidate,) = found.value["candidates"]
    assert len(candidate["content"]["parts"]) == 2
    assert candidate["groundingMetadata"] == {"groundingChunks": [_CHUNK_OF_WEB], "webSearchQueries": ["q"]}
    found = assemble_stream(_stream(_UI, done=True))
    assert found is not None and found.is_whole
    (message,) = found.value
    assert message["parts"] == [
        {"type": "step-start"},
        {
            "type": "tool-search",
            "toolCallId": "c1",
            "state": "output-available",
            "input": {"query": "a"},
            "output": docs("d1"),
        },
        {
            "type": "dynamic-tool",
            "toolName": "mcp",
            "toolCallId": "c2",
            "state": "output-error",
            "input": {},
            "errorText": "no",
        },
    ]


def test_a_stream_of_an_unknown_vendor_or_a_damaged_one_is_refused_in_words(save: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"a stream of server-sent events of the types odd\.delta"):
        read_traces(save(_stream([{"type": "odd.delta"}]), "stream.txt"))
    for damaged in (_stream(_CHAT).replace('"choices": [{', '"choices": [', 1), _stream(_CHAT)[:-40]):
        with pytest.raises(InputError):
            read_traces(save(damaged, "stream.txt"), unrecorded="empty")


def test_recorded_exchanges_whose_answers_are_streams_are_read(save: Callable[..., Path]) -> None:
    answer = {"role": "tool", "tool_call_id": "c1", "content": json.dumps(docs("d1"))}
    other = {**answer, "tool_call_id": "c2", "content": json.dumps(docs("d2"))}
    calls = [{"id": name, "type": "function", "function": {"name": "search", "arguments": json.dumps({"query": query})}}
             for name, query in (("c1", "a"), ("c2", "b"))]  # fmt: skip
    history = [_USER, {"role": "assistant", "content": None, "tool_calls": calls}, answer, other]
    said = [_chunk({"role": "assistant", "content": "So."}, "stop")]
    for response in (_stream(_CHAT, done=True), {"status": 200, "body": _stream(_CHAT, done=True)}, _CHAT):
        log = [
            {"request": {"messages": [_USER], "stream": True}, "response": response},
            {"request": {"messages": history}, "response": _stream(said, done=True)},
        ]
        assert by_iteration(read_traces(save(log)), "log-1") == [["d1", "d2"]]
    cut = [{"request": {"messages": [_USER]}, "response": _stream(_CHAT[:2])}]
    with pytest.raises(InputError, match=r"at /0/response: expected one object that is the whole answer"):
        read_traces(save(cut), format="openai_chat")


_RESPONSE = [
    {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}},
    {"type": "response.output_item.done", "output_index": 0, "item": _item(1, "u:1")},
    {"type": "response.completed", "response": {"id": "r", "object": "response", "output": [_item(1, "u:1")]}},
]
_DEER = [
    {"thread_id": "t", "agent": "a", "id": "m", "role": "assistant", "tool_calls": [{"name": "web_search", "args": "", "id": "c"}]},
    {"thread_id": "t", "agent": "a", "id": "m", "tool_call_chunks": [{"args": '{"query": "q"}', "index": 0}]},
    {"thread_id": "t", "agent": "a", "id": "r", "tool_call_id": "c", "content": json.dumps([{"type": "page", "url": "u:1"}])},
]  # fmt: skip


def test_damaged_streams_are_read_or_are_one_sentence(save: Callable[..., Path]) -> None:
    chance = random.Random(2)
    for _ in range(how_many(80, full=1_000)):
        events = chance.choice([_CHAT, _ANTHROPIC, _GEMINI, _UI, _RESPONSE, _DEER])
        if by_value := chance.random() < 0.5:
            events, _ = changed(events, chance)
            events = events if isinstance(events, list) else [events]
        written = (
            _stream(events, done=True) if chance.random() < 0.5 else "".join(f"{json.dumps(one)}\n" for one in events)
        )
        content = bytearray(written.encode())
        for _ in range(0 if by_value else chance.choice((1, 4))):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path = save(content.decode("utf-8", "replace"), chance.choice(("stream.txt", "stream.jsonl")))
        try:
            read_traces(path, unrecorded="empty", errors="skip")
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)
        except GoodgainNotice:
            pass
