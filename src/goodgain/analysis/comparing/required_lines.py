"""Reads requirements such as `SRR@3<=0.3` or `SRE@3>=baseline-0.05 significant`; `requirements.py` checks them.

The syntax is: MEASURE OP (number | baseline [(+|-) number | (+|-) noise | * number]) ['significant'].
"""

import math
import operator
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import ir_measures
import numpy as np
from numpy.typing import NDArray

from goodgain.analysis.comparing.outcome_directions import find_direction_of_outcome
from goodgain.analysis.comparing.use_of_documents import RATIO_OF_SUMS
from goodgain.errors import InputError
from goodgain.measures.names import find_direction, parse_measure
from goodgain.options import spell
from goodgain.schema import COMPLETED, SEARCHED
from goodgain.statistics.statistical_tests import RESIDUE, Matrix

#: The name of the system that is the baseline by default, and of the system of a baseline file.
BASELINE = "baseline"
_OPERATORS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
#: Stricter than `float`, which also accepts 0_3 and digits of other scripts.
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_TOKEN = re.compile(rf"{_NUMBER}|[A-Za-z_]\w*|<=|>=|\S", re.ASCII)


@dataclass(frozen=True)
class Requirement:
    """One requirement on the mean of a measure.

    Attributes:
        text: the requirement as the user wrote it.
        measure: the measure whose mean over queries is tested, or the name of an outcome, or `searched`: the share of the judged
            queries that searched.
        sign: one of <=, >=, <, >.
        bound: a number. None means baseline mean * `factor` + `offset` + `noise` * noise floor.
        significant: whether the requirement fails only if its violation is significant.
        noise: the factor of the noise floor in the bound: -1 for `baseline-noise`, 1 for `baseline+noise`, else 0.
    """

    text: str
    measure: ir_measures.Measure | str
    sign: str
    bound: float | None
    factor: float = 1.0
    offset: float = 0.0
    significant: bool = False
    noise: int = 0

    @property
    def is_tested_by_noise(self) -> bool:
        """Whether the noise of the baseline decides the requirement: a loss above the noise floor is then a failure."""
        return not self.significant and self.noise == (-1 if self.sign.startswith(">") else 1)


def parse_requirement(
    text: Requirement | str, *, rel: float | None = None, outcomes: Collection[str] = ()
) -> Requirement:
    """Parse a requirement such as `SRR@3<=0.3` or `SRE(rel=3)@5 >= baseline*0.9 significant`.

    `rel` and `outcomes` are those of the comparison. A parsed requirement is returned unchanged.

    Raises:
        InputError: the text is not a requirement. The message has the position of the error.
        MeasureError: the measure is unknown.

    >>> line = parse_requirement("SRE@3>=baseline-0.05")
    >>> line.measure, line.sign, line.bound, line.offset
    (SRE@3, '>=', None, -0.05)
    """
    if isinstance(text, Requirement):
        return text
    line = _Line(text)
    name = line.take(r"[^<>\s][^<>]*", "a measure").strip()
    sign = line.take("[<>]=?", "<=, >=, <, >")

    bound = None
    factor, offset, noise = 1.0, 0.0, 0
    if not line.take(r"baseline\b"):
        signed = line.take("[-+]")
        bound = line.take_number("a number" if signed else "a number or baseline", signed)
    elif line.take(r"\*"):
        factor = line.take_number("a number")
    elif (shift := line.take("[-+]")) and line.take(r"noise\b"):
        noise = int(f"{shift}1")
    elif shift:
        offset = line.take_number("a number or noise", shift)

    significant = bool(line.take(r"significant\b"))
    line.take("$", "the end" if significant else "'significant' or the end")
    if name == RATIO_OF_SUMS:
        raise InputError(f"{text!r}: {name} cannot be compared query by query. Require opening_precision instead.")
    if name == COMPLETED and name not in outcomes:
        raise InputError(
            f"{text!r} needs {spell('outcomes')} with a column {name}. goodgain convert --outcomes writes it."
        )
    measure: ir_measures.Measure | str = name
    if name not in (SEARCHED, *outcomes):
        measure = parse_measure(name, rel=rel)
    return Requirement(text, measure, sign, bound, factor, offset, significant, noise)


def find_baseline(lines: Iterable[Requirement], names: Sequence[str]) -> str | None:
    """Return the default baseline: the system called `baseline`, else the first. None: no line names the baseline.

    Without a baseline, lines are checked for all systems.
    """
    if all(line.bound is not None for line in lines):
        return None
    return BASELINE if BASELINE in names else names[0]


class _Line:
    def __init__(self, text: str) -> None:
        self._text = text
        self._rest = text.lstrip()

    def take(self, pattern: str, expected: str = "") -> str:
        """Consume and return a match of the pattern. Without a match, raise `InputError` if `expected` is given, else return ""."""
        match = re.match(pattern, self._rest, re.ASCII)
        if match is None and expected:
            at = len(self._text) - len(self._rest) + 1
            there = repr(_TOKEN.findall(self._rest)[0]) if self._rest else "the end"
            raise InputError(
                f"{self._text!r} is not a requirement: at character {at}, expected {expected}, found {there}. "
                "Write a line such as 'SRR@3<=0.3' or 'SRE@3>=baseline-0.05 significant'."
            )
        text = match[0] if match else ""
        self._rest = self._rest[len(text) :].lstrip()
        return text

    def take_number(self, expected: str, sign: str = "") -> float:
        """Consume and return a finite number. `sign` is a sign that was taken before."""
        token = _TOKEN.match(self._rest)
        is_number = token is not None and re.match(_NUMBER, token[0])
        is_finite = token is not None and is_number and math.isfinite(float(token[0]))
        pattern = _NUMBER if is_finite else "(?!)"  # matches nothing, so `take` raises the error
        return float(sign + self.take(pattern, expected))


def is_equal(values: Matrix | float, bound: float) -> NDArray[np.bool_]:
    """Return which values equal a bound, up to rounding."""
    distance = np.abs(values - bound)
    is_near: NDArray[np.bool_] = distance <= RESIDUE * max(1.0, abs(bound))
    return is_near


def passes(values: Matrix | float, sign: str, bound: float) -> NDArray[np.bool_]:
    """Return which values satisfy the bound. A value that equals the bound up to rounding counts as equal. NaN does not pass."""
    allows_equal = sign in ("<=", ">=")
    with np.errstate(invalid="ignore"):
        is_beyond = _OPERATORS[sign](values, bound)
        passed: NDArray[np.bool_] = np.where(is_equal(values, bound), allows_equal, is_beyond)
    return passed


def forbids_improvement(line: Requirement) -> bool:
    """Return whether better values break a requirement, such as `nCG<=0.3`. Its bound must be a number."""
    if isinstance(line.measure, str):
        better = find_direction_of_outcome(line.measure)
    else:
        better = find_direction(line.measure)
    if line.bound is not None or better is None:
        return False
    return (better == "up") == line.sign.startswith("<")
