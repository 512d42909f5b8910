"""Describes in words the difference between two systems over all queries, and its main cause."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

import polars as pl

from goodgain.analysis.comparing.rendering import count_queries, list_some, show
from goodgain.analysis.comparing.use_of_documents import USES_OF
from goodgain.analysis.explaining.accounts import Account, name_document
from goodgain.analysis.explaining.causes import Parts, add_up
from goodgain.analysis.explaining.explanation_frames import ExplanationFrames
from goodgain.errors import count_of
from goodgain.measures.good_gain import NumDup
from goodgain.statistics.statistical_tests import RESIDUE

#: How a good document was lost -> pattern of the use in words.
_LOST = {
    "returned and not opened": "^returned.*(?:never opened|open failed)",
    "opened and not cited": "opened after.*not cited",
}


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
    measure = parts.measure
    if not number:
        return f"{measure}: no query has a value in both {base} and {new}."
    if worse.is_empty() and better.is_empty():
        return f"{measure}: {base} and {new} are equal in {count_queries(number)}."
    total = math.fsum(queries.get_column("difference"))
    before, after = (value / number for value in sum_sides(queries, ""))
    sentences = [
        f"{measure}: {new} has {_name_side(queries, total)} {base}, {show(before)} → {show(after)} "
        f"({show(total / number, '+')}); {new} is worse in {worse.height:,} of {count_queries(number)} and better in "
        f"{better.height:,}."
    ]
    if cause := describe_main_cause(account, parts, queries, total):
        sentences.append(f"Main cause: {cause}.")
    sentences.append(_describe_most_changed(account, worse, better))
    return " ".join(sentences)


def _name_side(queries: pl.DataFrame, total: float) -> str:
    """Say whose mean is higher. `total` is the sum of the differences of these queries."""
    if _is_rounding(queries, total):
        return "the same mean as"
    if show(total / queries.height) == "0":
        return "nearly the same mean as"
    return "a higher mean than" if total > 0 else "a lower mean than"


def _is_rounding(queries: pl.DataFrame, total: float) -> bool:
    return abs(total) <= RESIDUE * math.fsum(queries.get_column("difference").abs())


def _describe_most_changed(account: Account, worse: pl.DataFrame, better: pl.DataFrame) -> str:
    """Describe the query that lost most or, if none lost, the one that improved most."""
    if worse.is_empty():
        row = better.row(0, named=True)
        verb = "improved"
    else:
        row = worse.row(0, named=True)
        verb = "lost" if row["difference"] < 0 else "worsened"
    causes = ". ".join(islice(account.describe_change(row), 2))
    return f"{row['query_id']} {verb} most ({show(row['difference'], '+')}). {causes}."


#: Part of a rate -> what it adds to the difference of a query. If a denominator is 0, the part `none` is the whole difference.
_PARTS = {
    "numerator": pl.col("from_numerator"),
    "denominator": pl.col("from_denominator"),
    "none": pl.when(pl.col("from_numerator").is_null()).then("difference"),
}


def add_parts(queries: pl.DataFrame) -> dict[str, float]:
    """Return what each part of a rate adds to the sum of the differences of some queries."""
    sums = {}
    for part, amount in _PARTS.items():
        amounts = queries.select(amount).to_series()
        sums[part] = math.fsum(amounts.drop_nulls())
    return sums


def sum_sides(queries: pl.DataFrame, part: str) -> list[float]:
    return [math.fsum(queries.get_column(f"{part}{side}")) for side in ("base", "new")]


def describe_main_cause(account: Account, parts: Parts, queries: pl.DataFrame, total: float) -> str | None:
    """Describe the cause that adds most to `total`, the sum of differences. Return None if `total` is 0 or a rounding error."""
    if _is_rounding(queries, total):
        return None
    is_caused = pl.col("cause").is_not_null()
    documents = account.frames.documents.filter(pl.col("measure") == str(parts.numerator), is_caused)
    if parts.denominator is None:
        return _describe_largest_cause(account, parts, documents, total, queries.height)

    added = add_parts(queries)
    part = max(added, key=lambda part: added[part] * total)
    if part == "none" or part == "denominator" or parts.numerator.NAME == NumDup.NAME:
        return _describe_part(account, parts, queries, total, part)

    # the amounts are of the numerator; this is what they add to the mean of the rate
    mean_of_inverses = (1 / pl.col("denominator_base") + 1 / pl.col("denominator_new")) / 2
    weights = queries.drop_nulls("from_numerator").select("query_id", weight=mean_of_inverses / queries.height)
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
    causes = add_up(documents, ["counted_by", "cause"])
    causes = causes.filter(pl.col("amount") * total > 0)
    if causes.is_empty():
        return None
    by_size = causes.sort(pl.col("amount").abs(), maintain_order=True)
    main = by_size.row(-1, named=True)
    cause = account.describe_cause(parts, main, count_of(main["documents"], "good document"))
    return f"{cause} ({show(main['amount'] / divisor, '+')} in the mean)"


def find_main_causes(account: Account, parts: Parts) -> pl.DataFrame:
    """Return the rows of `Explanation.queries` for one measure, with a new column `cause`: the main cause in words."""
    queries = account.frames.queries.filter(measure=str(parts.measure))
    causes = [_name_cause(account, parts, row) for row in queries.iter_rows(named=True)]
    return queries.with_columns(cause=pl.Series(causes, dtype=pl.String))


def _name_cause(account: Account, parts: Parts, row: Mapping[str, Any]) -> str | None:
    """Return the main cause of a query's difference in words; None for no difference. `row` is of `Explanation.queries`."""
    change = row["difference"]
    if not change:
        return None
    if parts.denominator is not None and row["from_numerator"] is None:
        base, new = account.names
        name = new if change < 0 else base
        return f"{name} {account.describe_idle(name, [row['query_id']], parts.idle)}"
    if parts.denominator is not None and row["from_denominator"] * change > row["from_numerator"] * change:
        more = "more" if row["denominator_new"] > row["denominator_base"] else "fewer"
        return f"{more} {parts.denominator}"
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

    yield from _describe_losses(frames)


def _describe_losses(frames: ExplanationFrames) -> Iterator[str]:
    """Yield how many good documents each system returned and did not open, or opened and did not cite."""
    documents = frames.documents.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    documents = documents.sort("relevance", descending=True, maintain_order=True)
    for use, name in zip(USES_OF, (frames.base, frames.new), strict=True):
        for loss, pattern in _LOST.items():
            is_lost = pl.col(use).str.contains(pattern)
            lost = []
            for row in documents.filter(is_lost).iter_rows(named=True):
                lost.append(f"{row['query_id']} {name_document(row)} ({row[use]})")
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
    sentences = []
    for outcome, numbers in in_vain.items():
        if total := int(numbers.sum() or 0):
            sentences.append(f"{total:,} of {outcome}.")
    return " ".join(sentences)


def _describe_unjudged(frames: ExplanationFrames) -> str | None:
    """Return a sentence on the unjudged documents that one system alone found up to the cutoff of the first measure."""
    measure = frames.measures[0]
    unjudged = frames.unjudged.filter(measure=measure)
    numbers = dict(unjudged.group_by("system").len().iter_rows())
    if not numbers:
        return None
    systems = [name for name in (frames.base, frames.new) if name in numbers]
    parts = [f"{name} alone found {count_of(numbers[name], 'unjudged document')}" for name in systems]
    return f"Not in these sums: {', '.join(parts)}{frames.parts[measure].upto}."
