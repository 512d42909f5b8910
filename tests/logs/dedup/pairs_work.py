"""Pairs of results of a workplace (mails, meetings, people and the like), written by hand."""

from tests.logs.dedup.writing import EN, LONG, OTHER, Pair, result

_MAIL = {"type": "email", "sender": "Ann Lee <ann@example.org>", "received": "2024-05-02T09:30:00Z"}
_START_PAGE = "https://outlook.example.com/mail/"
_WEEKLY = {"type": "event", "title": "Weekly planning", "organizer": "ann@example.org"}
_CHAT = {"type": "message", "sender": "ann@example.org", "channel": "General"}
_ANN = {"type": "person", "title": "Ann Lee"}
_CHUNK = {"type": "passage", "title": "River report"}
_TALK = {"type": "transcript", "title": "Planning call"}

_NINE, _TEN = "2024-05-06T09:00:00Z", "2024-05-06T10:00:00Z"
_NEXT_NINE, _NEXT_TEN = "2024-05-13T09:00:00Z", "2024-05-13T10:00:00Z"


PAIRS = [
    # Email.
    Pair(
        True,
        "message id",
        result(**_MAIL, ids={"message_id": "<m1@example.org>"}, subject="Plan"),
        result(type="email", ids={"message_id": "<M1@example.org>"}, subject="RE: Plan"),
    ),
    Pair(
        True,
        "message id under the name of Graph",
        result(type="email", ids={"internetMessageId": "AAMk1"}),
        result(type="email", ids={"message_id": "AAMk1"}),
    ),
    Pair(True, "received and sender", result(**_MAIL, subject="Plan"), result(**_MAIL, title="plan")),
    Pair(
        True,
        "instants in two zones",
        result(**_MAIL, snippet=EN),
        result(type="email", sender="ann@example.org", received="2024-05-02T11:30:00+02:00", snippet=OTHER),
    ),
    Pair(
        True,
        "a date in the form of mail headers",
        result(**_MAIL),
        result(type="email", sender="ANN@EXAMPLE.ORG", received="Thu, 02 May 2024 09:30:00 +0000"),
    ),
    Pair(
        True,
        "seven digits of a second",
        result(**_MAIL),
        result(type="email", sender="ann@example.org", received="2024-05-02T09:30:00.0000000Z"),
    ),
    Pair(
        True,
        "typed and untyped result of one mail",
        result(**_MAIL),
        result(sender="ann@example.org", received="2024-05-02T09:30:00Z", title="Plan"),
    ),
    Pair(
        True,
        "subject and title, sender and snippet",
        result(type="email", sender="ann@example.org", subject="Plan for the year", snippet=EN),
        result(type="email", sender="ann@example.org", title="Plan for the year", snippet=EN),
    ),
    Pair(
        False,
        "other message id, all else equal",
        result(**_MAIL, ids={"message_id": "m1"}, subject="Plan"),
        result(**_MAIL, ids={"message_id": "m2"}, subject="Plan"),
    ),
    Pair(
        False,
        "reply and original",
        result(**_MAIL, subject="Plan for the year", snippet=EN),
        result(**_MAIL, subject="Re: Plan for the year", snippet=EN),
    ),
    Pair(
        False,
        "reply and original that share a start page",
        result(type="email", url=_START_PAGE, subject="Plan", sender="ann@example.org"),
        result(type="email", url=_START_PAGE, subject="Plan", sender="bob@example.org"),
    ),
    Pair(
        False,
        "two mails that share a start page only",
        result(type="email", url=_START_PAGE, subject="Plan"),
        result(type="email", url=_START_PAGE, subject="Lunch"),
    ),
    Pair(
        False,
        "same subject from another sender",
        result(type="email", sender="ann@example.org", subject="Weekly status of all", snippet=LONG),
        result(type="email", sender="bob@example.org", subject="Weekly status of all", snippet=LONG),
    ),
    Pair(
        False,
        "received at another time",
        result(**_MAIL, subject="Weekly status", snippet=LONG),
        result(**(_MAIL | {"received": "2024-05-09T09:30:00Z"}), subject="Weekly status", snippet=LONG),
    ),
    Pair(
        False,
        "same sender and subject",
        result(type="email", sender="ann@example.org", subject="Weekly status of all"),
        result(type="email", sender="ann@example.org", subject="Weekly status of all", snippet=EN),
    ),
    Pair(
        True,
        "sender, recipients in another order, subject, short text",
        result(
            type="email",
            sender="ann@example.org",
            recipients="bob@example.org; eve@example.org",
            subject="Lunch at the river",
            snippet=EN,
        ),
        result(
            type="email",
            sender="ann@example.org",
            recipients="Eve <eve@example.org>, bob@example.org",
            subject="Lunch at the river",
            snippet=EN,
        ),
    ),
    Pair(
        False,
        "email and event of one invitation",
        result(type="email", title="Weekly planning of all", snippet=LONG),
        result(**(_WEEKLY | {"title": "Weekly planning of all"}), snippet=LONG),
    ),
    Pair(
        False,
        "conversation id is a container",
        result(type="email", ids={"conversation_id": "c"}, subject="A"),
        result(type="email", ids={"conversation_id": "c"}, subject="B"),
    ),
    # Event.
    Pair(
        True,
        "occurrence id, the meeting moved",
        result(**_WEEKLY, ids={"occurrence_id": "o1"}, start=_NINE, end=_TEN),
        result(**_WEEKLY, ids={"occurrence_id": "o1"}, start=_NEXT_NINE, end=_NEXT_TEN),
    ),
    Pair(
        True,
        "start, end and title",
        result(**_WEEKLY, start=_NINE, end=_TEN),
        result(
            type="event", title="weekly planning", start="2024-05-06T11:00:00+02:00", end="2024-05-06T12:00:00+02:00"
        ),
    ),
    Pair(
        True,
        "start, end, organizer",
        result(**_WEEKLY, start=_NINE, end=_TEN, snippet=EN),
        result(type="event", organizer="Ann <ann@example.org>", start=_NINE, end=_TEN, snippet=EN),
    ),
    Pair(
        True,
        "epoch seconds",
        result(**_WEEKLY, start=_NINE, end=_TEN),
        result(type="event", title="Weekly planning", start="1714986000", end="1714989600"),
    ),
    Pair(
        False,
        "next week's of a series",
        result(**_WEEKLY, start=_NINE, end=_TEN, snippet=LONG),
        result(**_WEEKLY, start=_NEXT_NINE, end=_NEXT_TEN, snippet=LONG),
    ),
    Pair(
        False,
        "series id is a container",
        result(**_WEEKLY, ids={"series_id": "s"}, start=_NINE, end=_TEN),
        result(**_WEEKLY, ids={"series_id": "s"}, start=_NEXT_NINE, end=_NEXT_TEN),
    ),
    Pair(
        False,
        "iCalUId is a container",
        result(**_WEEKLY, ids={"iCalUId": "u"}, start=_NINE, end=_TEN),
        result(**_WEEKLY, ids={"iCalUId": "u"}, start=_NEXT_NINE, end=_NEXT_TEN),
    ),
    Pair(
        False,
        "a meeting that moved, without id",
        result(**_WEEKLY, start=_NINE, end=_TEN),
        result(**_WEEKLY, start=_TEN, end="2024-05-06T11:00:00Z"),
    ),
    Pair(
        False,
        "a longer meeting",
        result(**_WEEKLY, start=_NINE, end=_TEN),
        result(**_WEEKLY, start=_NINE, end="2024-05-06T11:00:00Z"),
    ),
    Pair(
        False,
        "other meeting at that time",
        result(**_WEEKLY, start=_NINE, end=_TEN),
        result(type="event", title="Lunch", start=_NINE, end=_TEN),
    ),
    Pair(
        False,
        "other organizer",
        result(**_WEEKLY, start=_NINE, end=_TEN),
        result(type="event", title="Weekly planning", organizer="bob@example.org", start=_NINE, end=_TEN),
    ),
    Pair(
        False,
        "no times: nothing required agrees",
        result(**_WEEKLY, snippet=LONG, doc_id="1"),
        result(**_WEEKLY, snippet=LONG, doc_id="2"),
    ),
    Pair(
        False,
        "the calendar's address names no event",
        result(type="event", title="A", url="https://calendar.example.com/day/6"),
        result(type="event", title="B", url="https://calendar.example.com/day/6"),
    ),
    Pair(
        True,
        "two addresses of one event",
        result(**_WEEKLY, start=_NINE, end=_TEN, url="https://calendar.example.com/ann/1"),
        result(**_WEEKLY, start=_NINE, end=_TEN, url="https://calendar.example.com/bob/9"),
    ),
    Pair(
        False,
        "other occurrence id at one time",
        result(**_WEEKLY, ids={"occurrence_id": "o1"}, start=_NINE, end=_TEN),
        result(**_WEEKLY, ids={"occurrence_id": "o2"}, start=_NINE, end=_TEN),
    ),
    # Message.
    Pair(
        True,
        "message id",
        result(**_CHAT, ids={"message_id": "170"}, snippet=EN),
        result(**_CHAT, ids={"message_id": "170"}, snippet=OTHER),
    ),
    Pair(
        True,
        "sender, time and text",
        result(**_CHAT, sent=_NINE, snippet=EN),
        result(type="message", sender="ann@example.org", sent="2024-05-06T09:00:00+00:00", snippet=EN),
    ),
    Pair(True, "text, sender and channel", result(**_CHAT, snippet=EN), result(**_CHAT, snippet=EN, sent=_NINE)),
    Pair(
        True,
        "its own address",
        result(type="message", url="https://chat.example.com/l/message/19", snippet=EN),
        result(type="message", url="https://chat.example.com/l/message/19?utm_source=x", snippet=OTHER),
    ),
    Pair(
        False,
        "the application's start page",
        result(type="message", url="https://chat.example.com/", snippet=EN),
        result(type="message", url="https://chat.example.com/", snippet=OTHER),
    ),
    Pair(
        False,
        "same words at another time",
        result(**_CHAT, sent=_NINE, snippet=LONG),
        result(**_CHAT, sent=_TEN, snippet=LONG),
    ),
    Pair(
        False,
        "same words by another",
        result(**_CHAT, snippet=LONG),
        result(**(_CHAT | {"sender": "bob@example.org"}), snippet=LONG),
    ),
    Pair(
        False,
        "same words in another channel",
        result(**_CHAT, snippet=LONG),
        result(**(_CHAT | {"channel": "Random"}), snippet=LONG),
    ),
    Pair(
        False,
        "thanks, and thanks again",
        result(**_CHAT, snippet="Thanks!"),
        result(**_CHAT, snippet="Thanks!", doc_id="2"),
    ),
    Pair(
        False,
        "sender, time and channel, other text",
        result(**_CHAT, sent=_NINE, snippet=EN),
        result(**_CHAT, sent=_NINE, snippet=OTHER),
    ),
    # Person.
    Pair(
        True,
        "alias",
        result(**_ANN, ids={"alias": "annl"}),
        result(type="person", title="Lee, Ann", ids={"alias": "annl"}),
    ),
    Pair(
        True,
        "one address of several",
        result(**_ANN, ids=[("address", "ann@example.org"), ("address", "lee@example.org")]),
        result(type="person", title="A. Lee", ids={"address": "Lee@Example.org"}),
    ),
    Pair(
        True,
        "principal name in other case",
        result(**_ANN, ids={"principal_name": "ann@example.org"}),
        result(**_ANN, ids={"userPrincipalName": "ANN@example.org"}),
    ),
    Pair(
        True,
        "name, department, company and office",
        result(**_ANN, department="Rivers", company="Example", office="5a"),
        result(
            type="person", display_name="Ann Lee", department="rivers", company="Example", office="5a", job_title="Lead"
        ),
    ),
    Pair(
        True,
        "own profile page",
        result(**_ANN, url="https://people.example.com/ann-lee"),
        result(type="person", title="Dr. Lee", url="https://people.example.com/ann-lee/"),
    ),
    Pair(
        True,
        "other addresses reject nobody",
        result(**_ANN, ids={"address": "a@example.org"}, department="Rivers", company="Example", office="5a"),
        result(**_ANN, ids={"address": "b@example.org"}, department="Rivers", company="Example", office="5a"),
    ),
    Pair(
        False,
        "other alias, one name",
        result(**_ANN, ids={"alias": "annl"}, department="Rivers", company="Example", office="5a"),
        result(**_ANN, ids={"alias": "annlee2"}, department="Rivers", company="Example", office="5a"),
    ),
    Pair(
        False,
        "one address, other alias",
        result(**_ANN, ids={"alias": "a1", "address": "info@example.org"}),
        result(**_ANN, ids={"alias": "a2", "address": "info@example.org"}),
    ),
    Pair(False, "name alone", result(**_ANN, doc_id="1"), result(**_ANN, doc_id="2")),
    Pair(
        False,
        "name and department",
        result(**_ANN, department="Rivers", doc_id="1"),
        result(**_ANN, department="Rivers", doc_id="2"),
    ),
    Pair(
        False,
        "the directory's start page",
        result(type="person", title="Ann Lee", url="https://people.example.com/"),
        result(type="person", title="Bob Ray", url="https://people.example.com/"),
    ),
    # Passage.
    Pair(
        True,
        "chunk id",
        result(**_CHUNK, ids={"chunk_id": "c-77"}, snippet=EN),
        result(**_CHUNK, ids={"chunk_id": "c-77"}, snippet=OTHER),
    ),
    Pair(
        True,
        "parent and offset",
        result(**_CHUNK, parent="d1", offset="120", snippet=EN),
        result(**_CHUNK, parent="d1", offset="0120", snippet=EN[:60]),
    ),
    Pair(
        True,
        "parent and chunk",
        result(**_CHUNK, parent="d1", chunk="3"),
        result(**_CHUNK, parent_id="d1", chunk_index="3"),
    ),
    Pair(True, "parent and text", result(**_CHUNK, parent="d1", snippet=EN), result(**_CHUNK, parent="d1", snippet=EN)),
    Pair(
        True,
        "parent by its address, and text",
        result(**_CHUNK, url="https://example.org/r", snippet=EN),
        result(**_CHUNK, parent="https://www.example.org/r?utm_source=x", snippet=EN),
    ),
    Pair(
        True,
        "one id for the file, and text",
        result(**_CHUNK, doc_id="file-1", snippet=EN),
        result(**_CHUNK, doc_id="file-1", snippet=EN),
    ),
    Pair(
        False,
        "two chunks of one page",
        result(**_CHUNK, url="https://example.org/r", chunk="3", snippet=EN),
        result(**_CHUNK, url="https://example.org/r", chunk="4", snippet=OTHER),
    ),
    Pair(
        False,
        "two chunks of one page, numbers only",
        result(**_CHUNK, parent="d1", chunk="3"),
        result(**_CHUNK, parent="d1", chunk="4"),
    ),
    Pair(
        False,
        "two texts of one parent",
        result(**_CHUNK, parent="d1", snippet=EN),
        result(**_CHUNK, parent="d1", snippet=OTHER),
    ),
    Pair(
        False,
        "two hits of one file",
        result(**_CHUNK, doc_id="file-1", snippet=EN),
        result(**_CHUNK, doc_id="file-1", snippet=OTHER),
    ),
    Pair(
        False,
        "same text in two parents",
        result(**_CHUNK, parent="d1", snippet=LONG),
        result(**_CHUNK, parent="d2", snippet=LONG),
    ),
    Pair(
        False,
        "same text under two addresses",
        result(**_CHUNK, url="https://example.org/r", snippet=LONG),
        result(**_CHUNK, url="https://example.org/s", snippet=LONG),
    ),
    Pair(
        False,
        "overlapping chunks by offset",
        result(**_CHUNK, parent="d1", offset="0", snippet=EN),
        result(**_CHUNK, parent="d1", offset="100", snippet=EN),
    ),
    Pair(
        False, "no parent known", result(**_CHUNK, snippet=LONG, doc_id="a"), result(**_CHUNK, snippet=LONG, doc_id="b")
    ),
    Pair(
        False,
        "a parent by id and one by address say nothing of each other",
        result(**_CHUNK, parent="d1", snippet=EN),
        result(**_CHUNK, parent="https://example.org/r", snippet=EN),
    ),
    Pair(
        False,
        "a passage and its page",
        result(**_CHUNK, url="https://example.org/r", snippet=LONG),
        result(type="web_page", url="https://example.org/r", title="River report", snippet=LONG),
    ),
    Pair(
        False,
        "a passage and an untyped result",
        result(**_CHUNK, url="https://example.org/r", snippet=LONG),
        result(url="https://example.org/r", title="River report", snippet=LONG),
    ),
    # Transcript.
    Pair(
        True,
        "occurrence id",
        result(**_TALK, ids={"occurrence_id": "o1"}, snippet=EN),
        result(**_TALK, ids={"occurrence_id": "o1"}, snippet=OTHER),
    ),
    Pair(
        True,
        "title, start and end",
        result(**_TALK, start=_NINE, end=_TEN),
        result(**_TALK, start=_NINE, end=_TEN, snippet=EN),
    ),
    Pair(True, "title and text", result(**_TALK, snippet=EN), result(**_TALK, snippet=EN, start=_NINE)),
    Pair(False, "title and start", result(**_TALK, start=_NINE, doc_id="1"), result(**_TALK, start=_NINE, doc_id="2")),
    Pair(
        False,
        "next week's call",
        result(**_TALK, start=_NINE, snippet=LONG),
        result(**_TALK, start=_NEXT_NINE, snippet=LONG),
    ),
    Pair(
        False,
        "transcript and event of one meeting",
        result(**_TALK, ids={"occurrence_id": "o1"}),
        result(type="event", title="Planning call", ids={"occurrence_id": "o1"}),
    ),
]
