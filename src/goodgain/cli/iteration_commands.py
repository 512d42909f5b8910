"""The commands ledger (what each iteration of each query found) and curve (the mean of measures at each iteration)."""

import sys
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.analysis.reporting.plots.pictures import draw_curves, write_picture
from goodgain.analysis.reporting.spend_totals import describe_spend
from goodgain.analysis.reporting.spends import OVER, format_amount
from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import show_progress
from goodgain.cli.printed_tables import Value, print_frame, print_sparklines, print_values


@shared.command(
    "goodgain ledger qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run -m 'SRE SRR'",
    "goodgain ledger qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/lean.run --rel 1 -o csv",
)
@shared.qrels_argument
@shared.run_argument
@shared.measures_option("A measure of ours, without @: adds its value at each iteration.")
@shared.rel_option
@shared.output_option("csv")
@shared.spreadsheet_option
@shared.reading_options
def ledger(
    qrels: str, run: str, measures: tuple[str, ...], output: shared.Output, spreadsheet: bool, **options: Any
) -> None:
    """Print what each iteration of each query found: results, repeats, good documents, gain.

    A query has no row after its last iteration, so a mean over rows leaves out queries that have stopped. goodgain curve
    prints means over all queries.
    """
    shared.check_outputs([output.path], [qrels, run])
    x = shared.make_experiment(qrels, [run], options, replicates=False, name_alone=False)
    print_frame(x.ledger(measures or None).drop("system"), output, spreadsheet=spreadsheet)


@shared.command(
    "goodgain curve qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'CG SRE SRR'",
    "goodgain curve qrels_examples/two_agents/qrels.txt late=qrels_examples/two_agents/late.run -m nCG --over tokens "
    "--costs qrels_examples/two_agents/costs.csv --plot curve.svg",
)
@shared.qrels_argument
@shared.runs_argument
@shared.measures_option("Measures of ours, without @: -m 'CG SRE'.", required=True)
@shared.rel_option
@click.option("--upto", type=int, help="The last iteration; default: the last one of any query.")
@click.option("--over", type=click.Choice([*OVER]), help="Print means at what was spent, in place of iterations.")
@shared.declared_option("costs", multiple=True)
@click.option(
    "--at",
    metavar="N,N...",
    callback=shared.parse_numbers("1000,5000"),
    help="The spends, for --over; default: at most 50 of those observed.",
)
@shared.declared_option("outcomes", "Also print tokens per solved task.")
@click.option(
    "--price-per-search",
    type=float,
    metavar="GAIN",
    help="The CG that a search must bring: print how many are worth it.",
)
@shared.places_option("Decimals in a table.")
@shared.declared_option("resamples", "0: no intervals.", type=click.IntRange(0))
@shared.declared_option("seed")
@shared.plot_option
@shared.output_option("csv")
@shared.spreadsheet_option
@shared.rows_option
@shared.reading_options
def curve(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    over: str | None,
    costs: tuple[Path, ...],
    outcomes: Path | None,
    price_per_search: float | None,
    places: int,
    plot: Path | None,
    output: shared.Output,
    spreadsheet: bool,
    rows: str,
    upto: int | None,
    at: list[float] | None,
    **options: Any,
) -> None:
    """Print the mean of each measure at every iteration i: for CG, what evaluate prints for CG@i.

    QRELS and RUN are as in evaluate; NAME=RUN names a system. NAME=a.run,b.run and NAME='a.*.run' are several runs of one
    system: their values are averaged query by query. "least" and "most" are then the smallest and the largest mean of a run.

    Every mean is over all queries of the qrels: a query that has stopped counts as having empty iterations. "searching" is
    the number of queries that still search, "coverage" the judged share of the new results of this iteration. A terminal
    also shows each curve as a line of small bars.

    A table also says after how many searches 95 % of the gain is there. With --costs, --outcomes and
    --price-per-search it says what a good document, a solved task and a search cost; other forms print this on standard
    error.
    """
    inputs = [qrels, *shared.find_files(runs), *costs, outcomes]
    shared.check_outputs([plot, output.path], inputs)
    x = shared.make_experiment(qrels, runs, options)
    spent = [*costs] or None
    of_curve = spent if over and OVER[over] is None else None
    is_table, is_asked = output.form == "table", bool(spent or over or outcomes or price_per_search is not None)
    lines: list[str] = []
    with show_progress():
        frame = x.curve(measures, upto=upto, over=over, costs=of_curve, at=at)
        if is_table or is_asked:
            totals = x.spend(spent, outcomes=outcomes, price_per_search=price_per_search)
            lines = list(describe_spend(totals, price_per_search))
    if output.form == "table":
        _print_tables(frame, output, rows=rows, places=places)
    else:
        print_frame(frame, output, spreadsheet=spreadsheet)
    for line in lines:
        (print if is_table else shared.say)(line)
    if plot is not None:
        write_picture(draw_curves(frame), plot)
        shared.say(f"picture: {plot}")


def _print_tables(frame: pl.DataFrame, output: shared.Output, *, rows: str, places: int) -> None:
    values = [Value(None, _name_point(row), row["system"], row["mean"]) for row in frame.rows(named=True)]
    of_one = frame.filter(measure=frame.item(0, "measure"))  # every measure has the same numbers of queries
    for name in ("searching", "coverage") if "iteration" in frame.columns else ():
        numbers = of_one.select("iteration", "system", name).iter_rows()
        values += [Value(None, f"{name}@{i}", system, number) for i, system, number in numbers]
    print_values(values, output, rows=rows, places=places, by_query=False)
    if "over" in frame.columns:
        first = frame.row(0, named=True)
        spent = f"{format_amount(first['spend'])} {first['over']}"
        print(f"{_name_point(first)} is the mean of {first['measure']} where each query has spent at most {spent}.")
    if sys.stdout.isatty():
        print_sparklines(frame, places)


def _name_point(row: dict[str, Any]) -> str:
    """Return the name of a row of a curve: CG@3, or 5,000: CG for a spend."""
    return (
        f"{format_amount(row['spend'])}: {row['measure']}" if "spend" in row else f"{row['measure']}@{row['iteration']}"
    )
