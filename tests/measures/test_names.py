"""Names of measures: what they mean, and what is said where they mean nothing."""

from __future__ import annotations

import ast
import warnings

import ir_measures
import numpy as np
import pytest

import goodgain as gg
from goodgain.measures import MEASURES
from goodgain.measures.names import parse_measure, parse_measures

WRONG = {
    "DCG@3": "the guideline's DCG@i, with @i in iterations, is DCGG",
    "dcg@3": "is DCGG",
    "SREE@3": "did you mean SRE?",
    "ndcgg": "did you mean nDCGG?",
    "cg@3": "did you mean CG?",
    "mrr@10": "did you mean MRR?",
    "xyzzy": "goodgain measures lists ours",
    "AvgGain": "name it, as in AvgGain@3; RAG is the mean over iterations",
    "SRE@0": "a whole number from 1",
    "SRE@-1": "a whole number from 1",
    "SRE@2.5": "a whole number from 1",
    "SRE@True": "a whole number from 1",
    "NumIter@3": "takes no @i",
    "IterationsForAllGoodResults@3": "takes no @i",
    "SRE(rel=0)": "a number above 0",
    "SRE(rel=-1)": "a number above 0",
    "SRE(rel='2')": "a number above 0",
    "SRE(rel=True)": "a number above 0",
    "SRE(rel=1e999)": "a number above 0",
    "SRE(pool='judged')": "has no parameter 'pool'; it takes rel=",
    "NumDup(rel=2)": "has no parameter 'rel'; it takes none",
    "IterationsForAllGoodResults(pool='all')": "pool is 'judged' or 'retrieved'",
    "SRE(3)": "a value has no parameter name",
    "SRE(rel=3": "is not the name of a measure",
    "SRE rel=3)": "SRE|name of a measure",
    "nDCG@10,SRE@3": "is not the name of a measure",
    "SRE@3@4": "is not the name of a measure",
    "__import__('os').system('true')": "a value has no parameter name",
    "SRE(rel=__import__('os'))": "is not the name of a measure",
    "SRE(**{'rel': 2})": "SRE has no parameter 'None'",
    "3": "is not the name of a measure",
    "nDCG@'a'": "cutoff='a' cannot be taken; cutoff is a whole number from 1",
    "nDCG(foo=1)": "nDCG has no parameter 'foo'; it takes cutoff=, dcg=",
    "Bpref@10": "Bpref has no parameter 'cutoff'; it takes rel=",
    "(" * 10_000: "is not the name of a measure",
    "": "no measure was named",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_name_is_explained(name: str) -> None:
    with pytest.raises(gg.MeasureError) as error:
        parse_measures(name)
    assert any(part in str(error.value) for part in WRONG[name].split("|"))


def test_white_space_separates_names_but_not_inside_brackets() -> None:
    found = parse_measures(" nDCG@10\tSRE( rel = 3 )@5\nIterationsForAllGoodResults(pool = 'retrieved')  nDCG@10 ")
    assert list(map(str, found)) == ["nDCG@10", "SRE(rel=3)@5", "IterationsForAllGoodResults(pool='retrieved')"]
    assert parse_measures(["nDCG@10 SRE", gg.SRR @ 2, gg.SRE(rel=2)]) == parse_measures("nDCG@10 SRE SRR@2")


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
    assert exported == set(MEASURES)
    assert all(getattr(gg, name) is MEASURES[name] for name in exported)


def test_a_declaration_says_everything_a_user_asks() -> None:
    for name, measure in MEASURES.items():
        declared = measure.declaration
        assert name == declared.name == measure.NAME == str(measure)
        assert declared.title and declared.definition and declared.section
        assert declared.arrow in "↑↓"
        assert declared.title == measure.PRETTY_NAME
        assert declared.definition in (type(measure).__doc__ or "")
    assert {name for name, measure in MEASURES.items() if measure.declaration.better == "down"} >= {
        "SRR",
        "IterationsForAllGoodResults",
    }
    assert MEASURES["IterationsForAllGoodResults"].declaration.host_name == "iterations_for_all_good_results"
    assert MEASURES["nDCGG"].declaration.host_name == "n_dcgg"
    assert MEASURES["AvgGain"].declaration.host_name == "avg_gain"
