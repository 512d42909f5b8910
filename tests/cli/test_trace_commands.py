"""goodgain convert and goodgain dedup, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
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
    deduplication = gg.deduplicate(gg.read_results(WEB))
    assert again["document"].to_list() == deduplication.frame["document"].to_list()
    document = again.filter(pl.col("duplicate_of").is_not_null())["document"][0]
    out, _ = goodgain("dedup", WEB, "-o", tmp_path / "e.parquet", "--explain", document)
    assert "same" in out
    assert gg.to_run(again)["doc_id"].n_unique() == 8


def test_policies_of_deduplication_are_those_of_the_package() -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "goodgain", "dedup", "-h"], capture_output=True, text=True, check=True
    ).stdout
    for policy in ("standard", "id", "content"):
        assert policy in help_text
        gg.deduplicate(pl.DataFrame({"query_id": "q", "rank": [1], "url": ["https://example.org/"]}), policy=policy)  # type: ignore[arg-type]  # one of them


@pytest.mark.slow
def test_pipes_and_devices_are_read_and_written_as_before(tmp_path: Path) -> None:
    log, search = tmp_path / "log.jsonl", {"query": "bm25", "results": [{"doc_id": "d1"}]}
    log.write_text(
        json.dumps({"goodgain_trace": 1, "query_id": "q1", "system": "a", "steps": [{"searches": [search]}]})
    )
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
