"""The goodgain command: opens files, prints; results on stdout, all else on stderr."""

from __future__ import annotations

import errno
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import click
import polars as pl

import goodgain
from goodgain.batches.run_file import open_run_and_qrels
from goodgain.cli.compare import compare_files, compare_options
from goodgain.cli.options import (
    columns_option,
    errors_option,
    gaps_options,
    labels_option,
    order_option,
    output_format_option,
    qrels_argument,
    run_argument,
)
from goodgain.cli.traces import convert, dedup
from goodgain.comparing.tables import FORMS
from goodgain.errors import GoodgainError, GoodgainNotice, InputError
from goodgain.files.writing import Outputs
from goodgain.formats.qrels import looks_like_qrels
from goodgain.measures import MEASURES

__all__ = ["main", "program"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(goodgain.__version__, message="goodgain %(version)s")
def program() -> None:
    """Score agents that search in several rounds: runs whose column 2 is the iteration."""


@program.command()
@qrels_argument
@run_argument
@click.argument("measures", metavar="MEASURE...", nargs=-1, required=True)
@click.option("-q", "--by_query", is_flag=True, help="Print the values of each query too.")
@click.option("-n", "--no_summary", is_flag=True, help="With -q: leave out the rows of all queries.")
@click.option(
    "-p",
    "--places",
    type=click.IntRange(-1, 100),
    default=4,
    show_default=True,
    help="Decimals; -1 for full precision.",
)
@output_format_option("table", "tsv", "jsonl")
@click.option("--provider", help="The provider of ir_measures for the classic measures.")
@order_option
@gaps_options
@labels_option
@columns_option
@errors_option
def evaluate(
    qrels: str,
    run: str,
    measures: tuple[str, ...],
    by_query: bool,
    no_summary: bool,
    places: int,
    output_format: str,
    provider: str | None,
    order: str,
    gaps: str,
    first: int,
    labels: str | None,
    columns: dict[str, str],
    errors: str,
) -> None:
    """Score a run on any measures, ours and those of ir_measures.

    QRELS is a file or the id of an ir_datasets data set, RUN a file: TREC text with the iteration in column 2, Parquet,
    Arrow or JSON Lines. MEASURE is a name such as nDCG@10, SRE@3 or "CG SRR"; goodgain measures lists ours.
    """
    if no_summary and not by_query:
        raise InputError("--no_summary (-n) leaves nothing to print without --by_query (-q); give both, or neither")
    searched, judged = open_run_and_qrels(
        qrels, run, gaps=gaps, first=first, labels=labels, errors=errors, columns=columns
    )
    scores = goodgain.evaluate(judged, searched, measures, order=order, provider=provider)
    _tell(scores.signature)
    rows = list(scores.per_query.iter_rows()) if by_query else []
    if not no_summary:
        rows += [("all", name, value) for name, value in scores.mean().items()]
    if output_format == "table":
        _print_table(rows, places, by_query=by_query)
        return
    for query_id, name, value in rows:
        if output_format == "jsonl":
            row = ({"query_id": query_id} if by_query else {}) | {"measure": name, "value": value}
            print(json.dumps(row, allow_nan=False))
        else:
            print(*([query_id] if by_query else []), name, _rounded(value, places), sep="\t")


def _rounded(value: float | None, places: int) -> str:
    if value is None:
        return "–"
    return f"{value:.{places}f}" if places >= 0 else str(value)


def _print_table(rows: list[tuple[str, str, float | None]], places: int, *, by_query: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*(["query"] if by_query else []), "measure")
    table.add_column("value", justify="right", no_wrap=True)
    for number, (query_id, name, value) in enumerate(rows):
        is_last = number + 1 < len(rows) and rows[number + 1][0] != query_id
        cells = [Text(query_id)] if by_query else []
        table.add_row(*cells, Text(_headed(name)), _rounded(value, places), end_section=is_last and by_query)
    Console().print(table)


def _headed(name: str) -> str:
    """A measure's name with the way that is better, where we know it."""
    declared = MEASURES.get(name.split("@")[0].split("(")[0])
    return f"{name} {declared.declaration.arrow}" if declared else name


def _tell(signature: dict[str, Any]) -> None:
    """On stderr: how many queries the numbers stand for, and how they were made."""
    _err(
        f"queries: {signature['queries']} scored, {signature['absent_from_run']} of them absent from the run; "
        f"{signature['without_judgments']} of the run without judgments, left out"
    )
    shown = {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in signature.items()}
    shown["unjudged"] = f"{signature['unjudged']:.4f}"
    _err("signature: " + " ".join(f"{name}={value}" for name, value in shown.items()))


@program.command()
@qrels_argument
@run_argument
@click.option("-m", "--measure", "measures", multiple=True, help="One of ours, without @: its value at each iteration.")
@click.option("--rel", type=float, default=2, show_default=True, help="The smallest good label.")
@output_format_option("table", "csv", "jsonl", "parquet")
@gaps_options
@labels_option
@columns_option
@errors_option
def ledger(
    qrels: str,
    run: str,
    measures: tuple[str, ...],
    rel: float,
    output_format: str,
    gaps: str,
    first: int,
    labels: str | None,
    columns: dict[str, str],
    errors: str,
) -> None:
    """Print what each iteration of each query brought: results, repeats, good documents, gain."""
    searched, judged = open_run_and_qrels(
        qrels, run, gaps=gaps, first=first, labels=labels, errors=errors, columns=columns
    )
    frame = goodgain.ledger(judged, searched, rel=rel, measures=measures or None)
    if output_format == "table":
        whole = {"tbl_rows": -1, "tbl_cols": -1, "tbl_width_chars": -1, "fmt_str_lengths": 10_000}
        with pl.Config(**whole, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):  # type: ignore[arg-type]  # options by name
            print(frame)
    elif output_format == "csv":
        print(frame.write_csv(), end="")
    elif output_format == "jsonl":
        print(frame.write_ndjson(), end="")
    else:
        frame.write_parquet(sys.stdout.buffer)


@program.command()
@run_argument
@click.option(
    "-o", "--output", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The run to write."
)
@order_option
@gaps_options
@columns_option
@errors_option
def flatten(run: str, output: Path, order: str, gaps: str, first: int, columns: dict[str, str], errors: str) -> None:
    """Write one classic ranking per query, without repeats, for tools that know no iterations."""
    Outputs([Path(run)]).add(output)
    searched = goodgain.read_run(run, gaps=gaps, first=first, errors=errors, columns=columns)
    goodgain.write_run(goodgain.Run(goodgain.flatten(searched, order=order), name=searched.name), output)


@program.command()
def measures() -> None:
    """List our measures; every measure of ir_measures can be asked for too."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("measure", "better", "bounds", "definition")
    for name, measure in MEASURES.items():
        declared = measure.declaration
        at = {"optional": "[@i]", "required": "@i", "none": ""}[declared.cutoff]
        bounds = f"{declared.bounds[0]}..{declared.bounds[1]}" if declared.bounds[1] else f">= {declared.bounds[0]}"
        remark = f"; {declared.remark}" if declared.remark else ""
        own = {key: info.desc for key, info in measure.SUPPORTED_PARAMS.items() if key not in ("rel", "cutoff")}
        remark += "".join(f"; {key}= says {description}" for key, description in own.items())
        table.add_row(Text(name + at), declared.arrow, bounds, Text(f"{declared.title}: {declared.definition}{remark}"))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


@program.command()
@click.argument("file", metavar="FILE")
@labels_option
@columns_option
@errors_option
def validate(file: str, labels: str | None, columns: dict[str, str], errors: str) -> None:
    """Read a run or qrels, and say what is in it or what is wrong with it."""
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


@program.command()
@compare_options
@output_format_option("table", *FORMS)
@order_option
@gaps_options
@labels_option
@columns_option
@errors_option
def compare(qrels: str, runs: tuple[str, ...], **options: Any) -> None:
    """Compare two or more runs on any measures, with tests, and say which is better.

    QRELS and RUN are what evaluate takes. Exit status 3: a line given with --require does not hold.
    """
    compare_files(qrels, runs, **options)


program.add_command(convert)
program.add_command(dedup)


def _err(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    """Run the command: exit status 0 done, 2 input or arguments wrong, 1 anything else."""
    told: set[str] = set()

    def tell(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if str(message) not in told and issubclass(category, GoodgainNotice):
            told.add(str(message))
            _err(f"notice: {message}")

    warnings.showwarning = tell
    warnings.simplefilter("always", GoodgainNotice)
    try:
        status = program(standalone_mode=False)
        sys.stdout.flush()
    except GoodgainError as error:
        _err(f"goodgain: {' '.join(str(error).split())}")
        status = 2
    except click.ClickException as error:
        _err(f"goodgain: {error.format_message()} (see goodgain --help)")
        status = 2
    except OSError as error:
        if error.errno != errno.EPIPE and "Broken pipe" not in str(error):
            raise
        sys.stderr.close()  # the reader of our output has enough, as with | head
        status = 1
    except (KeyboardInterrupt, click.Abort):
        _err("goodgain: interrupted")
        status = 1
    sys.exit(status)
