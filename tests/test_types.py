"""Type checkers know the options of public functions: a misspelt option is an error before anything runs."""

from __future__ import annotations

import re
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


#: Checker -> its command, and what it says of an unknown option. basedpyright is pyright, with the Node that it needs.
CHECKERS = {
    "mypy": (["--no-error-summary"], "Unexpected keyword argument"),
    "basedpyright": (["--level", "error"], "No parameter named"),
}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_misspelt_option_is_refused_and_a_right_one_is_not(checker: str, tmp_path: Path) -> None:
    lines = [
        "import goodgain as gg",
        "gg.compare({}, {}, 'nCG', alpha=0.1, missing='absent', order='last')",
        *CALLS.values(),
    ]
    script = tmp_path / "calls.py"
    script.write_text("\n".join(lines) + "\n")

    options, told = CHECKERS[checker]
    command = [sys.executable, "-m", checker, *options, str(script)]
    printed = subprocess.run(command, capture_output=True, text=True).stdout

    errors = [line for line in printed.splitlines() if " error: " in line]
    refused = [line for line in errors if told in line]
    assert [int(re.findall(r":(\d+)", line)[0]) for line in refused] == [*range(3, 3 + len(CALLS))], printed
    assert errors == refused, printed
