"""A brute-force oracle for the good-gain measures: from the definitions, slow, exact, and independent of goodgain.

Every number is a `fractions.Fraction`. Gains given as floats are taken at their exact binary value. The discount
w(k) = 1/log2(k+1) is irrational for most k: it is a fraction of a 60-digit decimal (exact where k+1 is a power of two),
so that a result is off by less than 1e-50. Nothing is cumulative, cached or vectorised: each value is computed from the
rows by the sentence that defines it.

Input: a run is a list of `RunRow` in any order, a qrels a list of `QrelRow`. Place in the list breaks ties of rank.
Pure Python: no goodgain, no polars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

EMPTY = "-"
CEILING = 100  # of IterationsForAllGoodResults
LARGEST_GAP = 10_000


class RunRow(NamedTuple):
    query_id: str
    iteration: int | str
    doc_id: str | None  # "-" or None: the iteration searched and got nothing
    rank: float
    score: float = 0.0


class QrelRow(NamedTuple):
    query_id: str
    iteration: int | str  # column 2, whatever it holds
    doc_id: str
    relevance: Fraction | float | int


class Line(NamedTuple):
    """One row of the ledger."""

    R: int
    UR: int
    Dup: int
    GR: int
    G: Fraction
    Unjudged: int


class Pool(NamedTuple):
    N: int
    GoodPool: int
    GainPool: Fraction


class Iteration(NamedTuple):
    number: int | None  # as in the run file; None where column 2 holds a word
    docs: list[str]  # every occurrence, in order


NOTHING = Line(0, 0, 0, 0, Fraction(0), 0)

# --- run: rows -> iterations ------------------------------------------------------------------------------------------


def whole_number(column_2: int | str) -> int | None:
    """The non-negative integer in column 2, or None."""
    return int(column_2) if re.fullmatch("[0-9]+", str(column_2)) else None


def iterations(run: Iterable[RunRow], *, gaps: str | None = None, first: int = 1) -> dict[str, list[Iteration]]:
    """query -> its iterations 1..N, in order; `gaps="empty"`: those missing from `first` on are empty iterations."""
    rows = list(run)
    return {q: _of_query(q, [r for r in rows if r.query_id == q], gaps, first) for q in {r.query_id for r in rows}}


def _of_query(query: str, rows: list[RunRow], gaps: str | None, first: int) -> list[Iteration]:
    words = {str(r.iteration) for r in rows}
    numbers = {whole_number(w) for w in words}
    if None in numbers:
        if len(words) > 1:
            raise ValueError(f"query {query}: column 2 holds {sorted(words)}")
        return [Iteration(first, _in_order(rows))]  # a classic run: its one search is the first, for labels too

    present = sorted(n for n in numbers if n is not None)
    if gaps == "empty":
        if present[0] < first:
            raise ValueError(f"query {query}: iteration {present[0]} is below first={first}")
        for before, after in zip([first - 1, *present], present, strict=False):
            if after - before - 1 > LARGEST_GAP:
                raise ValueError(f"query {query}: gap between {before} and {after}")
        present = list(range(first, present[-1] + 1))

    return [Iteration(n, _in_order([r for r in rows if whole_number(r.iteration) == n])) for n in present]


def _in_order(rows: list[RunRow]) -> list[str]:
    """Rank, then place in the list (sorted is stable); rows that say "nothing" are no results."""
    return [r.doc_id for r in sorted(rows, key=lambda r: r.rank) if r.doc_id is not None and r.doc_id != EMPTY]


# --- qrels: rows -> labels --------------------------------------------------------------------------------------------

Labels = dict[str, dict[int | None, Fraction]]  # document -> (iteration number in the run file, or None = any) -> label


def labels_of(qrels: Iterable[QrelRow], labels: str | None = None) -> dict[str, Labels]:
    """query -> document -> its labels; two different ones for one (query, document, iteration) are an error."""
    if labels not in (None, "iteration"):
        raise ValueError(labels)
    table: dict[str, Labels] = {}
    for row in qrels:
        number = whole_number(row.iteration) if labels == "iteration" else None
        where = table.setdefault(row.query_id, {}).setdefault(row.doc_id, {})
        relevance = Fraction(row.relevance)
        if where.setdefault(number or None, relevance) != relevance:
            raise ValueError(f"two labels for {row.query_id} {row.doc_id}")
    return table


def label_at(labels: Labels, doc: str, number: int | None) -> Fraction | None:
    """The label of an occurrence at that iteration; None = unjudged."""
    of_doc = labels.get(doc, {})
    return of_doc[number] if number in of_doc else of_doc.get(None)


# --- the two tables ---------------------------------------------------------------------------------------------------


class Tables(NamedTuple):
    ledger: dict[tuple[str, int], Line]  # every query of the run, judged or not
    pools: dict[str, Pool]  # every query of the qrels
    good: dict[str, list[Fraction]]  # the labels of the good documents of every query of the qrels, the largest first

    def at(self, query: str, i: int) -> Line:
        """The ledger continues with empty rows."""
        return self.ledger.get((query, i), NOTHING)


def count(
    run: Iterable[RunRow],
    qrels: Iterable[QrelRow],
    *,
    rel: Fraction | float | int = 2,
    labels: str | None = None,
    gaps: str | None = None,
    first: int = 1,
) -> Tables:
    """Ledger and pools for one threshold."""
    threshold = Fraction(rel)
    if threshold <= 0:
        raise ValueError("rel must be > 0")
    iterations_of = iterations(run, gaps=gaps, first=first)
    judged = labels_of(qrels, labels)
    ledger = {}
    for query, steps in iterations_of.items():
        for i in range(1, len(steps) + 1):
            ledger[query, i] = _line(steps, i, judged.get(query, {}), threshold)
    pools, all_good = {}, {}

    for query, documents in judged.items():
        best = [max(of_doc.values()) for of_doc in documents.values()]
        good = [label for label in best if label >= threshold]
        pools[query] = Pool(len(iterations_of.get(query, [])), len(good), sum(good, Fraction(0)))
        all_good[query] = sorted(good, reverse=True)

    return Tables(ledger, pools, all_good)


def _line(steps: Sequence[Iteration], i: int, labels: Labels, threshold: Fraction) -> Line:
    now = steps[i - 1]
    earlier = {doc for step in steps[: i - 1] for doc in step.docs}
    new = set(now.docs) - earlier
    labels_of_new = [label_at(labels, doc, now.number) for doc in new]
    good = [label for label in labels_of_new if label is not None and label >= threshold]
    return Line(
        R=len(now.docs),
        UR=len(new),
        Dup=len(now.docs) - len(new),
        GR=len(good),
        G=sum(good, Fraction(0)),
        Unjudged=sum(label is None for label in labels_of_new),
    )


# --- measures ---------------------------------------------------------------------------------------------------------


def w(k: int) -> Fraction:
    """The discount 1/log2(k+1)."""
    exponent = (k + 1).bit_length() - 1
    if 2**exponent == k + 1:
        return Fraction(1, exponent)
    with localcontext() as context:
        context.prec = 60
        return Fraction(Decimal(2).ln() / Decimal(k + 1).ln())


def _ratio(part: Fraction | int, whole: Fraction | int) -> Fraction:
    return Fraction(part) / Fraction(whole) if whole else Fraction(0)


def _average(line: Line) -> Fraction:
    return _ratio(line.G, line.R)


# name -> value from the rows 1..i of the query (i = len(rows)) and its pool
CUMULATIVE: Mapping[str, Callable[[list[Line], Pool], Fraction]] = {
    "CG": lambda rows, _: sum((r.G for r in rows), Fraction(0)),
    "RG": lambda rows, _: _ratio(sum(r.G for r in rows), len(rows)),
    "DCGG": lambda rows, _: sum((w(k) * r.G for k, r in enumerate(rows, 1)), Fraction(0)),
    "DRG": lambda rows, _: _ratio(sum(w(k) * r.G for k, r in enumerate(rows, 1)), len(rows)),
    "RAG": lambda rows, _: _ratio(sum(_average(r) for r in rows), len(rows)),
    "DRAG": lambda rows, _: _ratio(sum(w(k) * _average(r) for k, r in enumerate(rows, 1)), len(rows)),
    "SRE": lambda rows, _: _ratio(sum(r.GR for r in rows), sum(r.R for r in rows)),
    "SRR": lambda rows, _: _ratio(sum(r.Dup for r in rows), sum(r.R for r in rows)),
    "nCG": lambda rows, pool: _ratio(sum(r.G for r in rows), pool.GainPool),
    "nDCGG": lambda rows, pool: _ratio(sum(w(k) * r.G for k, r in enumerate(rows, 1)), pool.GainPool),
    "AllGood": lambda rows, pool: Fraction(0 < pool.GoodPool == sum(r.GR for r in rows)),
    "EvidenceRecall": lambda rows, pool: _ratio(sum(r.GR for r in rows), pool.GoodPool),
    "SearchPrecision": lambda rows, _: _ratio(sum(r.GR for r in rows), sum(r.R for r in rows)),
    "SearchGain": lambda rows, pool: _ratio(sum(r.GR for r in rows), pool.GoodPool * len(rows)),
    "NoProgress": lambda rows, pool: _ratio(
        sum(r.GR == 0 and sum(b.GR for b in rows[:k]) < pool.GoodPool for k, r in enumerate(rows[: pool.N])),
        min(len(rows), pool.N),
    ),
    "NumResults": lambda rows, _: Fraction(sum(r.R for r in rows)),
    "NumUnique": lambda rows, _: Fraction(sum(r.UR for r in rows)),
    "NumGood": lambda rows, _: Fraction(sum(r.GR for r in rows)),
    "NumDup": lambda rows, _: Fraction(sum(r.Dup for r in rows)),
    "NumUnjudged": lambda rows, _: Fraction(sum(r.Unjudged for r in rows)),
}
ALONE = ("AvgGain",)  # the value of iteration i alone: @i is obligatory
WITHOUT_CUTOFF = ("NumIter", "IterationsForAllGoodResults", "OverSearch")
NULL_WITHOUT_GOOD = ("NoProgress", "OverSearch")  # nor has a query without a search a value
REL_1 = ("EvidenceRecall", "SearchPrecision", "SearchGain")  # good from 1 on, unless said otherwise
NAMES = (*CUMULATIVE, *ALONE, *WITHOUT_CUTOFF)


def value(
    tables: Tables, query: str, name: str, *, at: int | None = None, pool: str = "judged", per: int | None = None
) -> Fraction | None:
    """The measure `name` of one query of the qrels, None for null; without `at`, its value at the query's own N."""
    if name not in NAMES:
        raise ValueError(f"no such measure: {name}")
    if at is not None and (at < 1 or name in WITHOUT_CUTOFF):
        raise ValueError(f"{name}@{at}")
    pools = tables.pools[query]
    if name in NULL_WITHOUT_GOOD and not (pools.N and pools.GoodPool):
        return None
    if name == "OverSearch":
        last_new = max((k for k in range(1, pools.N + 1) if tables.at(query, k).GR), default=0)
        return Fraction(pools.N - last_new, pools.N)
    if name == "NumIter":
        return Fraction(pools.N)
    if name == "IterationsForAllGoodResults":
        return Fraction(min(_all_good(tables, query, pool), CEILING))
    if name in ALONE:
        if at is None:
            raise ValueError(f"{name} needs @i")
        return _average(tables.at(query, at))

    last = pools.N if at is None else at
    rows = [tables.at(query, k) for k in range(1, last + 1)]
    if per is not None:
        return _ratio(CUMULATIVE["DCGG"](rows, pools), _ideal(tables.good[query], per, last))
    return CUMULATIVE[name](rows, pools)


def _ideal(good: list[Fraction], per: int, searches: int) -> Fraction:
    """The DCGG of searches that each take the `per` largest labels that are left."""
    left, gain = list(good), Fraction(0)
    for k in range(1, searches + 1):
        for _ in range(min(per, len(left))):
            best = max(left)
            left.remove(best)
            gain += w(k) * best
    return gain


def _all_good(tables: Tables, query: str, pool: str) -> int:
    n, wanted, _ = tables.pools[query]
    if pool == "judged":
        if wanted == 0:
            return 0
        ks = (k for k in range(1, n + 1) if sum(tables.at(query, j).GR for j in range(1, k + 1)) == wanted)
        return min(ks, default=CEILING)
    if pool == "retrieved":
        return max((k for k in range(1, n + 1) if tables.at(query, k).GR), default=CEILING)
    raise ValueError(f"pool={pool!r}")


class Parsed(NamedTuple):
    name: str
    at: int | None
    rel: Fraction
    pool: str
    per: int | None


def parse(measure: str) -> Parsed:
    """`SRE(rel=3)@5`, `IterationsForAllGoodResults(pool='retrieved')`."""
    match = re.fullmatch(r"(\w+)(?:\(([^)]*)\))?(?:@([0-9]+))?", measure)
    if match is None:
        raise ValueError(measure)
    options = dict(part.strip().split("=") for part in match[2].split(",")) if match[2] else {}
    rel = Fraction(float(options.pop("rel", "1" if match[1] in REL_1 else "2")))
    pool = options.pop("pool", "judged").strip("'\"")
    per = options.pop("per", None)
    if options:
        raise ValueError(measure)
    return Parsed(match[1], int(match[3]) if match[3] else None, rel, pool, int(per) if per else None)


def per_query(
    measure: str,
    run: Iterable[RunRow],
    qrels: Iterable[QrelRow],
    *,
    labels: str | None = None,
    gaps: str | None = None,
    first: int = 1,
) -> dict[str, Fraction | None]:
    """The measure of every query of the qrels, searched or not."""
    name, at, rel, pool, per = parse(measure)
    tables = count(run, qrels, rel=rel, labels=labels, gaps=gaps, first=first)
    return {query: value(tables, query, name, at=at, pool=pool, per=per) for query in sorted(tables.pools)}


def mean(values: Mapping[str, Fraction | None]) -> Fraction | None:
    """The mean over all queries of the qrels that have a value; None without any."""
    numbers = [value for value in values.values() if value is not None]
    return sum(numbers, Fraction(0)) / len(numbers) if numbers else None


def to_float(value: Fraction | float | None) -> float:
    """The value as a float, NaN for null: pytest compares numbers."""
    return math.nan if value is None else float(value)
