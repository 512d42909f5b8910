"""Sends the calls of a job within a budget. The first 20 calls of each model are a trial: if most of them fail, the job ends."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from typing import NamedTuple

from goodgain.errors import count_of, notice
from goodgain.judgments.labelling.answers_and_journal import CUT, Answer, Journal, is_answer
from goodgain.judgments.labelling.budget import JobEnded, StoppedError, UnusableError
from goodgain.judgments.labelling.endpoint import Endpoint
from goodgain.judgments.labelling.prompt_requests import Request
from goodgain.options import spell

#: The first calls of each model, which show whether answers can be used.
TRIAL = 20
#: Consecutive failures of the endpoint, after all tries, that stop the job.
_GIVE_UP = 50
#: Seconds to wait for pending calls of a stopped job, and between two checks for Ctrl-C.
_GRACE, _PIECE = 2.0, 0.2
#: The most characters of an answer in a message.
_SHOWN = 300
#: What endpoints add to the name of a model: a date, or a version of three digits.
_STAMP = re.compile(r"[-@:_](\d{4}-\d\d(-\d\d)?|\d{3,})$")


class Plan(NamedTuple):
    """The requests to send, without repeated keys, and the answers that the journal already has."""

    to_send: list[Request]
    answers: dict[str, Answer]
    usable: Counter[str]  # model -> answers that are not failures
    judges: dict[str, str]  # key -> the judge of an answer that was given with other options


def plan_calls(requests: Iterable[Request], journal: Journal, *, retry_failed: bool = False) -> Plan:
    """Select the requests without an answer in the journal. With `retry_failed`, select only the requests that failed before.

    A request whose options have changed failed before if its question did: the same model, prompt and texts. If the question
    has an answer with other options, this answer is kept.
    """
    by_key = {request.key: request for request in requests if request.document is not None}
    stored = journal.find(by_key)
    answers = {key: answer for key, answer in stored.items() if is_answer(answer, by_key[key].prompt.grades)}
    if damaged := stored.keys() - answers.keys():
        notice(
            "damaged_journal",
            f"the journal has {count_of(len(damaged), 'answer')} that no model gave, such as a grade of 99. They are asked for "
            "again. Find out what wrote to the journal.",
        )

    failed = {key for key, answer in answers.items() if answer.failed}
    judges: dict[str, str] = {}
    if retry_failed:
        answered, failed_before = _find_earlier(by_key.keys() - stored.keys(), by_key, journal)
        answers |= {key: answer for key, (_, answer) in answered.items()}
        for key, (judge, _) in answered.items():
            if judge != by_key[key].judge:
                judges[key] = judge
        failed |= failed_before
    keys_to_send = failed | damaged if retry_failed else by_key.keys() - answers.keys()
    to_send = [request for key, request in by_key.items() if key in keys_to_send]
    usable = Counter(by_key[key].parameters.model for key, answer in answers.items() if not answer.failed)
    return Plan(to_send, answers, usable, judges)


def _find_earlier(
    keys: Iterable[str], by_key: Mapping[str, Request], journal: Journal
) -> tuple[dict[str, tuple[str, Answer]], set[str]]:
    """Return answers that were given with other options, as {key: (judge, answer)}, and the keys of questions that only failed."""
    wanted = [by_key[key] for key in keys]
    stored = journal.find_earlier(request.question for request in wanted)
    answered, failed = {}, set()
    for request in wanted:
        pairs = stored.get(request.question, [])
        valid = [pair for pair in pairs if is_answer(pair[1], request.prompt.grades)]
        good = [pair for pair in valid if not pair[1].failed]
        if good:
            answered[request.key] = good[-1]
        elif valid:
            failed.add(request.key)
    return answered, failed


def send_calls(
    plan: Plan, endpoint: Endpoint, journal: Journal, report: Callable[[Answer], object] = lambda answer: None
) -> dict[str, Answer]:
    """Send the calls of a plan. Return a dict {key: answer}, which includes the answers that the journal already had.

    Each new answer is written to the journal, and then passed to `report`. Only one thread at a time calls `report`. If some
    calls were not sent, `endpoint.budget.ended` says why. Raise `UnusableError` if most answers to a model's first 20 calls
    cannot be used, and `StoppedError` if no further call can succeed.
    """
    answers = dict(plan.answers)
    lock = threading.Lock()
    failures = 0
    other_models: set[tuple[str, str]] = set()  # (model asked, model that answers)

    def keep(request: Request, answer: Answer) -> None:
        """Store and report an answer. Stop the job if the endpoint ignores the limit of tokens, or fails many times in a row."""
        nonlocal failures
        about = {"query_id": request.query_id, "doc_id": request.doc_id, "host": endpoint.host}
        journal.add(request.key, answer, **about, question=request.question, judge=request.judge)
        if answer.output_tokens is not None and answer.output_tokens > request.most_output:
            raise StoppedError(
                f"{endpoint.host} gave an answer of {answer.output_tokens:,} tokens, over the limit of {request.most_output:,}: "
                f"it ignores {request.parameters.output_limit}. Choose another name of the limit with {spell('output_limit')}"
            )

        with lock:
            models = request.parameters.model, answer.model or ""
            if not is_same_model(*models) and models not in other_models:
                other_models.add(models)
                _tell_of_model(*models, endpoint.host)
            answers[request.key] = answer
            report(answer)
            is_endpoints = answer.status in ("timeout", "connection") or answer.status.startswith("http_")
            failures = failures + 1 if is_endpoints else 0
            if failures >= _GIVE_UP:
                raise StoppedError(
                    f"{endpoint.host} failed for {_GIVE_UP} documents in a row, the last with {answer.status} "
                    f"({answer.reason}). {_advise(answer.status, schema=False)}"
                )

    tried: set[str] = set()
    for model in dict.fromkeys(request.parameters.model for request in plan.to_send):
        usable = plan.usable[model]
        requests_of_model = [request for request in plan.to_send if request.parameters.model == model]
        trial = requests_of_model[: max(0, TRIAL - usable)]
        _send_all(trial, endpoint, keep)
        tried.update(request.key for request in trial)

        new_answers = [answers[request.key] for request in trial if request.key in answers]
        failed = sum(answer.failed for answer in new_answers)
        if len(new_answers) + usable >= TRIAL and 2 * failed > TRIAL:
            has_schema = trial[0].parameters.schema and not endpoint.lacks_schema
            raise UnusableError(explain_failures(new_answers, schema=has_schema))
    _send_all([request for request in plan.to_send if request.key not in tried], endpoint, keep)
    return answers


def is_same_model(model: str, answering: str) -> bool:
    """Return whether an endpoint answers as the model that was asked. An endpoint may add a date, or name no model.

    >>> is_same_model("openai/gpt-4.1", "gpt-4.1-2025-04-14"), is_same_model("gpt-4.1", "gpt-4.1-mini")
    (True, False)
    """
    model = model.rpartition("/")[2].lower().removesuffix("-latest").removesuffix(":latest")
    answering = answering.rpartition("/")[2].lower().removesuffix(":latest")
    return answering in ("", model) or _STAMP.sub("", answering) == model


def _tell_of_model(model: str, answering: str, host: str) -> None:
    notice(
        "other_model",
        f"{host} answers as the model {answering[:_SHOWN]}, and {model} was asked for. The judge is named {model} all the "
        f"same: check {spell('model')} and {spell('base_url')}",
    )


def _send_all(requests: Sequence[Request], endpoint: Endpoint, keep: Callable[[Request, Answer], None]) -> None:
    """Send requests in threads, until all have answers or the job has ended. Raise the first error of a thread, or Ctrl-C."""
    budget = endpoint.budget
    unsent_requests = iter(requests)
    lock = threading.Lock()

    def work() -> None:
        try:
            while not budget.ended:
                with lock:
                    request = next(unsent_requests, None)
                if request is None:
                    return
                keep(request, endpoint.ask(request))
        except JobEnded:  # raised by `ask`; `budget.ended` holds the reason
            pass
        except BaseException as error:  # `_send_all` raises it again
            budget.end(error)

    # daemons: with a thread pool, Ctrl-C would wait for an endpoint that hangs
    threads = min(budget.jobs, len(requests))
    workers = [threading.Thread(target=copy_context().run, args=(work,), daemon=True) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            # short waits: Polars' hook for Ctrl-C does not interrupt a wait. Without pending calls, workers only wait to retry.
            while worker.is_alive() and not (budget.ended and not budget.under_way):
                worker.join(_PIECE)
                endpoint.tell_trouble()
    except BaseException as error:
        budget.end(error)
        raise
    finally:
        if budget.ended:
            for worker in filter(threading.Thread.is_alive, workers):  # Ctrl-C may have come before all started
                worker.join(_GRACE / len(workers))
    if isinstance(budget.ended, BaseException):
        raise budget.ended


def explain_failures(answers: Sequence[Answer], *, schema: bool) -> str:
    """Return a message with the number of failures, an example, and advice. `schema` is whether the calls had a schema."""
    failed = [answer for answer in answers if answer.failed]
    kinds = [(answer.status, answer.reason == CUT) for answer in failed]
    (status, is_cut), _ = Counter(kinds).most_common(1)[0]
    first = failed[kinds.index((status, is_cut))]
    remedy = _advise(CUT if is_cut else status, schema=schema)
    example = ""
    if first.raw:
        one_line = " ".join(first.raw.split())
        example = f": {one_line[:_SHOWN]!r}"
    return (
        f"{len(failed):,} of {len(answers):,} answers cannot be used, most with {status}. One of them: "
        f"{first.reason}{example}. {remedy}"
    )


def _advise(failure: str, *, schema: bool) -> str:
    """Return the remedy for a kind of failure. `schema`: the requests had a JSON schema."""
    room, thinking, body = spell("max_output_tokens"), spell("reasoning_effort", "low"), spell("extra_body")
    if failure == "malformed" and schema:
        return f"Try {spell('schema', False)}, or end the model's thinking with {body} or {thinking}"
    remedies = {
        CUT: f"Give a larger {room}, or have the model think less: {thinking}, or {body}",
        "malformed": f"End the model's thinking with {body} or {thinking}, or give a {spell('model')} that follows the prompt",
        "too_long": f"Give a smaller {spell('max_characters')}, or a smaller {room}",
        "refused": f"Give another {spell('model')}",
    }
    return remedies.get(failure, f"Look at the endpoint, then send these again with {spell('retry_failed', True)}")
