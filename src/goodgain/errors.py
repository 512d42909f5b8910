"""Defines the exceptions and notices of goodgain, and reports the progress of long tasks."""

from __future__ import annotations

import importlib
import re
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

#: Folders of code that is not the user's: this package, Python's library and installed packages.
_NOT_THE_USERS = (
    str(Path(__file__).parent),
    "<frozen ",
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)
#: The most characters of a message.
_LONGEST = 1600


class GoodgainError(Exception):
    """The base class of the errors of goodgain: the message says in one line what is wrong, where, and what to do.

    >>> import goodgain as gg
    >>> issubclass(gg.InputError, gg.GoodgainError), issubclass(gg.MeasureError, gg.GoodgainError)
    (True, True)
    """

    #: The exit status of the command for wrong input or arguments.
    exit_status = 2

    def __str__(self) -> str:
        text = " ".join(super().__str__().splitlines())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} [...] {text[-_LONGEST // 2 :]}"


class InputError(GoodgainError, ValueError):
    """A run, qrels, trace or argument is wrong.

    >>> import goodgain as gg
    >>> gg.read_run("missing.run")
    Traceback (most recent call last):
        ...
    goodgain.errors.InputError: 'missing.run': no such file; give the path of a readable file
    """


class MeasureError(GoodgainError, ValueError):
    """A measure does not exist, or has wrong parameters.

    >>> import goodgain as gg
    >>> gg.evaluate({"q": {"a": 2}}, {"q": {"a": 1.0}}, "nCDG@10")
    Traceback (most recent call last):
        ...
    goodgain.errors.MeasureError: nCDG is not a measure; did you mean nCG or nDCG?
    """


class GoodgainNotice(UserWarning):
    """A warning that comes with a correct result, and tells the user what to know about this result.

    `text` is the message without the name of the run. A `minor` notice does not change the meaning of the numbers; the
    command line shows minor notices only on request. For calls with several systems, `of_several` is a pair: the message
    that all systems share, and the figures of this run.

    >>> import warnings
    >>> import goodgain as gg
    >>> with warnings.catch_warnings(action="error", category=gg.GoodgainNotice):
    ...     gg.evaluate({"q": {"a": 2}}, {"q": {"a": 1.0}}, "SRE")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    goodgain.errors.GoodgainNotice: no iterations in this run: ...
    """

    def __init__(
        self, text: str, about: str | None = None, *, minor: bool = False, of_several: tuple[str, str] | None = None
    ) -> None:
        super().__init__(f"{about}: {text}" if about else text)
        self.text = text
        self.minor = minor
        self.of_several = of_several


#: Receives notices instead of `warnings`; each thread and task has its own collector.
_collector: ContextVar[Callable[[GoodgainNotice], None] | None] = ContextVar("_collector", default=None)


def notice(
    text: str, *, about: str | None = None, minor: bool = False, of_several: tuple[str, str] | None = None
) -> None:
    """Warn with a `GoodgainNotice` that points at a line of the user's code, not at a line of an installed package.

    The message begins with `about`, the name of the run. A notice about several systems contains the names of the systems.
    """
    made, collect = GoodgainNotice(text, about, minor=minor, of_several=of_several), _collector.get()
    if collect is not None:
        collect(made)
        return
    depth = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
        depth += 1
    warnings.warn(made, stacklevel=depth)


@contextmanager
def _set(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def collect_notices(collect: Callable[[GoodgainNotice], None]) -> AbstractContextManager[None]:
    """Pass each notice given inside a `with` block to the function `collect`, instead of showing it as a warning."""
    return _set(_collector, collect)


#: Called with the name of the task, the amount done, and the total amount; None if the total is unknown.
Progress = Callable[[str, int, int | None], None]
_progress: ContextVar[Progress | None] = ContextVar("_progress", default=None)


def tell_progress(what: str, done: int, total: int | None) -> None:
    """Report the progress of a long task to the function that `collect_progress` has set."""
    if (collect := _progress.get()) is not None:
        collect(what, done, total)


def collect_progress(collect: Progress) -> AbstractContextManager[None]:
    """Inside a `with` block, pass reports of progress to the function `collect`."""
    return _set(_progress, collect)


class NoticesOfSystems:
    """Joins equal notices about several systems into one notice with the names of the systems.

    Notices about a run without a name stay unchanged. The class is not a `contextmanager`, because the
    notices that `__exit__` gives must point at the line of the user's code.
    """

    def __init__(self) -> None:
        self._concerned: dict[str, dict[str, GoodgainNotice]] = {}

    @contextmanager
    def of(self, name: str = "") -> Iterator[None]:
        """Assign each notice given inside a `with` block to the system with this name."""

        def take(given: GoodgainNotice) -> None:
            text = given.of_several[0] if given.of_several else given.text if name else str(given)
            self._concerned.setdefault(text, {})[name] = given

        with collect_notices(take):
            yield

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(_name_systems(text, given) for text, given in self._concerned.items())

    def __enter__(self) -> NoticesOfSystems:
        return self

    def __exit__(self, *exception: Any) -> None:
        for given, shown in zip(self._concerned.values(), self.texts, strict=True):
            notice(shown, minor=all(one.minor for one in given.values()))


def _name_systems(text: str, given: dict[str, GoodgainNotice]) -> str:
    first = next(iter(given.values()))
    if first.of_several is None or len({one.text for one in given.values()}) == 1:
        listed = ", ".join(given)
        return f"{listed}: {first.text if listed else first}" if listed else str(first)
    of_systems: dict[str, list[str]] = {}
    for name, one in given.items():
        of_run = re.fullmatch(r"(?:(?P<system>.*) \()?(?P<run>run \d+)\)?", name, re.DOTALL)
        system, run = of_run.group("system", "run") if of_run else (name, None)
        figures = one.of_several[1] if one.of_several else ""
        of_systems.setdefault(system or "", []).append(f"{run} {figures}" if run else figures)
    return "\n  ".join([text, *(f"{name}: {'; '.join(of)}".removeprefix(": ") for name, of in of_systems.items())])


def import_extra(module: str, extra: str) -> Any:
    """Import a module that `pip install goodgain[extra]` installs; raise `InputError` if the module is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        package = module.partition(".")[0]
        raise InputError(f'{package} is not installed: pip install "goodgain[{extra}]"') from None


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Return a number followed by its noun, in the singular or the plural (by default, the noun with an s).

    >>> count_of(1, "query", "queries"), count_of(2000, "label")
    ('1 query', '2,000 labels')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
