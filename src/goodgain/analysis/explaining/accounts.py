"""Describes in words what two systems did in a query, and the causes of a difference."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import polars as pl

from goodgain.analysis.comparing.rendering import list_some, show
from goodgain.analysis.explaining.causes import Parts
from goodgain.analysis.explaining.explanation_frames import ExplanationFrames
from goodgain.errors import count_of
from goodgain.measures.good_gain import NumDup
from goodgain.measures.thresholds import find_thresholds

#: Cause -> what the system `{other}` did with the documents `{n}` that only `{one}` counts.
HAPPENED = {
    "not_retrieved": "{other} never retrieved {n}",
    "broke_off": "{other} broke off where {one} found {n}",
    "absent": "{other} has no row where {one} found {n}",
    "never_searched": "{other} never searched where {one} found {n}",
    "stopped_before": "{other} stopped before {one} found {n}",
    "later": "{other} found {n} only after iteration {at}",
    "earlier": "{other} found {n} only after iteration {at}",
    "judged_differently": "{other} found {n} where the label is lower or missing",
}
#: Cause -> what happened to documents that both systems count.
_HAPPENED_IN_BOTH = {
    "later": "{new} found {n} later",
    "earlier": "{new} found {n} earlier",
    "judged_differently": "both found {n}, with different labels",
}
#: Number of searches -> what these searches did.
_SEARCHES = {"failed": "failed", "empty": "returned nothing", "repeated_queries": "repeated a search string"}
#: The largest number of characters of a text in a line.
_LONGEST = 70


class Account:
    """Describes in words what two systems did. Groups the rows of an explanation by query."""

    def __init__(self, frames: ExplanationFrames) -> None:
        self.frames = frames
        self.names = (frames.base, frames.new)

    # Rows are grouped once, as a filter per query is slow, and only when needed: there can be millions of repeats.
    @cached_property
    def iterations(self) -> Mapping[Any, list[dict[str, Any]]]:
        return self.frames.iterations.rows_by_key(["query_id", "system", "rel"], named=True, include_key=True)

    @cached_property
    def repeats(self) -> Mapping[Any, list[dict[str, Any]]]:
        return self.frames.repeats.rows_by_key(["query_id", "system"], named=True, include_key=True)

    @cached_property
    def causes(self) -> Mapping[Any, list[dict[str, Any]]]:
        return self.frames.causes.rows_by_key(["query_id", "measure"], named=True, include_key=True)

    @cached_property
    def absent(self) -> set[tuple[str, str]]:
        return {*self.frames.absent.select("system", "query_id").iter_rows()}

    @cached_property
    def broke_off(self) -> set[tuple[str, str]]:
        return {*self.frames.broke_off.select("system", "query_id").iter_rows()}

    @cached_property
    def alone(self) -> set[tuple[str, float, int]]:
        """Tuples (query, rel, iteration): in this iteration, one system found a good document that the other did not find in it."""
        rels = {str(parts.numerator): self.find_rel(parts) for parts in self.frames.parts.values()}
        rel = pl.col("measure").replace_strict(rels, return_dtype=pl.Float64)
        differs = pl.col("iteration_base").ne_missing(pl.col("iteration_new"))
        documents = self.frames.documents.filter(differs).with_columns(rel=rel)

        alone: set[tuple[str, float, int]] = set()
        for side in ("base", "new"):
            is_counted = pl.col("counted_by").is_in(["both", side])
            places = documents.filter(is_counted).select("query_id", "rel", f"iteration_{side}")
            alone.update(places.iter_rows())
        return alone

    @cached_property
    def rels(self) -> list[float]:
        measures = []
        for parts in self.frames.parts.values():
            measures += [parts.measure, parts.numerator]
        return find_thresholds(measures)

    def find_rel(self, parts: Parts) -> float:
        """Return the `rel` of a measure (the smallest good label). If `rels` lacks this label, return the lowest of `rels`."""
        rel: float = parts.measure.rel
        return rel if rel in self.rels else self.rels[0]

    def name_rel(self, rel: float) -> str:
        """Return a text such as ` (rel=2)`, or an empty text if all measures have the same smallest good label."""
        return f" (rel={rel:g})" if len(self.rels) > 1 else ""

    def describe_change(self, row: Mapping[str, Any], *, named: bool = False) -> Iterator[str]:
        """Yield sentences on causes, and on the first iteration in which the systems differ. `named` adds names of documents."""
        if row["difference"] is None:
            yield self.describe_lack(row)
            return
        query_id = row["query_id"]
        parts = self.frames.parts[row["measure"]]
        rel = self.find_rel(parts)
        searches = {name: self.iterations.get((query_id, name, rel), []) for name in self.names}
        at = row["first_differing_iteration"]

        if at is not None and row["difference"]:
            sides = self._describe_sides(query_id, rel, at, searches)
            yield from sides if named else [f"At iteration {at} {'; '.join(sides)}"]
        if parts.numerator.NAME == NumDup.NAME:
            repeats = [*self._describe_repeats(query_id, parts)]
            if repeats and not named:
                repeats = ["; ".join(repeats)]
            yield from repeats
        if parts.denominator is not None and row["difference"]:
            yield _describe_quotient(parts, parts.denominator, row)
        yield from self._describe_causes(parts, row, named=named)
        if named:
            yield from _describe_searches(searches)

    def _describe_sides(
        self, query_id: str, rel: float, at: int, searches: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> list[str]:
        """Return what each system did at an iteration. `searches` maps systems to their iterations of the query."""
        sides = []
        new_good = []
        for name, iterations in searches.items():
            idle = self.describe_idle(name, [query_id])
            sides.append(_describe_search(name, iterations, at, idle))
            new_good.append(iterations[at - 1]["new_good"] if len(iterations) >= at else 0)
        base, new = new_good
        if base == new > 0 and (query_id, rel, at) in self.alone:
            sides[1] += ", not the same"
        return sides

    def _describe_repeats(self, query_id: str, parts: Parts) -> Iterator[str]:
        """Yield which documents each system found again up to the cutoff."""
        for name in self.names:
            repeats = self.repeats.get((query_id, name), [])
            in_time = [row for row in repeats if row["iteration"] <= parts.last]
            times = Counter((name_document(row), row["first_iteration"]) for row in in_time)

            documents = []
            for (document, first), number in times.items():
                how_often = f"{number} times, " if number > 1 else ""
                documents.append(f"{document} ({how_often}first at iteration {first})")
            if documents:
                yield f"{name} found again {list_some(documents)}"

    def _describe_causes(self, parts: Parts, row: Mapping[str, Any], *, named: bool) -> Iterator[str]:
        """Yield the causes of a query with their amounts. Those with the sign of the difference come first."""
        of_rate = f" of {parts.numerator}" if parts.denominator is not None else ""
        causes = self.causes.get((row["query_id"], str(parts.numerator)), [])
        for cause in sorted(causes, key=lambda cause: cause["amount"], reverse=row["difference"] > 0):
            names = count_of(cause["documents"], "good document")
            if named:
                keys = {key: cause[key] for key in ("query_id", "measure", "counted_by", "cause")}
                names = name_documents(self.frames.documents.filter(**keys))
            yield f"{self.describe_cause(parts, cause, names)} ({show(cause['amount'], '+')}{of_rate})"

    def describe_cause(self, parts: Parts, row: Mapping[str, Any], names: str) -> str:
        """Return a sentence on what both systems did with some documents. `names` stands for the documents in the sentence."""
        base, new = self.names
        cutoff = parts.measure.cutoff
        if row["counted_by"] == "both":
            return _HAPPENED_IN_BOTH[row["cause"]].format(new=new, n=names)
        counting, other = base, new
        if row["counted_by"] == "new":
            counting, other = new, base
        return HAPPENED[row["cause"]].format(one=counting, other=other, n=names, at=cutoff)

    def describe_idle(self, name: str, query_ids: Iterable[str], otherwise: str = "never searched") -> str:
        """Say why a system has no results in some queries: `has no row`, `broke off`, `otherwise`, or `has no results` if mixed."""
        reasons = set()
        for query_id in query_ids:
            if (name, query_id) in self.broke_off:
                reasons.add("broke off")
            elif (name, query_id) in self.absent:
                reasons.add("has no row")
            else:
                reasons.add(otherwise)
        if len(reasons) > 1:
            return "has no results"
        return reasons.pop() if reasons else otherwise

    def describe_lack(self, row: Mapping[str, Any]) -> str:
        """Say why a query has no difference in a measure."""
        otherwise = f"got no results{self.frames.parts[row['measure']].upto}"
        reasons = []
        for name, side in zip(self.names, ("base", "new"), strict=True):
            if row[side] is None:
                idle = self.describe_idle(name, [row["query_id"]], otherwise)
                reasons.append(f"{name} {idle}")
        return f"Left out: {' and '.join(reasons)}"


def _describe_quotient(parts: Parts, denominator: str, row: Mapping[str, Any]) -> str:
    """Return how numerator and denominator of a rate changed, without the part that stayed the same."""
    changes = []
    names = {"numerator": str(parts.numerator), "denominator": denominator}
    for part, name in names.items():
        before = row[f"{part}_base"]
        after = row[f"{part}_new"]
        if before != after:
            changes.append(f"{name} {show(before)} → {show(after)}")
    return ", ".join(changes)


def _describe_searches(searches: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield how many searches of each system failed, returned nothing, or repeated a search string."""
    for name, iterations in searches.items():
        outcomes = []
        for column, outcome in _SEARCHES.items():
            total = sum(row[column] or 0 for row in iterations)
            if total:
                outcomes.append(f"{total} {outcome}")
        if outcomes:
            number = sum(row["searches"] for row in iterations)
            yield f"{name}, {count_of(number, 'search', 'searches')}: {', '.join(outcomes)}"


def _describe_search(name: str, iterations: Sequence[Mapping[str, Any]], at: int, idle: str) -> str:
    """Return what a system did in iteration `at`. `iterations` are all those of the query; `idle` is the text for none."""
    if not iterations:
        return f"{name} {idle}"
    if len(iterations) < at:
        return f"{name} had stopped after {count_of(len(iterations), 'iteration')}"
    row = iterations[at - 1]
    outcome = describe_outcome(row)
    if not row["query_text"]:
        return f"{name} {outcome}"
    searched = "searched"
    if row["repeated_queries"] == row["searches"]:  # some of several parallel searches may be new
        searched = "repeated its search"
    return f"{name} {searched} “{shorten(row['query_text'])}” and {outcome}"


def describe_outcome(row: Mapping[str, Any]) -> str:
    """Return what an iteration found: good documents, else other new results, else repeats, else nothing."""
    if row["new_good"]:
        return f"found {count_of(row['new_good'], 'good document')}"
    if row["new_other"] + row["unjudged"]:
        return "found no good document"
    if row["repeated"]:
        return "got only results that it had"
    return "got an error" if row["failed"] else "got no results"


def name_documents(documents: pl.DataFrame) -> str:
    by_label = documents.sort("relevance", descending=True, maintain_order=True)
    names = []
    for row in by_label.iter_rows(named=True):
        names.append(f"{name_document(row)} ({show(row['relevance'])})")
    return list_some(names)


def name_document(row: Mapping[str, Any]) -> str:
    return shorten(row["title"] or row["doc_id"])


def shorten(text: str, most: int = _LONGEST) -> str:
    """Return a text in one line; cut a long text."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def describe_values(row: Mapping[str, Any]) -> str:
    change = f"{show(row['base'])} → {show(row['new'])} ({show(row['difference'], '+')})"
    query = row["query_id"]
    if text := row.get("query_text"):
        query = f"{query} “{shorten(text)}”"
    return f"{query}: {row['measure']} {change}"
