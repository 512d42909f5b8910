"""The first contact with an endpoint: one that cannot be reached, or that sends elsewhere, stops the job at once."""

from __future__ import annotations

import contextlib
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import goodgain as gg
from goodgain.judgments.labelling.budget import StoppedError
from tests.judgments.labelling.endpoint import Call, good, serve
from tests.judgments.labelling.test_calls import ask, documents
from tests.judgments.labelling.test_kill import write_job
from tests.support.command import run_command

pytestmark = pytest.mark.usefixtures("in_its_own_folder")


@pytest.fixture
def closed() -> Iterator[str]:
    """The address of a port that nobody listens to, and nobody else can take."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


def ask_at(url: str, count: int = 3, **options: Any) -> Any:
    texts = documents(count)
    return gg.label({"q": dict.fromkeys(texts, 1.0)}, {"q": "who"}, texts=texts, model="judge", base_url=url, **options)


def closing(grade: int) -> Any:
    """A good answer that ends its connection, so that the next call has to connect."""
    return 200, good(grade), {"Connection": "close"}


@pytest.mark.parametrize("more", [[], ["--retry", "failed"]])
def test_a_closed_port_stops_the_command_with_the_reason_and_nothing_sent(
    closed: str, more: list[str], tmp_path: Path
) -> None:
    command = write_job(tmp_path, 20)[3:]
    began = time.monotonic()
    with serve(lambda call: good(9)) as server:  # all are failures, which --retry sends again
        assert run_command(*command, "--base-url", server.url).returncode == 1  # nothing was graded
    answered = time.monotonic() - began
    for path in Path().glob("grades.jsonl*"):
        if "--retry" not in more or path.name == "grades.jsonl":
            path.unlink()
    began = time.monotonic()
    done = run_command(*command, "--base-url", closed, *more)
    assert time.monotonic() - began < 2 + 2 * answered
    assert done.returncode == 1

    *_, summary, error = done.stderr.splitlines()
    assert re.fullmatch("calls: [1-8], tokens: 0 sent, 0 received", summary)
    assert re.match(rf"goodgain: {re.escape(closed)}: cannot be reached \(.*[Rr]efused.*\)\. ", error)
    assert "--base-url" in error
    assert not Path("grades.jsonl").exists()


def test_a_resumed_job_stops_at_a_closed_port_and_loses_no_answer(closed: str, tmp_path: Path) -> None:
    command = write_job(tmp_path, 12)[3:]
    with serve(lambda call: good(2)) as server:
        run_command(*command, "--base-url", server.url, "--max-calls", "7")
        assert run_command(*command, "--base-url", closed).returncode == 1
        journal = sqlite3.connect("grades.jsonl.journal")
        assert journal.execute("SELECT status, count(*) FROM answers GROUP BY status").fetchall() == [("ok", 7)]
        journal.close()
        assert run_command(*command, "--base-url", server.url).returncode == 0
        assert server.count == 12


def test_python_raises_at_a_closed_port(closed: str) -> None:
    with pytest.raises(StoppedError, match=r"cannot be reached .*base_url=") as raised:
        ask_at(closed.replace("//", "//user:secret@") + "?key=secret")
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None


def test_a_name_that_nobody_has_and_a_server_without_tls_stop_the_job() -> None:
    with pytest.raises(StoppedError, match=r"http://nowhere\.invalid/v1: cannot be reached"):
        ask_at("http://nowhere.invalid/v1")
    with serve(lambda call: good()) as server, pytest.raises(StoppedError, match=r"cannot be reached \(.*SSL"):
        ask_at(server.url.replace("http:", "https:"))


def test_a_port_that_takes_no_connection_in_time_stops_the_job() -> None:
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):  # more than it keeps waiting
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with pytest.raises(StoppedError, match=r"cannot be reached \(timed out\)"):
            ask_at(f"http://127.0.0.1:{full.getsockname()[1]}/v1", timeout=0.5)


@pytest.mark.slow
def test_a_connection_that_is_refused_after_the_first_answer_is_tried_again() -> None:
    with contextlib.ExitStack() as stack:

        def reopen() -> None:
            again.append(stack.enter_context(serve(lambda call: good(1), urlsplit(server.url).port or 0)))

        def script(call: Call) -> Any:
            server.close()
            threading.Timer(0.4, reopen).start()
            return closing(4)

        again: list[Any] = []
        server = stack.enter_context(serve(script))
        found = ask(server, 4, jobs=1)
        assert found["grade"].to_list() == [4, 1, 1, 1]
        assert (server.count, again[0].count) == (1, 3)


@pytest.mark.slow
def test_only_what_was_sent_is_counted_when_the_endpoint_goes_away(tmp_path: Path) -> None:
    def script(call: Call) -> Any:
        server.close()
        return closing(4)

    with serve(script) as server:
        done = run_command(*write_job(tmp_path, 3)[3:], "--base-url", server.url, "--jobs", "1", "--tries", "2")
    assert done.returncode == 0
    assert "\ncalls: 5, tokens: 100 sent, 10 received\n" in done.stderr
    assert "grades.jsonl: 4: 1, connection: 2\n" in done.stderr


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_error_names_the_target(status: int) -> None:
    with serve(lambda call: good(4)) as other:
        target = f"{other.url}/chat/completions?key=secret"
        with serve(lambda call: (status, {}, {"Location": target})) as server:
            with pytest.raises(StoppedError) as raised:
                ask(server, 20)
            assert server.count <= 8
        assert other.count == 0
    said = f"{server.url}: redirects to {other.url}/chat/completions, and redirects are not followed. If you trust it, "
    assert str(raised.value) == f"{said}give base_url='{other.url}'"
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "target", ["/login", "//[", "https://user:secret@login.example:99999/a?b=secret", "/v1/chat/completions?a=secret"]
)
def test_a_redirect_to_anything_stops_the_job(target: str) -> None:
    with serve(lambda call: (302, b"", {"Location": target})) as server, pytest.raises(StoppedError) as raised:
        ask(server, 2)
    assert "redirects to" in str(raised.value)
    assert str(raised.value).endswith("Correct base_url=")
    assert "secret" not in str(raised.value)


def test_a_redirect_after_the_first_answer_is_a_failure_and_no_grade(tmp_path: Path) -> None:
    with serve(lambda call: good(4)) as other:
        answers = iter([good(1)])

        def script(call: Call) -> Any:
            return next(answers, (302, b"", {"Location": f"{other.url}/login"}))

        with serve(script) as server:
            found = ask(server, 3, jobs=1)
        assert other.count == 0
    assert found["grade"].to_list() == [1, None, None]
    assert found["status"].to_list() == ["ok", "http_302", "http_302"]
    assert found["reason"].to_list()[1:] == [f"redirects to {other.url}/login"] * 2


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(lambda call: good()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        assert ask_at("http://endpoint.invalid/v1", 1)["grade"].to_list() == [3]
    assert proxy.calls[0].headers["host"] == "endpoint.invalid"
