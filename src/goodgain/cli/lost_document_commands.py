"""The commands explain and funnel: where and why good documents were lost."""

import sys
from pathlib import Path
from typing import Any

import click

from goodgain.analysis.comparing import use_of_documents
from goodgain.analysis.comparing.explanation_screens import FORMS, render_on_terminal, take_query
from goodgain.analysis.comparing.use_of_documents import FUNNEL
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.plots.pictures import write_picture
from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import notices_after_output, show_progress
from goodgain.cli.printed_tables import Value, open_console, print_frame, print_values, write_output
from goodgain.errors import InputError
from goodgain.files.terminal_tables import print_drawn
from goodgain.formats import read_qrels


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
@shared.declared_option("uses")
@click.option("--top", type=click.IntRange(0), default=5, help="How many queries to show, in each direction.")
@shared.output_option("markdown")
@shared.spreadsheet_option
@shared.reading_options
def explain(
    qrels: str,
    base: str,
    new: str,
    measures: tuple[str, ...],
    query: str | None,
    results: tuple[Path, ...],
    uses: Path | None,
    top: int,
    output: shared.Output,
    spreadsheet: bool,
    **options: Any,
) -> None:
    """Explain where and why NEW is better or worse than BASE: causes, queries, searches.

    BASE and NEW are runs as evaluate takes them; NAME=RUN names a system, NAME='a.*.run' several runs of it. For CG, NumGood,
    DCGG, nCG and nDCGG the amounts of the causes add up to the difference. In csv, tsv, jsonl and parquet there is a row for
    each good document.
    """
    if len(results) > 2:
        raise InputError("--results was given more than twice. Give one file of both systems, or one for each.")
    shared.check_outputs([output.path], [qrels, *shared.find_files([base, new]), *results, uses])
    with notices_after_output(full=True):
        x = shared.make_experiment(qrels, [base, new], options)
        opened = list(results) if results else None
        with show_progress():
            explained = x.explain(x.systems[0], x.systems[1], list(measures), results=opened, uses=uses, top=top)
        if output.form == "table":
            console = open_console(sys.stdout)
            print_drawn(console, [*render_on_terminal(explained, query, console.width)])
        elif output.form in FORMS:
            write_output(explained.to_text(output.form, query=query), output)
        else:
            shown = explained if query is None else take_query(explained, query)
            print_frame(shown.documents, output, spreadsheet=spreadsheet)


@shared.command(
    "goodgain funnel qrels_examples/opened_and_cited/judgments.qrels qrels_examples/opened_and_cited/uses.jsonl",
    "goodgain funnel qrels_examples/opened_and_cited/judgments.qrels qrels_examples/opened_and_cited/uses.jsonl -q -o csv",
)
@shared.qrels_argument
@click.argument("uses", metavar="USES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@shared.declared_option("rel", default=2)
@click.option(
    "-q", "--by-query", is_flag=True, help="Print a row for each query instead: the table for compare --outcomes."
)
@shared.places_option("Decimals in a table.")
@shared.rows_option
@shared.plot_option
@shared.output_option("tsv")
@shared.spreadsheet_option
@shared.declared_options("labels", "errors")
@shared.columns_option
@shared.declared_option("urls")
def funnel(
    qrels: str,
    uses: tuple[Path, ...],
    rel: float,
    by_query: bool,
    places: int,
    rows: str,
    plot: Path | None,
    output: shared.Output,
    spreadsheet: bool,
    urls: str,
    **reading: Any,
) -> None:
    """Print how many documents were returned, opened and cited, and how many good ones were lost on the way.

    USES are files that goodgain convert --uses writes, of one or more systems. Every mean is over all judged queries.
    A number in brackets says how many queries have the value: not every log records what was opened, or an answer.
    """
    shared.check_outputs([plot, output.path], [qrels, *uses])
    with notices_after_output(full=True):
        found = use_of_documents.funnel(read_qrels(qrels, **reading), list(uses), rel, urls=urls)
        if by_query:
            print_frame(found.per_query, output, spreadsheet=spreadsheet)
        else:
            values = []
            counted = found.count_queries().rows_by_key("system", named=True, unique=True)
            for row in found.frame.iter_rows(named=True):
                for name in FUNNEL:
                    known = counted[row["system"]][name]
                    is_shown = known < row["queries"] or output.form != "table"
                    values.append(Value(None, name, row["system"], row[name], known if is_shown else None))
            print_values(values, output, rows=rows, places=places, by_query=False)
        if plot is not None:
            write_picture(plots.funnel(found).figure, plot)  # type: ignore[arg-type]  # not a subfigure: it is new
            shared.say(f"picture: {plot}")
