"""EU, nEU, TBG and U against their definitions, against the scorer of TREC Dynamic Domain and cwl_eval, and in every door."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest
from cwl.ruler.measures.cwl_tbg import TBGCWLMetric
from cwl.ruler.measures.cwl_umeasure import UMeasureCWLMetric

import goodgain as gg
from tests.support import session_oracle as oracle
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import in_every_form
from tests.support.tables import frame_of

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
#: Random worlds, and what the track's scorer (trec-dd-jig, expected_utility.py) prints for them. `searches` counts from 0.
SCORED = [
    json.loads(line.rstrip(","))
    for line in Path(__file__).with_name("trec_dd_utility.json").read_text().split("\n")[1:-2]
]
Nuggets = dict[str, tuple[float, list[str]]]


def make_qrels(of_queries: dict[str, Nuggets]) -> gg.Qrels:
    rows = [
        (query, nugget, doc, float(weight))
        for query, nuggets in of_queries.items()
        for nugget, (weight, docs) in nuggets.items()
        for doc in docs
    ]
    columns = ["query_id", "iteration", "doc_id", "relevance"]
    return gg.read_qrels(pl.DataFrame(rows, schema=columns, orient="row"), labels="subtopic")


def draw_rounds(random: Random) -> list[list[str]]:
    return [random.choices("abcdefgh", k=random.choice((0, 1, 3, 5))) for _ in range(random.randint(1, 4))]


def draw_lengths(random: Random) -> dict[str, float]:
    return {doc: float(random.randint(0, 3000)) for doc in "abcdefghijkl"}


def values_of(scores: gg.Scores) -> dict[tuple[str, str], float]:
    return {(query, measure): value for query, measure, value in scores.per_query.iter_rows()}


@pytest.mark.parametrize("case", SCORED)
def test_utility_is_that_of_the_scorer_of_trec_dd(case: dict[str, Any]) -> None:
    rows = [("q", int(i), doc, -rank) for i, docs in case["searches"].items() for rank, doc in enumerate(docs)]
    frame = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "score"], orient="row")
    run, qrels = gg.read_run(frame, gaps="empty", first=0), make_qrels({"q": case["nuggets"]})
    for cutoff, wanted in case["values"].items():
        names = [f"{name}(conv='dd')@{cutoff}" for name in ("EU", "nEU")]
        means = gg.evaluate(qrels, run, names, lengths=case["lengths"]).mean()
        assert [*means.values()] == pytest.approx(wanted, rel=1e-12), cutoff


def test_without_repeats_utility_of_both_conventions_is_equal() -> None:
    case = SCORED[0]
    documents = [doc for docs in case["searches"].values() for doc in docs]
    assert len(documents) == len(set(documents))
    run, qrels = frame_of({"q": [*case["searches"].values()]}), make_qrels({"q": case["nuggets"]})
    scores = gg.evaluate(qrels, run, "EU EU(conv='dd') nEU nEU(conv='dd')", lengths=case["lengths"])
    assert scores["EU"] == scores["EU(conv='dd')"]
    assert scores["nEU"] < scores["nEU(conv='dd')"]  # its upper bound is too low


def test_random_utilities_are_those_of_the_definition() -> None:
    random = Random(2)
    for _ in range(how_many(6, full=60)):
        lengths = draw_lengths(random)
        rounds = {query: draw_rounds(random) for query in "pq"}
        nuggets: dict[str, Nuggets] = {
            query: {
                f"n{n}": (random.choice((0.5, 1, 2, 4)), random.sample("abcdefghxy", random.randint(1, 6)))
                for n in range(random.randint(1, 4))
            }
            for query in "pqr"
        }
        a, gamma, p = random.choice((0, 0.001, 0.2)), random.choice((0, 0.3, 1)), random.choice((0, 0.4, 1))
        depth, upto = random.randint(1, 6), random.choice((None, 1, 2, 6))
        at = "" if upto is None else f"@{upto}"
        given = f"a={a},gamma={gamma},p={p}"
        names = f"EU({given}){at} nEU({given},depth={depth}){at}"
        found = gg.evaluate(make_qrels(nuggets), frame_of(rounds), names, lengths=lengths).per_query

        for query, name, value in found.iter_rows():
            searches = rounds.get(query)
            if searches is None:
                assert value == 0
                continue
            of = oracle.expected_utility(
                searches[:upto], nuggets[query], lengths, upto or len(searches), a, gamma, p, depth
            )
            wanted = of.eu if name.startswith("EU") else (of.eu - of.lower) / (of.upper - of.lower)
            assert value == pytest.approx(wanted, abs=1e-9), (name, query)


def test_normalised_utility_of_full_iterations_is_from_0_to_1() -> None:
    """The scorer's is not: a nugget of two documents is read twice if both are first results."""
    qrels, lengths = make_qrels({"q": {"n": (1, ["a", "b"])}}), dict.fromkeys("abcdefghij", 1.0)
    run = frame_of({"q": [list("acdef"), list("bghij")]})
    scores = gg.evaluate(qrels, run, "nEU@2 nEU(conv='dd')@2", lengths=lengths)
    assert scores["nEU@2"] == pytest.approx(1) and scores["nEU(conv='dd')@2"] > 1.1
    random = Random(5)
    for _ in range(how_many(10, full=100)):
        lengths = draw_lengths(random)
        number = random.randint(1, 2)
        drawn = random.sample(sorted(lengths), 5 * number)
        nuggets: Nuggets = {f"n{n}": (1.0, random.sample("abcdef", random.randint(1, 4))) for n in range(3)}
        run = frame_of({"q": [drawn[5 * k : 5 * k + 5] for k in range(number)]})
        assert -1e-12 <= gg.evaluate(make_qrels({"q": nuggets}), run, "nEU", lengths=lengths)["nEU"] <= 1 + 1e-12


def test_without_subtopics_each_document_is_a_nugget() -> None:
    run, lengths = frame_of({"q": [["a", "b"], ["c", "a"]]}), {"a": 10, "b": 20, "c": 30}
    labels = {"a": 3, "b": 1, "c": 0, "d": 2}
    as_nuggets = make_qrels({"q": {doc: (label, [doc]) for doc, label in labels.items() if label}})
    names = "EU nEU@1 nEU@3"
    assert (
        gg.evaluate({"q": labels}, run, names, lengths=lengths).mean()
        == gg.evaluate(as_nuggets, run, names, lengths=lengths).mean()
    )


def test_random_gains_and_trails_are_those_of_the_definition() -> None:
    random = Random(7)
    for _ in range(how_many(6, full=60)):
        lengths = draw_lengths(random)
        rounds = {query: draw_rounds(random) for query in "pq"}
        labels = {query: {doc: random.choice((-1, 0, 1, 2, 3)) for doc in "abcde"} for query in "pqr"}
        upto = random.choice((None, 1, 2, 6))
        wanted = {
            "TBG": oracle.time_biased_gain,
            "TBG(rel=2,half_life=30,click_other=0)": lambda *of: oracle.time_biased_gain(*of, 2, 30, 0),
            "U": oracle.u_measure,
            "U(L=1500,snippet=10,share=1)": lambda *of: oracle.u_measure(*of, 1500, 10, 1),
            "U(snippet=0,share=1,opened='all')": lambda *of: oracle.u_measure(*of, 132_000, 0, 1, opens_all=True),
        }
        at = "" if upto is None else f"@{upto}"
        scores = values_of(gg.evaluate(labels, frame_of(rounds), [name + at for name in wanted], lengths=lengths))
        by_name = dict(zip(dict.fromkeys(name for _, name in scores), wanted.values(), strict=True))
        for (query, name), value in scores.items():
            of = by_name[name](rounds.get(query, [])[:upto], labels[query], lengths)
            assert value == pytest.approx(of, abs=1e-12), (name, query)


class _Ranking:
    """What a measure of cwl_eval asks of a ranking."""

    topic_id = "q"

    def __init__(self, gains: list[float], costs: list[float]) -> None:
        self.gains, self.costs = np.array(gains), np.array(costs)

    def get_gain_vector(self, _: bool) -> np.ndarray:
        return self.gains

    def get_cost_vector(self, _: bool) -> np.ndarray:
        return self.costs


def test_one_ranking_has_the_values_of_cwl_eval_up_to_the_sum_of_its_weights() -> None:
    """cwl_eval divides weights by their sum, and its U-measure takes the position before a document and drops the last one."""
    labels, lengths = {"a": 1, "b": 0, "c": 1, "d": 1}, {"a": 500, "b": 1200, "c": 80, "d": 300, "x": 900}
    documents = ["b", "a", "x", "d", "c"]
    run = {"q": {doc: -float(rank) for rank, doc in enumerate(documents)}}
    good = [float(labels.get(doc, 0)) for doc in documents]

    seconds = [
        4.4 + (0.64 if is_good else 0.39) * (0.018 * lengths[doc] + 7.8)
        for doc, is_good in zip(documents, good, strict=True)
    ]
    expected = TBGCWLMetric(224)
    expected.measure(_Ranking(good, seconds))
    value = gg.evaluate({"q": labels}, run, "TBG", lengths=lengths)["TBG"]
    assert value == pytest.approx(0.64 * 0.77 * expected.expected_utility / expected.w_vector(expected.ranking)[0])

    characters = [0.0, *(float(lengths[doc]) for doc in documents)]  # the gain of a document at its end
    trail = UMeasureCWLMetric(10_000)
    trail.measure(_Ranking([0.0, *good, 0.0][: len(characters) + 1], [*characters[1:], 0.0, 0.0]))
    value = gg.evaluate({"q": labels}, run, "U(L=10000,snippet=0,share=1,opened='all')", lengths=lengths)[
        "U(L=10000,snippet=0,share=1,opened='all')"
    ]
    assert value == pytest.approx(trail.expected_utility / trail.w_vector(trail.ranking)[0])


QRELS = {f"q{k}": {"a": 2, "b": 1} for k in range(8)}
OLD, NEW = frame_of({query: [["x", "a"]] for query in QRELS}), frame_of({query: [["a"], ["b", "a"]] for query in QRELS})
LENGTHS = {"a": 100, "b": 50, "x": 4000}
ASKED = "EU EU(conv='dd')@1 nEU TBG U@1"


def test_large_files_and_engines_have_the_same_values(tmp_path: Path) -> None:
    wanted = gg.evaluate(QRELS, NEW, ASKED, lengths=LENGTHS)
    for run in in_every_form(NEW, tmp_path):
        assert gg.evaluate(QRELS, run, ASKED, lengths=LENGTHS).per_query.equals(wanted.per_query)


def test_every_door_takes_the_lengths(tmp_path: Path) -> None:
    compared = gg.compare(QRELS, {"old": OLD, "new": [NEW, NEW]}, ASKED, baseline="old", lengths=LENGTHS)
    assert set(compared.pairs.get_column("verdict")) == {"better"} and "lengths" in compared.signature
    x = gg.Experiment(QRELS, {"old": OLD, "new": NEW}, lengths=LENGTHS)
    assert x.evaluate(ASKED)["new", "TBG"] == compared.means.filter(system="new", measure="TBG")["mean"].item()
    assert x.check("TBG>=baseline significant", baseline="old")
    page = gg.report(QRELS, {"old": OLD, "new": NEW}, tmp_path / "page.csv", "nCG U", lengths=LENGTHS)
    assert ",U," in page.read_text()

    gg.write_qrels(QRELS, tmp_path / "qrels.txt")
    for name, run in {"old": OLD, "new": NEW}.items():
        gg.write_run(run, tmp_path / f"{name}.run")
    (tmp_path / "lengths.tsv").write_text("".join(f"{doc}\t{length}\n" for doc, length in LENGTHS.items()))
    files = ["qrels.txt", "old.run", "new.run"]
    done = run_command("evaluate", *files, "-m", "TBG", "--lengths", "lengths.tsv", "-o", "csv", cwd=tmp_path)
    assert f"new,TBG,{x.evaluate('TBG')['new', 'TBG']}" in done.stdout, done.stderr
    done = run_command("compare", *files, "-m", ASKED, "--lengths", "lengths.tsv", "-o", "csv", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.count(",better,true") == 5, done.stderr
    done = run_command("report", *files, "-m", "nCG TBG", "--lengths", "lengths.tsv", "--format", "csv", cwd=tmp_path)
    assert "TBG" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["lengths.csv", "lengths.tsv", "lengths.jsonl", "lengths.parquet"])
def test_lengths_are_read_from_every_kind_of_table(name: str, tmp_path: Path) -> None:
    frame, path = pl.DataFrame({"doc_id": [*LENGTHS], "length": [*LENGTHS.values()]}), tmp_path / name
    if name.endswith("parquet"):
        frame.write_parquet(path)
    elif name.endswith("jsonl"):
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, separator="\t" if name.endswith("tsv") else ",")
    wanted = gg.evaluate(QRELS, NEW, "TBG", lengths=LENGTHS)
    for lengths in (path, str(path), frame, frame.to_pandas()):
        scores = gg.evaluate(QRELS, NEW, "TBG", lengths=lengths)
        assert scores.per_query.equals(wanted.per_query) and scores.signature["lengths"] == wanted.signature["lengths"]


def test_an_address_has_the_length_of_its_other_spelling() -> None:
    qrels = {"q": {"https://a.example/page": 2}}
    run = frame_of({"q": [["https://a.example/page"]]})
    for lengths in (
        {"http://www.a.example/page/": 10_000},
        {"https://a.example/page": 10_000, "http://a.example/page": 1},
    ):
        assert gg.evaluate(qrels, run, "U(snippet=0)", lengths=lengths)["U(snippet=0)"] == 2 * (1 - 2000 / 132_000)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        (None, "TBG needs lengths=: give a table of doc_id and length"),
        (
            {"a": 1},
            "lengths= has no length of 1 retrieved document, such as 'b'. Add a row for each document of the runs",
        ),
        ({}, "has no row"),
        ({"a": -1, "b": 1}, "has the length '-1', which is not a number from 0"),
        ({"a": None, "b": 1}, "has the length None, which is not a number from 0"),
        ({"a": "long", "b": 1}, "has the length 'long', which is not a number from 0"),
        (pl.DataFrame({"doc_id": ["a", "a"], "length": [1, 2]}), "the document 'a' has two lengths. Keep one"),
        (pl.DataFrame({"doc_id": ["a"], "words": [1]}), "needs the columns doc_id and length; it has doc_id"),
        (pl.DataFrame({"doc_id": ["a"], "length": [math.inf]}), "has the length inf, which is not a number from 0"),
        (3, "found a int; give a file, or a data frame"),
    ],
)
def test_lengths_that_lack_or_are_wrong_are_one_sentence(lengths: Any, words: str) -> None:
    with pytest.raises(gg.InputError) as told:
        gg.evaluate(QRELS, NEW, "TBG", lengths=lengths)
    assert words in str(told.value)


def test_u_of_good_documents_needs_only_their_lengths() -> None:
    assert gg.evaluate(QRELS, OLD, "U", lengths={"a": 100})["U"] == pytest.approx(2 * (1 - 420 / 132_000))
    with pytest.raises(gg.InputError, match="no length of 1 retrieved document, such as 'x'"):
        gg.evaluate(QRELS, OLD, "U(opened='all')", lengths={"a": 100})


@pytest.mark.parametrize(
    "name",
    [
        "EU(p=1.1)",
        "EU(gamma=-1)",
        "EU(a=-1)",
        "nEU(depth=0)",
        "TBG(half_life=0)",
        "TBG(click=2)",
        "U(L=0)",
        "U(share=2)",
        "U(opened='some')",
    ],
)
def test_parameters_outside_their_range_are_refused(name: str) -> None:
    with pytest.raises(gg.MeasureError, match="is not allowed"):
        gg.evaluate(QRELS, NEW, name, lengths=LENGTHS)


def test_ir_measures_has_no_lengths_to_give() -> None:
    assert not {"EU", "nEU", "TBG", "U"} & ir_measures.measures.registry.keys()
    with pytest.raises(gg.InputError, match="TBG needs lengths="):
        ir_measures.calc_aggregate([gg.TBG], [ir_measures.Qrel("q", "a", 1)], [ir_measures.ScoredDoc("q", "a", 1.0)])
