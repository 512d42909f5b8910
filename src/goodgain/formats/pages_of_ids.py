"""Finds the web pages of ids that are addresses."""

import re
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any

import polars as pl

from goodgain.formats.urls import canonicalise_url, normalise_host

#: A fragment names a part of a page. But a route (`#/`, `#!`) is the path of a page, and a text fragment only shows a place.
_PART_OF_PAGE = re.compile(r"#(?![/!]|:~:)|~\d+$")
#: The beginnings of addresses that a service makes again for each call: one page has several such addresses.
ONE_TIME_ADDRESSES = ("https://vertexaisearch.cloud.google.com/grounding-api-redirect/",)
#: Addresses in which `find_pages` only changes the host and a slash at the end, unless the host has rules.
_SIMPLE = r"^https?://[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/[A-Za-z0-9\-._~!$&'*+,=:@/]*)?$"
_HAS_MORE = r"(?i)/\.|/(?:amp|(?:index|default)\.[a-z0-9]+)/*$|~\d+$"


def find_page(doc_id: str) -> str | None:
    """Return the canonical address of the page that an id spells; None for other ids, and for parts of pages.

    >>> find_page("http://www.example.org/a/"), find_page("https://example.org/onto#A"), find_page("d1")
    ('https://example.org/a', None, None)
    """
    is_part = _PART_OF_PAGE.search(doc_id) is not None
    return canonicalise_url(doc_id) if not is_part and doc_id[:4].lower() == "http" else None


def is_one_time(doc_id: Any) -> Any:
    """Return whether an id, a column of Polars or narwhals, is an address that a service makes again for each call.

    >>> pl.select(is_one_time(pl.lit(ONE_TIME_ADDRESSES[0] + "AUZ"))).item()
    True
    """
    return reduce(or_, (doc_id.str.starts_with(start) for start in ONE_TIME_ADDRESSES))


def find_pages(ids: pl.Series) -> pl.Series:
    """Return `find_page` of each id. Polars reads most addresses; Python reads each host once.

    >>> find_pages(pl.Series(["http://www.example.org/a/", "d1"])).to_list()
    ['https://example.org/a', None]
    """
    start = ids.str.splitn("/", 4).struct
    table = pl.DataFrame({"id": ids, "host": start.field("field_2"), "path": start.field("field_3")})
    is_simple = pl.col("id").str.contains(_SIMPLE) & ~pl.col("id").str.contains(_HAS_MORE)
    table = table.with_columns(is_simple=is_simple)
    hosts = table.filter("is_simple").get_column("host").unique().to_list()
    own = {host: bare for host in hosts for _, bare, rules in [normalise_host(host, "https")] if not rules}
    table = table.with_columns(own=pl.col("host").replace_strict(own, default=None, return_dtype=pl.String))
    page = pl.concat_str(pl.lit("https://"), "own", pl.lit("/"), pl.col("path").fill_null("")).str.strip_chars_end("/")
    table = table.with_columns(page=pl.when(pl.col("is_simple") & pl.col("own").is_not_null()).then(page))
    others = table.filter(pl.col("page").is_null()).get_column("id").unique()
    found = pl.DataFrame({"id": others, "found": pl.Series(map(find_page, others), dtype=pl.String)})
    return (
        table.join(found, on="id", how="left", maintain_order="left").select(pl.coalesce("page", "found")).to_series()
    )


def find_other_spellings(unjudged: pl.DataFrame, judged: pl.DataFrame) -> Iterator[tuple[str, str, str]]:
    """Yield query, unjudged id and judged id if both spell the address of one page; the frames have query_id and doc_id."""
    known: dict[tuple[str, str | None], str] = {}
    for query_id, url in judged.iter_rows():
        known.setdefault((query_id, find_page(url)), url)
    for query_id, url in unjudged.iter_rows():
        if (page := find_page(url)) is not None and (query_id, page) in known:
            yield query_id, url, known[query_id, page]
