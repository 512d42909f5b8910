"""Pages of many ids at once are those of each id alone."""

from __future__ import annotations

from random import Random

import polars as pl

from goodgain.formats.urls import find_page, find_pages
from tests.support.counts import how_many

HOSTS = """
    a.org www.a.org m.a.org www.com a.www.org en.m.wikipedia.org youtu.be x.github.com a-b.c.co.uk amp.d.org e.org. f.org:443
    1.2.3.4 localhost a..org -a.org xn--a.org www.www.a.org www.m.a.org a.m.b.org mobile.x.y.z.org doi.org www.nature.com
    old.reddit.com web.archive.org www.ncbi.nlm.nih.gov user@a.org bücher.de
""".split()  # noqa: SIM905 - a table of words reads better as text
SEGMENTS = """
    a b.html index.html INDEX.php default.aspx amp .. . x~2 en latest v1.2 A'b* c:d@e 10.1000/abc abs 2501.12345 watch %41
    d;sid=1 default index amp.html r wiki p! 12345678 pubmed
""".split()  # noqa: SIM905 - as above
TAILS = ("", "", "/", "//", "?a=1", "?utm_source=x", "#A", "#/r", "#:~:text=a", "?")


def test_pages_of_random_addresses_are_those_of_each_alone() -> None:
    draw = Random(7)
    ids = {
        draw.choice(("http://", "https://", "HTTP://", "https:/", "", "d"))
        + draw.choice(HOSTS)
        + "".join("/" + draw.choice(["", *SEGMENTS]) for _ in range(draw.randint(0, 4)))
        + draw.choice(TAILS)
        for _ in range(how_many(5_000, full=25_000))
    }
    column = pl.Series(sorted(ids))
    assert find_pages(column).to_list() == [find_page(one) for one in column]
    assert find_pages(column.clear()).to_list() == []
