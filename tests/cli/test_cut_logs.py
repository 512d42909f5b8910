"""A log that was cut in the middle goes from convert to compare without a wrong sentence."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.counts import some_of
from tests.support.notices import collect_notices

_QUERIES = [f"q{k:02}" for k in range(1, 21)]
#: new finds both good documents of each query, old one of them. q02 never searched in new.
_FOUND = {"old": ["a"], "new": ["a", "b"]}


def _record(system: str, query_id: str) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": json.dumps({"query": query_id})}}
    found = json.dumps({"results": [{"id": f"{query_id}-{name}", "title": name} for name in _FOUND[system]]})
    searched = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": found},
    ]
    asked, told = {"role": "user", "content": f"Question {query_id}?"}, {"role": "assistant", "content": "Answer."}
    return {"query_id": query_id, "messages": [asked, *searched * ((system, query_id) != ("new", "q02")), told]}


def _write_lines(path: Path) -> set[str]:
    """Cut six lines in the middle; return the lost queries that convert can name."""
    lines = [json.dumps(_record("new", query_id)) for query_id in _QUERIES]
    path.write_text("\n".join(line[:200] if k in (3, 7, 11, 13, 15, 17) else line for k, line in enumerate(lines)))
    return {"q04", "q08", "q12", "q14", "q16", "q18"}


def _write_list(path: Path) -> set[str]:
    """Cut a list in the middle of its fifteenth member: the last five queries are not in the log."""
    text = json.dumps([_record("new", query_id) for query_id in _QUERIES], indent=1)
    path.write_text(text[: text.index('"q15"') + 200])
    return {"q15"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "output"), some_of([(_write_lines, "{system}.run"), (_write_list, "new.jsonl")], every=2)
)
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_a_log_that_was_cut_is_compared_without_a_wrong_sentence(tmp_path: Path, write: Any, output: str) -> None:
    log = tmp_path / ("log.jsonl" if write is _write_lines else "log.json")
    unread = write(log)
    old = tmp_path / "old.log.json"
    old.write_text(json.dumps([_record("old", query_id) for query_id in _QUERIES]))
    qrels = tmp_path / "qrels.txt"
    gg.write_qrels({query_id: {f"{query_id}-a": 2, f"{query_id}-b": 2} for query_id in _QUERIES}, qrels)

    if "{" in output:
        logs = [f"old={old}", f"new={log}"]
        assert run_command("convert", *logs, "-o", tmp_path / output, "--errors", "skip").returncode == 0
        listed = "all.run.unread"
    else:
        for one, name in ((old, output.replace("new", "old")), (log, output)):
            assert run_command("convert", one, "-o", tmp_path / name, "--errors", "skip").returncode == 0
        listed = f"{output}.unread"

    runs = [tmp_path / output.replace("{system}", "new").replace("new", name) for name in ("old", "new")]
    absent = [query_id for query_id in _QUERIES if query_id not in _read_ids(runs[1])]
    assert unread <= {*absent} and len(absent) == 6

    reports = ("--junit", tmp_path / "gate.xml", "--comment", tmp_path / "c.md", "--require", "CG@2>=baseline")
    done = run_command("compare", qrels, *runs, "-m", "CG@2 SRR@2", *reports, "-o", "table")
    systems = dict(zip(("old", "new"), runs, strict=True))
    comparison = gg.compare(qrels, systems, "CG@2 SRR@2", baseline="old")
    gg.report(qrels, systems, tmp_path / "report.html", "CG@2 SRR@2")
    shown = {form: comparison.to_text(form) for form in ("markdown", "latex", "json")} | {
        "table": done.stdout + done.stderr
    }
    shown |= {name: (tmp_path / name).read_text() for name in ("gate.xml", "c.md", "report.html")}

    for form, text in shown.items():
        said = re.sub(r"\s+", " ", text.replace("\\", ""))
        assert (
            f"{len(absent)} queries are absent from new, whose run has no row of them: {', '.join(absent[:3])}" in said
        ), form
        assert f"convert could not read {len(unread)} of them ({listed})." in said, form
        assert "1 query never searched in new: q02 (counted as having no results)." in said, form
        assert "absent from old" not in said and "never searched in old" not in said, form
        assert "CG@2 of new against old is unclear, without them better" in said, form
        assert "stops at different" not in said and "returned nothing" not in said, form
        for query_id in absent:  # no other sentence says that an absent query never searched
            assert not re.search(rf"never searched[^.]*{query_id}", said), form

    without = gg.compare(qrels, systems, "CG@2", missing="absent")
    assert without.pairs.select("verdict", "queries").row(0) == ("better", 14)


def _read_ids(path: Path) -> set[str]:
    run = gg.read_run(path)
    return {*run.rows.get_column("query_id"), *run.never_searched}


@pytest.fixture
def three_queries(tmp_path: Path) -> dict[str, Any]:
    """A run that lacks q2 and q3 beside one with all queries."""
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 d 2\n" for q in ("q1", "q2", "q3\u2028x")))
    (tmp_path / "old.run").write_text("".join(f"{q} 1 d 1 1 t\n" for q in ("q1", "q2", "q3\u2028x")))
    (tmp_path / "new.run").write_text("q1 1 d 1 1 t\n")
    return {"old": tmp_path / "old.run", "new": tmp_path / "new.run"}


def _find_notices(systems: dict[str, Any]) -> list[str]:
    with collect_notices() as notices:
        gg.compare(systems["old"].with_name("qrels.txt"), systems, "CG@1")
    return [*map(str, notices)]


def test_an_id_with_a_line_separator_of_unicode_is_one_id_of_the_list(three_queries: dict[str, Any]) -> None:
    three_queries["new"].with_name("new.run.unread").write_text("q2\nq3\u2028x\n", "utf-8")
    assert any("convert could not read 2 of them (new.run.unread)" in text for text in _find_notices(three_queries))


@pytest.mark.parametrize("kind", ["pipe", "folder", "not UTF-8", "broken link"])
def test_a_list_of_unread_queries_that_cannot_be_used_is_said_and_not_waited_for(
    kind: str, three_queries: dict[str, Any]
) -> None:
    path = three_queries["new"].with_name("new.run.unread")
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "broken link":
            path.symlink_to("nowhere")
        case _:
            path.write_bytes(b"q2\nq\xff\n")
    reason = "is not UTF-8" if kind == "not UTF-8" else "is not a file"
    said = f"new.run.unread: {reason}, so the comparison does not say which queries convert could not read"

    assert sum(said in text for text in _find_notices(three_queries)) == 1
