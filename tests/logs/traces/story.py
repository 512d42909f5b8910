"""The story that every format's log tells: turns of steps of calls.

`story_templates.json`, `logs.py` and `span_logs.py` write it down as each format would.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = Any


@dataclass
class Call:
    """A call: its output as the tool gives it; `failed`: the log says so; `answered`: there is an answer at all.

    `arguments`: what it is called with, if that is not a query.
    """

    output: Json = None
    query: Json = "bm25"
    tool: str = "search"
    failed: bool = False
    answered: bool = True
    id: str = ""
    arguments: Json = None

    @property
    def text(self) -> str:
        return self.output if isinstance(self.output, str) else json.dumps(self.output)


@dataclass
class Turn:
    steps: list[list[Call]]
    user: str = "What is BM25?"
    answer: str = "That is it."


@dataclass
class Story:
    turns: list[Turn] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Give every call an id of its own."""
        number = 0
        for turn in self.turns:
            for step in turn.steps:
                for call in step:
                    number += 1
                    call.id = call.id or f"call_{number}"


def docs(*ids: str) -> list[dict[str, str]]:
    """Results with these ids."""
    return [{"docid": name, "title": f"Title {name}", "snippet": f"All there is to say about {name}."} for name in ids]


#: Two turns; in the second parallel calls, a search that found nothing, one that failed, and a tool that is no search.
def conversation() -> Story:
    return Story(
        [
            Turn([[Call(docs("d1", "d3"), "ranking function")]]),
            Turn(
                [
                    [Call(docs("d3", "d1"), "DCG"), Call(docs("d4", "d1"), "learning to rank")],
                    [Call([], "nothing at all")],
                    [Call("Error executing search: time is up", "slow", failed=True)],
                    [Call("2", "1+1", tool="calculator")],
                    [Call(docs("d2", "d1"), "idf")],
                ],
                "How is ranking quality measured, and learned?",
            ),
        ]
    )


#: What the last turn of `conversation` is: the documents of each iteration.
LAST_TURN = [["d3", "d1", "d4", "d1"], [], [], ["d2", "d1"]]
FIRST_TURN = [["d1", "d3"]]


def asked(call: Call) -> Json:
    """The arguments of a call."""
    return {"query": call.query} if call.arguments is None else call.arguments


#: Writes a story as the text of a log.
Writer = Callable[[Story], str]
