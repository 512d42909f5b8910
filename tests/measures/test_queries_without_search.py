"""What a query that was not searched counts as: one rule for every declared measure, in every door (docs/measures.md, Means)."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodgain as gg
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.measures import MEASURES
from goodgain.measures.declaration import DeclaredMeasure, SessionMeasure
from goodgain.measures.families import RANKED_MEASURES, SESSION_MEASURES
from goodgain.measures.names import find_direction, needs_results, parse_measure, parse_measures
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.tables import frame_of

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

#: The measures of this group that a usage cannot name, and forms with other directions.
FORMS = {
    "RBP": ["RBP(rel=1)"],
    "PerIteration": ["PerIteration", "PerIteration(measure='Fallout@3')@2", "PerIteration(measure='RBPResidual')"],
    "AreaOver": [
        "AreaOver(budget=3)",
        "AreaOver(measure='NumDup',budget=3)",
        "AreaOver(over='results',budget=5)",
        "AreaOver(measure='NumDup',over='results',budget=5)",
        "AreaOver(over='seconds',budget=9)",
    ],
    "NuggetScore": [
        "NuggetScore(full=1)",
        "NuggetScore(full=1,strict=True)@2",
    ],  # by default the qrels need a grade of 2
    "ValueAt": [
        "ValueAt(budget=3)",
        "ValueAt(measure='NumDup',budget=3)",
        "ValueAt(measure='NumDup',over='results',budget=5)",
        "ValueAt(over='seconds',budget=9)",
    ],
}
DECLARATIONS = [measure.declaration for measure in MEASURES.values()]
DECLARATIONS += [*RANKED_MEASURES.values(), *SESSION_MEASURES.values()]
NAMES = [name for of in DECLARATIONS for name in FORMS.get(of.name, [of.usage.translate(str.maketrans("", "", "[]"))])]
ALL = [name.replace("@recall", "@0.5").replace("@i", "@2").replace("@k", "@3") for name in NAMES]
#: Lower is better, and the guideline or the count itself says what no search is.
DEFINED = ("SRR", "IterationsForAllGoodResults", "NumIter", "NumResults", "NumDup", "NumUnjudged")
#: The ideal of a query does not depend on the run.
IDEALS = ("RankIDCG",)


def value_without_search(name: str, labels: list[float]) -> float | None:
    """The rule, for a query of which these are the labels."""
    measure = parse_measure(name)
    if measure.NAME == "IterationsForAllGoodResults":
        return 100.0 if max(labels) >= 2 else 0.0
    if measure.NAME in DEFINED:
        return 0.0
    needs_rows_of_searches = isinstance(measure, SessionMeasure) and measure.table in ("results", "costs")
    if needs_rows_of_searches or find_direction(measure) == "down":
        return None
    if str(measure.NAME).startswith("Nugget") and max(labels) < 1:
        return None
    return 0.0


def draw(random: Random) -> tuple[gg.Qrels, dict[str, list[float]], list[str], dict[str, Any]]:
    """Labels of nuggets; a run that searched some queries, says of some that they were never searched, and lacks the rest."""
    rows = [
        (query, f"n{nugget}", doc, float(random.choice((0, 0, 1, 2, 3))))
        for query in "pqrstu"
        for nugget in range(random.randint(1, 2))
        for doc in random.sample("abcdef", random.randint(1, 4))
    ]
    labels = {query: [row[3] for row in rows if row[0] == query] for query in "pqrstu"}
    names = ["query_id", "iteration", "doc_id", "relevance"]
    qrels = gg.read_qrels(pl.DataFrame(rows, schema=names, orient="row"), labels="subtopic")
    searched = random.sample("pqrstu", random.randint(1, 5))
    run = frame_of({query: [random.choices("abcdefx", k=random.randint(0, 3)) for _ in range(2)] for query in searched})
    not_searched = [query for query in "pqrstu" if query not in searched]
    never = [(query, None, "-", 0, 0.0) for query in not_searched if random.randint(0, 1)]
    run = pl.concat([run, pl.DataFrame(never, schema=run.schema, orient="row")])
    every = [(query, i) for query in "pqrstu" for i in (1, 2)]
    amounts = ["seconds", "input_tokens", "cost", "calls"]
    costs = pl.DataFrame(
        [(*of, 2.0, 9.0, 0.1, 1.0) for of in every], schema=["query_id", "iteration", *amounts], orient="row"
    )
    strings = [(*of, 1, 0, "mill") for of in every]
    columns = ["query_id", "iteration", "search", "rank", "search_query"]
    results = pl.DataFrame(strings, schema=columns, orient="row")
    lengths = dict.fromkeys("abcdefx", 9)
    return qrels, labels, not_searched, {"run": run, "costs": costs, "results": results, "lengths": lengths}


@settings(max_examples=how_many(4, full=18), deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_declared_measure_follows_the_rule(random: Random) -> None:
    qrels, labels, not_searched, given = draw(random)
    measures = [name for name in ALL if parse_measure(name).NAME not in IDEALS]
    scores = gg.evaluate(qrels, measures=measures, **given)
    for name in map(str, parse_measures(measures)):
        values = {query: value for query, measure, value in scores.per_query.iter_rows() if measure == name}
        for query in not_searched:
            assert values[query] == value_without_search(name, labels[query]), (name, query)
        known = [value for value in values.values() if value is not None]
        assert scores.num_queries[name] == len(known)
        if not isinstance(parse_measure(name).aggregator(), ir_measures.SumAgg):
            assert scores[name] == (pytest.approx(math.fsum(known) / len(known)) if known else None), name


@pytest.mark.slow
@settings(max_examples=how_many(2, full=10), deadline=None)
@given(st.randoms(use_true_random=False))
def test_compare_and_ir_measures_leave_out_the_same_queries(random: Random) -> None:
    qrels, _, not_searched, given = draw(random)
    whole = frame_of({query: [["a"], ["b", "a"]] for query in "pqrstu"})
    parsed = [parse_measure(name) for name in ALL]
    without_table = [one for one in parsed if not (isinstance(one, SessionMeasure) and one.table)]
    chosen = [one for one in without_table if isinstance(one, DeclaredMeasure)]
    scores = gg.evaluate(qrels, given["run"], chosen)
    averages = ir_measures.calc_aggregate(chosen, qrels, gg.read_run(given["run"]))
    compared = gg.compare(qrels, {"whole": whole, "part": given["run"]}, chosen, resamples=9)
    of_part = {row["measure"]: row for row in compared.means.filter(system="part").iter_rows(named=True)}

    for measure in chosen:
        name, mean = str(measure), scores[measure]
        assert averages[measure] == pytest.approx(math.nan if mean is None else mean, nan_ok=True), name
        if not needs_results(measure):
            assert of_part[name]["queries"] == scores.num_queries[name], name
            assert of_part[name]["mean"] == (None if mean is None else pytest.approx(mean)), name
        if not_searched and value_without_search(name, [3.0]) is None and not needs_results(measure):
            told = f"{name} leaves out {len(not_searched)} quer"
            assert any(note.startswith(told) and "a system did not search" in note for note in compared.notes), name


EASY_AND_HARD = pl.DataFrame(
    {"query_id": ["easy", "hard", "hard"], "nugget_id": ["1", "1", "2"], "doc_id": ["a", "b", "c"], "grade": [1, 1, 1]}
)


@pytest.mark.parametrize("measure", ["NuggetRecall", "NuggetCoverage"])
def test_an_agent_does_not_gain_by_skipping_the_hard_query(measure: str) -> None:
    """Skipping it gave 1, and answering half of it .75."""
    qrels = gg.read_qrels(EASY_AND_HARD, labels="subtopic")
    skips, tries = frame_of({"easy": [["a"]]}), frame_of({"easy": [["a"]], "hard": [["b"]]})
    assert [gg.evaluate(qrels, run, measure)[measure] for run in (skips, tries)] == [0.5, 0.75]
    assert "without_value" not in gg.evaluate(qrels, skips, measure).signature
    pair = gg.compare(qrels, {"tries": tries, "skips": skips}, measure).pairs.row(0, named=True)
    assert (pair["queries"], pair["losses"], pair["difference"]) == (2, 1, -0.25)


@pytest.mark.parametrize(
    "measure", ["NoProgress@2", "OverSearch", "RBPResidual", "PerIteration(measure='RBPResidual')"]
)
def test_a_system_that_never_searched_has_no_verdict_and_no_line_holds(measure: str) -> None:
    qrels = {f"q{k}": {"a": 3, "b": 2} for k in range(8)}
    systems = {
        "searches": frame_of({query: [["a"], ["x"]] for query in qrels}),
        "skips": frame_of({query: [["a"]] for query in [*qrels][:3]}),
        "never": frame_of({"q0": [[]]}).with_columns(iteration=pl.lit(None, pl.Int64)),
    }
    comparison = gg.compare(qrels, systems, measure, baseline="searches", resamples=99)
    assert comparison.pairs.select("against", "system", "queries", "verdict").rows()[1] == (
        "searches",
        "never",
        0,
        "no results",
    )
    assert f"{measure} leaves out 8 queries where a system did not search (skips 5, never 8)." in str(comparison.notes)
    assert comparison.means.get_column("queries").to_list() == [8, 3, 0]

    groups = pl.DataFrame({"query_id": [*qrels], "group": ["early"] * 3 + ["late"] * 5})
    by_group = gg.compare(qrels, systems, measure, baseline="searches", groups=groups, resamples=99).groups
    assert by_group is not None
    late = by_group.filter(group="late").select("system", "queries", "verdict").rows()
    assert late == [("skips", 0, "no results"), ("never", 0, "no results")]

    skips, never = check_requirements(comparison, [f"{measure}<=1"])
    assert not skips.holds and "5 of 8 queries left out because a system did not search: more than half" in str(skips)
    assert not never.holds and never.value is None


def test_queries_without_good_documents_are_no_queries_without_results() -> None:
    qrels, run = {"p": {"a": 0}, "q": {"a": 0}}, frame_of({"p": [["a"]], "q": [["a"]]})
    comparison = gg.compare(qrels, {"a": run, "b": run}, "NoProgress")
    assert comparison.pairs.item(0, "verdict") is None
    assert "NoProgress leaves out 2 queries where a system has no value (a 2, b 2)." in comparison.notes


def test_missing_input_is_never_0() -> None:
    qrels, run = {"p": {"a": 2}, "q": {"a": 2}}, frame_of({"p": [["a"]], "q": [["a"]]})
    costs = pl.DataFrame({"query_id": ["p"], "iteration": [1], "seconds": [1.0]})
    results = pl.DataFrame(
        {"query_id": ["p", "q"], "iteration": 1, "search": 1, "rank": 0, "search_query": ["x", None]}
    )
    scores = gg.evaluate(qrels, run, "AreaOver(over='seconds',budget=2) RepeatedQueries", costs=costs, results=results)
    assert scores.per_query.get_column("value").to_list() == [0.5, 0.0, None, None]


def test_a_line_of_evaluate_says_what_evaluate_counts(tmp_path: Any) -> None:
    """Two of four queries have no value, which evaluate leaves out, too: no other mean is spoken of."""
    qrels = "q1 0 a 3\nq2 0 a 3\nq3 0 b 2\nq4 0 b 1\n"
    (tmp_path / "n.q").write_text(qrels)
    (tmp_path / "n.run").write_text("q1 1 x 1 1 t\nq1 2 a 1 1 t\nq2 1 a 1 1 t\n")
    (tmp_path / "e.run").write_text("q1 1 a 1 1 t\nq1 2 a 1 1 t\nq2 1 - 1 1 t\nq3 1 b 1 1 t\n")
    lines = ["NoProgress<=0.3", "OverSearch<=0.3", "GradedP@1<=1", "Fallout@5<=1"]
    options = [part for line in lines for part in ("--require", line)]
    done = run_command("evaluate", "n.q", "n.run", "NoProgress OverSearch GradedP@1 Fallout@5", *options, cwd=tmp_path)
    assert done.stderr.count("left out because") == 4 and "as evaluate prints it" not in done.stderr
    assert "2 of 4 queries left out because a system did not search" in done.stderr

    mixed = run_command(
        "evaluate", "n.q", "e.run", "SRR Unjudged@5", "--require", "SRR<=1", "--require", "Unjudged@5<=1", cwd=tmp_path
    )
    assert (
        "2 of 4 queries left out because a system has no results; with 0 for these the mean is 0.1250" in mixed.stderr
    )
    assert "with 0 for 1 of these the mean is 0.0000, as evaluate prints it" in mixed.stderr


def test_the_signature_counts_the_queries_of_the_means() -> None:
    """With missing="absent" it said 4 queries, 2 absent, 1 without good and 2 without value; the means were over 2."""
    qrels = {"q1": {"a": 3}, "q2": {"a": 3}, "q3": {"b": 2}, "q4": {"b": 1}}
    run = frame_of({"q1": [["x"], ["a"]], "q2": [["a"]]})
    of_all = gg.evaluate(qrels, run, "NoProgress nCG")
    keys = ("queries", "without_good", "absent_from_run", "without_value", "left_out")
    assert [of_all.signature.get(key) for key in keys] == [4, [1], 2, ["NoProgress:2"], None]
    for runs in (run, [run, run]):
        scores = gg.evaluate(qrels, runs, "NoProgress nCG", missing="absent")
        assert [scores.signature.get(key) for key in keys] == [2, [0], 0, None, 2]
        assert scores.num_queries == {"NoProgress": 2, "nCG": 2} and "2 queries" in repr(scores)
    compared = gg.compare(qrels, {"a": run, "b": run}, "nCG", missing="absent")
    assert compared.systems.select("queries", "absent_from_run").rows() == [(4, 2)] * 2


def test_a_baseline_file_of_the_old_rule_is_refused_where_it_differs(tmp_path: Any) -> None:
    qrels = {"p": {"a": 2}, "q": {"a": 2}}
    whole, part = frame_of({"p": [["a"]], "q": [["a"]]}), frame_of({"p": [["a"]]})
    for run, measure, is_refused in ((part, "RBPResidual", True), (whole, "RBPResidual", False), (part, "nCG", False)):
        path = tmp_path / "b.jsonl"
        gg.compare(qrels, {"old": run, "new": whole}, measure, resamples=9).write_baseline(path, "old")
        assert gg.compare(qrels, {"new": whole}, measure, baseline_file=path, resamples=9)

        text = path.read_text().replace(', "has_rule_without_search": true', "")
        path.write_text(text)
        try:
            gg.compare(qrels, {"new": whole}, measure, baseline_file=path, resamples=9)
            assert not is_refused
        except gg.InputError as error:
            assert is_refused and "values of RBPResidual for queries without a search have changed" in str(error)
