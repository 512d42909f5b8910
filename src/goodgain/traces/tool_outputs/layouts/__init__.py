"""The layouts in which tools write lists of results as text: one declaration each, in the order in which they are tried.

A layout returns None for text in another one. A list must begin at its first item or below a heading, so that links
inside prose are not taken for a list.
"""

from __future__ import annotations

from typing import Any

from goodgain.traces.tool_outputs.layout import Layout
from goodgain.traces.tool_outputs.layouts.documents import DOCS, ELEMENTS
from goodgain.traces.tool_outputs.layouts.labelled import JINA, LABELLED, RULED, TAVILY, WIKIPEDIA
from goodgain.traces.tool_outputs.layouts.links import LINKS, NUMBERED_LINKS, URLS
from goodgain.traces.tool_outputs.layouts.products import CLAUDE_CODE, CODEX, DUCKDUCKGO, GEMINI_CLI
from goodgain.traces.tool_outputs.layouts.titles import NUMBERED_TITLES, PARAGRAPHS

__all__ = ["LAYOUTS"]

#: What one product writes comes first. Links come late: numbered lists and blocks have lines that look like a bare link.
LAYOUTS: tuple[Layout[str, Any], ...] = (
    CLAUDE_CODE,
    GEMINI_CLI,
    CODEX,
    DUCKDUCKGO,
    TAVILY,
    JINA,
    WIKIPEDIA,
    ELEMENTS,
    DOCS,
    NUMBERED_LINKS,
    NUMBERED_TITLES,
    RULED,
    LABELLED,
    URLS,
    LINKS,
    PARAGRAPHS,
)
