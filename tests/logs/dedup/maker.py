"""Test sets with known groups: clean documents, and from each the variants in which agents meet it again. Seeded."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import polars as pl

from tests.logs.dedup.variants import another_snippet, another_spelling, another_time, another_url
from tests.logs.dedup.writing import TEXTS, Result, frame, result

__all__ = ["MAKERS", "make"]

_NAMES = "Ann Bob Eve Mia Tom Lea Max Ida Ben Zoe Kai Uma".split()  # noqa: SIM905 - words read better as text
_FAMILIES = "Lee Ray Fox Moss Kent Wood Hall Dunn Pike Lang Stone Marsh".split()  # noqa: SIM905 - words read better as text
_DEPARTMENTS = "Rivers Bridges Maps Finance Archive Press".split()  # noqa: SIM905 - words read better as text
_START = datetime(2024, 5, 6, 9, tzinfo=UTC)

#: What stands between the words of each script, and the words.
_SCRIPTS = [(one["blank"], one["words"].split()) for one in TEXTS["scripts"]]

#: A document: the results in which it appears.
Document = list[Result]


def make(kind: str, documents: int, seed: int) -> pl.DataFrame:
    """A results frame with the column `gold`, the number of the document of each row; rows in random order."""
    rng = random.Random(f"{kind} {seed}")
    made = list(MAKERS[kind](rng, documents))
    rows = [(number, row) for number, document in enumerate(made) for row in document]
    rng.shuffle(rows)
    reissued = [
        row | {"doc_id": str(place % 10 + 1)} if rng.random() < 0.3 else row for place, (_, row) in enumerate(rows)
    ]
    return frame(reissued).with_columns(gold=pl.Series([number for number, _ in rows]))


def _times(rng: random.Random) -> int:
    return rng.choice((1, 1, 2, 3, 5))


def _web_pages(rng: random.Random, count: int) -> Iterator[Document]:
    for number in range(count):
        text, title = _text(rng), _title(rng)
        shape = rng.randrange(6)
        host = f"site{rng.randrange(max(2, count // 8))}.example.org"
        url = f"https://{host}/{number}/{title.split()[0]}"

        if shape == 0:  # told apart by a parameter alone, under one title
            url, title = f"https://{host}/view?{rng.choice(('id', 'article', 'v'))}={number}", "Article of the site"
        elif shape == 1:
            title = "Home of the archive"
        elif shape == 2:
            text = TEXTS["CONSENT"]

        page = partial(result, type="web_page", title=title)
        document = [page(url=another_url(rng, url), snippet=another_snippet(rng, text)) for _ in range(_times(rng))]
        if shape > 2 and rng.random() < 0.3:  # met without its address
            document.append(page(snippet=text, title=another_spelling(rng, title)))
            document.append(page(url=url, snippet=text))
        yield document


def _emails(rng: random.Random, count: int) -> Iterator[Document]:
    for number in range(count):
        subject = "Weekly status of the rivers" if rng.random() < 0.3 else _title(rng)
        subject = rng.choice(("", "Re: ", "Fwd: ")) + subject
        sender, moment, text = _person(rng), _START + timedelta(hours=number * 7), _text(rng)
        mail = partial(result, type="email", url=rng.choice((None, "https://mail.example.com/")))
        document = []

        for _ in range(_times(rng)):
            known = {"sender": rng.choice((sender, f"Someone <{sender}>")), "received": another_time(rng, moment)}
            named = {rng.choice(("subject", "title")): another_spelling(rng, subject)}
            ids = {"message_id": f"<{number}@example.org>"} if rng.random() < 0.6 else {}
            more = {"conversation_id": f"c{number // 3}"}
            document.append(mail(ids=ids | more, snippet=another_snippet(rng, text), **known, **named))

        yield document


def _events(rng: random.Random, count: int) -> Iterator[Document]:
    series = 0
    while count > 0:
        series += 1
        title, organizer, text = _title(rng), _person(rng), _text(rng)
        start = _START + timedelta(days=rng.randrange(5), hours=rng.randrange(6))
        for week in range(min(count, rng.choice((1, 4, 8)))):
            count -= 1
            yield _occurrence(rng, f"s{series}", title, organizer, text, start + timedelta(weeks=week))


def _occurrence(rng: random.Random, series: str, title: str, organizer: str, text: str, start: datetime) -> Document:
    event = partial(result, type="event", snippet=text, url="https://calendar.example.com/")
    ids = {"series_id": series, "iCalUId": series}
    own = ids | {"occurrence_id": f"{series}-{start:%Y%m%d}"}
    document = []
    for _ in range(_times(rng)):
        when = {"start": another_time(rng, start), "end": another_time(rng, start + timedelta(hours=1))}
        by = {"organizer": organizer} if rng.random() < 0.7 else {}
        document.append(event(ids=own if rng.random() < 0.6 else ids, title=another_spelling(rng, title), **when, **by))

    if rng.random() < 0.2:  # it moved: only its id says that it is the same
        moved = start + timedelta(days=1)
        when = {"start": another_time(rng, moved), "end": another_time(rng, moved + timedelta(hours=1))}
        document = [event(ids=own, title=title, **when), *(row | {"ids": document[0]["ids"]} for row in document[:1])]
        document[1] = event(
            ids=own, title=title, start=another_time(rng, start), end=another_time(rng, start + timedelta(hours=1))
        )

    return document


def _files(rng: random.Random, count: int) -> Iterator[Document]:
    for number in range(count):
        readme = rng.random() < 0.2
        title, extension = ("Readme" if readme else _title(rng)), rng.choice(("docx", "pdf", "md"))
        name, text = f"{title.replace(' ', '-').lower()}.{extension}", _text(rng)
        url = f"https://files.example.com/team{number % 7}/{number}/{name}"
        changed = _START + timedelta(hours=number)
        document = []

        for _ in range(_times(rng)):
            known = {"file_name": name, "file_type": rng.choice((extension, "." + extension.upper()))}
            ids = {"site_id": "s1"} | ({"file_id": f"F{number}"} if rng.random() < 0.6 else {})
            with_url = {"url": another_url(rng, url)} if rng.random() < 0.7 else {}
            change = {"modified_time": another_time(rng, changed)}
            shown = {"title": another_spelling(rng, title), "snippet": another_snippet(rng, text)}
            document.append(result(type="file", ids=ids, **known, **with_url, **change, **shown))

        yield document


def _people(rng: random.Random, count: int) -> Iterator[Document]:
    for number in range(count):
        name = f"{rng.choice(_NAMES)} {rng.choice(_FAMILIES)}"
        alias, address = f"user{number}", f"user{number}@example.org"
        known = {"department": f"{rng.choice(_DEPARTMENTS)} {number}", "company": "Example", "office": f"{number}a"}
        document = []
        for _ in range(_times(rng)):
            ids = {"alias": alias} if rng.random() < 0.5 else {}
            ids |= {"address": rng.choice((address, address.upper()))} if rng.random() < 0.8 else {}
            shown = {rng.choice(("title", "display_name")): another_spelling(rng, name)}
            document.append(result(type="person", ids=ids, url="https://people.example.com/", **shown, **known))
        yield document


def _messages(rng: random.Random, count: int) -> Iterator[Document]:
    for number in range(count):
        text = "Thanks, that helps!" if rng.random() < 0.3 else _text(rng)
        sent, sender = _START + timedelta(minutes=number * 3), _person(rng)
        document = []
        for _ in range(_times(rng)):
            ids = {"message_id": f"{number:013}"} if len(text) < 50 or rng.random() < 0.6 else {}
            when = {"sent": another_time(rng, sent)} if rng.random() < 0.8 else {}
            said = {"sender": sender, "channel": f"channel {number % 3}", "snippet": another_spelling(rng, text)}
            document.append(result(type="message", ids=ids, url="https://chat.example.com/", **when, **said))
        yield document


def _passages(rng: random.Random, count: int) -> Iterator[Document]:
    for number in range(count):
        parent, chunk = divmod(number, 6)
        text = TEXTS["CONSENT"] if chunk == 0 else _text(rng)
        url, title = f"https://example.org/book/{parent}", f"Book number {parent}"
        by_url = rng.random() < 0.5
        document = []
        for _ in range(_times(rng)):
            of = {"url": another_url(rng, url)} if by_url else {"parent": f"d{parent}"}
            at = rng.choice(({"chunk": chunk}, {"chunk": chunk, "offset": chunk * 500}, {}))
            document.append(result(type="passage", title=title, snippet=another_spelling(rng, text), **of, **at))
        yield document


def _text(rng: random.Random) -> str:
    blank, words = rng.choice(_SCRIPTS)
    return blank.join(rng.choices(words, k=45))


def _title(rng: random.Random) -> str:
    blank, words = rng.choice(_SCRIPTS)
    return blank.join(rng.sample(words, k=7))


def _person(rng: random.Random) -> str:
    return f"{rng.choice(_NAMES)}.{rng.choice(_FAMILIES)}@example.org".lower()


MAKERS: dict[str, Callable[[random.Random, int], Iterator[Document]]] = {
    "web pages": _web_pages,
    "email": _emails,
    "events": _events,
    "files": _files,
    "people": _people,
    "messages": _messages,
    "passages": _passages,
}
