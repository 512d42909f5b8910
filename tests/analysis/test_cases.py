"""Rules by examples: `commands.json` and `calls.json` have a case for each, with what is printed, written, returned or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.call_cases import check_call_case, read_call_cases
from tests.support.command_cases import check_command_case, read_command_cases
from tests.support.counts import some_of

FOLDER = Path(__file__).parent


@pytest.mark.each
@pytest.mark.parametrize("case", some_of(read_command_cases(FOLDER), every=2))
def test_commands_print_write_and_exit_as_the_case_says(case: dict[str, Any], tmp_path: Path) -> None:
    check_command_case(case, tmp_path)


@pytest.mark.each
@pytest.mark.parametrize(("call", "case"), some_of(read_call_cases(FOLDER), every=2))
def test_calls_return_and_say_what_the_case_says(call: str, case: dict[str, Any], tmp_path: Path) -> None:
    check_call_case(call, case, tmp_path)
