"""Logs with something of an unknown kind in them, for the formats of `more_logs.py`."""

from __future__ import annotations

from .story import Json

#: For each format where its log keeps a list of messages, steps or items, and something of an unknown kind for it.
#: A list as path of None: the log is JSON Lines, and the thing a line of it.
ODD_ITEMS: dict[str, tuple[list[Json] | None, Json]] = {
    "gemini": (["contents"], {"role": "model", "parts": [{"odd": 1}]}),
    "codex": (None, {"timestamp": "now", "type": "response_item", "payload": {"type": "odd"}}),
    "claude_code": (None, {"type": "odd", "sessionId": "story"}),
    "pydantic_ai": ([], {"kind": "response", "parts": [{"part_kind": "odd"}]}),
    "vercel_ai": ([], {"role": "odd", "parts": []}),
}


def odd_logs() -> dict[str, tuple[Json, str]]:
    """For each format a log without a search, with one thing of an unknown kind in it; and where that stands."""
    said = {"role": "assistant", "id": "m1", "content": [{"type": "odd"}]}
    line = {"type": "assistant", "sessionId": "s", "uuid": "u1", "parentUuid": None, "message": said}
    return {
        "gemini": (
            [{"role": "user", "parts": [{"text": "?"}]}, {"role": "model", "parts": [{"odd": 1}]}],
            "/1/parts/0",
        ),
        "codex": ([{"timestamp": "now", "type": "odd", "payload": {}}], "/0/type"),
        "claude_code": ([line], "/0/message/content/0"),
        "pydantic_ai": ([{"kind": "response", "parts": [{"part_kind": "odd"}]}], "/0/parts/0"),
        "vercel_ai": ([{"role": "assistant", "parts": [{"type": "step-start"}, {"type": "odd"}]}], "/0/parts/1"),
    }
