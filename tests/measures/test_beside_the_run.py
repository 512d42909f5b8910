"""RepeatedQueries, AreaOver and ValueAt against their definitions, worked by hand, and alike in every door."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.families import HOST_NAMES
from goodgain.measures.names import find_direction, find_null_rule, parse_measure
from tests.measures.test_session_measures import random_searches
from tests.support import oracle
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import in_every_form
from tests.support.tables import Searched, frame_of, work_out

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
#: Four queries, their search strings (with a ligature, blanks and cases), what each step cost, and values worked by hand.
WORKED = json.loads(Path(__file__).with_name("beside_the_run.json").read_text(encoding="utf-8"))
QRELS, RUN, COSTS = WORKED["qrels"], frame_of(WORKED["searches"]), pl.DataFrame(WORKED["costs"])


def tabulate_searches(asked: dict[str, list[list[str | None]]]) -> pl.DataFrame:
    """Results with a row for each search call: query -> iterations -> the strings of their calls."""
    rows = [
        (query, i, number, 0, text)
        for query, iterations in asked.items()
        for i, texts in enumerate(iterations, 1)
        for number, text in enumerate(texts, 1)
    ]
    names = {"query_id": str, "iteration": int, "search": int, "rank": int, "search_query": str}
    return pl.DataFrame(rows, schema=names, orient="row")


ASKED = tabulate_searches(WORKED["asked"])


def values_of(measure: str, **tables: Any) -> dict[str, float | None]:
    return {query: value for query, _, value in gg.evaluate(QRELS, RUN, measure, **tables).per_query.iter_rows()}


@pytest.mark.each
@pytest.mark.parametrize("measure", WORKED["values"])
def test_values_are_those_worked_by_hand(measure: str) -> None:
    of = {query: work_out(number) for query, number in WORKED["values"][measure].items()}
    assert values_of(measure, results=ASKED, costs=COSTS) == of


def test_the_signature_names_the_tables_and_counts_the_queries_without_a_value() -> None:
    scores = gg.evaluate(QRELS, RUN, "RepeatedQueries", results=ASKED)
    assert scores["RepeatedQueries"] == pytest.approx((2 / 5 + 1 / 3 + 0) / 3)
    assert scores.signature["without_value"] == ["RepeatedQueries:2"] and "results" in scores.signature
    name = "AreaOver(over='tokens',budget=1000)"
    scores = gg.evaluate(QRELS, RUN, name, costs=COSTS)
    assert scores.mean() == pytest.approx({name: 0.48 / 3})
    assert "costs" in scores.signature and scores.signature["without_value"] == [f"{name}:2"]


def test_the_threshold_of_a_call_is_that_of_the_measure_inside() -> None:
    wanted = values_of("AreaOver(measure='nCG(rel=3)', budget=3)")
    assert values_of("AreaOver(budget=3, rel=3)") == wanted != values_of("AreaOver(budget=3)")
    scores = gg.evaluate(QRELS, RUN, "AreaOver(budget=3)", rel=3)
    assert {query: value for query, _, value in scores.per_query.iter_rows()} == wanted
    assert scores.signature["rel"] == [3]
    asked = "AreaOver(measure='nCG(rel=1)',budget=3)"
    assert [*gg.evaluate(QRELS, RUN, asked, rel=3).means] == [asked]  # the name shows the threshold that applies
    with pytest.raises(gg.MeasureError, match="measure='nCGG' is not allowed"):
        gg.evaluate(QRELS, RUN, "AreaOver(measure='nCGG',budget=3)", rel=3)
    assert gg.evaluate(QRELS, RUN, "AreaOver(measure='EvidenceRecall', budget=3)").signature["rel"] == [1]
    low = {"p": {"a": 1, "b": 1, "c": 2}}
    found = gg.evaluate(
        low, RUN, "AreaOver(measure='EvidenceRecall', budget=3) EvidenceRecall@1 EvidenceRecall@2 EvidenceRecall@3"
    )
    assert [*found.means.values()] == pytest.approx([1 / 3, 0, 1 / 3, 2 / 3])  # its own default is 1


def integrate(points: list[tuple[Fraction, Fraction]], budget: Fraction) -> Fraction:
    """The area of steps (spend, value) up to the budget, over it; 0 before the first."""
    places = sorted({Fraction(0), budget, *(spend for spend, _ in points if spend < budget)})
    area = Fraction(0)
    for start, end in pairwise(places):
        reached = [value for spend, value in points if spend <= start]
        area += (end - start) * (reached[-1] if reached else 0)
    return area / budget


@pytest.mark.slow
def test_random_areas_and_values_at_a_budget_are_those_of_the_definition() -> None:
    random = Random(3)
    for _ in range(how_many(3, full=15)):
        searched: Searched = random_searches(random)
        qrels = {query: {doc: random.randint(0, 4) for doc in random.sample("abcdefgh", 5)} for query in "pqrstu"}
        rows = [oracle.RunRow(*row) for row in frame_of(searched).rows()]
        judged = [
            oracle.QrelRow(query, "0", doc, Fraction(label)) for query, of in qrels.items() for doc, label in of.items()
        ]
        spent = {query: [random.randint(0, 9) for _ in of] for query, of in searched.items()}
        unknown = random.choice(sorted(searched))
        costs = [(query, i, float(x)) for query, of in spent.items() if query != unknown for i, x in enumerate(of, 1)]
        frame = pl.DataFrame(costs, schema=["query_id", "iteration", "seconds"], orient="row")
        budget = random.randint(1, 12)

        for inner in ("nCG", "nDCGG(rel=1)", "RG", "SearchGain", "AvgGain", "NumUnique"):
            name, _, rest = inner.partition("(")
            at = [
                oracle.per_query(f"{name}@{i}" if not rest else f"{name}({rest}@{i}", rows, judged)
                for i in range(1, 13)
            ]
            for over in ("searches", "results", "seconds"):
                given = f"(measure='{inner}',over='{over}',budget={budget})"
                scores = gg.evaluate(qrels, frame_of(searched), f"AreaOver{given} ValueAt{given}", costs=frame)
                for query, asked, value in scores.per_query.iter_rows():
                    of = [Fraction(one[query] or 0) for one in at]
                    paid = (
                        [len(docs) for docs in searched.get(query, [])] if over == "results" else spent.get(query, [])
                    )
                    points = [(Fraction(sum(paid[: k + 1])), of[k]) for k in range(len(paid))]
                    if asked.startswith("AreaOver"):
                        wanted = (
                            sum(of[:budget]) / budget if over == "searches" else integrate(points, Fraction(budget))
                        )
                    else:
                        reached = [Fraction(0), *(value for spend, value in points if spend <= budget)]
                        wanted = of[budget - 1] if over == "searches" else reached[-1]
                    is_unknown = over == "seconds" and (query == unknown or query not in searched)
                    assert value == (None if is_unknown else pytest.approx(float(wanted))), (asked, query)


def test_random_searches_repeat_as_the_definition_says() -> None:
    random = Random(5)
    spellings = ["mill", "MILL", " mill ", "mill\tbridge", "Mill  bridge", "½", "1⁄2", "", None]
    plain = ["mill", "mill", "mill", "mill bridge", "mill bridge", "1⁄2", "1⁄2", None, None]

    for _ in range(how_many(10, full=50)):
        drawn = {q: [[random.randrange(9) for _ in range(random.randint(1, 3))] for _ in range(3)] for q in "pq"}
        table = tabulate_searches(
            {q: [[spellings[k] for k in iteration] for iteration in iterations] for q, iterations in drawn.items()}
        )
        upto = random.choice([None, 1, 2, 3])
        found = values_of("RepeatedQueries" + (f"@{upto}" if upto else ""), results=table)
        for q, iterations in drawn.items():
            texts = [plain[k] for iteration in iterations[:upto] for k in iteration]
            repeated = [text is not None and text in texts[:k] for k, text in enumerate(texts)]
            assert found[q] == (pytest.approx(sum(repeated) / len(texts)) if any(texts) else None)


def test_a_value_at_a_budget_is_the_point_of_the_curve() -> None:
    folder = Path(__file__).parents[2] / "qrels_examples" / "two_agents"
    qrels, run, costs = folder / "qrels.txt", folder / "late.run", folder / "costs.csv"
    for over, budget in (("searches", 3), ("results", 12), ("tokens", 20_000), ("cost", 0.04)):
        of_curve = costs if over in ("tokens", "cost") else None
        curve = gg.curve(qrels, {"late": run}, "nCG", over=over, at=[budget], costs=of_curve, resamples=0)
        name = f"ValueAt(over='{over}',budget={budget})"
        scores = gg.evaluate(qrels, run, name, costs=of_curve)
        assert scores[name] == pytest.approx(curve["mean"].item()) and scores[name] > 0


def test_large_files_and_engines_have_the_same_values(tmp_path: Path) -> None:
    asked = "RepeatedQueries@2 AreaOver(budget=3) AreaOver(over='tokens',budget=1000) ValueAt(over='tokens',budget=400)"
    tables = {"results": ASKED, "costs": COSTS}
    wanted = gg.evaluate(QRELS, RUN, asked, **tables)
    for run in in_every_form(RUN, tmp_path):
        assert gg.evaluate(QRELS, run, asked, **tables).per_query.equals(wanted.per_query)
    by_iteration = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": "a", "relevance": [0, 3]})
    scores = gg.evaluate(by_iteration, RUN, "AreaOver(measure='CG',budget=2)", labels="iteration")
    assert scores.mean() == {"AreaOver(measure='CG',budget=2)": 0}  # the label of the first occurrence counts


@pytest.mark.slow
def test_compare_has_interval_and_test_and_reads_the_tables_of_each_system(tmp_path: Path) -> None:
    qrels = {f"q{k}": {"a": 2} for k in range(8)}
    runs = {
        name: frame_of(dict.fromkeys(qrels, of)) for name, of in {"old": [["x"], ["a"]], "new": [["a"], ["x"]]}.items()
    }
    costs = pl.concat(
        pl.DataFrame({"query_id": [*qrels] * 2, "system": name, "iteration": [1] * 8 + [2] * 8, "input_tokens": 10})
        for name in runs
    )
    texts = {"old": ["x", "X"], "new": ["x", "y"]}
    results = pl.concat(
        tabulate_searches({q: [[one] for one in of] for q in qrels}).with_columns(system=pl.lit(name))
        for name, of in texts.items()
    )
    asked = "AreaOver(over='tokens',budget=40) AreaOver(budget=2) RepeatedQueries"
    compared = gg.compare(qrels, runs, asked, baseline="old", costs=costs, results=results)
    rows = compared.pairs.select("measure", "difference", "low", "high", "verdict").rows()
    assert rows == [
        ("AreaOver(over='tokens',budget=40)", 0.25, 0.25, 0.25, "better"),
        ("AreaOver(budget=2)", 0.5, 0.5, 0.5, "better"),
        ("RepeatedQueries", -0.5, -0.5, -0.5, "better"),
    ]
    assert {"costs", "results"} <= compared.signature.keys()
    assert gg.Experiment(qrels, runs, costs=costs).check("AreaOver(over='tokens',budget=40)>=baseline significant")

    page = gg.report(qrels, runs, tmp_path / "page.csv", "nCG RepeatedQueries", results=results)
    assert "RepeatedQueries" in page.read_text()
    with pytest.raises(gg.InputError, match="results= needs one run of each system"):
        gg.evaluate(qrels, [runs["old"], runs["new"]], "RepeatedQueries", results=results)

    for name, run in runs.items():
        gg.write_run(run, tmp_path / f"{name}.run")
    costs.write_csv(tmp_path / "costs.csv")
    gg.write_results(results, tmp_path / "results.jsonl")
    gg.write_qrels(qrels, tmp_path / "qrels.txt")
    tables = ["--costs", "costs.csv", "--results", "results.jsonl"]
    command = ["compare", "qrels.txt", "old.run", "new.run", "--baseline", "old", "-m", asked, *tables]
    done = run_command(*command, "-o", "csv", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.count(",better,true") == 3, done.stderr

    one = run_command("evaluate", "qrels.txt", "new.run", "RepeatedQueries", *tables, "-o", "tsv", cwd=tmp_path)
    assert one.stdout.startswith("RepeatedQueries\t0.0000"), one.stderr


def test_what_is_missing_or_wrong_is_said() -> None:
    told = "RepeatedQueries@2 needs results=: give the table that goodgain convert --results writes"
    with pytest.raises(gg.InputError, match=told):
        gg.evaluate(QRELS, RUN, "RepeatedQueries@2")
    beyond = pl.DataFrame({"query_id": ["p", "p"], "iteration": [1, 9], "seconds": [2.0, 3.0]})
    with pytest.warns(gg.GoodgainNotice, match="that the run lacks, such as iteration 9 of query p"):
        gg.evaluate(QRELS, RUN, "AreaOver(over='seconds',budget=9)", costs=beyond)
    with pytest.raises(gg.InputError, match=r"AreaOver\(over='tokens',budget=9\) needs costs="):
        gg.compare(QRELS, {"a": RUN, "b": RUN}, "AreaOver(over='tokens',budget=9)")


def test_directions_hosts_and_null_rules() -> None:
    down, up = (parse_measure(f"AreaOver(measure='{name}',budget=3)") for name in ("NumUnjudged", "nCG"))
    assert (find_direction(down), find_direction(up)) == ("down", "up")
    assert find_direction(gg.RepeatedQueries) == "down"
    assert "strings" in find_null_rule(gg.RepeatedQueries) and "costs" in find_null_rule(up)
    assert "RepeatedQueries" not in ir_measures.measures.registry
    assert not {"area_over", "repeated_queries"} & HOST_NAMES.keys()
    qrels = [ir_measures.Qrel(q, d, label) for q, of in QRELS.items() for d, label in of.items()]
    found = ir_measures.calc_aggregate([gg.AreaOver(budget=4)], qrels, RUN.to_pandas())
    assert [*found.values()] == pytest.approx([math.fsum([2.6 / 4, 1]) / 5])
