"""Logs of several systems make one set of documents: in one conversion, or one after the other with earlier results."""

from __future__ import annotations

import json
import random
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import goodgain as gg
from goodgain.cli.program import program
from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.dedup import deduplicate
from goodgain.logs.traces import convert_traces, read_results, read_traces, to_run
from tests.cli.test_command_line import goodgain
from tests.support.counts import how_many
from tests.support.notices import collect_notices

from .conftest import by_iteration
from .logs import Call, Story, Turn, docs, inspect_ai, openai_chat

OLD = ["https://dw.com/dresden", "https://dw.com/bonn?utm_source=mail", "https://dw.com/ulm"]
NEW = ["https://m.dw.com/dresden/", "http://www.dw.com/bonn", "https://dw.com/jena"]


def _pages(urls: list[str]) -> list[dict[str, str]]:
    return [{"url": url, "title": f"Title of {url.rsplit('/')[3]}"} for url in urls]


def _log(path: Path, *urls: list[str], model: str | None = None) -> Path:
    """A log of one trace, a search a list of URLs."""
    messages = json.loads(openai_chat(Story([Turn([[Call(_pages(url))] for url in urls])])))
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"model": model, "messages": messages} if model else messages))
    return path


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, Path]:
    """The log of each of two systems for the query q1, whose URLs differ by variants."""
    return {"old": _log(tmp_path / "old" / "q1.json", OLD), "new": _log(tmp_path / "new" / "q1.json", NEW, OLD[:1])}


def _documents(run: Path) -> list[str]:
    return [line.split()[2] for line in run.read_text().splitlines()]


def _run(*arguments: object) -> str:
    """Run the program in this process, and return what it printed; its notices are tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)
        done = CliRunner().invoke(program, list(map(str, arguments)), standalone_mode=False, catch_exceptions=False)
    return done.stdout + done.stderr


JOINT = {
    "old": ["https://dw.com/bonn", "https://dw.com/dresden", "https://dw.com/ulm"],
    "new": ["https://dw.com/bonn", "https://dw.com/dresden", "https://dw.com/dresden", "https://dw.com/jena"],
}


def test_logs_converted_in_one_call_give_one_document_each(tmp_path: Path, logs: dict[str, Path]) -> None:
    with pytest.warns(GoodgainNotice, match="results of 1 query lack ids"):
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


def _judge(run: Path, qrels: Path) -> Path:
    """Qrels in which every document of a run is relevant."""
    pairs = {tuple(line.split()[:3:2]) for line in run.read_text().splitlines()}
    qrels.write_text("".join(f"{query_id} 0 {doc_id} 3\n" for query_id, doc_id in sorted(pairs)))
    return qrels


def _compare(qrels: Path, old: Path, new: Path) -> dict[str, float]:
    with pytest.warns(GoodgainNotice) as told:  # of few queries, and of documents that only one system found
        means = gg.compare(qrels, {"old": old, "new": new}, "NumGood").means
    assert not [one for one in told if "another spelling" in str(one.message)]
    return dict(means.select("system", "mean").iter_rows())


def test_logs_converted_together_with_earlier_results_or_apart_have_one_comparison(tmp_path: Path) -> None:
    for number in (1, 2):
        _log(tmp_path / "old" / f"q{number}.json", OLD)
        _log(tmp_path / "new" / f"q{number}.json", NEW)
    old, new = f"old={tmp_path / 'old'}", f"new={tmp_path}/new/*.json"  # a pattern behind NAME= is not the shell's
    _run("convert", old, new, "-o", tmp_path / "both-{system}.run")
    _run("convert", old, "-o", tmp_path / "{system}.run", "--results", tmp_path / "r.jsonl")
    _run("convert", new, "-o", tmp_path / "{system}.run", "--with", tmp_path / "r.jsonl")
    _run("convert", new, "-o", tmp_path / "apart-{system}.run")

    both = _judge(tmp_path / "both-old.run", tmp_path / "both.qrels")
    assert _compare(both, tmp_path / "both-old.run", tmp_path / "both-new.run") == {"old": 3.0, "new": 2.0}
    qrels = _judge(tmp_path / "old.run", tmp_path / "old.qrels")
    assert _compare(qrels, tmp_path / "old.run", tmp_path / "new.run") == {"old": 3.0, "new": 2.0}
    apart = f"new={tmp_path / 'apart-new.run'}"
    out, err = goodgain("compare", qrels, tmp_path / "old.run", apart, "-m", "NumGood", "-o", "json")
    assert {row["system"]: row["mean"] for row in json.loads(out)["means"]} == {"old": 3.0, "new": 2.0}
    assert "another spelling" not in err


def test_results_read_together_have_a_column_of_systems(logs: dict[str, Path]) -> None:
    results = read_traces(logs)
    assert results.group_by("system", maintain_order=True).len().rows() == [("old", 3), ("new", 4)]
    assert set(results["query_id"]) == {"q1"}

    found = deduplicate(results).frame
    assert {name: sorted(found.filter(system=name)["document"]) for name in ("old", "new")} == JOINT
    with pytest.raises(InputError, match="several systems \\('old', 'new'\\)"):
        to_run(found)
    with pytest.raises(InputError, match=r"tag='x': the paths already name the systems"):
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
    for name, story in stories.items():
        (tmp_path / name).mkdir()
        logs[name] = tmp_path / name / "q1.json"
        logs[name].write_text(openai_chat(Story([Turn([[Call(story)]])])))
    with pytest.warns(GoodgainNotice, match="results of 1 query lack ids"):
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
    with pytest.raises(InputError, match=r"r\.jsonl: its results have no column document; convert their logs again"):
        convert_traces(logs["new"], tmp_path / "a.run", earlier=tmp_path / "r.jsonl", deduplicate=deduplicate)
    with pytest.raises(InputError, match=r"joining results with earlier ones needs deduplication"):
        convert_traces(logs["new"], tmp_path / "a.run", earlier=tmp_path / "r.jsonl")
    with pytest.raises(InputError, match="is the same file as the input"):
        convert_traces(logs["new"], tmp_path / "r.jsonl", earlier=tmp_path / "r.jsonl", deduplicate=deduplicate)
    assert not (tmp_path / "a.run").exists()


def test_the_program_joins_results_to_earlier_ones(tmp_path: Path, logs: dict[str, Path]) -> None:
    for name, log in logs.items():
        gg.write_results(read_traces({name: log}), tmp_path / f"{name}.jsonl")
    _run("dedup", tmp_path / "old.jsonl", "-o", tmp_path / "old.parquet")
    told = _run("dedup", tmp_path / "new.jsonl", "-o", tmp_path / "new.parquet", "--with", tmp_path / "old.parquet")
    assert "3 earlier results keep their documents; 0 bridges" in told
    both = [set(read_results(tmp_path / f"{name}.parquet")["document"]) for name in ("old", "new")]
    assert both[0] & both[1] == {"https://dw.com/dresden", "https://dw.com/bonn"}


def test_pairs_of_pages_that_a_person_knows_are_kept_in_all_runs_and_by_later_logs(
    tmp_path: Path, logs: dict[str, Path]
) -> None:
    same, different = tmp_path / "same.txt", tmp_path / "different.txt"
    same.write_text(
        "# seen by hand\nhttps://dw.com/ulm http://m.dw.com/jena/\nhttps://dw.com/nowhere https://dw.com/ulm\n"
    )
    different.write_text("https://dw.com/ulm https://dw.com/bonn\n")
    pairs = ["--same", same, "--different", different]
    systems = [f"{name}={log}" for name, log in logs.items()]
    _, err = goodgain("convert", *systems, "-o", tmp_path / "{system}.run", *pairs)
    assert f"notice: {same}: 1 of 3 names occur in no result, or stand for several documents" in err
    assert _documents(tmp_path / "old.run")[2] == _documents(tmp_path / "new.run")[2] == "https://dw.com/jena"

    gg.write_results(read_traces(logs), tmp_path / "r.jsonl")
    told = _run("dedup", tmp_path / "r.jsonl", "-o", tmp_path / "d.jsonl", *pairs, "--explain", "https://dw.com/jena")
    assert f"same (5), said by {same}" in told
    assert f"same, said by {same}: 1" in told

    different.write_text("https://dw.com/jena\nhttps://dw.com/ulm")
    _, err = goodgain("dedup", tmp_path / "r.jsonl", "-o", tmp_path / "d.jsonl", *pairs, status=2)
    assert f"{different}, line 1: has 1 name; give two ids or URLs" in err

    _, err = goodgain("convert", *systems, "-o", tmp_path / "{system}.run", *pairs[:2], "--dedup", "none", status=2)
    assert "--same and --different need deduplication; give --dedup" in err
    _, err = goodgain("convert", logs["old"], "-o", same, *pairs[:2], status=2)
    assert "is the same file as" in err


@pytest.mark.slow
def test_pairs_join_ids_of_a_corpus_and_change_no_other_document(tmp_path: Path) -> None:
    for name, found in (("old", docs("d1", "d2")), ("new", docs("d2", "d3"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "q1.json").write_text(openai_chat(Story([Turn([[Call(found)]])])))
    for jobs in (1, 2):
        run, with_ids = tmp_path / f"{jobs}.run", {"deduplicate": deduplicate, "jobs": jobs}
        convert_traces(tmp_path / "old", run, results=tmp_path / "r.jsonl", same=[("d2", "d1")], **with_ids)
        assert _documents(run) == ["d1", "d1"]

    # A later log keeps the join, and its other documents keep their ids. Without the pair it is a conflict with the rules.
    later = {"earlier": tmp_path / "r.jsonl", "deduplicate": deduplicate}
    convert_traces(tmp_path / "new", run, same=[("d2", "d1")], **later)
    assert _documents(run) == ["d1", "d3"]

    with pytest.warns(GoodgainNotice, match="1 conflict with earlier documents"):
        convert_traces(tmp_path / "new", run, **later)
    assert _documents(run) == ["d1", "d3"]


def _random_page(rng: random.Random) -> dict[str, str]:
    """A result of one of a few pages, under any of its addresses, with or without its title, text and address."""
    number = rng.randrange(6)
    scheme, host = rng.choice(["http://", "https://"]), rng.choice(["", "www.", "m."])
    more = rng.choice(["", "/", "?utm_source=x", "#top", "?id=1", "?id=2"])
    page = {
        "url": f"{scheme}{host}dw.com/{number}{more}",
        "title": f"The title of page {rng.choice([number, number, 7])}",
        "snippet": f"A text of some length that belongs to page {number} and to no other page in this log. "
        * rng.choice([1, 3]),
    }
    for name in rng.sample(list(page), rng.choice([0, 0, 1, 2])):
        del page[name]
    return page


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_random_logs_give_the_same_documents_together_and_one_after_the_other(tmp_path: Path) -> None:
    without_bridge = 0
    for seed in range(how_many(2, full=15)):
        rng = random.Random(seed)
        logs = {}
        for name in ("a", "b"):
            logs[name] = tmp_path / name
            logs[name].mkdir(exist_ok=True)
            for query in range(2):
                found = [[_random_page(rng) for _ in range(rng.randrange(1, 4))] for _ in range(rng.randrange(1, 4))]
                story = Story([Turn([[Call(pages)] for pages in found])])
                (logs[name] / f"q{query}.json").write_text(openai_chat(story))
        out, options = tmp_path / "{system}.run", {"deduplicate": deduplicate, "deduplicate_all": True}
        convert_traces(logs, out, results=tmp_path / "both.jsonl", **options)
        convert_traces({"a": logs["a"]}, out, results=tmp_path / "a.jsonl", **options)
        with collect_notices() as notices:
            convert_traces({"b": logs["b"]}, out, results=tmp_path / "b.jsonl", earlier=tmp_path / "a.jsonl", **options)
        bridged = any("with earlier documents: a result" in str(notice) for notice in notices)
        apart = pl.concat([read_results(tmp_path / f"{name}.jsonl") for name in ("a", "b")])
        assert (_partition(apart) == _partition(read_results(tmp_path / "both.jsonl"))) is not bridged
        without_bridge += not bridged

    assert without_bridge


def _partition(results: pl.DataFrame) -> set[frozenset[tuple[object, ...]]]:
    """The documents, each as the places of its results."""
    places = results.with_columns(place=pl.struct("system", "iteration", "search", "rank"))
    groups = places.group_by("query_id", "document").agg("place").rows()
    return {frozenset((query, *place.values()) for place in found) for query, _, found in groups}


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
    deduplication = deduplicate(results)
    assert deduplication.summary.documents == 2, "all replicates share their documents"
    assert deduplication.frame["duplicate_of"].null_count() == 4, "what another run has seen is not a repeat"
    apart = deduplicate(results.with_columns(replicate=pl.lit(None, pl.String)))
    assert apart.frame["duplicate_of"].null_count() == 2


def test_each_replicate_gets_a_file_and_can_be_picked(tmp_path: Path) -> None:
    log = _epochs(tmp_path / "log.json", 3)
    _run("convert", log, "-o", tmp_path / "{system}.run")
    assert {path.name for path in tmp_path.glob("*.run")} == {"m.1.run", "m.2.run", "m.3.run"}
    _run("convert", log, "-o", tmp_path / "one.txt", "--system", "m-2")
    assert (tmp_path / "one.txt").read_text() == (tmp_path / "m.2.run").read_text()
    with pytest.raises(InputError, match=r"several runs of a system \(m-1, m-2\)"):
        _run("convert", log, "-o", tmp_path / "two.txt", "--system", "m")
    _run("convert", f"agent={log}", "-o", tmp_path / "x-{system}.run", "--system", "agent")
    assert {path.name for path in tmp_path.glob("x-*")} == {"x-agent.1.run", "x-agent.2.run", "x-agent.3.run"}


def test_a_trace_with_repeat_is_a_replicate(tmp_path: Path) -> None:
    search = {"query": "bm25", "results": [{"doc_id": "d1"}]}
    trace = {"goodgain_trace": 1, "query_id": "q1", "system": "a", "steps": [{"searches": [search]}]}
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(trace | {"repeat": number}) + "\n" for number in (0, 1)))
    results = read_traces(path)
    assert results["replicate"].to_list() == ["0", "1"]
    path.write_text("".join(json.dumps(trace | {"repeat": 1}) + "\n" for _ in range(2)))
    with pytest.raises(InputError, match=r"the query id 'q1' of system 'a', replicate '1', is also in"):
        read_traces(path)
    assert by_iteration(results.filter(replicate="0")) == [["d1"]]
