"""The options that public functions share, with types for editors. Defaults and descriptions are those of `goodgain.options`."""

import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar, get_args, get_type_hints

from goodgain.formats.any_source import Columns
from goodgain.options import OPTIONS

P = ParamSpec("P")
T = TypeVar("T")
#: The default measures of a report.
OF_REPORTS = "nDCG@10 nCG nDCGG SRR"
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
    bounds: bool
    results: Any
    costs: Any


class ExperimentOptions(ScoresOptions, total=False):
    incomplete: str


def takes_options(function: Callable[P, T]) -> Callable[P, T]:
    """Replace `**options` by single options in the signature, and `{options}` by their descriptions in the docstring.

    Annotate `**options` with a class of this module. A call with another option raises `TypeError`.
    """
    hints = get_type_hints(function)
    kinds = get_type_hints(get_args(hints["options"])[0])
    given = inspect.signature(function)
    own = [
        one.replace(annotation=hints.get(name, one.annotation))
        for name, one in given.parameters.items()
        if name != "options"
    ]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=OPTIONS[name].default, annotation=kind)
        for name, kind in kinds.items()
    ]
    signature = given.replace(parameters=[*own, *shared], return_annotation=hints.get("return"))

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}(): {error}") from None
        return function(*args, **kwargs)

    call.__doc__ = describe_options(function.__doc__ or "", kinds)
    call.__signature__ = signature  # type: ignore[attr-defined]  # editors and help() read it
    return call


def describe_options(docstring: str, names: Any) -> str:
    """Replace `{options}` in a docstring by the descriptions of the options in `names`."""
    entries = [
        textwrap.fill(f"{name}: {OPTIONS[name].said}", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for name in names
    ]
    return inspect.cleandoc(docstring).replace("    {options}", "\n".join(entries))  # Python 3.13 has it clean already
