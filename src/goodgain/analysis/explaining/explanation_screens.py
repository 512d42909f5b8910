"""Writes an explanation: a sentence for each query, a summary, and one query with both systems side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.analysis.comparing.rendering import ABSENT, count_queries, show
from goodgain.analysis.comparing.use_of_documents import USES_OF
from goodgain.analysis.explaining.causes import add_up
from goodgain.analysis.explaining.explanation_sentences import (
    Account,
    add_parts,
    describe_difference,
    describe_outcome,
    describe_values,
    describe_whole,
    name_document,
    name_documents,
    sum_sides,
    take_query,
)
from goodgain.files.escaping import escape_controls
from goodgain.files.tables import Line, Table
from goodgain.files.terminal_tables import ANY_WIDTH, draw_table
from goodgain.measures.good_gain import NumDup
from goodgain.measures.names import describe_lack

if TYPE_CHECKING:
    from goodgain.analysis.explaining.explanation import Explanation

#: The forms of `Explanation.to_text`.
FORMS = ("markdown", "json")


def build_screen(of: Explanation, query: str | None = None) -> Iterator[Table | Line]:
    return _build_first_screen(of) if query is None else _build_side_by_side(take_query(of, query))


def _build_first_screen(of: Explanation) -> Iterator[Table | Line]:
    account = Account(of)
    for measure, parts in of.parts.items():
        of_measure = of.queries.filter(measure=measure)
        queries = of_measure.drop_nulls("difference")
        gain = pl.col("difference") * (1 if parts.measure.declaration.better == "up" else -1)
        worse = queries.filter(gain < 0).sort(gain, maintain_order=True)
        better = queries.filter(gain > 0).sort(-gain, maintain_order=True)
        with_cause = of.documents.filter(pl.col("measure") == str(parts.numerator), pl.col("cause").is_not_null())
        causes = add_up(with_cause, ["counted_by", "cause"]).sort("amount", maintain_order=True)
        yield Line(describe_difference(account, parts, queries, worse, better))
        if left_out := of_measure.height - queries.height:
            yield Line(f"Left out of {measure}: {count_queries(left_out)}, because {describe_lack(parts.measure)}.")
        if parts.denominator is not None and worse.height + better.height:
            rows, added = [], add_parts(queries)
            for part, name in (("numerator", parts.numerator), ("denominator", parts.denominator)):
                before, after = sum_sides(queries, f"{part}_")
                rows.append([f"{part}: {name}", show(before), show(after), show(after - before, "+")])
            rows += [[f"no {parts.denominator} in one system", "", "", ""]] * bool(added["none"])
            rows = [[*row, show(value / queries.height, "+")] for row, value in zip(rows, added.values(), strict=False)]
            header = ["part", of.base, of.new, "difference", "adds to the mean"]
            yield Table.of(f"Sums over queries, {measure}", header, 1, rows)
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
            yield Table.of(f"Causes of the difference in {parts.numerator}", header, 1, rows)
        for title, changed in ((f"Worse in {of.new}", worse), (f"Better in {of.new}", better)):
            shown = changed.head(of.top)
            yield from [Line(title, -1)] * bool(shown.height)
            for row in shown.iter_rows(named=True):
                at = row["first_differing_iteration"]
                first = "" if at is None else f"; they first differ at iteration {at}"
                yield Line(describe_values(row) + first, 1)
                yield from (Line(said, 2) for said in account.describe_change(row, named=True))
    yield from map(Line, describe_whole(of))


def _build_side_by_side(of: Explanation) -> Iterator[Table | Line]:
    account = Account(of)
    for row in of.queries.iter_rows(named=True):
        yield Line(f"{describe_values(row)}. {row['sentence'] or ''}".strip())
    yield from (_build_iterations_table(account, rel) for rel in account.rels)
    if of.iterations.get_column("brought_nothing_good").any():
        yield Line("! the iteration found no good document while some were missing")
    for measure, parts in {str(one.numerator): one for one in of.parts.values()}.items():
        rows = [
            [
                name_document(row),
                "" if row["cause"] is None else account.describe_cause(parts, row, "it"),
                *(show(row[column]) for column in ("relevance", "iteration_base", "iteration_new")),
                show(row["amount"], "+"),
            ]
            for row in of.documents.filter(measure=measure).iter_rows(named=True)
        ]
        header = ["good document", "cause", "label", *(f"{name} found it at" for name in (of.base, of.new)), "adds"]
        if rows:
            yield Table.of(f"Good documents, {measure}", header, 2, rows)
    documents = of.documents.unique("doc_id", keep="first", maintain_order=True).iter_rows(named=True)
    used = [
        [name_document(row), *(row[use] or ABSENT for use in USES_OF)]
        for row in documents
        if any(map(row.get, USES_OF))
    ]
    if used:
        yield Table.of("Use of the good documents", ["good document", of.base, of.new], 3, used)
    unjudged = of.unjudged.unique(["system", "doc_id"], maintain_order=True).iter_rows(named=True)
    rows = [[name_document(row), row["system"], show(row["iteration"])] for row in unjudged]
    if rows:
        header = ["document", "found by", "at iteration"]
        yield Table.of("Unjudged documents that one system alone found", header, 2, rows)
    if any(parts.numerator.NAME == NumDup.NAME for parts in of.parts.values()):
        rows = [
            [name_document(row), row["system"], show(row["first_iteration"]), show(row["iteration"])]
            for row in of.repeats.iter_rows(named=True)
        ]
        if rows:
            header = ["document", "found by", "first at iteration", "again at iteration"]
            yield Table.of("Repeated results", header, 2, rows)


def _build_iterations_table(account: Account, rel: float) -> Table:
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
            head = name_documents(good) if 0 < good.height == row["new_good"] else describe_outcome(row)
            others = (f"; {row[what]:,} {said}" for what, said in words.items() if row[what])
            found.append("! " * row["brought_nothing_good"] + head + "".join(others))
        header.append(f"{name} found")
        columns.append(found or [account.describe_idle(name, of.queries.get_column("query_id"))])
    rows = [[str(k), *row] for k, row in enumerate(zip_longest(*columns, fillvalue=ABSENT), 1)]
    title = f"Query {of.queries.item(0, 'query_id')}{account.name_rel(rel)}"
    return Table.of(title, header, len(header), rows)


def render_on_terminal(of: Explanation, query: str | None, width: int = ANY_WIDTH) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.text import Text

    for k, part in enumerate(build_screen(of, query)):
        if isinstance(part, Table):
            yield from (Text(""), *draw_table(part, width))
        else:
            text = Text(escape_controls(part.text), style="bold" if part.level < 0 else "")
            yield Padding(text, (int(k > 0 and part.level <= 0), 0, 0, 2 * max(part.level, 0)), expand=False)
