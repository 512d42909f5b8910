"""Queries of several systems are joined by id or question, and systems that do not join give no comparison."""

from __future__ import annotations

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
    return Story([Turn([[Call(docs(*found))] for found in searches], question)])


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


def test_equal_ids_join_and_queries_of_one_system_are_counted(tmp_path: Path) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Who?", "a", query_id="q1"), _record("Why?", "b", query_id="q2"))
    new = _log(tmp_path / "new.jsonl", _record(None, "c", query_id="q1"), _record("When?", "d", query_id="q3"))
    seen: list[Summary] = []
    results = read_traces({"old": old, "new": new}, report=seen.append)
    assert _ids(results, "new") == ["q1", "q3"]
    assert "queries of several systems: 1 joined by id, 0 joined by question, 2 in one system only" in str(seen[0])


def test_a_question_that_a_system_was_asked_twice_joins_nothing(tmp_path: Path) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Who?", "a", query_id="q1"), _record("Where?", "a", query_id="q3"))
    new = _log(
        tmp_path / "new.jsonl",
        _record("Who?", "c", query_id="s1"), _record("who? ", "d", query_id="s2"), _record("Where?", "d", query_id="s3"),
    )  # fmt: skip
    assert _ids(read_traces({"old": old, "new": new}), "new") == ["s1", "s2", "q3"]
    assert _ids(read_traces({"new": new, "old": old}), "old") == ["q1", "s3"]


def test_questions_join_in_nfkc_without_case_and_white_space_and_not_by_the_last_word_of_a_conversation(
    tmp_path: Path,
) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Stra\u00dfe \uff21 \ufb01ne", "a", query_id="q1"))  # ß, fullwidth A, fi
    new = _log(tmp_path / "new.jsonl", _record(" STRASSE\u00a0a\tfine ", "a", query_id="s1"))
    assert _ids(read_traces({"old": old, "new": new}), "new") == ["q1"]

    def talk(query_id: str, first: str) -> dict[str, Any]:
        turns = [{"user": text, "steps": _record(None, "a")["steps"]} for text in (first, "yes")]
        return {"goodgain_trace": 1, "query_id": query_id, "turns": turns}

    old = _log(tmp_path / "old.jsonl", talk("q1", "Shall I look for dams?"), talk("q2", "Or ice?"))
    new = _log(tmp_path / "new.jsonl", talk("s1", "Or ice?"))
    assert _ids(read_traces({"old": old, "new": new}), "new") == ["q2"], "each conversation ends with yes"
    assert _ids(read_traces({"old": old, "new": new}, turns="all"), "new") == ["q2_1", "q2_2"]


def test_one_id_with_two_questions_is_an_error_that_shows_both_unless_the_caller_gave_the_id(tmp_path: Path) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Who?", "a", query_id="q1"))
    new = _log(tmp_path / "new.jsonl", _record("Where?", "b", query_id="q1"))
    with pytest.raises(
        InputError, match=r"'q1' has two questions: 'who\?' in .*old\.jsonl.*'where\?' in .*new\.jsonl.*query_ids="
    ):
        read_traces({"old": old, "new": new})
    err = goodgain("convert", f"old={old}", f"new={new}", "-o", tmp_path / "{system}.run", status=2)[1]
    assert "'who?'" in err and "'where?'" in err and len(err.splitlines()) == 1
    assert not list(tmp_path.glob("*.run"))
    table = tmp_path / "ids.csv"
    table.write_text("query_id,log\nq1,q1\n")
    assert _ids(read_traces({"old": old, "new": new}, query_ids=table), "new") == ["q1"]
    table.write_text("query_id,text\nq1,who?\nq2,WHERE?\n")
    with pytest.warns(GoodgainNotice, match="share no query"):
        assert _ids(read_traces({"old": old, "new": new}, query_ids=table), "new") == ["q2"]
    for path, question in ((old, "Who?"), (new, "Where?")):
        _log(path, _record(question, "a", metadata={"qid": "m1"}))
    assert _ids(read_traces({"old": old, "new": new}, query_id="/metadata/qid"), "new") == ["m1"]


def test_a_table_that_names_the_queries_of_one_system_decides_although_the_other_asked_otherwise(
    tmp_path: Path,
) -> None:
    old = _log(tmp_path / "old.jsonl", _record("When was the dam built?", "a", query_id="q1"))
    new = _log(tmp_path / "new.jsonl", _record("The dam: since when?", "b", query_id="s1"))
    table = pl.DataFrame({"query_id": ["q1"], "log": ["s1"]})
    with pytest.warns(GoodgainNotice, match=r"does not name all queries; 1 keep their ids: q1\."):
        assert _ids(read_traces({"old": old, "new": new}, query_ids=table), "new") == ["q1"]
    other = _log(tmp_path / "other.jsonl", _record("Who?", "c", query_id="q1"))
    with pytest.raises(InputError, match=r"'q1' has two questions: 'when was .* 'who\?' in .*other"):
        read_traces({"new": new, "old": old, "other": other}, query_ids=table)
    new = _log(tmp_path / "new.jsonl", _record("The dam: since when?", "b"))
    with pytest.warns(GoodgainNotice, match="was not used where logs have query ids of their own: 1, such as 'q2'"):
        _log(tmp_path / "more.jsonl", _record("Who?", "a", query_id="q2"))
        given = {"old": [old, tmp_path / "more.jsonl"], "new": new}
        assert _ids(read_traces(given, query_id="q1"), "new") == ["q1"]


def test_replicates_of_a_system_join_by_question_and_may_have_simulated_users(tmp_path: Path) -> None:
    log = _log(
        tmp_path / "log.jsonl",
        _record("Who?", "a", query_id="u1", system="s", repeat=1), _record("who?", "b", query_id="u2", system="s", repeat=2),
        _record("yes", "b", query_id="t", system="s", repeat=1), _record("no", "b", query_id="t", system="s", repeat=2),
    )  # fmt: skip
    seen: list[Summary] = []
    results = read_traces(log, report=seen.append)
    assert sorted(results.select("replicate", "query_id").rows()) == [("1", "t"), ("1", "u1"), ("2", "t"), ("2", "u1")]
    assert "queries of several runs: 1 joined by id, 1 joined by question, 0 in one run only" in str(seen[0])


def test_ids_and_questions_that_contradict_each_other_are_an_error(tmp_path: Path) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Who?", "a", query_id="q1"))
    new = _log(tmp_path / "new.jsonl", _record("Who?", "b", query_id="s1"), _record(None, "c", query_id="q1"))
    with pytest.raises(InputError, match=r"line 2: the queries 's1' and 'q1' of one system would both be 'q1'"):
        read_traces({"old": old, "new": new})


def test_two_queries_of_a_system_never_become_one_by_way_of_two_other_systems(tmp_path: Path) -> None:
    first = _log(tmp_path / "first.jsonl", _record("Why?", "a", query_id="a1"))
    second = _log(tmp_path / "second.jsonl", _record(None, "b", query_id="x"), _record("Why?", "c", query_id="b1"))
    third = _log(tmp_path / "third.jsonl", _record("Why?", "d", query_id="x"))
    with pytest.raises(InputError, match=r"second.*line 2: the queries 'x' and 'b1' of one system would both be 'a1'"):
        read_traces({"first": first, "second": second, "third": third})


def test_the_time_of_many_turns_does_not_grow_with_their_square(tmp_path: Path) -> None:
    def measure(turns: int) -> float:
        listed = [{"user": f"Question {number}", "steps": []} for number in range(turns)]
        log = _log(tmp_path / "log.jsonl", {"goodgain_trace": 1, "turns": listed})
        return measure_seconds(lambda: read_traces(log, turns="all"))

    assert not find_faster_growth(measure, 500)


# Tables of ids


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ids.csv", "query_id,log\nq1,one\nq2,second.jsonl\nq3,session-3\n"),
        ("ids.tsv", "log\tquery_id\none\tq1\nsecond.jsonl\tq2\nsession-3\tq3\n"),
        (
            "ids.jsonl",
            '{"query_id": "q1", "text": "who?"}\n{"query_id": "q2", "text": "Where?"}\n'
            '{"query_id": "q3", "text": "Why?"}\n',
        ),
    ],
)  # fmt: skip
def test_a_table_names_queries_by_their_log_s_id_file_or_session_or_by_their_question(
    tmp_path: Path, name: str, text: str
) -> None:
    first = _log(tmp_path / "first.jsonl", _record("Who?", "a", query_id="one"))
    second = _log(tmp_path / "second.jsonl", _record("Where?", "b", query_id="two"))
    third = _log(tmp_path / "third.jsonl", _record("Why?", "c", session_id="session-3"))
    (tmp_path / name).write_text(text)
    results = read_traces([first, second, third], query_ids=tmp_path / name)
    assert results["query_id"].to_list() == ["q1", "q2", "q3"]
    as_frame = pl.DataFrame({"query_id": ["x"], "log": ["one"]})
    with pytest.warns(GoodgainNotice, match=r"does not name all queries; 2 keep their ids: two, third-1\. Add"):
        assert read_traces([first, second, third], query_ids=as_frame)["query_id"][0] == "x"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("qid,log\nq1,a\n", "needs a header with query_id and text, or query_id and log; it has"),
        ("query_id,log\nq1,a\nq2,a\n", "row 3: the log 'a' has two ids; keep one"),
        ("query_id,text\nq1,Who?\nq2,who?\n", "row 3: the text 'who\\?' has two ids"),
        ("query_id,text\nq1,\n", "row 2 .* has no text"),
    ],
)
def test_a_table_that_does_not_name_queries_is_an_error(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "ids.csv").write_text(text)
    with pytest.raises(InputError, match=rf"ids\.csv.*{what}"):
        read_traces(_log(tmp_path / "log.jsonl", _record("Who?", "a")), query_ids=tmp_path / "ids.csv")


def test_query_id_is_never_ignored_without_a_word(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", _record("Who?", "a", query_id="own"))
    _, err = goodgain("convert", log, "-o", tmp_path / "a.run", "--query-id", "q1")
    assert "--query-id was not used where logs have query ids of their own: 1, such as 'own'" in err
    assert read_traces(log, query_id="own")["query_id"].to_list() == ["own"]  # says the same: no notice
    assert read_traces(log, query_id="/query_id")["query_id"].to_list() == ["own"]


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


def test_systems_that_share_no_query_are_a_notice_of_the_conversion(tmp_path: Path) -> None:
    old = _log(tmp_path / "old.jsonl", _record("Who?", "a", query_id="q1"))
    new = _log(tmp_path / "new.jsonl", _record("Where?", "b", query_id="s1"))
    with pytest.warns(GoodgainNotice, match="the systems share no query: neither ids nor questions are the same"):
        read_traces({"old": old, "new": new})
