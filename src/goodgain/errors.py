"""Defines the exceptions and notices of goodgain, and reports the progress of long tasks."""

from __future__ import annotations

import importlib
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

#: Folders of code that is not the user's: this package, Python's library and installed packages.
_NOT_THE_USERS = (
    str(Path(__file__).parent),
    "<frozen ",
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)
#: The most characters of a message.
_LONGEST = 1600


def escape_controls(text: str, *, keep: str = "") -> str:
    r"""Escape control characters as `repr` does, including those that change the direction of text.

    >>> print(escape_controls("\x1b[31mred\u202e"))
    \x1b[31mred\u202e
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in keep else repr(sign)[1:-1] for sign in text)


class GoodgainError(Exception):
    """The base class of the errors of goodgain: the message says in one line what is wrong, where, and what to do.

    >>> import goodgain as gg
    >>> issubclass(gg.InputError, gg.GoodgainError), issubclass(gg.MeasureError, gg.GoodgainError)
    (True, True)
    """

    #: The exit status of the command for wrong input or arguments.
    exit_status = 2

    def __str__(self) -> str:
        text = escape_controls(" ".join(super().__str__().splitlines()))
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


class Subject(NamedTuple):
    """The system that a notice is about, and the number of its run. The number is 0 if the system has a single run.

    >>> str(Subject("agent")), str(Subject("agent", 2)), str(Subject("", 2))
    ('agent', 'agent (run 2)', 'run 2')
    """

    system: str = ""
    run: int = 0

    def __str__(self) -> str:
        if not self.run:
            return self.system
        return f"{self.system} (run {self.run})" if self.system else f"run {self.run}"


class OfSeveral(NamedTuple):
    """How notices about several systems are joined: the rule is said once, the figures for each system.

    Without figures, the rule follows the names of the systems.
    """

    rule: str
    figures: str = ""
    brief: str = ""  # the figures if there are many systems
    system: str = ""  # the system, if the text of the notice names it

    def choose_figures(self, *, are_many: bool) -> str:
        return self.brief if are_many and self.brief else self.figures


class GoodgainNotice(UserWarning):
    """A warning that comes with a correct result, and tells the user what to know about this result.

    `kind` names the fact, such as `low_coverage`; docs/reference/notices.md lists the kinds. `text` is the message without
    the name of the system. A `minor` notice does not change the meaning of the numbers; the command line shows minor notices
    only on request. `subject` is the system that the notice is about, if the call has several. For such calls, `of_several`
    has the message that all systems share, and the figures of this system.

    >>> import warnings
    >>> import goodgain as gg
    >>> with warnings.catch_warnings(action="error", category=gg.GoodgainNotice):
    ...     gg.evaluate({"q": {"a": 2}}, {"q": {"a": 1.0}}, "SRE")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    goodgain.errors.GoodgainNotice: no iterations in this run: ...
    """

    def __init__(
        self,
        kind: str,
        text: str,
        about: str | None = None,
        *,
        subject: Subject = Subject(),  # noqa: B008  # a tuple, which does not change
        minor: bool = False,
        of_several: OfSeveral | None = None,
    ) -> None:
        name = str(subject) or about
        super().__init__(escape_controls(f"{name}: {text}" if name else text, keep="\n"))
        self.kind = kind
        self.text = text
        self.about = about
        self.subject = subject
        self.minor = minor
        self.of_several = of_several

    def __reduce__(self) -> tuple[Any, ...]:
        options: dict[str, Any] = {"subject": self.subject, "minor": self.minor, "of_several": self.of_several}
        return partial(GoodgainNotice, **options), (self.kind, self.text, self.about)


#: The kinds of notices that explain values of 0 and verdicts. They are given first.
REASONS = ("no_good_label",)
Collect = Callable[[GoodgainNotice], None]
#: Receives notices instead of `warnings`; each thread and task has its own collector.
_collector: ContextVar[Collect | None] = ContextVar("_collector", default=None)
#: The system that a new notice is about.
_subject: ContextVar[Subject] = ContextVar("_subject", default=Subject())  # noqa: B039  # a tuple, which does not change


def notice(
    kind: str,
    text: str,
    *,
    about: str | None = None,
    minor: bool = False,
    of_several: OfSeveral | None = None,
) -> None:
    """Give a `GoodgainNotice`. Its message begins with the system of `notices_about`, else with `about`, the name of a run."""
    give(GoodgainNotice(kind, text, about, subject=_subject.get(), minor=minor, of_several=of_several))


def give(warning: GoodgainNotice) -> None:
    """Pass a notice to the collector, else warn. The warning points at the user's code, not at an installed package."""
    collect = _collector.get()
    if collect is not None:
        collect(warning)
        return

    depth = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
        depth += 1
    warnings.warn(warning, stacklevel=depth)


@contextmanager
def _set(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def collect_notices(collect: Collect) -> AbstractContextManager[None]:
    """Pass each notice given inside a `with` block to the function `collect`, instead of showing it as a warning."""
    return _set(_collector, collect)


def notices_about(subject: Subject) -> AbstractContextManager[None]:
    """Say that the notices given inside a `with` block are about a system."""
    return _set(_subject, subject)


@contextmanager
def without_notices(*kinds: str) -> Iterator[None]:
    """Drop the notices of some kinds inside a `with` block. Without `kinds`, drop all notices."""
    outer = _collector.get()

    def collect(warning: GoodgainNotice) -> None:
        if kinds and warning.kind not in kinds:
            with _set(_collector, outer):
                give(warning)

    with collect_notices(collect):
        yield


@contextmanager
def joined_notices() -> Iterator[None]:
    """Hold the notices of a `with` block back, and give them at its end. Equal notices about several systems become one."""
    collected: list[GoodgainNotice] = []
    try:
        with collect_notices(collected.append):
            yield
    finally:
        for joined in join_notices(collected):
            give(joined)


#: Up to this number, each system of a joined notice has a line. More systems share one line.
_MOST_LINES = 3


def join_notices(notices: Iterable[GoodgainNotice]) -> list[GoodgainNotice]:
    """Join equal notices about several systems into one notice with the names of the systems."""
    # shared text -> subject -> notice
    groups: dict[str, dict[str, GoodgainNotice]] = {}
    for warning in notices:
        subject = str(warning.subject)
        if warning.of_several:
            shared = warning.of_several.rule
            subject = warning.of_several.system or subject
        elif subject:
            shared = warning.text
        else:
            shared = str(warning)
        groups.setdefault(shared, {})[subject] = warning

    joined: list[GoodgainNotice] = []
    for shared, by_subject in groups.items():
        first = next(iter(by_subject.values()))
        if first.of_several and first.of_several.system and len(by_subject) <= _MOST_LINES:
            joined += by_subject.values()
            continue
        minor = all(warning.minor for warning in by_subject.values())
        joined.append(GoodgainNotice(first.kind, _name_systems(shared, by_subject), minor=minor))
    return joined


def _name_systems(shared: str, by_subject: dict[str, GoodgainNotice]) -> str:
    first = next(iter(by_subject.values()))
    texts = {warning.text for warning in by_subject.values()}
    subjects = ", ".join(by_subject)
    if len(by_subject) > 1 and first.of_several and not first.of_several.figures:
        return f"{subjects}: {shared}"
    if first.of_several is None or len(texts) == 1:
        return f"{subjects}: {first.text}" if subjects else str(first)

    are_many = len(by_subject) > _MOST_LINES
    figures_of: dict[str, list[str]] = {}  # system -> the figures of each of its runs
    for warning in by_subject.values():
        system, run = warning.subject
        figures = ""
        if warning.of_several:
            figures = warning.of_several.choose_figures(are_many=are_many)
            system = warning.of_several.system or system
        figures_of.setdefault(system, []).append(f"run {run} {figures}" if run else figures)
    if are_many:
        systems = [f"{system} {', '.join(figures)}".lstrip() for system, figures in figures_of.items()]
        return f"{shared}\n  {'; '.join(systems)}"

    lines = [shared]
    for system, figures_of_runs in figures_of.items():
        joined = "; ".join(figures_of_runs)
        lines.append(f"{system}: {joined}" if system else joined)
    return "\n  ".join(lines)


#: Called with the name of the task, the amount done, and the total amount; None if the total is unknown.
Progress = Callable[[str, int, int | None], None]
_progress: ContextVar[Progress | None] = ContextVar("_progress", default=None)
#: Receives progress outside of `collect_progress`: in a notebook, a function that shows it.
progress_of_notebook: list[Progress] = []


def tell_progress(task: str, done: int, total: int | None) -> None:
    """Report the progress of a long task to the function that `collect_progress` has set, else to the notebook."""
    collect = _progress.get()
    if collect is not None:
        collect(task, done, total)
        return
    for show in progress_of_notebook:
        show(task, done, total)


def collect_progress(collect: Progress) -> AbstractContextManager[None]:
    """Inside a `with` block, pass reports of progress to the function `collect`."""
    return _set(_progress, collect)


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
