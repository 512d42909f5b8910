"""Commands on the shipped examples print and write what `whole_outputs.json` says, to the last character."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.whole_outputs import read_commands, run_whole

COMMANDS = read_commands(Path(__file__).parent)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_and_writes_the_same_as_before(command: str, tmp_path: Path) -> None:
    assert run_whole(command, tmp_path) == COMMANDS[command]
