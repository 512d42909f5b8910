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
from tests.measures.test_names import REFUSED
from tests.support.counts import some_of

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
    for line, said in zip(done.stdout.splitlines(), of_providers.values(), strict=True):
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
