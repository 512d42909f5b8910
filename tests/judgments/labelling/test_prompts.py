"""Prompts: what is put in, and marks that a document cannot write."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodgain as gg
from goodgain.judgments.labelling.keys import Key
from goodgain.judgments.labelling.prompt_requests import Prompt, read_prompt


def marks(message: str) -> list[str]:
    return [
        line.removeprefix("<document ").removesuffix(">")
        for line in message.split("\n")
        if line.startswith("<document ")
    ]


def test_our_prompt_says_the_scale_to_the_system_and_shows_the_document_to_the_user() -> None:
    system, user = read_prompt().messages("who paid", "the state paid")
    assert system["role"] == "system"
    assert user["role"] == "user"
    assert all(f"\n{grade} - " in system["content"] for grade in range(5))
    assert "the state paid" in user["content"]
    assert "the state paid" not in system["content"]
    assert "{{" not in system["content"] + user["content"]


def test_a_description_stands_below_the_query_and_leaves_no_gap_where_there_is_none() -> None:
    prompt = read_prompt()
    assert "Query: who\n\n<document" in prompt.messages("who", "text")[1]["content"]
    assert "Query: who\nthe payer\n\n<document" in prompt.messages("who", "text", description="the payer")[1]["content"]


@given(st.text())
def test_the_mark_follows_from_the_text_and_does_not_occur_in_it(text: str) -> None:
    content = read_prompt().messages("q", text)[1]["content"]
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    assert f"<document {mark}>\n{text}\n</document {mark}>" in content
    assert mark not in text


def test_the_mark_grows_until_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is known that holds its own hash, so the hash is one that the text holds."""

    class Fixed:
        def hexdigest(self) -> str:
            return "ab" * 32

    monkeypatch.setattr("goodgain.judgments.labelling.prompt_requests.hashlib.sha256", lambda _: Fixed())
    for text in ("ab" * 8, "ab" * 20, "ab" * 32):
        mark = Prompt("p", "{{document}}").messages("q", text)[0]["content"].split("\n")[0][len("<document ") : -1]
        assert mark not in text
        assert set(mark) == {"a", "b"}


def test_what_stands_in_query_and_document_is_not_replaced() -> None:
    content = read_prompt().messages("{{document}} {{query}}", "{{query}}")[1]["content"]
    assert content.startswith("Query: {{document}} {{query}}\n")
    assert "\n{{query}}\n" in content


def test_a_prompt_of_ones_own_has_its_name_and_hash(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("Grade {{document}} for {{query}}")
    prompt = read_prompt(path)
    assert prompt.name == "mine"
    assert prompt.hash == hashlib.sha256(path.read_bytes()).hexdigest()[:6]
    assert [message["role"] for message in prompt.messages("a", "b")] == ["user"]


@pytest.mark.parametrize("place", ["query", "document"])
def test_a_prompt_without_a_place_is_refused(tmp_path: Path, place: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text({"query": "{{document}}", "document": "{{query}}"}[place])
    with pytest.raises(gg.InputError, match=rf"the prompt has no \{{\{{{place}\}}\}}"):
        read_prompt(path)
    with pytest.raises(gg.InputError, match="absent"):
        read_prompt(tmp_path / "absent.txt")


def test_the_text_of_a_prompt_in_place_of_its_file_is_one_sentence() -> None:
    with pytest.raises(gg.InputError, match="file name too long"):
        read_prompt("You judge a document. " * 100)
    with pytest.raises(gg.InputError, match="prompt= is a list; give the path of a file"):
        gg.label({"q": {"a": 1.0}}, {"q": "who"}, model="judge", texts={"a": "text"}, prompt=["good-gain"])


def test_headers_are_a_dict_whose_values_are_sent_as_text() -> None:
    assert Key("NO_SUCH_VARIABLE", {"X-Try": 1}).headers == {"X-Try": "1"}
    with pytest.raises(gg.InputError, match="headers= is a str; give a dict"):
        Key("NO_SUCH_VARIABLE", "X-Try: 1")
