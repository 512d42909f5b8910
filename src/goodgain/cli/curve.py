"""The command curve: prints the mean of each measure at every iteration, for one run or several."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import polars as pl

import goodgain
from goodgain.cli.options import (
    columns_option,
    errors_option,
    gaps_options,
    labels_option,
    make_epilog,
    output_format_option,
    places_option,
    plot_option,
    qrels_argument,
    rel_option,
    spreadsheet_option,
)
from goodgain.cli.systems import check_plot, open_systems, reading_of, rows_option, runs_argument
from goodgain.cli.tables import Value, print_frame, print_sparklines, print_values
from goodgain.reporting.plots.pictures import draw_curves, write_picture

__all__ = ["curve"]


@click.command(
    epilog=make_epilog(
        "goodgain curve qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'CG SRE SRR'",
        "goodgain curve qrels_examples/redundancy/qrels.txt new=qrels_examples/redundancy/lean.run -m nCG --plot curve.svg",
    )
)
@qrels_argument
@runs_argument
@click.option(
    "-m", "--measure", "measures", multiple=True, required=True, help="One of ours, or several, without @: -m 'CG SRE'."
)
@rel_option
@click.option("--upto", type=int, help="The last iteration; default: the last one that any query has.")
@places_option("Decimals in a table.")
@click.option(
    "--resamples",
    type=click.IntRange(0),
    default=9_999,
    show_default=True,
    help="Number of bootstrap samples; 0: no intervals.",
)
@click.option("--seed", type=int, default=42, show_default=True, help="Seed of the bootstrap.")
@plot_option
@output_format_option("table", "csv", "jsonl", "parquet")
@spreadsheet_option
@rows_option
@gaps_options
@labels_option
@columns_option
@errors_option
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
    output_format: str,
    spreadsheet: bool,
    rows: str,
    **options: Any,
) -> None:
    """Print the mean of each measure at every iteration: at i it is what evaluate prints for CG@i.

    QRELS and RUN are what evaluate takes; NAME=RUN names a system. Every mean is over all queries of the qrels: a query
    that has stopped goes on with empty iterations. "searching" is the number of queries that still searched, "coverage" the
    judged share of the results that were new at this iteration. A terminal also shows each curve as a line of small bars.
    """
    check_plot(plot, qrels, runs)
    reading = reading_of(options)
    judged, systems = open_systems(qrels, runs, reading)
    frame = goodgain.curve(
        judged, systems, measures, rel=rel, upto=upto, seed=seed, resamples=resamples, columns=reading.columns
    )
    if output_format == "table":
        _print_tables(frame, rows=rows, places=places)
    else:
        print_frame(frame, output_format, spreadsheet=spreadsheet)
    if plot is not None:
        write_picture(draw_curves(frame), plot)
        print(f"picture: {plot}", file=sys.stderr)


def _print_tables(frame: pl.DataFrame, *, rows: str, places: int) -> None:
    rows_of = list(frame.iter_rows())
    values = [Value(None, f"{measure}@{i}", system, mean) for system, measure, i, mean, *_ in rows_of]
    first = rows_of[0][1]  # every measure has the same numbers of queries
    for name in ("searching", "coverage"):
        columns_of = frame.filter(measure=first).select("iteration", "system", name).iter_rows()
        values += [Value(None, f"{name}@{i}", system, value) for i, system, value in columns_of]
    print_values(values, output_format="table", rows=rows, places=places, by_query=False)
    if sys.stdout.isatty():
        print_sparklines(frame, places)
