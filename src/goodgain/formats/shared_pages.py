"""Finds ids that are spellings of one page's URL, in many ids at once."""

import polars as pl

from goodgain.formats.urls import find_page
from goodgain.formats.web_identities import normalise_host

_FOLDER = r"[A-Za-z0-9\-_~!$&'*+,=:@][A-Za-z0-9\-._~!$&'*+,=:@]*"
#: Addresses in which only the host and the final slash change, unless the host has rules or the end of the address changes too.
_SIMPLE = rf"^https?://[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/(?:{_FOLDER})?)*$"
#: Ends that change: `/amp`, `/index.html`, and the `~2` of a second document.
_CHANGED_END = r"(?i)(?:/(?:amp|(?:index|default)\.[a-z0-9]+)/*|~\d+)$"


def find_shared_pages(ids: pl.Series) -> pl.DataFrame:
    """Return the ids whose page several of the distinct `ids` have, with the result of `find_page` (columns `id` and `page`).

    >>> find_shared_pages(pl.Series(["http://www.example.org/a/", "https://example.org/a", "https://example.org/b", "d1"])).rows()
    [('http://www.example.org/a/', 'https://example.org/a'), ('https://example.org/a', 'https://example.org/a')]
    """
    table = _add_simple_hosts(ids)
    own_host = pl.col("own_host")
    has_https = pl.col("id").str.starts_with("https://")
    is_page = pl.col("is_simple") & (own_host == pl.col("host")) & has_https & ~pl.col("id").str.ends_with("/")
    table = table.with_columns(is_page=is_page.fill_null(False))

    # An id that is its own page can share the page only with ids that are not.
    others = table.filter(~pl.col("is_page"))
    path = pl.col("id").str.splitn("/", 4).struct.field("field_3").fill_null("")
    page = pl.concat_str(pl.lit("https://"), own_host, pl.lit("/"), path).str.strip_chars_end("/")
    pages_of_simple = others.filter("is_simple").select("id", page=page)
    not_simple = others.filter(~pl.col("is_simple")).get_column("id")
    pages_of_others = pl.DataFrame({"id": not_simple, "page": pl.Series(map(find_page, not_simple), dtype=pl.String)})
    pages = pl.concat([pages_of_simple, pages_of_others.drop_nulls()])
    # numbers are found faster than texts
    is_met = pl.col("is_page") & pl.col("id").hash().is_in(pages.get_column("page").hash().implode())
    own_pages = table.filter(is_met).select("id", page="id")
    return pl.concat([pages, own_pages]).filter(pl.col("page").hash().is_duplicated())


def _add_simple_hosts(ids: pl.Series) -> pl.DataFrame:
    """Return a table (id, host, is_simple, own_host). For a simple address, `own_host` is the host in `find_page`."""
    table = ids.alias("id").to_frame()
    table = table.with_columns(  # Polars computes the columns beside each other
        host=pl.col("id").str.splitn("/", 4).struct.field("field_2"),
        looks_simple=pl.col("id").str.contains(_SIMPLE),
        has_changed_end=pl.col("id").str.contains(_CHANGED_END),
    )

    own_host_of = {}  # only of hosts without rules for their addresses
    for host in table.filter("looks_simple").get_column("host").unique().to_list():
        _authority, bare_host, rules = normalise_host(host, "https")
        if not rules:
            own_host_of[host] = bare_host
    own_host = pl.col("host").replace_strict(own_host_of, default=None, return_dtype=pl.String)
    table = table.with_columns(own_host=own_host)

    is_simple = pl.col("looks_simple") & ~pl.col("has_changed_end") & pl.col("own_host").is_not_null()
    return table.select("id", "host", is_simple.alias("is_simple"), "own_host")
