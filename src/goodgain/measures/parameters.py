"""Checks of the parameters of ir_measures' measures, before a provider is asked.

ir_measures declares types, choices and which parameters are required, but checks them by `assert`, which `python -O`
removes. Bounds come from the definitions of the measures, and from the providers: a value that a provider takes and computes
as something else is refused here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ir_measures

from goodgain.errors import MeasureError

__all__ = ["Rule", "check_parameters"]

#: Limit of whole numbers: the providers are C programs, whose int may have 32 bits.
_C_INT = 2**31
#: trec_eval allocates a list of all levels up to the largest gain for every query.
_MOST_GAIN = 100_000
#: Characters of a value that an error message shows.
_SHOWN = 100


class Rule(NamedTuple):
    """The values that a parameter may have.

    Attributes:
        words: what follows "the parameter is" in a message.
        allows: tells whether a value of the declared type is allowed.
    """

    words: str
    allows: Callable[[Any], bool]


def _is_gain(label: Any, gain: Any) -> bool:
    return type(label) is int and abs(label) < _C_INT and type(gain) is int and 0 <= gain <= _MOST_GAIN


_TYPES: dict[Any, Rule] = {
    int: Rule("a whole number", lambda _: True),
    float: Rule("a number", lambda _: True),
    bool: Rule("True or False", lambda _: True),
}
_FROM_1 = Rule("a whole number from 1", lambda value: 1 <= value < _C_INT)
_BELOW_1 = Rule("a number from 0 up to, but not, 1", lambda value: 0 <= value < 1)
#: Parameter -> its rule in all measures of ir_measures.
_RULES = {
    "cutoff": _FROM_1,
    "rel": _FROM_1,
    "min_rel": Rule("a whole number from 0, below max_rel", lambda value: 0 <= value < _C_INT),
    "max_rel": Rule("a whole number from 1, above min_rel", lambda value: 1 <= value < _C_INT),
    "p": _BELOW_1,
    "alpha": Rule("a number from 0 to 1", lambda value: 0 <= value <= 1),
    "beta": _BELOW_1,
    "T": Rule("a number above 0 (to 10^9)", lambda value: 0 < value <= 1e9),
    "recall": Rule(
        "a number from 0 to 1 with two decimals at most, as trec_eval drops the others",
        lambda value: 0 <= value <= 1 and math.isclose(value, round(value, 2), abs_tol=1e-12),
    ),
    "gains": Rule(
        f"a dict of labels to gains, whole numbers from 0 to {_MOST_GAIN:,}, such as {{1: 1, 2: 3}}",
        lambda value: all(_is_gain(label, gain) for label, gain in value.items()),
    ),
}
_NDEVAL = ("ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "P_IA", "StRecall")
#: (measure, parameter) -> its rule in this measure alone.
_OWN_RULES = {
    # Below 0.5 INST's probability of going on to the next result exceeds 1.
    ("INST", "T"): Rule("a number from 0.5 (to 10^9)", lambda value: 0.5 <= value <= 1e9),
    # trec_eval reads the exponent of 1e-05 or 1e+16 as something else, and computes F1.
    ("SetF", "beta"): Rule("0, or a number from 0.0001 to 10^15", lambda value: value == 0 or 1e-4 <= value <= 1e15),
    **{
        (name, "cutoff"): Rule("a whole number from 1 to 1,000, where cwl_eval ends", lambda value: 1 <= value <= 1_000)
        for name in ("BPM", "SDCG", "NERR8", "NERR9")
    },
    **{
        (name, "cutoff"): Rule("a whole number from 1 to 20, where ndeval ends", lambda value: 1 <= value <= 20)
        for name in _NDEVAL
    },
    **{
        (name, "judged_only"): Rule("False, as pyndeval of ir_measures fails with True", lambda value: not value)
        for name in (*_NDEVAL, "AP_IA")
    },
}
#: Parameters that ir_measures declares to be optional, although the provider needs them.
_NEEDED = {(name, "cutoff") for name in _NDEVAL}


def check_parameters(measure: ir_measures.Measure, computed: Mapping[str, Rule] | None = None) -> None:
    """Raise `MeasureError` where a parameter of a measure of ir_measures is not allowed, or is missing.

    For measures that users define, the declared types and choices are checked, and the cutoff.

    Args:
        measure: what a host is to compute.
        computed: the rules of parameters with which it would not need a host: the error has theirs where they are broken too.
    """
    for name in measure.params:
        if name not in measure.SUPPORTED_PARAMS:
            takes = ", ".join(f"{known}=" for known in measure.SUPPORTED_PARAMS) or "none"
            raise MeasureError(f"{measure.NAME} has no parameter {name!r}; it takes {takes}")
    for name, info in measure.SUPPORTED_PARAMS.items():
        rule = _find_rule(measure, name, info)
        if name in measure.params:
            _check(measure, name, info, rule, (computed or {}).get(name, rule))
        elif info.required or (measure.NAME, name) in _NEEDED:
            place = ", written after @" if name == measure.AT_PARAM else ""
            raise MeasureError(f"{measure.NAME} needs the parameter {name}{place}: {rule.words}")
    least, most = (measure.params.get(name, 0) for name in ("min_rel", "max_rel"))
    if "max_rel" in measure.params and least >= most:
        raise MeasureError(f"{measure.NAME}: min_rel={least} is not below max_rel={most}; give the ends of the scale")


def _find_rule(measure: ir_measures.Measure, name: str, info: Any) -> Rule:
    choices = info.choices if isinstance(info.choices, (list, tuple)) else None
    if choices is not None:
        return Rule(" or ".join(map(repr, choices)), lambda value: value in choices)
    if name == "cutoff" or type(measure).__module__.startswith("ir_measures."):
        found = _OWN_RULES.get((str(measure.NAME), name)) or _RULES.get(name)
        if found is not None:
            return found
    return _TYPES.get(info.dtype) or Rule(f"a {getattr(info.dtype, '__name__', info.dtype)}", lambda _: True)


def _check(measure: ir_measures.Measure, name: str, info: Any, rule: Rule, computed: Rule) -> None:
    value = measure.params[name]
    number_wanted = isinstance(value, bool) and info.dtype in (int, float)  # True is an int to Python
    if info.validate(value) and not number_wanted and rule.allows(value):
        return
    shown = repr(value) if len(repr(value)) <= _SHOWN else f"{repr(value)[:_SHOWN]}..."
    words = rule.words if computed.allows(value) else computed.words
    raise MeasureError(f"{measure.NAME}: {name}={shown} cannot be taken; {name} is {words}")
