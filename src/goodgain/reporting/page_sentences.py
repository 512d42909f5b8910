"""The first lines of a report, in fixed sentences: which system is better at what, by how much, and what to distrust."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from goodgain.comparing.comparison import Comparison
from goodgain.comparing.comparison_tables import describe_costs
from goodgain.comparing.explanation import Explanation
from goodgain.comparing.explanation_screens import build_screen
from goodgain.comparing.pairs_table import NOT_COMPARABLE
from goodgain.comparing.rendering import count_queries, format_interval, format_number, format_signed
from goodgain.comparing.use_of_documents import Funnel
from goodgain.errors import count_of
from goodgain.files.tables import Line
from goodgain.measures.declaration import ARROWS, GoodGainMeasure, add_arrow
from goodgain.measures.names import find_declaration
from goodgain.measures.scores import Scores

#: Decimals, as in the tables of a comparison.
PLACES = 4
#: Means over fewer queries say little.
_FEW_QUERIES = 10


def describe_comparison(comparison: Comparison) -> Iterator[str]:
    """Yield a text for each pair: the measures in which a system is better, worse or unclear."""
    for (system, against), of in comparison.pairs.group_by("system", "against", maintain_order=True):
        fewer = pl.col("queries") < comparison.signature["queries"]
        known = of.filter(pl.col("queries") > 0).with_columns(of_queries=pl.when(fewer).then("queries"))
        by_verdict = known.rows_by_key("verdict", named=True, include_key=True)
        said = [
            f"{system} is {verdict} than {against} in {join_words(map(_describe_change, by_verdict[verdict]))}."
            for verdict in ("better", "worse")
            if verdict in by_verdict
        ]
        if unclear := by_verdict.get("unclear", []):
            changes = join_words(map(_describe_change, unclear))
            said.append(f"{system} against {against} is unclear, no difference beyond chance, in {changes}.")
        if equal := by_verdict.get("equal", []):
            said.append(f"{system} and {against} are equal in every query in {join_words(map(_name_measure, equal))}.")
        said += [
            f"{system} and {against} are {verdict} in {join_words(map(_name_measure, rows))}."
            for verdict, rows in by_verdict.items()
            if verdict is not None and verdict.startswith(NOT_COMPARABLE)
        ]
        if untold := by_verdict.get(None, []):
            said.append(f"No direction is better for {join_words(map(_describe_change, untold))}.")
        if known.height < of.height:
            lacking = of.filter(pl.col("queries") == 0).get_column("measure")
            said.append(f"No query has a value of {join_words(lacking)} in both systems.")
        yield " ".join(said)


def describe_method(comparison: Comparison) -> str:
    """Return what the numbers of `describe_comparison` mean, and what the systems spent."""
    made = comparison.signature
    return (
        f"In brackets: two means over {count_queries(made['queries'])} unless a number is given, their difference, and its "
        f"{100 * (1 - made['alpha']):g} % interval. Better and worse are beyond chance: p is at most {made['alpha']:g} after "
        f"Holm's correction over the pairs of a measure. {describe_costs(comparison)}"
    )


def _name_measure(row: Mapping[str, Any]) -> str:
    number = row["of_queries"]
    return str(row["measure"]) if number is None else f"{row['measure']} (both have a value in {count_queries(number)})"


def _describe_change(row: Mapping[str, Any]) -> str:
    mean, against = (format_number(row[name], PLACES) for name in ("mean", "mean_against"))
    measure = f"{row['measure']} {ARROWS[row['better']]}".strip()
    interval = format_interval(row["low"], row["high"], PLACES)
    number = "" if row["of_queries"] is None else f", {count_queries(row['of_queries'])}"
    return f"{measure} ({mean} against {against}: {format_signed(row['difference'], PLACES)} {interval}{number})"


def describe_explanation(explanation: Explanation) -> str:
    """Return the first sentence of `explain`: the main cause, and the query to look at first."""
    first = next(build_screen(explanation))
    return first.text if isinstance(first, Line) else ""


def describe_words(measures: Sequence[Any], rel: float) -> Iterator[tuple[str, str]]:
    """Yield the words that a reader needs, with their meaning: good, iteration, and each measure."""
    yield "good", f"a document with a label of {rel:g} or higher"
    yield "iteration", "a search of the agent, or several in one step"
    yield (
        "@",
        "up to this iteration; of measures that ranx and trec_eval have too, up to this rank of all iterations joined",
    )
    yield (
        "R, Dup, GR, G",
        "of an iteration: its results, those the agent already had, its new good documents, their gain",
    )
    for measure in measures:
        declared = measure.declaration if isinstance(measure, GoodGainMeasure) else find_declaration(measure)
        if declared is not None:
            yield add_arrow(str(measure), declared.better), f"{declared.title}: {declared.definition}"


def describe_one(
    system: str, scores: Scores, measures: Iterable[str], measure: str, iterations: pl.DataFrame
) -> Iterator[str]:
    """Yield means of measures, what searches brought, and the query with the lowest value of a measure.

    `iterations` has the columns of `Explanation.iterations`.
    """
    queries = scores.signature["queries"]
    means = (
        f"{name} {format_number(scores.means[name], PLACES)}"
        + (f" ({count_queries(scores.num_queries[name])})" if scores.num_queries[name] < queries else "")
        for name in measures
    )
    yield (
        f"This report shows one system, {system}, and compares it with none. Means over {count_queries(queries)}: "
        f"{join_words(means)}."
    )
    share = scores.coverage.filter(pl.col("iteration").is_null()).item(0, "coverage")
    idle = int(iterations.get_column("brought_nothing_good").sum())
    said = [
        f"Judged share of the unique results: {format_number(share, 2)}.",
        f"{idle:,} of {count_of(iterations.height, 'iteration')}{' of the first run' if scores.replicates else ''} found no "
        "good document while some were missing.",
    ]
    values = scores.per_query.filter(measure=measure).drop_nulls("value")
    lowest = values.filter(pl.col("value") == pl.col("value").min()).select("query_id", "value").rows()
    if lowest:
        query, value = lowest[0]
        alike = f" in {count_queries(len(lowest))}, one of them" if len(lowest) > 1 else " in"
        said.append(f"The lowest {measure} is {format_number(value, PLACES)},{alike} {query}.")
    yield " ".join(said)


def describe_funnel(system: str, found: Funnel) -> Iterator[str]:
    """Yield how many good documents a system returned, opened and cited on average; nothing without uses in judged queries."""
    stages = ("returned", "opened", "cited")
    for row in found.frame.filter(system=system).iter_rows(named=True):
        means = [f"{format_number(row[f'good_{stage}'], 2)} {stage}" for stage in stages if row[stage] is not None]
        yield f"Good documents, mean over queries: {join_words(means)}."


def list_doubts(comparison: Comparison | None, notices: Sequence[str]) -> list[str]:
    """Return what to distrust: the notes of the comparison, the notices of all steps, and whether the queries are few."""
    notes = [*(comparison.notes if comparison else ()), *notices]
    if comparison is None:
        notes.append("One system: nothing here says whether its values are good. Give a second run to compare.")
    elif (number := comparison.signature["queries"]) < _FEW_QUERIES:
        notes.append(f"Only {count_of(number, 'query', 'queries')}: even a large difference may not hold for others.")
    return list(dict.fromkeys(notes))


def join_words(parts: Any) -> str:
    """Return parts as a list in a sentence: a, b and c."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else str(last)
