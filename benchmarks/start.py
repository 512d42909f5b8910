"""How fast goodgain starts, beside `python -c 'import polars, ir_measures'`.

    python benchmarks/start.py            # of the installed goodgain; takes a minute

What is printed is a ratio of medians: all commands are timed in turn, whole processes, after a run each that compiles.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 21
EXAMPLE = Path(__file__).parents[1] / "qrels_examples" / "guideline"
PEER = "import polars, ir_measures"
COMMANDS = {
    PEER: [sys.executable, "-c", PEER],
    "import goodgain": [sys.executable, "-c", "import goodgain"],
    "goodgain evaluate, a small file": [
        *(sys.executable, "-m", "goodgain", "evaluate"),
        *(str(EXAMPLE / "qrels.txt"), str(EXAMPLE / "agent.run"), "nDCG@10 SRE@3"),
    ],
}
#: The largest ratios that a user should have to wait for.
TARGETS = {"import goodgain": 1.4, "goodgain evaluate, a small file": 1.8}


def time_once(command: list[str]) -> float:
    """Return the seconds of one process, which may keep what it compiles."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


def main() -> None:
    """Time the commands in turn, and print each as a multiple of the peer's."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(ROUNDS + 1):
        for name, command in COMMANDS.items():
            taken = time_once(command)
            if number:
                seconds[name].append(taken)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        target = f", target {TARGETS[name]}" if name in TARGETS else ""
        print(f"{name}: {median / medians[PEER]:.2f} (median of {ROUNDS}: {median:.3f} s{target})")


if __name__ == "__main__":
    main()
