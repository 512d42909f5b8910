"""Archives of logs and streams of events: read through the same door as files, bounded, and never to half an answer."""

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

from .conftest import STEPS
from .logs import WRITERS, conversation
from .mutations import changed

Json = Any

#: Events of streams, by who writes them, and the parts that those of the UI are put together to.
STREAMS = json.loads(Path(__file__).with_name("streams.json").read_text("utf-8"))


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


def test_a_folder_counts_the_subfolders_that_are_not_read_and_a_pattern_reads_them(tmp_path: Path) -> None:
    good = WRITERS["openai_chat"][0](conversation())
    for name in ("a.json", "one/b.json", "one/c.json", "two/d.json", ".cache/e.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(good)
    with pytest.warns(GoodgainNotice, match=r"subfolders not read: 2\. To read logs there, .* '.*/\*/\*\.json'"):
        assert set(read_traces(tmp_path)["query_id"]) == {"a"}
    assert set(read_traces(f"{tmp_path}/*/*.json")["query_id"]) == {"b", "c", "d"}
    assert set(read_traces({"mine": [f"{tmp_path}/*.json", f"{tmp_path}/t*"]})["query_id"]) == {"a", "d"}
    with pytest.raises(InputError, match=r"no such file"):
        read_traces(f"{tmp_path}/*/*.jsonl")


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
        read_traces(_archive(tmp_path / "streams.zip", {"s.txt": _stream(STREAMS["chat"])}))
    with pytest.raises(InputError, match=r"packed\.zip/s\.json\.gz: this file of an archive unpacks to more than"):
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


# Streams of events: cases/streams.json has what is read in their files


def _stream(events: list[Json], *, done: bool = False) -> str:
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([": a comment\n\n", *lines, "data: [DONE]\n\n" if done else ""])


def _assemble(events: list[Json]) -> Json:
    assembled = assemble_stream(_stream(events))
    assert assembled is not None
    value, is_whole = assembled
    assert is_whole
    return value


def _say(text: str, finish: str | None = None, answer: str = "a") -> Json:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    return {"id": answer, "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


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


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([*STREAMS["chat"], _say("So.", answer="b"), _say(" It is.", "stop", "b")], [None, "So. It is."]),
        ([*STREAMS["groq"], *STREAMS["groq_again"]], ["So. It is."] * 2),
        ([_say("A", "stop", "a"), _say("B", "stop", "b")], ["A", "B"]),
    ],
)
def test_the_answers_of_a_stream_are_one_conversation_and_told_apart_by_their_ends(
    events: list[Json], said: list[str | None]
) -> None:
    assert [message["content"] for message in _assemble(events)["messages"]] == said


def test_the_pieces_of_a_stream_are_put_together() -> None:
    answer = _assemble(STREAMS["anthropic"])
    assert answer["content"][0] == {"type": "text", "text": "I look."}
    assert (answer["usage"], answer["stop_reason"]) == ({"output_tokens": 9}, "end_turn")
    (candidate,) = _assemble(STREAMS["gemini"])["candidates"]
    assert len(candidate["content"]["parts"]) == 2
    assert candidate["groundingMetadata"] == STREAMS["gemini"][1]["candidates"][0]["groundingMetadata"]
    (message,) = _assemble(STREAMS["ui"])
    assert message["parts"] == STREAMS["ui_parts"]


def test_damaged_streams_are_read_or_are_one_sentence(save: Callable[..., Path]) -> None:
    chance = random.Random(2)
    for _ in range(how_many(80, full=1_000)):
        vendor = chance.choice(["chat", "anthropic", "gemini", "ui", "response", "deer_flow"])
        events = STREAMS[vendor]
        if by_value := chance.random() < 0.5:
            events, _ = changed(events, chance)
            events = events if isinstance(events, list) else [events]
        written = (
            _stream(events, done=True)
            if chance.random() < 0.5
            else "".join(f"{json.dumps(event)}\n" for event in events)
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
