"""`--plot` of curve and compare: what is written, and what is refused before any work; and the sparklines of a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import goodgain as gg
from goodgain.analysis.reporting.plots import pictures
from goodgain.cli.printed_tables import draw_sparkline
from tests.support.command import COMMAND, run_command
from tests.support.counts import EVERYTHING
from tests.support.tables import ROOT

FOLDER = ROOT / "qrels_examples" / "redundancy"
QRELS, LEAN, REPEATING = (FOLDER / name for name in ("qrels.txt", "lean.run", "repeating.run"))
CURVE = ("curve", QRELS, LEAN, REPEATING, "-m", "CG SRE")
COMPARE = ("compare", QRELS, LEAN, REPEATING, "-m", "SRR@3 CG@3", "-o", "csv")


@pytest.mark.parametrize(
    ("arguments", "name", "begin"),
    [(CURVE, "a.png", b"\x89PNG"), (COMPARE, "a.svg", b"<?xml"), (CURVE, "A.PDF", b"%PDF")],
)
def test_a_picture_is_written_beside_the_numbers(
    arguments: tuple[object, ...], name: str, begin: bytes, tmp_path: Path
) -> None:
    done = run_command(*arguments, "--plot", tmp_path / name)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run_command(*arguments).stdout
    assert (tmp_path / name).read_bytes().startswith(begin)
    assert f"picture: {tmp_path / name}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]  # no part of a file is left


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["svg", "pdf"] if EVERYTHING else ["svg"])
def test_the_same_data_give_the_same_file(suffix: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{k}.{suffix}" for k in range(2)]
    for file in files:
        run_command(*CURVE, "--plot", file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert b"<dc:date>" not in files[0].read_bytes()


def test_a_picture_that_cannot_be_finished_leaves_what_stood_there(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("before")
    done = run_command(*CURVE, "--plot", tmp_path / "none" / "a.svg")
    assert done.returncode == 2
    assert "does not exist. Create it" in done.stderr

    class Broken(Figure):
        def draw(self, _renderer: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pictures.write_picture(Broken(), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_a_picture_of_very_many_pairs_shows_some_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_MOST_PLOTS", 1)
    compared = gg.compare(QRELS, {"lean": LEAN, "repeating": REPEATING}, "SRR@3 CG@3")
    with pytest.warns(
        gg.GoodgainNotice, match="the picture shows 1 of 2 pairs and measures; name fewer measures, or a baseline"
    ):
        figure = pictures.draw_comparison(compared)
    assert len(figure.axes) == 1


@pytest.mark.slow
def test_a_terminal_shows_each_curve_as_bars_and_a_pipe_does_not() -> None:
    assert "▄▇█" not in run_command(*CURVE, "-o", "table").stdout
    main, side = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *map(str, CURVE)], stdout=side, stderr=subprocess.DEVNULL, env=os.environ | {"COLUMNS": "80"}
    ):
        os.close(side)
        printed = b"".join(iter(lambda: read_terminal(main), b"")).decode()
    os.close(main)
    assert "Iterations 1 to 3" in printed
    rows = [line for line in printed.splitlines() if "▄▇█" in line]
    assert [name for line in rows for name in ("lean", "repeating") if name in line] == ["lean", "repeating"]


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # Linux: the other side is closed
        return b""


def test_a_sparkline_goes_from_0_to_the_highest_value_of_all_systems() -> None:
    assert draw_sparkline([0.0, 0.5, 1.0], 1.0) == "▁▅█"
    assert draw_sparkline([0.0, 0.5, 1.0], 2.0) == "▁▃▅"
    assert draw_sparkline([0.0, 0.0], 0.0) == "▁▁"
    assert draw_sparkline([None, 1.0], 1.0) == "·█"
    long = draw_sparkline([k / 99 for k in range(100)], 1.0)
    assert len(long) == 40
    assert long[-1] == "█"
