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

#: At most so many rows of a run are looked at, so many of their URLs without a judgment, and so many judged URLs beside
#: them: to parse one takes 2 µs, and large runs must not take longer.
_ROWS, _UNJUDGED, _JUDGED = 6_000, 1_500, 3_000
#: Rows are taken from so many places; in a file, so many bytes at each.
_PLACES, _BYTES = 16, 2**14


def warn_of_url_variants(run: Run | RunFile, qrels: Qrels) -> None:
    """Give a notice where URLs of a run lack a judgment only because the qrels spell them in another way.

    Two URLs are the same where deduplication joins them by their URL alone: scheme, `www.` and `m.`, trailing slash,
    tracking parameters and fragments do not count. A sample is looked at, so that large runs take no longer.
    """
    judgments = qrels.frame.select("query_id", "doc_id")
    is_url = pl.col("doc_id").str.starts_with("http")
    if not judgments.gather_every(max(judgments.height // _ROWS, 1)).select(is_url.any()).item():
        return
    rows = _read_some_rows(run).filter(is_url)
    judged = judgments.filter(pl.col("query_id").is_in(rows["query_id"].unique().implode())).filter(is_url)
    if (every := -(-judged.height // _JUDGED)) > 1:  # fewer queries, chosen by a hash of their ids
        chosen = judged.filter(pl.col("query_id").hash(0) % every == 0)
        judged = chosen if chosen.height else judged.filter(pl.col("query_id") == judged["query_id"][0])
        rows = rows.join(judged, on="query_id", how="semi")
    unjudged = rows.unique(maintain_order=True).join(
        judged, on=["query_id", "doc_id"], how="anti", maintain_order="left"
    )
    unjudged = _take_sample(unjudged, _UNJUDGED)
    pairs = list(_find_variants(unjudged, _take_sample(judged, 2 * _JUDGED)))
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


def _take_sample(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return rows, or of more than the size those whose documents have the least hashes."""
    if rows.height <= size:
        return rows
    return rows.sort(pl.col("doc_id").hash(0), maintain_order=True).head(size)


def _read_some_rows(run: Run | RunFile) -> pl.DataFrame:
    """Return query_id and doc_id of some rows of a run: of all its parts if it is a frame in memory or a file of text."""
    if isinstance(run, RunFile):
        return _read_some_lines(run) if run.is_text else _read_first_rows(run)
    if not isinstance(run.frame, pl.DataFrame):
        first = nw.from_native(run.frame).lazy().select("query_id", "doc_id").head(_ROWS)
        return collect(first).cast(pl.String)
    rows = run.frame.select("query_id", "doc_id")
    if rows.height <= _ROWS:
        return rows
    size = _ROWS // _PLACES
    return pl.concat([rows.slice(start, size) for start in _choose_places(rows.height, size)])


def _choose_places(length: int, size: int) -> Iterator[int]:
    """Yield where to begin in each of `_PLACES` equal parts of a length, by a hash that is the same every time."""
    width = length // _PLACES
    for number in range(_PLACES):
        digest = hashlib.blake2b(f"{length} {number}".encode(), digest_size=8).digest()
        yield number * width + int.from_bytes(digest, "big") % max(width - size, 1)


def _read_first_rows(run: RunFile) -> pl.DataFrame:
    """Return the first rows of a Parquet file."""
    _, frame = next(table_blocks(run.path, RUN, rows=_ROWS, columns=run.columns))
    return frame.select("query_id", "doc_id").head(_ROWS).cast(pl.String)


def _read_some_lines(run: RunFile) -> pl.DataFrame:
    fields = [fields for piece in _read_pieces(run) for line in piece if len(fields := line.split(None, 3)) > 3]
    columns = {"query_id": [_decode(line[0]) for line in fields], "doc_id": [_decode(line[2]) for line in fields]}
    return pl.DataFrame(columns, schema={"query_id": pl.String, "doc_id": pl.String})


def _read_pieces(run: RunFile) -> Iterator[list[bytes]]:
    """Yield the whole lines in pieces of a text file; of a compressed one, which is read from its beginning, in one piece."""
    if compression(run.path) is not None:
        with open_stream(run.path) as file:
            yield file.read(_PLACES * _BYTES).split(b"\n")[:-1]
        return
    with open_plain(run.path) as file:
        for start in _choose_places(run.path.stat().st_size, _BYTES):
            file.seek(start)
            yield file.read(_BYTES).split(b"\n")[1:-1]


def _decode(field: bytes) -> str:
    return field.decode("utf-8", "replace")
