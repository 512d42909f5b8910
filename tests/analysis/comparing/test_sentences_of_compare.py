"""What `compare` says is true: verdicts, queries, means and every number in its notes, beside a count by hand over random runs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import combinations, product
from random import Random
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from scipy.stats import nct, t

import goodgain as gg
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.schema import EMPTY_DOC
from tests.support.counts import how_many

#: query -> its searches, each a list of documents: none of a query that never searched. Other queries are absent.
Searches = dict[str, list[list[str]]]


_PAIR = ("measure", "system", "against")


class Inputs(NamedTuple):
    measures: list[str]
    qrels: dict[str, dict[str, int]]
    systems: dict[str, list[Searches]]
    groups: dict[str, str]
    alpha: float


def make_inputs(seed: int) -> Inputs:
    random = np.random.default_rng(seed)
    queries = [f"q{k:02}" for k in range(random.integers(2, 12))]
    docs = [f"d{k}" for k in range(6)]
    qrels = {query: {doc: int(random.choice([0, 0, 1, 2, 3])) for doc in docs[:5]} for query in queries}
    systems: dict[str, list[Searches]] = {}

    for name in "ABCD"[: random.integers(2, 5)]:
        broken = random.choice([0.0, 0.0, 0.3, 0.7, 1.0])
        systems[name] = [
            {
                query: make_searches(random, docs, broken) if random.random() > broken / 4 or query == "q00" else []
                for query in queries
                if random.random() > broken / 4 or query == "q00"
            }
            for _ in range(random.choice([1, 1, 2, 3]))
        ]

    groups = {query: str(random.choice(["x", "y"])) for query in queries}
    measures = [str(measure) for measure in random.choice([*BY_HAND], 5, replace=False)]
    return Inputs(measures, qrels, systems, groups, float(random.choice([0.05, 0.05, 0.2])))


def make_searches(random: Any, docs: list[str], broken: float) -> list[list[str]]:
    number = int(random.integers(1, 4))
    if random.random() < broken:
        return [[] for _ in range(number)]
    return [
        [] if random.random() < 0.2 else [str(doc) for doc in random.permutation(docs)[: random.integers(1, 5)]]
        for _ in range(number)
    ]


def write_frame(searches: Searches) -> pl.DataFrame:
    rows = [
        (query, iteration, doc, rank)
        for query, search in searches.items()
        for iteration, docs in (enumerate(search, 1) if search else [(None, [])])
        for rank, doc in enumerate(docs or [EMPTY_DOC], 1)
    ]
    columns = {"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String, "rank": pl.Int64}
    return pl.DataFrame(rows, schema=columns, orient="row")


# The measures by hand: the value of one query of one run, None without one.


def up_to(of: list[list[str]], i: int | None) -> list[str]:
    return [doc for docs in (of if i is None else of[:i]) for doc in docs]


def share_repeated(i: int | None) -> Callable[..., float | None]:
    def compute(of: list[list[str]], labels: dict[str, int]) -> float | None:
        found = up_to(of, i)
        return (len(found) - len(set(found))) / len(found) if found else None

    return compute


def count_repeated(i: int | None) -> Callable[..., float | None]:
    return lambda of, labels: float(len(up_to(of, i)) - len(set(up_to(of, i))))


def share_unjudged(of: list[list[str]], labels: dict[str, int]) -> float | None:
    seen = list(dict.fromkeys(up_to(of, None)))[:4]
    return sum(doc not in labels for doc in seen) / 4 if seen else None


def share_fallen_out(of: list[list[str]], labels: dict[str, int]) -> float | None:
    seen, bad = list(dict.fromkeys(up_to(of, None)))[:4], sum(label < 1 for label in labels.values())
    return (sum(labels.get(doc, 1) < 1 for doc in seen) / bad if bad else 0.0) if seen else None


def sum_gain(i: int) -> Callable[..., float | None]:
    return lambda of, labels: float(sum(gain for doc in set(up_to(of, i)) if (gain := labels.get(doc, 0)) >= 2))


def share_good(of: list[list[str]], labels: dict[str, int]) -> float | None:
    found = up_to(of, 2)
    return sum(labels.get(doc, 0) >= 2 for doc in set(found)) / len(found) if found else 0.0


BY_HAND: dict[str, tuple[Callable[..., float | None], bool, int | None]] = {  # whether lower is better; its iteration
    "SRR@2": (share_repeated(2), True, 2),
    "SRR": (share_repeated(None), True, None),
    "Unjudged@4": (share_unjudged, True, None),
    "Fallout@4": (share_fallen_out, True, None),
    "CG@2": (sum_gain(2), False, None),
    "SRE@2": (share_good, False, None),
    "NumDup@1": (count_repeated(1), True, 1),
    "NumDup": (count_repeated(None), True, None),
    "NumResults": (lambda of, labels: float(len(up_to(of, None))), True, None),
    "NumIter": (lambda of, labels: float(len(of)), True, None),
}


def average(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def table_by_hand(given: Inputs, *, missing: str = "zero") -> dict[str, dict[str, dict[str, float | None]]]:
    """Measure -> system -> query -> its value, the mean over the runs that have one."""

    def has(run: Searches, query: str) -> bool:
        return missing == "zero" or query in run

    return {
        measure: {
            name: {
                q: average([compute(run.get(q, []), labels) for run in runs if has(run, q)])
                for q, labels in given.qrels.items()
            }
            for name, runs in given.systems.items()
        }
        for measure, (compute, *_) in BY_HAND.items()
    }


def find_p(differences: list[float]) -> float:
    """The exact two-sided p of the randomisation test: all ways to set the signs."""
    signs = np.array([*product((1, -1), repeat=len(differences))])
    sums = np.abs(signs @ np.array(differences))
    return float((sums >= abs(sum(differences)) - 1e-9).mean())


def correct(p: list[float]) -> list[float]:
    found, reached = [0.0] * len(p), 0.0
    for rank, k in enumerate(sorted(range(len(p)), key=lambda k: p[k])):
        reached = max(reached, min(1.0, (len(p) - rank) * p[k]))
        found[k] = reached
    return found


def find_power(difference: float, spread: float, n: int, level: float) -> float:
    bound, shift = float(t.ppf(1 - level / 2, n - 1)), difference * n**0.5 / spread
    return float(nct.sf(bound, n - 1, shift) + np.nan_to_num(nct.cdf(-bound, n - 1, shift)))  # SciPy: NaN for far tails


def check_rows(rows: pl.DataFrame, table: Any, queries: list[list[str]], given: Inputs) -> None:
    """Check rows of one measure: each has its own queries."""
    (measure,) = rows["measure"].unique()
    lower, values = BY_HAND[measure][1], table[measure]
    tests = []
    for row, query in zip(rows.iter_rows(named=True), queries, strict=True):
        sides = [values[row[side]] for side in ("system", "against")]
        both = [[of[q] for of in sides] for q in query if all(of[q] is not None for of in sides)]
        tests.append([a - b if abs(a - b) > 1e-12 else 0.0 for a, b in both])

    holm = iter(correct([find_p(test) for test in tests if test]))
    for row, differences, query in zip(rows.iter_rows(named=True), tests, queries, strict=True):
        assert row["queries"] == len(differences)
        if not differences:
            lacking = any(all(values[row[side]][q] is None for q in query) for side in ("system", "against"))
            assert row["verdict"] == ("no results" if lacking else None)
            assert (row["mean"], row["difference"], row["p_randomisation"], row["significant"]) == (
                None,
                None,
                None,
                False,
            )
            continue
        p, mean = next(holm), sum(differences) / len(differences)
        assert row["p_randomisation_holm"] == pytest.approx(p)
        assert row["difference"] == pytest.approx(mean, abs=1e-12)
        wins = sum(d < 0 if lower else d > 0 for d in differences)
        losses = sum(d > 0 if lower else d < 0 for d in differences)
        assert (row["wins"], row["losses"]) == (wins, losses)
        is_better = (mean < 0) == lower
        expected = (
            "equal" if not wins + losses else ("better" if is_better else "worse") if p <= given.alpha else "unclear"
        )
        assert row["verdict"] == expected


def check_lost(comparison: gg.Comparison, query_ids_of: dict[str, list[str]], end: str, fact: str, rule: str) -> None:
    """Check the notes on queries that runs lack: a note for each of up to three runs, or one note with all numbers."""
    losers = {name: query_ids for name, query_ids in query_ids_of.items() if query_ids}
    joined = [note for note in comparison.notes if note.startswith(rule)]
    assert len(joined) == (len(losers) > 3)
    for note in joined:
        figures = [f"{name} {len(query_ids)}" for name, query_ids in losers.items()]
        assert note == f"{rule}\n  {'; '.join(figures)}"

    for name in query_ids_of:
        pattern = rf"\d+ quer(y|ies) {fact.replace('{name}', re.escape(name))}:"
        notes = [note for note in comparison.notes if re.match(pattern, note)]
        query_ids = [] if joined else query_ids_of[name]
        assert len(notes) == bool(query_ids)
        for note in notes:
            assert note.startswith(f"{len(query_ids)} quer") and note.endswith(f"({end}).")
            assert f": {', '.join(sorted(query_ids)[:3])}" in note


def check_absent(found: gg.Comparison, without: gg.Comparison, given: Inputs) -> None:
    """Check the notes on queries without a search, and on the verdicts that rest on absent queries."""
    runs = [
        (f"{name} (run {k})" if len(of) > 1 else name, run)
        for name, of in given.systems.items()
        for k, run in enumerate(of, 1)
    ]

    for comparison, counted in ((found, "counted as having no results"), (without, "left out")):
        assert len({" ".join(note.split()) for note in comparison.notes}) == len(comparison.notes)
        searched = {name: [query_id for query_id in run if not run[query_id]] for name, run in runs}
        absent = {name: [query_id for query_id in given.qrels if query_id not in run] for name, run in runs}
        always = "counted as having no results"
        check_lost(comparison, searched, always, "never searched in {name}", f"Queries never searched ({always}).")
        rule = f"Queries are absent from runs, which have no row of them ({counted})."
        check_lost(comparison, absent, counted, r"\w+ absent from {name}, .*", rule)

    changed = [
        (*one[:3], one[3] or "without a verdict", other[3] or "none")
        for one, other in zip(*(of.pairs.select(*_PAIR, "verdict").rows() for of in (found, without)), strict=True)
        if one != other
    ]
    notes = [note for note in found.notes if "erdict" in note and "absent from a run" in note]
    assert len(notes) == any(q not in run for q in given.qrels for _, run in runs)
    assert not any("absent from a run" in note for note in without.notes)

    for note in notes:
        assert re.findall(r"(?:: |; )(\S+) of (\w) against (\w) is (.*?), without them ([\w ]+)", note) == changed[:3]
        match = re.search(r"; and (\d+) more", note)
        assert (int(match[1]) if match else 0) == max(len(changed) - 3, 0)
        decided = {"better", "worse"} & {*found.pairs["verdict"]}
        assert note.startswith("No verdict" if decided else "With and without") == (not changed)


def check_left_out(notes: list[str], table: Any, given: Inputs) -> None:
    """Check that the notes on queries left out and on low counts are those by hand, and no others."""
    expected = []
    for measure in given.measures:
        i = BY_HAND[measure][2]
        by = "" if i is None else f" by iteration {i}"
        lacks = {name: sum(value is None for value in of.values()) for name, of in table[measure].items()}
        if joined := ", ".join(f"{name} {n}" for name, n in lacks.items() if n):
            n = sum(any(table[measure][name][q] is None for name in given.systems) for q in given.qrels)
            noun = "1 query" if n == 1 else f"{n} queries"
            more = (
                " A pair leaves out only queries that lack a value in one of both systems."
                if len(given.systems) > 2
                else ""
            )
            expected.append(f"{measure} leaves out {noun} where a system has no results{by} ({joined}).{more}")

    for measure in (one for one in given.measures if one.startswith("Num")):
        i = BY_HAND[measure][2]
        lost = {}
        for name, runs in given.systems.items():
            less = [
                q
                for q in given.qrels
                if table[measure][name][q] == 0
                and not any(up_to(run.get(q, []), i) for run in runs)
                and any(of[q] > 0 for of in table[measure].values())
            ]
            if less:
                lost[name] = len(less)
        by = "" if i is None else f" by iteration {i}"
        if len(lost) > 3:
            figures = "; ".join(f"{name} {n}" for name, n in lost.items())
            expected.append(f"{measure}: less because it has no results{by} in some queries.\n  {figures}")
            continue
        for name, n in lost.items():
            noun = "1 query" if n == 1 else f"{n} queries"
            expected.append(f"{measure} of {name}: less because it has no results{by} in {noun}.")

    told = [note for note in notes if "leaves out" in note or ": less because" in note]
    assert told == expected


def subtract(values: dict[str, dict[str, float | None]], system: str, against: str) -> list[float]:
    sides = values[system], values[against]
    return [a - b for q in sides[0] if (a := sides[0][q]) is not None and (b := sides[1][q]) is not None]


def check_power(found: gg.Comparison, table: Any, given: Inputs) -> None:
    """Check each number of the sentence on power, and that fewer queries than it names can show nothing."""
    shown = found.detectable.rows(named=True)
    expected = []
    for row in found.pairs.filter(verdict="unclear").iter_rows(named=True):
        number = found.pairs.filter(pl.col("queries") > 0, measure=row["measure"]).height
        differences = subtract(table[row["measure"]], row["system"], row["against"])
        # Equal differences have no spread: only too few queries keep them from being significant. A level above the power
        # needs no query.
        varies = len(differences) > 1 and max(differences) - min(differences) > 1e-12
        has_few = len(differences) < find_least_queries(number, given) and abs(differences[0]) > 1e-12
        if len(differences) > 1 and (varies or has_few) and given.alpha / number < 0.8:
            expected.append((row["measure"], row["system"], row["against"]))

    assert [(known["measure"], known["system"], known["against"]) for known in shown[::2]] == expected
    for known, needed in zip(shown[::2], shown[1::2], strict=True):
        measure, system, against = known["measure"], known["system"], known["against"]
        rows = found.pairs.filter(measure=measure)
        assert known["pairs"] == rows.filter(pl.col("queries") > 0).height
        differences = subtract(table[measure], system, against)
        assert known["queries"] == len(differences)
        spread, level = float(np.std(differences, ddof=1)), given.alpha / known["pairs"]
        least = find_least_queries(known["pairs"], given)
        if known["difference"] is None:
            assert len(differences) < least
        else:
            assert find_power(known["difference"], spread, len(differences), level) == pytest.approx(0.8, abs=1e-5)
        n, difference = needed["queries"], needed["difference"]
        if not spread > 1e-12:
            assert n == least
        elif n is not None and n < 10_000:
            assert n >= least and find_power(difference, spread, n, level) >= 0.8 - 1e-9
            assert n == least or find_power(difference, spread, n - 1, level) < 0.8

    notes = [note for note in found.notes if "power 0.8" in note or note.startswith("With fewer than")]
    assert len(notes) == bool(shown)
    for note in notes:
        check_sentence(note, [*zip(shown[::2], shown[1::2], strict=True)], given)


def find_least_queries(pairs: int, given: Inputs) -> int:
    return next(n for n in range(1, 99) if pairs * 2.0 ** (1 - n) <= given.alpha)


def check_sentence(note: str, pairs: list[Any], given: Inputs) -> None:
    first = pairs[:3]
    for n, difference, measure in re.findall(
        r"(\d+) quer\w+ can show a difference of ([\d.]+) or more in (\S+?)(?: of \w against \w)?(?=;| \()", note
    ):
        assert any(
            (str(k["queries"]), f"{k['difference'] or 0:.4f}", k["measure"]) == (n, difference, measure)
            for k, _ in first
        )

    assert "takes" not in note and "suffices" not in note  # what the observed difference needs says p again
    if least := re.match(r"With fewer than (\d+) queries(?: in each of (\d+) pairs)? no", note):
        queries, number = int(least[1]), int(least[2] or 1)
        for n, significant in ((queries - 1, False), (queries, True)):
            assert (min(correct([2.0 ** (1 - n)] * number)) <= given.alpha) == significant

    if corrected := re.search(r"Holm's correction over (\d+) pairs\)", note):
        assert int(corrected[1]) == max(known["pairs"] for known, _ in first)
    if match := re.search(r"; (\d+) more difference", note):
        assert int(match[1]) == len(pairs) - 3 > 0


@pytest.mark.parametrize("detect", [None, 0.02])
def test_many_unclear_pairs_have_a_range_of_detectable_differences(detect: float | None) -> None:
    random = Random(3)
    qrels = {f"q{k}": {f"d{place}": 2 for place in range(6)} for k in range(40)}
    systems = {}
    for number in range(9):
        run = {}
        for query in qrels:
            found = [f"d{place}" for place in range(6) if random.random() < 0.5] or ["x"]
            run[query] = {doc: float(-place) for place, doc in enumerate(found)}
        systems[f"s{number}"] = run

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GoodgainNotice)
        compared = gg.compare(qrels, systems, "R@6 CG@1", detect=detect)
        further = gg.compare(qrels, systems, "R@6 CG@1 P@2 P@4 P@6", detect=detect)
    (note,) = [note for note in compared.notes if "power 0.8" in note]
    smallest = compared.detectable.rows(named=True)[::2]
    assert len(smallest) > 24

    told = re.findall(
        r"40 queries can show differences of ([\d.]+) to ([\d.]+) or more in (\S+), depending on the pair \((\d+) pairs\)",
        note,
    )
    expected = []
    for measure in ("R@6", "CG@1"):
        differences = [row["difference"] for row in smallest if row["measure"] == measure]
        ends = f"{min(differences):.4f}", f"{max(differences):.4f}"
        expected.append((*ends, measure, str(len(differences))))
    assert told == expected
    assert "more difference" not in note and "Holm's correction over 36 pairs" in note

    left_out = further.detectable.get_column("measure").n_unique() - 3
    assert left_out > 0 and any(f"; {left_out} more measures (power" in note for note in further.notes)

    takes = re.search(r"a difference of 0\.0200 takes ([\d,]+) to ([\d,]+) queries", note)
    assert (takes is not None) == (detect is not None)
    if takes is not None:
        goals = [row for row in compared.detectable.rows(named=True)[1::2] if row["measure"] == "R@6"]
        queries = [row["queries"] for row in goals]
        assert takes.groups() == (f"{min(queries):,}", f"{max(queries):,}")


@pytest.mark.parametrize("seed", range(how_many(4, full=150)))
def test_every_verdict_and_number_that_compare_gives_is_true(seed: int) -> None:
    inputs = make_inputs(seed)
    table, systems = table_by_hand(inputs), [*inputs.systems]
    runs = {name: [write_frame(run) for run in of] for name, of in inputs.systems.items()}
    groups = pl.DataFrame([*inputs.groups.items()], schema=["query_id", "group"], orient="row")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GoodgainNotice)
        # Exact tests: all signs of 11 queries are fewer than the resamples.
        options = {"alpha": inputs.alpha, "resamples": 2_050}
        comparison = gg.compare(inputs.qrels, runs, inputs.measures, groups=groups, **options)
        of_two = {name: runs[name] for name in "AB"}
        based = gg.compare(inputs.qrels, of_two, "SRR@2", baseline="A", **options)
        without = gg.compare(inputs.qrels, runs, inputs.measures, missing="absent", **options)

    for row in comparison.means.iter_rows(named=True):
        values = [value for value in table[row["measure"]][row["system"]].values() if value is not None]
        assert (row["queries"], row["mean"]) == (len(values), pytest.approx(average([*values])))
    assert comparison.groups is not None
    members = {group: [q for q, of in inputs.groups.items() if of == group] for group in inputs.groups.values()}
    pairs = [(new, old) for old, new in combinations(systems, 2)]

    for measure in inputs.measures:
        rows = comparison.pairs.filter(measure=measure)
        assert rows.select("system", "against").rows() == pairs
        check_rows(rows, table, [[*inputs.qrels]] * len(pairs), inputs)
        of_groups = comparison.groups.filter(measure=measure)
        check_rows(of_groups, table, [members[group] for group in of_groups["group"]], inputs)

    check_left_out([*comparison.notes], table, inputs)
    table_without = table_by_hand(inputs, missing="absent")
    for measure in inputs.measures:
        check_rows(without.pairs.filter(measure=measure), table_without, [[*inputs.qrels]] * len(pairs), inputs)
    for row in without.means.iter_rows(named=True):
        values = [value for value in table_without[row["measure"]][row["system"]].values() if value is not None]
        assert (row["queries"], row["mean"]) == (len(values), pytest.approx(average([*values])) if values else None)
    check_absent(comparison, without, inputs)
    check_power(comparison, table, inputs)

    for outcome in check_requirements(based, ["SRR@2<=0.3", "SRR@2<=baseline"]):
        names = [outcome.system] if outcome.baseline is None else [outcome.system, "A"]
        qs = [q for q in inputs.qrels if all(table["SRR@2"][name][q] is not None for name in names)]
        mean = average([table["SRR@2"][outcome.system][q] for q in qs])
        bound = 0.3 if outcome.baseline is None else average([table["SRR@2"]["A"][q] for q in qs])
        left_out = len(inputs.qrels) - len(qs)
        assert (outcome.queries, outcome.left_out) == (len(qs), left_out)
        fits = mean is not None and bound is not None and mean <= bound + 1e-12
        assert outcome.holds == (fits and left_out <= len(qs))
        assert ("left out" in str(outcome)) == (left_out > 0 and mean is not None)


@pytest.mark.parametrize(
    ("systems", "measures", "said"),
    [
        (2, "CG", "p <= 0.05, uncorrected. "),
        (2, "CG R@2", "p <= 0.05, uncorrected over measures. "),
        (3, "CG", "p <= 0.05, corrected by Holm's method over the 3 pairs of a measure. "),
        (3, "CG R@2", "p <= 0.05, corrected by Holm's method over the 3 pairs of a measure; not over measures. "),
    ],
)
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_the_footnote_says_what_was_corrected(systems: int, measures: str, said: str) -> None:
    qrels = {f"q{k}": {"a": 2, "b": 2} for k in range(8)}
    runs = {f"s{k}": {query: {"ab"[k % 2]: 1.0} for query in qrels} for k in range(systems)}
    assert f"Better or worse: {said}" in str(gg.compare(qrels, runs, measures))
