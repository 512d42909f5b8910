"""What the first sentence of explain claims is recomputed from the rows: counts, directions, main cause, iterations.

The page lists the main cause of each query: it is recomputed too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from fractions import Fraction
from random import Random
from typing import NamedTuple

import pytest

import goodgain as gg
from goodgain.analysis.explaining.accounts import Account
from goodgain.analysis.explaining.explanation_screens import build_screen
from goodgain.analysis.explaining.explanation_sentences import find_main_causes
from goodgain.files.tables import Line
from tests.analysis.explaining.test_explanation import expected_documents, first_place
from tests.support import oracle
from tests.support.counts import how_many
from tests.support.oracle import QrelRow, RunRow
from tests.support.random_runs import Case, Shape, make_case
from tests.support.tables import no_notices, qrels_frame, run_frame

RATES = {"SRE": "NumGood", "RG": "CG", "DRG": "DCGG", "SRR": "NumDup"}
#: Rate with causes of a query -> what it is divided by.
DIVISORS = {"SRE": "results", "RG": "iterations", "DRG": "iterations"}
MEASURES = (
    *("CG@2", "nCG", "nDCGG@3", "SRE", "SRE@2", "RG", "RG@2", "DRG", "SRR", "SRR@2"),
    *("CG(rel=1)@2", "nCG(rel=3)", "SRE(rel=1)@2", "RG(rel=3)"),
)
#: (who counts the documents, cause) -> the sentence on it.
CAUSES = {
    (one, cause): said.format(one=one, other=other, n="{n}", at="{at}")
    for one, other in (("base", "new"), ("new", "base"))
    for cause, said in {
        "not_retrieved": "{other} never retrieved {n}",
        "absent": "{other} has no row where {one} found {n}",
        "stopped_before": "{other} stopped before {one} found {n}",
        "later": "{other} found {n} only after iteration {at}",
        "earlier": "{other} found {n} only after iteration {at}",
        "judged_differently": "{other} found {n} where the label is lower or missing",
    }.items()
} | {
    ("both", "later"): "new found {n} later",
    ("both", "earlier"): "new found {n} earlier",
    ("both", "judged_differently"): "both found {n}, with different labels",
}


class Change(NamedTuple):
    """The difference of a query, and what numerator and denominator add; None where a denominator is 0."""

    difference: Fraction
    numerator: Fraction | None
    denominator: Fraction | None
    ends: tuple[Fraction, Fraction, Fraction, Fraction]  # a, b, c, d of a/b -> c/d


def find_changes(
    measure: str, sides: list[list[RunRow]], qrels: list[QrelRow], labels: str | None
) -> dict[str, Change]:
    name, at, rel, *_ = oracle.parse(measure)
    tables = [oracle.count(rows, qrels, rel=rel, labels=labels) for rows in sides]
    changes = {}

    for query in tables[0].pools:
        base, new = (oracle.value(table, query, name, at=at) for table in tables)
        if name not in RATES:
            changes[query] = Change(new - base, None, None, (base, Fraction(1), new, Fraction(1)))
            continue
        a, c = (oracle.value(table, query, RATES[name], at=at) for table in tables)
        if name.startswith("S"):
            b, d = (oracle.value(table, query, "NumResults", at=at) for table in tables)
        else:
            b, d = (Fraction(at or table.pools[query].N) for table in tables)
        if name == "SRR" and not (b and d):  # no value without results, as in compare
            continue
        above = below = None
        if b and d:
            above, below = (c - a) * (1 / b + 1 / d) / 2, (1 / d - 1 / b) * (a + c) / 2
            assert above + below == new - base
        changes[query] = Change(new - base, above, below, (a, b, c, d))

    return changes


def is_shown(shown: str, value: Fraction | float) -> bool:
    return float(shown) == pytest.approx(float(value), abs=0.00006)


def check_cause(said: str, measure: str, case: Case, other: Case, changes: dict[str, Change]) -> None:
    number = len(changes)
    total = sum((change.difference for change in changes.values()), Fraction(0))
    of_part = {
        "numerator": {query: change.numerator for query, change in changes.items() if change.numerator is not None},
        "denominator": {
            query: change.denominator for query, change in changes.items() if change.denominator is not None
        },
        "none": {query: change.difference for query, change in changes.items() if change.numerator is None},
    }
    is_rate = oracle.parse(measure)[0] in RATES
    sums = {part: sum(of.values(), Fraction(0)) for part, of in of_part.items()}
    amount = re.search(r"\(([-+][\d.]+)( in the mean)?\)$", said)
    assert amount, said
    assert amount[2]
    assert float(amount[1]) * total >= 0, said

    if is_rate and (match := re.match(r"(\S+) ([\d.]+) → ([\d.]+) in (\d+) quer", said)):
        part = "denominator" if match[1] in ("results", "iterations") else "numerator"
        moved = {query: value for query, value in of_part[part].items() if value and value * total > 0}
        first = 1 if part == "denominator" else 0
        assert is_shown(match[2], sum(changes[query].ends[first] for query in moved))
        assert is_shown(match[3], sum(changes[query].ends[first + 2] for query in moved))
    elif is_rate and (
        match := re.match(r"(\w+) (?:has no row|has no results|got no results)[\w ]*? in (\d+) quer", said)
    ):
        part = "none"
        moved = {query: value for query, value in of_part[part].items() if value * total > 0}
        assert all(changes[query].ends[1 if match[1] == "base" else 3] == 0 for query in moved)
        match = re.match(r"()()()(?:.*) in (\d+) quer", said)
        assert match
    else:
        check_documents(said, measure, case, other, changes, total, amount[1])
        assert not is_rate or sums["numerator"] * total > 0, said
        assert not is_rate or sums["numerator"] * total == max(value * total for value in sums.values())
        return

    assert sums[part] * total == max(value * total for value in sums.values()), said
    assert int(match[4]) == len(moved)
    assert is_shown(amount[1], sum(moved.values(), Fraction(0)) / number)


def expect_amounts(measure: str, case: Case, other: Case) -> dict[tuple[str, str], tuple[Fraction, str | None, str]]:
    """(query, good document) -> its amount of the measure or of the numerator of a rate, its cause, and who counts it."""
    name, at, rel, *_ = oracle.parse(measure)
    numerator = f"{RATES.get(name, name)}(rel={rel}){f'@{at}' if at else ''}"
    return expected_documents(numerator, case.run, other.run, case.qrels, labels=case.labels)


def check_documents(
    said: str, measure: str, case: Case, other: Case, changes: dict[str, Change], total: Fraction, amount: str
) -> None:
    name, at, *_ = oracle.parse(measure)
    is_rate = name in RATES
    wanted = expect_amounts(measure, case, other)
    groups: defaultdict[tuple[str, str], list[Fraction]] = defaultdict(list)

    for (query, _), (worth, cause, by) in wanted.items():
        _, b, _, d = changes[query].ends
        if cause is not None and (not is_rate or (b and d)):
            weight = ((1 / b + 1 / d) / 2 if is_rate else Fraction(1)) / len(changes)
            groups[by, cause].append(worth * weight)

    sums = {group: sum(of, Fraction(0)) for group, of in groups.items()}
    largest = max(value * total for value in sums.values())
    told = [
        group
        for group, of in groups.items()
        if said.startswith(CAUSES[group].format(n=f"{len(of)} good document{'s' * (len(of) > 1)}", at=at) + " (")
    ]
    assert any(sums[group] * total == largest > 0 and is_shown(amount, sums[group]) for group in told), (said, sums)


def expect_causes(measure: str, case: Case, other: Case) -> dict[str, set[str | None]]:
    """Query -> its main cause; both where two causes add the same."""
    name, at, *_ = oracle.parse(measure)
    of_documents: defaultdict[str, defaultdict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for (query, _), (amount, cause, by) in expect_amounts(measure, case, other).items():
        if cause is not None:
            of_documents[query][CAUSES[by, cause].format(n="some good documents", at=at)] += amount
    expected: dict[str, set[str | None]] = {}

    for query, change in find_changes(measure, [case.run, other.run], case.qrels, case.labels).items():
        _, before, _, after = change.ends
        sign = 1 if change.difference > 0 else -1
        added: dict[str, Fraction] = {}
        if name in RATES and change.numerator is None:
            has_row = query in {row.query_id for row in (case if sign > 0 else other).run}
            counts = (
                "has no row"
                if not has_row
                else "never searched"
                if DIVISORS[name] == "iterations"
                else f"got no results{f' up to iteration {at}' if at else ''}"
            )
            added = {f"{'base' if sign > 0 else 'new'} {counts}": abs(change.difference)}
        else:
            whole = change.difference if change.numerator is None else change.numerator
            largest = max((amount * sign for amount in of_documents[query].values()), default=Fraction(0))
            added = {said: whole * sign for said, of in of_documents[query].items() if of * sign == largest > 0}
            added[f"{'more' if after > before else 'fewer'} {DIVISORS.get(name)}"] = (change.denominator or 0) * sign
        most = max(added.values())
        expected[query] = {said for said, of in added.items() if of == most} if change.difference else {None}

    return expected


def check_query_causes(explained: gg.Explanation, measure: str, case: Case, other: Case) -> set[str]:
    """Check the cause of each query, as the page lists it; return those without names and numbers."""
    causes = find_main_causes(Account(explained), explained.parts[measure])
    rows = dict(causes.select("query_id", "cause").iter_rows())
    for query, expected in expect_causes(measure, case, other).items():
        assert rows[query] in expected, (measure, query, expected)
    return {re.sub(r"base|new|\d+", "", cause) for cause in rows.values() if cause}


def check_sentence(said: str, measure: str, case: Case, other: Case) -> bool:
    changes = find_changes(measure, [case.run, other.run], case.qrels, case.labels)
    sign, rel = -1 if measure.startswith("SRR") else 1, oracle.parse(measure)[2]
    gains = [sign * change.difference for change in changes.values()]
    if not any(gains):
        assert ("are equal in" if gains else "no query has a value in both") in said
        return False
    head = re.match(
        r"\S+: new has (a higher|a lower|the same|nearly the same) mean (?:than|as) base, \S+ → \S+ \((\S+)\); "
        r"new is worse in (\d+) of (\d+) quer\w+ and better in (\d+)\.",
        said,
    )
    assert head, said
    assert [int(head[k]) for k in (3, 4, 5)] == [sum(g < 0 for g in gains), len(gains), sum(g > 0 for g in gains)]

    total = sum((change.difference for change in changes.values()), Fraction(0))
    assert is_shown(head[2], total / len(gains))
    side = "the same" if not total else "a higher" if total > 0 else "a lower"
    assert head[1] == side or (head[1] == "nearly the same" and 0 < abs(total / len(gains)) < 0.00006), said
    main = re.search(r"Main cause: (.*?\(\S+?(?: in the mean)?\))\. ", said)
    assert bool(main) == (abs(total) > 1e-12), said

    if main:
        check_cause(main[1], measure, case, other, changes)
    most = re.search(r"(\w+) (lost|improved|worsened) most \((\S+)\)", said)
    assert most, said
    assert is_shown(most[3], changes[most[1]].difference)
    assert sign * changes[most[1]].difference == (min(gains) if min(gains) < 0 else max(gains))

    for found in re.finditer(r"At iteration (\d+) base (.*?); new (.*?)\.", said):
        for side, told in zip((case.run, other.run), (found[2], found[3]), strict=True):
            line = oracle.count(side, case.qrels, rel=rel, labels=case.labels).at(most[1], int(found[1]))
            good = re.match(r"found (\d+) good", told)
            assert (int(good[1]) if good else 0) == line.GR, said
            assert (line.R == 0) or "got no results" not in told
            assert "only results that it had" not in told or (line.UR == 0 < line.R)
        if "not the same" in found[3]:
            sets = [
                {
                    doc
                    for doc, of in oracle.labels_of(case.qrels, case.labels).get(most[1], {}).items()
                    if (steps := oracle.iterations(side).get(most[1], []))
                    and first_place(steps, doc) == int(found[1])
                    and (oracle.label_at({doc: of}, doc, steps[int(found[1]) - 1].number) or 0) >= rel
                }
                for side in (case.run, other.run)
            ]
            assert sets[0] != sets[1], said

    return bool(main)


@pytest.mark.parametrize("by_iteration", [False, True], ids=["one label a document", "labels by iteration"])
def test_random_pairs_give_no_false_sentence(by_iteration: bool) -> None:
    causes, of_queries = 0, set[str]()
    for seed in range(how_many(12, full=75)):
        random = Random(seed)
        shape = Shape(by_iteration=by_iteration, fractional=seed % 2 == 0, words=not by_iteration)
        case, other = make_case(random, shape), make_case(random, shape)
        both = {row.query_id for row in case.run} & {row.query_id for row in other.run}
        if not both & {row.query_id for row in case.qrels}:
            continue
        with no_notices():
            judged = gg.read_qrels(qrels_frame(case.qrels), labels=case.labels)
            measures = random.sample(MEASURES, 3)  # of two thresholds, or of one
            explained = gg.explain(judged, run_frame(case.run), run_frame(other.run), measures)
            texts = [part.text for part in build_screen(explained) if isinstance(part, Line)]
            for measure in measures:
                (first,) = [
                    one for one in texts if re.match(rf"{re.escape(measure)}: (new has|base and new|no query)", one)
                ]
                causes += check_sentence(first, measure, case, other)
                if not measure.startswith("SRR"):  # the page does not explain it
                    of_queries |= check_query_causes(explained, measure, case, other)

    assert causes > 8 and len(of_queries) > 4
