"""SessionDCG and its relatives, SessionRBP and the cube test, against their definitions and their references."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.families import SESSION_MEASURES
from goodgain.measures.names import parse_measure
from tests.support import session_oracle as oracle
from tests.support.counts import how_many
from tests.support.forms import in_every_form
from tests.support.tables import ROOT, Searched, frame_of, no_notices

CASES = ROOT.parent / "shared" / "spec" / "session_cases"
Labels = dict[str, dict[str, dict[str, float]]]  # query -> document -> subtopic -> label
Value = Callable[[oracle.Rounds, dict[str, dict[str, float]], int], float]  # of rounds, labels, iterations of the ideal


def of_documents(combine: Callable[[list[float]], float], score: Callable[..., float]) -> Value:
    """A value from one label a document."""
    return lambda rounds, labels, number: score(
        rounds, {doc: combine([*label.values()]) for doc, label in labels.items()}, number
    )


def add_up(labels: list[float]) -> float:
    return sum(max(label, 0) for label in labels)


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def normalise(*args: object) -> Callable[..., float]:
    return lambda rounds, labels, number: ratio(
        oracle.session_dcg(rounds, labels, *args), oracle.ideal_dcg(number, labels, *args)
    )


VALUES: dict[str, Value] = {
    "SessionDCG": of_documents(add_up, lambda r, of, _: oracle.session_dcg(r, of, "dd")),
    "SessionDCG(k=2,b=3,bq=2)": of_documents(add_up, lambda r, of, _: oracle.session_dcg(r, of, "dd", 2, 3, 2)),
    "SessionDCG(conv='jiang')": of_documents(max, lambda r, of, _: oracle.session_dcg(r, of, "jiang")),
    "SessionDCG(conv='jiang',k=2,b=1.5,bq=2)": of_documents(
        max, lambda r, of, _: oracle.session_dcg(r, of, "jiang", 2, 1.5, 2)
    ),
    "nSessionDCG": of_documents(add_up, normalise("dd")),
    "nSessionDCG(k=2,bq=2)": of_documents(add_up, normalise("dd", 2, 2, 2)),
    "nSessionDCG(depth=1)": of_documents(
        add_up, lambda r, of, n: ratio(oracle.session_dcg(r, of, "dd"), oracle.ideal_dcg(n, of, "dd", depth=1))
    ),
    "nSessionDCG(conv='jiang')": of_documents(max, normalise("jiang")),
    "nSessionDCG(conv='jiang',k=1,bq=3)": of_documents(max, normalise("jiang", 1, 2, 3)),
    "SessionDCGq": of_documents(max, lambda r, of, _: oracle.session_dcg(r, of, "jiang") / len(r)),
    "SessionDCGq(conv='dd')": of_documents(add_up, lambda r, of, _: oracle.session_dcg(r, of, "dd") / len(r)),
    "SessionRBP": of_documents(max, lambda r, of, _: oracle.session_rbp(r, of)),
    "SessionRBP(b=0.5,p=0.6,max_rel=8)": of_documents(max, lambda r, of, _: oracle.session_rbp(r, of, 0.5, 0.6, 8)),
    "SessionRBP(b=1)": of_documents(max, lambda r, of, _: oracle.session_rbp(r, of, 1)),
    "CT": lambda r, of, n: oracle.cube_test(r, of, n).ct,
    "ACT": lambda r, of, n: oracle.cube_test(r, of, n).act,
    "nCT": lambda r, of, n: oracle.cube_test(r, of, n).ct / oracle.cube_test(r, of, n).bound,
    "CT(gamma=1,height=2)": lambda r, of, n: oracle.cube_test(r, of, n, 1, 2).ct,
    "ACT(gamma=0)": lambda r, of, n: oracle.cube_test(r, of, n, 0).act,
    "nCT(gamma=0.9,height=1.5)": lambda r, of, n: (
        oracle.cube_test(r, of, n, 0.9, 1.5).ct / oracle.cube_test(r, of, n, 0.9, 1.5).bound
    ),
}


def random_searches(random: Random) -> Searched:
    """Documents repeat within an iteration and across iterations, and some iterations return nothing."""
    return {
        query: [random.choices("abcdefgh", k=random.choice((0, 1, 3, 7, 12))) for _ in range(random.randint(1, 5))]
        for query in "pqr"
    }


def random_labels(random: Random, subtopics: str) -> Labels:
    scale = (-1.0, 0, 0, 1, 2, 3, 4) if random.random() < 0.5 else (0, 0.5, 2.25)
    return {
        query: {
            doc: {s: random.choice(scale) for s in random.sample(subtopics, random.randint(1, len(subtopics)))}
            for doc in random.sample("abcdefxyz", 6)
        }
        for query in "qrst"
    } | {"s": {"a": {subtopics[0]: 0}}}


def make_qrels(labels: Labels, reading: str | None) -> gg.Qrels:
    rows = [(q, s, doc, float(x)) for q, docs in labels.items() for doc, of in docs.items() for s, x in of.items()]
    frame = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "relevance"], orient="row")
    return gg.read_qrels(frame, labels=reading)


@pytest.mark.parametrize("subtopics", ["0", "123"])
@no_notices()
def test_values_are_those_of_the_definitions(subtopics: str) -> None:
    random = Random(7)
    for _ in range(how_many(4, full=12)):
        names = [name + random.choice(("", "@1", "@3", "@9")) for name in VALUES]
        searched, labels = random_searches(random), random_labels(random, subtopics)
        qrels = make_qrels(labels, "subtopic" if len(subtopics) > 1 else None)
        found = gg.evaluate(qrels, frame_of(searched), names).per_query
        for query, name, value in found.iter_rows():
            measure, _, at = name.partition("@")
            rounds = searched.get(query, [])[: int(at or 99)]
            expected = VALUES[measure](rounds, labels[query], int(at or len(rounds))) if rounds else 0
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-14), (query, name, rounds, labels[query])


@pytest.mark.skipif(not CASES.is_dir(), reason="the reference values of TREC Dynamic Domain's scorer are not here")
@no_notices()
def test_values_are_those_of_the_scorers_of_trec_dynamic_domain_and_of_jiang_and_allan() -> None:
    reference = json.loads((CASES / "small.expected.json").read_text())
    jiang = {"sDCG": "SessionDCG(conv='jiang')", "nsDCG": "nSessionDCG(conv='jiang',k=9)", "sDCG/q": "SessionDCGq"}
    for case, of_queries in reference.items():
        at = f"@{case[2:]}" if case.startswith("K=") else ""
        names = {"sDCG": "SessionDCG", "nsDCG": "nSessionDCG", "CT": "CT", "ACT": "ACT", "nCT": "nCT"} if at else jiang
        asked = {given: str(parse_measure(name + at)) for given, name in names.items()}
        scores = gg.evaluate(CASES / "small.qrels", CASES / "small.run", [*asked.values()])
        found = {(query, name): value for query, name, value in scores.per_query.iter_rows()}
        for query, values in of_queries.items():
            assert {name: found[query, asked[name]] for name in values} == pytest.approx(values, abs=6e-8)


@no_notices()
def test_session_dcg_with_one_result_a_search_is_a_multiple_of_dcgg() -> None:
    random = Random(1)
    searched = {q: [[doc] for doc in random.sample("abcdefgh", 5)] for q in "pq"}
    qrels = {q: {doc: random.choice((0, 2)) for doc in "abcdef"} for q in "pq"}
    scores = gg.evaluate(qrels, frame_of(searched), "SessionDCG(conv='jiang',bq=2)@4 DCGG@4").per_query
    for _, of_query in scores.group_by("query_id"):
        session, dcgg = of_query.sort("measure", descending=True).get_column("value")
        assert session == pytest.approx(1.5 * dcgg) and dcgg > 0


@no_notices()
def test_the_weights_of_session_rbp_sum_to_1_and_b_1_is_rbp_of_the_first_iteration() -> None:
    documents = [f"d{k}" for k in range(150)]
    run = frame_of({"q": [documents] * 60})
    label = math.log2(2**4)  # j = 15/16
    qrels = {"q": dict.fromkeys(documents, label)}
    names = "SessionRBP(b=0.7,p=0.8) SessionRBP(b=1,p=0.8) RBP(rel=4,p=0.8)@150"
    scores = gg.evaluate(qrels, run, "SessionRBP(b=0.7,p=0.8)").mean()
    assert scores["SessionRBP(b=0.7,p=0.8)"] == pytest.approx(15 / 16, rel=1e-5), names
    mixed = {"q": {doc: 4 * (k % 3 == 0) for k, doc in enumerate(documents)}}
    scores = gg.evaluate(mixed, run, "SessionRBP(b=1,p=0.8)").mean()
    first = gg.evaluate(mixed, frame_of({"q": [documents]}), "RBP(rel=4,p=0.8)").mean()
    assert [*scores.values()] == pytest.approx([15 / 16 * value for value in first.values()], rel=1e-9)


@no_notices()
def test_session_rbp_is_the_expected_gain_of_its_user() -> None:
    """After each result the user stops with probability 1 - p, else reads on with probability b, else sends the next query."""
    b, p = 0.7, 0.8
    random = Random(5)
    searched = [[random.choice("abcdefgh") for _ in range(40)] for _ in range(6)]
    labels = {document: random.choice((0, 1, 2, 4)) for document in "abcdefgh"}

    expected = 0.0
    arrives = 1.0  # the probability that the user reads the first result of the search
    for results in searched:
        reads, arrives_next = arrives, 0.0
        for document in results:
            expected += reads * (2 ** labels[document] - 1) / 2**4
            arrives_next += reads * p * (1 - b)
            reads *= p * b
        arrives = arrives_next + reads * p * (1 - b) / (1 - p * b)  # beyond the results that the search has
    scores = gg.evaluate({"q": labels}, frame_of({"q": searched}), f"SessionRBP(b={b},p={p})")
    assert scores.mean()[f"SessionRBP(b={b},p={p})"] == pytest.approx((1 - p) * expected, rel=1e-12)


@no_notices()
def test_the_doors_agree(tmp_path: Path) -> None:
    random = Random(11)
    searched, labels = random_searches(random), random_labels(random, "123")
    qrels, run, names = make_qrels(labels, "subtopic"), frame_of(searched), [f"{name}@3" for name in VALUES]
    expected = gg.evaluate(qrels, run, names).mean()
    for same in in_every_form(run, tmp_path, block=40):
        assert gg.evaluate(qrels, same, names).mean() == pytest.approx(expected)
    in_host = ir_measures.calc_aggregate([parse_measure(name) for name in expected], qrels, gg.read_run(run))
    assert {str(measure): value for measure, value in in_host.items()} == pytest.approx(expected)
    compared = gg.compare(qrels, {"a": run, "b": run}, "CT@3").to_polars()
    assert compared.select("mean", "mean_against").row(0) == pytest.approx([expected["CT@3"]] * 2)


def test_every_session_measure_is_exported_and_documented() -> None:
    names_of_pages = ("measures.md", "session_measures.md", "reading_effort.md", "spend.md", "costs_tested.md")
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in names_of_pages)
    for name in SESSION_MEASURES:
        assert name in gg.__all__ and f"`{name}" in pages
