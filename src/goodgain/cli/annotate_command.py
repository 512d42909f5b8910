"""The command annotate: scores written to the server that keeps the traces."""

from __future__ import annotations

import json
import os
from functools import reduce
from typing import Any

import click

from goodgain.cli import shared_options as shared
from goodgain.cli.log_commands import group_traces, reading_options
from goodgain.errors import count_of


@click.command(
    epilog=shared.make_epilog(
        "goodgain annotate docs/story_qrels.txt tests/traces/fixtures/langfuse/story.json --to langfuse --dry-run",
        "goodgain annotate docs/story_qrels.txt tests/traces/fixtures/langfuse/story.json --to phoenix -m SRE --dry-run",
    )
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
@click.option("--format", default="auto", help="A format of docs/traces; auto detects it.")
@reading_options
@shared.errors_option
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
    from goodgain.labelling.endpoint import Key

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
