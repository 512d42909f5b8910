"""The key: one that cannot be sent is refused, and in no form does it reach grades, journal, messages or errors."""

from __future__ import annotations

import html
import json
import traceback
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import goodgain as gg
from tests.judgments.labelling.endpoint import Call, completion, good, serve
from tests.judgments.labelling.test_calls import ask
from tests.judgments.labelling.test_kill import write_job
from tests.support.command import run_command

#: A key with signs that every form of writing escapes.
KEY = "sk-Q7/w+'e\"r\\t&y-u1o2p3"
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "repr": lambda key: repr(key),
    "repr of bytes": lambda key: repr(key.encode()),
    "JSON": json.dumps,
    "JSON of PHP": lambda key: json.dumps(key).replace("/", r"\/"),
    "in a URL": quote,
    "in a form": lambda key: quote(key, safe=""),
    "in HTML": html.escape,
    "wrapped": lambda key: f"{key[:9]}  {key[9:]}",
    "Base64": lambda key: b64encode(key.encode()).decode(),
    "Base64 of a name and the key": lambda key: b64encode(b":" + key.encode()).decode(),
    "Base64 in a URL": lambda key: urlsafe_b64encode(b"x:" + key.encode()).decode().rstrip("="),
}


def is_hidden(text: str) -> bool:
    """Whether no piece of the key of five characters stands in a text, in any form."""
    plain = "".join(text.split())
    forms = ["".join(form(KEY).split()) for form in FORMS.values()]
    return not any(form[k : k + 5] in plain for form in forms for k in range(3, len(form) - 5) if form[k].isalnum())


@pytest.mark.parametrize(
    "key", ["sk-abcdefgh\r", "sk-abcdefgh\r\n", "sk-abcd efgh", " sk-abcdefgh", "sk-abcdéfgh", "sk-abcd\x7fefgh", "\r"]
)
def test_a_key_that_is_not_printable_ascii_is_refused_without_showing_it(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = write_job(tmp_path, 3)[3:]
    before = sorted(tmp_path.iterdir())
    monkeypatch.setenv("MY_KEY", key)

    with serve(lambda call: good()) as server:
        done = run_command(*command, "--base-url", server.url, "--key-variable", "MY_KEY")
        assert done.returncode == 2
        assert "MY_KEY: the key has " in done.stderr
        assert "abcd" not in done.stderr
        with pytest.raises(gg.InputError, match=r"MY_KEY: the key has .*Windows") as raised:
            ask(server, 3, key_variable="MY_KEY", journal=tmp_path / "j")
        assert server.count == 0

    assert "abcd" not in "".join(traceback.format_exception(raised.value))
    assert sorted(tmp_path.iterdir()) == before


def test_an_address_with_a_line_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file of variables has the address."""
    with serve(lambda call: good()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "\r")
        with pytest.raises(gg.InputError, match=r"\\r': is not an http address"):
            gg.label({"q": {"a": 1.0}}, {"q": "who"}, texts={"a": "b"}, model="m")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "reply",
    {
        "error": lambda said: (500, {"error": {"message": said}}, {"Retry-After": "0"}),
        "error that is text": lambda said: (500, said.encode(), {"Content-Type": "text/plain", "Retry-After": "0"}),
        "refused text": lambda said: (400, {"detail": said}, {}),
        "prose": completion,
        "refusal": lambda said: completion(None, refusal=said),
        "reason": lambda said: good(3, said),
        "no text": lambda said: completion([said]),
        "no completion": lambda said: {"oops": {"headers": [said]}},
        "half of JSON": lambda said: b'{"headers": "' + said.encode(),
    }.items(),
    ids=lambda reply: reply[0] if isinstance(reply, tuple) else None,
)
def test_the_key_reaches_neither_grades_nor_journal(
    form: str, reply: tuple[str, Callable[[str], Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every place of a text, too: also where the text is cut."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    places = [0, *(cut - after for cut in (200, 300, 1_000, 4_000) for after in (6, 12, 18, 45))]

    def script(call: Call) -> Any:
        assert call.headers["authorization"] == f"Bearer {KEY}"
        place = places[int(call.body["messages"][-1]["content"].split("\ntext ")[1].split("\n")[0])]
        return reply[1]("." * place + f"Bearer {FORMS[form](KEY)}, and more")

    with serve(script) as server:
        found = ask(server, len(places), journal=tmp_path / "j", tries=1)
    assert not found["status"].is_in(["not_sent", "connection"]).any()
    for row in found.rows(named=True):
        assert is_hidden(f"{row['reason']} {row['raw']}"), row
    assert all(is_hidden(path.read_bytes().decode("utf-8", "replace")) for path in tmp_path.iterdir())


@pytest.mark.parametrize("status", [302, 400, 401, 429])
def test_the_key_is_in_no_error_and_in_nothing_behind_it(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    error = {"message": f"{'.' * 280} Bearer {KEY}", "param": "temperature", "code": "insufficient_quota"}
    location = f"http://127.0.0.1:9/{quote(KEY)}/chat/completions"
    reply = (status, {"error": error}, {"Location": location})
    with serve(lambda call: reply) as server, pytest.raises(gg.InputError) as raised:
        ask(server, 3)
    assert is_hidden("".join(traceback.format_exception(raised.value)))
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert "***" in str(raised.value) or status != 302
