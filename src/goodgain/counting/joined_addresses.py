"""Gives each web page a single doc_id in the runs and qrels of a call, even if the page has several URLs there."""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.counting.run_in_blocks import RunFile, keep_blocks
from goodgain.errors import count_of, notice
from goodgain.files.writing import spell_as_known
from goodgain.formats.addresses import find_addresses, hash_ids, select_addresses
from goodgain.formats.documents import DocumentMap
from goodgain.formats.qrels import Qrels
from goodgain.formats.run import Run
from goodgain.formats.run_parts import map_ahead
from goodgain.options import OPTIONS, spell
from goodgain.ranking.dataframe_engines import collect, move_to_engine

#: Rows of a file whose ids are kept as hashes, 16 bytes a row, until the spellings are known. A longer file is read once more.
_MOST_HASHED = 20_000_000
#: Ids of blocks, beside the distinct ones of earlier blocks, that are kept before repeated ids are dropped.
_MOST_REPEATED = 1_000_000
#: The rows of a run that are compared with the labels, one after the other: one in 32, one in 8, all.
_SAMPLED = (32, 8, 1)


def join_addresses(judged: Qrels | None, runs: Mapping[str, Run | RunFile], urls: str) -> tuple[Any, dict[str, Any]]:
    """Replace all URLs of a web page by one URL. Return the qrels (or None) and the runs. A notice counts the affected queries.

    The new URL is one that both the runs and the qrels contain, or else one in the runs, or else one in the qrels. If several
    URLs qualify, the new URL is the first in sorted order. If the runs have one URL for each page, no run changes.
    If several rows of the qrels get the same id, the largest label is kept.
    If the qrels contain no URL, no id is replaced: listing the ids of a large run would require reading its file once more.
    """
    if judged is not None and urls != OPTIONS["urls"].default:
        judged = sign(judged, urls=urls)
    if urls == "keep":
        return judged, dict(runs)

    no_addresses = pl.DataFrame(schema={"doc_id": pl.String, "document": pl.UInt64})
    of_qrels = no_addresses if judged is None else judged.addresses
    if judged is not None and judged.has_labels and of_qrels.is_empty():
        return judged, dict(runs)
    keep_blocks(runs)
    ids_of = {name: _list_ids(run) for name, run in runs.items()}
    of_runs = pl.concat([no_addresses, *(ids.addresses for ids in ids_of.values())])
    if len(ids_of) > 1:
        of_runs = of_runs[of_runs["document"].arg_unique()]
    only_in_qrels = of_qrels.filter(~pl.col("document").is_in(of_runs["document"].implode()))
    all_ids = pl.concat([of_runs["doc_id"], only_in_qrels["doc_id"]])
    spellings = find_spellings(all_ids, of_runs["doc_id"], of_qrels["doc_id"])
    if spellings.is_empty():
        return judged, dict(runs)

    mapping = DocumentMap(spellings, of="both", chunks="repeat")
    replaced = spellings["chunk_id"].hash().implode()
    joined = dict(runs)
    for name, ids in ids_of.items():
        if ids.addresses["document"].is_in(replaced).any():
            joined[name] = map_run(mapping, runs[name])
    runs_and_ids = zip(runs.values(), ids_of.values(), strict=True)
    queries = _count_queries(judged, of_qrels, runs_and_ids, _list_pages(spellings))
    if judged is not None and of_qrels["document"].is_in(replaced).any():
        judged = replace(mapping.map_qrels(judged, of_qrels["doc_id"].clear()), given=judged)
    if queries:
        notice(
            "joined_addresses",
            f"{describe_spellings(spellings)}. This affects {count_of(queries, 'query', 'queries')}. {spell('urls', 'keep')} "
            "keeps them apart.",
        )
    if judged is None:
        return None, joined
    return sign(judged, urls=urls), joined


def join_labels(people: Qrels, judged: Qrels) -> Qrels:
    """Return the qrels `people` with one URL per web page: the page's first URL in `judged`, or else its first URL in `people`."""
    of_judged = select_addresses(judged.rows.get_column("doc_id"))
    of_people = select_addresses(people.rows.get_column("doc_id"))
    spellings = find_spellings(pl.concat([of_judged, of_people]).unique(), of_judged)
    if spellings.is_empty():
        return people
    mapping = DocumentMap(spellings, of="qrels", chunks="repeat")
    return mapping.map_qrels(people, of_judged.clear())


def spell_like(frame: pl.DataFrame, model: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with query and document ids spelled as in `model`: with the same escapes, and the same URL for a page.

    A table that is read from a log has the ids of the log; `model` may spell them differently. Several rows may get the same id.

    >>> frame = pl.DataFrame({"query_id": "q", "doc_id": ["http://a.org/x/", "b"]})
    >>> spell_like(frame, pl.DataFrame({"query_id": "q", "doc_id": ["https://a.org/x", "b"]}))["doc_id"].to_list()
    ['https://a.org/x', 'b']
    """
    frame = spell_as_known(frame, model)
    if "doc_id" not in model.columns:
        return frame
    pages = select_addresses(model.get_column("doc_id"))
    if not len(pages):
        return frame

    ids = select_addresses(frame.get_column("doc_id"))
    spellings = find_spellings(pl.concat([pages, ids]).unique(), pages)
    spellings = spellings.filter(~pl.col("chunk_id").is_in(pages.implode()))
    doc_id = pl.col("doc_id").replace(spellings["chunk_id"], spellings["doc_id"])
    return frame.with_columns(doc_id)


def find_spellings(ids: pl.Series, *preferred: pl.Series) -> pl.DataFrame:
    """Find pages with several URLs in `ids`. Return a frame with the URLs to replace (chunk_id) and the new URLs (doc_id).

    The new URL is the page's first URL: URLs in the first of the `preferred` ids come before others, then those in the second
    before others, and so on. URLs that are alike in this respect are in sorted order.
    """
    from goodgain.formats.shared_pages import find_shared_pages  # deduplication takes 12 ms to import

    # the number of an id in the order of preference, from hashes: two ids with one hash could only get another order
    place = pl.lit(0)
    for k, ids_of_step in enumerate(reversed(preferred)):
        is_preferred = pl.col("chunk_id").hash().is_in(ids_of_step.hash().implode())
        place = place + pl.when(is_preferred).then(0).otherwise(2**k)
    table = find_shared_pages(ids).rename({"id": "chunk_id"}).with_columns(place=place)
    best_place = pl.col("place").min().over("page")
    best = table.filter(pl.col("place") == best_place).group_by("page")
    table = table.join(best.agg(doc_id=pl.col("chunk_id").min()), on="page")
    is_replaced = pl.col("chunk_id") != pl.col("doc_id")
    return table.select("chunk_id", "doc_id").filter(is_replaced)


def describe_spellings(spellings: pl.DataFrame) -> str:
    """Return the beginning of a notice: the number of replaced URLs, and the first of them in sorted order."""
    replaced, new = spellings.row(spellings["chunk_id"].arg_min() or 0)
    fact = "ids that spell one web address in several ways count as one document"
    return f"{fact}: {count_of(spellings.height, 'id')} (such as {replaced} for {new})"


class _Ids(NamedTuple):
    """The URLs of a run, and the hashes of its rows. The frames have columns of `_hash_ids`."""

    addresses: pl.DataFrame
    hashes: pl.DataFrame | None  # None for a run on an engine, and for a file of more than `_MOST_HASHED` rows


def _list_ids(run: Run | RunFile) -> _Ids:
    """List the URLs of a run. A file is read block by block, and its rows are kept as hashes unless they are too many."""
    if isinstance(run, RunFile):
        addresses: list[pl.DataFrame] = []
        hashes: list[pl.DataFrame] = []
        height = 0
        most = float("inf") if run.kept else _MOST_REPEATED  # ids of blocks in memory need no memory of their own
        for rows in map_ahead(lambda block: _hash_ids(block.read_ids()), run.kept or run.blocks()):
            addresses.append(rows.select("doc_id", "document"))
            if sum(map(len, addresses)) > most:
                addresses = [find_addresses(pl.concat(addresses))]
                most = 2 * len(addresses[0]) + _MOST_REPEATED
            height += rows.height
            hashes.append(rows.drop("doc_id"))
            if height > _MOST_HASHED:
                hashes = []
        return _Ids(find_addresses(pl.concat(addresses)), pl.concat(hashes) if hashes else None)

    if run.lives_on_engine:
        doc_ids = collect(nw.from_native(run.frame).select("doc_id").unique()).get_column("doc_id")
        ids_of_run = doc_ids.cast(pl.String)
        return _Ids(find_addresses(hash_ids(ids_of_run)), None)
    rows = _hash_ids(run.rows)
    return _Ids(find_addresses(rows.select("doc_id", "document")), rows.drop("doc_id"))


def _hash_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the doc_id of each row, and the hashes of query_id and doc_id (columns `query` and `document`)."""
    query, document = pl.col("query_id").hash(), pl.col("doc_id").hash()
    return rows.select("doc_id", query=query, document=document)


def _list_pages(spellings: pl.DataFrame) -> pl.DataFrame:
    """List the ids of pages with several URLs: doc_id, document (the hash of the id), page (the hash of the page's new URL)."""
    document, page = pl.col("chunk_id").hash(), pl.col("doc_id").hash()
    hashed = spellings.select("chunk_id", "doc_id", document=document, page=page)
    new_urls = hashed.filter(pl.col("page").is_first_distinct())
    replaced_urls = hashed.select(pl.col("chunk_id").alias("doc_id"), "document", "page")
    return pl.concat([replaced_urls, new_urls.select("doc_id", document="page", page="page")])


def _list_rows(run: Run | RunFile, hashes: pl.DataFrame | None, pages: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the hashes of the rows of a run. From a database such as DuckDB, yield only distinct rows with an id in `pages`."""
    if hashes is not None:
        yield hashes
    elif isinstance(run, RunFile):
        yield from (_hash_ids(block.read_ids()).drop("doc_id") for block in run.kept or run.blocks())
    else:
        ids = nw.from_native(run.frame).select("query_id", "doc_id").unique()
        table = move_to_engine(ids, nw.from_native(pages.select("doc_id")))
        yield _hash_ids(collect(ids.join(table, on="doc_id"))).drop("doc_id")


def map_run(mapping: DocumentMap, run: Run | RunFile) -> Run | RunFile:
    """Return a run with doc_ids replaced as in `DocumentMap.map_run`. A large file is mapped when it is read."""
    if isinstance(run, RunFile):
        return replace(run, mappings=(*run.mappings, mapping))
    mapped = mapping.map_run(run)
    mapped.ids_mapped = run.ids_mapped
    return mapped


def sign(qrels: Qrels, **options: str) -> Qrels:
    """Return a copy of the qrels. Scores computed with the copy have `options` in their signature."""
    signed = copy(qrels)
    signed.documents = {**qrels.documents, **options}
    return signed


def _count_queries(
    judged: Qrels | None, of_qrels: pl.DataFrame, of_runs: Iterable[tuple[Run | RunFile, _Ids]], pages: pl.DataFrame
) -> int:
    """Count the queries for which a run and the qrels together contain several ids of the same page.

    `of_qrels` has the ids of the qrels, `of_runs` each run with its ids, and `pages` the result of `_list_pages`.
    """
    numbers = pages.drop("doc_id")
    has_several = pl.col("document").min() != pl.col("document").max()

    def select(ids: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the pages of the ids, and those of them that the ids spell in several ways."""
        pages_of_ids = numbers.filter(pl.col("document").is_in(ids["document"].implode()))
        return pages_of_ids, pages_of_ids.filter(pl.col("page").is_duplicated())

    def place(rows: pl.DataFrame, pages_of_ids: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with an id of `pages_of_ids`. Equal query and page give an equal number `place`."""
        number = pl.col("query") * 3 + pl.col("page")  # numbers are joined faster than pairs
        return rows.join(pages_of_ids, on="document").select("query", "document", place=number)

    def find_several(rows: pl.DataFrame) -> pl.Series:
        """Return the queries with several ids of a page."""
        of_place = rows.group_by("place").agg(has_several.alias("has_several"), pl.col("query").first())
        return of_place.filter("has_several").get_column("query").unique()

    no_rows = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String})
    labels = _hash_ids(no_rows if judged is None else judged.rows)
    of_labels, twice = select(of_qrels)
    labelled = place(labels, of_labels)
    queries = find_several(place(labels, twice))
    for run, ids in of_runs:
        of_run, twice = select(ids.addresses)
        spelled = [labelled.clear()]
        for rows in _list_rows(run, ids.hashes, pages):
            if len(twice):
                spelled.append(place(rows, twice))
            for step in _SAMPLED:  # a few rows often tell for most queries
                is_open = ~pl.col("query").is_in(queries.implode())
                open_rows = rows.gather_every(step).filter(is_open)
                met = place(open_rows, of_run).join(labelled, on="place")
                met = met.filter(pl.col("document") != pl.col("document_right"))
                queries = pl.concat([queries, met.get_column("query")]).unique()
        queries = pl.concat([queries, find_several(pl.concat(spelled))]).unique()
    return len(queries)
