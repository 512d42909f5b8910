"""Reads messages, calls, ids and other objects from the records of a log. Notes where in the log each object is.

Functions with a parameter `at` raise an InputError that gives the place of a value of the wrong type.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads
from goodgain.logs.dedup.document_types import snake_case
from goodgain.logs.traces.expected_values import (
    OF_METADATA,
    expect_id,
    expect_list,
    expect_object,
    expect_text,
    format_place,
    unexpected_value,
)
from goodgain.logs.traces.expected_values import object_or_empty as object_or_empty
from goodgain.logs.traces.expected_values import objects_in as objects_in
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, ToolCall
from goodgain.logs.traces.tool_outputs.result_objects import join_texts
from goodgain.options import spell

T = TypeVar("T")
#: An object and its place in the log.
Placed = tuple[dict[str, Any], str]

#: Types of parts of a message that hold neither a call nor a result, in any format.
PLAIN_PARTS = {
    *("text", "image", "image_url", "input_audio", "audio", "video", "video_url", "audio_url", "file", "document"),
    *("thinking", "redacted_thinking", "reasoning", "refusal"),
}
#: Stands for a missing field: None is a possible value of a field.
ABSENT = object()
#: Keys of lists of messages other than `messages`, and the roles of ShareGPT's speakers.
_MESSAGE_KEYS = (
    *("conversations", "conversation", "history", "chat_history", "message_history", "traj", "trajectory"),
    *("completion", "transcript", "rollout", "response", "output", "steps"),
)
_SPEAKERS = {"human": "user", "gpt": "assistant", "tool": "observation", "function_response": "observation"}


def read_records(source: Source) -> Iterator[tuple[Any, str]]:
    """Yield each record of a file with its place in the log. A file holds one list of records, or one record per line."""
    for value, at in source.documents():
        if isinstance(value, list):
            yield from ((member, f"{at}/{index}") for index, member in enumerate(value))
        else:
            yield value, at


def walk(members: Any, at: str) -> Iterator[Placed]:
    """Yield the objects in a list, each with its place in the log. Null is an empty list."""
    for index, member in enumerate(expect_list(members, at)):
        place = f"{at}/{index}"
        yield expect_object(member, place), place


def walk_list(record: dict[str, Any], key: str, at: str) -> Iterator[Placed]:
    if not isinstance(record.get(key), list):
        raise unexpected_value(f"{at}/{key}", f"a list of {key}", record.get(key))
    return walk(record[key], f"{at}/{key}")


def sort_numbered(members: Iterable[Placed], key: str) -> Iterator[Placed]:
    """Sort consecutive objects by the number under `key`, unless a number repeats. Objects without a number stay in place."""
    for is_numbered, row in groupby(members, lambda one: type(one[0].get(key)) is int):
        held = list(row)
        numbers = [one.get(key) for one, _ in held]
        yield from sorted(held, key=lambda one: one[0][key]) if is_numbered and len({*numbers}) == len(held) else held


def any_object(members: Any, test: Callable[[dict[str, Any]], bool]) -> bool:
    return any(map(test, objects_in(members)))


def walk_parts(content: Any, at: str) -> Iterator[Placed]:
    """Yield the parts of a message's content, each with its place in the log. Skip texts."""
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, (dict, list)):
            yield expect_object(part, f"{at}/{index}"), f"{at}/{index}"


def convert(record: Any, kind: type[T], at: str) -> T:
    """Convert a record to the msgspec struct `kind`. Ignore fields that the struct does not have."""
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{format_place(at)}: {error}; correct the value, or leave out such traces with {spell('errors', 'skip')}"
        ) from None


def find_list(value: Any, *paths: str) -> tuple[list[Any] | None, str]:
    if isinstance(value, list):
        return value, ""
    for path in paths:
        if isinstance(held := follow_path(value, f"/{path}"), list):
            return held, f"/{path}"
    return None, ""


def find_items(value: Any, at: str, paths: tuple[str, ...], expected: str) -> Iterator[Placed]:
    members, path = find_list(value, *paths)
    if not members:
        raise unexpected_value(f"{at}{path}", expected, value)
    yield from walk(members, f"{at}{path}")


def has_messages(value: Any, of: Callable[[dict[str, Any]], bool]) -> bool:
    """Return whether `of` accepts at least one message. The value is a list of messages, or an object that holds messages."""
    key = find_message_key(value)
    return any_object(value[key] if key is not None else value, lambda member: of(_as_message(member)))


def find_messages(value: Any, at: str) -> Iterator[Placed]:
    """Yield the messages of a record and their places. The record is a list of messages, or holds the list under a key.

    Messages in the record's `prompt` come first. ShareGPT's `from` and `value` become role and content.
    """
    key = find_message_key(value)
    if key is not None:
        prompt = value.get("prompt")
        value, at = value[key], f"{at}/{key}"
        if key != "messages" and isinstance(value, list) and any_object(prompt, is_message):
            value, at = [*prompt, *value], f"{at} after prompt"
    if not isinstance(value, list) or not value:
        raise unexpected_value(at, "a list of messages, or an object that has one under 'messages'", value)
    yield from walk([_as_message(member) for member in value], at)


def find_message_key(value: Any) -> str | None:
    """Return the key that holds the messages of an object: `messages`, else the first known key with messages, else None."""
    if not isinstance(value, dict):
        return None
    if "messages" in value:
        return "messages"
    return next((key for key in _MESSAGE_KEYS if key in value and any_object(value[key], is_message)), None)


def is_message(member: Any) -> bool:
    """Return whether a value is a chat message: an object with a role, or with a speaker as in ShareGPT."""
    return isinstance(member, dict) and ("role" in member or {"from", "value"} <= member.keys())


def _as_message(member: Any) -> Any:
    """Convert `from` and `value` of a ShareGPT message to role and content. Return other values unchanged."""
    if not isinstance(member, dict) or "role" in member or not is_message(member):
        return member
    rest = {key: value for key, value in member.items() if key not in ("from", "value")}
    speaker = member["from"]
    if speaker == "function_call" and isinstance(member["value"], str):
        with suppress(NotJSONError):
            return {"role": "assistant", "content": None, "tool_calls": [{"function": loads(member["value"])}], **rest}
    role = _SPEAKERS.get(speaker, speaker) if isinstance(speaker, str) else speaker
    return {"role": role, "content": member["value"], **rest}


def message_text(content: Any) -> str:
    """Return the text of a message's content. Join the texts of several parts."""
    return join_texts([content] if isinstance(content, dict) else content) or ""


def read_call(
    item: dict[str, Any], at: str, name: str = "name", call_id: str = "id", arguments: str = "arguments"
) -> ToolCall:
    """Read the call in an item. `name`, `call_id` and `arguments` are the keys to read from the item."""
    tool = expect_text(item.get(name), f"{at}/{name}")
    return ToolCall(tool, at, expect_id(item.get(call_id), f"{at}/{call_id}"), item.get(arguments))


def read_function_call(call: dict[str, Any], at: str) -> ToolCall:
    """Read a call in OpenAI's form: `function` or `custom` holds the name of the tool and the arguments."""
    is_custom = "custom" in call and "function" not in call
    key, arguments = ("custom", "input") if is_custom else ("function", "arguments")
    made = read_call(expect_object(call.get(key), f"{at}/{key}"), f"{at}/{key}", arguments=arguments)
    made.call_id, made.at = expect_id(call.get("id"), f"{at}/id"), at
    return made


def require_id(item: dict[str, Any], at: str, key: str, what: str = "the id of the call it answers") -> str:
    found = expect_id(item.get(key), f"{at}/{key}")
    if found is None:
        raise unexpected_value(f"{at}/{key}", what, found)
    return found


def expect_output(output: Any, at: str) -> Any:
    """Return the output of a tool, which must be text, a list or an object. Null becomes UNANSWERED."""
    if output is not None and not isinstance(output, (str, list, dict)):
        raise unexpected_value(at, "text or parts", output)
    return or_unanswered(output)


def or_unanswered(output: Any) -> Any:
    """Return an output. Null becomes UNANSWERED: most logs write null for a call without an answer."""
    return UNANSWERED if output is None else output


def text_or_none(value: Any) -> str | None:
    """Return the value if it is a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def get_either(record: dict[str, Any], camel: str) -> Any:
    """Return the value of the key `camel`, else of the same key in snake_case. Return None if both are missing."""
    return record[camel] if camel in record else record.get(snake_case(camel))


def find_query_id(metadata: Any, at: str) -> str | None:
    ids = (expect_id(metadata.get(key), f"{at}/{key}") for key in OF_METADATA) if isinstance(metadata, dict) else ()
    return next(filter(None, ids), None)


def follow_path(record: Any, path: str) -> Any:
    """Return the value at a JSON pointer (`/a/b`) or a dotted path (`a.b`). Return ABSENT for a missing value."""
    keys = path.removeprefix("/").split("/") if path.startswith("/") else path.split(".")
    for key in keys:
        key = key.replace("~1", "/").replace("~0", "~")
        if isinstance(record, dict) and key in record:
            record = record[key]
        elif isinstance(record, list) and key.isdecimal() and int(key) < len(record):
            record = record[int(key)]
        else:
            return ABSENT
    return record
