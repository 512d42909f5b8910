"""Describes why a query changed. If systems have several runs, the amounts are means over the pairs of runs."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from goodgain.analysis.comparing.rendering import show
from goodgain.analysis.explaining.accounts import Account
from goodgain.analysis.explaining.causes import Parts
from goodgain.analysis.explaining.explanation_frames import ExplanationFrames
from goodgain.analysis.explaining.explanation_sentences import add_parts
from goodgain.errors import count_of


def describe_queries(frames: ExplanationFrames, measure: str) -> Mapping[str, str | None]:
    """Return a text for each query of the qrels: why its value of `measure` changed.

    The amounts in a text add up to the difference of the values that `compare` prints for the query.
    """
    queries = frames.queries.filter(measure=measure)
    if frames.pairs is None:
        return dict(queries.select("query_id", "sentence").iter_rows())

    account = Account(frames)
    parts = frames.parts[measure]
    query_of_pair = frames.pairs.select("query_id", "of_query")
    is_caused = pl.col("cause").is_not_null()
    documents = frames.documents.filter(pl.col("measure") == str(parts.numerator), is_caused)
    documents_of = documents.join(query_of_pair, on="query_id").partition_by("of_query", as_dict=True)
    counted = queries.drop_nulls("difference").join(query_of_pair, on="query_id")

    sentences = {}
    for (query_id,), pairs_of_runs in counted.group_by("of_query", maintain_order=True):
        caused = documents_of.get((query_id,), documents.clear())
        changes = [
            *_describe_parts(parts, pairs_of_runs),
            *_describe_causes(account, parts, caused, pairs_of_runs),
        ]
        number = count_of(pairs_of_runs.height, "pair of runs", "pairs of runs")
        sentences[str(query_id)] = f"In the mean of {number}: {'; '.join(changes)}." if changes else None
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
    """Yield the causes of a query, with mean amounts over pairs of runs. Those with the sign of the difference come first."""
    causes: list[dict[str, Any]] = []
    for (counted_by, cause), rows in documents.group_by("counted_by", "cause", maintain_order=True):
        amount = math.fsum(rows["amount"]) / pairs_of_runs.height
        causes.append({"counted_by": counted_by, "cause": cause, "number": rows["doc_id"].n_unique(), "amount": amount})
    total = math.fsum(pairs_of_runs["difference"])
    of_rate = "" if parts.denominator is None else f" of {parts.numerator}"
    for row in sorted(causes, key=lambda row: row["amount"], reverse=total > 0):
        names = count_of(row["number"], "good document")
        yield f"{account.describe_cause(parts, row, names)} ({show(row['amount'], '+')}{of_rate})"
