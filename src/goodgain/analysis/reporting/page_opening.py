"""Writes what a report says first: the headline and the tiles."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from goodgain.analysis.comparing.lost_queries import count_unsearched, join_counts
from goodgain.analysis.comparing.pairs_table import DECIDED, NOT_COMPARABLE
from goodgain.analysis.comparing.rendering import count_queries, format_signed
from goodgain.analysis.explaining.accounts import shorten
from goodgain.errors import count_of
from goodgain.files.tables import format_number
from goodgain.measures.declaration import add_arrow
from goodgain.measures.names import find_direction
from goodgain.measures.scores import Scores

#: Decimals, as in the tables of a comparison.
PLACES = 4
#: Measure of a tile, up to the iteration i -> title of the tile. The headline is about the first measure.
TILES = {
    "nCG@{i}": "Share of the good material found",
    "nDCGG@{i}": "How early it is found",
    "SRR@{i}": "Share of repeated results",
    "NumIter": "Searches per query",
}
#: The number of searches.
SEARCHES = "NumIter"
#: Count -> its noun. Whether more of them are better depends on what they are: a report says `more` and `fewer`.
_COUNTS = {SEARCHES: "searches", "NumResults": "results", "NumUnique": "different documents"}
#: Verdict -> how a tile says it.
_VERDICTS = {
    "better": "better, beyond chance",
    "worse": "worse, beyond chance",
    "unclear": "unclear: may be chance",
    "equal": "equal in every query",
    None: "no query has both values",
}
#: With more systems, only some have coloured lines, tables of their searches, and pictures of their own.
MOST_SYSTEMS = 6
#: How many systems have them then.
_HIGHLIGHTED = 4
#: How many reasons for doubt, and explanations, the page shows; the others are folded.
MOST_SHOWN = 5
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
    measures: Sequence[Any]  # the measures of the tiles, in the order of `TILES`; without iterations only the first
    scores: Mapping[str, Scores]  # by system
    pairs: pl.DataFrame | None  # the rows of `Comparison.pairs` for these and all other measures; None for one system
    spent: pl.DataFrame | None = None  # what `average_costs` returns; None without costs
    broke_off: Mapping[str, int] = MappingProxyType({})  # `Comparison.broke_off`

    @property
    def base(self) -> str:
        return next(iter(self.scores))

    @property
    def first(self) -> str:
        """The measure of the headline."""
        return str(self.measures[0])

    @property
    def within(self) -> str:
        return f"within {count_of(self.cutoff, 'search', 'searches')}"

    @property
    def lead(self) -> str:
        """The system that the headline compares with the first: with verdict `better` if possible, then the highest mean."""
        if self.pairs is None:
            return self.base
        is_better = (pl.col("verdict") == "better").fill_null(False)
        pairs = self.pairs.filter(measure=self.first)
        order = pairs.sort(is_better, "mean", descending=True, nulls_last=True, maintain_order=True)
        return str(order.item(0, "system"))

    @property
    def why_lead(self) -> str:
        """How the system `lead` was chosen among three or more systems. Of two systems none is chosen."""
        if self.pairs is None or len(self.scores) <= 2:
            return ""
        means = self._find_means()
        mean_of_lead = means.pop(self.lead)
        if mean_of_lead is None:
            return ""
        mean_of_base = means.pop(self.base)
        if any(mean is not None and mean > mean_of_lead for mean in means.values()):
            return f"with the highest mean of the systems that are better than {self.base}"
        if mean_of_base is not None and mean_of_base >= mean_of_lead:
            return f"with the highest mean of the {len(self.scores) - 1:,} systems compared"
        return f"with the highest mean of {len(self.scores):,} systems"

    @property
    def highlights(self) -> list[str]:
        """All systems or, if there are more than six, the first, the lead, and two with the highest means."""
        if len(self.scores) <= MOST_SYSTEMS:
            return [*self.scores]
        means = self._find_means()
        by_mean = sorted(means, key=lambda system: -1.0 if means[system] is None else means[system], reverse=True)
        return choose_first([*dict.fromkeys([self.base, self.lead, *by_mean])])

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of `pairs` for the system `lead`, by measure. A report on one system has no rows."""
        if self.pairs is None:
            return {}
        return {row["measure"]: row for row in self.pairs.filter(system=self.lead).iter_rows(named=True)}

    def _find_means(self) -> dict[str, Any]:
        return {system: scores.means[self.first] for system, scores in self.scores.items()}


def choose_first(systems: Sequence[str]) -> list[str]:
    """Return all systems or, if there are more than six, the first four."""
    return [*systems] if len(systems) <= MOST_SYSTEMS else [*systems[:_HIGHLIGHTED]]


def name_systems(systems: Sequence[str]) -> str:
    """Return the systems in a title.

    >>> name_systems(["quick", "late"]), name_systems([*"abcdefgh"])
    ('quick, late', '8 systems, compared with a')
    """
    if len(systems) <= MOST_SYSTEMS:
        return ", ".join(systems)
    return f"{len(systems):,} systems, compared with {systems[0]}"


def describe_headline(opening: Opening) -> Iterator[str]:
    """Yield the sentences of the headline: the values of its measure, whether the difference may be chance, other differences."""
    first = opening.first
    if opening.pairs is None:
        scores = opening.scores[opening.base]
        mean, number = scores.means[first], scores.num_queries[first]
        if mean is not None:
            share = show_shares(mean)[0]
            yield f"{opening.base} finds {share} of the good material {opening.within} ({count_queries(number)})."
        return

    rows = opening.rows
    yield _describe_pair(rows[first], opening)

    others = [row for measure, row in rows.items() if measure not in (first, SEARCHES)]  # a tile has the searches
    decided = describe_decided_measures(opening.lead, rows[first]["against"], others)
    if decided:
        yield decided
    else:
        yield from _describe_no_difference(others, too=rows[first]["verdict"] == "unclear")

    verdicts = _count_verdicts(opening)
    if verdicts:
        yield f"In {first} against {rows[first]['against']}, {join_words(verdicts)}."


def name_count(row: Mapping[str, Any]) -> str:
    """Return `more searches`, `fewer results` ... for a pair that differs in a count beyond chance, else an empty text."""
    noun = _COUNTS.get(str(row["measure"]).partition("@")[0])
    if noun is None or row["verdict"] not in DECIDED:
        return ""
    return f"more {noun}" if row["difference"] > 0 else f"fewer {noun}"


def describe_decided_measures(system: str, base: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Say in which measures a system differs from another one beyond chance. An empty text if it does in none.

    `rows` are of `Comparison.pairs`.
    """
    measures_of: dict[str, list[str]] = {}  # verdict -> measures
    counts = []
    for row in rows:
        if count := name_count(row):
            counts.append(count)
        else:
            measures_of.setdefault(row["verdict"], []).append(row["measure"])

    verdicts = [f"{verdict} in {join_words(measures_of[verdict])}" for verdict in DECIDED if verdict in measures_of]
    said = []
    if verdicts:
        said.append(f"is {', but '.join(verdicts)}")
    if counts:
        said.append(f"has {join_words(counts)} than {base}")
    return f"Beyond chance, {system} {', and '.join(said)}." if said else ""


def _describe_no_difference(rows: Sequence[Mapping[str, Any]], *, too: bool) -> Iterator[str]:
    """Yield sentences on the measures with the verdicts `unclear` and `equal`. `too`: the first measure may be chance, too."""
    measures_of: dict[str, list[str]] = {}  # verdict -> measures
    for row in rows:
        measures_of.setdefault(row["verdict"], []).append(row["measure"])

    if unclear := measures_of.get("unclear"):
        noun = "difference" if len(unclear) == 1 else "differences"
        also = "also " if too else ""
        yield f"The {noun} in {join_words(unclear)} may {also}be chance."
    if equal := measures_of.get("equal"):
        verb = "is" if len(equal) == 1 else "are"
        yield f"{join_words(equal)} {verb} equal in every query."


def _count_verdicts(opening: Opening) -> list[str]:
    """Return texts such as `3 are unclear`, on the systems beside the first and the lead."""
    if opening.pairs is None:
        return []
    others = opening.pairs.filter(pl.col("system") != opening.lead, measure=opening.first)
    verdict = pl.col("verdict").fill_null("without a value")

    said = []
    for (name,), pairs in others.group_by(verdict, maintain_order=True):
        systems = pairs.get_column("system").to_list()
        who = f"{len(systems):,} others" if len(systems) > 1 else "1 other"
        if others.height <= _NAMED:
            who = join_words(systems)
        verb = "is" if len(systems) == 1 else "are"
        said.append(f"{who} {verb} {name}")
    return said


def _describe_pair(row: Mapping[str, Any], opening: Opening) -> str:
    """Return the first sentence of the headline: the shares that the lead and the base find, and the verdict. `row` is of pairs."""
    name, base = row["system"], row["against"]
    if len(opening.scores) > 2:
        base = f"the baseline {base}"
    within, number = opening.within, count_queries(row["queries"])
    if row["mean"] is None:
        return f"No query has a value of {row['measure']} in both {name} and {base}."
    if row["verdict"].startswith(NOT_COMPARABLE):
        return f"{name} and {base} are {row['verdict']} in {row['measure']}."

    share, other = show_shares(row["mean"], row["mean_against"])
    if row["verdict"] == "equal":
        return (
            f"{name} and {base} find the same share of the good material in every query: {share} {within} ({number})."
        )
    leader = name
    if opening.why_lead:
        leader = f"{name}, {opening.why_lead},"
    if row["verdict"] == "unclear":
        return f"{leader} finds {share} of the good material {within}, {base} {other}. This may be chance ({number})."
    more = "more" if row["verdict"] == "better" else "less"
    return f"{leader} finds {more} of the good material than {base}: {share} against {other} {within}, beyond chance ({number})."


def describe_query(measure: str, query_id: str, text: str | None, values: Mapping[str, float]) -> str:
    """Return a sentence on a query: the one where two systems differ most or, with one system, the one with the lowest value."""
    query = shorten_middle(query_id, _ID)
    if text:
        query = f"“{shorten(text, _QUESTION)}” ({query})"
    said = [f"{system} {format_number(value, PLACES)}" for system, value in values.items()]
    extreme = "differs most" if len(values) > 1 else "is lowest"
    return f"{measure} {extreme} in {query}: {', '.join(said)}."


def describe_choice(opening: Opening) -> str:
    """Return a reason for doubt if the headline is about the best of several systems, else an empty text."""
    if not opening.why_lead:
        return ""
    return (
        f"{opening.lead} stands in the headline because it was chosen: {opening.why_lead} ({opening.first}). The highest of "
        "several means is too high on average, by chance. Compare this system again on new queries."
    )


def build_tiles(opening: Opening) -> Iterator[Tile]:
    """Yield the tiles on the first system and the lead. With costs, tokens take the place of searches per query."""
    rows = opening.rows
    for title, measure in zip(TILES.values(), opening.measures, strict=False):
        name = str(measure)
        shown = add_arrow(name, find_direction(measure))
        if name == SEARCHES and opening.spent is not None and "tokens" in opening.spent.columns:
            yield _build_tile_of_tokens(opening.spent, [*dict.fromkeys([opening.base, opening.lead])])
        elif opening.pairs is None:
            yield build_tile_of_system(title, shown, opening.base, name, opening.scores[opening.base].means[name])
        else:
            yield build_tile_of_pair(title, shown, rows[name])

    compared = [opening.base, opening.lead]
    lost = {system: count_unsearched(scores) for system, scores in opening.scores.items()}
    if any(map(any, lost.values())):
        yield build_tile_of_lost_queries(lost, compared)
    if any(opening.broke_off.values()):
        losers = [system for system in opening.scores if opening.broke_off.get(system)]
        systems = [*dict.fromkeys([*compared, *losers])][:_NAMED]
        values = [(system, f"{opening.broke_off.get(system, 0):,}") for system in systems]
        yield Tile("Queries that broke off", "", values)


def build_tile_of_system(title: str, shown: str, system: str, measure: str, mean: float | None) -> Tile:
    """Show the mean of one system. `shown` is the measure with an arrow."""
    places = 2 if measure == SEARCHES else PLACES
    return Tile(title, shown, [(system, format_number(mean, places))])


def build_tile_of_pair(title: str, shown: str, row: Mapping[str, Any]) -> Tile:
    """Show the means of two systems. `row` is of `Comparison.pairs`, `shown` is its measure with an arrow."""
    verdict, places = row["verdict"], PLACES
    said = _VERDICTS.get(verdict, verdict)
    if row["measure"] == SEARCHES:
        places = 2
        verdict = ""  # without the colour of better or worse
    if count := name_count(row):
        verdict, said = "", f"{count.partition(' ')[0]}, beyond chance"
    values = [
        (row["against"], format_number(row["mean_against"], places)),
        (row["system"], format_number(row["mean"], places)),
    ]
    return Tile(title, shown, values, format_signed(row["difference"], places), verdict or "", said)


def build_tile_of_lost_queries(lost: Mapping[str, tuple[int, int]], compared: Sequence[str]) -> Tile:
    """Show the compared systems, and others that lost queries. `lost` has the numbers of `count_unsearched`."""
    losers = [system for system, counts in lost.items() if any(counts)]
    systems = [*dict.fromkeys([*compared, *losers])][:_NAMED]
    values = [(system, f"{sum(lost[system]):,}") for system in systems]
    said = "; ".join(f"{system}: {join_counts(*lost[system])}" for system in systems if any(lost[system]))
    return Tile("Queries without a search", "", values, "", "", said)


def _build_tile_of_tokens(spent: pl.DataFrame, systems: Sequence[str]) -> Tile:
    """Show the mean tokens of one or two systems; of two, also the second minus the first. `spent` is from `average_costs`."""
    spent_by = {row["system"]: row for row in spent.iter_rows(named=True)}
    tokens = [spent_by[system]["tokens"] for system in systems]
    values = [(system, f"{number:,.0f}") for system, number in zip(systems, tokens, strict=True)]

    notes = []
    if "cost" in spent.columns:
        prices = [f"{system} {spent_by[system]['cost']:.3g}" for system in systems]
        notes.append(f"cost per query: {', '.join(prices)}")
    shown_difference = ""
    if len(systems) > 1:
        difference = round(tokens[1]) - round(tokens[0])
        shown_difference = f"{difference:+,}" if difference else "0"
        notes.append("not tested")
    return Tile("Tokens per query", "", values, shown_difference, "", "; ".join(notes))


def describe_tiles(opening: Opening, queries: int) -> str:
    """Return what the numbers of the tiles are."""
    text = f"Means over {count_queries(queries)}; @{opening.cutoff}: up to search {opening.cutoff}."
    if len(opening.scores) > 2:
        text += f" Of {len(opening.scores):,} systems, the tiles have the first and the one of the headline."
    return text


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
    if len(text) <= most:
        return text
    start = most // 3
    end = most - 1 - start
    return f"{text[:start]}…{text[-end:]}"


def join_words(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
