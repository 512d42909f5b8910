"""URLs and web identities: what normalising keeps and drops, that nothing a page can write breaks it, that sites stay apart."""

from __future__ import annotations

import csv
import json
import re
import time
from collections import Counter
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goodgain.formats.shared_pages import find_shared_pages
from goodgain.formats.urls import canonicalise_url, find_page, parse_url
from goodgain.formats.web_identities import IDENTITIES, WebIdentity
from goodgain.logs.dedup import deduplicate, normalise_url
from tests.logs.dedup.writing import frame, result
from tests.support.counts import how_many
from tests.support.tables import ROOT

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
    pages = {one: page for one in ids if (page := find_page(one)) is not None}
    times = Counter(pages.values())
    shared = {one: page for one, page in pages.items() if times[page] > 1}
    column = pl.Series(sorted(ids))

    assert len(shared) > 100
    assert dict(find_shared_pages(column).rows()) == shared
    assert find_shared_pages(column.clear()).is_empty()


#: Name -> a pattern of ids, and the addresses that people write for an id.
_WRITTEN = ADDRESSES["identities"]


def _item(url: str) -> str:
    parsed = parse_url(url if "://" in url[:8] else "https://" + url)
    assert parsed is not None
    return parsed.item


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda identity: identity.name)
def test_the_examples_of_a_declaration_are_documents_as_it_says(identity: WebIdentity) -> None:
    for pair, documents in ((identity.same, 1), (identity.different, 2)):
        deduplication = deduplicate(frame([result(url=url, title="One title of two pages") for url in pair]))
        assert deduplication.frame["document"].n_unique() == documents, pair


def test_every_declaration_has_ids_to_draw() -> None:
    assert [identity.name for identity in IDENTITIES] == [*_WRITTEN]


@pytest.mark.parametrize("name", _WRITTEN)
@settings(max_examples=how_many(10, full=80), deadline=None)
@given(data=st.data())
def test_all_spellings_of_an_id_are_one_and_different_ids_stay_apart(name: str, data: st.DataObject) -> None:
    one_id = st.from_regex(re.compile(_WRITTEN[name]["ids"], re.ASCII), fullmatch=True)
    ids = data.draw(st.lists(one_id, min_size=2, max_size=2, unique=True))
    items = [{_item(template.replace("{}", one)) for template in _WRITTEN[name]["spellings"]} for one in ids]
    assert [len(one) for one in items] == [1, 1], items
    assert (items[0] == items[1]) is (ids[0] == ids[1])
    for (address,) in items:
        assert _item(address) == address  # the canonical address is its own


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda identity: identity.name)
def test_a_host_that_looks_alike_is_another_site(identity: WebIdentity) -> None:
    for url in (*identity.same, *identity.different):
        rest = url.partition("://")[2]
        host, _, path = rest.partition("/")
        name = host.rsplit(".", 2)
        others = [
            ".".join([*name[:-2], "not" + name[-2], name[-1]]) + f"/{path}",
            f"{host}.evil.test/{path}",
            f"{host}@evil.test/{path}",
            f"{host}:8443/{path}",
        ]
        others += [f"evil.test/{rest}", f"evil.test/?u={rest}", f"evil.test/#{rest}", f"{host}-evil.test/{path}"]
        assert not {_item(url), _item(rest)} & {_item(other) for other in others}


_HOSTS = sorted(
    {host.replace("*", "en") for one in IDENTITIES for line in one.spellings for host in line.split()[0].split("|")}
)


@settings(max_examples=how_many(100, full=1_200), deadline=None)
@given(st.sampled_from(_HOSTS), st.lists(st.sampled_from(ADDRESSES["parts"]) | st.text(max_size=3), max_size=12))
def test_a_malformed_address_of_a_known_site_is_handled(host: str, parts: list[str]) -> None:
    url = f"https://{host}/" + "".join(parts)
    once = normalise_url(url)
    assert once is None or normalise_url(once) == once
    parsed = parse_url(url)
    assert parsed is None or parse_url(parsed.normalised) == parsed


def test_wrappers_within_each_other_are_removed_up_to_a_limit() -> None:
    reader = "https://r.jina.ai/"
    assert _item(reader * 5 + "https://a.test/p") == "a.test/p"
    deep = reader * 6 + "https://a.test/p"
    assert normalise_url(deep) == deep
    assert normalise_url(reader * 50_000) is not None
    for empty in ("javascript:alert(1)", "https://", "data:text/html,x.y"):
        outer = f"https://www.google.com/url?q={empty}"
        assert _item(outer) == outer.removeprefix("https://www.")


def test_no_pattern_of_a_known_site_backtracks() -> None:
    texts = [
        part * (20_000 // len(part))
        for part in ("/a", "a", ".", "a.", ".pdf", "/full", "1", "/10.1145/1", "-", "/dp/B000000001")
    ]
    texts += [
        "/pdf/" + "1" * 20_000,
        "/doi/10.1145/" + "/full" * 4_000 + "\n",
        "/x?v=" + "a" * 20_000,
        "/wiki/" + "%41" * 7_000,
    ]
    hosts = {line.split("|")[0].split()[0].replace("*", "en") for identity in IDENTITIES for line in identity.spellings}
    for text in texts:
        ordinary = _measure("ordinary.test", text)
        slowest = max((_measure(host, text), host) for host in hosts)
        assert slowest[0] < 50 * ordinary + 0.05, (slowest, text[:20])  # a pattern that backtracks takes seconds


def _measure(host: str, text: str) -> float:
    start = time.process_time()
    parse_url(f"https://{host}{text}")
    return time.process_time() - start


_PAIRS = ROOT.parent / "shared" / "traces" / "turn4" / "url_pairs.csv"


@pytest.mark.skipif(not _PAIRS.exists(), reason="the pairs are beside the repository on some machines only")
def test_the_pairs_beside_the_repository() -> None:
    with _PAIRS.open(encoding="utf-8") as lines:
        rows = [*csv.DictReader(lines)]
    joined = {row["what"]: _item(row["url_a"]) == _item(row["url_b"]) for row in rows}
    assert sum(not joined[row["what"]] for row in rows if row["same"] == "1") <= 2
    assert not [row["what"] for row in rows if row["same"] == "0" and joined[row["what"]]]


def test_parameters_are_in_lower_case_and_groups_fill_the_canonical_address() -> None:
    for identity in IDENTITIES:
        wanted = set(re.findall(r"\{(\w+)\}", identity.canonical)) - {"host"}
        for spelling in identity.spellings:
            parameters = {part.partition("=")[0] for part in spelling.split()[2:]}
            assert wanted <= {*re.findall(r"\?P<(\w+)>", spelling), *parameters}
            assert parameters == {name.lower() for name in parameters}
