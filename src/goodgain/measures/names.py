"""The parser of names of measures: "SRE(rel=3)@5", "nDCG@10"."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from typing import Any

import ir_measures

from goodgain.errors import MeasureError
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import DCGG, MEASURES
from goodgain.measures.parameters import check_parameters
from goodgain.measures.ranked import takes

__all__ = ["Measures", "parse_measure", "parse_measures"]

_FORM = "write NAME, NAME@cutoff or NAME(parameter=value)@cutoff"


Measures = str | ir_measures.Measure | Iterable[str | ir_measures.Measure]


def parse_measures(measures: Measures, *, complete: bool = True) -> list[ir_measures.Measure]:
    """Return measures from a text of names with blanks between them, a measure object, or a list of both; each once.

    A range of iterations is one measure for each: `CG@1-3` is `CG@1 CG@2 CG@3`.

    With `complete=False` a measure may lack a required cutoff, as in a ledger, which shows it at every iteration.

    Raises:
        MeasureError: a name or parameter is unknown, a value cannot be taken, or there is no measure at all.

    >>> parse_measures("nDCG@10 SRE(rel=3)@5")
    [nDCG@10, SRE(rel=3)@5]
    """
    given = (
        [measures]
        if isinstance(measures, (str, ir_measures.Measure)) or not isinstance(measures, Iterable)
        else measures
    )
    found: dict[ir_measures.Measure, None] = {}
    for item in given:
        if isinstance(item, ir_measures.Measure):
            found[_check_measure(item) if complete else item] = None
        elif isinstance(item, str):
            names = [one for name in _split(item) for one in _expand_range(name)]
            found.update((parse_measure(name, complete=complete), None) for name in names)
        else:
            raise MeasureError(f"{item!r} is not a measure: give names such as 'SRE@3' or measure objects")
    if not found:
        raise MeasureError("no measure was named; name some, such as 'nDCG@10 SRE@3 SRR'")
    return list(found)


def parse_measure(name: str, *, complete: bool = True) -> ir_measures.Measure:
    """Return the measure that a name means, ours or any that ir_measures knows.

    Raises:
        MeasureError: the name or a parameter is unknown (a near miss is named), or a value cannot be taken.
    """
    if _RANGE.fullmatch(name.strip()):
        raise MeasureError(f"{name!r} is several measures, one for each iteration, where one is expected; name one")
    try:
        node: ast.expr = ast.parse(name.strip(), mode="eval").body
        cutoff: Any = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            cutoff = ast.literal_eval(node.right)
            node = node.left
        params: dict[str, Any] = {}
        if isinstance(node, ast.Call):
            if node.args:
                raise MeasureError(f"{name!r}: a value has no parameter name; {_FORM}")
            params = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
            node = node.func
        if not isinstance(node, ast.Name):
            raise MeasureError(f"{name!r} is not the name of a measure; {_FORM}")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, MeasureError):
            raise
        raise MeasureError(f"{name!r} is not the name of a measure; {_FORM}") from None
    known = _find_measure(node.id)
    if cutoff is not None:
        params[known.AT_PARAM] = cutoff
    made = _apply_parameters(known, params, name)
    return _check_measure(made) if complete else made


def _find_measure(name: str) -> ir_measures.Measure:
    """Return the measure of a bare name.

    Ours are looked up first: another package may have registered a measure of the same name with ir_measures.
    """
    if name in MEASURES:
        return MEASURES[name]
    registry: dict[str, ir_measures.Measure] = ir_measures.measures.registry
    if name in registry:
        return registry[name]
    if name.upper() == "DCG":
        raise MeasureError(
            f"{name} is not used here: beside nDCG@10 its @i would be read as a rank; the guideline's DCG@i, with @i in "
            f"iterations, is {DCGG.NAME}, the classic one is in ranx (dcg)"
        )
    names = {known.lower(): known for known in [*registry, *MEASURES]}
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {names[near[0]]}?" if near else "goodgain measures lists ours, ir-measur.es the classic ones"
    raise MeasureError(f"{name} is not a measure; {hint}")


def _apply_parameters(known: ir_measures.Measure, params: dict[str, Any], name: str) -> ir_measures.Measure:
    try:
        made: ir_measures.Measure = known(**params)
    except TypeError as error:
        raise MeasureError(f"{name!r}: {error}; {_FORM}") from None
    return made


def _check_measure(measure: ir_measures.Measure) -> ir_measures.Measure:
    if isinstance(measure, GoodGainMeasure):
        measure.validate_params()
    elif not takes(measure):  # what the ranking table computes takes more than hosts do: any rel, for one
        check_parameters(measure)
    return measure


def _split(text: str) -> list[str]:
    """Split a text into names at white space that is not inside brackets or quotes."""
    names, start, depth, quote = [], 0, 0, ""
    for position, char in enumerate(text + " "):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "({[":
            depth += 1
        elif char in ")}]":
            depth = max(0, depth - 1)
        elif char.isspace() and depth == 0:
            if text[start:position].strip():
                names.append(text[start:position])
            start = position + 1
    if text[start:].strip():  # a bracket or quote is open: the parser of names reports it
        names.append(text[start:])
    return names


#: A range of iterations after @.
_RANGE = re.compile(r"(?P<name>.*)@\s*(?P<first>[0-9]{1,12})-(?P<last>[0-9]{1,12})", re.DOTALL)
_MOST_OF_RANGE = 1_000


def _expand_range(name: str) -> list[str]:
    """Return the name of one measure for each iteration of a range; any other name as it is.

    >>> _expand_range("CG@1-3"), _expand_range("CG@3")
    (['CG@1', 'CG@2', 'CG@3'], ['CG@3'])
    """
    found = _RANGE.fullmatch(name.strip())
    if found is None:
        return [name]
    first, last = int(found["first"]), int(found["last"])
    if not first <= last < first + _MOST_OF_RANGE:
        raise MeasureError(
            f"{name!r}: a range goes from its first iteration to a later one, {_MOST_OF_RANGE:,} at most; write CG@1-3"
        )
    names = [f"{found['name']}@{i}" for i in range(first, last + 1)]
    if not isinstance(parse_measure(names[0]), GoodGainMeasure):
        raise MeasureError(
            f"{name!r}: a range is one of iterations, for our measures; name each cutoff: {' '.join(names[:3])}"
        )
    return names
