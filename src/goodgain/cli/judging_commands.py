"""The commands `pool` and `judge`."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.counting.run_opening import open_systems
from goodgain.errors import InputError, count_of
from goodgain.files.opening import container
from goodgain.files.tables import format_cell
from goodgain.files.writing import write_frame
from goodgain.formats import write_qrels
from goodgain.formats.any_source import check_columns_used
from goodgain.formats.qrels import load_qrels
from goodgain.judgments.judging import conclusions_from_model_labels as conclusions
from goodgain.judgments.judging import documents_to_judge, judge_agreement
from goodgain.judgments.judging.aggregation import RULES, aggregate, find_disputed
from goodgain.judgments.judging.grade_table import read_grades
from goodgain.judgments.judging.judge_agreement import Agreement
from goodgain.judgments.judging.judging_page import PAGES, write_judging_page
from goodgain.judgments.scales import find_scale
from goodgain.options import DOCUMENTS, READING


@shared.command(
    "goodgain pool qrels_examples/late_recovery/*.run -k 5 --qrels qrels_examples/late_recovery/qrels.txt -o sheet.csv",
    "goodgain pool qrels_examples/labelling/agent.run --results qrels_examples/labelling/results.jsonl "
    "--queries qrels_examples/labelling/queries.jsonl -o sheet.html",
)
@shared.runs_argument
@click.option(
    "-k", type=shared.COUNT, help="The first K results of each iteration. Default: 20, or all with --sample-queries."
)
@click.option("--qrels", metavar="QRELS", help="Existing judgments: their documents are left out.")
@shared.declared_options("results", "queries")
@shared.texts_option
@click.option("--flattened", is_flag=True, help="Take the first K documents of the flattened run.")
@click.option(
    "--sample-queries", type=shared.COUNT, metavar="N", help="Draw N queries at random, and list all their documents."
)
@shared.declared_option("seed", "For --sample-queries, and for the order of documents on the page.")
@shared.scale_option("good-gain")
@shared.file_option(
    "-o", "--output", metavar="SHEET", required=True, help="The sheet: .csv or .jsonl, or a page for judges: .html."
)
@shared.spreadsheet_option
@shared.reading_options
def pool(given: shared.Given) -> None:
    """Write a sheet to fill in: all unjudged documents among the first k results of every iteration, with blank grades.

    RUN is as in evaluate. The sheet says how many runs found a document, and the first iteration that found it. A page
    (SHEET.html) shows people one document at a time, without that, and saves their grades as a file for goodgain judge. The
    page works offline and sends nothing.
    """
    form = documents_to_judge.check_sheet_name(given.output, PAGES)
    scale = find_scale(given.scale)
    inputs = [*shared.find_files(given.runs), given.qrels, given.results, given.queries, given.texts]
    shared.check_outputs([given.output], inputs)
    reading = {option.name: getattr(given, option.name) for option in (*READING, *DOCUMENTS)}
    judged, opened = open_systems(given.qrels, shared.find_single_runs(given.runs), **reading)
    own = ("k", "results", "queries", "texts", "flattened", "sample_queries", "seed", "columns")
    options = {name: getattr(given, name) for name in own}
    pooled = documents_to_judge.pool(opened, qrels=judged, urls="keep", **options)  # addresses are joined already
    if form == "page":
        page = {"scale": given.scale, "seed": given.seed, "spreadsheet": given.spreadsheet}
        write_judging_page(pooled, given.output, **page)
    else:
        documents_to_judge.write_sheet(pooled, given.output, spreadsheet=given.spreadsheet, scale=scale)
    queries = pooled.get_column("query_id").n_unique()
    shared.say(f"{given.output}: documents to judge: {pooled.height:,}, queries: {queries:,}")
    if form == "page":
        saved, scale_words = f"{given.output.stem}-NAME.csv", shlex.join(["--scale", given.scale])
        shared.say(f"Judges open it in a browser and save {saved}: goodgain judge {saved} {scale_words} -o QRELS")
    if given.sample_queries is not None:
        shared.say(
            "The queries are in random order. Decide before you judge how many you judge: p holds only for a number fixed before. "
            "If you must stop early, stop after a whole query."
        )


def _read_weights(given: Sequence[str]) -> dict[str, float] | None:
    return {judge: float(weight) for judge, _, weight in (one.rpartition("=") for one in given)} or None


@shared.command(
    "goodgain judge qrels_examples/judges/votes.csv --scale binary -o majority.parquet",
    "goodgain judge qrels_examples/judges/book.csv --scale graded --map '>=2 -> 1' --agreement -o mean.qrels",
)
@click.argument("grades", metavar="GRADES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@shared.file_option(
    "-o",
    "--output",
    metavar="QRELS",
    help="The qrels to write: TREC text, or .parquet, .arrow or .jsonl with the further columns n_judges, n_null, tie.",
)
@click.option(
    "--how",
    type=click.Choice(list(RULES)),
    help="The rule that combines several grades into one label. Default: majority for grades on a binary scale, else mean.",
)
@shared.scale_option()
@click.option("--map", metavar="MAP", help="Map grades to labels: '0:0, 1:0, 2:1, 3:1' or '>=7 -> 1'.")
@click.option("--map-first", "--map_first", is_flag=True, help="Map each grade before aggregation.")
@click.option(
    "--file-labels",
    metavar="LABEL,...",
    callback=shared.parse_numbers("1,2"),
    help="One label per file, such as 1,2 for the files evidence and answers. The label replaces every grade above 0 in its file. "
    "A document gets its largest label, unless --how is given.",
)
@shared.columns_option
@click.option(
    "--label", type=float, help="For files without labels: the label of every row, such as 1 for supporting documents."
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="JUDGE=WEIGHT",
    callback=shared.parse_with(_read_weights, "write JUDGE=WEIGHT, such as anna=2"),
    help="The weight of a judge in a mean or majority. JUDGE may be the name of the model. Default: 1.",
)
@shared.disputed_option
@click.option("--agreement", is_flag=True, help="Print how far the judges agree; needs --scale.")
@shared.declared_option("urls")
@click.option("--names", is_flag=True, help="With --agreement: print the judges' names, not those of their files.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    help="Score 1, 2 or 5+ RUNs with and without a model's grades. Needs --agreement and two GRADES: people's, then the model's.",
)
@click.option("-m", "--measure", default="CG@3", help="The measure for --run.")
def judge(given: shared.Given) -> None:
    """Write one qrels from the grades of several judges.

    GRADES are files: CSV, JSON Lines or Parquet with the columns query_id, doc_id, judge, grade; a sheet that goodgain
    pool wrote; qrels of one judge, or with the judge in column 2; a Quepid book; an OpenSearch judgment list; output of
    RAGElo or autonuggetizer. A file without names of judges counts as one judge, named after the file.
    With --columns or --label each file is read as qrels.
    """
    agreement, scale, output, disputed = given.agreement, given.scale, given.output, given.disputed
    grades, is_qrels = given.grades, given.columns or given.label is not None
    if agreement and scale is None:
        raise InputError("--agreement needs --scale: agreement by chance depends on the grades that judges could give")
    if given.names and not agreement:
        raise InputError("--names needs --agreement. Give both")
    if output is None and disputed is None and not agreement:
        raise InputError("give -o QRELS for the labels: only --agreement and --disputed work without it")
    if given.runs and (not agreement or len(grades) != 2):
        raise InputError("--run needs --agreement and two files of grades: people's, then the model's")
    if given.runs and (given.file_labels or is_qrels):
        raise InputError("--run compares people's and a model's grades. Leave out --file-labels, --columns and --label")
    systems = shared.find_single_runs(given.runs)
    if disputed is not None:
        documents_to_judge.check_sheet_name(disputed)
    shared.check_outputs([output, disputed], [*grades, *systems.values()])
    sources: Any = list(grades)
    if is_qrels:
        sources = {str(path): load_qrels(path, columns=given.columns, label=given.label) for path in grades}
        check_columns_used(given.columns, *sources.values())
    rule = {name: getattr(given, name) for name in ("how", "scale", "map", "map_first", "file_labels", "weights")}
    found = read_grades(sources, scale=None if scale is None else find_scale(scale), urls=given.urls)
    labels = aggregate(found, **rule)
    is_text = output is not None and container(output) == "text"
    if is_text:  # TREC text cannot hold null
        _check_has_labels(labels, grades)
    if agreement:
        _print_agreement(judge_agreement.agreement(found, scale=scale, names=given.names, intervals=True))
    if output is not None:
        of_nuggets = "iteration" in labels.columns
        if is_text:
            write_qrels(load_qrels(labels, labels="subtopic" if of_nuggets else None, report_null=False), output)
        else:
            write_frame(labels, output)
        labelled = labels.get_column("relevance").count()
        shared.say(
            f"{output}: documents: {labels.height:,}, with a label: {labelled:,}, "
            f"judges: {found.frame.get_column('judge').n_unique():,}, ties: {labels.get_column('tie').sum():,}"
        )
        if of_nuggets:
            shared.say(f"{output}: column 2 holds the nuggets; read this file with --labels subtopic")
    if disputed is not None:
        sheet = find_disputed(found).with_columns(grade=pl.lit(None, pl.Int64))
        documents_to_judge.write_sheet(sheet, disputed)
        shared.say(f"{disputed}: disputed documents for people to grade: {sheet.height:,}")
    if given.runs:
        people, model = (aggregate(path, urls=given.urls, **rule | {"weights": None}) for path in grades)
        _check_has_labels(people, grades[:1])
        _check_has_labels(model, grades[1:])
        _print_conclusions(people, model, systems, given.measure)


def _check_has_labels(labels: pl.DataFrame, paths: Sequence[Path]) -> None:
    if labels.get_column("relevance").is_null().all():
        has_grades = labels["n_judges"].sum()
        why = "has a majority; choose another rule with --how" if has_grades else "is filled in; grade some"
        raise InputError(f"{', '.join(map(str, paths))}: no document has a label, because no grade {why}")


def _print_agreement(report: Agreement) -> None:
    for number, table in enumerate(report.tables()):
        cells = [[cell.text for cell in row] for row in table.rows]
        rows = pl.DataFrame(cells, schema=dict.fromkeys(table.header, pl.String), orient="row")
        text = rows.write_csv(separator="\t", include_header=number > 0)  # the first table has no header
        print("\n" * (number > 0) + text, end="")


def _print_conclusions(people: pl.DataFrame, model: pl.DataFrame, systems: dict[str, str], measure: str) -> None:

    def print_estimate(title: str, kind: str, found: conclusions.PoweredEstimate) -> None:
        print(f"{measure}: {title}", kind, "low", "high", sep="\t")
        print(
            f"people, {count_of(found.queries, 'query', 'queries')}",
            *(f"{value:.4f}" for value in found.human),
            sep="\t",
        )
        both = f"people and {count_of(found.further, 'further query', 'further queries')} of the model, weight {found.weight:.2f}"
        print(both, *(f"{value:.4f}" for value in found.powered), sep="\t")

    print()
    if len(systems) <= 2:
        for name, run in systems.items():
            for found in conclusions.estimate_means(people, model, run, measure).values():
                print_estimate(name, "mean", found)
        if len(systems) == 2:
            difference = conclusions.estimate_difference(people, model, systems, measure)
            print_estimate(" minus ".join(systems), "difference", difference)
        return
    order = conclusions.compare_orders(people, model, systems, measure)
    print(order.means.write_csv(separator="\t", float_precision=4), end="")
    print("\ncorrelation", "value", "low", "high", sep="\t")
    for name, interval in order.intervals.items():
        ends = (getattr(order, name), *(interval or (None, None)))
        print(name, *(format_cell(value, 4) for value in ends), sep="\t")
