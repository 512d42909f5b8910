"""Joins ids that spell the address of one web page in several ways, in the runs and qrels of one call."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.counting.run_in_blocks import RunFile
from goodgain.errors import count_of, notice
from goodgain.files.writing import spell_as_known
from goodgain.formats.documents import DocumentMap
from goodgain.formats.qrels import Qrels
from goodgain.formats.run import Run
from goodgain.options import OPTIONS, spell
from goodgain.ranking.dataframe_engines import collect

#: Rows of a file whose ids are kept as numbers, 16 bytes a row, until the spellings are known. A longer file is read once more.
_MOST_KEPT = 20_000_000


def join_addresses(judged: Qrels | None, runs: Mapping[str, Run | RunFile], urls: str) -> tuple[Any, dict[str, Any]]:
    """Return qrels (or None) and runs in which each web page has one id, with a notice on what was joined.

    An id of the qrels stays, and others of its page become this id; without one, they become the smallest of them. Of
    several rows of the qrels the largest label stays. Runs are not looked at if the qrels have no address, since a large
    file is read once more for its ids: repeats of such unjudged pages stay apart.
    """
    if judged is not None and urls != OPTIONS["urls"].default:
        judged = sign(judged, urls=urls)
    known = None if judged is None else select_addresses(judged.rows.get_column("doc_id"))
    if urls == "keep" or (known is not None and known.is_empty()):
        return judged, dict(runs)
    found, kept = dict[str, pl.Series](), dict[str, pl.DataFrame]()
    for name, run in runs.items():
        found[name], rows = _list_addresses(run)
        kept |= {} if rows is None else {name: rows}
    spellings = find_spellings(
        select_addresses(pl.concat([*found.values(), *([] if known is None else [known])])), known
    )
    if spellings.is_empty():
        return judged, dict(runs)
    mapping = DocumentMap(spellings, of="both", chunks="repeat")
    renamed = spellings.get_column("chunk_id").implode()
    joined = {name: map_run(mapping, run) if found[name].is_in(renamed).any() else run for name, run in runs.items()}
    before = judged
    if judged is not None and known is not None and known.is_in(renamed).any():
        judged = mapping.map_qrels(judged, known.clear())
    queries = _count_queries(spellings, before, runs, kept)
    if queries:
        one, other = spellings.row(0)
        notice(
            f"ids that spell one web address in several ways count as one document: {count_of(spellings.height, 'id')} (such as "
            f"{one} for {other}), which matters in {count_of(queries, 'query', 'queries')}. {spell('urls', 'keep')} keeps them "
            "apart."
        )
    return None if judged is None else sign(judged, urls=urls), joined


def join_labels(people: Qrels, judged: Qrels) -> Qrels:
    """Return other labels with the ids of the qrels, where both spell the address of one page."""
    known = select_addresses(judged.rows.get_column("doc_id"))
    ids = pl.concat([known, select_addresses(people.rows.get_column("doc_id"))]).unique()
    spellings = find_spellings(ids, known)
    mapping = DocumentMap(spellings, of="qrels", chunks="repeat")
    return people if spellings.is_empty() else mapping.map_qrels(people, known.clear())


def spell_like(frame: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with the ids of queries and documents as `known` spells them: escaped, or another address of a page.

    Uses and results keep the ids of the log. Several rows may have one id then.

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
    """Return chunk_id, doc_id: each id that becomes another one of its page, and this one.

    A page is named by the smallest of the `known` ids that spell it, else by the smallest id.
    """
    from goodgain.formats.urls import find_pages  # deduplication takes 12 ms to import

    table = ids.to_frame("chunk_id").with_columns(page=find_pages(ids))
    table = table.filter(pl.col("page").is_not_null() & (pl.len().over("page") > 1))
    is_other = pl.lit(True) if known is None else ~pl.col("chunk_id").is_in(known.implode())
    # a column before the groups: within `over` Polars would look for it in each group
    table = table.with_columns(is_other=is_other).sort("is_other", "chunk_id")
    table = table.with_columns(doc_id=pl.col("chunk_id").first().over("page")).drop("page", "is_other")
    return table.filter(pl.col("chunk_id") != pl.col("doc_id")).sort("chunk_id")


def select_addresses(ids: pl.Series) -> pl.Series:
    found = ids.filter(ids.str.starts_with("http") | ids.str.starts_with("HTTP"))
    return found.gather(found.hash().arg_unique())  # five times as fast as unique


def _list_addresses(run: Run | RunFile) -> tuple[pl.Series, pl.DataFrame | None]:
    """Return the addresses among the ids of a run, and all ids of a file as numbers; None for a long file or another run."""
    if isinstance(run, RunFile):
        ids, kept, height = list[pl.Series](), list[pl.DataFrame](), 0
        for block in run.blocks():
            rows = block.read_ids()
            ids.append(select_addresses(rows.get_column("doc_id")))
            height += rows.height
            kept = [*kept, _hash_ids(rows)] if height <= _MOST_KEPT else []
        return select_addresses(pl.concat(ids)), pl.concat(kept) if kept else None
    frame = nw.from_native(run.frame).select("doc_id")
    ids_of_run = collect(frame.unique() if run.lives_on_engine else frame).get_column("doc_id").cast(pl.String)
    return select_addresses(ids_of_run), None


def _hash_ids(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col("query_id").hash().alias("query"), pl.col("doc_id").hash().alias("document"))


def map_run(mapping: DocumentMap, run: Run | RunFile) -> Run | RunFile:
    """Return a run with other ids, as `DocumentMap.map_run` does; a file is mapped when it is read."""
    if isinstance(run, RunFile):
        return replace(run, mappings=(*run.mappings, mapping))
    mapped = mapping.map_run(run)
    mapped.ids_mapped = run.ids_mapped
    return mapped


def sign(qrels: Qrels, **options: str) -> Qrels:
    """Return qrels whose signature names more options."""
    signed = copy(qrels)
    signed.documents = {**qrels.documents, **options}
    return signed


def _count_queries(
    spellings: pl.DataFrame, judged: Qrels | None, runs: Mapping[str, Run | RunFile], kept: Mapping[str, pl.DataFrame]
) -> int:
    """Return in how many queries ids become one: in a run and the qrels together; `kept` has ids of files as numbers."""
    names = spellings.select(chunk_id="doc_id", doc_id="doc_id").unique()
    pages = pl.concat([spellings, names])
    mapping, ids = DocumentMap(pages, of="both", chunks="repeat"), pages.get_column("chunk_id").implode()

    def select(rows: pl.DataFrame) -> pl.DataFrame:
        return _hash_ids(rows.select("query_id", "doc_id").filter(pl.col("doc_id").is_in(ids)))

    def select_from(name: str, run: Run | RunFile) -> list[pl.DataFrame]:
        if name in kept:
            return [kept[name]]
        if isinstance(run, RunFile):
            return [select(block.read_ids()) for block in run.blocks()]
        if not run.lives_on_engine:
            return [select(run.rows)]
        found = mapping.add_documents(nw.from_native(run.frame)).filter(~nw.col("document").is_null())
        return [_hash_ids(collect(found.select("query_id", "doc_id").unique()))]

    labelled = [] if judged is None else [select(judged.rows)]
    page_of = _hash_ids(pages.select(query_id="doc_id", doc_id="chunk_id")).rename({"query": "page"})
    spelled, queries = page_of.get_column("document").implode(), set[int]()
    for name, run in runs.items():
        both = pl.concat([*labelled, *select_from(name, run)]).filter(pl.col("document").is_in(spelled))
        both = both.join(page_of, on="document")
        several = pl.col("document").min() != pl.col("document").max()
        queries.update(both.group_by("query", "page").agg(several).filter("document").get_column("query"))
    return len(queries)
