"""Exports of ChatGPT's chats: `conversations.json`, whose `mapping` is a tree of messages.

Only the branch to `current_node` is read. A message of the user is a turn. A message to a tool is a step. If the export hides
the call of a search, the answer is a step.

Lost: Which search found which result, if one list holds the results of several searches. Such searches count as unrecorded.
Query id: The `conversation_id`. The system is the model of the last answer.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import Placed, text_or_none
from goodgain.logs.traces.expected_values import as_word, expect_object, id_or_none, object_or_empty, objects_in

_REMEDY = "the export has no results, or one list of results for several searches"


def sniff(head: FileHead) -> bool:
    return any(isinstance(record.get("mapping"), dict) and "current_node" in record for record in head.objects)


def read(source: Source) -> Iterator[Trace]:
    def read_chat(record: Any, at: str) -> Trace:
        reader = _Chat(source, expect_object(record, at)).read_all(_find_branch(record, at))
        return reader.trace(at, query_id=id_or_none(record.get("conversation_id") or record.get("id")))

    return source.traces(read_chat, is_one=lambda members: False)


def _find_branch(record: dict[str, Any], at: str) -> list[Placed]:
    """Return the messages from the root of the tree to the current node, each with its place. An empty node is an empty message."""
    nodes = expect_object(record.get("mapping"), f"{at}/mapping")
    branch = dict[str, Placed]()
    name = record.get("current_node")
    while isinstance(name, str) and name in nodes and name not in branch:
        place = f"{at}/mapping/{name}"
        node = expect_object(nodes[name], place)
        branch[name] = object_or_empty(node.get("message")), f"{place}/message"
        name = node.get("parent")
    return [*reversed(branch.values())]


class _Chat(Conversation):
    last: ToolCall | None = None  # waits for an answer
    searches: tuple[ToolCall, ...] = ()  # of the turn

    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message. A call is a message of the assistant to a recipient; a message of a tool answers the last open call.

        A final answer may bring the results of the turn's searches. They count only if there is one search, or none: then the
        answer is the search.
        """
        author, data = (object_or_empty(message.get(key)) for key in ("author", "metadata"))
        content = object_or_empty(message.get("content"))
        role = as_word(author.get("role"))
        text = message_text(content.get("parts")) or message_text(content.get("text"))
        groups = objects_in(data.get("search_result_groups"))
        results = [entry for group in groups for entry in objects_in(group.get("entries"))]
        if role == "user":
            self.last = None
            self.searches = ()
            self.user(text, id_or_none(message.get("create_time")))
        elif role == "tool":
            if (queries := data.get("search_model_queries")) and self.last is None:
                self._add(ToolCall(as_word(author.get("name")), at, arguments=queries, is_search=True, remedy=_REMEDY))
            if (results or text) and self.last is None:
                self.report_orphan(at, "the message before it calls no tool")
            elif (results or text) and self.last is not None:
                self.last.output = results or text
            self.last = None if queries or results or text else self.last
        elif role == "assistant" and (tool := as_word(message.get("recipient"), "all")) != "all":
            name, _, arguments = text.rstrip().partition("(")  # search("..."), or JSON
            if name.isidentifier() and arguments.endswith(")"):
                self._add(ToolCall(f"{tool}.{name}", at, arguments=arguments[:-1], remedy=_REMEDY))
            else:
                self._add(ToolCall("web.run" if tool == "web" else tool, at, arguments=text, remedy=_REMEDY))
        elif role == "assistant":
            self.tag = text_or_none(data.get("model_slug")) or self.tag
            if results and not self.searches:
                self._add(ToolCall("web.run", at, is_search=True))
            if results and len(self.searches) == 1 and not self.searches[0].answered:
                self.searches[0].output = results
            self.say(text)
        elif author and role != "system":
            self.report_kind("message", author, "role", f"{at}/author", "user, assistant, tool or system")

    def _add(self, call: ToolCall) -> None:
        self.step()
        self.last = self.call(call)
        if call.is_search or self.source.is_search.searches_with(call.tool, call.arguments):
            self.searches += (call,)
