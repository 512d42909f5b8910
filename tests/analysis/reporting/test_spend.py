"""Curves over what was spent, and `gg.spend`: against brute force in fractions, and what is wrong with costs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.analysis.reporting.page_sentences import describe_spend
from tests.support import oracle
from tests.support.counts import how_many
from tests.support.random_runs import Case, Shape, make_case
from tests.support.tables import ROOT, no_notices, qrels_frame, run_frame

FOLDER = ROOT / "qrels_examples" / "two_agents"
QRELS, COSTS = FOLDER / "qrels.txt", FOLDER / "costs.csv"
RUNS = {name: FOLDER / f"{name}.run" for name in ("quick", "late")}
SEEDS = range(how_many(8, full=24))
MEASURES = ("CG", "RG", "SRE", "SRR", "nDCGG", "NumGood")


def read_cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return cases


#: query_id, iteration -> amount; None: the row is there without it.
Amounts = dict[tuple[str, int], int | None]


class Drawn(NamedTuple):
    """A random run with its costs, and what the oracle counts in it."""

    case: Case
    tables: oracle.Tables
    costs: pl.DataFrame
    amounts: dict[str, Amounts]

    def spent(self, over: str, query: str, i: int) -> Fraction:
        """What a query has spent when it ends iteration i."""
        if over == "searches":
            return Fraction(i)
        if over == "results":
            return Fraction(sum(self.tables.at(query, k).R for k in range(1, i + 1)))
        return Fraction(sum(self.amounts[over].get((query, k)) or 0 for k in range(1, i + 1)))

    def has_costs(self, what: str, query: str, *, least: int = 0) -> bool:
        amounts = self.amounts.get(what, {})
        known = [i for (q, i), amount in amounts.items() if q == query and amount is not None]
        n = self.tables.pools[query].N
        return n == 0 or any(least <= i <= (n if least else i) for i in known)


def draw(seed: int, *, complete: bool = False) -> Drawn:
    chance = random.Random(seed)
    case = make_case(chance, Shape(queries=7, words=False, gaps=False))
    tables = oracle.count(case.run, case.qrels)
    amounts: dict[str, Amounts] = {name: {} for name in ("calls", "input_tokens", "output_tokens", "cost", "seconds")}
    lengths = {query: len(steps) for query, steps in oracle.iterations(case.run).items()}
    keys = [
        (query, i) for query, n in lengths.items() for i in range(n + 1) if complete or i == 0 or chance.random() < 0.9
    ]
    for key in keys:
        for amount in amounts.values():
            amount[key] = chance.randint(0, 9) if complete or chance.random() < 0.8 else None
    rows = [key + tuple(amount[key] for amount in amounts.values()) for key in keys]
    chance.shuffle(rows)
    types = {"query_id": pl.String, **dict.fromkeys(("iteration", *amounts), pl.Int64)}
    frame = pl.DataFrame(rows, schema=types, orient="row")
    both = (amounts["input_tokens"], amounts["output_tokens"])
    amounts["tokens"] = {
        key: None if (a := both[0][key]) is None and both[1][key] is None else (a or 0) + (both[1][key] or 0)
        for key in keys
    }
    return Drawn(case, tables, frame, amounts)


def run_of(drawn: Drawn) -> tuple[pl.DataFrame, pl.DataFrame]:
    return qrels_frame(drawn.case.qrels), run_frame(drawn.case.run)


# --- Curves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("over", ["searches", "results", "tokens", "cost", "seconds"])
def test_a_curve_over_spends_of_random_runs_is_that_of_brute_force(over: str) -> None:
    tried = 0
    for seed in SEEDS:
        drawn = draw(seed)
        qrels, run = run_of(drawn)
        pools = drawn.tables.pools
        asks_costs = over not in ("searches", "results")
        counted = [q for q in pools if not asks_costs or drawn.has_costs(over, q, least=1)]
        if not any(pools[q].N for q in counted):
            continue
        tried += 1
        with no_notices():
            costs = drawn.costs if asks_costs else None
            curve = gg.curve(qrels, {"a": run}, " ".join(MEASURES), over=over, costs=costs, resamples=0)
        spends = {drawn.spent(over, q, i) for q in counted for i in range(1, pools[q].N + 1)}
        wanted = sorted(float(x) for x in spends)
        for measure in MEASURES:
            rows = curve.filter(measure=measure)
            assert rows["spend"].to_list() == wanted
            assert set(rows["queries"]) == {len(counted)}
            for x, mean, searching in rows.select("spend", "mean", "searching").iter_rows():
                total = Fraction(0)
                for q in counted:
                    reached = max((i for i in range(1, pools[q].N + 1) if drawn.spent(over, q, i) <= x), default=0)
                    total += oracle.value(drawn.tables, q, measure, at=reached) if reached else 0
                assert mean == pytest.approx(float(total / len(counted)), rel=1e-12, abs=1e-12), (seed, measure, x)
                assert searching == sum(pools[q].N > 0 and drawn.spent(over, q, pools[q].N) >= x for q in counted)

    assert tried > len(SEEDS) // 2


def test_over_searches_a_sum_has_the_values_and_intervals_of_its_iterations() -> None:
    by_spend = gg.curve(QRELS, RUNS, "CG nCG", over="searches")
    by_iteration = gg.curve(QRELS, RUNS, "CG nCG").drop("coverage")
    assert_frame_equal(
        by_spend.drop("over").with_columns(pl.col("spend").cast(pl.Int64)).rename({"spend": "iteration"}), by_iteration
    )


def test_a_curve_has_at_most_50_observed_spends_evenly_spaced_in_rank() -> None:
    costs = pl.read_csv(COSTS)
    curve = gg.curve(QRELS, RUNS, "CG", over="tokens", costs=costs, resamples=0)
    tokens = pl.col("input_tokens") + pl.col("output_tokens")
    seen = sorted(
        set(costs.filter(pl.col("iteration") > 0).select(tokens.cum_sum().over("query_id", "system"))["input_tokens"])
    )
    ranks = [round(k * (len(seen) - 1) / 49) for k in range(50)]
    assert len(seen) > 200
    for name in RUNS:
        assert curve.filter(system=name)["spend"].to_list() == [seen[rank] for rank in ranks]


def test_a_query_without_costs_is_left_out_in_all_systems_with_one_notice() -> None:
    costs = pl.read_csv(COSTS).filter((pl.col("query_id") != "q03") | (pl.col("system") == "late"))
    with pytest.warns(
        gg.GoodgainNotice, match=r"costs= has no tokens for 1 of 25 judged queries: q03\. They are left out"
    ):
        curve = gg.curve(QRELS, RUNS, "CG", over="tokens", costs=costs, at=[10_000], resamples=0)
    rows = gg.read_qrels(QRELS).frame.filter(pl.col("query_id") != "q03")
    with no_notices():
        wanted = gg.curve(rows, RUNS, "CG", over="tokens", costs=costs, at=[10_000], resamples=0)
    assert_frame_equal(curve, wanted)
    assert curve["queries"].to_list() == [24, 24]


def curve_from_0(costs: Iterable[tuple[Any, ...]], first: int, over: str) -> list[tuple[float, float]]:
    """The curve of two queries with two searches each, each of which finds a document with label 2."""
    run = pl.DataFrame({"query_id": ["p", "p", "q", "q"], "iteration": [first, first + 1] * 2, "doc_id": [*"abab"]})
    types = {"query_id": pl.String, "iteration": pl.Int64, "cost": pl.Float64, "seconds": pl.Float64}
    frame = pl.DataFrame([(*row, None)[:4] for row in costs], schema=types, orient="row")
    qrels = {query_id: {"a": 2, "b": 2} for query_id in "pq"}
    curve = gg.curve(qrels, {"g": run}, "CG", over=over, costs=frame, resamples=0)
    return curve.select("spend", "mean").rows()


@pytest.mark.parametrize("case", read_cases("numbers_of_costs.json"), ids=lambda case: case["rule"])
def test_costs_are_those_of_the_search_whatever_number_is_the_first_or_an_error(case: dict[str, Any]) -> None:
    given = (map(tuple, case["costs"]), case.get("first", 0), case.get("over", "cost"))
    if "error" in case:
        with pytest.raises(gg.InputError, match=case["error"]):
            curve_from_0(*given)
    elif "notice" in case:
        with pytest.warns(gg.GoodgainNotice, match=case["notice"]):
            curve_from_0(*given)
    else:
        with no_notices():
            assert curve_from_0(*given) == [*map(tuple, case["curve"])]


# --- gg.spend ---------------------------------------------------------------------------------------------------------


def list_quantities(
    drawn: Drawn, solved: dict[str, float | None], price: Fraction
) -> Iterator[tuple[str, list[str], Any]]:
    """Yield each quantity by its definition: its name, the queries that count, and its value over a list of queries."""
    tables, pools, amounts = drawn.tables, drawn.tables.pools, drawn.amounts
    last = max([1, *(pool.N for pool in pools.values())])

    def total(what: str, queries: list[str]) -> Fraction:
        return Fraction(sum(amount or 0 for q in queries for (of, _), amount in amounts[what].items() if of == q))

    def good(name: str, queries: list[str], at: int | None = None) -> Fraction:
        if at == 0:
            return Fraction(0)
        return sum((oracle.value(tables, q, name, at=at) for q in queries), Fraction(0))

    def divide(a: Fraction, b: Fraction) -> float | None:
        return float(a / b) if b else (None if a == 0 else float("inf"))

    def enough(queries: list[str]) -> float:
        return next(b for b in range(1, last + 1) if good("CG", queries, b) >= Fraction(19, 20) * good("CG", queries))

    def best(queries: list[str]) -> float:
        worth = {i: good("CG", queries, i) - price * sum(min(i, pools[q].N) for q in queries) for i in range(last + 1)}
        return min(i for i in worth if worth[i] == max(worth.values()))

    known = {what: sorted(q for q in pools if drawn.has_costs(what, q)) for what in ("cost", "calls", "tokens")}
    yield "CostPerGood", known["cost"], lambda qs: divide(total("cost", qs), good("NumGood", qs))
    yield "GainPerCall", known["calls"], lambda qs: divide(good("CG", qs), total("calls", qs))
    with_outcome = [q for q in known["tokens"] if solved[q] is not None]
    yield (
        "TokensPerSolved",
        with_outcome,
        lambda qs: divide(total("tokens", qs), Fraction(sum(solved[q] or 0 for q in qs))),
    )
    yield "SearchesFor95", sorted(q for q in pools if good("CG", [q]) > 0), enough
    yield "SearchesWorthPrice", sorted(pools), best


def finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def number(values: dict[str, float | None]) -> dict[str, float]:
    """For approx, which takes no None; no quantity is below 0."""
    return {name: -1.0 if value is None else value for name, value in values.items()}


@pytest.mark.slow
def test_quantities_and_intervals_of_random_runs_are_those_of_brute_force() -> None:
    tried = []
    for seed in SEEDS:
        drawn = draw(seed)
        qrels, run = run_of(drawn)
        chance = random.Random(seed)
        solved = {q: chance.choice((0.0, 1.0, 1.0, None)) for q in drawn.tables.pools}
        if not any(solved.values()):
            continue
        outcomes = pl.DataFrame({"query_id": [*solved], "system": "a", "solved": [*solved.values()]})
        price = Fraction(chance.choice((0, 1, 3)), 2)
        options = {"outcomes": outcomes, "price_per_search": float(price), "resamples": 40, "seed": seed}
        try:
            with no_notices():
                spend = gg.spend(qrels, {"a": run}, drawn.costs, **options)
                by_query = gg.spend(qrels, {"a": run}, drawn.costs, **options, per_query=True)
        except gg.InputError as error:
            assert "for any judged query of a" in str(error)
            continue
        rows = {row["quantity"]: row for row in spend.rows(named=True)}
        for name, queries, value in list_quantities(drawn, solved, price):
            if name not in rows:
                continue
            tried.append(name)
            assert rows[name]["queries"] == len(queries)
            if not queries:
                assert (rows[name]["value"], rows[name]["low"], rows[name]["high"]) == (None, None, None)
                continue
            each = dict(by_query.filter(quantity=name).select("query_id", "value").iter_rows())
            wanted = {q: finite(value([q])) if q in queries else None for q in solved}
            assert number(each) == pytest.approx(number(wanted), rel=1e-12), (seed, name)
            drawn_queries = np.random.default_rng(seed).integers(0, len(queries), size=(40, len(queries)))
            values = sorted(v for row in drawn_queries if (v := value([queries[k] for k in row])) is not None)
            # the smallest value that at least 2.5 % (97.5 %) of them do not exceed
            places = {"low": max(0, -(-len(values) * 25 // 1000) - 1), "high": -(-len(values) * 975 // 1000) - 1}
            ends = {end: finite(values[place]) if values else None for end, place in places.items()}
            found_now = {end: rows[name][end] for end in ("value", "low", "high")}
            ends["value"] = finite(value(queries))
            assert number(found_now) == pytest.approx(number(ends), rel=1e-12), (seed, name)

    assert set(tried) == {"CostPerGood", "GainPerCall", "TokensPerSolved", "SearchesFor95", "SearchesWorthPrice"}
    assert len(tried) > 2 * len(SEEDS)


@pytest.mark.slow
def test_gains_and_searches_of_several_runs_are_averaged_before_stopping_is_computed() -> None:
    for seed in range(how_many(3, full=10)):
        drawn = [draw(seed), draw(seed + 1_000)]
        qrels = run_of(drawn[0])[0]
        runs = [run_of(one)[1] for one in drawn]
        price = random.Random(seed).choice([0.0, 0.3, 1.0])
        with no_notices():
            spend = gg.spend(qrels, {"a": runs}, price_per_search=price, resamples=0)
            curves = [gg.curve(qrels, {"a": run}, "CG", upto=9, resamples=0) for run in runs]
            ledgers = [gg.ledger(qrels, run).filter("judged") for run in runs]

        gains = [0.0, *((curves[0]["mean"] + curves[1]["mean"]) * curves[0]["queries"][0] / 2)]
        searches = [sum((ledger["iteration"] <= i).sum() for ledger in ledgers) / 2 for i in range(10)]
        worth = [gain - price * paid for gain, paid in zip(gains, searches, strict=True)]
        values = dict(spend.select("quantity", "value").iter_rows())
        if gains[-1]:
            assert values["SearchesFor95"] == min(i for i in range(10) if gains[i] >= 0.95 * gains[-1] - 1e-9)
        assert values["SearchesWorthPrice"] == min(i for i in range(10) if worth[i] >= max(worth) - 1e-9)


def test_two_agents_by_hand() -> None:
    spend = gg.spend(QRELS, RUNS, COSTS, outcomes=FOLDER / "outcomes.csv", resamples=200)
    costs = pl.read_csv(COSTS)
    ledger = gg.ledger(QRELS, RUNS["late"])
    rows = costs.filter(system="late")
    late = {row["quantity"]: row for row in spend.filter(system="late").rows(named=True)}
    assert late["CostPerGood"]["value"] == pytest.approx(rows["cost"].sum() / ledger["GR"].sum())
    assert late["GainPerCall"]["value"] == pytest.approx(ledger["G"].sum() / rows["calls"].sum())
    solved = pl.read_csv(FOLDER / "outcomes.csv").filter(system="late")["solved"].sum()
    assert late["TokensPerSolved"]["value"] == (rows["input_tokens"].sum() + rows["output_tokens"].sum()) / solved
    assert [row["better"] for row in late.values()] == ["down", "up", "down", None]
    assert all(row["low"] <= row["value"] <= row["high"] for row in late.values())


# --- Reading costs ----------------------------------------------------------------------------------------------------

ONE = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
LABELS = {"q": {"a": 2, "b": 2}}
SPENT = pl.DataFrame(
    {"query_id": "q", "iteration": [1, 2], "calls": [1, 2], "input_tokens": [10, 20], "cost": [0.5, 0.25]}
)


def spend_one(costs: Any, runs: tuple[str, ...] = ("a",)) -> list[tuple[Any, ...]]:
    return gg.spend(LABELS, dict.fromkeys(runs, ONE), costs, resamples=0).select("system", "quantity", "value").rows()


def test_costs_are_read_from_every_kind_of_table(tmp_path: Path) -> None:
    wanted = [("a", "CostPerGood", 0.375), ("a", "GainPerCall", 4 / 3), ("a", "SearchesFor95", 2.0)]
    SPENT.write_csv(tmp_path / "c.csv")
    SPENT.write_csv(tmp_path / "c.tsv", separator="\t")
    SPENT.write_ndjson(tmp_path / "c.jsonl")
    (tmp_path / "c.json").write_text(json.dumps(SPENT.to_dicts()))
    SPENT.write_parquet(tmp_path / "c.parquet")
    (tmp_path / "floats.csv").write_text("query_id,iteration,calls,cost\nq,1.0,1.0,5e-1\nq,2,2,.25\n")
    per_query = SPENT.group_by("query_id").agg(pl.col("calls", "cost").sum())
    with_null = SPENT.to_pandas().astype({"iteration": float})
    with_null.loc[2] = ["q", 0, float("nan"), float("nan"), float("nan")]

    for source in (
        SPENT,
        with_null,
        SPENT.to_arrow(),
        per_query,
        [SPENT.head(1), SPENT.tail(1)],
        *sorted(tmp_path.iterdir()),
    ):
        assert spend_one(source) == wanted


def test_costs_of_systems_and_replicates_are_found_by_name() -> None:
    named = SPENT.with_columns(system=pl.lit("new"), replicate=pl.lit(1))
    again = named.with_columns(replicate=pl.lit(2), cost=pl.col("cost") * 2)
    rows = SPENT.with_columns(system=pl.lit("old"), replicate=pl.lit(None, pl.Int32))
    both = [pl.concat([named, again]), rows]
    assert [row for row in spend_one(both, ("new.1", "new.2", "old")) if row[1] == "CostPerGood"] == [
        ("new.1", "CostPerGood", 0.375),
        ("new.2", "CostPerGood", 0.75),
        ("old", "CostPerGood", 0.375),
    ]
    assert spend_one(named, ("new",))[0] == ("new", "CostPerGood", 0.375), "one replicate needs no number"
    with pytest.raises(gg.InputError, match=r"2 replicates of new\. Name the run after one of them: new\.1"):
        spend_one(both, ("new", "old"))

    many = pl.concat([named.with_columns(replicate=pl.lit(k)) for k in range(9, 0, -1)])
    with pytest.raises(gg.InputError, match=r"9 replicates of new\. Name the run after one of them: new\.1\."):
        spend_one(many, ("new",))


@pytest.mark.parametrize("case", read_cases("wrong_costs.json"), ids=lambda case: case["error"])
def test_costs_that_cannot_be_used_are_an_error_with_its_remedy(case: dict[str, Any]) -> None:
    types = {name: pl.String if value is None else None for name, value in case.get("set", {}).items()}
    changed = SPENT.with_columns(**{name: pl.lit(case["set"][name], of) for name, of in types.items()})
    changed = changed.drop(case.get("drop", []))
    changed = pl.concat([changed.clear(), *[changed] * case.get("times", 1)])
    with pytest.raises(gg.InputError, match=case["error"]):
        spend_one(case.get("source", changed))


def test_a_sentence_agrees_with_its_number_of_searches() -> None:
    run = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "x"], "rank": 1})
    sentences = []
    for price in (2, 4):
        spends = gg.spend({"q": {"a": 3}}, {"late": run}, price_per_search=price, resamples=0)
        sentences.append([*describe_spend(spends, price)][-1])
    assert sentences == [
        "late: at a price of 2 each, 1 search is worth it",
        "late: at a price of 4 each, 0 searches are worth it",
    ]
