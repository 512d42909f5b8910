"""What `goodgain.compare` says of systems whose difference is known."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain import Comparison, compare
from goodgain.errors import GoodgainNotice
from goodgain.judgments.labelling.documents_to_label import collect_documents
from goodgain.measures import MEASURES
from goodgain.statistics.statistical_tests import correct_by_holm
from tests.support.counts import how_many
from tests.support.notices import collect_notices
from tests.support.random_runs import Shape, make_case, qrels_text, run_text
from tests.support.tables import in_one_search

EXAMPLES = Path(__file__).parents[3] / "qrels_examples"
CLASSIC = ["nDCG@10", "RR@10", "R@100", "AP", "P@5"]
OURS = [f"{name}@2" if m.declaration.cutoff == "required" else name for name, m in MEASURES.items()]


def quietly(*args: Any, **options: Any) -> Comparison:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)
        return compare(*args, **options)


def row(comparison: Comparison, measure: str, system: str | None = None) -> dict[str, Any]:
    rows = comparison.pairs.filter(pl.col("measure") == measure)
    if system is not None:
        rows = rows.filter(pl.col("system") == system)
    return rows.row(0, named=True)


def many(queries: int = 60) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """Two agents that find the same; `lean` repeats nothing."""
    random = Random(5)
    labels = {f"q{q:03}": {f"d{k}": random.choice((0, 1, 2, 3)) for k in range(9)} for q in range(queries)}
    lean, wordy = [], []

    for query, docs in labels.items():
        names = random.sample(list(docs), 9)
        for k, doc in enumerate(names):
            lean.append((query, k // 3 + 1, doc))
            wordy.append((query, k // 3 + 1, doc))
        wordy += [(query, 2, doc) for doc in random.sample(names[:3], random.randint(1, 3))]

    schema = {"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String}
    rank = pl.int_range(1, pl.len() + 1).over("query_id", "iteration")
    rows_of = {"wordy": wordy, "lean": lean}
    return labels, {
        name: pl.DataFrame(rows, schema=schema, orient="row").with_columns(rank=rank) for name, rows in rows_of.items()
    }


@pytest.mark.parametrize("seed", range(how_many(1, full=4)))
def test_a_run_against_itself_is_all_ties_with_p_1_on_every_measure(seed: int, tmp_path: Path) -> None:
    case = make_case(Random(seed), Shape(fractional=False, words=False))
    (tmp_path / "a.run").write_text(run_text(case.run), encoding="utf-8")
    (tmp_path / "q.txt").write_text(qrels_text(case.qrels), encoding="utf-8")
    run = tmp_path / "a.run"
    found = quietly(tmp_path / "q.txt", {"one": run, "same": run, "again": run}, OURS + CLASSIC)
    assert found.pairs.height == 3 * len(OURS + CLASSIC)

    for pair in found.pairs.iter_rows(named=True):
        assert pair["difference"] == pair["effect"] == 0
        assert pair["low"] == pair["high"] and pair["low"] in (None, 0)  # None: too few queries
        assert [value for name, value in pair.items() if name.startswith("p_")] == [1.0] * 5
        assert (pair["wins"], pair["ties"], pair["losses"]) == (0, pair["queries"], 0)
        assert pair["verdict"] == "equal" and not pair["significant"]
        assert pair["more_iterations"] == pair["more_results"] == 0


def test_less_redundancy_and_all_else_equal_is_better_on_srr() -> None:
    comparison = compare(*many(), "SRR@3 CG@3 nDCG@10 NumGood@2 NumDup@3")
    srr = row(comparison, "SRR@3")
    assert (srr["system"], srr["against"], srr["verdict"], srr["better"]) == ("lean", "wordy", "better", "down")
    assert srr["difference"] < srr["high"] < 0 and srr["effect"] < 0
    assert (srr["wins"], srr["ties"], srr["losses"]) == (60, 0, 0)
    assert srr["significant"] and srr["p_randomisation"] == 1 / 10_000
    for name in ("CG@3", "nDCG@10", "NumGood@2"):
        assert row(comparison, name)["verdict"] == "equal" and row(comparison, name)["p_t"] == 1
    assert row(comparison, "NumDup@3")["verdict"] == "better"


def test_the_other_way_round_it_is_worse() -> None:
    labels, runs = many()
    turned = row(compare(labels, {"lean": runs["lean"], "wordy": runs["wordy"]}, "SRR@3"), "SRR@3")
    assert (turned["system"], turned["verdict"], turned["wins"], turned["losses"]) == ("wordy", "worse", 0, 60)
    assert turned["significant"]


def agents_that_differ(better_in: int, worse_in: int, same_in: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """`new` has the one good document where `old` has a bad one, in so many queries, and the other way round."""
    labels = {f"q{k:02}": {"good": 3, "bad": 0} for k in range(better_in + worse_in + same_in)}
    new = ["good"] * better_in + ["bad"] * worse_in + ["good"] * same_in
    old = ["bad"] * better_in + ["good"] * (worse_in + same_in)
    runs = {
        name: in_one_search({q: {doc: 1.0} for q, doc in zip(labels, docs, strict=True)})
        for name, docs in (("old", old), ("new", new))
    }
    return labels, runs


@pytest.mark.parametrize(
    ("differing", "p", "verdict"),
    [
        ((5, 0), 2 / 2**5, "unclear"),  # all five are better, and p is still 0.0625
        ((6, 0), 2 / 2**6, "better"),
        ((0, 6), 2 / 2**6, "worse"),
        ((6, 0, 6), 2 / 2**6, "better"),  # queries without a difference do not count against it
        ((4, 3), 1.0, "unclear"),
        ((3, 4), 1.0, "unclear"),
        ((3, 3), 1.0, "unclear"),  # the mean of the differences is 0, and no difference is
        ((1, 0), 1.0, "unclear"),
        ((0, 0, 7), 1.0, "equal"),
    ],
)
def test_a_verdict_is_better_or_worse_only_where_the_difference_is_significant(
    differing: tuple[int, ...], p: float, verdict: str
) -> None:
    found = row(compare(*agents_that_differ(*differing), "SRE@1"), "SRE@1")
    assert (found["p_randomisation_holm"], found["verdict"]) == (p, verdict)
    assert found["significant"] == (verdict in ("better", "worse"))


def test_where_lower_is_better_the_verdict_turns_round() -> None:
    labels, runs = agents_that_differ(6, 0)
    rows = runs["new"].with_columns(doc_id=pl.lit("more"), score=pl.lit(0.5))
    runs["new"] = pl.concat([runs["new"], rows])
    with pytest.warns(GoodgainNotice, match="coverage is low"):
        comparison = compare(labels, runs, "NumResults@1 NumGood@1")
    assert row(comparison, "NumResults@1")["verdict"] == "worse" and row(comparison, "NumResults@1")["difference"] == 1
    assert row(comparison, "NumGood@1")["verdict"] == "better"


def test_alpha_and_holms_correction_decide_the_verdict() -> None:
    labels, runs = agents_that_differ(6, 0)
    assert row(compare(labels, runs, "SRE@1", alpha=0.03), "SRE@1")["verdict"] == "unclear"
    assert row(compare(labels, runs, "SRE@1", alpha=0.04), "SRE@1")["verdict"] == "better"
    three = compare(labels, runs | {"copy": runs["old"]}, "SRE@1")
    assert three.pairs.select("system", "against", "verdict").rows() == [
        ("new", "old", "unclear"),  # p = 3 * 0.03125
        ("copy", "old", "equal"),
        ("copy", "new", "unclear"),
    ]


def test_differences_that_cancel_out_but_for_rounding_are_no_verdict() -> None:
    def share(good: int) -> dict[str, float]:
        return {f"{'g' if k < good else 'b'}{k}": 10.0 - k for k in range(10)}

    labels = {query: {f"g{k}": 2 for k in range(10)} for query in ("q1", "q2")}
    found = quietly(labels, {"a": {"q1": share(2), "q2": share(1)}, "b": {"q1": share(3), "q2": {"b": 1.0}}}, "SRE@1")
    assert (row(found, "SRE@1")["wins"], row(found, "SRE@1")["losses"]) == (1, 1)
    assert row(found, "SRE@1")["difference"] == 0 and row(found, "SRE@1")["verdict"] == "unclear"


@pytest.mark.filterwarnings("ignore:thresholds differ")
def test_means_are_those_of_evaluate() -> None:
    labels, runs = many()
    comparison = compare(labels, runs, [*CLASSIC, "SRR@3", "RAG@2"])
    for name, run in runs.items():
        means = dict(comparison.means.filter(pl.col("system") == name).select("measure", "mean").iter_rows())
        assert means == pytest.approx(gg.evaluate(labels, run, [*CLASSIC, "SRR@3", "RAG@2"]).mean(), abs=1e-12)


def test_without_a_baseline_all_pairs_are_compared_and_with_one_only_its_own() -> None:
    labels, runs = many(20)
    systems = {"a": runs["lean"], "b": runs["wordy"], "c": runs["lean"]}
    names = ["system", "against"]
    assert compare(labels, systems, "SRR@3").pairs.select(names).rows() == [("b", "a"), ("c", "a"), ("c", "b")]
    held = compare(labels, systems, "SRR@3", baseline="b")
    assert held.pairs.select(names).rows() == [("a", "b"), ("c", "b")]
    assert held.pairs.get_column("verdict").to_list() == ["better", "better"]
    assert held.pairs.get_column("p_tukey").null_count() == 0


def test_holm_corrects_over_the_pairs_of_one_measure_only() -> None:
    labels, runs = many(20)
    alone = compare(labels, runs, "SRR@3")
    assert row(alone, "SRR@3")["p_t_holm"] == row(alone, "SRR@3")["p_t"]
    comparison = compare(labels, runs, "SRR@3 SRE@3 NumDup@3")
    assert row(comparison, "SRR@3") == row(alone, "SRR@3")
    three = row(compare(labels, {**runs, "copy": runs["lean"]}, "SRR@3"), "SRR@3", "lean")
    assert three["p_randomisation_holm"] == pytest.approx(3 * three["p_randomisation"])


def test_the_same_seed_gives_the_same_numbers_in_any_order_of_rows() -> None:
    labels, runs = many()
    first = compare(labels, runs, "SRR@3 CG@1 nDCG@10")
    shuffled = {name: run.sample(fraction=1, shuffle=True, seed=3) for name, run in runs.items()}
    assert compare(dict(reversed(labels.items())), shuffled, "SRR@3 CG@1 nDCG@10").pairs.equals(first.pairs)
    one, other = (row(compare(labels, runs, "SRR@3", seed=seed, resamples=50), "SRR@3") for seed in (1, 2))
    assert one["low"] != other["low"]


def test_stopping_early_wins_rates_at_its_own_end_and_the_comparison_says_so() -> None:
    files = {name: EXAMPLES / "guideline" / f"{name}.run" for name in ("agent", "stopped_early")}
    with collect_notices() as notices:
        comparison = compare(EXAMPLES / "guideline" / "qrels.txt", files, "SRR SRE RG CG", iterations=3)
    *told, noise = comparison.notes
    assert [*map(str, notices)] == told
    assert noise.startswith("Each system has one run, so the noise of a rerun is unknown.")
    assert any(
        note.startswith("SRR, SRE, RG, CG: the systems stop at different iterations") for note in comparison.notes
    )

    for name in ("SRR", "SRE", "RG"):
        assert row(comparison, name)["wins"] == 1
    assert row(comparison, "CG")["losses"] == row(comparison, "RG@3")["losses"] == 1
    assert row(comparison, "SRR@3")["wins"] == 1  # it keeps its value at N

    said = "Before iteration 3 stopped_early stopped in 1 query, while another system searched on."
    assert any(note.startswith(said) for note in comparison.notes)
    assert row(comparison, "SRR")["more_iterations"] == -1


def test_a_query_that_a_run_lacks_counts_as_having_no_results_and_is_reported() -> None:
    labels, runs = many(20)
    short = runs["lean"].filter(pl.col("query_id") != "q000")
    extra = pl.concat([runs["wordy"], runs["wordy"].head(1).with_columns(query_id=pl.lit("unknown"))])
    found = quietly(labels, {"wordy": extra, "short": short}, "CG@3 SRR@3")
    assert row(found, "CG@3")["queries"] == 20 and row(found, "CG@3")["losses"] == 1
    assert found.systems.select("absent_from_run", "without_judgments").rows() == [(0, 1), (1, 0)]
    joined = " ".join(found.notes)
    assert "1 query is absent from short, whose run has no row of it: q000 (counted as having no results)." in joined
    assert "judged; the others are left out (wordy 1)." in joined
    assert "SRR@3 leaves out 1 query where a system has no results by iteration 3 (short 1)." in joined


def test_a_query_without_a_value_for_one_system_is_left_out_for_all_and_reported() -> None:
    def partial(qrels: Any, run: Any) -> float:
        return math.nan if run.empty or run["query_id"].iloc[0] == "q003" else float(len(run))

    labels, runs = many(20)
    length = ir_measures.define_byquery(partial, name="Length")
    found = quietly(labels, runs, [length, "CG@1"])
    assert row(found, "Length")["queries"] == 19 and row(found, "CG@1")["queries"] == 20
    assert "Length leaves out 1 query where a system has no value (wordy 1, lean 1)." in found.notes


def test_a_measure_without_any_value_has_nulls_and_no_verdict() -> None:
    labels, runs = many(3)
    nothing = ir_measures.define_byquery(lambda qrels, run: math.nan, name="Nothing")
    found = row(quietly(labels, runs, [nothing]), "Nothing")
    assert found["queries"] == 0 and found["verdict"] is None and found["p_t"] is None and not found["significant"]


def test_low_coverage_stands_beside_the_p_value() -> None:
    labels, runs = many(20)
    few = {query: dict(list(docs.items())[:5]) for query, docs in labels.items()}
    with pytest.warns(GoodgainNotice, match=r"wordy, lean: coverage is low: 0\.56 of the 180 "):
        comparison = compare(few, runs, "SRR@3")
    assert row(comparison, "SRR@3")["low_coverage"]
    assert not row(compare(labels, runs, "SRR@3"), "SRR@3")["low_coverage"]


@pytest.mark.filterwarnings("ignore:the first iteration is:goodgain.GoodgainNotice")
def test_a_notice_says_which_system_it_is_about() -> None:
    labels, runs = many(3)
    gap = runs["lean"].with_columns(iteration=pl.col("iteration") * 2)
    with pytest.warns(GoodgainNotice, match="^gappy: iteration numbers are missing"):
        compare(labels, {"lean": runs["lean"], "gappy": gap}, "SRR@3")


def test_scipy_is_imported_only_when_something_is_compared() -> None:
    code = "import sys, goodgain.analysis.comparing.compare_scores; sys.exit('scipy' in sys.modules)"
    source = Path(__file__).parents[3] / "src"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(source)}, check=False).returncode == 0


SESSIONS = Path(__file__).parents[4] / "shared" / "data" / "sessions"


@pytest.mark.skipif(not SESSIONS.is_dir(), reason="the sessions are not part of the project")
def test_real_sessions_cut_short_against_the_whole() -> None:
    qrels, run = SESSIONS / "sessions.qrels", gg.read_run(SESSIONS / "sessions.run")
    cut = gg.Run(run.rows.filter(pl.col("iteration") <= 2))
    found = quietly(qrels, {"whole": run, "cut": cut}, "CG CG@2 SRR NumIter", iterations=None)
    assert row(found, "CG@2")["verdict"] == "equal"
    assert row(found, "CG")["verdict"] == "worse" and row(found, "CG")["wins"] == 0
    assert row(found, "NumIter")["difference"] == pytest.approx(row(found, "CG")["more_iterations"])


def of_queries(*names: str) -> dict[str, dict[str, float]]:
    return {name: {"a": 1.0} for name in names}


@pytest.mark.parametrize("door", ["evaluate", "ledger", "pool", "label"])
@pytest.mark.parametrize(("shared", "told"), [(0, "no query"), (3, "only 3 of 8 queries"), (4, None)])
def test_a_run_that_shares_less_than_half_its_queries_with_the_qrels_is_a_notice(
    door: str, shared: int, told: str | None
) -> None:
    run = of_queries(*(f"q{k}" for k in range(1, shared + 1)), *(f"x{k}" for k in range(shared + 1, 9)))
    judged = {f"q{k}": {"a": 3} for k in range(1, 9)}
    calls: dict[str, Callable[[], object]] = {
        "evaluate": lambda: gg.evaluate(judged, run, "CG"),
        "ledger": lambda: gg.ledger(judged, run),
        "pool": lambda: gg.pool({"agent": run}, qrels=judged),
        "label": lambda: collect_documents(run, dict.fromkeys(run, "Why?"), qrels=judged),
    }
    with collect_notices() as notices:
        calls[door]()
    texts = [text for text in map(str, notices) if "of the run" in text and "in the qrels" in text]
    assert len(texts) == (told is not None), texts
    if told is not None:
        missing = f"'x{shared + 1}', the qrels have 'q{shared + 1}'). Check that run and qrels use the same query ids."
        assert told in texts[0] and missing in texts[0]


STAGED = {f"q{number}": {"a": 3, "b": 2, "c": 0} for number in range(8)}
STAGES = {
    name: in_one_search({query: {doc: float(len(docs) - k) for k, doc in enumerate(docs)} for query in STAGED})
    for name, docs in {"bm25": "cb", "dense": "bc", "fused": "ab", "reranked": "a"}.items()
}


def test_the_numbers_of_a_pair_against_the_previous_system_are_those_of_all_pairs_but_for_the_correction() -> None:
    every, previous = (compare(STAGED, STAGES, "SRE@1 CG@1", against=way) for way in (None, "previous"))
    columns = ["measure", "system", "against", "difference", "low", "high", "p_t", "p_randomisation", "p_tukey", "wins"]
    of_every = {row[:3]: row for row in every.pairs.select(columns).rows()}
    for row in previous.pairs.select(columns).rows():
        assert row == of_every[row[:3]]
    for measure in ("SRE@1", "CG@1"):
        rows = previous.pairs.filter(measure=measure)
        corrected = correct_by_holm(rows["p_randomisation"].to_numpy())
        assert rows["p_randomisation_holm"].to_list() == pytest.approx(corrected.tolist())
    assert "against" not in every.signature
