"""What is sent for one document: the prompt with its query and text put in, the parameters, and the key of its answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.errors import InputError, check_whole_number
from goodgain.files.opening import read_bytes
from goodgain.labelling.answers_and_journal import SCHEMA

#: A message of a conversation: {"role": ..., "content": ...}.
Message = dict[str, str]

#: A line with `---` alone stands between what the system says and what the user says.
_BREAK = re.compile(r"^---[ \t]*\n", re.MULTILINE)
_PLACES = re.compile(r"\{\{(query|description|document)\}\}")
#: A line with nothing else goes where a query has no description.
_DESCRIPTION_LINE = re.compile(r"^\{\{description\}\}\n", re.MULTILINE)
_SHORTEST_MARK = 16
#: Names that endpoints have for the largest number of output tokens.
OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")
#: Tokens that a chat template may put around a message.
_AROUND_MESSAGE = 16


@dataclass(frozen=True)
class Prompt:
    """A prompt, by the name of its file.

    In the text `{{query}}` and `{{document}}` are replaced, and `{{description}}` if it wants it; a line `---` parts the
    message of the system from that of the user.
    """

    name: str
    text: str

    @property
    def hash(self) -> str:
        """The first six hexadecimal digits of the SHA-256 of the text."""
        return _hash(self.text)[:6]

    def messages(self, query: str, document: str, *, description: str | None = None) -> list[Message]:
        """Return the messages for one document.

        The document stands between two marks that do not occur in it: it cannot fake its own end. The mark depends on the
        text alone: with a random one no stored answer could be found.
        """
        mark = _find_mark(document)
        values = {
            "query": query,
            "description": description or "",
            "document": f"<document {mark}>\n{document}\n</document {mark}>",
        }
        text = self.text if description else _DESCRIPTION_LINE.sub("", self.text)
        parts = _BREAK.split(text, maxsplit=1)
        roles = ("system", "user") if len(parts) == 2 else ("user",)
        return [
            {"role": role, "content": _PLACES.sub(lambda found: values[found[1]], part).strip()}
            for role, part in zip(roles, parts, strict=True)
        ]


def read_prompt(name: str | Path | None = None) -> Prompt:
    """Read a prompt: one of ours by its name (None: that of the good-gain scale), or a file.

    >>> read_prompt().name
    'good-gain'
    """
    path = Path(name or "good-gain")
    ours = files("goodgain.labelling") / "prompts" / f"{path.name}.txt"
    if "/" not in str(name) and ours.is_file():
        return Prompt(path.name, ours.read_text(encoding="utf-8"))
    try:
        text = read_bytes(path).data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error}); write the prompt again") from None
    for place in ("query", "document"):
        if f"{{{{{place}}}}}" not in text:
            raise InputError(f"{path}: the prompt has no {{{{{place}}}}}; write it where the {place} belongs")
    return Prompt(path.stem, text)


def _find_mark(text: str) -> str:
    digits = _hash(text)
    length = _SHORTEST_MARK
    while digits[:length] in text:
        length += 1
        if length > len(digits):
            digits += _hash(digits)
    return digits[:length]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Parameters:
    """How a model is asked, in the words of `label`. All of it is part of the key of an answer.

    Answers are validated just as strictly without a schema.
    """

    model: str
    temperature: float | None = 0.0
    max_output_tokens: int = 400
    output_limit: str = OUTPUT_LIMITS[0]
    schema: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise InputError(f"model={self.model!r}: give the name that the endpoint has for the model")
        if self.temperature is not None:
            check_number("temperature", self.temperature, 0, 100, others=", or None to send none")
        check_whole_number("max_output_tokens", self.max_output_tokens, 1)
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


def check_number(name: str, value: Any, least: float, most: float, *, others: str = "") -> None:
    """Raise `InputError` for an option that is not a number from `least` to `most`; `others` says what else it may be."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise InputError(f"{name}={value!r}: give a number from {least:g} to {most:,g}{others}")


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
        """The most tokens that the call can take: the bytes of all that is sent, and the largest answer."""
        sent = sum(len(message["content"].encode()) + _AROUND_MESSAGE for message in self.messages)
        schema = len(json.dumps(SCHEMA)) if self.parameters.schema else 0
        return sent + schema + self.parameters.max_output_tokens


def make_requests(
    wanted: pl.DataFrame, prompt: Prompt, parameters: Parameters, *, sample: int = 1
) -> list[Request | None]:
    """Return a request for each document of `collect_documents`, None for one without text; samples have their own keys."""
    asked, told = json.dumps(astuple(parameters)), _hash(prompt.text)
    found: list[Request | None] = []
    for query, description, text in wanted.select("query", "description", "text").iter_rows():
        if text is None:
            found.append(None)
        else:
            key = _hash(json.dumps([asked, told, query, description, text, sample]))
            found.append(Request(key, prompt, parameters, query, text, description))
    return found
