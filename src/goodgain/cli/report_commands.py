"""The commands report (a page of what compare, curve and explain find) and annotate (scores beside the traces)."""

import json
import os
import shlex
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import click

from goodgain.analysis.reporting.report import FORMATS, choose_format, write_report
from goodgain.cli import shared_options as shared
from goodgain.cli.log_commands import group_traces, reading_options
from goodgain.cli.messages_and_exit_status import notices_after_output, show_progress
from goodgain.cli.printed_tables import write_output
from goodgain.errors import count_of
from goodgain.experiments.reports import gather_evidence
from goodgain.experiments.shared_arguments import OF_REPORTS


@shared.command(
    "goodgain report qrels_examples/two_agents/qrels.txt qrels_examples/two_agents/quick.run "
    "qrels_examples/two_agents/late.run -m 'nDCG@10 nCG@6 SRR@6' -o two_agents.html",
    "goodgain report qrels_examples/lost_documents/qrels.txt qrels_examples/lost_documents/old.run "
    "qrels_examples/lost_documents/new.run -m CG@3 --results qrels_examples/lost_documents/results.jsonl -o lost.html",
)
@shared.qrels_argument
@shared.runs_argument
@shared.measures_option(
    "A measure, or several. The first one with causes by document (CG, nCG, SRE ...) is explained.",
    default=[OF_REPORTS],
)
@shared.rel_option
@shared.declared_option("results", "One file of all systems, or one for each RUN.", multiple=True)
@shared.declared_options("queries", "uses", "groups")
@shared.declared_option("costs", multiple=True)
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
@shared.declared_options("order", "provider")
@shared.reading_options
def report(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    results: tuple[Path, ...],
    costs: tuple[Path, ...],
    output: Path | None,
    form: str | None,
    spreadsheet: bool,
    **options: Any,
) -> None:
    """Write a page: which system is better at what, whether that is beyond chance, and where and why.

    QRELS and RUN are as in compare; all are compared with the first RUN. The page is one file and needs no network. One RUN is
    shown without a comparison. CSV has a row for each query, measure and system.
    """
    path = output or (Path("report.html") if form in (None, "html") else None)
    found = choose_format(path or Path(), form)
    tables = (options[name] for name in ("queries", "uses", "groups"))
    shared.check_outputs([path], [qrels, *shared.find_files(runs), *results, *costs, *tables])
    command = shlex.join(["goodgain", *sys.argv[1:]])
    with notices_after_output(full=True):
        x = shared.make_experiment(qrels, runs, options)
        with show_progress():
            several: dict[str, Any] = {"results": list(results) or None, "costs": list(costs) or None}
            made = gather_evidence(x, list(measures), **several, command=command, **options)
            text = write_report(made, found, spreadsheet=spreadsheet)
        write_output(text, shared.Output(found, path))


@shared.command(
    "goodgain annotate docs/story_qrels.txt tests/logs/traces/fixtures/langfuse/story.json --to langfuse --dry-run",
    "goodgain annotate docs/story_qrels.txt tests/logs/traces/fixtures/langfuse/story.json --to phoenix -m SRE --dry-run",
)
@shared.qrels_argument
@click.argument("traces", metavar="[NAME=]TRACE...", nargs=-1, required=True)
@click.option("--to", "host", type=click.Choice(["phoenix", "langfuse"]), required=True, help="The kind of the server.")
@click.option("--dry-run", is_flag=True, help="Send nothing: print what would be sent, as JSON Lines.")
@shared.measures_option("The values of a trace: -m 'nCG SRR'.", default=("nCG SRR",))
@shared.rel_option
@click.option(
    "--base-url",
    help="The address of the server. Default: PHOENIX_COLLECTOR_ENDPOINT, else http://localhost:6006; LANGFUSE_BASE_URL, "
    "none built in.",
)
@click.option("--format", default="auto", help="A format of docs/reference/trace_formats.md; auto detects it.")
@reading_options
@shared.declared_option("errors")
def annotate(
    qrels: str,
    traces: tuple[str, ...],
    host: str,
    dry_run: bool,
    measures: tuple[str, ...],
    base_url: str | None,
    **options: Any,
) -> None:
    """Write scores to Phoenix or Langfuse, where the traces are.

    TRACE is a log of spans that the server exported. The span of each search gets the numbers of its new good, repeated and
    unjudged results; each trace gets the measures. Keys are in PHOENIX_API_KEY, or LANGFUSE_PUBLIC_KEY and
    LANGFUSE_SECRET_KEY. A second time Phoenix
    replaces what was written; Langfuse gets the same score ids.
    """
    from goodgain.hosts import langfuse, phoenix
    from goodgain.hosts.annotation_table import annotate as tabulate
    from goodgain.judgments.labelling.keys import Key

    server: Any = {"phoenix": phoenix, "langfuse": langfuse}[host]
    table = tabulate(qrels, group_traces(traces), " ".join(measures), **options)
    bodies = server.make_bodies(table)
    if dry_run:
        for body in bodies:
            print(json.dumps(body, ensure_ascii=False))
        return
    keys = [Key(name) for name in server.KEYS]
    address = base_url or next(filter(None, map(os.environ.get, server.ADDRESSES)), None)

    def hide(text: str) -> str:
        return reduce(lambda shown, key: key.hide(shown), keys, text)

    server.send(bodies, base_url=address, key=":".join(key.value for key in keys), hide=hide)
    spans, ids = (table.get_column(name).drop_nulls().n_unique() for name in ("span_id", "trace_id"))
    shared.say(f"{host}: annotations: {len(bodies):,}, on {count_of(spans, 'span')} and {count_of(ids, 'trace')}")
