"""Returned, opened, cited: the worked example, brute force on random tables, unknown and zero, and where the counts go."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.comparing.use_of_documents import FUNNEL, _spell_uses
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.plots import plot_data
from goodgain.errors import GoodgainNotice, InputError, collect_notices
from goodgain.logs.traces import read_traces
from goodgain.schema import USES
from tests.support.command import run_command
from tests.support.tables import ROOT, no_notices

FOLDER = ROOT / "qrels_examples" / "opened_and_cited"
QRELS, USES_FILE = FOLDER / "judgments.qrels", FOLDER / "uses.jsonl"
Rows = list[dict[str, Any]]
Numbers = dict[str, float | None]


def use(doc_id: str, *, query_id: str = "q1", system: str = "agent", **columns: Any) -> dict[str, Any]:
    none = {"replicate": None, "returned_at": None, "rank": None, "opened_at": None, "opens": 0, "failed_opens": 0}
    return {"query_id": query_id, "system": system, "doc_id": doc_id, **none, "cited": False} | columns


def table(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=USES.polars)


def test_the_uses_of_the_example_are_what_convert_and_read_traces_write(tmp_path: Path) -> None:
    run_command("convert", FOLDER / "logs.jsonl", "-o", tmp_path / "{system}.run", "--uses", tmp_path / "uses.jsonl")
    assert (tmp_path / "uses.jsonl").read_bytes() == USES_FILE.read_bytes()
    _, uses = read_traces(FOLDER / "logs.jsonl", uses=True)
    assert gg.funnel(QRELS, uses).frame.equals(gg.funnel(QRELS, USES_FILE).frame)


def test_the_funnel_of_an_experiment_has_its_order_of_systems() -> None:
    run = pl.DataFrame({"query_id": ["q1"], "iteration": [1], "doc_id": ["a"]})
    uses = table([use("a", system=name, returned_at=1) for name in ("new", "old", "other")])
    x = gg.Experiment({"q1": {"a": 2}}, {"old": run, "new": run})
    assert x.funnel(uses).frame["system"].to_list() == [*x.curve("CG")["system"].to_list(), "other"]


# Brute force: documents in dictionaries, counted one by one.


def count(labels: dict[str, float | None], rows: Rows, rel: float, *, opens: bool, answer: bool) -> Numbers:
    good = {name for name, label in labels.items() if label is not None and label >= rel}
    judged = {name for name, label in labels.items() if label is not None}
    documents = [row for row in rows if row["doc_id"] != "-"]
    returned = {row["doc_id"] for row in documents if row["returned_at"] is not None}
    opened = {row["doc_id"] for row in documents if row["opened_at"] is not None}
    cited = {row["doc_id"] for row in documents if row["cited"]}
    made = sum(row["opens"] or 0 for row in documents)

    def share(part: int, whole: int, otherwise: float | None) -> float | None:
        return part / whole if whole else otherwise

    found: Numbers = {
        "returned": len(returned), "good_returned": len(returned & good),
        "evidence_recall": share(len(returned & good), len(good), 0.0),
    }  # fmt: skip
    of_opens: Numbers = {
        "opened": len(opened), "good_opened": len(opened & good), "lost_unopened": len((returned & good) - opened),
        "opening_precision": share(len(opened & good), len(opened), 0.0),
        "opening_judged": share(len(opened & judged), len(opened), None),
        "opening_recall": share(len(opened & good), len(good), 0.0),
        "opens_per_good": share(made, len(opened & good), None), "opens": made,
    }  # fmt: skip
    of_answer: Numbers = {
        "cited": len(cited), "good_cited": len(cited & good), "citation_coverage": float(bool(cited)),
        "citation_precision": share(len(cited & good), len(cited), 0.0),
        "citation_judged": share(len(cited & judged), len(cited), None),
        "citation_recall": share(len(cited & good), len(good), 0.0),
    }  # fmt: skip
    found |= of_opens if opens else dict.fromkeys(of_opens)
    found |= of_answer if answer else dict.fromkeys(of_answer)
    found["lost_uncited"] = len((opened & good) - cited) if opens and answer else None
    return found


def make_tables(seed: int) -> tuple[list[tuple[str, str, float | None]], dict[tuple[str, str], Rows], float]:
    """Labels, the rows of each query and system, and a threshold."""
    chance = random.Random(seed)
    queries = [f"q{k}" for k in range(chance.randint(1, 4))]
    names = [f"d{k}" for k in range(chance.randint(1, 8))]
    labels = [
        (query, name, chance.choice([0, 1, 2, 3, 2.5, None]))
        for query in queries
        for name in names
        if chance.random() < 0.6
    ]
    labels.append(("q0", "judged", 1.0))
    tables: dict[tuple[str, str], Rows] = {}

    for system in ("a", "b")[: chance.randint(1, 2)]:
        records_opens, records_answers = chance.random() < 0.85, chance.random() < 0.85
        for query in [*queries, "unjudged query"]:
            if query != "q0" and chance.random() < 0.15:
                continue  # absent
            answered = records_answers and chance.random() < 0.9
            rows = []
            for name in chance.sample([*names, "other", "judged"], chance.randint(0, len(names))):
                opens = chance.choice([0, 0, 1, 2])
                failed = chance.randint(0, opens)
                opened_at = chance.randint(0, 5) if opens > failed else None
                known = {"opens": opens, "failed_opens": failed, "opened_at": opened_at}
                cited = chance.random() < 0.3 if answered else None
                returned_at = chance.choice([None, 1, 2, 3])
                rows.append(use(name, query_id=query, system=system, returned_at=returned_at, cited=cited)
                            | (known if records_opens else dict.fromkeys(known)))  # fmt: skip
            unknown = {} if records_opens else dict.fromkeys(("opens", "failed_opens"))
            nothing = use("-", query_id=query, system=system, cited=False if answered else None) | unknown
            tables[query, system] = rows or [nothing]

    return labels, tables, chance.choice([1, 2, 3])


def mean(values: Iterator[float | None] | list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("block", range(10))
def test_a_thousand_random_tables_have_the_numbers_of_brute_force(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        labels, tables, rel = make_tables(seed)
        qrels = pl.DataFrame(
            labels, schema={"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Float64}, orient="row"
        )
        rows = [row for of in tables.values() for row in of]
        random.Random(seed).shuffle(rows)
        funnel = gg.funnel(qrels, table(rows), rel=rel)
        judged = {query for query, _, label in labels if label is not None}

        for system in {system for _, system in tables}:
            of_system = [
                row for (_, name), of in tables.items() if name == system for row in of if row["query_id"] in judged
            ]
            any_opens, any_answer = (any(row[name] is not None for row in of_system) for name in ("opens", "cited"))
            numbers = {}
            for query in judged:
                own = tables.get((query, system), [])
                opens, answer = (any(row[name] is not None for row in own) if own else known
                                 for name, known in (("opens", any_opens), ("cited", any_answer)))  # fmt: skip
                of_query = {name: label for of, name, label in labels if of == query}
                numbers[query] = count(of_query, own, rel, opens=opens, answer=answer)
            for row in funnel.per_query.filter(system=system).iter_rows(named=True):
                expected = numbers[row["query_id"]]
                assert {name: row[name] for name in FUNNEL} == {
                    name: pytest.approx(expected[name]) for name in FUNNEL
                }, seed
            (of_all,) = funnel.frame.filter(system=system).to_dicts()
            sums = [sum(of[name] or 0 for of in numbers.values()) for name in ("opens", "good_opened")]
            expected = {name: mean([of[name] for of in numbers.values()]) for name in FUNNEL}
            expected["opens_per_good"] = sums[0] / sums[1] if sums[1] else None
            assert {name: of_all[name] for name in FUNNEL} == {
                name: pytest.approx(expected[name]) for name in FUNNEL
            }, seed
            assert of_all["queries"] == len(judged)
            assert of_all["queries_with_opens"] == sum(of["opened"] is not None for of in numbers.values())
            assert of_all["queries_with_answer"] == sum(of["cited"] is not None for of in numbers.values())


# BrowseComp-Plus: its printed means of citation precision and recall, restated from what its evaluation says.


def print_citations(runs: dict[str, str], evidence: dict[str, set[str]]) -> tuple[float, float, float]:
    """Share of answers that cite, and over these the means of precision and recall of all numbers in brackets."""
    precisions, recalls = [], []
    for query, answer in runs.items():
        inside = [a or b for a, b in re.findall(r"\[([^\[\]]*)\]|【([^【】]*)】", answer)]
        numbers = {number for text in inside for number in re.findall(r"\d+", text)}
        if numbers:
            hits = len(numbers & evidence[query])
            precisions.append(hits / len(numbers))
            recalls.append(hits / len(evidence[query]))
    return len(precisions) / len(runs), math.fsum(precisions) / len(precisions), math.fsum(recalls) / len(recalls)


def write_run(folder: Path, query: str, found: list[str], opened: str, answer: str) -> None:
    entry = {"type": "tool_call", "tool_name": "search", "arguments": '{"query": "q"}'}
    read = {"type": "tool_call", "tool_name": "get_document", "arguments": json.dumps({"docid": opened})}
    result = [
        {**entry, "output": json.dumps([{"docid": name, "snippet": "x"} for name in found])},
        {**read, "output": json.dumps({"docid": opened, "text": "All of it."})},
        {"type": "output_text", "tool_name": None, "arguments": None, "output": answer},
    ]
    counts = {"search": 1, "get_document": 1}
    run = {
        "metadata": {"model": "m"},
        "query_id": query,
        "tool_call_counts": counts,
        "status": "completed",
        "result": result,
    }
    (folder / f"run_{query}.json").write_text(json.dumps(run))


#: query -> returned, opened, answer.
ANSWERS = {
    "1": (["11", "12", "13"], "11", "It is so [11], and [12, 14]."),
    "2": (["21", "22"], "29", "First【21】, then 【22, 29】, and [22] again."),
    "3": (["31", "32"], "31", "Nobody knows."),
    "4": (["41", "42"], "42", "See [docid 42; 41]."),
    "5": (["51", "52", "53", "54"], "51", "[51] [54], but not 52."),
}
EVIDENCE = {"1": {"11", "13", "14"}, "2": {"21", "29"}, "3": {"31"}, "4": {"41"}, "5": {"51", "52", "53"}}


def count_citations(folder: Path, answers: dict[str, tuple[list[str], str, str]]) -> dict[str, Any]:
    for query, run in answers.items():
        write_run(folder, query, *run)
    _, uses = read_traces(folder, uses=True)
    qrels = {query: dict.fromkeys(names, 1) for query, names in EVIDENCE.items()}
    (found,) = gg.funnel(qrels, uses, rel=np.int64(1)).frame.to_dicts()
    return found


@pytest.mark.filterwarnings("ignore:browsecomp_plus does not record:goodgain.GoodgainNotice")
def test_the_citation_figures_of_browsecomp_plus_are_ours_divided_by_coverage(tmp_path: Path) -> None:
    answers = ANSWERS | {"1": (["11", "12", "13", "14"], "11", ANSWERS["1"][2])}
    citations = count_citations(tmp_path, answers)
    coverage, precision, recall = print_citations({query: run[2] for query, run in answers.items()}, EVIDENCE)
    assert citations["citation_coverage"] == pytest.approx(coverage) == 4 / 5
    assert citations["citation_precision"] / citations["citation_coverage"] == pytest.approx(precision)
    assert citations["citation_recall"] / citations["citation_coverage"] == pytest.approx(recall)


@pytest.mark.filterwarnings("ignore:browsecomp_plus does not record:goodgain.GoodgainNotice")
def test_the_rest_of_the_difference_to_browsecomp_plus_is_numbers_in_brackets_that_name_no_document(
    tmp_path: Path,
) -> None:
    answers = ANSWERS | {"3": (["31", "32"], "31", "In [2019] nobody knew.")}
    citations = count_citations(tmp_path, answers)
    met = {query: {*run[0], run[1]} for query, run in answers.items()}
    kept = {
        query: re.sub(r"\d+", lambda citations, query=query: citations[0] if citations[0] in met[query] else "", run[2])  # type: ignore[misc]  # a lambda with a default
        for query, run in answers.items()
    }
    coverage, precision, recall = print_citations(kept, EVIDENCE)  # without [14] and [2019]
    assert (citations["citation_coverage"], coverage) == (4 / 5, 4 / 5)
    assert citations["citation_precision"] / coverage == pytest.approx(precision)
    assert citations["citation_recall"] / coverage == pytest.approx(recall)

    with_all = print_citations({query: run[2] for query, run in answers.items()}, EVIDENCE)
    assert with_all[0] == 1.0 and with_all[2] != pytest.approx(recall)


# Unknown and zero


CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("funnels.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_a_funnel_has_the_numbers_and_notices_of_the_case(case: dict[str, Any]) -> None:
    rows = [use(**row) for row in case["uses"]]
    if "error" in case:
        types = USES.polars | dict.fromkeys(("opens", "returned_at", "cited"), pl.Float64)
        with pytest.raises(InputError, match=re.escape(case["error"])):
            gg.funnel(case["qrels"], pl.DataFrame(rows, schema=types, strict=False))
        return
    said: list[GoodgainNotice] = []
    with collect_notices(said.append):
        funnel = gg.funnel(case["qrels"], table(rows), **case.get("options", {}))
    assert all(text in str(one) for text, one in zip(case.get("notices", []), said, strict=True))
    assert funnel.frame.select([*case["frame"]]).row(0, named=True) == case["frame"]
    assert funnel.per_query.height == case.get("rows", funnel.per_query.height)


# Input


def test_uses_come_from_frames_files_and_lists_of_them(tmp_path: Path) -> None:
    whole = gg.funnel(QRELS, USES_FILE).frame
    frame = pl.read_ndjson(USES_FILE)
    frame.write_csv(tmp_path / "uses.csv")
    parts = [frame.filter(system=name) for name in ("agent", "careful")]
    parts[1].to_pandas().to_csv(tmp_path / "careful.tsv", sep="\t", index=False)
    for source in (tmp_path / "uses.csv", frame.to_pandas(), parts, [parts[0], tmp_path / "careful.tsv"]):
        assert gg.funnel(QRELS, source).frame.equals(whole)
    assert gg.funnel(QRELS, parts[0].drop("system", "rank")).frame.item(0, "system") == "goodgain"
    with pytest.raises(InputError, match="two rows have document d1 of query q1 and system agent"):
        gg.funnel(QRELS, [frame, parts[0]])
    with pytest.raises(InputError, match="has no column opens, cited"):
        gg.funnel(QRELS, frame.drop("opens", "cited"))


# Where the counts go


def read_runs(folder: Path) -> dict[str, Path]:
    run_command("convert", FOLDER / "logs.jsonl", "-o", folder / "{system}.run")
    return {name: folder / f"{name}.run" for name in ("agent", "careful")}


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_the_funnel_is_compared_as_outcomes_with_its_own_directions(tmp_path: Path) -> None:
    runs, per_query = read_runs(tmp_path), gg.funnel(QRELS, USES_FILE).per_query
    compared = gg.compare(QRELS, runs, "CG", outcomes=per_query)
    better = dict(compared.pairs.select("measure", "better").iter_rows())
    assert {name: better.get(name) for name in FUNNEL} == FUNNEL | {"opens_per_good": None}
    assert "opens_per_good" not in better

    differences = dict(compared.pairs.select("measure", "difference").iter_rows())
    assert differences["lost_uncited"] == pytest.approx(2 / 3) and differences["good_opened"] == pytest.approx(4 / 3)
    done = run_command("funnel", QRELS, USES_FILE, "-q", "-o", tmp_path / "per_query.csv")
    assert done.returncode == 0 and pl.read_csv(tmp_path / "per_query.csv").height == 6

    shown = run_command(
        "compare", QRELS, *runs.values(), "-m", "CG", "--outcomes", tmp_path / "per_query.csv", "-o", "csv"
    )
    rows = pl.read_csv(shown.stdout.encode()).filter(measure="lost_uncited")
    assert rows.select("better", "mean", "mean_against").row(0) == ("down", pytest.approx(2 / 3), 0.0)


def test_a_stage_that_one_system_does_not_record_is_left_out_of_a_comparison_with_a_notice(tmp_path: Path) -> None:
    runs = read_runs(tmp_path)
    hidden = [
        pl.when(pl.col("system") != "agent").then(name).alias(name) for name in ("opens", "failed_opens", "opened_at")
    ]
    with pytest.warns(GoodgainNotice) as given:
        per_query = gg.funnel(QRELS, pl.read_ndjson(USES_FILE).with_columns(hidden)).per_query
        compared = gg.compare(QRELS, runs, "CG", outcomes=per_query)
    assert any(
        "opened, good_opened, lost_unopened" in str(one.message) and "left out" in str(one.message) for one in given
    )
    measures = set(compared.pairs.get_column("measure"))
    assert "good_cited" in measures and "opened" not in measures


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_explain_says_of_lost_documents_where_they_were_lost(tmp_path: Path) -> None:
    runs = read_runs(tmp_path)
    explained = gg.explain(QRELS, runs["agent"], runs["careful"], uses=USES_FILE)
    rows = explained.documents.select("query_id", "doc_id", "use_base", "use_new").rows()
    assert ("q1", "d1", "returned at 1, never opened", "returned at 1, opened after 1, cited") in rows
    assert ("q1", "d3", "never returned", "returned at 2, opened after 2, not cited") in rows
    assert ("q3", "f1", "returned at 1, every open failed", "returned at 1, opened after 1, cited") in rows

    said = str(explained)
    assert "agent: 3 good documents returned and not opened: q1 d1 (returned at 1, never opened)" in said
    assert "careful: 2 good documents opened and not cited: q1 d3 (returned at 2, opened after 2, not cited)" in said

    highest = {"q1": {"d1": 3, "d2": 2, "d3": 2}, "q2": {"e1": 3, "e2": 2}, "q3": {"f1": 4, "f2": 2}}
    by_label = str(gg.explain(highest, runs["agent"], runs["careful"], uses=USES_FILE))
    assert "agent: 3 good documents returned and not opened: q3 f1 (" in by_label, "the highest label first"

    side_by_side = explained.to_text(query="q1")
    assert "| d3 | never returned | returned at 2, opened after 2, not cited |" in side_by_side
    plain = gg.explain(QRELS, runs["agent"], runs["careful"])
    assert plain.documents.select("use_base", "use_new").null_count().row(0) == (plain.documents.height,) * 2
    assert "opened" not in str(plain)

    done = run_command("explain", QRELS, runs["agent"], runs["careful"], "--uses", USES_FILE)
    assert "returned at 1, never opened" in done.stdout
    with pytest.raises(InputError, match=r"uses= has no rows of the system careful, but has rows of agent\. Rename"):
        gg.explain(QRELS, runs["agent"], runs["careful"], uses=pl.read_ndjson(USES_FILE).filter(system="agent"))


def test_the_plot_has_three_bars_a_system_with_their_shares(tmp_path: Path) -> None:
    funnel = gg.funnel(QRELS, USES_FILE)
    ax = plots.funnel(funnel)
    good, other = ([float(bar.get_height()) for bar in container] for container in ax.containers)  # type: ignore[attr-defined]  # bars
    assert good == pytest.approx([5 / 3, 2 / 3, 2 / 3, 7 / 3, 2, 4 / 3])
    assert [sum(pair) for pair in zip(good, other, strict=True)] == pytest.approx([3, 5 / 3, 4 / 3, 8 / 3, 2, 4 / 3])
    assert [text.get_text() for text in ax.texts] == ["56%", "40%", "50%", "88%", "100%", "100%"]
    data = plot_data.prepare_funnel(funnel)
    assert data.columns == ["system", "stage", "good", "other", "share"]
    assert data.get_column("stage").to_list() == ["returned", "opened", "cited"] * 2
    done = run_command("funnel", QRELS, USES_FILE, "--plot", tmp_path / "funnel.svg")
    assert done.returncode == 0 and (tmp_path / "funnel.svg").stat().st_size > 1000


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_a_stage_that_is_not_known_has_a_question_mark_in_place_of_a_bar() -> None:
    rows = [use("d1", returned_at=1) | dict.fromkeys(("opens", "failed_opens"))]
    ax = plots.funnel(gg.funnel({"q1": {"d1": 2}}, table(rows)))
    assert [text.get_text() for text in ax.texts] == ["100%", "?", ""]


# Ids, replicates and queries that do not fit


def test_blanks_in_ids_are_found_in_text_that_writes_them_as_percent_signs(tmp_path: Path) -> None:
    log = {
        "goodgain_trace": 1,
        "query_id": "my q",
        "system": "s",
        "user": "?",
        "steps": [
            {"searches": [{"query": "x", "results": [{"doc_id": "Oslo"}, {"doc_id": "New York", "title": "The Big Apple"}]}]},
            {"searches": [], "opens": ["New York"]},
        ],
        "answer": "It is in [New York].",
    }  # fmt: skip
    (tmp_path / "log.jsonl").write_text(json.dumps(log) + "\n")
    run, uses, results = tmp_path / "s.run", tmp_path / "uses.jsonl", tmp_path / "results.jsonl"
    run_command("convert", tmp_path / "log.jsonl", "-o", run, "--uses", uses, "--results", results)
    assert "my%20q 1 New%20York 2" in run.read_text()

    qrels = tmp_path / "qrels.txt"
    qrels.write_text("my%20q 0 Oslo 2\nmy%20q 0 New%20York 2\n")
    with no_notices():
        funnel = gg.funnel(qrels, uses)
    assert funnel.frame.select("evidence_recall", "good_opened", "good_cited").row(0) == (1.0, 1.0, 1.0)

    other = tmp_path / "other.run"
    other.write_text("my%20q 1 Oslo 1 1 other\n")
    explained = gg.explain(qrels, other, run, results=[results, results], uses=pl.concat([
        pl.read_ndjson(uses), pl.read_ndjson(uses).with_columns(system=pl.lit("other"))
    ]))  # fmt: skip
    row = explained.documents.filter(doc_id="New%20York").select("use_new", "title").row(0)
    assert row == ("returned at 1, opened after 1, cited", "The Big Apple")
    assert explained.iterations.filter(system="s").get_column("query_text").to_list() == ["x"]


def test_uses_of_replicates_are_chosen_by_the_name_of_the_run_and_never_mixed(tmp_path: Path) -> None:
    rows = [
        use("a", system="old", replicate="1", returned_at=1),
        use("b", system="old", replicate="2", returned_at=1, opened_at=1, opens=1),
        use("b", system="new", returned_at=1),
    ]
    for name, doc_id in (("old.2", "b"), ("new", "b")):
        (tmp_path / f"{name}.run").write_text(f"q1 1 {doc_id} 1 1 {name}\n")
    qrels, new = {"q1": {"a": 2, "b": 2}}, tmp_path / "new.run"
    explained = gg.explain(qrels, tmp_path / "old.2.run", new, uses=table(rows))
    said = dict(explained.documents.select("doc_id", "use_base").iter_rows())
    assert said == {"a": "never returned", "b": "returned at 1, opened after 1, not cited"}

    (tmp_path / "old.2.run").rename(tmp_path / "old.run")
    with pytest.raises(InputError, match=r"uses= has 2 replicates of old\. Name the run after one of them: old\.1\."):
        gg.explain(qrels, tmp_path / "old.run", new, uses=table(rows))


def test_opens_per_good_is_a_ratio_of_sums_and_not_compared_query_by_query(tmp_path: Path) -> None:
    qrels = {query_id: {"a": 2} for query_id in ("q1", "q2", "q3")}
    opened = {
        "A": {"q1": {"a": 1}, "q2": {"x": 9}, "q3": {"x": 1, "a": 1}},
        "B": {"q1": {"a": 1, "b": 1}, "q2": {"a": 1, "b": 1}, "q3": {"a": 1}},
    }
    uses = table([
        use(doc_id, query_id=query_id, system=name, returned_at=1, opened_at=1, opens=opens, cited=True)
        for name, queries in opened.items() for query_id, documents in queries.items() for doc_id, opens in documents.items()
    ])  # fmt: skip
    funnel = gg.funnel(qrels, uses)
    assert funnel.frame.get_column("opens_per_good").to_list() == [12 / 2, 5 / 3]

    runs = {name: {query_id: {"a": 1.0} for query_id in qrels} for name in opened}
    with pytest.warns(GoodgainNotice, match="opens_per_good is a ratio of sums over queries and cannot be compared"):
        compared = gg.compare(qrels, runs, "RR", outcomes=funnel.per_query, baseline="A")
    assert "opens_per_good" not in compared.pairs.get_column("measure")
    with pytest.raises(
        InputError, match=r"opens_per_good cannot be compared query by query\. Require opening_precision"
    ):
        gg.check(compared, "opens_per_good<=baseline")

    alone = funnel.per_query.select("query_id", "system", "opens_per_good")
    with pytest.raises(
        InputError, match=r"opens_per_good is a ratio of sums .*\. gg\.funnel computes it for each system"
    ):
        gg.compare(qrels, runs, "RR", outcomes=alone)


def test_opens_of_one_page_at_two_addresses_are_added_up_where_they_are_known() -> None:
    addresses = ("https://a.org/x", "http://www.a.org/x/")
    known, unknown = ([use(doc_id, opens=n, returned_at=1) for doc_id, n in zip(addresses, opens, strict=True)]
                      for opens in ((2, None), (None, None)))  # fmt: skip
    for rows, opens in ((known, 2.0), (unknown, None)):
        told = _spell_uses(table(rows), pl.DataFrame({"query_id": "q1", "doc_id": addresses[0]}))
        assert told.get_column("opens").to_list() == [opens]
