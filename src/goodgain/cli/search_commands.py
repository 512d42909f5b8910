"""The commands `ledger`, `curve`, `pr`, `explain` and `funnel`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from goodgain.analysis.comparing import use_of_documents
from goodgain.analysis.comparing.use_of_documents import FUNNEL, Funnel
from goodgain.analysis.explaining.explanation_frames import take_query
from goodgain.analysis.explaining.explanation_screens import FORMS, render_on_terminal
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.page_sentences import describe_spend
from goodgain.analysis.reporting.plots.pictures import draw_curves, write_picture
from goodgain.analysis.reporting.spends import format_amount
from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import notices_after_output, show_progress
from goodgain.cli.named_runs import find_files
from goodgain.cli.printed_tables import (
    Value,
    find_table_width,
    open_console,
    print_frame,
    print_sparklines,
    print_values,
    write_output,
)
from goodgain.counting.spends import OVER
from goodgain.errors import InputError
from goodgain.files.terminal_tables import print_drawn
from goodgain.formats import read_qrels

if TYPE_CHECKING:
    from goodgain.experiments.experiment import Experiment


@shared.command(
    "goodgain ledger qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run -m 'SRE SRR'",
    "goodgain ledger qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/lean.run --rel 1 -o csv",
)
@shared.qrels_argument
@shared.run_argument
@shared.measures_option("A goodgain measure without @: adds its value at each iteration.")
@shared.rel_option
@shared.output_option("csv")
@shared.spreadsheet_option
@shared.reading_options
def ledger(options: shared.Options) -> None:
    """Print what each iteration of each query found: results, repeats, good documents, gain.

    A query has no row after its last iteration, so a mean over rows leaves out queries that have stopped. goodgain curve
    prints means over all queries.
    """
    shared.check_outputs([options.output.path], [options.qrels, options.run])
    options.runs = [options.run]
    scoring = shared.make_scoring(options, replicates=False)
    rows = scoring.ledger(options.measures or None).drop("system")
    print_frame(rows, options.output, spreadsheet=options.spreadsheet)


@shared.command(
    "goodgain curve qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'CG SRE SRR'",
    "goodgain curve qrels_examples/two_agents/qrels.txt late=qrels_examples/two_agents/late.run -m nCG --over tokens "
    "--costs qrels_examples/two_agents/costs.csv --plot curve.svg",
)
@shared.qrels_argument
@shared.runs_argument
@shared.measures_option("Goodgain measures without @: -m 'CG SRE'.", required=True)
@shared.rel_option
@click.option("--upto", type=int, help="The last iteration to print. Default: the last iteration of any query.")
@click.option("--over", type=click.Choice([*OVER]), help="Print means by amount spent, not by iteration.")
@shared.declared_option("costs", multiple=True)
@click.option(
    "--at",
    metavar="N,N...",
    callback=shared.parse_numbers("1000,5000"),
    help="Print the means at these values of --over. Default: at most 50 of the observed values.",
)
@shared.declared_option("outcomes", "Also print tokens per solved task.")
@click.option(
    "--price-per-search",
    type=float,
    metavar="GAIN",
    help="The gain (CG) that a search must add to be worth its price. Also print how many searches are worth their price.",
)
@shared.places_option("Decimals in table, markdown and latex.")
@shared.declared_option("resamples", "0: no intervals.", type=click.IntRange(0))
@shared.declared_option("seed")
@shared.plot_option
@shared.output_option("csv")
@shared.spreadsheet_option
@shared.rows_option
@shared.reading_options
def curve(options: shared.Options) -> None:
    """Print the mean of each measure at every iteration. The mean of CG at iteration 3 is CG@3 in evaluate.

    QRELS and RUN are as in evaluate; NAME=RUN names a system. NAME=a.run,b.run and NAME='a.*.run' are several runs of one
    system: their values are averaged query by query. "least" and "most" are the lowest and highest mean of a single run.

    Every mean is over all queries of the qrels: after a query has stopped, its iterations are empty. The column "searching"
    is the number of queries that still search. The column "coverage" is the judged share of an iteration's new results.
    A terminal also shows each curve as a line of small bars.

    A table also says after how many searches 95 % of the gain is there. --costs, --outcomes and --price-per-search add sentences
    on the costs of good documents, solved tasks and searches. If the output is not a table, these sentences go to standard error.
    """
    inputs = [options.qrels, *find_files(options.runs), *(options.costs or ()), options.outcomes]
    shared.check_outputs([options.plot, options.output.path], inputs)
    experiment = shared.make_experiment(options)
    with show_progress():
        over = options.over
        costs = options.costs if over and OVER[over] is None else None  # other quantities are in the runs
        frame = experiment.curve(options.measures, upto=options.upto, over=over, costs=costs, at=options.at)
        sentences = _describe_spend(experiment, options)

    if options.output.form == "table":
        _print_curve(frame, options)
        for sentence in sentences:
            print(sentence)
    else:
        print_frame(frame, options.output, places=options.places, spreadsheet=options.spreadsheet)
        for sentence in sentences:
            shared.say(sentence)
    if options.plot is not None:
        write_picture(draw_curves(frame), options.plot)
        shared.say(f"picture: {options.plot}")


def _describe_spend(experiment: Experiment, options: shared.Options) -> list[str]:
    """Return sentences on what the systems spend, for a table and wherever an option asks for them."""
    price = options.price_per_search
    is_requested = options.costs or options.over or options.outcomes or price is not None
    if not is_requested and options.output.form != "table":
        return []
    totals = experiment.spend(options.costs, outcomes=options.outcomes, price_per_search=price)
    return list(describe_spend(totals, price))


#: Quantity that a curve runs over -> the word for one of it. A cost has no other word.
_SINGULAR = {"searches": "search", "results": "result", "tokens": "token", "seconds": "second"}


def _print_curve(frame: pl.DataFrame, options: shared.Options) -> None:
    """Print a table of means by iteration or spend, and in a terminal small curves.

    By iteration, the table also has the rows searching@i and coverage@i, which hold for all measures.
    """
    values = [Value(None, _name_point(row), row["system"], row["mean"]) for row in frame.rows(named=True)]
    if "iteration" in frame.columns:
        one_measure = frame.filter(measure=frame.item(0, "measure"))  # these columns are equal for all measures
        for name in ("searching", "coverage"):
            for iteration, system, number in one_measure.select("iteration", "system", name).iter_rows():
                values.append(Value(None, f"{name}@{iteration}", system, number))
    print_values(values, options)

    if "over" in frame.columns:
        first = frame.row(0, named=True)
        unit = first["over"]
        if first["spend"] == 1:
            unit = _SINGULAR.get(unit, unit)
        budget = f"{format_amount(first['spend'])} {unit}"
        print(f"{_name_point(first)} is the mean of {first['measure']} where each query has spent at most {budget}.")
    if sys.stdout.isatty():
        print_sparklines(frame, options.places)


def _name_point(row: dict[str, Any]) -> str:
    if "spend" in row:
        return f"{format_amount(row['spend'])}: {row['measure']}"
    return f"{row['measure']}@{row['iteration']}"


@shared.command(
    "goodgain pr qrels_examples/rankings/qrels.txt 1=qrels_examples/rankings/a_and_c.run 2=qrels_examples/rankings/b_and_d.run",
    "goodgain pr qrels_examples/rankings/qrels.txt qrels_examples/rankings/a_and_c.run --points raw -q -o csv",
)
@shared.qrels_argument
@shared.runs_argument
@shared.declared_option("rel", default=1)
@shared.choice_option(
    "--points",
    ("eleven", "all", "raw"),
    "Recall 0, 0.1 ... 1; every recall that a query reaches; or, with -q, the precision at each relevant document.",
)
@click.option("-q", "--by-query", is_flag=True, help="Print the points of each query, not their mean.")
@shared.plot_option
@shared.output_option("csv")
@shared.spreadsheet_option
@shared.declared_option("order")
@shared.reading_options
def pr(options: shared.Options) -> None:
    """Print precision over recall, of the ranking without repeats that classic measures use.

    QRELS and RUN are as in evaluate. Points are interpolated: the highest precision at the same or a higher recall. The points
    of --points raw are not: they are the precision and the recall at each relevant document, for a plot of your own.
    """
    shared.check_outputs([options.plot, options.output.path], [options.qrels, *find_files(options.runs)])
    if options.plot is not None and options.points == "raw":
        raise InputError("--plot draws interpolated precision. Leave out --points raw.")

    experiment = shared.make_experiment(options)
    with show_progress():
        frame = experiment.pr_curve(points=options.points, per_query=options.by_query)
    print_frame(frame, options.output, spreadsheet=options.spreadsheet)
    if options.plot is not None:
        write_picture(plots.precision_recall(frame).figure, options.plot)  # type: ignore[arg-type]  # not a subfigure: it is new
        shared.say(f"picture: {options.plot}")


@shared.command(
    "goodgain explain qrels_examples/lost_documents/qrels.txt qrels_examples/lost_documents/old.run "
    "qrels_examples/lost_documents/new.run --results qrels_examples/lost_documents/results.jsonl",
    "goodgain explain qrels_examples/two_agents/qrels.txt qrels_examples/two_agents/quick.run "
    "qrels_examples/two_agents/late.run -m CG@3 --query q06",
)
@shared.qrels_argument
@click.argument("base", metavar="BASE")
@click.argument("new", metavar="NEW")
@shared.measures_option("CG, NumGood, DCGG, or a rate of them such as SRE@3.", default=["CG"])
@shared.rel_option
@click.option("--query", metavar="ID", help="Print both agents side by side for one query.")
@shared.declared_option("results", "One file of both systems, or one each: for BASE, then for NEW.", multiple=True)
@shared.declared_options("queries", "uses")
@shared.declared_option("outcomes", "--incomplete needs its column completed.")
@shared.declared_options("missing", "incomplete")
@click.option(
    "--top", type=click.IntRange(0), default=5, help="How many improved and how many worsened queries to show."
)
@shared.output_option("markdown")
@shared.spreadsheet_option
@shared.reading_options
def explain(options: shared.Options) -> None:
    """Explain where and why NEW is better or worse than BASE: causes, queries, searches.

    BASE and NEW are runs as in evaluate. NAME=RUN names a system, and NAME='a.*.run' names several runs of a system. For CG,
    NumGood, DCGG, nCG and nDCGG, each cause has an amount, and the amounts add up to the difference. Output as csv, tsv,
    jsonl or parquet has a row for each good document.
    """
    options.runs = [options.base, options.new]
    output = options.output
    results = options.results or []
    if len(results) > 2:
        raise InputError("--results was given more than twice. Give one file of both systems, or one for each.")
    inputs = [options.qrels, *find_files(options.runs), *results, options.queries, options.uses, options.outcomes]
    shared.check_outputs([output.path], inputs)

    with notices_after_output(full=True):
        experiment = shared.make_experiment(options)
        base, new = experiment.systems
        tables = {name: getattr(options, name) for name in ("results", "queries", "uses", "outcomes")}
        with show_progress():
            explanation = experiment.explain(base, new, list(options.measures), top=options.top, **tables)

        if output.form == "table":
            console = open_console(sys.stdout)
            print_drawn(console, [*render_on_terminal(explanation, options.query, find_table_width(console))])
        elif output.form in FORMS:
            write_output(explanation.to_text(output.form, query=options.query), output)
        else:
            if options.query is not None:
                explanation = take_query(explanation, options.query)
            print_frame(explanation.documents, output, spreadsheet=options.spreadsheet)


@shared.command(
    "goodgain funnel qrels_examples/opened_and_cited/judgments.qrels qrels_examples/opened_and_cited/uses.jsonl",
    "goodgain funnel qrels_examples/opened_and_cited/judgments.qrels qrels_examples/opened_and_cited/uses.jsonl -q -o csv",
)
@shared.qrels_argument
@click.argument("uses", metavar="USES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@shared.declared_option("rel", default=2)
@click.option(
    "-q", "--by-query", is_flag=True, help="Print a row per query, not means. compare --outcomes reads this table."
)
@shared.places_option("Decimals in table, markdown and latex.")
@shared.rows_option
@shared.plot_option
@shared.output_option("tsv")
@shared.spreadsheet_option
@shared.declared_options("labels", "errors")
@shared.columns_option
@shared.declared_option("urls")
def funnel(options: shared.Options) -> None:
    """Print how many documents were returned, opened and cited, and how many good documents were lost.

    USES are files written by goodgain convert --uses, for one or more systems. A judged query that is not in USES used no
    documents. Most averages leave out queries without a value: not every log records opened documents or answers. A number in
    brackets says how many queries an average covers.
    """
    shared.check_outputs([options.plot, options.output.path], [options.qrels, *options.uses])
    with notices_after_output(full=True):
        qrels = read_qrels(options.qrels, labels=options.labels, columns=options.columns, errors=options.errors)
        uses = use_of_documents.funnel(qrels, list(options.uses), options.rel, urls=options.urls)
        if options.by_query:
            print_frame(uses.per_query, options.output, places=options.places, spreadsheet=options.spreadsheet)
        else:
            print_values(_list_means(uses, names_all_counts=options.output.form != "table"), options)

        if options.plot is not None:
            write_picture(plots.funnel(uses).figure, options.plot)  # type: ignore[arg-type]  # not a subfigure: it is new
            shared.say(f"picture: {options.plot}")


def _list_means(uses: Funnel, *, names_all_counts: bool) -> list[Value]:
    """Return the means of each system. A mean over all queries has its number of queries only with `names_all_counts`."""
    queries_with_value = uses.count_queries().rows_by_key("system", named=True, unique=True)
    values = []
    for row in uses.frame.iter_rows(named=True):
        system = row["system"]
        for name in FUNNEL:
            queries: int | None = queries_with_value[system][name]
            if queries == row["queries"] and not names_all_counts:
                queries = None
            values.append(Value(None, name, system, row[name], queries))
    return values
