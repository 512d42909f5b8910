"""The command funnel: which documents were returned, opened and cited, and where good ones were lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from goodgain.cli import shared_options as shared
from goodgain.cli.notices_and_progress import notices_after_output
from goodgain.cli.printed_tables import Value, print_frame, print_values
from goodgain.comparing import use_of_documents
from goodgain.comparing.use_of_documents import FUNNEL, OF_STAGES
from goodgain.formats import read_qrels
from goodgain.reporting.plots.pictures import draw_funnel, write_picture


@click.command(
    epilog=shared.make_epilog(
        "goodgain funnel qrels_examples/opened_and_cited/judgments.qrels qrels_examples/opened_and_cited/uses.jsonl",
        "goodgain funnel qrels_examples/opened_and_cited/judgments.qrels qrels_examples/opened_and_cited/uses.jsonl -q -o csv",
    )
)
@shared.qrels_argument
@click.argument("uses", metavar="USES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--rel", type=float, metavar="LABEL", default=2, help="The smallest good label.")
@click.option(
    "-q", "--by-query", is_flag=True, help="Print a row for each query instead: the table for compare --outcomes."
)
@shared.places_option("Decimals in a table.")
@shared.rows_option
@shared.plot_option
@shared.output_option("tsv")
@shared.spreadsheet_option
@shared.labels_option
@shared.columns_option
@shared.errors_option
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
    **reading: Any,
) -> None:
    """Print how many documents were returned, opened and cited, and how many good ones were lost on the way.

    USES are files that goodgain convert --uses writes, of one or more systems. Every mean is over all judged queries.
    A number in brackets says how many queries have the value: not every log records what was opened, or an answer.
    """
    shared.check_outputs([plot, output.path], [qrels, *uses])
    with notices_after_output(full=True):
        found = use_of_documents.funnel(read_qrels(qrels, **reading), list(uses), rel)
        if by_query:
            print_frame(found.per_query, output, spreadsheet=spreadsheet)
        else:
            values = []
            for row in found.frame.iter_rows(named=True):
                for name in FUNNEL:
                    known = row[OF_STAGES[name]]
                    is_shown = known < row["queries"] or output.form != "table"
                    values.append(Value(None, name, row["system"], row[name], known if is_shown else None))
            print_values(values, output, rows=rows, places=places, by_query=False)
        if plot is not None:
            write_picture(draw_funnel(found), plot)
            shared.say(f"picture: {plot}")
