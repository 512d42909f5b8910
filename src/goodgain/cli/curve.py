"""The command curve: prints the mean of each measure at every iteration, for one run or several."""

from __future__ import annotations

from typing import Any

import click

import goodgain
from goodgain.cli.options import (
    columns_option,
    errors_option,
    gaps_options,
    labels_option,
    make_epilog,
    output_format_option,
    qrels_argument,
    spreadsheet_option,
)
from goodgain.cli.systems import open_systems, reading_of, rows_option, runs_argument
from goodgain.cli.tables import Value, print_frame, print_values

__all__ = ["curve"]


@click.command(
    epilog=make_epilog(
        "goodgain curve qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'CG SRE SRR'",
        "goodgain curve qrels_examples/redundancy/qrels.txt new=qrels_examples/redundancy/lean.run -m nCG --upto 5 -o csv",
    )
)
@qrels_argument
@runs_argument
@click.option(
    "-m", "--measure", "measures", multiple=True, required=True, help="One of ours, or several, without @: -m 'CG SRE'."
)
@click.option("--upto", type=int, help="The last iteration; default: the last one that any query has.")
@click.option("-p", "--places", type=click.IntRange(-1, 100), default=4, show_default=True, help="Decimals in a table.")
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
    upto: int | None,
    places: int,
    output_format: str,
    spreadsheet: bool,
    rows: str,
    **options: Any,
) -> None:
    """Print the mean of each measure at every iteration: at i it is what evaluate prints for CG@i.

    QRELS and RUN are what evaluate takes; NAME=RUN names a system. Every mean is over all queries of the qrels: a query
    that has stopped goes on with empty iterations. "searching" is the number of queries that still searched.
    """
    reading = reading_of(options)
    judged, systems = open_systems(qrels, runs, reading)
    frame = goodgain.curve(judged, systems, measures, upto=upto, columns=reading.columns)
    if output_format != "table":
        print_frame(frame, output_format, spreadsheet=spreadsheet)
        return
    rows_of = list(frame.iter_rows())
    values = [Value(None, f"{measure}@{i}", system, mean) for system, measure, i, mean, _ in rows_of]
    first = rows_of[0][1]  # every measure has the same numbers of queries
    values += [Value(None, f"searching@{i}", system, n) for system, measure, i, _, n in rows_of if measure == first]
    print_values(values, output_format="table", rows=rows, places=places, by_query=False)
