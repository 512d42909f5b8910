"""The documents that a language model grades, each with its query and its text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.counting.coverage import match_queries, warn_if_few_shared
from goodgain.counting.joined_addresses import spell_like
from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import check_rows, lacks, quote
from goodgain.files.escaping import unguard_ids
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import container, open_stream, read_bytes, separator_by_name, stem
from goodgain.files.table_reading import cast_texts, read_container, read_frame
from goodgain.formats.qrels import load_qrels
from goodgain.formats.query_tables import open_texts, read_queries, read_texts
from goodgain.judgments.judging.grade_table import DOCUMENT, is_path
from goodgain.judgments.judging.pooling import TEXTS, WHOLE, pick_fullest_texts, pool
from goodgain.logs.traces import read_results
from goodgain.logs.traces.output.results_to_run import name_results
from goodgain.options import check_whole_number, spell

#: The columns that are read of a sheet.
_SHEET = (*DOCUMENT, *TEXTS, "grade")
#: Bytes of the longest first line that is read to find the columns.
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
    """Return the unjudged documents, and the names of the systems that found them. The arguments are those of `label`.

    The columns are query_id, doc_id, query, description, text (null if there is none), cut (whether the text was cut).
    """
    if k is not None:
        check_whole_number("k", k, 1, others=", or None (all results)")
    check_whole_number("max_characters", max_characters, 1)
    found, systems = _gather(source, results=results, qrels=qrels, k=k)
    named = read_queries(queries).rename({"text": "query"})
    without = found.join(named, on="query_id", how="anti")
    if without.height:
        raise InputError(
            f"query {quote(str(without.item(0, 'query_id')))} has no text among the queries, and the model must know the "
            "question. Add the text to the queries"
        )
    own = pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String}) if texts is None else read_texts(texts)
    lines = [
        pl.when(pl.col(name).str.strip_chars() != "").then(pl.format(f"{name.capitalize()}: {{}}", name))
        for name in TEXTS
    ]
    joined = pl.concat_str(lines, separator="\n", ignore_nulls=True)
    wanted = (
        found.join(own, on="doc_id", how="left", maintain_order="left")
        .with_columns(text=pl.coalesce("text", pl.when(joined != "").then(joined)))
        .join(named, on="query_id", how="left", maintain_order="left")
        .with_columns(cut=(pl.col("text").str.len_chars() > max_characters).fill_null(False))
        .with_columns(text=pl.col("text").str.slice(0, max_characters))
        .sort(DOCUMENT)
    )
    if empty := wanted.get_column("text").null_count():
        lacking = f"{empty:,} of {wanted.height:,} documents have no text to show and get no grade"
        notice(f"{lacking}. Give {spell('results')} or {spell('texts')}")
    return wanted.select(*DOCUMENT, "query", "description", "text", "cut"), systems


def _gather(source: Any, *, results: Any, qrels: Any, k: int | None) -> tuple[pl.DataFrame, list[str]]:
    judged = None if qrels is None else load_qrels(qrels)
    parts: list[pl.DataFrame] = []
    systems: list[str] = []
    runs: dict[str, Any] = {}
    for name, one in _name_sources(source):
        kind = _kind_of(one)
        if kind == "run":
            own = stem(Path(one)) if is_path(one) else getattr(one, "name", None)
            called = name or str(own or f"run{len(runs) + 1}")
            if called in runs:
                raise InputError(f"two runs are called {quote(called)}. Give them names: {{name: run}}")
            runs[called] = one
        elif kind == "sheet":
            parts.append(_read_sheet(one))
        else:
            frame = read_results(one) if is_path(one) else read_frame(getattr(one, "frame", one), "the documents")
            if "system" in frame.columns:
                systems += frame.get_column("system").drop_nulls().unique(maintain_order=True).to_list()
            documents = name_results(frame).rename({"name": "doc_id"})
            if k is not None:
                documents = documents.sort("query_id", "iteration", "search", "rank", maintain_order=True)
                documents = documents.filter(pl.int_range(pl.len()).over("query_id", "iteration") < k)
            parts.append(documents)
    if parts and judged is not None:  # for runs, pool gives this notice
        searched = pl.concat(part.get_column("query_id") for part in parts)
        warn_if_few_shared(match_queries(searched, judged.frame.get_column("query_id")))
    if runs:
        parts.append(
            pool(runs, k=WHOLE if k is None else k, qrels=judged, results=results, urls="keep")
        )  # joined below
        systems += list(runs)
    columns = dict.fromkeys((*DOCUMENT, *TEXTS), pl.String)
    texts = [part.select(pl.col(name).cast(pl.String) for name in columns if name in part.columns) for part in parts]
    found = pick_fullest_texts(pl.concat([pl.DataFrame(schema=columns), *texts], how="diagonal"))
    if judged is not None:
        found = spell_like(found, judged.frame).join(judged.frame.select(DOCUMENT), on=DOCUMENT, how="anti")
    return found.sort(DOCUMENT), systems


def _name_sources(source: Any) -> list[tuple[str | None, Any]]:
    """Return the sources with their names, if any. A dict of dicts of numbers is one source, as is a list of named tuples."""
    if isinstance(source, Mapping):
        are_dicts = all(isinstance(docs, Mapping) for docs in source.values())
        if not are_dicts or any(isinstance(value, Mapping) for docs in source.values() for value in docs.values()):
            return [(str(name), one) for name, one in source.items()]
    is_list = isinstance(source, (list, tuple)) and not any(hasattr(one, "_fields") for one in (source, *source))
    several = list(source) if is_list else [source]
    if not several:
        raise InputError("there is nothing to label. Give a run, results, or a sheet of goodgain pool")
    return [(None, one) for one in several]


def _kind_of(source: Any) -> str:
    frame = getattr(source, "frame", source)
    columns = _list_columns(Path(source)) if is_path(source) else list(getattr(frame, "columns", []))
    if all(name in columns for name in ("search", "rank", "iteration")):
        return "results"
    return "sheet" if "grade" in columns and "iteration" not in columns else "run"


def _list_columns(path: Path) -> list[str]:
    kind = container(path)
    try:
        if kind == "parquet":
            return read_container(read_bytes(path), path, kind, rows=1).columns
        with open_stream(path) as file:
            first = file.readline(_LONGEST).decode("utf-8-sig", "replace").strip()
        return list(loads(first)) if kind == "jsonl" else first.replace('"', "").split(separator_by_name(path))
    except (InputError, NotJSONError, TypeError):  # reading it raises the error
        return []


def _read_sheet(source: Any) -> pl.DataFrame:
    frame, origins = open_texts(source, _SHEET, "the sheet")
    label = origins.label
    if missing := [name for name in DOCUMENT if name not in frame.columns]:
        raise InputError(f"{label}: lacks the column {missing[0]}. Give a sheet that goodgain pool wrote")
    rows = cast_texts(frame, frame.columns, label)
    check_rows(nw.from_native(rows, eager_only=True), origins, [*map(lacks, DOCUMENT)])
    rows = unguard_ids(rows, DOCUMENT, label)
    return rows.filter(pl.col("grade").is_null() | (pl.col("grade").str.strip_chars() == ""))
