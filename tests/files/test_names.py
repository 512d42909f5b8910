"""A name with a lone surrogate is one error at each door where names are given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import goodgain as gg
from goodgain.judgments.judging.conclusions_from_model_labels import compare_orders
from goodgain.logs.traces import to_run
from tests.logs.traces.logs import conversation, openai_chat

QRELS = {"q": {"a": 3}}
RUN = {"q": {"a": 1.0}}
BY_SYSTEM: dict[str, Callable[[dict[str, Any]], object]] = {
    "compare": lambda systems: gg.compare(QRELS, systems, "CG@1"),
    "curve": lambda systems: gg.curve(QRELS, systems, "CG"),
    "pr_curve": lambda systems: gg.pr_curve(QRELS, systems),
    "coverage": lambda systems: gg.coverage(QRELS, systems),
    "pool": lambda systems: gg.pool(systems),
    "compare_orders": lambda systems: compare_orders(QRELS, QRELS, systems, "CG@1"),
}


@pytest.mark.parametrize("call", BY_SYSTEM)
@pytest.mark.parametrize("name", ["\ud800", "a\udcff"])
def test_a_system_whose_name_has_half_a_character_is_an_error(call: str, name: str) -> None:
    with pytest.raises(gg.InputError, match=r"the system 'a?\\ud[8c].*' is not valid Unicode .*; rename it") as error:
        BY_SYSTEM[call]({name: RUN, "other": RUN})
    str(error.value).encode()


def test_a_judge_whose_name_has_half_a_character_is_an_error() -> None:
    for read in (gg.aggregate, lambda grades: gg.agreement(grades, scale="good-gain")):
        with pytest.raises(gg.InputError, match=r"the judge '\\ud800' is not valid Unicode"):
            read({"\ud800": QRELS, "b": QRELS})


def test_a_system_of_traces_whose_name_has_half_a_character_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(openai_chat(conversation()))
    for call in (
        lambda: gg.read_traces({"\ud800": path}),
        lambda: gg.read_traces(path, tag="\ud800"),
        lambda: to_run(gg.read_traces(path), tag="\ud800"),
    ):
        with pytest.raises(gg.InputError, match=r"the system '\\ud800' is not valid Unicode"):
            call()


def test_errors_and_notices_have_no_control_characters(tmp_path: Path) -> None:
    """A terminal runs what an id has: a traceback of Python prints the message as it is."""
    path = tmp_path / "qrels.csv"
    path.write_text("\x1b]0;x\x07,b\n1,2\n")
    with pytest.raises(gg.InputError, match=r"it has \\x1b\]0;x\\x07, b"):
        gg.read_qrels(path)
    notice = gg.GoodgainNotice("kind", "a\x1b[31m\u202eb", about="c\x9b")
    assert str(notice) == r"c\x9b: a\x1b[31m\u202eb"
