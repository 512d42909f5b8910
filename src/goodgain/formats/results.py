"""Reads and writes tables of results, and names their documents as runs do."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError
from goodgain.files.bad_rows import check_rows, lacks
from goodgain.files.opening import check_fork, container, make_path
from goodgain.files.table_reading import cast_columns, read_frame, read_table
from goodgain.files.writing import write_frame
from goodgain.options import spell
from goodgain.schema import DEDUPLICATED, EMPTY_DOC, RESULTS

#: A function that drops the parts of a URL that do not distinguish pages. It returns None for text that is not an address.
NormaliseUrl = Callable[[str], str | None]

_NEEDED = ("query_id", "iteration", "search", "rank")
_TEXTS = ("system", "replicate", "document", "doc_id", "url", "title", "snippet")


@checks_kinds
def read_results(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a results frame that was written as .parquet or .jsonl (also .gz or .zst).

    Raises:
        InputError: the file has another ending, lacks a column, or has a column of the wrong type. Also raised if a row has no
            query, no iteration, or a value of the wrong type; the message names the row.

    >>> import pathlib, tempfile
    >>> import goodgain as gg
    >>> import polars as pl
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.jsonl"
    >>> found = {"query_id": "q", "iteration": [1, 2], "search": 1, "rank": 1, "doc_id": ["a", "b"]}
    >>> gg.write_results(pl.DataFrame(found), path)
    >>> gg.read_results(path).select("iteration", "doc_id").rows()
    [(1, 'a'), (2, 'b')]
    """
    check_fork()
    path = make_path(path, "the file of the results")
    check_results_name(path)
    types = RESULTS.polars | DEDUPLICATED.polars
    is_lines = container(path) == "jsonl"
    frame, rows, names = read_table(path, types, find=lambda names: {name: name for name in names})
    if is_lines:
        frame = _fill_columns(frame, list(types))
    if names or not is_lines:
        missing = [name for name in RESULTS.required if name not in names]
        if missing:
            raise InputError(f"{path}: lacks the column {', '.join(missing)}; give what goodgain.read_traces returns")

    cast = cast_columns(nw.from_native(frame), RESULTS.columns, str(path))
    problems = [lacks("query_id"), (nw.col("iteration").is_null(), "has no iteration")]
    for name, dtype in cast.schema.items():
        if dtype.is_float() and RESULTS.columns.get(name) == nw.Int64:
            number = nw.col(name)
            is_not_whole = ~number.is_finite() | (number != number.round())
            problems.append((is_not_whole, f"has the {name} {{{name}}}, which is not a whole number"))
    checked, _ = check_rows(cast, rows, problems)
    return checked.to_native()  # type: ignore[no-any-return]  # a Polars frame, as given


def _fill_columns(frame: pl.DataFrame, order: list[str]) -> pl.DataFrame:
    """Add the columns that no line of JSON has. NaN becomes null."""
    floats = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    frame = frame.with_columns(pl.col(floats).fill_nan(None))
    filled = pl.concat([pl.DataFrame(schema=RESULTS.polars), frame], how="diagonal")
    return filled.select(name for name in order if name in filled.columns)


@checks_kinds
def write_results(results: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a results frame to a .parquet or .jsonl file. An error leaves an existing file unchanged.

    Raises:
        InputError: the name has another ending, or the file cannot be written.

    >>> import pathlib, tempfile
    >>> import goodgain as gg
    >>> import polars as pl
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.parquet"
    >>> gg.write_results(pl.DataFrame({"query_id": "q", "iteration": [1], "search": 1, "rank": 1, "doc_id": ["a"]}), path)
    >>> pl.read_parquet(path).item(0, "doc_id")
    'a'
    """
    check_results_name(Path(path))
    write_frame(results, Path(path))


def open_results(results: Any) -> Any:
    """Read results if a path is given; return a frame unchanged."""
    check_fork()
    return read_results(results) if isinstance(results, (str, os.PathLike)) else results


def check_results_name(path: Path) -> None:
    if container(path) not in ("parquet", "jsonl"):
        raise InputError(f"{path}: this table is written as .parquet or .jsonl; use one of these endings")


def name_results(results: Any) -> pl.DataFrame:
    """Return results with a column `name`: the doc_id that each result gets in the run. Missing text columns are added as null."""
    rows = select_columns(results, "search_query")
    named = name_documents(rows, None).filter(pl.col("rank") > 0)
    return named.select("query_id", "iteration", "search", "rank", "name", "url", "title", "snippet", "search_query")


def list_searches(results: Any) -> pl.DataFrame:
    """Return one row per search of a system, with its number of results as `results`. Missing text columns become null."""
    texts = ("search_query", "arguments", "status")
    rows = choose_run(select_columns(results, *texts), None, None)
    rows = sort_rows(rows).filter(pl.col("iteration") > 0)
    searches = rows.group_by("query_id", "iteration", "search", maintain_order=True)
    return searches.agg(pl.col(texts).first(), results=(pl.col("rank") > 0).sum())


def select_columns(results: Any, *further_texts: str) -> pl.DataFrame:
    """Return the known columns of results, with their types. Missing texts and scores become null, missing numbers 0."""
    texts = (*_TEXTS, *further_texts)
    frame = read_frame(getattr(results, "frame", results), "the results", (*_NEEDED, *texts, "score"))
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise InputError(f"the results lack the columns {', '.join(missing)}; give what goodgain.read_traces returns")
    absent = [pl.lit(None, pl.String).alias(name) for name in (*texts, "score") if name not in frame.columns]
    return frame.with_columns(absent).select(
        pl.col("query_id", *texts).cast(pl.String),
        pl.col(*_NEEDED[1:]).cast(pl.Int64).fill_null(0),
        pl.col("score").cast(pl.Float64),
    )


def sort_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by query (in order of appearance), iteration, search and rank. The new column `group` numbers the iterations."""
    # the number of a query is that of its first row
    first_row = pl.col("query").min().over("query_id").cast(pl.Int64)
    rows = rows.with_row_index("query").with_columns(first_row)
    rows = rows.sort("query", "iteration", "search", "rank", maintain_order=True)
    is_new = (pl.col("query").diff() != 0) | (pl.col("iteration").diff() != 0)
    return rows.with_columns(group=is_new.fill_null(True).cum_sum())


def choose_run(frame: pl.DataFrame, system: str | None, replicate: str | None) -> pl.DataFrame:
    """Return the rows of one system and replicate. None is allowed only if the results have a single one."""
    for column, choice in (("system", system), ("replicate", replicate)):
        names = frame[column].unique(maintain_order=True).to_list()
        if choice is None and len(names) > 1:
            examples = ", ".join(repr(name) for name in names[:5])
            raise InputError(
                f"the results hold several {column}s ({examples}), but a run has only one; give {spell(column)}"
            )
        if choice is None:
            continue

        if choice not in names:
            listed_names = ", ".join(repr(name) for name in names if name is not None)
            if not listed_names:
                listed_names = "one without a name"
            raise InputError(f"the results hold no {column} {choice!r}, only {listed_names}")
        frame = frame.filter(pl.col(column) == choice)
    return frame


def name_documents(frame: pl.DataFrame, normalise_url: NormaliseUrl | None) -> pl.DataFrame:
    """Add a column `name` with the document of each row. The id `-` is not a name, because it means "nothing found" in a run."""
    ids = [pl.when(~pl.col(name).is_in(["", EMPTY_DOC])).then(name) for name in ("document", "doc_id")]
    named = frame.with_columns(name=pl.coalesce(ids).cast(pl.String))
    is_bare = named["name"].is_null() & (named["rank"] > 0)
    if not is_bare.any():
        return named

    if normalise_url is None:
        from goodgain.formats.urls import canonicalise_url  # it takes long to import, and most results have ids

        normalise_url = canonicalise_url
    names = [_make_name(row, normalise_url) for row in named.filter(is_bare).iter_rows(named=True)]
    return named.with_columns(named["name"].clone().scatter(is_bare.arg_true(), pl.Series(names, dtype=pl.String)))


def _make_name(row: dict[str, Any], normalise_url: NormaliseUrl) -> str:
    """Name a result without an id by its normalised URL, or else by `text:` and a hash of its content."""
    if row["url"] and (url := normalise_url(row["url"])):
        return url
    texts = [text for text in (row["url"], row["title"], row["snippet"]) if text]
    if not texts:  # a result without any content is a document of its own
        texts = [str(row[name]) for name in _NEEDED]
    text = "\n".join(" ".join(part.split()) for part in texts)
    return f"text:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
