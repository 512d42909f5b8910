"""A notice points at the user's own line."""

from __future__ import annotations

import pytest

import goodgain as gg


def test_a_notice_names_the_line_that_called_us() -> None:
    with pytest.warns(gg.GoodgainNotice) as told:
        gg.evaluate({"q": {"a": 2}}, {"q": {"a": 1.0}}, "SRE@3")
    assert told[0].filename == __file__
