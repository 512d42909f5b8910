"""The commands ledger (what each iteration of each query found) and curve (the mean of measures at each iteration)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.cli.printed_tables import Value, print_frame, print_sparklines, print_values
from goodgain.formats.any_source import check_columns_used
from goodgain.reporting import iteration_curves, ledger_and_coverage
from goodgain.reporting.plots.pictures import draw_curves, write_picture


@click.command(
    epilog=shared.make_epilog(
        "goodgain ledger qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run -m 'SRE SRR'",
        "goodgain ledger qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/lean.run --rel 1 -o csv",
    )
)
@shared.qrels_argument
@shared.run_argument
@click.option(
    "-m", "--measure", "measures", multiple=True, help="A measure of ours, without @: adds its value at each iteration."
)
@shared.rel_option
@shared.output_option("csv")
@shared.spreadsheet_option
@shared.reading_options
def ledger(
    qrels: str,
    run: str,
    measures: tuple[str, ...],
    rel: float | None,
    output: shared.Output,
    spreadsheet: bool,
    **reading: Any,
) -> None:
    """Print what each iteration of each query found: results, repeats, good documents, gain.

    A query has no row after its last iteration, so a mean over rows leaves out queries that have stopped. goodgain curve
    prints means over all queries.
    """
    shared.check_outputs([output.path], [qrels, run])
    judged, systems = shared.open_systems(qrels, [run], **reading)
    (searched,) = systems.values()
    check_columns_used(reading["columns"], searched, judged)
    frame = ledger_and_coverage.ledger(judged, searched, rel=rel, measures=measures or None)
    print_frame(frame, output, spreadsheet=spreadsheet)


@click.command(
    epilog=shared.make_epilog(
        "goodgain curve qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'CG SRE SRR'",
        "goodgain curve qrels_examples/redundancy/qrels.txt new=qrels_examples/redundancy/lean.run -m nCG --plot curve.svg",
    )
)
@shared.qrels_argument
@shared.runs_argument
@click.option(
    "-m", "--measure", "measures", multiple=True, required=True, help="Measures of ours, without @: -m 'CG SRE'."
)
@shared.rel_option
@click.option("--upto", type=int, help="The last iteration; default: the last one of any query.")
@shared.places_option("Decimals in a table.")
@click.option(
    "--resamples", type=click.IntRange(0), default=9_999, help="Number of bootstrap samples; 0: no intervals."
)
@click.option("--seed", type=int, default=42, help="Seed of the bootstrap.")
@shared.plot_option
@shared.output_option("csv")
@shared.spreadsheet_option
@shared.rows_option
@shared.reading_options
def curve(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    rel: float | None,
    upto: int | None,
    places: int,
    resamples: int,
    seed: int,
    plot: Path | None,
    output: shared.Output,
    spreadsheet: bool,
    rows: str,
    **reading: Any,
) -> None:
    """Print the mean of each measure at every iteration i: for CG, what evaluate prints for CG@i.

    QRELS and RUN are as in evaluate; NAME=RUN names a system. Every mean is over all queries of the qrels: a query that has
    stopped counts as having empty iterations. "searching" is the number of queries that still search, "coverage" the judged
    share of the new results of this iteration. A terminal also shows each curve as a line of small bars.
    """
    shared.check_outputs([plot, output.path], [qrels, *shared.find_files(runs)])
    judged, systems = shared.open_systems(qrels, runs, **reading)
    frame = iteration_curves.curve(
        judged, systems, measures, rel=rel, upto=upto, seed=seed, resamples=resamples, columns=reading["columns"]
    )
    if output.form == "table":
        _print_tables(frame, output, rows=rows, places=places)
    else:
        print_frame(frame, output, spreadsheet=spreadsheet)
    if plot is not None:
        write_picture(draw_curves(frame), plot)
        shared.say(f"picture: {plot}")


def _print_tables(frame: pl.DataFrame, output: shared.Output, *, rows: str, places: int) -> None:
    values = [
        Value(None, f"{row['measure']}@{row['iteration']}", row["system"], row["mean"])
        for row in frame.rows(named=True)
    ]
    of_one = frame.filter(measure=frame.item(0, "measure"))  # every measure has the same numbers of queries
    for name in ("searching", "coverage"):
        numbers = of_one.select("iteration", "system", name).iter_rows()
        values += [Value(None, f"{name}@{i}", system, number) for i, system, number in numbers]
    print_values(values, output, rows=rows, places=places, by_query=False)
    if sys.stdout.isatty():
        print_sparklines(frame, places)
