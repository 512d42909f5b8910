"""Builds a trace from the messages of a conversation: turns, steps, calls and answers. Exports the names that formats use."""

from goodgain.logs.traces.conversations.turns_and_calls import Conversation
from goodgain.logs.traces.input.file_head import FileHead
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, ToolCall, Trace

__all__ = ["UNANSWERED", "Conversation", "FileHead", "Source", "ToolCall", "Trace"]
