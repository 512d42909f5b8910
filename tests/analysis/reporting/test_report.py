"""A report says what compare, curve and explain say, and its page has no part that a log could have written."""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.reporting import plots
from tests.support.command import run_command
from tests.support.report_cases import BIDI, END, QUERIES, SCRIPT, URLS, read_data, write_hostile
from tests.support.tables import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

AGENTS = ROOT / "qrels_examples" / "two_agents"
LOST = ROOT / "qrels_examples" / "lost_documents"
RUNS = {name: AGENTS / f"{name}.run" for name in ("quick", "late")}
MEASURES = "nDCG@10 nCG@6 SRR@6"


class Page(HTMLParser):
    """The texts of a page by element, its attributes, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {}
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        self.ids += [value or "" for name, value in attributes if name == "id"]

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._tag, []).append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return gg.report(AGENTS / "qrels.txt", RUNS, path, MEASURES, groups=AGENTS / "groups.csv").read_text()


def test_the_causes_are_over_the_queries_of_the_headline(tmp_path: Path) -> None:
    qrels = {f"q{k}": {"a": 3, "b": 2} for k in range(8)}
    rows = {
        "old": [(query_id, 1, "a") for query_id in qrels],
        "new": [(f"q{k}", 1, doc) for k in range(5) for doc in "ab"],
    }
    columns = ["query_id", "iteration", "doc_id"]
    systems = {name: pl.DataFrame(row, schema=columns, orient="row") for name, row in rows.items()}
    x = gg.Experiment(qrels, systems, missing="absent")
    data = json.loads(x.report(tmp_path / "report.json", "CG@2").read_text())
    assert "(5 queries)" in data["headline"][0]
    assert (
        "new has a higher mean than old, 3 → 5 (+2); new is worse in 0 of 5 queries and better in 5."
        in data["summary"][1]
    )


@pytest.mark.parametrize("incomplete", ["zero", "absent"])
def test_queries_that_broke_off_count_in_a_report_as_in_compare(tmp_path: Path, incomplete: Any) -> None:
    """The report said that `incomplete` needs outcomes, which it had."""
    qrels = {f"q{k}": {"a": 3, "b": 2} for k in range(7)}
    systems = {
        name: pl.DataFrame(
            {"query_id": [*qrels] * len(docs), "doc_id": [d for d in docs for _ in qrels], "iteration": 1}
        )
        for name, docs in (("old", "a"), ("new", "ab"))
    }
    outcomes = pl.DataFrame(
        {"query_id": [*qrels] * 2, "system": ["old"] * 7 + ["new"] * 7, "completed": [1] * 7 + [0] + [1] * 6}
    )
    x = gg.Experiment(qrels, systems, incomplete=incomplete)
    compared = x.compare("CG@2 nDCG@5", baseline="old", outcomes=outcomes)
    explained = x.explain("old", "new", "CG@2", outcomes=outcomes)
    written = json.loads(x.report(tmp_path / "report.json", "CG@2 nDCG@5", outcomes=outcomes).read_text())
    assert written["pairs"] == compared.pairs.to_dicts()
    assert explained.to_text().startswith(written["summary"][1])

    (first,) = [
        row for row in written["queries"] if (row["query_id"], row["system"], row["measure"]) == ("q0", "new", "CG@2")
    ]
    cause = {"zero": "new broke off where old found some good documents", "absent": None}[incomplete]
    assert (first["difference"], first["cause"]) == ({"zero": -3, "absent": None}[incomplete], cause)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_hostile(tmp_path_factory.mktemp("report") / "hostile.html").read_text()


def test_the_sentences_have_the_numbers_of_compare(tmp_path: Path) -> None:
    compared = gg.compare(AGENTS / "qrels.txt", RUNS, MEASURES, baseline="quick")
    explained = gg.explain(AGENTS / "qrels.txt", RUNS["quick"], RUNS["late"], "nCG@6")
    written = json.loads(gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "a.json", MEASURES).read_text())
    verdicts, why = written["summary"]
    for row in compared.pairs.iter_rows(named=True):
        means = f"{row['mean']:.4f} against {row['mean_against']:.4f}: {row['difference']:+.4f}"
        assert f"({means} [{row['low']:+.4f}, {row['high']:+.4f}])" in verdicts

    assert verdicts.startswith("late is better than quick in SRR@6 ↓ (0.4040")
    assert "late is worse than quick in nDCG@10 ↑ (0.1872" in verdicts
    assert "late against quick is unclear, no difference beyond chance, in nCG@6 ↑" in verdicts
    assert explained.to_text().startswith(why)
    assert written["doubts"] == [*compared.notes]
    assert written["pairs"] == compared.pairs.to_dicts()
    assert written["means"] == compared.means.to_dicts()


@pytest.mark.slow
def test_the_page_lists_the_values_and_causes_of_every_query(page: str) -> None:
    data = read_data(page)
    compared = gg.compare(AGENTS / "qrels.txt", RUNS, MEASURES, baseline="quick")
    explained = gg.explain(AGENTS / "qrels.txt", RUNS["quick"], RUNS["late"], "nCG@6")
    assert data["systems"] == ["quick", "late"]

    for m, (measure, _) in enumerate(data["measures"]):
        for s, system in enumerate(data["systems"]):
            values = compared.values.filter(measure=measure, system=system).sort("query_id")["value"].to_list()
            assert data["values"][m][s] == pytest.approx(values, abs=5.1e-5)

    at = explained.queries.with_columns(pl.when(pl.col("difference") != 0).then("first_differing_iteration"))
    assert data["changes"][0]["at"] == at["first_differing_iteration"].to_list()
    assert data["queries"] == explained.queries["query_id"].to_list()

    never = data["causes"].index("late never retrieved some good documents")
    lost = {one for one, cause in zip(data["queries"], data["changes"][0]["cause"], strict=True) if cause == never}
    causes = explained.causes.filter(counted_by="base", cause="not_retrieved")
    assert lost and lost <= set(causes["query_id"])

    worse = set(explained.queries.filter(pl.col("difference") < 0)["query_id"])
    assert lost <= worse


def test_the_page_counts_what_each_iteration_brought(page: str) -> None:
    data = read_data(page)
    for s, system in enumerate(data["systems"]):
        ledger = gg.ledger(AGENTS / "qrels.txt", RUNS[system])
        counts = [data["counts"][code] for code in data["iterations"][s]]
        assert [count[0] for count in counts] == ledger["GR"].to_list()
        assert [count[3] for count in counts] == ledger["Dup"].to_list()
        assert [sum(count[:4]) for count in counts] == ledger["R"].to_list()
        assert data["lengths"][s] == ledger.group_by("query_id").len().sort("query_id")["len"].to_list()


def test_the_results_of_a_detailed_query_are_those_of_the_run_and_count_as_the_ledger_does(page: str) -> None:
    data = read_data(page)
    assert len(data["details"]) == 25
    for s, system in enumerate(data["systems"]):
        rows = gg.read_run(RUNS[system]).rows
        for number, detail in data["details"].items():
            query = data["queries"][int(number)]
            start = sum(data["lengths"][s][: int(number)])
            for k, (_, codes) in enumerate(detail["searches"][s]):
                names = sorted(detail["documents"][code >> 2][0] for code in codes)
                assert names == sorted(rows.filter(query_id=query, iteration=k + 1)["doc_id"])
                kinds = [code & 3 for code in codes]
                assert [kinds.count(kind) for kind in range(4)] == data["counts"][data["iterations"][s][start + k]][:4]


@pytest.mark.slow
def test_search_strings_titles_and_missed_documents_are_those_of_the_example(tmp_path: Path) -> None:
    runs = {name: LOST / f"{name}.run" for name in ("old", "new")}
    path = tmp_path / "lost.html"
    gg.report(LOST / "qrels.txt", runs, path, "CG@3", results=LOST / "results.jsonl", queries={"dam": "Is it safe?"})
    data = read_data(path.read_text())
    bridge = data["details"][str(data["queries"].index("bridge"))]
    assert data["queries"][data["first"]] == "bridge"  # it lost most
    assert [text for text, _ in bridge["searches"][1]] == ["harbour bridge cost", "Harbour bridge: cost?"]

    good = {
        bridge["documents"][k][2]: (at, [data["reasons"][c] for c in causes if c is not None])
        for k, at, causes, _ in bridge["good"]
    }
    assert good["Toll revenue of the harbour bridge"] == ([2, None], ["new never retrieved it"])
    assert good["State loan for the harbour bridge"] == ([3, None], ["new stopped before old found it"])
    assert data["texts"] == [None, "Is it safe?", None, None]

    dam = data["queries"].index("dam")
    start = sum(data["lengths"][1][:dam])
    failed = [data["counts"][code][4] for code in data["iterations"][1][start : start + 4]]
    assert failed == [0, 1, 0, 0]


@pytest.mark.slow
def test_details_are_those_queries_that_changed_most(tmp_path: Path) -> None:
    path = gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "a.html", "nCG@6", details=3)
    data = read_data(path.read_text())
    queries = gg.explain(AGENTS / "qrels.txt", RUNS["quick"], RUNS["late"], "nCG@6").queries
    most = queries.sort(pl.col("difference").abs(), descending=True, maintain_order=True)["query_id"][:3]
    assert {data["queries"][int(k)] for k in data["details"]} == set(most)
    assert "The 3 queries that changed most in nCG@6 have their results listed" in path.read_text()
    none = gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "b.html", "nCG@6", details=0)
    assert read_data(none.read_text())["details"] == {}


def test_one_run_is_shown_without_a_comparison(tmp_path: Path) -> None:
    path = gg.report(AGENTS / "qrels.txt", {"late": RUNS["late"]}, tmp_path / "one.html", MEASURES)
    page = path.read_text()
    mean = gg.evaluate(AGENTS / "qrels.txt", RUNS["late"], "nCG@6")["nCG@6"]
    assert "This report shows one system, late, and compares it with none." in page
    assert f"nCG@6 {mean:.4f}" in page
    data = read_data(page)
    assert (data["systems"], data["changes"], len(data["details"])) == (["late"], [], 25)
    lowest = min(value for value in data["values"][1][0])
    assert data["values"][1][0][data["first"]] == lowest


@pytest.mark.slow
def test_replicates_are_averaged_and_the_page_says_whose_searches_it_shows(tmp_path: Path) -> None:
    folder = ROOT / "qrels_examples" / "repeated_runs"
    runs = {name: [folder / f"{name}.{k}.run" for k in (1, 2, 3)] for name in ("old", "new")}
    data = json.loads(gg.report(folder / "qrels.txt", runs, tmp_path / "a.json", "nCG").read_text())
    means = gg.compare(folder / "qrels.txt", runs, "nCG").means
    assert [row["mean"] for row in data["means"]] == means["mean"].to_list()
    said = "Causes and searches are those of the first run of each system; other values are means over runs."
    assert said in data["doubts"]
    assert not any("one run" in doubt for doubt in data["doubts"])


@pytest.mark.slow
def test_queries_without_qrels_or_without_searches_are_said_and_not_lost(tmp_path: Path) -> None:
    qrels = {"q1": {"a": 3}, "q2": {"a": 3}}
    run = {"q1": {"a": 1.0}, "q3": {"z": 1.0}}
    path = gg.report(qrels, {"old": run, "new": {"q1": {"b": 1.0}, "q2": {"a": 1.0}}}, tmp_path / "a.html", "nCG")
    page, data = path.read_text(), read_data(path.read_text())
    assert data["queries"] == ["q1", "q2"]
    assert data["lengths"] == [[1, 0], [1, 1]]
    assert "1 query is absent from old, whose run has no row of it: q2" in page
    assert data["absent"] == [[1], []]
    idle = pl.DataFrame({"query_id": ["q1", "q2"], "iteration": [1, None], "doc_id": ["a", "-"]})
    text = gg.report(qrels, {"old": idle, "new": {"q1": {"b": 1.0}, "q2": {"a": 1.0}}}, path, "nCG").read_text()
    assert "1 query never searched in old: q2" in text and read_data(text)["absent"] == [[], []]
    assert "queries judged; the others are left out (old 1)." in page


@pytest.mark.slow
def test_uses_say_what_was_never_opened(tmp_path: Path) -> None:
    folder = ROOT / "qrels_examples" / "opened_and_cited"
    results, uses = gg.read_traces(folder / "logs.jsonl", uses=True)
    runs = {name: gg.to_run(results, system=name) for name in ("agent", "careful")}
    path = gg.report(folder / "judgments.qrels", runs, tmp_path / "a.html", "CG", uses=uses, results=results)
    data = read_data(path.read_text())
    q1 = data["details"][str(data["queries"].index("q1"))]
    used = {q1["documents"][k][0]: [data["reasons"][use] for use in uses] for k, _, _, uses in q1["good"]}
    assert used["d1"] == ["returned at 1, never opened", "returned at 1, opened after 1, cited"]
    assert "Returned, opened, cited" in path.read_text()


def test_the_picture_of_uses_has_the_systems_in_the_order_of_the_report(tmp_path: Path) -> None:
    folder = ROOT / "qrels_examples" / "opened_and_cited"
    results = gg.read_traces(folder / "logs.jsonl")
    runs = {name: gg.to_run(results, system=name) for name in ("careful", "agent")}
    page = gg.report(
        folder / "judgments.qrels", runs, tmp_path / "a.html", "CG", uses=folder / "uses.jsonl"
    ).read_text()
    picture = page[page.index(">Returned, opened, cited</title>") :]
    assert 0 < picture.index(">careful<") < picture.index(">agent<")


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(tmp_path: Path, page: str) -> None:
    again = gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "report.html", MEASURES, groups=AGENTS / "groups.csv")
    command = r"(?<=<code>).*?(?=</code>)"  # it names the file
    assert re.sub(command, "", again.read_text()) == re.sub(command, "", page)


def test_the_page_is_small_and_needs_nothing_else(page: str) -> None:
    assert len(page.encode()) < 300_000
    read = Page(page)
    addresses = [value for _, name, value in read.attributes if name in ("src", "href", "action", "srcset")]
    assert all(value.startswith("#") for value in addresses)
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert len(read.ids) == len(set(read.ids))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["page", "hostile"])
def test_the_page_allows_its_own_script_and_style_alone(which: str, request: pytest.FixtureRequest) -> None:
    read = Page(request.getfixturevalue(which))
    (policy,) = [v for tag, name, v in read.attributes if tag == "meta" and name == "content" and "default-src" in v]
    script = next(text for text in read.texts["script"] if "use strict" in text)
    style = max(read.texts["style"], key=len)
    made = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{made[0]}'; style-src 'sha256-{made[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not [name for _, name, _ in read.attributes if name.startswith("on") or name == "style"]
    assert [name for tag, name, _ in read.attributes if tag == "script"] == ["type", "id"]  # of the data


def test_hostile_texts_stay_texts(hostile: str) -> None:
    read, data = Page(hostile), read_data(hostile)
    assert not read.texts.keys() & {"img", "iframe", "a onload"}
    assert hostile.count("<script") == 2
    # neither a command to a terminal nor a turned line
    assert all(sign.isprintable() or sign == "\n" for sign in hostile)
    assert BIDI not in hostile and "new good\\u202edog" in hostile
    assert data["queries"][0] == QUERIES[0]
    assert data["queries"][1] == "second & good\\u202edog\\x1b[31m\\u2028end"
    titles = {document[2] for detail in data["details"].values() for document in detail["documents"]}
    assert f"title {SCRIPT}" in titles and f"title {END}" in titles
    assert "title good\\u202edog\\x1b[31m end" in titles


def test_only_addresses_of_the_web_are_links(hostile: str) -> None:
    links = {
        tuple(document[3:]) for detail in read_data(hostile)["details"].values() for document in detail["documents"]
    }
    assert links == {(), (URLS["good"],)}


@pytest.mark.slow
def test_an_id_that_is_an_address_is_a_link_and_good_documents_of_an_iteration_come_first(tmp_path: Path) -> None:
    page = "https://example.org/page"
    run = {"q": {"a": 3.0, "b": 2.0, page: 1.0}}
    path = gg.report({"q": {page: 3, "b": 0}}, {"a": run}, tmp_path / "a.html", "CG")
    detail = read_data(path.read_text())["details"]["0"]
    assert detail["documents"] == [[page, 3, None, page], ["b", 0], ["a"]]  # then those not good, then those unjudged
    assert detail["searches"] == [[[None, [0, 4 + 1, 8 + 2]]]]  # 4 * place + kind


def test_the_table_as_csv_has_every_value_and_is_changed_for_spreadsheets_alone(tmp_path: Path) -> None:
    qrels = {"=1+1": {"a": 3}, "q": {"a": 2}}
    runs = {"@old": {"=1+1": {"a": 1.0}, "q": {"b": 1.0}}, "new": {"q": {"a": 1.0}}}
    plain = pl.read_csv(gg.report(qrels, runs, tmp_path / "a.csv", "CG"))
    assert plain.select("query_id", "system", "value", "difference", "cause").rows() == [
        ("=1+1", "@old", 3.0, None, None),
        ("=1+1", "new", 0.0, -3.0, "new has no row where @old found some good documents"),
        ("q", "@old", 0.0, None, None),
        ("q", "new", 2.0, 2.0, "@old never retrieved some good documents"),
    ]

    guarded = pl.read_csv(gg.report(qrels, runs, tmp_path / "b.csv", "CG", spreadsheet=True))
    assert guarded["query_id"].to_list() == ["'=1+1", "'=1+1", "q", "q"]
    assert guarded["system"].to_list() == ["'@old", "new", "'@old", "new"]
    assert guarded["value"].to_list() == plain["value"].to_list()


@pytest.mark.slow
def test_markdown_has_the_sentences_and_tables_and_escapes_names(tmp_path: Path) -> None:
    text = write_hostile(tmp_path / "a.md").read_text()
    assert "<script" not in text.replace("\\<script", "")
    assert not re.search("[\u202e\x1b\u2028]", text)
    plain = gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "b.md", MEASURES).read_text()
    compared = gg.compare(AGENTS / "qrels.txt", RUNS, MEASURES, baseline="quick")
    row = next(line for line in compared.to_text().splitlines() if line.startswith("| nCG@6"))
    assert row.split("|")[4].strip() in plain  # the difference
    assert "**What to distrust**" in plain and "Each system has one run" in plain


@pytest.mark.parametrize("most", [5, 2])
def test_the_page_shows_the_first_reasons_for_doubt_and_folds_the_others(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodgain.analysis.reporting.report.MOST_SHOWN", most)
    qrels = {f"q{k}": {"a": 3, "b": 2, "c": 0} for k in range(6)}
    runs = {name: {query: {"a": 2.0, f"x{k}": 1.0} for k, query in enumerate(qrels)} for name in ("one", "two")}
    doubts = json.loads(gg.report(qrels, runs, tmp_path / "a.json", "nCG@9 SRR@9").read_text())["doubts"]
    assert doubts[0] == "Only 6 queries: even a large difference may not hold for others." and 2 < len(doubts) <= 5

    text = gg.report(qrels, runs, tmp_path / "a.html", "nCG@9 SRR@9").read_text()
    section = text.partition('<section id="doubts"')[2].partition("</section>")[0]
    shown, _, folded = section.partition("<details>")
    assert (shown.count("<li>"), folded.count("<li>")) == (min(len(doubts), most), max(len(doubts) - most, 0))
    assert (f"<summary>{len(doubts) - most} more</summary>" in folded) == (len(doubts) > most)


@pytest.mark.slow
def test_explanations_of_many_systems_are_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodgain.analysis.reporting.report.MOST_SHOWN", 2)
    runs = {"base": RUNS["quick"], **dict.fromkeys("abc", RUNS["late"])}
    text = gg.report(AGENTS / "qrels.txt", runs, tmp_path / "a.html", "nCG@6").read_text()
    section = text.partition('<section id="why"')[2].partition("</section>")[0]
    shown, _, folded = section.partition("<details>")
    assert shown.count("<p>") == 2 and folded.startswith("<summary>1 more</summary>")


def test_outcomes_are_compared_beside_the_measures(tmp_path: Path) -> None:
    outcomes = AGENTS / "outcomes.csv"
    data = json.loads(
        gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "a.json", "nCG@6", outcomes=outcomes).read_text()
    )
    compared = gg.compare(AGENTS / "qrels.txt", RUNS, "nCG@6", baseline="quick", outcomes=outcomes)
    assert [row["measure"] for row in data["pairs"]] == ["nCG@6", "solved"]
    assert data["pairs"][1]["difference"] == compared.pairs.filter(measure="solved")["difference"].item()
    assert any("solved" in sentence for sentence in data["summary"])
    with pytest.raises(gg.InputError, match="outcomes are compared, and there is one system"):
        gg.report(AGENTS / "qrels.txt", {"quick": RUNS["quick"]}, tmp_path / "a.json", outcomes=outcomes)


def test_the_rows_of_queries_have_their_groups(tmp_path: Path) -> None:
    groups = pl.DataFrame({"query_id": ["q01", "q01", "q02"], "group": ["fact", "old", "fact"]})
    files = AGENTS / "qrels.txt", RUNS
    grouped = json.loads(gg.report(*files, tmp_path / "a.json", "nCG@6", groups=groups).read_text())
    groups_of = {row["query_id"]: row["groups"] for row in grouped["queries"]}
    assert (groups_of.pop("q01"), groups_of.pop("q02")) == ("fact, old", "fact")
    assert {*groups_of.values()} == {""}
    plain = json.loads(gg.report(*files, tmp_path / "b.json", "nCG@6").read_text())
    assert all("groups" not in row for row in plain["queries"])


def test_tiles_have_the_verdicts_of_compare_but_for_the_number_of_searches(page: str) -> None:
    tiles = re.findall(
        r'<div class="tile">.*?<span class="hint" title="[^"]*">(\S+).*?</span>.*?<p class="(.*?)">',
        page,
        flags=re.DOTALL,
    )
    shown = dict(tiles)
    compared = gg.compare(AGENTS / "qrels.txt", RUNS, [*shown], baseline="quick").pairs
    wanted = dict(compared.select("measure", "verdict").rows()) | {"NumIter": ""}
    assert shown == wanted and {*shown.values()} == {"unclear", "worse", "better", ""}


@pytest.mark.slow
def test_the_headline_says_chance_exactly_where_the_verdict_is_unclear(tmp_path: Path) -> None:
    for number, (old, new) in enumerate(itertools.product(range(4), repeat=2)):
        qrels = {f"q{k}": {"a": 3, "b": 3, "c": 3} for k in range(8)}
        runs = {
            name: {query_id: dict.fromkeys("abc"[:found] or "x", 1.0) for query_id in qrels}
            for name, found in (("old", old), ("new", new))
        }
        path = gg.report(qrels, runs, tmp_path / f"{number}.json", "nCG@1")
        data = json.loads(path.read_text())
        verdict = data["pairs"][0]["verdict"]
        headline = data["headline"][0]
        assert ("This may be chance" in headline) == (verdict == "unclear"), headline
        assert ("beyond chance" in headline) == (verdict in ("better", "worse")), headline
        assert ("find the same share" in headline) == (verdict == "equal"), headline


@pytest.mark.slow
def test_a_report_of_many_systems_says_what_it_leaves_out_and_how_it_chose(tmp_path: Path) -> None:
    qrels = {f"q{k}": {"a": 3, "b": 3} for k in range(8)}
    runs = {
        f"s{number}": {query_id: {"a" if k < number else "x": 1.0} for k, query_id in enumerate(qrels)}
        for number in range(8)
    }
    page = gg.report(qrels, runs, tmp_path / "a.html", "nCG@1").read_text()
    assert "<title>8 systems, compared with s0: 8 queries</title>" in page
    made = json.loads(gg.report(qrels, runs, tmp_path / "a.json", "nCG@1").read_text())
    assert made["headline"][0].startswith("s7, with the highest mean of 8 systems, finds")
    assert "The highest of several means is too high on average, by chance." in made["doubts"][1]

    first_is_best = {"s7": runs.pop("s7"), **runs}
    headline = json.loads(gg.report(qrels, first_is_best, tmp_path / "b.json", "nCG@1").read_text())["headline"]
    assert headline[0].startswith("s6, with the highest mean of the 7 systems compared, finds")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of nine systems: each has its searches in two iterations, and finds more than the one before it."""
    qrels = {f"q{k}": {"a": 3, "b": 3} for k in range(8)}
    columns = ["query_id", "iteration", "doc_id"]
    runs = {}
    for number in range(9):
        rows = [(query, 1, "x") for query in qrels]
        rows += [(query, 2, "a") for query in [*qrels][:number]]
        runs[f"s{number}"] = pl.DataFrame(rows, schema=columns, orient="row")
    return gg.report(qrels, runs, tmp_path_factory.mktemp("many") / "a.html", "nCG SRR").read_text()


@pytest.mark.slow
def test_of_many_systems_the_first_and_the_best_have_colours_and_the_page_says_so(many: str) -> None:
    highlights = ["s0", "s8", "s7", "s6"]
    assert f"pictures of single systems: {', '.join(highlights)}. The 5 other systems are grey lines." in many
    assert "And 5 more: a report as JSON has the searches of all 9 systems." in many
    searches = many.partition('<section id="searches"')[2].partition("</section>")[0]
    assert re.findall("<caption>(.*?)</caption>", searches) == highlights

    titles = re.findall(r"<figcaption><b>(.*?)</b>", many)
    assert [one for one in titles if "query by query" in one] == [
        f"{name} against s0, query by query" for name in highlights[1:]
    ]
    assert [one for one in titles if "came back" in one] == [
        f"What came back in {name}, by iteration" for name in highlights
    ]
    texts = re.findall(r"<desc[^>]*>(.*?)</desc>", many)
    assert texts[0] == (
        "From iteration 1 to 2, s0 goes from 0.0000 to 0.0000, s8 goes from 0.0000 to 0.5000, s7 goes from 0.0000 to 0.4375 "
        "and s6 goes from 0.0000 to 0.3750. The 5 other systems are grey lines."
    )
    labels = [one.text for one in ElementTree.fromstring(re.findall("<svg.*?</svg>", many, re.DOTALL)[0]).iter("text")]
    assert {"5 other systems", *highlights} <= {*labels} and "s3" not in labels


@pytest.mark.slow
def test_the_tables_of_many_systems_have_a_row_for_each_and_a_table_for_each_measure(many: str) -> None:
    section = many.partition('<section id="tables"')[2].partition("</section>")[0]
    shown = section.partition("The differences in sentences")[0]
    means, *folded = re.findall("<caption>(.*?)</caption>", shown)
    assert means == "Means over 8 queries"
    rows = re.findall(r"<tr><td>(s\d)</td>", shown.partition("</table>")[0])
    assert rows == [f"s{number}" for number in range(9)]
    assert shown.count("<details>") == len(folded) + 1 == 7
    assert folded[0].startswith("nCG ↑: difference from s0 (")
    assert [one.split(":")[0] for one in folded] == ["nCG ↑", "SRR ↓", "nCG@2 ↑", "nDCGG@2 ↑", "SRR@2 ↓", "NumIter ↓"]


def test_the_table_of_the_page_has_the_measures_of_the_tiles(page: str) -> None:
    tiles = re.findall(
        r'<div class="tile">.*?<span class="hint" title="[^"]*">(.*?)</span>.*?<dl>(.*?)</dl>', page, re.DOTALL
    )
    table = page.partition("<caption>late against quick, 25 queries</caption>")[2].partition("</table>")[0]
    header, *rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>.*?</tr>", table)]
    assert header[:4] == ["measure", "quick", "late", "difference"]  # the order of the tiles
    row_of = {row[0]: row for row in rows}
    assert len(tiles) == 4
    for measure, values in tiles:
        shown = re.findall("<dd>(.*?)</dd>", values)
        assert [f"{float(one):.2f}" for one in row_of[measure][1:4]] == [f"{float(one):.2f}" for one in shown]
    assert row_of["NumIter ↓"][-1] == "more" and row_of["SRR@6 ↓"][-1] == "better"


def test_a_run_without_iterations_has_no_part_about_them(tmp_path: Path) -> None:
    qrels = {f"q{k}": {"a": 3, "b": 3} for k in range(8)}
    runs = {
        name: {query: dict.fromkeys(found, 1.0) for query in qrels} for name, found in (("old", "a"), ("new", "ab"))
    }
    text = gg.report(qrels, runs, tmp_path / "a.html", "nDCG@10 nCG").read_text()
    assert re.findall('<section id="([a-z]+)"', text) == [
        "doubts",
        "why",
        "tables",
        "pictures",
        "queries",
        "query",
        "made",
    ]
    assert "#searches" not in text
    assert re.findall(r'<div class="tile"><p><b>(.*?)</b>', text) == ["Share of the good material found"]
    titles = re.findall(r"<figcaption><b>(.*?)</b>", text)
    assert titles == [
        "new against old, query by query",
        "What came back in old, by iteration",
        "What came back in new, by iteration",
        "Precision and recall",
    ]


def test_every_picture_says_in_words_what_it_shows(page: str) -> None:
    read = Page(page)
    pictures = [tag for tag, name, value in read.attributes if (tag, name, value) == ("svg", "role", "img")]
    labels = [value.split() for tag, name, value in read.attributes if tag == "svg" and name == "aria-labelledby"]
    assert len(pictures) == len(labels) == 8
    assert all(one in read.ids for label in labels for one in label)
    for picture in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        ElementTree.fromstring(picture)  # every element is closed
    curve = gg.curve(AGENTS / "qrels.txt", RUNS, "nCG")
    last = curve.filter(system="late", iteration=6)["mean"].item()
    assert any(
        text.startswith("From iteration 1 to 6, quick goes from 0.5321 to 0.7198 and late goes from 0.0204 to ")
        and f"{last:.4f}." in text
        for text in read.texts["desc"]
    )


def test_the_texts_of_a_picture_are_those_of_the_plot(page: str) -> None:
    compared = gg.compare(AGENTS / "qrels.txt", RUNS, MEASURES, baseline="quick")
    figure = plots.per_query(compared, "nCG@6").figure
    figure.draw_without_rendering()
    (ax,), (legend,) = figure.axes, figure.legends
    low, high = ax.get_xlim()
    ticks = [tick.get_text() for at, tick in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True) if low < at < high]
    ticks += [tick.get_text() for tick in ax.get_yticklabels()]
    labels = {*ticks, *(text.get_text() for text in legend.get_texts()), ax.get_ylabel(), ax.get_xlabel()}
    assert {"q01", "q25", "mean"} <= labels
    assert "; mean +0.0129." in page
    picture = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)[2]
    assert labels <= {one.text for one in ElementTree.fromstring(picture).iter("text")}


@pytest.mark.slow
def test_the_look_of_the_users_plots_changes_nothing(tmp_path: Path, page: str) -> None:
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        path = gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "a.html", MEASURES, groups=AGENTS / "groups.csv")
    pictures = re.compile("<svg.*?</svg>", re.DOTALL)
    assert pictures.findall(path.read_text()) == pictures.findall(page)


def test_a_format_is_known_by_the_ending_or_refused(tmp_path: Path) -> None:
    for name, given in (("a.txt", None), ("a", None), ("a.html", "pdf")):
        with pytest.raises(gg.InputError, match=r"ends in one of|Give one of"):
            gg.report({"q": {"a": 1}}, {"a": {"q": {"a": 1.0}}}, tmp_path / name, format=given)
    assert not [*tmp_path.iterdir()]
    assert gg.report({"q": {"a": 3}}, {"a": {"q": {"a": 1.0}}}, tmp_path / "a", "CG", format="csv").read_text()


def test_results_of_all_systems_come_in_one_file_or_one_each(tmp_path: Path) -> None:
    with pytest.raises(gg.InputError, match="Give one file with all systems, or one for each"):
        gg.report(AGENTS / "qrels.txt", RUNS, tmp_path / "a.html", results=[LOST / "results.jsonl"] * 3)


@pytest.mark.slow
def test_the_command_writes_the_page_and_says_how_to_make_it_again(tmp_path: Path) -> None:
    inputs = [LOST / name for name in ("qrels.txt", "old.run", "new.run")]
    done = run_command("report", *inputs, "-m", "CG@3", "--results", LOST / "results.jsonl", "-o", tmp_path / "a.html")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"written: {tmp_path / 'a.html'}" in done.stderr
    page = (tmp_path / "a.html").read_text()
    assert f"goodgain report {LOST / 'qrels.txt'} {LOST / 'old.run'} {LOST / 'new.run'} -m CG@3 --results" in page
    called = gg.report(
        LOST / "qrels.txt", {name: LOST / f"{name}.run" for name in ("old", "new")}, tmp_path / "b.html", "CG@3",
        results=LOST / "results.jsonl",
    )  # fmt: skip
    assert read_data(called.read_text()) == read_data(page)


@pytest.mark.slow
def test_the_command_on_the_page_of_a_call_makes_the_same_page(tmp_path: Path) -> None:
    runs = {name: LOST / f"{name}.run" for name in ("old", "new")}
    texts = tmp_path / "texts.tsv"
    texts.write_text("dam\tIs it safe?\n")
    path = tmp_path / "a.html"
    gg.report(
        LOST / "qrels.txt", runs, path, "CG@3 SRR@3", rel=3, results=LOST / "results.jsonl", queries=texts, details=2
    )
    page = path.read_text()
    (command,) = re.findall("<code>(.*?)</code>", page)
    assert run_command(*shlex.split(html.unescape(command))[1:]).returncode == 0
    assert read_data(path.read_text()) == read_data(page)
    assert len(read_data(page)["details"]) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"urls": "keep", "leave_out": "own", "errors": "skip"},
        {"gaps": "empty", "first": 0},
        {"page": {"old": 1, "new": 2}},
        {"columns": {"step": "iteration", "qid": "query_id"}, "only": Path("only.txt")},
        {"missing": "absent", "alpha": 0.1, "only": Path("only.txt")},
        {"only": ["q1"]},
        {"only": ["q1", "q2"], "urls": "keep"},
    ],
    ids=lambda options: " ".join(options),
)
def test_the_command_of_files_on_disk_has_the_options_of_the_experiment(
    options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["qid", "step", "doc_id"] if "columns" in options else ["query_id", "iteration", "doc_id"]
    names = ["query_id", "doc_id", "rank", "score"] if "page" in options else names
    for name, rows in {"old": ["q1,1,2,1", "q2,1,2,1"], "new": ["q1,1,2,1", "q1,2,3,.5"]}.items():
        lines = [",".join(names), *(row.rsplit(",", 4 - len(names))[0] for row in rows)]
        Path(f"{name}.csv").write_text("\n".join(lines))
    Path("qrels.txt").write_text("q1 0 2 3\nq2 0 1 2\nq3 0 2 3\n")
    Path("only.txt").write_text("q1\nq2\n")
    systems = {name: f"{name}.csv" for name in ("old", "new")}
    gg.Experiment("qrels.txt", systems, **options).report("a.json", "CG@2", details=3)
    data = json.loads(Path("a.json").read_text())
    Path("a.json").unlink()

    if data["command"].startswith("goodgain.Experiment"):
        assert "missing" in options or isinstance(options["only"], list)  # what the command lacks
        eval(data["command"], {"goodgain": gg})
    else:
        assert run_command(*shlex.split(data["command"])[1:], cwd=tmp_path).returncode == 0

    again = json.loads(Path("a.json").read_text())
    assert all(name.replace("_", "-") in data["command"] for name in options)
    said_otherwise = {"command": "", "doubts": ""}  # doubts name options as in Python, or as on the command line
    assert data | said_otherwise == again | said_otherwise


def test_the_call_has_all_runs_of_a_system(tmp_path: Path) -> None:
    systems = {"one": [RUNS["late"]], "two": [RUNS["late"], RUNS["quick"]]}
    x = gg.Experiment(AGENTS / "qrels.txt", systems, missing="absent")  # no option of the command
    path = x.report(tmp_path / "a.json", "CG")
    late, quick = (str(RUNS[name]) for name in ("late", "quick"))
    assert f"{{'one': {late!r}, 'two': [{late!r}, {quick!r}]}}" in json.loads(path.read_text())["command"]


def test_a_report_of_data_in_memory_says_so(tmp_path: Path) -> None:
    in_memory = gg.report({"q": {"a": 3}}, {"x": {"q": {"a": 1.0}}}, tmp_path / "b.html", "CG")
    page = in_memory.read_text()
    assert "<p>Made in Python from data in memory.</p>" in page
    assert "makes the report again" not in page
    from_files = gg.report(AGENTS / "qrels.txt", {"late": RUNS["late"]}, tmp_path / "c.html", "CG").read_text()
    assert "<p>This command makes the report again:</p>" in from_files
