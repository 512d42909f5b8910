"""ndlog: lines of `ask <question>`, `search <query>`, `hit <doc_id>`, as a small agent prints them."""

from __future__ import annotations

from collections.abc import Iterator

from goodgain.logs.traces.input.file_head import FileHead
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import Step, ToolCall, Trace, Turn


def sniff(head: FileHead) -> bool:
    """The first line asks."""
    return head.text.startswith("ask ")


def read(source: Source) -> Iterator[Trace]:
    """One trace a file; each search is a step."""
    turns: list[Turn] = []
    for number, line in enumerate(source.text().splitlines(), start=1):
        word, _, rest = line.partition(" ")
        if word == "ask":
            turns.append(Turn(rest, index=len(turns) + 1))
        elif word == "search":
            at = f"{source.path}, line {number}, at "
            turns[-1].steps.append(Step([ToolCall("search", at, queries=(rest,), output=[])]))
        elif word == "hit":
            turns[-1].steps[-1].calls[-1].output.append({"doc_id": rest})
        else:
            source.not_understood(f"line that begins with {word!r}")

    yield Trace(turns, f"{source.path}, at ")
