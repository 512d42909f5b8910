"""What the page of a report opens with: the headline in words, and tiles with the figures that people repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.comparing.explanation_sentences import shorten
from goodgain.comparing.pairs_table import NOT_COMPARABLE
from goodgain.comparing.rendering import count_queries, format_number, format_signed
from goodgain.errors import count_of
from goodgain.measures.declaration import add_arrow
from goodgain.measures.names import find_direction
from goodgain.measures.scores import Scores
from goodgain.reporting.page_sentences import PLACES, join_words

#: Measures of the tiles, up to the iteration i -> what each says. The headline is about the first one.
TILES = {
    "nCG@{i}": "Share of the good material found",
    "nDCGG@{i}": "How early it is found",
    "SRR@{i}": "Share of repeated results",
    "NumIter": "Searches per query",
}
#: It is a cost: whether fewer searches are better depends on what they find.
_SEARCHES = [*TILES][-1]
#: Verdict -> how a tile says it.
_VERDICTS = {
    "better": "better, beyond chance",
    "worse": "worse, beyond chance",
    "unclear": "unclear: may be chance",
    "equal": "equal in every query",
    None: "no query has both values",
}
_OF_SEARCHES = {"better": "fewer, beyond chance", "worse": "more, beyond chance"}
#: System of a pair -> the column of its mean.
_SIDES = (("against", "mean_against"), ("system", "mean"))
#: Characters of an id and of a question in a sentence.
_ID, _QUESTION = 40, 90
#: With more other systems, the headline counts them.
_NAMED = 4


class Tile(NamedTuple):
    """A figure of the first screen: systems with their values, and the difference from the baseline with its verdict."""

    title: str
    measure: str
    values: Sequence[tuple[str, str]]
    difference: str = ""
    verdict: str = ""
    said: str = ""


class Opening(NamedTuple):
    """What the page says first.

    Attributes:
        cutoff: the iteration of the tiles.
        measures: the measures of the tiles, in the order of `TILES`.
        scores: system -> its scores.
        pairs: the rows of `Comparison.pairs` for these and all other measures; None for one system.
        spent: what `average_costs` returns; None without costs.
    """

    cutoff: int
    measures: Sequence[Any]
    scores: Mapping[str, Scores]
    pairs: pl.DataFrame | None
    spent: pl.DataFrame | None = None

    @property
    def within(self) -> str:
        return f"within {count_of(self.cutoff, 'search', 'searches')}"

    @property
    def lead(self) -> str:
        """The system of the headline: the only one, else the other system that is best, those with the verdict first."""
        if self.pairs is None:
            return next(iter(self.scores))
        order = self.pairs.filter(measure=str(self.measures[0])).sort(
            (pl.col("verdict") == "better").fill_null(False), "mean", descending=True, nulls_last=True, maintain_order=True
        )  # fmt: skip
        return str(order.item(0, "system"))

    def list_rows(self) -> list[dict[str, Any]]:
        """Return the pairs of the headline's system, one for each measure."""
        return [] if self.pairs is None else self.pairs.filter(system=self.lead).to_dicts()


def describe_headline(of: Opening) -> Iterator[str]:
    """Yield the sentences of the headline: shares of the good material, whether they differ by chance, other differences."""
    first = str(of.measures[0])
    if of.pairs is None:
        (name, scores), *_ = of.scores.items()
        mean, number = scores.means[first], scores.num_queries[first]
        if mean is not None:
            yield f"{name} finds {show_shares(mean)[0]} of the good material {of.within} ({count_queries(number)})."
        return
    rows = {row["measure"]: row for row in of.list_rows()}
    yield _describe_pair(rows[first], of)
    more: dict[str, list[str]] = {}
    for name, row in rows.items():
        if name not in (first, _SEARCHES):
            more.setdefault("unclear" if row["verdict"] == "equal" else row["verdict"], []).append(name)
    said = [f"{verdict} in {join_words(more[verdict])}" for verdict in ("better", "worse") if verdict in more]
    if said:
        yield f"Beyond chance, {of.lead} is {', but '.join(said)}."
    elif "unclear" in more:
        yield f"No other difference is beyond chance: {join_words(more['unclear'])}."
    others = of.pairs.filter(pl.col("system") != of.lead, measure=first)
    if others.height:
        yield f"In {first} against {rows[first]['against']}, {_describe_others(others)}."


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


def _describe_others(others: pl.DataFrame) -> str:
    groups = others.with_columns(pl.col("verdict").fill_null("without a value")).group_by(
        "verdict", maintain_order=True
    )
    said = []
    for (verdict,), of in groups:
        names = of.get_column("system").to_list()
        who = join_words(names) if others.height <= _NAMED else f"{len(names):,}"
        said.append(f"{who} {'is' if len(names) == 1 else 'are'} {verdict}")
    return join_words(said)


def describe_query(measure: str, query_id: str, text: str | None, values: Mapping[str, float]) -> str:
    """Return which query shows the difference most, with the values of both systems; of one system the lowest value."""
    query = shorten_middle(query_id, _ID)
    name = f"“{shorten(text, _QUESTION)}” ({query})" if text else query
    said = [f"{system} {format_number(value, PLACES)}" for system, value in values.items()]
    return f"{measure} {'differs most' if len(values) > 1 else 'is lowest'} in {name}: {', '.join(said)}."


def build_tiles(of: Opening) -> Iterator[Tile]:
    """Yield the tiles of measures."""
    rows = {row["measure"]: row for row in of.list_rows()}
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
        said = _VERDICTS.get(verdict, verdict)
        if name == _SEARCHES:
            said, verdict, places = _OF_SEARCHES.get(verdict, said), "", 2
        yield Tile(
            title,
            shown,
            [(row[side], format_number(row[mean], places)) for side, mean in _SIDES],
            format_signed(row["difference"], places),
            verdict or "",
            said,
        )


def _build_tile_of_tokens(spent: pl.DataFrame, systems: Sequence[str]) -> Tile:
    """Return the tile of tokens, with prices below where they are known: fewer tokens can cost more."""
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
    """Return shares in per cent, with the decimals that tell them apart, and from 0 and 1.

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
    """Return a text with its middle left out where it is long: ids often differ at their ends.

    >>> shorten_middle("browsecomp-plus-2025/topic-0001", 20)
    'browse…25/topic-0001'
    """
    kept = most - 1 - most // 3
    return text if len(text) <= most else f"{text[: most // 3]}…{text[-kept:]}"
