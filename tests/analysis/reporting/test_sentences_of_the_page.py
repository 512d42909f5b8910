"""What the first lines of a report claim is recomputed from random searches: verdicts, means, differences and counts."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.explaining.causes import divide_measure
from goodgain.analysis.explaining.iterations_table import tabulate_iterations
from goodgain.analysis.reporting.page_sentences import describe_comparison, describe_method, describe_system
from goodgain.counting.results_of_systems import read_results_of
from goodgain.experiments.explanations import find_searched, spell_results_as
from tests.analysis.comparing.test_sentences_of_compare import BY_HAND, make_inputs, table_by_hand, write_frame
from tests.support.counts import how_many

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
#: `SRR@2 ↓ (0.2500 against 0.1000: +0.1500 [0.0000, 0.3000], 4 queries)`
CHANGE = re.compile(r"(\S+)(?: [↑↓])? \((\S+) against (\S+): ([^\s,)]+)(?: \[[^\]]*\])?(?:, (\d+) quer\w+)?\)")
ALIKE = re.compile(r"([\w@]+)(?: \(both have a value in (\d+) quer\w+\))?")


def split_verdicts(said: str) -> list[tuple[str, str]]:
    """The sentences on a pair: what is said, and of which measures."""
    counts = "(?:more|fewer) (?:searches|results|different documents)"
    relation = f"is better than|is worse than|has {counts} than|against|and"
    matches = re.findall(rf"(?:^| )(\w+ (?:{relation}) \w+|No direction|No query)(.*?)\.(?= |$)", said)
    return [(head, rest) for head, rest in matches]


@pytest.mark.parametrize("seed", range(how_many(4, full=150)))
def test_sentences_on_pairs_are_those_of_the_values(seed: int) -> None:
    inputs = make_inputs(seed)
    runs = {name: [write_frame(run) for run in of] for name, of in inputs.systems.items()}
    comparison = gg.compare(inputs.qrels, runs, inputs.measures, alpha=inputs.alpha, resamples=99)
    table, number = table_by_hand(inputs), len(inputs.qrels)
    assert f"two means over {number:,} quer" in describe_method(comparison)

    told: set[tuple[str, str, str]] = set()
    pairs = [
        (row["system"], row["against"])
        for row in comparison.pairs.unique(["system", "against"], maintain_order=True).iter_rows(named=True)
    ]

    for (system, against), said in zip(pairs, describe_comparison(comparison), strict=True):
        for head, rest in split_verdicts(said):
            if head.startswith("No"):
                continue
            assert {system, against} == {head.split()[0], head.split()[-1]}
            listed = CHANGE.findall(rest) if " and " not in head else []
            for measure, mean, other, difference, queries in listed:
                pair = compute_pair(table[measure], system, against)
                assert int(queries or number) == len(pair), said
                first, second = (sum(side) / len(pair) for side in zip(*pair, strict=True))
                assert float(mean) == pytest.approx(first, abs=6e-5)
                assert float(other) == pytest.approx(second, abs=6e-5)
                assert float(difference) == pytest.approx(first - second, abs=6e-5)
                if "is better" in head or "is worse" in head:
                    assert measure.partition("@")[0] not in ("NumIter", "NumResults", "NumUnique"), said
                    assert (first < second) == (BY_HAND[measure][1] == ("is better" in head)), said
                if "has more" in head or "has fewer" in head:
                    assert measure.partition("@")[0] in ("NumIter", "NumResults", "NumUnique"), said
                    assert (first > second) == ("has more" in head), said
                told.add((system, against, measure))
            if " and " in head:
                for measure, queries in ALIKE.findall(rest.partition(" in ")[2].removeprefix("every query in ")):
                    if measure not in inputs.measures:
                        continue
                    pair = compute_pair(table[measure], system, against)
                    assert all(one == pytest.approx(two, abs=1e-12) for one, two in pair), said
                    assert int(queries or number) == len(pair)
                    told.add((system, against, measure))

    expected = {
        (row["system"], row["against"], row["measure"])
        for row in comparison.pairs.iter_rows(named=True)
        if row["queries"]
    }
    assert told == expected


def compute_pair(values: dict[str, dict[str, Any]], system: str, against: str) -> list[tuple[float, float]]:
    return [
        (value, other)
        for query, value in values[system].items()
        if value is not None and (other := values[against][query]) is not None
    ]


@pytest.mark.parametrize("seed", range(how_many(4, full=150)))
def test_sentences_on_one_system_are_those_of_its_values(seed: int) -> None:
    inputs = make_inputs(seed)
    run = next(iter(inputs.systems.values()))[0]
    qrels, frame = gg.read_qrels(inputs.qrels), gg.read_run(write_frame(run))
    parts = divide_measure(gg.CG(cutoff=2))
    scores = gg.evaluate(qrels, frame, "CG@2 GradedP@2")
    searched = find_searched(gg.Experiment(qrels, {"A": frame}), [parts], {"A": "A"})
    results = spell_results_as(read_results_of(["A"], None), searched)
    iterations = tabulate_iterations(searched, results)
    means, rest = describe_system("A", scores, ["CG@2", "GradedP@2"], "CG@2", iterations)
    gains = {query: BY_HAND["CG@2"][0](run.get(query, []), labels) for query, labels in inputs.qrels.items()}
    match = re.search(r"Means over (\d+) quer\w+: CG@2 (\S+)", means)
    assert match
    assert (int(match[1]), float(match[2])) == (len(gains), pytest.approx(sum(gains.values()) / len(gains), abs=6e-5))

    of_graded = int(scores.per_query.filter(measure="GradedP@2")["value"].count())
    fewer = re.search(r"GradedP@2 \S+ \((\d+) quer", means)
    assert int(fewer[1] if fewer else len(gains)) == of_graded

    idle = 0
    for query, labels in inputs.qrels.items():
        good, seen = {doc for doc, label in labels.items() if label >= 2}, set[str]()
        for docs in run.get(query, []):
            idle += bool(good - seen) and not (set(docs) & good) - seen
            seen |= set(docs)

    searches = sum(len(of) for of in run.values())
    assert f" {idle} of {searches} iteration" in f" {rest}"
    lowest = [query for query, gain in gains.items() if gain == min(gains.values())]
    told = re.search(r"The lowest CG@2 is ([\d.]+), in (?:(\d+) queries, one of them )?(\w+)\.", rest)
    assert told, rest
    assert (float(told[1]), int(told[2] or 1)) == (min(gains.values()), len(lowest))
    assert told[3] in lowest


def share_found(searches: list[list[str]], labels: dict[str, int], i: int) -> float:
    """NCG@i by hand."""
    gains = {doc: label for doc, label in labels.items() if label >= 2}
    found = {doc for docs in searches[:i] for doc in docs}
    return sum(gains.get(doc, 0) for doc in found) / sum(gains.values()) if gains else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(how_many(4, full=100)))
def test_the_headline_is_computed_and_a_system_wins_only_with_the_verdict(seed: int, tmp_path: Path) -> None:
    inputs = make_inputs(seed)
    runs = {name: [write_frame(run) for run in of] for name, of in inputs.systems.items()}
    asked = "CG@3 nDCG@10" if seed % 2 else "CG nDCG@10"
    lengths = [len(run.get(query, [])) for of in inputs.systems.values() for run in of for query in inputs.qrels]
    i = 3 if seed % 2 else max(1, math.ceil(median(lengths)))
    x = gg.Experiment(inputs.qrels, runs, alpha=inputs.alpha, resamples=99)
    data = json.loads(x.report(tmp_path / "a.json", asked).read_text())
    compared = x.compare(f"{asked} nCG@{i} nDCGG@{i} SRR@{i}", baseline="A").pairs
    shares = {
        name: [
            sum(share_found(run.get(q, []), labels, i) for run in of) / len(of) for q, labels in inputs.qrels.items()
        ]
        for name, of in inputs.systems.items()
    }
    means = {name: sum(of) / len(of) for name, of in shares.items()}
    verdicts = dict(compared.filter(measure=f"nCG@{i}").select("system", "verdict").iter_rows())
    lead = max(verdicts, key=lambda name: (verdicts[name] == "better", means[name]))
    first, *rest = [said for said in data["headline"] if "No label" not in said]
    base = "the baseline A" if len(verdicts) > 1 else "A"
    number = f"({len(inputs.qrels)} queries)"
    searches = f"within {i} search{'es' * (i != 1)}"
    leader = lead
    if len(means) > 2:
        better_than_lead = [name for name in verdicts if means[name] > means[lead] + 1e-12]
        leader = f"{lead}, with the highest mean of {len(means)} systems,"
        if better_than_lead:
            leader = f"{lead}, with the highest mean of the systems that are better than A,"
        elif means["A"] >= means[lead] - 1e-12:
            leader = f"{lead}, with the highest mean of the {len(verdicts)} systems compared,"
    starts = {
        "better": f"{leader} finds more of the good material than {base}: ",
        "worse": f"{leader} finds less of the good material than {base}: ",
        "equal": f"{lead} and {base} find the same share of the good material in every query: ",
    }
    assert first.startswith(starts.get(verdicts[lead], f"{leader} finds ")), first
    assert searches in first and number in first
    assert ("finds more" in first) == (verdicts[lead] == "better") == (means[lead] > means["A"] and "beyond" in first)
    assert ("may be chance" in first) == (verdicts[lead] == "unclear")

    told = [(float(share), len(places or ".") - 1) for share, places in re.findall(r"(\d+(\.\d+)?) %", first)]
    real = [100 * means[name] for name in (lead, "A")][: len(told)]
    assert len(told) == (1 if verdicts[lead] == "equal" else 2)

    for (share, places), value in zip(told, real, strict=True):
        assert share == pytest.approx(value, abs=0.51 * 10**-places)
        assert share not in (0, 100) or value == pytest.approx(share, abs=1e-9), first
    of_lead = compared.filter(pl.col("measure") != f"nCG@{i}", system=lead)

    for verdict in ("better", "worse"):
        named = sorted(of_lead.filter(verdict=verdict)["measure"])
        said = next((one for one in rest if one.startswith(f"Beyond chance, {lead} is ")), "")
        match = re.search(rf"{verdict} in (.*?)(?:\.$|, but)", said)
        assert sorted(re.split(", | and ", match[1]) if match else []) == named, data["headline"]

    if data.get("look_first"):
        check_query_to_look_at(inputs, data["look_first"], lead)


def check_query_to_look_at(given: Any, said: str, lead: str) -> None:
    measure, query, value, other = re.findall(rf"^(\S+) differs most in (\S+): {lead} (\S+), A (\S+)\.$", said)[0]
    cutoff = 3 if measure == "CG@3" else None

    def gain(name: str, q: str) -> float:
        of, labels = given.systems[name], given.qrels[q]
        found = [{doc for docs in run.get(q, [])[:cutoff] for doc in docs} for run in of]
        return sum(labels.get(doc, 0) for docs in found for doc in docs if labels.get(doc, 0) >= 2) / len(of)

    changes = {q: abs(gain(lead, q) - gain("A", q)) for q in given.qrels}
    assert changes[query] == pytest.approx(max(changes.values()))
    assert (float(value), float(other)) == (
        pytest.approx(gain(lead, query), abs=6e-5),
        pytest.approx(gain("A", query), abs=6e-5),
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("xy ac ax", "s2 is better"),
        ("xy ac ca", "s2 is better"),
        ("xy ac ax xb xz", "s2 is better and s3 and s4 are equal"),
        ("xy ac ax xb xz xw xv", "1 other is better and 4 others are equal"),
        ("xy ac ax ay xb xz xw", "2 others are better and 3 others are equal"),
    ],
)
def test_the_verdicts_of_the_other_systems_are_counted(found: str, said: str, tmp_path: Path) -> None:
    """`found` has the documents of each system, the same for all queries; a and c are good."""
    qrels = {f"q{number}": {"a": 2, "b": 1, "c": 2} for number in range(8)}
    systems = {
        f"s{number}": {query: {doc_id: -float(rank) for rank, doc_id in enumerate(documents)} for query in qrels}
        for number, documents in enumerate(found.split())
    }
    page = gg.report(qrels, systems, tmp_path / "page.md", "nCG").read_text(encoding="utf-8")
    assert f" against s0, {said}. " in page
    assert f", with the highest mean of {len(systems)} systems, finds more" in page
