"""Selects the documents that people judge: pools, written as sheets."""

from collections.abc import Collection, Mapping
from pathlib import Path
from random import Random
from typing import Any, Literal

import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.counting.coverage import match_queries, warn_if_few_shared
from goodgain.counting.joined_addresses import join_addresses, spell_like
from goodgain.counting.query_batches import warn_of_file
from goodgain.counting.run_in_blocks import RunFile, partition_by_query
from goodgain.counting.run_opening import check_systems, open_run
from goodgain.errors import InputError, Subject, count_of, joined_notices, notices_about
from goodgain.files.bad_rows import quote
from goodgain.files.escaping import guard_formulas
from goodgain.files.opening import container, separator_by_name
from goodgain.files.tables import count_in_order
from goodgain.files.writing import atomic_write, write_frame, write_with_polars
from goodgain.formats import Qrels, Run
from goodgain.formats.any_source import Columns, check_columns_used
from goodgain.formats.iterations import warn_of_likely_iteration
from goodgain.formats.qrels import load_qrels
from goodgain.formats.query_tables import read_queries
from goodgain.formats.results import name_results, open_results
from goodgain.formats.texts import read_texts
from goodgain.judgments.judging.grade_table import DOCUMENT
from goodgain.judgments.scales import Scale
from goodgain.options import SEED, check_whole_number, spell
from goodgain.ranking.first_occurrences_and_flattening import find_first_occurrences, make_ranking
from goodgain.ranking.ranking_table import place_documents
from goodgain.schema import BLANKS, EMPTY_DOC
from goodgain.scoring.score_run import refuse_likely_iteration

#: The default depth of a pool, and a depth that no search exceeds.
_DEPTH, WHOLE = 20, 2**31
#: The columns that describe a document.
TEXTS = ("title", "url", "snippet")


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
    with joined_notices():
        documents, query_ids = _pool_systems(systems, judged, k, flattened=flattened, columns=columns, urls=urls)

    by_document = documents.group_by(DOCUMENT)
    pooled = by_document.agg(runs=pl.len().cast(pl.Int64), first_iteration=pl.col("iteration").min())
    pooled = pooled.join(_draw_queries(query_ids, sample_queries, seed), on="query_id")
    if results is not None:
        pooled = _add_results(pooled, results)
    if texts is not None:
        pooled = pooled.join(read_texts(texts), on="doc_id", how="left")
    if queries is not None:
        pooled = _add_query_texts(pooled, queries)
    pooled = pooled.with_columns(grade=pl.lit(None, pl.Int64))
    return pooled.sort("place", "doc_id").drop("place")


def _pool_systems(
    systems: Mapping[str, Any],
    judged: Qrels | None,
    k: int,
    *,
    flattened: bool,
    columns: Columns | None,
    urls: str,
) -> tuple[pl.DataFrame, set[str]]:
    """Return a row per system and unjudged document (query_id, doc_id, iteration), and the queries of all runs."""
    runs: dict[str, Run | RunFile] = {}
    for name, source in systems.items():
        with notices_about(Subject(name)):
            runs[name] = open_run(source, columns=columns)
    judged, runs = join_addresses(judged, runs, urls)

    tables = []
    all_queries: set[str] = set()
    for name, run in runs.items():
        with notices_about(Subject(name)):
            tables_read = [run] if judged is None else [run, judged]
            check_columns_used(columns or {}, *tables_read)
            if not flattened:
                refuse_likely_iteration(run)
            warn_of_likely_iteration(run.likely_iteration)
            selected, query_ids = _pool_run(judged, run, k, flattened=flattened)
            tables.append(selected)
            all_queries.update(query_ids)
            if judged is not None:
                warn_if_few_shared(match_queries(query_ids, judged.frame.get_column("query_id")))
    return pl.concat(tables), all_queries


def _add_results(pooled: pl.DataFrame, results: Any) -> pl.DataFrame:
    """Add the columns search_query, title, url and snippet."""
    documents = name_results(open_results(results)).rename({"name": "doc_id"})
    documents = spell_like(documents, pooled)
    earliest = documents.sort("iteration", "search", "rank", maintain_order=True).group_by(DOCUMENT)
    searches = earliest.agg(pl.col("search_query").drop_nulls().first())
    pooled = pooled.join(searches, on=DOCUMENT, how="left")
    return pooled.join(pick_fullest_texts(documents), on=DOCUMENT, how="left")


def _add_query_texts(pooled: pl.DataFrame, queries: Any) -> pl.DataFrame:
    """Put the text of each query, and its description if any query has one, beside query_id."""
    of_queries = read_queries(queries).rename({"text": "query"})
    if of_queries.get_column("description").null_count() == of_queries.height:
        of_queries = of_queries.drop("description")
    pooled = pooled.join(of_queries, on="query_id", how="left")
    return pooled.select(*of_queries.columns, pl.exclude(of_queries.columns))


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
    drawn = pl.DataFrame({"query_id": order[:number]}, schema={"query_id": pl.String})
    return drawn.with_row_index("place")


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
    """Return the documents among the first k results of an iteration, each with its first such iteration."""
    results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    results = results.sort("query_id", "iteration", "rank", maintain_order=True)
    place = pl.int_range(pl.len()).over("query_id", "iteration")
    by_document = results.filter(place < k).group_by(DOCUMENT)
    return by_document.agg(pl.col("iteration").min())


def _select_flattened(rows: pl.DataFrame, k: int) -> pl.DataFrame:
    """Return the first k documents of the query's single ranking, each with the first iteration that found it."""
    ranking = make_ranking(find_first_occurrences(rows), ["query_id", "doc_id", "score"])
    ranking = ranking.with_columns(query=pl.col("query_id").rle_id())
    scores = ranking.select("query", "score")
    places = place_documents(scores, ranking.get_column("doc_id").gather, positions=())
    top = ranking.filter(places.get_column("k") <= k).select(DOCUMENT)
    firsts = rows.group_by(DOCUMENT).agg(pl.col("iteration").min())
    return top.join(firsts, on=DOCUMENT, how="left")


def pick_fullest_texts(results: pl.DataFrame) -> pl.DataFrame:
    """Return a row per (query, document). Title, url and snippet each come from the longest result that has this field."""
    length = pl.sum_horizontal(pl.col("title", "snippet").str.len_chars().fill_null(0))
    fullest = results.sort(length, descending=True, maintain_order=True).group_by(DOCUMENT, maintain_order=True)
    texts = []
    for name in TEXTS:
        is_filled = pl.col(name) != ""
        texts.append(pl.col(name).filter(is_filled).first())
    return fullest.agg(texts)


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
    if spreadsheet:
        guarded = guard_formulas(pooled)
    else:
        guarded = pooled.with_columns(guard_formulas(pooled[DOCUMENT], again=True))
    check_ids_for_csv(guarded, path)
    if scale is not None and (legend := scale.write_legend()):
        guarded = guarded.with_columns(legend=pl.lit(legend))
    with atomic_write(path) as file, write_with_polars():
        guarded.write_csv(file)


def check_ids_for_csv(pooled: pl.DataFrame, path: Path) -> None:
    """Raise `InputError` if CSV cannot hold an id."""
    for name in DOCUMENT:
        ids = pooled.get_column(name)
        is_trimmed = ids.str.strip_chars(BLANKS) != ids
        lost = ids.filter(is_trimmed | ids.str.contains("\n", literal=True))
        if len(lost):
            raise InputError(
                f"{path}: CSV cannot hold the {name} {quote(lost[0])}, which begins or ends with a blank, or has a line "
                "feed. Choose a name that ends in .jsonl"
            )
