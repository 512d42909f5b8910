"""The command compare: reads the runs, prints the comparison, and checks the required lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from goodgain.cli.options import places_option, plot_option, rel_option
from goodgain.cli.streams import open_console
from goodgain.cli.systems import Reading, bounds_option, check_plot, open_systems, rows_option, runs_argument
from goodgain.cli.tables import format_signature
from goodgain.comparing.comparison import Comparison, compare
from goodgain.comparing.gate import Requirement, check_requirements, forbids_improvement, parse_requirement
from goodgain.comparing.grids import Layout
from goodgain.comparing.tables import render_on_terminal
from goodgain.errors import InputError, notice
from goodgain.measures.ranked import find_direction
from goodgain.reporting.plots.pictures import draw_comparison, write_picture

__all__ = ["REQUIREMENT_FAILED", "compare_files", "compare_options"]

#: Exit status where a required line does not hold.
REQUIREMENT_FAILED = 3

Command = Callable[..., None]

_REQUIRE = (
    "A line such as 'SRR@3<=0.3' or 'SRE@3>=baseline' that every system but the baseline must hold, else exit status "
    "3. Where a line names the baseline and --baseline does not, it is the system called baseline, or else the first."
)


def compare_options(command: Command) -> Command:
    """Add the arguments and options that only the command compare has."""
    count = click.IntRange(1)
    options: list[Callable[[Command], Command]] = [
        click.argument("qrels", metavar="QRELS"),
        runs_argument,
        click.option(
            "-m", "--measure", "measures", multiple=True, help="A measure, or several: -m nDCG@10 -m 'SRE@3 SRR@3'."
        ),
        rel_option,
        click.option("--baseline", metavar="SYSTEM", help="Compare all others with this system; default: all pairs."),
        click.option(
            "--against", type=click.Choice(["previous"]), help="Compare each system with the one given before it alone."
        ),
        click.option("--iterations", type=count, help="Compare ours named without @ at each iteration up to this too."),
        click.option("--require", "required", metavar="LINE", multiple=True, help=_REQUIRE),
        click.option(
            "--seed", type=int, default=42, show_default=True, help="Seed of randomisation test and bootstrap."
        ),
        click.option("--resamples", type=count, default=9_999, show_default=True, help="Number of resamples in both."),
        click.option("--alpha", type=float, default=0.05, show_default=True, help="The largest p that is significant."),
        places_option("Decimals in markdown and latex."),
        rows_option,
        plot_option,
        bounds_option,
        click.option("--provider", help="The provider of ir_measures for the classic measures."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def compare_files(
    qrels: str,
    runs: Sequence[str],
    *,
    measures: Sequence[str],
    required: Sequence[str],
    rel: float | None,
    baseline: str | None,
    output_format: str,
    places: int,
    rows: str,
    plot: Path | None,
    spreadsheet: bool,
    reading: Reading,
    **settings: Any,
) -> None:
    """Compare runs given as files; settings are those of `goodgain.compare`."""
    check_plot(plot, qrels, runs)
    lines = [parse_requirement(text, rel=rel) for text in required]
    judged, systems = open_systems(qrels, runs, reading)
    comparison = compare(
        judged,
        systems,
        [*measures, *(line.measure for line in lines)],
        rel=rel,
        baseline=baseline or _find_baseline(lines, list(systems), settings["against"]),
        columns=reading.columns,
        **settings,
    )
    _print_signature(comparison)
    if output_format == "table":
        console = open_console(sys.stdout)
        console.print(*render_on_terminal(comparison, console.width, Layout(rows=rows)), sep="\n")
    else:
        print(comparison.to_text(output_format, places=places, rows=rows, spreadsheet=spreadsheet), end="")
    if plot is not None:
        write_picture(draw_comparison(comparison), plot)
        print(f"picture: {plot}", file=sys.stderr)
    if not _check_lines(comparison, lines):
        raise click.exceptions.Exit(REQUIREMENT_FAILED)


def _find_baseline(lines: Iterable[Requirement], names: Sequence[str], against: str | None) -> str | None:
    """Return the baseline that a required line means where none is named; None if no line needs one.

    Raises:
        InputError: a line needs one, and there is none, as each system is compared with the one before it.
    """
    line = next((line for line in lines if line.bound is None), None)
    if line is None:
        return None
    if against is not None:
        raise InputError(
            f"--require {line.text!r} needs a baseline, and --against {against} compares each system with the one before "
            "it; leave out one of them, or require a number"
        )
    return "baseline" if "baseline" in names else names[0]


def _print_signature(comparison: Comparison) -> None:
    baseline = {"baseline": comparison.baseline} if comparison.baseline else {}
    print(f"signature: {format_signature(baseline | comparison.signature)}", file=sys.stderr)


def _check_lines(comparison: Comparison, lines: Sequence[Requirement]) -> bool:
    """Print the outcome of each line on stderr, and return whether all of them hold."""
    for line in lines:
        if forbids_improvement(line):
            better = "higher" if find_direction(line.measure) == "up" else "lower"
            notice(f"{line.text!r} asks for no better than the baseline: {line.measure} is better when {better}")
    outcomes = check_requirements(comparison, lines)
    for outcome in outcomes:
        print(outcome, file=sys.stderr)
    return all(outcome.holds for outcome in outcomes)
