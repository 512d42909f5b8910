"""Queries of several systems are joined by id or question, and systems that do not join give no comparison."""

from __future__ import annotations

import contextlib
import json
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, convert_traces, read_traces
from tests.cli.test_command_line import goodgain
from tests.support.seconds import find_faster_growth, measure_seconds

from .logs import Call, Story, Turn, anthropic, docs, openai_chat

#: Logs, how they are read, and the ids that their queries have, or an error.
CASES = json.loads(Path(__file__).with_name("query_joining.json").read_text("utf-8"))
#: What the two systems of the story were asked, and the documents that each search found; no list: it never searched.
DAM, SEA, ICE = "When was the  dam built?", "How deep is the sea?", "Why is ice blue?"
OLD = {DAM: [["a", "b"], ["c"]], SEA: [["d"]], ICE: []}
NEW = {
    "when was the dam built?": [["c", "x"]],
    "How deep\nis the sea?": [["e"], ["d", "e"]],
    "Why is ice blue?": [["f"]],
}
#: Judgments of these documents: good are a, c, d, e, f.
LABELS = {DAM: {"a": 3, "b": 0, "c": 2, "x": 1}, SEA: {"d": 4, "e": 2}, ICE: {"f": 3}}


def _story(question: str, searches: list[list[str]]) -> Story:
    return Story([Turn([[Call(docs(*search))] for search in searches], question)])


def _write_old(folder: Path) -> Path:
    """Chats of OpenAI's, one a file, whose names are the ids q1, q2, q3."""
    folder.mkdir()
    for number, (question, searches) in enumerate(OLD.items(), start=1):
        (folder / f"q{number}.json").write_text(openai_chat(_story(question, searches)))
    return folder


def _write_new(folder: Path) -> Path:
    """Chats of Anthropic's, one a file, whose names are ids of sessions; in another order."""
    folder.mkdir()
    for question, searches in reversed(NEW.items()):
        name = uuid.uuid5(uuid.NAMESPACE_URL, question)
        (folder / f"{name}.json").write_text(anthropic(_story(question, searches)))
    return folder


def _qrels(path: Path) -> Path:
    rows = [f"q{k} 0 {doc} {label}" for k, of in enumerate(LABELS.values(), start=1) for doc, label in of.items()]
    path.write_text("\n".join(rows) + "\n")
    return path


def _record(question: str | None, *docs: str, **more: Any) -> dict[str, Any]:
    """A trace of goodgain's own format with one search."""
    steps = [{"searches": [{"results": [{"doc_id": doc} for doc in docs]}], "input_tokens": 5}]
    return {"goodgain_trace": 1, **({"user": question} if question else {}), "steps": steps, **more}


def _log(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _ids(results: pl.DataFrame, system: str) -> list[str]:
    return results.filter(system=system)["query_id"].unique(maintain_order=True).to_list()


def test_two_logs_under_different_ids_go_from_convert_to_compare_and_give_the_numbers_counted_by_hand(
    tmp_path: Path,
) -> None:
    old, new = _write_old(tmp_path / "old"), _write_new(tmp_path / "new")
    run = tmp_path / "{system}.run"
    _, err = goodgain("convert", f"old={old}", f"new={new}", "-o", run, "--queries", tmp_path / "queries.jsonl")
    assert "queries of several systems: 0 joined by id, 3 joined by question, 0 in one system only" in err

    asked = [json.loads(line)["query_id"] for line in (tmp_path / "queries.jsonl").read_text().splitlines()]
    assert sorted(asked) == ["q1", "q2", "q3"]
    out, _ = goodgain(
        "compare", _qrels(tmp_path / "qrels.txt"), tmp_path / "old.run", tmp_path / "new.run", "-m", "CG NumGood SRR",
        "-o", "json",
    )  # fmt: skip
    means = {(row["measure"], row["system"]): row["mean"] for row in json.loads(out)["means"]}

    # old: 3 + 2 in q1, 4 in q2, nothing in q3; new: 2 in q1, 2 + 4 in q2 (e came twice), 3 in q3
    assert means["CG", "old"] == pytest.approx(9 / 3) and means["CG", "new"] == pytest.approx((2 + 6 + 3) / 3)
    assert means["NumGood", "old"] == pytest.approx(1.0) and means["NumGood", "new"] == pytest.approx((1 + 2 + 1) / 3)
    assert means["SRR", "old"] == 0 and means["SRR", "new"] == pytest.approx(1 / 3 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("deduplicate", [None, gg.deduplicate])
@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_results_costs_and_queries_have_the_ids_of_the_first_system(
    tmp_path: Path, deduplicate: Any, jobs: int
) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Who?", "a", query_id="q1"), _record("Where?", "b", query_id="q2"))
    new = _log(tmp_path / "new.jsonl", _record("WHERE?", "c", query_id="s1"), _record("who?", "d", query_id="s2"))
    names = {name: tmp_path / f"{name}.jsonl" for name in ("results", "costs", "queries")}
    done = convert_traces(
        {"old": old, "new": new}, tmp_path / "{system}.run", deduplicate=deduplicate, jobs=jobs, **names
    )
    rows = [tuple(line.split()[:3]) for line in done.runs["new"].read_text().splitlines()]
    assert sorted(rows) == [("q1", "1", "d"), ("q2", "1", "c")]

    for path in names.values():
        assert {json.loads(line)["query_id"] for line in path.read_text().splitlines()} == {"q1", "q2"}
    picked = convert_traces({"old": old, "new": new}, tmp_path / "one.run", system="new", deduplicate=deduplicate)
    assert picked.runs["new"].read_text() == done.runs["new"].read_text()

    results, costs = read_traces({"old": old, "new": new}, costs=True)
    assert _ids(results, "new") == _ids(costs, "new") == ["q2", "q1"]


def _make(given: dict[str, Any]) -> dict[str, Any]:
    """The record of a case: a question or turns, the documents of each search, and further fields."""
    values = {key: value for key, value in given.items() if key not in ("user", "docs", "turns")}
    record = _record(given.get("user"), *given["docs"], **values)
    if "turns" in given:
        steps = record.pop("steps")
        record["turns"] = [{"user": text, "steps": steps} for text in given["turns"]]
    return record


@pytest.mark.each
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_queries_are_joined_as_the_case_says(case: dict[str, Any], tmp_path: Path) -> None:
    paths: dict[Any, Path] = {
        name: _log(tmp_path / f"{name}.jsonl", *map(_make, log)) for name, log in case["logs"].items()
    }
    for name, text in case.get("files", {}).items():
        (tmp_path / name).write_text(text)

    for read in case["reads"]:
        options: dict[str, Any] = dict(read.get("options", {}))
        if "query_ids" in options:
            table = options["query_ids"]
            options["query_ids"] = (
                pl.DataFrame(table) if isinstance(table, dict) else table.replace("$here", str(tmp_path))
            )
        given = _resolve(read.get("given", {name: name for name in paths}), paths)
        seen: list[Summary] = []
        if "error" in read:
            with pytest.raises(InputError, match=read["error"]):
                read_traces(given, **options)
            continue
        with pytest.warns(GoodgainNotice, match=read["notice"]) if "notice" in read else contextlib.nullcontext():
            results = read_traces(given, report=seen.append, **options)
        assert {system: _ids(results, system) for system in read.get("ids", {})} == read.get("ids", {})
        found = results["query_id"].to_list()
        assert found == read.get("all ids", found)
        assert read.get("summary", "") in str(seen[0])
        if "replicates" in read:
            assert sorted(results.select("replicate", "query_id").rows()) == list(map(tuple, read["replicates"]))


def _resolve(given: Any, paths: dict[Any, Path]) -> Any:
    """Names of logs as their paths."""
    if isinstance(given, dict):
        return {system: _resolve(of, paths) for system, of in given.items()}
    return [paths[name] for name in given] if isinstance(given, list) else paths[given]


def test_a_refusal_of_the_command_shows_both_questions_and_writes_nothing(tmp_path: Path) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Who?", "a", query_id="q1"))
    new = _log(tmp_path / "new.jsonl", _record("Where?", "b", query_id="q1"))
    err = goodgain("convert", f"old={old}", f"new={new}", "-o", tmp_path / "{system}.run", status=2)[1]
    assert "'who?'" in err and "'where?'" in err and len(err.splitlines()) == 1
    assert not list(tmp_path.glob("*.run"))


def test_the_time_of_many_turns_does_not_grow_with_their_square(tmp_path: Path) -> None:
    def measure(turns: int) -> float:
        listed = [{"user": f"Question {number}", "steps": []} for number in range(turns)]
        log = _log(tmp_path / "log.jsonl", {"goodgain_trace": 1, "turns": listed})
        return measure_seconds(lambda: read_traces(log, turns="all"))

    assert not find_faster_growth(measure, 500)


def test_query_id_is_never_ignored_without_a_word(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", _record("Who?", "a", query_id="own"))
    _, err = goodgain("convert", log, "-o", tmp_path / "a.run", "--query-id", "q1")
    assert "--query-id was ignored for 1 query that has an id in the logs, such as 'own'" in err


# Later conversions


def test_earlier_queries_join_by_question_and_without_them_ids_join_and_the_summary_says_so(tmp_path: Path) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Who?", "a", query_id="q1"), _record("Where?", "b", query_id="q2"))
    new = _log(tmp_path / "new.jsonl", _record("who?", "c", query_id="s1"), _record("Where?", "d", query_id="q2"))
    results, queries = tmp_path / "results.jsonl", tmp_path / "queries.jsonl"
    goodgain("convert", f"old={old}", "-o", tmp_path / "old.run", "--results", results, "--queries", queries)
    later = ("convert", f"new={new}", "-o", tmp_path / "new.run", "--with", results)
    _, err = goodgain(*later)
    assert "1 joined by id (--earlier-queries joins by question too), 0 joined by question, 1 in one system" in err
    assert {line.split()[0] for line in (tmp_path / "new.run").read_text().splitlines()} == {"s1", "q2"}

    _, err = goodgain(*later, "--earlier-queries", queries)
    assert "queries of several systems: 1 joined by id, 1 joined by question, 0 in one system only" in err
    assert {line.split()[0] for line in (tmp_path / "new.run").read_text().splitlines()} == {"q1", "q2"}

    other = _log(tmp_path / "new.jsonl", _record("Something else?", "c", query_id="q1"))
    err = goodgain("convert", f"new={other}", "-o", tmp_path / "n.run", "--earlier-queries", queries, status=2)[1]
    assert "'q1' has two questions: 'who?'" in err and "queries.jsonl" in err


def test_earlier_queries_with_two_questions_under_one_id_are_an_error(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", _record("Who?", "a", query_id="s1"))
    queries = tmp_path / "queries.jsonl"  # those of two conversions in one file
    queries.write_text('{"query_id": "q1", "text": "Who?"}\n{"query_id": "q1", "text": "Where?"}\n')
    with pytest.raises(InputError, match=r"queries\.jsonl: the query id 'q1' has two questions, 'who\?' and 'where\?'"):
        convert_traces(log, tmp_path / "a.run", earlier_queries=queries)
