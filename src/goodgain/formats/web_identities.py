"""Normalises hosts and declares web identities: the addresses of one paper, video or product on a well-known site.

A declaration begins with a line `NAME | CANONICAL | DROPS`. Each further line is a spelling, or `=` and two addresses of one
page, or `!` and two addresses of different pages. Tests and docs/reference/web_identities.md use the declarations. Addresses that
identify no page, because they are new for each call, are declared here too.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes


class WebIdentity(NamedTuple):
    """A kind of web page, and the spellings of its addresses.

    Attributes:
        name: the kind of page that the addresses identify.
        canonical: the canonical address without scheme; `{host}` and the named groups of the spelling are filled in. If
            `canonical` is `{url}`, the inner address in the group `url` is read instead.
        spellings: `HOSTS PATH [PARAMETER=VALUE ...]`. Hosts are separated by `|` and have no `www.` or `m.`; `*.` stands for
            subdomains. PATH and VALUE are regular expressions that match the whole path and the whole value. The text that
            VALUE matches is the named group PARAMETER. If several spellings match, the first applies; exact hosts come before `*.`.
        drops: parameters to remove; `*` removes all. Parameters in the spelling are always removed.
        same: an example of two addresses of one page.
        different: an example of two addresses of different pages.
    """

    name: str
    canonical: str
    spellings: tuple[str, ...]
    drops: str
    same: tuple[str, ...]
    different: tuple[str, ...]


def _list_hosts(form: str, names: str) -> str:
    return "|".join(map(form.format, names.split()))


#: Parts of spellings: $NAME in a declaration.
_PARTS = {
    "ARXIV": r"(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d{1,3})?",
    "ACL": r"(?P<id>[A-Z]\d\d-\d{4}|\d{4}\.[a-z\d_]+-[a-z\d]+\.\d+)",
    "PREPRINT": r"(?P<id>10\.(?:1101|64898)/(?:\d{4}\.\d\d\.\d\d\.)?\d{6,8})(?:v\d{1,3})?",
    "DOI": r"(?P<doi>10\.\d{4,9}/[^/].*?)",
    "DOI_VIEW": r"(?:\.pdf|/(?:full|abstract|pdf|epdf|html|meta|fulltext|full/html))?",
    "PUBLISHERS": "dl.acm.org|onlinelibrary.wiley.com|*.onlinelibrary.wiley.com|tandfonline.com|journals.sagepub.com|pubs.acs.org"
    "|science.org|pnas.org|annualreviews.org|royalsocietypublishing.org|nejm.org|epubs.siam.org|liebertpub.com",
    "VIDEO": r"(?P<v>(?!videoseries)[\w-]{11})",
    "REPOSITORY": r"/(?!(?:orgs|users|sponsors)/)(?P<owner>[\w-]+)/(?P<repository>[\w.-]+?)",
    "FILE": r"(?:refs/heads/)?(?P<file>[^/]+/.+)",
    "REDDIT": "reddit.com|*.reddit.com",
    "POST": r"(?:/(?:r|u|user)/[\w-]+)?/comments/(?P<post>[0-9a-z]+)",
    "QUESTIONS": _list_hosts(
        "{0}|*.{0}",
        "mathoverflow.net stackexchange.com stackoverflow.com superuser.com serverfault.com askubuntu.com stackapps.com",
    ),
    "WIKIS": _list_hosts("*.{}.org", "wikipedia wiktionary wikibooks wikiquote wikisource wikinews wikiversity"),
    "GOOGLE": _list_hosts(
        "google.{}", "com de fr es it nl pl at ch be se ca ie pt co.uk co.in co.jp com.au com.br com.mx com.tr"
    ),
    "AMAZON": _list_hosts(
        "amazon.{}", "com de fr es it nl pl se ca ie in eg sa sg ae com.be co.uk co.jp com.au com.br com.mx com.tr"
    ),
    "SITE_AND_PATH": r"(?P<url>(?:https?:/+)?[^/]+\.[^/]+(?:/.*)?)",
    "CARRIED": r"(?P<url>https?(?::|%3A)(?:/|%2F){1,2}.+)",
}

_DECLARATIONS = r"""
arXiv paper | arxiv.org/abs/{id} | *
arxiv.org|export.arxiv.org|browse.arxiv.org /(?:abs|pdf|html)/$ARXIV(?:\.pdf)?
ar5iv.org|ar5iv.labs.arxiv.org /(?:abs|html)/$ARXIV
huggingface.co|hf.co /papers/$ARXIV
doi.org|dx.doi.org /10\.48550/(?i:arxiv)\.$ARXIV
= https://arxiv.org/abs/2507.16725 https://export.arxiv.org/pdf/2507.16725v2.pdf
! https://arxiv.org/abs/2507.16725 https://arxiv.org/abs/2507.16726

ACL Anthology paper | aclanthology.org/{id} | *
aclanthology.org|aclweb.org (?:/anthology)?/$ACL(?:v\d+)?(?:\.pdf)?
doi.org|dx.doi.org /10\.18653/v1/$ACL
= https://aclanthology.org/P19-1001/ https://www.aclweb.org/anthology/P19-1001.pdf
! https://aclanthology.org/2020.acl-main.1 https://aclanthology.org/2020.acl-main.10

bioRxiv or medRxiv paper | doi.org/{id} | *
biorxiv.org|medrxiv.org /content/$PREPRINT(?:\.(?:abstract|full|full-text|full\.pdf|article-info))?
doi.org|dx.doi.org /$PREPRINT
= https://www.biorxiv.org/content/10.1101/2020.01.02.123456v2.full.pdf https://doi.org/10.1101/2020.01.02.123456
! https://www.medrxiv.org/content/10.1101/2020.01.02.20123456v1 https://www.medrxiv.org/content/10.1101/2020.01.02.20123457v1

DOI | doi.org/{doi} | *
doi.org|dx.doi.org /$DOI
$PUBLISHERS /doi/(?:(?:abs|full|pdf|epdf|pdfplus|pdfdirect|full-xml|book)/)?$DOI$DOI_VIEW
link.springer.com /(?:article|chapter|book|content/pdf)/$DOI$DOI_VIEW
frontiersin.org|iopscience.iop.org /(?:articles?|journals/[\w-]+/articles)/$DOI$DOI_VIEW
journals.plos.org /[a-z]+/article(?:/file)? id=(?P<doi>10\.\d{4,9}(?:/|%2F).+)
= https://doi.org/10.1145/3341981.3344216 https://dl.acm.org/doi/pdf/10.1145/3341981.3344216
! https://doi.org/10.1145/3341981.3344216 https://dl.acm.org/doi/10.1145/3341981.3344217

PubMed record | pubmed.ncbi.nlm.nih.gov/{id} | *
pubmed.ncbi.nlm.nih.gov /(?P<id>\d{1,9})
ncbi.nlm.nih.gov (?:/m)?/pubmed/(?P<id>\d{1,9})
= https://pubmed.ncbi.nlm.nih.gov/12345678/ https://www.ncbi.nlm.nih.gov/pubmed/12345678
! https://pubmed.ncbi.nlm.nih.gov/12345678/ https://www.ncbi.nlm.nih.gov/pubmed/1234567

PMC article | pmc.ncbi.nlm.nih.gov/articles/PMC{id} | *
pmc.ncbi.nlm.nih.gov|ncbi.nlm.nih.gov (?:/pmc)?/articles/(?:PMC)?(?P<id>\d{1,9})(?:/pdf(?:/[^/]*)?)?
= https://www.ncbi.nlm.nih.gov/pmc/articles/PMC123456/pdf/main.pdf https://pmc.ncbi.nlm.nih.gov/articles/PMC123456/
! https://pmc.ncbi.nlm.nih.gov/articles/PMC123456/ https://pubmed.ncbi.nlm.nih.gov/123456/

OpenReview paper | openreview.net/forum?id={id} | *
openreview.net /(?:forum|pdf) id=[\w-]+
= https://openreview.net/forum?id=aB3-x_9Zk1 https://openreview.net/pdf?id=aB3-x_9Zk1
! https://openreview.net/forum?id=aB3-x_9Zk1 https://openreview.net/forum?id=aB3-x_9ZK1

YouTube video | youtube.com/watch?v={v} | *
youtube.com|music.youtube.com /watch v=[\w-]{11}
youtube.com|youtube-nocookie.com /(?:embed|shorts|live|v)/$VIDEO
youtu.be /$VIDEO
= https://www.youtube.com/watch?v=abcdefghijk&t=42s https://youtu.be/abcdefghijk
! https://www.youtube.com/watch?v=abcdefghijk https://www.youtube.com/watch?v=abcdefghijK

old version of a wiki page | {host}/w/index.php?oldid={oldid} | title
$WIKIS (?:/w/index\.php|/wiki/.+) oldid=\d+
= https://en.wikipedia.org/wiki/Tower?oldid=12 https://en.wikipedia.org/w/index.php?title=Tower&oldid=12
! https://en.wikipedia.org/wiki/Tower?oldid=12 https://en.wikipedia.org/wiki/Tower

wiki page by number | {host}/w/index.php?curid={curid} | title wprov
$WIKIS (?:|/w/index\.php|/wiki/.+) curid=\d+
= https://en.wikipedia.org/?curid=12 https://en.wikipedia.org/w/index.php?curid=12
! https://en.wikipedia.org/?curid=12 https://de.wikipedia.org/?curid=12

Wikipedia page | {host}/wiki/{title} | wprov useskin
$WIKIS /wiki/(?P<title>.+)
$WIKIS /w/index\.php title=.+
= https://en.m.wikipedia.org/wiki/Eiffel_Tower https://en.wikipedia.org/w/index.php?title=Eiffel+Tower
! https://en.wikipedia.org/wiki/Paris https://en.wikipedia.org/wiki/Talk:Paris

GitHub file | github.com/{owner}/{repository}/blob/{file} | raw plain tab token
github.com $REPOSITORY/(?:blob|raw)/$FILE
raw.githubusercontent.com $REPOSITORY/$FILE
= https://github.com/o/r/blob/main/README.md#L7 https://raw.githubusercontent.com/o/r/main/README.md
! https://github.com/o/r/blob/main/README.md https://github.com/o/r/blob/dev/README.md

GitHub repository | github.com/{owner}/{repository} | tab
github.com $REPOSITORY(?:\.git)?
= https://github.com/o/r?tab=readme-ov-file#use https://github.com/O/r.git
! https://github.com/o/r https://github.com/o/r/issues

Stack Exchange question | {host}/questions/{id} | rq lq noredirect newreg answertab
$QUESTIONS /(?:q|questions)/(?P<id>\d+)(?:/.*)?
= https://stackoverflow.com/q/17/321 https://stackoverflow.com/questions/17/how-to?rq=1
! https://math.stackexchange.com/q/17 https://physics.stackexchange.com/q/17

Stack Exchange answer | {host}/a/{id} |
$QUESTIONS /a/(?P<id>\d+)(?:/\d+)?
= https://stackoverflow.com/a/23/321 https://stackoverflow.com/a/23
! https://stackoverflow.com/a/23 https://stackoverflow.com/q/23

Reddit comment | reddit.com/comments/{post}/comment/{comment} | *
$REDDIT $POST/[^/]+/(?P<comment>[0-9a-z]+)
= https://old.reddit.com/r/x/comments/1abc/title/k2d/?context=3 https://reddit.com/comments/1abc/comment/k2d
! https://reddit.com/r/x/comments/1abc/title/k2d https://reddit.com/r/x/comments/1abc/title/

Reddit post | reddit.com/comments/{post} | *
$REDDIT $POST(?:/[^/]+)?
redd.it /(?P<post>[0-9a-z]+)
= https://old.reddit.com/r/x/comments/1abc/title/?share_id=Zk1 https://redd.it/1abc
! https://reddit.com/r/x/comments/1abc/title/ https://reddit.com/r/x/comments/1abd/title/

Amazon product | {host}/dp/{asin} | *
$AMAZON (?:/[^/]+){0,3}/(?:dp|gp/product|gp/aw/d|exec/obidos/asin)/(?P<asin>[0-9A-Za-z]{10})(?:/ref=.*)?
= https://www.amazon.com/Some-Title/dp/B000000001/ref=sr_1_1 https://amazon.com/gp/product/B000000001?psc=1
! https://www.amazon.com/dp/B000000001 https://www.amazon.de/dp/B000000001

X post | x.com/i/status/{id} | *
x.com|twitter.com (?:#!)?/(?:\w+|i/web)/status(?:es)?/(?P<id>\d+)(?:/(?:photo|video)/\d)?
= https://twitter.com/ann/status/1234567890?s=20 https://x.com/i/web/status/1234567890/photo/1
! https://x.com/ann/status/1234567890 https://x.com/ann/status/1234567891

X profile | x.com/{owner} | s t lang
x.com|twitter.com (?:#!)?/(?P<owner>\w{1,15})
= https://mobile.twitter.com/Ann https://x.com/ann
! https://x.com/ann https://x.com/bob

page in an archive, cache or reader | {url} |
web.archive.org /web/(?:\d{4,14}(?:[a-z]{2}_)?/)?$SITE_AND_PATH
*.cdn.ampproject.org /[a-z]/(?:s/)?$SITE_AND_PATH
$GOOGLE /amp/(?:s/)?$SITE_AND_PATH
r.jina.ai /$SITE_AND_PATH
= https://web.archive.org/web/20240101000000/https://a.test/p/one https://a-test.cdn.ampproject.org/c/s/a.test/p/one
! https://r.jina.ai/https://a.test/p?id=1 https://r.jina.ai/https://a.test/p?id=2

link through a redirect | {url} | *
$GOOGLE /url q=$CARRIED
$GOOGLE /url url=$CARRIED
duckduckgo.com /l uddg=$CARRIED
l.facebook.com|lm.facebook.com /l\.php u=$CARRIED
youtube.com /redirect q=$CARRIED
= https://www.google.com/url?q=https://a.test/p/one&sa=U https://duckduckgo.com/l/?uddg=https%3A%2F%2Fa.test%2Fp%2Fone
! https://www.google.com/url?q=https://a.test/p/one https://www.google.com/url?q=https://a.test/p/two
"""


def _read_declaration(text: str) -> WebIdentity:
    text = re.sub(r"\$([A-Z_]+)", lambda match: _PARTS[match[1]], text)
    head, *spellings, same, different = text.strip().splitlines()
    name, canonical, drops = map(str.strip, head.split("|"))
    return WebIdentity(name, canonical, tuple(spellings), drops, tuple(same.split()[1:]), tuple(different.split()[1:]))


IDENTITIES = tuple(map(_read_declaration, _DECLARATIONS.split("\n\n")))

#: The prefix of one-time addresses: Google's search tool creates a new address of the same page for each call.
ONE_TIME_ADDRESS = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"

#: Case-insensitive groups.
_CASELESS = frozenset({"doi", "owner", "repository"})
_SAFE = "/!$'()*,:;@+&=~"
#: Texts that `_write` need not decode and encode.
_PLAIN = re.compile(r"[A-Za-z0-9_.\-~/!$'()*,:;@+&=]*")
_DOTS = re.compile(r"/\.\.?(?:/|$)")


class Rule(NamedTuple):
    """A rule that recognises one spelling of a URL: a pattern of the path, and patterns of parameters."""

    identity: WebIdentity
    path: str
    values: dict[str, str]


#: A canonical address without scheme, or an inner address; the parameters to keep; whether the address is an inner address.
Identity = tuple[str, list[str], bool]

#: Host -> its rules.
_RULES: dict[str, list[Rule]] = {}
for _identity in IDENTITIES:
    for _hosts, _path, *_values in map(str.split, _identity.spellings):
        _rule = Rule(_identity, _path, dict(value.split("=", 1) for value in _values))
        for _host in _hosts.split("|"):
            _RULES.setdefault(_host, []).append(_rule)


def _find_rules(labels: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules for a host, given by its labels: of the whole host first, then of its last three or two labels (`*.`)."""
    names = [".".join(labels)]
    names += ["*." + ".".join(labels[-count:]) for count in (2, 3) if len(labels) > count]
    return tuple(rule for name in names for rule in _RULES.get(name, ()))


def identify(rules: Iterable[Rule], host: str, path: str, parameters: list[str]) -> Identity | None:
    """Apply the first matching rule to an address and return `Identity`; None if no rule matches."""
    values = {}
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        values[name.lower()] = value

    for identity, path_form, forms in rules:
        path_match = _compile(path_form).fullmatch(path)
        if path_match is None:
            continue
        value_matches = [_compile(form).fullmatch(values.get(name, "")) for name, form in forms.items()]
        if None in value_matches:
            continue

        matches = [path_match, *filter(None, value_matches)]
        carries = identity.canonical == "{url}"
        if carries:
            inner_url = matches[-1]["url"]
            address = unquote(inner_url, errors="surrogateescape") if forms else inner_url
        else:
            groups = {name: _write(name, value) for match in matches for name, value in match.groupdict("").items()}
            groups |= {name: _write(name, values[name].replace("+", "%20")) for name in forms}
            address = identity.canonical.format(host=host, **groups)
            if _DOTS.search(address):
                return None
        drops = {*identity.drops.split(), *forms}
        if "*" in drops:
            return address, [], carries
        further = [parameter for parameter in parameters if parameter.partition("=")[0].lower() not in drops]
        return address, further, carries
    return None


@cache
def _compile(form: str) -> re.Pattern[str]:
    """Compile a pattern on first use: compiling all patterns takes 14 ms."""
    return re.compile(form, re.ASCII)


def _write(name: str, value: str) -> str:
    """Return a value as a canonical address has it: escaped in one way, case-insensitive groups in lower case, `_` in titles."""
    if _PLAIN.fullmatch(value):
        return value.lower() if name in _CASELESS else value
    text = unquote_to_bytes(value)
    if name in _CASELESS:
        text = text.lower()
    if name == "title":
        text = text.replace(b" ", b"_")
    return quote(text, safe=_SAFE)


#: Labels of hosts that show the same site in another view.
_VIEW_LABELS = frozenset({"www", "m", "mobile", "amp"})
_HOST = re.compile(r"[a-z0-9._~\-]+|\[[0-9a-f:.]+\]")
_PORT = re.compile(r":([0-9]*)$")
_DEFAULT_PORTS = {"http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}


@lru_cache(maxsize=65_536)
def normalise_host(netloc: str, scheme: str) -> tuple[str, str, tuple[Rule, ...]]:
    """Return three things: authority without user information and default port, host without www and m, and rules for the host.

    Raises ValueError for an impossible host.
    """
    if not netloc:
        return "", "", ()
    name, port = netloc.rpartition("@")[2], ""
    port_match = _PORT.search(name)
    if port_match:
        name = name[: port_match.start()]
        port = port_match[1].lstrip("0")
    if port == _DEFAULT_PORTS.get(scheme):
        port = ""
    name = _encode_host(name).rstrip(".")
    if not name:
        return "", "", ()
    if _HOST.fullmatch(name) is None:
        raise ValueError(name)

    labels = name.split(".")
    while len(labels) > 2 and labels[0] in _VIEW_LABELS:
        del labels[0]
    while len(labels) > 3 and labels[1] == "m":  # en.m.wikipedia.org
        del labels[1]
    bare_host = ".".join(labels)
    if not port:
        return name, bare_host, _find_rules(labels)
    if port in ("80", "443") and scheme in ("http", "https"):  # https on port 80, or http on port 443
        return f"{name}:{port}", bare_host, _find_rules(labels)
    return f"{name}:{port}", f"{bare_host}:{port}", ()


def _encode_host(name: str) -> str:
    """Return a host in lower case, and a name with other letters than ASCII in Punycode."""
    if "%" in name:
        name = unquote(name, errors="strict")
    if name.isascii():
        return name.lower()
    import idna  # large tables, needed for few hosts

    try:
        return idna.encode(name, uts46=True, transitional=False).decode("ascii")
    except idna.IDNAError:
        return name.lower().encode("idna").decode("ascii")  # symbols: browsers use the older standard for them
