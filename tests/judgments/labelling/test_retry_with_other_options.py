"""`--retry failed` after a changed option sends the calls that failed before, and keeps the grades that were given."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import goodgain as gg
from tests.judgments.labelling.endpoint import Call, completion, good, serve
from tests.judgments.labelling.test_calls import ask, number_of
from tests.judgments.labelling.test_kill import write_job
from tests.support.command import run_command


def fails_at_first(call: Call) -> Any:
    """Documents 0, 3, 6 ... are answered without a schema, or with another parameter, alone."""
    is_changed = "response_format" not in call.body or call.body["max_completion_tokens"] != 2_000
    is_changed |= "reasoning_effort" in call.body
    return good(2) if number_of(call) % 3 or is_changed else completion("no")


CHANGES: dict[str, dict[str, Any]] = {
    "no schema": {"schema": False},
    "more room": {"max_output_tokens": 4_000},
    "less thought": {"reasoning_effort": "low"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_failed_calls_are_found_after_a_changed_option(change: str, tmp_path: Path) -> None:
    with serve(fails_at_first) as server:
        first = ask(server, 9, journal=tmp_path / "j")
        assert first["grade"].null_count() == 3
        found = ask(server, 9, journal=tmp_path / "j", retry_failed=True, **CHANGES[change])
        assert server.count == 12
        assert found["grade"].to_list() == [2] * 9

        # a grade keeps the name of the judge that gave it
        judges = found.filter(~found["doc_id"].is_in(["d0", "d3", "d6"]))["judge"].unique().to_list()
        assert judges == first["judge"].unique().to_list()
        assert found.item(0, "judge").endswith("/low") == (change == "less thought")

        # without retry_failed, another option is another call
        ask(server, 9, journal=tmp_path / "j", **CHANGES[change])
        assert server.count == 18


def test_another_text_or_model_is_another_question(tmp_path: Path) -> None:
    with serve(lambda call: completion("no")) as server:
        ask(server, 3, journal=tmp_path / "j")
        for change in ({"model": "other"}, {"max_characters": 3}, {"prompt": "umbrela"}):
            found = ask(server, 3, journal=tmp_path / "j", retry_failed=True, schema=False, **change)
            assert found["status"].to_list() == ["not_sent"] * 3
        assert server.count == 3


def test_a_damaged_answer_with_other_options_is_not_used(tmp_path: Path) -> None:
    with serve(lambda call: good(2)) as server:
        ask(server, 2, journal=tmp_path / "j")
        connection = sqlite3.connect(tmp_path / "j")
        connection.execute("UPDATE answers SET grade = 99 WHERE doc_id = 'd0'")
        connection.commit()
        connection.close()
        found = ask(server, 2, journal=tmp_path / "j", retry_failed=True, schema=False)
    assert found["grade"].to_list() == [None, 2]


def test_a_journal_of_the_last_version_is_read_and_extended(tmp_path: Path) -> None:
    with serve(fails_at_first) as server:
        ask(server, 4, journal=tmp_path / "j")
        connection = sqlite3.connect(tmp_path / "j")
        for column in ("question", "judge"):
            connection.execute(f"ALTER TABLE answers DROP COLUMN {column}")
        connection.commit()
        connection.close()
        assert ask(server, 4, journal=tmp_path / "j")["grade"].to_list() == [None, 2, 2, None]
        assert server.count == 4
        found = ask(server, 4, journal=tmp_path / "j", retry_failed=True, schema=False)
        assert found["status"].to_list() == ["not_sent"] * 4  # the journal does not know their questions


def test_the_command_finds_failed_calls_after_a_changed_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serve(fails_at_first) as server:
        command = [*write_job(tmp_path, 6)[3:], "--base-url", server.url]
        run_command(*command)
        done = run_command(*command, "--no-schema", "--retry", "failed")
        assert server.count == 8
    assert done.returncode == 0
    assert "grades.jsonl: 2: 6\n" in done.stderr


@pytest.mark.slow
def test_a_first_error_is_told_while_calls_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodgain.judgments.labelling.endpoint._TELL_AFTER", 0.2)

    def script(call: Call) -> Any:
        return good() if call.before else (503, {"error": {"message": "the model is loading"}}, {"Retry-After": "1"})

    with serve(script) as server, pytest.warns(gg.GoodgainNotice) as told:
        assert ask(server, 2)["grade"].to_list() == [3, 3]
    (said,) = [str(one.message) for one in told]
    assert (
        "no call has succeeded yet: " in said
        and "answers 503 (the model is loading). A failed call is tried up to 6 times" in said
    )


@pytest.mark.slow
def test_an_error_after_a_good_answer_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodgain.judgments.labelling.endpoint._TELL_AFTER", 0.0)

    def script(call: Call) -> Any:
        is_good = number_of(call) == 0 or call.before
        return good() if is_good else (503, {"error": {"message": "busy"}}, {"Retry-After": "0.5"})

    with serve(script) as server:  # notices are errors in tests
        assert ask(server, 3, jobs=1)["grade"].to_list() == [3, 3, 3]
