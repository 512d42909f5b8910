"""Shows notices, with options instead of Python arguments and minor ones on request, and how far long work is."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

import click

from goodgain.cli.printed_tables import open_console
from goodgain.errors import GoodgainNotice, Progress, collect_notices, collect_progress, notice, tell_progress
from goodgain.files.escaping import escape_controls

#: Seconds of work without a bar.
_AFTER = 2.0
#: Arguments whose option has another name.
_OTHERWISE = {"retry_failed=True": "--retry failed", "deduplicate=None": "--dedup none", "deduplicate=": "--dedup"}
#: An argument in a message, such as bounds=True, labels='iteration' or columns=, but not inside the name of a measure.
_ARGUMENT = re.compile(
    r"(?:^|(?<=\s)|(?<=\s\())(?P<name>[a-z_]+)="
    r"(?P<value>\{[^}]*\}|\[[^\]]*\]|'[^']*'|\"[^\"]*\"|True|False|None|-?[0-9]+(?:\.[0-9]+)?|)(?=[\s,;:.)]|$)"
)


def name_options(text: str, command: click.Command) -> str:
    """Replace each Python argument in a message by the option of a command or its subcommands.

    >>> name_options("read it with labels='iteration'", click.Command("evaluate", params=[click.Option(["--labels"])]))
    'read it with --labels iteration'
    """

    def write(found: re.Match[str]) -> str:
        argument = found[0]
        if argument in _OTHERWISE:
            return _OTHERWISE[argument]
        option = _find_options(command).get(found["name"])
        return argument if option is None else _write_option(option, found["value"])

    return _ARGUMENT.sub(write, text)


def _write_option(option: click.Option, value: str) -> str:
    if value == "False" and option.secondary_opts:
        return option.secondary_opts[0]
    flag = max(option.opts, key=len).replace("_", "-")
    if value in ("", "True", "False"):
        return flag
    value = value.lower() if value == "None" else value
    return f"{flag} {value.strip('{}[]').replace(': ', '=').replace(', ', ',').translate(_NO_QUOTES)}"


_NO_QUOTES = str.maketrans("", "", "'\"")


def _find_options(command: click.Command) -> dict[str, click.Option]:
    found = {option.name or "": option for option in command.params if isinstance(option, click.Option)}
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        found |= _find_options(subcommand)
    return found


def show_notices(command: click.Command) -> None:
    """From here on, print each notice once on standard error with the options of a command, and no other warning."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if str(message) not in shown and issubclass(category, GoodgainNotice):
            shown.add(str(message))
            print(f"notice: {name_options(str(message), command)}", file=sys.stderr)

    warnings.showwarning = show
    warnings.simplefilter("always", GoodgainNotice)


@contextmanager
def notices_after_output(*, full: bool) -> Iterator[None]:
    """Hold notices back until a command has printed its output; without `full`, only count the minor ones."""
    given: dict[str, GoodgainNotice] = {}
    try:
        with collect_notices(lambda one: given.update({str(one): one})):
            yield
    finally:
        sys.stdout.flush()
        minor = [text for text, one in given.items() if one.minor and not full]
        for text, one in given.items():
            if text not in minor:
                warnings.warn(one, stacklevel=2)
        if minor:
            print(f"{len(minor)} more notice{'s' * (len(minor) != 1)}: --full", file=sys.stderr)


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show what `tell_progress` tells inside a `with`, if it takes over two seconds; remove it afterwards.

    Yields a function to tell it by, for other threads. The bar needs a terminal as standard error. Do not print inside the
    `with`; notices wait until the bar is gone.
    """
    console = open_console(sys.stderr) if sys.stderr.isatty() else None
    if console is None or not console.is_interactive:
        yield tell_progress
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    bar = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    bar.add_task("working", total=None)
    (task,) = bar.tasks

    def tell(what: str, done: int, total: int | None) -> None:
        share = f" {done / total:.0%}" if total else ""
        task.description, task.completed, task.total = escape_controls(what) + share, done, total

    held: list[GoodgainNotice] = []
    start = Timer(_AFTER, bar.start)
    start.daemon = True
    start.start()
    try:
        with collect_notices(held.append), collect_progress(tell):
            yield tell
    finally:
        start.cancel()
        start.join()
        bar.stop()
        for one in held:
            notice(str(one), minor=one.minor)
