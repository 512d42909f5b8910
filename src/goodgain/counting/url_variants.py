"""Finds URLs of a run that the qrels judge under another spelling."""

from __future__ import annotations

import polars as pl

from goodgain.counting.run_in_blocks import RunFile
from goodgain.counting.run_opening import sample_rows
from goodgain.dedup.urls import find_other_spellings
from goodgain.formats import Qrels, Run
from goodgain.formats.run import warn_once

#: Limits of the sample of URLs, unjudged and judged. Parsing one takes 2 µs.
_UNJUDGED, _JUDGED = 1_500, 3_000


def warn_of_url_variants(qrels: Qrels, run: Run | RunFile) -> None:
    """Give a notice if URLs of a run lack a judgment only because the qrels spell them in another way.

    Two URLs are the same if deduplication joins them by their URL alone: scheme, `www.` and `m.`, trailing slash, tracking
    parameters and fragments do not count. A sample is compared, so large runs take no longer.
    """
    judgments = qrels.frame.select("query_id", "doc_id")
    is_url = pl.col("doc_id").str.starts_with("http")
    if not judgments.gather_every(max(judgments.height // _JUDGED, 1)).select(is_url.any()).item():
        return
    rows = sample_rows(run).filter(is_url)
    judged = judgments.filter(pl.col("query_id").is_in(rows["query_id"].unique().implode())).filter(is_url)
    if (every := -(-judged.height // _JUDGED)) > 1:  # choose queries by a hash of their ids
        chosen = judged.filter(pl.col("query_id").hash(0) % every == 0)
        judged = chosen if chosen.height else judged.filter(pl.col("query_id") == judged["query_id"][0])
        rows = rows.join(judged, on="query_id", how="semi")
    unjudged = rows.unique(maintain_order=True).join(
        judged, on=["query_id", "doc_id"], how="anti", maintain_order="left"
    )
    unjudged = _take_sample(unjudged, _UNJUDGED)
    pairs = list(find_other_spellings(unjudged, _take_sample(judged, 2 * _JUDGED)))
    if pairs:
        query_id, found, known = pairs[0]
        warn_once(
            run,
            f"{len(pairs):,} of {unjudged.height:,} sampled URLs without a judgment are judged under another spelling "
            f"({found} in the run, {known} in the qrels, query {query_id}). Use the doc_ids of the run in the qrels. "
            "For several systems convert all logs in one call, or later ones with --with RESULTS.",
        )


def _take_sample(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return at most `size` rows, those with the smallest hashes of documents."""
    return rows if rows.height <= size else rows.sort(pl.col("doc_id").hash(0), maintain_order=True).head(size)
