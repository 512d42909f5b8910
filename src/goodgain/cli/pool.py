"""The command pool: writes a sheet of the documents that runs found and nobody has judged yet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import goodgain
from goodgain.cli.options import (
    columns_option,
    errors_option,
    gaps_options,
    labels_option,
    make_epilog,
    spreadsheet_option,
)
from goodgain.cli.systems import find_systems, open_systems, reading_of, runs_argument
from goodgain.files.writing import Outputs

__all__ = ["pool"]


@click.command(
    epilog=make_epilog(
        "goodgain pool qrels_examples/late_recovery/*.run -k 5 --qrels qrels_examples/late_recovery/qrels.txt -o sheet.csv",
        "goodgain pool qrels_examples/late_recovery/*.run -k 5 --flattened -o flattened.jsonl",
    )
)
@runs_argument
@click.option(
    "-k",
    "depth",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Results of an iteration that are looked at.",
)
@click.option("--qrels", metavar="QRELS", help="The judgments there are: their documents are left out.")
@click.option(
    "--results",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What convert --results wrote: adds titles, URLs, snippets.",
)
@click.option("--flattened", is_flag=True, help="The first k documents of the flattened run, not of every iteration.")
@click.option(
    "-o", "--output", metavar="SHEET", required=True, type=click.Path(path_type=Path), help="The sheet: .csv or .jsonl."
)
@spreadsheet_option
@gaps_options
@labels_option
@columns_option
@errors_option
def pool(
    runs: tuple[str, ...],
    depth: int,
    qrels: str | None,
    results: Path | None,
    flattened: bool,
    output: Path,
    spreadsheet: bool,
    **options: Any,
) -> None:
    """Write a sheet of the unjudged documents among the first k results of every iteration, with a blank grade.

    RUN is what evaluate takes. The sheet says how many of the runs found a document so, and at which iteration first.
    """
    from goodgain.judging.pooling import check_sheet_name, write_sheet

    check_sheet_name(output)
    inputs = [*find_systems(runs).values(), *([qrels] if qrels else []), *([str(results)] if results else [])]
    Outputs(map(Path, inputs)).add(output)
    reading = reading_of(options)
    judged, systems = open_systems(qrels, runs, reading)
    pooled = goodgain.pool(
        systems, k=depth, qrels=judged, results=results, flattened=flattened, columns=reading.columns
    )
    write_sheet(pooled, output, spreadsheet=spreadsheet)
    queries = pooled.get_column("query_id").n_unique()
    print(f"{output}: documents to judge: {pooled.height:,}, queries: {queries:,}", file=sys.stderr)
