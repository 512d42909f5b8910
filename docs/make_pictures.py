"""Draws the pictures of README and docs into docs/images: `make pictures`.

Each picture of a page is drawn by the code above it. `drawn.json` has the numbers that are drawn: a diff shows what changed in
them. The badges say what version.py and pyproject.toml say. Pictures of a terminal show what commands print at 80 columns.
"""

from __future__ import annotations

import contextlib
import fcntl
import html
import io
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.patches import Rectangle, StepPatch
from rich.console import Console
from rich.text import Text

from goodgain.analysis.reporting.plots.pictures import write_picture
from goodgain.version import __version__

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
#: The pages with pictures of their own.
PAGES = [ROOT / "docs" / name for name in ("pictures.md", "two_logs_curves.md", "rewards.md")]
#: Name of a picture of a terminal -> the folder of its examples, and the command.
TERMINALS = {
    "terminal_evaluate": ("two_agents", 'goodgain evaluate qrels.txt late.run "nDCG@10 nCG@6 SRR@6" -o table'),
    "terminal_compare": (
        "two_agents",
        'goodgain compare qrels.txt quick.run late.run -m "nDCG@10 nCG@6 SRR@6"',
    ),
}
_COLUMNS = 80
_BLOCK = re.compile(r"```python\n(.*?)```\n\n!\[[^\]]*\]\(images/(\w+)\.svg\)", re.DOTALL)


def draw_pictures(page: str) -> Iterator[tuple[str, Any]]:
    """Yield the name and the axes of each picture of a page, in the folder of the checkout."""
    names: dict[str, Any] = {}
    with contextlib.chdir(ROOT):
        for code, name in _BLOCK.findall(page):
            exec(compile(code, name, "exec"), names)  # the page is ours
            yield name, names["ax"]


def list_drawn(figure: Any) -> list[dict[str, Any]]:
    """Return the numbers that each axes of a figure shows: lines, bars, steps and bands."""
    return [
        {
            "lines": [_round(line.get_xydata()) for line in ax.lines],
            "bars": [_round([[b.get_x(), b.get_y(), b.get_height()]]) for b in ax.patches if isinstance(b, Rectangle)],
            "steps": [_round(one.get_path().vertices) for one in ax.patches if isinstance(one, StepPatch)],
            "bands": [_round(path.vertices) for of in ax.collections for path in of.get_paths()],
        }
        for ax in figure.axes
    ]


def _round(points: Any) -> list[list[float]]:
    return [[round(float(value), 6) for value in point] for point in points]


def run_in_terminal(folder: str, command: str) -> str:
    """Return what a command prints into a terminal of 80 columns, with its colours, in a copy of a folder of examples."""
    with tempfile.TemporaryDirectory() as copy:
        place = shutil.copytree(ROOT / "qrels_examples" / folder, Path(copy) / folder)
        ours, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 50, _COLUMNS, 0, 0))
        started = subprocess.Popen(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=place,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": str(_COLUMNS)},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
        os.close(terminal)
        printed = b""
        with contextlib.suppress(OSError):  # the end, on Linux
            while part := os.read(ours, 65_536):
                printed += part
        os.close(ours)
        if started.wait():
            raise SystemExit(f"{command} failed:\n{printed.decode()}")
    # A slow machine shows the progress of work, and takes it away.
    return re.sub(r"\x1b\[\?25l.*\x1b\[2K", "", printed.decode().replace("\r\n", "\n"), flags=re.DOTALL)


def make_terminal(command: str, printed: str) -> str:
    """Return the picture of a terminal as SVG: the command, and what it printed. Long lines are cut as a terminal does."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in (f"$ {command}", *printed.rstrip().split("\n")):
        text = Text.from_ansi(line)
        for part in text.divide(range(_COLUMNS, len(text), _COLUMNS)) or [text]:
            console.print(part, no_wrap=True, overflow="ignore", crop=False)
    svg = console.export_svg(title="goodgain", unique_id=shlex.split(command)[1])
    # An image loads no fonts from the web.
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")


def list_texts(svg: str) -> str:
    """Return the texts of the picture of a terminal, without regard to where rich starts a new one."""
    return html.unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).replace("\xa0", " ")


def make_badges() -> dict[str, str]:
    """Return name -> SVG of the badges: version, Python, licence."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = {"version": __version__, "python": project["requires-python"], "licence": project["license"]}
    return {name: _write_badge(name, text.replace(">=", "≥ ")) for name, text in said.items()}


def _write_badge(name: str, text: str) -> str:
    left, right = (7 * len(part) + 14 for part in (name, text))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{name}: {text}">'
        f'<rect width="{left + right}" height="20" rx="3" fill="#444"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" fill="#0072B2"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{name}</text><text x="{left + right / 2}" y="14">{text}</text></g></svg>\n'
    )


def main() -> None:
    """Write pictures, their numbers and badges."""
    IMAGES.mkdir(exist_ok=True)
    drawn = {}
    for page in PAGES:
        for name, ax in draw_pictures(page.read_text(encoding="utf-8")):
            write_picture(ax.figure, IMAGES / f"{name}.svg")
            drawn[name] = list_drawn(ax.figure)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(of)}" for name, of in drawn.items())
    (IMAGES / "drawn.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    for name, (folder, command) in TERMINALS.items():
        (IMAGES / f"{name}.svg").write_text(make_terminal(command, run_in_terminal(folder, command)), encoding="utf-8")
    for name, text in make_badges().items():
        (IMAGES / f"badge_{name}.svg").write_text(text, encoding="utf-8")
    print(f"{len(drawn)} pictures and {len(make_badges())} badges are in {IMAGES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
