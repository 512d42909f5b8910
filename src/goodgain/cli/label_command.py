"""The command label: asks a language model for grades of the documents that nobody judged."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.cli.printed_tables import open_console
from goodgain.errors import InputError
from goodgain.files.results import check_results_name
from goodgain.files.table_writing import write_frame

if TYPE_CHECKING:
    from goodgain.labelling.answers_and_journal import Answer, Journal
    from goodgain.labelling.endpoint import Key, Spent
    from goodgain.labelling.prompt_requests import Parameters
    from goodgain.labelling.retries_and_budget import Done, Plan, Report

#: More calls than these need a yes.
_ASK_ABOVE = 100
_MILLION = 1_000_000


def _parse_temperature(_context: click.Context, _option: click.Parameter, value: str) -> float | None:
    if value == "none":
        return None
    try:
        return float(value)
    except ValueError:
        raise InputError(f"--temperature {value}: give a number, or none") from None


@click.command(
    epilog=shared.make_epilog(
        "goodgain label docs/labelling/agent.run --results docs/labelling/results.jsonl --queries docs/labelling/queries.jsonl "
        "--model qwen3-32b --write-batch batch.jsonl",
        "goodgain label docs/labelling/agent.run --results docs/labelling/results.jsonl --queries docs/labelling/queries.jsonl "
        "--model qwen3-32b --read-batch docs/labelling/answers.jsonl -o grades.jsonl",
    )
)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--queries", required=True, help="query_id and text: .tsv, .jsonl, .csv, .parquet, or an ir_datasets id.")
@click.option("--texts", metavar="FILE", help="doc_id and text of the documents: .jsonl, .csv, .tsv, .parquet.")
@click.option("--results", metavar="FILE", help="What convert --results wrote: titles, URLs and snippets of the runs.")
@click.option("--qrels", metavar="QRELS", help="Judgments that there are: their documents are left out.")
@click.option("-k", "depth", type=shared.COUNT, help="Results of an iteration that are graded. Default: all.")
@click.option("--max-characters", type=shared.COUNT, default=8_000, help="Where a text is cut.")
@click.option("--model", required=True, help="The name that the endpoint has for the model.")
@click.option(
    "--base-url", help="The address of the endpoint. Default: the variable OPENAI_BASE_URL. None is built in."
)
@click.option("--key-variable", default="OPENAI_API_KEY", help="The variable that holds the key.")
@shared.file_option("-o", "--output", metavar="GRADES", help="The grades: .jsonl or .parquet.")
@click.option("--prompt", metavar="FILE", help="A prompt of your own, with {{query}} and {{document}}.")
@click.option("--temperature", default="0", callback=_parse_temperature, help="A number, or none.")
@click.option("--samples", type=shared.COUNT, default=1, help="Grades of each document.")
@click.option("--schema/--no-schema", default=True, help="Ask the endpoint to hold answers to a JSON schema.")
@click.option("--max-output-tokens", type=shared.COUNT, default=400, help="The largest answer.")
@click.option(
    "--output-limit",
    type=click.Choice(["max_completion_tokens", "max_tokens"]),
    default="max_completion_tokens",
    help="The endpoint's name for that.",
)
@shared.file_option("--journal", help="Keeps every answer, so that none is asked for twice. Default: GRADES.journal.")
@click.option("--retry", type=click.Choice(["failed"]), help="Send what failed before, and nothing else.")
@click.option("--jobs", type=shared.COUNT, default=8, help="Calls at once.")
@click.option("--max-calls", type=click.IntRange(0), help="Calls in all.")
@click.option("--max-tokens", type=click.IntRange(0), help="Tokens in all, sent and received.")
@click.option("--requests-per-minute", type=shared.COUNT, help="Calls in any sixty seconds.")
@click.option("--tokens-per-minute", type=shared.COUNT, help="Tokens in any sixty seconds.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=60.0, help="Seconds of a call.")
@click.option("--tries", type=shared.COUNT, default=6, help="Calls for a document that may succeed later.")
@click.option("--price", type=(float, float), metavar="IN OUT", help="Prices of a million tokens, for the summary.")
@click.option("--yes", is_flag=True, help=f"Send more than {_ASK_ABOVE} calls without a question.")
@click.option(
    "--audit",
    type=shared.COUNT,
    metavar="N",
    help="Add instructions to N documents, and print how often grades rise.",
)
@shared.file_option("--write-batch", help="Send nothing; write a batch file.")
@shared.file_option("--read-batch", multiple=True, help="Send nothing; read the answers of a batch.")
def label(sources: tuple[str, ...], output: Path | None, **options: Any) -> None:
    """Ask a language model for a grade 0..4 of every document that nobody judged.

    SOURCE is a run, results (convert --results), or a sheet (pool). `goodgain judge` makes qrels of the grades, and
    `goodgain evaluate` takes those of one judge as they are. A document without an answer has no grade and a status that says
    why, never a 0.
    """
    from goodgain.labelling import model_labels
    from goodgain.labelling.answers_and_journal import Journal
    from goodgain.labelling.batch_files import read_batch, write_batch
    from goodgain.labelling.documents_to_label import collect_documents
    from goodgain.labelling.endpoint import Key, Spent
    from goodgain.labelling.injection_audit import count_rises, prepare_audit
    from goodgain.labelling.prompt_requests import Parameters, read_prompt
    from goodgain.labelling.retries_and_budget import Done, plan_calls

    batch, answered, audited = (options[name] for name in ("write_batch", "read_batch", "audit"))
    _check_files(sources, output, options)
    parameters = Parameters(**{name: options[name] for name in Parameters.__dataclass_fields__})
    model_labels.check_samples(options["samples"], options["temperature"])
    key = Key(options["key_variable"]) if batch is None and (audited is not None or not answered) else None
    prompt = read_prompt(options["prompt"])
    wanted, systems = collect_documents(
        shared.find_systems(sources),
        options["queries"],
        k=options["depth"],
        **{name: options[name] for name in ("texts", "results", "qrels", "max_characters")},
    )
    queries, cut = wanted.get_column("query_id").n_unique(), wanted.get_column("cut").sum()
    shared.say(f"documents: {wanted.height:,}, queries: {queries:,}, texts cut: {cut:,}")
    job = model_labels.prepare_job(wanted, prompt, parameters, samples=options["samples"])
    requests = [asked.request for asked in job]
    kept = options["journal"] or (None if output is None else output.with_name(f"{output.name}.journal"))
    with Journal.open(kept) as journal:
        retry_failed = options["retry"] is not None
        if batch is not None:
            plan = plan_calls(requests, journal, retry_failed=retry_failed)
            shared.say(f"{batch}: calls: {write_batch(plan.to_send, batch, parameters):,}")
            return
        model_labels.warn_of_family(options["model"], systems)
        for path in answered:
            shared.say(f"{path}: answers: {read_batch(path, requests, journal):,}")
        if key is not None and audited is not None:
            audit = prepare_audit(wanted, prompt, parameters, documents=audited)
            of_audit = plan_calls([request for some in audit.values() for request in some], journal)
            rises = count_rises(audit, _send(of_audit, parameters, key, journal, options).answers)
            print(rises.write_csv(separator="\t", float_precision=4, null_value="–"), end="")
        if output is None:
            return
        plan = plan_calls(requests, journal, retry_failed=retry_failed)  # batch and audit may have answered some
        done = Done(plan.known, Spent(), None)
        if key is not None and not answered:
            done = _send(plan, parameters, key, journal, options)
        grades = model_labels.collect_grades(job, done.answers)
        if done.stopped:
            shared.say(f"{done.stopped}; grades not asked for: {model_labels.count_not_sent(grades):,}")
        _write(grades, output)


def _check_files(sources: tuple[str, ...], output: Path | None, options: dict[str, Any]) -> None:
    """Check that there is a file for what is asked for, and that no file is both read and written."""
    write, read = options["write_batch"], options["read_batch"]
    if output is None and write is None and options["audit"] is None:
        raise InputError("the grades need a file: -o grades.jsonl")
    if write is not None and (read or output is not None or options["audit"] is not None):
        raise InputError(
            "--write-batch sends nothing and gives no grades; give it without -o, --read-batch and --audit"
        )
    if read and output is None:
        raise InputError("--read-batch needs a file for the grades: -o grades.jsonl")
    if output is not None:
        check_results_name(output)
    named = [options[name] for name in ("queries", "texts", "results", "qrels", "prompt")]
    shared.check_outputs([output, write, options["journal"]], [*shared.find_systems(sources).values(), *read, *named])


def _send(plan: Plan, parameters: Parameters, key: Key, journal: Journal, options: dict[str, Any]) -> Done:
    """Send the calls that the journal does not answer, after a yes if they are many."""
    from goodgain.labelling.endpoint import Endpoint, Spent, StoppedError
    from goodgain.labelling.retries_and_budget import Done, Limits, send_calls

    calls, price = len(plan.to_send), options["price"]
    answered = f"answers in the journal: {len(plan.known):,}"
    if not calls:
        shared.say(f"calls: 0; {answered}")
        return Done(plan.known, Spent(), None)
    endpoint = Endpoint(options["base_url"], parameters, key, timeout=options["timeout"])
    most = sum(request.most_tokens for request in plan.to_send)
    shared.say(f"calls: {calls:,}, at most {most:,} tokens, to {endpoint.host}; {answered}")
    if calls > _ASK_ABOVE and not options["yes"]:
        can_ask = sys.stdin.isatty() and sys.stderr.isatty()
        if not (can_ask and click.confirm("Send them?", err=True)):
            raise InputError(f"{calls:,} calls were not sent; give --yes to send more than {_ASK_ABOVE}")
    limits = Limits(**{name: options[name] for name in Limits.__dataclass_fields__})
    ended: Done | StoppedError
    try:
        with _show_progress(calls, price) as report:
            ended = send_calls(plan, endpoint, journal, limits, report)
    except StoppedError as error:
        ended = error
    spent = ended.spent
    tokens = f"tokens: {spent.input_tokens:,} sent, {spent.output_tokens:,} received"
    shared.say(f"calls: {spent.calls:,}, {tokens}{_tell_cost(spent, price)}")
    if isinstance(ended, StoppedError):
        raise ended
    return ended


@contextmanager
def _show_progress(calls: int, price: tuple[float, float] | None) -> Iterator[Report]:
    """Show how far the calls are, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda answer, spent: None
        return
    from rich.progress import Progress

    counts: Counter[str] = Counter()
    with Progress(console=open_console(sys.stderr), transient=True) as progress:
        task = progress.add_task("labelling", total=calls)

        def report(answer: Answer, spent: Spent) -> None:
            counts["failed" if answer.failed else str(answer.grade)] += 1
            told = ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items()))
            progress.update(task, advance=1, description=f"{told}; tokens: {spent.tokens:,}{_tell_cost(spent, price)}")

        yield report


def _tell_cost(spent: Spent, price: tuple[float, float] | None) -> str:
    if price is None:
        return ""
    return f", cost: {(spent.input_tokens * price[0] + spent.output_tokens * price[1]) / _MILLION:.4f}"


def _write(grades: pl.DataFrame, output: Path) -> None:
    """Write grades, and say how many there are of each, and how many failed and how."""
    write_frame(grades, output)
    told = [
        f"{kind}: {count:,}"
        for name, of in (("grade", grades.drop_nulls("grade")), ("status", grades.filter(pl.col("grade").is_null())))
        for kind, count in of.group_by(name).len().sort(name).iter_rows()
    ]
    shared.say(f"{output}: {', '.join(told) or 'no documents'}")
    if grades.get_column("grade").null_count():
        shared.say(
            "To go on, give the same command with --retry failed: it sends only what failed, and keeps all grades."
        )
