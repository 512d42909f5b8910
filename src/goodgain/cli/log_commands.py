"""The commands `convert`, `dedup` and `annotate`."""

import json
import os
from collections.abc import Sequence
from functools import partial, reduce
from glob import glob
from pathlib import Path
from typing import Any

import click

from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import show_progress
from goodgain.errors import InputError, count_of
from goodgain.formats.any_source import exists
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
        callback=lambda _context, _option, values: [name.strip() for one in values for name in one.split(",")] or None,
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
    *(shared.file_option(name, help=f"Also write {what}: .jsonl or .parquet.") for name, what in _OUTPUTS.items())
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
@click.option("--system", help="The system to convert, if TRACE has several. NAME-2 is the second run of NAME.")
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
def convert(given: shared.Given) -> None:
    """Convert agents' logs to a run.

    TRACE is a file, a folder or a pattern; docs/reference/trace_formats.md lists the formats. NAME=TRACE names the system.
    Convert the logs of several systems in one call, so that each document has the same doc_id in all runs. Standard error
    shows which tool calls were counted as searches, and which tools were not. Check this summary once for each new agent.
    """
    options = vars(given)
    traces, output, policy = (options.pop(name) for name in ("traces", "output", "policy"))
    options["deduplicate"] = (
        None if policy == "none" else partial(deduplicate, **({"policy": policy} if policy else {}))
    )
    options["deduplicate_all"] = policy in _POLICIES
    with show_progress() as tell:
        conversion = convert_traces(_group_traces(traces), output, progress=partial(tell, "reading logs"), **options)
    shared.say(conversion.summary)


def _group_traces(traces: Sequence[str]) -> list[str] | dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for name, path in map(shared.split_name, traces):
        # the shell does not expand a pattern after NAME=
        found = [path] if exists(path) else sorted(glob(path))  # noqa: PTH207  # any text is a path here
        named.setdefault(name, []).extend(found or [path])
    if "" not in named:
        return named
    if len(named) > 1:
        bare = named[""][0]
        raise InputError(f"{bare}: the other logs name their systems; write NAME={bare}")
    return named[""]


@shared.command(
    "goodgain dedup qrels_examples/lost_documents/results.jsonl -o documents.jsonl",
    "goodgain dedup qrels_examples/lost_documents/results.jsonl -o documents.parquet --policy content --each-system",
)
@click.argument("results", metavar="RESULTS")
@shared.file_option("-o", "--output", required=True, help=".jsonl or .parquet.")
@click.option("--explain", metavar="ID", help="Print why results were joined into the document ID.")
@shared.choice_option("--policy", _POLICIES, "See docs/dedup.md.")
@shared.choice_option("--level", ("passage", "document"), "The unit of a document.")
@click.option("--trust-doc-id", is_flag=True, help="Compare only doc_ids, for a fixed corpus.")
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
def dedup(given: shared.Given) -> None:
    """Find results that are the same document, and write all results with a further column, `document`.

    RESULTS is a file written by goodgain convert --results.
    """
    shared.check_outputs([given.output], [given.results, given.earlier, given.same, given.different])
    own = {name: getattr(given, name) for name in ("policy", "level", "earlier", "same", "different")}
    across, trusts = () if given.each_system else ("system",), given.trust_doc_id or None
    with show_progress():
        found = deduplicate(given.results, across=across, trust_doc_id=trusts, **own)
    explanation = None if given.explain is None else found.explain(given.explain)  # an unknown id ends the command here
    write_results(found.frame, given.output)
    if explanation is not None:
        print(explanation)
    shared.say(found.summary)


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
def annotate(given: shared.Given) -> None:
    """Write scores to the server that has the traces: Phoenix or Langfuse.

    TRACE is a log of spans that the server exported. The span of each search gets three numbers: new good results,
    repeated results and unjudged results. Each trace gets the values of the measures. Keys are read from PHOENIX_API_KEY, or
    LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY. If you repeat the command, Phoenix and some versions of Langfuse replace scores.
    """
    from goodgain.hosts import langfuse, phoenix
    from goodgain.hosts.annotation_table import annotate as tabulate
    from goodgain.judgments.labelling.keys import Key

    server: Any = {"phoenix": phoenix, "langfuse": langfuse}[given.host]
    own = ("qrels", "traces", "host", "dry_run", "measures", "base_url")
    options = {name: of for name, of in vars(given).items() if name not in own}
    table = tabulate(given.qrels, _group_traces(given.traces), " ".join(given.measures), **options)
    bodies = server.make_bodies(table)
    if given.dry_run:
        for body in bodies:
            print(json.dumps(body, ensure_ascii=False))
        return
    keys = [Key(name) for name in server.KEYS]
    address = given.base_url or next(filter(None, map(os.environ.get, server.ADDRESSES)), None)

    def hide(text: str) -> str:
        return reduce(lambda shown, key: key.hide(shown), keys, text)

    server.send(bodies, base_url=address, key=":".join(key.value for key in keys), hide=hide)
    spans, ids = (table.get_column(name).drop_nulls().n_unique() for name in ("span_id", "trace_id"))
    shared.say(f"{given.host}: annotations: {len(bodies):,}, on {count_of(spans, 'span')} and {count_of(ids, 'trace')}")
