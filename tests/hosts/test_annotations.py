"""The annotations of logs of spans have the values of `gg.ledger` and `gg.evaluate`, and Langfuse gets each as a score."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest

import goodgain as gg
from goodgain.hosts import langfuse, phoenix
from goodgain.hosts.annotation_table import annotate
from tests.judgments.labelling.endpoint import Call, serve
from tests.support.command import run_command

FIXTURES = Path(__file__).parents[1] / "logs" / "traces" / "fixtures"
LOG = FIXTURES / "langfuse" / "story.json"
QRELS = Path(__file__).parents[2] / "docs" / "story_qrels.txt"
QUERY = "story"
#: public and secret
KEYS = {"LANGFUSE_PUBLIC_KEY": "pk-lf-public", "LANGFUSE_SECRET_KEY": "sk-lf-secret/1"}
REFUSED = json.loads(Path(__file__).with_name("refused.json").read_text(encoding="utf-8"))
SEND = ("annotate", QRELS, LOG, "--to", "langfuse")


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in os.environ if one.startswith("LANGFUSE_")]:
        monkeypatch.delenv(name)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def names_of(table: pl.DataFrame, name: str) -> dict[str | None, float]:
    return dict(table.filter(name=name).select("span_id", "score").iter_rows())


def test_spans_have_the_ledger_of_their_search_and_traces_what_evaluate_computes() -> None:
    table = annotate(QRELS, LOG, "nCG SRR NumIter")
    searches = gg.read_traces(LOG, iteration="call")
    spans = searches.select("iteration", "call_id").unique().sort("iteration")["call_id"].to_list()
    ledger = gg.ledger(QRELS, gg.to_run(searches)).sort("iteration")
    for name, column in (("new_good", "GR"), ("repeats", "Dup"), ("unjudged", "Unjudged")):
        assert names_of(table, name) == dict(zip(spans, ledger[column], strict=True))
    scores = gg.evaluate(QRELS, gg.to_run(gg.read_traces(LOG)), "nCG SRR NumIter")
    for measure in ("nCG", "SRR", "NumIter"):
        assert names_of(table, measure) == {None: scores[measure]}
    assert scores["NumIter"] < len(spans)  # two searches of a step are one iteration there
    assert table["trace_id"].unique().to_list() == ["t1"]
    assert sum(names_of(table, "repeats").values()) == ledger["Dup"].sum() > 0


def test_each_turn_has_its_own_trace() -> None:
    labels = {f"{QUERY}_{turn}": {"d1": 3} for turn in (1, 2)}
    with pytest.warns(gg.GoodgainNotice, match="coverage is low"):
        table = annotate(labels, LOG, turns="all")
    rows = table.select("query_id", "trace_id").unique().sort("query_id").rows()
    assert rows == [(f"{QUERY}_1", "t0"), (f"{QUERY}_2", "t1")]


def test_results_without_ids_are_the_documents_of_convert(tmp_path: Path) -> None:
    log = FIXTURES / "langfuse" / "observations.jsonl"
    with pytest.warns(gg.GoodgainNotice, match="lack ids"):
        gg.convert_traces(log, tmp_path / "a.run", deduplicate=gg.deduplicate)
    run = pl.DataFrame(gg.read_run(tmp_path / "a.run").frame)
    labels = {"q7": dict.fromkeys(set(run["doc_id"]) - {"-"}, 2)}
    table = annotate(labels, log, "NumGood SRR")
    scores = gg.evaluate(labels, tmp_path / "a.run", "NumGood SRR")
    assert scores["NumGood"] == 3
    assert names_of(table, "NumGood") == {None: 3.0}
    assert names_of(table, "SRR") == {None: scores["SRR"]}
    assert sum(names_of(table, "new_good").values()) == 3


def test_systems_and_unjudged_queries_are_kept_apart(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(re.sub('"([ot])([0-9]+)"', r'"another-\1\2"', LOG.read_text()))
    table = annotate(QRELS, {"one": LOG, "two": other})
    ours, others = (table.filter(pl.col("trace_id") == trace).drop("trace_id") for trace in ("t1", "another-t1"))
    assert ours.height == 17
    assert others.with_columns(pl.col("span_id").str.strip_prefix("another-")).equals(ours)
    with pytest.warns(gg.GoodgainNotice, match="1 of 2 queries has no judgments"):
        table = annotate({f"{QUERY}_1": {"d1": 3, "d3": 0}}, LOG, turns="all")
    assert table["query_id"].unique().to_list() == [f"{QUERY}_1"]


@pytest.mark.parametrize(
    ("labels", "log", "sentence"),
    [
        ({"other": {"d1": 3}}, LOG, r"no judgments of the queries in the logs \('story'\)"),
        ({"q": {"d": 1}}, FIXTURES / "atif", r"the logs have no spans \(atif"),
    ],
)
def test_what_cannot_be_annotated_is_one_sentence(labels: Any, log: Path, sentence: str) -> None:
    with pytest.raises(gg.InputError, match=sentence):
        annotate(labels, log)


def test_langfuse_gets_each_value_as_a_score_with_the_keys() -> None:
    printed = run_command(*SEND, "--dry-run")
    assert printed.returncode == 0, printed.stderr
    bodies = [json.loads(line) for line in printed.stdout.splitlines()]
    with serve(lambda call: {"id": call.body["id"]}) as server:
        done = run_command(*SEND, "--base-url", f"{server.url.removesuffix('/v1')}/")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert [call.body for call in server.calls] == bodies
    assert {call.path for call in server.calls} == {"/api/public/scores"}

    secret = base64.b64encode(":".join(KEYS.values()).encode()).decode()
    assert {call.headers["authorization"] for call in server.calls} == {f"Basic {secret}"}
    assert done.stderr.splitlines()[-1] == "langfuse: annotations: 17, on 5 spans and 1 trace"

    table = annotate(QRELS, LOG)
    sent = [(body["traceId"], body.get("observationId"), body["name"], body["value"]) for body in bodies]
    assert sent == table.select("trace_id", "span_id", "name", "score").rows()
    assert len({body["id"] for body in bodies}) == len(bodies)


def fail_at(number: int, answer: Any) -> Any:
    """Answer a call by its number, and all others well."""
    counted: Iterator[int] = iter(range(10**6))
    return lambda call: answer if next(counted) == number else {"id": call.body["id"]}


@pytest.mark.each
@pytest.mark.parametrize(("at", "answer", "sentence"), REFUSED["langfuse"])
def test_a_failure_is_one_sentence_that_says_what_was_written(at: int, answer: Any, sentence: str) -> None:
    if answer != "close":
        status, body, headers = answer
        answer = status, body.encode() if isinstance(body, str) else body, headers
    with serve(fail_at(at, answer)) as server:
        url = server.url.removesuffix("/v1")
        done = run_command(*SEND, "--base-url", url)
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"goodgain: {url}{' ' if answer != 'close' else ': '}{sentence}")
    assert f"{at} of 17 annotations {'was' if at == 1 else 'were'} written" in last
    assert len(server.calls) == at + 1


def test_a_server_that_echoes_the_header_shows_no_key_in_any_form() -> None:
    """A proxy in debug mode answers with the whole request."""
    secret = base64.b64encode(":".join(KEYS.values()).encode()).decode()
    forms = [*KEYS.values(), secret, secret.rstrip("="), quote(secret, safe=""), secret.replace("/", r"\/")]
    for form in forms:
        said = {"code": form, "headers": [f"Authorization: Basic {form}"]}
        with serve(lambda call, said=said: (401, said, {})) as server:
            done = run_command(*SEND, "--base-url", server.url.removesuffix("/v1"))
        assert done.returncode == 1
        lines = done.stderr.splitlines()[-1]
        assert '"code": "***' in lines and "Basic ***" in lines, lines
        assert form not in done.stderr and secret.rstrip("=") not in done.stderr


@pytest.mark.parametrize("digits", [3, 400, 5_000])
def test_a_rate_limit_of_any_length_is_waited_for_a_minute_at_most(
    digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(langfuse.time, "sleep", waited.append)
    reply = 429, {}, {"Retry-After": "9" * digits}
    with serve(lambda call: {"id": "x"} if call.before else reply) as server:
        langfuse.send([{"id": "a"}], base_url=server.url, key="a:b", hide=str)
    assert waited == [60]


def test_an_answer_without_end_is_read_up_to_a_limit() -> None:
    sent: list[int] = []

    def drown() -> Iterator[bytes]:
        for _ in range(400):
            sent.append(1)
            yield b" " * (1 << 20)

    with serve(lambda call: (200, drown(), {})) as server:
        langfuse.send([{"id": "a"}], base_url=server.url, key="a:b", hide=str)
    assert len(sent) < 100


def test_a_rate_limit_is_waited_for() -> None:
    def script(call: Call) -> Any:
        return (429, {}, {"Retry-After": "0"}) if call.before < 2 else {"id": "x"}

    with serve(script) as server:
        done = run_command(*SEND, "--base-url", server.url.removesuffix("/v1"))
    assert done.returncode == 0, done.stderr
    assert len(server.calls) == 3 * 17


@pytest.mark.each
@pytest.mark.parametrize(("address", "status", "sentence"), REFUSED["addresses"])
def test_a_wrong_address_is_one_sentence(address: str, status: int, sentence: str) -> None:
    done = run_command(*SEND, *(["--base-url", address] if address else []))
    assert done.returncode == status
    assert done.stderr.splitlines()[-1].startswith(f"goodgain: {sentence}")


def test_phoenix_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phoenix.client", None)  # as if it were not installed
    with pytest.raises(gg.InputError, match=re.escape('pip install "goodgain[phoenix]"')):
        phoenix.send([], base_url=None, key="", hide=str)
