"""A report without labels has the parts that need none, and no empty section."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.tables import ROOT

EXAMPLE = ROOT / "qrels_examples/two_agents"
RUNS = {name: EXAMPLE / f"{name}.run" for name in ("quick", "late")}
pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")


def write(path: Path, runs: dict[str, Path], measures: str | None = None, **options: object) -> str:
    given = {} if measures is None else {"measures": measures}
    return gg.report(gg.NO_LABELS, runs, path, **given, **options).read_text("utf-8")  # type: ignore[arg-type]


@pytest.mark.parametrize("systems", [["quick"], ["quick", "late"]])
def test_a_page_has_no_section_about_labels_and_none_that_is_empty(systems: list[str], tmp_path: Path) -> None:
    page = write(tmp_path / "r.html", {name: RUNS[name] for name in systems})
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections == ["doubts", "tables", "pictures", "made"]
    assert re.findall(r'<a href="#(\w+)">', page) == sections
    for section in re.split(r'<section id="', page)[1:]:
        text = re.sub(r"<[^>]*>", " ", section.partition("</section>")[0])
        assert len(text.split()) > 8
    for word in ("good material", "judged share", "Judged share", "relevant", "nothing good"):
        assert word not in page
    assert "Without labels no number says" in page
    assert "--sample-queries" not in page  # Python has its own next call
    assert "goodgain.pool(runs)" in page


def test_tiles_have_the_largest_iteration_that_measures_name(tmp_path: Path) -> None:
    page = write(tmp_path / "r.html", RUNS, "SRR@2 NumUnique@3 NumResults")
    assert "NumUnique@3" in page and "SRR@3" in page
    assert "SRR@6" not in page


def test_tiles_have_the_means_of_the_comparison(tmp_path: Path) -> None:
    page = write(tmp_path / "r.html", RUNS)
    tiles = re.findall(r'<div class="tile"><p><b>(.*?)</b>.*?<dl>(.*?)</dl>', page, re.DOTALL)
    shown = {title: re.findall(r"<dd>(.*?)</dd>", values) for title, values in tiles}
    compared = gg.compare_unlabelled(RUNS, "NumUnique@6 SRR@6 NumIter", baseline="quick")
    means = {measure: [] for measure in ("NumUnique@6", "SRR@6", "NumIter")}  # type: dict[str, list[str]]
    for row in compared.means.iter_rows(named=True):
        places = 2 if row["measure"] == "NumIter" else 4
        means[row["measure"]].append(f"{row['mean']:.{places}f}")

    assert shown["Different documents found"][:2] == means["NumUnique@6"]
    assert shown["Share of repeated results"][:2] == means["SRR@6"]
    assert shown["Searches per query"][:2] == means["NumIter"]
    assert compared.pairs.filter(measure="NumIter").item(0, "verdict") == "worse"
    assert "more, beyond chance" in page  # as in a report with labels: searches are a cost
    assert "and has more searches, more results and more different documents than quick." in page
    assert "late has more searches than quick: NumIter ↓ (" in page
    section = page.partition('<section id="tables"')[2].partition("<details>")[0]
    assert re.findall(r"<td>NumIter.*?>(\w+)</td></tr>", section) == ["more"]
    assert compared.shared is not None
    (pair,) = compared.shared.pairs.to_dicts()
    assert shown["Documents that both found"] == [f"{pair['jaccard']:.4f}", f"{pair['rbo']:.4f}"]


def test_a_count_has_more_or_fewer_and_is_not_better(tmp_path: Path) -> None:
    page = write(tmp_path / "r.html", RUNS, "NumResults NumUnique SRR@6 NumIter")
    shown = re.sub(r"<[^>]*>", " ", page.partition('<script type="application/json"')[0])
    counts = "more results, more different documents and more searches"
    assert f"Beyond chance, late is better in SRR@6, and has {counts} than quick." in shown
    assert "late has more results than quick: NumResults ↓ (" in shown
    assert "late has more different documents than quick: NumUnique ↑ (" in shown
    section = page.partition('<section id="tables"')[2].partition("<details>")[0]
    verdicts = dict(re.findall(r"<tr><td>(\S+).*?>(\w+)</td></tr>", section))
    assert {name: verdicts[name] for name in ("NumResults", "NumUnique", "NumIter")} == dict.fromkeys(
        ("NumResults", "NumUnique", "NumIter"), "more"
    )
    assert 'class="better"' not in page.partition('aria-label="Main figures"')[2].partition("Share of repeated")[0]


def test_the_tables_say_which_measures_are_of_tiles_and_what_marks_mean(tmp_path: Path) -> None:
    runs = RUNS | {"again": RUNS["quick"]}
    page = write(tmp_path / "r.html", runs, "SRR@6 NumDup", groups=EXAMPLE / "groups.csv")
    above = page.partition('<section id="tables"')[2].partition("<table")[0]
    assert "Beside the measures asked for: NumUnique@6 and NumIter, measures of tiles." in above
    marked = re.findall(r"<td[^>]*>[^<]* \*</td>", page.partition('<section id="pictures"')[0])
    assert marked and '<td class="number best' in page
    words = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page.partition('<section id="made"')[2]))
    assert words["bold"] == "the best mean of a measure"
    assert words["*"].startswith("a significant difference in a group of queries (p &lt;= 0.05, randomisation test, ")
    assert f"Bold: {words['bold']}." in above and f"*: {words['*']}." in above

    of_all = write(tmp_path / "a.html", {"quick": RUNS["quick"], "late": RUNS["late"]}, "NumUnique@6 SRR@6 NumIter")
    assert "measures asked for" not in of_all.partition('<section id="tables"')[2].partition("<table")[0]


def test_a_command_makes_the_report_again(tmp_path: Path) -> None:
    data = json.loads(write(tmp_path / "r.json", RUNS))["command"]
    assert data.startswith("goodgain report --no-labels quick=")
    assert "nDCG" not in data


def test_named_measures_are_compared_and_others_refused(tmp_path: Path) -> None:
    data = json.loads(write(tmp_path / "r.json", RUNS, "SRR@3 NumUnique"))
    assert {row["measure"] for row in data["pairs"]} == {"SRR@3", "NumUnique"}
    assert {row["measure"] for row in data["queries"]} == {"SRR@3", "NumUnique"}
    assert data["shared"][0]["both"] == 230.0
    with pytest.raises(gg.MeasureError, match="nCG: needs relevance labels"):
        write(tmp_path / "r.json", RUNS, "nCG")
    with pytest.raises(gg.InputError, match="uses= needs relevance labels"):
        write(tmp_path / "r.json", RUNS, uses=str(tmp_path / "uses.jsonl"))


def test_three_systems_and_several_runs_of_one_have_a_page(tmp_path: Path) -> None:
    runs = {"quick": [RUNS["quick"], RUNS["late"]], "late": RUNS["late"], "again": RUNS["quick"]}
    page = gg.report(gg.NO_LABELS, runs, tmp_path / "r.html").read_text("utf-8")
    assert "again" in page and 'id="tables"' in page


def test_hostile_names_and_ids_do_nothing(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    runs = {name: {"<img src=x onerror=alert(1)>": {"<b>": 2.0}}, "b": {"<img src=x onerror=alert(1)>": {"<b>": 1.0}}}
    page = gg.report(gg.NO_LABELS, runs, tmp_path / "r.html").read_text("utf-8")
    assert "<script>alert" not in page and "<img" not in page


def test_advice_on_different_ends_names_the_command_that_has_the_option(tmp_path: Path) -> None:
    """The page of `report --no-labels` advised `--iterations`, an option of `compare` alone."""
    run_command("report", "--no-labels", *RUNS.values(), "-o", tmp_path / "r.json")
    doubts = json.loads((tmp_path / "r.json").read_text("utf-8"))["doubts"]
    (doubt,) = (text for text in doubts if "--iterations" in text)
    assert doubt.endswith("Also run compare at a fixed iteration: @i, or --iterations.")


def test_a_page_says_nothing_of_causes_and_searches_which_it_has_not(tmp_path: Path) -> None:
    systems = {"once": RUNS["quick"], "often": [RUNS["late"], RUNS["quick"]]}
    path = gg.report(gg.NO_LABELS, systems, tmp_path / "r.html")
    assert "Causes and searches" not in path.read_text("utf-8")
