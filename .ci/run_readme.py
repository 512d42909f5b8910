"""Runs the commands and the Python of README.md in an empty folder, with the goodgain of this Python: part of `make dist`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def main() -> None:
    """Run block after block, and end at the first that fails."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        for kind, text in re.findall(r"```(sh|python)\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL):
            text = re.sub("^pip install.*$", "", text, flags=re.MULTILINE)
            command = ["bash", "-ec", text] if kind == "sh" else [sys.executable, "-c", text]
            subprocess.run(command, cwd=folder, env=environment, check=True)
    print(f"README.md: all of it runs with {sys.executable}")


if __name__ == "__main__":
    main()
