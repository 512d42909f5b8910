"""The command `label`."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import show_progress
from goodgain.cli.named_runs import find_files, find_single_runs
from goodgain.errors import InputError, count_of
from goodgain.files.tables import sort_ids
from goodgain.files.writing import write_frame
from goodgain.formats.results import check_results_name
from goodgain.judgments.judging.aggregation import find_disputed
from goodgain.judgments.judging.documents_to_judge import check_sheet_name, write_sheet
from goodgain.judgments.labelling import model_labels
from goodgain.judgments.labelling.answers_and_journal import Answer, Journal
from goodgain.judgments.labelling.budget import Budget, UnusableError
from goodgain.judgments.labelling.calls import Plan, plan_calls, send_calls
from goodgain.judgments.labelling.endpoint import Endpoint
from goodgain.judgments.labelling.keys import Key
from goodgain.judgments.labelling.prompt_requests import OUTPUT_LIMITS

#: More calls need confirmation.
_ASK_ABOVE = 100
_MILLION = 1_000_000
#: Prices per million tokens, sent and received.
_Price = tuple[float, float]
#: To estimate the cost: bytes per token, and tokens of an answer without thinking.
_BYTES_OF_TOKEN, _TOKENS_OF_ANSWER = 4, 60
#: The most queries to name in the closing lines.
_NAMED_QUERIES = 5


def _parse_headers(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return {name: value} of NAME:VALUE texts."""
    headers = {}
    for text in values:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise InputError("--header: write NAME:VALUE, such as X-Title:labels")
        headers[name.strip()] = value.strip()
    return headers


def _read_object(text: str | None) -> Any:
    """Read a JSON object. Absent text and JSON null give None. Raise ValueError for any other JSON value."""
    if text is None:
        return None
    try:
        fields = json.loads(text)
    except RecursionError:
        raise ValueError from None
    if not isinstance(fields, dict | None):
        raise ValueError
    return fields


@shared.command(
    "goodgain label qrels_examples/labelling/agent.run --results qrels_examples/labelling/results.jsonl "
    "--queries qrels_examples/labelling/queries.jsonl "
    "--model qwen3-32b --journal qrels_examples/labelling/answers.journal -o grades.jsonl",
    "goodgain label qrels_examples/labelling/agent.run --results qrels_examples/labelling/results.jsonl "
    "--queries qrels_examples/labelling/queries.jsonl "
    "--model qwen3-32b --journal qrels_examples/labelling/answers.journal -k 1 -o top.parquet",
)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@shared.declared_option("queries", required=True)
@shared.texts_option
@shared.declared_option("results")
@click.option("--qrels", metavar="QRELS", help="Existing judgments: their documents are left out.")
@click.option("-k", type=shared.COUNT, help="Grade the first K results of every iteration. Default: all.")
@click.option("--max-characters", type=shared.COUNT, default=8_000, help="Longer texts are cut to this length.")
@click.option(
    "--model",
    multiple=True,
    required=True,
    help="The endpoint's name for the model. If repeated, each model is a judge.",
)
@click.option(
    "--base-url", help="The address of the endpoint. Default: the variable OPENAI_BASE_URL. There is no other default."
)
@click.option("--key-variable", default="OPENAI_API_KEY", help="The environment variable that holds the API key.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="An HTTP header for all requests.",
    callback=_parse_headers,
)
@shared.file_option("-o", "--output", metavar="GRADES", required=True, help="The grades: .jsonl or .parquet.")
@click.option(
    "--prompt",
    metavar="FILE",
    help="A file with {{query}} and {{document}}, or a built-in prompt: good-gain (default), good-gain-1, umbrela.",
)
@click.option(
    "--temperature",
    default="0",
    help="A number, or none.",
    callback=shared.parse_with(lambda text: None if text == "none" else float(text), "give a number, or none"),
)
@click.option("--samples", type=shared.COUNT, default=1, help="How often a model grades each document.")
@click.option("--schema/--no-schema", default=True, help="Request answers that follow a JSON schema.")
@click.option(
    "--max-output-tokens",
    type=shared.COUNT,
    help="The token limit of an answer, thinking included. Default: 2000; 400 for good-gain-1.",
)
@shared.choice_option("--output-limit", OUTPUT_LIMITS, "The endpoint's name for the limit of output tokens.")
@click.option("--reasoning-effort", metavar="EFFORT", help="How much the model thinks: low, medium, high ...")
@click.option(
    "--extra-body",
    metavar="JSON",
    help="More fields of the request, as a JSON object.",
    callback=shared.parse_with(_read_object, "give a JSON object, such as '{\"top_k\": 1}'"),
)
@shared.disputed_option
@shared.file_option("--journal", help="Keeps every answer: answered calls are never repeated. Default: GRADES.journal.")
@click.option("--retry", type=click.Choice(["failed"]), help="Send only calls that failed before.")
@click.option("--jobs", type=shared.COUNT, default=8, help="The number of calls at once.")
@click.option("--max-calls", type=click.IntRange(0), help="The maximum number of requests, retries included.")
@click.option("--max-tokens", type=click.IntRange(0), help="The maximum number of tokens, sent and received together.")
@click.option("--requests-per-minute", type=shared.COUNT, help="The maximum number of requests in any sixty seconds.")
@click.option("--tokens-per-minute", type=shared.COUNT, help="The maximum number of tokens in any sixty seconds.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    help="A request fails after this many seconds without a byte from the endpoint, or after ten times as long in total.",
)
@click.option("--tries", type=shared.COUNT, default=6, help="The maximum number of attempts for a call that fails.")
@click.option(
    "--price", type=(float, float), metavar="IN OUT", help="Prices per million tokens, to print expected and real cost."
)
@click.option("--yes", is_flag=True, help=f"Send more than {_ASK_ABOVE} calls without confirmation.")
def label(options: shared.Options) -> None:
    """Ask language models to grade every unjudged document from 0 to 4.

    SOURCE is a run, results that goodgain convert --results wrote, or a sheet that goodgain pool wrote. `goodgain judge`
    makes qrels from the grades. `goodgain evaluate` reads the grades of one judge directly. A document without an answer
    has no grade, never a 0. The column "status" gives the reason.
    """
    output, disputed = options.output, options.disputed
    check_results_name(output)
    if disputed is not None:
        check_sheet_name(disputed)
    inputs = [options.queries, options.texts, options.results, options.qrels, options.prompt]
    shared.check_outputs([output, disputed, options.journal], [*find_files(options.sources), *inputs])

    budget = Budget(**{name: getattr(options, name) for name in Budget.__dataclass_fields__})
    key = Key(options.key_variable, options.headers)
    sources = find_single_runs(options.sources)
    requests, documents, systems = model_labels.prepare_job(sources, options.queries, options.model, vars(options))
    queries = documents.get_column("query_id").n_unique()
    cut_texts = documents.get_column("cut").sum()
    shared.say(f"documents: {documents.height:,}, queries: {queries:,}, texts cut: {cut_texts:,}")

    with Journal.open(options.journal or output.with_name(f"{output.name}.journal")) as journal:
        model_labels.warn_of_family(options.model, systems)
        plan = plan_calls(requests, journal, retry_failed=options.retry is not None)
        answers = _send(plan, key, journal, budget, options)

    grades = model_labels.collect_grades(requests, answers, plan.judges)
    write_frame(grades, output)
    model_labels.warn_of_suspicious_grades(grades, requests)
    if disputed is not None:
        rows = find_disputed(grades).join(documents, on=["query_id", "doc_id"], how="left")
        sheet = rows.select("query_id", "doc_id", "query", "text", grade=pl.lit(None, pl.Int64))
        write_sheet(sheet, disputed)
        shared.say(f"{disputed}: disputed documents for people to grade: {sheet.height:,}")
    _close(grades, output, budget, key, model_labels.find_shortfall(requests, answers))


def _send(plan: Plan, key: Key, journal: Journal, budget: Budget, options: shared.Options) -> dict[str, Answer]:
    """Send the calls of a plan after the user's confirmation, and return {key: answer} with the answers of the journal included.

    The calls and tokens spent are said even if sending ends with an error. Without calls to send, nothing is asked or sent.
    """
    calls = len(plan.to_send)
    answers = f"answers in the journal: {len(plan.answers):,}"
    if not calls:
        shared.say(f"calls: 0; {answers}")
        return plan.answers

    with Endpoint(options.base_url, key, budget, timeout=options.timeout) as endpoint:
        most_tokens = sum(request.size + request.most_output for request in plan.to_send)
        shared.say(f"calls: {calls:,}, at most {most_tokens:,} tokens, to {endpoint.host}; {answers}")
        shared.say(_describe_longest_answer(plan, options.price))
        _confirm(plan, journal, is_confirmed=options.yes)
        try:
            with show_progress() as tell:
                counts: Counter[str] = Counter()

                def report(answer: Answer) -> None:
                    counts["failed" if answer.failed else str(answer.grade)] += 1
                    grades = ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items()))
                    spend = f"tokens: {budget.tokens:,}{_describe_cost(budget, options.price)}"
                    tell(f"{grades}; {spend}", counts.total(), calls)

                return send_calls(plan, endpoint, journal, report)
        finally:
            tokens = f"tokens: {budget.input_tokens:,} sent, {budget.output_tokens:,} received"
            shared.say(f"calls: {budget.calls:,}, {tokens}{_describe_cost(budget, options.price)}")


def _describe_longest_answer(plan: Plan, price: _Price | None) -> str:
    """Return a sentence on the output limit of an answer and, with prices, the usual and the largest cost of the plan.

    The largest cost counts a token per byte sent, and answers as long as their limit.
    """
    longest = plan.to_send[0].most_output
    sentence = f"longest answer: {longest:,} tokens, thinking included"
    if price is None:
        return sentence

    bytes_sent = sum(request.size for request in plan.to_send)
    usual_output = len(plan.to_send) * _TOKENS_OF_ANSWER
    most_output = sum(request.most_output for request in plan.to_send)
    usual = _compute_cost(bytes_sent // _BYTES_OF_TOKEN, usual_output, price)
    most = _compute_cost(bytes_sent, most_output, price)
    return f"{sentence}; cost: about {usual:.4f} without thinking, at most {most:.4f}"


def _confirm(plan: Plan, journal: Journal, *, is_confirmed: bool) -> None:
    """Ask before many calls, and before calls that older answers could replace. Raise `InputError` without a yes."""
    older_answers = model_labels.count_first_answers(plan.to_send, journal)
    if older_answers:
        shared.say(f"{older_answers}; --prompt good-gain-1 uses the older answers")

    calls = len(plan.to_send)
    if is_confirmed or not (older_answers or calls > _ASK_ABOVE):
        return
    can_ask = sys.stdin.isatty() and sys.stderr.isatty()
    if not (can_ask and click.confirm("Send them?", err=True)):
        reason = older_answers or f"more than {_ASK_ABOVE} need confirmation"
        raise InputError(f"{count_of(calls, 'call was', 'calls were')} not sent: {reason}. Give --yes to send them")


def _describe_cost(budget: Budget, price: _Price | None) -> str:
    if price is None:
        return ""
    return f", cost: {_compute_cost(budget.input_tokens, budget.output_tokens, price):.4f}"


def _compute_cost(sent: int, received: int, price: _Price) -> float:
    price_of_sent, price_of_received = price
    return (sent * price_of_sent + received * price_of_received) / _MILLION


def _close(grades: pl.DataFrame, output: Path, budget: Budget, key: Key, shortfall: str) -> None:
    """Print the numbers of grades and of missing grades, and how to go on."""
    missing = grades.filter(pl.col("grade").is_null())
    of_grade = grades.drop_nulls("grade").group_by("grade").len().sort("grade")
    of_status = missing.group_by("status").len().sort("status")
    counts = [f"{kind}: {count:,}" for kind, count in (*of_grade.iter_rows(), *of_status.iter_rows())]
    shared.say(f"{output}: {', '.join(counts) or 'no documents'}")
    if missing.height:
        shared.say(_describe_missing(missing))

    if isinstance(budget.ended, str):
        limits = {"calls": budget.max_calls, "tokens": budget.max_tokens}
        amounts = " and ".join(f"{limit:,} {name}" for name, limit in limits.items() if limit is not None)
        shared.say(f"{budget.ended}. To go on, give the same command: it may spend another {amounts}")
    elif missing.filter(~pl.col("status").is_in(["no_grade", "no_text", "not_sent"])).height:
        shared.say(f"To go on: {key.hide(_make_retry_command(sys.argv[1:]))}")

    if shortfall and not grades.get_column("grade").count():
        raise UnusableError(shortfall)
    if shortfall:
        shared.say(shortfall)


def _describe_missing(missing: pl.DataFrame) -> str:
    """Return a sentence with the number of missing grades, and the first few queries, most missing grades first, by status."""
    counts = missing.group_by("query_id", "status").len().sort("query_id", "status")
    statuses = pl.format("{} {}", "status", "len").str.join(", ")
    queries = counts.group_by("query_id").agg(statuses, missing=pl.col("len").sum())
    queries = sort_ids(queries).sort("missing", descending=True, maintain_order=True)

    examples = [f"{query} ({statuses})" for query, statuses, _ in queries.head(_NAMED_QUERIES).iter_rows()]
    if queries.height > _NAMED_QUERIES:
        examples.append("...")
    place = f"in {count_of(queries.height, 'query', 'queries')}: {', '.join(examples)}"
    return f"missing grades: {missing.height:,}, {place}"


def _make_retry_command(words: Sequence[str]) -> str:
    """Return the command that sends only failed calls again. `words` are those of this command."""
    without_retry = []
    for place, word in enumerate(words):
        if "--retry" not in words[max(0, place - 1) : place + 1]:  # neither the option nor its value
            without_retry.append(word)
    return shlex.join(["goodgain", *without_retry, "--retry", "failed"])
