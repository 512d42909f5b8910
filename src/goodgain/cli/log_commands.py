"""The commands `convert`, `dedup` and `annotate`."""

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import show_progress
from goodgain.cli.named_runs import split_name
from goodgain.errors import InputError, count_of
from goodgain.logs.dedup import deduplicate
from goodgain.logs.traces import convert_traces, write_results
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading.refusals import explain_format

_POLICIES = ("standard", "id", "strict", "content")
#: Further output of convert -> the content.
_OUTPUTS = {
    "--results": "the results",
    "--costs": "the cost of each iteration",
    "--queries": "the users' questions, for goodgain label",
    "--outcomes": "scores, rewards and feedback, for goodgain compare",
    "--uses": "which documents were returned, opened and cited, for goodgain funnel",
}

_said_options = shared.join_options(
    shared.file_option("--same", help="Pairs of ids or URLs that are one document, one pair per line."),
    shared.file_option("--different", help="Pairs of ids or URLs that are two documents, one pair per line."),
)


def _split_names(_context: click.Context, _option: click.Parameter, lists: tuple[str, ...]) -> list[str] | None:
    return [name.strip() for names in lists for name in names.split(",")] or None


_reading_options = shared.join_options(
    shared.choice_option(
        "--turns",
        ("last", "searching", "all", "joined"),
        "Which turns of a conversation become queries: searching is the last turn that searched, joined makes one query of all.",
    ),
    click.option(
        "--iteration",
        type=click.Choice(["step", "call", "sequential"]),
        help="The unit of an iteration. Default: step. sequential: without model spans, calls that do not overlap are steps.",
    ),
    click.option(
        "--tools",
        multiple=True,
        metavar="NAME,...",
        callback=_split_names,
        help="The tools that search, such as search,lookup. They replace the rule in docs/traces/rules.md. To add to the rule, "
        "write NAME=search for a tool that searches, or NAME=open for a tool that opens documents.",
    ),
    click.option(
        "--query-id",
        help="The field with the query id, such as /metadata/qid; or a constant, for a trace without an id.",
    ),
    shared.file_option(
        "--query-ids",
        help="A table of query_id and text (the question), or of query_id and log (its id, file name or session).",
    ),
    shared.choice_option(
        "--order", ("time", "given"), "The order of searches if --query-ids makes one query of several logs."
    ),
    click.option("--query-text", help="The path to the question in each trace, such as /task/question."),
    click.option("--citations", is_flag=True, help="Count citations in answers as results."),
    click.option("--reranked", is_flag=True, help="Replace a retriever's results by those of its reranker."),
    shared.choice_option(
        "--unrecorded", ("raise", "empty", "skip"), "What to do with a search whose results are not in the log."
    ),
    click.option("--strict", is_flag=True, help="Raise an error for unknown log items, even in logs with searches."),
)


def _explain_format(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    """Print which formats claim the file, and end the command: the option --explain-format needs no other argument."""
    if value is not None:
        for line in explain_format(Path(value), ReadOptions()):
            print(line)
        context.exit()


@shared.command(
    "goodgain convert qrels_examples/two_logs/new.jsonl -o agent.run",
    "goodgain convert old=qrels_examples/two_logs/old.json new=qrels_examples/two_logs/new.jsonl -o '{system}.run' "
    "--results results.jsonl",
)
@click.argument("traces", metavar="[NAME=]TRACE...", nargs=-1, required=True)
@shared.file_option(
    "-o", "--output", metavar="RUN", required=True, help="The run to write; {system} in the name: one run per system."
)
@shared.join_options(
    *(shared.file_option(name, help=f"Also write {content}: .jsonl or .parquet.") for name, content in _OUTPUTS.items())
)
@shared.file_option(
    "--with",
    "earlier",
    metavar="RESULTS",
    multiple=True,
    help="Results of an earlier conversion: its documents keep their doc_ids.",
)
@shared.file_option(
    "--earlier-queries", help="The --queries file of an earlier conversion: its questions keep their query ids."
)
@_said_options
@click.option(
    "--format",
    default="auto",
    help="auto: detect the format. shape: find calls in any JSON. docs/reference/trace_formats.md lists the other formats.",
)
@click.option(
    "--explain-format",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_explain_format,
    help="Print which log formats claim FILE and why the others do not, and exit.",
)
@click.option("--system", help="The system to convert, if TRACE has several. NAME-2 is replicate 2 of NAME.")
@click.option("--tag", help="The name of the system in the run.")
@click.option(
    "--dedup",
    "policy",
    type=click.Choice([*_POLICIES, "none"]),
    help="How to detect duplicates in all queries. Without --dedup: standard, and only in queries with missing or ambiguous ids.",
)
@_reading_options
@click.option("--jobs", type=shared.COUNT, default=1, help="Number of processes.")
@shared.declared_option("errors")
def convert(options: shared.Options) -> None:
    """Convert agents' logs to a run.

    TRACE is a file, a folder or a pattern; docs/reference/trace_formats.md lists the formats. NAME=TRACE names the system.
    Convert the logs of several systems in one call, so that each document has the same doc_id in all runs. Standard error
    shows which tool calls were counted as searches, and which tools were not. Check this summary once for each new agent.
    """
    settings = vars(options)
    traces, output, policy = (settings.pop(name) for name in ("traces", "output", "policy"))
    settings["deduplicate_all"] = policy in _POLICIES
    if policy == "none":
        settings["deduplicate"] = None
    elif policy is None:
        settings["deduplicate"] = deduplicate
    else:
        settings["deduplicate"] = partial(deduplicate, policy=policy)

    with show_progress() as tell:
        progress = partial(tell, "reading logs")
        conversion = convert_traces(_group_traces(traces), output, progress=progress, **settings)
    shared.say(conversion.summary)


def _group_traces(traces: Sequence[str]) -> list[str] | dict[str, list[str]]:
    """Return {system: paths}, or the paths if no system has a name."""
    systems: dict[str, list[str]] = {}
    for name, path in map(split_name, traces):
        systems.setdefault(name, []).append(path)

    if "" not in systems:
        return systems
    without_name = systems[""]
    if len(systems) > 1:
        path = without_name[0]
        raise InputError(f"{path}: the other logs name their systems; write NAME={path}")
    return without_name


@shared.command(
    "goodgain dedup qrels_examples/lost_documents/results.jsonl -o documents.jsonl",
    "goodgain dedup qrels_examples/lost_documents/results.jsonl -o documents.parquet --policy content --each-system",
)
@click.argument("results", metavar="RESULTS")
@shared.file_option("-o", "--output", required=True, help=".jsonl or .parquet.")
@click.option("--explain", metavar="ID", help="Print why results were joined into the document ID.")
@shared.choice_option("--policy", _POLICIES, "See docs/dedup.md.")
@shared.choice_option("--level", ("passage", "document"), "The unit of a document.")
@click.option(
    "--trust-doc-id", is_flag=True, help="Results with equal doc_ids are one document, with different doc_ids two."
)
@shared.file_option(
    "--with",
    "earlier",
    metavar="RESULTS",
    help="Results of an earlier deduplication: new results join its documents, which stay unchanged.",
)
@_said_options
@click.option(
    "--each-system", is_flag=True, help="Deduplicate each system separately, not all systems of a query together."
)
def dedup(options: shared.Options) -> None:
    """Find results that are the same document, and write all results with a further column, `document`.

    RESULTS is a file written by goodgain convert --results.
    """
    shared.check_outputs([options.output], [options.results, options.earlier, options.same, options.different])
    settings = {name: getattr(options, name) for name in ("policy", "level", "earlier", "same", "different")}
    settings["across"] = () if options.each_system else ("system",)
    settings["trust_doc_id"] = options.trust_doc_id or None
    with show_progress():
        deduplication = deduplicate(options.results, **settings)

    explanation = None
    if options.explain is not None:
        explanation = deduplication.explain(options.explain)  # an unknown id ends the command here
    write_results(deduplication.frame, options.output)
    if explanation is not None:
        print(explanation)
    shared.say(deduplication.summary)


@shared.command(
    "goodgain annotate docs/story_qrels.txt tests/logs/traces/fixtures/langfuse/story.json --to langfuse --dry-run",
    "goodgain annotate docs/story_qrels.txt tests/logs/traces/fixtures/langfuse/story.json --to phoenix -m SRE --dry-run",
)
@shared.qrels_argument
@click.argument("traces", metavar="[NAME=]TRACE...", nargs=-1, required=True)
@click.option("--to", "host", type=click.Choice(["phoenix", "langfuse"]), required=True, help="The server to write to.")
@click.option("--dry-run", is_flag=True, help="Send nothing: print what would be sent, as JSON Lines.")
@shared.measures_option("The values of a trace: -m 'nCG SRR'.", default=("nCG SRR",))
@shared.rel_option
@click.option(
    "--base-url",
    help="The address of the server. Default for Phoenix: PHOENIX_COLLECTOR_ENDPOINT, else http://localhost:6006. Default for "
    "Langfuse: LANGFUSE_BASE_URL.",
)
@click.option("--format", default="auto", help="A format of docs/reference/trace_formats.md. auto: detect the format.")
@_reading_options
@shared.declared_option("errors")
def annotate(options: shared.Options) -> None:
    """Write scores to the server that has the traces: Phoenix or Langfuse.

    TRACE is a log of spans that the server exported. The span of each search gets three numbers: new good results,
    repeated results and unjudged results. Each trace gets the values of the measures. Keys are read from PHOENIX_API_KEY, or
    LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY. If you repeat the command, Phoenix and some versions of Langfuse replace scores.
    """
    from goodgain.hosts import langfuse, phoenix
    from goodgain.hosts.annotation_table import annotate as tabulate
    from goodgain.judgments.labelling.keys import Key

    server: Any = {"phoenix": phoenix, "langfuse": langfuse}[options.host]
    not_of_table = ("qrels", "traces", "host", "dry_run", "measures", "base_url")
    settings = {name: value for name, value in vars(options).items() if name not in not_of_table}
    table = tabulate(options.qrels, _group_traces(options.traces), " ".join(options.measures), **settings)
    bodies = server.make_bodies(table)
    if options.dry_run:
        for body in bodies:
            print(json.dumps(body, ensure_ascii=False))
        return

    keys = [Key(name) for name in server.KEYS]
    addresses = [options.base_url, *map(os.environ.get, server.ADDRESSES)]
    address = next(filter(None, addresses), None)

    def hide(text: str) -> str:
        for key in keys:
            text = key.hide(text)
        return text

    server.send(bodies, base_url=address, key=":".join(key.value for key in keys), hide=hide)
    spans = count_of(table.get_column("span_id").drop_nulls().n_unique(), "span")
    traces = count_of(table.get_column("trace_id").drop_nulls().n_unique(), "trace")
    shared.say(f"{options.host}: annotations: {len(bodies):,}, on {spans} and {traces}")
