"""Annotations reach a real server of Phoenix, at the spans and traces that it exported, and a second time replaces them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import goodgain as gg
from goodgain.hosts.annotation_table import annotate
from tests.judgments.labelling.endpoint import serve
from tests.support.command import run_command

phoenix = pytest.importorskip("phoenix.client", reason="Phoenix's client is not installed here: make test-hosts")
TRACE, SPANS = f"{7:032x}", [f"{number:016x}" for number in range(1, 6)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with an empty store."""
    pytest.importorskip("phoenix.server", reason="Phoenix is not installed here: make test-hosts")
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        port, grpc = one.getsockname()[1], other.getsockname()[1]

    folder = tmp_path_factory.mktemp("phoenix")
    settings = {
        "PHOENIX_WORKING_DIR": str(folder), "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_HOST": "127.0.0.1", "PHOENIX_TELEMETRY_ENABLED": "false",
    }  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        command = [sys.executable, "-m", "phoenix.server.main", "serve"]
        process = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log)

    try:
        for _ in range(240):
            try:
                urlopen(f"{address}/healthz", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.5)
        yield address
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def log(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spans of an agent with two retrievals, sent to the server and exported from it as a table."""

    def span(place: int, kind: str, **attributes: Any) -> Any:
        moment = f"2026-01-01T00:00:0{place}.000000+00:00"
        return {
            "name": kind.lower(), "context": {"trace_id": TRACE, "span_id": SPANS[place]}, "span_kind": kind,
            "parent_id": SPANS[0] if place else None, "start_time": moment, "end_time": moment, "status_code": "OK",
            "attributes": {"openinference.span.kind": kind, **attributes},
        }  # fmt: skip

    def found(*documents: str) -> dict[str, str]:
        return {f"retrieval.documents.{place}.document.id": document for place, document in enumerate(documents)}

    metadata = {"input.value": "What is BM25?", "metadata": json.dumps({"query_id": "q1"})}
    spans = [
        span(0, "AGENT", **metadata), span(1, "LLM"), span(2, "RETRIEVER", **found("d1", "d2")),
        span(3, "LLM"), span(4, "RETRIEVER", **found("d1", "d3", "d4")),
    ]  # fmt: skip
    client = phoenix.Client(base_url=url)
    client.spans.log_spans(project_identifier="agent", spans=spans)
    path: Path = tmp_path_factory.mktemp("exported") / "spans.parquet"
    for _ in range(60):
        frame = client.spans.get_spans_dataframe(project_identifier="agent")
        if len(frame) == len(spans):
            frame.to_parquet(path)
            return path
        time.sleep(0.5)
    pytest.fail("the server does not show the spans")


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 d1 3\nq1 0 d2 0\nq1 0 d3 2\nq1 0 d4 0\nq1 0 d5 2\n")
    return path


def test_the_server_shows_the_values_of_ledger_and_evaluate(url: str, log: Path, qrels: Path) -> None:
    run = gg.to_run(gg.read_traces(log))
    ledger, scores = gg.ledger(qrels, run), gg.evaluate(qrels, run, "nCG SRR")
    for _ in range(2):  # the second time replaces
        done = run_command("annotate", qrels, log, "--to", "phoenix", "--base-url", url)
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1] == "phoenix: annotations: 8, on 2 spans and 1 trace"

    client = phoenix.Client(base_url=url)
    shown = client.spans.get_span_annotations(span_ids=SPANS, project_identifier="agent")
    values = {(one["span_id"], one["name"]): one["result"]["score"] for one in shown}
    assert len(shown) == len(values)

    columns = {"new_good": "GR", "repeats": "Dup", "unjudged": "Unjudged"}
    expected = {
        (span, name): ledger[column][place]
        for place, span in enumerate((SPANS[2], SPANS[4]))
        for name, column in columns.items()
    }
    assert values == expected

    with urlopen(f"{url}/v1/projects/agent/trace_annotations?trace_ids={TRACE}", timeout=30) as answer:
        of_trace = json.load(answer)["data"]
    assert {one["name"]: one["result"]["score"] for one in of_trace} == pytest.approx(scores.means)
    assert len(of_trace) == 2
    assert {one["annotator_kind"] for one in [*shown, *of_trace]} == {"CODE"}


def test_a_log_of_another_server_is_one_sentence(url: str, log: Path, qrels: Path, tmp_path: Path) -> None:
    import pandas as pd

    other = pd.read_parquet(log).reset_index(drop=True)
    for name in ("context.span_id", "parent_id"):
        other[name] = other[name].str.replace("000", "00f", n=1)
    other.to_parquet(tmp_path / "other.parquet")
    done = run_command("annotate", qrels, tmp_path / "other.parquet", "--to", "phoenix", "--base-url", url)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        f"goodgain: {url} answers 404: it does not know this address, or a span or trace of the log."
    )
    assert last.endswith("0 of 8 annotations were written")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((401, {"detail": "Invalid token secret-of-phoenix"}, {}),
         "answers 401: the key is not accepted. Set PHOENIX_API_KEY"),
        ((503, b"busy", {}), "answers 503: Check the server, and run the command again (busy)"),
        ((200, b"<html>", {"Content-Type": "text/html"}), "is not a server of Phoenix, or answers something else"),
        ("close", "cannot be reached ("),
    ],
)  # fmt: skip
def test_a_failure_is_one_sentence(
    answer: Any, sentence: str, log: Path, qrels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHOENIX_API_KEY", "secret-of-phoenix")
    with serve(lambda call: answer) as server:
        done = run_command("annotate", qrels, log, "--to", "phoenix", "--base-url", server.url.removesuffix("/v1"))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert sentence in last
    assert "secret-of-phoenix" not in done.stderr
    assert last.endswith("0 of 8 annotations were written")
    assert {call.headers["authorization"] for call in server.calls} == {"Bearer secret-of-phoenix"}


def test_without_a_server_and_in_a_second_part_the_sentence_says_what_was_written(log: Path, qrels: Path) -> None:
    done = run_command("annotate", qrels, log, "--to", "phoenix", "--base-url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("goodgain: http://127.0.0.1:9: cannot be reached (")

    def refuse_traces(call: Any) -> Any:
        spans = [{"id": str(place)} for place, _ in enumerate(call.body["data"])]
        return (500, b"", {}) if "trace" in call.path else {"data": spans}

    with serve(refuse_traces) as server:
        done = run_command("annotate", qrels, log, "--to", "phoenix", "--base-url", server.url.removesuffix("/v1"))
    assert "6 of 8 annotations were written. The same command replaces them and goes on" in done.stderr
    assert annotate(qrels, log).height == 8
