"""Writes the runs, qrels and costs of `qrels_examples/two_agents`, which are made up: two agents, 25 queries, six searches of five.

`quick` finds most of what it ever finds with its first two searches, and then what it already had. `late` searches beside the
point at first, and finds more than `quick` in the end.

    python -m tests.support.make_two_agents    # from the project's folder
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "qrels_examples" / "two_agents"

_QUERIES, _RESULTS = 25, 5

#: Agent -> for each of its searches: the chance that a result is a good document, and that it is one of those it had.
_AGENTS = {
    "quick": [(0.62, 0.0), (0.42, 0.15), (0.10, 0.45), (0.06, 0.55), (0.04, 0.60), (0.03, 0.60)],
    "late": [(0.03, 0.0), (0.06, 0.05), (0.46, 0.05), (0.52, 0.10), (0.34, 0.20), (0.14, 0.35)],
}


def make_files() -> dict[str, str]:
    """Return file name -> text. Only `random()` is drawn, whose numbers are the same in every version of Python."""
    chance = random.Random(17)
    labels = [list(_make_labels(chance)) for _ in range(_QUERIES)]
    files = {"qrels.txt": "".join(_write_qrels(labels))}
    for agent, searches in _AGENTS.items():
        files[f"{agent}.run"] = "".join(
            line for q, label in enumerate(labels, 1) for line in _write_query(agent, q, label, searches, chance)
        )
    files["costs.csv"] = "".join(_write_costs(files, random.Random(18)))
    return files


def _write_costs(files: dict[str, str], chance: random.Random) -> Iterator[str]:
    """Yield what each search cost, and the answer (iteration 0): a longer chat each time; late has the cheaper model."""
    yield "query_id,system,iteration,calls,input_tokens,output_tokens,seconds,cost\n"
    for agent, (price, parallel) in {"quick": (3, 0.2), "late": (1, 0.5)}.items():
        lines = [line.split() for line in files[f"{agent}.run"].splitlines()]
        for q, searches in {q: max(int(i) for query, i, *_ in lines if query == q) for q, *_ in lines}.items():
            for i in (*range(1, searches + 1), 0):
                calls = 0 if i == 0 else 2 if chance.random() < parallel else 1
                read = 400 + 900 * (i or searches + 1) + int(600 * chance.random())
                written = 60 + int(90 * chance.random()) + 200 * (i == 0)
                seconds, cost = written / 50 + 0.5 * calls, price * (read + 5 * written) / 1e6
                yield f"{q},{agent},{i},{calls},{read},{written},{seconds:.2f},{cost:.6f}\n"


def _make_labels(chance: random.Random) -> Iterator[int]:
    """Yield the labels of the documents of one query: four to eight good ones first."""
    for _ in range(4 + int(5 * chance.random())):
        yield 3 if chance.random() < 0.4 else 2
    for _ in range(18):
        yield 1 if chance.random() < 0.3 else 0


def _write_qrels(labels: list[list[int]]) -> Iterator[str]:
    for q, labels_of_query in enumerate(labels, 1):
        for d, label in enumerate(labels_of_query, 1):
            yield f"q{q:02} 0 q{q:02}_d{d:02} {label}\n"


def _write_query(
    agent: str, q: int, labels: list[int], searches: list[tuple[float, float]], chance: random.Random
) -> Iterator[str]:
    good = sum(label >= 2 for label in labels)
    seen: list[int] = []
    number = len(searches) - int(1.4 * chance.random())  # some queries stop before the last search

    for i, (finds, repeats) in enumerate(searches[:number], 1):
        here: list[int] = []
        while len(here) < _RESULTS:
            drawn = chance.random()
            if drawn < finds:
                doc = 1 + int(good * chance.random())
            elif drawn < finds + repeats and seen:
                doc = seen[int(len(seen) * chance.random())]
            else:
                doc = good + 1 + int((len(labels) - good + 5) * chance.random())  # the last five were never judged
            if doc not in here:
                here.append(doc)
        for k, doc in enumerate(here, 1):
            yield f"q{q:02} {i} q{q:02}_d{doc:02} {k} {_RESULTS + 1 - k} {agent}\n"
        seen += here


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in make_files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
