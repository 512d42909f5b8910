"""Rules for labels: null labels, column 2 of qrels, labels that can crash trec_eval, and grades of nuggets."""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import RowSource, check_rows, number_lines
from goodgain.files.json_text import begins_json
from goodgain.files.opening import container, read_bytes
from goodgain.formats.iterations import WHOLE
from goodgain.options import spell
from goodgain.schema import NUGGETS

_POSITIVE = r"^\+?0*[1-9][0-9]*$"
_NUMBER_BUT_NO_ITERATION = r"^[+-]?([0-9]+\.[0-9]*|\.[0-9]+|-[0-9]+|[0-9]+[eE][+-]?[0-9]+)$"
#: Smaller positive labels lose digits when divided, and nDCG would be silently wrong.
_LEAST_LABEL = 1e-280
#: trec_eval keeps a list of all levels up to the largest label, for every query.
_MOST_LEVELS = 10_000_000
#: Lower labels make trec_eval write outside its memory, and pytrec_eval may crash. Measures treat -1 like any lower label.
LOWEST_LABEL = -1
#: One row: query_id, text of the nugget, doc_id, relevance, vital.
_Nugget = tuple[str, str, str, float, float]
#: Assignment of a nugget to a document by autonuggetizer -> label.
GRADES_OF_NUGGETS = {"support": 2.0, "partial_support": 1.0, "not_support": 0.0}


def take_out_null_labels(
    frame: pl.DataFrame, rows: RowSource, *, report: bool
) -> tuple[pl.DataFrame, pl.DataFrame | None, RowSource]:
    """Return three things: rows with a label; rows with a null label, or None; and the `RowSource` of the rows with a label."""
    is_null = frame.get_column("relevance").is_null()
    if not is_null.any():
        return frame, None, rows
    count = int(is_null.sum())
    labelled, ungraded = frame.filter(~is_null), frame.filter(is_null)

    if labelled.is_empty():
        raise InputError(f"{rows.label}: every relevance is null, so these qrels judge nothing; give qrels with labels")
    if report:
        left_out = describe_queries_left_out(ungraded, labelled)
        notice(
            "null_relevance",
            f"{rows.label}: {count} row{'s' * (count != 1)} with a null relevance, counted as unjudged{left_out}",
        )
    return labelled, ungraded.drop("relevance"), rows.subset((~is_null).arg_true().to_list())


def describe_queries_left_out(ungraded: pl.DataFrame, labelled: pl.DataFrame) -> str:
    """Return the end of a notice: how many queries have only null labels. Return empty text if each query has a label."""
    count = ungraded.join(labelled, on="query_id", how="anti").get_column("query_id").n_unique()
    subject = "1 query has" if count == 1 else f"{count} queries have"
    return f"; {subject} null labels only, and no mean includes such queries" if count else ""


def check_sizes(frame: pl.DataFrame, label: str) -> None:
    """Raise `InputError` if the sum of the labels overflows, or if a label is so close to 0 that a division loses digits."""
    sizes = frame.get_column("relevance").abs()
    if not math.isfinite(sizes.sum()):
        raise InputError(f"{label}: the labels are so large that their sum overflows; map them to a small scale")
    low = frame.get_column("relevance").filter(sizes.is_between(0, _LEAST_LABEL, "none"))
    if len(low):
        problem = f"the label {low[0]:g} is so small that floats lose its digits"
        raise InputError(f"{label}: {problem}; map the labels to a larger scale")


def check_levels(labels: pl.DataFrame) -> None:
    """Raise `InputError` if a label is too large for trec_eval, which would run out of memory or compute 0."""
    high = labels.get_column("relevance").filter(labels.get_column("relevance").abs() > _MOST_LEVELS)
    if len(high):
        limit = f"the memory of trec_eval grows with the largest label (the limit is {_MOST_LEVELS:,})"
        raise InputError(f"the label {high[0]:g} is too large for trec_eval: {limit}; map the labels to a small scale")


def clip_for_trec_eval(frame: pl.DataFrame) -> pl.DataFrame:
    """Increase the negative labels that can crash trec_eval. The values that trec_eval computes do not change.

    Labels below -1 become -1. If all labels of a query are negative, they become 0, because trec_eval may run forever if no
    label is 0 or more.
    """
    if not (frame.get_column("relevance") < 0).any():
        return frame
    relevance = pl.col("relevance").clip(lower_bound=LOWEST_LABEL)
    has_none = relevance.max().over("query_id") < 0
    return frame.with_columns(relevance=pl.when(has_none).then(0).otherwise(relevance))


def keep_whole_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Cast labels to integers if all are whole, because pytrec_eval and ranx need integers."""
    labels = frame.get_column("relevance")
    is_whole = (labels == labels.round()).all() and (labels.abs() < 2**53).all()
    return frame.with_columns(pl.col("relevance").cast(pl.Int64)) if is_whole else frame


def count_differing_labels(frame: pl.DataFrame) -> int:
    """Count the documents with labels that differ between iterations."""
    counts = frame.group_by("query_id", "doc_id").agg(pl.col("relevance").n_unique())
    return counts.filter(pl.col("relevance") > 1).height


def keep_one_label_per_document(frame: pl.DataFrame, rows: RowSource) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two tables without repeated labels: one row per (query, document), and one row per (query, document, column 2)."""
    key = ["query_id", "doc_id"]
    by_iteration = frame.get_column("iteration").unique().str.contains(_POSITIVE).any()
    hashed = pl.col("query_id").hash(1) ^ pl.col("doc_id").hash(2)
    labels = subtopics = frame
    may_repeat = frame.select(hashed.n_unique()).item() < frame.height  # hashes are counted faster than pairs
    if may_repeat:
        remedy = "keep the one that is right"
        if frame.get_column("iteration").n_unique() > 1:
            remedy += f", or read the qrels with {spell('labels', 'subtopic')} if column 2 is a subtopic"
            if by_iteration:
                remedy += f" ({spell('labels', 'iteration')} if it is the iteration)"
        _check_contradictions(frame, rows, key, remedy)
        labels = frame.unique(key, keep="first", maintain_order=True)
        subtopics = frame.unique([*key, "iteration"], keep="first", maintain_order=True)

    if by_iteration:
        fact = "column 2 holds positive integers and was ignored, as in other tools"
        remedy = f"if the labels apply to iterations, read the qrels with {spell('labels', 'iteration')}"
        remedy += f", if to subtopics with {spell('labels', 'subtopic')}"
        notice("column_2_of_qrels", f"{rows.label}: {fact}; {remedy}", minor=True)
    return labels, subtopics


def keep_one_label_per_iteration(frame: pl.DataFrame, rows: RowSource) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a pair that contains the same table twice, because callers expect two tables.

    The table has one row per (query, document, iteration). A null iteration stands for any iteration.
    """
    column = nw.col("iteration")
    is_other_number = column.str.contains(_NUMBER_BUT_NO_ITERATION)
    remedy = "write a positive integer, 0, or a word for any iteration"
    other_number = is_other_number, f"has {{iteration}} in column 2, which is not an iteration: {remedy}"
    is_too_large = column.str.contains(_POSITIVE) & ~column.str.contains(WHOLE)
    too_large = is_too_large, "has a number in column 2 that is too large for an iteration"
    check_rows(nw.from_native(frame), rows, [other_number, too_large])

    number = pl.col("iteration").str.strip_prefix("+").cast(pl.Int64, strict=False)
    is_positive = pl.col("iteration").str.contains(_POSITIVE)
    numbered = frame.with_columns(iteration=pl.when(is_positive).then(number))
    key = ["query_id", "doc_id", "iteration"]
    _check_contradictions(numbered, rows, key, "keep the one that is right")
    distinct = numbered.unique(key, keep="first", maintain_order=True)

    differing = count_differing_labels(distinct)
    if differing:
        documents = "1 document has" if differing == 1 else f"{differing} documents have"
        fact = f"{documents} labels that differ between iterations"
        rule = "the label at the first occurrence in a run counts"
        notice("labels_by_iteration", f"{rows.label}: labels by iteration: {fact}; {rule}", minor=True)
    return distinct, distinct


def keep_one_label_per_subtopic(frame: pl.DataFrame, rows: RowSource) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two tables: the largest label per (query, document), and one row per (query, document, subtopic).

    The second table is sorted by label, because tools that ignore subtopics keep the last row of a document.
    """
    key = ["query_id", "doc_id", "iteration"]
    _check_contradictions(frame, rows, key, "keep the one that is right")
    subtopics = frame.unique(key, keep="first", maintain_order=True).sort("query_id", "relevance", maintain_order=True)
    largest = frame.group_by("query_id", "doc_id", maintain_order=True).agg(pl.col("relevance").max())
    return largest.select("query_id", pl.lit("0").alias("iteration"), "doc_id", "relevance"), subtopics


def _check_contradictions(frame: pl.DataFrame, rows: RowSource, key: list[str], remedy: str) -> None:
    """Raise an InputError if rows with equal `key` columns have different labels. Rows with the same label are only repeats."""
    judged = frame.with_row_index("row")
    keys = judged.group_by(key).agg(labels=pl.col("relevance").n_unique(), row=pl.col("row").min())
    clashing = keys.filter(pl.col("labels") > 1).sort("row")
    if clashing.is_empty():
        return

    first = judged.filter(pl.col("row") == clashing.item(0, "row"))
    equal_in_key = judged.join(first.select(key), on=key, how="semi", nulls_equal=True)
    different = equal_in_key.filter(pl.col("relevance") != first.item(0, "relevance")).sort("row")
    places = f"{rows.locate(first.item(0, 'row'))} and {rows.locate(different.item(0, 'row'))}"
    columns = "query and document" if len(key) == 2 else "query, document and column 2"
    raise InputError(f"{places} have different labels for one {columns}; {remedy}")


def read_assignments(source: Any) -> pl.DataFrame | None:
    """Read autonuggetizer's assignments of nuggets to documents; return None for any other source.

    The frame has query_id, iteration (the text of a nugget), doc_id, relevance and vital.
    """
    if not isinstance(source, (str, os.PathLike)) or container(Path(source)) not in ("text", "jsonl"):
        return None
    path = Path(source)
    content = read_bytes(path)
    first_line = next(number_lines(content), (0, b""))[1]
    if not begins_json(content) or _read_record(first_line) is None:
        return None
    rows: list[_Nugget] = []
    for number, line in number_lines(content):
        rows.extend(_read_nuggets(line, f"{path}, line {number}"))
    return pl.DataFrame(rows, schema=NUGGETS.polars, orient="row")


def _read_record(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line if it has a query and nuggets, else None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    has_nuggets = isinstance(record, dict) and "qid" in record and isinstance(record.get("nuggets"), list)
    return record if has_nuggets else None


def _read_nuggets(line: bytes, place: str) -> Iterator[_Nugget]:
    """Yield the rows of one line: a row per nugget, with the label of its assignment, and 1.0 if the nugget is vital, else 0.0."""
    record = _read_record(line)
    if record is None:
        raise InputError(f"{place}: is not a record of assignments with qid and nuggets; correct the line")
    if "docid" not in record:
        remedy = "Assign them to documents: nuggetizer assign --input-kind retrieval"
        raise InputError(f"{place}: assigns nuggets to an answer, not to a document (docid). {remedy}")

    for nugget in record["nuggets"]:
        fields = nugget if isinstance(nugget, dict) else {}
        grade = GRADES_OF_NUGGETS.get(str(fields.get("assignment")))
        if grade is None or not isinstance(fields.get("text"), str):
            fields_of_nugget = f"a text, and one of {', '.join(GRADES_OF_NUGGETS)} as its assignment"
            raise InputError(f"{place}: a nugget needs {fields_of_nugget}; correct the line")
        is_vital = float(fields.get("importance") == "vital")
        yield str(record["qid"]), fields["text"], str(record["docid"]), grade, is_vital
