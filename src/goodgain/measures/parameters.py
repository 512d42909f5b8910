"""Checks the parameters of measures that goodgain computes, and of measures that providers of ir_measures compute.

ir_measures declares types, choices and required parameters, but checks them with `assert`, which `python -O` removes. Further
rules follow from the definitions of measures. Other rules reject a value if a provider would silently compute something else.
"""

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import ir_measures
from ir_measures.measures import ParamInfo
from ir_measures.measures.base import _NOT_PROVIDED

from goodgain.errors import MeasureError
from goodgain.options import spell

#: Limit of a cutoff: larger than any rank, and safe on every engine.
_LAST = 2**53
#: Limit of numbers such as a threshold: a float.
_LARGEST = 10**300
#: The largest beta whose square is a float.
_MOST_BETA = 1e150
#: Limit of whole numbers: providers are C programs, and their int may have 32 bits.
_C_INT = 2**31
#: The largest gain: trec_eval allocates a list of all levels up to it for every query.
_MOST_GAIN = 100_000
#: The most characters of a value in a message.
_SHOWN = 100


class Rule(NamedTuple):
    """The allowed values of a parameter: `words` complete "the parameter is ...", and `allows` tests a value."""

    words: str
    allows: Callable[[Any], bool]


def is_number(value: Any) -> bool:
    is_real = isinstance(value, (int, float, Integral)) and not isinstance(value, bool)  # Integral: NumPy's
    return is_real and bool(-_LARGEST < value < _LARGEST)


def check_rel(rel: Any) -> None:
    if not is_number(rel) or rel <= 0:
        raise MeasureError(f"{spell('rel', rel)} is not allowed; rel is the smallest good label, a number above 0")


#: Parameter -> its rule in measures computed here from a ranking; any other parameter must have its default.
COMPUTED_RULES: dict[str, Rule] = {
    "cutoff": Rule("a whole number from 1", lambda value: type(value) is int and 1 <= value < _LAST),
    "rel": Rule("the smallest relevant label, a number above 0", lambda value: is_number(value) and value > 0),
    "judged_only": Rule("True or False", lambda value: isinstance(value, bool)),
    "gains": Rule(
        "a dict of labels to gains from 0, such as {1: 1, 2: 3}",
        lambda value: (
            isinstance(value, dict)
            and all(is_number(label) and is_number(gain) and gain >= 0 for label, gain in value.items())
        ),
    ),
    "p": Rule("a number from 0 to below 1", lambda value: is_number(value) and 0 <= value < 1),
    "beta": Rule("a number from 0 to 10^150", lambda value: is_number(value) and 0 <= value <= _MOST_BETA),
    "recall": Rule("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1),
    "max_rel": Rule(
        "the largest label of the scale, above 0 and at most 100", lambda value: is_number(value) and 0 < value <= 100
    ),
}
_BASE = Rule("a base of logarithms, a number above 1", lambda value: is_number(value) and value > 1)
#: Parameter -> its rule in measures of iterations. A `Declaration` can have other `rules`.
LEDGER_RULES = COMPUTED_RULES | {
    "cutoff": Rule("a number of iterations, a whole number from 1", COMPUTED_RULES["cutoff"].allows),
    "rel": Rule("the smallest good label, a number above 0", COMPUTED_RULES["rel"].allows),
    "budget": Rule("a number above 0, of searches a whole number up to 1,000", COMPUTED_RULES["rel"].allows),
    "vital": COMPUTED_RULES["judged_only"],
    "k": COMPUTED_RULES["cutoff"],
    "per": COMPUTED_RULES["cutoff"],
    "depth": COMPUTED_RULES["cutoff"],
    "b": _BASE,
    "bq": _BASE,
    "gamma": COMPUTED_RULES["recall"],
    "height": Rule("a number above 0", COMPUTED_RULES["rel"].allows),
}


def read_parameters(measure: ir_measures.Measure) -> dict[str, Any]:
    """Return a dict from parameters of a measure to their given or default values; parameters without a value are left out."""
    defaults = {name: info.default for name, info in measure.SUPPORTED_PARAMS.items()}
    parameters = defaults | measure.params
    return {name: value for name, value in parameters.items() if value is not _NOT_PROVIDED}


def find_choices(info: ParamInfo) -> Rule | None:
    if not isinstance(info.choices, (list, tuple)):
        return None
    choices = list(info.choices)
    return Rule(" or ".join(map(repr, choices)), lambda value: value in choices)


_TYPES: dict[Any, str] = {int: "a whole number", float: "a number", bool: "True or False"}
_C_FROM_1 = Rule("a whole number from 1", lambda value: 1 <= value < _C_INT)
_BELOW_1 = Rule("a number from 0 to below 1", lambda value: 0 <= value < 1)
#: Parameter -> its rule in all measures of ir_measures.
_RULES = {
    "cutoff": _C_FROM_1,
    "rel": _C_FROM_1,
    "min_rel": Rule("a whole number from 0, below max_rel", lambda value: 0 <= value < _C_INT),
    "max_rel": Rule("a whole number from 1, above min_rel", lambda value: 1 <= value < _C_INT),
    "p": _BELOW_1,
    "alpha": Rule("a number from 0 to 1", lambda value: 0 <= value <= 1),
    "beta": _BELOW_1,
    "T": Rule("a number above 0 (to 10^9)", lambda value: 0 < value <= 1e9),
    "recall": Rule(
        "a number from 0 to 1 with at most two decimals (trec_eval drops others)",
        lambda value: 0 <= value <= 1 and math.isclose(value, round(value, 2), abs_tol=1e-12),
    ),
    "gains": Rule(
        f"a dict of labels to gains, whole numbers from 0 to {_MOST_GAIN:,}, such as {{1: 1, 2: 3}}",
        lambda value: (
            all(type(label) is int and abs(label) < _C_INT for label in value)
            and all(type(gain) is int and 0 <= gain <= _MOST_GAIN for gain in value.values())
        ),
    ),
}
_NDEVAL = ("ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "P_IA", "StRecall")
_TO_1000 = Rule("a whole number from 1 to 1,000, the limit of cwl_eval", lambda value: 1 <= value <= 1_000)
_TO_20 = Rule("a whole number from 1 to 20, the limit of ndeval", lambda value: 1 <= value <= 20)
_FALSE = Rule("False (pyndeval of ir_measures fails with True)", lambda value: not value)
#: (measure, parameter) -> its rule in this measure.
_OWN_RULES = {
    # Below 0.5, the probability in INST of continuing to the next result exceeds 1.
    ("INST", "T"): Rule("a number from 0.5 (to 10^9)", lambda value: 0.5 <= value <= 1e9),
    # trec_eval misreads the exponent of 1e-05 or 1e+16, and computes F1.
    ("SetF", "beta"): Rule("0, or a number from 0.0001 to 10^15", lambda value: value == 0 or 1e-4 <= value <= 1e15),
    **{(name, "cutoff"): _TO_1000 for name in ("BPM", "SDCG", "NERR8", "NERR9")},
    **{(name, "cutoff"): _TO_20 for name in _NDEVAL},
    **{(name, "judged_only"): _FALSE for name in (*_NDEVAL, "AP_IA")},
}


def check_given(measure: ir_measures.Measure, find_rule: Callable[[str, Any], Rule | None]) -> None:
    """Raise `MeasureError` if a measure was given an unknown parameter, or a value that breaks the rule from `find_rule`."""
    supported = measure.SUPPORTED_PARAMS
    for name in measure.params.keys() - supported.keys():
        takes = ", ".join(f"{parameter}=" for parameter in supported) or "none"
        raise MeasureError(f"{_name(measure)} has no parameter {name!r}; it takes {takes}")

    for name, info in supported.items():
        if name not in measure.params:
            continue
        value = measure.params[name]
        rule = find_rule(name, info)
        if rule is not None and not rule.allows(value):
            text = repr(value)
            if len(text) > _SHOWN:
                text = f"{text[:_SHOWN]}..."
            raise MeasureError(f"{_name(measure)}: {name}={text} is not allowed; {name} is {rule.words}")


def check_needed(measure: ir_measures.Measure, find_rule: Callable[[str, Any], Rule | None]) -> None:
    """Raise `MeasureError` if a measure lacks a required parameter, such as its cutoff."""
    for name, info in measure.SUPPORTED_PARAMS.items():
        # ndeval needs a cutoff that ir_measures declares as optional
        is_required = info.required or (name == "cutoff" and measure.NAME in _NDEVAL)
        if name in measure.params or not is_required:
            continue
        rule = find_rule(name, info)
        words = rule.words if rule else info.desc
        place = ", written after @" if name == measure.AT_PARAM else ""
        example = f"; write {_name(measure)}@3" if name == "cutoff" else ""
        raise MeasureError(f"{_name(measure)} needs the parameter {name}{place}: {words}{example}")


def _name(measure: Any) -> str:
    return str(measure.__name__)  # the NAME of our nDCG is goodgain.nDCG


def check_parameters(measure: ir_measures.Measure) -> None:
    """Raise `MeasureError` if a measure of ir_measures lacks a required parameter, or if a provider mishandles a parameter's value.

    For measures that users define, only the cutoff and the declared types and choices are checked.
    """

    def find_rule(name: str, info: Any) -> Rule:
        """Return the rule of `_find_rule`. It also allows only values that ir_measures allows."""
        rule = _find_rule(measure, name, info)
        takes_numbers = info.dtype in (int, float)  # True is an int to Python

        def allows(value: Any) -> bool:
            if takes_numbers and isinstance(value, bool):
                return False
            return bool(info.validate(value)) and rule.allows(value)

        return Rule(rule.words, allows)

    check_given(measure, find_rule)
    check_needed(measure, find_rule)
    least, most = (measure.params.get(name, 0) for name in ("min_rel", "max_rel"))
    if "max_rel" in measure.params and least >= most:
        raise MeasureError(f"{measure.NAME}: min_rel={least} is not below max_rel={most}; give the ends of the scale")


def _find_rule(measure: ir_measures.Measure, name: str, info: Any) -> Rule:
    """Return the rule of a parameter of ir_measures. Without a rule of its own, the declared type alone is checked."""
    if (choices := find_choices(info)) is not None:
        return choices
    is_known = name == "cutoff" or type(measure).__module__.startswith("ir_measures.")
    if is_known:
        rule = _OWN_RULES.get((str(measure.NAME), name)) or _RULES.get(name)
        if rule is not None:
            return rule
    words = _TYPES.get(info.dtype) or f"a {getattr(info.dtype, '__name__', info.dtype)}"
    return Rule(words, lambda _: True)
