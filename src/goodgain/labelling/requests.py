"""What is sent for one document, and the key under which its answer is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.labelling.answers import SCHEMA
from goodgain.labelling.options import check_count, check_name, check_number
from goodgain.labelling.prompts import Message, Prompt

__all__ = ["Parameters", "Request", "make_requests", "name_judge"]

#: Names that endpoints have for the largest number of output tokens.
OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")
#: No endpoint takes a higher temperature: most end at 2.
_HOTTEST = 100.0
#: Tokens that a chat template may put around a message.
_AROUND_MESSAGE = 16


@dataclass(frozen=True)
class Parameters:
    """How a model is asked. All of it is part of the key of an answer.

    Attributes:
        model: the name that the endpoint has for it.
        temperature: None sends none: some models take no other than their own.
        max_output_tokens: the largest answer.
        output_limit: the endpoint's name for that number: `max_completion_tokens`, or the older `max_tokens`.
        schema: whether the endpoint is asked to hold the answer to a JSON schema; the answer is read strictly either way.
    """

    model: str
    temperature: float | None = 0.0
    max_output_tokens: int = 400
    output_limit: str = OUTPUT_LIMITS[0]
    schema: bool = True

    def __post_init__(self) -> None:
        check_name("model", self.model, "give the name that the endpoint has for the model (model=, --model)")
        check_number(
            "temperature",
            self.temperature,
            0.0,
            _HOTTEST,
            words=f"a number from 0 to {_HOTTEST:g}, or None to send none (--temperature none)",
            none=True,
        )
        check_count("max_output_tokens", self.max_output_tokens)
        if self.output_limit not in OUTPUT_LIMITS:
            raise InputError(f"output_limit={self.output_limit!r}: give {' or '.join(OUTPUT_LIMITS)}")

    def make_body(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the body of a chat completion."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            self.output_limit: self.max_output_tokens,
        }
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.schema:
            body["response_format"] = SCHEMA
        return body

    def count_most_tokens(self, messages: Sequence[Message]) -> int:
        """Return the most tokens that a call can take: the bytes of all that is sent, and the largest answer."""
        sent = sum(len(message["content"].encode()) + _AROUND_MESSAGE for message in messages)
        schema = len(json.dumps(SCHEMA)) if self.schema else 0
        return sent + schema + self.max_output_tokens


@dataclass(frozen=True)
class Request:
    """One call: what is asked, and the key of its answer. The messages are made when they are needed: most have answers."""

    key: str
    prompt: Prompt
    parameters: Parameters
    query: str
    document: str
    description: str | None

    @property
    def messages(self) -> list[Message]:
        """The messages of the call."""
        return self.prompt.messages(self.query, self.document, description=self.description)

    @property
    def most_tokens(self) -> int:
        """The most tokens that the call can take."""
        return self.parameters.count_most_tokens(self.messages)


def make_requests(
    wanted: pl.DataFrame, prompt: Prompt, parameters: Parameters, *, sample: int = 1
) -> list[Request | None]:
    """Return a request for each document; None where there is nothing to show.

    Args:
        wanted: what `collect_documents` returns.
        prompt: what the model is told.
        parameters: how it is asked.
        sample: the number of the sample: each has answers of its own.
    """
    asked = json.dumps(
        [
            parameters.model,
            parameters.temperature,
            parameters.max_output_tokens,
            parameters.output_limit,
            parameters.schema,
        ]
    )
    told = hashlib.sha256(prompt.text.encode()).hexdigest()
    found: list[Request | None] = []
    for query, description, text in wanted.select("query", "description", "text").iter_rows():
        if text is None:
            found.append(None)
            continue
        key = json.dumps([asked, told, query, description, text, sample])
        digest = hashlib.sha256(key.encode()).hexdigest()
        found.append(Request(digest, prompt, parameters, query, text, description))
    return found


def name_judge(prompt: Prompt, parameters: Parameters, *, sample: int | None = None) -> str:
    """Return the judge's name: `model@prompt-1a2b3c`, and `#2` for the second of several samples."""
    name = f"{parameters.model}@{prompt.name}-{prompt.hash}"
    return name if sample is None else f"{name}#{sample}"
