"""Builds the request to grade one document, and the key under which the journal keeps the answer."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from goodgain.errors import InputError
from goodgain.files.opening import read_bytes
from goodgain.judgments.labelling.answers_and_journal import GRADES
from goodgain.judgments.scales import SCALES
from goodgain.options import check_whole_number, spell

#: A message of a conversation: {"role": ..., "content": ...}.
Message = dict[str, str]

#: The default prompt, and the prompt of the first versions, where the grade comes before the reason.
DEFAULT_PROMPT, FIRST_PROMPT = "good-gain", "good-gain-1"
#: The default limits of output tokens: for a short thought and the answer, and for the answer alone (first prompt).
_ROOM, _FIRST_ROOM = 2_000, 400
#: A line `---` separates the system's message from the user's.
_BREAK = re.compile(r"^---[ \t]*\n", re.MULTILINE)
#: The place of a line for each grade, with its meaning.
_MEANINGS = "{{grades}}"
_PLACES = re.compile(r"\{\{(query|description|document)\}\}")
#: The line to drop if a query has no description.
_DESCRIPTION_LINE = re.compile(r"^\{\{description\}\}\n", re.MULTILINE)
#: The reason in an example of an answer.
_SHOWN_REASON = re.compile(r'"reason"\s*:\s*"([^"\n]+)"')
_SHORTEST_MARK = 16
#: Endpoints' names for the limit of output tokens.
OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True)
class Prompt:
    """A prompt, named after its file.

    `{{query}}`, `{{document}}` and `{{description}}` are placeholders in the text. A line `---` separates the system message
    from the user message. `grades` are the grades that a model may give.
    """

    name: str
    text: str
    grades: tuple[int, ...] = GRADES

    @property
    def hash(self) -> str:
        return _hash(self.text)[:6]

    @property
    def placeholders(self) -> set[str]:
        """The reasons in the examples of an answer that the prompt shows."""
        return set(_SHOWN_REASON.findall(self.text))

    @property
    def room(self) -> int:
        return _FIRST_ROOM if self.name == FIRST_PROMPT else _ROOM

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of answers. The reason is first: models reason, then grade. In `good-gain-1`, the grade is first."""
        grade = {"grade": {"type": ["integer", "null"], "enum": [*self.grades, None]}}
        reason = {"reason": {"type": "string"}}
        fields = grade | reason if self.name == FIRST_PROMPT else reason | grade
        schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
        return {"type": "json_schema", "json_schema": {"name": "grade", "strict": True, "schema": schema}}

    def messages(self, query: str, document: str, *, description: str | None = None) -> list[Message]:
        """Return the chat messages for one document. The tags around the document contain a hash that is not in the document."""
        mark = _find_mark(document)
        values = {
            "query": query,
            "description": description or "",
            "document": f"<document {mark}>\n{document}\n</document {mark}>",
        }

        text = self.text if description else _DESCRIPTION_LINE.sub("", self.text)
        parts = _BREAK.split(text, maxsplit=1)
        roles = ("system", "user") if len(parts) == 2 else ("user",)
        contents = [_PLACES.sub(lambda place: values[place[1]], part).strip() for part in parts]
        return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]


def read_prompt(name: str | Path | None = None) -> Prompt:
    """Read a prompt. `name` is the name of a built-in prompt or the path of a file. None is the built-in `good-gain`.

    `{{grades}}` in a file becomes a line for each grade, with its meaning.

    A prompt in umbrela's form, with `{query}` and `{passage}`, has the grades 0 to 3.

    >>> read_prompt().name, read_prompt("umbrela").grades
    ('good-gain', (0, 1, 2, 3))
    """
    path = Path(name or DEFAULT_PROMPT)
    folder = files("goodgain.judgments.labelling") / "prompts"
    is_built_in = f"{path}.txt" in {file.name for file in folder.iterdir()}
    try:
        if is_built_in:
            text = (folder / f"{path}.txt").read_text(encoding="utf-8")
        else:
            text = read_bytes(path).data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error}). Save the prompt as UTF-8") from None

    text = text.replace("\r\n", "\n")
    is_umbrelas = "{{" not in text.replace(_MEANINGS, "") and "{query}" in text and "{passage}" in text
    scale = SCALES["umbrela" if is_umbrelas else DEFAULT_PROMPT]
    text = text.replace(_MEANINGS, scale.write_lines())
    if is_umbrelas:
        text = text.replace("{query}", "{{query}}").replace("{passage}", "{{document}}")

    for place in ("query", "document"):
        if f"{{{{{place}}}}}" not in text:
            raise InputError(f"{path}: the prompt has no {{{{{place}}}}}. Write it where the {place} belongs")
    name = path.name if is_built_in else path.stem
    return Prompt(name, text, tuple(map(int, scale.grades)))


def _find_mark(text: str) -> str:
    """Return hexadecimal digits of the text's hash that the text does not contain: it cannot close the tags around itself."""
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
    """The parameters of a request, named as in `label`. All of them are part of the key under which the journal keeps an answer."""

    model: str
    temperature: float | None = 0.0
    max_output_tokens: int = _ROOM
    output_limit: str = OUTPUT_LIMITS[0]
    schema: bool = True
    reasoning_effort: str | None = None
    extra_body: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise InputError(f"{spell('model', self.model)}: give the model name that the endpoint uses")
        if self.temperature is not None:
            check_number("temperature", self.temperature, 0, 100, others=", or None to send none")
        check_whole_number("max_output_tokens", self.max_output_tokens, 1)
        if self.output_limit not in OUTPUT_LIMITS:
            raise InputError(f"{spell('output_limit', self.output_limit)}: give {' or '.join(OUTPUT_LIMITS)}")

        option = spell("extra_body", self.extra_body)
        extra_body = self.extra_body or {}
        try:
            json.dumps(dict(extra_body))
        except (TypeError, ValueError):
            raise InputError(f"{option}: give a JSON object, such as {{'top_k': 1}}") from None
        for name in ("model", "messages", "stream", "n"):
            if name in extra_body:
                raise InputError(f"{option}: leave out {name}, because goodgain does not allow this field")

    @property
    def key(self) -> str:
        """The parameters as JSON. If unset, `reasoning_effort` and `extra_body` are left out, because old journals lack both."""
        first = astuple(self)[:5]
        newer = (self.reasoning_effort, self.extra_body)
        values = [*first, *newer] if any(newer) else first
        return json.dumps(values, sort_keys=True)


def check_number(name: str, value: Any, least: float, most: float, *, others: str = "") -> None:
    """Raise `InputError` unless `value` is a number from `least` to `most`. The message ends with `others`."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise InputError(f"{spell(name, value)}: give a number from {least:g} to {most:,g}{others}")


@dataclass(frozen=True)
class Request:
    """The request to grade one document. `document` is the text of the document, or None if there is no text."""

    prompt: Prompt
    parameters: Parameters
    query: str
    document: str | None
    description: str | None
    query_id: str
    doc_id: str
    cut: bool
    judge: str
    sample: int

    @cached_property
    def key(self) -> str:
        """The journal keeps the answer under this key. The key is a hash of the parameters, prompt, texts and sample number."""
        return _hash(json.dumps([self.parameters.key, _hash(self.prompt.text), *self._texts]))

    @cached_property
    def question(self) -> str:
        """A hash of the model, prompt, texts and sample number: what is asked, whatever the other parameters."""
        return _hash(json.dumps([self.parameters.model, _hash(self.prompt.text), *self._texts]))

    @property
    def _texts(self) -> tuple[str, str | None, str | None, int]:
        return self.query, self.description, self.document, self.sample

    @property
    def messages(self) -> list[Message]:
        return self.prompt.messages(self.query, self.document or "", description=self.description)

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object that the endpoint gets. The fields in `extra_body` win."""
        parameters = self.parameters
        body: dict[str, Any] = {"model": parameters.model, "messages": self.messages}
        body[parameters.output_limit] = parameters.max_output_tokens  # under one of the names `OUTPUT_LIMITS`
        if parameters.temperature is not None:
            body["temperature"] = parameters.temperature
        if parameters.reasoning_effort is not None:
            body["reasoning_effort"] = parameters.reasoning_effort
        if parameters.schema:  # whether to send one
            body["response_format"] = self.prompt.schema
        return body | dict(parameters.extra_body or {})

    @property
    def size(self) -> int:
        return len(orjson.dumps(self.body))

    @property
    def most_output(self) -> int:
        """The largest limit on output tokens in the request: `max_output_tokens`, or a limit in `extra_body`."""
        limits = [self.parameters.max_output_tokens]
        extra_body = self.parameters.extra_body or {}
        for name in OUTPUT_LIMITS:
            limit = extra_body.get(name)
            if isinstance(limit, int):
                limits.append(limit)
        return max(limits)

    @property
    def most_tokens(self) -> int:
        """The most tokens that the request can use, assuming at most one token per byte."""
        return self.size + self.most_output


def make_requests(
    documents: pl.DataFrame, prompt: Prompt, parameters: Parameters, *, judge: str = "", sample: int = 1
) -> list[Request]:
    """Return a request for each row of `documents`, the frame that `collect_documents` returns."""
    columns = documents.select("query", "description", "query_id", "doc_id", "cut", document="text")
    rows = columns.iter_rows(named=True)
    return [Request(prompt, parameters, judge=judge, sample=sample, **row) for row in rows]
