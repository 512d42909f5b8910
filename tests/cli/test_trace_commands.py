"""goodgain convert and goodgain dedup, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from tests.cli.test_command_line import goodgain
from tests.support.tables import ROOT

FIXTURES = ROOT / "tests" / "logs" / "traces" / "fixtures"
WEB = ROOT / "docs" / "web_search.jsonl"


def test_a_log_goes_to_scores_in_two_commands(tmp_path: Path) -> None:
    out, err = goodgain("convert", FIXTURES / "langchain" / "state.json", "-o", tmp_path / "agent.run")
    assert out == ""
    assert "searches" in err
    query_id = (tmp_path / "agent.run").read_text().split()[0]
    doc_id = (tmp_path / "agent.run").read_text().split()[2]
    (tmp_path / "qrels").write_text(f"{query_id} 0 {doc_id} 2\n")
    out, _ = goodgain("evaluate", tmp_path / "qrels", tmp_path / "agent.run", "CG NumIter")
    values = dict(line.split("\t") for line in out.splitlines())
    assert values["CG"] == "2.0000"
    assert float(values["NumIter"]) >= 1
    written = gg.read_run(tmp_path / "agent.run").frame
    read = gg.to_run(gg.read_traces(FIXTURES / "langchain" / "state.json"))
    assert written.select("query_id", "iteration", "doc_id").equals(read.select("query_id", "iteration", "doc_id"))


def test_results_are_deduplicated_explained_and_read_again(tmp_path: Path) -> None:
    out, err = goodgain("dedup", WEB, "-o", tmp_path / "d.jsonl")
    assert out == ""
    assert "20 results, 8 documents" in err
    again = gg.read_results(tmp_path / "d.jsonl")
    found = gg.deduplicate(gg.read_results(WEB))
    assert again["document"].to_list() == found.frame["document"].to_list()
    document = again.filter(pl.col("duplicate_of").is_not_null())["document"][0]
    out, _ = goodgain("dedup", WEB, "-o", tmp_path / "e.parquet", "--explain", document)
    assert "same" in out
    assert gg.to_run(again)["doc_id"].n_unique() == 8


def test_a_conversion_that_fails_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"messages": [{"role": "user", "con')
    for arguments in (
        [],
        ["--format", "openai_chat"],
        ["--format", "no such format"],
        ["--dedup", "id", "--tools", "x"],
    ):
        _, err = goodgain("convert", tmp_path / "cut.json", "-o", tmp_path / "a.run", *arguments, status=2)
        assert err.splitlines()[-1].startswith("goodgain: ")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.json"]


def test_policies_of_deduplication_are_those_of_the_package() -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "goodgain", "dedup", "-h"], capture_output=True, text=True, check=True
    ).stdout
    for policy in ("standard", "id", "content"):
        assert policy in help_text
        gg.deduplicate(pl.DataFrame({"query_id": "q", "rank": [1], "url": ["https://example.org/"]}), policy=policy)  # type: ignore[arg-type]  # one of them


def test_results_keep_what_a_log_says(tmp_path: Path) -> None:
    goodgain(
        "convert", FIXTURES / "langchain" / "state.json", "-o", tmp_path / "a.run", "--results", tmp_path / "r.jsonl"
    )
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert {"query_id", "search_query", "status", "iteration"} <= set(rows[0])


# No output over an input or another output


def log_of(system: str, path: Path) -> Path:
    """A log of one trace, which names its system."""
    search = {"query": "bm25", "results": [{"doc_id": "d1"}]}
    trace = {"goodgain_trace": 1, "query_id": "q1", "system": system, "steps": [{"searches": [search]}]}
    path.write_text(json.dumps(trace) + "\n")
    return path


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def refused(folder: Path, *arguments: object) -> str:
    """What a command says that fails and leaves every file as it was."""
    before = contents(folder)
    _, err = goodgain(*arguments, status=2)
    assert contents(folder) == before
    assert len(err.splitlines()) == 1
    return err


def test_the_run_of_a_system_does_not_replace_the_log_it_comes_from(tmp_path: Path) -> None:
    log = log_of("a", tmp_path / "a.jsonl")
    for given in (log, tmp_path):  # the file, and the folder it stands in
        err = refused(tmp_path, "convert", given, "-o", tmp_path / "{system}.jsonl")
        assert f"the output {tmp_path / 'a.jsonl'} is the same file as the input {log}" in err
        assert "give the output another name" in err


def test_the_run_of_a_system_does_not_replace_the_results(tmp_path: Path) -> None:
    log = log_of("a", tmp_path / "log.jsonl")
    results, run = tmp_path / "o_a.jsonl", tmp_path / "o_{system}.jsonl"
    err = refused(tmp_path, "convert", log, "-o", run, "--results", results)
    assert f"the outputs {results} and {results} are the same file; give each a name of its own" in err


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_link_to_a_log_is_that_log(tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    log = log_of("a", tmp_path / "a.jsonl")
    link(tmp_path / "linked.jsonl", log)
    link(tmp_path / "to_a.jsonl", log)
    for options in (
        ["-o", tmp_path / "linked.jsonl"],
        ["-o", tmp_path / "to_{system}.jsonl"],
        ["-o", tmp_path / "a.run", "--results", tmp_path / "linked.jsonl"],
    ):
        err = refused(tmp_path, "convert", log, *options)
        assert "is the same file as the input" in err and str(log) in err


def test_links_and_detours_to_a_file_that_does_not_exist_yet_are_that_file(tmp_path: Path) -> None:
    log = log_of("a", tmp_path / "log.jsonl")
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "later.jsonl").symlink_to(tmp_path / "new.jsonl")
    for other in ("folder/new.jsonl", "later.jsonl", "folder/folder/new.jsonl"):
        err = refused(tmp_path, "convert", log, "-o", tmp_path / "new.jsonl", "--results", tmp_path / other)
        assert "are the same file" in err
    goodgain("convert", log, "-o", tmp_path / "new.jsonl", "--results", tmp_path / "other.jsonl")


def test_deduplicated_results_do_not_replace_the_results(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    results.write_bytes(WEB.read_bytes())
    (tmp_path / "linked.jsonl").symlink_to(results)
    for output in ("results.jsonl", "linked.jsonl"):
        err = refused(tmp_path, "dedup", results, "-o", tmp_path / output)
        assert f"the output {tmp_path / output} is the same file as the input {results}" in err


def test_a_flattened_run_does_not_replace_the_run(tmp_path: Path) -> None:
    run = tmp_path / "agent.run"
    run.write_text("q 1 a 1 1 t\nq 2 a 1 1 t\n")
    (tmp_path / "hard.run").hardlink_to(run)
    for output in ("agent.run", "hard.run"):
        err = refused(tmp_path, "flatten", run, "-o", tmp_path / output)
        assert f"the output {tmp_path / output} is the same file as the input {run}" in err
    _, err = goodgain("flatten", tmp_path / "none.run", "-o", tmp_path / "none.run", status=2)
    assert "no such file" in err


@pytest.mark.slow
def test_pipes_and_devices_are_read_and_written_as_before(tmp_path: Path) -> None:
    log = log_of("a", tmp_path / "log.jsonl")
    out, _ = goodgain("convert", log, "-o", "/dev/stdout")
    assert out == "q1 1 d1 1 1.0 a\n"
    goodgain("convert", log, "-o", "/dev/null")
    run = tmp_path / "agent.run"
    run.write_text(out)
    both = [sys.executable, "-m", "goodgain", "flatten", "/dev/stdin", "-o", "/dev/stdout"]
    piped = subprocess.run(both, input=out, capture_output=True, text=True, check=True)
    assert piped.stdout.split()[:3] == ["q1", "1", "d1"]
    with run.open() as read, (tmp_path / "flat.run").open("w") as written:
        subprocess.run(both, stdin=read, stdout=written, check=True)
    assert (tmp_path / "flat.run").read_text() == piped.stdout


def test_a_run_is_written_over_its_older_self(tmp_path: Path) -> None:
    log = log_of("a", tmp_path / "log.jsonl")
    for _ in range(2):
        goodgain("convert", log, "-o", tmp_path / "{system}.run", "--results", tmp_path / "r.jsonl")
    assert set(contents(tmp_path)) == {"log.jsonl", "a.run", "r.jsonl"}
