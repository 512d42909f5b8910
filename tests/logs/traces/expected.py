"""What each fixture holds, counted by hand, in `expected.json`: who made the file, its queries, and why they are counted so.

A query has its iterations in order, and each of these its documents: null has neither id, URL nor title.
"""

from __future__ import annotations

import json
from pathlib import Path

_FIXTURES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
#: For each fixture its queries, and for each of these the documents of its iterations.
EXPECTED: dict[str, dict[str, list[list[str | None]]]] = {
    name: expected["queries"] for name, expected in _FIXTURES.items() if "queries" in expected
}
#: Fixtures whose log does not hold the results, and what the one error says.
NOT_RECORDED: dict[str, str] = {name: expected["error"] for name, expected in _FIXTURES.items() if "error" in expected}
#: For each format where its log keeps a list of messages, steps or items (null: a line of JSON Lines), and an unknown item.
ODD_ITEMS = json.loads(Path(__file__).with_name("odd_items.json").read_text("utf-8"))
