"""What a notebook shows of scores, comparisons and ledgers: their numbers, with every text escaped."""

from __future__ import annotations

import re
from base64 import b64decode
from xml.etree import ElementTree

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.reporting import show_curve, show_ledger
from tests.support.tables import ROOT, no_notices

FOLDER = ROOT / "qrels_examples" / "redundancy"
HOSTILE = "<script>alert('$x')</script>\u202e"


class Reader:
    """The cells of tables, the tags, and the labels of pictures. Tags that are not closed in order are an error."""

    def __init__(self, text: str) -> None:
        root = ElementTree.fromstring(f"<body>{text}</body>")
        self.rows = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
        self.tags = {one.tag for one in root.iter()} - {"body"}
        self.labels = [one.attrib["aria-label"] for one in root.iter() if "aria-label" in one.attrib]


def test_scores_show_each_measure_with_its_direction_and_how_it_was_made() -> None:
    scores = gg.evaluate(FOLDER / "qrels.txt", FOLDER / "lean.run", "nDCG@10 SRR NumRet")
    shown = scores._repr_html_()
    assert Reader(shown).rows == [
        ["measure", "value"],
        ["nDCG@10 ↑", "0.8996"],
        ["SRR ↓", "0.0000"],
        ["NumRet", "10.0000"],
    ]
    assert "Means over 2 queries" in shown and f"qrels={scores.signature['qrels']}" in shown


def test_a_comparison_shows_the_tables_of_its_text_and_a_picture_of_each_interval() -> None:
    runs = {HOSTILE: FOLDER / "lean.run", "repeating": FOLDER / "repeating.run"}
    compared = gg.compare(FOLDER / "qrels.txt", runs, "CG@3 SRE@3 SRR@3")
    found = Reader(compared._repr_html_())
    tables = {"table", "caption", "thead", "tbody", "tr", "th", "td", "b", "ul", "li", "small"}
    assert found.tags <= tables | {"svg", "line", "circle"}
    assert found.rows[0] == ["measure", HOSTILE.replace("\u202e", "�"), "repeating"]
    assert ["SRR@3 ↓", "0.0000", "0.4643"] in found.rows

    pairs = compared.to_text("markdown").split("\n\n")[3].replace("\\", "").splitlines()[2:]
    shown = [row for row in found.rows if len(row) > 5][1:]
    assert [[cell.strip().removesuffix("�") for cell in row] for row in shown] == [  # Markdown leaves the sign out
        [cell.strip().removesuffix("\u202e") for cell in line.strip("|").split("|")] for line in pairs
    ]
    assert len(found.labels) == 2  # not for CG@3, where all differences are zero


def test_the_pictures_of_a_measure_share_one_scale() -> None:
    labels = {"a": 4, "b": 3, "x": 0}
    runs = {name: {query: {name: 1.0} for query in ("q1", "q2")} for name in labels}
    with no_notices():
        shown = gg.compare(dict.fromkeys(("q1", "q2"), labels), runs, "CG@1")._repr_html_()
    assert shown.count('<svg width="90" height="12"') == 3
    places = [float(place) for place in re.findall(r'<circle cx="([\d.]+)" cy="6.0"', shown)]
    # 0.94 of the half of 90 is the largest difference, 4. The others are 3 and 1.
    assert sorted(abs(place - 45) for place in places) == pytest.approx([42.3 / 4, 42.3 * 3 / 4, 42.3], abs=0.06)


def test_a_ledger_stays_a_frame_and_is_shown_with_bars() -> None:
    ledger = gg.ledger(FOLDER / "qrels.txt", FOLDER / "repeating.run", measures="SRE")
    assert type(ledger) is pl.DataFrame
    shown = show_ledger(ledger)
    assert shown.frame is ledger
    found = Reader(shown._repr_html_())
    assert found.rows[0] == ["results", *ledger.columns]
    assert found.rows[2][1:] == ["q1", "2", "4", "2", "2", "1", "3", "0", "yes", "0.4286", "1"]
    assert found.labels[1] == "1 new, good; 1 new, not good; 0 new, unjudged; 2 repeated"
    widths = [float(width) for width in re.findall(r'<rect x="[\d.]+" y="1" width="([\d.]+)"', shown._repr_html_())]
    assert widths[4:8] == [32.0, 32.0, 0.0, 64.0]  # 160 is five results, the most of any row


def test_a_long_ledger_is_cut_and_says_so() -> None:
    with no_notices():
        ledger = gg.ledger({HOSTILE: {"a": 2}}, {HOSTILE: {"a": 1.0}, "other": {"b": 1.0}})
    shown = show_ledger(ledger, rows=1)._repr_html_()
    assert len(Reader(shown).rows) == 2
    assert "and 1 more" in shown and "<script>" not in shown
    with pytest.raises(gg.InputError, match=r"this is not a ledger; give the frame that gg\.ledger returns"):
        show_ledger(ledger.drop("UR"))


@pytest.mark.slow
def test_a_curve_stays_a_frame_and_is_shown_with_a_plot_and_its_rows() -> None:
    runs = {HOSTILE: FOLDER / "lean.run", "again": FOLDER / "repeating.run"}
    for options in ({}, {"over": "results"}):
        frame = gg.curve(FOLDER / "qrels.txt", runs, "CG SRE", **options)  # type: ignore[arg-type]
        assert isinstance(frame, pl.DataFrame)
        shown = show_curve(frame, rows=2)
        assert shown.frame is frame and repr(shown) == repr(frame)
        text = shown._repr_html_()
        assert len(Reader(text).rows) == 3 and f"and {frame.height - 2} more" in text and "<script>" not in text
        (png,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
        assert b64decode(png).startswith(b"\x89PNG")

    for wrong in (frame.drop("low"), frame.clear(), {}):
        with pytest.raises(gg.InputError, match=r"this is not a curve; give the frame that gg\.curve returns"):
            show_curve(wrong)  # type: ignore[arg-type]
