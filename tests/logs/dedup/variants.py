"""How the same thing looks at another place: addresses, texts, times."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

_TRACKING = (
    "utm_source=mail&utm_medium=x",
    "gclid=CjwKCA{}",
    "fbclid=IwAR{}",
    "msclkid={}aa",
    "ref_src=twsrc",
    "PHPSESSID={}",
    "sid=00112233445566{}",
)


def another_url(rng: random.Random, url: str) -> str:
    """The same page under another address: one to three changes."""
    for change in rng.sample(_CHANGES, k=rng.randrange(1, 4)):
        url = change(rng, url)
    return f"{url}#part{rng.randrange(5)}" if rng.random() < 0.2 else url


def _tracked(rng: random.Random, url: str) -> str:
    more = rng.choice(_TRACKING).format(rng.randrange(10_000, 99_999))
    if "?" not in url:
        return f"{url}?{more}"
    page, query = url.split("?", 1)
    return rng.choice((f"{page}?{query}&{more}", f"{page}?{more}&{query}"))


def _other_scheme(rng: random.Random, url: str) -> str:
    return url.replace("https://", "http://")


def _other_host(rng: random.Random, url: str) -> str:
    host = urlsplit(url).netloc
    if host.count(".") > 2:
        return url
    return url.replace(host, rng.choice(("www.", "m.", "mobile.", "amp.", "")) + host, 1)


def _capital_host(rng: random.Random, url: str) -> str:
    host = urlsplit(url).netloc
    return url.replace(host, host.upper(), 1)


def _slash(rng: random.Random, url: str) -> str:
    page, question, query = url.partition("?")
    end = (
        rng.choice(("/", "/amp", "/index.html", ";jsessionid=0A1B"))
        if not page.endswith(("/", "l", "B", "amp"))
        else ""
    )
    return page + end + question + query


def _escaped(rng: random.Random, url: str) -> str:
    place = rng.randrange(url.index("/", 10), len(url)) if url.count("/") > 2 else 0
    letter = url[place] if place else ""
    if not (letter.isascii() and letter.isalpha()) or "%" in url[max(0, place - 2) : place]:
        return url
    return f"{url[:place]}%{ord(letter):02x}{url[place + 1 :]}"


_CHANGES: tuple[Callable[[random.Random, str], str], ...] = (
    _other_scheme,
    _other_host,
    _capital_host,
    _slash,
    _escaped,
    _tracked,
)


def another_snippet(rng: random.Random, text: str) -> str:
    """The text, or the part of it that answers another query."""
    if rng.random() < 0.5:
        return another_spelling(rng, text)
    cut = len(text) // 10
    return text[rng.randrange(cut) : len(text) - rng.randrange(cut)]


def another_spelling(rng: random.Random, text: str) -> str:
    """The text with other case, blanks or marks of highlighting."""
    match rng.randrange(5):
        case 0:
            return text.upper() if text.isascii() else text
        case 1:
            return text.replace(" ", "  ", 3)
        case 2:
            head, blank, rest = text.partition(" ")
            return f"<b>{head}</b>{blank}{rest}"
        case 3:
            return f"{text}\n"
        case _:
            return text


def another_time(rng: random.Random, moment: datetime) -> str:
    """The instant in another zone, or another way of writing it."""
    zone = timezone(timedelta(hours=rng.choice((0, 0, 2, -5))))
    match rng.randrange(4):
        case 0:
            return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case 1:
            return moment.strftime("%Y-%m-%dT%H:%M:%S.0000000Z")
        case 2:
            return moment.astimezone(zone).strftime("%a, %d %b %Y %H:%M:%S %z")
        case _:
            return moment.astimezone(zone).isoformat()
