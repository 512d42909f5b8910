"""Reads calls of tools, the ids of the calls that answers name, and the outputs of tools.

Functions with a parameter `at` raise an InputError that gives the place of a value of the wrong type.
"""

from typing import Any

from goodgain.logs.traces.expected_values import expect_id, expect_object, expect_text, unexpected_value
from goodgain.logs.traces.model import UNANSWERED, ToolCall


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
    function = expect_object(call.get(key), f"{at}/{key}")
    tool_call = read_call(function, f"{at}/{key}", arguments=arguments)
    tool_call.call_id = expect_id(call.get("id"), f"{at}/id")
    tool_call.at = at
    return tool_call


def require_id(item: dict[str, Any], at: str, key: str, what: str = "the id of the call it answers") -> str:
    identifier = expect_id(item.get(key), f"{at}/{key}")
    if identifier is None:
        raise unexpected_value(f"{at}/{key}", what, identifier)
    return identifier


def expect_output(output: Any, at: str) -> Any:
    """Return the output of a tool, which must be text, a list or an object. Null becomes UNANSWERED."""
    if output is not None and not isinstance(output, (str, list, dict)):
        raise unexpected_value(at, "text or parts", output)
    return mark_unanswered(output)


def mark_unanswered(output: Any) -> Any:
    """Return an output. Null becomes UNANSWERED: most logs write null for a call without an answer."""
    return UNANSWERED if output is None else output
