"""URLs: what normalising keeps and drops, and that nothing a page can write breaks it."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goodgain.formats.urls import canonicalise_url, parse_url
from goodgain.logs.dedup import normalise_url
from tests.support.counts import how_many

NORMALISED = {
    "HTTP://Example.ORG:80/%7Eann/?b=2&utm_source=x&a=1": "http://example.org/~ann/?a=1&b=2",
    "https://ann:pw@example.org:443/": "https://example.org/",
    "https://example.org:8443/a": "https://example.org:8443/a",
    "https://example.org": "https://example.org/",
    "https://example.org/a;jsessionid=0A1B?x=1": "https://example.org/a?x=1",
    "https://example.org/(S(lit3py55t21z5v55vlm25s55))/a.aspx": "https://example.org/a.aspx",
    "https://example.org/a%2fb%C3%A9": "https://example.org/a%2Fb%C3%A9",
    "https://example.org/é?q=é": "https://example.org/%C3%A9?q=%C3%A9",
    "https://example.org/%21%24%27%28%29%2A%2C%3A%3B%40": "https://example.org/!$'()*,:;@",
    "https://example.org/a?x=%21%2A": "https://example.org/a?x=%21%2A",
    "https://example.org/a?gclid=1&fbclid=2&msclkid=3&ref_src=4": "https://example.org/a",
    "https://example.org/a?sid=123": "https://example.org/a?sid=123",
    "https://example.org/a?page=1": "https://example.org/a?page=1",
    "https://example.org/a?utm%5Fsource=x": "https://example.org/a",
    "https://example.org/a#b": "https://example.org/a#b",
    "https://example.org/a#:~:text=b": "https://example.org/a",
    "https://пример.example/": "https://xn--e1afmkfd.example/",
    "https://EXAMPLE.org./a": "https://example.org/a",
    "http://[2001:DB8::1]:80/a": "http://[2001:db8::1]/a",
    "https://example.org/100%/%zz": "https://example.org/100%25/%25zz",
    "https://example.org/a b": "https://example.org/a%20b",
    "http:\\\\example.org\\a": "http://example.org/a",
    "mailto:ann@example.org": "mailto:ann@example.org",
    "/docs/a.md": "/docs/a.md",
}

NO_PLACE = [
    "javascript:alert(1)", " JaVaScRiPt:alert(1)", "java\nscript:alert(1)", "data:text/html,<b>x</b>", "about:blank",
    "vbscript:x", "blob:https://example.org/1", "", " ", "#", "/", "http://", "https:///",
]  # fmt: skip


@pytest.mark.parametrize("url", NORMALISED)
def test_a_url_is_normalised(url: str) -> None:
    assert normalise_url(url) == NORMALISED[url]


@pytest.mark.parametrize("url", NO_PLACE)
def test_what_is_no_place_has_no_url(url: str) -> None:
    assert normalise_url(url) is None


def test_none_stays_none() -> None:
    assert normalise_url(None) is None


_URLISH = st.text(alphabet="abz%/?#&=;:@.+~ []()!\\\té字\u202e19-2fF", max_size=40)
_SCHEMES = st.sampled_from(["http://", "https://example.org/", "//", "", "file:", "x:", "javascript:", "https://a@b:c"])


@settings(max_examples=how_many(60, full=250))
@given(_SCHEMES, _URLISH)
@example("http://", "a\ud800b")
@example("https://", "ex%61mple.org/%%41")
def test_normalising_again_changes_nothing(scheme: str, rest: str) -> None:
    once = normalise_url(scheme + rest)
    assert once is None or normalise_url(once) == once


CANONICAL = {
    "https://example.org/a": """http://example.org/a https://www.example.org/a/ m.example.org/a https://example.org/a/index.html
        https://example.org:443/a http://example.org:80/a#top https://example.org/a?utm_source=x https://amp.example.org/a/amp
        https://example.org/a#:~:text=b https://mobile.example.org/a?page=1 HTTPS://Example.ORG./%61""",
    "https://example.org": "http://www.example.org/ example.org/index.php https://example.org#top",
    "https://example.org/#/b": "https://example.org/#/b/",
    "https://example.org#!b": "http://example.org/#!b",
    "https://example.org:8443/A?id=2": "http://www.example.org:8443/A/?id=2",
    "https://a.test/p?x=1": "https://web.archive.org/web/2024/http://www.a.test/p/?x=1 https://google.com/url?q=http://a.test/p%3Fx=1",
}


@pytest.mark.parametrize("canonical", CANONICAL)
def test_all_spellings_have_one_canonical_address(canonical: str) -> None:
    one = canonicalise_url(canonical)
    assert {canonicalise_url(url) for url in CANONICAL[canonical].split()} == {one}
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
