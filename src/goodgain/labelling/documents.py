"""The documents that a language model is to grade, each with its query and the text that is shown."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.counting.coverage import warn_of_queries
from goodgain.errors import InputError, notice
from goodgain.files.containers import read_column_names
from goodgain.files.content import read_bytes
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import container, open_stream, plain_name, stem
from goodgain.files.row_checks import cast_texts, check_rows, lacks
from goodgain.files.row_origins import FrameRows, RowSource, quote
from goodgain.files.safe_text import unguard_ids
from goodgain.files.tables import read_frame, read_table
from goodgain.formats.qrels import load_qrels
from goodgain.judging.grades import DOCUMENT
from goodgain.judging.pooling import pool
from goodgain.labelling.options import check_count
from goodgain.labelling.texts import read_queries, read_texts
from goodgain.traces import read_results
from goodgain.traces.output.runs import name_results

__all__ = ["Wanted", "collect_documents"]

_TEXTS = ("title", "url", "snippet")
#: The columns of a sheet that are read.
_SHEET = (*DOCUMENT, *_TEXTS, "grade")
#: More results of an iteration than any search gives: a run or results are taken whole where no depth is given.
_WHOLE = 2**31

#: The first line of a file is looked at up to this many bytes.
_LONGEST = 2**20

#: The documents to be graded: query_id, doc_id, query, description, text (what is shown; null where there is nothing to
#: show), cut (whether the text was cut).
Wanted = pl.DataFrame


def collect_documents(
    source: Any,
    queries: Any,
    *,
    texts: Any = None,
    results: Any = None,
    qrels: Any = None,
    k: int | None = None,
    max_characters: int = 8_000,
) -> tuple[Wanted, list[str]]:
    """Return the unjudged documents with what is shown of them, and the names of the systems that found them.

    Args:
        source: what `label` takes.
        queries: what `read_queries` takes.
        texts: what `read_texts` takes: shown in place of title, URL and snippet.
        results: a results frame or file, for runs: adds titles, URLs and snippets.
        qrels: judgments that there are already: their documents are left out.
        k: how many results of every iteration are graded; None: all.
        max_characters: where a text is cut.

    Raises:
        InputError: a source cannot be read, a query has no text, or k or max_characters is not a count.
    """
    check_count("k", k, none="all results")
    check_count("max_characters", max_characters)
    found, systems = _gather(source, results=results, qrels=qrels, k=k)
    named = read_queries(queries).rename({"text": "query"})
    without = found.join(named, on="query_id", how="anti")
    if without.height:
        raise InputError(
            f"query {quote(without.item(0, 'query_id'))} has no text among the queries; add it to them, as the model must "
            "know what was asked"
        )
    shown = _show(found, None if texts is None else read_texts(texts))
    wanted = (
        found.select(DOCUMENT)
        .with_columns(text=shown)
        .join(named, on="query_id", how="left", maintain_order="left")
        .with_columns(
            text=pl.col("text").str.slice(0, max_characters), cut=pl.col("text").str.len_chars() > max_characters
        )
        .sort(DOCUMENT)
    )
    empty = wanted.get_column("text").null_count()
    if empty:
        notice(
            f"{empty:,} of {wanted.height:,} documents have no text to show and get no grade; give --results or --texts "
            "(results=, texts=)"
        )
    return wanted.select(*DOCUMENT, "query", "description", "text", pl.col("cut").fill_null(False)), systems


def _gather(source: Any, *, results: Any, qrels: Any, k: int | None) -> tuple[pl.DataFrame, list[str]]:
    """Return query_id, doc_id and, where they are known, title, url, snippet of each document once; and the systems."""
    several = source if isinstance(source, Mapping) and not _is_run(source) else None
    sources = list(several.items()) if several is not None else [(None, one) for one in _list_sources(source)]
    parts: list[pl.DataFrame] = []
    systems: list[str] = []
    runs: dict[str, Any] = {}
    for name, one in sources:
        kind = _kind_of(one)
        if kind == "run":
            called = str(name) if name is not None else _name_of(one, len(runs))
            if called in runs:
                raise InputError(f"two runs are called {quote(called)}; give them names: {{name: run}}")
            runs[called] = one
            continue
        frame, rows = _read_frame(one)
        if kind == "sheet":
            parts.append(_read_sheet(frame, rows))
        else:
            if "system" in frame.columns:
                systems += frame.get_column("system").drop_nulls().unique(maintain_order=True).to_list()
            parts.append(_read_documents(frame, k))
    judged = None if qrels is None else load_qrels(qrels)
    if parts and judged is not None:  # of runs, pool says it
        warn_of_queries(pl.concat(part.get_column("query_id") for part in parts), judged.frame.get_column("query_id"))
    if runs:
        parts.append(pool(runs, k=_WHOLE if k is None else k, qrels=judged, results=results))
        systems += list(runs)
    columns = [*DOCUMENT, *_TEXTS]
    together = pl.concat([_with_texts(part).select(columns) for part in parts])
    length = pl.sum_horizontal(pl.col("title", "snippet").str.len_chars().fill_null(0))
    fullest = together.sort(length, descending=True, maintain_order=True)
    found = fullest.group_by(DOCUMENT, maintain_order=True).agg(pl.col(_TEXTS).drop_nulls().first())
    if judged is not None:
        labels = judged.frame.filter(pl.col("relevance").is_not_null()).select(DOCUMENT).unique()
        found = found.join(labels, on=DOCUMENT, how="anti")
    return found.sort(DOCUMENT), systems


def _list_sources(source: Any) -> list[Any]:
    is_several = isinstance(source, (list, tuple)) and not hasattr(source, "_fields")
    several = list(source) if is_several and all(not hasattr(one, "_fields") for one in source) else [source]
    if not several:
        raise InputError("there is nothing to label; give a run, results, or a sheet of goodgain pool")
    return several


def _is_run(source: Mapping[Any, Any]) -> bool:
    """Tell whether a dict is one run, {query_id: {doc_id: score}}, and not several by name."""
    return all(
        isinstance(docs, Mapping) and not isinstance(next(iter(docs.values()), 0), Mapping) for docs in source.values()
    )


def _name_of(source: Any, number: int) -> str:
    if isinstance(source, (str, os.PathLike)):
        return stem(Path(source))
    return str(getattr(source, "name", None) or f"run{number + 1}")


def _kind_of(source: Any) -> str:
    """Return `results`, `sheet` or `run`, by the columns."""
    if isinstance(source, (str, os.PathLike)):
        columns = _list_columns(Path(source))
    else:
        columns = list(getattr(getattr(source, "frame", source), "columns", []))
    if {"search", "rank", "iteration"} <= set(columns):
        return "results"
    return "sheet" if "grade" in columns and "iteration" not in columns else "run"


def _list_columns(path: Path) -> list[str]:
    """Return the names of the columns of a file; none for TREC text, which has no names."""
    suffix = Path(plain_name(path.name)).suffix.lower()
    try:
        if container(path) == "parquet":
            return read_column_names(read_bytes(path), path, "parquet")
        if suffix in (".csv", ".tsv") or container(path) == "jsonl":
            with open_stream(path) as file:
                first = file.readline(_LONGEST).decode("utf-8-sig", "replace").strip()
            if suffix in (".csv", ".tsv"):
                return first.replace('"', "").split("," if suffix == ".csv" else "\t")
            row = loads(first)
            return list(row) if isinstance(row, dict) else []
    except (OSError, InputError, NotJSONError):  # whoever reads it says what is wrong
        pass
    return []


def _read_frame(source: Any) -> tuple[pl.DataFrame, RowSource]:
    """Return results or a sheet, and how errors name the rows of a sheet."""
    if not isinstance(source, (str, os.PathLike)):
        return read_frame(getattr(source, "frame", source), "the documents"), FrameRows("the sheet")
    path = Path(source)
    if _kind_of(path) == "results":
        return read_results(path), FrameRows(str(path))
    sheet = read_table(path, dict.fromkeys(_SHEET, pl.String))
    return sheet.frame, sheet.rows


def _read_sheet(frame: pl.DataFrame, origins: RowSource) -> pl.DataFrame:
    """Return the documents of a sheet that have no grade yet."""
    label = origins.label
    missing = [name for name in DOCUMENT if name not in frame.columns]
    if missing:
        raise InputError(f"{label}: lacks the column {missing[0]}; give what goodgain pool wrote")
    known = [name for name in _SHEET if name in frame.columns]
    rows = cast_texts(frame.select(known), known, label)
    check_rows(nw.from_native(rows, eager_only=True), origins, [*map(lacks, DOCUMENT)])
    rows = unguard_ids(rows, DOCUMENT, label)
    return rows.filter(pl.col("grade").is_null() | (pl.col("grade").str.strip_chars() == ""))


def _read_documents(results: pl.DataFrame, k: int | None) -> pl.DataFrame:
    """Return the documents of results, those that deduplication put together as one."""
    named = name_results(results).rename({"name": "doc_id"})
    if k is None:
        return named
    place = pl.int_range(pl.len()).over("query_id", "iteration")
    return named.sort("query_id", "iteration", "search", "rank", maintain_order=True).filter(place < k)


def _with_texts(frame: pl.DataFrame) -> pl.DataFrame:
    lacking = [pl.lit(None, pl.String).alias(name) for name in _TEXTS if name not in frame.columns]
    return frame.with_columns(lacking).with_columns(pl.col(_TEXTS).cast(pl.String))


def _show(found: pl.DataFrame, texts: pl.DataFrame | None) -> pl.Series:
    """Return the text that is shown of each document: its own, or title, URL and snippet, each on a line."""
    parts = [
        pl.when(pl.col(name).str.strip_chars() != "").then(pl.format(f"{name.capitalize()}: {{}}", name))
        for name in _TEXTS
    ]
    joined = pl.concat_str(parts, separator="\n", ignore_nulls=True)
    shown = found.select(text=pl.when(joined != "").then(joined)).to_series()
    if texts is None:
        return shown
    own = found.select("doc_id").join(texts, on="doc_id", how="left", maintain_order="left").get_column("text")
    return pl.select(pl.coalesce(own, shown)).to_series()
