"""Tables with values of queries beside runs and qrels: groups of queries, outcomes of systems, uses of documents."""

from __future__ import annotations

import os
from typing import Any

import polars as pl
import polars.selectors as cs

from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import BadLines
from goodgain.files.json_text import begins_json, iterate_objects, loads
from goodgain.files.opening import container, make_path, read_lines, separator_by_name
from goodgain.files.table_reading import cast_texts, read_frame, read_table
from goodgain.schema import USES

#: Queries that a notice names.
_EXAMPLES = 3

#: The system of uses that name none, as of runs of logs that name none.
_ONLY_SYSTEM = "goodgain"
_TRUTH = {"true": "1", "false": "0"}


def read_groups(source: Any, judged: pl.Series) -> pl.DataFrame:
    """Read query_id and group, each pair once, for the judged queries; give a notice if some have no group.

    Args:
        source: a file or a frame with query_id and group. A query may be in several groups.
        judged: the ids of the queries.

    Raises:
        InputError: it cannot be read, or has none of these queries.
    """
    frame, label = _open_table(source, "groups=", ("query_id", "group"))
    known = cast_texts(frame, ["query_id", "group"], label).select("query_id", "group").drop_nulls().unique()
    known = known.filter(pl.col("query_id").is_in(judged.implode())).sort("group", "query_id")
    lacking = judged.filter(~judged.is_in(known.get_column("query_id").implode())).sort()
    if known.is_empty():
        raise InputError(f"{label}: no judged query has a group. Check that it names queries as the qrels do.")
    if "all" in known.get_column("group"):
        raise InputError(f"{label}: a group is called all, as the row of all queries is. Give it another name.")
    if len(lacking):
        shown = ", ".join(lacking.head(_EXAMPLES)) + ", ..." * (len(lacking) > _EXAMPLES)
        notice(f"{label}: {len(lacking):,} of {len(judged):,} queries have no group: {shown}. They count in all only.")
    return known


def read_outcomes(source: Any) -> pl.DataFrame:
    """Read query_id, system and a column of numbers for each outcome, averaged over replicates.

    Args:
        source: a file or a frame with query_id, system, and columns of numbers or truth values. A column `replicate`
            says that a query has several rows.

    Raises:
        InputError: it cannot be read, has no outcome, or an outcome is not a number.
    """
    frame, label = _open_table(source, "outcomes=", ("query_id", "system"))
    names = [name for name in frame.columns if name not in ("query_id", "system", "replicate")]
    if not names:
        raise InputError(f"{label}: has no outcome. Add a column of numbers, such as solved with 0 and 1.")
    frame = cast_texts(frame, ["query_id", "system"], label)
    twice = frame.filter(frame.select("query_id", "system").is_duplicated())
    if len(twice) and "replicate" not in frame.columns:
        query_id, system = twice.select("query_id", "system").row(0)
        raise InputError(f"{label}: has several rows of query {query_id} and system {system}. Add a column replicate.")
    for name in names:
        column = frame.get_column(name)
        if column.dtype == pl.String:
            column = column.str.strip_chars().str.to_lowercase().replace(_TRUTH).replace("", None)
        number = column.clear(len(column)) if column.dtype.is_nested() else column.cast(pl.Float64, strict=False)
        wrong = frame.get_column(name).filter(number.is_null() & column.is_not_null())
        if len(wrong):
            raise InputError(
                f"{label}: {name} has {str(wrong[0])[:80]!r}, which is not a number. Leave the column out."
            )
        frame = frame.with_columns(number.fill_nan(None))
    return frame.group_by("query_id", "system", maintain_order=True).agg(pl.col(names).mean())


def read_uses(source: Any) -> pl.DataFrame:
    """Read the documents that queries returned, opened and cited: the columns of `USES`.

    Args:
        source: a file or a frame with query_id, doc_id, returned_at, opened_at, opens and cited, or a list of them. Rows
            without a system are of one system.

    Raises:
        InputError: it cannot be read, a value is not a whole number or a truth value, or a document has two rows.
    """
    sources = source if isinstance(source, (list, tuple)) else [source]
    types, needed = USES.polars, USES.required
    tables = [pl.DataFrame(schema=types)]
    for one in sources:
        frame, label = _open_table(one, "uses=", needed)
        given = [name for name in types if name in frame.columns]
        texts = [name for name in given if types[name] == pl.String]
        frame = cast_texts(frame.select(given), texts, label).with_columns(
            cs.string().str.strip_chars().replace("", None)
        )
        for name in (name for name in given if name not in texts):
            column = frame.get_column(name)
            if column.dtype == pl.String:
                column = column.str.to_lowercase().replace(_TRUTH)
            number = column.clear(len(column)) if column.dtype.is_nested() else column.cast(pl.Float64, strict=False)
            most = 1 if name == "cited" else float("inf")
            wrong = frame.get_column(name).filter(
                column.is_not_null()
                & ~((number == number.round()) & number.is_between(0, most, closed="both")).fill_null(False)
            )
            if len(wrong):
                raise InputError(f"{label}: {name} has {str(wrong[0])[:80]!r}, which it cannot have. Correct the row.")
            frame = frame.with_columns(number.cast(types[name]))
        if frame.select(pl.col("query_id", "doc_id").is_null().any()).transpose().to_series().any():
            raise InputError(f"{label}: a row has no query_id or no doc_id. Write - for a query that used no document.")
        tables.append(frame)
    uses = pl.concat(tables, how="diagonal").with_columns(pl.col("system").fill_null(_ONLY_SYSTEM))
    key = ["query_id", "system", "replicate", "doc_id"]
    twice = uses.filter(uses.select(key).is_duplicated())
    if len(twice):
        query_id, system, _, doc_id = twice.select(key).row(0)
        raise InputError(f"uses=: two rows have document {doc_id} of query {query_id} and system {system}. Keep one.")
    return uses


def _open_table(source: Any, argument: str, required: tuple[str, ...]) -> tuple[pl.DataFrame, str]:
    """Return all columns of a file or frame, and its name in errors."""
    if not isinstance(source, (str, os.PathLike)):
        frame, label = read_frame(source, argument), argument
    else:
        path = make_path(source, argument)
        label = str(path)
        content = read_lines(path) if container(path) in ("jsonl", "text") else None
        if content is not None and separator_by_name(path) is None and begins_json(content):
            if content.data.lstrip().startswith(b"["):
                rows = loads(content.data)
            else:
                rows = [value for _, value in iterate_objects(content, BadLines(label, content, None).refuse)]
            frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
        else:
            every = _EveryColumn()
            frame = read_table(path, every, find=lambda names: {name: name for name in names}, content=content).frame
    missing = [name for name in required if name not in frame.columns]
    if missing:
        raise InputError(
            f"{label}: has no column {', '.join(missing)} (it has {', '.join(frame.columns) or 'none'}). Rename its columns."
        )
    return frame, label


class _EveryColumn(dict[str, Any]):
    """The types of all columns that a file may have: text."""

    def __missing__(self, name: str) -> Any:
        return pl.String
