"""Causes add up to the differences of a brute-force oracle, and explain says what happened in each search."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.analysis.explaining.iterations_table import normalise_queries
from goodgain.counting.run_in_blocks import RunFile
from goodgain.formats.results import read_results
from tests.support import oracle
from tests.support.counts import how_many
from tests.support.oracle import QrelRow, RunRow
from tests.support.random_runs import Shape, make_case
from tests.support.tables import ROOT, SESSIONS, no_notices, qrels_frame, run_frame

EXAMPLE = ROOT / "qrels_examples" / "lost_documents"
SUMS = ("CG", "CG@2", "NumGood", "NumGood@3", "DCGG", "DCGG@2", "nCG", "nCG@2", "nDCGG@3")
#: These sums are not rounded: an amount is a label or a number of documents.
EXACT = ("CG", "NumGood")
RATES = {"RG": "CG", "SRE": "NumGood", "RG@2": "CG@2", "SRE@3": "NumGood@3", "DRG": "DCGG"}


def explain_rows(
    base: list[RunRow], new: list[RunRow], qrels: list[QrelRow], *, labels: str | None, rates: bool = False
) -> gg.Explanation:
    judged = gg.read_qrels(qrels_frame(qrels), labels=labels)
    measures = [*SUMS, *((*RATES, "SRR", "SRR@2") if rates else ())]
    return gg.explain(judged, run_frame(base), run_frame(new), measures)


def expected_documents(
    measure: str, base: list[RunRow], new: list[RunRow], qrels: list[QrelRow], *, labels: str | None
) -> dict[tuple[str, str], tuple[Fraction, str | None, str]]:
    """(query, good document) -> its amount, its cause and who counts it, from the sentences that define them."""
    name, at, rel, *_ = oracle.parse(measure)
    found = {}
    runs = [oracle.iterations(rows) for rows in (base, new)]

    for query, judged in oracle.labels_of(qrels, labels).items():
        for doc in (doc for doc, of_doc in judged.items() if max(of_doc.values()) >= rel):
            places = [first_place(run.get(query, []), doc) for run in runs]
            given = [
                None if place is None else oracle.label_at(judged, doc, run[query][place - 1].number)
                for place, run in zip(places, runs, strict=True)
            ]
            counted = [
                place is not None and label is not None and label >= rel and (at is None or place <= at)
                for place, label in zip(places, given, strict=True)
            ]
            worth = [
                worth_of(name, place, label, judged, rel) if is_counted else Fraction(0)
                for place, label, is_counted in zip(places, given, counted, strict=True)
            ]
            ends = [len(run.get(query, [])) for run in runs]
            by = {(True, True): "both", (True, False): "base", (False, True): "new"}.get(
                (counted[0], counted[1]), "neither"
            )
            found[query, doc] = (worth[1] - worth[0], cause_of(counted, places, given, ends, at, worth), by)

    return found


def first_place(steps: list[oracle.Iteration], doc: str) -> int | None:
    return next((k for k, step in enumerate(steps, 1) if doc in step.docs), None)


def worth_of(name: str, place: int | None, label: Fraction | None, judged: oracle.Labels, rel: Fraction) -> Fraction:
    assert place is not None
    assert label is not None
    if name == "NumGood":
        return Fraction(1)
    largest = (max(of_doc.values()) for of_doc in judged.values())
    whole = sum((one for one in largest if one >= rel), Fraction(0)) if name.startswith("n") else Fraction(1)
    return (oracle.w(place) if "DCGG" in name else 1) * label / whole


def cause_of(
    counted: list[bool],
    places: list[int | None],
    given: list[Fraction | None],
    ends: list[int],
    at: int | None,
    worth: list[Fraction],
) -> str | None:
    if counted[0] and counted[1]:
        if worth[0] == worth[1]:
            return None
        if given[0] != given[1]:
            return "judged_differently"
        return "earlier" if (places[1] or 0) < (places[0] or 0) else "later"

    if not any(counted):
        return None
    one = 0 if counted[0] else 1
    place, first = places[1 - one], places[one]
    assert first is not None
    if place is not None and at is not None and place > at:
        return "later" if one == 0 else "earlier"
    if ends[1 - one] < first:
        return "stopped_before" if ends[1 - one] else "absent"
    return "judged_differently" if place is not None else "not_retrieved"


def sum_by_query(rows: pl.DataFrame) -> dict[str, float]:
    amounts: defaultdict[str, list[float]] = defaultdict(list)
    for query_id, amount in rows.select("query_id", "amount").iter_rows():
        amounts[query_id].append(amount)
    return {query_id: math.fsum(of) for query_id, of in amounts.items()}


def check_sums(
    explained: gg.Explanation, base: list[RunRow], new: list[RunRow], qrels: list[QrelRow], **of: str | None
) -> None:
    labels = of["labels"]
    is_exact = labels is None
    is_whole = all(float(row.relevance).is_integer() for row in qrels)

    for measure in SUMS:
        wanted = expected_documents(measure, base, new, qrels, labels=labels)
        rows = explained.documents.filter(measure=measure)
        names = ("query_id", "doc_id", "amount", "cause", "counted_by")
        found = {(q, d): (a, *said) for q, d, a, *said in rows.select(names).iter_rows()}
        assert {key: said for key, (_, *said) in found.items()} == {key: said for key, (_, *said) in wanted.items()}
        exact = is_exact and measure.startswith(EXACT)
        for key, (amount, *_) in wanted.items():
            assert (
                Fraction(found[key][0]) == amount if exact else found[key][0] == pytest.approx(float(amount), abs=1e-12)
            )
        values = [oracle.per_query(measure, rows, qrels, labels=labels) for rows in (base, new)]
        sums = sum_by_query(explained.causes.filter(measure=measure))
        for row in explained.queries.filter(measure=measure).iter_rows(named=True):
            query = row["query_id"]
            amount = sums.get(query, 0.0)
            assert row["difference"] == (amount if abs(amount) > 1e-9 else 0.0)  # bit for bit; at rounding level 0
            total = sum((amount for (q, _), (amount, *_) in wanted.items() if q == query), Fraction(0))
            assert total == values[1][query] - values[0][query]
            assert row["difference"] == pytest.approx(row["new"] - row["base"], rel=1e-12, abs=1e-12)
            if is_whole and measure.startswith(EXACT):
                assert row["difference"] == row["new"] - row["base"] == float(total)


def check_rates(explained: gg.Explanation, tables: list[oracle.Tables]) -> None:
    for measure, numerator in (*RATES.items(), ("SRR", "NumDup"), ("SRR@2", "NumDup@2")):
        name, at, *_ = oracle.parse(measure)
        for row in explained.queries.filter(measure=measure).iter_rows(named=True):
            for side, table in zip(("base", "new"), tables, strict=True):
                query, pool = row["query_id"], table.pools[row["query_id"]]
                above = oracle.value(table, query, numerator.partition("@")[0], at=at)
                below = oracle.value(table, query, "NumResults", at=at) if name[0] == "S" else Fraction(at or pool.N)
                assert row[f"numerator_{side}"] == pytest.approx(float(above), rel=1e-12)
                assert row[f"denominator_{side}"] == pytest.approx(float(below), rel=1e-12)
                nothing = None if name == "SRR" else 0.0
                wanted = float(above / below) if below else nothing
                assert row[side] == (None if wanted is None else pytest.approx(wanted, rel=1e-12))
            is_known = None not in (row["base"], row["new"])
            assert row["difference"] == (row["new"] - row["base"] if is_known else None)


@pytest.mark.parametrize("by_iteration", [False, True], ids=["one label a document", "labels by iteration"])
def test_causes_add_up_to_the_differences_of_random_pairs(by_iteration: bool) -> None:
    random = Random(2026)
    tried = 0
    while tried < how_many(8, full=25):
        shape = Shape(by_iteration=by_iteration, fractional=random.random() < 0.5, words=not by_iteration)
        case, other = make_case(random, shape), make_case(random, shape)
        labels = case.labels
        both = {row.query_id for row in case.run} & {row.query_id for row in other.run}
        if not both & {row.query_id for row in case.qrels}:
            continue
        with no_notices():
            explained = explain_rows(case.run, other.run, case.qrels, labels=labels, rates=tried % 5 == 0)
        check_sums(explained, case.run, other.run, case.qrels, labels=labels)
        check_rates(explained, [oracle.count(run, case.qrels, labels=labels) for run in (case.run, other.run)])
        tried += 1


def make_outcomes(random: Random, query_ids: list[str], systems: Mapping[str, list[pl.DataFrame]]) -> pl.DataFrame:
    """A table that says which traces broke off: a row for each query of each run, but for some that are complete."""
    rows = [
        (query_id, system, str(k) if len(runs) > 1 else None, float(random.random() < 0.6))
        for system, runs in systems.items()
        for k, _ in enumerate(runs, 1)
        for query_id in query_ids
    ]
    return pl.DataFrame(rows, schema=["query_id", "system", "replicate", "completed"], orient="row")


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2])
def test_the_queries_and_values_are_those_of_compare_whatever_is_missing_or_incomplete(runs: int) -> None:
    random = Random(21)
    tried = 0
    while tried < how_many(9, full=30):
        cases = [make_case(random) for _ in range(2 * runs)]
        judged = sorted({row.query_id for row in cases[0].qrels})
        systems = {
            "old": [run_frame(case.run) for case in cases[:runs]],
            "new": [run_frame(case.run) for case in cases[runs:]],
        }
        outcomes = make_outcomes(random, judged, systems)
        missing, incomplete = ("zero", "absent")[tried % 2], ("keep", "zero", "absent")[tried % 3]
        x = gg.Experiment(qrels_frame(cases[0].qrels), systems, missing=missing, incomplete=incomplete, resamples=9)
        measures = [*SUMS, *RATES, "SRR", "SRR@2"]

        try:
            with no_notices():
                compared = x.compare(measures, baseline="old", outcomes=outcomes)
                explained = x.explain("old", "new", measures, outcomes=outcomes)
        except gg.InputError:  # no query in both systems
            continue

        check_against_comparison(explained, compared)
        tried += 1


def check_against_comparison(explained: gg.Explanation, compared: gg.Comparison) -> None:
    queries = explained.queries
    if explained.pairs is not None:
        queries = queries.join(explained.pairs, on="query_id").with_columns(query_id="of_query")
    means = queries.group_by("query_id", "measure").agg(pl.col("base", "new", "difference").mean())
    rows = means.filter(pl.col("difference").is_not_null())
    names = ["old", "new"]
    wanted = compared.values.pivot(
        "system", on_columns=names, index=["query_id", "measure"], values="value"
    ).drop_nulls()
    joined = rows.join(wanted, on=["query_id", "measure"])
    assert joined.height == rows.height == wanted.height

    for row in joined.iter_rows(named=True):
        assert row["difference"] == pytest.approx(row["new_right"] - row["old"], rel=1e-9, abs=1e-12)
    alone = explained.queries.with_columns(wanted="difference").select("query_id", "measure", "wanted")
    for measure in SUMS:
        sums = sum_by_query(explained.causes.filter(measure=measure))
        for query_id, _, difference in alone.filter(measure=measure).iter_rows():
            assert sums.get(query_id, 0.0) == pytest.approx(difference or 0.0, rel=1e-9, abs=1e-12)


def read_rows(run: Path, qrels: Path) -> tuple[list[RunRow], list[QrelRow]]:
    lines = [line.split() for line in run.read_text(encoding="utf-8").splitlines()]
    judged = [line.split() for line in qrels.read_text(encoding="utf-8").splitlines()]
    rows = [RunRow(q, int(i), doc, float(rank), float(score)) for q, i, doc, rank, score, _ in lines]
    return rows, [QrelRow(q, i, doc, int(label)) for q, i, doc, label in judged]


@pytest.mark.slow
@pytest.mark.skipif(not SESSIONS.exists(), reason="the real sessions are shared beside the checkout, never in it")
def test_causes_add_up_on_real_sessions() -> None:
    rows, qrels = read_rows(SESSIONS / "sessions.run", SESSIONS / "sessions.qrels")
    new = [row._replace(iteration=99 - int(row.iteration)) if row.query_id < "S-5" else row for row in rows]
    new = [row for row in new if row.iteration != 2]
    with no_notices():
        explained = explain_rows(rows, new, qrels, labels=None)
    check_sums(explained, rows, new, qrels, labels=None)
    assert explained.queries.filter(pl.col("difference") != 0).height > 100


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["lost_documents", "two_agents"])
def test_causes_add_up_on_the_examples(folder: str) -> None:
    first, second = sorted((ROOT / "qrels_examples" / folder).glob("*.run"))
    base, qrels = read_rows(second, second.parent / "qrels.txt")
    new, _ = read_rows(first, first.parent / "qrels.txt")
    with no_notices():
        explained = explain_rows(base, new, qrels, labels=None)
    check_sums(explained, base, new, qrels, labels=None)


@pytest.fixture(scope="module")
def example() -> gg.Explanation:
    results = EXAMPLE / "results.jsonl"
    return gg.explain(EXAMPLE / "qrels.txt", EXAMPLE / "old.run", EXAMPLE / "new.run", "CG@3", results=results)


def test_the_example_has_the_causes_that_its_readme_works_out(example: gg.Explanation) -> None:
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (\w\d) \| .*\| `(\w+)` \| ([+-]\d) \|$", text, flags=re.MULTILINE)
    documents = example.documents.filter(pl.col("cause").is_not_null())
    found = documents.select("query_id", "doc_id", "cause", "amount").rows()
    assert sorted(rows) == sorted((q, doc, cause, f"{amount:+.0f}") for q, doc, cause, amount in found)
    assert len(rows) == 6


def test_the_runs_of_the_example_are_those_of_its_results() -> None:
    for name in ("old", "new"):
        run = gg.to_run(read_results(EXAMPLE / "results.jsonl"), system=name)
        read = gg.read_run(EXAMPLE / f"{name}.run").rows
        columns = ["query_id", "iteration", "doc_id"]
        assert run.select(columns).rows() == read.select(columns).rows()


def test_the_first_sentence_names_the_query_the_search_and_the_cause(example: gg.Explanation) -> None:
    first = example.to_text().splitlines()[0]
    assert first.startswith(
        "CG@3: new has a lower mean than old, 4 → 3.2500 (-0.7500); new is worse in 2 of 4 queries and better in 2."
    )
    assert "bridge lost most (-7)" in first
    assert "At iteration 2 old searched “harbour bridge toll revenue” and found 1 good document" in first
    assert "new repeated its search “Harbour bridge: cost?”" in first


@pytest.mark.parametrize(("cause", "said"), [("never_searched", "never searched"), ("absent", "has no row")])
def test_a_system_that_never_searched_is_said_so_and_so_is_one_that_lacks_the_query(cause: str, said: str) -> None:
    run = pl.DataFrame({"query_id": ["q", "r"], "iteration": [1, 1], "doc_id": ["a", "b"]})
    idle = pl.DataFrame({"query_id": ["r"], "iteration": [None], "doc_id": ["-"]}, schema=run.schema)
    other = run.filter(query_id="q") if cause == "absent" else pl.concat([run.filter(query_id="q"), idle])
    explained = gg.explain({"q": {"a": 3}, "r": {"b": 3}}, run, other)
    assert explained.causes.rows() == [("r", "CG", "base", cause, 1, -3.0)]
    assert explained.absent.rows() == ([("new", "r")] if cause == "absent" else [])

    text = explained.to_text()
    assert f"At iteration 1 base found 1 good document; new {said}." in text
    assert f"| new {said} where base found them | 1 | 1 | -3 | -1.5000 |" in text
    assert "stopped" not in text + str(explained.queries["sentence"].to_list())
    assert f"| 1 | b (3) | {said} |" in explained.to_text(query="r")

    with pytest.warns(gg.GoodgainNotice, match="for each of the 2 pairs"):
        of_pairs = gg.explain({"q": {"a": 3}, "r": {"b": 3}}, [run, run], other)
    assert of_pairs.causes.get_column("cause").to_list() == [cause] * 2

    rates = gg.explain({"q": {"a": 3}, "r": {"b": 3}}, run, other, "RG SRE").to_text()
    assert f"Main cause: new {said} in 1 query (-1.5000 in the mean)." in rates
    words = "got no results" if cause == "never_searched" else said
    assert f"Main cause: new {words} in 1 query (-0.5000 in the mean)." in rates


def test_search_strings_are_equal_without_case_blanks_and_punctuation_only() -> None:
    texts = ["River-dam, COST ", "river dam cost", "कि", "का", "flood 2024", "flood 2023", "?!", None]
    found = normalise_queries(pl.Series(texts)).to_list()
    assert found == ["river dam cost", "river dam cost", "कि", "का", "flood 2024", "flood 2023", None, None]


def test_results_show_their_searches_where_the_run_counts_from_another_number() -> None:
    results = read_results(EXAMPLE / "results.jsonl")
    runs = [gg.read_run(EXAMPLE / f"{name}.run").rows for name in ("old", "new")]
    wanted = gg.explain(EXAMPLE / "qrels.txt", *(pl.DataFrame(run) for run in runs), results=results).iterations

    for shift in (-1, 2):
        shifted = [run.with_columns(pl.col("iteration") + shift) for run in runs]
        with no_notices():
            found = gg.explain(EXAMPLE / "qrels.txt", *shifted, results=results).iterations
        assert_frame_equal(found, wanted)

    turned = [run.with_columns(pl.col("iteration") - (pl.col("query_id") == "dam").cast(pl.Int64)) for run in runs]
    with (
        pytest.raises(gg.InputError, match=r"query dam has iterations 0 to . in the run and iterations 1 to"),
        no_notices(),
    ):
        gg.explain(EXAMPLE / "qrels.txt", *turned, results=results)


def test_results_in_another_order_than_the_runs_are_refused() -> None:
    results = read_results(EXAMPLE / "results.jsonl")
    old, new = (results.filter(system=name) for name in ("old", "new"))
    explain = partial(gg.explain, EXAMPLE / "qrels.txt", EXAMPLE / "old.run", EXAMPLE / "new.run", "CG@3")
    with pytest.raises(gg.InputError, match=r"hold no system 'old', only 'new'\. .* for each run, in the order"):
        explain(results=[new, old])
    wanted = explain(results=results).iterations
    assert_frame_equal(explain(results=[old, new]).iterations, wanted)
    renamed = [of.with_columns(system=pl.lit("agent")) for of in (old, new)]  # convert -o names runs, not results
    assert_frame_equal(explain(results=renamed).iterations, wanted)
    for one in ("old", "new"):  # two logs of one system, whose name one of the runs kept
        kept = [of.with_columns(system=pl.lit(one)) for of in (old, new)]
        assert_frame_equal(explain(results=kept).iterations, wanted)


def test_the_queries_that_changed_most_come_largest_change_first(example: gg.Explanation) -> None:
    changed = [r"bridge: CG@3 11", r"dam: CG@3 5", r"library: CG@3 0", r"tram: CG@3 0"]
    places = [example.to_text().index(text) for text in changed]
    assert places == sorted(places)
    one = gg.explain(EXAMPLE / "qrels.txt", EXAMPLE / "old.run", EXAMPLE / "new.run", "CG@3", top=1).to_text()
    assert [text in one for text in changed] == [True, False, True, False]
    none = gg.explain(EXAMPLE / "qrels.txt", EXAMPLE / "old.run", EXAMPLE / "new.run", "CG@3", top=0).to_text()
    assert "differ at" not in none and "in new**" not in none


def test_every_form_shows_the_same_and_no_text_becomes_markup(example: gg.Explanation) -> None:
    content: Mapping[str, list[object]] = json.loads(example.to_text("json"))
    assert {"queries", "causes", "documents", "iterations", "wasted"} <= set(content)
    assert content["causes"] == example.causes.to_dicts()
    assert "Harbour bridge: cost?" in example._repr_html_()
    run = pl.DataFrame({"query_id": "<b>q</b>", "iteration": [1], "doc_id": ["<i>"]})
    explanation = gg.explain({"<b>q</b>": {"<i>": 3}}, run, run.with_columns(doc_id=pl.lit("x")))
    assert "<i>" not in explanation._repr_html_()
    assert "<b>q" not in explanation._repr_html_()
    with pytest.raises(gg.InputError, match="form 'latex' is not one of"):
        example.to_text("latex")


def test_a_query_that_is_not_judged_is_not_shown(example: gg.Explanation) -> None:
    with pytest.raises(gg.InputError, match="query 'bus' is not in the qrels"):
        example.to_text(query="bus")
    with pytest.raises(gg.InputError, match="query 5 is not in the qrels"):
        example.to_text(query=5)  # type: ignore[arg-type]  # as a number in a notebook


def searches(*rows: tuple[str, int, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")


CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("explained.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_an_explanation_says_what_the_case_says(case: dict[str, Any]) -> None:
    runs = (searches(*map(tuple, case[side])) for side in ("base", "new"))
    with pytest.warns(gg.GoodgainNotice, match=case["notice"]) if "notice" in case else no_notices():
        explained = gg.explain(case["qrels"], *runs, case["measures"], **case.get("options", {}))
    text, sentences = explained.to_text(), explained.queries.get_column("sentence").to_list()
    assert [part for part in case.get("text", []) if part not in text] == []
    assert [part for part in case.get("text_lacks", []) if part in text] == []
    assert [part for part in case.get("side_by_side", []) if part not in explained.to_text(query="q")] == []
    assert [part for part in case.get("sentence", []) if part not in sentences[0]] == []

    for sentence, end in zip(sentences, case.get("sentences_end", [""] * len(sentences)), strict=True):
        assert (sentence or "").endswith(end)
    assert text.endswith(case.get("text_ends", ""))

    places = [text.index(part) for part in case.get("in_order", [])]
    assert places == sorted(places)
    for name, columns in case.get("frames", {}).items():
        assert getattr(explained, name).select([*columns]).to_dict(as_series=False) == columns
        assert json.loads(explained.to_text("json"))[name] == getattr(explained, name).to_dicts()


def test_each_measure_counts_by_its_own_threshold() -> None:
    qrels = {"q": {"a": 3, "b": 1, "c": 1}}
    base, new = searches(("q", 1, "a"), ("q", 2, "x")), searches(("q", 1, "b"), ("q", 1, "c"), ("q", 2, "a"))
    explanation = gg.explain(qrels, base, new, "NumGood(rel=3)@1 NumGood(rel=1)@1")

    for rel, measure in ((3.0, "NumGood(rel=3)@1"), (1.0, "NumGood(rel=1)@1")):
        alone = gg.explain(qrels, base, new, measure)
        for name in ("queries", "causes", "documents"):
            assert getattr(explanation, name).filter(measure=measure).equals(getattr(alone, name)), name
        for name in ("iterations", "wasted"):
            assert getattr(explanation, name).filter(rel=rel).equals(getattr(alone, name)), name
        assert next(line for line in alone.to_text().splitlines()) in explanation.to_text()
        said = [
            f"{line.partition(':')[0]} (rel={rel:g}):"
            for line in alone.to_text().splitlines()
            if " came after " in line
        ]
        assert all(one in explanation.to_text() for one in said)

    sentences = explanation.queries.get_column("sentence").to_list()
    assert sentences[0].startswith("At iteration 1 base found 1 good document; new found no good document.")
    assert sentences[1].startswith("At iteration 1 base found 1 good document; new found 2 good documents.")
    assert "new (rel=3): 1 of 2 iterations found no good document" in explanation.to_text()

    side_by_side = explanation.to_text(query="q")
    assert "**Query q (rel=3)**" in side_by_side and "**Query q (rel=1)**" in side_by_side


def test_a_document_found_where_its_label_is_lower_is_not_named_as_good() -> None:
    judged = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "a"], "relevance": [3, 1]})
    with no_notices():
        qrels = gg.read_qrels(judged, labels="iteration")
    explained = gg.explain(qrels, searches(("q", 1, "a")), searches(("q", 1, "-"), ("q", 2, "a")))
    assert explained.causes.select("cause", "amount").rows() == [("judged_differently", -3.0)]
    assert "| 2 | – | ! found no good document; 1 not good |" in explained.to_text(query="q")


def test_a_large_file_read_in_blocks_gives_the_same() -> None:
    folder = ROOT / "qrels_examples/two_agents"
    runs = {name: gg.read_run(folder / f"{name}.run") for name in ("quick", "late")}
    blocks = {name: RunFile(folder / f"{name}.run", "close", 1, is_text=True, block=2_000) for name in runs}
    qrels = gg.read_qrels(folder / "qrels.txt")
    found, expected = (gg.Experiment(qrels, one).explain("quick", "late", "CG@3 SRE") for one in (blocks, runs))
    assert found.to_text("json") == expected.to_text("json")


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_the_texts_of_queries_stand_beside_their_ids(tmp_path: Path) -> None:
    qrels = {"q": {"a": 3, "b": 2}, "r": {"a": 2}}
    old, new = {"q": {"a": 1.0}, "r": {"a": 1.0}}, {"q": {"a": 1.0, "b": 0.5}, "r": {"x": 1.0}}
    asked = {"q": "when was\nthe dam built", "never judged": "what"}
    explanation = gg.explain(qrels, old, new, queries=asked)
    assert explanation.queries.select("query_id", "query_text").rows() == [("q", asked["q"]), ("r", None)]
    text = explanation.to_text()
    assert "q “when was the dam built”: CG 3 → 5 (+2)" in text and "\n- r: CG 2 → 0 (-2)" in text
    assert "query_text" not in gg.explain(qrels, old, new).queries.columns
    pairs = gg.explain(qrels, [old, old], [new], queries=asked)
    assert {row["query_text"] for row in pairs.queries.to_dicts() if row["query_id"].startswith("q ")} == {asked["q"]}


def test_an_iteration_whose_searches_have_no_text_has_none() -> None:
    run = pl.DataFrame({"query_id": "q", "iteration": [1, 2, 2], "doc_id": ["a", "x", "y"], "rank": [1, 1, 2]})
    searches = {"search": [1, 1, 2], "search_query": [None, "dam", "flood"]}
    results = run.with_columns(pl.Series(name, values) for name, values in searches.items())
    explained = gg.explain({"q": {"a": 3}}, run, run, results=[results, results])
    assert explained.iterations.get_column("query_text").unique(maintain_order=True).to_list() == [None, "dam; flood"]
