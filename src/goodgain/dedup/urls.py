"""Normalises URLs, and splits them into the page and the content that the query selects."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from goodgain.dedup.parameters import (
    INDEX_NAMES,
    NO_ADDRESS,
    PAGE_NUMBERS,
    SELECTING,
    START_PAGES,
    VIEW_LABELS,
    is_tracking,
)

__all__ = ["Url", "has_other_choice", "normalise_url", "parse_url"]


class Url(NamedTuple):
    """The forms of one URL.

    Attributes:
        normalised: a URL that still leads to the page.
        page: host and path alone, by which candidates are found.
        item: the page with its query; equal for equal items.
        choice: the parameters that select content.
        beyond_start: whether the path goes beyond a start page.
    """

    normalised: str
    page: str
    item: str
    choice: str
    beyond_start: bool


_SPLIT = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
#: Nearly all URLs match this, and need no change but to their parameters.
_COMMON = re.compile(r"(https?)://([a-z0-9.-]+)(/[A-Za-z0-9\-._~!$&'*+,=:@/]*)?(?:\?([A-Za-z0-9\-._~=&]*))?")
#: Browsers ignore tabs and line feeds inside URLs, and strip control characters and blanks around them.
_IGNORED = re.compile(r"[\t\r\n]")
_BLANK = "".join(map(chr, range(33))) + "\u00a0"
#: A host at the start of an address without a scheme, as search engines print it: `www.` or a domain and a path.
_BARE_HOST = re.compile(r"(?:www\.[\w\-.]+|[\w\-]+(?:\.[\w\-]+)*\.[^\W\d_]{2,}(?::\d+)?(?=[/?#]))", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9._~\-]+|\[[0-9a-f:.]+\]")
_PORT_AND_PATH = re.compile(r"\d{1,5}(?:/|$)")
_PORT = re.compile(r":([0-9]*)$")
_DEFAULT_PORTS = {"http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}

_PLAIN_PATH = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,=:@/]*")
_PLAIN_QUERY = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?\[\]|]*")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DECODED_IN_PATH = _UNRESERVED | frozenset("!$'()*,:;@")
_ESCAPES = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?\[\]|%]+")
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sessionid|session_id|sid|cfid|cftoken)=[^/;]*", re.IGNORECASE)
#: ASP.NET's sessions in paths: `/(S(lit3py55t21z5v55vlm25s55))/`.
_COOKIELESS = re.compile(r"/\((?:[A-Za-z]\([0-9a-zA-Z\-_]{8,}\))+\)(?=/|$)")


def normalise_url(url: str | None) -> str | None:
    """Return the URL without the parts that do not distinguish pages; None if it names no page (javascript:, blank).

    Host in lower case and IDNA; default port, user information, sessions and tracking parameters removed; parameters
    sorted; needless escapes decoded, the others in upper case, non-ASCII characters as UTF-8 escapes. Source: RFC
    3986, section 6.2.

    >>> normalise_url("HTTP://Example.ORG:80/%7Eann/?b=2&utm_source=x&a=1")
    'http://example.org/~ann/?a=1&b=2'
    """
    parsed = parse_url(url) if url else None
    return parsed.normalised if parsed else None


def parse_url(url: str) -> Url | None:
    """Return all forms of one URL; None if it does not name a page."""
    common = _COMMON.fullmatch(url)
    if common:
        scheme, netloc, path, query = common.groups("")
        fragment = ""
    else:
        scheme, netloc, path, query, fragment = _split_url(url)
        if scheme in NO_ADDRESS:
            return None
        path = _normalise_path(path)
    try:
        host, bare_host = _normalise_host(netloc, scheme)
    except ValueError:  # the host is impossible, but equal texts still mean the same
        text = _trim(url)
        return Url(text, text, text, "", True)
    if "/." in path:
        path = _remove_dots(path)
    if netloc and not path:
        path = "/"
    parameters = _select_parameters(query, plain=common is not None) if query else []
    if not host and path.startswith("//"):
        path = "/" + path.lstrip("/")
    if not (host or path.strip("/")) or (not host and scheme in ("http", "https")):
        return None

    own_path = _strip_page_path(path)
    page, tail = bare_host + own_path, ""
    if fragment:
        route = _escape(fragment, _UNRESERVED)
        tail = "" if route.startswith(":~:") else "#" + route
        if route.startswith(("/", "!/")):  # the page is built in the browser, and this route is its path
            own_path += "#" + route.rstrip("/")
            page = bare_host + own_path
    if not host and scheme not in ("", "file"):
        page = f"{scheme}:{page}"
    rooted = host or (scheme == "file" and path.startswith("/"))
    start = f"{scheme}://{host}" if rooted else f"{scheme}:" if scheme else ""
    normalised = start + path + ("?" + "&".join(parameters) if parameters else "") + tail
    item, choice = _make_item(page, parameters) if parameters else (page, "")
    return Url(normalised, page, item, choice, own_path not in START_PAGES)


def has_other_choice(first: str, second: str) -> bool:
    """Return whether two `choice`s select different content: a shared parameter or the page number differs."""
    one, two = _parse_choice(first), _parse_choice(second)
    if any(one.get(name, ["1"]) != two.get(name, ["1"]) for name in PAGE_NUMBERS):
        return True
    return any(one[name] != two[name] for name in one.keys() & two.keys())


def _parse_choice(choice: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for part in choice.split("&") if choice else ():
        name, _, value = part.partition("=")
        values.setdefault(name, []).append(value)
    return values


def _split_url(url: str) -> tuple[str, str, str, str, str]:
    """Return scheme, authority, path, query and fragment, as the address line of a browser reads them."""
    text = _trim(url)
    if "\\" in text:
        end = min(place for place in (text.find("?"), text.find("#"), len(text)) if place >= 0)
        text = text[:end].replace("\\", "/") + text[end:]
    match = _SPLIT.fullmatch(text)
    if match is None:  # cannot be: every string has this form
        return "", "", text, "", ""
    scheme, netloc, path, query, fragment = (part or "" for part in match.groups())
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


@lru_cache(maxsize=65_536)
def _normalise_host(netloc: str, scheme: str) -> tuple[str, str]:
    """Return the authority without user information and default port, and the same without labels such as www and m.

    Raises ValueError for what cannot be a host.
    """
    if not netloc:
        return "", ""
    name, port = netloc.rpartition("@")[2], ""
    if found := _PORT.search(name):
        name, port = name[: found.start()], found[1].lstrip("0")
    if port == _DEFAULT_PORTS.get(scheme):
        port = ""
    name = _encode_host(name).rstrip(".")
    if not name:
        return "", ""
    if _HOST.fullmatch(name) is None:
        raise ValueError(name)
    tail = f":{port}" if port else ""
    labels = name.split(".")
    while len(labels) > 2 and labels[0] in VIEW_LABELS:
        del labels[0]
    if len(labels) > 3 and labels[1] == "m":  # en.m.wikipedia.org
        del labels[1]
    return name + tail, ".".join(labels) + tail


def _encode_host(name: str) -> str:
    if "%" in name:
        name = unquote(name, errors="strict")
    if name.isascii():
        return name.lower()
    import idna  # imported only for hosts with other letters, as its tables are large

    try:
        return idna.encode(name, uts46=True, transitional=False).decode("ascii")
    except idna.IDNAError:
        return name.lower().encode("idna").decode("ascii")  # symbols: browsers use the older standard for them


def _normalise_path(path: str) -> str:
    if ";" in path or "%3" in path:
        path = _SESSION_IN_PATH.sub("", path)
    if "/(" in path:
        path = _COOKIELESS.sub("", path)
    if _PLAIN_PATH.fullmatch(path) is None:
        path = _escape(path, _DECODED_IN_PATH)
    return path


def _remove_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == ".." and len(kept) > 1:
            kept.pop()
        elif segment not in (".", ".."):
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


def _strip_page_path(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    if name and name != "amp" and name[0] not in "iIdD":  # nearly all: neither `index.` nor `default.`
        return path
    if INDEX_NAMES.fullmatch(name) and len(name) < len(path):
        path = path[: -len(name)]
    return path.rstrip("/").removesuffix("/amp").rstrip("/")


def _select_parameters(query: str, *, plain: bool) -> list[str]:
    """Return the parameters that do not track the visitor, sorted; a `plain` query has no escapes."""
    kept = []
    for part in query.replace("&amp;", "&").split("&"):
        if not part:
            continue
        if not plain and _PLAIN_QUERY.fullmatch(part) is None:
            part = _escape(part, _UNRESERVED)
        name, _, value = part.partition("=")
        if not is_tracking(name.lower(), value):
            kept.append(part)
    kept.sort()
    return kept


def _make_item(page: str, parameters: list[str]) -> tuple[str, str]:
    """Return the page with its query, and the parameters that select content; page 1 and AMP views are dropped."""
    kept, chosen = [], []
    for parameter in parameters:
        name, _, value = parameter.replace("+", "%20").partition("=")
        lower = name.lower()
        if (lower in PAGE_NUMBERS and value == "1") or (lower == "amp" and value in ("", "1", "true")):
            continue
        kept.append(f"{name}={value}")
        if lower in SELECTING:
            chosen.append(f"{lower}={value}")
    return (page + "?" + "&".join(kept) if kept else page), "&".join(sorted(chosen))


def _escape(text: str, decoded: frozenset[str]) -> str:
    return _ESCAPES.sub(lambda match: _decode_escape(match[0], decoded), text)


def _decode_escape(text: str, decoded: frozenset[str]) -> str:
    if text == "%":
        return "%25"
    if not text.startswith("%"):
        return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))
    character = chr(int(text[1:], 16))
    return character if character in decoded else text.upper()
