"""Describes in words what two systems did in a query, and the main cause of a difference."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product
from typing import Any

import polars as pl

from goodgain.analysis.comparing.rendering import count_queries, list_some, show
from goodgain.analysis.comparing.use_of_documents import USES_OF
from goodgain.analysis.explaining.causes import Parts, add_up
from goodgain.analysis.explaining.explanation_frames import ExplanationFrames
from goodgain.errors import count_of
from goodgain.measures.good_gain import NumDup
from goodgain.measures.thresholds import find_thresholds
from goodgain.statistics.statistical_tests import RESIDUE

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
#: How a good document was lost -> pattern of the use in words.
_LOST = {
    "returned and not opened": "^returned.*(?:never opened|open failed)",
    "opened and not cited": "opened after.*not cited",
}
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
        rows = self.frames.documents.filter(pl.col("iteration_base").ne_missing(pl.col("iteration_new")))
        rows = rows.with_columns(rel=pl.col("measure").replace_strict(rels, return_dtype=pl.Float64))
        alone: set[tuple[str, float, int]] = set()
        for side in ("base", "new"):
            is_counted = pl.col("counted_by").is_in(["both", side])
            alone.update(rows.filter(is_counted).select("query_id", "rel", f"iteration_{side}").iter_rows())
        return alone

    @cached_property
    def rels(self) -> list[float]:
        return find_thresholds(
            measure for parts in self.frames.parts.values() for measure in (parts.measure, parts.numerator)
        )

    def find_rel(self, parts: Parts) -> float:
        """Return the `rel` of a measure (the smallest good label). If `rels` lacks this label, return the lowest of `rels`."""
        return parts.measure.rel if parts.measure.rel in self.rels else self.rels[0]

    def name_rel(self, rel: float) -> str:
        """Return a text such as ` (rel=2)`, or an empty text if all measures have the same smallest good label."""
        return f" (rel={rel:g})" if len(self.rels) > 1 else ""

    def describe_change(self, row: Mapping[str, Any], *, named: bool = False) -> Iterator[str]:
        """Yield sentences on causes, and on the first iteration in which the systems differ. `named` adds names of documents."""
        if row["difference"] is None:
            yield self.describe_lack(row)
            return
        query_id, parts = row["query_id"], self.frames.parts[row["measure"]]
        rel = self.find_rel(parts)
        searches = {name: self.iterations.get((query_id, name, rel), []) for name in self.names}

        if row["first_differing_iteration"] is not None and row["difference"]:
            sides = self._describe_sides(query_id, rel, row["first_differing_iteration"], searches)
            yield from sides if named else [f"At iteration {row['first_differing_iteration']} {'; '.join(sides)}"]
        if parts.numerator.NAME == NumDup.NAME:
            repeats = [*self._describe_repeats(query_id, parts)]
            yield from repeats if named or not repeats else ["; ".join(repeats)]
        if parts.denominator is not None and row["difference"]:
            yield _describe_quotient(parts, parts.denominator, row)
        yield from self._describe_causes(parts, row, named=named)
        if named:
            yield from _describe_searches(searches)

    def _describe_sides(
        self, query_id: str, rel: float, at: int, searches: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> list[str]:
        """Return what each system did at an iteration. `searches` maps systems to their iterations of the query."""
        sides, new_good = [], []
        for name, iterations in searches.items():
            sides.append(_describe_search(name, iterations, at, self.describe_idle(name, [query_id])))
            new_good.append(iterations[at - 1]["new_good"] if len(iterations) >= at else 0)
        base, new = new_good
        if base == new > 0 and (query_id, rel, at) in self.alone:
            sides[1] += ", not the same"
        return sides

    def _describe_repeats(self, query_id: str, parts: Parts) -> Iterator[str]:
        for name in self.names:
            rows = [row for row in self.repeats.get((query_id, name), []) if row["iteration"] <= parts.last]
            times = Counter((name_document(row), row["first_iteration"]) for row in rows)
            documents = []
            for (document, first), number in times.items():
                how_often = f"{number} times, " if number > 1 else ""
                documents.append(f"{document} ({how_often}first at iteration {first})")
            if documents:
                yield f"{name} found again {list_some(documents)}"

    def _describe_causes(self, parts: Parts, row: Mapping[str, Any], *, named: bool) -> Iterator[str]:
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
        sentences = _HAPPENED_IN_BOTH if row["counted_by"] == "both" else HAPPENED
        system, other = (new, base) if row["counted_by"] == "new" else (base, new)
        return sentences[row["cause"]].format(one=system, other=other, new=new, n=names, at=parts.measure.cutoff)

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
        lacking = [name for name, side in zip(self.names, ("base", "new"), strict=True) if row[side] is None]
        reasons = [f"{name} {self.describe_idle(name, [row['query_id']], otherwise)}" for name in lacking]
        return f"Left out: {' and '.join(reasons)}"


def _describe_quotient(parts: Parts, denominator: str, row: Mapping[str, Any]) -> str:
    """Return how numerator and denominator of a rate changed, without the part that stayed the same."""
    changes = []
    for name, part in ((str(parts.numerator), "numerator"), (denominator, "denominator")):
        before, after = row[f"{part}_base"], row[f"{part}_new"]
        if before != after:
            changes.append(f"{name} {show(before)} → {show(after)}")
    return ", ".join(changes)


def _describe_searches(searches: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield how many searches of each system failed, returned nothing, or repeated a search string."""
    for name, iterations in searches.items():
        totals = {column: sum(row[column] or 0 for row in iterations) for column in _SEARCHES}
        outcomes = ", ".join(f"{total} {_SEARCHES[column]}" for column, total in totals.items() if total)
        if outcomes:
            number = sum(row["searches"] for row in iterations)
            yield f"{name}, {count_of(number, 'search', 'searches')}: {outcomes}"


def _describe_search(name: str, iterations: Sequence[Mapping[str, Any]], at: int, idle: str) -> str:
    if not iterations:
        return f"{name} {idle}"
    if len(iterations) < at:
        return f"{name} had stopped after {count_of(len(iterations), 'iteration')}"
    row = iterations[at - 1]
    if not row["query_text"]:
        return f"{name} {describe_outcome(row)}"
    # Some of several parallel searches may be new.
    repeated = "repeated its search" if row["repeated_queries"] == row["searches"] else "searched"
    return f"{name} {repeated} “{shorten(row['query_text'])}” and {describe_outcome(row)}"


def describe_outcome(row: Mapping[str, Any]) -> str:
    if row["new_good"]:
        return f"found {count_of(row['new_good'], 'good document')}"
    if row["new_other"] + row["unjudged"]:
        return "found no good document"
    if row["repeated"]:
        return "got only results that it had"
    return "got an error" if row["failed"] else "got no results"


def name_documents(documents: pl.DataFrame) -> str:
    rows = documents.sort("relevance", descending=True, maintain_order=True).iter_rows(named=True)
    return list_some([f"{name_document(row)} ({show(row['relevance'])})" for row in rows])


def name_document(row: Mapping[str, Any]) -> str:
    return shorten(row["title"] or row["doc_id"])


def shorten(text: str, most: int = _LONGEST) -> str:
    """Return a text in one line; cut a long text."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def describe_values(row: Mapping[str, Any]) -> str:
    change = f"{show(row['base'])} → {show(row['new'])} ({show(row['difference'], '+')})"
    asked = f" “{shorten(text)}”" if (text := row.get("query_text")) else ""
    return f"{row['query_id']}{asked}: {row['measure']} {change}"


def add_sentences(frames: ExplanationFrames) -> pl.DataFrame:
    """Return the frame `queries` with a new column `sentence`, which is null if nothing can be said about a query."""
    account = Account(frames)
    sentences = []
    for row in frames.queries.iter_rows(named=True):
        text = " ".join(f"{sentence}." for sentence in account.describe_change(row))
        sentences.append(text or None)
    return frames.queries.with_columns(sentence=pl.Series(sentences, dtype=pl.String))


def describe_difference(
    account: Account, parts: Parts, queries: pl.DataFrame, worse: pl.DataFrame, better: pl.DataFrame
) -> str:
    """Describe the difference in a measure. `queries` are the queries in which both systems have a value."""
    base, new = account.names
    number = queries.height
    if not number:
        return f"{parts.measure}: no query has a value in both {base} and {new}."
    if worse.is_empty() and better.is_empty():
        return f"{parts.measure}: {base} and {new} are equal in {count_queries(number)}."
    total = math.fsum(queries.get_column("difference"))
    before, after = (value / number for value in sum_sides(queries, ""))
    sentences = [
        f"{parts.measure}: {new} is worse than {base} in {worse.height:,} of {count_queries(number)} and better in "
        f"{better.height:,}; mean {show(before)} → {show(after)} ({show(total / number, '+')})."
    ]
    if cause := describe_main_cause(account, parts, queries, total):
        sentences.append(f"Main cause: {cause}.")

    if worse.is_empty():
        row, did = better.row(0, named=True), "improved"
    else:
        row = worse.row(0, named=True)
        did = "lost" if row["difference"] < 0 else "worsened"
    why = ". ".join(islice(account.describe_change(row), 2))
    sentences.append(f"{row['query_id']} {did} most ({show(row['difference'], '+')}). {why}.")
    return " ".join(sentences)


#: Part of a rate -> what it adds to the difference of a query. If a denominator is 0, the part `none` is the whole difference.
_PARTS = {
    "numerator": pl.col("from_numerator"),
    "denominator": pl.col("from_denominator"),
    "none": pl.when(pl.col("from_numerator").is_null()).then("difference"),
}


def add_parts(queries: pl.DataFrame) -> dict[str, float]:
    return {part: math.fsum(queries.select(amount).to_series().drop_nulls()) for part, amount in _PARTS.items()}


def sum_sides(queries: pl.DataFrame, part: str) -> list[float]:
    return [math.fsum(queries.get_column(f"{part}{side}")) for side in ("base", "new")]


def describe_main_cause(account: Account, parts: Parts, queries: pl.DataFrame, total: float) -> str | None:
    """Describe the cause that adds most to `total`, the sum of differences. Return None if `total` is 0 or a rounding error."""
    if abs(total) <= RESIDUE * math.fsum(queries.get_column("difference").abs()):
        return None
    is_caused = pl.col("cause").is_not_null()
    documents = account.frames.documents.filter(pl.col("measure") == str(parts.numerator), is_caused)
    if parts.denominator is None:
        return _describe_largest_cause(account, parts, documents, total, queries.height)

    added = add_parts(queries)
    part = max(added, key=lambda part: added[part] * total)
    if part == "none" or part == "denominator" or parts.numerator.NAME == NumDup.NAME:
        return _describe_part(account, parts, queries, total, part)
    weight = (1 / pl.col("denominator_base") + 1 / pl.col("denominator_new")) / 2 / queries.height
    weights = queries.drop_nulls("from_numerator").select("query_id", weight=weight)
    documents = documents.join(weights, on="query_id").with_columns(pl.col("amount") * pl.col("weight"))
    return _describe_largest_cause(account, parts, documents, total, 1)


def _describe_part(account: Account, parts: Parts, queries: pl.DataFrame, total: float, part: str) -> str:
    """Describe the part of a rate that adds most to `total`, in the queries in which it adds to it."""
    moved = queries.filter(_PARTS[part] * total > 0)
    in_mean = add_parts(moved)[part] / queries.height
    where = f"in {count_queries(moved.height)} ({show(in_mean, '+')} in the mean)"
    if part == "none":
        base, new = account.names
        name = new if total < 0 else base
        return f"{name} {account.describe_idle(name, moved['query_id'], parts.idle)} {where}"
    before, after = sum_sides(moved, f"{part}_")
    return f"{getattr(parts, part)} {show(before)} → {show(after)} {where}"


def _describe_largest_cause(
    account: Account, parts: Parts, documents: pl.DataFrame, total: float, divisor: int
) -> str | None:
    """Describe the cause with the largest amount of the same sign as `total`. The amount over `divisor` is that of the mean."""
    causes = add_up(documents, ["counted_by", "cause"]).filter(pl.col("amount") * total > 0)
    if causes.is_empty():
        return None
    main = causes.sort(pl.col("amount").abs(), maintain_order=True).row(-1, named=True)
    cause = account.describe_cause(parts, main, count_of(main["documents"], "good document"))
    return f"{cause} ({show(main['amount'] / divisor, '+')} in the mean)"


def find_main_causes(account: Account, parts: Parts) -> pl.DataFrame:
    """Return the rows of `Explanation.queries` for one measure, with a new column `cause`: the main cause in words."""
    queries = account.frames.queries.filter(measure=str(parts.measure))
    causes = [_name_cause(account, parts, row) for row in queries.iter_rows(named=True)]
    return queries.with_columns(cause=pl.Series(causes, dtype=pl.String))


def _name_cause(account: Account, parts: Parts, row: Mapping[str, Any]) -> str | None:
    change = row["difference"]
    if not change:
        return None
    if parts.denominator is not None:
        from_numerator, from_denominator = row["from_numerator"], row["from_denominator"]
        if from_numerator is None:
            base, new = account.names
            name = new if change < 0 else base
            return f"{name} {account.describe_idle(name, [row['query_id']], parts.idle)}"
        if from_denominator * change > from_numerator * change:
            is_more = row["denominator_new"] > row["denominator_base"]
            return f"{'more' if is_more else 'fewer'} {parts.denominator}"
    causes = account.causes.get((row["query_id"], str(parts.numerator)), [])
    main = max(causes, key=lambda cause: cause["amount"] * change, default=None)
    return None if main is None else account.describe_cause(parts, main, "some good documents")


def describe_whole(frames: ExplanationFrames) -> Iterator[str]:
    """Yield sentences on all queries together: on wasted and repeated searches, and on unjudged and lost documents."""
    account = Account(frames)
    for name, rel in product(account.names, account.rels):
        if totals := _describe_totals(account, name, rel):
            yield f"{name}{account.name_rel(rel)}: {totals}"
    if sentence := _describe_unjudged(frames):
        yield sentence

    documents = frames.documents.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    documents = documents.sort("relevance", descending=True, maintain_order=True)
    for use, name in zip(USES_OF, account.names, strict=True):
        for loss, pattern in _LOST.items():
            rows = documents.filter(pl.col(use).str.contains(pattern)).iter_rows(named=True)
            lost = [f"{row['query_id']} {name_document(row)} ({row[use]})" for row in rows]
            if lost:
                yield f"{name}: {count_of(len(lost), 'good document')} {loss}: {list_some(lost, frames.top)}."


def _describe_totals(account: Account, name: str, rel: float) -> str:
    """Return sentences on the iterations and searches of a system that were in vain; an empty text if none was."""
    frames = account.frames
    rows = frames.iterations.filter(system=name, rel=rel)
    if rows.is_empty():
        return f"{account.describe_idle(name, frames.queries.get_column('query_id'))}."
    wasted = frames.wasted.filter(pl.col("last_good_iteration") > 0, system=name, rel=rel)
    iterations = count_of(rows.height, "iteration")
    searches = count_of(int(rows["searches"].sum()), "search", "searches")
    in_vain = {
        f"{iterations} found no good document while some were missing": rows.get_column("brought_nothing_good"),
        f"{iterations} came after the last good document of a query": wasted.get_column("wasted"),
        f"{searches} repeated a search string": rows.get_column("repeated_queries"),
    }
    totals = {what: int(numbers.sum() or 0) for what, numbers in in_vain.items()}
    return " ".join(f"{total:,} of {what}." for what, total in totals.items() if total)


def _describe_unjudged(frames: ExplanationFrames) -> str | None:
    measure = frames.measures[0]
    numbers = dict(frames.unjudged.filter(measure=measure).group_by("system").len().iter_rows())
    if not numbers:
        return None
    systems = [name for name in (frames.base, frames.new) if name in numbers]
    parts = [f"{name} alone found {count_of(numbers[name], 'unjudged document')}" for name in systems]
    return f"Not in these sums: {', '.join(parts)}{frames.parts[measure].upto}."
