"""Labels from language models: the function `label`, and steps shared with the command `goodgain label`."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, count_of, notice
from goodgain.files.opening import make_path
from goodgain.judgments.labelling.answers_and_journal import Answer, Journal
from goodgain.judgments.labelling.budget import Budget
from goodgain.judgments.labelling.calls import explain_failures, plan_calls, send_calls
from goodgain.judgments.labelling.documents_to_label import collect_documents
from goodgain.judgments.labelling.endpoint import Endpoint
from goodgain.judgments.labelling.keys import KEY_VARIABLE, Key
from goodgain.judgments.labelling.prompt_requests import (
    DEFAULT_PROMPT,
    FIRST_PROMPT,
    Parameters,
    Prompt,
    Request,
    make_requests,
    read_prompt,
)
from goodgain.options import check_whole_number, spell

#: The columns of grades.
_GRADES = dict.fromkeys(("query_id", "doc_id", "judge", "grade", "reason", "status", "raw", "cut"), pl.String) | {
    "grade": pl.Int64,
    "cut": pl.Boolean,
}
_WORD = re.compile(r"[^\W\d_]+")


@checks_kinds
def label(
    source: Any,
    queries: Any,
    *,
    model: str | Sequence[str],
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
    max_output_tokens: int | None = None,
    output_limit: str = "max_completion_tokens",
    reasoning_effort: str | None = None,
    extra_body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
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
    """Ask language models to grade every unjudged document from 0 to 4. Return a row for each query, document and judge.

    Each call sends one document to an OpenAI-compatible endpoint. There is no default endpoint: without an address,
    nothing is sent. A document without an answer has a null grade, never a 0, and the column `status` gives the reason.

    Args:
        source: a run, results, or a sheet of `goodgain pool`, as a file or frame. Several sources: a list, or {name: run}.
        queries: a .tsv or .jsonl file with query_id and text, a dict {query_id: text}, a frame, or an ir_datasets id.
        model: the endpoint's name for the model, or several names. Each model is a judge.
        base_url: the address of the endpoint. None: the address in the environment variable OPENAI_BASE_URL.
        texts: a table with doc_id and text. The text is sent in place of title, URL and snippet.
        results: a results frame or file with titles, URLs and snippets, for a source that is a run.
        qrels: existing judgments. Documents that have a judgment are left out.
        k: grade only the first k results of every iteration. None: all.
        max_characters: the maximum number of characters of a text. Longer texts are cut.
        prompt: a file with `{{query}}` and `{{document}}`, or a built-in prompt: `good-gain` (default),
            `good-gain-1` (the first version: the grade comes before the reason), `umbrela` (grades 0..3).
        temperature: the sampling temperature. None sends no temperature, for models that refuse this parameter.
        samples: how often a model grades each document. With 2 or more, each sample is a judge whose name ends in `#1`, `#2` ...
        schema: whether to request answers that follow a JSON schema.
        max_output_tokens: the token limit of one answer, thinking included. None: 2,000, and 400 for `good-gain-1`.
        output_limit: the endpoint's name for `max_output_tokens`: `max_completion_tokens`, or the older `max_tokens`. If the
            endpoint refuses this name, `label` tries the other.
        reasoning_effort: how much a model thinks, such as `low`. None: the endpoint's default.
        extra_body: additional fields of the request, such as `{"top_k": 1}`.
        headers: more HTTP headers of the request. Their values are hidden in messages, as the key is.
        journal: a file that keeps every answer, so that answered calls are never repeated. None keeps answers in memory.
        retry_failed: whether to send only calls that failed before.
        jobs: the number of calls at once.
        max_calls: the maximum number of requests, retries included.
        max_tokens: the maximum number of tokens, sent and received together.
        requests_per_minute: the maximum number of requests in any sixty seconds.
        tokens_per_minute: the maximum number of tokens in any sixty seconds.
        timeout: a request fails after this many seconds without a byte from the endpoint, or after ten times as long in total.
        tries: the maximum number of attempts for a call that fails.
        key_variable: the environment variable that holds the API key.

    Returns:
        A frame with query_id, doc_id, judge (`model@prompt-hash/temperature/texts/max_characters`), grade (or null), reason,
        status, raw (the start of the answer), cut (whether the document's text was cut). The status is ok, no_grade (a null grade),
        no_text, not_sent, or a failure: refused, malformed, timeout, too_long, connection, http_429 ... `aggregate` makes labels.

    Raises:
        InputError: a source cannot be read, a query has no text, the endpoint is missing or cannot be reached, the key
            cannot be sent, no call can succeed, or most of the first 20 answers cannot be used.

    Source: the Retrieved Good Gain guideline (grades 0..4; a document with a label of at least 2 is good).

    An endpoint is needed::

        grades = gg.label("agent.run", "queries.tsv", results="results.parquet", model="qwen3-32b",
                          base_url="http://localhost:8000/v1", journal="answers.sqlite")
        qrels = gg.aggregate(grades, scale="good-gain")
    """
    budget = Budget(jobs, max_calls, max_tokens, requests_per_minute, tokens_per_minute, tries)
    key = Key(key_variable, headers)
    models = [*model] if isinstance(model, Iterable) and not isinstance(model, str) else [model]
    arguments = locals()  # all arguments by their names
    arguments["prompt"] = None if prompt is None else str(make_path(prompt, spell("prompt")))
    requests, _, systems = prepare_job(source, queries, models, arguments)
    warn_of_family(models, systems)

    with Journal.open(None if journal is None else Path(journal)) as open_journal:
        plan = plan_calls(requests, open_journal, retry_failed=retry_failed)
        if older := count_first_answers(plan.to_send, open_journal):
            notice("older_prompt", f"{older}. To use the older answers, give {spell('prompt', FIRST_PROMPT)}")
        answers = plan.answers
        if plan.to_send:
            with Endpoint(base_url, key, budget, timeout=timeout) as endpoint:
                answers = send_calls(plan, endpoint, open_journal)

    grades = collect_grades(requests, answers, plan.judges)
    warn_of_suspicious_grades(grades, requests)
    if plan.to_send:
        _warn_of_missing_grades(grades, requests, answers, budget)
    return grades


def _warn_of_missing_grades(
    grades: pl.DataFrame, requests: Sequence[Request], answers: Mapping[str, Answer], budget: Budget
) -> None:
    """Give notices if the budget ended the job, and if grades are missing."""
    if budget.ended:
        left = grades.filter(status=_NOT_SENT.status).height
        notice(
            "budget_used_up",
            f"{budget.ended}: {count_of(left, 'grade was', 'grades were')} not requested. Call label again to go on",
        )
    if warning := find_shortfall(requests, answers):
        notice("label_shortfall", warning)


def prepare_job(
    source: Any, queries: Any, models: Iterable[str], arguments: Mapping[str, Any]
) -> tuple[list[Request], pl.DataFrame, list[str]]:
    """Return the requests, the documents to grade, and the names of the systems. `arguments` are those of `label` by name."""
    prompt = read_prompt(arguments["prompt"])
    samples = arguments["samples"]
    options = {name: arguments[name] for name in Parameters.__dataclass_fields__ if name != "model"}
    if options["max_output_tokens"] is None:
        options["max_output_tokens"] = prompt.room
    parameters_of_models = [Parameters(model, **options) for model in dict.fromkeys(models)]
    if not parameters_of_models:
        raise InputError(f"{spell('model', models)}: give the model name that the endpoint uses")
    check_whole_number("samples", samples, 1)
    if samples > 1 and not parameters_of_models[0].temperature:
        raise InputError("several samples at temperature 0 repeat one answer. Give a temperature above 0")

    options_of_documents = {name: arguments[name] for name in ("texts", "results", "qrels", "k", "max_characters")}
    documents, systems = collect_documents(source, queries, **options_of_documents)
    requests = []
    for parameters in parameters_of_models:
        judge = _name_judge(prompt, parameters, arguments)
        for number in range(1, samples + 1):
            judge_of_sample = f"{judge}#{number}" if samples > 1 else judge
            requests += make_requests(documents, prompt, parameters, judge=judge_of_sample, sample=number)
    return requests, documents, systems


def _name_judge(prompt: Prompt, parameters: Parameters, arguments: Mapping[str, Any]) -> str:
    """Return the name of a judge: the model, the prompt and what else changes its grades, so two settings are two judges."""
    temperature = "none" if parameters.temperature is None else f"{parameters.temperature:g}"
    parts = [
        f"{parameters.model}@{prompt.name}-{prompt.hash}",
        f"t{temperature}",
        "snippets" if arguments["texts"] is None else "texts",
        str(arguments["max_characters"]),
    ]
    if parameters.reasoning_effort:
        parts.append(parameters.reasoning_effort)
    if parameters.extra_body:
        extra_body = json.dumps(dict(parameters.extra_body), sort_keys=True)
        parts.append(hashlib.sha256(extra_body.encode()).hexdigest()[:6])
    return "/".join(parts)


def count_first_answers(to_send: Iterable[Request], journal: Journal) -> str:
    """Return a sentence that counts old answers to `to_send`, or "" for none. Old answers are for the prompt `good-gain-1`."""
    first = read_prompt(FIRST_PROMPT)
    keys = []
    for request in to_send:
        if request.prompt.name == DEFAULT_PROMPT:
            parameters = replace(request.parameters, max_output_tokens=first.room)
            keys.append(replace(request, prompt=first, parameters=parameters, sample=1).key)
    count = len(journal.find(keys))
    if not count:
        return ""
    return f"the journal has {count_of(count, 'unused answer')} to the older prompt {FIRST_PROMPT}"


_NO_TEXT = Answer(None, "there is no text to show", "no_text")
#: For a call that was not sent because the job ended early.
_NOT_SENT = Answer(None, None, "not_sent")


def _find_answer(request: Request, answers: Mapping[str, Answer]) -> Answer:
    if request.document is None:
        return _NO_TEXT
    return answers.get(request.key, _NOT_SENT)


def collect_grades(
    requests: Iterable[Request], answers: Mapping[str, Answer], judges: Mapping[str, str]
) -> pl.DataFrame:
    """Return a row for each request. `judges` has the judges of answers that were given with other options, by key."""
    rows = []
    for request in requests:
        answer = _find_answer(request, answers)
        judge = judges.get(request.key, request.judge)
        fields_of_answer = (answer.grade, answer.reason, answer.status, answer.raw)
        rows.append((request.query_id, request.doc_id, judge, *fields_of_answer, request.cut))
    return pl.DataFrame(rows, schema=_GRADES, orient="row")


def find_shortfall(requests: Sequence[Request], answers: Mapping[str, Answer]) -> str:
    """Return why fewer than half of the requests gave a grade, or "" if half or more gave a grade."""
    all_answers = [_find_answer(request, answers) for request in requests]
    graded = sum(answer.grade is not None for answer in all_answers)
    if not all_answers or 2 * graded >= len(all_answers):
        return ""

    shortfall = "nothing was graded"
    if graded:
        shortfall = f"only {graded:,} of {count_of(len(all_answers), 'request')} gave a grade"
    tried = [answer for answer in all_answers if answer not in (_NO_TEXT, _NOT_SENT)]
    if any(answer.failed for answer in tried):
        shortfall += f": {explain_failures(tried, schema=requests[0].parameters.schema)}"
    return shortfall


#: The smallest number of grades of one judge whose distribution is looked at, and the largest usual share of one grade.
_ENOUGH, _MOST_OF_ONE = 10, 0.9
#: The largest usual share of reasons that repeat the prompt's placeholder.
_MOST_REPEATED = 0.1


def warn_of_suspicious_grades(grades: pl.DataFrame, requests: Sequence[Request]) -> None:
    """Give a notice for each judge whose grades look as if the model had not read the documents."""
    if not requests:
        return
    prompt = requests[0].prompt
    for (judge,), rows in grades.filter(status="ok").group_by("judge", maintain_order=True):
        if suspicions := [*_find_suspicions(rows, prompt)]:
            advice = f"Read some of the reasons, have people grade a sample, or give another {spell('model')}"
            notice("suspicious_labels", f"{judge}: {'; '.join(suspicions)}. {advice}")


def _find_suspicions(rows: pl.DataFrame, prompt: Prompt) -> Iterator[str]:
    """Yield what is unusual in the grades of one judge: reasons copied from the prompt, one grade for nearly all, only extremes."""
    total = rows.height
    repeated = int(rows.get_column("reason").is_in(list(prompt.placeholders)).sum())
    if repeated > _MOST_REPEATED * total:
        yield f"{repeated:,} of {count_of(total, 'reason')} repeat the placeholder of the prompt"

    counts = rows.get_column("grade").value_counts(sort=True)
    if total < _ENOUGH:
        return
    grade, number = counts.row(0)
    if number > _MOST_OF_ONE * total:
        yield f"{number:,} of {total:,} grades are {grade}"
        return
    lowest, highest = min(prompt.grades), max(prompt.grades)
    if set(counts.get_column("grade")) == {lowest, highest}:
        yield f"all {total:,} grades are {lowest} or {highest}, none is between"


def warn_of_family(models: Iterable[str], systems: Sequence[str]) -> None:
    """Warn if the name of a system contains the judge's model family, such as gpt for `openai/gpt-4.1-mini`."""
    for model in models:
        words = _WORD.findall(model.rpartition("/")[2].lower())
        family = words[0] if words else ""
        relatives = [system for system in systems if family in _WORD.findall(system.lower())]
        if relatives and len(family) > 2:
            notice(
                "judge_of_own_family",
                f"the judge {model} and the system {relatives[0]} are of one family of models ({family}), and models favour their "
                "own family. Have people or another family grade some documents",
            )
