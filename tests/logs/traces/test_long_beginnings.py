"""Logs that begin with a long text (a pasted document, a screenshot) are recognised as those without it are."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard

from goodgain.errors import InputError
from goodgain.logs.traces import read_traces
from goodgain.logs.traces.formats import detect_format
from goodgain.logs.traces.input.file_head import HEAD_SIZE, FileHead
from goodgain.logs.traces.input.logs_and_archives import read_head
from tests.support.counts import some_of
from tests.support.seconds import find_faster_growth, measure_seconds

from .conftest import STEPS, by_iteration
from .logs import LAST_TURN, WRITERS, Story, conversation, docs
from .story import Json

_MIB = 1 << 20
#: A document of many lines, with quotes and brackets in it, as JSON text has to escape them.
_LINE = 'A pasted line with "quotes", [brackets] and {braces}.\n'


def _pasted(size: int) -> str:
    return _LINE * (size // len(_LINE) + 1)


def _write(name: str, pasted: str) -> str:
    """The log of a conversation that begins with a pasted text: its user's, or a query where the log has no user."""
    writer, _ = WRITERS[name]
    story = conversation()
    for turn in story.turns:
        turn.user = pasted
    text = writer(story)
    if len(text) < len(pasted):
        for turn in story.turns:
            turn.steps[0][0].query = pasted
        text = writer(story)
    assert len(text) > len(pasted)
    return text


@pytest.mark.parametrize("size", [300 << 10, 3 * _MIB])
def test_a_log_with_a_long_text_in_front_is_of_its_format_with_the_same_counts(
    form: str, size: int, tmp_path: Path
) -> None:
    path = tmp_path / WRITERS[form][1]
    path.write_text(_write(form, _pasted(size)))
    assert detect_format(path, read_head(path)).name == form
    assert by_iteration(read_traces(path, **STEPS)) == LAST_TURN


def test_it_is_found_in_compressed_files_archives_and_lines_without_their_ending(tmp_path: Path) -> None:
    text = _write("anthropic", _pasted(300 << 10)).encode()
    (tmp_path / "log.json.gz").write_bytes(gzip.compress(text))
    (tmp_path / "log.json.zst").write_bytes(zstandard.compress(text))
    with zipfile.ZipFile(tmp_path / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log.json", text)
    (tmp_path / "lines.log").write_text(_write("codex", _pasted(300 << 10)))
    for name in ("log.json.gz", "log.json.zst", "logs.zip", "lines.log"):
        assert by_iteration(read_traces(tmp_path / name)) == LAST_TURN, name
    pl.DataFrame(_spans(_pasted(300 << 10))).write_parquet(tmp_path / "spans.parquet")
    assert by_iteration(read_traces(tmp_path / "spans.parquet")) == [["d1"]]


def _spans(pasted: str) -> list[Json]:
    return [
        {"context.span_id": f"{number:016x}", "context.trace_id": "1" * 32, "name": kind, "span_kind": kind,
         "parent_id": None if number == 1 else f"{1:016x}", "start_time": number + 10**18,
         "attributes.input.value": pasted, "attributes.output.value": json.dumps(docs("d1"))}
        for number, kind in ((1, "AGENT"), (2, "RETRIEVER"))
    ]  # fmt: skip


def test_a_text_log_with_a_long_prompt_is_tagged_text(tmp_path: Path) -> None:
    said = '<search>a</search>\n<information>Doc 1(Title: "A") text</information>\n<answer>x</answer>'
    path = tmp_path / "log.txt"
    path.write_text(f"<|im_start|>user\n{_pasted(3 * _MIB)}<|im_end|>\n<|im_start|>assistant\n{said}<|im_end|>\n")
    assert by_iteration(read_traces(path)) == [["A"]]


@pytest.mark.parametrize("screenshots", [1, 4])
def test_a_message_of_long_parts_does_not_hide_those_behind_it(tmp_path: Path, screenshots: int) -> None:
    """A plain first message is also one of other formats: what stands behind it decides."""
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * (100 << 10)}}
    messages = json.loads(_write("anthropic", "What?"))
    messages[0]["content"] = [{"type": "text", "text": "What?"}, *[shot] * screenshots]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(messages))
    assert detect_format(path, read_head(path)).name == "anthropic"
    assert by_iteration(read_traces(path)) == LAST_TURN


def test_lines_with_a_long_first_record_are_lines_whatever_the_name_of_the_file(tmp_path: Path) -> None:
    """A line of many messages: it is longer than what is looked at, and each message stands whole."""
    record = json.loads(WRITERS["openai_chat"][0](Story(conversation().turns * 300)))
    lines = "".join(json.dumps({"messages": record}) + "\n" for _ in range(2))
    assert len(lines) > 4 * HEAD_SIZE
    for name in ("log.json", "log.jsonl"):
        (tmp_path / name).write_text(lines)
        results = read_traces(tmp_path / name)
        assert [by_iteration(results, query) for query in ("log-1", "log-2")] == [LAST_TURN] * 2
    (tmp_path / "log.json").write_text(json.dumps(record) + "\n")
    assert by_iteration(read_traces(tmp_path / "log.json"), "log") == LAST_TURN


def test_a_first_message_of_numbers_is_read_to_its_end(tmp_path: Path) -> None:
    """A picture as a list of its bytes is not one long text."""
    messages = json.loads(_write("gemini", "What?"))
    messages["contents"][0]["parts"] = [{"inlineData": {"mimeType": "image/png", "data": [137] * 200_000}}]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(messages))
    assert by_iteration(read_traces(path)) == LAST_TURN


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["log.json", "log.jsonl", "log.json.gz"], every=3))
def test_a_first_record_of_more_than_16_mib_is_one_sentence_that_names_the_option(name: str, tmp_path: Path) -> None:
    text = _write("langchain", "x" * (17 * _MIB)).encode()
    (tmp_path / name).write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    with pytest.raises(InputError, match=r"log\S*: .*first record.*16 MiB.*format=") as caught:
        read_traces(tmp_path / name)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
    assert by_iteration(read_traces(tmp_path / name, format="langchain")) == LAST_TURN


@pytest.mark.slow
def test_other_large_files_that_no_format_claims_are_described(tmp_path: Path) -> None:
    shots = json.dumps([{"shot": "x" * (5 * _MIB)}] * 4)
    for name, text, looks in (
        ("log.txt", "a note\n" * (_MIB >> 2), "text that begins"),
        ("log.json", shots, "keys shot"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=rf"{name}: is in no known trace format .it looks like .*{looks}"):
            read_traces(tmp_path / name)


def test_a_long_first_record_that_is_cut_off_is_said_to_be(tmp_path: Path) -> None:
    text = _write("openai_chat", _pasted(300 << 10))
    for name, cut in (("log.json", 200 << 10), ("log.json", 290 << 10), ("log.jsonl", 290 << 10)):
        (tmp_path / name).write_text(text[:cut])
        with pytest.raises(
            InputError, match=rf"{name}: (is in no known trace format .it looks like JSON|is not valid JSON).* cut off"
        ):
            read_traces(tmp_path / name)


def test_the_head_of_other_files_stays_256_kib(tmp_path: Path) -> None:
    story = Story(conversation().turns * 500)
    for name in ("openai_chat", "codex", "openinference", "inspect_ai"):
        path = tmp_path / WRITERS[name][1]
        path.write_text(WRITERS[name][0](story))
        assert path.stat().st_size > 2 * HEAD_SIZE
        assert len(read_head(path).raw) == HEAD_SIZE


_HOSTILE: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[" * n,
    "numbers": lambda n: "[" + "1," * (n // 2),
    "keys": lambda n: "{" + '"a":1,' * (n // 6),
    "quotes": lambda n: '["' + '\\"' * (n // 2),
    "open text": lambda n: '[{"a":"' + "x" * n,
    "lines": lambda n: "{\n" * (n // 2),
    "notes": lambda n: "note\n" * (n // 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _HOSTILE)
def test_looking_at_a_hostile_beginning_takes_time_in_proportion_to_its_length(name: str) -> None:
    def measure(size: int) -> float:
        head = FileHead("log.json", _HOSTILE[name](size).encode(), whole=False)
        return measure_seconds(lambda: (head.is_enough, head.records))

    assert not find_faster_growth(measure, 1 << 16)
