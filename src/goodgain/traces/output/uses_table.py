"""Makes the table of uses: which documents of a run were returned, opened and cited."""

from __future__ import annotations

import polars as pl

from goodgain.dedup.urls import canonicalise_url
from goodgain.errors import notice
from goodgain.options import spell
from goodgain.schema import EMPTY_DOC, USES
from goodgain.traces.output.results_to_run import DEFAULT_TAG
from goodgain.traces.reading.opened_and_cited import make_page_key

_RUN = ["query_id", "system", "replicate"]
_PLACE = ["iteration", "search", "rank"]
_DOCUMENT = [*_RUN, "doc_id"]
_NO_OPENS = "call that opens a document, so opens are unknown (null). If a tool opens them, name it:"
_NO_ANSWER = "final answer, so cited is unknown (null)."


def tabulate_uses(mentions: pl.DataFrame, results: pl.DataFrame, earlier: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the uses of whole queries, and `can_open`: whether the query's log has a call that opens a document.

    It is null if the log hides which documents the query opened.

    Args:
        mentions: the table `uses` of `ResultRows`.
        results: the results of all these queries, with the column `document`.
        earlier: results of earlier conversions, with documents that other results may be.
    """
    found = results.filter(pl.col("rank") > 0)
    known = [found] if earlier is None else [found, earlier]
    named = mentions.filter(pl.col("kind") != "query")
    named = named.join(
        found.select(*_RUN, *_PLACE, "document"),
        on=[*_RUN, *_PLACE],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    named = named.with_columns(doc_id=pl.coalesce("document", _name_others(named, known)))
    opened, failed = pl.col("kind") == "open", pl.col("failed")
    used = named.group_by(_DOCUMENT, maintain_order=True).agg(
        opened_at=pl.col("opened_at").filter(opened & ~failed).min(),
        opens=opened.sum().cast(pl.Int64),
        failed_opens=(opened & failed).sum().cast(pl.Int64),
        cited=(pl.col("kind") == "cite").any(),
    )
    returned = (
        found.sort(_PLACE, maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over(*_RUN, "iteration"))
        .group_by(*_RUN, doc_id="document", maintain_order=True)
        .agg(returned_at=pl.col("iteration").first(), rank=pl.col("rank").first())
    )
    both = returned.join(used, on=_DOCUMENT, how="full", coalesce=True, nulls_equal=True, maintain_order="left_right")
    queries = mentions.filter(pl.col("kind") == "query").select(*_RUN, "answered", "can_open")
    whole = queries.join(both, on=_RUN, how="left", nulls_equal=True, maintain_order="left_right")
    return whole.select(
        *_RUN,
        pl.col("doc_id").fill_null(EMPTY_DOC),
        "returned_at",
        "rank",
        "opened_at",
        pl.col("opens", "failed_opens").fill_null(0),
        cited=pl.when("answered").then(pl.col("cited").fill_null(False)),
        can_open="can_open",
    )


def _name_others(named: pl.DataFrame, known: list[pl.DataFrame]) -> pl.Series:
    """Return a document for each mention that is not a result of its run.

    It is the document of another run of the query that has its id, or is the same page by the rules of deduplication. Else
    the mention is a document of its own, and all URLs of its page have one name.
    """
    names: dict[tuple[str, str], str] = {}
    others = named.filter(pl.col("document").is_null()).select("query_id", "name").unique()
    asked = dict.fromkeys(others["query_id"])
    for frame in known if asked else ():
        columns = [name for name in ("document", "doc_id", "url") if name in frame.columns]
        of_queries = (
            frame.filter(pl.col("query_id").is_in([*asked])).select("query_id", *columns).unique(maintain_order=True)
        )
        for query_id, document, *more in of_queries.iter_rows():
            for name in filter(None, (document, *more)):
                names.setdefault((query_id, name), document)
                names.setdefault((query_id, make_page_key(name) or name), document)
    for query_id, name in others.sort("query_id", "name").iter_rows():
        key = make_page_key(name) or name
        document = names.get((query_id, name)) or names.get((query_id, key))
        if document is None:
            document = (canonicalise_url(name) or name) if key != name else name
            names[query_id, key] = document
        names[query_id, name] = document
    values = [names.get((query_id, name)) for query_id, name in named.select("query_id", "name").iter_rows()]
    return pl.Series(values, dtype=pl.String)


def finish_uses(uses: pl.DataFrame, *, opens_named: bool) -> pl.DataFrame:
    """Return the uses of whole systems, with null opens for a system whose logs have no call that opens a document.

    If the caller named a tool that opens documents (`opens_named`), no call of it means zero opens.
    """
    can_open = pl.col("can_open").fill_null(True).any().over("system") | pl.lit(opens_named)
    uses = uses.with_columns(known=can_open & pl.col("can_open").is_not_null())
    unanswered = pl.col("cited").count().over("system") == 0
    for is_unknown, lacking in ((~can_open, f"{_NO_OPENS} {spell('tools', 'NAME=open')}."), (unanswered, _NO_ANSWER)):
        systems = uses.filter(is_unknown).get_column("system").unique(maintain_order=True).to_list()
        if systems:
            notice(f"{', '.join(name or DEFAULT_TAG for name in systems[:5])}: the logs have no {lacking}")
    numbers = [pl.when("known").then(name).alias(name) for name in ("opened_at", "opens", "failed_opens")]
    return uses.with_columns(numbers).select([*USES.columns])
