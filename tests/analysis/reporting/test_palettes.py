"""Systems, verdicts and kinds of results have colours of their own, which colour-blind readers and grey print tell apart."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from goodgain.analysis.comparing.rendering import VERDICT_COLOURS
from goodgain.analysis.reporting import report
from goodgain.analysis.reporting.plots.canvas import style_of
from goodgain.analysis.reporting.plots.plot_data import KINDS
from goodgain.files import pages

SYSTEMS = [style_of(number) for number in range(4)]
PALETTES = {
    "systems": [one["color"] for one in SYSTEMS],
    "verdicts": [*VERDICT_COLOURS.values()],
    "kinds": [kind.colour for kind in KINDS.values()],
}
#: What each kind of colour-blindness makes of linear RGB (Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009).
SEEN = {
    "all colours": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
#: The style of all pages, then that of reports.
CSS = "".join(
    (Path(module.__file__).parent / "page" / name).read_text().lower()
    for module, name in ((pages, "page.css"), (report, "report.css"))
)


def see(colour: str, eyes: str) -> np.ndarray:
    """Return CIELAB of a colour as these eyes see it."""
    rgb = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(SEEN[eyes]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(xyz / [0.9505, 1, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", SEEN)
def test_colours_of_a_palette_differ_for_all_eyes(eyes: str) -> None:
    for colours in PALETTES.values():
        for one, other in combinations(colours, 2):
            assert np.linalg.norm(see(one, eyes) - see(other, eyes)) > 18, (eyes, one, other)


def test_no_colour_means_two_things() -> None:
    colours = [colour for palette in PALETTES.values() for colour in palette]
    assert len({*map(str.lower, colours)}) == len(colours)
    for one, other in combinations(PALETTES.values(), 2):
        assert min(np.linalg.norm(see(a, "all colours") - see(b, "all colours")) for a in one for b in other) > 18


def test_grey_print_has_patterns_for_kinds_and_lines_for_systems() -> None:
    assert len({kind.hatch for kind in KINDS.values()}) == len(KINDS)
    assert len({str(system["linestyle"]) for system in SYSTEMS}) == len({system["marker"] for system in SYSTEMS}) == 4


def test_the_page_has_the_colours_of_its_pictures() -> None:
    light = CSS.partition("@media")[0]
    for verdict, colour in VERDICT_COLOURS.items():
        assert f"--{verdict}: {colour.lower()};" in light
        assert f'.pictures [fill="{colour.lower()}"]' in CSS
    for name, kind in KINDS.items():
        (rule,) = re.findall(rf"\.badge\.{name.replace('_', '-')}::before {{ background: (.*?); }}", CSS)
        assert kind.colour.lower() in rule
