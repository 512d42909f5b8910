"""Selects the documents to judge: pools for people, written as sheets, and documents for a language model."""

from collections.abc import Collection, Mapping
from pathlib import Path
from random import Random
from typing import Any, Literal

import narwhals as nw
import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.counting.coverage import match_queries, warn_if_few_shared
from goodgain.counting.joined_addresses import join_addresses, spell_like
from goodgain.counting.query_batches import warn_of_file
from goodgain.counting.run_in_blocks import RunFile, partition_by_query
from goodgain.counting.run_opening import check_systems, open_run
from goodgain.errors import InputError, Subject, count_of, joined_notices, notice, notices_about
from goodgain.files.bad_rows import check_rows, lacks, quote
from goodgain.files.escaping import guard_formulas, unguard_ids
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import container, open_stream, read_bytes, separator_by_name, stem
from goodgain.files.table_reading import cast_texts, read_container, read_frame
from goodgain.files.tables import count_in_order, sort_ids
from goodgain.files.writing import atomic_write, write_frame, write_with_polars
from goodgain.formats import Qrels, Run
from goodgain.formats.any_source import Columns, check_columns_used
from goodgain.formats.iterations import warn_of_likely_iteration
from goodgain.formats.qrels import load_qrels
from goodgain.formats.query_tables import read_queries
from goodgain.formats.results import name_results, open_results, read_results
from goodgain.formats.texts import open_texts, read_texts
from goodgain.judgments.judging.grade_table import DOCUMENT, is_path
from goodgain.judgments.scales import Scale
from goodgain.options import SEED, check_whole_number, spell
from goodgain.ranking.first_occurrences_and_flattening import find_first_occurrences, make_ranking
from goodgain.ranking.ranking_table import place_documents
from goodgain.schema import BLANKS, EMPTY_DOC
from goodgain.scoring.score_run import refuse_likely_iteration

#: The default depth of a pool, and a depth that no search exceeds.
_DEPTH, WHOLE = 20, 2**31
#: The columns that describe a document.
_TEXTS = ("title", "url", "snippet")
#: The columns to read from a sheet.
_SHEET = (*DOCUMENT, *_TEXTS, "grade")
#: The most bytes to read of a first line, to find the columns.
_LONGEST = 2**20


@checks_kinds
def pool(
    runs: Mapping[str, Any],
    *,
    k: int | None = None,
    qrels: Any = None,
    results: Any = None,
    queries: Any = None,
    texts: Any = None,
    flattened: bool = False,
    sample_queries: int | None = None,
    seed: int = SEED,
    columns: Columns | None = None,
    urls: Literal["join", "keep"] = "join",
) -> pl.DataFrame:
    """Return the unjudged documents that at least one run has among the first k results of an iteration.

    The classic pool of depth k takes the first k documents of one ranking per query, so it can miss all results of an agent's
    later searches. `flattened=True` gives the classic pool.

    Args:
        runs: {name: any input of `read_run`}, for one run or more.
        k: the number of results to take from the top of each iteration, including repeats of documents found earlier.
            Default: 20, or all with `sample_queries`.
        qrels: any input of `read_qrels`. Documents with a label are left out.
        results: a results frame, or a file that `goodgain convert --results` wrote, with titles, URLs and snippets.
        queries: the texts of the queries, as a file or frame with query_id and text, a dict, or an ir_datasets id.
        texts: a table with doc_id and text, for judges who need more than title and snippet.
        flattened: take the first k documents of one ranking per query (order `seen`), not of every iteration.
        sample_queries: the number of queries to draw at random. People then label all documents of the drawn queries. Their
            labels compare systems without bias, and show how far a model's labels can be trusted.
        seed: the seed of the draw. A larger sample with the same seed begins with the same queries.
        columns: {column of a run or of the qrels: its name in goodgain}, such as {"step": "iteration"}.
        urls: whether different spellings of one web address are one document (`join`) or several documents (`keep`).

    Returns:
        A frame sorted by query_id and doc_id. With `sample_queries`, the queries are in the order of the draw, so that a judge
        who stops early has judged whole queries. Further columns are `runs` (the number of runs that found the document),
        `first_iteration` (1..N, the earliest in any run) and an empty `grade`. `queries=` adds the column `query` after
        query_id, and `description` if a query has one. `results=` adds columns before `grade`: search_query (the first search
        that found the document), title, url and snippet (each from the longest result that has it). `texts=` adds the column
        `text` before `grade`.

    Raises:
        InputError: a run, the qrels or the results cannot be read, k is not a whole number from 1, or there are fewer
            queries than `sample_queries`.

    Source: Spärck Jones and van Rijsbergen, 1975 (pooling); TREC's pools of depth k.

    >>> found = pool({"old": {"q": {"a": 2.0, "b": 1.0}}, "new": {"q": {"b": 1.0}}}, qrels={"q": {"a": 3}})
    >>> found.rows()
    [('q', 'b', 2, 1, None)]
    """
    systems = check_systems(runs)
    if k is None:
        k = _DEPTH if sample_queries is None else WHOLE
    check_whole_number("k", k, 1, others=", the number of results of an iteration that are looked at")
    if sample_queries is not None:
        check_whole_number("sample_queries", sample_queries, 1)
    judged = None if qrels is None else load_qrels(qrels, columns=columns)
    found = []
    asked: set[str] = set()
    opened: dict[str, Run | RunFile] = {}
    with joined_notices():
        for name, run in systems.items():
            with notices_about(Subject(name)):
                opened[name] = open_run(run, columns=columns)
        judged, opened = join_addresses(judged, opened, urls)
        for name, searched in opened.items():
            with notices_about(Subject(name)):
                check_columns_used(columns or {}, searched, *([] if judged is None else [judged]))
                if not flattened:
                    refuse_likely_iteration(searched)
                warn_of_likely_iteration(searched.likely_iteration)
                selected, query_ids = _pool_run(judged, searched, k, flattened=flattened)
                found.append(selected)
                asked.update(query_ids)
                if judged is not None:
                    warn_if_few_shared(match_queries(query_ids, judged.frame.get_column("query_id")))
    documents = pl.concat(found).group_by(DOCUMENT)
    pooled = documents.agg(runs=pl.len().cast(pl.Int64), first_iteration=pl.col("iteration").min())
    drawn = _draw_queries(asked, sample_queries, seed)
    pooled = pooled.join(drawn, on="query_id")
    if results is not None:
        named = spell_like(name_results(open_results(results)).rename({"name": "doc_id"}), pooled)
        earliest = named.sort("iteration", "search", "rank", maintain_order=True).group_by(DOCUMENT)
        searches = earliest.agg(pl.col("search_query").drop_nulls().first())
        pooled = pooled.join(searches, on=DOCUMENT, how="left").join(pick_fullest_texts(named), on=DOCUMENT, how="left")
    if texts is not None:
        pooled = pooled.join(read_texts(texts), on="doc_id", how="left")
    if queries is not None:
        of_queries = read_queries(queries).rename({"text": "query"})
        if of_queries.get_column("description").null_count() == of_queries.height:
            of_queries = of_queries.drop("description")
        pooled = pooled.join(of_queries, on="query_id", how="left")
        pooled = pooled.select(*of_queries.columns, pl.exclude(of_queries.columns))
    return pooled.with_columns(grade=pl.lit(None, pl.Int64)).sort("place", "doc_id").drop("place")


def _draw_queries(query_ids: Collection[str], number: int | None, seed: int) -> pl.DataFrame:
    """Return queries with their place in the sheet: query_id, place. None draws all, in the order in which people count."""
    if number is None:
        order = sorted(query_ids, key=count_in_order)
    elif number > len(query_ids):
        queries = count_of(len(query_ids), "query", "queries")
        raise InputError(f"{spell('sample_queries', number)}: the runs have {queries}. Give at most that number")
    else:
        order = sorted(query_ids)
        Random(seed).shuffle(order)
    return pl.DataFrame({"query_id": order[:number]}, schema={"query_id": pl.String}).with_row_index("place")


def _pool_run(qrels: Qrels | None, run: Run | RunFile, k: int, *, flattened: bool) -> tuple[pl.DataFrame, pl.Series]:
    """Return the documents of a run (query_id, doc_id, iteration) without those in the qrels, and the queries of the run."""
    parts = [run] if isinstance(run, Run) else (block.run for block in partition_by_query(run))
    documents = [pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "iteration": pl.Int64})]
    query_ids = [pl.Series("query_id", dtype=pl.String)]
    unnamed = []
    for part in parts:
        if flattened and part.unpaged is not None:
            part = part.unpaged
        unnamed.append(part.unnamed)
        query_ids.append(part.rows.get_column("query_id").unique())
        # 1..N in each query, as in the ledger
        numbers = pl.col("iteration").rank("dense").over("query_id").cast(pl.Int64)
        rows = part.rows.with_columns(numbers)
        selected = _select_flattened(rows, k) if flattened else _select_iterations(rows, k)
        if qrels is not None:
            selected = selected.join(qrels.frame, on=DOCUMENT, how="anti")
        documents.append(selected)
    if isinstance(run, RunFile):
        warn_of_file(run, unnamed, is_empty=not any(map(len, query_ids)))
    return pl.concat(documents), pl.concat(query_ids)


def _select_iterations(rows: pl.DataFrame, k: int) -> pl.DataFrame:
    results = rows.filter(pl.col("doc_id") != EMPTY_DOC).sort("query_id", "iteration", "rank", maintain_order=True)
    place = pl.int_range(pl.len()).over("query_id", "iteration")
    return results.filter(place < k).group_by(DOCUMENT).agg(pl.col("iteration").min())


def _select_flattened(rows: pl.DataFrame, k: int) -> pl.DataFrame:
    ranking = make_ranking(find_first_occurrences(rows), ["query_id", "doc_id", "score"])
    ranking = ranking.with_columns(query=pl.col("query_id").rle_id())
    places = place_documents(ranking.select("query", "score"), ranking.get_column("doc_id").gather, positions=())
    top = ranking.filter(places.get_column("k") <= k).select(DOCUMENT)
    firsts = rows.group_by(DOCUMENT).agg(pl.col("iteration").min())
    return top.join(firsts, on=DOCUMENT, how="left")


def pick_fullest_texts(results: pl.DataFrame) -> pl.DataFrame:
    """Return a row per (query, document). Title, url and snippet each come from the longest result that has this field."""
    length = pl.sum_horizontal(pl.col("title", "snippet").str.len_chars().fill_null(0))
    fullest = results.sort(length, descending=True, maintain_order=True).group_by(DOCUMENT, maintain_order=True)
    return fullest.agg(pl.col(name).filter(pl.col(name) != "").first() for name in _TEXTS)


def check_sheet_name(path: Path, pages: tuple[str, ...] = ()) -> str:
    """Return the format of a sheet by the suffix of its file name: `csv`, `jsonl`, or `page` for a suffix in `pages`.

    Raise `InputError` for other suffixes.
    """
    if path.suffix.lower() in pages:
        return "page"
    form = "csv" if separator_by_name(path) == "," else container(path)
    if form not in ("csv", "jsonl"):
        of_page = f", or as a page for judges ({pages[0]})" if pages else ""
        raise InputError(
            f"{path}: a sheet is written as .csv or .jsonl{of_page}. Give a file name with one of these suffixes"
        )
    return form


def write_sheet(pooled: pl.DataFrame, path: Path, *, spreadsheet: bool = False, scale: Scale | None = None) -> None:
    """Write a pool atomically, in the format of the file name: CSV or JSON Lines (also .gz and .zst).

    With `spreadsheet`, an apostrophe precedes CSV texts that look like formulas. `judge` removes the apostrophe from ids. With
    `scale`, each row of CSV has the meanings of the grades in the column `legend`.
    """
    if check_sheet_name(path) == "jsonl":
        write_frame(pooled, path)
        return
    # judge removes one apostrophe from ids, so an id that begins with an apostrophe and a formula gets another
    guarded = (
        guard_formulas(pooled) if spreadsheet else pooled.with_columns(guard_formulas(pooled[DOCUMENT], again=True))
    )
    check_ids_for_csv(guarded, path)
    if scale is not None and (legend := scale.write_legend()):
        guarded = guarded.with_columns(legend=pl.lit(legend))
    with atomic_write(path) as file, write_with_polars():
        guarded.write_csv(file)


def check_ids_for_csv(pooled: pl.DataFrame, path: Path) -> None:
    """Raise `InputError` if CSV cannot hold an id."""
    for name in DOCUMENT:
        ids = pooled.get_column(name)
        lost = ids.filter((ids.str.strip_chars(BLANKS) != ids) | ids.str.contains("\n", literal=True))
        if len(lost):
            raise InputError(
                f"{path}: CSV cannot hold the {name} {quote(lost[0])}, which begins or ends with a blank, or has a line "
                "feed. Choose a name that ends in .jsonl"
            )


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
    found, systems = _gather(source, results=results, qrels=qrels, k=k)
    named = read_queries(queries).rename({"text": "query"})
    without = found.join(named, on="query_id", how="anti")
    if without.height:
        raise InputError(
            f"query {quote(str(without.item(0, 'query_id')))} has no text among the queries, and the model must know the "
            "question. Add the text to the queries"
        )

    own = pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String}) if texts is None else read_texts(texts)
    documents = found.join(own, on="doc_id", how="left", maintain_order="left")
    documents = documents.with_columns(text=pl.coalesce("text", _write_texts()))
    documents = documents.join(named, on="query_id", how="left", maintain_order="left")
    is_long = pl.col("text").str.len_chars() > max_characters
    documents = documents.with_columns(text=pl.col("text").str.slice(0, max_characters), cut=is_long.fill_null(False))

    empty = documents.get_column("text").null_count()
    if empty:
        fact = f"no text to show, so no grade, for {empty:,} of {count_of(documents.height, 'document')}"
        notice("documents_without_text", f"{fact}. Give {spell('results')} or {spell('texts')}")
    documents = sort_ids(documents.sort("doc_id"))
    return documents.select(*DOCUMENT, "query", "description", "text", "cut"), systems


def _write_texts() -> pl.Expr:
    """Return an expression: a line for each of title, url and snippet that is not blank; null if all are blank."""
    lines = []
    for name in _TEXTS:
        line = pl.format(f"{name.capitalize()}: {{}}", name)
        lines.append(pl.when(pl.col(name).str.strip_chars() != "").then(line))
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
        tables.append(pool(runs, k=WHOLE if k is None else k, qrels=judged, results=results, urls="keep"))
        systems += list(runs)

    columns = dict.fromkeys((*DOCUMENT, *_TEXTS), pl.String)
    parts = [pl.DataFrame(schema=columns)]
    for table in tables:
        parts.append(table.select(pl.col(name).cast(pl.String) for name in columns if name in table.columns))
    documents = pick_fullest_texts(pl.concat(parts, how="diagonal"))
    if judged is not None:
        documents = spell_like(documents, judged.frame).join(judged.frame.select(DOCUMENT), on=DOCUMENT, how="anti")
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
    frame = getattr(source, "frame", source)
    columns = _list_columns(Path(source)) if is_path(source) else list(getattr(frame, "columns", []))
    if {"search", "rank", "iteration"} <= {*columns}:
        return "results"
    is_sheet = "grade" in columns and "iteration" not in columns
    return "sheet" if is_sheet else "run"


def _list_columns(path: Path) -> list[str]:
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
    frame = (
        read_results(results) if is_path(results) else read_frame(getattr(results, "frame", results), "the documents")
    )
    systems = []
    if "system" in frame.columns:
        systems = frame.get_column("system").drop_nulls().unique(maintain_order=True).to_list()
    documents = name_results(frame).rename({"name": "doc_id"})
    if k is not None:
        documents = documents.sort("query_id", "iteration", "search", "rank", maintain_order=True)
        documents = documents.filter(pl.int_range(pl.len()).over("query_id", "iteration") < k)
    return documents, systems


def _read_sheet(source: Any) -> pl.DataFrame:
    frame, origins = open_texts(source, _SHEET, "the sheet")
    label = origins.label
    missing = [name for name in DOCUMENT if name not in frame.columns]
    if missing:
        raise InputError(f"{label}: lacks the column {missing[0]}. Give a sheet that goodgain pool wrote")
    rows = cast_texts(frame, frame.columns, label)
    check_rows(nw.from_native(rows, eager_only=True), origins, [*map(lacks, DOCUMENT)])
    rows = unguard_ids(rows, DOCUMENT, label)
    return rows.filter(pl.col("grade").is_null() | (pl.col("grade").str.strip_chars() == ""))
