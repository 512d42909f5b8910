"""Writes the sentences of a report below its headline: verdicts by measure, words, spends, and reasons for doubt."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_sentences import (
    GROUPS,
    describe_correction,
    describe_costs,
    explain_intervals,
    name_test,
)
from goodgain.analysis.comparing.pairs_table import DECIDED, NOT_COMPARABLE
from goodgain.analysis.comparing.rendering import count_queries, format_interval, format_signed
from goodgain.analysis.comparing.use_of_documents import STAGES, Funnel
from goodgain.analysis.reporting.page_opening import PLACES, join_words, name_count
from goodgain.analysis.reporting.spends import format_amount
from goodgain.errors import count_of
from goodgain.files.tables import Table, format_number
from goodgain.measures.declaration import ARROWS, GoodGainMeasure, add_arrow, find_declaration
from goodgain.measures.scores import Scores

#: Means over fewer queries say little.
_FEW_QUERIES = 10
#: The sentence on a count, such as `more searches`.
_SAID_OF_COUNT = "{system} has {verdict} than {against}: {changes}."
#: Verdict -> sentence on a pair of systems.
_SAID = {
    "better": "{system} is better than {against} in {changes}.",
    "worse": "{system} is worse than {against} in {changes}.",
    "unclear": "{system} against {against} is unclear, no difference beyond chance, in {changes}.",
    "equal": "{system} and {against} are equal in every query in {names}.",
    None: "No direction is better for {changes}.",
}


def describe_comparison(comparison: Comparison) -> Iterator[str]:
    """Yield a text for each pair of systems: in which measures a system is better or worse, and which differences are unclear."""
    queries = comparison.signature["queries"]
    for (system, against), pairs in comparison.pairs.group_by("system", "against", maintain_order=True):
        rows_by_verdict: dict[str | None, list[dict[str, Any]]] = {}
        lacking = []
        for row in pairs.iter_rows(named=True):
            if row["queries"]:
                rows_by_verdict.setdefault(_name_verdict(row), []).append(row)
            else:
                lacking.append(row["measure"])
        incomparable = [name for name in rows_by_verdict if name is not None and name.startswith(NOT_COMPARABLE)]
        counts = list(dict.fromkeys(filter(None, map(name_count, pairs.iter_rows(named=True)))))

        said = []
        for verdict in (*DECIDED, *counts, "unclear", "equal", *incomparable, None):
            if rows := rows_by_verdict.get(verdict):
                other = _SAID_OF_COUNT if verdict in counts else "{system} and {against} are {verdict} in {names}."
                template = _SAID.get(verdict, other)
                sentence = template.format(
                    system=system,
                    against=against,
                    verdict=verdict,
                    names=join_words([_name_measure(row, queries) for row in rows]),
                    changes=join_words([_describe_change(row, queries) for row in rows]),
                )
                said.append(sentence)
        if lacking:
            said.append(f"No query has a value of {join_words(lacking)} in both systems.")
        yield " ".join(said)


def _name_verdict(row: Mapping[str, Any]) -> str | None:
    verdict: str | None = row["verdict"]
    return name_count(row) or verdict


def describe_method(comparison: Comparison) -> str:
    """Return a text on how to read the numbers of `describe_comparison`, and on what the systems spent."""
    signature = comparison.signature
    sentences = [
        f"In brackets: two means over {count_queries(signature['queries'])} unless a number is given, their difference, and its "
        "interval.",
        explain_intervals(comparison.pairs, comparison.question),
        f"Better and worse are beyond chance: p is at most {signature['alpha']:g}, {describe_correction(comparison)}.",
        describe_costs(comparison),
    ]
    return " ".join(filter(None, sentences))


def _name_measure(row: Mapping[str, Any], all_queries: int) -> str:
    measure = str(row["measure"])
    if row["queries"] >= all_queries:
        return measure
    return f"{measure} (both have a value in {count_queries(row['queries'])})"


def _describe_change(row: Mapping[str, Any], all_queries: int) -> str:
    """Return a measure with both means, their difference, and the number of queries if it is below `all_queries`."""
    measure = f"{row['measure']} {ARROWS[row['better']]}".strip()
    means = f"{format_number(row['mean'], PLACES)} against {format_number(row['mean_against'], PLACES)}"
    difference = format_signed(row["difference"], PLACES)
    interval = format_interval(row["low"], row["high"], PLACES, absent="")
    if interval:
        difference = f"{difference} {interval}"
    number = ""
    if row["queries"] < all_queries:
        number = f", {count_queries(row['queries'])}"
    return f"{measure} ({means}: {difference}{number})"


def describe_words(measures: Sequence[Any], rel: float) -> Iterator[tuple[str, str]]:
    """Yield the words that a reader needs, with their meaning: good, iteration, and each measure."""
    yield "good", f"a document with a label of {rel:g} or higher"
    yield "iteration", "a search of the agent, or several in one step"
    yield (
        "@",
        "up to this iteration; for measures that ranx and trec_eval share, up to this rank of the joined iterations",
    )
    yield "R, Dup, GR, G", "of an iteration: results, repeated results, new good documents, gain"
    for measure in measures:
        declared = measure.declaration if isinstance(measure, GoodGainMeasure) else find_declaration(measure)
        if declared is not None:
            yield add_arrow(str(measure), declared.better), f"{declared.title}: {declared.definition}"


def explain_marks(tables: Iterable[Table], comparison: Comparison | None) -> dict[str, str]:
    """Return the marks in the cells of tables, with their meaning: bold and *."""
    marks = {}
    for table in tables:
        cells = [cell for row in table.rows for cell in row]
        if any(cell.best for cell in cells):
            marks["bold"] = "the best mean of a measure"
        if comparison is not None and table.name == GROUPS and any(cell.text.endswith("*") for cell in cells):
            test = name_test(comparison, of_groups=True).removeprefix("Significance: ")
            marks["*"] = f"a significant difference in a group of queries ({test})"
    return marks


def describe_tables(asked: Iterable[str], tiles: Iterable[str], marks: Mapping[str, str]) -> str:
    """Explain the marks in the tables, and name the measures that only the tiles need."""
    asked = [*asked]
    added = [measure for measure in tiles if measure not in asked]
    sentences = [f"{mark[0].upper()}{mark[1:]}: {meaning}." for mark, meaning in marks.items()]
    if added:
        noun = "the measure of a tile" if len(added) == 1 else "measures of tiles"
        sentences.insert(0, f"Beside the measures asked for: {join_words(added)}, {noun}.")
    return " ".join(sentences)


def describe_system(
    system: str, scores: Scores, measures: Iterable[str], measure: str, iterations: pl.DataFrame
) -> Iterator[str]:
    """Yield sentences on the means of measures, on searches, and on the query with the lowest value of a measure."""
    queries = scores.signature["queries"]
    means = []
    for name in measures:
        text = f"{name} {format_number(scores.means[name], PLACES)}"
        if scores.num_queries[name] < queries:
            text += f" ({count_queries(scores.num_queries[name])})"
        means.append(text)
    yield (
        f"This report shows one system, {system}, and compares it with none. Means over {count_queries(queries)}: "
        f"{join_words(means)}."
    )

    share = scores.coverage.filter(pl.col("iteration").is_null()).item(0, "coverage")
    idle = int(iterations.get_column("brought_nothing_good").sum())
    of_first_run = " of the first run" if scores.replicates else ""
    said = [
        f"Judged share of the unique results: {format_number(share, 2)}.",
        f"{idle:,} of {count_of(iterations.height, 'iteration')}{of_first_run} found no good document while some were missing.",
    ]
    values = scores.per_query.filter(measure=measure).drop_nulls("value")
    lowest = values.filter(pl.col("value") == pl.col("value").min()).select("query_id", "value").rows()
    if lowest:
        query, value = lowest[0]
        place = f" in {count_queries(len(lowest))}, one of them" if len(lowest) > 1 else " in"
        said.append(f"The lowest {measure} is {format_number(value, PLACES)},{place} {query}.")
    yield " ".join(said)


def describe_funnel(system: str, funnel: Funnel) -> Iterator[str]:
    """Yield a sentence: how many good documents a system returned, opened and cited, as means over the judged queries."""
    for row in funnel.frame.filter(system=system).iter_rows(named=True):
        means = [f"{format_number(row[f'good_{stage}'], 2)} {stage}" for stage in STAGES if row[stage] is not None]
        yield f"Good documents, mean over queries: {join_words(means)}."


def describe_spend(spends: pl.DataFrame, price: float | None = None) -> Iterator[str]:
    """Yield a sentence for each row of `spends`, the table of `gg.spend`."""
    for system, name, value, low, high, _, better in spends.iter_rows():
        interval = ""
        if low is not None:
            upper = "..." if high is None else format_amount(high)
            interval = f" [{format_amount(low)}, {upper}]"

        if name == "SearchesFor95":
            text = "no search finds anything good"
            if value:
                text = f"95 % of its gain is there after {_count_searches(value)}{interval}"
            yield f"{system}: {text}"
        elif name == "SearchesWorthPrice":
            verb = "is" if value == 1 else "are"
            yield f"{system}: at a price of {price:g} each, {_count_searches(value)}{interval} {verb} worth it"
        else:
            amount = "–" if value is None else format_amount(value)
            yield f"{system}: {add_arrow(name, better)} {amount}{interval}"


def _count_searches(value: float) -> str:
    return count_of(round(value), "search", "searches")


def list_doubts(
    comparison: Comparison | None, notices: Sequence[str], *, of_first_runs: bool, choice: str = ""
) -> list[str]:
    """Return reasons for doubt: what concerns every value, then the notes of the comparison and the notices of all steps.

    `choice` says how the system of the headline was chosen. With `of_first_runs`, the page has causes and searches of the first
    runs alone.
    """
    doubts: list[str] = []
    if comparison is None:
        doubts.append("One system: nothing here says whether its values are good. Give a second run to compare.")
    elif (number := comparison.signature["queries"]) < _FEW_QUERIES:
        doubts.append(f"Only {count_of(number, 'query', 'queries')}: even a large difference may not hold for others.")
    if choice:
        doubts.append(choice)
    if of_first_runs:
        doubts.append(
            "Causes and searches are those of the first run of each system; other values are means over runs."
        )
    if comparison is not None:
        doubts += comparison.notes
    return list(dict.fromkeys([*doubts, *notices]))
