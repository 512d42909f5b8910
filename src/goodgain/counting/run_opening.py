"""Names the systems of a call and opens their runs. Small files are read at once, large files in blocks of queries."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from goodgain.counting.coverage import join_examples
from goodgain.counting.joined_addresses import join_addresses, map_run, sign
from goodgain.counting.run_in_blocks import BLOCK, RunFile, select_queries
from goodgain.errors import (
    InputError,
    Subject,
    count_of,
    joined_notices,
    notice,
    notices_about,
    tell_progress,
    without_notices,
)
from goodgain.files.escaping import check_name
from goodgain.files.json_text import begins_json
from goodgain.files.opening import BOM, COMPRESSED, Content, compression, container, open_stream
from goodgain.files.other_kinds import find_other_kind
from goodgain.formats import any_source
from goodgain.formats.any_source import Columns
from goodgain.formats.digest import digest_rows
from goodgain.formats.documents import OWN_LEFT_OUT, DocumentMap, MappedIds, read_document_map
from goodgain.formats.iterations import check_pages
from goodgain.formats.no_labels import NO_LABELS, make_empty_qrels
from goodgain.formats.qrels import Qrels, load_qrels
from goodgain.formats.query_tables import read_query_ids
from goodgain.formats.run import Run
from goodgain.formats.run_reading import check_run_options, load_run, warn_of_repeats
from goodgain.options import ERRORS, FIRST, GAPS, check_choice, spell
from goodgain.ranking.dataframe_engines import collect
from goodgain.schema import RUN

#: A file with more bytes is read in blocks.
LARGE = BLOCK
LARGE_COMPRESSED = LARGE // 6  # compression and Parquet shrink runs to about a sixth
_HEAD = 2**16  # bytes that contain the first line of a file
_PIECE = 2**20  # bytes unpacked at a time to find the size


def open_run(
    source: Any, *, gaps: str = GAPS, first: int = FIRST, errors: str = ERRORS, columns: Columns | None = None
) -> Run | RunFile:
    """Open a run for scoring. A large file is read later, in blocks; any other source is read at once.

    The options are those of `load_run`. With `errors="skip"` every file is read at once. The caller must check that every
    name in `columns` was used. A bad row of a large file raises an error only when its block is read.
    """
    columns = any_source.check_columns(columns)
    if isinstance(source, RunFile):
        return replace(source, kept=[])
    if errors == "raise" and isinstance(source, (str, os.PathLike)):
        file = _open_large(Path(source), gaps=gaps, first=first, columns=columns)
        if file is not None:
            check_run_options(source, gaps=gaps, first=first, errors=errors)
            return file
    return load_run(source, gaps=gaps, first=first, errors=errors, columns=columns)


def open_systems(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    gaps: str,
    first: int,
    labels: str | None,
    columns: Columns | None,
    errors: str,
    only: Any,
    page: Any,
    documents: Any,
    documents_of: str,
    chunks: str,
    leave_out: str | None,
    urls: str,
) -> tuple[Any, dict[str, Run | RunFile]]:
    """Read the qrels, unless they are None, and open each run. `page` is a page size, or maps names of runs to page sizes.

    With `NO_LABELS` as qrels, the returned qrels have the queries of the runs, and no label.
    """
    check_choice("urls", urls)
    check_choice("leave_out", leave_out)

    tell_progress("reading the qrels", 0, None)
    judged = _read_judged(qrels, labels=labels, errors=errors, columns=columns)
    query_ids = None if only is None else _find_queries(only, judged)
    if query_ids is not None and judged is not None:
        judged = judged.select_queries(query_ids.to_list())
        judged.documents = {"only": f"{len(query_ids)}:{digest_rows(query_ids.to_frame())}"}

    page_sizes = _list_page_sizes(page, runs)
    reading: dict[str, Any] = {"gaps": gaps, "first": first, "errors": errors, "columns": columns}
    opened = _open_runs(runs, judged, reading, query_ids, paged=page_sizes)

    judged, opened = map_documents(judged, opened, documents, documents_of, chunks)
    if leave_out is not None:
        judged = None if judged is None else sign(judged, leave_out=leave_out)
        opened = {name: map_run(OWN_LEFT_OUT, run) for name, run in opened.items()}
    judged, opened = join_addresses(judged, opened, urls)
    for name, size in page_sizes.items():
        opened[name] = _cut_into_pages(opened[name], size, name)
    if judged is not None and not judged.has_labels:
        judged = replace(judged, searched=_list_queries(opened, query_ids))
    return judged, opened


def _open_runs(
    runs: Mapping[str, Any],
    judged: Qrels | None,
    reading: Mapping[str, Any],
    query_ids: pl.Series | None,
    *,
    paged: Collection[str],
) -> dict[str, Run | RunFile]:
    """Open each run with the options `reading` of `open_run`, and keep the queries in `query_ids` (None: all).

    The runs in `paged` will be cut into pages, and get no notice on repeats.
    """
    opened: dict[str, Run | RunFile] = {}
    with joined_notices():
        for number, (name, source) in enumerate(runs.items()):
            tell_progress(f"reading {name}", number, len(runs))
            with notices_about(Subject(name)):
                run = open_run(source, **reading)
                if name not in paged and isinstance(run, Run):
                    warn_of_repeats(run)
                if judged is not None:
                    any_source.check_columns_used(reading["columns"] or {}, run, judged)
                if query_ids is not None:
                    run = _keep_queries(run, query_ids)
                opened[name] = run
    return opened


def _list_page_sizes(page: Any, runs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the page size of each run that is cut into pages."""
    if page is None:
        return {}
    sizes: Mapping[str, Any] = page if isinstance(page, Mapping) else dict.fromkeys(runs, page)
    for name in sizes:
        if name not in runs and [*runs] == [""]:
            raise InputError(
                f"{spell('page', page)}: this call scores one run. Give {spell('page', sizes[name])}, without a name"
            )
        if name not in runs:
            raise InputError(f"{spell('page', page)}: {name!r} is not one of the systems; they are {', '.join(runs)}")
    return sizes


def _read_judged(qrels: Any, *, labels: str | None, errors: str, columns: Columns | None) -> Qrels | None:
    """Read the qrels; None for None, and qrels without a query for `NO_LABELS`."""
    if qrels is None:
        return None
    if qrels is not NO_LABELS:
        return load_qrels(qrels, labels=labels, errors=errors, columns=columns)
    if labels is not None:
        raise InputError(f"{spell('labels', labels)} says how to read labels, and there are none. Leave it out.")
    return make_empty_qrels()


def _list_queries(runs: Mapping[str, Run | RunFile], only: pl.Series | None) -> pl.Series:
    """Return the queries of all runs, sorted. Raise `InputError` if `only` has a query that no run has."""
    with without_notices():  # counting the runs gives them again
        query_ids = pl.concat([_list_queries_of_run(run) for run in runs.values()]).unique().sort()
    unknown = query_ids.clear() if only is None else only.filter(~only.is_in(query_ids.implode()))
    if len(unknown):
        listed = f"{count_of(len(unknown), 'query', 'queries')}: {join_examples(unknown)}"
        raise InputError(f"{spell('only')}: the runs lack {listed}. Give only queries of the runs.")
    return query_ids


def _list_queries_of_run(run: Run | RunFile) -> pl.Series:
    if isinstance(run, RunFile):
        blocks = [_list_queries_of_run(block.run) for block in run.kept or run.blocks()]
        return pl.concat(blocks).unique()
    ids = collect(nw.from_native(run.frame).select("query_id").unique()).get_column("query_id")
    return pl.concat([ids.cast(pl.String), run.never_searched.cast(pl.String)])


def _keep_queries(run: Run | RunFile, query_ids: pl.Series) -> Run | RunFile:
    return replace(run, only=query_ids) if isinstance(run, RunFile) else select_queries(run, query_ids)


def _cut_into_pages(run: Run | RunFile, size: int, system: str) -> Run | RunFile:
    parts = [run] if isinstance(run, Run) else (block.run for block in run.blocks())
    check_pages(size, (part.iteration_numbers for part in parts), of_run=system or run.name or "the run")
    return run.cut_into_pages(size) if isinstance(run, Run) else replace(run, page=size)


def _find_queries(only: Any, judged: Qrels | None) -> pl.Series:
    """Return the queries that the option `only` names. Raise `InputError` for a query that the qrels lack."""
    query_ids = read_query_ids(only)
    if judged is None or not judged.has_labels:
        return query_ids
    unknown = query_ids.filter(~query_ids.is_in(judged.query_ids.implode()))
    if len(unknown):
        listed = f"{count_of(len(unknown), 'query', 'queries')}: {join_examples(unknown)}"
        raise InputError(f"{spell('only')}: the qrels lack {listed}. Give only queries of the qrels.")
    return query_ids


def map_documents(
    judged: Qrels | None, runs: Mapping[str, Run | RunFile], documents: Any, documents_of: str, chunks: str
) -> tuple[Any, dict[str, Any]]:
    """Replace ids of chunks by ids of documents, if `documents` is given. Return the qrels (or None) and the runs.

    With `documents_of="both"`, an id of the qrels is kept if it is already the document of a chunk in a run.
    """
    if documents is None:
        if (documents_of, chunks) != ("both", "collapse"):
            options, needed = f"{spell('documents_of')} and {spell('chunks')}", spell("documents")
            raise InputError(f"{options} have no effect without {needed}; give {needed} too")
        return judged, dict(runs)

    mapping = read_document_map(documents, of=documents_of, chunks=chunks)
    # The ids of the qrels that the mapping could change. An id that is a document of a run does not change.
    ids = pl.Series("doc_id", [], pl.String) if judged is None else mapping.find_chunks(judged.frame)
    mapped_of: dict[str, MappedIds] = {}  # by run
    if mapping.of != "qrels":
        mapped_of = {name: _find_mapped(mapping, run, ids) for name, run in runs.items()}
    kept = ids.clear()
    if mapping.of == "both":
        in_runs = [mapped.documents.filter(mapped.documents.is_in(ids.implode())) for mapped in mapped_of.values()]
        kept = pl.concat([kept, *in_runs]).unique()
    if judged is not None:
        judged = _map_qrels(mapping, judged, kept)
        if judged.ids_mapped and mapped_of:
            _warn_of_kept_ids(len(kept))
    if not any(mapped.number for mapped in mapped_of.values()) and not (judged is not None and judged.ids_mapped):
        subject = f"the table of {spell('documents')}"
        if isinstance(mapping.source, str):
            subject = spell("documents", mapping.source)
        raise InputError(f"{subject} maps no id of the run or the qrels; compare it with some of these ids")

    opened: dict[str, Any] = dict(runs)
    for name, mapped in mapped_of.items():
        run = opened[name]
        if isinstance(run, RunFile):
            opened[name] = replace(run, mappings=(mapping,), ids_mapped=mapped.number)
        else:
            opened[name] = mapping.map_run(run)
            opened[name].ids_mapped = mapped.number
    return judged, opened


def _warn_of_kept_ids(number: int) -> None:
    if number:
        subject = count_of(number, "id of the qrels is a document", "ids of the qrels are documents")
        fact = f"{subject} of the run too and {'was' if number == 1 else 'were'} kept"
        remedy = f"if the qrels name documents, read them as they are with {spell('documents_of', 'run')}"
        notice("ids_not_mapped", f"{fact}; other ids were mapped; {remedy}")


def _find_mapped(mapping: DocumentMap, run: Run | RunFile, ids: pl.Series) -> MappedIds:
    """Count the mapped ids of a run, and list their documents. For a large file, list only documents that `ids` contains."""
    if not isinstance(run, RunFile):
        return mapping.find_mapped(nw.from_native(run.frame))
    parts = []
    for block in run.blocks():
        part = mapping.find_mapped(nw.from_native(block.run.frame))
        parts.append(part._replace(documents=part.documents.filter(part.documents.is_in(ids.implode()))))
    return MappedIds(sum(part.number for part in parts), pl.concat([part.documents for part in parts]).unique())


def _map_qrels(mapping: DocumentMap, qrels: Qrels, kept: pl.Series) -> Qrels:
    """Return qrels with documents in place of chunks, except the ids in `kept`. `ids_mapped` counts the ids that changed."""
    if mapping.of == "run":
        mapped = copy(qrels)
        mapped.ids_mapped = 0
    else:
        mapped = mapping.map_qrels(qrels, kept)
        changeable = qrels.frame.filter(~pl.col("doc_id").is_in(kept.implode()))
        mapped.ids_mapped = mapping.find_mapped(nw.from_native(changeable)).number
    mapped.documents = {**qrels.documents, **mapping.signature}
    return mapped


def _open_large(path: Path, *, gaps: str, first: int, columns: Columns) -> RunFile | None:
    """Prepare a large file for reading in blocks. Return None for a small file, or a format that cannot be read in blocks."""
    with suppress(OSError, ValueError):  # load_run will say why
        kind, compressed = container(path), compression(path) is not None
        if path.is_file() and kind == "text" and _is_large_text(path, columns, compressed=compressed):
            return RunFile(path, gaps, first, is_text=True, compressed=compressed)
        if path.is_file() and kind == "parquet" and path.stat().st_size > LARGE_COMPRESSED:
            return _open_parquet(path, gaps=gaps, first=first, columns=columns)
    return None


def _is_large_text(path: Path, columns: Columns, *, compressed: bool) -> bool:
    """Return whether a file is large TREC text. A compressed file is unpacked only up to `LARGE` bytes."""
    if path.suffix.lower() in COMPRESSED and not compressed:
        return False
    with open_stream(path) as file:
        head = file.read(_HEAD)
        size = path.stat().st_size
        is_large = size > (LARGE_COMPRESSED if compressed else LARGE)
        if compressed and not is_large:
            size = len(head)
            while size <= LARGE and (piece := file.read(_PIECE)):
                size += len(piece)
            is_large = size > LARGE

    content = Content(head.removeprefix(BOM))
    if find_other_kind(content.data) is not None:
        return False
    return is_large and not begins_json(content) and any_source.find_header(content, path, columns) is None


def _open_parquet(path: Path, *, gaps: str, first: int, columns: Columns) -> RunFile | None:
    """Prepare a Parquet file for reading in blocks. Return None if it has no rows, or lacks a column that a run needs."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    found = any_source.find_columns(metadata.schema.to_arrow_schema().names, RUN, columns, label=str(path))
    if not metadata.num_rows or not set(RUN.required) <= set(found.names.values()):
        return None
    any_source.warn_of_understood_columns(found, str(path))
    iteration, renamed = found.likely_iteration, found.renamed
    return RunFile(path, gaps, first, is_text=False, columns=columns, likely_iteration=iteration, renamed=renamed)


def check_systems(systems: Mapping[str, Any], *, least: int = 1) -> dict[str, Any]:
    """Return the systems with their names as text. Raise `InputError` for missing or equal names, or fewer systems than `least`."""
    if not isinstance(systems, Mapping):
        raise InputError(f"systems is a {type(systems).__name__}; give each run a name: {{'old': run, 'new': other}}")
    named = {check_name(str(name), "system"): run for name, run in systems.items()}
    if len(named) < len(systems):
        raise InputError("two systems have the same name when written as text; give each its own name")
    if len(named) < least:
        if least == 1:
            raise InputError("no run was given; give one with its name: {'agent': run}")
        problem = f"a comparison needs two systems or more, and got only {', '.join(named) or 'none'}"
        raise InputError(f"{problem}; add another run, or score this one with evaluate")
    return named


def is_replicates(source: Any) -> bool:
    """Return whether a source is a list of runs (replicates). A list of named tuples is a single run."""
    return isinstance(source, list) and bool(source) and not isinstance(source[0], tuple)


def list_runs(source: Any) -> list[Any]:
    """Return a list of runs or files unchanged. Put a single run or file into a list."""
    return source if is_replicates(source) else [source]


def stack_systems(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Concatenate the frames of all systems; the first column is the name of the system."""
    rows = np.repeat(np.arange(len(frames)), [frame.height for frame in frames.values()])
    names = pl.Series("system", [*frames], pl.String).gather(rows)
    return pl.concat(frames.values()).select(names, pl.all())


def find_likely_replicates(names: Iterable[str]) -> dict[str, list[str]]:
    """Map each system to the names of its replicates, such as agent.1 and agent.2. A system with a single run is left out."""
    names_of: dict[str, list[str]] = {}
    for name in names:
        system, _, number = name.rpartition(".")
        if system and number.isdecimal():
            names_of.setdefault(system, []).append(name)
    return {system: replicates for system, replicates in names_of.items() if len(replicates) > 1}


def number_repeats(names: Sequence[str]) -> list[str]:
    """Add a number to each repetition of a name.

    >>> number_repeats(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    times: Counter[str] = Counter()
    numbered = []
    for name in names:
        times[name] += 1
        numbered.append(name if times[name] == 1 else f"{name} ({times[name]})")
    return numbered


def name_runs(systems: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return a dict from names to runs, and a dict from systems to the names of their runs.

    >>> name_runs({"old": "a.run", "new": ["b.run", "c.run"]})[0]
    {'old': 'a.run', 'new (run 1)': 'b.run', 'new (run 2)': 'c.run'}
    """
    named: dict[str, Any] = {}
    names: dict[str, list[str]] = {}
    for system, source in systems.items():
        runs = list_runs(source)
        names[system] = [system]
        if len(runs) > 1:
            numbers = range(1, len(runs) + 1)
            names[system] = [f"{system} (run {number})" if system else f"run {number}" for number in numbers]
        repeated = sorted(named.keys() & names[system])
        if repeated:
            raise InputError(f"a system and a run of another system are both called {repeated[0]}; rename the system")
        named |= dict(zip(names[system], runs, strict=True))
    return named, names
