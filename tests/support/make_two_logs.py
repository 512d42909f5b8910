"""Writes qrels_examples/two_logs: the logs of two agents in two formats, asked the same questions, and their judgments.

python -m tests.support.make_two_logs
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "qrels_examples" / "two_logs"
TOPICS = (
    "harbour bridge toll", "solar park subsidies", "river dam cost", "museum night tickets", "tram line extension",
    "city library budget", "airport noise limits", "bike lane widths", "fish quota rules", "school meal prices",
    "glacier retreat rate", "wind farm height",
)  # fmt: skip
#: The labels of the eight documents of each topic.
LABELS = (4, 3, 2, 2, 1, 1, 0, 0)
#: The topic for which the old agent does not search.
IDLE = "airport noise limits"


def logs() -> dict[str, str]:
    """Name of a file -> its text. Only `random()` is drawn, whose numbers are the same in every version of Python."""
    chance = random.Random(7)
    old, new = [], []
    for number, topic in enumerate(TOPICS):
        question = f"What is known about the {topic}?"
        count = 0 if topic == IDLE else 2 + int(3 * chance.random())
        answers = [_find(chance, number, topic, 0.4) for _ in range(count)]
        old.append({"id": f"case-{number:02d}", "messages": [*_chat(question, topic, answers)]})
        answers = [_find(chance, number, topic, 0.75) for _ in range(3 + int(3 * chance.random()))]
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, topic))
        new.append({"id": name, "model": "claude", "messages": [*_blocks(question, topic, answers)]})

    judged = [f"case-{k:02d} 0 {_doc(k, n)} {label}" for k in range(len(TOPICS)) for n, label in enumerate(LABELS)]
    return {
        "old.json": json.dumps(old, indent=1) + "\n",
        "new.jsonl": "".join(json.dumps(record) + "\n" for record in new),
        "judgments.qrels": "\n".join(judged) + "\n",
    }


def _doc(topic: int, number: int) -> str:
    return f"doc-{topic:02d}-{number}"


def _find(chance: random.Random, topic: int, text: str, quality: float) -> str:
    """Return the answer of a search: four of all documents of the topic, or else of those that are not good."""
    numbers = range(8) if chance.random() < quality else range(4, 8)
    drawn = sorted(numbers, key=lambda _: chance.random())[:4]
    return json.dumps({"results": [{"id": _doc(topic, k), "title": f"{text}, part {k}"} for k in drawn]})


def _chat(question: str, topic: str, answers: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the messages of OpenAI's chat."""
    yield {"role": "user", "content": question}
    for number, results in enumerate(answers):
        function = {"name": "search", "arguments": json.dumps({"query": f"{topic} {number}"})}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        yield {"role": "assistant", "content": None, "tool_calls": calls}
        yield {"role": "tool", "tool_call_id": f"call_{number}", "content": results}
    yield {"role": "assistant", "content": "This is what I found."}


def _blocks(question: str, topic: str, answers: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the messages of Anthropic's API."""
    yield {"role": "user", "content": question}
    for number, results in enumerate(answers):
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "web_search",
            "input": {"query": f"{topic} {number}"},
        }
        yield {"role": "assistant", "content": [call]}
        answer = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": [{"type": "text", "text": results}],
        }
        yield {"role": "user", "content": [answer]}

    yield {"role": "assistant", "content": [{"type": "text", "text": "This is what I found."}]}


if __name__ == "__main__":
    for file, text in logs().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
