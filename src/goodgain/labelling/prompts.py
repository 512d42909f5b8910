"""Prompts: what the model is told, with the query and the text of a document put in."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from goodgain.errors import InputError
from goodgain.files.content import read_bytes

__all__ = ["PROMPT", "Message", "Prompt", "read_prompt"]

#: The prompt that is used where no other is given.
PROMPT = "good-gain"

#: A message of a conversation: {"role": ..., "content": ...}.
Message = dict[str, str]

#: A line with this alone stands between what the system says and what the user says.
_BREAK = "---"
_PLACES = re.compile(r"\{\{(query|description|document)\}\}")
#: A line with nothing else goes where a query has no description.
_DESCRIPTION_LINE = re.compile(r"^\{\{description\}\}\n", re.MULTILINE)
_NEEDED = ("query", "document")
_SHORTEST_MARK = 16


@dataclass(frozen=True)
class Prompt:
    """A prompt with places for the query and the document.

    Attributes:
        name: the name of its file.
        text: with `{{query}}` and `{{document}}`, which are replaced, and `{{description}}` if it wants it; a line `---`
            parts the message of the system from that of the user.
    """

    name: str
    text: str

    @property
    def hash(self) -> str:
        """The first six hexadecimal digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:6]

    def messages(self, query: str, document: str, *, description: str | None = None) -> list[Message]:
        """Return the messages for one document.

        The document stands between two marks that do not occur in it, so that it cannot seem to end. The mark follows
        from the text alone: with a random one no answer could be found again.
        """
        mark = _find_mark(document)
        values = {
            "query": query,
            "description": description or "",
            "document": f"<document {mark}>\n{document}\n</document {mark}>",
        }
        text = self.text if description else _DESCRIPTION_LINE.sub("", self.text)
        parts = re.split(rf"^{_BREAK}[ \t]*\n", text, maxsplit=1, flags=re.MULTILINE)
        roles = ("system", "user") if len(parts) == 2 else ("user",)
        return [
            {"role": role, "content": _PLACES.sub(lambda found: values[found[1]], part).strip()}
            for role, part in zip(roles, parts, strict=True)
        ]


def read_prompt(name: str | Path | None = None) -> Prompt:
    """Read a prompt: one of ours by its name, or a file.

    Raises:
        InputError: there is no such prompt, or it lacks the place of the query or of the document.

    >>> read_prompt().name
    'good-gain'
    """
    ours = files("goodgain.labelling") / "prompts" / f"{name or PROMPT}.txt"
    if (name is None or "/" not in str(name)) and ours.is_file():
        return Prompt(str(name or PROMPT), ours.read_text(encoding="utf-8"))
    path = Path(str(name))
    try:
        text = bytes(read_bytes(path).data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error}); write the prompt again") from None
    for place in _NEEDED:
        if f"{{{{{place}}}}}" not in text:
            raise InputError(f"{path}: the prompt has no {{{{{place}}}}}; write it where the {place} belongs")
    return Prompt(path.stem, text)


def _find_mark(text: str) -> str:
    digits = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    length = _SHORTEST_MARK
    while digits[:length] in text:
        length += 1
        if length > len(digits):
            digits += hashlib.sha256(digits.encode()).hexdigest()
    return digits[:length]
