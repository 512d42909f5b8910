"""Reads the messages of chats: which objects are messages, where a record keeps them, their text and parts.

Functions with a parameter `at` raise an InputError that gives the place of a value of the wrong type.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from goodgain.files.json_text import NotJSONError, loads
from goodgain.logs.traces.conversations.record_objects import Placed, any_object, walk_objects
from goodgain.logs.traces.expected_values import expect_object, unexpected_value
from goodgain.logs.traces.tool_outputs.result_objects import join_texts

#: Types of parts of a message that hold neither a call nor a result, in any format.
PLAIN_PARTS = {
    *("text", "image", "image_url", "input_audio", "audio", "video", "video_url", "audio_url", "file", "document"),
    *("thinking", "redacted_thinking", "reasoning", "refusal"),
}
#: Keys of lists of messages other than `messages`, and the roles of ShareGPT's speakers.
_MESSAGE_KEYS = (
    *("conversations", "conversation", "history", "chat_history", "message_history", "traj", "trajectory"),
    *("completion", "transcript", "rollout", "response", "output", "steps"),
)
_SPEAKERS = {"human": "user", "gpt": "assistant", "tool": "observation", "function_response": "observation"}


def has_messages(value: Any, test: Callable[[dict[str, Any]], bool]) -> bool:
    """Return whether `test` accepts at least one message. The value is a list of messages, or an object that holds messages."""
    key = find_message_key(value)
    members = value if key is None else value[key]
    return any_object(members, lambda member: test(_as_message(member)))


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
    yield from walk_objects([_as_message(member) for member in value], at)


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


def walk_parts(content: Any, at: str) -> Iterator[Placed]:
    """Yield the parts of a message's content, each with its place in the log. Skip texts."""
    if not isinstance(content, list):
        return
    for index, part in enumerate(content):
        if isinstance(part, (dict, list)):
            yield expect_object(part, f"{at}/{index}"), f"{at}/{index}"
