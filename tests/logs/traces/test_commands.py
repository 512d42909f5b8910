"""What convert and dedup print and write, and how they exit: `commands.json` has a case for each rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.command_cases import check_command_case, read_command_cases


@pytest.mark.each
@pytest.mark.parametrize("case", read_command_cases(Path(__file__).parent))
def test_commands_print_write_and_exit_as_the_case_says(case: dict[str, Any], tmp_path: Path) -> None:
    check_command_case(case, tmp_path)
