"""The command label: asks a language model for grades of the documents that nobody judged."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from goodgain.cli.options import make_epilog
from goodgain.cli.systems import find_systems
from goodgain.errors import InputError
from goodgain.files.frames import write_frame
from goodgain.files.results import check_results_name
from goodgain.files.writing import Outputs

if TYPE_CHECKING:
    from goodgain.labelling.answers import Answer
    from goodgain.labelling.calls import Limits, Plan
    from goodgain.labelling.endpoint import Endpoint
    from goodgain.labelling.journal import Journal
    from goodgain.labelling.labels import Job
    from goodgain.labelling.limits import Spent
    from goodgain.labelling.prompts import Prompt
    from goodgain.labelling.requests import Parameters

__all__ = ["label"]

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
    epilog=make_epilog(
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
@click.option("-k", "depth", type=click.IntRange(1), help="Results of an iteration that are graded. Default: all.")
@click.option("--max-characters", type=click.IntRange(1), default=8_000, show_default=True, help="Where a text is cut.")
@click.option("--model", required=True, help="The name that the endpoint has for the model.")
@click.option(
    "--base-url", help="The address of the endpoint. Default: the variable OPENAI_BASE_URL. None is built in."
)
@click.option("--key-variable", default="OPENAI_API_KEY", show_default=True, help="The variable that holds the key.")
@click.option(
    "-o", "--output", metavar="GRADES", type=click.Path(path_type=Path), help="The grades: .jsonl or .parquet."
)
@click.option("--prompt", metavar="FILE", help="A prompt of your own, with {{query}} and {{document}}.")
@click.option("--temperature", default="0", show_default=True, callback=_parse_temperature, help="A number, or none.")
@click.option("--samples", type=click.IntRange(1), default=1, show_default=True, help="Grades of each document.")
@click.option("--schema/--no-schema", default=True, help="Ask the endpoint to hold answers to a JSON schema.")
@click.option("--max-output-tokens", type=click.IntRange(1), default=400, show_default=True, help="The largest answer.")
@click.option(
    "--output-limit",
    type=click.Choice(["max_completion_tokens", "max_tokens"]),
    default="max_completion_tokens",
    show_default=True,
    help="The endpoint's name for that.",
)
@click.option(
    "--journal",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Keeps every answer, so that none is asked for twice. Default: GRADES.journal.",
)
@click.option("--retry", type=click.Choice(["failed"]), help="Send what failed before, and nothing else.")
@click.option("--jobs", type=click.IntRange(1), default=8, show_default=True, help="Calls at once.")
@click.option("--max-calls", type=click.IntRange(0), help="Calls in all.")
@click.option("--max-tokens", type=click.IntRange(0), help="Tokens in all, sent and received.")
@click.option("--requests-per-minute", type=click.IntRange(1), help="Calls in any sixty seconds.")
@click.option("--tokens-per-minute", type=click.IntRange(1), help="Tokens in any sixty seconds.")
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="Seconds of a call."
)
@click.option(
    "--tries", type=click.IntRange(1), default=6, show_default=True, help="Calls for a document that may succeed later."
)
@click.option("--price", type=(float, float), metavar="IN OUT", help="Prices of a million tokens, for the summary.")
@click.option("--yes", is_flag=True, help=f"Send more than {_ASK_ABOVE} calls without a question.")
@click.option(
    "--audit",
    type=click.IntRange(1),
    metavar="N",
    help="Add instructions to N documents, and print how often grades rise.",
)
@click.option(
    "--write-batch", metavar="FILE", type=click.Path(path_type=Path), help="Send nothing; write a batch file."
)
@click.option(
    "--read-batch",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Send nothing; read the answers of a batch.",
)
def label(sources: tuple[str, ...], output: Path | None, **options: Any) -> None:
    """Ask a language model for a grade 0..4 of every document that nobody judged.

    SOURCE is a run, results (convert --results), or a sheet (pool). `goodgain judge` makes qrels of the grades, and
    `goodgain evaluate` takes those of one judge as they are. A document without an answer has no grade and a status that says
    why, never a 0.
    """
    from goodgain.labelling.batch_files import read_batch, write_batch
    from goodgain.labelling.calls import plan_calls
    from goodgain.labelling.journal import Journal
    from goodgain.labelling.key import Key
    from goodgain.labelling.labels import check_samples, collect_grades, prepare_job, warn_of_family
    from goodgain.labelling.prompts import read_prompt
    from goodgain.labelling.requests import Parameters

    _check_files(sources, output, options)
    parameters = Parameters(
        *(options[name] for name in ("model", "temperature", "max_output_tokens", "output_limit", "schema"))
    )
    check_samples(options["samples"], options["temperature"])
    if options["write_batch"] is None and (options["audit"] is not None or not options["read_batch"]):
        options["key"] = Key(options["key_variable"])
    prompt = read_prompt(options["prompt"])
    wanted, systems = _collect(sources, options)
    job = prepare_job(wanted, prompt, parameters, samples=options["samples"])
    kept = options["journal"] or (None if output is None else output.with_name(f"{output.name}.journal"))
    with Journal.open(kept) as journal:
        if options["write_batch"] is not None:
            plan = plan_calls(job.requests, journal, retry_failed=options["retry"] is not None)
            count = write_batch(plan.to_send, options["write_batch"], parameters)
            print(f"{options['write_batch']}: calls: {count:,}", file=sys.stderr)
            return
        warn_of_family(options["model"], systems)
        for path in options["read_batch"]:
            print(f"{path}: answers: {read_batch(path, job.requests, journal):,}", file=sys.stderr)
        if options["audit"] is not None:
            _audit(wanted, prompt, parameters, journal, options)
        if output is None:
            return
        if options["read_batch"]:
            known = journal.find(request.key for request in job.requests if request is not None)
            _write(collect_grades(job, known), output)
        else:
            _write(_send(job, parameters, journal, options), output)


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
    outputs = Outputs(Path(path) for path in (*find_systems(sources).values(), *read, *filter(None, named)))
    for path in filter(None, (output, write, options["journal"])):
        outputs.add(path)


def _collect(sources: tuple[str, ...], options: dict[str, Any]) -> tuple[pl.DataFrame, list[str]]:
    """Return the documents, and say how many there are."""
    from goodgain.labelling.documents import collect_documents

    names = ("texts", "results", "qrels", "max_characters")
    wanted, systems = collect_documents(
        find_systems(sources), options["queries"], k=options["depth"], **{name: options[name] for name in names}
    )
    cut = int(wanted.get_column("cut").sum())
    queries = wanted.get_column("query_id").n_unique()
    print(f"documents: {wanted.height:,}, queries: {queries:,}, texts cut: {cut:,}", file=sys.stderr)
    return wanted, systems


def _send(job: Job, parameters: Parameters, journal: Journal, options: dict[str, Any]) -> pl.DataFrame:
    """Send the calls that the journal does not answer, and return all grades."""
    from goodgain.labelling.calls import plan_calls
    from goodgain.labelling.labels import label_documents

    plan = plan_calls(job.requests, journal, retry_failed=options["retry"] is not None)
    endpoint = _open_endpoint(parameters, options) if plan.to_send else None
    _ask(plan, endpoint, options)
    with _say_when_stopped(options["price"]), _show_progress(len(plan.to_send), options["price"]) as report:
        found = label_documents(plan, job, endpoint, journal, _make_limits(options), report=report)
    if found.done.stopped:
        print(f"{found.done.stopped}; grades not asked for: {found.not_sent:,}", file=sys.stderr)
    _say_what_was_spent(found.done.spent, options["price"])
    return found.grades


def _audit(
    wanted: pl.DataFrame, prompt: Prompt, parameters: Parameters, journal: Journal, options: dict[str, Any]
) -> None:
    """Print how often text in a document makes its grade rise."""
    from goodgain.labelling.audit import count_rises, prepare_audit
    from goodgain.labelling.calls import plan_calls, send_calls

    audit = prepare_audit(wanted, prompt, parameters, documents=options["audit"])
    plan = plan_calls([request for requests in audit.values() for request in requests], journal)
    answers = plan.known
    if plan.to_send:
        endpoint = _open_endpoint(parameters, options)
        _ask(plan, endpoint, options)
        with _say_when_stopped(options["price"]), _show_progress(len(plan.to_send), options["price"]) as report:
            done = send_calls(plan, endpoint, journal, _make_limits(options), report=report)
        answers = done.answers
        _say_what_was_spent(done.spent, options["price"])
    print(count_rises(audit, answers).write_csv(separator="\t", float_precision=4, null_value="–"), end="")


def _open_endpoint(parameters: Parameters, options: dict[str, Any]) -> Endpoint:
    from goodgain.labelling.endpoint import Endpoint

    return Endpoint(options["base_url"], parameters, options["key"], timeout=options["timeout"])


def _make_limits(options: dict[str, Any]) -> Limits:
    from goodgain.labelling.calls import Limits

    names = ("jobs", "max_calls", "max_tokens", "requests_per_minute", "tokens_per_minute", "tries")
    return Limits(**{name: options[name] for name in names})


def _ask(plan: Plan, endpoint: Endpoint | None, options: dict[str, Any]) -> None:
    """Say what will be sent where, and ask for a yes if it is much.

    Raises:
        InputError: there is no yes.
    """
    kept = len(plan.known)
    if endpoint is None:
        print(f"calls: 0; answers in the journal: {kept:,}", file=sys.stderr)
        return
    calls = len(plan.to_send)
    print(
        f"calls: {calls:,}, at most {plan.most_tokens:,} tokens, to {endpoint.host}; answers in the journal: {kept:,}",
        file=sys.stderr,
    )
    if calls <= _ASK_ABOVE or options["yes"]:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty() and click.confirm("Send them?", err=True)):
        raise InputError(f"{calls:,} calls were not sent; give --yes to send more than {_ASK_ABOVE}")


@contextmanager
def _show_progress(calls: int, price: tuple[float, float] | None) -> Iterator[Callable[[Answer, Spent], object]]:
    """Show how far the calls are, on a terminal."""
    if not sys.stderr.isatty() or not calls:
        yield lambda answer, spent: None
        return
    from rich.console import Console
    from rich.progress import Progress

    counts: Counter[str] = Counter()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("labelling", total=calls)

        def report(answer: Answer, spent: Spent) -> None:
            counts["failed" if answer.failed else str(answer.grade)] += 1
            told = ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items()))
            tokens = spent.input_tokens + spent.output_tokens
            progress.update(task, advance=1, description=f"{told}; tokens: {tokens:,}{_tell_cost(spent, price)}")

        yield report


@contextmanager
def _say_when_stopped(price: tuple[float, float] | None) -> Iterator[None]:
    """Say what was spent before the endpoint stopped the job."""
    from goodgain.labelling.endpoint import StoppedError

    try:
        yield
    except StoppedError as error:
        _say_what_was_spent(error.spent, price)
        raise


def _say_what_was_spent(spent: Spent, price: tuple[float, float] | None) -> None:
    print(
        f"calls: {spent.calls:,}, tokens: {spent.input_tokens:,} sent, {spent.output_tokens:,} received"
        f"{_tell_cost(spent, price)}",
        file=sys.stderr,
    )


def _tell_cost(spent: Spent, price: tuple[float, float] | None) -> str:
    if price is None:
        return ""
    return f", cost: {(spent.input_tokens * price[0] + spent.output_tokens * price[1]) / _MILLION:.4f}"


def _write(grades: pl.DataFrame, output: Path) -> None:
    """Write grades, and say how many there are of each, and how many failed and how."""
    write_frame(grades, output)
    by_grade = grades.filter(pl.col("grade").is_not_null()).group_by("grade").len().sort("grade")
    by_status = grades.filter(pl.col("grade").is_null()).group_by("status").len().sort("status")
    told = [f"{grade}: {count:,}" for grade, count in by_grade.iter_rows()]
    told += [f"{status}: {count:,}" for status, count in by_status.iter_rows()]
    print(f"{output}: {', '.join(told) or 'no documents'}", file=sys.stderr)
