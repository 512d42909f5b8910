"""Labels 0..4 from a language model: `label`, and the steps of its job, which the command takes one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError, check_whole_number, notice
from goodgain.labelling.answers_and_journal import Answer, Journal
from goodgain.labelling.documents_to_label import collect_documents
from goodgain.labelling.endpoint import KEY_VARIABLE, Endpoint, Key
from goodgain.labelling.prompt_requests import Parameters, Prompt, Request, make_requests, read_prompt
from goodgain.labelling.retries_and_budget import Limits, plan_calls, send_calls

#: The columns of grades.
_GRADES = dict.fromkeys(("query_id", "doc_id", "judge", "grade", "reason", "status", "raw"), pl.String) | {
    "grade": pl.Int64
}
_WORD = re.compile(r"[^\W\d_]+")


def label(
    source: Any,
    queries: Any,
    *,
    model: str,
    base_url: str | None = None,
    texts: Any = None,
    results: Any = None,
    qrels: Any = None,
    k: int | None = None,
    max_characters: int = 8_000,
    prompt: str | os.PathLike[str] | None = None,
    temperature: float | None = 0.0,
    samples: int = 1,
    schema: bool = True,
    max_output_tokens: int = 400,
    output_limit: str = "max_completion_tokens",
    journal: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    jobs: int = 8,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    timeout: float = 60.0,
    tries: int = 6,
    key_variable: str = KEY_VARIABLE,
) -> pl.DataFrame:
    """Ask a language model for a grade 0..4 of every unjudged document, and return the grades in long form.

    The calls go to an OpenAI-compatible endpoint, one document each. Nothing is sent anywhere by default. A document for
    which there is no answer has a null grade and a status that says why, never a 0.

    Args:
        source: a run, results, or a sheet of `goodgain pool`, as a file or frame; a list of them; or {name: run}.
        queries: a file .tsv or .jsonl of query_id and text, {query_id: text}, a frame, or an ir_datasets id.
        model: the name that the endpoint has for the model.
        base_url: the address of the endpoint; None: the variable OPENAI_BASE_URL.
        texts: doc_id and text, shown in place of title, URL and snippet.
        results: for runs: a results frame or file with titles, URLs and snippets.
        qrels: judgments that there are already: their documents are left out.
        k: how many results of every iteration are graded; None: all.
        max_characters: where a text is cut.
        prompt: a file with `{{query}}` and `{{document}}`; None: the prompt of the good-gain scale.
        temperature: None sends none, for models that take no other than their own.
        samples: how often each document is graded; each sample is a judge of its own, `model@prompt-hash#2`.
        schema: request answers that follow a JSON schema.
        max_output_tokens: the largest answer.
        output_limit: the endpoint's name for that: max_completion_tokens, or the older max_tokens.
        journal: a file that keeps every answer, so that none is asked for twice; None: in memory.
        retry_failed: send what failed before, and nothing else.
        jobs: how many calls at once.
        max_calls: how many calls in all.
        max_tokens: how many tokens in all, sent and received.
        requests_per_minute: how many calls in any sixty seconds.
        tokens_per_minute: how many tokens in any sixty seconds.
        timeout: the most seconds of one call.
        tries: how often a call is sent that failed and may succeed later.
        key_variable: the environment variable with the key.

    Returns:
        query_id, doc_id, judge (model@prompt-hash), grade (0..4 or null), reason, status (ok; no_grade, where the model
        says that there is none; refused, malformed, timeout, too_long, connection, http_429 ...; no_text, not_sent), raw.
        `aggregate` makes labels of it.

    Raises:
        InputError: a source cannot be read, or a query has no text; there is no endpoint, or it cannot be reached; the key
            cannot be sent; no call can succeed.

    Source: the Retrieved Good Gain guideline (grades 0..4; a document labelled 2 or higher is good).

    An endpoint is needed, so this example is not run:

        grades = gg.label("agent.run", "queries.tsv", results="results.parquet", model="qwen3-32b",
                          base_url="http://localhost:8000/v1", journal="answers.sqlite")
        qrels = gg.aggregate(grades, scale="good-gain")
    """
    parameters = Parameters(model, temperature, max_output_tokens, output_limit, schema)
    check_samples(samples, temperature)
    if k is not None:
        check_whole_number("k", k, 1, others=", or None (all results)")
    check_whole_number("max_characters", max_characters, 1)
    told = read_prompt(None if prompt is None else os.fspath(prompt))
    limits = Limits(jobs, max_calls, max_tokens, requests_per_minute, tokens_per_minute, tries)
    key = Key(key_variable)
    wanted, systems = collect_documents(
        source, queries, texts=texts, results=results, qrels=qrels, k=k, max_characters=max_characters
    )
    warn_of_family(model, systems)
    job = prepare_job(wanted, told, parameters, samples=samples)
    with Journal.open(None if journal is None else Path(journal)) as kept:
        plan = plan_calls([asked.request for asked in job], kept, retry_failed=retry_failed)
        if not plan.to_send:
            return collect_grades(job, plan.known)
        done = send_calls(plan, Endpoint(base_url, parameters, key, timeout=timeout), kept, limits)
    grades = collect_grades(job, done.answers)
    if done.stopped:
        notice(f"{done.stopped}: {count_not_sent(grades):,} grades were not asked for")
    return grades


class Asked(NamedTuple):
    """A document and its judge, and what is asked; None where there is no text to show."""

    query_id: str
    doc_id: str
    judge: str
    request: Request | None


def check_samples(samples: int, temperature: float | None) -> None:
    """Raise `InputError` if samples is not a count, or several samples would all be the same."""
    check_whole_number("samples", samples, 1)
    if samples > 1 and not temperature:
        raise InputError("several samples at temperature 0 are one answer several times; give a temperature above 0")


def prepare_job(wanted: pl.DataFrame, prompt: Prompt, parameters: Parameters, *, samples: int = 1) -> list[Asked]:
    """Return what is asked of each document; each of several samples is a judge of its own, `model@prompt-1a2b3c#2`."""
    ids = wanted.select("query_id", "doc_id").rows()
    job = []
    for number in range(1, samples + 1):
        judge = f"{parameters.model}@{prompt.name}-{prompt.hash}{f'#{number}' if samples > 1 else ''}"
        requests = make_requests(wanted, prompt, parameters, sample=number)
        job += [Asked(query, doc, judge, request) for (query, doc), request in zip(ids, requests, strict=True)]
    return job


_NO_TEXT = Answer(None, "there is no text to show", "no_text")
#: For a call that was not sent, because the budget was spent or the job stopped.
_NOT_SENT = Answer(None, None, "not_sent")


def collect_grades(job: Iterable[Asked], answers: dict[str, Answer]) -> pl.DataFrame:
    """Return one row for each document and judge, with its answer."""
    rows = []
    for query_id, doc_id, judge, request in job:
        answer = _NO_TEXT if request is None else answers.get(request.key, _NOT_SENT)
        rows.append((query_id, doc_id, judge, answer.grade, answer.reason, answer.status, answer.raw))
    return pl.DataFrame(rows, schema=_GRADES, orient="row")


def count_not_sent(grades: pl.DataFrame) -> int:
    """Return how many grades were not asked for."""
    return grades.filter(status=_NOT_SENT.status).height


def warn_of_family(model: str, systems: Sequence[str]) -> None:
    """Give a notice if a system's name says that the judge's own family of models wrote its searches.

    The family is the first word of the model's name: gpt in `openai/gpt-4.1-mini`.
    """
    family = next(iter(_WORD.findall(model.rpartition("/")[2].lower())), "")
    same = [system for system in systems if family in _WORD.findall(system.lower())]
    if same and len(family) > 2:
        notice(
            f"the judge {model} and the system {same[0]} are of one family of models ({family}): models grade what their own "
            "family found too high; have some documents graded by people, or by a model of another family"
        )
