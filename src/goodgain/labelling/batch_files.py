"""Batch files: the calls of a job as a file for an endpoint's batch service, and its answers back into the journal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from goodgain.errors import InputError, notice
from goodgain.files.content import read_bytes
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import container
from goodgain.files.writing import atomic_write
from goodgain.labelling.answers import Answer, read_completion
from goodgain.labelling.journal import Journal
from goodgain.labelling.requests import Parameters, Request

__all__ = ["read_batch", "write_batch"]

_URL = "/v1/chat/completions"
_GOOD = 200
_STATUS = re.compile("[1-9][0-9]{2}")


def write_batch(requests: Iterable[Request], path: Path, parameters: Parameters) -> int:
    """Write requests in OpenAI's batch format, one a line, and return how many; `custom_id` is the key of the answer.

    Raises:
        InputError: the name does not end in .jsonl, or the file cannot be written.
    """
    if container(path) != "jsonl":
        raise InputError(f"{path}: a batch file ends in .jsonl; choose such a name")
    count = 0
    with atomic_write(path) as file:
        for request in requests:
            body = parameters.make_body(request.messages)
            line = {"custom_id": request.key, "method": "POST", "url": _URL, "body": body}
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            count += 1
    return count


def read_batch(path: Path, requests: Iterable[Request | None], journal: Journal) -> int:
    """Read a batch service's answers into the journal, and return how many belong to these requests.

    An answer that stands in the journal is kept, unless it is a failure. Lines of other jobs are left out, with a notice.

    Raises:
        InputError: the file cannot be read, or a line is not of OpenAI's batch format.
    """
    keys = {request.key for request in requests if request is not None}
    known = journal.find(keys)
    others = 0
    taken: Counter[str] = Counter()
    for number, line in enumerate(read_bytes(path).lines(), start=1):
        if not line.strip():
            continue
        key, answer = _read_line(line, f"{path}, line {number}")
        if key not in keys:
            others += 1
            continue
        taken[key] += 1
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
        return found["custom_id"], Answer(None, _say(found.get("error")), "batch_error")
    status = _read_status(response.get("status_code"))
    if status != _GOOD:
        return found["custom_id"], Answer(None, _say(response.get("body")), f"http_{status or 'unknown'}")
    return found["custom_id"], read_completion(response.get("body"))


def _read_status(value: Any) -> int | None:
    """Return an HTTP status, which some services write as text; None for anything else."""
    text = str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    return int(text) if _STATUS.fullmatch(text) else None


def _say(error: Any) -> str:
    """Return what an error says, as one line."""
    while isinstance(error, dict):
        error = error.get("error") or error.get("message") or error.get("code") or ""
    return " ".join(str(error or "the endpoint gave no reason").split())[:300]
