"""Batch files: the calls of a job as a file for an endpoint's batch service, and its answers back into the journal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import orjson

from goodgain.errors import InputError, notice
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import container, read_bytes
from goodgain.files.writing import atomic_write
from goodgain.labelling.answers_and_journal import Answer, Journal, describe_error, read_completion
from goodgain.labelling.prompt_requests import Parameters, Request


def write_batch(requests: Iterable[Request], path: Path, parameters: Parameters) -> int:
    """Write requests in OpenAI's batch format, and return how many; `custom_id` is the key of the answer."""
    if container(path) != "jsonl":
        raise InputError(f"{path}: a batch file ends in .jsonl; choose such a name")
    count = 0
    with atomic_write(path) as file:
        for request in requests:
            body = parameters.make_body(request.messages)
            line = {"custom_id": request.key, "method": "POST", "url": "/v1/chat/completions", "body": body}
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            count += 1
    return count


def read_batch(path: Path, requests: Iterable[Request | None], journal: Journal) -> int:
    """Read a batch service's answers into the journal, and return how many belong to these requests.

    An answer that stands in the journal is kept, unless it is a failure. Lines of other jobs are left out, with a notice.
    """
    keys = {request.key for request in requests if request is not None}
    known = journal.find(keys)
    taken: set[str] = set()
    others = 0
    for number, line in enumerate(read_bytes(path).lines(), start=1):
        if not line.strip():
            continue
        key, answer = _read_line(line, f"{path}, line {number}")
        if key not in keys:
            others += 1
            continue
        taken.add(key)
        if key not in known or known[key].failed:
            journal.add(key, answer)
            known[key] = answer
    if others:
        notice(
            f"{path}: {others:,} answers are not of this job: they were asked for with other documents, texts, model, prompt or "
            "parameters; give those of the batch"
        )
    return len(taken)


def _read_line(line: bytes, at: str) -> tuple[str, Answer]:
    try:
        found = loads(line)
    except NotJSONError as error:
        raise InputError(f"{at}: is not JSON ({error}); download the batch's output again") from None
    if not isinstance(found, dict) or not isinstance(found.get("custom_id"), str):
        raise InputError(f"{at}: has no custom_id; give the output file of a batch, in OpenAI's format")
    response = found.get("response")
    if not isinstance(response, dict):
        return found["custom_id"], _fail(found.get("error"), "batch_error")
    status = str(response.get("status_code"))  # some services write it as text
    if status == "200":
        return found["custom_id"], read_completion(response.get("body"))
    known = re.fullmatch("[1-9][0-9]{2}", status)
    return found["custom_id"], _fail(response.get("body"), f"http_{status if known else 'unknown'}")


def _fail(error: object, status: str) -> Answer:
    return Answer(None, describe_error(error)[:300] or "the endpoint gave no reason", status)
