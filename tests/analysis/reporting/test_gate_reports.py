"""The reports of a gate: JUnit XML that Jenkins reads, and a Markdown comment that a bot keeps up to date."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from markdown_it import MarkdownIt

import goodgain as gg
from goodgain import compare
from goodgain.analysis.comparing.required_lines import parse_requirement
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.analysis.reporting.gate_reports import write_comment, write_junit
from tests.analysis.comparing.test_comparison import EXAMPLES, many
from tests.support.command import run_command
from tests.support.tables import no_notices

FILES = [EXAMPLES / "redundancy" / name for name in ("qrels.txt", "lean.run", "repeating.run")]

#: junit-10.xsd of the Jenkins xUnit plugin: element -> required attributes, other attributes, children.
_SCHEMA = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")


def check_schema(element: ElementTree.Element) -> None:
    required, optional, children = _SCHEMA[element.tag]
    assert required <= {*element.keys()} <= required | optional, element.tag
    assert element.tag == "testcase" or _TIME.fullmatch(element.get("time", ""))
    for child in element:
        assert child.tag in children, f"{child.tag} in {element.tag}"
        check_schema(child)


def test_junit_has_a_case_for_each_line_and_system_as_the_schema_of_jenkins_has_it(tmp_path: Path) -> None:
    lines = ("--require", "SRR@3<=0.3", "--require", "CG@3>=baseline")
    done = run_command("compare", *FILES, *lines, "--junit", tmp_path / "gate.xml", "-o", "csv")
    assert done.returncode == 3

    suites = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert suites.tag == "testsuites"
    check_schema(suites)
    cases = suites.findall("testsuite/testcase")
    assert [(case.get("name"), case.get("classname"), case.find("failure") is not None) for case in cases] == [
        ("SRR@3<=0.3", "repeating", True),
        ("CG@3>=baseline", "repeating", False),
    ]
    assert (suites[0].get("tests"), suites[0].get("failures"), suites[0].get("errors")) == ("2", "1", "0")

    failure = cases[0].find("failure")
    assert failure is not None and "repeating has 0.4643, 0.1643 above" in failure.get("message", "")


def test_names_break_no_xml() -> None:
    labels, runs = many(3)
    named = dict(zip(('<a & "b">', "\x1b[31m\x00'"), runs.values(), strict=True))
    suites = ElementTree.fromstring(write_junit(check_requirements(compare(labels, named, "SRR@3"), ["SRR@3<0"])))
    check_schema(suites)
    assert [case.get("classname") for case in suites.findall("testsuite/testcase")] == ['<a & "b">', r"\x1b[31m\x00'"]


TWO = EXAMPLES / "two_agents"
AGENTS = TWO / "qrels.txt", TWO / "quick.run", TWO / "late.run"


def comment(folder: Path, *arguments: object) -> str:
    path = folder / "comment.md"
    run_command("compare", *AGENTS, *arguments, "--comment", path, "-o", "csv")
    return path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_comment_has_at_most_60_lines(tmp_path: Path) -> None:
    required = [part for k in range(1, 31) for part in ("--require", f"CG@{k}>=1000")]
    text = comment(tmp_path, "-m", "CG SRR SRE", "--iterations", "30", *required)
    assert len(text.splitlines()) <= 60
    assert "**Required lines: 60 failed, 0 held." in text and "50 more: see the log." in text
    tables = [
        [line for line in part.splitlines() if line[:2] == "| "][2:] for part in text.split("**What to distrust**")
    ]
    assert [len(rows) for rows in tables] == [10, 5 + 2 + 12]  # failed lines; queries, a second header, differences


def test_a_comment_with_searches_and_spend_has_at_most_60_lines() -> None:
    random = Random(1)
    measures = "CG@3 nCG@3 SRE@3 SRR@3 nDCGG@3 NumGood@3 RG@3 AllGood@3"
    qrels = {f"q{k}": {doc: random.choice([0, 2, 3]) for doc in "abcdef"} for k in range(12)}
    places = [(query_id, iteration, doc) for query_id in qrels for iteration in range(1, 7) for doc in "abcdefxyz"]
    columns = ["query_id", "iteration", "doc_id"]
    systems = {
        name: pl.DataFrame([row for row in places if random.random() < share], schema=columns, orient="row")
        for name, share in {"old": 0.5, "new": 0.2, "newer": 0.1}.items()
    }
    results = pl.DataFrame(
        [(name, query_id, k, 1, 1, "a", f"search {k}") for name in systems for query_id in qrels for k in range(1, 7)],
        schema=["system", "query_id", "iteration", "search", "rank", "doc_id", "search_query"],
        orient="row",
    )

    with no_notices():
        x = gg.Experiment(qrels, systems, resamples=99)
        comparison = x.compare(measures, baseline="old")
        outcomes = check_requirements(comparison, [f"{name}>=baseline" for name in measures.split()])
        explanation = x.explain("old", "new", "CG@3", results=results)
        spend = x.spend(price_per_search=1)

    text = write_comment(comparison, outcomes, explanation, spend=spend)
    assert 55 < text.count("\n") <= 60
    assert text.count("more: see the log.") == 5  # failed lines, notes, and three folded tables


def test_a_comment_shows_six_notes_and_counts_the_others() -> None:
    labels, runs = many(3)
    comparison = replace(compare(labels, runs, "SRR@3"), warnings=tuple(f"note {k}" for k in range(6)))
    assert len(comparison.notes) == 8  # two remarks follow, on the noise of reruns and on power
    lines = [line for line in write_comment(comparison, []).splitlines() if line.startswith("- ")]
    assert lines == [*(f"- note {k}" for k in range(6)), "- 2 more: see the log."]


def test_names_break_no_comment(tmp_path: Path) -> None:
    named = "a|b=" + str(AGENTS[1]), "<i>=" + str(AGENTS[2])
    run_command("compare", AGENTS[0], *named, "-m", "CG@3", "--comment", tmp_path / "c.md", "-o", "csv")
    text = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert r"\<i\>" in text and "<i>" not in text
    rows = [line for line in text.splitlines() if line.startswith("| q")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


def test_check_raises_the_comment_of_the_gate_where_a_line_fails(tmp_path: Path) -> None:
    lines = ["CG@3>=baseline significant", "SRR@3<=baseline+0.05"]
    required = [part for line in lines for part in ("--require", line)]
    run_command("compare", *AGENTS, *required, "--comment", tmp_path / "comment.md", "-o", "csv")
    comparison = compare(AGENTS[0], {path.stem: path for path in AGENTS[1:]}, ["CG@3", "SRR@3"], baseline="quick")
    with pytest.raises(AssertionError) as raised:
        gg.check(comparison, lines)

    written, raised_lines = (tmp_path / "comment.md").read_text().splitlines(), str(raised.value).splitlines()
    assert len(written) == len(raised_lines)
    # causes need the runs, which a comparison does not keep: the cells of the column `cause` are empty
    assert [line for line in raised_lines if line not in written] == [
        line for line in raised_lines if re.fullmatch(r"\| q\d+ .*\|  \|", line)
    ]
    assert [outcome.holds for outcome in gg.check(comparison, lines[1])] == [True]


def test_check_refuses_what_is_not_a_comparison() -> None:
    with pytest.raises(gg.InputError, match=r"give what gg\.compare returns"):
        gg.check(gg.evaluate(AGENTS[0], AGENTS[1], "nCG@6"), "nCG@6>=0.1")  # type: ignore[arg-type]  # the fault


def test_a_difference_that_is_only_rounding_is_no_change_in_the_comment() -> None:
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    solved = pl.DataFrame(
        [("q1", "old", 0.3), ("q1", "new", 0.1 + 0.2), ("q2", "old", 0.0), ("q2", "new", 1.0)],
        schema=["query_id", "system", "solved"],
        orient="row",
    )
    comparison = compare(
        {name: {"a": 1} for name in run}, {"old": run, "new": run}, "RR", outcomes=solved, baseline="old"
    )
    line = parse_requirement("solved>=2", outcomes=["solved"])
    comment = write_comment(comparison, check_requirements(comparison, [line]))
    assert "| q2 | 0 | 1 | +1 |" in comment and "| q1 |" not in comment


def test_a_difference_at_rounding_level_is_none_in_comments_explanations_and_reports(tmp_path: Path) -> None:
    qrels = {"q": {"a": 1.1, "b": 2.2, "c": 3.3}}  # 1.1 + 2.2 is 3.3000000000000003
    found = {"base": ["a", "b"], "new": ["c"]}
    runs = {
        name: pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": documents, "rank": range(1, len(documents) + 1)})
        for name, documents in found.items()
    }
    compared = compare(qrels, runs, "CG", rel=1, baseline="base")
    assert compared.pairs.select("difference", "verdict").row(0) == (0.0, "equal")

    comment = write_comment(compared, check_requirements(compared, ["CG(rel=1)>=baseline"]))
    assert "changed most" not in comment
    explained = gg.explain(qrels, runs["base"], runs["new"], "CG", rel=1)
    assert explained.queries.get_column("difference").to_list() == [0.0]
    assert "base and new are equal in 1 query" in str(explained)

    gg.report(qrels, runs, tmp_path / "report.md", "CG", rel=1)
    assert "CG(rel=1): base and new are equal in 1 query" in (tmp_path / "report.md").read_text()


def test_comment_and_junit_carry_what_to_distrust(tmp_path: Path) -> None:
    rows = AGENTS[2].read_text(encoding="utf-8").splitlines(keepends=True)
    few = tmp_path / "few.run"
    few.write_text("".join(row for row in rows if not row.startswith(("q01 ", "q02 "))), encoding="utf-8")
    reports = "--junit", tmp_path / "gate.xml", "--comment", tmp_path / "c.md"
    required = "--require", "nCG@3>=0.1", "--require", "IterationsForAllGoodResults(pool='retrieved')<=100"
    run_command("compare", *AGENTS[:2], few, *required, *reports, "-o", "csv")
    text = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert text.index("**What to distrust**\n- ") < text.index("<details>")

    suites = ElementTree.parse(tmp_path / "gate.xml").getroot()
    check_schema(suites)
    told = suites.findtext("testsuite/system-out") or ""

    for sentence in (
        "2 queries are absent from few, whose run has no row of them: q01, q02",
        "is not comparable between systems",
    ):
        assert sentence in text and sentence in told, sentence

    one = tmp_path / "one.xml"
    run_command("evaluate", AGENTS[0], few, "-m", "nCG@3", "--require", "nCG@3>=0.1", "--junit", one)
    check_schema(ElementTree.parse(one).getroot())


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_the_comment_names_queries_that_the_system_of_a_baseline_file_lacks(tmp_path: Path) -> None:
    labels, runs = {"q1": {"a": 2}, "q2": {"a": 2}}, {"old": {"q1": {"a": 1.0}}, "new": {"q1": {"a": 1.0}}}
    compare(labels, runs, "RR").write_baseline(tmp_path / "b.jsonl", "old")
    comparison = compare(labels, {"new": runs["new"]}, "RR", baseline_file=tmp_path / "b.jsonl")
    assert "1 query is absent from baseline, whose run has no row of it: q2" in write_comment(comparison, [])


@pytest.mark.slow
def test_a_significant_line_that_no_data_of_this_size_can_fail_is_refused(tmp_path: Path) -> None:
    def agents(number: int, names: str = "ab") -> tuple[Any, Any]:
        labels = {f"q{k}": {"x": 2, "y": 0} for k in range(number)}
        return labels, {name: {query: {"x" if name == "a" else "y": 1.0} for query in labels} for name in names}

    def outcomes(number: int, names: str = "ab", family: str | None = None, lines: int = 1) -> list[bool]:
        comparison = compare(*agents(number, names), "P@1", baseline="a")
        return [
            requirement.holds
            for requirement in check_requirements(comparison, ["P@1>=baseline significant"] * lines, family=family)
        ]

    with pytest.raises(gg.InputError, match=r"cannot fail: on 5 queries .* at 0\.05\. Give at least 6 queries"):
        outcomes(5)
    assert outcomes(6) == [False]
    with pytest.raises(gg.InputError, match=r"Give at least 7 queries"):
        outcomes(6, "abcd")
    assert outcomes(7, "abcd") == [False] * 3
    with pytest.raises(gg.InputError, match=r"Give at least 7 queries"):
        outcomes(6, family="holm", lines=2)
    alone = compare(*agents(5), "P@1", baseline="a")
    assert [requirement.holds for requirement in check_requirements(alone, ["P@1>=baseline"])] == [False]
    kept, new = (tmp_path / name for name in ("q.txt", "new.run"))
    kept.write_text("".join(f"q{k} 0 x 2\nq{k} 0 y 0\n" for k in range(5)))
    for name, document in (("new", "y"), ("old", "x")):
        new.with_stem(name).write_text("".join(f"q{k} 1 {document} 1 1 t\n" for k in range(5)))
    runs = new.with_stem("old"), new
    done = run_command("compare", kept, *runs, "--require", "P@1>=baseline significant", "-o", "csv")
    assert done.returncode == 2 and "Give at least 6 queries" in done.stderr


@pytest.mark.parametrize("seed", range(6))
def test_a_line_that_fails_by_its_bound_explains_what_the_table_says(seed: int) -> None:
    random = Random(seed)
    labels = {f"q{k}": {"x": 2, "y": 0} for k in range(12)}
    runs = {name: {q: {random.choice("xxy"): 1.0} for q in labels} for name in ("old", "new")}
    comparison = compare(labels, runs, "P@1", baseline="old")
    verdict = comparison.pairs.item(0, "verdict")
    for line in ("P@1>=baseline+0.5", "P@1>=baseline", "P@1<=baseline-0.5", "P@1>=baseline-1"):
        (outcome,) = check_requirements(comparison, [line])
        explains = f"the table says {verdict}, because it compares with the baseline" in str(outcome)
        is_shifted = outcome.bound != outcome.baseline
        assert explains == (not outcome.holds and is_shifted and verdict != "worse"), str(outcome)


#: What GitHub notifies or links in the text of a comment, outside of its markup (the filters of html-pipeline).
_OF_GITHUB = {
    "name": r"(?:^|\W)@[a-z0-9]",
    "issue": r"#\d|\bgh-\d",
    "address": r"https?://|ftp://|\bwww\.",
}
_HOSTILE = r"@octocat, @org/team #123 GH-7 o/r#5 https://github.com/o/r/issues/5 www.x.example \@o é@o _@o &#64;o"


def find_what_github_links(markdown: str) -> list[tuple[str, str]]:
    """The texts between tags, after the Markdown is read."""
    shown = MarkdownIt("commonmark").enable("table").render(markdown)
    texts = [unescape(text) for text in re.sub(r"<!--.*?-->", "", shown).replace("<", "\0<").split("\0")]
    texts = [text.partition(">")[2] if text.startswith("<") else text for text in texts]
    return [
        (kind, text) for kind, sign in _OF_GITHUB.items() for text in texts if re.search(sign, text, re.ASCII | re.I)
    ]


def test_a_comment_notifies_nobody_and_links_nothing(tmp_path: Path) -> None:
    queries = [f"q{k:02}" for k in range(1, 26)]
    new = f"@octocat/{len(_HOSTILE)}#1"
    questions = tmp_path / "queries.jsonl"
    questions.write_text("".join(json.dumps({"query_id": q, "text": _HOSTILE}) + "\n" for q in queries))
    results = [
        {
            "query_id": q,
            "system": system,
            "iteration": 1,
            "rank": 1,
            "search": 1,
            "search_query": _HOSTILE,
            "doc_id": "d",
        }
        for q in queries
        for system in ("quick", new)
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in results))
    path = tmp_path / "comment.md"
    runs = (TWO / "quick.run", f"{new}={TWO / 'late.run'}")
    given = (
        "-m",
        "CG@3",
        "--require",
        "CG@3>=baseline",
        "--queries",
        questions,
        "--results",
        tmp_path / "results.jsonl",
    )
    assert run_command("compare", TWO / "qrels.txt", *runs, *given, "--comment", path).returncode == 3

    text = path.read_text(encoding="utf-8")
    assert "octocat" in text and "<summary>Searches of" in text and "\\#&#8203;123" in text
    assert "CG@3" in text  # the name of a measure stays as it is
    assert find_what_github_links(text) == []


def test_the_filters_find_what_github_links() -> None:
    assert {kind for kind, _ in find_what_github_links(r"\@octocat")} == {"name"}
    assert {kind for kind, _ in find_what_github_links(r"<summary>\#1 https://x</summary>")} == {"issue", "address"}
    assert find_what_github_links("CG@3, a@b.example") == []


@pytest.mark.parametrize("form", ["markdown", "report"])
def test_markdown_of_tables_notifies_nobody(form: str, tmp_path: Path) -> None:
    systems = {"quick": TWO / "quick.run", "@octocat #1 https://x.example": TWO / "late.run"}
    with no_notices():
        x = gg.Experiment(TWO / "qrels.txt", systems, resamples=99)
        if form == "markdown":
            text = x.compare("CG@3").to_text("markdown")
        else:
            x.report(tmp_path / "report.md")
            text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "octocat" in text
    assert find_what_github_links(text) == []


def test_a_cutoff_after_parameters_is_a_name_in_markdown_and_notifies_nobody_in_a_comment() -> None:
    systems = dict.fromkeys(("a", ")@octocat", ")@3-d"), TWO / "late.run")
    with no_notices():
        compared = gg.compare(TWO / "qrels.txt", systems, "nCG(rel=1)@3", resamples=99)
    shown = compared.to_text("markdown")
    assert "| nCG(rel=1)@3 ↑ |" in shown
    assert "octocat" in shown and ")@octocat" not in shown and ")@3-d" not in shown
    assert find_what_github_links(write_comment(compared, [])) == []
