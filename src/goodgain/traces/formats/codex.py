"""Codex CLI: rollouts (lines of timestamp, type and payload) and the events of `codex exec --json`.

A rollout holds items of OpenAI's Responses, and steps are those of that format; a message that the user typed is a turn.
In the events of `exec`, what stands between thoughts and messages is a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations.conversation import Conversation, message_text
from goodgain.traces.formats.openai_responses import ItemReader
from goodgain.traces.input.checks import as_word, expect_id, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

#: Types of a rollout's lines. `compacted` repeats items in another form.
_LINES = {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"}
#: Items that only Codex writes, without a call or a result.
_OTHER_ITEMS = {"ghost_snapshot", "compaction_summary", "context_compaction", "compaction_trigger"}
#: How texts begin that Codex itself writes in the user's name.
_NOT_TYPED = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>", "<permissions", "<skill>"),
    *("<user_shell_command>", "<INSTRUCTIONS>", "<subagent_notification>"),
)
#: Types of the items of `exec` without a search, and events without an item.
_OTHER_EXEC_ITEMS = {"command_execution", "file_change", "todo_list", "error", "collab_tool_call"}
_OTHER_EVENTS = {"turn.completed", "turn.failed", "error", "item.updated"}
_REMEDY = "Codex does not log what its web search returned; search with a tool of an MCP server, whose answers it logs"


def sniff(head: FileHead) -> bool:
    """Return whether there are lines with timestamp, type and payload, or events of `exec`."""
    return any(_is_line(record) or _is_event(record) or "record_type" in record for record in head.objects)


def _is_line(record: dict[str, Any]) -> bool:
    return "timestamp" in record and isinstance(record.get("payload"), dict) and as_word(record.get("type")) in _LINES


def _is_event(record: dict[str, Any]) -> bool:
    kind = as_word(record.get("type"))
    return (kind == "thread.started" and "thread_id" in record) or (
        kind in ("item.started", "item.completed") and isinstance(record.get("item"), dict)
    )


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace, the session; or one a thread of `exec`."""
    records: list[tuple[dict[str, Any], str]] = []
    for value, at in source.documents():
        many = [(one, f"{at}/{index}") for index, one in enumerate(value)] if isinstance(value, list) else [(value, at)]
        for record, record_at in many:
            with source.handle_errors():
                records.append((expect_object(record, record_at), record_at))
    if any(_is_event(record) for record, _ in records):
        yield from _read_exec(source, records)
    elif records:
        with source.handle_errors():
            yield _read_rollout(source, records)


# Rollouts


def _read_rollout(source: Source, records: list[tuple[dict[str, Any], str]]) -> Trace:
    items: list[tuple[dict[str, Any], str]] = []
    session = model = None
    typed = any(_event_type(record) == "user_message" for record, _ in records)
    ends = {end["call_id"]: end for record, _ in records if (end := _get_mcp_end(record)) is not None}
    seen = {name: {str(_item(record).get("call_id")) for record, _ in records if _item(record).get("type") == name}
            for name in ("function_call", "function_call_output")}  # fmt: skip
    for record, at in records:
        if "payload" not in record and "record_type" not in record and "type" in record:
            items.append((record, at))  # a rollout of 2025: items without a payload
            continue
        kind = as_word(record.get("type"))
        payload = record.get("payload")
        if kind == "session_meta":
            session = session or expect_id(expect_object(payload, at).get("id"), f"{at}/payload/id")
        elif kind == "turn_context":
            named = expect_object(payload, f"{at}/payload").get("model")
            model = named if isinstance(named, str) and named else model
        elif kind == "response_item":
            item = expect_object(payload, f"{at}/payload")
            if as_word(item.get("type")) not in _OTHER_ITEMS and not (typed and _is_of_user(item)):
                items.append((_use_clean_copy(item, ends), f"{at}/payload"))
        elif kind == "event_msg":
            event = expect_object(payload, f"{at}/payload")
            expect_text(event.get("type"), f"{at}/payload/type")
            items += [(item, f"{at}/payload") for item in _read_event(event, seen)]
        elif kind not in _LINES and "record_type" not in record and not _is_early_header(record):
            if not isinstance(record.get("type"), str):
                raise unexpected_value(f"{at}/type", "the type of a line", record.get("type"))
            source.not_understood(f"line of type {kind!r}", f"{at}/type", ", ".join(sorted(_LINES)))
        if _is_early_header(record):
            session = session or expect_id(record.get("id"), f"{at}/id")
    reader = ItemReader(source, web_remedy=_REMEDY)
    reader.read_all([one for one in items if typed or not _is_note(one[0])])
    trace = reader.conversation.trace(records[0][1], records[0][0], query_id=session)
    trace.session_id, trace.tag = session, model
    return trace


def _is_early_header(record: dict[str, Any]) -> bool:
    """Return whether a line is the first of a rollout of 2025, which has no type."""
    return "type" not in record and "timestamp" in record and ("instructions" in record or "git" in record)


def _item(record: dict[str, Any]) -> dict[str, Any]:
    found = record.get("payload") if record.get("type") == "response_item" else record
    return found if isinstance(found, dict) else {}


def _event_type(record: dict[str, Any]) -> str:
    payload = record.get("payload")
    is_event = record.get("type") == "event_msg" and isinstance(payload, dict)
    return as_word(payload.get("type")) if is_event and isinstance(payload, dict) else ""


def _is_of_user(item: dict[str, Any]) -> bool:
    return as_word(item.get("type"), "message") == "message" and item.get("role") == "user"


def _is_note(item: dict[str, Any]) -> bool:
    """Return whether an item in the user's name was written by Codex."""
    return _is_of_user(item) and message_text(item.get("content")).lstrip().startswith(_NOT_TYPED)


def _get_mcp_end(record: dict[str, Any]) -> dict[str, Any] | None:
    payload = record["payload"] if _event_type(record) == "mcp_tool_call_end" else None
    return payload if isinstance(payload, dict) and isinstance(payload.get("call_id"), str) else None


def _use_clean_copy(item: dict[str, Any], ends: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an answer with the output of an MCP tool as the tool gave it, if the rollout has that too."""
    if item.get("type") == "function_call_output" and (end := ends.get(as_word(item.get("call_id")))) is not None:
        found = _mcp_output(end)
        return item if found is None else {**item, "output": found}
    return item


def _mcp_output(end: dict[str, Any]) -> Any:
    result = end.get("result")
    if not isinstance(result, dict):
        return None
    return {"isError": True, "content": str(result["Err"])} if "Err" in result else result.get("Ok")


def _read_event(payload: dict[str, Any], seen: dict[str, set[str]]) -> Iterator[dict[str, Any]]:
    """Yield what only an event holds: what the user typed, and calls of MCP tools that no item has."""
    kind = payload.get("type")
    if kind == "user_message":
        yield {"role": "user", "content": message_text(payload.get("message"))}
    elif kind == "mcp_tool_call_end" and isinstance(call_id := payload.get("call_id"), str):
        made = payload.get("invocation")
        if call_id not in seen["function_call"] and isinstance(made, dict):
            name = f"mcp__{made.get('server')}__{made.get('tool')}"
            yield {"type": "function_call", "name": name, "arguments": made.get("arguments"), "call_id": call_id}
        if call_id not in seen["function_call_output"] and (output := _mcp_output(payload)) is not None:
            yield {"type": "function_call_output", "call_id": call_id, "output": output}


# codex exec --json


def _read_exec(source: Source, records: list[tuple[dict[str, Any], str]]) -> Iterator[Trace]:
    """Yield one trace a thread; several runs of `exec` may have been written to one file."""
    threads: list[list[tuple[dict[str, Any], str]]] = []
    for record, at in records:
        if record.get("type") == "thread.started" or not threads:
            threads.append([])
        threads[-1].append((record, at))
    for thread in threads:
        with source.handle_errors():
            yield _read_thread(source, thread)


def _read_thread(source: Source, records: list[tuple[dict[str, Any], str]]) -> Trace:
    conversation = Conversation()
    started: dict[str, tuple[dict[str, Any], str]] = {}
    done = {as_word(_exec_item(record).get("id")) for record, _ in records if record.get("type") == "item.completed"}
    thread = None
    stepped = False
    for record, at in records:
        kind = record.get("type")
        if kind == "thread.started":
            thread = expect_id(record.get("thread_id"), f"{at}/thread_id")
        elif kind == "turn.started":
            conversation.user("")
            stepped = False
        elif kind in ("item.started", "item.completed"):
            item = expect_object(record.get("item"), f"{at}/item")
            item_id = expect_id(item.get("id"), f"{at}/item/id") or ""
            if kind == "item.started":
                if item_id in done or item_id in started:
                    continue  # read where it is completed
                started[item_id] = (item, at)
            name = item.get("type")
            if name in ("reasoning", "agent_message"):
                conversation.step()
                stepped = True
            elif (call := _read_exec_call(source, item, f"{at}/item")) is not None:
                if not stepped:
                    conversation.step()
                    stepped = True
                conversation.call(call)
        elif as_word(kind) not in _OTHER_EVENTS:
            if not isinstance(kind, str):
                raise unexpected_value(f"{at}/type", "the type of an event", kind)
            source.not_understood(
                f"event of type {kind!r}", f"{at}/type", "thread.started, turn.started, item.completed ..."
            )
    trace = conversation.trace(records[0][1], records[0][0], query_id=thread)
    trace.session_id = thread
    return trace


def _exec_item(record: dict[str, Any]) -> dict[str, Any]:
    item = record.get("item")
    return item if isinstance(item, dict) else {}


def _read_exec_call(source: Source, item: dict[str, Any], at: str) -> ToolCall | None:
    kind, call_id = as_word(item.get("type")), expect_id(item.get("id"), f"{at}/id")
    if kind == "mcp_tool_call":
        name = f"mcp__{item.get('server')}__{expect_text(item.get('tool'), f'{at}/tool')}"
        result = item.get("result")
        output: Any = UNANSWERED
        if isinstance(result, dict):
            output = {**result, "structuredContent": result.get("structured_content")}
        failed = item.get("error") is not None or (output is UNANSWERED and item.get("status") == "failed")
        return ToolCall(name, at, call_id, item.get("arguments"), output, failed=failed)
    if kind == "web_search":
        return _read_exec_search(source, item, call_id, at)
    if kind not in _OTHER_EXEC_ITEMS:
        if not isinstance(item.get("type"), str):
            raise unexpected_value(f"{at}/type", "the type of an item", item.get("type"))
        source.not_understood(f"item of type {kind!r}", at, "an item such as web_search, mcp_tool_call, agent_message")
    return None


def _read_exec_search(source: Source, item: dict[str, Any], call_id: str | None, at: str) -> ToolCall | None:
    """Read a web search; without an action, its query says whether it searched or opened a page."""
    action, query = item.get("action"), item.get("query")
    kind = as_word(action.get("type")) if isinstance(action, dict) else ""
    asked = isinstance(query, str) and query.strip() != "" and "://" not in query
    if kind in ("open_page", "find_in_page", "find") or (
        isinstance(query, str) and "://" in query and kind != "search"
    ):
        return ToolCall(f"web_search {kind or 'open_page'}", at, call_id, is_search=False, output=None)
    if kind == "search" or asked:
        return ToolCall(
            "web_search", at, call_id, action if kind == "search" else query, is_search=True, remedy=_REMEDY
        )
    source.not_understood("web_search without a query or a known action", at, "an action of type search or open_page")
    return None
