"""Parses names of measures such as "SRE(rel=3)@5" or "nDCG@10,srr@3", and says what a measure means."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import ir_measures

from goodgain.errors import MeasureError
from goodgain.measures.declaration import (
    DECLARATIONS,
    DeclaredMeasure,
    IterationMeasure,
    RankedMeasure,
    SessionMeasure,
    find_declaration,
    find_meaning,
)
from goodgain.measures.names_elsewhere import READ_AS, refuse_name_elsewhere, suggest_name
from goodgain.measures.parameters import check_given, check_parameters, check_rel, read_parameters

#: Why a query is left out of a comparison. `describe_lack` returns the second, or a text about results.
NO_SEARCH, NO_VALUE = "a system did not search", "a system has no value"

_FORM = "write NAME, NAME@cutoff or NAME(parameter=value)@cutoff"

Measures = str | ir_measures.Measure | Iterable[str | ir_measures.Measure]


def find_direction(measure: ir_measures.Measure) -> str | None:
    """Return `up` if higher values of a measure are better, `down` if lower values are, else None. Unknown measures get `up`.

    >>> find_direction(ir_measures.nDCG @ 10)
    'up'
    """
    return find_meaning(measure).better


def find_results_counts(measures: Iterable[ir_measures.Measure]) -> dict[str, str]:
    """Map each measure that is best for a run without results to a count of results, such as `NumResults@3`.

    These are SRR, Fallout, Unjudged and counts for which lower is better. `NumResults` has the same cutoff in iterations, if any.

    >>> find_results_counts(parse_measures("SRR@3 Fallout@10 NumDup nCG@3 NumGood"))
    {'SRR@3': 'NumResults@3', 'Fallout@10': 'NumResults', 'NumDup': 'NumResults'}
    """
    num_results = DECLARATIONS["NumResults"].measure
    counts = {}
    for measure in measures:
        declared = find_meaning(measure)
        if declared.needs_results or (declared.family, declared.better) == ("counts", "down"):
            cutoff = measure.cutoff if isinstance(measure, IterationMeasure) else None
            counts[str(measure)] = str(num_results if cutoff is None else num_results @ cutoff)
    return counts


def add_counts(measures: Iterable[ir_measures.Measure]) -> list[ir_measures.Measure]:
    """Return the measures, followed by the counts that a comparison needs, such as `NumIter` and `NumResults`."""
    measures = [*measures]
    counted = find_results_counts(measure for measure in measures if not needs_results(measure))
    counts = map(parse_measure, dict.fromkeys(["NumIter", "NumResults", *counted.values()]))
    return list(dict.fromkeys([*measures, *counts]))


def needs_results(measure: ir_measures.Measure) -> bool:
    """Return whether `compare` must leave out queries without results, because they would have the best value, 0."""
    return find_meaning(measure).needs_results


def is_null_without_search(measure: ir_measures.Measure) -> bool:
    """Return whether a query that was not searched has no value. This is the rule of docs/measures.md for all measures.

    What the guideline defines stays: SRR is 0. Else a query without a search is 0 if higher values are better. It has no value if
    lower values are better, or if the measure needs search strings or costs. A measure that goodgain does not declare has the
    default value of ir_measures.

    >>> [is_null_without_search(measure) for measure in parse_measures("SRR nCG NoProgress Fallout@5 nDCG@10")]
    [False, False, True, True, False]
    """
    if isinstance(measure, DeclaredMeasure):
        return measure.is_null_without_search
    return find_meaning(measure).is_null_without_search


def find_null_rule(measure: ir_measures.Measure) -> str:
    """Return a text that completes "the value is null if ...", or an empty text if the measure has a value for every query."""
    if isinstance(measure, DeclaredMeasure):
        return measure.null_rule
    return find_meaning(measure).null_rule


def describe_lack(measure: ir_measures.Measure | str) -> str:
    """Return a text that says why a query has no value, such as `a system has no results by iteration 2`."""
    if isinstance(measure, str) or not needs_results(measure):
        return NO_VALUE
    if isinstance(measure, IterationMeasure) and measure.cutoff is not None:
        return f"a system has no results by iteration {measure.cutoff}"
    return "a system has no results"


def is_computed_here(measure: ir_measures.Measure, *, provider: str | None = None) -> bool:
    """Return whether goodgain itself computes a measure over one ranking. If not, a provider of ir_measures does.

    goodgain computes a measure if its `Declaration` supports the given parameters. If the user names a `provider`, goodgain
    computes only the measures that ir_measures lacks.

    >>> is_computed_here(ir_measures.nDCG @ 10), is_computed_here(ir_measures.Bpref)
    (True, False)
    >>> is_computed_here(ir_measures.nDCG @ 10, provider="pytrec_eval")
    False
    """
    declared = find_declaration(measure)
    if declared is None or not declared.computes(measure):
        return False
    return provider is None or isinstance(measure, RankedMeasure)


def parse_measures(measures: Measures, *, complete: bool = True, rel: float | None = None) -> list[ir_measures.Measure]:
    """Return distinct measures from names separated by blanks or commas, from a measure object, or from a list.

    A range means one measure for each cutoff: `CG@1-3` is `CG@1 CG@2 CG@3`. With `complete=False` a measure may lack a required
    cutoff, as in `ledger`, which shows every iteration. The argument `rel` is the default `rel` of measures of iterations.

    Raises:
        MeasureError: a name, a parameter or a value is wrong, or no measure is named. One error lists all faults.

    >>> parse_measures("nDCG@10, sre(rel=3)@5")
    [nDCG@10, SRE(rel=3)@5]
    """
    parsed: dict[ir_measures.Measure, None] = {}  # in order, without repeats
    errors: dict[str, None] = {}
    for item in _list_items(measures):
        try:
            if isinstance(item, ir_measures.Measure):
                parsed[_finish(item, complete=complete, rel=rel)] = None
            else:
                for name in _expand_range(item):
                    parsed[parse_measure(name, complete=complete, rel=rel)] = None
        except MeasureError as error:
            errors[str(error)] = None

    if len(errors) > 1:
        numbered = "; ".join(f"({number}) {error}" for number, error in enumerate(errors, 1))
        raise MeasureError(f"{len(errors)} measures are wrong: {numbered}")
    if errors:
        raise MeasureError(next(iter(errors)))
    if not parsed:
        raise MeasureError("no measure was named; name some, such as 'nDCG@10 SRE@3 SRR'")
    return list(parsed)


def _list_items(measures: Measures) -> Iterator[str | ir_measures.Measure]:
    """Yield names, one at a time, and measure objects."""
    if isinstance(measures, (str, ir_measures.Measure)) or not isinstance(measures, Iterable):
        measures = [measures]
    for item in measures:
        if isinstance(item, str):
            yield from _ONE_NAME.findall(item)
        elif isinstance(item, ir_measures.Measure):
            yield item
        else:
            raise MeasureError(f"{item!r} is not a measure: give names such as 'SRE@3' or measure objects")


def parse_measure(name: str, *, complete: bool = True, rel: float | None = None) -> ir_measures.Measure:
    """Return the measure with a name such as `SRE(rel=3)@5`. Upper or lower case matters only if it distinguishes two measures.

    `complete` and `rel` are as in `parse_measures`. A wrong name, parameter or value raises `MeasureError`.
    """
    text = name.strip()
    registry = _known_names()
    if text.partition("@")[0].lower() not in map(str.lower, registry):
        refuse_name_elsewhere(text)
    bare = re.split(r"[@(]", text)[0]
    if re.fullmatch(r"[^\W\d]\w*(?:[-^]\w+)+", bare):  # alpha-nDCG: Python would subtract
        raise MeasureError(f"{bare} is not a measure; {suggest_name(bare, registry)}")
    if _RANGE.fullmatch(text):
        raise MeasureError(f"{name!r} stands for several measures, one for each cutoff; name one of them")

    bare, params, cutoff = _split_name(name, text)
    measure = _find_measure(bare, text[len(bare) :], registry)
    if "beta" in params and bare.lower() in READ_AS and not _find_spellings(bare, registry):
        raise MeasureError(f"{name!r}: the name {bare} has its own beta; write F(beta={params['beta']!r}), and then @")
    if cutoff is not None:
        at = measure.AT_PARAM
        if at in params:
            raise MeasureError(f"{name!r}: the parameter {at} is given twice, by name and after @; write it once")
        params[at] = cutoff

    try:
        parsed: ir_measures.Measure = measure(**params)
    except TypeError as error:
        raise MeasureError(f"{name!r}: {error}; {_FORM}") from None
    return _finish(parsed, complete=complete, rel=rel)


def _split_name(name: str, text: str) -> tuple[str, dict[str, Any], Any]:
    """Return three parts of a measure's name: `SRE`, `{"rel": 3}` and 5 for `SRE(rel=3)@5`. Without @, the last part is None.

    `text` is the name without white space around it.
    """
    params: dict[str, Any] = {}
    cutoff: Any = None

    try:
        node: ast.expr = ast.parse(text, mode="eval").body
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            cutoff = _read_cutoff(name, node.right)
            node = node.left
        if isinstance(node, ast.Call):
            params = _read_brackets(name, node)
            node = node.func
        if not isinstance(node, ast.Name):
            raise MeasureError(f"{name!r} is not the name of a measure; {_FORM}")
    except MeasureError:  # its message says more
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # of `ast`, for text that is not Python, not a literal, or nested too deeply
        raise MeasureError(f"{name!r} is not the name of a measure; {_FORM}") from None
    return node.id, params, cutoff


def _read_cutoff(name: str, node: ast.expr) -> Any:
    """Return the number after @. Error messages repeat `name`."""
    if isinstance(node, ast.Name):
        raise MeasureError(f"{name!r}: {node.id} is not a number. Write a number after @, such as @3")
    cutoff = ast.literal_eval(node)
    if cutoff is None:
        raise MeasureError(f"{name!r}: None is not a cutoff; write a number after @, or leave out the @")
    return cutoff


def _read_brackets(name: str, node: ast.Call) -> dict[str, Any]:
    """Return the parameters in brackets, such as `{"rel": 3}`. Error messages repeat `name`."""
    if node.args:
        raise MeasureError(f"{name!r}: a value has no parameter name; {_FORM}")
    parameters = [str(keyword.arg) for keyword in node.keywords]
    for parameter in parameters:
        if parameters.count(parameter) > 1:
            raise MeasureError(f"{name!r}: the parameter {parameter} is given twice; write it once")
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}


def parse_if_measure(name: Any) -> ir_measures.Measure | None:
    """Return the measure called `name`, which may lack a required cutoff; None if there is no such measure."""
    try:
        return parse_measure(name, complete=False) if isinstance(name, str) else None
    except MeasureError:
        return None


def parse_inner(measure: SessionMeasure) -> ir_measures.Measure:
    """Return the measure that the parameter `measure` names. If this name has no `rel`, it takes the `rel` of the outer measure."""
    name = read_parameters(measure)["measure"]
    return parse_measure(name, complete=False, rel=measure.params.get("rel"))


def _known_names() -> dict[str, ir_measures.Measure]:
    """Map every known name to its measure. If goodgain and another package use one name, the name means goodgain's measure."""
    registry: dict[str, ir_measures.Measure] = ir_measures.measures.registry
    declared = {name: facts.measure for name, facts in DECLARATIONS.items() if facts.in_ir_measures is None}
    return {**registry, **declared}


def _find_spellings(name: str, registry: Mapping[str, ir_measures.Measure]) -> list[str]:
    """Return `name` if the registry has it, else the names in the registry that differ only in upper and lower case."""
    if name in registry:
        return [name]
    return [spelling for spelling in registry if spelling.lower() == name.lower()]


def _find_measure(name: str, rest: str, registry: Mapping[str, ir_measures.Measure]) -> ir_measures.Measure:
    """Return the measure called `name`. Error messages repeat `rest`, the text after the name, such as `@10`."""
    spellings = _find_spellings(name, registry)
    distinct = {id(registry[spelling]) for spelling in spellings}
    if len(distinct) == 1:
        measure = registry[spellings[0]]
        declared = find_declaration(measure)
        # a name such as NumRelRet stands for NumRet(rel=1), so its parameters stay
        return measure if declared is None or measure.params else declared.measure

    if name.upper() == "DCG":
        raise MeasureError(
            f"{name} is ambiguous; write DCGG{rest} for DCG of the good-gain guideline, with @ in iterations, or "
            f"RankDCG{rest} for classic DCG, with @ in ranks"
        )
    if spellings:
        raise MeasureError(f"{name} is ambiguous; write {' or '.join(spellings)}")
    if name.lower() in READ_AS:
        return parse_measure(READ_AS[name.lower()], complete=False)
    raise MeasureError(f"{name} is not a measure; {suggest_name(name, registry)}")


def _simplify(measure: ir_measures.Measure) -> ir_measures.Measure:
    """Return the normal form of a measure: a whole number becomes a float if ir_measures declares the parameter as a float.

    `ir_measures.nDCG(ideal="ranking")`, with a parameter that only goodgain knows, becomes a measure of goodgain.
    """
    if isinstance(measure, IterationMeasure):
        return measure
    declared = find_declaration(measure)
    if declared is not None:
        has_own = bool(declared.own.keys() & measure.params.keys())
        if has_own or isinstance(measure, RankedMeasure):
            normal: ir_measures.Measure = declared.measure(**measure.params)
            return normal if isinstance(normal, RankedMeasure) else _simplify(normal)

    floats = {}
    for name, value in measure.params.items():
        info = measure.SUPPORTED_PARAMS.get(name)
        if info is not None and info.dtype is float and type(value) is int:
            floats[name] = float(value)
    return measure(**floats) if floats else measure


def _finish(measure: ir_measures.Measure, *, complete: bool, rel: float | None) -> ir_measures.Measure:
    """Return the checked normal form of a measure. `rel` is as in `parse_measures`."""
    normal = _simplify(measure)
    if rel is not None:
        check_rel(rel)
    uses_rel = isinstance(normal, IterationMeasure) and normal.declaration.uses_rel
    if rel is not None and uses_rel and not _sets_inner_rel(normal):
        normal = normal(**{"rel": rel, **normal.params})

    if complete and isinstance(normal, (IterationMeasure, RankedMeasure)):
        normal.validate_params()
    elif complete and not is_computed_here(normal):  # goodgain allows more values than providers, such as any rel
        if (declared := find_declaration(normal)) is not None:
            check_given(normal, declared.find_rule)
        check_parameters(normal)
    return normal


def _sets_inner_rel(measure: ir_measures.Measure) -> bool:
    """Return whether the parameter `measure` sets `rel`, as in `AreaOver(measure='nCG(rel=1)',budget=3)`."""
    try:
        return isinstance(measure, SessionMeasure) and measure.inner is not None and "rel" in measure.inner.params
    except MeasureError:
        return False  # `validate_params` refuses the name


#: A name: no white space or comma outside brackets and quotes. `parse_measure` reports an open bracket or quote.
_ONE_NAME = re.compile(
    r"""(?: [^\s,('"] | '[^']*' | "[^"]*" | \( (?: [^()'"] | '[^']*' | "[^"]*" | \([^()]*\) )* \) | [('"].* )+""",
    re.DOTALL | re.VERBOSE,
)
_RANGE = re.compile(r"(?P<name>.*)@\s*(?P<first>[0-9]{1,12})-(?P<last>[0-9]{1,12})", re.DOTALL)
_MOST_OF_RANGE = 1_000


def _expand_range(name: str) -> list[str]:
    """Return a list of the names in a range such as `CG@1-3` or `P@1-10`; any other name is the only item of the list.

    >>> _expand_range("CG@1-3"), _expand_range("CG@3")
    (['CG@1', 'CG@2', 'CG@3'], ['CG@3'])
    """
    match = _RANGE.fullmatch(name.strip())
    if match is None:
        return [name]
    first, last = int(match["first"]), int(match["last"])
    if not first <= last < first + _MOST_OF_RANGE:
        raise MeasureError(
            f"{name!r}: write a range of at most {_MOST_OF_RANGE:,} cutoffs, from a cutoff to a later one, such as CG@1-3"
        )
    names = [f"{match['name']}@{cutoff}" for cutoff in range(first, last + 1)]

    measure = parse_measure(names[0])
    if measure.AT_PARAM != "cutoff":
        raise MeasureError(
            f"{name!r}: only cutoffs take a range, and {measure.NAME} has the {measure.AT_PARAM} after @"
        )
    return names
