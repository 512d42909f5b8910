"""Runs that broke off: kept, counted as without a search, or left out, each by hand; and always told."""

from __future__ import annotations

import json
import random
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.counts import how_many

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

MEASURES = "nCG@2 SRR NumResults IterationsForAllGoodResults nDCG@10 RR"


def make_story(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, list[pl.DataFrame]], pl.DataFrame]:
    """Return qrels, one run of old and two of new, and which of their queries broke off."""
    chance = random.Random(seed)
    qrels = {f"q{k}": {f"d{d}": chance.choice([0, 2, 3]) for d in range(6)} for k in range(9)}
    runs = {name: [_search(chance, qrels) for _ in range(number)] for name, number in (("old", 1), ("new", 2))}
    rows = [
        (query_id, name, k, float(chance.random() < 0.7), chance.choice([0.0, 1.0]))
        for name, several in runs.items()
        for k in range(1, len(several) + 1)
        for query_id in qrels
    ]
    columns = ["query_id", "system", "replicate", "completed", "solved"]
    return qrels, runs, pl.DataFrame(rows, schema=columns, orient="row")


def _search(chance: random.Random, qrels: dict[str, dict[str, int]]) -> pl.DataFrame:
    rows = [
        (query_id, iteration, f"d{d}", 5 - k)
        for query_id in qrels
        for iteration in range(1, chance.randint(1, 3) + 1)
        for k, d in enumerate(chance.sample(range(8), 3))
    ]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "score"], orient="row")


def find_broken(outcomes: pl.DataFrame, name: str, k: int) -> list[str]:
    return outcomes.filter(system=name, replicate=k, completed=0)["query_id"].to_list()


def replace_rows(run: pl.DataFrame, query_ids: list[str]) -> pl.DataFrame:
    """Return a run in which these queries never searched."""
    never = pl.DataFrame({"query_id": query_ids}, schema={"query_id": pl.String})
    return pl.concat([run.filter(~pl.col("query_id").is_in(query_ids)), never], how="diagonal")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(how_many(4, full=25)))
def test_zero_counts_them_as_a_run_in_which_they_never_searched(seed: int) -> None:
    qrels, runs, outcomes = make_story(seed)
    by_hand = {
        name: [replace_rows(run, find_broken(outcomes, name, k)) for k, run in enumerate(several, 1)]
        for name, several in runs.items()
    }
    comparison = gg.compare(qrels, runs, MEASURES, outcomes=outcomes, incomplete="zero")
    wanted = gg.compare(qrels, by_hand, MEASURES, outcomes=outcomes)
    pairs = [of.pairs.drop("low_coverage") for of in (comparison, wanted)]  # the judged share is that of all results
    for one, other in ((comparison.means, wanted.means), pairs, (comparison.values, wanted.values)):
        assert one.equals(other, null_equal=True)


@pytest.mark.parametrize("seed", range(how_many(4, full=25)))
def test_absent_leaves_out_each_run_of_a_query_that_broke_off(seed: int) -> None:
    qrels, runs, outcomes = make_story(seed)
    comparison = gg.compare(qrels, runs, MEASURES, outcomes=outcomes, incomplete="absent")
    values: dict[tuple[str, str, str], float] = {}

    for name, several in runs.items():
        kept: dict[tuple[str, str], list[float]] = {}
        for k, run in enumerate(several, 1):
            broken = find_broken(outcomes, name, k)
            for query_id, measure, value in gg.evaluate(qrels, run, MEASURES).per_query.rows():
                if query_id not in broken:
                    kept.setdefault((measure, query_id), []).append(value)
            for query_id, solved in outcomes.filter(system=name, replicate=k)["query_id", "solved"].rows():
                if query_id not in broken:
                    kept.setdefault(("solved", query_id), []).append(solved)
        values |= {(measure, name, query_id): fmean(of) for (measure, query_id), of in kept.items()}

    for measure, name, mean, queries in comparison.means.select("measure", "system", "mean", "queries").rows():
        of = [value for (m, s, _), value in values.items() if (m, s) == (measure, name)]
        assert (queries, mean) == (len(of), pytest.approx(fmean(of), abs=1e-12))
    for measure, difference in comparison.pairs.select("measure", "difference").rows():
        qs = [q for q in qrels if {(measure, "old", q), (measure, "new", q)} <= {*values}]
        by_query = [values[measure, "new", q] - values[measure, "old", q] for q in qs]
        assert difference == pytest.approx(fmean(by_query), abs=1e-12)

    assert not any("stop at different iterations in" in note and "absent" in note for note in comparison.notes)


@pytest.mark.slow
def test_keep_changes_nothing_and_each_choice_is_told() -> None:
    qrels, runs, outcomes = make_story(1)
    plain = gg.compare(qrels, runs, MEASURES, outcomes=outcomes.drop("completed"))
    comparison = gg.compare(qrels, runs, MEASURES, outcomes=outcomes)
    assert comparison.pairs.equals(plain.pairs) and "incomplete" not in comparison.signature

    of_run = {"old": ("old", 1), "new (run 1)": ("new", 1), "new (run 2)": ("new", 2)}
    for how, told in {
        "keep": "counted as they are",
        "zero": "counted as having no results",
        "absent": "left out",
    }.items():
        found = gg.compare(qrels, runs, MEASURES, outcomes=outcomes, incomplete=how)
        assert found.signature.get("incomplete", "keep") == how
        for run, (name, k) in of_run.items():
            number = len(find_broken(outcomes, name, k))
            (note,) = [one for one in found.notes if f"broke off in {run}:" in one]
            assert note.startswith(f"{number} quer") and f"({told})" in note


def test_one_run_takes_outcomes_of_one_replicate_and_refuses_those_of_several() -> None:
    qrels, runs, _ = make_story(1)
    systems = {name: several[0] for name, several in runs.items()}

    def make_outcomes(replicates: list[str | None]) -> pl.DataFrame:
        rows = [
            (query_id, name, replicates[k % len(replicates)], int(k > 0))
            for name in systems
            for k, query_id in enumerate(qrels)
        ]
        return pl.DataFrame(rows, schema=["query_id", "system", "replicate", "completed"], orient="row")

    for replicates in ([None], ["7"]):
        gg.compare(qrels, systems, MEASURES, outcomes=make_outcomes(replicates), incomplete="zero")
    for replicates in (["7", "8"], ["7", None]):
        with pytest.raises(gg.InputError, match="does not say which run of"):
            gg.compare(qrels, systems, MEASURES, outcomes=make_outcomes(replicates), incomplete="zero")


def test_keep_takes_outcomes_that_do_not_say_which_run_they_are_about() -> None:
    qrels, runs, outcomes = make_story(1)
    plain = gg.compare(qrels, runs, MEASURES, outcomes=outcomes.drop("completed"))
    comparison = gg.compare(qrels, runs, MEASURES, outcomes=outcomes.with_columns(pl.col("replicate") + 4))
    assert comparison.pairs.equals(plain.pairs)
    number = outcomes.filter(system="new", completed=0)["query_id"].n_unique()
    assert any(note.startswith(f"{number} quer") and "broke off in new:" in note for note in comparison.notes)


def test_a_table_of_broken_traces_only_leaves_a_system_complete_and_says_so() -> None:
    qrels, runs, outcomes = make_story(1)
    broken = outcomes.filter(pl.col("completed") == 0, system="new").drop("solved")
    comparison = gg.compare(qrels, runs, MEASURES, outcomes=broken)
    assert comparison.pairs.equals(gg.compare(qrels, runs, MEASURES).pairs)
    assert "outcomes= has no rows of old: its queries count as complete. Add rows of old." in comparison.notes
    with pytest.raises(gg.InputError, match="outcomes= has no rows of the system old"):
        gg.compare(qrels, runs, MEASURES, outcomes=broken, incomplete="absent")


@pytest.mark.slow
def test_files_are_matched_by_the_ends_of_their_names_and_a_baseline_file_keeps_the_choice(tmp_path: Path) -> None:
    qrels, runs, outcomes = make_story(2)
    (tmp_path / "qrels.json").write_text(json.dumps(qrels))
    for name, several in runs.items():
        for k, run in enumerate(several, 1):
            gg.write_run(gg.read_run(run), tmp_path / (f"{name}.run" if name == "old" else f"{name}.{k}.run"))
    outcomes.write_csv(tmp_path / "outcomes.csv")
    new = f"new={tmp_path / 'new.2.run'},{tmp_path / 'new.1.run'}"  # in the other order
    given = ["compare", str(tmp_path / "qrels.json"), str(tmp_path / "old.run"), new, "-m", MEASURES, "-o", "jsonl"]
    given += ["--outcomes", str(tmp_path / "outcomes.csv"), "--incomplete", "zero"]
    done = run_command(*given, "--write-baseline", tmp_path / "b.jsonl")
    assert done.returncode == 0 and "(counted as having no results)" in done.stderr

    wanted = gg.compare(qrels, runs, MEASURES, outcomes=outcomes, incomplete="zero").pairs
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["difference"] for row in rows] == pytest.approx(wanted["difference"].to_list(), abs=1e-12)

    new_alone = {"new": runs["new"]}
    options: dict[str, Any] = {"outcomes": outcomes, "baseline_file": tmp_path / "b.jsonl"}
    comparison = gg.compare(qrels, new_alone, MEASURES, incomplete="zero", **options)
    assert comparison.pairs["difference"].to_list() == pytest.approx(wanted["difference"].to_list(), abs=1e-12)
    with pytest.raises(gg.InputError, match="was made with incomplete='zero' instead of incomplete='keep'"):
        gg.compare(qrels, new_alone, MEASURES, **options)
