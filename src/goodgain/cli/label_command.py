"""The command `label`."""

import json
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import show_progress
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
_Price = tuple[float, float] | None
#: To estimate the cost: bytes per token, and tokens of an answer without thinking.
_BYTES_OF_TOKEN, _TOKENS_OF_ANSWER = 4, 60
#: The most queries to name in the closing lines.
_NAMED_QUERIES = 5


def _parse_headers(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    parts = [value.partition(":") for value in values]
    if not all(sign and name.strip() for name, sign, _ in parts):
        raise InputError("--header: write NAME:VALUE, such as X-Title:labels")
    return {name.strip(): value.strip() for name, _, value in parts}


def _read_object(text: str | None) -> Any:
    try:
        found = None if text is None else json.loads(text)
    except RecursionError:
        raise ValueError from None
    if not isinstance(found, dict | None):
        raise ValueError
    return found


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
def label(given: shared.Given) -> None:
    """Ask language models to grade every unjudged document from 0 to 4.

    SOURCE is a run, results that goodgain convert --results wrote, or a sheet that goodgain pool wrote. `goodgain judge`
    makes qrels from the grades. `goodgain evaluate` reads the grades of one judge directly. A document without an answer
    has no grade, never a 0. The column "status" gives the reason.
    """
    output, disputed = given.output, given.disputed
    check_results_name(output)
    if disputed is not None:
        check_sheet_name(disputed)
    named = [given.queries, given.texts, given.results, given.qrels, given.prompt]
    shared.check_outputs([output, disputed, given.journal], [*shared.find_files(given.sources), *named])
    budget = Budget(**{name: getattr(given, name) for name in Budget.__dataclass_fields__})
    key = Key(given.key_variable, given.headers)
    sources = shared.find_single_runs(given.sources)
    requests, wanted, systems = model_labels.prepare_job(sources, given.queries, given.model, vars(given))
    queries, cut = wanted.get_column("query_id").n_unique(), wanted.get_column("cut").sum()
    shared.say(f"documents: {wanted.height:,}, queries: {queries:,}, texts cut: {cut:,}")
    with Journal.open(given.journal or output.with_name(f"{output.name}.journal")) as journal:
        model_labels.warn_of_family(given.model, systems)
        plan = plan_calls(requests, journal, retry_failed=given.retry is not None)
        answers = _send(plan, key, journal, budget, given)
    grades = model_labels.collect_grades(requests, answers, plan.judges)
    write_frame(grades, output)
    model_labels.warn_of_suspicious_grades(grades, requests)
    if disputed is not None:
        rows = find_disputed(grades).join(wanted, on=["query_id", "doc_id"], how="left")
        sheet = rows.select("query_id", "doc_id", "query", "text", grade=pl.lit(None, pl.Int64))
        write_sheet(sheet, disputed)
        shared.say(f"{disputed}: disputed documents for people to grade: {sheet.height:,}")
    _close(grades, output, budget, key, model_labels.find_shortfall(requests, answers))


def _send(plan: Plan, key: Key, journal: Journal, budget: Budget, given: shared.Given) -> dict[str, Answer]:
    calls = len(plan.to_send)
    answered = f"answers in the journal: {len(plan.known):,}"
    if not calls:
        shared.say(f"calls: 0; {answered}")
        return plan.known
    with Endpoint(given.base_url, key, budget, timeout=given.timeout) as endpoint:
        bytes_sent = sum(request.size for request in plan.to_send)
        received = sum(request.most_output for request in plan.to_send)
        shared.say(f"calls: {calls:,}, at most {bytes_sent + received:,} tokens, to {endpoint.host}; {answered}")
        usual = _add_price(bytes_sent // _BYTES_OF_TOKEN, calls * _TOKENS_OF_ANSWER, given.price)
        most = _add_price(bytes_sent, received, given.price)
        cost = f"; cost: about {usual:.4f} without thinking, at most {most:.4f}" if given.price else ""
        shared.say(f"longest answer: {plan.to_send[0].most_output:,} tokens, thinking included{cost}")
        if older := model_labels.count_first_answers(plan.to_send, journal):
            shared.say(f"{older}; --prompt good-gain-1 uses the older answers")
        if (calls > _ASK_ABOVE or older) and not given.yes:
            can_ask = sys.stdin.isatty() and sys.stderr.isatty()
            if not (can_ask and click.confirm("Send them?", err=True)):
                why = older or f"more than {_ASK_ABOVE} need confirmation"
                raise InputError(
                    f"{count_of(calls, 'call was', 'calls were')} not sent: {why}. Give --yes to send them"
                )
        try:
            with show_progress() as tell:
                counts: Counter[str] = Counter()

                def report(answer: Answer) -> None:
                    counts["failed" if answer.failed else str(answer.grade)] += 1
                    told = ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items()))
                    told += f"; tokens: {budget.tokens:,}{_tell_cost(budget, given.price)}"
                    tell(told, counts.total(), calls)

                return send_calls(plan, endpoint, journal, report)
        finally:
            tokens = f"tokens: {budget.input_tokens:,} sent, {budget.output_tokens:,} received"
            shared.say(f"calls: {budget.calls:,}, {tokens}{_tell_cost(budget, given.price)}")


def _add_price(sent: int, received: int, price: _Price) -> float:
    of_sent, of_received = price or (0.0, 0.0)
    return (sent * of_sent + received * of_received) / _MILLION


def _tell_cost(spent: Budget, price: _Price) -> str:
    return f", cost: {_add_price(spent.input_tokens, spent.output_tokens, price):.4f}" if price else ""


def _close(grades: pl.DataFrame, output: Path, budget: Budget, key: Key, shortfall: str) -> None:
    missing = grades.filter(pl.col("grade").is_null())
    told = [
        f"{kind}: {count:,}"
        for name, of in (("grade", grades.drop_nulls("grade")), ("status", missing))
        for kind, count in of.group_by(name).len().sort(name).iter_rows()
    ]
    shared.say(f"{output}: {', '.join(told) or 'no documents'}")
    if missing.height:
        counts = missing.group_by("query_id", "status").len().sort("query_id", "status")
        of_status = pl.format("{} {}", "status", "len").str.join(", ")
        of_query = counts.group_by("query_id").agg(of_status, missing=pl.col("len").sum())
        of_query = sort_ids(of_query).sort("missing", descending=True, maintain_order=True)
        some = [f"{query} ({statuses})" for query, statuses, _ in of_query.head(_NAMED_QUERIES).iter_rows()]
        more = ", ..." * (of_query.height > _NAMED_QUERIES)
        shared.say(
            f"missing grades: {missing.height:,}, in {count_of(of_query.height, 'query', 'queries')}: {', '.join(some)}{more}"
        )
    if isinstance(budget.ended, str):
        limits = (("calls", budget.max_calls), ("tokens", budget.max_tokens))
        may = " and ".join(f"{most:,} {name}" for name, most in limits if most is not None)
        shared.say(f"{budget.ended}. To go on, give the same command: it may spend another {may}")
    elif missing.filter(~pl.col("status").is_in(["no_grade", "no_text", "not_sent"])).height:
        given = sys.argv[1:]
        again = [word for place, word in enumerate(given) if "--retry" not in given[max(0, place - 1) : place + 1]]
        command = shlex.join(["goodgain", *again, "--retry", "failed"])
        shared.say(f"To go on: {key.hide(command)}")
    if shortfall and not grades.get_column("grade").count():
        raise UnusableError(shortfall)
    if shortfall:
        shared.say(shortfall)
