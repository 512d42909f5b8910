"""A comparison without labels: which measures, what the systems share, and what is said to be unknown."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.comparing.shared_results import PERSISTENCE, compute_rank_biased_overlap
from goodgain.measures.declaration import DECLARATIONS, GoodGainMeasure, SessionMeasure
from goodgain.measures.without_labels import list_measures_without_labels, needs_labels
from tests.support import shared_oracle
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import in_blocks
from tests.support.tables import ROOT

#: Ids that break what splits, joins, pads or formats texts.
HOSTILE = [" ", "a b", "\t", "é", "é", "<b>", "%41", "A", "=1+1", "'", '"', "\u202e", "q|1", "0", "null", "-1", "‑"]
World = dict[str, dict[str, list[list[str]]]]  # system -> query -> searches -> documents
quiet = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
TWO_LOGS = ROOT / "qrels_examples/two_logs"


def make_world(random: Random) -> World:
    """Two systems with searches that repeat, return nothing, or were not made."""
    queries = random.sample(HOSTILE, random.randint(1, 6))
    documents = random.sample(HOSTILE, random.randint(1, 12))
    world: World = {}

    for system in ("old", "new"):
        searched = [query for query in queries if random.randint(0, 5)] or queries[:1]
        world[system] = {
            query: [
                random.sample(documents, random.randint(0, min(5, len(documents)))) for _ in range(random.randint(1, 4))
            ]
            for query in searched
        }

    if not {*world["old"]} & {*world["new"]}:
        world["new"] = {query: [["x"]] for query in world["old"]}
    return world


def to_frame(searches_of: dict[str, list[list[str]]]) -> pl.DataFrame:
    rows = [
        (query, number, document, rank)
        for query, searches in searches_of.items()
        for number, search in enumerate(searches, 1)
        for rank, document in enumerate(search or ["-"], 1)
    ]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank"], orient="row")


def compare(world: World, measures: Any = None, **options: Any) -> gg.Comparison:
    runs = {system: to_frame(searches) for system, searches in world.items()}
    return gg.compare_unlabelled(runs, measures, baseline="old", resamples=99, **options)


# Rank-biased overlap


def overlap(first: str, second: str, p: float = PERSISTENCE) -> float:
    rankings = [
        pl.DataFrame({"query": 0, "doc_id": list(order), "k": range(1, len(order) + 1)}) for order in (first, second)
    ]
    return float(compute_rank_biased_overlap(*rankings, p)["rbo"][0])


@pytest.mark.parametrize(
    ("first", "second", "p", "value"),
    [
        ("12345", "23415", 0.9, 0.828),  # the documentation of rankmeasures, a public implementation of equation 32
        ("abcdefg", "bacdefg", 0.9, 0.900),  # the tests of a second one, and so is the next
        ("abcdefg", "abcdefg", 0.9, 1.000),
        ("abc", "xyz", 0.9, 0.0),
    ],
)
def test_rank_biased_overlap_has_published_values(first: str, second: str, p: float, value: float) -> None:
    assert overlap(first, second, p) == pytest.approx(value, abs=5e-4)
    assert overlap(second, first, p) == pytest.approx(value, abs=5e-4)


def test_rank_biased_overlap_is_the_extrapolated_infinite_sum() -> None:
    random = Random(3)
    for _ in range(how_many(60, full=500)):
        letters = "abcdefghijklmnop"[: random.randint(1, 16)]
        orders = ["".join(random.sample(letters, random.randint(1, len(letters)))) for _ in range(2)]
        p = random.choice([0.5, 0.8, PERSISTENCE, 0.95])
        assert overlap(*orders, p) == pytest.approx(shared_oracle.overlap(*orders, p), abs=1e-9), (orders, p)


# What is shared


@quiet
def test_shared_numbers_are_those_of_brute_force() -> None:
    random = Random(4)
    for _ in range(how_many(8, full=80)):
        world = make_world(random)
        shared = compare(world, "NumUnique").shared
        assert shared is not None
        old, new = world["old"], world["new"]
        queries = [
            query for query in old if query in new and shared_oracle.join(old[query]) and shared_oracle.join(new[query])
        ]
        rows = {row.pop("query_id"): row for row in shared.per_query.to_dicts()}
        assert {*rows} == {*queries}
        for query in queries:
            orders = [shared_oracle.join(world[system][query]) for system in ("new", "old")]
            assert rows[query] == {
                "system": "new",
                "against": "old",
                "documents": len(orders[0]),
                "documents_against": len(orders[1]),
                "both": len({*orders[0]} & {*orders[1]}),
                "searches_apart": shared_oracle.count_apart(new[query], old[query]),
                "searches_apart_against": shared_oracle.count_apart(old[query], new[query]),
                "jaccard": pytest.approx(shared_oracle.jaccard(old[query], new[query])),
                "rbo": pytest.approx(shared_oracle.overlap(*orders, PERSISTENCE)),
            }
        (pair,) = shared.pairs.to_dicts()
        assert pair["queries"] == len(queries)
        for name in ("documents", "documents_against", "both", "searches_apart", "searches_apart_against"):
            assert pair[name] == sum(row[name] for row in rows.values())
        assert pair["queries_apart"] == sum(row["both"] == 0 for row in rows.values())
        if queries:
            assert pair["rbo"] == pytest.approx(sum(row["rbo"] for row in rows.values()) / len(queries))

        for system, searches_of in world.items():
            longest = max(map(len, searches_of.values()))
            counts = [
                tuple(map(sum, zip(*(shared_oracle.count_search(s, i) for s in searches_of.values()), strict=True)))
                for i in range(longest)
            ]
            table = shared.searches.filter(system=system).drop("system")
            assert table.get_column("iteration").to_list() == [*range(1, longest + 1)]
            assert table.drop("iteration").rows() == counts


@quiet
def test_shared_numbers_of_several_runs_are_means_over_pairs_of_runs() -> None:
    random = Random(5)
    worlds = [make_world(random) for _ in range(how_many(3, full=8))]
    for world in worlds:
        first, second, other = (to_frame(world[system]) for system in ("old", "new", "new"))
        shared = gg.compare_unlabelled({"a": [first, second], "b": other}, "NumUnique").shared
        singles = [gg.compare_unlabelled({"a": run, "b": other}, "NumUnique").shared for run in (first, second)]
        assert shared is not None
        of_runs = pl.concat([single.per_query for single in singles if single is not None])
        for row in shared.per_query.iter_rows(named=True):
            rows = of_runs.filter(query_id=row["query_id"])
            assert row["jaccard"] == pytest.approx(rows.get_column("jaccard").mean())


@quiet
def test_results_new_in_each_search_are_those_of_the_ledger() -> None:
    random = Random(6)
    for _ in range(how_many(4, full=15)):
        run = to_frame(make_world(random)["old"])
        shared = gg.compare_unlabelled({"a": run, "b": run}, "NumUnique").shared
        judged = {query: {"judged": 1} for query in run.get_column("query_id").unique()}
        ledger = gg.ledger(judged, run).group_by("iteration").agg(pl.col("R", "UR").sum()).sort("iteration")
        assert shared is not None
        rows = shared.searches.filter(system="a")
        assert rows.select("results", "new").rows() == ledger.select("R", "UR").rows()
        assert shared.pairs.select("jaccard", "rbo").rows() in ([(1.0, pytest.approx(1.0))], [(None, None)])


@pytest.mark.slow
@quiet
def test_large_files_and_engines_share_the_same(tmp_path: Path) -> None:
    import duckdb

    texts = {
        "old": "".join(
            f"q{q} {i} d{q * i % 7}{r} {r} {9 - r} t\n" for q in range(40) for i in (1, 2) for r in (1, 2, 3)
        ),
        "new": "".join(
            f"q{q} {i} d{q * i % 5}{r} {r} {9 - r} t\n" for q in range(38) for i in (1, 2) for r in (1, 2, 3)
        ),
    }
    paths = {name: tmp_path / f"{name}.run" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
    whole = gg.compare_unlabelled(paths, missing="absent")
    runs = {name: gg.read_run(path).frame for name, path in paths.items()}
    tables = {name: duckdb.from_arrow(run.to_arrow()) for name, run in runs.items()}
    others: list[dict[str, Any]] = [tables, {name: run.lazy() for name, run in runs.items()}]
    others.append({name: in_blocks(path, block=200) for name, path in paths.items()})
    for found in (gg.compare_unlabelled(other, missing="absent") for other in others):
        assert found.pairs.equals(whole.pairs)
        assert found.shared is not None and whole.shared is not None
        for one, other in zip(found.shared, whole.shared, strict=True):
            assert one.equals(other)


# Which measures


def parameters_of(declared: Any) -> dict[str, Any]:
    return {"budget": 3} if "budget" in declared.measure.SUPPORTED_PARAMS else {}


@quiet
def test_labels_change_no_value_of_a_measure_that_needs_none() -> None:
    random = Random(7)
    results = pl.DataFrame(
        {"query_id": ["q", "q", "r"], "iteration": [1, 2, 1], "search": 1, "rank": 0, "search_query": ["a", "A", "b"]}
    )
    measures = [*list_measures_without_labels(["results"]), *map(str, list_measures_without_labels()), "SRR@1 NumDup@2"]
    assert [str(measure) for measure in measures[:6]] == [
        *("SRR", "NumIter", "NumResults", "NumUnique", "NumDup", "RepeatedQueries")
    ]

    measures.append("AreaOver(measure='NumUnique',budget=3) ValueAt(measure='NumResults',budget=2)")
    run = to_frame({"q": [["a", "b"], ["a", "c"]], "r": [["a"], [], ["a"]]})
    expected = gg.evaluate(gg.NO_LABELS, run, measures, results=results).per_query
    for _ in range(how_many(4, full=10)):
        labels = {query: {doc: random.choice([0, 1, 3]) for doc in "abc"} for query in "qr"}
        assert gg.evaluate(labels, run, measures, results=results).per_query.equals(expected)


@quiet
def test_labels_change_a_value_of_each_measure_that_needs_them() -> None:
    random = Random(8)
    names = [
        name
        for name, declared in DECLARATIONS.items()
        if isinstance(declared.measure, GoodGainMeasure) and declared.needs_labels and declared.cutoff != "required"
    ]
    run = to_frame({"q": [["a", "b"], ["a", "c"]], "r": [["a"], ["d"]]})
    changed: set[str] = set()
    first = gg.evaluate({"q": {"z": 0}, "r": {"z": 0}}, run, names).mean()

    for _ in range(60):
        if changed == {*names}:
            break
        labels = {query: {doc: random.choice([0, 3]) for doc in random.sample("abcdz", 3)} for query in "qr"}
        means = gg.evaluate(labels, run, names).mean()
        changed |= {name for name in names if means[name] != first[name]}

    assert changed == {*names}


def test_a_measure_over_another_needs_labels_if_the_other_does() -> None:
    for inner, expected in (("NumUnique", False), ("nCG", True)):
        measure = gg.AreaOver(measure=inner, budget=2)
        assert isinstance(measure, SessionMeasure)
        assert needs_labels(measure) is expected


@pytest.mark.parametrize(
    "measures", ["CG", "nDCG@10", "SRR NumGood", "AreaOver(measure='nCG',budget=2)", "NumUnjudged"]
)
def test_a_measure_that_needs_labels_is_refused(measures: str) -> None:
    runs = {name: {"q": {"a": 1.0}} for name in ("old", "new")}
    with pytest.raises(gg.MeasureError, match="relevance labels, and there are none"):
        gg.compare_unlabelled(runs, measures)
    with pytest.raises(gg.MeasureError, match="relevance labels, and there are none"):
        gg.evaluate(gg.NO_LABELS, runs["old"], measures)


ANALYSES = {
    "ledger": lambda x: x.ledger(),
    "coverage": lambda x: x.coverage(),
    "curve": lambda x: x.curve("nCG"),
    "explain": lambda x: x.explain("old", "new"),
    "pr_curve": lambda x: x.pr_curve(),
    "spend": lambda x: x.spend(),
    "funnel": lambda x: x.funnel(pl.DataFrame()),
    "bounds": lambda x: x.with_(bounds=True).compare("SRR"),
    "bounds of evaluate": lambda x: x.with_(bounds=True).evaluate("SRR"),
    "labels": lambda x: x.with_(labels="iteration").evaluate("SRR"),
    "check": lambda x: x.check("CG>=1"),
}


@quiet
@pytest.mark.parametrize("name", ANALYSES)
def test_an_analysis_that_needs_labels_says_so(name: str) -> None:
    x = gg.Experiment(gg.NO_LABELS, {system: to_frame({"q": [["a"]]}) for system in ("old", "new")})
    with pytest.raises(gg.GoodgainError, match="labels"):
        ANALYSES[name](x)


def test_none_is_no_qrels_and_the_error_names_it() -> None:
    run = {"q": {"a": 1.0}}
    for call in (
        lambda: gg.compare(None, {"old": run, "new": run}, "SRR"),
        lambda: gg.evaluate(None, run, "SRR"),
        lambda: gg.Experiment(None, {"old": run}),
        lambda: gg.report(None, {"old": run}, "never.html"),
    ):
        with pytest.raises(gg.InputError, match=r"^qrels is None\. .*NO_LABELS"):
            call()
    assert not Path("never.html").exists()


def test_no_labels_stays_one_object() -> None:
    assert copy.deepcopy(gg.NO_LABELS) is gg.NO_LABELS
    assert pickle.loads(pickle.dumps(gg.NO_LABELS)) is gg.NO_LABELS
    assert repr(gg.NO_LABELS) == "goodgain.NO_LABELS"


# Tests, and what is said


@quiet
def test_tests_are_those_of_a_comparison_with_labels() -> None:
    """Any label for each query of the runs gives the same queries, so the same tests."""
    random = Random(9)
    for _ in range(how_many(3, full=12)):
        world = make_world(random)
        runs = {system: to_frame(searches) for system, searches in world.items()}
        judged = {query: {"never found": 1} for searches in world.values() for query in searches}
        measures = "SRR NumUnique NumIter NumDup@2"
        labelled = gg.compare(judged, runs, measures, baseline="old").pairs
        unlabelled = gg.compare_unlabelled(runs, measures, baseline="old").pairs
        rest = pl.exclude("low_coverage")
        assert unlabelled.select(rest).equals(labelled.select(rest))
        assert not unlabelled.get_column("low_coverage").any()


@quiet
def test_outcomes_and_the_share_that_searched_are_compared() -> None:
    runs = {
        "old": to_frame({f"q{k}": [["a"]] for k in range(8)}),
        "new": to_frame({f"q{k}": [["a"]] for k in range(4)}),
    }
    outcomes = pl.DataFrame(
        {
            "query_id": [f"q{k}" for k in range(8)] * 2,
            "system": ["old"] * 8 + ["new"] * 8,
            "completed": [1] * 9 + [0] * 7,
        }
    )
    comparison = gg.compare_unlabelled(runs, baseline="old", outcomes=outcomes)
    means = {(row["measure"], row["system"]): row["mean"] for row in comparison.means.iter_rows(named=True)}
    assert means["searched", "new"] == 0.5
    assert means["completed", "new"] == 0.125
    assert comparison.pairs.filter(measure="completed").get_column("verdict").to_list() == ["worse"]

    column = (
        gg.compare_unlabelled(runs, "SRR", outcomes=outcomes).means.get_column("measure").unique(maintain_order=True)
    )
    assert column.to_list() == ["SRR", "completed"]


@quiet
def test_each_form_says_what_is_unknown_and_the_next_call() -> None:
    comparison = compare({"old": {"q": [["a"], ["b"]], "r": [["a"]]}, "new": {"q": [["b"], ["c"]], "r": [["d"]]}})
    assert comparison.next_step == "goodgain.pool(runs)"
    for text in (
        str(comparison),
        *(comparison.to_text(form) for form in ("markdown", "latex", "json")),
        comparison._repr_html_(),
    ):
        assert "Without labels no number says" in text
        assert "Next, judge results: goodgain.pool(runs)" in " ".join(text.replace("\\", "").split())
        assert "udged share" not in text
    frames = json.loads(comparison.to_text("json"))
    assert frames["shared"] == comparison.shared.pairs.to_dicts()  # type: ignore[union-attr]  # without labels
    assert frames["searches"] == comparison.shared.searches.to_dicts()  # type: ignore[union-attr]
    assert "2 searches of new found no document that old found" in str(comparison)
    assert "1 query of 2 share no document" in str(comparison)


@quiet
def test_the_command_prints_the_next_command() -> None:
    paths = [ROOT / f"qrels_examples/redundancy/{name}.run" for name in ("lean", "repeating")]
    done = run_command("compare", "--no-labels", *paths, "-o", "table")
    assert done.returncode == 0
    assert f"goodgain pool {paths[0]} {paths[1]} -o sheet.csv" in " ".join(done.stdout.split())
    assert "Jaccard" in done.stdout
    printed = run_command("compare", "--no-labels", *paths, "-o", "csv")
    assert "repeating.run -o sheet.csv" in printed.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "--no-labels"], "Missing argument 'RUN...'"),
        (["compare", "--no-labels", "old.run"], "needs two systems or more"),
        (["compare", "--no-labels", "judgments.qrels", "old.run", "-m", "SRR"], "looks like a line of qrels"),
        (["compare", "--no-labels", "old.run", "new.run", "-m", "nDCG@10"], "nDCG@10: needs relevance labels"),
        (["compare", "--no-labels", "old.run", "new.run", "--bounds"], "--bounds needs relevance labels"),
        (["evaluate", "--no-labels", "old.run", "CG"], "CG: needs relevance labels"),
        (["evaluate", "--no-labels", "SRR"], "there is no such run"),
        (["evaluate", "--no-labels", "old.run", "--human", "sheet.csv"], "--human corrects a model's labels"),
        (["compare", "--", "--no-labels", "old.run", "new.run"], "no measure was named"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "judgments.qrels").write_text((TWO_LOGS / "judgments.qrels").read_text())
    for name in ("old", "new"):
        (tmp_path / f"{name}.run").write_text("q 1 a 1 1 t\n")
    done = run_command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert not done.stdout
