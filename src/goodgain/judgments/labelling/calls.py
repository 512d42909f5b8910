"""The calls of a job: a trial first, then several at once. The journal gets each answer before it is counted."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from typing import NamedTuple

from goodgain.judgments.labelling.answers_and_journal import CUT, Answer, Journal
from goodgain.judgments.labelling.budget_and_pace import JobEnded, Spent, StoppedError
from goodgain.judgments.labelling.endpoint import Endpoint
from goodgain.judgments.labelling.prompt_requests import Request
from goodgain.options import spell

#: Calls of each model that show whether its answers can be used.
TRIAL = 20
#: Consecutive failures of the endpoint, after all tries, that stop the job.
_GIVE_UP = 50
#: Seconds in which pending calls may end when a job is stopped, and between two looks at Ctrl-C.
_GRACE, _PIECE = 2.0, 0.2
#: Characters that are shown of an answer.
_SHOWN = 300


class UnusableError(StoppedError):
    """Raised when most answers of the trial cannot be used."""

    exit_status = 1


class Plan(NamedTuple):
    """The requests to send, one for each key, and the answers that the journal already has."""

    to_send: list[Request]
    known: dict[str, Answer]
    usable: Counter[str]  # model -> answers that are not failures


#: Called with each answer and the budget spent so far, by one thread at a time.
Report = Callable[[Answer, Spent], object]


def plan_calls(requests: Iterable[Request], journal: Journal, *, retry_failed: bool = False) -> Plan:
    """Sort requests into those to send and those that the journal answers.

    Failures in the journal are answers, too. With `retry_failed`, only these failures are sent again.
    """
    by_key = {request.key: request for request in requests if request.document is not None}
    known = journal.find(by_key)
    asked = {key for key, answer in known.items() if answer.failed} if retry_failed else by_key.keys() - known.keys()
    usable = Counter(by_key[key].parameters.model for key, answer in known.items() if not answer.failed)
    return Plan([request for key, request in by_key.items() if key in asked], known, usable)


def send_calls(
    plan: Plan, endpoint: Endpoint, journal: Journal, report: Report = lambda answer, spent: None
) -> dict[str, Answer]:
    """Send the calls of a plan, and return all answers by their keys. `endpoint.budget.ended` says why calls were not sent.

    Raise `UnusableError` if most answers of a model's first 20 calls cannot be used, and `StoppedError` if no further call can
    succeed.
    """
    answers, budget = dict(plan.known), endpoint.budget
    lock = threading.Lock()
    failures = 0

    def keep(request: Request, answer: Answer) -> None:
        nonlocal failures
        journal.add(request.key, answer, query_id=request.query_id, doc_id=request.doc_id, host=endpoint.host)
        if answer.output_tokens is not None and answer.output_tokens > request.most_output:
            raise StoppedError(
                f"{endpoint.host} gave an answer of {answer.output_tokens:,} tokens, over the limit of {request.most_output:,}: "
                f"it ignores {request.parameters.output_limit}. Give the limit by its other name: {spell('output_limit')}"
            )
        with lock:
            answers[request.key] = answer
            report(answer, budget.spent)
            is_endpoints = answer.status in ("timeout", "connection") or answer.status.startswith("http_")
            failures = failures + 1 if is_endpoints else 0
            if failures >= _GIVE_UP:
                raise StoppedError(
                    f"{endpoint.host} failed {_GIVE_UP} documents one after the other, the last with {answer.status} "
                    f"({answer.reason}). {_advise(answer.status)}"
                )

    tried: set[str] = set()
    for model in dict.fromkeys(request.parameters.model for request in plan.to_send):
        usable = plan.usable[model]
        trial = [one for one in plan.to_send if one.parameters.model == model][: max(0, TRIAL - usable)]
        _send_all(trial, endpoint, keep)
        tried.update(request.key for request in trial)
        found = [answers[request.key] for request in trial if request.key in answers]
        if len(found) + usable >= TRIAL and 2 * sum(answer.failed for answer in found) > TRIAL:
            raise UnusableError(explain_failures(found))
    _send_all([request for request in plan.to_send if request.key not in tried], endpoint, keep)
    return answers


def _send_all(requests: Iterable[Request], endpoint: Endpoint, keep: Callable[[Request, Answer], None]) -> None:
    """Send requests from several threads. Raise the error that ended the job, if there was one."""
    budget, waiting, lock = endpoint.budget, iter(requests), threading.Lock()

    def work() -> None:
        try:
            while not budget.ended:
                with lock:
                    request = next(waiting, None)
                if request is None:
                    return
                keep(request, endpoint.ask(request))
        except JobEnded:
            pass
        except BaseException as error:  # raised again by the thread that waits for this one
            budget.end(error)

    # Daemons: with the threads of a pool, Ctrl-C would wait for an endpoint that hangs.
    workers = [
        threading.Thread(target=copy_context().run, args=(work,), daemon=True) for _ in range(budget.limits.jobs)
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            # in pieces: Polars' hook for Ctrl-C lets one long wait go on. A worker with nothing under way waits to retry.
            while worker.is_alive() and not (budget.ended and not budget.under_way):
                worker.join(_PIECE)
    except BaseException as error:
        budget.end(error)
        raise
    finally:
        if budget.ended:
            for worker in filter(threading.Thread.is_alive, workers):  # Ctrl-C may have come before some began
                worker.join(_GRACE / len(workers))
    if isinstance(budget.ended, BaseException):
        raise budget.ended


def explain_failures(answers: Sequence[Answer]) -> str:
    """Say how many answers cannot be used, quote one, and advise on the most frequent failure."""
    failed = [answer for answer in answers if answer.failed]
    kinds = [(answer.status, answer.reason == CUT) for answer in failed]
    (status, is_cut), _ = Counter(kinds).most_common(1)[0]
    first = failed[kinds.index((status, is_cut))]
    remedy = _advise(CUT if is_cut else status)
    shown = f": {' '.join(first.raw.split())[:_SHOWN]!r}" if first.raw else ""
    return (
        f"{len(failed):,} of {len(answers):,} answers cannot be used, most with {status}. One of them: "
        f"{first.reason}{shown}. {remedy}"
    )


def _advise(failure: str) -> str:
    room, thinking, body = spell("max_output_tokens"), spell("reasoning_effort", "low"), spell("extra_body")
    remedies = {
        CUT: f"Give a larger {room}, or have the model think less: {thinking}, or {body}",
        "malformed": f"Try {spell('schema', False)}, or end the model's thinking with {body} or {thinking}",
        "too_long": f"Give a smaller {spell('max_characters')}, or a smaller {room}",
        "refused": f"Give another {spell('model')}",
    }
    return remedies.get(failure, f"Look at the endpoint, then send these again with {spell('retry_failed', True)}")
