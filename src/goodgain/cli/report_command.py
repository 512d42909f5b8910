"""The command report: writes what compare, curve and explain find into one page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from goodgain.cli import shared_options as shared
from goodgain.cli.notices_and_progress import notices_after_output, show_progress
from goodgain.cli.printed_tables import write_output
from goodgain.reporting.report import FORMATS, MEASURES, choose_format, gather_evidence, write_report


@click.command(
    epilog=shared.make_epilog(
        "goodgain report qrels_examples/two_agents/qrels.txt qrels_examples/two_agents/quick.run "
        "qrels_examples/two_agents/late.run -m 'nDCG@10 nCG@6 SRR@6' -o two_agents.html",
        "goodgain report qrels_examples/lost_documents/qrels.txt qrels_examples/lost_documents/old.run "
        "qrels_examples/lost_documents/new.run -m CG@3 --results qrels_examples/lost_documents/results.jsonl -o lost.html",
    )
)
@shared.qrels_argument
@shared.runs_argument
@shared.measures_option(
    "A measure, or several. The first one with causes by document (CG, nCG, SRE ...) is explained.", default=[MEASURES]
)
@shared.rel_option
@shared.file_option(
    "--results",
    multiple=True,
    help="Results of all systems (from convert --results), for search strings and titles. Or give the option once for each RUN.",
)
@click.option("--queries", help="query_id and text: .tsv, .jsonl, .csv, .parquet, or an ir_datasets id.")
@shared.file_option(
    "--uses", help="What convert --uses wrote for all systems: good documents never opened, or never cited."
)
@shared.groups_option
@click.option(
    "--details",
    type=click.IntRange(0),
    default=200,
    metavar="N",
    help="List all results of the N queries that changed most.",
)
@shared.file_option("-o", "--output", help="The file to write. Default: report.html; other formats are printed.")
@click.option("--format", "form", type=click.Choice([*FORMATS]), help="Default: by the ending of the file, else html.")
@shared.spreadsheet_option
@shared.order_option
@shared.provider_option
@shared.reading_options
def report(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    rel: float | None,
    results: tuple[Path, ...],
    queries: str | None,
    uses: Path | None,
    groups: Path | None,
    details: int,
    output: Path | None,
    form: str | None,
    spreadsheet: bool,
    order: str,
    provider: str | None,
    **reading: Any,
) -> None:
    """Write a page: which system is better at what, whether that is beyond noise, and where and why.

    QRELS and RUN are as in compare; all are compared with the first RUN. The page is one file and needs no network. One RUN is
    shown without a comparison. CSV has a row for each query, measure and system.
    """
    path = output or (Path("report.html") if form in (None, "html") else None)
    found = choose_format(path or Path(), form)
    shared.check_outputs([path], [qrels, *shared.find_files(runs), *results, queries, uses, groups])
    with notices_after_output(full=True):
        judged, systems = shared.open_systems(qrels, runs, **reading, replicates=True)
        with show_progress():
            made = gather_evidence(
                judged,
                systems,
                list(measures),
                rel=rel,
                results=list(results) or None,
                queries=queries,
                uses=uses,
                groups=groups,
                details=details,
                order=order,
                provider=provider,
                command=shlex.join(["goodgain", *sys.argv[1:]]),
            )
            text = write_report(made, found, spreadsheet=spreadsheet)
        write_output(text, shared.Output(found, path))
