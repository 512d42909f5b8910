"""The commands pool and judge: a sheet of what nobody has judged yet, and one qrels from the grades of several judges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.errors import InputError
from goodgain.files.opening import container
from goodgain.files.table_writing import write_frame
from goodgain.formats import write_qrels
from goodgain.formats.column_names import check_columns_used
from goodgain.formats.qrels import load_qrels
from goodgain.judging import judge_agreement
from goodgain.judging.aggregation import RULES, aggregate
from goodgain.judging.grade_table import read_grades
from goodgain.judging.judge_agreement import Agreement
from goodgain.judging.scales import find_scale


@click.command(
    epilog=shared.make_epilog(
        "goodgain pool qrels_examples/late_recovery/*.run -k 5 --qrels qrels_examples/late_recovery/qrels.txt -o sheet.csv",
        "goodgain pool qrels_examples/late_recovery/*.run -k 5 --flattened -o flattened.jsonl",
    )
)
@shared.runs_argument
@click.option("-k", "depth", type=shared.COUNT, default=20, help="Results of an iteration that are looked at.")
@click.option("--qrels", metavar="QRELS", help="The judgments there are: their documents are left out.")
@shared.file_option("--results", help="What convert --results wrote: adds titles, URLs, snippets.")
@click.option("--flattened", is_flag=True, help="The first k documents of the flattened run, not of every iteration.")
@shared.file_option("-o", "--output", metavar="SHEET", required=True, help="The sheet: .csv or .jsonl.")
@shared.spreadsheet_option
@shared.reading_options
def pool(
    runs: tuple[str, ...],
    depth: int,
    qrels: str | None,
    results: Path | None,
    flattened: bool,
    output: Path,
    spreadsheet: bool,
    **reading: Any,
) -> None:
    """Write a sheet of the unjudged documents among the first k results of every iteration, with a blank grade.

    RUN is what evaluate takes. The sheet says how many of the runs found a document so, and at which iteration first.
    """
    from goodgain.judging import pooling

    pooling.check_sheet_name(output)
    shared.check_outputs([output], [*shared.find_systems(runs).values(), qrels, results])
    judged, systems = shared.open_systems(qrels, runs, **reading)
    pooled = pooling.pool(
        systems, k=depth, qrels=judged, results=results, flattened=flattened, columns=reading["columns"]
    )
    pooling.write_sheet(pooled, output, spreadsheet=spreadsheet)
    queries = pooled.get_column("query_id").n_unique()
    shared.say(f"{output}: documents to judge: {pooled.height:,}, queries: {queries:,}")


def _parse_labels(_context: click.Context, _option: click.Parameter, value: str | None) -> list[float] | None:
    try:
        return None if value is None else [float(label) for label in value.split(",")]
    except ValueError:
        raise InputError(f"--file-labels {value}: write a number for each file, with commas: 1,2") from None


@click.command(
    epilog=shared.make_epilog(
        "goodgain judge qrels_examples/judges/votes.csv --scale binary -o majority.parquet",
        "goodgain judge qrels_examples/judges/book.csv --scale graded --map '>=2 -> 1' --agreement -o mean.qrels",
    )
)
@click.argument("grades", metavar="GRADES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@shared.file_option(
    "-o",
    "--output",
    metavar="QRELS",
    help="The qrels to write: TREC text, or by the name .parquet, .arrow, .jsonl, which also hold the columns n_judges, "
    "n_null, tie.",
)
@click.option(
    "--how",
    type=click.Choice(list(RULES)),
    help="The rule that makes one label of several grades. Default: majority for grades on a binary scale, else mean.",
)
@click.option("--scale", help="binary, graded (0..3), good-gain (0..4), detail (1..10), esci, LOW..HIGH, or 0,1,3.")
@click.option("--map", metavar="MAP", help="To labels of another scale: '0:0, 1:0, 2:1, 3:1' or '>=7 -> 1'.")
@click.option("--map-first", "--map_first", is_flag=True, help="Map each grade, not the label made of them.")
@click.option(
    "--file-labels",
    metavar="LABEL,...",
    callback=_parse_labels,
    help="A label for each file, which its grades above 0 become; the largest counts: 1,2 for evidence and answers.",
)
@shared.columns_option
@click.option(
    "--label", type=float, help="The label of each row, for files without one: lists of supporting documents."
)
@click.option("--agreement", is_flag=True, help="Print how far the judges agree; needs --scale.")
@click.option("--names", is_flag=True, help="With --agreement: print the judges' names, not their numbers.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    help="With --agreement HUMAN MODEL: whether both put these systems in one order; of two, their difference.",
)
@click.option("-m", "--measure", default="CG@3", help="What the systems are compared on.")
def judge(
    grades: tuple[Path, ...],
    output: Path | None,
    scale: str | None,
    agreement: bool,
    names: bool,
    runs: tuple[str, ...],
    measure: str,
    columns: dict[str, str],
    label: float | None,
    **rule: Any,
) -> None:
    """Write one qrels from the grades of several judges.

    GRADES are files: CSV, JSON Lines or Parquet with the columns query_id, doc_id, judge, grade; a sheet that goodgain
    pool wrote; qrels, one file a judge, or with the judge in column 2; a Quepid book; an OpenSearch judgment list. A file
    that does not say who judged is of one judge, named by the file. With --columns or --label each file is read as qrels.
    """
    if agreement and scale is None:
        raise InputError("--agreement needs --scale: agreement by chance depends on the grades that judges could give")
    if names and not agreement:
        raise InputError("--names says what --agreement prints; give both")
    if output is None and not agreement:
        raise InputError("the labels need a file: -o QRELS; --agreement alone writes none")
    if runs and (not agreement or len(grades) != 2):
        raise InputError("--run needs --agreement and two files of grades, first people's and then the model's")
    systems = shared.find_systems(runs)
    shared.check_outputs([output], [*grades, *systems.values()])
    sources: Any = list(grades)
    if columns or label is not None:
        sources = {str(path): load_qrels(path, columns=columns, label=label) for path in grades}
        check_columns_used(columns, *sources.values())
    found = read_grades(sources, scale=None if scale is None else find_scale(scale))
    labels = aggregate(found, scale=scale, **rule)
    if output is not None and container(output) == "text":  # TREC text cannot hold null
        _check_has_labels(labels, grades)
    report = None if scale is None or not agreement else judge_agreement.agreement(found, scale=scale, names=names)
    if output is not None:
        (write_qrels if container(output) == "text" else write_frame)(labels, output)
        labelled = labels.get_column("relevance").count()
        shared.say(
            f"{output}: documents: {labels.height:,}, with a label: {labelled:,}, "
            f"judges: {found.frame.get_column('judge').n_unique():,}, ties: {labels.get_column('tie').sum():,}"
        )
    if report is not None:
        _print_agreement(report)
    if runs:
        people, model = (aggregate(path, scale=scale, **rule) for path in grades)
        _check_has_labels(people, grades[:1])
        _check_has_labels(model, grades[1:])
        _print_conclusions(people, model, systems, measure)


def _check_has_labels(labels: pl.DataFrame, paths: Sequence[Path]) -> None:
    """Raise `InputError` with the names of the files if no document has a label."""
    if labels.get_column("relevance").is_null().all():
        why = (
            "has a majority; choose another rule with --how" if labels["n_judges"].sum() else "is filled in; grade some"
        )
        raise InputError(f"{', '.join(map(str, paths))}: no document has a label, as no grade {why}")


def _print_agreement(report: Agreement) -> None:
    for name, value in report.overall.items():
        print(name, _format_value(value), sep="\t")
    for frame in (report.judges, report.pairs, report.confusion):
        grades = [name for name in ("grade", "other_grade") if name in frame.columns]
        short = frame.with_columns(
            pl.Series(name, [f"{grade:g}" for grade in frame[name]], pl.String) for name in grades
        )
        print()
        print(short.write_csv(separator="\t", float_precision=4, null_value="–"), end="")


def _print_conclusions(people: pl.DataFrame, model: pl.DataFrame, systems: dict[str, str], measure: str) -> None:
    """Print whether the model's labels lead where people's do: the order of systems; of two systems, their difference."""
    from goodgain.judging.conclusions_from_model_labels import compare_orders, estimate_difference

    print()
    if len(systems) == 2:
        found = estimate_difference(people, model, systems, measure)
        one, other = systems
        print(f"{measure}: {one} minus {other}", "difference", "low", "high", sep="\t")
        print(f"people, {found.queries} queries", *(f"{value:.4f}" for value in found.human), sep="\t")
        both = f"people and {found.further} further queries of the model, weight {found.weight:.2f}"
        print(both, *(f"{value:.4f}" for value in found.powered), sep="\t")
        return
    order = compare_orders(people, model, systems, measure)
    print(order.means.write_csv(separator="\t", float_precision=4), end="")
    for name in ("tau", "tau_top", "tau_ap"):
        print(name, _format_value(getattr(order, name)), sep="\t")


def _format_value(value: float | None) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.4f}"
