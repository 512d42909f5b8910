"""The command judge: writes one qrels from the grades of several judges, and says how far they agree."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import polars as pl

from goodgain.cli.options import make_epilog
from goodgain.cli.systems import find_systems
from goodgain.errors import InputError
from goodgain.files.frames import write_frame
from goodgain.files.opening import container
from goodgain.files.writing import Outputs
from goodgain.formats import write_qrels
from goodgain.judging.aggregation import RULES, aggregate_grades
from goodgain.judging.agreement import Agreement, compute_agreement
from goodgain.judging.grades import Grades, read_grades
from goodgain.judging.scales import find_scale

__all__ = ["judge"]


@click.command(
    epilog=make_epilog(
        "goodgain judge qrels_examples/judges/votes.csv --scale binary -o majority.parquet",
        "goodgain judge qrels_examples/judges/book.csv --scale graded --map '>=2 -> 1' --agreement -o mean.qrels",
    )
)
@click.argument("grades", metavar="GRADES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="QRELS",
    type=click.Path(path_type=Path),
    help="The qrels to write: TREC text, or by the name .parquet, .arrow, .jsonl, which also hold the columns n_judges, "
    "n_null, tie.",
)
@click.option(
    "--how",
    type=click.Choice(list(RULES)),
    help="The rule that makes one label of several grades. Default: majority for grades on a binary scale, else mean.",
)
@click.option("--scale", help="binary, graded (0..3), good-gain (0..4), detail (1..10), esci, LOW..HIGH, or 0,1,3.")
@click.option("--map", "map_", metavar="MAP", help="To labels of another scale: '0:0, 1:0, 2:1, 3:1' or '>=7 -> 1'.")
@click.option("--map-first", "--map_first", is_flag=True, help="Map each grade, not the label made of them.")
@click.option("--agreement", is_flag=True, help="Print how far the judges agree; needs --scale.")
@click.option("--names", is_flag=True, help="With --agreement: print the judges' names, not their numbers.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    help="With --agreement HUMAN MODEL: whether both put these systems in one order; of two, their difference.",
)
@click.option("-m", "--measure", default="CG@3", show_default=True, help="What the systems are compared on.")
def judge(
    grades: tuple[Path, ...],
    output: Path | None,
    how: str | None,
    scale: str | None,
    map_: str | None,
    map_first: bool,
    agreement: bool,
    names: bool,
    runs: tuple[str, ...],
    measure: str,
) -> None:
    """Write one qrels from the grades of several judges.

    GRADES are files: CSV, JSON Lines or Parquet with the columns query_id, doc_id, judge, grade; a sheet that goodgain
    pool wrote; qrels, one file a judge, or with the judge in column 2; a Quepid book; an OpenSearch judgment list. A file
    that does not say who judged is of one judge, named by the file.
    """
    if agreement and scale is None:
        raise InputError("--agreement needs --scale: agreement by chance depends on the grades that judges could give")
    if names and not agreement:
        raise InputError("--names says what --agreement prints; give both")
    if output is None and not agreement:
        raise InputError("the labels need a file: -o QRELS; --agreement alone writes none")
    if runs and (not agreement or len(grades) != 2):
        raise InputError("--run needs --agreement and two files of grades, first people's and then the model's")
    systems = find_systems(runs)
    if output is not None:
        Outputs([*grades, *map(Path, systems.values())]).add(output)
    known = None if scale is None else find_scale(scale)
    found = read_grades(list(grades), scale=known)
    labels = aggregate_grades(found, how=how, scale=known, map_=map_, map_first=map_first)
    if output is not None and container(output) == "text":  # TREC text cannot hold null
        _check_has_labels(labels, grades)
    report = None if known is None or not agreement else compute_agreement(found, known, names=names)
    if output is not None:
        _write(labels, found, output)
    if report is not None:
        _print_agreement(report)
    if runs:
        people, model = (
            aggregate_grades(read_grades([path], scale=known), how=how, scale=known, map_=map_, map_first=map_first)
            for path in grades
        )
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


def _write(labels: pl.DataFrame, found: Grades, output: Path) -> None:
    """Write labels, and say how many there are."""
    if container(output) == "text":
        write_qrels(labels, output)
    else:
        write_frame(labels, output)
    judges = found.frame.get_column("judge").n_unique()
    labelled = labels.height - labels.get_column("relevance").null_count()
    ties = int(labels.get_column("tie").sum())
    print(
        f"{output}: documents: {labels.height:,}, with a label: {labelled:,}, judges: {judges:,}, ties: {ties:,}",
        file=sys.stderr,
    )


def _print_agreement(report: Agreement) -> None:
    for name, value in report.overall.items():
        print(name, _format_value(value), sep="\t")
    for frame in (report.judges, report.pairs, report.confusion):
        print()
        print(_format_frame(frame), end="")


def _print_conclusions(people: pl.DataFrame, model: pl.DataFrame, systems: dict[str, str], measure: str) -> None:
    """Print whether the model's labels lead where people's do: the order of systems; of two systems, their difference."""
    from goodgain.judging.human_and_model import compare_orders, estimate_difference

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


def _format_frame(frame: pl.DataFrame) -> str:
    grades = [name for name in ("grade", "other_grade") if name in frame.columns]
    short = frame.with_columns(pl.Series(name, [f"{grade:g}" for grade in frame[name]], pl.String) for name in grades)
    return short.write_csv(separator="\t", float_precision=4, null_value="–")
