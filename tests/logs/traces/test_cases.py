"""Logs and outputs of tools, each with what goodgain reads in it: `cases/*.json`, one subject a file.

A case has a name (the rule), the content of a file (`log` is JSON, `lines` are JSON Lines, `text` are lines of text) or the
`output` of a tool, and what is read in it: a log has `reads`, each with options and what comes of them. In results, null,
turn 1 and status ok are left out.

    python -m tests.logs.traces.test_cases

writes what is read today into all cases. Read the diff: each changed number has its reason in the commit message.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, read_traces
from goodgain.logs.traces.tool_outputs.readers import read_output

Json = Any

CASES = Path(__file__).parent / "cases"
SUBJECTS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*.json"))}
_WIDTH = 140


def write_log(case: Json, folder: Path) -> Path:
    """Write the log of a case to its file."""
    path = folder / case.get("file", "log.jsonl" if "lines" in case else "log.txt" if "text" in case else "log.json")
    if "lines" in case:
        content = "".join(f"{json.dumps(line)}\n" for line in case["lines"])
    else:
        content = "\n".join(case["text"]) if "text" in case else json.dumps(case["log"])
    path.write_text(content, "utf-8")
    return path


def _rows(frame: pl.DataFrame) -> list[Json]:
    usual = {"turn": 1, "status": "ok"}
    return [
        {key: value for key, value in row.items() if value is not None and usual.get(key) != value}
        for row in frame.iter_rows(named=True)
    ]


def observe_log(path: Path, options: Json, *, with_summary: bool) -> Json:
    """Return the error or the rows of each frame, the notices, and the sentences of the summary if they are asked for."""
    seen: list[Summary] = []
    found: Json = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frames = read_traces(path, report=seen.append, **options)
        except InputError as error:
            found["error"] = str(error)
        else:
            found["format"] = ", ".join(seen[0].formats)
            names = ["results", *(name for name in ("costs", "uses") if options.get(name))]
            found |= dict(zip(names, map(_rows, frames if isinstance(frames, tuple) else (frames,)), strict=True))

    assert all(issubclass(one.category, GoodgainNotice) for one in caught), caught
    if caught:
        found["notices"] = [str(one.message) for one in caught]
    if with_summary and seen:
        found["summary"] = str(seen[0]).splitlines()
    return json.loads(json.dumps(found).replace(json.dumps(f"{path.parent}/")[1:-1], ""))


def observe_output(output: Json) -> Json:
    """Return the status and the results of an output of a tool, and what was not read in it."""
    data = json.loads(msgspec.json.encode(read_output(output, "here")._asdict()))
    data["results"] = [{key: value for key, value in one.items() if value not in (None, [])} for one in data["results"]]
    return {key: value for key, value in data.items() if key in ("status", "results") or value}


def observe(case: Json, folder: Path) -> Json:
    """Return the case with what is read today."""
    if "output" in case:
        return {key: case[key] for key in ("name", "output")} | observe_output(case["output"])
    path = write_log(case, folder)
    reads = []
    for read in case["reads"]:
        options = read.get("options", {})
        found = observe_log(path, options, with_summary="summary" in read)
        reads.append(({"options": options} if options else {}) | found)
    return {**case, "reads": reads}


@pytest.mark.each
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{name}: {case['name']}") for name, cases in SUBJECTS.items() for case in cases]
)
def test_a_case_reads_to_what_it_says(case: Json, tmp_path: Path) -> None:
    assert observe(case, tmp_path) == case


def test_each_case_has_a_name_of_its_own() -> None:
    for cases in SUBJECTS.values():
        names = [case["name"] for case in cases]
        assert len(set(names)) == len(names)


def lay_out(value: Json, indent: int = 0) -> str:
    """Return JSON with each value on one line if it fits, so that a log is read an item a line."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or len(flat) + indent <= _WIDTH:
        return re.sub(r"[^\x20-\x7e\xa0-\ud7ff]", lambda found: json.dumps(found[0])[1:-1], flat)
    keys = (
        [f"{json.dumps(key, ensure_ascii=False)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    )
    items = value.values() if isinstance(value, dict) else value
    inner = [f"{' ' * (indent + 1)}{key}{lay_out(item, indent + 1)}" for key, item in zip(keys, items, strict=True)]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([first, ",\n".join(inner), f"{' ' * indent}{last}"])


if __name__ == "__main__":
    for subject, cases_of in SUBJECTS.items():
        with tempfile.TemporaryDirectory() as temporary:
            written = [observe(case, Path(temporary)) for case in cases_of]
        (CASES / f"{subject}.json").write_text(lay_out(written) + "\n", "utf-8")
