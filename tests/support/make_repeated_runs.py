"""Writes the runs and qrels of `qrels_examples/repeated_runs`, which are made up: two agents, three runs each, 30 queries.

Each search finds a good document by chance. Some queries are easy and some hard; `new` is a little better than `old` on most.

    python -m tests.support.make_repeated_runs    # from the project's folder
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "qrels_examples" / "repeated_runs"

_QUERIES, _GOOD, _POOR, _RUNS, _SEARCHES, _RESULTS = 30, 4, 12, 3, 3, 3


def make_files() -> dict[str, str]:
    """Return file name -> text. Only `random()` is drawn, whose numbers are the same in every version of Python."""
    chance = random.Random(11)
    ease = [0.05 + 0.45 * chance.random() ** 2 for _ in range(_QUERIES)]
    gains = [0.16 * chance.random() - 0.04 for _ in range(_QUERIES)]
    files = {"qrels.txt": "".join(_write_qrels())}

    for agent, share in (("old", 0.0), ("new", 1.0)):
        for number in range(1, _RUNS + 1):
            lines = (
                line
                for q in range(_QUERIES)
                for line in _write_query(f"{agent}.{number}", q + 1, max(0.02, ease[q] + share * gains[q]), chance)
            )
            files[f"{agent}.{number}.run"] = "".join(lines)

    return files


def _write_qrels() -> Iterator[str]:
    for q in range(1, _QUERIES + 1):
        for d in range(1, _GOOD + _POOR + 1):
            yield f"q{q:02} 0 q{q:02}_d{d:02} {0 if d > _GOOD else 3 if d % 2 else 2}\n"


def _write_query(tag: str, q: int, finds: float, chance: random.Random) -> Iterator[str]:
    """Yield the rows of one query: each search finds each good document that is not yet found with the same chance."""
    seen: set[int] = set()
    for iteration in range(1, _SEARCHES + 1):
        documents = [d for d in range(1, _GOOD + 1) if d not in seen and chance.random() < finds][:_RESULTS]
        while len(documents) < _RESULTS:
            poor = _GOOD + 1 + int(_POOR * chance.random())
            documents += [poor] if poor not in documents else []
        seen |= set(documents)
        for rank, d in enumerate(documents, 1):
            yield f"q{q:02} {iteration} q{q:02}_d{d:02} {rank} {_RESULTS - rank + 1} {tag}\n"


if __name__ == "__main__":
    for name, text in make_files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
