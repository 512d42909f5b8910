"""Writes an explanation: a sentence for each query, the first screen, and one query with both systems side by side."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice, product, zip_longest
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.comparing.causes import Parts, add_up
from goodgain.comparing.main_causes import add_parts, describe_main_cause, sum_sides
from goodgain.comparing.rendering import ABSENT, Grid, Line, build_rich_table, count_queries, show, write_markdown
from goodgain.comparing.use_of_documents import USES_OF
from goodgain.counting.coverage import list_examples
from goodgain.errors import InputError, count_of
from goodgain.files.escaping import escape_controls
from goodgain.measures.good_gain import NumDup

if TYPE_CHECKING:
    from goodgain.comparing.explanation import Explanation

#: The forms of `Explanation.to_text`.
FORMS = ("markdown", "json")
_FRAMES = ("queries", "causes", "documents", "iterations", "wasted", "unjudged", "repeats")

#: Cause -> what the system that does not count `{n}` did, where `{one}` does.
_HAPPENED = {
    "not_retrieved": "{other} never retrieved {n}",
    "never_searched": "{other} never searched where {one} found {n}",
    "stopped_before": "{other} stopped before {one} found {n}",
    "later": "{other} found {n} only after iteration {at}",
    "earlier": "{other} found {n} only after iteration {at}",
    "judged_differently": "{other} found {n} where the label is lower or missing",
}
#: The same where both systems count it.
_HAPPENED_IN_BOTH = {
    "later": "{new} found {n} later",
    "earlier": "{new} found {n} earlier",
    "judged_differently": "both found {n}, with different labels",
}
#: What happened to a good document -> the uses of it for which it did.
_LOST = {
    "returned and not opened": "^returned.*(?:never opened|open failed)",
    "opened and not cited": "opened after.*not cited",
}
#: How many documents a line names, and how many characters of a text it has.
_NAMED, _LONGEST = 3, 70


class Account:
    """What two systems did, in words; it has the rows of an explanation by query."""

    def __init__(self, of: Explanation) -> None:
        self.of = of
        self.names = (of.base, of.new)

    # A filter for each of many queries takes long. So do rows that no sentence needs: there can be millions of repeats.
    @cached_property
    def iterations(self) -> Mapping[Any, list[dict[str, Any]]]:
        return self.of.iterations.rows_by_key(["query_id", "system", "rel"], named=True, include_key=True)

    @cached_property
    def rels(self) -> list[float]:
        """The thresholds of the measures."""
        return self.of.iterations.get_column("rel").unique().sort().to_list()

    def find_rel(self, parts: Parts) -> float:
        """Return the threshold of a measure; for SRR, which has none, the lowest one."""
        return parts.measure.rel if parts.measure.rel in self.rels else self.rels[0]

    def name_rel(self, rel: float) -> str:
        """Return a threshold in words; nothing if all measures have the same."""
        return f" (rel={rel:g})" if len(self.rels) > 1 else ""

    @cached_property
    def repeats(self) -> Mapping[Any, list[dict[str, Any]]]:
        return self.of.repeats.rows_by_key(["query_id", "system"], named=True, include_key=True)

    @cached_property
    def alone(self) -> set[tuple[str, float, int]]:
        """Each query, threshold and iteration in which one system found a good document that the other did not find there."""
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

    def describe_change(self, row: Mapping[str, Any], *, named: bool = False) -> Iterator[str]:
        """Yield what both systems did where they first differ, and the causes; with `named` documents and troubles too."""
        at, query_id, parts = row["first_differing_iteration"], row["query_id"], self.of.parts[row["measure"]]
        rel = self.find_rel(parts)
        searches = {name: self.iterations.get((query_id, name, rel), []) for name in self.names}
        if at is not None and row["difference"]:
            sides = [_describe_search(name, of, at) for name, of in searches.items()]
            base, new = (of[at - 1]["new_good"] if len(of) >= at else 0 for of in searches.values())
            sides[1] += ", not the same" * (base == new > 0 and (query_id, rel, at) in self.alone)
            yield from sides if named else [f"At iteration {at} {'; '.join(sides)}"]
        again = []
        for name in self.names if parts.numerator.NAME == NumDup.NAME else ():
            rows = [one for one in self.repeats.get((query_id, name), []) if one["iteration"] <= parts.last]
            times = Counter((_name(one), one["first_iteration"]) for one in rows)
            back = [
                f"{document} ({f'{number} times, ' * (number > 1)}first at iteration {first})"
                for (document, first), number in times.items()
            ]
            again += [f"{name} found again {_list(back)}"] if back else []
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
                names = _name_documents(self.of.documents.filter(**keys))
            yield f"{self.describe_cause(parts, cause, names)} ({_show_amount(parts, cause['amount'])})"
        words = {"failed": "failed", "empty": "returned nothing", "repeated_queries": "repeated a search string"}
        for name, rows in searches.items() if named else ():
            totals = {said: sum(row[column] or 0 for row in rows) for column, said in words.items()}
            if said := ", ".join(f"{total} {what}" for what, total in totals.items() if total):
                yield f"{name}, {count_of(sum(row['searches'] for row in rows), 'search', 'searches')}: {said}"

    def describe_cause(self, parts: Parts, row: Mapping[str, Any], names: str) -> str:
        """Return what happened to documents, which have these names in the sentence."""
        happened = _HAPPENED_IN_BOTH if row["counted_by"] == "both" else _HAPPENED
        one, other = (self.of.new, self.of.base) if row["counted_by"] == "new" else (self.of.base, self.of.new)
        return happened[row["cause"]].format(one=one, other=other, new=self.of.new, n=names, at=parts.measure.cutoff)


def add_sentences(of: Explanation) -> pl.DataFrame:
    """Return the queries of an explanation with the column sentence; null where the two systems are equal."""
    account = Account(of)
    sentences = [
        " ".join(f"{line}." for line in account.describe_change(row)) or None
        for row in of.queries.iter_rows(named=True)
    ]
    return of.queries.with_columns(sentence=pl.Series(sentences, dtype=pl.String))


def build_screen(of: Explanation, query: str | None = None) -> Iterator[Grid | Line]:
    """Yield the first screen, or with a query both systems side by side."""
    return _build_first_screen(of) if query is None else _build_side_by_side(take_query(of, query))


def _build_first_screen(of: Explanation) -> Iterator[Grid | Line]:
    """Yield for each measure a sentence, the table of causes and the queries that changed most; then wasted searches."""
    account = Account(of)
    for measure, parts in of.parts.items():
        queries = of.queries.filter(measure=measure)
        gain = pl.col("difference") * (1 if parts.measure.declaration.better == "up" else -1)
        worse = queries.filter(gain < 0).sort(gain, maintain_order=True)
        better = queries.filter(gain > 0).sort(-gain, maintain_order=True)
        with_cause = of.documents.filter(pl.col("measure") == str(parts.numerator), pl.col("cause").is_not_null())
        causes = add_up(with_cause, ["counted_by", "cause"]).sort("amount", maintain_order=True)
        if not worse.height and not better.height:
            yield Line(f"{measure}: {of.base} and {of.new} are equal in {count_queries(queries.height)}.")
        else:
            yield Line(_summarise(account, parts, queries, worse, better))
        if parts.denominator is not None and worse.height + better.height:
            rows, added = [], add_parts(queries)
            for part, name in (("numerator", parts.numerator), ("denominator", parts.denominator)):
                before, after = sum_sides(queries, f"{part}_")
                rows.append([f"{part}: {name}", show(before), show(after), show(after - before, "+")])
            rows += [[f"no {parts.denominator} in one system", "", "", ""]] * bool(added["none"])
            rows = [[*row, show(value / queries.height, "+")] for row, value in zip(rows, added.values(), strict=False)]
            header = ["part", of.base, of.new, "difference", "adds to the mean"]
            yield Grid.of(f"Sums over queries, {measure}", header, 1, rows)
        if causes.height:
            rows = [
                [
                    account.describe_cause(parts, row, "them"),
                    *(f"{row[name]:,}" for name in ("documents", "queries")),
                    *(show(row["amount"] / number, "+") for number in (1, queries.height)),
                ]
                for row in causes.iter_rows(named=True)
            ]
            total = math.fsum(causes.get_column("amount"))
            rows.append([f"{of.new} minus {of.base}", "", "", show(total, "+"), show(total / queries.height, "+")])
            header = ["cause", "good documents", "queries", str(parts.numerator), "per query"]
            yield Grid.of(f"Causes of the difference in {parts.numerator}", header, 1, rows)
        for title, changed in ((f"Worse in {of.new}", worse), (f"Better in {of.new}", better)):
            shown = changed.head(of.top)
            yield from [Line(title, -1)] * bool(shown.height)
            for row in shown.iter_rows(named=True):
                at = row["first_differing_iteration"]
                first = "" if at is None else f"; they first differ at iteration {at}"
                yield Line(_describe_values(row) + first, 1)
                yield from (Line(said, 2) for said in account.describe_change(row, named=True))
    yield from map(Line, describe_whole(of))


def _summarise(
    account: Account,
    parts: Parts,
    queries: pl.DataFrame,
    worse: pl.DataFrame,
    better: pl.DataFrame,
) -> str:
    """Return the sentence that says most: queries worse and better, the main cause, and the query that changed most."""
    of, number = account.of, queries.height
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
    """Yield sentences on wasted and repeated searches, and on unjudged documents, over all queries."""
    account = Account(of)
    for name, rel in product(account.names, account.rels):
        rows = of.iterations.filter(system=name, rel=rel)
        wasted = of.wasted.filter(pl.col("last_good_iteration") > 0, system=name, rel=rel)
        iterations = count_of(rows.height, "iteration")
        totals = {
            f"{iterations} found no good document while some were missing": rows.get_column("brought_nothing_good"),
            f"{iterations} came after the last good document of a query": wasted.get_column("wasted"),
            f"{rows['searches'].sum():,} searches repeated a search string": rows.get_column("repeated_queries"),
        }
        said = [f"{int(values.sum()):,} of {what}." for what, values in totals.items() if values.sum()]
        if said or not rows.height:
            yield f"{name}{account.name_rel(rel)}: {' '.join(said) or 'never searched.'}"
    unjudged = of.unjudged.filter(measure=of.measures[0])
    alone = {name: unjudged.filter(system=name).height for name in (of.base, of.new)}
    if unjudged.height:
        said = [
            f"{name} alone found {count_of(number, 'unjudged document')}" for name, number in alone.items() if number
        ]
        yield f"Not in these sums: {', '.join(said)}{of.parts[of.measures[0]].upto}."
    yield from _describe_lost(of)


def _describe_lost(of: Explanation) -> Iterator[str]:
    """Yield for each system the good documents that it returned and never opened, or opened and did not cite."""
    documents = of.documents.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    documents = documents.sort("relevance", descending=True, maintain_order=True)
    for use, name in zip(USES_OF, (of.base, of.new), strict=True):
        for what, pattern in _LOST.items():
            rows = documents.filter(pl.col(use).str.contains(pattern)).iter_rows(named=True)
            if lost := [f"{row['query_id']} {_name(row)} ({row[use]})" for row in rows]:
                yield f"{name}: {count_of(len(lost), 'good document')} {what}: {_list(lost, of.top)}."


def take_query(of: Explanation, query_id: str) -> Explanation:
    """Return the rows of an explanation about one query, or raise `InputError`."""
    taken = {name: getattr(of, name).filter(query_id=str(query_id)) for name in _FRAMES}
    if not taken["queries"].height:
        known = ", ".join(list_examples(of.queries.get_column("query_id").unique()))
        raise InputError(f"query {query_id!r} is not in the qrels. They have {known}, for example.")
    return replace(of, **taken)


def _build_side_by_side(of: Explanation) -> Iterator[Grid | Line]:
    """Yield the one query of an explanation: its values, both systems iteration by iteration, and their documents."""
    account = Account(of)
    for row in of.queries.iter_rows(named=True):
        yield Line(f"{_describe_values(row)}. {row['sentence'] or ''}".strip())
    yield from (_build_iterations_grid(account, rel) for rel in account.rels)
    if of.iterations.get_column("brought_nothing_good").any():
        yield Line("! the iteration found no good document while some were missing")
    for measure, parts in {str(one.numerator): one for one in of.parts.values()}.items():
        rows = [
            [
                _name(row),
                "" if row["cause"] is None else account.describe_cause(parts, row, "it"),
                *(show(row[column]) for column in ("relevance", "iteration_base", "iteration_new")),
                show(row["amount"], "+"),
            ]
            for row in of.documents.filter(measure=measure).iter_rows(named=True)
        ]
        header = ["good document", "cause", "label", *(f"{name} found it at" for name in (of.base, of.new)), "adds"]
        if rows:
            yield Grid.of(f"Good documents, {measure}", header, 2, rows)
    documents = of.documents.unique("doc_id", keep="first", maintain_order=True).iter_rows(named=True)
    used = [[_name(row), *(row[use] or ABSENT for use in USES_OF)] for row in documents if any(map(row.get, USES_OF))]
    if used:
        yield Grid.of("Use of the good documents", ["good document", of.base, of.new], 3, used)
    unjudged = of.unjudged.unique(["system", "doc_id"], maintain_order=True).iter_rows(named=True)
    rows = [[_name(row), row["system"], show(row["iteration"])] for row in unjudged]
    if rows:
        yield Grid.of(
            "Unjudged documents that one system alone found", ["document", "found by", "at iteration"], 2, rows
        )
    if any(parts.numerator.NAME == NumDup.NAME for parts in of.parts.values()):
        rows = [
            [_name(row), row["system"], show(row["first_iteration"]), show(row["iteration"])]
            for row in of.repeats.iter_rows(named=True)
        ]
        yield Grid.of("Repeated results", ["document", "found by", "first at iteration", "again at iteration"], 2, rows)


def _build_iterations_grid(account: Account, rel: float) -> Grid:
    of, header, columns = account.of, ["iteration"], []
    words = {"new_other": "not good", "repeated": "repeated", "unjudged": "unjudged"}
    names = [str(parts.numerator) for parts in of.parts.values() if account.find_rel(parts) == rel]
    documents = of.documents.filter(pl.col("measure").is_in(names)).unique("doc_id", maintain_order=True)
    for side, name in (("base", of.base), ("new", of.new)):
        searched, found = of.iterations.filter(system=name, rel=rel).to_dicts(), []
        if any(row["query_text"] for row in searched):
            header.append(f"{name} searched")
            columns.append(
                [f"{row['query_text'] or ''}{' (repeated)' * bool(row['is_repeated_query'])}" for row in searched]
            )
        for row in searched:
            good = documents.filter(pl.col(f"iteration_{side}") == row["iteration"])
            head = _name_documents(good) if 0 < good.height == row["new_good"] else _describe_outcome(row)
            others = (f"; {row[what]:,} {said}" for what, said in words.items() if row[what])
            found.append("! " * row["brought_nothing_good"] + head + "".join(others))
        header.append(f"{name} found")
        columns.append(found or ["never searched"])
    rows = [[str(k), *row] for k, row in enumerate(zip_longest(*columns, fillvalue=ABSENT), 1)]
    title = f"Query {of.queries.item(0, 'query_id')}{account.name_rel(rel)}"
    return Grid.of(title, header, len(header), rows)


def write_explanation(of: Explanation, form: str, query: str | None) -> str:
    """Return an explanation as text in one of `FORMS`."""
    if form not in FORMS:
        raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
    if form == "json":
        shown = of if query is None else take_query(of, query)
        frames = {name: getattr(shown, name).to_dicts() for name in _FRAMES}
        content = {"base": of.base, "new": of.new, "measures": of.measures, **frames}
        return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"
    return write_markdown(build_screen(of, query))


def render_on_terminal(of: Explanation, query: str | None) -> Iterator[Any]:
    """Yield the first screen, or one query, for rich."""
    from rich.padding import Padding
    from rich.text import Text

    for k, part in enumerate(build_screen(of, query)):
        if isinstance(part, Grid):
            yield Padding(build_rich_table(part), (1, 0, 0, 0), expand=False)
        else:
            text = Text(escape_controls(part.text), style="bold" if part.level < 0 else "")
            yield Padding(text, (int(k > 0 and part.level <= 0), 0, 0, 2 * max(part.level, 0)), expand=False)


def _describe_search(name: str, iterations: Sequence[Mapping[str, Any]], at: int) -> str:
    if len(iterations) < at:
        last = count_of(len(iterations), "iteration")
        return f"{name} had stopped after {last}" if iterations else f"{name} never searched"
    row = iterations[at - 1]
    if not row["query_text"]:
        return f"{name} {_describe_outcome(row)}"
    # Of parallel searches some may be new.
    repeated = "repeated its search" if row["repeated_queries"] == row["searches"] else "searched"
    return f"{name} {repeated} “{shorten(row['query_text'])}” and {_describe_outcome(row)}"


def _describe_outcome(row: Mapping[str, Any]) -> str:
    """Return what an iteration brought, in a few words."""
    others = row["new_other"] + row["unjudged"]
    if row["new_good"]:
        return f"found {count_of(row['new_good'], 'good document')}"
    if not others and not row["repeated"]:
        return "got an error" if row["failed"] else "got no results"
    return "found no good document" if others else "got only results that it had"


def _describe_values(row: Mapping[str, Any]) -> str:
    change = f"{show(row['base'])} → {show(row['new'])} ({show(row['difference'], '+')})"
    return f"{row['query_id']}: {row['measure']} {change}"


def _name_documents(documents: pl.DataFrame) -> str:
    """Return the documents by title or id, those with the largest labels first, each with its label."""
    rows = documents.sort("relevance", descending=True, maintain_order=True).iter_rows(named=True)
    return _list([f"{_name(row)} ({show(row['relevance'])})" for row in rows])


def _name(row: Mapping[str, Any]) -> str:
    return shorten(row["title"] or row["doc_id"])


def _list(names: list[str], most: int = _NAMED) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def shorten(text: str, most: int = _LONGEST) -> str:
    """Return a text of a log in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _show_amount(parts: Parts, amount: float) -> str:
    """Return an amount; for a rate with its unit, the numerator."""
    return show(amount, "+") + (f" of {parts.numerator}" if parts.denominator is not None else "")
