"""The commands convert and dedup, which make runs from agents' logs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import click

from goodgain.cli import shared_options as shared
from goodgain.cli.notices import find_options, name_options
from goodgain.cli.printed_tables import open_console
from goodgain.errors import InputError

_POLICIES = ("standard", "id", "strict", "content")


@click.command(
    epilog=shared.make_epilog(
        "goodgain convert tests/traces/fixtures/langchain/state.json -o agent.run",
        "goodgain convert old=tests/traces/fixtures/jsonl/story.jsonl new=tests/traces/fixtures/atif/*.json "
        "-o '{system}.run' --results results.jsonl",
    )
)
@click.argument("traces", metavar="[NAME=]TRACE...", nargs=-1, required=True)
@shared.file_option("-o", "--output", metavar="RUN", required=True, help="The run; {system}: one each.")
@shared.file_option("--results", help="The results too: .jsonl or .parquet.")
@shared.file_option("--costs", help="What each iteration cost: .jsonl or .parquet.")
@shared.file_option("--queries", help="What users asked: .jsonl or .parquet, for label.")
@shared.file_option("--outcomes", help="Scores, rewards and feedback in the logs: .jsonl or .parquet, for compare.")
@shared.file_option(
    "--with",
    "earlier",
    metavar="RESULTS",
    multiple=True,
    help="Results of an earlier conversion: the same documents get the same doc_ids.",
)
@shared.file_option(
    "--earlier-queries",
    help="What --queries of an earlier conversion wrote: the same questions get the same query ids.",
)
@click.option("--format", default="auto", help="A format of docs/traces; auto finds it.")
@click.option("--system", help="The one system to convert, where there are several; NAME-2: its second run.")
@click.option("--tag", help="The name of the system in the run.")
@click.option(
    "--dedup",
    "policy",
    type=click.Choice([*_POLICIES, "none"]),
    help="The policy that finds results which are the same document, in every query. Default: standard, where results have no ids.",
)
@click.option(
    "--turns",
    type=click.Choice(["last", "searching", "all"]),
    default="last",
    help="Which turns of a conversation are queries; searching: the last one that searched.",
)
@click.option("--iteration", type=click.Choice(["step", "call"]), help="What an iteration is. Default: a step.")
@click.option(
    "--tools",
    multiple=True,
    metavar="NAME,...",
    help="All tools that search, instead of the rule of docs/traces: --tools search,lookup.",
)
@click.option("--query-id", help="For traces without one: a constant, or a path such as /metadata/qid.")
@shared.file_option(
    "--query-ids",
    help="A table of query_id and text (what was asked), or query_id and log (its id, file name or session).",
)
@click.option("--citations", is_flag=True, help="Citations of answers are results.")
@click.option("--reranked", is_flag=True, help="A reranker's list replaces its retriever's.")
@click.option(
    "--unrecorded",
    type=click.Choice(["raise", "empty", "skip"]),
    default="raise",
    help="A search whose results the log lacks.",
)
@click.option("--strict", is_flag=True, help="What is not understood is an error, also in traces with searches.")
@click.option("--jobs", type=shared.COUNT, default=1, help="Processes.")
@shared.errors_option
def convert(
    traces: tuple[str, ...], output: Path, policy: Any, tools: tuple[str, ...], jobs: int, **options: Any
) -> None:
    """Convert agents' logs to a run.

    TRACE is a file, a folder or a pattern; docs/traces names the formats. NAME=TRACE names the system: the logs of several
    systems are converted together, so that each document has one doc_id in all runs. What was counted, and which tools
    were not, is printed on stderr: look at it once for every new agent.
    """
    from goodgain.dedup import deduplicate, normalise_url
    from goodgain.traces import convert_traces

    deduplication = None if policy == "none" else partial(deduplicate, **({"policy": policy} if policy else {}))
    with _show_progress() as progress:
        conversion = convert_traces(
            _group_traces(traces),
            output,
            deduplicate=deduplication,
            deduplicate_all=policy in _POLICIES,
            normalise_url=normalise_url,
            tools=[name.strip() for names in tools for name in names.split(",")] or None,
            jobs=jobs,
            progress=progress,
            **options,
        )
    shared.say(name_options(str(conversion.summary), find_options(click.get_current_context().command)))


def _group_traces(traces: Sequence[str]) -> list[str] | dict[str, list[str]]:
    """Return the files that arguments name; where they are NAME=TRACE, those of each system, which may have several."""
    named: dict[str, list[str]] = {}
    for name, path in map(shared.split_name, traces):
        # the shell leaves a pattern as it is where NAME= stands before it
        found = [path] if os.path.exists(path) else sorted(glob(path))  # noqa: PTH110, PTH207  # any text is a path here
        named.setdefault(name, []).extend(found or [path])
    if "" not in named:
        return named
    if len(named) > 1:
        bare = named[""][0]
        raise InputError(f"{bare}: other logs have the names of their systems; write NAME={bare}")
    return named[""]


@contextmanager
def _show_progress() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that shows the bytes read on a terminal; None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    with Progress(BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=open_console(sys.stderr)) as bar:
        task = bar.add_task("traces")
        yield lambda done, total: bar.update(task, completed=done, total=total)


@click.command(
    epilog=shared.make_epilog(
        "goodgain dedup docs/web_search.jsonl -o documents.jsonl",
        "goodgain dedup docs/web_search.jsonl -o documents.parquet --policy content --each-system",
    )
)
@click.argument("results", metavar="RESULTS")
@shared.file_option("-o", "--output", required=True, help=".jsonl or .parquet.")
@click.option("--explain", metavar="ID", help="Print why the results of this document are one.")
@click.option("--policy", type=click.Choice(_POLICIES), default=_POLICIES[0], help="See docs/dedup.md.")
@click.option(
    "--level",
    type=click.Choice(["passage", "document"]),
    default="passage",
    help="The unit that is one document.",
)
@click.option("--trust-doc-id", is_flag=True, help="Equal doc_ids alone decide, as in a fixed corpus.")
@shared.file_option(
    "--with",
    "earlier",
    metavar="RESULTS",
    help="Results that have their documents: these are joined, and stay as they are.",
)
@click.option("--each-system", is_flag=True, help="Each system by itself, instead of all of a query together.")
def dedup(
    results: str, output: Path, explain: str | None, policy: Any, level: Any, trust_doc_id: bool, each_system: bool,
    earlier: Path | None,
) -> None:  # fmt: skip
    """Find out which results are the same document, and write the results with the column document.

    RESULTS is a file that goodgain convert --results wrote.
    """
    from goodgain.dedup import deduplicate
    from goodgain.traces import write_results

    shared.check_outputs([output], [results, earlier])
    across = () if each_system else ("system",)
    trust = True if trust_doc_id else None
    found = deduplicate(results, policy=policy, level=level, trust_doc_id=trust, across=across, earlier=earlier)
    write_results(found.frame, output)
    if explain is not None:
        print(found.explain(explain))
    shared.say(found.summary)
