"""The label of each document: column 2 of qrels, labels that contradict each other, labels that hosts can take."""

from __future__ import annotations

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.row_origins import RowSource
from goodgain.schema import EMPTY_DOC

__all__ = [
    "LEAST_LABEL",
    "LOWEST_LABEL",
    "MOST_LEVELS",
    "check_documents",
    "check_levels",
    "clip_for_trec_eval",
    "count_differing_labels",
    "keep_one_label_per_document",
    "keep_one_label_per_iteration",
    "keep_whole_labels",
]

_POSITIVE = r"^\+?0*[1-9][0-9]*$"
_NUMBER_BUT_NO_ITERATION = r"^[+-]?([0-9]+\.[0-9]*|\.[0-9]+|-[0-9]+|[0-9]+[eE][+-]?[0-9]+)$|^-[0-9]+$"


#: trec_eval keeps a list of all levels up to the largest label, for every query.
MOST_LEVELS = 10_000_000


#: Smaller labels above 0 have fewer digits than other floats as soon as they are divided: nDCG is wrong without a word.
LEAST_LABEL = 1e-280


def check_levels(labels: pl.DataFrame) -> None:
    """Raise `InputError` for a label too large for the hosts: trec_eval would run out of memory, or give 0."""
    high = labels.get_column("relevance").filter(labels.get_column("relevance").abs() > MOST_LEVELS)
    if len(high):
        raise InputError(
            f"the label {high[0]:g} is too large for trec_eval, which keeps a list of all levels of relevance up to it "
            f"(here up to {MOST_LEVELS:,}); map the labels to a small scale"
        )


#: trec_eval writes outside its memory for lower labels, which pytrec_eval often, not always, survives. -1 is the same to
#: every measure that asks only whether a document is relevant, and how much.
LOWEST_LABEL = -1


def clip_for_trec_eval(frame: pl.DataFrame) -> pl.DataFrame:
    """Change labels below -1, which can crash trec_eval, so that its values stay the same.

    Labels below -1 become -1. A query that has labels below 0 only gets 0 for each: trec_eval looks for its levels of
    relevance from 0 on, and may never end where there is none.
    """
    if not (frame.get_column("relevance") < 0).any():
        return frame
    relevance = pl.col("relevance").clip(lower_bound=LOWEST_LABEL)
    has_none = relevance.max().over("query_id") < 0
    return frame.with_columns(relevance=pl.when(has_none).then(0).otherwise(relevance))


def keep_whole_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Cast labels to integers, which hosts ask for, where all of them are whole."""
    labels = frame.get_column("relevance")
    is_whole = (labels == labels.round()).all() and (labels.abs() < 2**53).all()
    return frame.with_columns(pl.col("relevance").cast(pl.Int64)) if is_whole else frame


def count_differing_labels(frame: pl.DataFrame) -> int:
    """Count the documents whose labels differ between iterations."""
    counts = frame.group_by("query_id", "doc_id").agg(pl.col("relevance").n_unique())
    return counts.filter(pl.col("relevance") > 1).height


def check_documents(frame: pl.DataFrame, rows: RowSource) -> None:
    """Raise `InputError` where the document `-` is judged, which stands for an iteration that returned nothing."""
    nothing = frame.get_column("doc_id").eq(EMPTY_DOC).arg_true()
    if len(nothing):
        raise InputError(
            f"{rows.locate(nothing[0])} judges the document '-', which stands for an iteration that returned nothing; "
            "remove the line"
        )


def keep_one_label_per_document(frame: pl.DataFrame, rows: RowSource) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep one row per (query, document).

    Returns:
        Those rows, and beside them one row per (query, document, subtopic), column 2 being the subtopic.

    Raises:
        InputError: a document has two different labels.
    """
    key = ["query_id", "doc_id"]
    by_iteration = frame.get_column("iteration").unique().str.contains(_POSITIVE).any()
    hashed = pl.col("query_id").hash(1) ^ pl.col("doc_id").hash(2)
    labels = subtopics = frame
    if (
        frame.select(hashed.n_unique()).item() < frame.height
    ):  # no two rows have one hash, so no pair repeats; hashes are counted faster than pairs
        remedy = "keep the one that is right"
        if by_iteration:
            remedy += ", or read the qrels with labels='iteration' (--labels iteration) if column 2 is the iteration"
        _check_contradictions(frame, rows, key, remedy)
        labels = frame.unique(key, keep="first", maintain_order=True)
        subtopics = frame.unique([*key, "iteration"], keep="first", maintain_order=True)
    if by_iteration:
        notice(
            f"{rows.label}: column 2 holds positive integers and was ignored, as every tool does; if they are the "
            "iterations the labels belong to, read the qrels with labels='iteration' (--labels iteration)"
        )
    return labels, subtopics


def keep_one_label_per_iteration(frame: pl.DataFrame, rows: RowSource) -> pl.DataFrame:
    """Keep one row per (query, document, iteration), where a null iteration means any.

    Raises:
        InputError: a document has two different labels for one iteration, or column 2 cannot be an iteration.
    """
    odd = frame.get_column("iteration").str.contains(_NUMBER_BUT_NO_ITERATION).arg_true()
    if len(odd):
        raise InputError(
            f"{rows.locate(odd[0])} has {frame.item(odd[0], 'iteration')!r} in column 2, which is not an iteration; "
            "write a positive integer, 0, or a word for any iteration"
        )
    number = pl.col("iteration").str.strip_prefix("+").cast(pl.Int64, strict=False)
    beyond = frame.select(pl.col("iteration").str.contains(_POSITIVE) & number.is_null()).to_series().arg_true()
    if len(beyond):
        raise InputError(f"{rows.locate(beyond[0])} has a number in column 2 that no iteration can have; correct it")
    numbered = frame.with_columns(iteration=pl.when(pl.col("iteration").str.contains(_POSITIVE)).then(number))
    key = ["query_id", "doc_id", "iteration"]
    _check_contradictions(numbered, rows, key, "keep the one that is right")
    distinct = numbered.unique(key, keep="first", maintain_order=True)
    differing = count_differing_labels(distinct)
    if differing:
        notice(
            f"{rows.label}: labels by iteration: {differing} document{'s have' if differing > 1 else ' has'} labels that "
            "differ between iterations; the first occurrence in a run decides"
        )
    return distinct


def _check_contradictions(frame: pl.DataFrame, rows: RowSource, key: list[str], remedy: str) -> None:
    """Raise `InputError` with both lines where one key has two different labels."""
    judged = frame.with_row_index("row")
    clashing = (
        judged.group_by(key)
        .agg(labels=pl.col("relevance").n_unique(), row=pl.col("row").min())
        .filter(pl.col("labels") > 1)
        .sort("row")
    )
    if clashing.is_empty():
        return
    first = clashing.item(0, "row")
    one = judged.filter(pl.col("row") == first)
    same = judged.join(one.select(key), on=key, how="semi", nulls_equal=True)
    other = same.filter(pl.col("relevance") != one.item(0, "relevance")).sort("row").item(0, "row")
    what = "query and document" if len(key) == 2 else "query, document and iteration"
    raise InputError(f"{rows.locate(first)} and {rows.locate(other)} have different labels for one {what}; {remedy}")
