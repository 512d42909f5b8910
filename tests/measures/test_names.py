"""Names of measures: what they mean, and what is said where they mean nothing."""

from __future__ import annotations

import ast
import copy
import doctest
import json
import pickle
import pydoc
import warnings
from pathlib import Path

import ir_measures
import numpy as np
import pytest

import goodgain as gg
from goodgain.measures import MEASURES
from goodgain.measures.declaration import ARROWS, Declaration, DeclaredMeasure
from goodgain.measures.names import RANKED_MEASURES, SESSION_MEASURES, parse_measure, parse_measures

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
    found = parse_measures(["AvgGain@1-2", "CG@2-3 CG@1-3"])
    assert list(map(str, found)) == ["AvgGain@1", "AvgGain@2", "CG@2", "CG@3", "CG@1"]
    assert parse_measures(["nDCG@10 SRE", gg.SRR @ 2, gg.SRE(rel=2)]) == parse_measures("nDCG@10 SRE SRR@2")
    with pytest.raises(gg.MeasureError, match="one per iteration; name one"):
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
    own = {name: declared.measure for name, declared in RANKED_MEASURES.items() if declared.own}
    own |= {name: declared.measure for name, declared in SESSION_MEASURES.items()}
    assert exported == {*MEASURES, *own}
    assert all(getattr(gg, name) is (MEASURES | own)[name] for name in exported)


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
    for part in (declared.title, declared.definition, declared.source, declared.bounds[0], declared.remark):
        assert part in shown
    assert ("@i is a cutoff in iterations" in shown) == (declared.is_over_iterations and declared.cutoff == "optional")
    assert ("A document is good if" in shown) == (declared.is_over_iterations and declared.uses_rel)
    assert ("(that of the measure unless given)" in shown) == (declared.uses_rel and "measure" in declared.own)
    said = type(measure).__doc__
    assert said is not None
    test = doctest.DocTestParser().get_doctest(said, {}, str(measure), None, 0)
    lines = 5 if declared.name == "RepeatedQueries" else 4  # it has results too
    assert doctest.DocTestRunner().run(test) == doctest.TestResults(failed=0, attempted=lines)


@pytest.mark.parametrize("declared", RANKED_MEASURES.values(), ids=lambda declared: declared.name)
def test_every_measure_over_one_ranking_is_computed_as_it_is_spelled(declared: Declaration) -> None:
    spelled = declared.usage.replace("[", "").replace("]", "").replace("@k", "@10").replace("@recall", "@0.5")
    name, at, cutoff = spelled.partition("@")
    rel = "(rel=1)" if "rel" in declared.parameters else ""
    assert declared.computes(parse_measure(f"{name}{rel}{at}{cutoff}"))
