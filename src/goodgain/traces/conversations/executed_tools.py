"""Reads the tools that Groq's agents ran (`executed_tools` of a message): a search has type `search`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.input.checks import as_word, expect_list, expect_object, expect_text
from goodgain.traces.model import UNANSWERED, ToolCall

__all__ = ["read_executed_tools"]


def read_executed_tools(tools: Any, at: str) -> Iterator[ToolCall]:
    """Yield a call for each tool that was run, with its results beside the text that the model saw.

    Raises:
        InputError: the value is not a list of tools with a type.
    """
    for tool, tool_at in _unite_copies(tools, at):
        found, output = tool.get("search_results"), tool.get("output")
        yield ToolCall(
            expect_text(tool.get("type"), f"{tool_at}/type"), tool_at, arguments=tool.get("arguments"),
            output=found if found is not None else UNANSWERED if output is None else output,
            spare=UNANSWERED if found is None or output is None else output,
        )  # fmt: skip


def _unite_copies(tools: Any, at: str) -> list[tuple[dict[str, Any], str]]:
    """Return the tools, each once: in a stream each comes twice, the first time before it has found anything."""
    found: dict[tuple[int, str, str], tuple[dict[str, Any], str]] = {}
    for place, member in enumerate(expect_list(tools, at)):
        tool = {key: value for key, value in expect_object(member, f"{at}/{place}").items() if value is not None}
        results = tool.get("search_results")
        if "output" not in tool and isinstance(results, dict) and not results.get("results"):
            del tool["search_results"]
        index = tool.get("index")
        key = (
            index if isinstance(index, int) else -1 - place,
            as_word(tool.get("type")),
            as_word(tool.get("arguments")),
        )
        found.setdefault(key, ({}, f"{at}/{place}"))[0].update(tool)
    return list(found.values())
