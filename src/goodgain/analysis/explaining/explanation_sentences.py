"""Describes in words what two systems did in a query, and the main cause of a difference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.analysis.comparing.rendering import count_queries, list_some, show
from goodgain.analysis.comparing.use_of_documents import USES_OF
from goodgain.analysis.explaining.causes import Parts, add_up
from goodgain.counting.coverage import list_examples
from goodgain.errors import InputError, count_of
from goodgain.measures.good_gain import NumDup
from goodgain.measures.thresholds import find_thresholds
from goodgain.statistics.statistical_tests import RESIDUE

if TYPE_CHECKING:
    from goodgain.analysis.explaining.explanation import Explanation

#: Cause -> what the system `{other}` did with the documents `{n}` that only `{one}` counts.
_HAPPENED = {
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
#: How a good document was lost -> pattern of the use in words.
_LOST = {
    "returned and not opened": "^returned.*(?:never opened|open failed)",
    "opened and not cited": "opened after.*not cited",
}
#: The largest number of characters of a text in a line.
_LONGEST = 70
#: The tables of an explanation.
FRAMES = ("queries", "causes", "documents", "iterations", "wasted", "unjudged", "repeats", "absent", "broke_off")


def take_query(of: Explanation, query_id: str) -> Explanation:
    taken = {name: getattr(of, name).filter(query_id=str(query_id)) for name in FRAMES}
    if not taken["queries"].height:
        known = ", ".join(list_examples(of.queries.get_column("query_id").unique()))
        raise InputError(f"query {query_id!r} is not in the qrels. Query ids in the qrels are {known}, for example.")
    return replace(of, **taken)


class Account:
    """Describes in words what two systems did. Groups the rows of an explanation by query."""

    def __init__(self, of: Explanation) -> None:
        self.of = of
        self.names = (of.base, of.new)

    # Rows are grouped once, as a filter per query is slow, and only when needed: there can be millions of repeats.
    @cached_property
    def iterations(self) -> Mapping[Any, list[dict[str, Any]]]:
        return self.of.iterations.rows_by_key(["query_id", "system", "rel"], named=True, include_key=True)

    @cached_property
    def rels(self) -> list[float]:
        return find_thresholds(measure for one in self.of.parts.values() for measure in (one.measure, one.numerator))

    def find_rel(self, parts: Parts) -> float:
        """Return the `rel` of a measure (the smallest good label). If `rels` lacks this label, return the lowest of `rels`."""
        return parts.measure.rel if parts.measure.rel in self.rels else self.rels[0]

    def name_rel(self, rel: float) -> str:
        """Return a text such as ` (rel=2)`, or an empty text if all measures have the same smallest good label."""
        return f" (rel={rel:g})" if len(self.rels) > 1 else ""

    @cached_property
    def repeats(self) -> Mapping[Any, list[dict[str, Any]]]:
        return self.of.repeats.rows_by_key(["query_id", "system"], named=True, include_key=True)

    @cached_property
    def alone(self) -> set[tuple[str, float, int]]:
        """Tuples (query, rel, iteration): in this iteration, one system found a good document that the other did not find in it."""
        rels = {str(one.numerator): self.find_rel(one) for one in self.of.parts.values()}
        rows = self.of.documents.filter(pl.col("iteration_base").ne_missing(pl.col("iteration_new")))
        rows = rows.with_columns(rel=pl.col("measure").replace_strict(rels, return_dtype=pl.Float64))
        sides = (
            rows.filter(pl.col("counted_by").is_in(["both", side])).select("query_id", "rel", f"iteration_{side}")
            for side in ("base", "new")
        )
        return {*chain.from_iterable(one.iter_rows() for one in sides)}

    @cached_property
    def causes(self) -> Mapping[Any, list[dict[str, Any]]]:
        return self.of.causes.rows_by_key(["query_id", "measure"], named=True, include_key=True)

    @cached_property
    def absent(self) -> set[tuple[str, str]]:
        return {*self.of.absent.select("system", "query_id").iter_rows()}

    @cached_property
    def broke_off(self) -> set[tuple[str, str]]:
        return {*self.of.broke_off.select("system", "query_id").iter_rows()}

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
        return reasons.pop() if len(reasons) == 1 else "has no results" if reasons else otherwise

    def describe_lack(self, row: Mapping[str, Any]) -> str:
        """Say why a query has no difference in a measure."""
        sides = ((self.of.base, row["base"]), (self.of.new, row["new"]))
        lacking = [name for name, value in sides if value is None]
        otherwise = f"got no results{self.of.parts[row['measure']].upto}"
        reasons = [f"{name} {self.describe_idle(name, [row['query_id']], otherwise)}" for name in lacking]
        return f"Left out: {' and '.join(reasons)}"

    def describe_change(self, row: Mapping[str, Any], *, named: bool = False) -> Iterator[str]:
        """Yield sentences on causes, and on the first iteration in which the systems differ. `named` adds names of documents."""
        if row["difference"] is None:
            yield self.describe_lack(row)
            return
        at, query_id, parts = row["first_differing_iteration"], row["query_id"], self.of.parts[row["measure"]]
        rel = self.find_rel(parts)
        searches = {name: self.iterations.get((query_id, name, rel), []) for name in self.names}
        if at is not None and row["difference"]:
            idle = {name: self.describe_idle(name, [query_id]) for name in searches}
            sides = [_describe_search(name, of, at, idle[name]) for name, of in searches.items()]
            base, new = (of[at - 1]["new_good"] if len(of) >= at else 0 for of in searches.values())
            sides[1] += ", not the same" * (base == new > 0 and (query_id, rel, at) in self.alone)
            yield from sides if named else [f"At iteration {at} {'; '.join(sides)}"]
        again = []
        for name in self.names if parts.numerator.NAME == NumDup.NAME else ():
            rows = [one for one in self.repeats.get((query_id, name), []) if one["iteration"] <= parts.last]
            times = Counter((name_document(one), one["first_iteration"]) for one in rows)
            back = [
                f"{document} ({f'{number} times, ' * (number > 1)}first at iteration {first})"
                for (document, first), number in times.items()
            ]
            again += [f"{name} found again {list_some(back)}"] if back else []
        yield from again if named or not again else ["; ".join(again)]
        if parts.denominator is not None and row["difference"]:
            sums = {str(parts.numerator): "numerator", parts.denominator: "denominator"}
            ends = {name: (row[f"{part}_base"], row[f"{part}_new"]) for name, part in sums.items()}
            yield ", ".join(f"{name} {show(a)} → {show(b)}" for name, (a, b) in ends.items() if a != b)
        causes = self.causes.get((query_id, str(parts.numerator)), [])
        for cause in sorted(causes, key=lambda cause: cause["amount"], reverse=row["difference"] > 0):
            names = count_of(cause["documents"], "good document")
            if named:
                keys = {key: cause[key] for key in ("query_id", "measure", "counted_by", "cause")}
                names = name_documents(self.of.documents.filter(**keys))
            of_rate = f" of {parts.numerator}" if parts.denominator is not None else ""
            yield f"{self.describe_cause(parts, cause, names)} ({show(cause['amount'], '+')}{of_rate})"
        words = {"failed": "failed", "empty": "returned nothing", "repeated_queries": "repeated a search string"}
        for name, rows in searches.items() if named else ():
            totals = {said: sum(row[column] or 0 for row in rows) for column, said in words.items()}
            if said := ", ".join(f"{total} {what}" for what, total in totals.items() if total):
                yield f"{name}, {count_of(sum(row['searches'] for row in rows), 'search', 'searches')}: {said}"

    def describe_cause(self, parts: Parts, row: Mapping[str, Any], names: str) -> str:
        """Return a sentence on what both systems did with some documents. `names` stands for the documents in the sentence."""
        happened = _HAPPENED_IN_BOTH if row["counted_by"] == "both" else _HAPPENED
        one, other = (self.of.new, self.of.base) if row["counted_by"] == "new" else (self.of.base, self.of.new)
        return happened[row["cause"]].format(one=one, other=other, new=self.of.new, n=names, at=parts.measure.cutoff)


#: Part of a rate -> what it adds to the difference of a query. If a denominator is 0, the part `none` is the whole difference.
_PARTS = {
    "numerator": pl.col("from_numerator"),
    "denominator": pl.col("from_denominator"),
    "none": pl.when(pl.col("from_numerator").is_null()).then("difference"),
}


def add_parts(queries: pl.DataFrame) -> dict[str, float]:
    return {part: math.fsum(queries.select(amount).to_series().drop_nulls()) for part, amount in _PARTS.items()}


def describe_main_cause(account: Account, parts: Parts, queries: pl.DataFrame, total: float) -> str | None:
    """Describe the cause that adds most to `total`, the sum of differences. Return None if `total` is 0 or a rounding error."""
    of, number = account.of, queries.height
    if abs(total) <= RESIDUE * math.fsum(queries.get_column("difference").abs()):
        return None
    documents = of.documents.filter(pl.col("measure") == str(parts.numerator), pl.col("cause").is_not_null())
    if parts.denominator is not None:
        added = add_parts(queries)
        part = max(added, key=lambda one: added[one] * total)
        moved = queries.filter(_PARTS[part] * total > 0)
        where = f"in {count_queries(moved.height)} ({show(add_parts(moved)[part] / number, '+')} in the mean)"
        if part == "none":
            name = of.new if total < 0 else of.base
            return f"{name} {account.describe_idle(name, moved['query_id'], parts.idle)} {where}"
        if part == "denominator" or parts.numerator.NAME == NumDup.NAME:
            before, after = sum_sides(moved, f"{part}_")
            return f"{getattr(parts, part)} {show(before)} → {show(after)} {where}"
        weight = (1 / pl.col("denominator_base") + 1 / pl.col("denominator_new")) / 2 / number
        weights = queries.drop_nulls("from_numerator").select("query_id", weight=weight)
        documents = documents.join(weights, on="query_id").with_columns(pl.col("amount") * pl.col("weight"))
    causes = add_up(documents, ["counted_by", "cause"]).filter(pl.col("amount") * total > 0)
    for main in causes.sort(pl.col("amount").abs(), maintain_order=True).tail(1).iter_rows(named=True):
        cause = account.describe_cause(parts, main, count_of(main["documents"], "good document"))
        amount = main["amount"] / (number if parts.denominator is None else 1)
        return f"{cause} ({show(amount, '+')} in the mean)"
    return None


def sum_sides(queries: pl.DataFrame, part: str) -> list[float]:
    return [math.fsum(queries.get_column(f"{part}{side}")) for side in ("base", "new")]


def find_main_causes(account: Account, parts: Parts) -> pl.DataFrame:
    """Return the rows of `Explanation.queries` for one measure, with a new column `cause`: the main cause in words."""
    queries = account.of.queries.filter(measure=str(parts.measure))
    said = [_name_cause(account, parts, row) for row in queries.iter_rows(named=True)]
    return queries.with_columns(cause=pl.Series(said, dtype=pl.String))


def _name_cause(account: Account, parts: Parts, row: Mapping[str, Any]) -> str | None:
    change, above, below = (row[name] for name in ("difference", "from_numerator", "from_denominator"))
    if not change:
        return None
    if parts.denominator is not None and above is None:
        name = account.of.new if change < 0 else account.of.base
        return f"{name} {account.describe_idle(name, [row['query_id']], parts.idle)}"
    if parts.denominator is not None and below * change > above * change:
        return f"{'more' if row['denominator_new'] > row['denominator_base'] else 'fewer'} {parts.denominator}"
    causes = account.causes.get((row["query_id"], str(parts.numerator)), [])
    main = max(causes, key=lambda cause: cause["amount"] * change, default=None)
    return None if main is None else account.describe_cause(parts, main, "some good documents")


def _describe_search(name: str, iterations: Sequence[Mapping[str, Any]], at: int, idle: str) -> str:
    if len(iterations) < at:
        last = count_of(len(iterations), "iteration")
        return f"{name} had stopped after {last}" if iterations else f"{name} {idle}"
    row = iterations[at - 1]
    if not row["query_text"]:
        return f"{name} {describe_outcome(row)}"
    # Some of several parallel searches may be new.
    repeated = "repeated its search" if row["repeated_queries"] == row["searches"] else "searched"
    return f"{name} {repeated} “{shorten(row['query_text'])}” and {describe_outcome(row)}"


def describe_outcome(row: Mapping[str, Any]) -> str:
    others = row["new_other"] + row["unjudged"]
    if row["new_good"]:
        return f"found {count_of(row['new_good'], 'good document')}"
    if not others and not row["repeated"]:
        return "got an error" if row["failed"] else "got no results"
    return "found no good document" if others else "got only results that it had"


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
    return f"{row['query_id']}: {row['measure']} {change}"


def describe_difference(
    account: Account, parts: Parts, queries: pl.DataFrame, worse: pl.DataFrame, better: pl.DataFrame
) -> str:
    """Describe the difference in a measure. `queries` are the queries in which both systems have a value."""
    of, number = account.of, queries.height
    if not number:
        return f"{parts.measure}: no query has a value in both {of.base} and {of.new}."
    if not worse.height and not better.height:
        return f"{parts.measure}: {of.base} and {of.new} are equal in {count_queries(number)}."
    total = math.fsum(queries.get_column("difference"))
    before, after = (value / number for value in sum_sides(queries, ""))
    said = [
        f"{parts.measure}: {of.new} is worse than {of.base} in {worse.height:,} of {count_queries(number)} and better in "
        f"{better.height:,}; mean {show(before)} → {show(after)} ({show(total / number, '+')})."
    ]
    if cause := describe_main_cause(account, parts, queries, total):
        said.append(f"Main cause: {cause}.")
    row = (worse if worse.height else better).row(0, named=True)
    did = "improved" if not worse.height else "lost" if row["difference"] < 0 else "worsened"
    why = ". ".join(islice(account.describe_change(row), 2))
    return " ".join([*said, f"{row['query_id']} {did} most ({show(row['difference'], '+')}). {why}."])


def describe_whole(of: Explanation) -> Iterator[str]:
    """Yield sentences on all queries together: on wasted and repeated searches, and on unjudged and lost documents."""
    account = Account(of)
    for name, rel in product(account.names, account.rels):
        rows = of.iterations.filter(system=name, rel=rel)
        wasted = of.wasted.filter(pl.col("last_good_iteration") > 0, system=name, rel=rel)
        iterations = count_of(rows.height, "iteration")
        totals = {
            f"{iterations} found no good document while some were missing": rows.get_column("brought_nothing_good"),
            f"{iterations} came after the last good document of a query": wasted.get_column("wasted"),
            f"{count_of(int(rows['searches'].sum()), 'search', 'searches')} repeated a search string": rows.get_column(
                "repeated_queries"
            ),
        }
        said = [f"{int(values.sum()):,} of {what}." for what, values in totals.items() if values.sum()]
        if said or not rows.height:
            idle = account.describe_idle(name, of.queries.get_column("query_id"))
            yield f"{name}{account.name_rel(rel)}: {' '.join(said) or f'{idle}.'}"
    unjudged = of.unjudged.filter(measure=of.measures[0])
    alone = [(name, unjudged.filter(system=name).height) for name in account.names]
    if unjudged.height:
        said = [f"{name} alone found {count_of(number, 'unjudged document')}" for name, number in alone if number]
        yield f"Not in these sums: {', '.join(said)}{of.parts[of.measures[0]].upto}."
    documents = of.documents.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    documents = documents.sort("relevance", descending=True, maintain_order=True)
    for use, name in zip(USES_OF, (of.base, of.new), strict=True):
        for what, pattern in _LOST.items():
            good = documents.filter(pl.col(use).str.contains(pattern)).iter_rows(named=True)
            if lost := [f"{row['query_id']} {name_document(row)} ({row[use]})" for row in good]:
                yield f"{name}: {count_of(len(lost), 'good document')} {what}: {list_some(lost, of.top)}."


def add_sentences(of: Explanation) -> pl.DataFrame:
    """Return `of.queries` with a new column `sentence`, which is null if nothing can be said about a query."""
    account = Account(of)
    sentences = [
        " ".join(f"{line}." for line in account.describe_change(row)) or None
        for row in of.queries.iter_rows(named=True)
    ]
    return of.queries.with_columns(sentence=pl.Series(sentences, dtype=pl.String))
