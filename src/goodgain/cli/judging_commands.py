"""The commands `pool` and `judge`."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.cli.named_runs import find_files, find_single_runs
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
from goodgain.judgments.judging.grade_table import Grades, read_grades
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
def pool(options: shared.Options) -> None:
    """Write a sheet to fill in: all unjudged documents among the first k results of every iteration, with blank grades.

    RUN is as in evaluate. The sheet says how many runs found a document, and the first iteration that found it. A page
    (SHEET.html) shows people one document at a time, without that, and saves their grades as a file for goodgain judge. The
    page works offline and sends nothing.
    """
    form = documents_to_judge.check_sheet_name(options.output, PAGES)
    scale = find_scale(options.scale)
    inputs = [*find_files(options.runs), options.qrels, options.results, options.queries, options.texts]
    shared.check_outputs([options.output], inputs)

    reading = {option.name: getattr(options, option.name) for option in (*READING, *DOCUMENTS)}
    qrels, systems = open_systems(options.qrels, find_single_runs(options.runs), **reading)
    names = ("k", "results", "queries", "texts", "flattened", "sample_queries", "seed", "columns")
    settings = {name: getattr(options, name) for name in names}
    pooled = documents_to_judge.pool(systems, qrels=qrels, urls="keep", **settings)  # addresses are joined already

    if form == "page":
        page = {"scale": options.scale, "seed": options.seed, "spreadsheet": options.spreadsheet}
        write_judging_page(pooled, options.output, **page)
    else:
        documents_to_judge.write_sheet(pooled, options.output, spreadsheet=options.spreadsheet, scale=scale)

    queries = pooled.get_column("query_id").n_unique()
    shared.say(f"{options.output}: documents to judge: {pooled.height:,}, queries: {queries:,}")
    if form == "page":
        file = f"{options.output.stem}-NAME.csv"
        scale_option = shlex.join(["--scale", options.scale])
        shared.say(f"Judges open it in a browser and save {file}: goodgain judge {file} {scale_option} -o QRELS")
    if options.sample_queries is not None:
        shared.say(
            "The queries are in random order. Decide before you judge how many you judge: p holds only for a number fixed before. "
            "If you must stop early, stop after a whole query."
        )


def _read_weights(texts: Sequence[str]) -> dict[str, float] | None:
    weights = {}
    for text in texts:
        judge, _, weight = text.rpartition("=")
        weights[judge] = float(weight)
    return weights or None


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
def judge(options: shared.Options) -> None:
    """Write one qrels from the grades of several judges.

    GRADES are files: CSV, JSON Lines or Parquet with the columns query_id, doc_id, judge, grade; a sheet that goodgain
    pool wrote; qrels of one judge, or with the judge in column 2; a Quepid book; an OpenSearch judgment list; output of
    RAGElo or autonuggetizer. A file without names of judges counts as one judge, named after the file.
    With --columns or --label each file is read as qrels.
    """
    files, output, disputed = options.grades, options.output, options.disputed
    _check_combination(options)
    systems = find_single_runs(options.runs)
    if disputed is not None:
        documents_to_judge.check_sheet_name(disputed)
    shared.check_outputs([output, disputed], [*files, *systems.values()])

    grades = _read_grades(options)
    rule = {name: getattr(options, name) for name in ("how", "scale", "map", "map_first", "file_labels", "weights")}
    labels = aggregate(grades, **rule)
    if output is not None and container(output) == "text":  # TREC text cannot hold null
        _check_has_labels(labels, files)

    if options.agreement:
        agreement = judge_agreement.agreement(grades, scale=options.scale, names=options.names, intervals=True)
        _print_agreement(agreement)
    if output is not None:
        _write_labels(labels, output, judges=grades.frame.get_column("judge").n_unique())
    if disputed is not None:
        sheet = find_disputed(grades).with_columns(grade=pl.lit(None, pl.Int64))
        documents_to_judge.write_sheet(sheet, disputed)
        shared.say(f"{disputed}: disputed documents for people to grade: {sheet.height:,}")
    if options.runs:
        people, model = (aggregate(path, urls=options.urls, **rule | {"weights": None}) for path in files)
        _check_has_labels(people, files[:1])
        _check_has_labels(model, files[1:])
        _print_conclusions(people, model, systems, options.measure)


def _check_combination(options: shared.Options) -> None:
    """Raise `InputError` for options of judge that do not go together, or that would write and print nothing."""
    if options.agreement and options.scale is None:
        raise InputError("--agreement needs --scale: agreement by chance depends on the grades that judges could give")
    if options.names and not options.agreement:
        raise InputError("--names needs --agreement. Give both")
    if options.output is None and options.disputed is None and not options.agreement:
        raise InputError("give -o QRELS for the labels: only --agreement and --disputed work without it")

    if options.runs and (not options.agreement or len(options.grades) != 2):
        raise InputError("--run needs --agreement and two files of grades: people's, then the model's")
    if options.runs and (options.file_labels or _has_qrels(options)):
        raise InputError("--run compares people's and a model's grades. Leave out --file-labels, --columns and --label")


def _has_qrels(options: shared.Options) -> bool:
    """Return whether the files are qrels for sure."""
    return options.columns or options.label is not None


def _read_grades(options: shared.Options) -> Grades:
    """Read the files of grades. With --columns or --label each file is read as qrels, and counts as one judge named by its path."""
    sources: Any = list(options.grades)
    if _has_qrels(options):
        sources = {str(path): load_qrels(path, columns=options.columns, label=options.label) for path in options.grades}
        check_columns_used(options.columns, *sources.values())
    scale = None if options.scale is None else find_scale(options.scale)
    return read_grades(sources, scale=scale, urls=options.urls)


def _write_labels(labels: pl.DataFrame, output: Path, *, judges: int) -> None:
    """Write combined labels as qrels, and say their numbers. TREC text leaves out documents without a label.

    Parquet, Arrow and JSON Lines keep them as null, and keep all columns, such as `n_judges` and `tie`.
    """
    has_nuggets = "iteration" in labels.columns  # in qrels, this column holds the nuggets
    if container(output) == "text":  # any file but Parquet, Arrow and JSON Lines
        meaning_of_iteration = "subtopic" if has_nuggets else None
        qrels = load_qrels(labels, labels=meaning_of_iteration, report_null=False)  # write_qrels reports null labels
        write_qrels(qrels, output)
    else:
        write_frame(labels, output)

    labelled = labels.get_column("relevance").count()
    shared.say(
        f"{output}: documents: {labels.height:,}, with a label: {labelled:,}, "
        f"judges: {judges:,}, ties: {labels.get_column('tie').sum():,}"
    )
    if has_nuggets:
        shared.say(f"{output}: column 2 holds the nuggets; read this file with --labels subtopic")


def _check_has_labels(labels: pl.DataFrame, paths: Sequence[Path]) -> None:
    """Raise `InputError` if no document has a label. `paths` are the files of grades, for the message."""
    if labels.get_column("relevance").is_null().all():
        has_grades = labels.get_column("n_judges").sum() > 0
        reason = "has a majority; choose another rule with --how" if has_grades else "is filled in; grade some"
        raise InputError(f"{', '.join(map(str, paths))}: no document has a label, because no grade {reason}")


def _print_agreement(report: Agreement) -> None:
    """Print the tables of agreement between judges as TSV, with an empty line between. The first table has no header."""
    for number, table in enumerate(report.tables()):
        is_first = number == 0  # without a header
        if not is_first:
            print()
        cells = [[cell.text for cell in row] for row in table.rows]
        rows = pl.DataFrame(cells, schema=dict.fromkeys(table.header, pl.String), orient="row")
        print(rows.write_csv(separator="\t", include_header=not is_first), end="")


def _print_conclusions(people: pl.DataFrame, model: pl.DataFrame, systems: dict[str, str], measure: str) -> None:
    """Print means of one system, also the difference of two, or the orders of more systems by people and the model."""
    print()
    if len(systems) > 2:
        _print_orders(conclusions.compare_orders(people, model, systems, measure))
        return

    for name, run in systems.items():
        for estimate in conclusions.estimate_means(people, model, run, measure).values():
            _print_estimate(f"{measure}: {name}", "mean", estimate)
    if len(systems) == 2:
        difference = conclusions.estimate_difference(people, model, systems, measure)
        _print_estimate(f"{measure}: {' minus '.join(systems)}", "difference", difference)


def _print_estimate(title: str, kind: str, estimate: conclusions.PoweredEstimate) -> None:
    """Print two lines of (value, low, high) under a header: from people's labels alone, then with those of the model added."""
    print(title, kind, "low", "high", sep="\t")
    queries = count_of(estimate.queries, "query", "queries")
    print(f"people, {queries}", *(f"{value:.4f}" for value in estimate.human), sep="\t")
    further = count_of(estimate.further, "further query", "further queries")
    source = f"people and {further} of the model, weight {estimate.weight:.2f}"
    print(source, *(f"{value:.4f}" for value in estimate.powered), sep="\t")


def _print_orders(orders: conclusions.OrderAgreement) -> None:
    """Print each system's two means, under people's and the model's labels, then the correlations of the two orders."""
    print(orders.means.write_csv(separator="\t", float_precision=4), end="")
    print("\ncorrelation", "value", "low", "high", sep="\t")
    for name, interval in orders.intervals.items():
        values = (getattr(orders, name), *(interval or (None, None)))
        print(name, *(format_cell(value, 4) for value in values), sep="\t")
