"""The goodgain program: its commands read files and print results on stdout, and everything else on stderr."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import click
import polars as pl

import goodgain
from goodgain.batches.run_file import open_run_and_qrels
from goodgain.cli.compare import compare_files, compare_options
from goodgain.cli.curve import curve
from goodgain.cli.ending import run_to_end
from goodgain.cli.evaluate import evaluate
from goodgain.cli.judge import judge
from goodgain.cli.label import label
from goodgain.cli.measures import list_measures
from goodgain.cli.options import (
    columns_option,
    errors_option,
    gaps_options,
    labels_option,
    make_epilog,
    order_option,
    output_format_option,
    qrels_argument,
    rel_option,
    run_argument,
    spreadsheet_option,
)
from goodgain.cli.pool import pool
from goodgain.cli.systems import reading_of
from goodgain.cli.tables import print_frame
from goodgain.cli.traces import convert, dedup
from goodgain.comparing.tables import FORMS
from goodgain.errors import GoodgainNotice
from goodgain.files.writing import Outputs
from goodgain.formats.qrels import looks_like_qrels

__all__ = ["main", "program"]


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=make_epilog(
        "goodgain evaluate qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run 'nDCG@10 SRE@3 SRR'",
        "goodgain measures",
    ),
)
@click.version_option(goodgain.__version__, message="goodgain %(version)s")
def program() -> None:
    """Score agents that search in several rounds: runs whose column 2 is the iteration."""


@program.command(
    epilog=make_epilog(
        "goodgain ledger qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run -m 'SRE SRR'",
        "goodgain ledger qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/lean.run --rel 1 -o csv",
    )
)
@qrels_argument
@run_argument
@click.option("-m", "--measure", "measures", multiple=True, help="One of ours, without @: its value at each iteration.")
@rel_option
@output_format_option("table", "csv", "jsonl", "parquet")
@spreadsheet_option
@gaps_options
@labels_option
@columns_option
@errors_option
def ledger(
    qrels: str,
    run: str,
    measures: tuple[str, ...],
    rel: float | None,
    output_format: str,
    spreadsheet: bool,
    gaps: str,
    first: int,
    labels: str | None,
    columns: dict[str, str],
    errors: str,
) -> None:
    """Print what each iteration of each query brought: results, repeats, good documents, gain.

    A query has no row after its last iteration: an average of rows over queries leaves out those that have stopped.
    goodgain curve prints the means over all queries.
    """
    searched, judged = open_run_and_qrels(
        qrels, run, gaps=gaps, first=first, labels=labels, errors=errors, columns=columns
    )
    frame = goodgain.ledger(judged, searched, rel=rel, measures=measures or None)
    print_frame(frame, output_format, spreadsheet=spreadsheet)


@program.command(
    epilog=make_epilog(
        "goodgain flatten qrels_examples/guideline/agent.run -o flat.run",
        "goodgain flatten qrels_examples/late_recovery/late.run -o last.run --order last",
    )
)
@run_argument
@click.option(
    "-o", "--output", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The run to write."
)
@order_option
@gaps_options
@columns_option
@errors_option
def flatten(run: str, output: Path, order: str, gaps: str, first: int, columns: dict[str, str], errors: str) -> None:
    """Write one classic ranking per query, without repeats, for tools that do not read iterations."""
    Outputs([Path(run)]).add(output)
    searched = goodgain.read_run(run, gaps=gaps, first=first, errors=errors, columns=columns)
    goodgain.write_run(goodgain.Run(goodgain.flatten(searched, order=order), name=searched.name), output)


@program.command(
    epilog=make_epilog(
        "goodgain validate qrels_examples/guideline/agent.run",
        "goodgain validate qrels_examples/guideline/qrels.txt",
    )
)
@click.argument("file", metavar="FILE")
@labels_option
@columns_option
@errors_option
def validate(file: str, labels: str | None, columns: dict[str, str], errors: str) -> None:
    """Read a run or qrels, and print what is in it or what is wrong with it."""
    if looks_like_qrels(Path(file), columns):
        frame = goodgain.read_qrels(file, labels=labels, errors=errors, columns=columns).frame
        good = frame.filter(pl.col("relevance") >= 2).height
        print(
            f"{file}: qrels, {frame.get_column('query_id').n_unique()} queries, {frame.height} labels, {good} of them >= 2"
        )
        return
    rows = goodgain.read_run(file, errors=errors, columns=columns).rows
    results = rows.filter(pl.col("doc_id") != "-")
    searched = rows.select("query_id", "iteration").unique()
    repeats = results.height - results.select("query_id", "doc_id").unique().height
    print(
        f"{file}: run, {rows.get_column('query_id').n_unique()} queries, {searched.height} iterations "
        f"({searched.height - results.select('query_id', 'iteration').unique().height} of them without results), "
        f"{results.height} results, {repeats} of them repeats"
    )


@program.command(
    epilog=make_epilog(
        "goodgain compare qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'nDCG@10 SRE@3 SRR@3'",
        "goodgain compare qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run --require 'SRR@3<=.5' --plot srr.png",
    )
)
@compare_options
@output_format_option("table", *FORMS)
@spreadsheet_option
@order_option
@gaps_options
@labels_option
@columns_option
@errors_option
def compare(qrels: str, runs: tuple[str, ...], **options: Any) -> None:
    """Compare two or more runs on any measures, with tests, and say which is better.

    QRELS and RUN are what evaluate takes; NAME=RUN names a system. Exit status 3: a line given with --require does not hold.
    """
    compare_files(qrels, runs, reading=reading_of(options), **options)


program.add_command(evaluate)
program.add_command(curve)
program.add_command(pool)
program.add_command(convert)
program.add_command(dedup)
program.add_command(judge)
program.add_command(label)
program.add_command(list_measures)


def main() -> None:
    """Run the program. Exit status: 0 done, 2 wrong input or arguments, 3 a required line does not hold, as `run_to_end`."""
    shown: set[str] = set()

    def show_notice(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if str(message) not in shown and issubclass(category, GoodgainNotice):
            shown.add(str(message))
            print(f"notice: {message}", file=sys.stderr)

    warnings.showwarning = show_notice
    warnings.simplefilter("always", GoodgainNotice)
    sys.exit(run_to_end(lambda: program(standalone_mode=False)))
