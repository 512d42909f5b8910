"""The command compare: reads the runs, prints the comparison, and checks the required lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from goodgain.batches.run_file import open_run
from goodgain.comparing.comparison import Comparison, compare, direction
from goodgain.comparing.gate import Requirement, check_requirements, forbids_improvement, parse_requirement
from goodgain.errors import notice
from goodgain.files.opening import stem
from goodgain.formats.qrels import load_qrels

__all__ = ["REQUIREMENT_FAILED", "compare_files", "compare_options", "name_systems"]

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
    options = [
        click.argument("qrels", metavar="QRELS"),
        click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True),
        click.option(
            "-m", "--measure", "measures", multiple=True, help="A measure, or several: -m nDCG@10 -m 'SRE@3 SRR@3'."
        ),
        click.option("--baseline", metavar="SYSTEM", help="Compare all others with this system; default: all pairs."),
        click.option("--iterations", type=count, help="Compare ours named without @ at each iteration up to this too."),
        click.option("--require", "required", metavar="LINE", multiple=True, help=_REQUIRE),
        click.option(
            "--seed", type=int, default=42, show_default=True, help="Seed of randomisation test and bootstrap."
        ),
        click.option("--resamples", type=count, default=9_999, show_default=True, help="Number of resamples in both."),
        click.option("--alpha", type=float, default=0.05, show_default=True, help="The largest p that is significant."),
        click.option("-p", "--places", type=int, default=4, show_default=True, help="Decimals in markdown and latex."),
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
    baseline: str | None,
    output_format: str,
    places: int,
    gaps: str,
    first: int,
    labels: str | None,
    columns: dict[str, str],
    errors: str,
    **settings: Any,
) -> None:
    """Compare runs given as files; settings are those of `goodgain.compare`."""
    lines = [parse_requirement(text) for text in required]
    names = name_systems(runs)
    judged = load_qrels(qrels, labels=labels, errors=errors, columns=columns)
    opened = [open_run(run, gaps=gaps, first=first, errors=errors, columns=columns) for run in runs]
    comparison = compare(
        judged,
        dict(zip(names, opened, strict=True)),
        [*measures, *(line.measure for line in lines)],
        baseline=baseline or _find_baseline(lines, names),
        columns=columns,
        **settings,
    )
    _print_signature(comparison)
    if output_format == "table":
        from rich.console import Console

        Console().print(comparison)
    else:
        print(comparison.to_text(output_format, places=places), end="")
    if not _check_lines(comparison, lines):
        raise click.exceptions.Exit(REQUIREMENT_FAILED)


def name_systems(runs: Sequence[str]) -> list[str]:
    """Return a name for each file: its stem, with as many folders as distinguish it; a file given twice gets a number.

    >>> name_systems(["main/agent.run", "new/agent.run"])
    ['main/agent', 'new/agent']
    """
    paths = [Path(run) for run in runs]
    named = _find_distinct_names(list(dict.fromkeys(paths)))
    times = [paths[:k].count(path) + 1 for k, path in enumerate(paths)]
    return [named[path] + (f" ({time})" if time > 1 else "") for path, time in zip(paths, times, strict=True)]


def _find_distinct_names(paths: Sequence[Path]) -> dict[Path, str]:
    """Return names with as few folders as make them distinct."""
    for folders in range(max(len(path.parts) for path in paths)):
        named = {path: "/".join([*path.parts[:-1][::-1][:folders][::-1], stem(path)]) for path in paths}
        if len(set(named.values())) == len(named):
            return named
    return {path: str(path) for path in paths}  # a.run and a.jsonl have the same stem and folder


def _find_baseline(lines: Iterable[Requirement], names: Sequence[str]) -> str | None:
    """Return the baseline that a required line means where none is named; None if no line needs one."""
    if all(line.bound is not None for line in lines):
        return None
    return "baseline" if "baseline" in names else names[0]


def _print_signature(comparison: Comparison) -> None:
    made = comparison.signature
    shown = {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in made.items()}
    if comparison.baseline:
        shown = {"baseline": comparison.baseline} | shown
    print("signature: " + " ".join(f"{name}={value}" for name, value in shown.items()), file=sys.stderr)


def _check_lines(comparison: Comparison, lines: Sequence[Requirement]) -> bool:
    """Print the outcome of each line on stderr, and return whether all of them hold."""
    for line in lines:
        if forbids_improvement(line):
            better = "higher" if direction(line.measure) == "up" else "lower"
            notice(f"{line.text!r} asks for no better than the baseline: {line.measure} is better when {better}")
    outcomes = check_requirements(comparison, lines)
    for outcome in outcomes:
        print(outcome, file=sys.stderr)
    return all(outcome.holds for outcome in outcomes)
