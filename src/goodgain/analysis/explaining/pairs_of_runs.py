"""Describes why a query changed. If systems have several runs, the amounts are means over the pairs of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.analysis.comparing.rendering import show
from goodgain.analysis.explaining.causes import Parts
from goodgain.analysis.explaining.explanation_sentences import Account, add_parts
from goodgain.errors import count_of

if TYPE_CHECKING:
    from goodgain.analysis.explaining.explanation import Explanation


def describe_queries(of: Explanation, measure: str) -> Mapping[str, str | None]:
    """Return a text for each query of the qrels: why its value of `measure` changed.

    The amounts in a text add up to the difference of the values that `compare` prints for the query.
    """
    queries = of.queries.filter(measure=measure)
    if of.pairs is None:
        return dict(queries.select("query_id", "sentence").iter_rows())
    account, parts = Account(of), of.parts[measure]
    named = of.pairs.select("query_id", "of_query")
    documents = of.documents.filter(pl.col("measure") == str(parts.numerator), pl.col("cause").is_not_null())
    documents_of = documents.join(named, on="query_id").partition_by("of_query", as_dict=True)
    counted = queries.drop_nulls("difference").join(named, on="query_id")
    sentences = {}
    for (query_id,), pairs_of_runs in counted.group_by("of_query", maintain_order=True):
        causes = documents_of.get((query_id,), documents.clear())
        said = [*_describe_parts(parts, pairs_of_runs), *_describe_causes(account, parts, causes, pairs_of_runs)]
        number = count_of(pairs_of_runs.height, "pair of runs", "pairs of runs")
        sentences[str(query_id)] = f"In the mean of {number}: {'; '.join(said)}." if said else None
    return sentences


def _describe_parts(parts: Parts, pairs_of_runs: pl.DataFrame) -> Iterator[str]:
    """Say what numerator and denominator of a rate add to the mean difference."""
    if parts.denominator is None:
        return
    names = {"numerator": str(parts.numerator), "denominator": parts.denominator, "none": f"no {parts.denominator}"}
    for part, added in add_parts(pairs_of_runs).items():
        if added:
            yield f"{names[part]} adds {show(added / pairs_of_runs.height, '+')}"


def _describe_causes(
    account: Account, parts: Parts, documents: pl.DataFrame, pairs_of_runs: pl.DataFrame
) -> Iterator[str]:
    causes: list[dict[str, Any]] = []
    for (counted_by, cause), rows in documents.group_by("counted_by", "cause", maintain_order=True):
        amount = math.fsum(rows["amount"]) / pairs_of_runs.height
        causes.append({"counted_by": counted_by, "cause": cause, "number": rows["doc_id"].n_unique(), "amount": amount})
    total = math.fsum(pairs_of_runs["difference"])
    of_rate = "" if parts.denominator is None else f" of {parts.numerator}"
    for row in sorted(causes, key=lambda row: row["amount"], reverse=total > 0):
        names = count_of(row["number"], "good document")
        yield f"{account.describe_cause(parts, row, names)} ({show(row['amount'], '+')}{of_rate})"
