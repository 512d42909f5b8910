"""Collects the documents that a language model grades, from runs, results and sheets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.counting.coverage import match_queries, warn_if_few_shared
from goodgain.counting.joined_addresses import spell_like
from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import check_rows, lacks, quote
from goodgain.files.escaping import unguard_ids
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import container, open_stream, read_bytes, separator_by_name, stem
from goodgain.files.table_reading import cast_texts, read_container, read_frame
from goodgain.files.tables import sort_ids
from goodgain.formats.qrels import load_qrels
from goodgain.formats.query_tables import read_queries
from goodgain.formats.results import name_results, read_results
from goodgain.formats.texts import open_texts, read_texts
from goodgain.judgments.judging.documents_to_judge import TEXTS, WHOLE, pick_fullest_texts, pool
from goodgain.judgments.judging.grade_table import DOCUMENT, is_path
from goodgain.options import check_whole_number, spell

#: The columns to read from a sheet.
_SHEET = (*DOCUMENT, *TEXTS, "grade")
#: The most bytes to read of a first line, to find the columns.
_LONGEST = 2**20


def collect_documents(
    source: Any,
    queries: Any,
    *,
    texts: Any = None,
    results: Any = None,
    qrels: Any = None,
    k: int | None = None,
    max_characters: int = 8_000,
) -> tuple[pl.DataFrame, list[str]]:
    """Return two things: a frame of the unjudged documents, and the systems' names. The arguments are described in `label`.

    The frame has the columns query_id, doc_id, query, description, text (or null) and cut (whether the text was cut).
    """
    if k is not None:
        check_whole_number("k", k, 1, others=", or None (all results)")
    check_whole_number("max_characters", max_characters, 1)
    documents, systems = _gather(source, results=results, qrels=qrels, k=k)
    texts_of_queries = read_queries(queries).rename({"text": "query"})
    without_text = documents.join(texts_of_queries, on="query_id", how="anti")
    if without_text.height:
        query_id = quote(str(without_text.item(0, "query_id")))
        raise InputError(
            f"query {query_id} has no text among the queries, and the model must know the question. Add the text to the queries"
        )

    texts_of_documents = pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String})
    if texts is not None:
        texts_of_documents = read_texts(texts)
    documents = documents.join(texts_of_documents, on="doc_id", how="left", maintain_order="left")
    documents = documents.with_columns(text=pl.coalesce("text", _write_texts()))
    documents = documents.join(texts_of_queries, on="query_id", how="left", maintain_order="left")
    is_long = pl.col("text").str.len_chars() > max_characters
    text = pl.col("text").str.slice(0, max_characters)
    documents = documents.with_columns(text=text, cut=is_long.fill_null(False))

    empty = documents.get_column("text").null_count()
    if empty:
        fact = f"no text to show, so no grade, for {empty:,} of {count_of(documents.height, 'document')}"
        notice("documents_without_text", f"{fact}. Give {spell('results')} or {spell('texts')}")
    documents = sort_ids(documents.sort("doc_id"))
    return documents.select(*DOCUMENT, "query", "description", "text", "cut"), systems


def _write_texts() -> pl.Expr:
    """Return an expression: a line for each of title, url and snippet that is not blank; null if all are blank."""
    lines = []
    for name in TEXTS:
        line = pl.format(f"{name.capitalize()}: {{}}", name)
        is_filled = pl.col(name).str.strip_chars() != ""
        lines.append(pl.when(is_filled).then(line))
    text = pl.concat_str(lines, separator="\n", ignore_nulls=True)
    return pl.when(text != "").then(text)


def _gather(source: Any, *, results: Any, qrels: Any, k: int | None) -> tuple[pl.DataFrame, list[str]]:
    """Return two things: the unjudged documents (query_id, doc_id, title, url, snippet), and the systems' names."""
    judged = None if qrels is None else load_qrels(qrels)
    tables: list[pl.DataFrame] = []
    systems: list[str] = []
    runs: dict[str, Any] = {}
    for name, table in _name_sources(source):
        kind = _find_kind(table)
        if kind == "run":
            run_name = name or _name_run(table, len(runs) + 1)
            if run_name in runs:
                raise InputError(f"two runs are called {quote(run_name)}. Give them names: {{name: run}}")
            runs[run_name] = table
        elif kind == "sheet":
            tables.append(_read_sheet(table))
        else:
            documents, systems_of_table = _read_documents(table, k)
            tables.append(documents)
            systems += systems_of_table

    if tables and judged is not None:  # for runs, pool gives this notice
        query_ids = pl.concat(table.get_column("query_id") for table in tables)
        warn_if_few_shared(match_queries(query_ids, judged.frame.get_column("query_id")))
    if runs:
        depth = WHOLE if k is None else k
        tables.append(pool(runs, k=depth, qrels=judged, results=results, urls="keep"))
        systems += list(runs)

    columns = dict.fromkeys((*DOCUMENT, *TEXTS), pl.String)
    parts = [pl.DataFrame(schema=columns)]
    for table in tables:
        names = [name for name in columns if name in table.columns]
        parts.append(table.select(pl.col(names).cast(pl.String)))
    documents = pick_fullest_texts(pl.concat(parts, how="diagonal"))
    if judged is not None:
        documents = spell_like(documents, judged.frame)
        documents = documents.join(judged.frame.select(DOCUMENT), on=DOCUMENT, how="anti")
    return documents.sort(DOCUMENT), systems


def _name_sources(source: Any) -> list[tuple[str | None, Any]]:
    """Return a list of (name or None, source). A run that is a nested dict or a list of named tuples counts as one source."""
    if isinstance(source, Mapping):
        are_dicts = all(isinstance(docs, Mapping) for docs in source.values())
        if not are_dicts or any(isinstance(value, Mapping) for docs in source.values() for value in docs.values()):
            return [(str(name), named_source) for name, named_source in source.items()]

    sources = [source]
    if isinstance(source, (list, tuple)):
        has_named_tuples = any(hasattr(member, "_fields") for member in (source, *source))
        sources = [source] if has_named_tuples else list(source)
    if not sources:
        raise InputError("there is nothing to label. Give a run, results, or a sheet of goodgain pool")
    return [(None, unnamed_source) for unnamed_source in sources]


def _find_kind(source: Any) -> str:
    """Return `results`, `sheet` or `run` by the columns of a file or frame. A text without columns (TREC) is a run."""
    frame = getattr(source, "frame", source)
    columns = list(getattr(frame, "columns", []))
    if is_path(source):
        columns = _list_columns(Path(source))
    if {"search", "rank", "iteration"} <= {*columns}:
        return "results"
    is_sheet = "grade" in columns and "iteration" not in columns
    return "sheet" if is_sheet else "run"


def _list_columns(path: Path) -> list[str]:
    """Return the column names in a file's first line or schema. Return an empty list for a file that cannot be read."""
    kind = container(path)
    try:
        if kind == "parquet":
            return read_container(read_bytes(path), path, kind, rows=1).columns
        with open_stream(path) as file:
            first_line = file.readline(_LONGEST).decode("utf-8-sig", "replace").strip()
        if kind == "jsonl":
            row = loads(first_line)
            return list(row) if isinstance(row, dict) else []  # reading the file raises the error
        return first_line.replace('"', "").split(separator_by_name(path))
    except (InputError, NotJSONError):  # reading the file raises the error
        return []


def _name_run(run: Any, number: int) -> str:
    name = stem(Path(run)) if is_path(run) else getattr(run, "name", None)
    return str(name or f"run{number}")


def _read_documents(results: Any, k: int | None) -> tuple[pl.DataFrame, list[str]]:
    """Return the documents in a results frame or file, and its systems. `k` limits the results of each iteration."""
    if is_path(results):
        frame = read_results(results)
    else:
        frame = read_frame(getattr(results, "frame", results), "the documents")
    systems = []
    if "system" in frame.columns:
        systems = frame.get_column("system").drop_nulls().unique(maintain_order=True).to_list()
    documents = name_results(frame).rename({"name": "doc_id"})
    if k is not None:
        documents = documents.sort("query_id", "iteration", "search", "rank", maintain_order=True)
        place = pl.int_range(pl.len()).over("query_id", "iteration")
        documents = documents.filter(place < k)
    return documents, systems


def _read_sheet(source: Any) -> pl.DataFrame:
    """Return the rows of a sheet that have no grade yet."""
    frame, origins = open_texts(source, _SHEET, "the sheet")
    label = origins.label
    missing = [name for name in DOCUMENT if name not in frame.columns]
    if missing:
        raise InputError(f"{label}: lacks the column {missing[0]}. Give a sheet that goodgain pool wrote")
    rows = cast_texts(frame, frame.columns, label)
    check_rows(nw.from_native(rows, eager_only=True), origins, [*map(lacks, DOCUMENT)])
    rows = unguard_ids(rows, DOCUMENT, label)
    is_empty = pl.col("grade").str.strip_chars() == ""
    return rows.filter(pl.col("grade").is_null() | is_empty)
