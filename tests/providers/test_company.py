"""A classic measure has the value in company that it has alone: no provider may mix up two measures of one call."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest
from ir_measures.measures import registry

import goodgain as gg
from goodgain.measures import MEASURES
from goodgain.measures.declaration import RankedMeasure
from goodgain.measures.families import SESSION_MEASURES
from goodgain.measures.names import is_computed_here
from goodgain.measures.parameters import check_parameters
from goodgain.measures.ranking_values import score_ranking
from goodgain.providers import ProvidedValues, ProviderScores
from tests.support.counts import how_many, some_of

DATA: dict[str, Any] = json.loads(Path(__file__).with_name("company.json").read_text(encoding="utf-8"))
#: A value for each parameter that is not its default; a measure is tried with each alone.
OTHER_VALUES: dict[str, Any] = DATA["other values"] | {"gains": {1: 1, 2: 3, 3: 7}}
#: Labels by kind; the run has unjudged documents, a query that is not judged, and none for query 3.
LABELS, RUN = DATA["labels"], DATA["run"]


def variants() -> Iterator[ir_measures.Measure]:
    """Every classic measure by every name, with its required parameters alone and with each other one."""
    for name, base in sorted(registry.items()):
        if name in MEASURES or name in SESSION_MEASURES:
            continue
        values = {key: value for key, value in DATA["required"].items() if _is_required(base, key)}
        yield base(**values)
        for key in base.SUPPORTED_PARAMS:
            yield base(**values | {key: OTHER_VALUES[key]})
        if "cutoff" in base.SUPPORTED_PARAMS and "rel" in base.SUPPORTED_PARAMS:
            yield base(**values | {"cutoff": 2, "rel": 2})
        if base.NAME == "RBP":  # only with rel= has it a provider
            yield from (base(rel=1), base(rel=2, p=0.9))
        if base.NAME == "ERR":
            yield base @ 5

    for parameters in ({}, {"dcg": "exp-log2"}, {"gains": {1: 1, 2: 3, 3: 7}}, {"judged_only": True}, {"cutoff": 3}):
        yield gg.nDCG(ideal="ranking", **parameters)


def _is_required(measure: ir_measures.Measure, parameter: str) -> bool:
    return parameter in measure.SUPPORTED_PARAMS and measure.SUPPORTED_PARAMS[parameter].required


@cache
def read(kind: str) -> tuple[gg.Qrels, gg.Run]:
    """Qrels with two subtopics where labels are whole, which pyndeval wants; and the run."""
    rows = [
        (query, "ab"[k % 2], doc, label)
        for query, labels in LABELS[kind].items()
        for k, (doc, label) in enumerate(labels.items())
    ]
    columns = ["query_id", "iteration", "doc_id", "relevance"]
    return gg.read_qrels(pl.DataFrame(rows, schema=columns, orient="row")), gg.read_run(RUN)


#: In `make test` these kinds of labels, and one measure of three.
SOME = some_of(LABELS, every=3)


@cache
def alone(kind: str) -> dict[ir_measures.Measure, tuple[float, list[tuple[Any, ...]]]]:
    """The measures that can be computed from these labels -> mean, and values by query."""
    found: dict[ir_measures.Measure, tuple[float, list[tuple[Any, ...]]]] = {}
    for measure in some_of(variants(), every=3):
        try:
            scores = gg.evaluate(*read(kind), measure)
        except gg.MeasureError:
            continue
        found[measure] = scores[measure], scores.per_query.rows()
    return found


def differing(kind: str, company: list[ir_measures.Measure]) -> list[str]:
    """The measures whose mean or values by query are others than alone."""
    values = alone(kind)
    scores = gg.evaluate(*read(kind), company)
    by_name = scores.per_query.partition_by("measure", as_dict=True)
    return [str(measure) for measure in company if (scores[measure], by_name[str(measure),].rows()) != values[measure]]


def wrong_pairs(
    kind: str, pairs: Iterable[tuple[ir_measures.Measure, ...]]
) -> dict[tuple[ir_measures.Measure, ...], list[str]]:
    """The pairs of which a measure has another value than alone."""
    return {pair: names for pair in pairs if (names := differing(kind, list(pair)))}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LABELS)
def test_every_measure_is_tried(kind: str) -> None:
    """Fractional labels reach hosts only as the 0/1 of a rel; measures of the ranking table take any label."""
    tried = {measure.NAME for measure in alone(kind)}
    every = {m.NAME for m in variants() if kind != "fractional" or "rel" in m.SUPPORTED_PARAMS or is_computed_here(m)}
    assert tried == every


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME)
def test_all_measures_in_one_call_have_the_values_they_have_alone(kind: str) -> None:
    assert differing(kind, list(alone(kind))) == []
    assert differing(kind, list(alone(kind))[::-1]) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME)
def test_some_ordered_pairs_have_the_values_that_each_has_alone(kind: str) -> None:
    pairs = list(itertools.permutations(alone(kind), 2))
    assert wrong_pairs(kind, Random(12).sample(pairs, how_many(10, full=40))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LABELS)
def test_every_ordered_pair_of_hosts_has_the_values_that_each_has_alone(kind: str) -> None:
    """Asked of the providers themselves, also what the ranking table computes by default."""
    qrels, run = read(kind)

    def ask(measures: Iterable[ir_measures.Measure]) -> dict[ir_measures.Measure, tuple[float, list[tuple[Any, ...]]]]:
        hosts = ProviderScores(list(measures), qrels.rows)
        hosts.add(qrels.rows, run.flatten())
        return by_measure(hosts.finish(qrels.rows.clear()))

    wanted = {}
    for measure in variants():
        if isinstance(measure, RankedMeasure):
            continue  # no provider has it
        with suppress(gg.MeasureError):
            check_parameters(measure)
            wanted |= ask([measure])
    wrong = []
    for company in list_companies(list(wanted), kind):
        found = ask(company)
        wrong += [(company, measure) for measure in company if found[measure] != wanted[measure]]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", LABELS)
def test_every_ordered_pair_over_the_ranking_table_has_the_values_that_each_has_alone(kind: str) -> None:
    qrels, run = read(kind)
    measures = [measure for measure in alone(kind) if is_computed_here(measure)]
    assert len(measures) > 50
    ranking = run.flatten()
    wanted = {measure: score_ranking([measure], ranking, qrels.frame).rows() for measure in measures}
    wrong = []
    for company in list_companies(measures, kind):
        found = score_ranking(company, ranking, qrels.frame)
        wrong += [(company, m) for m in company if found.select("query_id", str(m)).rows() != wanted[m]]
    assert wrong == []


def list_companies(measures: list[ir_measures.Measure], kind: str) -> list[tuple[ir_measures.Measure, ...]]:
    """Calls in which every measure stands before and behind every other: in calls of 24, and beside those of its name alone.

    With whole labels each pair of one name is a call too; other labels have one call for all measures of a name, and its reverse.
    """
    of_name: dict[str, list[ir_measures.Measure]] = {}
    for measure in measures:
        of_name.setdefault(measure.NAME, []).append(measure)
    same = [
        list(itertools.permutations(of, 2)) if kind == "whole" else [(*of,), (*of[::-1],)] for of in of_name.values()
    ]
    mixed = Random(12).sample(measures, len(measures))
    twelves = [mixed[start : start + 12] for start in range(0, len(mixed), 12)]
    calls = [(*first, *second[::-1]) for first, second in itertools.permutations(twelves, 2)]
    calls += itertools.chain.from_iterable(same)
    met = {pair for company in calls for pair in itertools.combinations(company, 2)}
    assert met == set(itertools.permutations(measures, 2))

    return calls


def by_measure(scores: ProvidedValues) -> dict[ir_measures.Measure, tuple[float, list[tuple[Any, ...]]]]:
    """Measure -> mean, and values by query."""
    names = {str(measure): measure for measure in scores.means}
    found: dict[ir_measures.Measure, tuple[float, list[tuple[Any, ...]]]] = {
        measure: (mean, []) for measure, mean in scores.means.items()
    }
    for query_id, name, value in scores.per_query.rows():
        found[names[name]][1].append((query_id, value))
    return found


@pytest.mark.parametrize(
    ("names", "right"),
    [
        ("nDCG(gains={1:1,2:3,3:7})@3 nDCG@3", [0.7272, 0.8081]),
        ("nDCG@3 nDCG(gains={1:1,2:3,3:7})@3", [0.8081, 0.7272]),
    ],
)
def test_gains_of_one_ndcg_do_not_reach_another(names: str, right: list[float]) -> None:
    folder = Path(__file__).parents[2] / "qrels_examples" / "products"
    means = gg.evaluate(folder / "qrels.txt", folder / "ranking.run", names).means
    assert [round(mean, 4) for mean in means.values()] == right


def test_judged_only_of_one_measure_does_not_reach_numret() -> None:
    scores = gg.evaluate(*read("whole"), "P(judged_only=True)@5 NumRet")
    assert scores["NumRet"] == len(RUN["1"]) + len(RUN["2"])


def test_a_second_value_of_a_parameter_is_computed() -> None:
    for names in ("NRBP NRBP(alpha=0.3)", "P_IA@5 StRecall(rel=2)@5", "NRBP(alpha=0.3) alpha_nDCG@5"):
        assert min(gg.evaluate(*read("whole"), names).means.values()) > 0
