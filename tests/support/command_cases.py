"""Cases of the command: each is a rule, files, and commands in order with what they print and write and how they exit.

A file is its text, or `{"copy": an example, "replace": {...}}`, `{"link": a file}`, `{"hardlink": a file}`, or lines with k from 1:
`{"repeat": "q{k} 0 a 2\n", "times": 9}`, or a log: `{"searches": [results, ...], "in": "openai_chat"}`; a list is one after the
other. `example` is a folder of qrels_examples to copy too. `for` has the values of words such as `$form`: each combination is a
case. The commands run in the folder of the files.
A step has a status if it is not 0. `stdout`, `stderr` and `written` list parts of a text; `stdout_is` is the whole text.
`_lacks`, `_matches` (patterns), `_counts`, `_cells` (rows of a table on a terminal) and `_json` (a path such as `pairs.*.measure`)
say what else holds. `same_stdout` is another command that prints the same; `changes: false` says that no file changes;
`folder_has` lists the files afterwards.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import pytest

import goodgain as gg
from tests.logs.traces.logs import WRITERS, Call, Story, Turn
from tests.support.command import run_command
from tests.support.tables import ROOT

EXAMPLES = ROOT / "qrels_examples"


def read_command_cases(folder: Path) -> list[Any]:
    """The cases of all `commands.json` in a folder and those below it."""
    templates = [case for path in sorted(folder.rglob("commands.json")) for case in json.loads(path.read_text("utf-8"))]
    cases = [filled for case in templates for filled in _fill_in(case)]
    return [pytest.param(case, id=case["rule"], marks=[pytest.mark.slow] * case.get("slow", False)) for case in cases]


def _fill_in(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the case with each combination of the values of its words."""
    words = case.pop("for", {})
    for values in itertools.product(*words.values()):
        text = json.dumps(case | {"rule": ": ".join([case["rule"], ", ".join(values)]) if values else case["rule"]})
        for word, value in zip(words, values, strict=True):
            text = text.replace(f"${word}", json.dumps(value)[1:-1])
        yield json.loads(text)


def check_command_case(case: dict[str, Any], folder: Path) -> None:
    if "example" in case:
        shutil.copytree(EXAMPLES / case["example"], folder, dirs_exist_ok=True)
    for name, content in case.get("files", {}).items():
        _write(folder / name, content)
    places = {"here": str(folder), "examples": str(EXAMPLES), "root": str(ROOT), "version": gg.__version__}

    for step in case["steps"]:
        before = _read_all(folder)
        done = run_command(*shlex.split(Template(step["run"]).substitute(places)), cwd=folder)
        assert done.returncode == step.get("status", 0), done.stderr
        texts = {"stdout": done.stdout, "stderr": done.stderr}
        for name, text in texts.items():
            _check(text, {key: step[f"{name}{key}"] for key in ("", *_CHECKS) if f"{name}{key}" in step}, places)
        for key in ("", *_CHECKS):
            for name, wanted in step.get(f"written{key}", {}).items():
                _check((folder / name).read_text("utf-8"), {key: wanted}, places)
        assert "Traceback" not in done.stderr
        assert not [name for name in step.get("not_written", []) if (folder / name).exists()]
        assert _read_all(folder) == before or step.get("changes", True)
        if "folder_has" in step:
            assert sorted(path.name for path in folder.iterdir()) == step["folder_has"]
        if "same_stdout" in step:
            repetition = run_command(*shlex.split(Template(step["same_stdout"]).substitute(places)), cwd=folder)
            assert done.stdout == repetition.stdout != ""


_CHECKS = ("_is", "_lacks", "_matches", "_counts", "_cells", "_json")


def _check(text: str, wanted: dict[str, Any], places: dict[str, str]) -> None:
    assert text == Template(wanted.get("_is", text.replace("$", "$$"))).safe_substitute(places)
    for part in wanted.get("", []):
        assert Template(part).safe_substitute(places) in text
    for part in wanted.get("_lacks", []):
        assert part not in text
    for pattern in wanted.get("_matches", []):
        assert re.search(pattern, text), (pattern, text)
    for part, count in wanted.get("_counts", {}).items():
        assert text.count(part) == count, (part, text)
    if "_cells" in wanted:
        rows = [line.split("│")[1:-1] for line in text.splitlines() if "│" in line]
        assert [[cell.strip() for cell in row] for row in rows] == wanted["_cells"]
    for name, value in wanted.get("_json", {}).items():
        content = json.loads(text) if text[:2] in ("{\n", "[\n") else [*map(json.loads, text.splitlines())]
        is_number = isinstance(value, float) or (isinstance(value, list) and {*map(type, value)} == {float})
        assert _look_up(content, name.split(".")) == (pytest.approx(value) if is_number else value), name


def _look_up(value: Any, path: list[str]) -> Any:
    for k, part in enumerate(path):
        if part == "*":
            return [_look_up(member, path[k + 1 :]) for member in value]
        value = value[int(part) if isinstance(value, list) else part]
    return value


def _write(path: Path, content: Any) -> None:
    if isinstance(content, dict) and "link" in content:
        path.symlink_to(path.parent / content["link"])
    elif isinstance(content, dict) and "hardlink" in content:
        path.hardlink_to(path.parent / content["hardlink"])
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text(_make_text(content), "utf-8")


def _make_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(_make_text, content))
    if "searches" in content:
        story = Story([Turn([[Call(results)] for results in content["searches"]])])
        return WRITERS[content["in"]][0](story)
    if "repeat" in content:
        first = content.get("from", 1)
        return "".join(content["repeat"].format(k=k) for k in range(first, first + content["times"]))
    text = (EXAMPLES / content["copy"]).read_text("utf-8")
    for old, new in content.get("replace", {}).items():
        text = text.replace(old, new)
    return text


def _read_all(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
