"""Whole outputs: what commands on the shipped examples print and write, and what pictures show.

`whole_outputs.json` of a folder has a list for each command: the status if it is not 0, lines of stdout, of stderr, and of each
written file. Numbers have nine digits. Of a page the pictures, the style and the script are left out. `pictures.json` has what a
picture shows, in three digits (`describe_figure`).

    python -m tests.support.whole_outputs

writes what is printed and shown today into all these files. Read the diff: each changed number has its reason in the commit.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tests.support.command import run_command
from tests.support.tables import ROOT

EXAMPLES = ROOT / "qrels_examples"
NAME = "whole_outputs.json"
_NUMBER = re.compile(r"-?\d+\.\d{9,}(?:e[-+]?\d+)?|-?\d+\.\d+e[-+]?\d+")
_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?|goodgain[ |:=]\d+\.\d+\.\d+\w*|in \d+(?:\.\d+)? s\b"
)
_DRAWN = re.compile(
    r"<(svg|style|script(?! type=.application/json))\b.*?</\1[^>]*>|base64,[\w+/=]+|sha256-[\w+/=]+", re.DOTALL
)


def read_commands(folder: Path) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads((folder / NAME).read_text("utf-8"))
    return found


def run_whole(command: str, folder: Path) -> dict[str, list[str]]:
    """Run a command in a copy of the examples that it names."""
    for name in sorted(
        {part.partition("/")[0].partition("=")[2] or part.partition("/")[0] for part in shlex.split(command)}
    ):
        if (EXAMPLES / name).is_dir() and not (folder / name).exists():
            shutil.copytree(EXAMPLES / name, folder / name)
    before = {path for path in folder.rglob("*") if path.is_file()}
    done = run_command(*shlex.split(command), cwd=folder)
    found = {} if done.returncode == 0 else {"status": [str(done.returncode)]}
    found |= {"stdout": _make_lines(done.stdout, folder), "stderr": _make_lines(done.stderr, folder)}
    for path in sorted({path for path in folder.rglob("*") if path.is_file()} - before):
        if path.suffix not in (".journal", ".parquet"):
            found[str(path.relative_to(folder))] = _make_lines(path.read_text("utf-8"), folder)
    return found


def _make_lines(text: str, folder: Path) -> list[str]:
    text = _CHANGING.sub("...", _DRAWN.sub("", text).replace(str(folder), "HERE"))
    return _NUMBER.sub(lambda number: f"{float(number[0]):.9g}", text).splitlines()


# Pictures


def describe_figure(figure: Figure) -> list[Any]:
    """Return what each axes of a figure shows: scales, ticks, lines, bars, areas, texts and the legend, in three digits."""
    figure.canvas.draw()
    return [_describe_axes(ax) for ax in figure.axes]


def _describe_axes(ax: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "place": _round(ax.get_position().bounds),
        "titles": [ax.get_title(loc) for loc in ("left", "center", "right")] + [ax.get_xlabel(), ax.get_ylabel()],
        "scales": [ax.get_xscale(), ax.get_yscale(), *_round((*ax.get_xlim(), *ax.get_ylim()))],
        "ticks": [_describe_ticks(axis) for axis in (ax.xaxis, ax.yaxis) if axis.get_visible()],
        "lines": [_describe_line(line) for line in ax.lines],
        "bars": [[_round(bar.get_window_extent().bounds), *_look(bar), bar.get_hatch()] for bar in ax.patches],
        "areas": [
            [_round(area.get_facecolor().ravel()), _round(area.get_datalim(ax.transData).bounds), area.get_zorder()]
            for area in ax.collections
        ],
        "texts": [
            [text.get_text(), *_round((*text.get_position(), text.get_fontsize(), text.get_rotation())), *_look(text)]
            for text in ax.texts
        ],
    }  # fmt: skip
    if (legend := ax.get_legend()) is not None:
        place = _round(legend.get_window_extent().bounds[:2])
        found["legend"] = [[text.get_text() for text in legend.get_texts()], legend._ncols, place]
    return {name: shown for name, shown in found.items() if shown}


def _describe_line(line: Any) -> list[Any]:
    look = [line.get_linestyle(), line.get_marker(), *_look(line)]
    return look + _round([line.get_linewidth(), line.get_markersize(), line.get_xdata(), line.get_ydata()])


def _describe_ticks(axis: Any) -> list[Any]:
    labels = axis.get_ticklabels()
    shown = [[label.get_text(), *_round(label.get_position())] for label in labels if label.get_text()]
    return [shown, *_round({(label.get_rotation(), label.get_fontsize()) for label in labels})]


def _look(artist: Any) -> list[Any]:
    """The colour and the order of drawing."""
    colour = artist.get_facecolor() if hasattr(artist, "get_facecolor") else artist.get_color()
    return [colour if isinstance(colour, str) else _round(colour), artist.get_alpha(), artist.get_zorder()]


def _round(values: Any) -> list[Any]:
    """Numbers in three digits, or lists of them."""
    return [_round_one(value) for value in (sorted(values) if isinstance(values, set) else values)]


def _round_one(value: Any) -> Any:
    if isinstance(value, (tuple, list, np.ndarray)):
        return _round(value)
    return value if isinstance(value, str) else float(f"{float(value):.3g}")


def _rewrite(folder: Path) -> None:
    found = {}
    for command in read_commands(folder):
        with tempfile.TemporaryDirectory() as place:
            found[command] = run_whole(command, Path(place).resolve())
    (folder / NAME).write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    for path in sorted((ROOT / "tests").rglob(NAME)):
        _rewrite(path.parent)
