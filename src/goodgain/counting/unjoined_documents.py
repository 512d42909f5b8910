"""Finds documents of a run that lack a judgment because the qrels have them under another id."""

import re

import narwhals as nw
import polars as pl

from goodgain.counting.coverage import Coverage, warn_if_misleading
from goodgain.counting.run_in_blocks import RunFile
from goodgain.counting.run_opening import sample_rows
from goodgain.errors import count_of, notice
from goodgain.files.bad_rows import quote
from goodgain.formats import Qrels, Run
from goodgain.options import spell
from goodgain.ranking.dataframe_engines import collect
from goodgain.schema import EMPTY_DOC

#: Limits of the sample of URLs, unjudged and judged. Parsing one takes 2 µs.
_UNJUDGED, _JUDGED = 1_500, 3_000
#: An id of a chunk: `doc1#2`, `doc1_p3`.
_NUMBERED = r"^(?<document>.+?)(?<between>[^\p{L}\p{N}]+\p{L}*)\d+$"


def warn_of_run(
    qrels: Qrels, run: Run | RunFile, coverage: Coverage, *, low: bool = True, iterated: Run | RunFile | None = None
) -> int:
    """Give the notices of `warn_if_misleading`, and a notice if documents of a run are judged under other ids.

    The documents of a sample are compared, so large runs take no longer. Return the result of `count_one_time`, with a
    notice if it is not 0.
    """
    warn_if_misleading(coverage, labels=qrels.labels, low=low, iterated=iterated)
    judgments = qrels.frame.select("query_id", "doc_id")
    has_variants = _warn_of_url_variants(judgments, run)
    if coverage.share == 0 and not has_variants and qrels.labels is None:
        warn_if_none_is_judged(judgments, sample_rows(run), f"{coverage.unique:,} unique results")
    one_time = count_one_time(run, qrels.query_ids)
    if one_time and iterated is not None:
        notice(
            f"in {count_of(one_time, 'query', 'queries')} ids are addresses that are new for each call, in two iterations or "
            f"more. Repeats are not seen, so measures of them (SRR, SRE, NumDup) are not comparable with those of "
            "other systems."
        )
    return one_time


def count_one_time(run: Run | RunFile, query_ids: pl.Series) -> int:
    """Return the number of queries with addresses that are new for each call in two iterations or more.

    A large file is read only if the sample has such an address. The engine of a lazy frame looks for them.
    """
    is_lazy = isinstance(run, Run) and not isinstance(run.frame, pl.DataFrame)
    ids = pl.Series() if is_lazy else (sample_rows(run) if isinstance(run, RunFile) else run.rows).get_column("doc_id")
    if not is_lazy and not ids.str.starts_with("https://").any():
        return 0
    from goodgain.formats.urls import is_one_time  # deduplication takes 12 ms to import

    if not is_lazy and not pl.select(is_one_time(pl.lit(ids)).any()).item():
        return 0
    frames = (block.run.frame for block in run.blocks()) if isinstance(run, RunFile) else [run.frame]
    found = (nw.from_native(frame).filter(is_one_time(nw.col("doc_id"))) for frame in frames)
    places = pl.concat([collect(rows.select("query_id", "iteration").unique()) for rows in found]).unique()
    several = places.group_by("query_id").len().filter(pl.col("len") > 1).get_column("query_id")
    return int(several.is_in(query_ids.implode()).sum())


def warn_if_none_is_judged(judgments: pl.DataFrame, rows: pl.DataFrame, described: str) -> None:
    """Give the notice that no document has a label; `described` says how many there are."""
    rows = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    advice = _advise_on_chunks(rows, judgments) or _advise_on_chunks(judgments, rows)
    example = "" if advice else _show_example(judgments, rows)
    remedy = (
        advice or "Check that both use the same doc_ids. If they do, judge some results (goodgain pool lists them)."
    )
    notice(
        f"coverage is low: none of the {described} has a label{example}. {remedy}",
        of_several=(f"coverage is low: no result has a label. {remedy}", f"{described}{example}"),
    )


def _advise_on_chunks(rows: pl.DataFrame, others: pl.DataFrame) -> str | None:
    """Return advice if an id of `rows` is an id of `others` with signs and a number after it, in the same query; else None."""
    parts = rows.select("query_id", "doc_id", pl.col("doc_id").str.extract_groups(_NUMBERED).alias("parts"))
    found = parts.unnest("parts").join(
        others, left_on=["query_id", "document"], right_on=["query_id", "doc_id"], how="semi"
    )
    for doc_id, document, between in found.select("doc_id", "document", "between").sort(pl.all()).head(1).iter_rows():
        sign = re.sub(r"[][.^$*+?{}()|\\]", r"\\\g<0>", between)
        if not re.search(rf"{sign}\d+$", document):  # else the pattern would cut the document's id too
            pattern = rf"^(.+){sign}\d+$"
            return f"If {quote(doc_id)} is a chunk of {quote(document)}, give {spell('documents', pattern)}."
    return None


def _show_example(judgments: pl.DataFrame, rows: pl.DataFrame) -> str:
    """Return an id of the run and an id of the qrels in one query; if possible, only case, signs and %XX differ."""
    judgments = judgments.join(rows.select("query_id").unique(), on="query_id", how="semi")
    plain = pl.col("doc_id").str.to_lowercase().str.replace_all(r"%[0-9a-f]{2}|[\W_]", "").alias("plain")
    for keys in (["query_id", plain], ["query_id"]):
        found, known = (of.group_by(keys).agg(pl.col("doc_id").min()) for of in (rows, judgments))
        pairs = found.join(known, on=[key for key in ("query_id", "plain") if key in found.columns], suffix="_known")
        for query_id, ours, theirs in (
            pairs.select("query_id", "doc_id", "doc_id_known").sort(pl.all()).head(1).iter_rows()
        ):
            return f" (in query {query_id} the run has {quote(ours)}, the qrels have {quote(theirs)})"
    return ""


def _warn_of_url_variants(judgments: pl.DataFrame, run: Run | RunFile) -> bool:
    """Give a notice if URLs of a run are judged under another spelling, and return whether there are such URLs.

    Two URLs are the same page for deduplication if only scheme, `www.` or `m.`, trailing slash, tracking parameters or
    fragments differ.
    """
    is_url = pl.col("doc_id").str.starts_with("http")
    if not judgments.gather_every(max(judgments.height // _JUDGED, 1)).select(is_url.any()).item():
        return False
    # Deduplication takes 12 ms to import, and few ids are URLs.
    from goodgain.formats.urls import find_other_spellings

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
        notice(
            f"{len(pairs):,} of {unjudged.height:,} sampled URLs without a judgment are judged under another spelling "
            f"({found} in the run, {known} in the qrels, query {query_id}). Use one spelling, or count both as one "
            "document, as goodgain.evaluate and the commands do by default."
        )
    return bool(pairs)


def _take_sample(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    return rows if rows.height <= size else rows.sort(pl.col("doc_id").hash(0), maintain_order=True).head(size)
