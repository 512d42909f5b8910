"""Checks requirements such as `SRR@3<=0.3` or `SRE@3>=baseline`: a gate for continuous integration."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import ir_measures
import numpy as np
import polars as pl

from goodgain.comparing.comparison import Comparison
from goodgain.comparing.statistical_tests import run_t_test
from goodgain.counting.coverage import LOW_COVERAGE
from goodgain.errors import InputError
from goodgain.measures.names import find_direction, parse_measure

_OPERATORS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
#: `float` also takes 0_3 and the digits of other scripts; a bound may not have them.
_FORM = re.compile(r"(?P<measure>[^<>]+)(?P<sign><=|>=|<|>)\s*(?P<bound>baseline|[-+.0-9eE]+)\s*")

#: Means that differ by at most this are equal: rounding.
_EQUAL = 1e-12


@dataclass(frozen=True)
class Requirement:
    """One requirement on the mean of a measure.

    Attributes:
        text: the requirement as the user wrote it.
        measure: the measure whose mean over queries is tested.
        sign: one of <=, >=, <, >.
        bound: a number, or None for the baseline's mean.
    """

    text: str
    measure: ir_measures.Measure
    sign: str
    bound: float | None


@dataclass(frozen=True)
class Outcome:
    """The outcome of one requirement for one system.

    Attributes:
        requirement: the requirement.
        system: the name of the system.
        value: its mean; None if no query has a value.
        bound: the number that the mean was compared with; None if no query has a value.
        holds: whether the requirement holds; False without a value.
        p: the p-value of the difference from the bound: by the Holm-corrected randomisation test for a baseline, by the
            t-test for a number; None if it does not exist.
        significant: p <= alpha of the comparison.
        low_coverage: whether too few results are judged to trust a small difference.
    """

    requirement: Requirement
    system: str
    value: float | None
    bound: float | None
    holds: bool
    p: float | None
    significant: bool
    low_coverage: bool

    def __str__(self) -> str:
        line = f"{'holds' if self.holds else 'failed'}: {self.requirement.text}: {self.system}"
        if self.value is None or self.bound is None:
            return f"{line} has no value: there is no query for which every system has one"
        against = f" (baseline {self.bound:.4f})" if self.requirement.bound is None else ""
        apart = abs(self.value - self.bound)
        way = "equal" if apart <= _EQUAL else f"{apart:.4g} {'above' if self.value > self.bound else 'below'}"
        test = "t-test" if self.requirement.bound is not None else "randomisation test"
        belief = "p does not exist" if self.p is None else f"{test}, p = {self.p:.4g}"
        significant = "significant" if self.significant else "not significant"
        doubt = ", low coverage" if self.low_coverage else ""
        return f"{line} has {self.value:.4f}, {way}{against}; {significant} ({belief}{doubt})"


def parse_requirement(text: str, *, rel: float | None = None) -> Requirement:
    """Parse a requirement such as `SRR@3<=0.3` or `SRE(rel=3)@5 >= baseline`.

    `rel` is the `rel` of the comparison.

    Raises:
        InputError: the text is not a requirement.
        MeasureError: the measure is unknown.

    >>> parse_requirement("SRE@3>=baseline")
    Requirement(text='SRE@3>=baseline', measure=SRE@3, sign='>=', bound=None)
    """
    found = _FORM.fullmatch(text)
    try:
        bound = None if found is None or found["bound"] == "baseline" else float(found["bound"])
    except ValueError:
        found = None
    if found is None or (bound is not None and not math.isfinite(bound)):
        raise InputError(f"{text!r} is not a requirement; write one such as 'SRR@3<=0.3' or 'SRE@3>=baseline'")
    return Requirement(text, parse_measure(found["measure"].strip(), rel=rel), found["sign"], bound)


def check_requirements(comparison: Comparison, requirements: Iterable[Requirement]) -> list[Outcome]:
    """Check every requirement for every system except the baseline.

    Args:
        comparison: a comparison on all measures of the requirements; it has a baseline if a requirement names one.
        requirements: what `parse_requirement` returns.

    Raises:
        InputError: a requirement names the baseline and the comparison has none, or a measure was not compared.
    """
    systems = [name for name in comparison.systems.get_column("system") if name != comparison.baseline]
    return [outcome for line in requirements for outcome in _check_line(comparison, line, systems)]


def _check_line(comparison: Comparison, line: Requirement, systems: Iterable[str]) -> Iterator[Outcome]:
    of_measure = comparison.means.filter(pl.col("measure") == str(line.measure))
    means = dict(of_measure.select("system", "mean").iter_rows())
    if not means:
        raise InputError(f"{line.text!r}: {line.measure} was not compared; add it to the measures")
    if line.bound is None and comparison.baseline is None:
        raise InputError(f"{line.text!r}: the comparison has no baseline; name one with baseline=")
    low = set(comparison.systems.filter(pl.col("coverage") < LOW_COVERAGE).get_column("system"))
    for system in systems:
        if line.bound is None:
            bound = means[str(comparison.baseline)]
            p = comparison.pairs.filter(measure=str(line.measure), system=system)["p_randomisation_holm"].item()
            doubtful = not low.isdisjoint({system, comparison.baseline})
        else:
            bound, p, doubtful = line.bound, _test_against_number(comparison, line, system), system in low
        significant = p is not None and p <= comparison.signature["alpha"]
        yield Outcome(
            line, system, means[system], bound, _holds(means[system], line.sign, bound), p, significant, doubtful
        )


def _holds(value: float | None, sign: str, bound: float | None) -> bool:
    if value is None or bound is None:
        return False
    if abs(value - bound) <= _EQUAL:
        return sign in ("<=", ">=")
    return bool(_OPERATORS[sign](value, bound))


def _test_against_number(comparison: Comparison, line: Requirement, system: str) -> float | None:
    """Return p of a one-sample t-test against the number, over the queries for which all systems have a value."""
    of_measure = comparison.values.filter((pl.col("measure") == str(line.measure)) & pl.col("value").is_finite())
    everywhere = pl.col("system").n_unique().over("query_id") == comparison.systems.height
    values = of_measure.filter(everywhere).filter(system=system).get_column("value").to_numpy()
    p = float(run_t_test((values - line.bound)[None, :])[0]) if len(values) else math.nan
    return None if np.isnan(p) else p


def forbids_improvement(line: Requirement) -> bool:
    """Return whether a requirement forbids a system to be better than the baseline."""
    better = find_direction(line.measure)
    return line.bound is None and better is not None and (better == "up") == line.sign.startswith("<")
