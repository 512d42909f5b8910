"""Reads the calls among the items of OpenAI's Responses: of a client's tools, and of tools that OpenAI runs."""

from __future__ import annotations

import re
from typing import Any

from goodgain.files.json_text import NotJSONError, loads
from goodgain.traces.input.checks import (
    as_word,
    expect_id,
    expect_list,
    expect_object,
    expect_optional_text,
    expect_text,
    unexpected_value,
)
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall

__all__ = ["CLIENT_CALLS", "WEB_RUN", "is_encrypted", "read_call", "read_web_run_output"]

#: The name given to calls of Codex's web tool.
WEB_RUN = "web.run"
#: A hit in that tool's text: a line with title and URL, and a line that begins with its mark. `turnNviewM` marks an
#: opened page.
_WEB_RUN_HIT = re.compile(
    r"^(?P<title>[^\n]{0,500}?) ?\((?P<url>[a-z]+://[^\s]{1,2000})\)[ \t]*\n\ue200cite\ue202turn\d+(?P<kind>[a-z]+)\d+\ue201(?P<text>[^\n]*)",
    re.MULTILINE,
)

#: Calls of the client's own tools, and the field that holds the arguments.
CLIENT_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
#: Hosted tools that never search documents.
_OTHER_CALLS = {
    *("tool_search_call", "computer_call", "code_interpreter_call", "image_generation_call", "local_shell_call"),
    *("shell_call", "apply_patch_call", "mcp_list_tools", "mcp_approval_request"),
}
#: Actions of the web search tool that read a page.
_OTHER_ACTIONS = {"open_page", "find", "find_in_page"}
_WEB_REMEDY = 'record them with include=["web_search_call.action.sources"]'
_CODEX_REMEDY = "Codex encrypts what its web tool returns"
_FILE_REMEDY = 'record them with include=["file_search_call.results"]'


def read_call(source: Source, kind: str, item: dict[str, Any], at: str) -> ToolCall | None:
    """Read an item as a call; None if it is not one."""
    if kind in CLIENT_CALLS:
        name = expect_text(item.get("name"), f"{at}/name")
        call_id = expect_id(item.get("call_id"), f"{at}/call_id")
        arguments = item.get(CLIENT_CALLS[kind])
        if (item.get("namespace"), name) == ("web", "run"):
            return _read_web_run(arguments, call_id, at)
        return ToolCall(name, at, call_id, arguments)
    call_id = expect_id(item.get("id"), f"{at}/id")
    if kind == "web_search_call":
        return _read_web_search(source, item, call_id, at)
    if kind == "file_search_call":
        found = item.get("results")
        return ToolCall(
            kind, at, call_id, item.get("queries"), is_search=True, remedy=_FILE_REMEDY, doc_type="passage",
            failed=found is None and item.get("status") == "failed",
            output=UNANSWERED if found is None else [_read_file_hit(hit, f"{at}/results") for hit in expect_list(found, at)],
        )  # fmt: skip
    if kind == "mcp_call":
        name = expect_text(item.get("name"), f"{at}/name")
        output = item.get("output")
        failed = item.get("error") not in (None, "")
        return ToolCall(
            name, at, call_id, item.get("arguments"), UNANSWERED if output is None else output, failed=failed
        )
    if kind in _OTHER_CALLS:
        return ToolCall(kind, at, call_id, is_search=False, output=None)
    if kind.endswith("_search_call"):  # a search tool that is newer than this file: its output is not read
        return ToolCall(
            as_word(item.get("name")) or kind, at, call_id, item.get("arguments", item.get("action")),
            is_search=True, remedy=f"in a form that is read: items of type {kind!r} are not",
            failed=item.get("status") == "failed",
        )  # fmt: skip
    return None


def is_encrypted(output: Any) -> bool:
    """Return whether an output is encrypted, as Codex does with what its web tool returns."""
    return isinstance(output, list) and any(
        isinstance(part, dict) and part.get("type") == "encrypted_content" for part in output
    )


def read_web_run_output(output: Any) -> Any:
    """Return the hits in the text of Codex's web tool; another output is returned as it is."""
    parts = output if isinstance(output, list) else [output]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    hits = [hit for text in texts if isinstance(text, str) for hit in _WEB_RUN_HIT.finditer(text)]
    if not hits:
        return output
    return [
        {"title": hit["title"], "url": hit["url"], "snippet": hit["text"].strip() or None}
        for hit in hits
        if hit["kind"] == "search"
    ]


def _read_web_run(arguments: Any, call_id: str | None, at: str) -> ToolCall:
    """Read a call of Codex's web tool, which searches, opens pages or finds in them, as its arguments say."""
    asked = arguments
    if isinstance(arguments, str):
        try:
            asked = loads(arguments)
        except NotJSONError:
            raise unexpected_value(at, "arguments of web.run as JSON", arguments) from None
    queries = expect_object(asked, at).get("search_query")
    texts = [query.get("q") for query in queries if isinstance(query, dict)] if isinstance(queries, list) else []
    return ToolCall(
        WEB_RUN, at, call_id, arguments, is_search=bool(queries), remedy=_CODEX_REMEDY,
        queries=tuple(text for text in texts if isinstance(text, str)),
    )  # fmt: skip


def _read_web_search(source: Source, item: dict[str, Any], call_id: str | None, at: str) -> ToolCall | None:
    action = {} if item.get("action") is None else expect_object(item["action"], f"{at}/action")
    kind = expect_optional_text(action.get("type"), f"{at}/action/type")
    if kind in _OTHER_ACTIONS:
        return ToolCall(f"web_search_call {kind}", at, call_id, is_search=False, output=None)
    if kind not in (None, "search"):
        source.not_understood(f"action of type {kind!r} in a web_search_call", f"{at}/action", "search or open_page")
        return ToolCall(f"web_search_call {kind}", at, call_id, is_search=False, output=None)
    found = action.get("sources")
    urls = (
        UNANSWERED if found is None else [_read_source(one, f"{at}/action/sources") for one in expect_list(found, at)]
    )
    failed = found is None and item.get("status") == "failed"
    return ToolCall("web_search_call", at, call_id, action, urls, is_search=True, remedy=_WEB_REMEDY, failed=failed)


def _read_file_hit(hit: Any, at: str) -> dict[str, Any]:
    """Return a hit of a file search with its file's id as doc_id; several hits may be of one file."""
    found = expect_object(hit, at)
    if found.get("file_id") is None:
        raise unexpected_value(f"{at}/file_id", "the id of a file", found.get("file_id"))
    attributes = found.get("attributes")
    return {
        "doc_id": found["file_id"],
        "title": found.get("filename"),
        "text": found.get("text"),
        "score": found.get("score"),
        **({"file_name": found["filename"]} if found.get("filename") else {}),
        **{f"attribute_{name}": value for name, value in (attributes if isinstance(attributes, dict) else {}).items()},
    }


def _read_source(source: Any, at: str) -> dict[str, Any]:
    """Return a source of a web search: a URL, or the name of an interface (weather, sports) that answered."""
    found = expect_object(source, at)
    if found.get("url") is None and found.get("name"):
        return {"title": expect_text(found["name"], f"{at}/name"), "type": found.get("type")}
    return {"url": expect_text(found.get("url"), f"{at}/url")}
