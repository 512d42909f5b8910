"""Writes the sentences on the page of a report: the headline and the tiles, verdicts by measure, and reasons for doubt."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_sentences import describe_correction, describe_costs, explain_intervals
from goodgain.analysis.comparing.lost_queries import count_unsearched, join_counts
from goodgain.analysis.comparing.pairs_table import NOT_COMPARABLE
from goodgain.analysis.comparing.rendering import count_queries, format_interval, format_number, format_signed
from goodgain.analysis.comparing.use_of_documents import STAGES, Funnel
from goodgain.analysis.explaining.explanation_sentences import shorten
from goodgain.analysis.reporting.spends import format_amount
from goodgain.errors import count_of
from goodgain.measures.declaration import ARROWS, GoodGainMeasure, add_arrow, find_declaration
from goodgain.measures.names import find_direction
from goodgain.measures.scores import Scores

#: Decimals, as in the tables of a comparison.
PLACES = 4
#: Means over fewer queries say little.
_FEW_QUERIES = 10
#: Measure of a tile, up to the iteration i -> title of the tile. The headline is about the first measure.
TILES = {
    "nCG@{i}": "Share of the good material found",
    "nDCGG@{i}": "How early it is found",
    "SRR@{i}": "Share of repeated results",
    "NumIter": "Searches per query",
}
#: Searches are a cost: whether fewer searches are better depends on what they find.
_SEARCHES = [*TILES][-1]
#: Verdict -> how a tile says it.
VERDICTS = {
    "better": "better, beyond chance",
    "worse": "worse, beyond chance",
    "unclear": "unclear: may be chance",
    "equal": "equal in every query",
    None: "no query has both values",
}
#: Verdict -> sentence on a pair of systems.
_SAID = {
    "better": "{system} is better than {against} in {changes}.",
    "worse": "{system} is worse than {against} in {changes}.",
    "unclear": "{system} against {against} is unclear, no difference beyond chance, in {changes}.",
    "equal": "{system} and {against} are equal in every query in {names}.",
    None: "No direction is better for {changes}.",
}
_OF_SEARCHES = {"better": "fewer, beyond chance", "worse": "more, beyond chance"}
#: System of a pair -> the column of its mean.
_SIDES = (("against", "mean_against"), ("system", "mean"))
#: Characters of an id and of a question in a sentence.
_ID, _QUESTION = 40, 90
#: The headline names at most this number of other systems, and counts more systems.
_NAMED = 4


class Tile(NamedTuple):
    """A tile at the top of the page: systems with their values, and the difference from the baseline with its verdict."""

    title: str
    measure: str
    values: Sequence[tuple[str, str]]
    difference: str = ""
    verdict: str = ""
    said: str = ""


class Opening(NamedTuple):
    """The data of the headline and the tiles of a report."""

    cutoff: int  # the iteration of the tiles
    measures: Sequence[Any]  # the measures of the tiles, in the order of `TILES`
    scores: Mapping[str, Scores]  # by system
    pairs: pl.DataFrame | None  # the rows of `Comparison.pairs` for these and all other measures; None for one system
    spent: pl.DataFrame | None = None  # what `average_costs` returns; None without costs
    broke_off: Mapping[str, int] = MappingProxyType({})  # `Comparison.broke_off`

    @property
    def within(self) -> str:
        return f"within {count_of(self.cutoff, 'search', 'searches')}"

    @property
    def lead(self) -> str:
        """The system that the headline compares with the first: with verdict `better` if possible, then the highest mean."""
        if self.pairs is None:
            return next(iter(self.scores))
        is_better = (pl.col("verdict") == "better").fill_null(False)
        pairs = self.pairs.filter(measure=str(self.measures[0]))
        order = pairs.sort(is_better, "mean", descending=True, nulls_last=True, maintain_order=True)
        return str(order.item(0, "system"))

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of `pairs` for the system `lead`, by measure. A report on one system has no rows."""
        rows = [] if self.pairs is None else self.pairs.filter(system=self.lead).to_dicts()
        return {row["measure"]: row for row in rows}


def describe_headline(of: Opening) -> Iterator[str]:
    """Yield the headline: how much good material the systems found, whether a difference may be chance, and what else differs."""
    first = str(of.measures[0])
    if of.pairs is None:
        (name, scores), *_ = of.scores.items()
        mean, number = scores.means[first], scores.num_queries[first]
        if mean is not None:
            yield f"{name} finds {show_shares(mean)[0]} of the good material {of.within} ({count_queries(number)})."
        return
    rows = of.rows
    yield _describe_pair(rows[first], of)
    more: dict[str, list[str]] = {}
    for name, row in rows.items():
        if name not in (first, _SEARCHES):
            more.setdefault(row["verdict"], []).append(name)
    said = [f"{verdict} in {join_words(more[verdict])}" for verdict in ("better", "worse") if verdict in more]
    if said:
        yield f"Beyond chance, {of.lead} is {', but '.join(said)}."
    else:
        yield from _describe_no_difference(more, too=rows[first]["verdict"] == "unclear")
    others = of.pairs.filter(pl.col("system") != of.lead, measure=first)
    verdicts = []
    for (verdict,), some in others.group_by(pl.col("verdict").fill_null("without a value"), maintain_order=True):
        names = some.get_column("system").to_list()
        who = join_words(names) if others.height <= _NAMED else f"{len(names):,}"
        verdicts.append(f"{who} {'is' if len(names) == 1 else 'are'} {verdict}")
    if verdicts:
        yield f"In {first} against {rows[first]['against']}, {join_words(verdicts)}."


def _describe_no_difference(measures_of: Mapping[str, Sequence[str]], *, too: bool) -> Iterator[str]:
    """Yield sentences on the measures with the verdicts `unclear` and `equal`. `too`: the first measure may be chance, too."""
    if unclear := measures_of.get("unclear"):
        noun = "difference" if len(unclear) == 1 else "differences"
        yield f"The {noun} in {join_words(unclear)} may {'also ' * too}be chance."
    if equal := measures_of.get("equal"):
        yield f"{join_words(equal)} {'is' if len(equal) == 1 else 'are'} equal in every query."


def _describe_pair(row: Mapping[str, Any], of: Opening) -> str:
    name, against = row["system"], row["against"]
    base = f"the baseline {against}" if len(of.scores) > 2 else against
    number = count_queries(row["queries"])
    if row["mean"] is None:
        return f"No query has a value of {row['measure']} in both {name} and {base}."
    if row["verdict"].startswith(NOT_COMPARABLE):
        return f"{name} and {base} are {row['verdict']} in {row['measure']}."
    share, other = show_shares(row["mean"], row["mean_against"])
    if row["verdict"] == "equal":
        return f"{name} and {base} find the same share of the good material in every query: {share} {of.within} ({number})."
    if row["verdict"] == "unclear":
        return f"{name} finds {share} of the good material {of.within}, {base} {other}. This may be chance ({number})."
    more = "more" if row["verdict"] == "better" else "less"
    return f"{name} finds {more} of the good material than {base}: {share} against {other} {of.within}, beyond chance ({number})."


def describe_query(measure: str, query_id: str, text: str | None, values: Mapping[str, float]) -> str:
    """Return a sentence on a query: the one where two systems differ most or, with one system, the one with the lowest value."""
    query = shorten_middle(query_id, _ID)
    name = f"“{shorten(text, _QUESTION)}” ({query})" if text else query
    said = [f"{system} {format_number(value, PLACES)}" for system, value in values.items()]
    return f"{measure} {'differs most' if len(values) > 1 else 'is lowest'} in {name}: {', '.join(said)}."


def build_tiles(of: Opening) -> Iterator[Tile]:
    rows = of.rows
    spent = None if of.spent is None or "tokens" not in of.spent.columns else of.spent
    for title, measure in zip(TILES.values(), of.measures, strict=True):
        if spent is not None and str(measure) == _SEARCHES:
            yield _build_tile_of_tokens(spent, [*dict.fromkeys([next(iter(of.scores)), of.lead])])
            continue
        name, shown = str(measure), add_arrow(str(measure), find_direction(measure))
        if of.pairs is None:
            (system, scores), *_ = of.scores.items()
            yield Tile(title, shown, [(system, format_number(scores.means[name], PLACES))])
            continue
        row = rows[name]
        verdict, places = row["verdict"], PLACES
        said = VERDICTS.get(verdict, verdict)
        if name == _SEARCHES:
            said, verdict, places = _OF_SEARCHES.get(verdict, said), "", 2
        values = [(row[side], format_number(row[mean], places)) for side, mean in _SIDES]
        yield Tile(title, shown, values, format_signed(row["difference"], places), verdict or "", said)
    lost = {system: count_unsearched(scores) for system, scores in of.scores.items()}
    compared = [next(iter(of.scores)), of.lead]
    if any(map(any, lost.values())):
        yield build_tile_of_lost_queries(lost, compared)
    if any(of.broke_off.values()):
        losers = [system for system in of.scores if of.broke_off.get(system)]
        systems = [*dict.fromkeys([*compared, *losers])][:_NAMED]
        yield Tile("Queries that broke off", "", [(system, f"{of.broke_off.get(system, 0):,}") for system in systems])


def build_tile_of_lost_queries(lost: Mapping[str, tuple[int, int]], compared: Sequence[str]) -> Tile:
    """Show the compared systems, and others that lost queries. `lost` has the numbers of `count_unsearched`."""
    losers = [system for system, counts in lost.items() if any(counts)]
    systems = [*dict.fromkeys([*compared, *losers])][:_NAMED]
    values = [(system, f"{sum(lost[system]):,}") for system in systems]
    said = "; ".join(f"{system}: {join_counts(*lost[system])}" for system in systems if any(lost[system]))
    return Tile("Queries without a search", "", values, "", "", said)


def _build_tile_of_tokens(spent: pl.DataFrame, systems: Sequence[str]) -> Tile:
    of = {row["system"]: row for row in spent.iter_rows(named=True)}
    tokens = [of[name]["tokens"] for name in systems]
    values = [(name, f"{number:,.0f}") for name, number in zip(systems, tokens, strict=True)]
    prices = [f"{name} {of[name]['cost']:.3g}" for name in systems] if "cost" in spent.columns else []
    said = f"cost per query: {', '.join(prices)}" if prices else ""
    if len(systems) == 1:
        return Tile("Tokens per query", "", values, "", "", said)
    difference = round(tokens[1]) - round(tokens[0])
    said = "; ".join(filter(None, [said, "not tested"]))
    return Tile("Tokens per query", "", values, f"{difference:+,}" if difference else "0", "", said)


def show_shares(*shares: float) -> list[str]:
    """Return shares in per cent. Up to two decimals are added if two shares would look equal, or if a share would look like 0 or 1.

    >>> show_shares(0.7326, 0.7198), show_shares(0.984, 0.9838), show_shares(0.9999)
    (['73 %', '72 %'], ['98.40 %', '98.38 %'], ['99.99 %'])
    """
    marks = {0.0, 1.0, *shares}
    shown = []
    for places in range(3):
        shown = [f"{100 * share:.{places}f} %" for share in shares]
        if len({f"{100 * mark:.{places}f}" for mark in marks}) == len(marks):
            break
    return shown


def shorten_middle(text: str, most: int) -> str:
    """Cut the middle of a long text: ids often differ at their ends.

    >>> shorten_middle("browsecomp-plus-2025/topic-0001", 20)
    'browse…25/topic-0001'
    """
    kept = most - 1 - most // 3
    return text if len(text) <= most else f"{text[: most // 3]}…{text[-kept:]}"


def describe_comparison(comparison: Comparison) -> Iterator[str]:
    """Yield a text for each pair of systems: in which measures a system is better or worse, and which differences are unclear."""
    for (system, against), of in comparison.pairs.group_by("system", "against", maintain_order=True):
        fewer = pl.col("queries") < comparison.signature["queries"]
        known = of.filter(pl.col("queries") > 0).with_columns(of_queries=pl.when(fewer).then("queries"))
        by_verdict = known.rows_by_key("verdict", named=True, include_key=True)
        incomparable = (one for one in by_verdict if one is not None and one.startswith(NOT_COMPARABLE))
        said = []
        for verdict in ("better", "worse", "unclear", "equal", *incomparable, None):
            if rows := by_verdict.get(verdict, []):
                names, changes = join_words(map(_name_measure, rows)), join_words(map(_describe_change, rows))
                template = _SAID.get(verdict, "{system} and {against} are {verdict} in {names}.")
                words = {"system": system, "against": against, "verdict": verdict}
                said.append(template.format(names=names, changes=changes, **words))
        if known.height < of.height:
            lacking = of.filter(pl.col("queries") == 0).get_column("measure")
            said.append(f"No query has a value of {join_words(lacking)} in both systems.")
        yield " ".join(said)


def describe_method(comparison: Comparison) -> str:
    """Return a text on how to read the numbers of `describe_comparison`, and on what the systems spent."""
    made = comparison.signature
    sentences = [
        f"In brackets: two means over {count_queries(made['queries'])} unless a number is given, their difference, and its "
        "interval.",
        explain_intervals(comparison.pairs, comparison.question),
        f"Better and worse are beyond chance: p is at most {made['alpha']:g}, {describe_correction(comparison)}.",
        describe_costs(comparison),
    ]
    return " ".join(filter(None, sentences))


def _name_measure(row: Mapping[str, Any]) -> str:
    number = row["of_queries"]
    return str(row["measure"]) if number is None else f"{row['measure']} (both have a value in {count_queries(number)})"


def _describe_change(row: Mapping[str, Any]) -> str:
    mean, against = (format_number(row[name], PLACES) for name in ("mean", "mean_against"))
    measure = f"{row['measure']} {ARROWS[row['better']]}".strip()
    interval = format_interval(row["low"], row["high"], PLACES, absent="")
    difference = " ".join(filter(None, [format_signed(row["difference"], PLACES), interval]))
    number = "" if row["of_queries"] is None else f", {count_queries(row['of_queries'])}"
    return f"{measure} ({mean} against {against}: {difference}{number})"


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


def describe_one(
    system: str, scores: Scores, measures: Iterable[str], measure: str, iterations: pl.DataFrame
) -> Iterator[str]:
    """Yield sentences on the means of measures, on searches, and on the query with the lowest value of a measure."""
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
    """Yield a sentence: how many good documents a system returned, opened and cited, as means over the judged queries."""
    for row in found.frame.filter(system=system).iter_rows(named=True):
        means = [f"{format_number(row[f'good_{stage}'], 2)} {stage}" for stage in STAGES if row[stage] is not None]
        yield f"Good documents, mean over queries: {join_words(means)}."


def describe_spend(found: pl.DataFrame, price: float | None = None) -> Iterator[str]:
    """Yield a sentence for each row of `found`, the table of `gg.spend`."""
    for system, name, value, low, high, _, better in found.iter_rows():
        interval = "" if low is None else f" [{format_amount(low)}, {'...' if high is None else format_amount(high)}]"
        if name == "SearchesFor95":
            searches = f"{_count_searches(value)}{interval}" if value else ""
            told = f"95 % of its gain is there after {searches}" if value else "no search finds anything good"
            yield f"{system}: {told}"
        elif name == "SearchesWorthPrice":
            verb = "is" if value == 1 else "are"
            yield f"{system}: at a price of {price:g} each, {_count_searches(value)}{interval} {verb} worth it"
        else:
            yield f"{system}: {add_arrow(name, better)} {'–' if value is None else format_amount(value)}{interval}"


def _count_searches(value: float) -> str:
    return count_of(round(value), "search", "searches")


def list_doubts(comparison: Comparison | None, notices: Sequence[str], *, has_replicates: bool) -> list[str]:
    """Return reasons for doubt: what concerns every value, then the notes of the comparison and the notices of all steps."""
    of_all: list[str] = []
    if comparison is None:
        of_all.append("One system: nothing here says whether its values are good. Give a second run to compare.")
    elif (number := comparison.signature["queries"]) < _FEW_QUERIES:
        of_all.append(f"Only {count_of(number, 'query', 'queries')}: even a large difference may not hold for others.")
    if has_replicates:
        of_all.append(
            "Causes and searches are those of the first run of each system; other values are means over runs."
        )
    notes = comparison.notes if comparison else ()
    return list(dict.fromkeys([*of_all, *notes, *notices]))


def join_words(parts: Any) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else str(last)
