"""Gives each web page a single doc_id in the runs and qrels of a call, even if the page has several URLs there."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.counting.run_in_blocks import Block, RunFile, map_ahead
from goodgain.errors import count_of, notice
from goodgain.files.writing import spell_as_known
from goodgain.formats.documents import DocumentMap
from goodgain.formats.qrels import Qrels
from goodgain.formats.run import Run
from goodgain.options import OPTIONS, spell
from goodgain.ranking.dataframe_engines import collect, move_to_engine

#: Rows of a file whose ids are kept as numbers, 16 bytes a row, until the spellings are known. A longer file is read once more.
_MOST_KEPT = 20_000_000
#: Ids of blocks, beside the distinct ones of earlier blocks, that are kept before repeated ids are dropped.
_MOST_REPEATED = 1_000_000


def join_addresses(judged: Qrels | None, runs: Mapping[str, Run | RunFile], urls: str) -> tuple[Any, dict[str, Any]]:
    """Replace all URLs of a web page by one URL. Return the qrels (or None) and the runs. A notice counts the affected queries.

    The first of the page's URLs in the qrels, in sorted order, is kept; else the first in the runs. If several rows of the qrels
    get the same id, the largest label is kept. If the qrels have no URL, all ids are kept, because listing the ids of a large
    run means reading the file once more. Several URLs of an unjudged page then count as several documents.
    """
    if judged is not None and urls != OPTIONS["urls"].default:
        judged = sign(judged, urls=urls)
    known = None if judged is None else select_addresses(judged.rows.get_column("doc_id"))
    if urls == "keep" or (known is not None and known.is_empty()):
        return judged, dict(runs)
    found = {name: _list_ids(run) for name, run in runs.items()}
    addresses = [of_run.addresses for of_run in found.values()]
    spellings = find_spellings(select_addresses(pl.concat([*addresses, *([] if known is None else [known])])), known)
    if spellings.is_empty():
        return judged, dict(runs)
    mapping = DocumentMap(spellings, of="both", chunks="repeat")
    pages = _list_pages(spellings)
    rows = {name: _find_rows(run, found[name].hashes, pages) for name, run in runs.items()}
    changed = {name for name, of_run in rows.items() if (of_run["document"] != of_run["page"]).any()}
    joined = {name: map_run(mapping, run) if name in changed else run for name, run in runs.items()}
    nothing = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String})
    labelled = _hash_ids(nothing if judged is None else judged.rows).join(pages.drop("doc_id"), on="document")
    queries = _count_queries(rows.values(), labelled)
    if judged is not None and known is not None and known.is_in(spellings.get_column("chunk_id").implode()).any():
        judged = mapping.map_qrels(judged, known.clear())
    if queries:
        one, other = spellings.row(0)
        notice(
            f"ids that spell one web address in several ways count as one document: {count_of(spellings.height, 'id')} (such as "
            f"{one} for {other}). This affects {count_of(queries, 'query', 'queries')}. {spell('urls', 'keep')} keeps them "
            "apart."
        )
    return None if judged is None else sign(judged, urls=urls), joined


def join_labels(people: Qrels, judged: Qrels) -> Qrels:
    """Return the qrels `people` with each URL replaced by the URL that the qrels `judged` have for the same page, if any."""
    known = select_addresses(judged.rows.get_column("doc_id"))
    ids = pl.concat([known, select_addresses(people.rows.get_column("doc_id"))]).unique()
    spellings = find_spellings(ids, known)
    mapping = DocumentMap(spellings, of="qrels", chunks="repeat")
    return people if spellings.is_empty() else mapping.map_qrels(people, known.clear())


def spell_like(frame: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with query and document ids spelled as in `known`: with the same escapes, and the same URL for a page.

    Tables of uses and results have the ids of the log, but runs and qrels may not. Several rows may get the same id.

    >>> frame = pl.DataFrame({"query_id": "q", "doc_id": ["http://a.org/x/", "b"]})
    >>> spell_like(frame, pl.DataFrame({"query_id": "q", "doc_id": ["https://a.org/x", "b"]}))["doc_id"].to_list()
    ['https://a.org/x', 'b']
    """
    frame = spell_as_known(frame, known)
    if "doc_id" not in known.columns or not len(pages := select_addresses(known.get_column("doc_id"))):
        return frame
    ids = select_addresses(frame.get_column("doc_id"))
    spellings = find_spellings(pl.concat([pages, ids]).unique(), pages)
    spellings = spellings.filter(~pl.col("chunk_id").is_in(pages.implode()))
    return frame.with_columns(pl.col("doc_id").replace(*spellings.select("chunk_id", "doc_id").get_columns()))


def find_spellings(ids: pl.Series, known: pl.Series | None) -> pl.DataFrame:
    """Return a frame with the columns chunk_id (a URL to replace) and doc_id (the URL of the same page to write instead).

    The column doc_id has the page's first URL in `known`, in sorted order, or else the page's first URL in `ids`.
    """
    from goodgain.formats.urls import find_pages  # deduplication takes 12 ms to import

    table = ids.to_frame("chunk_id").with_columns(page=find_pages(ids))
    # most pages have one id, and numbers find the others faster than texts do
    table = table.drop_nulls("page").filter(pl.col("page").hash().is_duplicated())
    table = table.filter(pl.len().over("page") > 1)
    is_other = pl.lit(True) if known is None else ~pl.col("chunk_id").is_in(known.implode())
    # a column before the groups: within `over` Polars would look for it in each group
    table = table.with_columns(is_other=is_other).sort("is_other", "chunk_id")
    table = table.with_columns(doc_id=pl.col("chunk_id").first().over("page")).drop("page", "is_other")
    return table.filter(pl.col("chunk_id") != pl.col("doc_id")).sort("chunk_id")


def select_addresses(ids: pl.Series, hashes: pl.Series | None = None) -> pl.Series:
    distinct = ids.gather((ids.hash() if hashes is None else hashes).arg_unique())  # five times as fast as unique
    return distinct.filter(distinct.str.starts_with("http") | distinct.str.starts_with("HTTP"))


class _Ids(NamedTuple):
    """The distinct URLs of a run; and per row, the hashes of query_id and doc_id (None for a long file or a run on an engine)."""

    addresses: pl.Series
    hashes: pl.DataFrame | None


def _list_ids(run: Run | RunFile) -> _Ids:
    if isinstance(run, RunFile):
        found, kept, height, most = list[pl.Series](), list[pl.DataFrame](), 0, _MOST_REPEATED
        for ids, rows in map_ahead(_list_ids_of_block, run.blocks()):
            found.append(ids)
            if sum(map(len, found)) > most:
                found = [select_addresses(pl.concat(found))]
                most = 2 * len(found[0]) + _MOST_REPEATED
            height += rows.height
            kept = [*kept, rows] if height <= _MOST_KEPT else []
        return _Ids(select_addresses(pl.concat(found)), pl.concat(kept) if kept else None)
    if run.lives_on_engine:
        ids_of_run = collect(nw.from_native(run.frame).select("doc_id").unique()).get_column("doc_id").cast(pl.String)
        return _Ids(select_addresses(ids_of_run), None)
    rows = _hash_ids(run.rows)
    return _Ids(select_addresses(run.rows.get_column("doc_id"), rows.get_column("document")), rows)


def _list_ids_of_block(block: Block) -> tuple[pl.Series, pl.DataFrame]:
    """Return two things: the distinct doc_ids of a block, and a frame with the hash of query_id and of doc_id for each row."""
    ids = block.read_ids()
    rows = _hash_ids(ids)
    return ids.get_column("doc_id").gather(rows.get_column("document").arg_unique()), rows


def _hash_ids(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col("query_id").hash().alias("query"), pl.col("doc_id").hash().alias("document"))


def _list_pages(spellings: pl.DataFrame) -> pl.DataFrame:
    """Return a row per URL of a page with several URLs: `doc_id`, `document` (hash of doc_id), `page` (hash of the kept URL)."""
    names = spellings.select(chunk_id="doc_id", doc_id="doc_id").unique()
    page = pl.col("doc_id").hash()
    return pl.concat([spellings, names]).select(doc_id="chunk_id", document=pl.col("chunk_id").hash(), page=page)


def _find_rows(run: Run | RunFile, hashes: pl.DataFrame | None, pages: pl.DataFrame) -> pl.DataFrame:
    """Return three hashes per row with a doc_id in `pages`: query (query_id), document (doc_id), page (the page's kept URL)."""
    spelled, pages = pages.select("doc_id"), pages.drop("doc_id")
    if hashes is not None:
        return hashes.join(pages, on="document")
    if isinstance(run, RunFile):
        return pl.concat([_hash_ids(block.read_ids()).join(pages, on="document") for block in run.blocks()])
    ids = nw.from_native(run.frame).select("query_id", "doc_id").unique()
    table = move_to_engine(ids, nw.from_native(spelled))
    return _hash_ids(collect(ids.join(table, on="doc_id"))).join(pages, on="document")


def map_run(mapping: DocumentMap, run: Run | RunFile) -> Run | RunFile:
    """Return a run with doc_ids replaced as in `DocumentMap.map_run`. A large file is mapped when it is read."""
    if isinstance(run, RunFile):
        return replace(run, mappings=(*run.mappings, mapping))
    mapped = mapping.map_run(run)
    mapped.ids_mapped = run.ids_mapped
    return mapped


def sign(qrels: Qrels, **options: str) -> Qrels:
    """Return a copy of the qrels. Scores computed with this copy have `options` in their signature."""
    signed = copy(qrels)
    signed.documents = {**qrels.documents, **options}
    return signed


def _count_queries(of_runs: Iterable[pl.DataFrame], labelled: pl.DataFrame) -> int:
    """Count the queries for which a run and the qrels together contain several ids of the same page."""
    queries = set[int]()
    for rows in of_runs:
        pages = rows.unique(["document", "page"]).get_column("page")
        # most rows are alone: the run spells the page in one way, and the query has no label for it
        is_spelled = pl.col("page").is_in(pages.filter(pages.is_duplicated()).implode())
        spelled = rows.filter(is_spelled), rows.filter(~is_spelled).join(labelled, on=["query", "page"], how="semi")
        both = pl.concat([*spelled, labelled])
        several = pl.col("document").min() != pl.col("document").max()
        queries.update(both.group_by("query", "page").agg(several).filter("document").get_column("query"))
    return len(queries)
