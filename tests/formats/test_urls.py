"""URLs: what normalising keeps and drops, that nothing a page can write breaks it, and the pages of many ids at once."""

import json
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goodgain.formats.urls import canonicalise_url, find_page, find_pages, parse_url
from goodgain.logs.dedup import normalise_url
from tests.support.counts import how_many

ADDRESSES = json.loads(Path(__file__).with_name("addresses.json").read_text())


@pytest.mark.parametrize("url", ADDRESSES["normalised"])
def test_a_url_is_normalised(url: str) -> None:
    assert normalise_url(url) == ADDRESSES["normalised"][url]


@pytest.mark.parametrize("url", [None, *ADDRESSES["no page"]])
def test_what_is_no_place_has_no_url(url: str | None) -> None:
    assert normalise_url(url) is None


_URLISH = st.text(alphabet="abz%/?#&=;:@.+~ []()!\\\té字\u202e19-2fF", max_size=40)
_SCHEMES = st.sampled_from(["http://", "https://example.org/", "//", "", "file:", "x:", "javascript:", "https://a@b:c"])


@settings(max_examples=how_many(60, full=250))
@given(_SCHEMES, _URLISH)
@example("http://", "a\ud800b")
@example("https://", "ex%61mple.org/%%41")
def test_normalising_again_changes_nothing(scheme: str, rest: str) -> None:
    once = normalise_url(scheme + rest)
    assert once is None or normalise_url(once) == once


@pytest.mark.parametrize("canonical", ADDRESSES["canonical"])
def test_all_spellings_have_one_canonical_address(canonical: str) -> None:
    one = canonicalise_url(canonical)
    assert {canonicalise_url(url) for url in ADDRESSES["canonical"][canonical]} == {one}
    assert one == canonical.replace("org/#", "org#")


@settings(max_examples=how_many(60, full=600))
@given(st.sampled_from(["http://", "https://example.org/", "//m.example.org/", "https://example.org/a/amp/"]), _URLISH)
@example("http://example.org:443/a", "")
@example("http://en.m.m.example.org/amp/amp/index.html", "/index.html")
def test_a_canonical_address_is_its_own(scheme: str, rest: str) -> None:
    once = canonicalise_url(scheme + rest)
    assert once is None or canonicalise_url(once) == once


@given(st.text(max_size=60))
def test_any_text_is_handled(text: str) -> None:
    parse_url(text)


def test_ten_thousand_parameters_are_sorted_and_cleaned() -> None:
    url = "https://example.org/a?" + "&".join(f"p{n}={n}&utm_x{n}=1" for n in reversed(range(10_000)))
    normal = normalise_url(url)
    assert normal is not None
    assert normal.count("&") == 9_999
    assert "utm_" not in normal


def test_a_homograph_is_another_host() -> None:
    assert normalise_url("https://\u0430pple.example/") != normalise_url("https://apple.example/")


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
