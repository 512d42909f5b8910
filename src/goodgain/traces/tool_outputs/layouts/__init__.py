"""The layouts in which tools write lists of results as text: one declaration each, in the order in which they are tried.

A layout returns None for text in another one. A list must begin at its first item or below a heading, so that links
inside prose are not taken for a list.
"""

from __future__ import annotations

from goodgain.traces.tool_outputs.layouts.labelled_blocks import JINA, LABELLED, RULED, TAVILY, WIKIPEDIA
from goodgain.traces.tool_outputs.layouts.link_lists import LINKS, NUMBERED_LINKS, NUMBERED_TITLES, PARAGRAPHS, URLS
from goodgain.traces.tool_outputs.layouts.list_lines import Layout
from goodgain.traces.tool_outputs.layouts.products import CLAUDE_CODE, CODEX, DOCS, DUCKDUCKGO, ELEMENTS, GEMINI_CLI

__all__ = ["LAYOUTS"]

#: What one product writes comes first. Links come late: numbered lists and blocks have lines that look like a bare link.
LAYOUTS: tuple[Layout, ...] = (
    *(CLAUDE_CODE, GEMINI_CLI, CODEX, DUCKDUCKGO, TAVILY, JINA, WIKIPEDIA, ELEMENTS, DOCS),
    *(NUMBERED_LINKS, NUMBERED_TITLES, RULED, LABELLED, URLS, LINKS, PARAGRAPHS),
)
