"""The options that public functions share, with types for editors. Defaults and descriptions are those of `goodgain.options`."""

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar, get_args, get_type_hints

from goodgain.argument_kinds import refuse_wrong_kinds
from goodgain.formats.any_source import Columns
from goodgain.options import OPTIONS

P = ParamSpec("P")
T = TypeVar("T")
#: The default measures of a report.
OF_REPORTS = "nDCG@10 nCG nDCGG SRR"
#: The page of the reference that describes each option.
OPTIONS_PAGE = "docs/reference/options.md"
_WIDTH = 114  # characters of a docstring's line


class ReadingOptions(TypedDict, total=False):
    gaps: str
    first: int
    labels: str | None
    columns: Columns | None
    errors: str
    only: Any
    page: int | Mapping[str, int] | None
    documents: Any
    documents_of: str
    chunks: str
    leave_out: str | None
    urls: str


class CountingOptions(ReadingOptions, total=False):
    rel: float | None


class ExplainOptions(CountingOptions, total=False):
    missing: str
    incomplete: str


class RankingOptions(CountingOptions, total=False):
    order: str


class ReportOptions(RankingOptions, total=False):
    provider: str | None


class StatisticsOptions(TypedDict, total=False):
    seed: int
    resamples: int
    alpha: float


class CurveOptions(CountingOptions, StatisticsOptions, total=False):
    """The options of `curve` and `spend`."""


class ScoresOptions(ReportOptions, StatisticsOptions, total=False):
    missing: str
    no_good: str
    bounds: bool
    results: Any
    costs: Any
    lengths: Any


class ExperimentOptions(ScoresOptions, total=False):
    incomplete: str
    correction: str
    correct_over: str


def takes_options(function: Callable[P, T]) -> Callable[P, T]:
    """Replace `**options` by single options in the signature, and `{options}` by their names in the docstring.

    Annotate `**options` with a class of this module. A call with another option raises `TypeError`.
    """
    hints = get_type_hints(function)
    types = get_type_hints(get_args(hints["options"])[0])
    declared = inspect.signature(function)

    parameters = []
    for name, parameter in declared.parameters.items():
        if name != "options":
            parameters.append(parameter.replace(annotation=hints.get(name, parameter.annotation)))
    for name, annotation in types.items():
        default = OPTIONS[name].default
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    signature = declared.replace(parameters=parameters, return_annotation=hints.get("return"))

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}(): {error}") from None
        with refuse_wrong_kinds(function, signature, args, kwargs):
            return function(*args, **kwargs)

    call.__doc__ = name_options(function.__doc__ or "", types)
    call.__signature__ = signature  # type: ignore[attr-defined]  # editors and help() read it
    return call


def name_options(docstring: str, names: Iterable[str]) -> str:
    """Replace `{options}` in a docstring by the names of the options, and the page that describes them."""
    # The colon must stand on the first line: readers of docstrings take what is before it for the name.
    listed = f"**options: options that analyses share ({', '.join(names)}). {OPTIONS_PAGE} describes them."
    entry = textwrap.fill(listed, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
    return inspect.cleandoc(docstring).replace("    {options}", entry)  # Python 3.13 has it clean already
