"""The command compare: reads the runs, prints the comparison, and checks the required lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from goodgain.cli import shared_options as shared
from goodgain.cli.gate_options import check_lines, exit_if_failed, junit_option, require_option
from goodgain.cli.notices import notices_after_output
from goodgain.cli.printed_tables import format_signature, open_console, print_frame, write_output
from goodgain.comparing.comparison import compare as compare_runs
from goodgain.comparing.rendering import FORMS as COMPARISON_FORMS
from goodgain.comparing.rendering import render_briefly, render_on_terminal
from goodgain.comparing.requirements import Requirement, parse_requirement
from goodgain.comparing.table_cells import Layout
from goodgain.errors import InputError
from goodgain.reporting.plots.pictures import draw_comparison, write_picture

#: In columns: no part of a table is left out.
_ANY_WIDTH = 10_000


@click.command(
    epilog=shared.make_epilog(
        "goodgain compare qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'nDCG@10 SRE@3 SRR@3'",
        "goodgain compare qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run --require 'SRR@3<=.5' --plot srr.png",
    )
)
@shared.qrels_argument
@shared.runs_argument
@click.option("-m", "--measure", "measures", multiple=True, help="A measure, or several: -m nDCG@10 -m 'SRE@3 SRR@3'.")
@shared.rel_option
@click.option("--baseline", metavar="SYSTEM", help="Compare all others with this system; default: all pairs.")
@click.option(
    "--against", type=click.Choice(["previous"]), help="Compare each system with the one given before it alone."
)
@click.option("--iterations", type=shared.COUNT, help="Compare ours named without @ at each iteration up to this too.")
@require_option(
    " or 'CG@3>=baseline*0.9'. The baseline: that of --baseline, else the run called baseline, or the first."
)
@junit_option
@click.option("--seed", type=int, default=42, help="Seed of randomisation test and bootstrap.")
@click.option("--resamples", type=shared.COUNT, default=9_999, help="Number of resamples in both.")
@click.option("--alpha", type=float, default=0.05, help="The largest p that is significant.")
@shared.places_option("Decimals in markdown and latex.")
@shared.rows_option
@shared.plot_option
@shared.bounds_option
@shared.provider_option
@shared.output_option("csv")
@shared.full_option
@shared.spreadsheet_option
@shared.order_option
@shared.reading_options
def compare(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    rel: float | None,
    baseline: str | None,
    required: tuple[str, ...],
    places: int,
    rows: str,
    plot: Path | None,
    junit: Path | None,
    output: shared.Output,
    full: bool,
    spreadsheet: bool,
    **settings: Any,
) -> None:
    """Compare two or more runs on any measures, with tests, and say which is better.

    QRELS and RUN are what evaluate takes; NAME=RUN names a system. Exit status 3: a line given with --require does not hold.
    """
    shared.check_outputs([plot, output.path, junit], [qrels, *shared.find_systems(runs).values()])
    lines = [parse_requirement(text, rel=rel) for text in required]
    reading = {name: settings.pop(name) for name in shared.READING}
    brief = output.form == "table" and not full
    with notices_after_output(full=not brief):
        judged, systems = shared.open_systems(qrels, runs, **reading)
        comparison = compare_runs(
            judged,
            systems,
            [*measures, *(line.measure for line in lines)],
            rel=rel,
            baseline=baseline or _find_baseline(lines, list(systems), settings["against"]),
            columns=reading["columns"],
            **settings,
        )
        if not brief:
            with_baseline = {"baseline": comparison.baseline} if comparison.baseline else {}
            shared.say(f"signature: {format_signature(with_baseline | comparison.signature)}")
        if output.form == "table":
            console = open_console(sys.stdout)
            if brief:
                shown = [*render_briefly(comparison, console.width, Layout(rows=rows))]
            else:  # whole tables: lines that are wider than the terminal go on below
                shown = [*render_on_terminal(comparison, _ANY_WIDTH, Layout(rows=rows))]
                whole = console.options.update(max_width=_ANY_WIDTH)
                console.width = max(console.width, *(console.measure(one, options=whole).maximum for one in shown[:2]))
            console.print(*shown, sep="\n")
        elif output.form in COMPARISON_FORMS:
            text = comparison.to_text(output.form, places=places, rows=rows, spreadsheet=spreadsheet)
            write_output(text, output)
        else:
            print_frame(comparison.pairs, output)
        if plot is not None:
            write_picture(draw_comparison(comparison), plot)
            shared.say(f"picture: {plot}")
    exit_if_failed(check_lines(comparison, lines, junit))


def _find_baseline(lines: Iterable[Requirement], names: Sequence[str], against: str | None) -> str | None:
    """Return the baseline that a required line means where none is named; None if no line needs one."""
    line = next((line for line in lines if line.bound is None), None)
    if line is None:
        return None
    if against is not None:
        raise InputError(
            f"--require {line.text!r} needs a baseline, and --against {against} compares each system with the one before "
            "it; leave out one of them, or require a number"
        )
    return "baseline" if "baseline" in names else names[0]
