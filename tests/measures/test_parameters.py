"""What parameters of ir_measures' measures may be: what makes no sense is refused, what is taken gives a number."""

from __future__ import annotations

import math
import subprocess
import sys
from random import Random
from typing import Any

import ir_measures
import pytest

import goodgain as gg
from goodgain.measures.names import parse_measures
from tests.support.counts import some_of

THEIRS = {
    name: measure
    for name, measure in ir_measures.measures.registry.items()
    if type(measure).__module__.startswith("ir_measures.")
}

REFUSED = {
    "RBP(rel=1,p=5.0)": "RBP: p=5.0 is not allowed; p is a number from 0 to below 1",
    "RBP(rel=1,p=-0.5)": "p=-0.5",
    "RBP(rel=1,p=1.0)": "p=1.0",
    "RBP(rel=1,p=1e400)": "p=inf",
    "RBP(rel=1,p='0.8')": "p='0.8'",
    "RBP(rel=1,p=True)": "p=True",
    "NERR10(max_rel=3,p=1.5)": "p=1.5",
    "Compat(p=2.0)": "p=2.0",
    "Compat(normalize=1)": "normalize=1 is not allowed; normalize is True or False",
    "INST(max_rel=1,T=0.0)": "INST: T=0.0 is not allowed; T is a number from 0.5",
    "INST(max_rel=3,T=0.2)": "T=0.2",
    "INST(max_rel=3,T=-1.0)": "T=-1.0",
    "INST(max_rel=3,T=1e308)": "T=1e+308",
    "INST": "INST needs the parameter max_rel: a whole number from 1, above min_rel",
    "INSQ(max_rel=3,T=-0.5)": "T=-0.5",
    "INSQ(max_rel=3,T=1e308)": "T=1e+308",
    "NERR11(max_rel=3,T=0.0)": "T=0.0",
    "BPM(max_rel=3,T=-1.0)@10": "T=-1.0",
    "BPM(max_rel=3)@1001": "cutoff=1001 is not allowed; cutoff is a whole number from 1 to 1,000",
    "SDCG(max_rel=3)@1500": "cutoff=1500",
    "NERR8(max_rel=3)@5000": "cutoff=5000",
    "SDCG(max_rel=0)@5": "max_rel=0",
    "INST(max_rel=0)": "max_rel=0 is not allowed; max_rel is a whole number from 1",
    "NERR10(max_rel=0)": "max_rel=0",
    "BPM(max_rel=0)@3": "max_rel=0",
    "alpha_nDCG": "alpha_nDCG needs the parameter cutoff, written after @",
    "SDCG(max_rel=3,min_rel=3)@5": "min_rel=3 is not below max_rel=3",
    "SDCG(max_rel=3,min_rel=-2)@5": "min_rel=-2",
    "SDCG(max_rel=3,dcg='log3')@5": "dcg is 'log2'",
    "NRBP(beta=2.0,alpha=5.0)": "alpha=5.0 is not allowed; alpha is a number from 0 to 1",
    "NRBP(beta=2.0)": "beta=2.0",
    "nNRBP(alpha=0.0,beta=1.0)": "beta=1.0",
    "nNRBP(beta=-1.0)": "beta=-1.0",
    "alpha_nDCG(alpha=2.0)@5": "alpha=2.0",
    "alpha_nDCG(alpha=-1.0)@5": "alpha=-1.0",
    "alpha_DCG": "alpha_DCG needs the parameter cutoff, written after @: a whole number from 1 to 20",
    "ERR_IA@21": "cutoff=21",
    "P_IA": "needs the parameter cutoff",
    "StRecall": "needs the parameter cutoff",
    "AP_IA(judged_only=True)": "judged_only is False",
    "SetF(beta=-1.0)": "beta=-1.0",
    "SetF(beta=1e-05)": "beta=1e-05 is not allowed; beta is 0, or a number from 0.0001",
    "SetF(beta=1e16)": "beta=1e+16",
    "IPrec@1.5": "recall=1.5 is not allowed; recall is a number from 0 to 1",
    "IPrec@-0.5": "recall=-0.5",
    "IPrec@0.333": "recall=0.333 is not allowed; recall is a number from 0 to 1 with at most two decimals",
    "IPrec@0.125": "at most two decimals",
    "IPrec": "IPrec needs the parameter recall, written after @",
    "P": "P needs the parameter cutoff, written after @: a whole number from 1",
    "P@0": "cutoff=0",
    "P@2147483648": "cutoff=2147483648",
    "P@3.0": "cutoff=3.0",
    "P@True": "cutoff=True",
    "AP(rel=0)": "rel=0 is not allowed; rel is the smallest relevant label, a number above 0",
    "P(rel=0)@5": "rel=0 is not allowed; rel is the smallest relevant label, a number above 0",
    "Bpref(rel=0.5)": "rel=0.5 is not allowed; rel is a whole number from 1",
    "RBP(rel=0.5)@5": "rel=0.5 is not allowed; rel is a whole number from 1",
    "AP(rel=1.5)": "rel=1.5",
    "nDCG(judged_only=5)@10": "judged_only=5 is not allowed; judged_only is True or False",
    "nDCG(dcg='ln')@10": "dcg is 'log2' or 'exp-log2'",
    "nDCG(gains={1:0.5})@10": "gains is a dict of labels to gains, whole numbers from 0",
    "nDCG(gains={1:-5})@10": "gains={1: -5}",
    "nDCG(gains={1:100000000})@10": "gains={1: 100000000}",
    "nDCG(gains={'a':2})@10": "gains={'a': 2}",
    "nDCG(gains={1:'a'})": "gains={1: 'a'} is not allowed",
    "nDCG(gains={1:True})@10": "gains={1: True}",
    "nDCG(gains=[1,2])@10": "gains=[1, 2]",
    "nDCG(colour=1)@10": "nDCG has no parameter 'colour'; it takes cutoff=, dcg=",
}


#: What the ranking table computes, and no host takes.
TAKEN_WITHOUT_A_HOST = (
    "SetF(beta=1e-05)", "SetF(beta=1e16)", "P@2147483648", "AP(rel=1.5)", "nDCG(gains={1:0.5})@10",
    "nDCG(gains={1:100000000})@10",
)  # fmt: skip


ALWAYS_REFUSED = {name: said for name, said in REFUSED.items() if name not in TAKEN_WITHOUT_A_HOST}


@pytest.mark.parametrize("name", ALWAYS_REFUSED)
def test_a_parameter_that_makes_no_sense_is_an_error_with_what_it_may_be(name: str) -> None:
    with pytest.raises(gg.MeasureError) as error:
        parse_measures(name)
    assert REFUSED[name] in str(error.value)


@pytest.mark.parametrize("name", TAKEN_WITHOUT_A_HOST)
def test_a_parameter_that_only_hosts_cannot_take_is_an_error_where_a_host_is_asked(name: str) -> None:
    qrels, run = {"q": {"a": 2, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    assert 0 <= gg.evaluate(qrels, run, name).means.popitem()[1] <= 1
    with pytest.raises(gg.MeasureError) as error:
        gg.evaluate(qrels, run, name, provider="pytrec_eval")
    assert REFUSED[name] in str(error.value)


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
    code = (
        "import sys; from goodgain.errors import MeasureError; from goodgain.measures.names import parse_measures\n"
        "for name in sys.argv[1:]:\n"
        "    try: print('taken:', *parse_measures(name))\n"
        "    except MeasureError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", code, *ALWAYS_REFUSED], capture_output=True, text=True, check=True
    )
    for line, said in zip(done.stdout.splitlines(), ALWAYS_REFUSED.values(), strict=True):
        assert said in line


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
    "gains": [{1: 1, 2: 3, 3: 7}, {0: 0}, {3: 1000}],
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


def test_a_set_f_far_from_1_is_precision_or_recall() -> None:
    qrels, run = {"q": {"a": 1, "b": 1, "c": 1}}, {"q": {"a": 3.0, "x": 2.0}}
    found = gg.evaluate(qrels, run, "SetP SetR SetF(beta=0.0) SetF(beta=0.0001) SetF(beta=1e15)").mean()
    assert found["SetF(beta=0.0)"] == found["SetP"] == 0.5
    assert found["SetF(beta=0.0001)"] == pytest.approx(0.5, abs=1e-3)
    assert found["SetF(beta=1000000000000000.0)"] == pytest.approx(1 / 3)


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
