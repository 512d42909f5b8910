"""Logs of several systems make one set of documents: in one conversion, or one after the other with earlier results."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.dedup import deduplicate
from goodgain.errors import GoodgainNotice, InputError
from goodgain.traces import convert_traces, read_results, read_traces, to_run
from tests.cli.test_command_line import goodgain

from .conftest import by_iteration
from .logs import Call, Story, Turn, docs, inspect_ai, openai_chat

OLD = ["https://dw.com/dresden", "https://dw.com/bonn?utm_source=mail", "https://dw.com/ulm"]
NEW = ["https://m.dw.com/dresden/", "http://www.dw.com/bonn", "https://dw.com/jena"]


def _pages(urls: list[str]) -> list[dict[str, str]]:
    return [{"url": url, "title": f"Title of {url.rsplit('/')[3]}"} for url in urls]


def _log(path: Path, *urls: list[str], model: str | None = None) -> Path:
    """A log of one trace, a search a list of URLs."""
    messages = json.loads(openai_chat(Story([Turn([[Call(_pages(found))] for found in urls])])))
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"model": model, "messages": messages} if model else messages))
    return path


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, Path]:
    """The log of each of two systems for the query q1, whose URLs differ by variants."""
    return {"old": _log(tmp_path / "old" / "q1.json", OLD), "new": _log(tmp_path / "new" / "q1.json", NEW, OLD[:1])}


def _documents(run: Path) -> list[str]:
    return [line.split()[2] for line in run.read_text().splitlines()]


JOINT = {
    "old": ["http://www.dw.com/bonn", "https://dw.com/dresden", "https://dw.com/ulm"],
    "new": ["http://www.dw.com/bonn", "https://dw.com/dresden", "https://dw.com/dresden", "https://dw.com/jena"],
}


def test_logs_converted_in_one_call_give_one_document_each(tmp_path: Path, logs: dict[str, Path]) -> None:
    with pytest.warns(GoodgainNotice, match="results of 1 queries lack ids"):
        done = convert_traces(logs, tmp_path / "{system}.run", results=tmp_path / "r.jsonl", deduplicate=deduplicate)
    assert {name: path.name for name, path in done.runs.items()} == {"old": "old.run", "new": "new.run"}
    assert {name: sorted(_documents(path)) for name, path in done.runs.items()} == JOINT
    results = read_results(tmp_path / "r.jsonl")
    assert results.group_by("system", maintain_order=True).len().rows() == [("old", 3), ("new", 4)]
    for name, path in done.runs.items():
        assert to_run(results, system=name)["doc_id"].to_list() == _documents(path), "the results say what the run says"


def test_logs_converted_one_after_the_other_give_the_documents_of_the_first(
    tmp_path: Path, logs: dict[str, Path]
) -> None:
    common = {"deduplicate": partial(deduplicate, policy="standard")}
    with pytest.warns(GoodgainNotice, match="lack ids"):
        convert_traces(logs["old"], tmp_path / "old.run", results=tmp_path / "old.jsonl", tag="old", **common)
        convert_traces(
            logs["new"], tmp_path / "new.run", results=tmp_path / "new.jsonl", earlier=tmp_path / "old.jsonl", **common
        )
    old, new = _documents(tmp_path / "old.run"), _documents(tmp_path / "new.run")
    assert old == ["https://dw.com/dresden", "https://dw.com/bonn", "https://dw.com/ulm"]
    assert new == ["https://dw.com/dresden", "https://dw.com/bonn", "https://dw.com/jena", "https://dw.com/dresden"]
    third = _log(tmp_path / "third" / "q1.json", ["http://dw.com/jena/", "http://m.dw.com/ulm"])
    with pytest.warns(GoodgainNotice, match="lack ids"):
        earlier = [tmp_path / "old.jsonl", tmp_path / "new.jsonl"]
        convert_traces(third, tmp_path / "third.run", earlier=earlier, **common)
    assert _documents(tmp_path / "third.run") == ["https://dw.com/jena", "https://dw.com/ulm"]


def test_the_program_converts_together_apart_and_with_earlier_results_and_compare_warns(tmp_path: Path) -> None:
    for number in (1, 2):
        _log(tmp_path / "old" / f"q{number}.json", OLD)
        _log(tmp_path / "new" / f"q{number}.json", NEW)
    old, new = tmp_path / "old", f"new={tmp_path}/new/*.json"  # a pattern behind NAME= is not the shell's
    together = tmp_path / "together"
    together.mkdir()
    goodgain("convert", f"old={old}", new, "-o", together / "{system}.run")
    (tmp_path / "qrels").write_text(
        "".join(f"q{n} 0 {url} 3\n" for n in (1, 2) for url in set(_documents(together / "old.run")))
    )

    goodgain("convert", f"old={old}", "-o", tmp_path / "{system}.run", "--results", tmp_path / "r.jsonl")
    goodgain("convert", new, "-o", tmp_path / "apart-{system}.run")
    goodgain("convert", new, "-o", tmp_path / "{system}.run", "--with", tmp_path / "r.jsonl")
    (tmp_path / "old.qrels").write_text(
        "".join(f"q{n} 0 {url} 3\n" for n in (1, 2) for url in set(_documents(tmp_path / "old.run")))
    )
    for qrels, runs in (
        ("qrels", [together / "old.run", together / "new.run"]), ("old.qrels", [tmp_path / "old.run", tmp_path / "new.run"]),
    ):  # fmt: skip
        out, err = goodgain("compare", tmp_path / qrels, *runs, "-m", "NumGood", "-o", "json")
        means = {row["system"]: row["mean"] for row in json.loads(out)["means"]}
        assert means == {"old": 3.0, "new": 2.0}
        assert "another spelling" not in err
    apart = tmp_path / "apart-new.run"
    out, err = goodgain(
        "compare", tmp_path / "old.qrels", tmp_path / "old.run", f"new={apart}", "-m", "NumGood", "-o", "json"
    )
    assert {row["system"]: row["mean"] for row in json.loads(out)["means"]} == {"old": 3.0, "new": 0.0}
    assert "new: 4 of 6 URLs without a judgment that were looked at are judged under another spelling" in err
    assert "--with RESULTS" in err


def test_results_read_together_have_a_column_of_systems(logs: dict[str, Path]) -> None:
    results = read_traces(logs)
    assert results.group_by("system", maintain_order=True).len().rows() == [("old", 3), ("new", 4)]
    assert set(results["query_id"]) == {"q1"}
    found = deduplicate(results).frame
    assert {name: sorted(found.filter(system=name)["document"]) for name in ("old", "new")} == JOINT
    with pytest.raises(InputError, match="several systems \\('old', 'new'\\)"):
        to_run(found)
    with pytest.raises(InputError, match=r"tag='x': the systems are named with their files"):
        read_traces(logs, tag="x")
    with pytest.raises(InputError, match="'' is not the name of a system"):
        read_traces({"": logs["old"]})
    with pytest.raises(InputError, match="is given twice"):
        read_traces({"old": logs["old"], "new": logs["old"]})
    with pytest.raises(InputError, match=r"several systems \(old, new\)"):
        convert_traces(logs, logs["old"].with_name("a.run"))


def test_a_chat_log_names_its_system_by_its_model(tmp_path: Path) -> None:
    one, two = (_log(tmp_path / model / "q1.json", OLD, model=model) for model in ("gpt-a", "gpt-b"))
    assert read_traces([one, two])["system"].unique(maintain_order=True).to_list() == ["gpt-a", "gpt-b"]
    assert set(read_traces({"mine": one})["system"]) == {"mine"}, "the caller's name comes first"
    response = {"model": "gpt-c", "choices": [{"message": {"role": "assistant", "content": "No search."}}]}
    request = {"messages": [{"role": "user", "content": "What?"}]}
    (tmp_path / "e.json").write_text(json.dumps([{"request": request, "response": response}]))
    assert read_traces(tmp_path / "e.json")["system"].to_list() == ["gpt-c"]


def test_a_query_is_deduplicated_if_a_result_of_any_system_lacks_an_id(tmp_path: Path) -> None:
    page = {"url": OLD[0], "title": "Dresden"}
    stories = {"old": [{**page, "docid": "1"}], "new": [page]}
    logs = {}
    for name, found in stories.items():
        (tmp_path / name).mkdir()
        logs[name] = tmp_path / name / "q1.json"
        logs[name].write_text(openai_chat(Story([Turn([[Call(found)]])])))
    with pytest.warns(GoodgainNotice, match="results of 1 queries lack ids"):
        done = convert_traces(logs, tmp_path / "{system}.run", deduplicate=deduplicate)
    assert {name: _documents(path) for name, path in done.runs.items()} == {"old": [OLD[0]], "new": [OLD[0]]}


def test_ids_of_a_corpus_stay_the_documents_with_earlier_results_too(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "q1.json").write_text(openai_chat(Story([Turn([[Call(docs("d1", "d2"))]])])))
    with_ids = {"deduplicate": deduplicate}
    convert_traces(tmp_path / "old", tmp_path / "old.run", results=tmp_path / "r.parquet", **with_ids)
    convert_traces(tmp_path / "new", tmp_path / "new.run", earlier=tmp_path / "r.parquet", **with_ids)
    assert _documents(tmp_path / "new.run") == ["d1", "d2"]
    assert read_results(tmp_path / "r.parquet")["document"].to_list() == ["d1", "d2"]


def test_where_earlier_documents_are_not_their_doc_ids_a_query_is_deduplicated(tmp_path: Path) -> None:
    old = _log(tmp_path / "old" / "q1.json", OLD[:1])
    new = tmp_path / "q1.json"
    new.write_text(openai_chat(Story([Turn([[Call([{"docid": "7", "url": NEW[0], "title": "Title of dresden"}])]])])))
    with pytest.warns(GoodgainNotice, match="lack ids"):
        convert_traces(old, tmp_path / "old.run", results=tmp_path / "r.jsonl", deduplicate=deduplicate)
        convert_traces(new, tmp_path / "new.run", earlier=[tmp_path / "r.jsonl"], deduplicate=deduplicate)
    assert _documents(tmp_path / "new.run") == [OLD[0]]


def test_earlier_results_without_documents_and_without_deduplication_are_errors(
    tmp_path: Path, logs: dict[str, Path]
) -> None:
    gg.write_results(read_traces(logs["old"]), tmp_path / "r.jsonl")
    with pytest.raises(InputError, match=r"r\.jsonl: its results have no documents; convert their logs again"):
        convert_traces(logs["new"], tmp_path / "a.run", earlier=tmp_path / "r.jsonl", deduplicate=deduplicate)
    with pytest.raises(InputError, match=r"earlier results \(--with\) are joined by deduplication"):
        convert_traces(logs["new"], tmp_path / "a.run", earlier=tmp_path / "r.jsonl")
    with pytest.raises(InputError, match="is the same file as the input"):
        convert_traces(logs["new"], tmp_path / "r.jsonl", earlier=tmp_path / "r.jsonl", deduplicate=deduplicate)
    assert not (tmp_path / "a.run").exists()


def test_names_on_the_command_line_are_for_all_logs_or_none(tmp_path: Path, logs: dict[str, Path]) -> None:
    out = tmp_path / "{system}.run"
    _, err = goodgain("convert", f"old={logs['old']}", logs["new"], "-o", out, status=2)
    assert "other logs have the names of their systems; write NAME=" in err
    _, err = goodgain("convert", f"={logs['old']}", "-o", out, status=2)
    assert "write NAME=TRACE" in err
    odd = _log(tmp_path / "a=b.json", OLD)  # a file of that whole name
    goodgain("convert", odd, "-o", tmp_path / "a.run")
    goodgain("convert", f"x={odd}", f"x={logs['old']}", "-o", out)
    assert len(_documents(tmp_path / "x.run")) == 6


# Replicates


def _epochs(path: Path, count: int = 2) -> Path:
    log: Any = json.loads(inspect_ai(Story([Turn([[Call(_pages(OLD[:2]))]])])))
    log["samples"] = [{**log["samples"][0], "epoch": epoch} for epoch in range(1, count + 1)]
    path.write_text(json.dumps(log))
    return path


def test_replicates_are_runs_of_one_system(tmp_path: Path) -> None:
    results = read_traces(_epochs(tmp_path / "log.json"))
    assert results.select("system", "replicate").unique(maintain_order=True).rows() == [("m", "1"), ("m", "2")]
    with pytest.raises(InputError, match=r"several replicates \('1', '2'\).*replicate="):
        to_run(results)
    assert to_run(results, replicate="2").height == 2
    with pytest.raises(InputError, match="no replicate '3', only '1', '2'"):
        to_run(results, replicate="3")
    found = deduplicate(results)
    assert found.summary.documents == 2, "all replicates share their documents"
    assert found.frame["duplicate_of"].null_count() == 4, "what another run has seen is not a repeat"
    apart = deduplicate(results.with_columns(replicate=pl.lit(None, pl.String)))
    assert apart.frame["duplicate_of"].null_count() == 2


def test_each_replicate_gets_a_file_and_can_be_picked(tmp_path: Path) -> None:
    log = _epochs(tmp_path / "log.json", 3)
    goodgain("convert", log, "-o", tmp_path / "{system}.run")
    assert {path.name for path in tmp_path.glob("*.run")} == {"m.1.run", "m.2.run", "m.3.run"}
    goodgain("convert", log, "-o", tmp_path / "one.txt", "--system", "m-2")
    assert (tmp_path / "one.txt").read_text() == (tmp_path / "m.2.run").read_text()
    _, err = goodgain("convert", log, "-o", tmp_path / "two.txt", "--system", "m", status=2)
    assert "several runs of a system (m-1, m-2)" in err
    goodgain("convert", f"agent={log}", "-o", tmp_path / "x-{system}.run", "--system", "agent")
    assert {path.name for path in tmp_path.glob("x-*")} == {"x-agent.1.run", "x-agent.2.run", "x-agent.3.run"}


def test_a_trace_with_repeat_is_a_replicate(tmp_path: Path) -> None:
    search = {"query": "bm25", "results": [{"doc_id": "d1"}]}
    trace = {"goodgain_trace": 1, "query_id": "q1", "system": "a", "steps": [{"searches": [search]}]}
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(trace | {"repeat": number}) + "\n" for number in (0, 1)))
    results = read_traces(path)
    assert results["replicate"].to_list() == ["0", "1"]
    path.write_text("".join(json.dumps(trace | {"repeat": 1}) + "\n" for _ in range(2)))
    with pytest.raises(InputError, match=r"the query id 'q1' of system 'a', replicate '1', stands also in"):
        read_traces(path)
    assert by_iteration(results.filter(replicate="0")) == [["d1"]]
