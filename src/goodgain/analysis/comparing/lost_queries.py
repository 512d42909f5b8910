"""Finds the queries that a system lost: it never searched, its run lacks the query, or its trace broke off."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from goodgain.measures.scores import Scores
from goodgain.schema import SEARCHED


def tabulate_searched(scores: Mapping[str, Scores]) -> pl.DataFrame:
    """Return the share of the runs of each system in which each judged query searched: query_id, measure, system, value.

    With `missing="absent"`, queries without a row in a run are left out, as from all means.
    """
    tables = [_find_shares(of_system).with_columns(system=pl.lit(name)) for name, of_system in scores.items()]
    measure = pl.lit(SEARCHED).alias("measure")
    return pl.concat(tables).select("query_id", measure, "system", "value")


def _find_shares(scores: Scores) -> pl.DataFrame:
    """Return query_id and value of each judged query: the share of the runs of a system in which it searched."""
    leaves_out_absent = scores.signature.get("missing") == "absent"
    of_runs = []
    for run in scores.replicates or (scores,):
        queries = run.queries
        query_ids = queries.both
        if not leaves_out_absent:
            query_ids = pl.concat([queries.both, queries.only_judged])
        lost = pl.concat([queries.never_searched, queries.only_judged])
        has_searched = ~query_ids.is_in(lost.implode())
        of_runs.append(pl.DataFrame({"query_id": query_ids, "value": has_searched.cast(pl.Float64)}))
    by_query = pl.concat(of_runs).group_by("query_id")
    return by_query.agg(pl.col("value").mean()).sort("query_id")


def count_unsearched(scores: Scores) -> tuple[int, int]:
    """Return two numbers of queries: those that never searched, and those without a row, each in at least one run."""
    queries = [run.queries for run in scores.replicates or (scores,)]
    never_searched = pl.concat([of_run.never_searched for of_run in queries])
    absent = pl.concat([of_run.only_judged for of_run in queries])
    return never_searched.n_unique(), absent.n_unique()


def describe_lost(scores: Mapping[str, Scores], broke_off: Mapping[str, int]) -> Iterator[str]:
    """Yield a text such as `new: 5 never searched, 2 broke off` for each system that lost queries."""
    for system, of_system in scores.items():
        if counted := join_counts(*count_unsearched(of_system), broke_off.get(system, 0)):
            yield f"{system}: {counted}"


def join_counts(never_searched: int, absent: int, broke_off: int = 0) -> str:
    counts = {"never searched": never_searched, "absent from the run": absent, "broke off": broke_off}
    return ", ".join(f"{number:,} {reason}" for reason, number in counts.items() if number)


def count_broken_off(incomplete: Mapping[str, pl.Series], runs_of: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Count the judged queries of each system that broke off in at least one run. `incomplete` is from `find_incomplete`."""
    numbers = {}
    for system, runs in runs_of.items():
        query_ids = _list_known(incomplete, [*runs, system])
        if query_ids:
            numbers[system] = pl.concat(query_ids).n_unique()
    return numbers


def _list_known(incomplete: Mapping[str, pl.Series], names: Iterable[str]) -> list[pl.Series]:
    return [incomplete[name] for name in dict.fromkeys(names) if name in incomplete]
