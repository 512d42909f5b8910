"""Batch files: the same grades as by calls, through the same journal."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import goodgain as gg
from tests.labelling.endpoint import good, serve
from tests.labelling.test_kill import write_job
from tests.support.command import run_command


def answer(line: str, body: Any = None, status: int = 200) -> str:
    call = json.loads(line)
    number = int(call["body"]["messages"][-1]["content"].split("\ntext ")[1].split("\n")[0])
    response = {"status_code": status, "body": good(number % 5) if body is None else body}
    return json.dumps({"id": "x", "custom_id": call["custom_id"], "response": response, "error": None}) + "\n"


def command(folder: Path, count: int) -> list[str]:
    return write_job(folder, count)[3:-3]  # without python, without -o's partners of a live job


def test_a_batch_gives_the_grades_that_calls_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = write_job(tmp_path, 12)[3:]
    without_output = [word for word in base if word not in ("-o", "grades.jsonl", "--yes")]
    assert run_command(*without_output, "--write-batch", "batch.jsonl").returncode == 0
    lines = Path("batch.jsonl").read_text().splitlines()
    assert len(lines) == 12
    first = json.loads(lines[0])
    assert (first["method"], first["url"], len(first["custom_id"])) == ("POST", "/v1/chat/completions", 64)
    assert first["body"]["response_format"]["type"] == "json_schema"
    Path("out.jsonl").write_text("".join(map(answer, reversed(lines))))
    found = run_command(*base, "--read-batch", "out.jsonl")
    assert found.returncode == 0, found.stderr
    by_batch = Path("grades.jsonl").read_text()

    def script(call: Any) -> Any:
        return good(int(call.body["messages"][-1]["content"].split("\ntext ")[1].split("\n")[0]) % 5)

    with serve(script) as server:
        again = run_command(*base, "--base-url", server.url)
        assert (again.returncode, server.count) == (0, 0)  # the journal has the answers of the batch
        Path("grades.jsonl.journal").unlink()
        live = run_command(*base, "--base-url", server.url)
        assert (live.returncode, server.count) == (0, 12)
    assert Path("grades.jsonl").read_text() == by_batch


def test_failures_of_a_batch_have_their_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = write_job(tmp_path, 5)[3:]
    without_output = [word for word in base if word not in ("-o", "grades.jsonl", "--yes")]
    run_command(*without_output, "--write-batch", "batch.jsonl")
    lines = Path("batch.jsonl").read_text().splitlines()
    expired = {"custom_id": json.loads(lines[2])["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    other = {"custom_id": "f" * 64, "response": {"status_code": 200, "body": good()}}
    written = [
        answer(lines[0]),
        answer(lines[1], {"error": {"message": "too much"}}, 429),
        json.dumps(expired) + "\n",
        answer(lines[3], good(8)),
        json.dumps(other) + "\n",
    ]
    Path("out.jsonl").write_text("".join(written))
    found = run_command(*base, "--read-batch", "out.jsonl")
    assert "1 answers are not of this job" in found.stderr
    grades = [json.loads(line) for line in Path("grades.jsonl").read_text().splitlines()]
    assert [grade["status"] for grade in grades] == ["ok", "http_429", "batch_error", "malformed", "not_sent"]
    assert [grade["reason"] for grade in grades][1:3] == ["too much", "batch_expired"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "line 1: is not JSON"),
        ("[]", "line 1: has no custom_id"),
        ('{"custom_id": 1}', "line 1: has no custom_id"),
    ],
)
def test_a_file_that_is_no_batch_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out.jsonl").write_text(content)
    found = run_command(*write_job(tmp_path, 1)[3:], "--read-batch", "out.jsonl")
    assert (found.returncode, found.stderr.count("\n")) == (2, 2)
    assert said in found.stderr


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (200, "ok"),
        ("200", "ok"),
        ("429", "http_429"),
        *((bad, "http_unknown") for bad in ({"a": 1}, None, "x" * 5_000, 0, True)),
    ],
)
def test_a_status_of_a_batch_is_a_number_or_unknown(tmp_path: Path, status: object, said: str) -> None:
    from goodgain.labelling.answers_and_journal import Journal
    from goodgain.labelling.batch_files import read_batch
    from goodgain.labelling.prompt_requests import Parameters, Request, read_prompt

    request = Request("a" * 64, read_prompt(None), Parameters("m"), "who", "text", None)
    line = {"custom_id": request.key, "response": {"status_code": status, "body": good()}}
    (tmp_path / "out.jsonl").write_text(json.dumps(line))
    with Journal.open(None) as journal:
        assert read_batch(tmp_path / "out.jsonl", [request], journal) == 1
        assert journal.find([request.key])[request.key].status == said


def test_a_batch_file_has_a_name_that_says_so(tmp_path: Path) -> None:
    from goodgain.labelling.batch_files import write_batch
    from goodgain.labelling.budget_and_pace import Limits

    with pytest.raises(gg.InputError, match=r"ends in \.jsonl"):
        write_batch([], tmp_path / "batch.txt", Limits())


def answer_as_anthropic(call: Any) -> str:
    """The line of Anthropic's results: good, with a thought; errored for the documents 1 and 2; expired for 3."""
    number = int(call["params"]["messages"][-1]["content"].split("\ntext ")[1].split("\n")[0])
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": json.dumps({"reason": "x", "grade": 2})},
    ]
    message = {"type": "message", "model": "served", "content": content, "stop_reason": "end_turn"}
    message["usage"] = {"input_tokens": 420, "output_tokens": 18}
    said = {1: "prompt is too long: 210000 tokens > 200000 maximum", 2: "messages: bad"}.get(number)
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    result: dict[str, Any] = {"type": "errored", "error": error} if said else {"type": "succeeded", "message": message}
    return json.dumps({"custom_id": call["custom_id"], "result": {"type": "expired"} if number == 3 else result}) + "\n"


def test_a_batch_of_anthropic_is_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = write_job(tmp_path, 5)[3:]
    without_output = [word for word in base if word not in ("-o", "grades.jsonl", "--yes")]
    assert run_command(*without_output, "--write-batch", "batch.json").returncode == 0
    calls = json.loads(Path("batch.json").read_text())["requests"]
    assert set(calls[0]) == {"custom_id", "params"}
    assert set(calls[0]["params"]) == {"model", "max_tokens", "system", "messages", "temperature"}
    assert [message["role"] for message in calls[0]["params"]["messages"]] == ["user"]
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", call["custom_id"]) for call in calls)
    Path("out.jsonl").write_text("".join(map(answer_as_anthropic, calls)))
    assert run_command(*base, "--read-batch", "out.jsonl").returncode == 0
    grades = [json.loads(line) for line in Path("grades.jsonl").read_text().splitlines()]
    assert [grade["status"] for grade in grades] == ["ok", "too_long", "batch_error", "batch_error", "ok"]
    assert [grade["grade"] for grade in grades] == [2, None, None, None, 2]
    kept = sqlite3.connect("grades.jsonl.journal")
    assert kept.execute("SELECT model, input_tokens FROM answers WHERE grade = 2").fetchall() == [("served", 420)] * 2
    kept.close()


@pytest.mark.parametrize(("name", "limits"), [("batch.jsonl", (4, 10**6)), ("batch.json", (100, 9_000))])
def test_batches_are_split_at_the_limits_of_the_services(
    name: str, limits: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goodgain.labelling import batch_files
    from goodgain.labelling.budget_and_pace import Limits
    from goodgain.labelling.prompt_requests import Parameters, Request, read_prompt

    assert batch_files._LIMITS == {"openai": (50_000, 200_000_000), "anthropic": (100_000, 256_000_000)}
    monkeypatch.setattr(batch_files, "_LIMITS", dict.fromkeys(batch_files._LIMITS, limits))
    requests = [
        Request(f"{model}{k}", read_prompt(), Parameters(model), "who", "text") for model in "ab" for k in range(10)
    ]
    written = batch_files.write_batch(requests, tmp_path / name, Limits())
    assert sum(written.values()) == 20
    assert [path.name for path in written][:2] == [name.replace(".", "-1."), name.replace(".", "-2.")]
    for path, count in written.items():
        text = path.read_text()
        calls = [*map(json.loads, text.splitlines())] if name.endswith("l") else json.loads(text)["requests"]
        assert len(calls) == count <= limits[0]
        assert len(text) <= limits[1]
        assert len({(call.get("body") or call.get("params"))["model"] for call in calls}) == 1  # as OpenAI asks for
