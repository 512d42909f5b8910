"""Small random runs and qrels, in the oracle's input form and as TREC text.

One maker serves both uses: `make_case(random.Random(7))` is reproducible, and `cases()` hands the same function a
`Random` whose choices hypothesis draws, records and shrinks.

What it makes on purpose: documents that repeat within and across iterations, iterations that returned nothing, "-"
rows beside results, queries that only the run or only the qrels know, fractional and negative gains, labels by
iteration, a judgment said twice, gaps in the numbering, numbering from 0, column 2 = `Q0`, and rows in any order (ranks
within an iteration are distinct, so order does not matter).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from tests.support.oracle import EMPTY, QrelRow, RunRow

WHOLE = (-2, -1, 0, 0, 1, 1, 2, 2, 3, 4)
FRACTIONAL = (-0.5, 0.25, 1.8, 1.999, 2.0, 2.2, 2.75, 3.3)


class Case(NamedTuple):
    run: list[RunRow]
    qrels: list[QrelRow]
    labels: str | None  # what `labels` must be set to


class Shape(NamedTuple):
    """How large, and what may occur."""

    queries: int = 4
    iterations: int = 5
    results: int = 5  # of an iteration, repeats included
    documents: int = 8  # in all
    fractional: bool = True
    by_iteration: bool = False
    gaps: bool = True  # in the numbering, and numbering from 0
    words: bool = True  # `Q0` in column 2 of the run
    shuffled: bool = True
    score_follows_rank: bool = True


SMALL = Shape()


def make_case(random: Random, shape: Shape = SMALL) -> Case:
    """A run with at least one row and qrels with at least one."""
    queries = [f"q{n}" for n in range(1, random.randint(1, shape.queries) + 1)]
    documents = [f"d{n}" for n in range(1, random.randint(1, shape.documents) + 1)]
    searched_queries = _some(random, queries)
    judged_queries = _some(random, queries)
    run = [row for query in searched_queries for row in _query_rows(random, shape, query, documents)]
    qrels = [row for query in judged_queries for row in _judgments(random, shape, query, documents)]
    if shape.shuffled:
        random.shuffle(run)
        random.shuffle(qrels)
    return Case(run, qrels, "iteration" if shape.by_iteration else None)


def cases(shape: Shape = SMALL) -> st.SearchStrategy[Case]:
    """The same cases, drawn and shrunk by hypothesis."""
    return st.builds(make_case, st.randoms(use_true_random=False), st.just(shape))


def shapes(**fixed: bool) -> st.SearchStrategy[Shape]:
    """Shapes with every switch either way, save the switches fixed here."""
    switches = ("fractional", "by_iteration", "gaps", "words", "score_follows_rank")
    drawn = {name: st.booleans() for name in switches if name not in fixed}
    return st.fixed_dictionaries(drawn).map(lambda switched: Shape(**{**SMALL._asdict(), **switched, **fixed}))


def _some(random: Random, names: list[str]) -> list[str]:
    """At least one of them; usually nearly all."""
    return [name for name in names if random.randint(0, 4)] or names[:1]


def _query_rows(random: Random, shape: Shape, query: str, documents: list[str]) -> list[RunRow]:
    numbers: list[int | str]
    if shape.words and random.randint(0, 5) == 0:
        numbers = ["Q0"]
    else:
        start = random.choice((0, 1, 1, 3)) if shape.gaps else 1
        numbers = [start]
        for _ in range(random.randint(0, shape.iterations - 1)):
            numbers.append(int(numbers[-1]) + (random.choice((1, 1, 1, 2, 5)) if shape.gaps else 1))
    return [row for number in numbers for row in _iteration_rows(random, shape, query, number, documents)]


def _iteration_rows(random: Random, shape: Shape, query: str, number: int | str, documents: list[str]) -> list[RunRow]:
    size = random.randint(0, shape.results)
    docs = [random.choice(documents) for _ in range(size)]
    ranks: list[int] = []
    for _ in docs:
        ranks.append((ranks[-1] if ranks else 0) + random.choice((1, 1, 1, 3)))
    scores = [float(2 * size - place) for place in range(size)]
    if not shape.score_follows_rank:
        random.shuffle(scores)
    rows = [RunRow(query, number, *fields) for fields in zip(docs, ranks, scores, strict=True)]
    if not docs or random.randint(0, 9) == 0:
        rows.append(RunRow(query, number, EMPTY, random.choice((0, 0, 1, 9)), random.choice((0.0, 0.0, 77.5))))
    return rows


def _judgments(random: Random, shape: Shape, query: str, documents: list[str]) -> list[QrelRow]:
    gains: tuple[float, ...] = (*WHOLE, *FRACTIONAL) if shape.fractional else WHOLE
    pool = [doc for doc in documents if random.randint(0, 3)] or documents[:1]
    pool += [f"u{n}" for n in range(random.randint(0, 2))]  # judged, and no run has it
    rows = _labels(random, shape, query, pool, gains)
    return rows + [row for row in rows if random.randint(0, 15) == 0]  # said twice, and the same: one judgment


def _labels(random: Random, shape: Shape, query: str, pool: list[str], gains: tuple[float, ...]) -> list[QrelRow]:
    if not shape.by_iteration:
        return [QrelRow(query, "0", doc, random.choice(gains)) for doc in pool]
    rows: list[QrelRow] = []
    for doc in pool:
        columns = [random.choice(("0", "Q0")), *map(str, range(1, shape.iterations + 3))]
        chosen = [column for column in columns if random.randint(0, 2) == 0] or columns[:1]
        rows += [QrelRow(query, column, doc, random.choice(gains)) for column in chosen]
    return rows


# --- TREC text --------------------------------------------------------------------------------------------------------


def run_text(rows: Iterable[RunRow], tag: str = "random") -> str:
    """`query_id iteration doc_id rank score tag`."""
    return "".join(f"{q} {i} {EMPTY if doc is None else doc} {rank} {score} {tag}\n" for q, i, doc, rank, score in rows)


def qrels_text(rows: Iterable[QrelRow]) -> str:
    """`query_id iteration doc_id relevance`; a fraction is written as the float nearest to it."""
    return "".join(f"{q} {i} {doc} {_number(relevance)}\n" for q, i, doc, relevance in rows)


def _number(relevance: Fraction | float | int) -> str:
    return str(relevance) if isinstance(relevance, int) else repr(float(relevance))


def write_case(case: Case, folder: Path) -> tuple[Path, Path]:
    """`random.run` and `qrels.txt` in the folder."""
    run, qrels = folder / "random.run", folder / "qrels.txt"
    run.write_text(run_text(case.run), encoding="utf-8")
    qrels.write_text(qrels_text(case.qrels), encoding="utf-8")
    return run, qrels


def read_run_text(text: str) -> list[RunRow]:
    """The rows of a well-formed TREC run."""
    fields = [line.split() for line in text.splitlines() if line.strip()]
    return [RunRow(q, i, doc, int(rank), float(score)) for q, i, doc, rank, score, _ in fields]


def read_qrels_text(text: str) -> list[QrelRow]:
    """The rows of well-formed TREC qrels."""
    fields = [line.split() for line in text.splitlines() if line.strip()]
    return [QrelRow(q, i, doc, float(relevance)) for q, i, doc, relevance in fields]
