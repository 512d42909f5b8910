"""The commands `ledger`, `curve`, `pr`, `explain` and `funnel`."""

import sys
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.analysis.comparing import use_of_documents
from goodgain.analysis.comparing.use_of_documents import FUNNEL
from goodgain.analysis.explaining.explanation_frames import take_query
from goodgain.analysis.explaining.explanation_screens import FORMS, render_on_terminal
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.page_sentences import describe_spend
from goodgain.analysis.reporting.plots.pictures import draw_curves, write_picture
from goodgain.analysis.reporting.spends import format_amount
from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import notices_after_output, show_progress
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
def ledger(given: shared.Given) -> None:
    """Print what each iteration of each query found: results, repeats, good documents, gain.

    A query has no row after its last iteration, so a mean over rows leaves out queries that have stopped. goodgain curve
    prints means over all queries.
    """
    shared.check_outputs([given.output.path], [given.qrels, given.run])
    given.runs = [given.run]
    x = shared.make_scoring(given, replicates=False)
    print_frame(x.ledger(given.measures or None).drop("system"), given.output, spreadsheet=given.spreadsheet)


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
def curve(given: shared.Given) -> None:
    """Print the mean of each measure at every iteration. The mean of CG at iteration 3 is CG@3 in evaluate.

    QRELS and RUN are as in evaluate; NAME=RUN names a system. NAME=a.run,b.run and NAME='a.*.run' are several runs of one
    system: their values are averaged query by query. "least" and "most" are the lowest and highest mean of a single run.

    Every mean is over all queries of the qrels: after a query has stopped, its iterations are empty. The column "searching"
    is the number of queries that still search. The column "coverage" is the judged share of an iteration's new results.
    A terminal also shows each curve as a line of small bars.

    A table also says after how many searches 95 % of the gain is there. --costs, --outcomes and --price-per-search add sentences
    on the costs of good documents, solved tasks and searches. If the output is not a table, these sentences go to standard error.
    """
    inputs = [given.qrels, *shared.find_files(given.runs), *(given.costs or ()), given.outcomes]
    shared.check_outputs([given.plot, given.output.path], inputs)
    x = shared.make_experiment(given)
    over, price, is_table = given.over, given.price_per_search, given.output.form == "table"
    lines: list[str] = []
    with show_progress():
        of_curve = given.costs if over and OVER[over] is None else None
        frame = x.curve(given.measures, upto=given.upto, over=over, costs=of_curve, at=given.at)
        if is_table or given.costs or over or given.outcomes or price is not None:
            totals = x.spend(given.costs, outcomes=given.outcomes, price_per_search=price)
            lines = list(describe_spend(totals, price))
    if is_table:
        _print_curve(frame, given)
    else:
        print_frame(frame, given.output, places=given.places, spreadsheet=given.spreadsheet)
    for line in lines:
        (print if is_table else shared.say)(line)
    if given.plot is not None:
        write_picture(draw_curves(frame), given.plot)
        shared.say(f"picture: {given.plot}")


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
def pr(given: shared.Given) -> None:
    """Print precision over recall, of the ranking without repeats that classic measures use.

    QRELS and RUN are as in evaluate. Points are interpolated: the highest precision at the same or a higher recall. The points
    of --points raw are not: they are the precision and the recall at each relevant document, for a plot of your own.
    """
    shared.check_outputs([given.plot, given.output.path], [given.qrels, *shared.find_files(given.runs)])
    if given.plot is not None and given.points == "raw":
        raise InputError("--plot draws interpolated precision. Leave out --points raw.")
    x = shared.make_experiment(given)
    with show_progress():
        frame = x.pr_curve(points=given.points, per_query=given.by_query)
    print_frame(frame, given.output, spreadsheet=given.spreadsheet)
    if given.plot is not None:
        write_picture(plots.precision_recall(frame).figure, given.plot)  # type: ignore[arg-type]  # not a subfigure: it is new
        shared.say(f"picture: {given.plot}")


#: Quantity that a curve runs over -> the word for one of it. A cost has no other word.
_SINGULAR = {"searches": "search", "results": "result", "tokens": "token", "seconds": "second"}


def _print_curve(frame: pl.DataFrame, given: shared.Given) -> None:
    values = [Value(None, _name_point(row), row["system"], row["mean"]) for row in frame.rows(named=True)]
    of_one = frame.filter(measure=frame.item(0, "measure"))  # equal for all measures
    for name in ("searching", "coverage") if "iteration" in frame.columns else ():
        numbers = of_one.select("iteration", "system", name).iter_rows()
        values += [Value(None, f"{name}@{i}", system, number) for i, system, number in numbers]
    print_values(values, given)
    if "over" in frame.columns:
        first = frame.row(0, named=True)
        unit = _SINGULAR.get(first["over"], first["over"]) if first["spend"] == 1 else first["over"]
        spent = f"{format_amount(first['spend'])} {unit}"
        print(f"{_name_point(first)} is the mean of {first['measure']} where each query has spent at most {spent}.")
    if sys.stdout.isatty():
        print_sparklines(frame, given.places)


def _name_point(row: dict[str, Any]) -> str:
    return (
        f"{format_amount(row['spend'])}: {row['measure']}" if "spend" in row else f"{row['measure']}@{row['iteration']}"
    )


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
def explain(given: shared.Given) -> None:
    """Explain where and why NEW is better or worse than BASE: causes, queries, searches.

    BASE and NEW are runs as in evaluate. NAME=RUN names a system, and NAME='a.*.run' names several runs of a system. For CG,
    NumGood, DCGG, nCG and nDCGG, each cause has an amount, and the amounts add up to the difference. Output as csv, tsv,
    jsonl or parquet has a row for each good document.
    """
    results, output, given.runs = given.results or [], given.output, [given.base, given.new]
    if len(results) > 2:
        raise InputError("--results was given more than twice. Give one file of both systems, or one for each.")
    shared.check_outputs(
        [output.path],
        [given.qrels, *shared.find_files(given.runs), *results, given.queries, given.uses, given.outcomes],
    )
    with notices_after_output(full=True):
        x = shared.make_experiment(given)
        with show_progress():
            names = ("results", "queries", "uses", "outcomes")
            tables = {name: getattr(given, name) for name in names}
            explained = x.explain(x.systems[0], x.systems[1], list(given.measures), top=given.top, **tables)
        if output.form == "table":
            console = open_console(sys.stdout)
            print_drawn(console, [*render_on_terminal(explained, given.query, find_table_width(console))])
        elif output.form in FORMS:
            write_output(explained.to_text(output.form, query=given.query), output)
        else:
            shown = explained if given.query is None else take_query(explained, given.query)
            print_frame(shown.documents, output, spreadsheet=given.spreadsheet)


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
def funnel(given: shared.Given) -> None:
    """Print how many documents were returned, opened and cited, and how many good documents were lost.

    USES are files written by goodgain convert --uses, for one or more systems. A judged query that is not in USES used no
    documents. Most averages leave out queries without a value: not every log records opened documents or answers. A number in
    brackets says how many queries an average covers.
    """
    shared.check_outputs([given.plot, given.output.path], [given.qrels, *given.uses])
    with notices_after_output(full=True):
        judged = read_qrels(given.qrels, labels=given.labels, columns=given.columns, errors=given.errors)
        found = use_of_documents.funnel(judged, list(given.uses), given.rel, urls=given.urls)
        if given.by_query:
            print_frame(found.per_query, given.output, places=given.places, spreadsheet=given.spreadsheet)
        else:
            values = []
            counted = found.count_queries().rows_by_key("system", named=True, unique=True)
            for row in found.frame.iter_rows(named=True):
                for name in FUNNEL:
                    known = counted[row["system"]][name]
                    is_shown = known < row["queries"] or given.output.form != "table"
                    values.append(Value(None, name, row["system"], row[name], known if is_shown else None))
            print_values(values, given)
        if given.plot is not None:
            write_picture(plots.funnel(found).figure, given.plot)  # type: ignore[arg-type]  # not a subfigure: it is new
            shared.say(f"picture: {given.plot}")
