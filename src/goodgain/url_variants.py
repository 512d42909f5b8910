"""Looks for URLs of a run that the qrels judge under another spelling, so that nobody takes them for other documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import narwhals as nw
import polars as pl

from goodgain.batches.run_file import RunFile
from goodgain.batches.whole_query_blocks import table_blocks
from goodgain.dedup.urls import parse_url
from goodgain.files.opening import compression, open_plain, open_stream
from goodgain.formats import Qrels, Run
from goodgain.formats.run import warn_once
from goodgain.ranking.engines import collect
from goodgain.schema import RUN

__all__ = ["warn_of_url_variants"]

#: At most so many unjudged URLs are looked at, and at most twice as many judged ones beside them: parsing one takes 2 µs.
_SAMPLE = 2_500
#: Of a large file of text, so many pieces of this size are read, about 100 lines each.
_PIECES, _PIECE = 16, 2**14


def warn_of_url_variants(run: Run | RunFile, qrels: Qrels) -> None:
    """Give a notice where URLs of a run lack a judgment only because the qrels spell them in another way.

    Two URLs are the same where deduplication joins them by their URL alone: scheme, `www.` and `m.`, trailing slash,
    tracking parameters and fragments do not count. A sample is looked at, so that large runs take no longer.
    """
    judgments = qrels.frame.select("query_id", "doc_id")
    is_url = pl.col("doc_id").str.starts_with("http")
    if not judgments.gather_every(max(judgments.height // _SAMPLE, 1)).select(is_url.any()).item():
        return
    if isinstance(run, RunFile) or not isinstance(run.frame, pl.DataFrame):
        rows = _read_some_rows(run).filter(is_url)
        judged = judgments.filter(pl.col("query_id").is_in(rows["query_id"].unique().implode())).filter(is_url)
    else:
        judged = _choose_queries(judgments.filter(is_url))
        chosen = judged["query_id"].unique()
        rows = run.frame.select("query_id", "doc_id").filter(pl.col("query_id").is_in(chosen.implode())).filter(is_url)
    unjudged = rows.unique(maintain_order=True).join(
        judged, on=["query_id", "doc_id"], how="anti", maintain_order="left"
    )
    unjudged = _take_sample(unjudged)
    pairs = list(_find_variants(unjudged, _take_sample(judged, 2 * _SAMPLE)))
    if pairs:
        query_id, found, known = pairs[0]
        warn_once(
            run,
            f"{len(pairs):,} of {unjudged.height:,} URLs without a judgment that were looked at are judged under another "
            f"spelling ({found} in the run, {known} in the qrels, query {query_id}), and count as unjudged documents: the logs "
            "were converted apart; convert those of all systems in one call (goodgain convert old=OLD.jsonl new=NEW.jsonl "
            "-o '{system}.run'), or the later ones with --with RESULTS",
        )


def _find_variants(unjudged: pl.DataFrame, judged: pl.DataFrame) -> Iterator[tuple[str, str, str]]:
    """Yield query, URL of the run and URL of the qrels, where the two are one page."""
    known: dict[tuple[str, str], str] = {}
    for query_id, url in judged.iter_rows():
        if (parsed := parse_url(url)) is not None:
            known.setdefault((query_id, parsed.item), url)
    for query_id, url in unjudged.iter_rows():
        if (parsed := parse_url(url)) is not None and (query_id, parsed.item) in known:
            yield query_id, url, known[query_id, parsed.item]


def _choose_queries(judgments: pl.DataFrame) -> pl.DataFrame:
    """Return the judgments of some queries, chosen by a hash of their ids: about as many as the sample has."""
    every = -(-judgments.height // _SAMPLE)
    if every <= 1:
        return judgments
    chosen = judgments.filter(pl.col("query_id").hash(0) % every == 0)
    return chosen if chosen.height else judgments.filter(pl.col("query_id") == judgments["query_id"][0])


def _take_sample(rows: pl.DataFrame, size: int = _SAMPLE) -> pl.DataFrame:
    """Return rows, or of more than the size those whose documents have the least hashes."""
    if rows.height <= size:
        return rows
    return rows.sort(pl.col("doc_id").hash(0), maintain_order=True).head(size)


def _read_some_rows(run: Run | RunFile) -> pl.DataFrame:
    """Return query_id and doc_id of some rows of a run that is not in memory."""
    if isinstance(run, Run):
        first = nw.from_native(run.frame).lazy().select("query_id", "doc_id").head(_SAMPLE)
        return collect(first).cast(pl.String)
    if not run.is_text:
        _, frame = next(table_blocks(run.path, RUN, rows=_SAMPLE, columns=run.columns))
        return frame.select("query_id", "doc_id").head(_SAMPLE).cast(pl.String)
    fields = [fields for piece in _read_pieces(run) for line in piece if len(fields := line.split(None, 3)) > 3]
    columns = {"query_id": [_decode(line[0]) for line in fields], "doc_id": [_decode(line[2]) for line in fields]}
    return pl.DataFrame(columns, schema={"query_id": pl.String, "doc_id": pl.String})


def _read_pieces(run: RunFile) -> Iterator[list[bytes]]:
    """Yield the whole lines in pieces of a text file, at places that a hash of its size spreads over it."""
    if compression(run.path) is not None:  # cannot be read from the middle
        with open_stream(run.path) as file:
            yield file.read(_PIECES * _PIECE).split(b"\n")[:-1]
        return
    size = run.path.stat().st_size
    width = size // _PIECES
    with open_plain(run.path) as file:
        for number in range(_PIECES):
            digest = hashlib.blake2b(f"{size} {number}".encode(), digest_size=8).digest()
            file.seek(number * width + int.from_bytes(digest, "big") % max(width - _PIECE, 1))
            yield file.read(_PIECE).split(b"\n")[1:-1]


def _decode(field: bytes) -> str:
    return field.decode("utf-8", "replace")
