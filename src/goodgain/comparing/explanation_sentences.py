"""The sentences of an explanation: what two systems did where they part, the causes in words, and the summary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.comparing.causes import Parts, add_up

if TYPE_CHECKING:
    from goodgain.comparing.explanation import Explanation

#: Who counts a document, and the cause -> what happened to `{n}`.
_HAPPENED = {
    ("base", "not_retrieved"): "{new} never retrieved {n}",
    ("base", "never_searched"): "{new} stopped before {base} found {n}",
    ("base", "later"): "{new} found {n} only after iteration {at}",
    ("base", "judged_differently"): "{new} found {n} where the label is lower",
    ("new", "not_retrieved"): "{base} never retrieved {n}",
    ("new", "never_searched"): "{base} stopped before {new} found {n}",
    ("new", "earlier"): "{base} found {n} only after iteration {at}",
    ("new", "judged_differently"): "{base} found {n} where the label is lower",
    ("both", "later"): "{new} found {n} later",
    ("both", "earlier"): "{new} found {n} earlier",
    ("both", "judged_differently"): "both found {n}, with different labels",
}
#: How many documents a line names, and how many characters of a text it shows.
_NAMED, _LONGEST = 3, 70


class QueryRows:
    """The rows of an explanation by query: a filter for each of many queries takes long."""

    def __init__(self, of: Explanation) -> None:
        self._of = of

    @cached_property
    def _iterations(self) -> Mapping[Any, pl.DataFrame]:
        return self._of.iterations.partition_by("query_id", "system", as_dict=True, maintain_order=True)

    @cached_property
    def _documents(self) -> Mapping[Any, pl.DataFrame]:
        return self._of.documents.partition_by("query_id", "measure", as_dict=True, maintain_order=True)

    def iterations(self, query_id: str, system: str) -> list[dict[str, Any]]:
        rows = self._iterations.get((query_id, system))
        return [] if rows is None else rows.to_dicts()

    def documents(self, query_id: str, measure: str) -> pl.DataFrame:
        numerator = str(self._of.parts[measure].numerator)
        return self._documents.get((query_id, numerator), self._of.documents.clear())


def add_sentences(of: Explanation) -> pl.DataFrame:
    """Return the queries of an explanation with the column sentence; null where the two systems are equal."""
    rows = QueryRows(of)
    sentences = [
        " ".join(f"{line}." for line in describe_change(of, rows, row)) or None
        for row in of.queries.iter_rows(named=True)
    ]
    return of.queries.with_columns(sentence=pl.Series(sentences, dtype=pl.String))


def describe_change(of: Explanation, rows: QueryRows, row: Mapping[str, Any], *, named: bool = False) -> Iterator[str]:
    """Yield what both systems did where they part, and the causes; with `named` the documents by name."""
    at, query_id = row["first_differing_iteration"], row["query_id"]
    if at is not None and row["difference"]:
        searched = [rows.iterations(query_id, name) for name in (of.base, of.new)]
        sides = [f"{name} {_describe_search(one, at)}" for name, one in zip((of.base, of.new), searched, strict=True)]
        yield from sides if named else [f"At iteration {at} {sides[0]}; {sides[1]}"]
    if row["numerator_base"] is not None and row["difference"]:
        yield _describe_rate(of, row)
    documents = rows.documents(query_id, row["measure"]).filter(pl.col("cause").is_not_null())
    causes = add_up(documents, ["counted_by", "cause"])
    causes = causes.sort("amount", descending=row["difference"] > 0, maintain_order=True)
    for counted_by, cause, number, amount in causes.iter_rows():
        found = documents.filter(counted_by=counted_by, cause=cause)
        names = name_documents(found) if named else _count(number, "good document")
        yield f"{describe_cause(of, of.parts[row['measure']], counted_by, cause, names)} ({show_signed(amount)})"
    if named:
        troubles = (_describe_trouble(name, rows.iterations(query_id, name)) for name in (of.base, of.new))
        yield from filter(None, troubles)


def _describe_search(iterations: list[dict[str, Any]], at: int) -> str:
    """Return what a system did in an iteration: the rest of a sentence that begins with its name."""
    if len(iterations) < at:
        return f"had stopped after {_count(len(iterations), 'iteration')}" if iterations else "never searched"
    row = iterations[at - 1]
    if not row["query_text"]:
        return describe_outcome(row)
    repeated = "repeated its search" if row["is_repeated_query"] else "searched"
    return f"{repeated} “{shorten(row['query_text'])}” and {describe_outcome(row)}"


def describe_outcome(row: Mapping[str, Any]) -> str:
    """Return what an iteration brought, in a few words."""
    others = row["new_other"] + row["unjudged"]
    if row["new_good"]:
        return f"found {_count(row['new_good'], 'good document')}"
    if not others and not row["repeated"]:
        return "got an error" if row["failed"] else "got no results"
    return "found nothing good" if others else "got only results that it had"


def _describe_trouble(name: str, iterations: list[dict[str, Any]]) -> str:
    """Return the failed, empty and repeated searches of a query, empty if there are none."""
    words = {"failed": "failed", "empty": "returned nothing", "repeated_queries": "repeated a search string"}
    totals = {said: sum(row[column] or 0 for row in iterations) for column, said in words.items()}
    said = ", ".join(f"{total} {words}" for words, total in totals.items() if total)
    searches = _count(sum(row["searches"] for row in iterations), "search", "es")
    return f"{name}, {searches}: {said}" if said else ""


def _describe_rate(of: Explanation, row: Mapping[str, Any]) -> str:
    parts = of.parts[row["measure"]]
    above, below = ([show(row[f"{part}_{side}"]) for side in ("base", "new")] for part in ("numerator", "denominator"))
    return f"{parts.numerator} {' → '.join(above)}, {parts.denominator} {' → '.join(below)}"


def describe_cause(of: Explanation, parts: Parts, counted_by: str, cause: str, names: str) -> str:
    """Return what happened to documents, which have these names in the sentence."""
    return _HAPPENED[counted_by, cause].format(base=of.base, new=of.new, n=names, at=parts.measure.cutoff)


def name_documents(documents: pl.DataFrame) -> str:
    """Return the documents with the largest labels by title or id, each with its label."""
    rows = documents.sort("relevance", descending=True, maintain_order=True).head(_NAMED).iter_rows(named=True)
    more = f" and {documents.height - _NAMED:,} more" if documents.height > _NAMED else ""
    return ", ".join(f"{shorten(row['title'] or row['doc_id'])} ({show(row['relevance'])})" for row in rows) + more


def find_most_changed(queries: pl.DataFrame, top: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the queries of one measure that fell most and those that rose most, at most `top` each, largest change first.

    Args:
        queries: the rows of `Explanation.queries` of one measure.
        top: how many of each.
    """
    changed = queries.sort("difference", maintain_order=True)
    rising = changed.filter(pl.col("difference") > 0).reverse()
    return changed.filter(pl.col("difference") < 0).head(top), rising.head(top)


def describe_values(row: Mapping[str, Any]) -> str:
    """Return a query with its two values and the difference."""
    change = f"{show(row['base'])} → {show(row['new'])} ({show_signed(row['difference'])})"
    return f"{row['query_id']}: {row['measure']} {change}"


def summarise(of: Explanation, rows: QueryRows, measure: str, queries: pl.DataFrame) -> str:
    """Return the sentence that says most: queries down and up, the main cause, and the query that lost most."""
    falling, rising = find_most_changed(queries, queries.height)
    if not falling.height and not rising.height:
        return f"{measure}: {of.base} and {of.new} are equal in {_count(queries.height, 'query')}."
    means = [math.fsum(queries.get_column(name)) / queries.height for name in ("base", "new")]
    total = math.fsum(queries.get_column("difference"))
    said = [
        f"{measure}: {of.new} is lower than {of.base} in {falling.height:,} of {_count(queries.height, 'query')} and higher in "
        f"{rising.height:,}; mean {show(means[0])} → {show(means[1])} ({show_signed(total / queries.height)})."
    ]
    causes = total_causes(of, str(of.parts[measure].numerator))
    same_way = causes.filter(pl.col("amount") * (total or -1) > 0)
    is_up = of.parts[measure].measure.declaration.better == "up"
    if same_way.height:
        main = same_way.sort(pl.col("amount").abs(), descending=True, maintain_order=True).row(0, named=True)
        names = _count(main["documents"], "good document")
        cause = describe_cause(of, of.parts[measure], main["counted_by"], main["cause"], names)
        said.append(f"Main cause: {cause} ({show_signed(main['amount'])}).")
    worse, better = (falling, rising) if is_up else (rising, falling)
    row = (worse if worse.height else better).row(0, named=True)
    did = ("lost" if is_up else "worsened") if worse.height else "improved"
    why = ". ".join(islice(describe_change(of, rows, row), 2))
    return " ".join([*said, f"{row['query_id']} {did} most ({show_signed(row['difference'])}). {why}."])


def total_causes(of: Explanation, measure: str) -> pl.DataFrame:
    """Return counted_by, cause, documents, amount, queries over all queries; losses first."""
    by = ["counted_by", "cause"]
    documents = of.documents.filter(pl.col("measure") == measure, pl.col("cause").is_not_null())
    queries = documents.group_by(by).agg(queries=pl.col("query_id").n_unique())
    return add_up(documents, by).join(queries, on=by).sort("amount", *by)


def describe_whole(of: Explanation) -> Iterator[str]:
    """Yield sentences on wasted and repeated searches, and on unjudged documents, over all queries."""
    for name in (of.base, of.new):
        wasted, rows = of.wasted.filter(system=name), of.iterations.filter(system=name)
        total, searches = (int(rows.get_column(column).sum()) for column in ("repeated_queries", "searches"))
        unproductive = int(rows.get_column("brought_nothing_good").sum())
        share = f" It repeated {total:,} of its {_count(searches, 'search string')}." if total else ""
        yield (
            f"{name}: {unproductive:,} of {_count(rows.height, 'iteration')} brought nothing good while some was missing; "
            f"{int(wasted.get_column('wasted').sum()):,} came after the last good document of a query.{share}"
        )
    first = of.queries.filter(measure=of.measures[0])
    base, new = (int(first.get_column(f"unjudged_{side}_only").sum()) for side in ("base", "new"))
    if base or new:
        yield (
            f"Not in these sums: unjudged documents that one system alone found, {base:,} by {of.base}, {new:,} by {of.new}."
        )


def _count(number: int, noun: str, ending: str = "s") -> str:
    many = "queries" if noun == "query" else f"{noun}{ending}"
    return f"{number:,} {noun if number == 1 else many}"


def shorten(text: str) -> str:
    """Return a text of a log in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def show(value: float | None) -> str:
    """Return a number with at most four decimals, and without those that are zero."""
    if value is None:
        return "–"
    shown = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def show_signed(value: float) -> str:
    """Return a number as `show` does, with its sign."""
    shown = show(value)
    return shown if shown == "0" or value < 0 else f"+{shown}"
