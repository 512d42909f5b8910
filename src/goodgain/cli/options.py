"""Arguments, options and the form of examples that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from goodgain.comparing.grids import PLACES
from goodgain.errors import InputError
from goodgain.ranking.first_occurrences import ORDERS
from goodgain.reporting.plots.pictures import check_picture_name

__all__ = [
    "columns_option",
    "errors_option",
    "gaps_options",
    "labels_option",
    "make_epilog",
    "order_option",
    "output_format_option",
    "places_option",
    "plot_option",
    "qrels_argument",
    "rel_option",
    "run_argument",
    "spreadsheet_option",
]

Command = Callable[..., None]

qrels_argument = click.argument("qrels", metavar="QRELS")
run_argument = click.argument("run", metavar="RUN")
order_option = click.option(
    "--order",
    type=click.Choice(ORDERS),
    default="seen",
    show_default=True,
    help="How classic measures get one ranking from several iterations.",
)
rel_option = click.option(
    "--rel",
    type=float,
    metavar="LABEL",
    help="The smallest good label, for measures of ours that name none: 1 where labels are 0 and 1.  [default: 2]",
)
labels_option = click.option(
    "--labels", type=click.Choice(["iteration"]), help="Read column 2 of the qrels as the iteration a label holds for."
)
errors_option = click.option(
    "--errors",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    help="Bad lines: stop at the first, or leave them out.",
)


spreadsheet_option = click.option(
    "--spreadsheet",
    is_flag=True,
    help="In CSV, write ' before texts that a spreadsheet would take for formulas: those that begin with = + - @.",
)


def make_epilog(*examples: str) -> str:
    """Return the end of a command's help: examples that run in a checkout, one a line.

    click would join and wrap the lines without the sign \\b.
    """
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def _parse_columns(_context: click.Context, _option: click.Parameter, value: str | None) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in value.split(",")] if value else []
    if not all(sign and name and ours for name, sign, ours in pairs):
        raise InputError(f"--columns {value}: write NAME=COLUMN, and several with commas: step=iteration,qid=query_id")
    return {name.strip(): ours.strip() for name, _, ours in pairs}


columns_option = click.option(
    "--columns",
    metavar="NAME=COLUMN,...",
    callback=_parse_columns,
    help="Names of columns in Parquet, Arrow, JSON Lines, CSV or TSV: step=iteration,qid=query_id.",
)


def _parse_plot(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    if value is not None:
        check_picture_name(value)
    return value


plot_option = click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_parse_plot,
    help="Draw it too, into a .png, .svg or .pdf file.",
)


def gaps_options(command: Command) -> Command:
    """Add the options that say how iteration numbers of a run are read."""
    first = click.option(
        "--first", type=int, default=1, show_default=True, help="Number of a first iteration, for --gaps empty."
    )
    gaps = click.option(
        "--gaps",
        type=click.Choice(["close", "empty"]),
        default="close",
        show_default=True,
        help="A missing iteration number: count on without it, or count it as a search that got nothing.",
    )
    return gaps(first(command))


def places_option(described: str) -> Callable[[Command], Command]:
    """Return the option of the number of decimals, with its help."""
    return click.option("-p", "--places", type=click.IntRange(*PLACES), default=4, show_default=True, help=described)


def output_format_option(*forms: str) -> Callable[[Command], Command]:
    """Return the option of the form of the output: by default the first on a terminal, the second elsewhere."""
    return click.option(
        "-o",
        "--output_format",
        type=click.Choice(forms),
        help=f"Default: {forms[0]} on a terminal, else {forms[1]}.",
        callback=lambda _context, _option, value: value or forms[0 if sys.stdout.isatty() else 1],
    )
