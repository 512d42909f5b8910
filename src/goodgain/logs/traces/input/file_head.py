"""Reads the beginning of a file to recognise its format: 256 KiB, or more if the file begins with long texts."""

import re
from functools import cached_property
from typing import Any

from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import BOM, JSON_LINES
from goodgain.files.other_kinds import OtherKind, find_other_kind
from goodgain.logs.traces.expected_values import objects_in
from goodgain.logs.traces.tool_outputs.values_in_text import read_python

#: Bytes read to recognise a format: enough for a system prompt and the first messages.
HEAD_SIZE = 256 << 10
#: Bytes that count of a long text, such as a pasted document or a screenshot.
_COUNTED_OF_TEXT = 64 << 10
#: No head is larger.
MAX_HEAD = 16 << 20
_MAX_DEPTH = 1000
#: The limit of lists and objects in a file: a number, plus one per so many bytes. `[{},{},{},...` takes 60 times its size in
#: memory. The densest logs, those with log probabilities, have a list or object per 20 bytes.
_MAX_VALUES = 1_000_000
_BYTES_OF_A_VALUE = 12
#: Strings (the last may be cut off), brackets and commas: enough to close JSON that was cut off. The possessive `++` and `*+`
#: keep the search linear on malicious text.
_JSON_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
#: The same without commas: enough to follow lists and objects.
_STRINGS_AND_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_LIST_START = re.compile(rb'\[\s*[\[{"\]0-9]')
#: The end of a value and the beginning of the next one, both at the beginning of a line.
_NEXT_VALUE = re.compile(rb"^[}\]]\s*^[{\[]", re.MULTILINE)
#: The beginning of a printed dict, or of a list of dicts.
_PYTHON_START = re.compile(rb"\s*(?:\[\s*)?\{\s*'")
_ZIP_SIGNATURE = b"PK\x03\x04"
#: The beginning of a stream of server-sent events, and of a piece of an answer in it.
_EVENTS, _EVENT_DATA = re.compile(rb"\s*(?:data|event|id|retry)?: ?\S"), re.compile(rb"^data: ?\{", re.MULTILINE)
_EVENT_TYPE = re.compile(rb'"type": ?"([\w.-]{1,40})"')
#: An error names at most this many keys, and this many characters of each.
_SHOWN_KEYS, _SHOWN_KEY = 8, 40


class FileHead:
    """The first 256 KiB of a file, decompressed; up to 16 MiB if the file begins with long texts."""

    def __init__(
        self, name: str, raw: bytes, *, whole: bool, rows: list[Any] | None = None, in_lines: bool = False
    ) -> None:
        self.name = name  # without `.gz` or `.zst`
        self._in_lines = in_lines  # the text after the head shows that each line is a value
        self.rows = rows  # the first rows of a table (Parquet)
        self.raw = raw.removeprefix(BOM)
        self.whole = whole  # `raw` is the whole file

    @cached_property
    def kind(self) -> str:
        """The kind of content: `json` (one value), `jsonl` (a value per line), `table`, `zip`, `events` (a stream) or `text`."""
        if self.rows is not None:
            return "table"
        if self.raw.startswith(_ZIP_SIGNATURE):
            return "zip"
        start = self.raw.lstrip()
        if start[:1] not in (b"{", b"["):
            is_stream = _EVENTS.match(start) and _EVENT_DATA.search(start)
            return "events" if is_stream else "text"

        first, _, further_lines = start.partition(b"\n")
        is_one_line = not further_lines.strip()
        is_pretty = first.strip() in (b"{", b"[") and not is_one_line  # one value in many lines, whatever the name says
        if self._in_lines or (self.name.lower().endswith(JSON_LINES) and not is_pretty):
            return "jsonl"
        if is_one_line:
            return "json"

        # If the name does not tell, several lines are JSON Lines if the first is a whole value.
        try:
            loads(first)
        except NotJSONError:
            # Lines of program logs begin with `[INFO]` or a date in brackets: they are text.
            is_program_log = start.startswith(b"[") and not _LIST_START.match(start)
            return "text" if is_program_log else "json"
        return "jsonl"

    @property
    def is_enough(self) -> bool:
        """Whether the head suffices to recognise the format. JSON needs a whole object and 256 KiB, as `extent` counts them."""
        if self.kind not in ("json", "jsonl"):
            return self.kind != "text" or self.is_binary  # text has no records: read up to the limit
        is_whole, counted = self.extent
        return is_whole and counted >= HEAD_SIZE

    @cached_property
    def extent(self) -> tuple[bool, int]:
        """Whether the head has a whole object, alone or in a list; and the size of the head, if each text counts at most 64 KiB."""
        size = len(self.raw)
        if has_too_many_values(count_values(self.raw), size):
            return True, HEAD_SIZE  # a larger head is refused too

        is_whole = False
        counted = size
        opened: list[bytes] = []  # the brackets around the current place
        for token in _STRINGS_AND_BRACKETS.finditer(self.raw):
            sign = token[0][:1]
            if sign == b'"':
                counted -= max(0, token.end() - token.start() - _COUNTED_OF_TEXT)
            elif sign in b"[{":
                opened.append(sign)
                if len(opened) > _MAX_DEPTH:
                    return True, HEAD_SIZE  # JSON nested this deep needs no larger head
            elif opened:
                closes_object = opened.pop() == b"{"
                is_whole = is_whole or (closes_object and opened[-1:] in ([b"["], []))
        return is_whole, counted

    @cached_property
    def value(self) -> Any:
        """The JSON value of a `json` file, or the part of the value that is in the head; None if the file is not JSON."""
        is_list = self.raw.lstrip().startswith(b"[")
        if self.kind != "json":
            return None
        value = parse_prefix(self.raw, whole=self.whole and not is_list)
        return parse_python(self.raw) if value in (None, []) and self.whole else value

    @cached_property
    def records(self) -> list[Any]:
        """The records in the head: members of a list, lines, rows of a table, or the only value. Empty if the file is text."""
        if self.kind == "json":
            return self.value if isinstance(self.value, list) else [self.value]
        if self.rows is not None:
            return self.rows
        if self.kind != "jsonl":
            return []

        lines = [line for line in self.raw.split(b"\n") if line.strip()]
        if not self.whole and len(lines) == 1:
            return [parse_prefix(lines[0], whole=False)]
        # The last line may be cut off. It is left out if there are other lines.
        whole_lines = lines if self.whole else lines[:-1]
        return [parse_prefix(line, whole=True) for line in whole_lines]

    @property
    def conversations(self) -> list[Any]:
        """The values that may be a conversation: each record, and the list of all records if the records may be messages."""
        is_list = (self.kind == "json" and isinstance(self.value, list)) or self.lines_are_messages
        return [self.records, *self.records] if is_list else self.records

    @cached_property
    def lines_are_messages(self) -> bool:
        """Whether the lines of JSON Lines are messages of one conversation. Otherwise each line is a conversation of its own."""
        records = self.records if self.kind == "jsonl" else []
        return all(map(_may_be_message, records)) and any(map(_cannot_stand_alone, records))

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """The records that are objects, and the objects in records that are lists."""
        members = [record if isinstance(record, list) else [record] for record in self.records]
        return [member for values in members for member in objects_in(values)]

    @property
    def is_sequence(self) -> bool:
        return _NEXT_VALUE.search(self.raw) is not None

    @cached_property
    def other_kind(self) -> OtherKind | None:
        """The kind of a file that is neither text nor a table, such as a database; None for any other file."""
        return find_other_kind(self.raw) if self.kind in ("text", "zip") else None

    @property
    def is_binary(self) -> bool:
        return self.kind == "text" and self.other_kind is not None

    @property
    def description(self) -> str:
        """A description of the content for error messages, such as `JSON Lines of objects with the keys type, message`."""
        first = next(iter(self.objects), None)
        if first is not None:
            keys = ", ".join(str(key)[:_SHOWN_KEY] for key in list(first)[:_SHOWN_KEYS]) or "none"
            if self.kind == "table":
                return f"a table with the columns {keys}"
            if self.kind == "jsonl":
                return f"JSON Lines of objects with the keys {keys}"
            value = "a JSON list of objects" if isinstance(self.value, list) else "a JSON object"
            return f"{value} with the keys {keys}"

        if self.other_kind is not None:
            return self.other_kind.name
        if self.kind == "events":
            types = dict.fromkeys(name.decode("utf-8", "replace") for name in _EVENT_TYPE.findall(self.raw))
            names = ", ".join([*types][:_SHOWN_KEYS])
            return f"a stream of server-sent events of the types {names}" if names else "a stream of server-sent events"
        if self.kind == "text":
            lines = map(str.strip, self.text.splitlines())
            first_line = next(filter(None, lines), "")
            return f"text that begins with {first_line[:_SHOWN_KEY]!r}"
        if self.records and all(record is None for record in self.records) and self.raw.strip() != b"null":
            return "JSON values of many lines each" if self.is_sequence else "JSON that is damaged or cut off"
        return {"json": "JSON", "jsonl": "JSON Lines", "table": "Parquet"}[self.kind] + " without objects"

    @cached_property
    def text(self) -> str:
        """The head as text, with replacements for undecodable bytes; empty unless the file is text."""
        return self.raw.decode("utf-8", "replace") if self.kind == "text" else ""


def _may_be_message(record: Any) -> bool:
    return isinstance(record, dict) and ("role" in record or "type" in record) and "messages" not in record


def _cannot_stand_alone(message: dict[str, Any]) -> bool:
    """Return whether a message is the user's or a tool's, or has the id of a call."""
    return "call_id" in message or message.get("role") in ("user", "tool", "function")


def count_values(text: bytes) -> int:
    """Return how many lists and objects JSON has at most: brackets in texts count too."""
    return text.count(b"[") + text.count(b"{")


def has_too_many_values(values: int, size: int) -> bool:
    """Whether so many lists and objects in `size` bytes are more than any known log has."""
    return values > _MAX_VALUES + size // _BYTES_OF_A_VALUE


def parse_python(raw: bytes) -> Any:
    """Return the value of Python's notation (a printed dict or list), which may have several lines. Return None for other text."""
    if not _PYTHON_START.match(raw):
        return None
    value_and_rest = read_python(raw.decode("utf-8", "replace").strip())
    return value_and_rest[0] if value_and_rest else None


def parse_prefix(raw: bytes, *, whole: bool) -> Any:
    """Parse JSON that may be cut off: read up to the last whole member, and close the open brackets."""
    try:
        return loads(raw)
    except NotJSONError:
        if whole:
            return None

    closing: list[bytes] = []  # the brackets that are open
    # The last position where the text can end, and the brackets closed after it.
    cut = 0
    closed: list[bytes] = []
    for token in _JSON_TOKENS.finditer(raw):
        sign = token[0]
        if sign in b"{[":
            closing.append(b"}" if sign == b"{" else b"]")
            cut, closed = token.end(), []
        elif sign in b"}]":
            if not closing or closing.pop() != sign:
                return None
            closed.append(sign)
        elif sign == b",":
            cut, closed = token.start(), []

    try:
        return loads(b"".join([raw[:cut], *closed, *reversed(closing)]))
    except NotJSONError:
        return None


def parse_members(raw: bytes) -> list[Any]:
    """Return the whole members of a list that is cut off. The last item is the readable part of the cut-off member, or None."""
    depth = end = 0
    for token in _JSON_TOKENS.finditer(raw):
        sign = token[0]
        if sign in b"{[":
            depth += 1
        elif sign in b"}]":
            depth -= 1
            if depth == 1:
                end = token.end()

    is_list = raw.lstrip().startswith(b"[")
    members = parse_prefix(raw[:end] + b"]", whole=True) if is_list else None
    last = parse_prefix(raw[end:].lstrip(b", \r\n\t"), whole=False)
    return [*(members or []), last]
