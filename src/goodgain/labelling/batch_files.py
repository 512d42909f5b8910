"""Batch files: the calls of a job as files for a batch service, and its answers back into the journal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from goodgain.errors import InputError, notice
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import container, read_bytes
from goodgain.files.writing import atomic_write
from goodgain.labelling.answers_and_journal import (
    Answer,
    Journal,
    describe_error,
    find_failure,
    read_completion,
    summarize_error,
)
from goodgain.labelling.budget_and_pace import Limits
from goodgain.labelling.prompt_requests import Request

#: The most requests and bytes of a file: OpenAI's, and Anthropic's.
_LIMITS = {"openai": (50_000, 200_000_000), "anthropic": (100_000, 256_000_000)}
#: Reasons for which Anthropic's models stop -> those of OpenAI.
_STOPS = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}


def write_batch(requests: Iterable[Request], path: Path, limits: Limits) -> dict[Path, int]:
    """Write requests within the budget of `limits`, and return how many each file has; `custom_id` is the answer's key.

    A file .jsonl has OpenAI's form, a file .json that of Anthropic's Message Batches. More requests than a service takes in
    one file go to several, `batch-1.jsonl`, `batch-2.jsonl` ..., and each model has its own.
    """
    form = "anthropic" if path.suffix == ".json" else "openai"
    if form == "openai" and container(path) != "jsonl":
        raise InputError(f"{path}: a batch file ends in .jsonl, or in .json for Anthropic. Choose such a name")
    written: dict[Path, int] = {}
    for lines, is_only in _split(_keep_within(requests, limits), form):
        name, _, ending = path.name.partition(".")
        part = path if is_only else path.with_name(f"{name}-{len(written) + 1}.{ending}")
        with atomic_write(part) as file:
            if form == "openai":
                file.writelines(line + b"\n" for line in lines)
            else:
                file.write(b'{"requests": [\n' + b",\n".join(lines) + b"\n]}\n")
        written[part] = len(lines)
    return written


def _keep_within(requests: Iterable[Request], limits: Limits) -> Iterator[Request]:
    """Yield the requests until the budget is spent."""
    tokens = 0
    for request in islice(requests, limits.max_calls):
        tokens += request.most_tokens
        if limits.max_tokens is not None and tokens > limits.max_tokens:
            return
        yield request


def _split(requests: Iterable[Request], form: str) -> Iterator[tuple[list[bytes], bool]]:
    """Yield the lines of each file, and whether it is the only one."""
    most_lines, most_bytes = _LIMITS[form]
    lines: list[bytes] = []
    size, model, is_first = 0, None, True
    for request in requests:
        line = orjson.dumps(_make_openai_line(request) if form == "openai" else _make_anthropic_line(request))
        is_full = len(lines) == most_lines or size + len(line) + 2 > most_bytes
        if lines and (is_full or request.parameters.model != model):
            yield lines, False
            lines, size, is_first = [], 0, False
        lines.append(line)
        size, model = size + len(line) + 2, request.parameters.model
    yield lines, is_first


def _make_openai_line(request: Request) -> dict[str, Any]:
    return {"custom_id": request.key, "method": "POST", "url": "/v1/chat/completions", "body": request.body}


def _make_anthropic_line(request: Request) -> dict[str, Any]:
    asked, messages = request.parameters, request.messages
    system = {"system": messages[0]["content"]} if len(messages) > 1 else {}
    temperature = {} if asked.temperature is None else {"temperature": asked.temperature}
    params = {"model": asked.model, "max_tokens": asked.max_output_tokens, **system, "messages": messages[-1:]}
    return {"custom_id": request.key, "params": params | temperature | dict(asked.extra_body or {})}


def read_batch(path: Path, requests: Iterable[Request], journal: Journal) -> int:
    """Read a batch service's answers into the journal, and return how many belong to these requests.

    An answer in the journal is kept, unless it is a failure. Lines of other jobs are left out, with a notice.
    """
    asked = {request.key: request for request in requests}
    known = journal.find(asked)
    taken: set[str] = set()
    others = 0
    for number, line in enumerate(read_bytes(path).lines(), start=1):
        if not line.strip():
            continue
        key, body, answer = _read_line(line, f"{path}, line {number}")
        if key not in asked:
            others += 1
            continue
        taken.add(key)
        if key not in known or known[key].failed:
            request = asked[key]
            answer = answer or read_completion(body, grades=request.prompt.grades)
            journal.add(key, answer, query_id=request.query_id, doc_id=request.doc_id, host=path.name)
            known[key] = answer
    if others:
        notice(
            f"{path}: {others:,} answers are not of this job: their documents, texts, model, prompt or parameters differ. "
            "Give those of the batch"
        )
    return len(taken)


def _read_line(line: bytes, at: str) -> tuple[str, Any, Answer | None]:
    """Return the key of a line with the body of its completion, or with its failure."""
    try:
        found = loads(line)
    except NotJSONError as error:
        raise InputError(f"{at}: is not JSON ({error}). Download the batch's output again") from None
    if not isinstance(found, dict) or not isinstance(found.get("custom_id"), str):
        raise InputError(f"{at}: has no custom_id. Give the output file of a batch of OpenAI or Anthropic")
    key, response, result = found["custom_id"], found.get("response"), found.get("result")
    if isinstance(result, dict):  # Anthropic's
        message = result.get("message")
        if result.get("type") == "succeeded" and isinstance(message, dict):
            finish = _STOPS.get(str(message.get("stop_reason")), "stop")
            return key, message | {"choices": [{"message": message, "finish_reason": finish}]}, None
        return key, None, _fail(result.get("error") or result.get("type"), None)
    if not isinstance(response, dict):
        return key, None, _fail(found.get("error"), None)
    status = str(response.get("status_code"))  # some services write it as text
    if status == "200":
        return key, response.get("body"), None
    known = int(status) if re.fullmatch("[1-9][0-9]{2}", status) else 0
    return key, None, _fail(response.get("body"), known)


def _fail(error: Any, status: int | None) -> Answer:
    """Return the failure of a line; a status of 0 is unknown, None is none."""
    inner = error.get("error", error) if isinstance(error, dict) else error
    kind = find_failure(status, summarize_error(inner))
    other = "batch_error" if status is None else f"http_{status or 'unknown'}"
    return Answer(None, describe_error(error)[:300] or "the endpoint gave no reason", kind or other)
