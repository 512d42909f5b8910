"""Normalises URLs, finds their canonical addresses, and separates content parameters from tracking parameters."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import parse_qs

import polars as pl

from goodgain.formats.web_identities import Identity, identify, normalise_host


class Url(NamedTuple):
    """The forms of one URL.

    Attributes:
        normalised: a URL that still leads to the page.
        page: host and path without the folders in `edition`. URLs with the same page may be duplicates.
        item: host, path, and all parameters except tracking parameters.
        anchor: the anchor, such as `#history`; empty if the URL has none. URLs with the same item and anchor have the same content.
        choice: the parameters that select content.
        edition: the folders that select a language or version of documentation, such as `/en/latest`.
        beyond_start: false for the URL of a start page, with a path such as `/` or `/home`.
    """

    normalised: str
    page: str
    item: str
    anchor: str
    choice: str
    edition: str
    beyond_start: bool

    @property
    def address(self) -> str:
        return self.item + self.anchor

    @property
    def canonical(self) -> str:
        """The canonical address: `https://` and `address` for valid http and https URLs, and `normalised` for all others."""
        is_web = self.normalised.startswith(("http://", "https://")) and self.item != self.normalised
        return f"https://{self.address}" if is_web else self.normalised


#: Parameters that identify the visitor or the referring page, and never select content.
_TRACKING = frozenset(
    """
    gclid gclsrc dclid wbraid gbraid fbclid msclkid yclid ysclid twclid ttclid li_fat_id igshid igsh epik rdt_cid
    srsltid mc_cid mc_eid mkt_tok ref_src ref_url _ga _gl _gac _hsenc _hsmi __hstc __hssc __hsfp hsctatracking
    vero_id vero_conv oly_enc_id oly_anon_id wt_mc wt.mc_id s_cid cmpid zanpid spm trk trkcampaign rb_clickid
    __s _openstat _branch_match_id ga_source ga_medium ga_campaign ga_term ga_content click_id clickid
    jsessionid phpsessid sessionid session_id aspsessionid cfid cftoken zenid oscsid
    """.split()  # noqa: SIM905 - a table of words reads better as text
)
_TRACKING_PREFIXES = ("utm_", "pk_", "mtm_", "piwik_", "matomo_", "hsa_", "aspsessionid", "ml_subscriber")

#: Names of sessions on some sites and of articles on others. The value of a session is a token.
_SESSION_IF_TOKEN = frozenset({"sid", "session", "s", "token", "sess"})
_TOKEN = re.compile(r"(?=.*\d)(?:[0-9A-Za-z_-]{16,}|(?=.*[A-Za-z])[0-9A-Za-z]{8,})")

#: Parameters that select content: different values are different pages.
_SELECTING = frozenset(
    """
    id p page v article item doc q lang version
    article_id articleid aid post post_id pid story story_id news newsid item_id itemid product product_id productid
    sku isbn asin doc_id docid document file filename path title section chapter part pageno page_id pageid paged pg
    offset start date year month locale hl language l ver rev revision oldid curid diff action query search s keyword
    cat category tag topic t_id thread threadid tid showtopic showthread msg message user username profile event
    event_id eventid video video_id videoid entry entry_id node nid key record recordid
    """.split()  # noqa: SIM905 - a table of words reads better as text
)
#: The parameters of page numbers. The default is page 1.
_PAGE_NUMBERS = ("p", "page")
#: Sites of documentation: the first folders may select a language and a version. A version shows documentation on any host.
_DOCUMENTATION_HOST = re.compile(
    r"(?:.+\.)?(?:docs?|documentation|developers?|learn|help|support|manuals?|readthedocs|rtfd)\..+"
)
_EDITION = re.compile(
    r"(?P<root>/docs?|/documentation|/manual)?"
    r"(?P<edition>(?:/(?P<lang>(?:ar|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hr|hu|id|it|ja|ko|lt|lv|nb|nl|no|pl|pt|ro|ru"
    r"|sk|sl|sr|sv|ta|th|tr|uk|ur|vi|zh)(?:[-_][A-Za-z]{2,4})?))?"
    r"(?:/(?:(?P<moving>stable|latest|current|main|master|dev)|v?(?P<version>(?<=v)\d+|\d{1,3}(?:\.(?:\d{1,3}|x)){1,3})))?)(?=/|$)"
)

#: The beginnings of paths that may select an edition. Few paths match.
_SPECIAL = re.compile(
    r"/(?:..|..[-_].*|v?\d+\..*|v\d.*|stable|latest|current|main|master|dev|docs?|documentation|manual)(?:/|$)"
)
_MAX_WRAPPERS = 5  # nested URLs; more are malicious
#: File names that servers use for a folder.
_INDEX_NAMES = re.compile(r"(?:index|default)\.(?:html?|xhtml|shtml|php\d?|aspx?|jsp|cfm|cgi|pl)", re.IGNORECASE)
#: Paths of the first page of a site or an application.
_START_PAGES = frozenset({"", "/home", "/start", "/main", "/index", "/default"})
#: Schemes of URLs that name no page: they hold content or code, or belong to one browser.
_NO_ADDRESS = frozenset({"javascript", "data", "about", "blob", "vbscript", "view-source", "chrome"})

_SPLIT = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
#: Most URLs match this pattern and need a change only in their parameters.
_COMMON = re.compile(r"(https?)://([a-z0-9.-]+)(/[A-Za-z0-9\-._~!$&'*+,=:@/]*)?(?:\?([A-Za-z0-9\-._~=&]*))?")
#: Browsers ignore tabs and line feeds inside URLs, and strip control characters and blanks around them.
_IGNORED = re.compile(r"[\t\r\n]")
_BLANK = "".join(map(chr, range(33))) + "\u00a0"
#: A host at the start of an address without a scheme, as search engines print it: `www.` or a domain and a path.
_BARE_HOST = re.compile(r"(?:www\.[\w\-.]+|[\w\-]+(?:\.[\w\-]+)*\.[^\W\d_]{2,}(?::\d+)?(?=[/?#]))", re.IGNORECASE)
_PORT_AND_PATH = re.compile(r"\d{1,5}(?:/|$)")

_PLAIN_PATH = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,=:@/]*")
_PLAIN_QUERY = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?\[\]|]*")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DECODED_IN_PATH = _UNRESERVED | frozenset("!$'()*,:;@")
_ESCAPES = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?\[\]|%]+")
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sessionid|session_id|sid|cfid|cftoken)=[^/;]*", re.IGNORECASE)
#: ASP.NET's sessions in paths: `/(S(lit3py55t21z5v55vlm25s55))/`.
_COOKIELESS = re.compile(r"/\((?:[A-Za-z]\([0-9a-zA-Z\-_]{8,}\))+\)(?=/|$)")


def normalise_url(url: str | None) -> str | None:
    """Return the URL without parts that do not distinguish pages; None if the URL does not name a page (javascript:, blank).

    The host is in lower case and IDNA. Default port, user information, sessions and tracking parameters are removed. Parameters
    are sorted. Needless escapes are decoded, other escapes are in upper case, and non-ASCII characters are escaped as UTF-8.
    Source: RFC 3986, section 6.2.

    >>> normalise_url("HTTP://Example.ORG:80/%7Eann/?b=2&utm_source=x&a=1")
    'http://example.org/~ann/?a=1&b=2'
    """
    parsed = parse_url(url) if url else None
    return parsed.normalised if parsed else None


def canonicalise_url(url: str | None) -> str | None:
    """Return the canonical address of a URL, equal for all spellings of one page; None if the URL does not name a page.

    The scheme is https. The host has no www., m., mobile., amp. or default port. Tracking parameters, index files and final
    slashes are removed. Addresses of well-known sites (arXiv, DOI, YouTube ...) and archives follow the rules in `web_identities`.

    The rule for fragments, here and wherever ids are compared: a route (`#/`, `#!`) and an anchor (`#history`) are parts of the
    address. `#top`, text fragments (`#:~:`) and anchors on well-known sites are removed. Deduplication may still join two
    anchors of a page, if title and snippet prove that the results are the same.

    >>> canonicalise_url("http://www.example.org:80/a/index.html?utm_source=x#top"), canonicalise_url("https://youtu.be/abcdefghijk")
    ('https://example.org/a', 'https://youtube.com/watch?v=abcdefghijk')
    >>> canonicalise_url("http://www.example.org/a/#history")
    'https://example.org/a#history'
    """
    parsed = parse_url(url) if url else None
    return parsed.canonical if parsed else None


def parse_url(url: str, wrappers: int = 0) -> Url | None:
    """Return all forms of one URL; None if the URL does not name a page.

    If `url` contains a URL, as in an archive, return the forms of the inner URL. `wrappers` counts the URLs around `url`.
    """
    common = _COMMON.fullmatch(url)
    if common:
        scheme, netloc, path, query = common.groups("")
        fragment = ""
    else:
        scheme, netloc, path, query, fragment = _split_url(url)
        if scheme in _NO_ADDRESS:
            return None
        path = _normalise_path(path)

    try:
        host, bare_host, rules = normalise_host(netloc, scheme)
    except ValueError:  # an impossible host: equal texts are still equal
        text = _trim(url)
        return Url(text, text, text, "", "", "", True)

    if "/." in path:
        path = _remove_dots(path)
    if netloc and not path:
        path = "/"
    parameters = _select_parameters(query, plain=common is not None) if query else []
    if not host and path.startswith("//"):
        path = "/" + path.lstrip("/")
    if not (host or path.strip("/")) or (not host and scheme in ("http", "https")):
        return None

    tail, route, anchor = _split_fragment(fragment) if fragment else ("", "", "")
    stripped_path = _strip_page_path(path)
    page_path = stripped_path + route
    page = bare_host + page_path
    if not host and scheme not in ("", "file"):
        page = f"{scheme}:{page}"
    normalised = _write_normalised(scheme, host, path, parameters, tail)

    identity = identify(rules, bare_host, path.rstrip("/") + route, parameters) if rules else None
    if identity:
        url_of_site = _read_identity(identity, normalised, wrappers)
        if url_of_site or wrappers:
            return url_of_site

    item, choice = _make_item(page, parameters) if parameters else (page, "")
    edition = ""
    if bare_host and _SPECIAL.match(stripped_path):
        folders = _EDITION.match(page_path)
        if folders and _is_documentation(folders, bare_host):
            edition = folders["edition"]
            page = bare_host + page_path[: folders.start("edition")] + page_path[folders.end() :]
            choice = _add_edition(choice, folders)
    return Url(normalised, page, item, anchor, choice, edition, page_path not in _START_PAGES)


def _write_normalised(scheme: str, host: str, path: str, parameters: list[str], tail: str) -> str:
    """Join the parts of a URL. A scheme has `//` if there is a host, or the path of a file is absolute."""
    start = ""
    if host or (scheme == "file" and path.startswith("/")):
        start = f"{scheme}://{host}"
    elif scheme:
        start = f"{scheme}:"
    if parameters:
        return f"{start}{path}?{'&'.join(parameters)}{tail}"
    return start + path + tail


def _add_edition(choice: str, folders: re.Match[str]) -> str:
    parts = [choice] if choice else []
    parts += [f"{name}={folders[name].lower().replace('_', '-')}" for name in ("lang", "version") if folders[name]]
    return "&".join(parts)


def _split_fragment(fragment: str) -> tuple[str, str, str]:
    """Return three texts, each empty or with `#`: the fragment without a text fragment, its route, and its anchor."""
    place = _escape(fragment.partition(":~:")[0], _UNRESERVED)
    if not place:
        return "", "", ""
    tail = "#" + place
    if place.startswith(("/", "!")):  # the browser builds the page, and a route is the path of the page
        route = tail.rstrip("/") if place.strip("/!") else ""
        return tail, route, ""
    is_start = place.lower() == "top"  # HTML: the start of any page
    return tail, "", "" if is_start else tail


def _read_identity(identity: Identity, normalised: str, wrappers: int) -> Url | None:
    """Return the forms of a URL of a well-known site. Return None if an inner URL does not name a page, or is nested too deeply."""
    address, parameters, is_inner_address = identity
    if not is_inner_address:
        item, choice = _make_item(address, parameters)
        return Url(normalised, address, item, "", choice, "", True)
    if wrappers >= _MAX_WRAPPERS:
        return None
    inner_url = address
    if parameters:
        inner_url += "?" + "&".join(parameters)
    if not inner_url.startswith(("http:", "https:")):
        inner_url = "https://" + inner_url
    return parse_url(inner_url, wrappers + 1)


def _is_documentation(folders: re.Match[str], host: str) -> bool:
    """Return whether the first folders of a path select a language or version of documentation."""
    if not folders["edition"]:
        return False
    has_version = folders["moving"] or folders["version"]
    is_page = folders.end() < len(folders.string)
    return bool((has_version and is_page) or folders["root"] or _DOCUMENTATION_HOST.fullmatch(host))


def has_other_choice(first: str, second: str) -> bool:
    """Return whether two values of `Url.choice` select different content: a shared parameter or the page number differs."""
    first_values = parse_qs(first, keep_blank_values=True, encoding="latin-1")
    second_values = parse_qs(second, keep_blank_values=True, encoding="latin-1")
    for name in _PAGE_NUMBERS:
        if first_values.get(name, ["1"]) != second_values.get(name, ["1"]):
            return True
    shared = first_values.keys() & second_values.keys()
    return any(first_values[name] != second_values[name] for name in shared)


def _split_url(url: str) -> tuple[str, str, str, str, str]:
    """Split a URL into scheme, authority, path, query and fragment, as the address bar of a browser does."""
    text = _trim(url)
    if "\\" in text:
        end = min(place for place in (text.find("?"), text.find("#"), len(text)) if place >= 0)
        text = text[:end].replace("\\", "/") + text[end:]
    match = _SPLIT.fullmatch(text)
    assert match is not None  # every string has this form
    scheme, netloc, path, query, fragment = match.groups("")
    scheme = scheme.lower()

    if scheme in ("http", "https") and not netloc:
        netloc, slash, path = path.lstrip("/").partition("/")
        path = slash + path
    elif scheme and not netloc and ("." in scheme or _PORT_AND_PATH.match(path)):
        netloc, slash, path = f"{scheme}:{path}".partition("/")  # host:port/path has no scheme
        scheme, path = "http", slash + path
    elif not scheme and not netloc and (host := _BARE_HOST.match(text)):
        netloc, path = host[0], path[len(host[0]) :]
    if netloc and not scheme:
        scheme = "https"
    return scheme, netloc, path, query, fragment


def _trim(url: str) -> str:
    return _IGNORED.sub("", url.strip(_BLANK))


def _normalise_path(path: str) -> str:
    if ";" in path or "%3" in path:
        path = _SESSION_IN_PATH.sub("", path)
    if "/(" in path:
        path = _COOKIELESS.sub("", path)
    return path if _PLAIN_PATH.fullmatch(path) else _escape(path, _DECODED_IN_PATH)


def _remove_dots(path: str) -> str:
    """Resolve the segments `.` and `..`."""
    resolved: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == ".." and len(resolved) > 1:
            resolved.pop()
        elif segment not in (".", ".."):
            resolved.append(segment)
    if segments[-1] in (".", ".."):
        resolved.append("")
    return "/".join(resolved)


def _strip_page_path(path: str) -> str:
    """Drop what does not distinguish pages from the end of a path: slashes, `/amp` and file names such as `index.html`."""
    name = path[path.rfind("/") + 1 :]
    if name and name != "amp" and name[0] not in "iIdD":  # nearly all: neither `index.` nor `default.`
        return path
    if _INDEX_NAMES.fullmatch(name) and len(name) < len(path):
        path = path[: -len(name)]
    shorter = path.rstrip("/").removesuffix("/amp").rstrip("/")
    return shorter if shorter == path else _strip_page_path(shorter)


def _select_parameters(query: str, *, plain: bool) -> list[str]:
    """Return the sorted parameters of a URL's query, without those that track the visitor. If `plain`, the query has no escapes."""
    parameters = []
    for part in query.replace("&amp;", "&").split("&"):
        if not part:
            continue

        if not plain and _PLAIN_QUERY.fullmatch(part) is None:
            part = _escape(part, _UNRESERVED)
        name, _, value = part.partition("=")
        name = name.lower()
        is_tracking = name in _TRACKING or name.startswith(_TRACKING_PREFIXES)
        if not (is_tracking or (name in _SESSION_IF_TOKEN and _TOKEN.fullmatch(value))):
            parameters.append(part)
    return sorted(parameters)


def _make_item(page: str, parameters: list[str]) -> tuple[str, str]:
    """Return `item` and `choice` of `Url`. Parameters for page 1, for an AMP view, or for a wiki's default action are dropped."""
    own_parameters, selecting = [], []
    for parameter in parameters:
        name, _, value = parameter.replace("+", "%20").partition("=")
        lower = name.lower()
        if (lower in _PAGE_NUMBERS and value == "1") or (lower == "amp" and value in ("", "1", "true")):
            continue
        if lower == "action" and value == "view":  # the default of wikis
            continue

        own_parameters.append(f"{name}={value}")
        if lower in _SELECTING:
            selecting.append(f"{lower}={value}")
    item = page
    if own_parameters:
        mark = "&" if "?" in page else "?"  # a canonical address may hold a parameter
        item = page + mark + "&".join(sorted(own_parameters))
    return item, "&".join(sorted(selecting))


def _escape(text: str, decoded: frozenset[str]) -> str:
    """Return a text with the same escapes in all spellings: those of signs in `decoded` decoded, all others in upper case."""
    return _ESCAPES.sub(lambda match: _decode_escape(match[0], decoded), text)


def _decode_escape(text: str, decoded: frozenset[str]) -> str:
    """Decode an escape %XX if its character is in `decoded`, else write it in capitals. Escape any other character."""
    if text == "%":
        return "%25"
    if not text.startswith("%"):
        return "%" + text.encode("utf-8", "surrogatepass").hex("%").upper()
    character = chr(int(text[1:], 16))
    return character if character in decoded else text.upper()


#: Deduplication writes a second document of one address as `ADDRESS~2`.
_SECOND_DOCUMENT = re.compile(r"~\d+$")


def find_page(doc_id: str) -> str | None:
    """Return the canonical address of an id that is a page's URL; None for other ids.

    >>> find_page("http://www.example.org/a/"), find_page("http://example.org/onto#A"), find_page("d1")
    ('https://example.org/a', 'https://example.org/onto#A', None)
    """
    if doc_id[:4].lower() != "http" or _SECOND_DOCUMENT.search(doc_id):
        return None
    return canonicalise_url(doc_id)


def find_other_spellings(unjudged: pl.DataFrame, judged: pl.DataFrame) -> Iterator[tuple[str, str, str]]:
    """Yield (query_id, unjudged id, judged id) for two URLs of one page in one query. Each frame has query_id and doc_id."""
    judged_urls: dict[tuple[str, str | None], str] = {}  # (query_id, page) -> URL
    for query_id, url in judged.iter_rows():
        judged_urls.setdefault((query_id, find_page(url)), url)
    for query_id, url in unjudged.iter_rows():
        page = find_page(url)
        if page is not None and (query_id, page) in judged_urls:
            yield query_id, url, judged_urls[query_id, page]
