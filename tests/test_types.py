"""Type checkers know the options of public functions: a misspelt option is an error before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CALLS = {
    "evaluate": "gg.evaluate({}, {}, 'nCG', mising='absent')",
    "compare": "gg.compare({}, {}, 'nCG', alhpa=0.1)",
    "Experiment": "gg.Experiment({}, {}, ordr='last')",
    "with_": "gg.Experiment({}, {}).with_(resample=99)",
}


@pytest.mark.slow
def test_mypy_refuses_a_misspelt_option_and_takes_the_right_ones(tmp_path: Path) -> None:
    lines = [
        "import goodgain as gg",
        "gg.compare({}, {}, 'nCG', alpha=0.1, missing='absent', order='last')",
        *CALLS.values(),
    ]
    script = tmp_path / "calls.py"
    script.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), str(script)]
    printed = subprocess.run(command, capture_output=True, text=True).stdout
    refused = [line for line in printed.splitlines() if "Unexpected keyword argument" in line]
    assert [int(line.split(":")[1]) for line in refused] == [*range(3, 3 + len(CALLS))], printed
