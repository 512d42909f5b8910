"""A ranking in one piece is not compared with searches where the ends of iterations decide the value: no verdict, mark or bold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.analysis.reporting.gate_reports import write_comment, write_junit
from goodgain.errors import InputError
from tests.analysis.comparing.test_comparison import quietly
from tests.scoring.test_doors import read_in_blocks
from tests.support.tables import no_notices

QUERIES = [f"q{k:02}" for k in range(12)]
QRELS = {query: {f"d{k}": 2 for k in range(8)} for query in QUERIES}
SYSTEMS: dict[str, Any] = {
    "bm25": pl.DataFrame(
        [(query, f"x{k}" if k % 2 else f"d{k}", k) for query in QUERIES for k in range(1, 13)],
        schema=["query_id", "doc_id", "rank"],
        orient="row",
    ),
    **{
        name: pl.DataFrame(
            [(query, 1 + k // 4, f"d{k}" if k < good else f"y{k}", k) for query in QUERIES for k in range(12)],
            schema=["query_id", "iteration", "doc_id", "rank"],
            orient="row",
        )
        for name, good in (("agent", 8), ("slow", 3))
    },
}
FLAGGED, OTHERS = ["nCG@1", "RG", "SRE@2", "NumIter"], ["nCG", "SRR", "RR", "nDCG@10"]
NOTE = (
    "nCG@1, RG, SRE@2 and 1 more: not comparable between bm25 (no iterations) and agent. Cut the ranking into pages of N "
    "results: page={'bm25': 'N'}."
)


@pytest.fixture(scope="module")
def found() -> gg.Comparison:
    systems = {name: SYSTEMS[name] for name in ("bm25", "agent")}
    return quietly(QRELS, systems, [*FLAGGED, *OTHERS], baseline="bm25", groups=GROUPS, resamples=999, detect=0.1)


GROUPS = pl.DataFrame({"query_id": QUERIES, "group": ["even", "odd"] * 6})


def test_only_measures_that_depend_on_the_ends_of_iterations_have_no_verdict(found: gg.Comparison) -> None:
    for rows in (found.pairs, found.groups):
        assert rows is not None
        told = rows.filter(verdict="not comparable")
        assert told["measure"].unique(maintain_order=True).to_list() == FLAGGED
        assert not told["significant"].any()
        for name in ("p_t", "p_t_holm", "p_randomisation", "p_randomisation_holm", "p_tukey"):
            assert told[name].null_count() == told.height
    assert found.pairs.filter(measure="RR").item(0, "significant")
    assert not {*FLAGGED} & {*found.detectable["measure"]}


def test_the_note_stands_in_notes_and_no_sentence_says_that_a_ranking_stopped(found: gg.Comparison) -> None:
    assert found.notes[0] == NOTE and len(NOTE.split()) <= 40
    assert not any("stop" in note for note in found.notes)


def test_no_form_marks_or_prints_bold_what_is_not_comparable(found: gg.Comparison) -> None:
    markdown, latex = found.to_text("markdown"), found.to_text("latex", rows="measures")
    bold = {"markdown": r"\*\*", "latex": "textbf", "html": "<b>"}
    html = found._repr_html_().replace("</tr>", "\n")

    for form, text in (("markdown", markdown), ("latex", latex), ("html", html)):
        lines = [line for line in text.splitlines() if re.search(r"(nCG@1|RG|SRE@2|NumIter) ", line) and "↑" in line]
        lines += [line for line in text.splitlines() if re.search(r"(nCG@1|RG|SRE@2) \$\\uparrow", line)]
        assert sum("not comparable" in line for line in lines) >= 3
        assert not any(re.search(bold[form], line) or " *" in line or "†" in line for line in lines), form
        assert any(re.search(bold[form], line) for line in text.splitlines() if "RR" in line)

    assert "not comparable" in str(found) and NOTE in str(found)
    by_system = found.to_text("latex", rows="systems")
    assert len(re.findall(r"\d \*", by_system.split("end{table}")[0])) == found.pairs["significant"].sum()

    content = json.loads(found.to_text("json"))
    assert content["notes"][0] == NOTE
    assert {pair["verdict"] for pair in content["pairs"] if pair["measure"] in FLAGGED} == {"not comparable"}


def test_the_comment_and_the_junit_file_say_it(found: gg.Comparison) -> None:
    outcomes = check_requirements(found, ["RR>=baseline"])
    comment = write_comment(found, outcomes)
    assert "4 not comparable" in comment.splitlines()[1] and "nCG@1, RG, SRE@2 and 1 more: not comparable" in comment
    assert "not comparable between bm25" in write_junit(outcomes, found.notes)


@pytest.mark.parametrize("name", ["page.md", pytest.param("page.html", marks=pytest.mark.slow)])
def test_the_report_says_it(name: str, tmp_path: Path) -> None:
    systems = {name: SYSTEMS[name] for name in ("bm25", "agent")}
    with no_notices():
        gg.report(QRELS, systems, tmp_path / name, [*FLAGGED, *OTHERS])
    page = (tmp_path / name).read_text(encoding="utf-8").replace("\\", "")
    assert "agent and bm25 are not comparable in nCG@1, RG, SRE@2 and NumIter." in page
    assert "not comparable between bm25 (no iterations) and agent" in page
    assert not re.search("(better|worse|unclear)[^.]* in (nCG@1|RG)", page)


def test_with_labels_by_iteration_every_measure_of_iterations_depends_on_their_ends() -> None:
    rows = [(query, "1", f"d{k}", 2) for query in QUERIES for k in range(8)]
    qrels = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "relevance"], orient="row")
    systems = {name: SYSTEMS[name] for name in ("bm25", "agent")}
    found = quietly(qrels, systems, "nCG RR", labels="iteration", resamples=99)
    assert [verdict == "not comparable" for verdict in found.pairs["verdict"]] == [True, False]


def test_a_row_with_one_pair_that_is_not_comparable_has_no_bold_and_corrects_only_the_others() -> None:
    three = quietly(QRELS, SYSTEMS, "nCG@1 nCG", resamples=999)
    verdicts = three.pairs.filter(measure="nCG@1").select("system", "against", "verdict").rows()
    assert [row[2] == "not comparable" for row in verdicts] == ["bm25" in row for row in verdicts]
    (agents,) = three.pairs.filter(measure="nCG@1").drop_nulls("p_randomisation").rows(named=True)
    assert agents["p_randomisation_holm"] == agents["p_randomisation"]
    means = next(line for line in three.to_text("markdown").splitlines() if line.startswith("| nCG@1 ↑"))
    assert "**" not in means


@pytest.mark.parametrize("line", ["nCG@1>=baseline", "nCG@1>=0.1", "RG>=baseline significant"])
def test_a_required_line_is_refused(line: str, found: gg.Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not comparable between agent and bm25"):
        check_requirements(found, [line])


def test_pages_make_both_comparable_and_the_signature_names_the_system() -> None:
    systems = {name: SYSTEMS[name] for name in ("bm25", "agent")}
    paged = quietly(QRELS, systems, FLAGGED, page={"bm25": 4})
    assert paged.signature["page"] == ["bm25:4"] and "not comparable" not in {*paged.pairs["verdict"]}
    by_hand = SYSTEMS["bm25"].with_columns(iteration=(pl.col("rank") - 1) // 4 + 1)
    assert paged.pairs.equals(quietly(QRELS, systems | {"bm25": by_hand}, FLAGGED).pairs)
    both = quietly(QRELS, {"bm25": SYSTEMS["bm25"], "dense": SYSTEMS["bm25"].head(100)}, FLAGGED)
    assert "not comparable" not in {*both.pairs["verdict"]}
    all_paged = quietly(QRELS, {"bm25": SYSTEMS["bm25"], "dense": SYSTEMS["bm25"].head(100)}, FLAGGED, page=4)
    assert all_paged.signature["page"] == 4


def test_a_system_of_several_runs_lacks_iterations_if_one_run_does() -> None:
    found = quietly(
        QRELS, {"mixed": [SYSTEMS["agent"], SYSTEMS["bm25"]], "slow": SYSTEMS["slow"]}, "nCG@1", resamples=99
    )
    assert found.pairs.item(0, "verdict") == "not comparable"
    paged = quietly(
        QRELS, {"bm25": [SYSTEMS["bm25"]] * 2, "slow": SYSTEMS["slow"]}, "nCG@1", resamples=99, page={"bm25": 4}
    )
    assert paged.pairs.item(0, "verdict") != "not comparable" and paged.signature["page"] == ["bm25:4"]


def test_a_baseline_file_says_whether_its_run_has_iterations_or_pages(tmp_path: Path) -> None:
    path = tmp_path / "base.jsonl"
    for page, verdict in ((None, "not comparable"), ({"bm25": 4}, "better")):
        with_run = quietly(QRELS, SYSTEMS, "nCG@1 nCG", baseline="bm25", page=page, resamples=999)
        with_run.write_baseline(path)
        with_file = quietly(QRELS, {"agent": SYSTEMS["agent"]}, "nCG@1 nCG", baseline_file=path, resamples=999)
        assert with_file.pairs.item(0, "verdict") == verdict
        assert with_file.signature.get("page") == (None if page is None else ["baseline:4"])
        notes = [note for note in with_file.notes if "Write the baseline file again with page='N'" in note]
        assert len(notes) == (page is None)


def test_bounds_say_no_turn_of_what_is_not_comparable() -> None:
    systems = {name: SYSTEMS[name] for name in ("bm25", "agent")}
    found = quietly(QRELS, systems, "SRE@2 SRE", bounds=True, resamples=99)
    assert found.pairs.filter(measure="SRE@2").item(0, "can_turn") is False
    assert "can turn" in found.to_text("markdown") and "not comparable, can turn" not in found.to_text("markdown")


START = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"


def search_once(text: str) -> pl.DataFrame:
    """Searches of an agent whose documents have new addresses in each search."""
    rows = [
        (query, k, f"{START}{query}-{doc}{k}" if k < 3 else doc) for query in QUERIES for k in (1, 2, 3) for doc in text
    ]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")


ONCE = "not comparable: one-time addresses"
OF_REPEATS = "SRR SRE@2 NumDup SearchPrecision NumUnique NumUnjudged nCG"  # but for the last


@pytest.mark.parametrize("kind", ["frame", "large file", "DuckDB", "baseline file"])
def test_one_time_addresses_in_two_iterations_leave_measures_of_repeats_without_a_verdict(
    kind: str, tmp_path: Path
) -> None:
    frame = search_once("ab")
    qrels = {query: {"a": 2, f"{START}x": 0} for query in QUERIES}
    run: Any = {"frame": frame, "DuckDB": duckdb.connect().from_arrow(frame.to_arrow())}.get(kind)
    options: dict[str, Any] = {"resamples": 99}
    systems = {"gemini": run, "agent": SYSTEMS["agent"]}
    if kind == "large file":
        frame.with_columns(rank=1).write_parquet(tmp_path / "gemini.parquet")
        systems["gemini"] = read_in_blocks(tmp_path / "gemini.parquet", block=256)
    if kind == "baseline file":
        one = quietly(qrels, {"gemini": frame, "agent": SYSTEMS["agent"]}, OF_REPEATS, **options)
        one.write_baseline(tmp_path / "base.jsonl", "gemini")
        systems, options = {"agent": SYSTEMS["agent"]}, options | {"baseline_file": tmp_path / "base.jsonl"}

    found = quietly(qrels, systems, OF_REPEATS, **options)
    verdicts = dict(found.pairs.select("measure", "verdict").iter_rows())
    assert [name for name in verdicts if verdicts[name] == ONCE] == OF_REPEATS.split()[:-1]
    with pytest.raises(InputError, match="'SRR<=baseline': SRR is not comparable: one-time addresses between"):
        check_requirements(replace(found, baseline=found.baseline or "gemini"), ["SRR<=baseline"])


def test_evaluate_gives_the_number_and_a_notice_of_one_time_addresses() -> None:
    frame, qrels = search_once("ab"), {query: {"a": 2} for query in QUERIES}
    with pytest.warns(gg.GoodgainNotice, match="in 12 queries several iterations returned addresses that are new"):
        assert gg.evaluate(qrels, frame, "SRR")["SRR"] == 0
    with no_notices():
        assert gg.evaluate(qrels, frame.filter(pl.col("iteration") > 1), "SRR").one_time == 0


PAGES = "not comparable: pages of one ranking"


def test_measures_of_repeats_have_no_verdict_against_pages_of_one_ranking(tmp_path: Path) -> None:
    systems = {name: SYSTEMS[name] for name in ("bm25", "agent")}
    searches = pl.DataFrame(
        [(system, query, k, "text") for system in systems for query in QUERIES for k in (1, 2, 3)],
        schema=["system", "query_id", "iteration", "search_query"],
        orient="row",
    ).with_columns(doc_id=pl.lit("d1"), search=1, rank=1)
    names = "SRR SRR@2 NumDup RepeatedQueries AreaOver(measure='NumDup',budget=3) SRE nCG@1"
    options: dict[str, Any] = {"baseline": "bm25", "page": {"bm25": 4}, "resamples": 99, "results": searches}
    found = quietly(QRELS, systems, names, **options)
    verdicts = dict(found.pairs.select("measure", "verdict").iter_rows())
    flagged = [name for name, verdict in verdicts.items() if verdict == PAGES]
    assert flagged == names.split()[:5] and found.pairs.filter(verdict=PAGES)["p_t"].null_count() == 5

    notes = [note for note in found.notes if "because pages of one ranking (bm25) cannot repeat a result" in note]
    assert len(notes) == 1 and "page=" in notes[0]
    markdown, latex = found.to_text("markdown"), found.to_text("latex", rows="systems")
    assert all("**" not in line for line in markdown.splitlines() if re.match(r"\| (SRR|NumDup|Repeated)", line))
    assert PAGES in markdown and "textbf{0.0000}" not in latex
    with pytest.raises(InputError, match="SRR is not comparable: pages of one ranking between"):
        check_requirements(found, ["SRR<=baseline"])


def test_of_three_systems_only_pairs_with_pages_lose_the_letters_of_repeats(tmp_path: Path) -> None:
    again = SYSTEMS["agent"].with_columns(doc_id=pl.lit("d1"))
    systems = {"bm25": SYSTEMS["bm25"], "agent": SYSTEMS["agent"], "again": again}
    found = quietly(QRELS, systems, "SRR", page={"bm25": 4}, resamples=999)
    pairs = found.pairs.select("system", "against", "verdict").rows()
    assert [verdict == PAGES for *_, verdict in pairs] == ["bm25" in pair for pair in pairs]
    line = next(line for line in found.to_text("latex").splitlines() if "bm25" in line and "&" in line)
    assert "textbf" not in line and "{a" not in line
    with no_notices():
        gg.report(QRELS, systems, tmp_path / "page.md", "SRR nCG", page={"bm25": 4})
    assert "are not comparable: pages of one ranking in SRR" in (tmp_path / "page.md").read_text(encoding="utf-8")
