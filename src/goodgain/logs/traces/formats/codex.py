"""Codex CLI: rollouts (JSON Lines with timestamp, type and payload) and the events of `codex exec --json`.

A rollout holds items of OpenAI's Responses: steps are those of the format `openai_responses`. A message that the user typed
is a turn. In the events of `exec`, all items between two thoughts or messages are one step.

Lost: Results of hosted web searches that no event `web_search_end` holds, and encrypted results of `web.run`: both are
unrecorded. Tokens.
Query id: The id of the session or thread. The system is the model of the last turn (rollouts only).
Record: To have results in the log, give the agent your own search tool, such as an MCP server.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import Placed, read_records, text_or_none
from goodgain.logs.traces.expected_values import as_word, expect_id, expect_object, expect_text, object_or_empty
from goodgain.logs.traces.formats.openai_responses import ItemReader
from goodgain.logs.traces.tools import extract_queries

#: Types of a rollout's lines. `compacted` repeats items in another form.
_LINES = {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"}
#: Items that only Codex writes, without a call or a result.
_OTHER_ITEMS = {"ghost_snapshot", "compaction_summary", "context_compaction", "compaction_trigger"}
#: Beginnings of texts that Codex writes in the user's name.
_NOT_TYPED = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>", "<permissions", "<skill>"),
    *("<user_shell_command>", "<INSTRUCTIONS>", "<subagent_notification>"),
)
#: Types of the items of `exec` without a search, and events without an item.
_OTHER_EXEC_ITEMS = {"command_execution", "file_change", "todo_list", "error", "collab_tool_call"}
_OTHER_EVENTS = {"thread.started", "turn.completed", "turn.failed", "error", "item.updated"}
#: How to record the results of a search that the log lacks.
_REMEDY = "Codex does not log the results of its web search; give it a search tool of an MCP server"


def sniff(head: FileHead) -> bool:
    return any(
        _is_event(record)
        or "record_type" in record
        or ("timestamp" in record and isinstance(record.get("payload"), dict) and as_word(record.get("type")) in _LINES)
        for record in head.objects
    )


def _is_event(record: dict[str, Any]) -> bool:
    kind = as_word(record.get("type"))
    has_item = kind in ("item.started", "item.completed") and isinstance(record.get("item"), dict)
    return has_item or (kind == "thread.started" and "thread_id" in record)


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace of a rollout, or a trace per thread of `codex exec`: a run that resumes a thread adds to its trace."""
    lines: list[Placed] = []
    for value, at in read_records(source):
        with source.handle_errors():
            lines.append((expect_object(value, at), at))

    if lines and not any(_is_event(record) for record, _ in lines):
        with source.handle_errors():
            yield _Rollout(source, lines[0][0]).read_lines(lines)
        return

    runs: list[list[Placed]] = []
    threads: dict[str, list[list[Placed]]] = {}
    for record, at in lines:  # a file may hold several runs of `exec`, and a run may resume a thread
        if record.get("type") == "thread.started" or not runs:
            runs.append([])
            threads.setdefault(str(record.get("thread_id", at)), []).append(runs[-1])
        runs[-1].append((record, at))

    for thread in threads.values():
        with source.handle_errors():
            yield _Thread(source, thread[0][0][0]).read_runs(thread)


class _Rollout(ItemReader):
    web_remedy = _REMEDY

    def read_lines(self, lines: list[Placed]) -> Trace:
        """Return the trace of a session from its items and events. If an event repeats an item, only one of the two counts."""
        items: list[Placed] = []
        session = None
        events = [_read_payload(record, "event_msg") for record, _ in lines]
        typed = any(event.get("type") == "user_message" for event in events)
        outputs = _collect_outputs(events)
        search_ends = [event for event in events if event.get("type") == "web_search_end" and event.get("results")]
        held = [_read_payload(record, "response_item") or record for record, _ in lines]
        seen = {(as_word(item.get("type")), str(item.get("call_id"))) for item in held}

        for record, at in lines:
            kind = as_word(record.get("type"))
            payload_at = f"{at}/payload"
            if "payload" not in record and "record_type" not in record and "type" in record:
                items.append((record, at))  # a rollout of 2025: items without a payload
            elif kind == "session_meta":
                session = session or expect_id(expect_object(record.get("payload"), at).get("id"), f"{payload_at}/id")
            elif kind == "turn_context":
                named = expect_object(record.get("payload"), payload_at).get("model")
                self.tag = text_or_none(named) or self.tag
            elif kind == "response_item":
                item = expect_object(record.get("payload"), payload_at)
                call_id = as_word(item.get("call_id"))
                if item.get("type") == "function_call_output" and call_id in outputs:
                    item = {**item, "output": outputs[call_id]}  # the unchanged output of the MCP tool
                if item.get("type") == "web_search_call":
                    item = _add_results(item, search_ends)
                if as_word(item.get("type")) not in _OTHER_ITEMS and not (typed and _is_of_user(item)):
                    items.append((item, payload_at))
            elif kind == "event_msg":
                event = expect_object(record.get("payload"), payload_at)
                expect_text(event.get("type"), f"{payload_at}/type")
                items += [(item, payload_at) for item in _read_event(event, seen, outputs)]
            elif "type" not in record and "timestamp" in record and ("instructions" in record or "git" in record):
                session = session or expect_id(record.get("id"), f"{at}/id")  # the first line of a rollout of 2025
            elif kind not in _LINES and "record_type" not in record:
                self.report_kind("line", record, "type", at, ", ".join(sorted(_LINES)))

        self.read_all(
            (item, at) for item, at in items
            if typed or not _is_of_user(item) or not message_text(item.get("content")).lstrip().startswith(_NOT_TYPED)
        )  # fmt: skip
        for record, at in lines:  # events too: they may hold results
            self.hold(record, at)

        return self.trace(lines[0][1], session_id=session)


def _collect_outputs(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the outputs of the tools of MCP servers, by call id."""
    outputs: dict[str, Any] = {}
    for event in events:
        result = event.get("result") if event.get("type") == "mcp_tool_call_end" else None
        if isinstance(result, dict) and ("Err" in result or result.get("Ok") is not None):
            failure = {"isError": True, "content": str(result.get("Err"))}
            outputs[as_word(event.get("call_id"))] = failure if "Err" in result else result["Ok"]
    return outputs


def _read_payload(record: dict[str, Any], kind: str) -> dict[str, Any]:
    return object_or_empty(record.get("payload") if record.get("type") == kind else None)


def _add_results(item: dict[str, Any], search_ends: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the results in the first event of the same query to a web search. Remove that event from `search_ends`.

    Return other items unchanged, and searches that have sources.
    """
    action = object_or_empty(item.get("action"))
    queries = {*extract_queries(action.get("queries")), *extract_queries(action.get("query"))}
    event = next((event for event in search_ends if not queries.isdisjoint(extract_queries(event.get("query")))), None)
    if event is None or action.get("type", "search") != "search" or action.get("sources") is not None:
        return item
    search_ends.remove(event)
    return {**item, "action": {**action, "sources": event["results"]}}


def _is_of_user(item: dict[str, Any]) -> bool:
    return as_word(item.get("type"), "message") == "message" and item.get("role") == "user"


def _read_event(event: dict[str, Any], seen: set[tuple[str, str]], outputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the items in an event: a user's message, or the call and output of an MCP tool. Skip calls and outputs in `seen`."""
    call_id = event.get("call_id")
    invocation = event.get("invocation")
    if event.get("type") == "user_message":
        yield {"role": "user", "content": message_text(event.get("message"))}
    elif event.get("type") == "mcp_tool_call_end" and isinstance(call_id, str):
        if ("function_call", call_id) not in seen and isinstance(invocation, dict):
            name = f"mcp__{invocation.get('server')}__{invocation.get('tool')}"
            yield {"type": "function_call", "name": name, "arguments": invocation.get("arguments"), "call_id": call_id}
        if ("function_call_output", call_id) not in seen and call_id in outputs:
            yield {"type": "function_call_output", "call_id": call_id, "output": outputs[call_id]}


class _Thread(Conversation):
    _stepped = False

    def read_runs(self, runs: list[list[Placed]]) -> Trace:
        """Return the trace of a thread, which may have several runs of `codex exec`. Item ids start again in each run."""
        first, first_at = runs[0][0]
        named = first.get("thread_id") if first.get("type") == "thread.started" else None
        thread = expect_id(named, f"{first_at}/thread_id")

        for lines in runs:
            ended = [
                object_or_empty(record.get("item")) for record, _ in lines if record.get("type") == "item.completed"
            ]
            completed = {as_word(item.get("id")) for item in ended}
            for record, at in lines:
                kind = as_word(record.get("type"))
                if kind == "turn.started":
                    self.user("")
                    self._stepped = False
                elif kind in ("item.started", "item.completed"):
                    item = expect_object(record.get("item"), f"{at}/item")
                    item_id = expect_id(item.get("id"), f"{at}/item/id") or ""
                    if kind == "item.completed" or item_id not in completed:  # never completed: the start counts
                        completed.add(item_id)
                        self.read(item, f"{at}/item")
                elif kind not in _OTHER_EVENTS:
                    self.report_kind("event", record, "type", at, "thread.started, turn.started, item.completed ...")

        return self.trace(first_at, session_id=thread)

    def read(self, item: dict[str, Any], at: str) -> None:
        """Read an item.

        A thought or message begins a step, and so does the first call of a turn. The last message is the answer.
        """
        kind = as_word(item.get("type"))
        call = None
        speaks = kind in ("reasoning", "agent_message")
        if kind == "mcp_tool_call":
            name = f"mcp__{item.get('server')}__{expect_text(item.get('tool'), f'{at}/tool')}"
            call = ToolCall(name, at, expect_id(item.get("id"), f"{at}/id"), item.get("arguments"))
            if isinstance(result := item.get("result"), dict):
                call.output = {**result, "structuredContent": result.get("structured_content")}
            failed = item.get("status") == "failed" and call.output is UNANSWERED
            call.failed = failed or item.get("error") is not None
        elif kind == "web_search":
            call = self._read_search(item, at)
        elif not speaks and kind not in _OTHER_EXEC_ITEMS:
            self.report_kind("item", item, "type", at, "an item such as web_search, mcp_tool_call, agent_message")

        if speaks or (call is not None and not self._stepped):
            self.step()
            self._stepped = True
        if call is not None:
            self.call(call)
            self.say(None)
        elif kind == "agent_message":
            self.say(item.get("text") or [])

    def _read_search(self, item: dict[str, Any], at: str) -> ToolCall | None:
        """Read a `web_search` item. If its query is a URL and its action is not a search, Codex opened a page."""
        action = item.get("action")
        query = text_or_none(item.get("query")) or ""
        call_id = expect_id(item.get("id"), at)
        kind = as_word(object_or_empty(action).get("type"))
        is_url_opened = "://" in query and kind != "search"
        if kind in ("open_page", "find_in_page", "find") or is_url_opened:
            opened: tuple[str, ...] | None = (query,)
            if object_or_empty(action).get("url"):
                opened = None  # the action names the page
            return ToolCall(f"web_search {kind or 'open_page'}", at, call_id, action, is_search=False, opened=opened)
        if kind == "search" or query.strip():
            arguments = action if kind == "search" else query
            results = item["results"] if item.get("results") else UNANSWERED
            return ToolCall("web_search", at, call_id, arguments, results, is_search=True, remedy=_REMEDY)

        what = "web_search without a query or a known action"
        self.source.not_understood(what, at, "an action of type search or open_page")
        return None
