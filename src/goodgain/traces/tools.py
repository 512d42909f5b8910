"""Decides by its name whether a tool is a search, and finds the queries in a call's arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import orjson

from goodgain.errors import InputError

__all__ = ["ToolPredicate", "extract_queries", "is_search_tool", "make_tool_predicate"]

ToolPredicate = Callable[[str], bool]

#: A tool is a search if its name has a word of the first set and none of the second: `fetch_search_result` opens a
#: page, and memories are the agent's own notes. The names below search for tools, or read one document.
_SEARCH_WORDS = {"search", "searches", "retrieve", "retrieves", "retriever", "retrieval"}
_OTHER_WORDS = {"visit", "fetch", "find", "memory", "memories"}
_OTHER_NAMES = {"tool_search", "get_document", "mcp_list_tools"}

#: `mcp__brave-search__get_page`: the server's name says nothing of its tool.
_MCP_SERVER = re.compile(r"^mcp__.+?__(?=.)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

#: Arguments that hold what was searched for, the best first.
_QUERY_KEYS = ("queries", "query", "q", "search_query", "user_query", "search_queries", "question", "input", "keywords")


@lru_cache(maxsize=4096)
def is_search_tool(name: str) -> bool:
    """Return whether a tool of this name searches: one of its words says so, and none says otherwise.

    >>> [is_search_tool(name) for name in ("web_search", "mcp__brave-search__get_page", "searchMemories", "research")]
    [True, False, False, False]
    """
    name = _MCP_SERVER.sub("", name)
    if name.lower() in _OTHER_NAMES:
        return False
    words = [word.lower() for run in _WORD.findall(name) for word in _CAMEL.split(run)]
    if not words or words[0] == "open" or not _OTHER_WORDS.isdisjoint(words):
        return False
    return not _SEARCH_WORDS.isdisjoint(words)


class NamedTools(frozenset[str]):
    """The names of the search tools, called as a predicate; a class, so that it can be pickled for other processes."""

    def __call__(self, name: str) -> bool:
        return name in self or _MCP_SERVER.sub("", name) in self


def make_tool_predicate(tools: ToolPredicate | Collection[str] | str | None) -> ToolPredicate:
    """Return the predicate for the option `tools=`: the function given, one of the names given, or the default."""
    if tools is None:
        return is_search_tool
    if isinstance(tools, str):
        return NamedTools([tools])
    if callable(tools):
        return tools
    names = list(tools)
    if not all(isinstance(name, str) for name in names):
        raise InputError("tools= takes the names of the search tools, or a function of a name that says True or False")
    return NamedTools(names)


def extract_queries(arguments: Any) -> tuple[str, ...]:
    """Return the queries in a call's arguments. They are only shown to people, so nothing is an error here."""
    if isinstance(arguments, str):
        if not arguments.lstrip().startswith(("{", "[", '"')):
            return (arguments,) if arguments.strip() else ()
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return (arguments,)
    if isinstance(arguments, dict):
        for key in _QUERY_KEYS:
            if arguments.get(key):
                return _collect_texts(arguments[key])
        texts = [value for value in arguments.values() if isinstance(value, str)]
        return (texts[0],) if len(texts) == 1 else ()
    return _collect_texts(arguments)


def _collect_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(text for text in value if isinstance(text, str))
    return ()
