"""A file that no format claims: what it looks like, which formats are nearest and why not, and what to do."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import InputError
from goodgain.logs.traces import formats, read_traces
from goodgain.logs.traces.reading import advice
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading.refusals import explain_format

from .logs import WRITERS, conversation

#: For each file its text, what it looks like, and the nearest format.
_CASES = json.loads(Path(__file__).with_suffix(".json").read_text())["files"]


@pytest.mark.parametrize("name", _CASES)
def test_the_message_describes_the_file_and_names_near_formats_and_the_way_out(name: str, tmp_path: Path) -> None:
    content, looks, near = _CASES[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=rf"{name}: is in no known trace format \(it looks like {looks}\)") as caught:
        read_traces(tmp_path / name)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 2000
    assert "the format jsonl, which takes those of any agent" in said
    assert "docs/traces/your_own_agent.md" in said
    if near:
        assert re.search(f"the nearest (is|are) .*{near}", said)


#: Formats whose keys are their own; those of a chat stand in the logs of many formats, those of spans in two.
_TELLING = [
    *("anthropic", "atif", "browsecomp_plus", "inspect_ai", "jsonl", "langchain", "openai_responses", "tau_bench"),
]


@pytest.mark.parametrize("name", _TELLING)
def test_a_log_whose_holder_has_another_name_is_nearest_to_its_own_format(name: str, tmp_path: Path) -> None:
    """A log under a key that no format knows: its own keys, further in, still say what it is."""
    writer, file_name = WRITERS[name]
    lines = writer(conversation()).strip().split("\n")
    inner: Any = [json.loads(line) for line in lines] if file_name.endswith(".jsonl") else json.loads("\n".join(lines))
    (tmp_path / "log.json").write_text(json.dumps({"payload_of_ours": {"log": inner}}))
    try:
        read_traces(tmp_path / "log.json")
    except InputError as error:
        if "is in no known trace format" in str(error):
            assert f" {name} (" in str(error)
    else:
        pytest.fail("it was read")


def test_a_file_that_nests_deep_is_explained_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"a": ' * 400 + "1" + "}" * 400)
    lines = explain_format(tmp_path / "log.json", ReadOptions())
    assert "  jsonl: its JSON nests too deep" in islice(lines, len(formats()))  # all but the reading by shape


def test_options_are_tried_on_the_beginning_of_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "_MOST_BYTES", 1 << 20)
    records = [{"question": f"What is {k}?", "hits": [{"id": f"d{k}", "text": "x " * 5000}]} for k in range(130)]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    whole = lines[: 1 << 20].count("\n")
    assert 1 < whole < 130

    (tmp_path / "log.jsonl").write_text(lines)
    with pytest.raises(InputError) as caught:
        read_traces(tmp_path / "log.jsonl")
    advised = "pass format='shape' and tools=['hits'] to count each such list as a search"
    counts = f"(in its first 1 MiB: {whole} queries, {whole} searches, {whole} results)"
    assert f"{advised} {counts}" in str(caught.value)
    assert len(read_traces(tmp_path / "log.jsonl", format="shape", tools=["hits"])) == 130
