"""Web identities: each declaration holds for its examples and for drawn ids, and no address of another host or form joins."""

import csv
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.formats.urls import parse_url
from goodgain.formats.web_identities import IDENTITIES, WebIdentity
from goodgain.logs.dedup import deduplicate, normalise_url
from tests.logs.dedup.writing import frame, result
from tests.support.counts import how_many
from tests.support.tables import ROOT

#: Name -> a pattern of ids, and what people write for one.
_WRITTEN = {
    "arXiv paper": (
        r"(0[7-9]|1\d|2[0-6])(0[1-9]|1[0-2])\.\d{5}|(cs|math|hep-th)/\d{7}",
        "arxiv.org/abs/{} http://www.arxiv.org/abs/{}v3 arxiv.org/pdf/{} arxiv.org/pdf/{}v12.pdf arxiv.org/html/{}v1#S3.SS1 "
        "export.arxiv.org/abs/{}?context=cs ar5iv.org/abs/{} ar5iv.labs.arxiv.org/html/{} huggingface.co/papers/{} "
        "doi.org/10.48550/arXiv.{} r.jina.ai/https://arxiv.org/pdf/{}v2",
    ),
    "ACL Anthology paper": (
        r"[A-Z]\d\d-[1-9]\d{3}|20[12]\d\.(acl-main|findings-emnlp|tacl-1)\.[1-9]\d{0,2}",
        "aclanthology.org/{} aclanthology.org/{}/ aclanthology.org/{}.pdf aclanthology.org/{}v2.pdf aclweb.org/anthology/{} "
        "doi.org/10.18653/v1/{}",
    ),
    "bioRxiv or medRxiv paper": (
        r"10\.(1101|64898)/(20\d\d\.0\d\.1\d\.)?\d{6,8}",
        "biorxiv.org/content/{} biorxiv.org/content/{}v1 medrxiv.org/content/{}v2.full medrxiv.org/content/{}v2.full.pdf "
        "biorxiv.org/content/{}v3.full#F1 doi.org/{} dx.doi.org/{}",
    ),
    "DOI": (
        r"10\.1(145|002|007)/[a-z0-9]{1,9}(\.[0-9]{1,7}|[(]1[)]|-2_1)?",
        "doi.org/{} http://dx.doi.org/{} dl.acm.org/doi/{} dl.acm.org/doi/abs/{} dl.acm.org/doi/pdf/{} "
        "asistdl.onlinelibrary.wiley.com/doi/full/{} tandfonline.com/doi/full/{}?src=recsys link.springer.com/article/{} "
        "link.springer.com/content/pdf/{}.pdf link.springer.com/chapter/{}#Sec1 journals.plos.org/plosone/article?id={}",
    ),
    "PubMed record": (
        r"[1-9]\d{0,7}",
        "pubmed.ncbi.nlm.nih.gov/{}/ pubmed.ncbi.nlm.nih.gov/{}/?from=x ncbi.nlm.nih.gov/pubmed/{}",
    ),
    "PMC article": (
        r"[1-9]\d{0,7}",
        "pmc.ncbi.nlm.nih.gov/articles/PMC{}/ ncbi.nlm.nih.gov/pmc/articles/PMC{} ncbi.nlm.nih.gov/pmc/articles/PMC{}/pdf/a.pdf "
        "pmc.ncbi.nlm.nih.gov/articles/PMC{}/#S2",
    ),
    "OpenReview paper": (
        r"[A-Za-z0-9_-]{8,12}",
        "openreview.net/forum?id={} openreview.net/pdf?id={} openreview.net/forum?noteId=a&id={}",
    ),
    "YouTube video": (
        r"[a-zA-Z0-9_-]{11}",
        "youtube.com/watch?v={} m.youtube.com/watch?t=4s&v={}&list=PL1 youtu.be/{} youtu.be/{}?si=x youtube.com/embed/{}?start=3 "
        "youtube-nocookie.com/embed/{} youtube.com/shorts/{} youtube.com/live/{}",
    ),
    "old version of a wiki page": (
        r"[1-9]\d{0,9}",
        "en.wikipedia.org/w/index.php?title=A_b&oldid={} en.wikipedia.org/w/index.php?oldid={} "
        "en.m.wikipedia.org/wiki/A_b?oldid={}",
    ),
    "wiki page by number": (
        r"[1-9]\d{0,9}",
        "en.wikipedia.org/?curid={} en.wikipedia.org/w/index.php?curid={} en.m.wikipedia.org/?curid={}",
    ),
    "Wikipedia page": (
        r"[A-Z][a-z]{1,8}((_|,_|:)[A-Z][a-z]{1,5}|_[(]x[)]|/A|é){0,2}",
        "en.wikipedia.org/wiki/{} en.m.wikipedia.org/wiki/{}#History en.wikipedia.org/w/index.php?title={} "
        "en.wikipedia.org/wiki/{}?wprov=sfla1 web.archive.org/web/20200101/https://en.wikipedia.org/wiki/{}",
    ),
    "GitHub file": (
        r"(main|dev|v1\.2)/[a-zA-Z]{1,8}(\.md|/a\.py|/index\.html)",
        "github.com/o/r/blob/{} github.com/O/r/blob/{}#L10-L20 github.com/o/r/raw/{} github.com/o/r/blob/{}?plain=1 "
        "raw.githubusercontent.com/o/r/{}",
    ),
    "GitHub repository": (
        r"[a-z][a-z0-9]{0,5}/[a-z][a-z0-9_.]{0,5}[a-z]x",
        "github.com/{} github.com/{}/ github.com/{}.git github.com/{}?tab=readme-ov-file github.com/{}#readme",
    ),
    "Stack Exchange question": (
        r"[1-9]\d{0,8}",
        "stackoverflow.com/q/{} stackoverflow.com/q/{}/77 stackoverflow.com/questions/{} stackoverflow.com/questions/{}/how-to "
        "stackoverflow.com/questions/{}/how-to/99#99 stackoverflow.com/questions/{}/how-to?rq=1",
    ),
    "Stack Exchange answer": (r"[1-9]\d{0,8}", "stackoverflow.com/a/{} stackoverflow.com/a/{}/77"),
    "Reddit comment": (
        r"[a-z0-9]{5,7}",
        "reddit.com/r/x/comments/1abc/title/{}/ old.reddit.com/r/x/comments/1abc/title/{} reddit.com/r/x/comments/1abc/comment/{}/",
    ),
    "Reddit post": (
        r"[a-z0-9]{5,7}",
        "reddit.com/r/x/comments/{}/a_title/ old.reddit.com/r/x/comments/{}/a_title/ reddit.com/r/x/comments/{}/ "
        "reddit.com/comments/{} redd.it/{} np.reddit.com/r/x/comments/{}/a_title/?share_id=x&context=3",
    ),
    "Amazon product": (
        r"B0[A-Z0-9]{8}|\d{9}[\dX]",
        "amazon.de/dp/{} amazon.de/A-Title/dp/{}/ref=sr_1_1?keywords=x amazon.de/gp/product/{}/ amazon.de/-/en/A-Title/dp/{}?th=1",
    ),
    "X post": (
        r"[1-9]\d{5,18}",
        "x.com/ann/status/{} twitter.com/ann/status/{}?s=20 mobile.twitter.com/ann/status/{} x.com/i/web/status/{} "
        "twitter.com/ann/status/{}/photo/1 twitter.com/ann/statuses/{} twitter.com/#!/ann/status/{}",
    ),
    "X profile": (r"[a-z_]{1,15}", "x.com/{} twitter.com/{} mobile.twitter.com/{}?lang=en twitter.com/#!/{}"),
    "page in an archive, cache or reader": (
        r"[a-z]{1,5}\.test(/[a-z]{1,5}){0,2}(\?id=[1-9])?",
        "{} https://web.archive.org/web/20240101000000/https://{} web.archive.org/web/2024id_/http:/{} web.archive.org/web/{} "
        "a-test.cdn.ampproject.org/c/s/{} a-test.cdn.ampproject.org/v/{} google.com/amp/s/{} r.jina.ai/https://{} "
        "https://r.jina.ai/https://web.archive.org/web/2020/http://{}",
    ),
    "link through a redirect": (
        r"[a-z]{1,5}\.test/[a-z]{1,5}(%3Fid%3D[1-9])?",
        "https://google.com/url?sa=t&q=https://{}&usg=x https://www.google.de/url?url=https%3A%2F%2F{} "
        "https://duckduckgo.com/l/?rut=1&uddg=https%3A%2F%2F{} https://l.facebook.com/l.php?h=x&u=http%3A%2F%2F{}",
    ),
}


def _item(url: str) -> str:
    parsed = parse_url(url if "://" in url[:8] else "https://" + url)
    assert parsed is not None
    return parsed.item


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda identity: identity.name)
def test_the_examples_of_a_declaration_are_documents_as_it_says(identity: WebIdentity) -> None:
    for pair, documents in ((identity.same, 1), (identity.different, 2)):
        found = deduplicate(frame([result(url=url, title="One title of two pages") for url in pair]))
        assert found.frame["document"].n_unique() == documents, pair


def test_every_declaration_has_ids_to_draw() -> None:
    assert [identity.name for identity in IDENTITIES] == [*_WRITTEN]


@pytest.mark.parametrize("name", _WRITTEN)
@settings(max_examples=how_many(10, full=80), deadline=None)
@given(data=st.data())
def test_all_spellings_of_an_id_are_one_and_different_ids_stay_apart(name: str, data: st.DataObject) -> None:
    pattern, templates = _WRITTEN[name]
    ids = data.draw(
        st.lists(st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True), min_size=2, max_size=2, unique=True)
    )
    items = [{_item(template.replace("{}", one)) for template in templates.split()} for one in ids]
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
_PARTS = [
    "/",
    "//",
    "abs",
    "doi",
    "10.1",
    "10.1145",
    "..",
    ".",
    "?",
    "&",
    "=",
    "#",
    "#!/",
    "%",
    "%2F",
    "%zz",
    "%00",
    "é",
    "\ud800",
    "{}",
]
_PARTS += [
    "{host}",
    "url",
    "q=",
    "uddg=",
    "v=",
    "id=",
    "title=",
    "oldid=",
    "https:",
    "javascript:",
    "a.test",
    "web",
    "r.jina.ai",
    "l",
]


@settings(max_examples=how_many(100, full=1_200), deadline=None)
@given(st.sampled_from(_HOSTS), st.lists(st.sampled_from(_PARTS) | st.text(max_size=3), max_size=12))
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
    hosts = {line.split("|")[0].split()[0].replace("*", "en") for one in IDENTITIES for line in one.spellings}
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
