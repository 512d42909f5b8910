"""Names of measures and their parameters: what they mean, and what is said where they mean nothing."""

from __future__ import annotations

import ast
import copy
import doctest
import json
import math
import pickle
import pydoc
import subprocess
import sys
import warnings
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import numpy as np
import pytest

import goodgain as gg
from goodgain.measures import MEASURES
from goodgain.measures.declaration import ARROWS, Declaration, DeclaredMeasure
from goodgain.measures.families import RANKED_MEASURES, SESSION_MEASURES
from goodgain.measures.names import parse_measure, parse_measures
from tests.support.counts import some_of

#: Names that are refused -> a part of the error, or several with | between them; names as they are `spelled` -> measures.
REFUSED: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "refused.json").read_text(encoding="utf-8"))
WRONG = REFUSED["names"] | REFUSED["parameters of providers"] | {"(" * 10_000: "is not the name of a measure"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_name_is_explained(name: str) -> None:
    with pytest.raises(gg.MeasureError) as error:
        parse_measures(name)
    assert any(part in str(error.value) for part in WRONG[name].split("|"))


@pytest.mark.each
@pytest.mark.parametrize("case", REFUSED["spelled"])
def test_names_are_read_in_any_spelling(case: str) -> None:
    assert [str(measure) for measure in parse_measures(case)] == REFUSED["spelled"][case].split(" ")


def test_names_and_measures_may_stand_in_lists() -> None:
    measures = parse_measures(["AvgGain@1-2", "CG@2-3 CG@1-3"])
    assert list(map(str, measures)) == ["AvgGain@1", "AvgGain@2", "CG@2", "CG@3", "CG@1"]
    assert parse_measures(["nDCG@10 SRE", gg.SRR @ 2, gg.SRE(rel=2)]) == parse_measures("nDCG@10 SRE SRR@2")
    with pytest.raises(gg.MeasureError, match="one for each cutoff; name one"):
        parse_measure("CG@1-3")


def test_a_name_that_could_be_two_measures_is_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ir_measures.define(lambda qrels, run: [], name="Srr")
    monkeypatch.setitem(ir_measures.measures.registry, "Srr", other)
    assert parse_measures("SRR Srr") == [gg.SRR, other]
    with pytest.raises(gg.MeasureError, match=r"srr is ambiguous; write (Srr or SRR|SRR or Srr)"):
        parse_measure("srr@3")


def test_a_whole_number_is_taken_where_a_parameter_wants_a_fraction() -> None:
    assert parse_measures("IPrec@0 SetF(beta=2)") == parse_measures("IPrec@0.0 SetF(beta=2.0)")
    assert parse_measures([ir_measures.IPrec @ 1, ir_measures.SetF(beta=2)]) == parse_measures("IPrec@1 SetF(beta=2)")
    scores = gg.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, [ir_measures.SetF(beta=2)], provider="pytrec_eval")
    assert scores[ir_measures.SetF(beta=2)] == scores["SetF(beta=2)"] == 1


def test_all_bad_names_of_a_call_are_told_at_once() -> None:
    with pytest.raises(gg.MeasureError) as error:
        parse_measures(["nDCG@10 xyzzy", "DCG@3, SRE@0", ir_measures.nDCG(foo=1)])
    said = str(error.value)
    assert said.startswith("4 measures are wrong: (1) xyzzy is not a measure")
    assert all(
        part in said for part in ("(2) DCG is ambiguous", "(3) SRE: cutoff=0", "(4) nDCG has no parameter 'foo'")
    )


def test_ideal_makes_ndcg_ours_and_without_it_ndcg_stays_that_of_ir_measures() -> None:
    ours = parse_measure("nDCG(ideal='ranking')@10")
    assert ours == gg.nDCG(ideal="ranking") @ 10 == parse_measures(ir_measures.nDCG(ideal="ranking") @ 10)[0]
    assert type(ours) is type(gg.nDCG)
    for measure in (gg.nDCG @ 10, gg.nDCG(ideal="judged") @ 10, parse_measure("nDCG(ideal='judged')@10")):
        assert measure == ir_measures.nDCG @ 10
        assert type(measure) is type(ir_measures.nDCG)
    assert "ideal" not in ir_measures.nDCG.SUPPORTED_PARAMS


@pytest.mark.parametrize("measure", [gg.nDCG(ideal="ranking") @ 10, gg.F(beta=2) @ 5, gg.RBPResidual(p=0.5)], ids=str)
def test_measures_that_no_host_has_can_be_copied_pickled_and_parsed(measure: ir_measures.Measure) -> None:
    for made in (copy.deepcopy(measure), pickle.loads(pickle.dumps(measure)), parse_measure(str(measure))):
        assert made == measure
        assert type(made) is type(measure)


def test_one_measure_has_one_name() -> None:
    assert str(gg.SRE(rel=2.0) @ 3) == str(gg.SRE @ np.int64(3)) == "SRE@3"
    assert str(gg.SRE(rel=np.float64(3.0))) == "SRE(rel=3)"
    assert gg.SRE(rel=1.8).rel == 1.8


def test_a_name_somebody_else_took_in_ir_measures_is_theirs_or_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ir_measures.define(lambda qrels, run: [], name="DCG")
    monkeypatch.setitem(ir_measures.measures.registry, "DCG", other)
    assert parse_measure("DCG@3") == other @ 3
    for name in ("F1", "Gain"):
        monkeypatch.setitem(ir_measures.measures.registry, name, other)
        assert parse_measures(f"{name}@5 {name.lower()}@6") == [other @ 5, other @ 6]
    monkeypatch.setitem(ir_measures.measures.registry, "SRE", other)
    assert parse_measure("SRE@3") == gg.SRE @ 3


def test_the_parser_uses_nothing_that_python_3_14_took_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Num", "Str", "NameConstant"):
        monkeypatch.delattr(ast, name, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_measure("SRE(rel=3)@5") == gg.SRE(rel=3) @ 5
        assert parse_measure("nDCG(dcg='exp-log2')@10") == ir_measures.nDCG(dcg="exp-log2") @ 10


def test_every_declared_measure_is_exported_and_nothing_else_is() -> None:
    exported = {name for name in gg.__all__ if isinstance(getattr(gg, name), ir_measures.Measure)}
    measures = {name: declared.measure for name, declared in RANKED_MEASURES.items() if declared.own}
    measures |= {name: declared.measure for name, declared in SESSION_MEASURES.items()}
    assert exported == {*MEASURES, *measures}
    assert all(getattr(gg, name) is (MEASURES | measures)[name] for name in exported)


@pytest.mark.parametrize("declared", RANKED_MEASURES.values(), ids=lambda declared: declared.name)
def test_a_declaration_over_one_ranking_says_everything_a_user_asks(declared: Declaration) -> None:
    assert declared.title and declared.definition and declared.source and declared.bounds[0]
    assert ARROWS[declared.better] in "↑↓–"
    if declared.own:
        said = type(declared.measure).__doc__ or ""
        assert all(part in said for part in (declared.title, declared.definition, declared.source))
        assert all(info.desc for info in declared.own.values())
    directions = {"Fallout": "down", "RankIDCG": None, "RankDCG": "up", "ElevenPointAP": "up", "F": "up"}
    assert declared.better == directions.get(declared.name, declared.better)


def test_a_declaration_says_everything_a_user_asks() -> None:
    for name, measure in MEASURES.items():
        declared = measure.declaration
        assert name == declared.name == measure.NAME == str(measure)
        assert declared.title and declared.definition and declared.source
        assert ARROWS[declared.better] in "↑↓"
        assert declared.title == measure.PRETTY_NAME
        assert declared.definition in (type(measure).__doc__ or "")

    assert {name for name, measure in MEASURES.items() if measure.declaration.better == "down"} >= {
        "SRR",
        "IterationsForAllGoodResults",
    }
    assert MEASURES["IterationsForAllGoodResults"].declaration.host_name == "iterations_for_all_good_results"
    assert MEASURES["nDCGG"].declaration.host_name == "n_dcgg"
    assert MEASURES["AvgGain"].declaration.host_name == "avg_gain"


OWN_CLASSES = [
    *MEASURES.values(),
    *(d.measure for d in SESSION_MEASURES.values()),
    *(d.measure for d in RANKED_MEASURES.values() if d.own),
]


@pytest.mark.parametrize("measure", OWN_CLASSES, ids=str)
def test_help_says_formula_terms_bounds_source_and_has_an_example_that_runs(measure: DeclaredMeasure) -> None:
    declared, shown = measure.declaration, pydoc.render_doc(measure, renderer=pydoc.plaintext)
    assert declared.example is not None and declared.example[0].startswith(declared.name)
    least = "any number" if declared.bounds[0] == "-inf" else declared.bounds[0]
    for part in (declared.title, declared.definition, declared.source, least, declared.remark):
        assert part in shown
    assert ("@i is a cutoff in iterations" in shown) == (declared.is_over_iterations and declared.cutoff == "optional")
    assert ("A document is good if" in shown) == (declared.is_over_iterations and declared.uses_rel)
    assert ("(that of the measure unless given)" in shown) == (declared.uses_rel and "measure" in declared.own)

    said = type(measure).__doc__
    assert said is not None
    test = doctest.DocTestParser().get_doctest(said, {}, str(measure), None, 0)
    lines = 5 if declared.table({"over": "searches"}) else 4
    assert doctest.DocTestRunner().run(test) == doctest.TestResults(failed=0, attempted=lines)


@pytest.mark.parametrize("declared", RANKED_MEASURES.values(), ids=lambda declared: declared.name)
def test_every_measure_over_one_ranking_is_computed_as_it_is_spelled(declared: Declaration) -> None:
    spelled = declared.usage.replace("[", "").replace("]", "").replace("@k", "@10").replace("@recall", "@0.5")
    name, at, cutoff = spelled.partition("@")
    rel = "(rel=1)" if "rel" in declared.parameters else ""
    assert declared.computes(parse_measure(f"{name}{rel}{at}{cutoff}"))


THEIRS = {
    name: measure
    for name, measure in ir_measures.measures.registry.items()
    if type(measure).__module__.startswith("ir_measures.")
}

#: What the ranking table computes, and no host takes -> a part of the error of the host.
TAKEN_WITHOUT_A_HOST = REFUSED["only where a provider is asked"]


@pytest.mark.parametrize("name", TAKEN_WITHOUT_A_HOST)
def test_a_parameter_that_only_hosts_cannot_take_is_an_error_where_a_host_is_asked(name: str) -> None:
    qrels, run = {"q": {"a": 2, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    assert 0 <= gg.evaluate(qrels, run, name).means.popitem()[1] <= 1
    with pytest.raises(gg.MeasureError) as error:
        gg.evaluate(qrels, run, name, provider="pytrec_eval")
    assert TAKEN_WITHOUT_A_HOST[name] in str(error.value)


@pytest.mark.parametrize(
    "measure",
    [
        ir_measures.RBP(rel=1, p=5.0),
        ir_measures.INST(max_rel=1, T=0.0),
        ir_measures.RBP(rel=1, p=math.nan),
        ir_measures.nDCG(judged_only=5) @ 10,
        ir_measures.nDCG(foo=1),
        ir_measures.P,
    ],
    ids=lambda measure: measure.NAME,
)
def test_measure_objects_are_checked_as_names_are(measure: ir_measures.Measure) -> None:
    with pytest.raises(gg.MeasureError, match=r"is not allowed|needs the parameter|has no parameter"):
        gg.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, [measure])


def test_without_asserts_the_same_is_refused() -> None:
    of_providers = REFUSED["parameters of providers"]
    code = (
        "import sys; from goodgain.errors import MeasureError; from goodgain.measures.names import parse_measures\n"
        "for name in sys.argv[1:]:\n"
        "    try: print('taken:', *parse_measures(name))\n"
        "    except MeasureError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code, *of_providers], capture_output=True, text=True, check=True)
    for line, of_provider in zip(done.stdout.splitlines(), of_providers.values(), strict=True):
        assert of_provider in line


def made_at_random() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    random = Random(3)
    qrels = {f"{q}": {f"d{k}": random.choice((0, 1, 2, 3)) for k in range(8)} for q in range(4)}
    run = {query: {f"d{k}": float(9 - k) for k in range(2, 9)} for query in qrels}
    qrels["all"] = {f"d{k}": 3 for k in range(2, 9)}
    run["all"] = dict(run["0"])
    return qrels, run


#: The ends of what is taken.
ENDS: dict[str, list[Any]] = {
    "p": [0.0, 0.5, 0.999],
    "alpha": [0.0, 1.0],
    "beta": [0.0, 0.999],
    "T": [0.5, 1.0, 1e9],
    "recall": [0.0, 0.07, 0.29, 1.0],
    "cutoff": [1, 20],
    "rel": [1, 3],
    "min_rel": [0, 2],
    "gains": [{1: 1, 2: 3, 3: 7}, {0: 0}, {1: 0, 2: 3}, {3: 1000}],
}
#: Their provider takes numbers alone for ids of queries, or (Accuracy) fails where nothing can be compared.
ELSEWHERE = {"ERR", "Accuracy"}


@pytest.mark.parametrize("name", some_of(sorted(set(THEIRS) - ELSEWHERE), every=4))
def test_what_is_taken_gives_a_value_that_the_measure_can_have(name: str) -> None:
    measure = THEIRS[name]
    needed = {"max_rel": 3, "cutoff": 5, "recall": 0.5}
    base = measure(**{key: value for key, value in needed.items() if key in measure.SUPPORTED_PARAMS})
    if name == "RBP":
        base = ir_measures.RBP(rel=1)  # graded RBP has no provider, and @k neither
    taken = [base] + [
        base(**{key: value})
        for key in measure.SUPPORTED_PARAMS
        for value in ENDS.get(key, [])
        if not (name == "RBP" and key == "cutoff") and not (measure.NAME == "NumRel" and value == 3)
    ]

    for one in taken:
        scores = gg.evaluate(*made_at_random(), [one])
        values = scores.per_query.get_column("value")
        assert len(values) and values.is_finite().all(), one
        if not measure.NAME.startswith("Num"):
            assert values.is_between(0, 1 + 1e-9).all(), one


def test_measures_that_others_define_are_held_to_what_they_declare() -> None:
    class Odd(ir_measures.Measure):
        __name__ = NAME = "Odd"
        SUPPORTED_PARAMS = {  # noqa: RUF012  # declared in its base class
            "p": ir_measures.measures.ParamInfo(dtype=int),
            "T": ir_measures.measures.ParamInfo(),
        }

    assert parse_measures(Odd(p=7, T=-3)) == [Odd(p=7, T=-3)]
    with pytest.raises(gg.MeasureError, match=r"Odd: p=0\.5 is not allowed; p is a whole number"):
        parse_measures(Odd(p=0.5))
    own = ir_measures.define_byquery(lambda qrels, run: 1.0, name="Own")
    with pytest.raises(gg.MeasureError, match="Own: cutoff=-1 is not allowed"):
        parse_measures(own @ -1)
