"""What an endpoint answers and what comes of it: each case of scripted_endpoints.json is a rule, answers, and steps.

A reply holds for the calls that meet all of its `when`; a call that meets none gets grade 3. A step labels documents with
`options`, or runs the command with `run`. `calls` counts from the beginning of the case.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from string import Template
from typing import Any

import pytest

import goodgain as gg
from goodgain.judgments.labelling.budget import StoppedError, UnusableError
from tests.judgments.labelling.endpoint import Call, Script, Server, completion, good, serve
from tests.judgments.labelling.test_calls import ask, number_of
from tests.judgments.labelling.test_kill import write_job
from tests.support.command import run_command

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("scripted_endpoints.json").read_text("utf-8"))
ERRORS = {"InputError": gg.InputError, "StoppedError": StoppedError, "UnusableError": UnusableError}
#: What a reply can depend on: the number of the document, how often the call came before, the number of the call, its body.
WHEN: dict[str, Callable[[Call, int, Any], bool]] = {
    "document": lambda call, number, wanted: number_of(call) == wanted,
    "document below": lambda call, number, wanted: number_of(call) < wanted,
    "remainder of 20 below": lambda call, number, wanted: number_of(call) % 20 < wanted,
    "even document": lambda call, number, wanted: (number_of(call) % 2 == 0) is wanted,
    "came before": lambda call, number, wanted: (call.before > 0) is wanted,
    "call up to": lambda call, number, wanted: number <= wanted,
    "has": lambda call, number, wanted: wanted in call.body,
    "model": lambda call, number, wanted: call.body["model"] == wanted,
}


def make_script(step: Callable[[], dict[str, Any]]) -> Script:
    numbers = count(1)

    def script(call: Call) -> Any:
        number = next(numbers)
        for reply in step().get("replies", []):
            if all(WHEN[name](call, number, wanted) for name, wanted in reply.get("when", {}).items()):
                return write_reply(reply, {"number": str(number_of(call)), "header": call.headers.get("api-key", "")})
        return good()

    return script


def write_reply(reply: dict[str, Any], names: dict[str, str]) -> Any:
    reply = json.loads(Template(json.dumps(reply)).safe_substitute(names))
    if "status" in reply:
        body = reply.get("body", {})
        return reply["status"], body.encode() if isinstance(body, str) else body, reply.get("headers", {})
    if "grade" in reply:
        return good(reply["grade"], reply.get("reason", "because"))
    if "content" in reply:
        body = completion(reply["content"], finish=reply.get("finish", "stop"))
        body["choices"][0]["message"] |= reply.get("message", {})
        return body
    return reply["instead"]


@pytest.mark.each
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["rule"], marks=[pytest.mark.slow] * case.get("slow", False)) for case in CASES]
)
def test_an_endpoint_s_answers_have_the_stated_outcome(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    steps = case.get("steps", [case])
    current = steps[0]

    with serve(make_script(lambda: {"replies": case.get("replies", [])} | current)) as server:
        for current in steps:
            (run_step if "run" in current else ask_step)(current, server)
            assert server.count == current.get("calls", server.count)
            assert server.count <= current.get("calls at most", server.count)

    if "sent" in case:
        found = [
            {name: call.body.get(name, "absent") for name in sent}
            for call, sent in zip(server.calls, case["sent"], strict=True)
        ]
        assert found == case["sent"]


def ask_step(step: dict[str, Any], server: Server) -> None:
    raises: Any = contextlib.nullcontext()
    if "error" in step:
        raises = pytest.raises(ERRORS[step.get("raises", "StoppedError")], match=step["error"])
    with raises, pytest.warns(match=step["notice"]) if "notice" in step else contextlib.nullcontext():
        found = ask(server, step["documents"], **step.get("options", {}))

    if "error" in step:
        return
    statuses = found["status"].to_list()
    wanted = step.get("statuses", statuses)
    assert (Counter(statuses) if isinstance(wanted, dict) else statuses) == wanted
    assert statuses.count("not_sent") >= step.get("not sent at least", 0)
    assert found["grade"].to_list() == step.get("grades", found["grade"].to_list())

    for reason, wanted in zip(found["reason"], step.get("reasons", found["reason"]), strict=True):
        assert reason == wanted or re.search(wanted, reason), (reason, wanted)


def run_step(step: dict[str, Any], server: Server) -> None:
    arguments = [*write_job(Path(), step["documents"])[3:], "--base-url", server.url]
    done = run_command(*(word for word in arguments if word not in step.get("without", [])), *shlex.split(step["run"]))
    assert done.returncode == step["status"], done.stderr
    assert all(said in done.stderr for said in step.get("stderr", [])), done.stderr
    for place, wanted in enumerate(reversed(step.get("last lines", [])), 1):
        assert re.fullmatch(wanted, done.stderr.splitlines()[-place])
    if "grades" in step:
        assert [json.loads(row)["grade"] for row in Path("grades.jsonl").read_text().splitlines()] == step["grades"]
