"""Writes an explanation: a sentence for each query, a summary, and one query with both systems side by side."""

import math
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import polars as pl

from goodgain.analysis.comparing.rendering import count_queries, show
from goodgain.analysis.comparing.use_of_documents import USES_OF
from goodgain.analysis.explaining.accounts import (
    Account,
    describe_outcome,
    describe_values,
    name_document,
    name_documents,
)
from goodgain.analysis.explaining.causes import Parts, add_up
from goodgain.analysis.explaining.explanation_frames import ExplanationFrames, take_query
from goodgain.analysis.explaining.explanation_sentences import add_parts, describe_difference, describe_whole, sum_sides
from goodgain.errors import escape_controls
from goodgain.files.tables import ABSENT, Line, Table
from goodgain.files.terminal_tables import ANY_WIDTH, draw_table
from goodgain.measures.good_gain import NumDup
from goodgain.measures.names import describe_lack

#: The forms of `Explanation.to_text`.
FORMS = ("markdown", "json")
#: Columns with other results of an iteration -> what they are.
_OTHER_RESULTS = {"new_other": "not good", "repeated": "repeated", "unjudged": "unjudged"}


def build_screen(frames: ExplanationFrames, query: str | None = None) -> Iterator[Table | Line]:
    return _build_first_screen(frames) if query is None else _build_side_by_side(take_query(frames, query))


def _build_first_screen(frames: ExplanationFrames) -> Iterator[Table | Line]:
    """Yield the summary of all queries. The first part is the sentence on the difference in the first measure."""
    account = Account(frames)
    for measure, parts in frames.parts.items():
        queries_of_measure = frames.queries.filter(measure=measure)
        queries = queries_of_measure.drop_nulls("difference")
        sign = 1 if parts.measure.declaration.better == "up" else -1
        gain = sign * pl.col("difference")
        worse = queries.filter(gain < 0).sort(gain, maintain_order=True)
        better = queries.filter(gain > 0).sort(-gain, maintain_order=True)

        yield Line(describe_difference(account, parts, queries, worse, better))
        if left_out := queries_of_measure.height - queries.height:
            yield Line(f"Left out of {measure}: {count_queries(left_out)}, because {describe_lack(parts.measure)}.")
        if parts.denominator is not None and worse.height + better.height:
            yield _build_sums_table(frames, parts, queries)
        yield from _build_causes_table(account, parts, queries.height)
        yield from _list_changed(account, f"Worse in {frames.new}", worse)
        yield from _list_changed(account, f"Better in {frames.new}", better)
    yield from map(Line, describe_whole(frames))


def _build_sums_table(frames: ExplanationFrames, parts: Parts, queries: pl.DataFrame) -> Table:
    """Return the table of numerator and denominator of a rate, and of what each adds to the difference of the means."""
    sums = add_parts(queries)
    added = {part: show(amount / queries.height, "+") for part, amount in sums.items()}
    rows = []
    for part, name in (("numerator", parts.numerator), ("denominator", parts.denominator)):
        before, after = sum_sides(queries, f"{part}_")
        difference = show(after - before, "+")
        rows.append([f"{part}: {name}", show(before), show(after), difference, added[part]])
    if sums["none"]:
        rows.append([f"no {parts.denominator} in one system", "", "", "", added["none"]])
    header = ["part", frames.base, frames.new, "difference", "adds to the mean"]
    return Table.of(f"Sums over queries, {parts.measure}", header, 1, rows)


def _build_causes_table(account: Account, parts: Parts, queries: int) -> Iterator[Table]:
    """Yield the table of causes over all queries, if there are causes."""
    frames = account.frames
    is_caused = pl.col("cause").is_not_null()
    documents = frames.documents.filter(pl.col("measure") == str(parts.numerator), is_caused)
    causes = add_up(documents, ["counted_by", "cause"]).sort("amount", maintain_order=True)
    if causes.is_empty():
        return

    rows = []
    for row in causes.iter_rows(named=True):
        cause = account.describe_cause(parts, row, "them")
        numbers = [f"{row['documents']:,}", f"{row['queries']:,}"]
        amounts = [show(row["amount"], "+"), show(row["amount"] / queries, "+")]
        rows.append([cause, *numbers, *amounts])
    total = math.fsum(causes.get_column("amount"))
    sums = [show(total, "+"), show(total / queries, "+")]
    rows.append([f"{frames.new} minus {frames.base}", "", "", *sums])
    header = ["cause", "good documents", "queries", str(parts.numerator), "per query"]
    yield Table.of(f"Causes of the difference in {parts.numerator}", header, 1, rows)


def _list_changed(account: Account, title: str, queries: pl.DataFrame) -> Iterator[Line]:
    """Yield a title, and the queries that changed most with their causes."""
    changed_most = queries.head(account.frames.top)
    if not changed_most.is_empty():
        yield Line(title, -1)
    for row in changed_most.iter_rows(named=True):
        iteration = row["first_differing_iteration"]
        first = "" if iteration is None else f"; they first differ at iteration {iteration}"
        yield Line(describe_values(row) + first, 1)
        for sentence in account.describe_change(row, named=True):
            yield Line(sentence, 2)


def _build_side_by_side(frames: ExplanationFrames) -> Iterator[Table | Line]:
    """Yield the screen of one query. `frames` has the rows of this query."""
    account = Account(frames)
    for row in frames.queries.iter_rows(named=True):
        yield Line(f"{describe_values(row)}. {row['sentence'] or ''}".strip())
    for rel in account.rels:
        yield _build_iterations_table(account, rel)
    if frames.iterations.get_column("brought_nothing_good").any():
        yield Line("! the iteration found no good document while some were missing")
    parts_of_sum = {str(parts.numerator): parts for parts in frames.parts.values()}
    for measure, parts in parts_of_sum.items():
        yield from _build_documents_table(account, measure, parts)
    yield from _build_uses_table(frames)

    yield from _build_unjudged_table(frames)
    if any(parts.numerator.NAME == NumDup.NAME for parts in frames.parts.values()):
        yield from _build_repeats_table(frames)


def _build_unjudged_table(frames: ExplanationFrames) -> Iterator[Table]:
    """Yield the table of unjudged documents, which may be good; no table if there are none."""
    unjudged = frames.unjudged.unique(["system", "doc_id"], maintain_order=True)
    rows = []
    for row in unjudged.iter_rows(named=True):
        rows.append([name_document(row), row["system"], show(row["iteration"])])
    header = ["document", "found by", "at iteration"]
    yield from _build_table("Unjudged documents that one system alone found", header, rows)


def _build_repeats_table(frames: ExplanationFrames) -> Iterator[Table]:
    rows = []
    for row in frames.repeats.iter_rows(named=True):
        places = show(row["first_iteration"]), show(row["iteration"])
        rows.append([name_document(row), row["system"], *places])
    header = ["document", "found by", "first at iteration", "again at iteration"]
    yield from _build_table("Repeated results", header, rows)


def _build_table(title: str, header: list[str], rows: list[list[str]], words: int = 2) -> Iterator[Table]:
    """Yield a table, if it has rows. The first `words` columns hold words."""
    if rows:
        yield Table.of(title, header, words, rows)


def _build_documents_table(account: Account, measure: str, parts: Parts) -> Iterator[Table]:
    """Yield the table of good documents of a sum such as CG, with the cause and the amount of each."""
    frames = account.frames
    rows = []
    for row in frames.documents.filter(measure=measure).iter_rows(named=True):
        cause = "" if row["cause"] is None else account.describe_cause(parts, row, "it")
        numbers = [show(row[column]) for column in ("relevance", "iteration_base", "iteration_new")]
        rows.append([name_document(row), cause, *numbers, show(row["amount"], "+")])
    found_at = [f"{name} found it at" for name in account.names]
    header = ["good document", "cause", "label", *found_at, "adds"]
    yield from _build_table(f"Good documents, {measure}", header, rows)


def _build_uses_table(frames: ExplanationFrames) -> Iterator[Table]:
    """Yield the table of what the systems did with the good documents; no table without uses."""
    documents = frames.documents.unique("doc_id", keep="first", maintain_order=True)
    rows = []
    for row in documents.iter_rows(named=True):
        uses = [row[use] for use in USES_OF]
        if any(uses):
            rows.append([name_document(row), *(use or ABSENT for use in uses)])
    header = ["good document", frames.base, frames.new]
    yield from _build_table("Use of the good documents", header, rows, words=3)


def _build_iterations_table(account: Account, rel: float) -> Table:
    """Return a row per iteration, with what each system searched for and found. `rel` is the smallest good label."""
    frames = account.frames
    measures = [str(parts.numerator) for parts in frames.parts.values() if account.find_rel(parts) == rel]
    documents = frames.documents.filter(pl.col("measure").is_in(measures)).unique("doc_id", maintain_order=True)

    header, columns = ["iteration"], []
    for side, name in (("base", frames.base), ("new", frames.new)):
        iterations = frames.iterations.filter(system=name, rel=rel).to_dicts()
        if any(row["query_text"] for row in iterations):
            header.append(f"{name} searched")
            columns.append([_write_search(row) for row in iterations])
        header.append(f"{name} found")
        results = []
        for row in iterations:
            good = documents.filter(pl.col(f"iteration_{side}") == row["iteration"])
            results.append(_write_results(row, good))
        columns.append(results or [account.describe_idle(name, frames.queries.get_column("query_id"))])

    rows = [[str(k), *row] for k, row in enumerate(zip_longest(*columns, fillvalue=ABSENT), 1)]
    title = f"Query {frames.queries.item(0, 'query_id')}{account.name_rel(rel)}"
    return Table.of(title, header, len(header), rows)


def _write_search(row: dict[str, Any]) -> str:
    repeated = " (repeated)" if row["is_repeated_query"] else ""
    return f"{row['query_text'] or ''}{repeated}"


def _write_results(row: dict[str, Any], good: pl.DataFrame) -> str:
    """Return what an iteration found: the names of the good documents if they are known, and numbers of other results."""
    has_names = 0 < good.height == row["new_good"]
    text = name_documents(good) if has_names else describe_outcome(row)
    for column, words in _OTHER_RESULTS.items():
        if row[column]:
            text += f"; {row[column]:,} {words}"
    return f"! {text}" if row["brought_nothing_good"] else text


def render_on_terminal(frames: ExplanationFrames, query: str | None, width: int = ANY_WIDTH) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.text import Text

    for number, part in enumerate(build_screen(frames, query)):
        if isinstance(part, Table):
            yield Text("")
            yield from draw_table(part, width)
        else:
            is_title = part.level < 0
            above = int(number > 0 and part.level <= 0)
            text = Text(escape_controls(part.text), style="bold" if is_title else "")
            yield Padding(text, (above, 0, 0, 2 * max(part.level, 0)), expand=False)
