"""Tools that number the hits of each search 1, 2, 3: their ids are not those of documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.logs.traces import read_results
from tests.cli.test_command_line import goodgain

from .logs import Call, Story, Turn, jsonl, openai_chat

Hits = list[dict[str, Any]]

#: The hits of two searches that have one id.
_IDS = json.loads(Path(__file__).with_suffix(".json").read_text())

NUMBERED = [
    [{"id": 1, "url": "http://a.org"}, {"id": 2, "url": "http://b.org"}],
    [{"id": 1, "url": "http://c.org"}, {"id": 2, "url": "http://d.org"}],
]
PAGES = [["https://a.org", "https://b.org"], ["https://c.org", "https://d.org"]]
ALL_PAGES = [*PAGES[0], *PAGES[1]]
LONG = "The wind carries sand up the slope of a dune and lets it fall on the other side."


def _write(path: Path, searches: list[Hits], write: Callable[[Story], str] = openai_chat) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(write(Story([Turn([[Call(found)] for found in searches])])))
    return path


def _documents(run: Path) -> list[list[str]]:
    """The documents of each iteration."""
    rows = [line.split() for line in run.read_text().splitlines()]
    return [[row[2] for row in rows if row[1] == number] for number in dict.fromkeys(row[1] for row in rows)]


@pytest.mark.parametrize(("name", "write"), [("q1.json", openai_chat), ("q1.jsonl", jsonl)])
def test_ids_that_each_search_issues_again_are_no_documents(
    tmp_path: Path, name: str, write: Callable[[Story], str]
) -> None:
    log, run = _write(tmp_path / name, NUMBERED, write), tmp_path / "a.run"
    _, err = goodgain("convert", log, "-o", run)
    assert _documents(run) == PAGES
    (notice,) = [line for line in err.splitlines() if line.startswith("notice")]
    assert "in 1 query an id stands for different documents ('1' of " in notice
    assert ": http://a.org and http://c.org): deduplication identified the documents" in notice
    (tmp_path / "qrels").write_text("".join(f"{run.read_text().split()[0]} 0 {page} 2\n" for page in ALL_PAGES))
    out, _ = goodgain("evaluate", tmp_path / "qrels", run, "SRR NumUnique")
    assert dict(line.split("\t") for line in out.splitlines()) == {"SRR": "0.0000", "NumUnique": "4.0000"}


def test_the_documents_are_those_that_dedup_finds(tmp_path: Path) -> None:
    log = _write(tmp_path / "q1.json", NUMBERED)
    goodgain("convert", log, "-o", tmp_path / "a.run", "--results", tmp_path / "r.jsonl")
    _, err = goodgain("dedup", tmp_path / "r.jsonl", "-o", tmp_path / "d.jsonl")
    assert "4 results, 4 documents" in err
    for name in ("r.jsonl", "d.jsonl"):
        assert read_results(tmp_path / name)["document"].to_list() == ALL_PAGES


def test_without_deduplication_the_ids_stay_with_a_notice(tmp_path: Path) -> None:
    _, err = goodgain("convert", _write(tmp_path / "q1.json", NUMBERED), "-o", tmp_path / "a.run", "--dedup", "none")
    assert _documents(tmp_path / "a.run") == [["1", "2"], ["1", "2"]]
    assert "each id counts as one document; pass --dedup to identify the documents" in err


def test_a_deduplication_that_is_asked_for_needs_no_notice(tmp_path: Path) -> None:
    _, err = goodgain("convert", _write(tmp_path / "q1.json", NUMBERED), "-o", tmp_path / "a.run", "--dedup", "id")
    assert _documents(tmp_path / "a.run") == PAGES
    assert "notice" not in err


@pytest.mark.parametrize("searches", _IDS["one document"])
def test_an_id_with_other_passages_and_spellings_of_one_url_stays_the_document(
    tmp_path: Path, searches: list[Hits]
) -> None:
    _, err = goodgain("convert", _write(tmp_path / "q1.json", searches), "-o", tmp_path / "a.run")
    assert _documents(tmp_path / "a.run") == [[str(searches[0][0]["id"])]] * 2
    assert "notice" not in err


@pytest.mark.parametrize("searches", _IDS["different documents"])
def test_what_dedup_proves_different_is_not_one_document(tmp_path: Path, searches: list[Hits]) -> None:
    _, err = goodgain("convert", _write(tmp_path / "q1.json", searches), "-o", tmp_path / "a.run")
    (first,), (second,) = _documents(tmp_path / "a.run")
    assert first != second
    assert "an id stands for different documents" in err


def test_only_queries_with_such_an_id_are_deduplicated(tmp_path: Path) -> None:
    stories = [NUMBERED, [NUMBERED[0], NUMBERED[0]], NUMBERED[:1]]
    for number, searches in enumerate(stories):
        _write(tmp_path / "logs" / f"q{number}.json", searches)
    _, err = goodgain("convert", tmp_path / "logs", "-o", tmp_path / "a.run")
    ids = [line.split()[2] for line in (tmp_path / "a.run").read_text().splitlines()]
    assert ids == [*ALL_PAGES, "1", "2", "1", "2", "1", "2"]
    assert "in 1 query an id" in err


def test_systems_of_one_query_share_their_documents(tmp_path: Path) -> None:
    old = _write(tmp_path / "old" / "q1.json", NUMBERED[:1])
    new = _write(tmp_path / "new" / "q1.json", [[{"id": 1, "url": "http://b.org"}, {"id": 2, "url": "http://a.org"}]])
    _, err = goodgain("convert", f"old={old}", f"new={new}", "-o", tmp_path / "{system}.run")
    assert _documents(tmp_path / "old.run") == PAGES[:1]
    assert _documents(tmp_path / "new.run") == [PAGES[0][::-1]]
    assert err.count("an id stands for different documents") == 1


def test_later_logs_join_the_documents_of_earlier_results(tmp_path: Path) -> None:
    old, run = _write(tmp_path / "old" / "q1.json", NUMBERED), tmp_path / "a.run"
    goodgain("convert", old, "-o", run, "--results", tmp_path / "old.jsonl")
    new = _write(tmp_path / "new" / "q1.json", [[{"id": 1, "url": "http://d.org"}, {"id": 2, "url": "http://e.org"}]])
    goodgain("convert", new, "-o", run, "--with", tmp_path / "old.jsonl")
    assert _documents(run) == [["https://d.org", "https://e.org"]]


def test_a_later_log_that_issues_ids_of_earlier_results_again_is_deduplicated(tmp_path: Path) -> None:
    old, run = _write(tmp_path / "old" / "q1.json", NUMBERED[:1]), tmp_path / "a.run"
    goodgain("convert", old, "-o", run, "--results", tmp_path / "old.jsonl")
    new = _write(tmp_path / "new" / "q1.json", [[{"id": 1, "url": "http://b.org"}, {"id": 2, "url": "http://e.org"}]])
    _, err = goodgain("convert", new, "-o", run, "--with", tmp_path / "old.jsonl")
    assert _documents(run) == [["2", "https://e.org"]], "earlier documents keep their names"
    assert "an id stands for different documents" in err


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_one_notice_counts_all_such_queries(tmp_path: Path, jobs: int) -> None:
    for number in range(3):
        _write(tmp_path / "logs" / f"q{number}.json", NUMBERED)
    bare = [[{"url": "http://a.org"}], [{"url": "http://a.org"}]]
    _write(tmp_path / "logs" / "q3.json", bare)
    _, err = goodgain("convert", tmp_path / "logs", "-o", tmp_path / "a.run", "--jobs", jobs)
    assert "in 3 queries an id stands for different documents ('1' of q0: " in err
    assert "the results of 1 query lack ids" in err


def test_an_example_names_the_query(tmp_path: Path) -> None:
    line = json.loads(jsonl(Story([Turn([[Call(found)] for found in NUMBERED])])))
    (tmp_path / "log.jsonl").write_text(json.dumps({**line, "query_id": "mine"}))
    _, err = goodgain("convert", tmp_path / "log.jsonl", "-o", tmp_path / "a.run")
    assert "('1' of mine: http://a.org and http://c.org)" in err
