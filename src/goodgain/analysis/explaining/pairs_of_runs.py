"""Pairs the runs of two systems: each query is explained for each pair of a base run and a new run."""

from collections.abc import Mapping, Sequence
from itertools import product

import polars as pl

from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.errors import count_of, notice
from goodgain.formats import Qrels, Run
from goodgain.scoring.score_run import refuse_likely_iteration


def pair_runs(qrels: Qrels, runs: Mapping[str, Sequence[Run | RunFile]]) -> tuple[Qrels, dict[str, Run]]:
    """Repeat each query for each pair of a base run and a new run. Return two things: qrels and a dict with a run per system."""
    (base, base_runs), (new, new_runs) = runs.items()
    positions = product(range(len(base_runs)), range(len(new_runs)))
    pairs = pl.DataFrame([*positions], schema=["b", "n"], orient="row")
    notice(
        "pairs_of_runs",
        f"{base} has {count_of(len(base_runs), 'run')} and {new} has {len(new_runs)}. Each query is explained for each of the "
        f"{pairs.height} pairs, as QUERY (run of {base}, run of {new}).",
    )
    paired_qrels = Qrels(_repeat(qrels.frame, pairs), labels=qrels.labels, name=qrels.name)
    paired_runs = {base: _join_runs(base_runs, pairs, "b"), new: _join_runs(new_runs, pairs, "n")}
    return paired_qrels, paired_runs


def _join_runs(runs: Sequence[Run | RunFile], pairs: pl.DataFrame, side: str) -> Run:
    """Return one run with the rows of all runs of a system, repeated for each pair. `side` is the column of the system's runs."""
    whole = [read_whole(run) for run in runs]
    for run in whole:
        refuse_likely_iteration(run)

    rows, never_searched = [], []
    for number, run in enumerate(whole):
        pairs_of_run = pairs.filter(pl.col(side) == number)
        rows.append(_repeat(run.rows, pairs_of_run))
        never_searched.append(_repeat(run.never_searched.to_frame(), pairs_of_run))
    joined = whole[0].with_frame(pl.concat(rows, how="diagonal"))  # not every run has a tag
    joined.never_searched = pl.concat(never_searched).get_column("query_id")
    return joined


def _repeat(frame: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    query_id = _name_pair(pl.col("query_id"), pl.col("b"), pl.col("n"))
    repeated = frame.join(pairs, how="cross")
    return repeated.with_columns(query_id=query_id).drop("b", "n")


def _name_pair(query_id: pl.Expr, base_run: pl.Expr, new_run: pl.Expr) -> pl.Expr:
    return pl.format("{} ({}, {})", query_id, base_run + 1, new_run + 1)


def list_pairs(query_ids: pl.Series, base_runs: Sequence[str], new_runs: Sequence[str]) -> pl.DataFrame:
    """Return the frame `Explanation.pairs`, with the names of `pair_runs`."""
    rows = []
    for b, base_run in enumerate(base_runs):
        for n, new_run in enumerate(new_runs):
            rows.append((base_run, new_run, b, n))
    schema = {"run_base": pl.String, "run_new": pl.String, "b": pl.Int64, "n": pl.Int64}
    pairs = pl.DataFrame(rows, schema=schema, orient="row")
    queries = query_ids.to_frame("of_query").join(pairs, how="cross")
    query_id = _name_pair(pl.col("of_query"), pl.col("b"), pl.col("n"))
    return queries.select(query_id.alias("query_id"), "of_query", "run_base", "run_new")


def select_broken(
    broken: Mapping[str, pl.Series], runs_of: Mapping[str, Sequence[str]], pairs: pl.DataFrame | None
) -> dict[str, pl.Series]:
    """Return the queries of each system whose traces broke off, with the names of `pairs`. `broken` maps runs to queries."""
    none = pl.Series("query_id", [], pl.String)
    if pairs is None:
        return {system: broken.get(run, none) for system, (run,) in runs_of.items()}
    broken_of = {}
    for side, (system, runs) in zip(("run_base", "run_new"), runs_of.items(), strict=True):
        rows = [(query_id, run) for run in runs for query_id in broken.get(run, none)]
        broken_runs = pl.DataFrame(rows, schema={"of_query": pl.String, side: pl.String}, orient="row")
        is_broken = pairs.join(broken_runs, on=["of_query", side], how="semi")
        broken_of[system] = is_broken.get_column("query_id")
    return broken_of
